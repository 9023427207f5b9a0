"""Sparse linear regression with a privacy guarantee."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from hushfit._typing import Vector
from hushfit.data import FeatureBounds, as_source
from hushfit.errors import InvalidArgument, PrivacyLeakWarning
from hushfit.estimators._linear import (
    in_original_units,
    in_record_units,
    no_cell_quoted,
    refuse_extras,
    validated_rows,
)
from hushfit.estimators._persons import PersonSettings, features_of, persons_in, split_groups
from hushfit.estimators._private_fit import private_fit, quote_for
from hushfit.losses import LeastSquares, Squared
from hushfit.penalties import L1, ElasticNet, Penalty
from hushfit.privacy import Budget, Guarantee, Relation, labels_only
from hushfit.problem import Problem
from hushfit.release import Quote, Randomness, Terms
from hushfit.unit import ROW, PrivacyUnit


@dataclass(frozen=True)
class TargetScale:
    """Public map of the target to [-1, 1]: clip, shift, scale; without an intercept no shift."""

    low: float
    high: float
    centre: float
    half_width: float

    @classmethod
    def of(cls, bounds: Any, y: Vector, fit_intercept: bool) -> "TargetScale":
        """From public bounds; from the targets themselves, with a warning, when there are none."""
        if bounds is None:
            warnings.warn(
                "target_bounds=None: the range of the target is read from y, outside the "
                "guarantee. Give (low, high) as you know them without looking; values outside are "
                "clipped.",
                PrivacyLeakWarning,
                stacklevel=4,
            )
            low, high = float(y.min()), float(y.max())
            high = high if high > low else low + 1.0
        else:
            low, high = cls._checked(bounds)
        if fit_intercept:
            return cls(low, high, (low + high) / 2, (high - low) / 2)
        return cls(low, high, 0.0, max(abs(low), abs(high)))

    @staticmethod
    def _checked(bounds: Any) -> tuple[float, float]:
        try:
            low, high = (float(end) for end in bounds)
        except (TypeError, ValueError, OverflowError):
            raise InvalidArgument(
                f"target_bounds={bounds!r} is not a pair of numbers. Give (low, high)."
            ) from None
        if not (np.isfinite(low) and np.isfinite(high) and np.isfinite(high - low) and low < high):
            raise InvalidArgument(
                f"target_bounds=({low:g}, {high:g}) is not a range. Give finite numbers with low < "
                "high."
            )
        return low, high

    @property
    def mapped_range(self) -> tuple[float, float]:
        """The range of mapped targets; all of [-1, 1] with an intercept."""
        low, high = self(np.array([self.low, self.high])).tolist()
        return low, high

    def __call__(self, y: Vector) -> Vector:
        return (np.clip(y, self.low, self.high) - self.centre) / self.half_width


class _PrivateLinearRegressor(PersonSettings, RegressorMixin, BaseEstimator):
    """Base of the regressors, which differ in their penalty."""

    def __init__(
        self,
        alpha: float = 1e-3,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        adjacency: str = "replace-one",
        target_bounds: Any = None,
        solver: Any = "auto",
        feature_bounds: Any = None,
        fit_intercept: bool = True,
        nonfinite: str = "zero",
        person_weight: str = "mean",
        rows_per_person: int | None = None,
        ledger: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.target_bounds = target_bounds
        self.solver = solver
        self.feature_bounds = feature_bounds
        self.fit_intercept = fit_intercept
        self.nonfinite = nonfinite
        self.person_weight = person_weight
        self.rows_per_person = rows_per_person
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose

    def _penalty(self) -> Penalty:
        raise NotImplementedError

    def fit(self, X: Any, y: Any, groups: Any = None, **unsupported: Any) -> Any:
        """Fit the model and charge its cost.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)
        y : array of shape (n_rows,)
        groups : array of shape (n_rows,) or str, optional
            Ids: whose row each is. The privacy unit is then one person with all of their rows
            (user-level privacy). A text names a column of the data frame, which is no feature; a
            row without an id is its own person. None protects single rows.

        Returns
        -------
        self
        """
        refuse_extras(unsupported)
        budget = Budget(self.epsilon, self.delta)
        Relation.parse(self.adjacency)
        self._penalty()
        X, ids = split_groups(X, groups, y)
        persons = persons_in(self, ids)
        X, y = validated_rows(self, X, y, y_numeric=True)
        bounds = (
            None
            if self.feature_bounds is None
            else FeatureBounds.parse(self.feature_bounds, X.shape[1])
        )
        scale = TargetScale.of(self.target_bounds, y, bool(self.fit_intercept))
        source = as_source(
            X,
            scale(y),
            fit_intercept=bool(self.fit_intercept),
            bounds=bounds,
            scaled_labels=True,
            persons=persons,
        )
        problem = self._problem(source.n_units, X.shape[1], source.privacy_unit, scale)
        fit = private_fit(source, problem, self.solver, self._terms(budget), self.verbose)
        coef, intercept = in_original_units(fit.result.w, problem, bounds)
        self.coef_ = coef[0] * scale.half_width
        self.intercept_ = float(intercept[0] * scale.half_width + scale.centre)
        self.n_iter_ = fit.result.steps
        self.privacy_: Guarantee = fit.guarantee
        return self

    def quote(self, n_units: int, n_features: int, per_person: bool = False) -> Quote:
        """Cost of a fit with these settings; no row is read and nothing is charged.

        Parameters
        ----------
        n_units : int
            Number of privacy units, which is public: of rows, or of persons. For persons the
            number of rows is private and changes nothing.
        n_features : int
            Number of columns, without the column of ids.
        per_person : bool, default=False
            Whether units are persons: the cost of a fit with ``groups``.

        Returns
        -------
        Quote
            Cost, noise multipliers and planned releases. Print it.
        """
        budget = Budget(self.epsilon, self.delta)
        unit = self.person_unit() if per_person else ROW
        return quote_for(self._problem(n_units, n_features, unit), self.solver, budget)

    def _problem(
        self, n_units: int, n_features: int, unit: PrivacyUnit, scale: TargetScale | None = None
    ) -> Problem:
        relation = Relation.parse(self.adjacency)
        low, high = (-1.0, 1.0) if scale is None else scale.mapped_range
        return Problem(
            LeastSquares(low, high) if labels_only(relation) else Squared(),
            self._penalty(),
            n_units,
            n_features,
            relation,
            bool(self.fit_intercept),
            privacy_unit=unit,
        )

    def predict(self, X: Any) -> Vector:
        """Predicted target of each row.

        ``X @ coef_ + intercept_``, with columns clipped to ``feature_bounds`` first. A column of
        ids that was no feature in training is left out.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
        """
        check_is_fitted(self)
        X = features_of(X, self.privacy_.unit.column)
        with no_cell_quoted():
            X = validate_data(
                self,
                X,
                reset=False,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_all_finite=self.nonfinite == "raise",
            )
        coef, intercept = self.coef_, self.intercept_
        if self.feature_bounds is not None:
            bounds = FeatureBounds.parse(self.feature_bounds, X.shape[1])
            X = bounds.apply_sparse(X) if issparse(X) else bounds.apply(X)
            weights = in_record_units(coef[None], np.array([intercept]), bounds)[0]
            coef, intercept = weights[:-1], weights[-1]
        predicted = np.asarray(X @ coef + intercept)
        return np.where(
            np.isfinite(predicted), predicted, self.intercept_
        )  # an empty record, as in training

    @property
    def support_(self) -> Any:
        """Columns with a coefficient other than zero."""
        check_is_fitted(self)
        return np.flatnonzero(self.coef_)

    def _terms(self, budget: Budget) -> Terms:
        given = "given by the caller"
        public = ["the names and number of the columns"]
        public.append(
            "the range of the target, "
            f"{given if self.target_bounds is not None else 'READ FROM THE ROWS'}"
        )
        if self.feature_bounds is not None:
            public.append(f"the range of every column, {given}")
        notes = (
            "Records are scaled to unit length and their targets with them, so long rows weigh "
            "less; one with a missing or "
            "infinite value counts as the zero record.",
        )
        return Terms(
            budget,
            type(self).__name__,
            Randomness.of(self.random_state),
            self.ledger,
            tuple(public),
            notes,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.regressor_tags.poor_score = True  # of a few dozen rows
        return tags


class PrivateLasso(_PrivateLinearRegressor):
    r"""Linear regression with an L1 penalty and a differential-privacy guarantee.

    Minimises :math:`\frac1n \sum_i h\bigl((x_i \cdot w + b - t_i) / |(x_i, 1)|\bigr) + \alpha
    \|w\|_1`, where t is the target mapped to [-1, 1] by its public bounds and h is the squared loss
    with slope at most one (Huber's). Dividing by the length of a row bounds its influence; long
    rows have less weight. With ``adjacency="label"`` or ``"person-label"``, where features are
    public, h is the plain squared loss.

    Parameters
    ----------
    alpha : float, default=1e-3
        Weight of the penalty, in the units of the mapped target.
    epsilon, delta, adjacency, solver, feature_bounds, fit_intercept, nonfinite, person_weight,
    rows_per_person, ledger, random_state, verbose
        As for `PrivateLogisticRegression`.
    target_bounds : (low, high), optional
        Public range of the target; values outside are clipped. None reads it from ``y`` and warns.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    support_ : array of int
    n_iter_ : int
    privacy_ : Guarantee

    Examples
    --------
    >>> from hushfit import PrivateLasso
    >>> PrivateLasso(alpha=0.01, target_bounds=(0, 100))
    PrivateLasso(alpha=0.01, target_bounds=(0, 100))
    """

    def _penalty(self) -> Penalty:
        return L1(self.alpha)


class PrivateElasticNet(_PrivateLinearRegressor):
    """Linear regression with L1 and squared penalties and a differential-privacy guarantee.

    Parameters
    ----------
    alpha : float, default=1e-3
    l1_ratio : float, default=0.5
        Share of L1; the penalty is scikit-learn's.
    others
        As for `PrivateLasso`, and so are the attributes.

    Examples
    --------
    >>> from hushfit import PrivateElasticNet
    >>> PrivateElasticNet(l1_ratio=0.9, target_bounds=(0, 1))
    PrivateElasticNet(l1_ratio=0.9, target_bounds=(0, 1))
    """

    def __init__(
        self,
        alpha: float = 1e-3,
        l1_ratio: float = 0.5,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        adjacency: str = "replace-one",
        target_bounds: Any = None,
        solver: Any = "auto",
        feature_bounds: Any = None,
        fit_intercept: bool = True,
        nonfinite: str = "zero",
        person_weight: str = "mean",
        rows_per_person: int | None = None,
        ledger: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            alpha,
            epsilon,
            delta,
            adjacency,
            target_bounds,
            solver,
            feature_bounds,
            fit_intercept,
            nonfinite,
            person_weight,
            rows_per_person,
            ledger,
            random_state,
            verbose,
        )
        self.l1_ratio = l1_ratio

    def _penalty(self) -> Penalty:
        return ElasticNet(self.alpha, self.l1_ratio)
