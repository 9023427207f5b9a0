"""Indicators of convex sets: 0 inside, infinite outside. The prox is the projection, for every
step.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.penalties._penalty import Penalty, check_radius
from hushfit.penalties._sparse import soft_threshold

# A projection computed in floating point may be slightly outside its set; it still counts as
# inside.
FEASIBILITY_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Box:
    """Every coefficient is between ``low`` and ``high``.

    Parameters
    ----------
    low, high : float
        Bounds, ``low <= high``; either may be infinite. ``Box(0, inf)`` keeps coefficients
        non-negative.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.penalties import Box
    >>> Box(-1.0, 1.0).prox(np.array([3.0, -0.5, 0.1]), step=1.0).round(3)
    array([ 1. , -0.5,  0.1])
    """

    low: float
    high: float
    convex, separable, ridge = True, True, None

    def __post_init__(self) -> None:
        if not self.low <= self.high or (math.isinf(self.low) and self.low == self.high):
            raise InvalidArgument(f"Box({self.low}, {self.high}) is empty. Give low <= high.")

    def value(self, z: Vector) -> float:
        return _indicator(float(np.abs(z - self.prox(z, 1.0)).max(initial=0.0)), 1.0)

    def prox(self, v: Vector, step: float) -> Vector:
        return np.clip(v, self.low, self.high)


@dataclass(frozen=True)
class NonNegative:
    """Another penalty, of coefficients that are at least 0.

    Parameters
    ----------
    penalty : Penalty
        Separable, convex and the same for z and -z, such as `L1`, `ScaledL2`, `ElasticNet` or
        `Zero`. Its prox then never crosses zero, so that projecting before it is enough.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.penalties import L1, NonNegative
    >>> NonNegative(L1(0.2)).prox(np.array([3.0, -0.5, 0.1]), step=1.0).round(3)
    array([2.8, 0. , 0. ])
    """

    penalty: Penalty
    ridge = None

    def __post_init__(self) -> None:
        if not (self.penalty.convex and self.penalty.separable):
            raise InvalidArgument(
                f"{self.penalty!r} is not convex and separable. Use L1, ScaledL2 or ElasticNet."
            )

    @property
    def convex(self) -> bool:
        return self.penalty.convex

    @property
    def separable(self) -> bool:
        return self.penalty.separable

    def value(self, z: Vector) -> float:
        return self.penalty.value(z) + _indicator(float((-z).max(initial=0.0)), 1.0)

    def prox(self, v: Vector, step: float) -> Vector:
        return self.penalty.prox(np.maximum(v, 0.0), step)


@dataclass(frozen=True)
class L2Ball:
    """The Euclidean norm is at most ``radius``.

    Parameters
    ----------
    radius : float
        Positive.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.penalties import L2Ball
    >>> L2Ball(1.0).prox(np.array([3.0, -0.5, 0.1]), step=1.0).round(3)
    array([ 0.986, -0.164,  0.033])
    """

    radius: float
    convex, separable, ridge = True, False, None

    def __post_init__(self) -> None:
        check_radius(self.radius)

    def value(self, z: Vector) -> float:
        return _indicator(float(np.linalg.norm(z, axis=-1).max()) - self.radius, self.radius)

    def prox(self, v: Vector, step: float) -> Vector:
        lengths: Vector = np.linalg.norm(v, axis=-1, keepdims=True)
        return v * (self.radius / np.maximum(self.radius, lengths))


@dataclass(frozen=True)
class L1Ball:
    """The l1 norm is at most ``radius``.

    Parameters
    ----------
    radius : float
        Positive.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.penalties import L1Ball
    >>> L1Ball(1.0).prox(np.array([3.0, -0.5, 0.1]), step=1.0).round(3)
    array([ 1., -0.,  0.])
    """

    radius: float
    convex, separable, ridge = True, False, None

    def __post_init__(self) -> None:
        check_radius(self.radius)

    def value(self, z: Vector) -> float:
        return _indicator(float(np.abs(z).sum(axis=-1).max()) - self.radius, self.radius)

    def prox(self, v: Vector, step: float) -> Vector:
        # The projection soft-thresholds. With the i largest entries left, the threshold that makes
        # them sum to the radius is (their sum - radius) / i; the right i gives the largest of
        # these. Inside the ball none is positive.
        largest = -np.sort(-np.abs(v), axis=-1)
        thresholds = (np.cumsum(largest, axis=-1) - self.radius) / np.arange(1, v.shape[-1] + 1)
        return soft_threshold(v, np.maximum(thresholds.max(axis=-1, keepdims=True), 0.0))


def _indicator(excess: float, scale: float) -> float:
    """0 if the excess over the bound is rounding error at this scale, else infinity."""
    return 0.0 if excess <= FEASIBILITY_TOLERANCE * max(1.0, scale) else math.inf
