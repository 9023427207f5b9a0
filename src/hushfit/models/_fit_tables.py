"""From tables on disk to a model file: fit, then record payment, schema and provenance."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from hushfit.data.schema import CategoricalColumn, Schema, SchemaFile, schema_hash
from hushfit.data.tables import CodedRows
from hushfit.errors import InvalidArgument
from hushfit.estimators import Prepared, private_fit
from hushfit.features import FeatureMap
from hushfit.models._model import Model, PaidReceipt, Provenance
from hushfit.models._standard_errors import noise_standard_errors
from hushfit.privacy import Budget, Ledger, Receipt, labels_only
from hushfit.privacy.ledger import DiskAccount
from hushfit.release import Randomness, Terms


def with_sorted_classes(schema: Schema) -> Schema:
    """The schema with its classes in the order that estimators use."""
    if not isinstance(schema.target, CategoricalColumn):
        raise InvalidArgument(
            "the schema needs a categorical [target]: the classes to predict. Add it."
        )
    return replace(
        schema, target=replace(schema.target, categories=tuple(sorted(schema.target.categories)))
    )


def fit_rows(
    estimator: Any,
    rows: CodedRows,
    file: SchemaFile,
    ledger: Ledger | None = None,
    command: str = "",
) -> tuple[Model, Callable[[str], None]]:
    """Fit an estimator to packed rows, paying first.

    Parameters
    ----------
    estimator : PrivateLogisticRegression or PrivateLinearSVC
        Not fitted; its settings are used.
    rows : CodedRows
        Packed with the schema of ``file``.
    file : SchemaFile
        Its unconfirmed values are recorded in the guarantee.
    ledger : Ledger, optional
        Charged before any row is read.
    command : str, default=""
        For the provenance.

    Returns
    -------
    model : Model
    record : callable
        Takes the hash of the model file and records it in the ledger.
    """
    schema, classes = file.schema, list(rows.target.categories)
    if schema.features != "linear" and estimator.features == "linear":
        estimator.set_params(features=schema.features)
    columns, n_columns = schema.inputs, rows.n_features
    feature_map = estimator.feature_map(rows.n_units, columns)
    source = rows if feature_map is None else rows.mapped(feature_map)
    problem = estimator.problem(
        rows.n_units, n_columns, len(classes), rows.privacy_unit, feature_map
    )
    if labels_only(problem.relation) is not rows.keep_unlabelled:
        raise InvalidArgument(
            f"the rows were packed with keep_unlabelled={rows.keep_unlabelled}, which does not "
            f"suit adjacency={str(problem.relation)!r}. Nothing was spent. Pack them for it."
        )
    budget = Budget(estimator.epsilon, estimator.delta)
    randomness = Randomness.of(estimator.random_state)
    label = type(estimator).__name__
    notes = _notes(file, rows.keep_unlabelled)
    terms = Terms(budget, label, randomness, ledger, _public(file, feature_map), notes)
    solver = estimator.chosen_solver(problem, budget)
    fit = private_fit(source, problem, solver, terms, estimator.verbose)
    prepared = Prepared(source, problem, np.array(classes), None, feature_map, tuple(columns))
    estimator.accept(fit.result, fit.guarantee, prepared, fit.transcript)
    paid, record = paid_receipt(ledger, fit.receipt)
    provenance = Provenance.now(command, schema_hash(schema))
    return Model(estimator, schema, noise_standard_errors(fit, problem), paid, provenance), record


def paid_receipt(
    ledger: Any, receipt: Receipt | None
) -> tuple[PaidReceipt | None, Callable[[str], None]]:
    """The payment as a model file states it, and a function that records the hash of the file in
    the ledger.
    """
    account = None if ledger is None else ledger.account
    if receipt is None or not isinstance(account, DiskAccount):
        return None, lambda digest: None
    paid = PaidReceipt(account.name, receipt.number, account.hash_of(receipt))
    return paid, lambda digest: account.record_model(receipt, digest)


def _public(file: SchemaFile, feature_map: FeatureMap | None) -> tuple[str, ...]:
    stated = (
        "the classes, the columns, and the range or vocabulary of every column, as the schema "
        "states them"
    )
    if file.schema.person is not None:
        stated += "; the column of ids, and how the rows of a person are bounded and weighted"
    if feature_map is not None:
        stated += "; the feature map, which no row enters"
    if not file.unconfirmed:
        return (stated,)
    return (
        stated,
        f"of these, READ FROM THE ROWS and not confirmed: {', '.join(file.unconfirmed)}",
    )


def _notes(file: SchemaFile, unlabelled_kept: bool) -> tuple[str, ...]:
    counts = "as halfway between the classes" if unlabelled_kept else "as the zero record"
    notes = [
        "Records are scaled to unit length; one whose label is not among the classes counts "
        f"{counts}.",
    ]
    if file.unconfirmed:
        notes.append(
            f"--accept-draft was given: {len(file.unconfirmed)} values of the schema were read "
            "from the rows, outside the "
            "guarantee."
        )
    return tuple(notes)
