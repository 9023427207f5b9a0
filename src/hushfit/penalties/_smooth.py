"""Smooth penalties."""

from dataclasses import dataclass

import numpy as np

from hushfit._typing import Vector
from hushfit.penalties._penalty import check_alpha


@dataclass(frozen=True)
class Zero:
    """No penalty; its prox changes nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.penalties import Zero
    >>> Zero().prox(np.array([3.0, -0.5, 0.1]), step=1.0).round(3)
    array([ 3. , -0.5,  0.1])
    """

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

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.penalties import ScaledL2
    >>> ScaledL2(0.2).prox(np.array([3.0, -0.5, 0.1]), step=1.0).round(3)
    array([ 2.5  , -0.417,  0.083])
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
