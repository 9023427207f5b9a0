"""Squared loss with a bounded slope."""

from dataclasses import dataclass

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.kernels.codes import SQUARED
from hushfit.losses._loss import KernelLoss


@dataclass(frozen=True)
class Squared:
    r"""Squared loss :math:`(t - y)^2 / 2` whose slope is clipped: absolute loss beyond
    ``slope_bound`` (Huber's loss).

    Without the bound one row could change the gradient arbitrarily, and no finite noise would hide
    it.

    Parameters
    ----------
    slope_bound : float, default=1.0
        Largest absolute slope, positive, in the unit of ``y``.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.losses import Squared
    >>> loss = Squared(slope_bound=1.0)
    >>> loss.slope(np.array([0.5]), np.array([0.0]))
    array([0.5])
    """

    slope_bound: float = 1.0
    outputs, hessian_rank, one_sign = 1, 1, False
    smoothness = hessian_trace = 1.0

    def __post_init__(self) -> None:
        if not self.slope_bound > 0:
            raise InvalidArgument(
                f"slope_bound={self.slope_bound} is not positive. Use the size of a usual residual."
            )

    @property
    def kernel(self) -> KernelLoss:
        return KernelLoss(SQUARED, self.slope_bound)

    def value(self, t: Vector, y: Vector) -> Vector:
        miss = np.abs(t - y)
        near = np.minimum(miss, self.slope_bound)
        return 0.5 * near**2 + self.slope_bound * (miss - near)

    def slope(self, t: Vector, y: Vector) -> Vector:
        return np.clip(t - y, -self.slope_bound, self.slope_bound)
