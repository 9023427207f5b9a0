"""Plain squared loss, for relations under which features are public."""

import math
from dataclasses import dataclass

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.kernels.codes import SQUARED
from hushfit.losses._loss import KernelLoss


@dataclass(frozen=True)
class LeastSquares:
    r"""Squared loss :math:`(t - y)^2 / 2` of targets in a public range.

    Its slope has no bound, so it is for relations under which labels alone are private: there the
    label enters through :math:`y t` only. Elsewhere use `Squared`.

    Parameters
    ----------
    low, high : float
        Public range of the targets; those outside are clipped.

    Examples
    --------
    >>> from hushfit.losses import LeastSquares
    >>> LeastSquares(0.0, 10.0).label_diameter
    10.0
    """

    low: float = -1.0
    high: float = 1.0
    outputs, hessian_rank, one_sign = 1, 1, False
    slope_bound = math.inf
    smoothness = hessian_trace = 1.0
    kernel = KernelLoss(SQUARED, math.inf)

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:
            raise InvalidArgument(
                f"the range ({self.low}, {self.high}) is not one of finite numbers with low < "
                "high. Give the range that targets are known to have."
            )

    @property
    def label_diameter(self) -> float:
        return self.high - self.low

    @property
    def label_centre(self) -> float:
        return self.low + self.label_diameter / 2

    def value(self, t: Vector, y: Vector) -> Vector:
        value: Vector = 0.5 * (t - y) ** 2
        return value

    def slope(self, t: Vector, y: Vector) -> Vector:
        return t - y

    def label_deviation(self, y: Vector) -> Vector:
        centre = self.label_centre
        deviation: Vector = np.clip(np.nan_to_num(y, nan=centre), self.low, self.high) - centre
        return deviation

    def log_partition(self, t: Vector) -> Vector:
        return 0.5 * t**2

    def mean(self, t: Vector) -> Vector:
        return t

    def variance(self, t: Vector) -> Vector:
        return np.ones_like(t)
