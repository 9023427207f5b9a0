"""From tables on disk to a model file: fit, then record payment, schema and provenance."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from hushfit._typing import Matrix
from hushfit.data.design import MainEffects
from hushfit.data.schema import CategoricalColumn, Schema, SchemaFile, schema_hash
from hushfit.data.tables import CodedRows
from hushfit.errors import InvalidArgument
from hushfit.estimators import (
    EncodedUnits,
    Fit,
    Prepared,
    fit_encoded,
    private_fit,
    require_feasible,
)
from hushfit.features import AdditiveMap, FeatureMap
from hushfit.models._model import Model, PaidReceipt, Provenance
from hushfit.models._standard_errors import noise_standard_errors
from hushfit.privacy import Budget, Ledger, Receipt, Relation, labels_only
from hushfit.privacy.ledger import DiskAccount
from hushfit.release import Randomness, Terms


def with_sorted_classes(schema: Schema) -> Schema:
    """The schema with its classes in the order that estimators use; grades keep their own."""
    if schema.target is None:
        raise InvalidArgument("the schema needs a [target]: the column to predict. Add it.")
    if not isinstance(schema.target, CategoricalColumn):
        return schema
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
    estimator : classifier or regressor
        Not fitted; its settings are used. A classifier for classes, a regressor, with the range of
        the target, for numbers, counts and grades.
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
    relation = Relation.parse(estimator.adjacency)
    if labels_only(relation) is not rows.keep_unlabelled:
        raise InvalidArgument(
            f"the rows were packed with keep_unlabelled={rows.keep_unlabelled}, which does not "
            f"suit adjacency={str(relation)!r}. Nothing was spent. Pack them for it."
        )
    if estimator.inference and file.schema.features != "linear":
        raise InvalidArgument(
            f"intervals are for straight effects, and the schema has features = "
            f"{file.schema.features!r}. Nothing was spent. Use features = 'linear', or fit without "
            "intervals."
        )
    fitted = _fit_classes if rows.classes else _fit_numbers
    fit, errors = fitted(estimator, rows, file, ledger)
    paid, record = paid_receipt(ledger, fit.receipt)
    provenance = Provenance.now(command, schema_hash(file.schema))
    design = MainEffects(file.schema) if estimator.inference else None
    return Model(estimator, file.schema, errors, paid, provenance, design), record


def _fit_classes(
    estimator: Any, rows: CodedRows, file: SchemaFile, ledger: Ledger | None
) -> tuple[Fit, Matrix | None]:
    """Fit a classifier; returns standard errors too."""
    if estimator.inference:
        return _fit_intervals(estimator, rows, file, ledger), None
    classes, columns, n_columns = list(rows.classes), file.schema.inputs, rows.n_features
    feature_map = _additive_map(estimator, rows, file.schema)
    source = rows if feature_map is None else rows.mapped(feature_map)
    problem = estimator.problem(
        rows.n_units, n_columns, len(classes), rows.privacy_unit, feature_map
    )
    terms = _terms(estimator, file, ledger, _public(file, feature_map), _class_note(rows))
    solver = estimator.chosen_solver(problem, terms.budget)
    fit = private_fit(source, problem, solver, terms, estimator.verbose)
    prepared = Prepared(source, problem, np.array(classes), None, feature_map, tuple(columns))
    estimator.accept(fit.result, fit.guarantee, prepared, fit.transcript)
    return fit, noise_standard_errors(fit, problem)


def _fit_intervals(estimator: Any, rows: CodedRows, file: SchemaFile, ledger: Ledger | None) -> Fit:
    """Fit a classifier whose coefficients get intervals."""
    design = MainEffects(file.schema)
    source, classes = rows.for_design(design), np.array(rows.classes)
    problem = estimator.problem(
        source.n_units, source.n_features, len(classes), source.privacy_unit, None
    )
    terms = _terms(estimator, file, ledger, _public(file, None), f"{_DESIGN_NOTE} {_LABEL_NOTE}")
    solver = estimator.chosen_solver(problem, terms.budget)
    require_feasible(problem, terms.budget, estimator.cov_type)
    fit = private_fit(source, problem, solver, terms, estimator.verbose)
    units = EncodedUnits(source.centred, source.ranges)
    prepared = Prepared(source, problem, classes, units)
    estimator.keep_inference(estimator.inferred(fit, prepared, design.names))
    estimator.accept(fit.result, fit.guarantee, prepared, fit.transcript)
    return fit


def _fit_numbers(
    estimator: Any, rows: CodedRows, file: SchemaFile, ledger: Ledger | None
) -> tuple[Fit, Matrix | None]:
    """Fit a regressor; returns standard errors too, where they are known."""
    note, inputs = _number_note(rows), file.schema.inputs
    if estimator.inference:
        design = MainEffects(file.schema)
        terms = _terms(estimator, file, ledger, _public(file, None), f"{_DESIGN_NOTE} {note}")
        coded = rows.for_design(design)
        return fit_encoded(estimator, coded, terms, names=design.names)[0], None
    feature_map = _additive_map(estimator, rows, file.schema)
    terms = _terms(estimator, file, ledger, _public(file, feature_map), note)
    fit, problem, in_units = fit_encoded(estimator, rows, terms, inputs, feature_map)
    return fit, noise_standard_errors(fit, problem, in_units)


def _additive_map(estimator: Any, rows: CodedRows, schema: Schema) -> AdditiveMap | None:
    """The public map of the columns that the schema or the settings ask for; None for none."""
    if schema.features != "linear" and estimator.features == "linear":
        if "features" not in estimator.get_params(deep=False):
            raise InvalidArgument(
                f"the schema has features = {schema.features!r}, and {type(estimator).__name__} "
                "chooses single columns, which those of the map are not. Nothing was spent. Use a "
                "model without an L1 penalty, or features = 'linear'."
            )
        estimator.set_params(features=schema.features)
    feature_map = estimator.feature_map(rows.n_units, schema.inputs)
    if not isinstance(feature_map, AdditiveMap | None):
        raise InvalidArgument(
            f"a table with a schema takes features='additive', not {type(feature_map).__name__}. "
            "Nothing was spent. Fit arrays with this map in Python."
        )
    return feature_map


def _terms(
    estimator: Any, file: SchemaFile, ledger: Ledger | None, public: tuple[str, ...], note: str
) -> Terms:
    budget = Budget(estimator.epsilon, estimator.delta)
    randomness = Randomness.of(estimator.random_state)
    notes = (note, *_draft_notes(file))
    return Terms(budget, type(estimator).__name__, randomness, ledger, public, notes)


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
    what = "classes" if isinstance(file.schema.target, CategoricalColumn) else "target's range"
    stated = (
        f"the {what}, the columns, and the range or vocabulary of every column, as the schema "
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


_DESIGN_NOTE = (
    "Records keep their lengths; one with a label that the schema does not list, or without a "
    "date, counts as the zero record."
)
_LABEL_NOTE = "So does one whose target is not among the classes."


def _class_note(rows: CodedRows) -> str:
    counts = "as halfway between the classes" if rows.keep_unlabelled else "as the zero record"
    return (
        "Records are scaled to unit length; one whose label is not among the classes counts "
        f"{counts}."
    )


def _number_note(rows: CodedRows) -> str:
    counts = "at the middle of the range" if rows.keep_unlabelled else "as the zero record"
    return (
        "Columns and target are clipped to their public ranges; a record whose target is missing "
        f"or no number counts {counts}."
    )


def _draft_notes(file: SchemaFile) -> tuple[str, ...]:
    if not file.unconfirmed:
        return ()
    return (
        f"--accept-draft was given: {len(file.unconfirmed)} values of the schema were read from "
        "the rows, outside the guarantee.",
    )
