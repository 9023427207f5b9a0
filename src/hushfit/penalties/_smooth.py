"""Smooth penalties."""

from dataclasses import dataclass

import numpy as np

from hushfit._typing import Vector
from hushfit.penalties._penalty import check_alpha


@dataclass(frozen=True)
class Zero:
    """No penalty; its prox changes nothing."""

    convex, separable, ridge = True, True, 0.0

    def value(self, z: Vector) -> float:
        return 0.0

    def prox(self, v: Vector, step: float) -> Vector:
        return v.copy()


@dataclass(frozen=True)
class ScaledL2:
    r"""Ridge penalty :math:`g(z) = \frac{\alpha}{2} \|z\|^2`; its prox shrinks.

    Parameters
    ----------
    alpha : float
        Weight, at least 0.
    """

    alpha: float
    convex, separable = True, True

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    @property
    def ridge(self) -> float:
        return self.alpha

    def value(self, z: Vector) -> float:
        return 0.5 * self.alpha * float(np.vdot(z, z))

    def prox(self, v: Vector, step: float) -> Vector:
        return v / (1 + step * self.alpha)
