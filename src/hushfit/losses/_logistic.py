"""Logistic loss."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from hushfit._typing import Vector
from hushfit.kernels.codes import LOGISTIC
from hushfit.losses._loss import KernelLoss


@dataclass(frozen=True)
class Logistic:
    r"""Logistic loss :math:`\log(1 + e^{-y t})` for labels -1 and +1.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.losses import Logistic
    >>> Logistic().slope(np.array([0.0]), np.array([1.0]))
    array([-0.5])
    """

    outputs, hessian_rank, one_sign = 1, 1, True
    slope_bound = 1.0
    smoothness = hessian_trace = 0.25
    kernel = KernelLoss(LOGISTIC, 0.0)
    # With s(y) = 1 for the label +1 and 0 for -1, the loss is log(1 + e^t) - s(y) t.
    label_diameter, label_centre = 1.0, 0.5

    def value(self, t: Vector, y: Vector) -> Vector:
        return np.logaddexp(0.0, -y * t)

    def slope(self, t: Vector, y: Vector) -> Vector:
        slope: Vector = -y * expit(-y * t)
        return slope

    def label_deviation(self, y: Vector) -> Vector:
        deviation: Vector = np.clip(np.nan_to_num(y, nan=0.0), -1.0, 1.0) / 2
        return deviation

    def log_partition(self, t: Vector) -> Vector:
        return np.logaddexp(0.0, t)

    def mean(self, t: Vector) -> Vector:
        mean: Vector = expit(t)
        return mean

    def variance(self, t: Vector) -> Vector:
        variance: Vector = expit(t) * expit(-t)
        return variance
