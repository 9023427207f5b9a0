"""The argument ``features`` of an estimator: which public map rows go through before the fit."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.data import FeatureBounds, SignedBounds
from hushfit.errors import InvalidArgument
from hushfit.estimators._linear import input_names
from hushfit.estimators._missing import without_gaps
from hushfit.features import (
    CLASSIFICATION,
    AdditiveFeatures,
    AdditiveMap,
    FeatureMap,
    InputColumn,
    KnotMasses,
    MapRule,
    RowProfile,
    additive_map,
    centred,
    column_place,
    hat_means,
    monotone,
    refuse_if_rows_mix,
    smoothed,
    weights_of,
)
from hushfit.privacy import Budget, Guarantee, Relation, exchanges, gaussian_mu
from hushfit.problem import Problem
from hushfit.release import Released, SecondMoment, ShortenedMoment
from hushfit.solvers import MAX_SMOOTH_COLUMNS

LINEAR = "linear"
_NAMED = {"additive": AdditiveFeatures(), "centred": AdditiveFeatures(most_intervals=1)}
# A mean over the rows is a ratio of two released numbers; with more noise in its denominator than
# that it says nothing.
_SMALLEST_RATIO = 4.0


def additive_settings(features: Any) -> AdditiveFeatures | None:
    """The settings of an additive model; None for any other argument.

    Raises
    ------
    InvalidArgument
        If the argument is not known.
    """
    if isinstance(features, AdditiveFeatures):
        return features
    if isinstance(features, str) and features in _NAMED:
        return _NAMED[features]
    if not (isinstance(features, str) and features == LINEAR) and not isinstance(
        features, FeatureMap
    ):
        raise InvalidArgument(
            f"features={features!r} is not known. Use 'linear', 'additive', 'centred', an "
            "AdditiveFeatures, or a public feature map of hushfit.features."
        )
    return None


def is_linear(features: Any) -> bool:
    """Whether rows are used as they are."""
    return additive_settings(features) is None and not isinstance(features, FeatureMap)


def reads_text(features: Any) -> bool:
    """Whether columns are texts."""
    return isinstance(features, FeatureMap) and features.reads_text


def columns_of(
    features: Any, bounds: FeatureBounds | None, names: Sequence[str]
) -> list[InputColumn]:
    """What is public about the columns of an array.

    Raises
    ------
    InvalidArgument
        If an additive model is asked for without public ranges, or a map of texts with ranges.
    """
    settings = additive_settings(features)
    if reads_text(features) and bounds is not None:
        raise InvalidArgument(
            f"{_name_of(features)} reads texts, which have no ranges. Leave feature_bounds out."
        )
    if settings is None:
        return [InputColumn(name) for name in names]
    if bounds is None:
        raise InvalidArgument(
            f"features={_name_of(features)!r} needs the public range of every column. "
            "Give feature_bounds as you know them without looking at the rows, or use a schema."
        )
    return settings.columns(names, bounds.low, bounds.high)


def _name_of(features: Any) -> str:
    return features if isinstance(features, str) else type(features).__name__


def feature_map_of(
    features: Any,
    columns: Sequence[InputColumn],
    n_units: int,
    budget: Budget,
    relation: Relation,
    rule: MapRule,
    most_outputs: int,
) -> FeatureMap | None:
    """The map that rows go through; None if they are used as they are. From public numbers alone.

    Raises
    ------
    InvalidArgument
        If a map was given that takes another number of columns, or mixes rows.
    """
    settings = additive_settings(features)
    if settings is not None:
        settings.directions(columns)  # refuses names that are no columns
        size = data_size(n_units, budget, relation)
        return additive_map(columns, size, most_outputs, settings.most_intervals, rule)
    if not isinstance(features, FeatureMap):
        return None
    given = _given_map(features, columns)
    return _bounded(given) if rule.bounded else given


def public_map(features: Any, bounds: FeatureBounds | None, names: Sequence[str]) -> FeatureMap:
    """The map of a step that knows no budget: as given, or with as many knots as settings allow.

    Raises
    ------
    InvalidArgument
        If there is no map, if it takes another number of columns or mixes rows, or if shapes are
        asked for, which only a fitted model has.
    """
    columns, settings = columns_of(features, bounds, names), additive_settings(features)
    if settings is not None and (settings.monotone or settings.smoothness):
        raise InvalidArgument(
            "monotone and smooth shapes belong to a fitted model. Give these settings as features "
            "of the estimator, and leave the step out."
        )
    if settings is not None:
        return additive_map(
            columns, math.inf, MAX_SMOOTH_COLUMNS - 1, settings.most_intervals, CLASSIFICATION
        )
    if not isinstance(features, FeatureMap):
        raise InvalidArgument(
            f"features={features!r} changes nothing. Leave the step out, or give a public feature "
            "map of hushfit.features."
        )
    return _given_map(features, columns)


def _given_map(features: FeatureMap, columns: Sequence[InputColumn]) -> FeatureMap:
    """A map that the caller made, tried out for the columns of the table."""
    if features.n_inputs != len(columns):
        raise InvalidArgument(
            f"the feature map takes {features.n_inputs} columns, and there are {len(columns)}. "
            "Make it for the columns of the table."
        )
    refuse_if_rows_mix(features)
    return features


def _bounded(feature_map: FeatureMap) -> FeatureMap:
    """The map with outputs in [-1, 1]."""
    if isinstance(feature_map, AdditiveMap):
        return feature_map.bounded()
    if not feature_map.row_norm <= 1:
        raise InvalidArgument(
            f"the feature map {type(feature_map).__name__} states a row norm of "
            f"{feature_map.row_norm:g}, and rows of a regression keep their lengths. Divide its "
            "outputs by their largest norm, so that it states 1."
        )
    return feature_map


def whole_rows(
    X: Any,
    nonfinite: str,
    bounds: FeatureBounds | SignedBounds | None,
    feature_map: FeatureMap | None,
) -> Any:
    """Rows under the rule for missing values. Columns that the additive map fills stay as they are,
    and so do all rows of another map, which decides itself what a missing value means.
    """
    if feature_map is None:
        return without_gaps(X, nonfinite, bounds)
    if isinstance(feature_map, AdditiveMap):
        own = [j for j, fill in enumerate(feature_map.fills) if fill is not None]
        return without_gaps(X, nonfinite, bounds, own)
    refused = nonfinite == "raise" and not feature_map.reads_text
    return without_gaps(X, nonfinite, bounds) if refused else X


def refuse_shapes_of_several_classes(features: Any, n_classes: int) -> None:
    """Refuse monotone shapes where they have no meaning."""
    settings = additive_settings(features)
    if settings is not None and settings.monotone and n_classes > 2:
        raise InvalidArgument(
            "monotone shapes are for two classes: of several probabilities not all can rise. "
            "Leave monotone out."
        )


def data_size(n_units: int, budget: Budget, relation: Relation) -> float:
    """N = n mu / a: how much the rows can show through the noise of the budget."""
    factor = 2.0 if exchanges(relation) else 1.0
    mu = gaussian_mu(budget.epsilon, budget.delta) if math.isfinite(budget.epsilon) else math.inf
    return n_units * mu / factor


def row_profile(
    feature_map: FeatureMap | None,
    problem: Problem,
    transcript: Sequence[Released],
    guarantee: Guarantee,
) -> RowProfile:
    """Where the rows lie on the numeric columns, from a released second moment.

    Empty without such a release, or where its noise hides it.
    """
    if not isinstance(feature_map, AdditiveMap) or not problem.fit_intercept:
        return RowProfile()
    found = next(
        (
            (released, released.query)
            for released in transcript
            if isinstance(released.query, SecondMoment | ShortenedMoment)
        ),
        None,
    )
    if found is None:
        return RowProfile()
    released, query = found
    moment = query.matrix(released.answer)
    multiplier = next(r.noise_multiplier for r in guarantee.releases if r.name == released.name)
    # Entries beside the diagonal have half the variance of those on it.
    noise = multiplier * query.sensitivity(problem.relation) / math.sqrt(2)
    weight = float(moment[-1, -1])
    if weight <= _SMALLEST_RATIO * noise:
        return RowProfile()
    to_mean = problem.constant / weight
    masses = {
        j: KnotMasses.of(to_mean * moment[span.shape, -1], to_mean * noise, feature_map.table(span))
        for j, span in enumerate(feature_map.spans)
        if span.intervals
    }
    if isinstance(query, ShortenedMoment):  # of records that keep their lengths
        return RowProfile(None, masses)
    # Records have length one, so the trace is the number of rows, or the weight of the persons.
    total = (
        float(np.trace(moment))
        if not problem.privacy_unit.total_weight_is_public
        else problem.n_units
    )
    return RowProfile(math.sqrt(max(total / weight, 1.0)), masses)


def shape_values(estimator: Any, weights: Vector, column: int | str) -> tuple[Vector, Vector]:
    """Knots of a column in [0, 1], and its centred shape function there, for the weights of the
    outputs.

    Raises
    ------
    InvalidArgument
        If there is no such column, or if it has no shape function.
    """
    feature_map, place = (
        estimator.feature_map_,
        column_place(column, input_names(estimator), "shape_values was asked for"),
    )
    span = feature_map.spans[place] if isinstance(feature_map, AdditiveMap) else None
    if not isinstance(feature_map, AdditiveMap) or span is None or not span.intervals:
        raise InvalidArgument(
            f"column {column!r} has no shape function: it has one weight, in coef_. Shape "
            "functions belong to numeric columns of a fit with features='additive'."
        )
    values = feature_map.table(span) @ weights[span.shape]
    knots = np.linspace(0.0, 1.0, span.intervals + 1)
    return knots, centred(values, estimator.row_profile_.masses.get(place))


def reshaped(
    coef: Matrix,
    intercept: Vector,
    features: Any,
    feature_map: FeatureMap | None,
    columns: Sequence[InputColumn],
    profile: RowProfile,
) -> tuple[Matrix, Vector]:
    """Weights whose shapes are smooth and monotone as the settings ask; else as they are."""
    settings = additive_settings(features)
    if settings is None or not isinstance(feature_map, AdditiveMap):
        return coef, intercept
    directions = settings.directions(columns)
    if not directions and settings.smoothness == 0.0:
        return coef, intercept
    coef, intercept = coef.copy(), intercept.copy()
    for j, span in enumerate(feature_map.spans):
        way = directions.get(j)
        if not span.intervals:
            if way is not None:  # a straight line of two values: no slope against its direction
                coef[:, span.start] = way * np.maximum(way * coef[:, span.start], 0.0)
            continue
        table = feature_map.table(span)
        weights = profile.masses[j].weights if j in profile.masses else hat_means(span.intervals)
        for k, own in enumerate(coef):
            values = smoothed(table @ own[span.shape], settings.smoothness, weights)
            if way is not None:
                values = monotone(values, way, weights)
            coef[k, span.shape], constant = weights_of(values, table)
            intercept[k] += constant
    return coef, intercept
