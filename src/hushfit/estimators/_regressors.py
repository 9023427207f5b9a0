"""Linear regression, of numbers and of counts, with a privacy guarantee.

Where rows are private, the default solver works on records that keep their lengths, in the public
ranges of the columns: docs/algorithms/least-squares.md. Every other solver gets records of length
one. Where labels alone are private, there is one release: docs/algorithms/one-release.md.
"""

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.sparse import issparse
from scipy.special import ndtr
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from hushfit._typing import Vector
from hushfit.data import FeatureBounds, RecordScaling, SignedBounds, as_source, scaling_of
from hushfit.errors import InvalidArgument, MissingBoundsWarning, PrivacyLeakWarning
from hushfit.estimators._encoded_rows import EncodedRows
from hushfit.estimators._features import (
    columns_of,
    feature_map_of,
    is_linear,
    reshaped,
    row_profile,
    shape_values,
    whole_rows,
)
from hushfit.estimators._frames import as_frame, labels_of, unwrapped
from hushfit.estimators._inference import (
    About,
    Inference,
    Inferring,
    inference_of,
    middle_of,
    require_feasible,
)
from hushfit.estimators._labels import as_cells, numbers_of
from hushfit.estimators._linear import (
    clipped,
    in_original_units,
    input_names,
    no_cell_quoted,
    refuse_extras,
    validated_rows,
)
from hushfit.estimators._little_data import warn_of_few_for_numbers
from hushfit.estimators._missing import stated_rule
from hushfit.estimators._persons import PersonSettings, features_of, persons_in, split_groups
from hushfit.estimators._private_fit import Fit, check_sizes, private_fit, quote_for
from hushfit.estimators._ranges import feature_ranges, quoted_ranges
from hushfit.features import REGRESSION, FeatureMap, InputColumn, RowProfile
from hushfit.losses import LeastSquares, Loss, Poisson, SaturatingSquares, Squared
from hushfit.penalties import L1, Box, ElasticNet, NonNegative, Penalty, ScaledL2, Zero
from hushfit.privacy import Budget, Guarantee, Relation, labels_only
from hushfit.problem import Problem
from hushfit.release import Quote, Randomness, Terms
from hushfit.solvers import MAX_MATRIX_COLUMNS, SOLVERS, WhitenedLeastSquares, WhitenedPoisson
from hushfit.unit import ROW, PrivacyUnit

_CHOSEN = ("auto", "select")
# The weight of a penalty where "auto" cannot be chosen from releases: other solvers, public
# features.
_USUAL_ALPHA = 1e-3
# What arrays that are no targets hold, by the kind of their type; texts, of other types.
_HELD = {"M": "dates", "m": "durations"}
# Range of every column if none is given: that of standardised columns.
_ASSUMED_BOUNDS = (-3.0, 3.0)


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
            high = high if high > low else low + max(1.0, 1e-9 * abs(low))
        else:
            low, high = cls._checked(bounds)
        if fit_intercept:
            return cls(low, high, low + (high - low) / 2, (high - low) / 2)
        return cls(low, high, 0.0, max(abs(low), abs(high)))

    @staticmethod
    def _checked(bounds: Any) -> tuple[float, float]:
        try:
            low, high = (float(end) for end in bounds)
        except (TypeError, ValueError, OverflowError):
            raise InvalidArgument(
                f"target_bounds={bounds!r} is not a pair of numbers. Give (low, high)."
            ) from None
        # Targets are divided by half of the width, which must be a number of full precision.
        if not (
            np.isfinite(low) and np.isfinite(high) and 2 * sys.float_info.min <= high - low < np.inf
        ):
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

    def in_units_of_targets(self, coef: Vector, intercept: float) -> tuple[Vector, float]:
        """Coefficients and intercept of the target itself, from those of the mapped one."""
        return coef * self.half_width, float(intercept * self.half_width + self.centre)


@dataclass(frozen=True, eq=False)
class _Settled:
    """The choices of a fit that follow from its settings alone."""

    solver: Any
    scaling: RecordScaling
    penalty: Penalty


class TargetMap(Protocol):
    """A public map of targets, and of coefficients back to their units."""

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...

    def __call__(self, y: Vector) -> Vector: ...

    def in_units_of_targets(self, coef: Vector, intercept: float) -> tuple[Vector, float]: ...


class _PrivateRegressor(Inferring, PersonSettings, RegressorMixin, BaseEstimator):
    """Base of the regressors, which differ in loss and penalty."""

    # The penalty's weight when alpha is no setting.
    alpha: Any = "auto"
    positive: bool = False
    features: Any = "linear"  # of classes that do not take it
    # Of fits on rows that are used as they are.
    feature_map_: FeatureMap | None = None
    row_profile_: RowProfile = RowProfile()
    _engine: ClassVar[type[WhitenedLeastSquares] | type[WhitenedPoisson]] = WhitenedLeastSquares

    epsilon: float
    delta: float
    adjacency: str
    solver: Any
    feature_bounds: Any
    fit_intercept: bool
    nonfinite: str
    ledger: Any
    random_state: Any
    verbose: int

    def _penalty(self, alpha: float) -> Penalty:
        """The penalty of weight alpha."""
        raise NotImplementedError

    def _loss(self, scaling: RecordScaling, scale: Any) -> Loss:
        raise NotImplementedError

    def _scale(self, y: Vector) -> "TargetMap":
        raise NotImplementedError

    def _mean(self, margins: Vector) -> Vector:
        """Predictions in the units of the mapped target."""
        raise NotImplementedError

    def _settled(self) -> _Settled:
        """Solver, scaling of the records and penalty, from the settings."""
        if self.inference:
            given = None if self._chosen_alpha() is not None else self._penalty(self.alpha)
            self._require_plain(is_linear(self.features), given)
            return _Settled(self._score_steps(), RecordScaling.BOUNDED, self._signed(Zero()))
        chosen = self._chosen_alpha()
        if self._features_are_public:
            return self._without_choice(self.solver, self._label_scaling, chosen)
        solver: Any = self._engine() if self.solver == "auto" else self.solver
        made = SOLVERS[solver]() if isinstance(solver, str) and solver in SOLVERS else solver
        if scaling_of(made) is not RecordScaling.BOUNDED:
            return self._without_choice(self.solver, RecordScaling.UNIT_LENGTH, chosen)
        if isinstance(made, WhitenedLeastSquares | WhitenedPoisson) and chosen is not None:
            made = replace(made, weight=chosen)
        penalty = self._signed(self._penalty(1.0 if chosen is not None else self.alpha))
        return _Settled(self._refined(made), RecordScaling.BOUNDED, penalty)

    _label_scaling: ClassVar[RecordScaling] = RecordScaling.UNIT_LENGTH

    def _refined(self, solver: Any) -> Any:
        """The solver with what else the settings say about it."""
        return solver

    def _chosen_alpha(self) -> str | None:
        """How alpha is chosen; None if it is a number."""
        if isinstance(self.alpha, str):
            if self.alpha not in _CHOSEN:
                raise InvalidArgument(
                    f"alpha={self.alpha!r} is not known. Give a number of at least 0, 'auto', or "
                    "'select'."
                )
            return self.alpha
        return None

    def _without_choice(self, solver: Any, scaling: RecordScaling, chosen: str | None) -> _Settled:
        if chosen == "select":
            raise InvalidArgument(
                "alpha='select' is computed by the default solver from its releases, where rows "
                "are private. Give a number here."
            )
        penalty = self._penalty(_USUAL_ALPHA if chosen is not None else self.alpha)
        if chosen is not None and penalty.ridge is not None and self._features_are_public:
            penalty = Zero()  # the solver shrinks as far as its noise demands
        return _Settled(solver, scaling, self._signed(penalty))

    @property
    def _features_are_public(self) -> bool:
        return labels_only(Relation.parse(self.adjacency))

    def _signed(self, penalty: Penalty) -> Penalty:
        if not self.positive:
            return penalty
        return Box(0.0, np.inf) if penalty.ridge == 0 else NonNegative(penalty)

    def fit(self, X: Any, y: Any = None, groups: Any = None, **unsupported: Any) -> Any:
        """Fit the model and charge its cost.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)
            Or any table with an Arrow stream: an Arrow table, a DuckDB relation. Or rows with a
            schema (`hushfit.data.tables.CodedRows`, `hushfit.dask.DaskRows`), which need no y.
        y : array of shape (n_rows,) or str
            A text names a column of the data frame.
        groups : array of shape (n_rows,) or str, optional
            Ids: whose row each is. The privacy unit is then one person with all of their rows
            (user-level privacy). A text names a column of the data frame, which is no feature; a
            row without an id is its own person. None protects single rows.

        Returns
        -------
        self
        """
        refuse_extras(unsupported)
        if isinstance(X, EncodedRows):
            from hushfit.estimators._table_fit import fitted_to_schema_rows

            return fitted_to_schema_rows(self, X, y, groups)
        budget = Budget(self.epsilon, self.delta)
        settled = self._settled()
        X, y = labels_of(X, y)
        X, ids = split_groups(X, groups, y)
        persons = persons_in(self, ids)
        X, y = self._validated(unwrapped(X), y)
        bounds = self._bounds(X, settled.scaling)
        columns = self._columns(bounds, input_names(self))
        n_units = X.shape[0] if persons is None else persons.n_persons
        feature_map = self.feature_map(n_units, columns)
        X = whole_rows(X, self._rule_of_gaps, bounds, feature_map)
        scale = self._scale(y)
        if self._features_are_public:  # which rows are used must not depend on labels
            y = np.where(np.isnan(y), scale.low + (scale.high - scale.low) / 2, y)
        bounded = settled.scaling is RecordScaling.BOUNDED
        source = as_source(
            bounds.apply(X, _stored(budget)) if isinstance(bounds, SignedBounds) else X,
            scale(y),
            fit_intercept=bool(self.fit_intercept),
            bounds=None if isinstance(bounds, SignedBounds) else bounds,
            scaled_labels=bounded or self._scales_labels,
            persons=persons,
            scaling=settled.scaling,
            feature_map=feature_map,
        )
        problem = self._problem(
            settled, n_units, X.shape[1], source.privacy_unit, scale, feature_map
        )
        if self.inference:
            require_feasible(problem, budget, self.cov_type, self.expected_mean)
        elif bounded and not self._features_are_public:
            warn_of_few_for_numbers(problem, budget)
        terms = self._terms(budget, settled.scaling)
        fit = private_fit(source, problem, settled.solver, terms, self.verbose)
        if self.inference:
            self.keep_inference(self._inferred(fit, problem, bounds, scale, input_names(self)))
        else:
            self.keep_inference(None)
        units = bounds if feature_map is None else None  # weights of mapped columns stay in theirs
        coef, intercept = in_original_units(fit.result.w, problem, units)
        self.feature_map_ = feature_map
        self.row_profile_ = row_profile(feature_map, problem, fit.transcript, fit.guarantee)
        coef, intercept = reshaped(
            coef, intercept, self.features, feature_map, columns, self.row_profile_
        )
        self.coef_, self.intercept_ = scale.in_units_of_targets(coef[0], float(intercept[0]))
        self.n_iter_ = fit.result.steps
        self._fitted_bounds, self._fitted_scale = bounds, scale
        self.privacy_: Guarantee = fit.guarantee
        self.receipt_ = fit.receipt
        return self

    def _validated(self, X: Any, y: Any) -> tuple[Any, Vector]:
        """Rows and targets; a target that is nan is left as it is if the rule for missing values
        and the range of the targets are public.
        """
        check = partial(validated_rows, self, X, y_numeric=True)
        if self.nonfinite == "raise" or not self._range_is_public:
            return check(y=y)
        return with_missing_targets(y, check)

    @property
    def _range_is_public(self) -> bool:
        """Whether the range of the targets is given, and not read from them."""
        raise NotImplementedError

    def _inferred(
        self, fit: Fit, problem: Problem, bounds: Any, scale: Any, names: Sequence[str]
    ) -> Inference:
        def in_units(w: Vector) -> Vector:
            coef, intercept = in_original_units(w, problem, bounds)
            own, constant = scale.in_units_of_targets(coef[0], float(intercept[0]))
            return np.append(constant, own)

        title = f"{type(self).__name__}, {problem.n_units} {problem.privacy_unit.plural}"
        middle = middle_of(feature_ranges(self), problem.n_features)
        about = About(names, self.cov_type, title, self.link, middle)
        return inference_of(fit, problem, in_units, about)

    def _columns(self, bounds: Any, names: list[str]) -> list[InputColumn]:
        """What is public about the columns."""
        return columns_of(self.features, bounds, names)

    def feature_map(self, n_units: int, columns: list[InputColumn]) -> FeatureMap | None:
        """The map that rows go through before a fit, from public numbers alone; None if they are
        used as they are.

        Parameters
        ----------
        n_units : int
            Number of privacy units.
        columns : list of InputColumn

        Returns
        -------
        FeatureMap or None
        """
        if self.positive and not is_linear(self.features):
            raise InvalidArgument(
                "positive=True is about single coefficients, and those of an additive model mean "
                "nothing by themselves. Use features=AdditiveFeatures(monotone={column: 1, ...})."
            )
        return feature_map_of(
            self.features,
            columns,
            n_units,
            Budget(self.epsilon, self.delta),
            Relation.parse(self.adjacency),
            REGRESSION,
            MAX_MATRIX_COLUMNS,
        )

    # Labels shrink with records of length one, so that a residual shrinks as a whole.
    _scales_labels: ClassVar[bool] = True

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
        check_sizes(n_units=n_units, n_features=n_features)
        budget, settled = Budget(self.epsilon, self.delta), self._settled()
        unit = self.person_unit() if per_person else ROW
        given = quoted_ranges(self.feature_bounds, n_features)
        bounds = None if given is None else FeatureBounds.parse(given, n_features)
        columns = self._columns(bounds, [f"x{j}" for j in range(n_features)])
        feature_map = self.feature_map(n_units, columns)
        problem = self._problem(settled, n_units, n_features, unit, None, feature_map)
        if settled.scaling is RecordScaling.BOUNDED and not self._features_are_public:
            warn_of_few_for_numbers(problem, budget)
        return quote_for(problem, settled.solver, budget)

    def _problem(
        self,
        settled: _Settled,
        n_units: int,
        n_features: int,
        unit: PrivacyUnit,
        scale: "TargetMap | None",
        feature_map: FeatureMap | None = None,
    ) -> Problem:
        return Problem(
            self._loss(settled.scaling, scale),
            settled.penalty,
            n_units,
            n_features if feature_map is None else feature_map.n_outputs,
            Relation.parse(self.adjacency),
            bool(self.fit_intercept),
            privacy_unit=unit,
            scaling=settled.scaling,
            rotated=feature_map is not None and feature_map.rotated,
        )

    def _bounds(self, X: Any, scaling: RecordScaling) -> FeatureBounds | SignedBounds | None:
        if scaling is RecordScaling.UNIT_LENGTH or not is_linear(self.features):
            given = feature_ranges(self)
            if given is not None:
                return FeatureBounds.parse(given, X.shape[1])
            if is_linear(self.features) and not self._features_are_public:
                warnings.warn(
                    f"feature_bounds=None and solver={self.solver!r}: rows are scaled to unit "
                    "length as they are, and what their length says is lost. Give (low, high) of "
                    "every column as you know them without looking at the rows, or use "
                    "solver='auto'.",
                    MissingBoundsWarning,
                    stacklevel=3,
                )
            return None
        if self.feature_bounds is None:
            low, high = _ASSUMED_BOUNDS
            warnings.warn(
                f"feature_bounds=None: columns are taken to be in [{low:g}, {high:g}], as "
                "standardised ones are, and clipped to it. Give (low, high) of every column as "
                "you know them without looking at the rows.",
                MissingBoundsWarning,
                stacklevel=3,
            )
        given = _ASSUMED_BOUNDS if self.feature_bounds is None else feature_ranges(self)
        return SignedBounds.parse(given, X.shape[1], issparse(X))

    def predict(self, X: Any) -> Vector:
        """Predicted target of each row, inside the range of the targets.

        Columns are first clipped to their ranges. A column of ids that was no feature in training
        is left out. Missing values are treated as in training: see ``nonfinite``.

        Parameters
        ----------
        X : array, CSR matrix, or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
        """
        check_is_fitted(self)
        X = unwrapped(features_of(as_frame(X), self.privacy_.unit.column))
        with no_cell_quoted():
            X = validate_data(
                self,
                X,
                reset=False,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_all_finite=self.nonfinite == "raise",
            )
        made = self.feature_map_
        X = whole_rows(X, self.nonfinite, self._fitted_bounds, made)
        margins, middle = self._margins(X)
        margins = np.where(np.isfinite(margins), margins, middle)
        return np.clip(self._mean(margins), self._fitted_scale.low, self._fitted_scale.high)

    def _margins(self, X: Any) -> tuple[Vector, float]:
        """The margin of each row, and that of the middle of the ranges."""
        bounds, middle = self._fitted_bounds, self.intercept_
        if self.feature_map_ is not None:
            # Rows that go through a map are bounded to [0, 1], not to [-1, 1].
            known = None if bounds is None else FeatureBounds(bounds.low, bounds.high)
            return self._mapped_margins(X, known), middle
        if bounds is not None:
            X = clipped(X, bounds)
            middle = middle + float(self.coef_ @ bounds.origin)
        return np.asarray(X @ self.coef_ + self.intercept_), middle

    def _mapped_margins(self, X: Any, bounds: FeatureBounds | None) -> Vector:
        """The margins of rows that go through the feature map, block by block."""
        source = as_source(
            X,
            np.zeros(X.shape[0]),
            bounds=bounds,
            scaling=RecordScaling.BOUNDED,
            feature_map=self.feature_map_,
        )
        w, margins = np.append(self.coef_, self.intercept_ / source.unit), np.empty(X.shape[0])
        for block in source.blocks():
            margins[block.place] = block.margins(w)
        return margins

    def shape_values(self, column: int | str) -> tuple[Vector, Vector]:
        """The shape function of a numeric column of an additive model, at its knots.

        It is linear between knots. A prediction is the sum of the shape functions, of the weights
        of the other columns and of a constant; of counts, it is that of the logarithm. Functions
        are centred: their mean is zero over the rows, as far as the released second moment shows
        where these lie, or over the range if it shows nothing.

        Parameters
        ----------
        column : int or str
            Number or name of the input column.

        Returns
        -------
        knots : array
            In [0, 1] of the public range.
        values : array
        """
        check_is_fitted(self)
        return shape_values(self, self.coef_, column)

    @property
    def support_(self) -> Any:
        """Columns with a coefficient other than zero."""
        check_is_fitted(self)
        return np.flatnonzero(self.coef_)

    def _terms(self, budget: Budget, scaling: RecordScaling) -> Terms:
        given = "given by the caller"
        public = ["the names and number of the columns", self._public_targets(given)]
        if self.feature_bounds is not None:
            public.append(f"the range of every column, {given}")
        if not is_linear(self.features):
            public.append("the feature map, which no row enters")
        bounded = scaling is RecordScaling.BOUNDED
        note = (
            "Records keep their lengths; entries are clipped to the ranges of the columns and "
            "targets to theirs"
            if bounded
            else "Records are scaled to unit length and their targets with them, so long rows "
            "weigh less"
        )
        rule = stated_rule(self._rule_of_gaps, bounded or self.feature_bounds is not None)
        return Terms(
            budget,
            type(self).__name__,
            Randomness.of(self.random_state),
            self.ledger,
            tuple(public),
            (f"{note}; {rule}{self._rule_of_targets}.",),
        )

    @property
    def _rule_of_targets(self) -> str:
        """What becomes of missing targets, as a guarantee states it."""
        if self.nonfinite == "raise" or not self._range_is_public:
            return ""
        counts = (
            "is taken to be in the middle of the range"
            if self._features_are_public
            else "makes its record the zero record"
        )
        return f"; a missing target {counts}"

    def _public_targets(self, given: str) -> str:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.regressor_tags.poor_score = True  # of a few dozen rows
        return tags


def with_missing_targets(y: Any, check: Callable[..., tuple[Any, Vector]]) -> tuple[Any, Vector]:
    """Rows and targets as ``check(y=...)`` returns them, with infinite targets as they are and NaN
    for those that are missing or no numbers: scikit-learn refuses these, which would tell of a row.

    Targets are float64 in any case: one that is missing must not change how others are rounded.
    """
    # Columns of a type for texts are refused by that type, whatever they hold.
    cells = np.asarray(y, dtype=str) if _is_of_texts(y) else as_cells(y)
    targets = numbers_of(cells)
    if targets is None:
        if cells.dtype.kind != "c":  # complex ones are refused by scikit-learn
            raise InvalidArgument(
                f"y is an array of {_HELD.get(cells.dtype.kind, 'texts')}, and not of numbers. "
                "Convert it first, such as with pandas.to_numeric(y, errors='coerce'), which makes "
                "what is no number a missing target."
            )
        return check(y=cells)
    X, _ = check(y=np.where(np.isfinite(targets), targets, 0.0))
    return X, targets.ravel()


def _is_of_texts(y: Any) -> bool:
    """Whether a column of pandas or polars is of a type for texts, or for categories in texts."""
    kind = getattr(y, "dtype", None)
    categories = getattr(kind, "categories", None)
    return str(getattr(categories, "dtype", kind)).lower() in ("str", "string")


def _stored(budget: Budget) -> type[np.floating[Any]]:
    """Type of mapped rows: every round reads all of them, and half as many bytes take half as long.
    Entries are off by less than 1e-7 of their range, far below what noise hides.
    """
    return np.float32 if budget.is_private else np.float64


class _PrivateLinearRegressor(_PrivateRegressor):
    """Base of the regressors of numbers in a public range."""

    target_bounds: Any

    def _loss(self, scaling: RecordScaling, scale: Any) -> Loss:
        if scaling is RecordScaling.BOUNDED:
            return LeastSquares() if self.inference else SaturatingSquares()
        low, high = (-1.0, 1.0) if scale is None else scale.mapped_range
        return LeastSquares(low, high) if self._features_are_public else Squared()

    @property
    def _range_is_public(self) -> bool:
        return self.target_bounds is not None

    def _scale(self, y: Vector) -> TargetScale:
        return TargetScale.of(self.target_bounds, y, bool(self.fit_intercept))

    def _mean(self, margins: Vector) -> Vector:
        return margins

    def _public_targets(self, given: str) -> str:
        read = given if self.target_bounds is not None else "READ FROM THE ROWS"
        return f"the range of the target, {read}"


class PrivateLinearRegression(_PrivateLinearRegressor):
    """Least squares with a differential-privacy guarantee, without tuning.

    Predictions are clipped to the range of the targets, and the fit takes that into account: where
    no fitted value leaves the range, it is least squares. How far coefficients are shrunk follows
    from the releases and their noise, at no cost: with a large budget not at all, with a small one
    towards a constant.

    Parameters
    ----------
    target_bounds : (low, high), optional
        Public range of the target; values outside are clipped, and predictions stay inside. None
        reads it from ``y`` and warns.
    feature_bounds : (low, high), or one tuple per column in a list or by name in a dict, optional
        Public ranges of the columns, mapped into [-1, 1]; a column in [0, 1], such as an indicator,
        stays as it is. None assumes [-3, 3] and warns.
    epsilon, delta, adjacency, solver, fit_intercept, nonfinite, person_weight, rows_per_person,
    ledger, random_state, verbose
        As for `PrivateLogisticRegression`.
    positive : bool, default=False
        Whether coefficients must be at least 0.
    features : "linear", "additive", "centred", AdditiveFeatures or FeatureMap, default="linear"
        What the model is linear in, as for `PrivateLogisticRegression`; all but the first need
        ``feature_bounds``.

    inference : bool, default=False
        Whether to estimate ordinary coefficients with standard errors, intervals and tests that
        cover sampling and noise (``summary()``, ``conf_int()``). Needs ``feature_bounds`` and
        enough rows; predictions are less accurate than without. Rows with a missing value are left
        out of the fit.
    cov_type : {"model", "robust", "cluster"}, default="model"
        Covariance of the coefficients; "robust" holds where the model does not. With ``groups``
        it is clustered by person, and "cluster" is another name for it.
    even_weights : bool, default=False
        With ``inference``: whether all rows weigh the same. Otherwise rows with unusual features
        weigh less, which changes what is estimated if the model is wrong. Noise is larger; with
        few rows there may be no intervals (docs/algorithms/inference.md).

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        With a feature map, weights of its outputs: for an additive model see ``shape_values``.
    feature_map_ : FeatureMap or None
        The map that rows go through; None if they are used as they are.
    row_profile_ : RowProfile
        Of an additive model: where the rows lie, as far as the released second moment shows.
    intercept_ : float
    support_ : array of int
        Columns with a coefficient other than zero.
    n_iter_ : int
    privacy_ : Guarantee

    Examples
    --------
    >>> from hushfit import PrivateLinearRegression
    >>> PrivateLinearRegression(target_bounds=(0, 100))
    PrivateLinearRegression(target_bounds=(0, 100))
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        adjacency: str = "replace-one",
        target_bounds: Any = None,
        solver: Any = "auto",
        feature_bounds: Any = None,
        fit_intercept: bool = True,
        nonfinite: str = "fill",
        person_weight: str = "mean",
        rows_per_person: int | None = None,
        ledger: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        positive: bool = False,
        features: Any = "linear",
        inference: bool = False,
        cov_type: str = "model",
        even_weights: bool = False,
    ) -> None:
        self.inference = inference
        self.cov_type = cov_type
        self.even_weights = even_weights
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
        self.positive = positive
        self.features = features

    def _penalty(self, alpha: float) -> Penalty:
        return Zero()


class PrivateRidge(_PrivateLinearRegressor):
    r"""Linear regression with a squared penalty and a differential-privacy guarantee.

    Minimises :math:`\frac1{2n} \sum_i (x_i \cdot w + b - t_i)^2 + \frac\alpha2 \|w\|^2`, with
    columns and target mapped into [-1, 1] by their public ranges.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Weight of the penalty, of the mean loss and in mapped units (scikit-learn's is of the sum).
        "auto" chooses a weight for every direction from the releases and their noise.
    target_bounds : (low, high), optional
        Public range of the target; values outside are clipped, and predictions stay inside. None
        reads it from ``y`` and warns.
    feature_bounds : (low, high), or one tuple per column in a list or by name in a dict, optional
        Public ranges of the columns, mapped into [-1, 1]; a column in [0, 1], such as an indicator,
        stays as it is. None assumes [-3, 3] and warns.
    epsilon, delta, adjacency, solver, fit_intercept, nonfinite, person_weight, rows_per_person,
    ledger, random_state, verbose
        As for `PrivateLogisticRegression`.
    positive : bool, default=False
        Whether coefficients must be at least 0.
    features : "linear", "additive", "centred", AdditiveFeatures or FeatureMap, default="linear"
        What the model is linear in, as for `PrivateLogisticRegression`; all but the first need
        ``feature_bounds``.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        With a feature map, weights of its outputs: for an additive model see ``shape_values``.
    feature_map_ : FeatureMap or None
        The map that rows go through; None if they are used as they are.
    row_profile_ : RowProfile
        Of an additive model: where the rows lie, as far as the released second moment shows.
    intercept_ : float
    support_ : array of int
        Columns with a coefficient other than zero.
    n_iter_ : int
    privacy_ : Guarantee

    Examples
    --------
    >>> from hushfit import PrivateRidge
    >>> PrivateRidge(alpha=0.01, target_bounds=(0, 100))
    PrivateRidge(alpha=0.01, target_bounds=(0, 100))
    """

    def __init__(
        self,
        alpha: float | str = "auto",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        adjacency: str = "replace-one",
        target_bounds: Any = None,
        solver: Any = "auto",
        feature_bounds: Any = None,
        fit_intercept: bool = True,
        nonfinite: str = "fill",
        person_weight: str = "mean",
        rows_per_person: int | None = None,
        ledger: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        positive: bool = False,
        features: Any = "linear",
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
        self.positive = positive
        self.features = features

    def _penalty(self, alpha: float) -> Penalty:
        return ScaledL2(alpha)


class PrivateLasso(_PrivateLinearRegressor):
    r"""Linear regression with an L1 penalty and a differential-privacy guarantee.

    Minimises :math:`\frac1{2n} \sum_i (x_i \cdot w + b - t_i)^2 + \alpha \|w\|_1`, with columns
    and target mapped into [-1, 1] by their public ranges. With a named solver other than
    "least-squares", rows are divided by their length and the loss is Huber's, as described in
    docs/losses.md. With ``adjacency="label"`` or ``"person-label"``, where features are public,
    rows are divided by their length and the loss is the squared one.

    Parameters
    ----------
    alpha : float, "auto" or "select", default="auto"
        Weight of the penalty, in mapped units. "auto" chooses it from the releases for prediction,
        by an unbiased estimate of the error, and keeps many columns; "select" takes a larger one,
        above which noise hardly ever enters the model. Both are free. With other solvers and public
        features "auto" is 0.001.
    target_bounds : (low, high), optional
        Public range of the target; values outside are clipped, and predictions stay inside. None
        reads it from ``y`` and warns.
    feature_bounds : (low, high), or one tuple per column in a list or by name in a dict, optional
        Public ranges of the columns, mapped into [-1, 1]; a column in [0, 1], such as an indicator,
        stays as it is. None assumes [-3, 3] and warns.
    epsilon, delta, adjacency, solver, fit_intercept, nonfinite, person_weight, rows_per_person,
    ledger, random_state, verbose
        As for `PrivateLogisticRegression`.
    positive : bool, default=False
        Whether coefficients must be at least 0.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    support_ : array of int
        Columns with a coefficient other than zero.
    n_iter_ : int
    privacy_ : Guarantee

    Examples
    --------
    >>> from hushfit import PrivateLasso
    >>> PrivateLasso(alpha=0.01, target_bounds=(0, 100))
    PrivateLasso(alpha=0.01, target_bounds=(0, 100))
    """

    def __init__(
        self,
        alpha: float | str = "auto",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        adjacency: str = "replace-one",
        target_bounds: Any = None,
        solver: Any = "auto",
        feature_bounds: Any = None,
        fit_intercept: bool = True,
        nonfinite: str = "fill",
        person_weight: str = "mean",
        rows_per_person: int | None = None,
        ledger: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        positive: bool = False,
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
        self.positive = positive

    def _penalty(self, alpha: float) -> Penalty:
        return L1(alpha)


class PrivateElasticNet(_PrivateLinearRegressor):
    """Linear regression with L1 and squared penalties and a differential-privacy guarantee.

    Parameters
    ----------
    alpha : float, "auto" or "select", default="auto"
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
        alpha: float | str = "auto",
        l1_ratio: float = 0.5,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        adjacency: str = "replace-one",
        target_bounds: Any = None,
        solver: Any = "auto",
        feature_bounds: Any = None,
        fit_intercept: bool = True,
        nonfinite: str = "fill",
        person_weight: str = "mean",
        rows_per_person: int | None = None,
        ledger: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        positive: bool = False,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
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
        self.positive = positive

    def _penalty(self, alpha: float) -> Penalty:
        return ElasticNet(alpha, self.l1_ratio)


class PrivateHuberRegressor(_PrivateLinearRegressor):
    """Linear regression that a few wild targets hardly move, with a differential-privacy guarantee.

    Gradients longer than a bound are shortened to it, and the bound follows the residuals so that
    about as many are shortened as residuals of normal targets exceed ``threshold`` standard
    deviations, or more where noise is large (the bounded-influence estimator of Krasker and
    Welsch). Level and slope are not
    corrected afterwards by means, which wild targets would move.

    Parameters
    ----------
    threshold : float, default=1.35
        What scikit-learn calls epsilon: residuals beyond so many standard deviations count less.
    alpha : float or "auto", default="auto"
        Weight of a squared penalty, as for `PrivateRidge`.
    target_bounds : (low, high), optional
        Public range of the target; values outside are clipped, and predictions stay inside. None
        reads it from ``y`` and warns.
    feature_bounds : (low, high), or one tuple per column in a list or by name in a dict, optional
        Public ranges of the columns, mapped into [-1, 1]; a column in [0, 1], such as an indicator,
        stays as it is. None assumes [-3, 3] and warns.
    epsilon, delta, adjacency, solver, fit_intercept, nonfinite, person_weight, rows_per_person,
    ledger, random_state, verbose
        As for `PrivateLogisticRegression`.
    features : "linear", "additive", "centred", AdditiveFeatures or FeatureMap, default="linear"
        What the model is linear in, as for `PrivateLogisticRegression`; all but the first need
        ``feature_bounds``.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        With a feature map, weights of its outputs: for an additive model see ``shape_values``.
    feature_map_ : FeatureMap or None
        The map that rows go through; None if they are used as they are.
    row_profile_ : RowProfile
        Of an additive model: where the rows lie, as far as the released second moment shows.
    intercept_ : float
    support_ : array of int
        Columns with a coefficient other than zero.
    n_iter_ : int
    privacy_ : Guarantee

    Examples
    --------
    >>> from hushfit import PrivateHuberRegressor
    >>> PrivateHuberRegressor(threshold=1.5, target_bounds=(0, 100))
    PrivateHuberRegressor(target_bounds=(0, 100), threshold=1.5)
    """

    def __init__(
        self,
        threshold: float = 1.35,
        alpha: float | str = "auto",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        adjacency: str = "replace-one",
        target_bounds: Any = None,
        solver: Any = "auto",
        feature_bounds: Any = None,
        fit_intercept: bool = True,
        nonfinite: str = "fill",
        person_weight: str = "mean",
        rows_per_person: int | None = None,
        ledger: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        features: Any = "linear",
    ) -> None:
        self.threshold = threshold
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
        self.features = features

    def _penalty(self, alpha: float) -> Penalty:
        return ScaledL2(alpha)

    def _settled(self) -> _Settled:
        if labels_only(Relation.parse(self.adjacency)):
            raise InvalidArgument(
                f"PrivateHuberRegressor has no form for adjacency={self.adjacency!r}: labels enter "
                "its loss in another way than through a sum. Use PrivateLinearRegression."
            )
        settled = super()._settled()
        if settled.scaling is not RecordScaling.BOUNDED:
            raise InvalidArgument(
                f"solver={self.solver!r} does not follow the residuals. Use solver='auto'."
            )
        return settled

    def _refined(self, solver: Any) -> Any:
        if not 0 < self.threshold < 8:
            raise InvalidArgument(
                f"threshold={self.threshold!r} is outside (0, 8). Give a number of standard "
                "deviations, such as 1.35."
            )
        share = 2 * float(ndtr(-self.threshold))
        follows = isinstance(solver, WhitenedLeastSquares)
        return replace(solver, clipped=share) if follows else solver


@dataclass(frozen=True)
class CountScale:
    """Counts from 0 to a public largest one, as they are."""

    high: float
    low: float = 0.0

    def __call__(self, y: Vector) -> Vector:
        return np.clip(y, self.low, self.high)

    def in_units_of_targets(self, coef: Vector, intercept: float) -> tuple[Vector, float]:
        """Coefficients of log-rates, which have no unit."""
        return coef, intercept


class PrivatePoissonRegressor(_PrivateRegressor):
    r"""Regression of counts, with a log link and a differential-privacy guarantee.

    Minimises half the mean Poisson deviance plus :math:`\frac\alpha2 \|w\|^2`. Counts, and fitted
    rates, are at most ``max_count``.

    Parameters
    ----------
    max_count : float
        Largest count that a row may have; public. Larger ones are clipped. Noise grows with it.
    alpha : float or "auto", default="auto"
        Weight of a squared penalty, as for `PrivateRidge`.
    feature_bounds : (low, high), or one tuple per column in a list or by name in a dict, optional
        As for `PrivateRidge`.
    epsilon, delta, adjacency, solver, fit_intercept, nonfinite, person_weight, rows_per_person,
    ledger, random_state, verbose
        As for `PrivateLogisticRegression`.
    features : "linear", "additive", "centred", AdditiveFeatures or FeatureMap, default="linear"
        What the model is linear in, as for `PrivateLogisticRegression`; all but the first need
        ``feature_bounds``.

    inference : bool, default=False
        Whether to estimate ordinary coefficients with standard errors, intervals and tests that
        cover sampling and noise (``summary()``, ``conf_int()``). Needs ``feature_bounds`` and
        enough rows; predictions are less accurate than without. Rows with a missing value are left
        out of the fit.
    cov_type : {"model", "robust", "cluster"}, default="model"
        Covariance of the coefficients; "robust" holds where the model does not. With ``groups``
        it is clustered by person, and "cluster" is another name for it.
    even_weights : bool, default=False
        With ``inference``: whether all rows weigh the same. Otherwise rows with unusual features
        weigh less, which changes what is estimated if the model is wrong. Noise is larger; with
        few rows there may be no intervals (docs/algorithms/inference.md).
    expected_mean : float, optional
        With ``inference``: mean count that you expect from what is public. A fit with too few rows
        for it is refused before anything is charged; nothing else depends on it. None assumes a
        fifth of the largest count.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        With a feature map, weights of its outputs: for an additive model see ``shape_values``.
    feature_map_ : FeatureMap or None
        The map that rows go through; None if they are used as they are.
    row_profile_ : RowProfile
        Of an additive model: where the rows lie, as far as the released second moment shows.
    intercept_ : float
    support_ : array of int
        Columns with a coefficient other than zero.
    n_iter_ : int
    privacy_ : Guarantee

    Examples
    --------
    >>> from hushfit import PrivatePoissonRegressor
    >>> PrivatePoissonRegressor(max_count=20)
    PrivatePoissonRegressor(max_count=20)
    """

    _engine = WhitenedPoisson
    link = "log"
    _label_scaling = RecordScaling.BOUNDED
    _scales_labels = False

    def __init__(
        self,
        max_count: float = 10.0,
        alpha: float | str = "auto",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        adjacency: str = "replace-one",
        solver: Any = "auto",
        feature_bounds: Any = None,
        fit_intercept: bool = True,
        nonfinite: str = "fill",
        person_weight: str = "mean",
        rows_per_person: int | None = None,
        ledger: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        features: Any = "linear",
        inference: bool = False,
        cov_type: str = "model",
        even_weights: bool = False,
        expected_mean: float | None = None,
    ) -> None:
        self.inference = inference
        self.cov_type = cov_type
        self.even_weights = even_weights
        self.expected_mean = expected_mean
        self.max_count = max_count
        self.alpha = alpha
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.solver = solver
        self.feature_bounds = feature_bounds
        self.fit_intercept = fit_intercept
        self.nonfinite = nonfinite
        self.person_weight = person_weight
        self.rows_per_person = rows_per_person
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose
        self.features = features

    def _penalty(self, alpha: float) -> Penalty:
        return ScaledL2(alpha)

    def _settled(self) -> _Settled:
        settled = super()._settled()
        if settled.scaling is not RecordScaling.BOUNDED:
            raise InvalidArgument(
                f"solver={self.solver!r} fits records of length one, whose rates are not those of "
                "the rows. Use solver='auto'."
            )
        return settled

    def _loss(self, scaling: RecordScaling, scale: Any) -> Loss:
        return Poisson(self.max_count)

    @property
    def _range_is_public(self) -> bool:
        return True

    def _scale(self, y: Vector) -> CountScale:
        return CountScale(float(self.max_count))

    def _mean(self, margins: Vector) -> Vector:
        return np.exp(np.minimum(margins, np.log(self.max_count)))

    def _public_targets(self, given: str) -> str:
        return f"the largest count, {given}"
