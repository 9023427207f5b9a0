"""What the regressors share, of numbers and of counts.

Where rows are private, the default solver works on records that keep their lengths, in the public
ranges of the columns: docs/algorithms/least-squares.md. Every other solver gets records of length
one. Where labels alone are private, there is one release: docs/algorithms/one-release.md.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from hushfit._typing import Vector
from hushfit.data import (
    DataSource,
    FeatureBounds,
    RecordScaling,
    SignedBounds,
    as_source,
    scaling_of,
)
from hushfit.errors import InvalidArgument, MissingBoundsWarning
from hushfit.estimators._arguments import ExplainsArguments
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
from hushfit.estimators._linear import (
    Units,
    cells_read,
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
from hushfit.estimators._targets import TargetMap, with_missing_targets
from hushfit.features import REGRESSION, FeatureMap, InputColumn, RowProfile
from hushfit.losses import Loss
from hushfit.penalties import Box, NonNegative, Penalty, Zero
from hushfit.privacy import Budget, Guarantee, Relation, labels_only
from hushfit.problem import Problem
from hushfit.release import Quote, Randomness, Terms
from hushfit.solvers import MAX_MATRIX_COLUMNS, SOLVERS, WhitenedLeastSquares, WhitenedPoisson
from hushfit.unit import ROW, PrivacyUnit

_CHOSEN = ("auto", "select")
# The weight of a penalty where "auto" cannot be chosen from releases: other solvers, public
# features.
_USUAL_ALPHA = 1e-3
# Range of every column if none is given: that of standardised columns.
_ASSUMED_BOUNDS = (-3.0, 3.0)


@dataclass(frozen=True, eq=False)
class Settled:
    """The choices of a fit that follow from its settings alone."""

    solver: Any
    scaling: RecordScaling
    penalty: Penalty


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows ready to be fitted, and the public half of the fit. ``source`` is private.

    ``units`` are those of the columns of the problem, ``bounds`` the ranges that predictions clip
    columns to.
    """

    source: DataSource = field(repr=False)
    problem: Problem
    settled: Settled
    scale: TargetMap
    units: Units | None
    bounds: FeatureBounds | SignedBounds | None
    feature_map: FeatureMap | None = None
    columns: tuple[InputColumn, ...] = ()


class _PrivateRegressor(
    ExplainsArguments, Inferring, PersonSettings, RegressorMixin, BaseEstimator
):
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

    def _settled(self) -> Settled:
        """Solver, scaling of the records and penalty, from the settings."""
        if self.inference:
            given = None if self._chosen_alpha() is not None else self._penalty(self.alpha)
            self._require_plain(is_linear(self.features), given)
            return Settled(self._score_steps(), RecordScaling.BOUNDED, self._signed(Zero()))
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
        return Settled(self._refined(made), RecordScaling.BOUNDED, penalty)

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

    def _without_choice(self, solver: Any, scaling: RecordScaling, chosen: str | None) -> Settled:
        if chosen == "select":
            raise InvalidArgument(
                "alpha='select' is computed by the default solver from its releases, where rows "
                "are private. Give a number here."
            )
        penalty = self._penalty(_USUAL_ALPHA if chosen is not None else self.alpha)
        if chosen is not None and penalty.ridge is not None and self._features_are_public:
            penalty = Zero()  # the solver shrinks as far as its noise demands
        return Settled(solver, scaling, self._signed(penalty))

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
        prepared = self._prepared(X, y, groups, budget)
        problem, settled = prepared.problem, prepared.settled
        if self.inference:
            require_feasible(problem, budget, self.cov_type, self.expected_mean)
        elif settled.scaling is RecordScaling.BOUNDED and not self._features_are_public:
            warn_of_few_for_numbers(problem, budget)
        terms = self._terms(budget, settled.scaling)
        fit = private_fit(prepared.source, problem, settled.solver, terms, self.verbose)
        self._accept(fit, prepared, input_names(self))
        self.receipt_ = fit.receipt
        return self

    def _prepared(self, X: Any, y: Any, groups: Any, budget: Budget) -> Prepared:
        """Check rows and targets and convert them to a data source; nothing is charged."""
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
        source = as_source(
            bounds.apply(X, _stored(budget)) if isinstance(bounds, SignedBounds) else X,
            scale(y),
            fit_intercept=bool(self.fit_intercept),
            bounds=None if isinstance(bounds, SignedBounds) else bounds,
            scaled_labels=settled.scaling is RecordScaling.BOUNDED or self._scales_labels,
            persons=persons,
            scaling=settled.scaling,
            feature_map=feature_map,
        )
        problem = self._problem(
            settled, n_units, X.shape[1], source.privacy_unit, scale, feature_map
        )
        return Prepared(
            source, problem, settled, scale, bounds, bounds, feature_map, tuple(columns)
        )

    def _accept(self, fit: Fit, prepared: Prepared, names: Sequence[str]) -> None:
        """Take over the result of a fit; ``names`` are those of the columns."""
        problem, scale = prepared.problem, prepared.scale
        self.keep_inference(
            self._inferred(fit, problem, prepared.units, scale, names) if self.inference else None
        )
        self.feature_map_ = prepared.feature_map
        self.row_profile_ = row_profile(
            prepared.feature_map, problem, fit.transcript, fit.guarantee
        )
        self.coef_, self.intercept_ = self._in_units(fit.result.w, prepared)
        self.n_iter_ = fit.result.steps
        self._fitted_bounds, self._fitted_scale = prepared.bounds, scale
        self.privacy_: Guarantee = fit.guarantee

    def _in_units(self, w: Vector, prepared: Prepared) -> tuple[Vector, float]:
        """Coefficients and intercept of weights, by the row profile of this fit."""
        # Weights of mapped columns stay in their units.
        units = prepared.units if prepared.feature_map is None else None
        coef, intercept = reshaped(
            *in_original_units(w, prepared.problem, units),
            self.features,
            prepared.feature_map,
            prepared.columns,
            self.row_profile_,
        )
        return prepared.scale.in_units_of_targets(coef[0], float(intercept[0]))

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
        settled: Settled,
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
                    stacklevel=4,
                )
            return None
        if self.feature_bounds is None:
            low, high = _ASSUMED_BOUNDS
            warnings.warn(
                f"feature_bounds=None: columns are taken to be in [{low:g}, {high:g}], as "
                "standardised ones are, and clipped to it. Give (low, high) of every column as "
                "you know them without looking at the rows.",
                MissingBoundsWarning,
                stacklevel=4,
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
        with no_cell_quoted(X):
            X = validate_data(
                self,
                cells_read(self, X),
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


def _stored(budget: Budget) -> type[np.floating[Any]]:
    """Type of mapped rows: every round reads all of them, and half as many bytes take half as long.
    Entries are off by less than 1e-7 of their range, far below what noise hides.
    """
    return np.float32 if budget.is_private else np.float64
