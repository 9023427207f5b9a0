"""Regression of rows that a public schema has encoded, and regressors restored from files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushfit._typing import BoolVector, Vector
from hushfit.data import RecordScaling, SignedBounds
from hushfit.estimators._encoded_rows import EncodedRows
from hushfit.estimators._inference import require_feasible
from hushfit.estimators._little_data import warn_of_few_for_numbers
from hushfit.estimators._private_fit import Fit, private_fit
from hushfit.estimators._regressors import Prepared, _PrivateRegressor
from hushfit.features import AdditiveMap, InputColumn
from hushfit.problem import Problem
from hushfit.release import Terms

# The range of the target is public, so no target is needed to find it.
_NO_TARGETS: Vector = np.empty(0)


@dataclass(frozen=True, eq=False)
class EncodedUnits:
    """Units of features in [0, 1], of which some were mapped to [-1, 1].

    Parameters
    ----------
    centred : bool array
        Which were mapped.
    ranges : (array, array)
        The values that 0 and 1 stand for.
    """

    centred: BoolVector
    ranges: tuple[Vector, Vector]

    @property
    def origin(self) -> Vector:
        low, high = self.ranges
        return low + np.where(self.centred, (high - low) / 2, 0.0)

    @property
    def width(self) -> Vector:
        low, high = self.ranges
        return (high - low) * np.where(self.centred, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class PredictionRanges:
    """The public ranges that a fitted regressor clips columns and predictions to.

    Parameters
    ----------
    target : (float, float)
    low, high, origin : array or None
        Ranges of the columns, and the value that stands for a missing one; None if columns are
        used as they are.
    """

    target: tuple[float, float]
    low: Vector | None = None
    high: Vector | None = None
    origin: Vector | None = None

    @classmethod
    def of(cls, fitted: Any) -> "PredictionRanges":
        """Those of a fitted regressor."""
        bounds, scale = fitted._fitted_bounds, fitted._fitted_scale
        target = float(scale.low), float(scale.high)
        return (
            cls(target) if bounds is None else cls(target, bounds.low, bounds.high, bounds.origin)
        )

    def restore(self, fitted: Any) -> None:
        """Give them to a regressor that was read from a file."""
        fitted._fitted_bounds = None if self.low is None else self
        fitted._fitted_scale = _Range(*self.target)


@dataclass(frozen=True)
class _Range:
    low: float
    high: float


def fit_encoded(
    estimator: _PrivateRegressor,
    rows: EncodedRows,
    terms: Terms,
    columns: Sequence[InputColumn] = (),
    feature_map: AdditiveMap | None = None,
    names: Sequence[str] = (),
) -> tuple[Fit, Problem, Callable[[Vector], Vector]]:
    """Fit a regressor to encoded rows; the range of its target must be given.

    Parameters
    ----------
    estimator : regressor
        Not fitted; its settings are used.
    rows : EncodedRows
    terms : Terms
        Budget, ledger, and what is public.
    columns : sequence of InputColumn
        What is public about the columns; needed with a map alone.
    feature_map : AdditiveMap, optional
        Public map that rows go through; None uses them as they are.
    names : sequence of str, default=()
        Of the features; needed with ``inference=True``.

    Returns
    -------
    fit : Fit
    problem : Problem
    in_units : callable
        From weights of the problem to coefficients, the intercept last.
    """
    settled, scale = estimator._settled(), estimator._scale(_NO_TARGETS)
    bounded = settled.scaling is RecordScaling.BOUNDED
    made = rows if feature_map is None else rows.mapped(feature_map)
    source = made.for_regression(settled.scaling, scale, bounded or estimator._scales_labels)
    d = source.n_features if feature_map is None else feature_map.n_inputs
    problem = estimator._problem(
        settled, source.n_units, d, source.privacy_unit, scale, feature_map
    )
    if estimator.inference:
        require_feasible(problem, terms.budget, estimator.cov_type, estimator.expected_mean)
    elif bounded and not estimator._features_are_public:
        warn_of_few_for_numbers(problem, terms.budget)
    fit = private_fit(source, problem, settled.solver, terms, estimator.verbose)
    # A map reads columns as they are encoded.
    ranges = source.ranges if feature_map is None else (np.zeros(d), np.ones(d))
    units, bounds = EncodedUnits(source.centred, source.ranges), SignedBounds(*ranges)
    prepared = Prepared(source, problem, settled, scale, units, bounds, feature_map, tuple(columns))
    estimator.n_features_in_ = d
    estimator._accept(fit, prepared, names)
    return fit, problem, lambda w: np.append(*estimator._in_units(w, prepared))
