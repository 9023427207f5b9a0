"""Squared loss of predictions that stay inside the range of the targets."""

import math
from dataclasses import dataclass

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.kernels.codes import SATURATING_SQUARES
from hushfit.losses._loss import KernelLoss


@dataclass(frozen=True)
class SaturatingSquares:
    r"""Squared loss :math:`(t - y)^2 / 2` of targets in [-b, b], continued by its tangents outside.

    Its slope is the error of the clipped prediction, :math:`\mathrm{clip}(t, -b, b) - y`. So it is
    the loss of a model whose predictions are clipped to the range of the targets (the matching loss
    of that link), as :math:`e^t - y t` is for counts: convex, with a slope of at most 2b. Wherever
    no fitted value leaves the range its minimum is that of least squares.

    Parameters
    ----------
    bound : float, default=1.0
        The end b of the range, positive and finite; public. Targets outside are clipped.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.losses import SaturatingSquares
    >>> SaturatingSquares().slope(np.array([0.5, -7.0]), np.array([1.0, -0.5]))
    array([-0.5, -0.5])
    """

    bound: float = 1.0
    outputs, hessian_rank, one_sign = 1, 1, False
    smoothness = hessian_trace = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.bound < math.inf:
            raise InvalidArgument(
                f"bound={self.bound} is not a finite number > 0. Give the largest absolute target."
            )

    @property
    def slope_bound(self) -> float:
        return 2 * self.bound

    @property
    def kernel(self) -> KernelLoss:
        return KernelLoss(SATURATING_SQUARES, self.bound)

    def value(self, t: Vector, y: Vector) -> Vector:
        inside, target = self._clipped(t), self._clipped(y)
        miss = inside - target
        value: Vector = 0.5 * miss**2 + miss * (t - inside)
        return value

    def slope(self, t: Vector, y: Vector) -> Vector:
        return self._clipped(t) - self._clipped(y)

    def _clipped(self, v: Vector) -> Vector:
        return np.clip(v, -self.bound, self.bound)
