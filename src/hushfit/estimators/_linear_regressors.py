"""Linear regression of numbers in a public range, with a privacy guarantee."""

from dataclasses import replace
from typing import Any

from scipy.special import ndtr

from hushfit._typing import Vector
from hushfit.data import RecordScaling
from hushfit.errors import InvalidArgument
from hushfit.estimators._regressors import Settled, _PrivateRegressor
from hushfit.estimators._targets import TargetScale
from hushfit.losses import LeastSquares, Loss, SaturatingSquares, Squared
from hushfit.penalties import L1, ElasticNet, Penalty, ScaledL2, Zero
from hushfit.privacy import Relation, labels_only
from hushfit.solvers import WhitenedLeastSquares


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
    >>> import numpy as np
    >>> from hushfit import PrivateLinearRegression
    >>> X = np.linspace(0, 1, 30_000)[:, None]
    >>> model = PrivateLinearRegression(
    ...     epsilon=1.0, delta=1e-6, feature_bounds=(0, 1), target_bounds=(0, 10)
    ... )
    >>> model.fit(X, 10 * X[:, 0]).predict([[0.5]]).round()
    array([5.])
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
    >>> import numpy as np
    >>> from hushfit import PrivateRidge
    >>> X = np.linspace(0, 1, 30_000)[:, None]
    >>> model = PrivateRidge(
    ...     alpha=0.01, epsilon=1.0, delta=1e-6, feature_bounds=(0, 1), target_bounds=(0, 10)
    ... )
    >>> model.fit(X, 10 * X[:, 0]).predict([[0.5]]).round()
    array([5.])
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
    >>> import numpy as np
    >>> from hushfit import PrivateLasso
    >>> X = np.linspace(0, 1, 30_000)[:, None]
    >>> model = PrivateLasso(
    ...     alpha=0.01, epsilon=1.0, delta=1e-6, feature_bounds=(0, 1), target_bounds=(0, 10)
    ... )
    >>> model.fit(X, 10 * X[:, 0]).predict([[0.5]]).round()
    array([5.])
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
    >>> import numpy as np
    >>> from hushfit import PrivateElasticNet
    >>> X = np.linspace(0, 1, 30_000)[:, None]
    >>> model = PrivateElasticNet(
    ...     l1_ratio=0.9, epsilon=1.0, delta=1e-6, feature_bounds=(0, 1), target_bounds=(0, 10)
    ... )
    >>> model.fit(X, 10 * X[:, 0]).predict([[0.5]]).round()
    array([5.])
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
    >>> import numpy as np
    >>> from hushfit import PrivateHuberRegressor
    >>> X = np.linspace(0, 1, 30_000)[:, None]
    >>> model = PrivateHuberRegressor(
    ...     threshold=1.5, epsilon=1.0, delta=1e-6, feature_bounds=(0, 1), target_bounds=(0, 10)
    ... )
    >>> model.fit(X, 10 * X[:, 0]).predict([[0.5]]).round()
    array([5.])
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

    def _settled(self) -> Settled:
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
