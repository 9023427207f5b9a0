"""From tables on disk to a model file: fit, then record payment, schema and provenance."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from hushfit.data.schema import CategoricalColumn, Schema, SchemaFile, schema_hash
from hushfit.data.tables import CodedRows
from hushfit.errors import InvalidArgument
from hushfit.estimators import Prepared, private_fit
from hushfit.models._model import Model, PaidReceipt, Provenance
from hushfit.models._standard_errors import noise_standard_errors
from hushfit.privacy import Budget, Ledger
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
    problem = estimator.problem(rows.n_units, rows.n_features, len(classes), rows.privacy_unit)
    budget = Budget(estimator.epsilon, estimator.delta)
    randomness = Randomness.of(estimator.random_state)
    label = type(estimator).__name__
    terms = Terms(budget, label, randomness, ledger, _public(file), _notes(file))
    fit = private_fit(rows, problem, estimator.solver, terms, estimator.verbose)
    estimator.accept(fit.result, fit.guarantee, Prepared(rows, problem, np.array(classes), None))
    account = None if ledger is None else ledger.account
    paid = None
    if fit.receipt is not None and isinstance(account, DiskAccount):
        paid = PaidReceipt(account.name, fit.receipt.number, account.hash_of(fit.receipt))
    provenance = Provenance.now(command, schema_hash(schema))
    model = Model(estimator, schema, noise_standard_errors(fit, problem), paid, provenance)

    def record(digest: str) -> None:
        if fit.receipt is not None and isinstance(account, DiskAccount):
            account.record_model(fit.receipt, digest)

    return model, record


def _public(file: SchemaFile) -> tuple[str, ...]:
    stated = (
        "the classes, the columns, and the range or vocabulary of every column, as the schema "
        "states them"
    )
    if file.schema.person is not None:
        stated += "; the column of ids, and how the rows of a person are bounded and weighted"
    if not file.unconfirmed:
        return (stated,)
    return (
        stated,
        f"of these, READ FROM THE ROWS and not confirmed: {', '.join(file.unconfirmed)}",
    )


def _notes(file: SchemaFile) -> tuple[str, ...]:
    notes = [
        "Records are scaled to unit length; one whose label is not among the classes counts as the "
        "zero record.",
    ]
    if file.schema.person is not None:
        notes.append("A row without an id counts as a person of its own.")
    if file.unconfirmed:
        notes.append(
            f"--accept-draft was given: {len(file.unconfirmed)} values of the schema were read "
            "from the rows, outside the "
            "guarantee."
        )
    return tuple(notes)
