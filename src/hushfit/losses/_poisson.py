"""Poisson loss with a bounded slope, for counts."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.kernels.codes import POISSON
from hushfit.losses._loss import KernelLoss


@dataclass(frozen=True)
class Poisson:
    r"""Half the Poisson deviance :math:`e^t - y t + y \log y - y` of counts ``y`` and log-rates
    ``t``, with counts and rates that are at most ``most``.

    Labels are clipped to :math:`[0, M]`, :math:`M` the largest count. Beyond the log-rate
    :math:`\log M` the exponential goes on as its tangent :math:`M (1 + t - \log M)`. The slope is
    then :math:`\min(e^t, M) - y`, which lies in :math:`[-M, M]` and never decreases: the loss is
    convex and differentiable, its slope is bounded by :math:`M`, and so is its second derivative,
    :math:`e^t` up to :math:`\log M` and 0 beyond. It has the minimum of the plain Poisson loss
    wherever no count and no fitted rate exceeds :math:`M`.

    Without the bound one row could move the gradient arbitrarily far, and no finite noise would
    hide it.

    Parameters
    ----------
    most : float
        The largest count M, positive and finite. It must be public, such as a limit that the
        records cannot exceed, and not the largest count of the rows. Noise is in proportion to the
        clipping norm, and a clipping norm of M clips nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.losses import Poisson
    >>> Poisson(most=5.0).slope(np.array([0.0, 10.0]), np.array([3.0, 9.0]))
    array([-2.,  0.])
    """

    most: float
    outputs, hessian_rank, one_sign = 1, 1, False

    def __post_init__(self) -> None:
        if not 0 < self.most < math.inf:
            raise InvalidArgument(
                f"most={self.most} is not a finite number > 0. Give the largest count that a row "
                "may have; it is public."
            )

    @property
    def label_diameter(self) -> float:
        return self.most

    @property
    def label_centre(self) -> float:
        return self.most / 2

    @property
    def slope_bound(self) -> float:
        return self.most

    @property
    def hessian_trace(self) -> float:
        return self.smoothness

    @property
    def smoothness(self) -> float:
        return self.most

    @property
    def kernel(self) -> KernelLoss:
        return KernelLoss(POISSON, self.most)

    def value(self, t: Vector, y: Vector) -> Vector:
        count = np.clip(y, 0.0, self.most)
        # Rounding must not make a deviance negative.
        value: Vector = np.maximum(
            self.log_partition(t) - count * t + xlogy(count, count) - count, 0.0
        )
        return value

    def slope(self, t: Vector, y: Vector) -> Vector:
        top = math.log(self.most)
        slope: Vector = np.where(t < top, np.exp(np.minimum(t, top)), self.most)
        slope = np.minimum(slope, self.most) - np.clip(y, 0.0, self.most)
        return slope

    def label_deviation(self, y: Vector) -> Vector:
        centre = self.label_centre
        deviation: Vector = np.clip(np.nan_to_num(y, nan=centre), 0.0, self.most) - centre
        return deviation

    def log_partition(self, t: Vector) -> Vector:
        top = math.log(self.most)
        rate: Vector = np.exp(np.minimum(t, top)) + self.most * np.maximum(t - top, 0.0)
        return rate

    def mean(self, t: Vector) -> Vector:
        return self.slope(t, np.zeros_like(t))

    def variance(self, t: Vector) -> Vector:
        rate = np.exp(np.minimum(t, math.log(self.most)))
        variance: Vector = np.where(t < math.log(self.most), rate, 0.0)
        return variance
