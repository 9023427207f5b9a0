"""The gradient of the logistic loss with its sensitivity at the public weights. Proof:
docs/proofs/logistic.md.
"""

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import ClassVar

import numpy as np
from scipy.special import expit

from hushfit._typing import IntVector, Vector
from hushfit.data import AT_MOST_ONE, DataSource, RecordScaling
from hushfit.errors import InvalidArgument
from hushfit.losses import Logistic
from hushfit.privacy import Relation, replaces_one
from hushfit.problem import Problem
from hushfit.release.queries._gradient import ClippedGradient
from hushfit.release.query import three_weight_arrays

_PRECISION = 1e-4
_FIRST_CELLS = 64
_MOST_CELLS = 200_000
_TABULATED = 0.01


@dataclass(frozen=True, eq=False)
class LogisticGradient:
    r"""Sum of unclipped logistic gradients at public weights.

    Near the origin no slope is near one, so two gradients cannot be 2 apart: at the origin they are
    at most 1 apart. Noise proportional to the sensitivity *at the public point* gives each step the
    same privacy loss, for every sequence of iterates.

    Parameters
    ----------
    problem : Problem
        With the logistic loss and two classes.
    w : array of shape ``problem.shape``
    pairwise : bool, default=True
        Whether replace-one may use the largest distance between two gradients, which is less than
        twice their largest norm. Valid for all rows and for batches of fixed size; Poisson batches
        need False.
    """

    problem: Problem
    w: Vector
    pairwise: bool = True

    doubled = None
    sampled: ClassVar[bool] = True
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = True
    made_for: ClassVar[str | None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return three_weight_arrays(problem)

    def __post_init__(self) -> None:
        if not isinstance(self.problem.loss, Logistic):
            raise InvalidArgument(
                f"The tightened gradient is proved for Logistic, not for {self.problem.loss!r}. "
                "Leave it off."
            )

    @cached_property
    def _plain(self) -> ClippedGradient:
        return ClippedGradient(self.problem, self.w, clip=1.0)

    @cached_property
    def _slack(self) -> float:
        """Bound on what rounding adds to the norm of a contribution: the same as for any gradient
        sum.
        """
        return self._plain.radius() - 1.0

    @property
    def size(self) -> int:
        return self.w.size

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return self._plain(source, units)

    def radius(self) -> float:
        return float(expit(np.linalg.norm(self.w))) * (1 + 1e-9) + self._slack

    def sensitivity(self, relation: Relation) -> float:
        if not replaces_one(relation):
            return self.radius()
        if not self.pairwise:
            return 2 * self.radius()
        return min(
            2 * self.radius(), gradient_diameter(float(np.linalg.norm(self.w))) + 2 * self._slack
        )


def gradient_diameter(length: float) -> float:
    """Bound, tight to about half a per cent, on the distance between two logistic gradients at
    weights of this norm.
    """
    # A gradient changes by at most a quarter of the change of the norm, so tabulated norms cover
    # their neighbourhood.
    nearest = round(length / _TABULATED) * _TABULATED
    return _diameter(nearest) + 0.5 * abs(length - nearest)


@cache
def _diameter(length: float) -> float:
    """The bound by branch and bound over the two angles that matter.

    A record x of norm one with label y has the gradient m(t) u, where u = -y x makes an angle t
    with the weights and m(t) = 1 / (1 + exp(-length * cos t)); a zero record has none. Two
    gradients at angles t, s are furthest apart when they point to opposite sides. A cell's bound is
    its middle plus slope times half its sides.
    """
    slope = 1 + length / 4  # |d/dt m(t) u| <= |m'| + |m|
    side = math.pi / _FIRST_CELLS
    middles = (np.arange(_FIRST_CELLS) + 0.5) * side
    t, s = (grid.ravel() for grid in np.meshgrid(middles, middles))
    best = float(expit(length))  # one of the two records may be the zero record
    while True:
        values = _distance(length, t, s)
        best = max(best, float(values.max(initial=0.0)))
        reach = slope * side  # half a side for each angle
        open_cells = values + reach > best * (1 + _PRECISION)
        if not open_cells.any() or 4 * int(open_cells.sum()) > _MOST_CELLS:
            return max(
                best * (1 + _PRECISION), float((values + reach)[open_cells].max(initial=0.0))
            )
        t, s = t[open_cells], s[open_cells]
        side /= 2
        t, s = (
            np.concatenate([t - side / 2, t - side / 2, t + side / 2, t + side / 2]),
            np.concatenate([s - side / 2, s + side / 2, s - side / 2, s + side / 2]),
        )


def _distance(length: float, t: Vector, s: Vector) -> Vector:
    a, b = expit(length * np.cos(t)), expit(length * np.cos(s))
    cosine = np.cos(np.minimum(t + s, math.pi))
    return np.asarray(np.sqrt(np.maximum(a**2 + b**2 - 2 * a * b * cosine, 0.0)))
