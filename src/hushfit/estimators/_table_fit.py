"""Fits of tables that a public schema has encoded, on one machine or on several."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushfit._typing import Vector
from hushfit.data import RecordScaling
from hushfit.data.design import MainEffects
from hushfit.data.schema import CategoricalColumn, Schema, SchemaFile
from hushfit.errors import InvalidArgument
from hushfit.estimators._classifiers import Prepared
from hushfit.estimators._encoded_fit import EncodedUnits, fit_encoded
from hushfit.estimators._encoded_rows import TableRows
from hushfit.estimators._inference import require_feasible
from hushfit.estimators._little_data import warn_of_few_for_classes
from hushfit.estimators._positive import positive_place
from hushfit.estimators._private_fit import Fit, private_fit
from hushfit.estimators._scaling import ChosenScaling
from hushfit.features import AdditiveMap, FeatureMap
from hushfit.privacy import Budget, Relation, labels_only
from hushfit.problem import Problem
from hushfit.release import Payer, Randomness, Terms


@dataclass(frozen=True, eq=False)
class TableFit:
    """A fit of a table.

    Parameters
    ----------
    fit : Fit
    problem : Problem
    in_units : callable, optional
        From weights of the problem to coefficients, for a model of numbers.
    """

    fit: Fit
    problem: Problem
    in_units: Callable[[Vector], Vector] | None = None


def fit_table(
    estimator: Any, rows: TableRows, file: SchemaFile, ledger: Payer | None = None
) -> TableFit:
    """Fit an estimator to the rows of a table, paying first.

    Parameters
    ----------
    estimator : classifier or regressor
        Not fitted; its settings are used.
    rows : TableRows
        Encoded with the schema of ``file``.
    file : SchemaFile
        Its unconfirmed values are recorded in the guarantee.
    ledger : Payer, optional
        Charged before any row is read.

    Returns
    -------
    TableFit
        The estimator is fitted.
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
    if file.schema.scaling == "public" and (estimator.inference or not rows.classes):
        raise InvalidArgument(
            "scaling = 'public' of the schema is for classifiers without intervals: other models "
            "keep the lengths of rows. Nothing was spent. Delete that line."
        )
    fitted = _fit_classes if rows.classes else _fit_numbers
    made = fitted(estimator, rows, file, ledger)
    estimator.receipt_ = made.fit.receipt
    return made


def fitted_to_schema_rows(estimator: Any, rows: Any, y: Any, groups: Any) -> Any:
    """What ``fit`` of an estimator does with rows that a schema describes."""
    if y is not None or groups is not None:
        raise InvalidArgument(
            "These rows have a schema, which names their target and the ids of persons. Give "
            "neither y nor groups."
        )
    estimator.keep_inference(None)
    fit_table(estimator, rows, SchemaFile(rows.schema), estimator.ledger)
    return estimator


def _fit_classes(
    estimator: Any, rows: TableRows, file: SchemaFile, ledger: Payer | None
) -> TableFit:
    """Fit a classifier."""
    _settle_positive(estimator, file.schema)
    if estimator.inference:
        return _fit_intervals(estimator, rows, file, ledger)
    classes, columns, n_columns = list(rows.classes), file.schema.inputs, rows.n_features
    feature_map = _additive_map(estimator, rows, file.schema)
    _settle_scaling(estimator, file.schema, feature_map)
    source = rows if feature_map is None else rows.mapped(feature_map)
    problem = estimator.problem(
        rows.n_units, n_columns, len(classes), rows.privacy_unit, feature_map
    )
    if problem.scaling is RecordScaling.PUBLIC_LENGTH:
        source = source.divided_by(problem.length)
    scaling = ChosenScaling(problem.scaling, problem.length)
    terms = _terms(estimator, file, ledger, _public(file, feature_map), _class_note(rows, scaling))
    solver = estimator.chosen_solver(problem, terms.budget)
    warn_of_few_for_classes(problem, terms.budget)
    fit = private_fit(source, problem, solver, terms, estimator.verbose)
    prepared = Prepared(source, problem, np.array(classes), None, feature_map, tuple(columns))
    estimator.accept(fit.result, fit.guarantee, prepared, fit.transcript)
    return TableFit(fit, problem)


def _fit_intervals(
    estimator: Any, rows: TableRows, file: SchemaFile, ledger: Payer | None
) -> TableFit:
    """Fit a classifier whose coefficients get intervals."""
    design = MainEffects(file.schema, rows.schema)
    source, classes = rows.for_design(design), np.array(rows.classes)
    problem = estimator.problem(
        source.n_units, source.n_features, len(classes), source.privacy_unit, None
    )
    terms = _terms(
        estimator, file, ledger, _public(file, None), f"{_design_note(design)} {_LABEL_NOTE}"
    )
    solver = estimator.chosen_solver(problem, terms.budget)
    require_feasible(problem, terms.budget, estimator.cov_type, estimator.expected_mean)
    fit = private_fit(source, problem, solver, terms, estimator.verbose)
    units = EncodedUnits(source.centred, source.ranges)
    prepared = Prepared(source, problem, classes, units)
    estimator.keep_inference(estimator.inferred(fit, prepared, design.names))
    estimator.accept(fit.result, fit.guarantee, prepared, fit.transcript)
    return TableFit(fit, problem)


def _fit_numbers(
    estimator: Any, rows: TableRows, file: SchemaFile, ledger: Payer | None
) -> TableFit:
    """Fit a regressor."""
    note, inputs = _number_note(rows), file.schema.inputs
    if estimator.inference:
        design = MainEffects(file.schema, rows.schema)
        terms = _terms(
            estimator, file, ledger, _public(file, None), f"{_design_note(design)} {note}"
        )
        coded = rows.for_design(design)
        return TableFit(*fit_encoded(estimator, coded, terms, names=design.names))
    feature_map = _additive_map(estimator, rows, file.schema)
    terms = _terms(estimator, file, ledger, _public(file, feature_map), note)
    return TableFit(*fit_encoded(estimator, rows, terms, inputs, feature_map))


def _additive_map(estimator: Any, rows: TableRows, schema: Schema) -> AdditiveMap | None:
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


def _settle_positive(estimator: Any, schema: Schema) -> None:
    """Give an estimator the positive class that the schema names: arrays that are predicted later
    do not show it.
    """
    assert isinstance(schema.target, CategoricalColumn)
    named = schema.target.positive
    if named is not None:
        if estimator.pos_label not in (None, named):
            raise InvalidArgument(
                f"pos_label={estimator.pos_label!r}, and the schema has positive = {named!r}. "
                "Nothing was spent. Name one class in both, or leave pos_label out."
            )
        estimator.set_params(pos_label=named)
    positive_place(estimator.pos_label, np.array(schema.target.categories))


def _settle_scaling(estimator: Any, schema: Schema, feature_map: FeatureMap | None) -> None:
    """Give an estimator the length that rows are divided by, if the schema or the settings ask for
    a public one: arrays that are predicted later do not show it.
    """
    chosen = schema.scaling if estimator.scaling == "unit" else estimator.scaling
    if chosen != "public":
        return
    if feature_map is not None:
        raise InvalidArgument(
            "scaling = 'public' is for features = 'linear': the length of curved features has no "
            "small public bound. Nothing was spent. Use one of them."
        )
    estimator.set_params(scaling=schema.longest)


def _terms(
    estimator: Any, file: SchemaFile, ledger: Payer | None, public: tuple[str, ...], note: str
) -> Terms:
    budget = Budget(estimator.epsilon, estimator.delta)
    randomness = Randomness.of(estimator.random_state)
    notes = (note, *_draft_notes(file))
    return Terms(budget, type(estimator).__name__, randomness, ledger, public, notes)


def public_of(schema: Schema) -> str:
    """What a fit by a schema takes as public, in words."""
    what = "classes" if isinstance(schema.target, CategoricalColumn) else "target's range"
    stated = (
        f"the {what}, the columns, and the range or vocabulary of every column, as the schema "
        "states them"
    )
    if schema.person is not None:
        stated += "; the column of ids, and how the rows of a person are bounded and weighted"
    return stated


def _public(file: SchemaFile, feature_map: FeatureMap | None) -> tuple[str, ...]:
    stated = public_of(file.schema)
    if feature_map is not None:
        stated += "; the feature map, which no row enters"
    if not file.unconfirmed:
        return (stated,)
    return (
        stated,
        f"of these, READ FROM THE ROWS and not confirmed: {', '.join(file.unconfirmed)}",
    )


_LABEL_NOTE = "So does one whose target is not among the classes."


def _design_note(design: MainEffects) -> str:
    gap = (
        "or without a number that the schema does not fill, counts as the zero record."
        if design.tells_gaps
        else "counts as the zero record; a missing number becomes the low end of its range unless "
        "the schema says otherwise."
    )
    return (
        "Records keep their lengths; one with a label that the schema does not list, without a "
        f"date, {gap}"
    )


def _class_note(rows: TableRows, scaling: ChosenScaling) -> str:
    counts = "as halfway between the classes" if rows.keep_unlabelled else "as the zero record"
    return f"Records {scaling.in_words}; one whose label is not among the classes counts {counts}."


def _number_note(rows: TableRows) -> str:
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
