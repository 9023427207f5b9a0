"""Huberised hinge loss."""

from dataclasses import dataclass

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.kernels.codes import HUBER_HINGE
from hushfit.losses._loss import KernelLoss


@dataclass(frozen=True)
class HuberHinge:
    r"""Huberised (smoothed) hinge loss for labels -1 and +1.

    With the margin :math:`m = y t` and the bend :math:`h`, the loss is :math:`1 - m` below
    :math:`1 - h`, zero above :math:`1 + h` and the parabola :math:`(1 + h - m)^2 / (4 h)` between.

    Parameters
    ----------
    bend : float, default=0.5
        Half the width of the quadratic part, positive. The smoothness is ``1 / (2 * bend)``.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.losses import HuberHinge
    >>> HuberHinge().value(np.array([-1.0, 2.0]), np.array([1.0, 1.0]))
    array([2., 0.])
    """

    bend: float = 0.5
    outputs, hessian_rank, one_sign = 1, 1, True
    slope_bound = 1.0

    def __post_init__(self) -> None:
        if not self.bend > 0:
            raise InvalidArgument(
                f"bend={self.bend} is not positive. Use 0.5, or a smaller bend for a sharper "
                "corner."
            )

    @property
    def hessian_trace(self) -> float:
        return self.smoothness

    @property
    def smoothness(self) -> float:
        return 1 / (2 * self.bend)

    @property
    def kernel(self) -> KernelLoss:
        return KernelLoss(HUBER_HINGE, self.bend)

    def value(self, t: Vector, y: Vector) -> Vector:
        short = 1 + self.bend - y * t  # distance of the margin below the flat part
        parabola = np.clip(short, 0.0, 2 * self.bend) ** 2 / (4 * self.bend)
        return parabola + np.maximum(short - 2 * self.bend, 0.0)

    def slope(self, t: Vector, y: Vector) -> Vector:
        return -y * np.clip((1 + self.bend - y * t) / (2 * self.bend), 0.0, 1.0)
