"""Regression of counts, with a privacy guarantee."""

from typing import Any

import numpy as np

from hushfit._typing import Vector
from hushfit.data import RecordScaling
from hushfit.errors import InvalidArgument
from hushfit.estimators._regressors import Settled, _PrivateRegressor
from hushfit.estimators._targets import CountScale
from hushfit.losses import Loss, Poisson
from hushfit.penalties import Penalty, ScaledL2
from hushfit.solvers import WhitenedPoisson


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
    >>> import numpy as np
    >>> from hushfit import PrivatePoissonRegressor
    >>> X, visits = np.array([[0.2], [0.8]] * 30_000), np.array([2, 8] * 30_000)
    >>> model = PrivatePoissonRegressor(
    ...     epsilon=1.0, delta=1e-6, max_count=20, feature_bounds=(0, 1)
    ... )
    >>> few, many = model.fit(X, visits).predict([[0.2], [0.8]])
    >>> bool(few < many)
    True
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

    def _settled(self) -> Settled:
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
