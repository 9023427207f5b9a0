"""Shape functions: what an additive model adds up, one piecewise linear function per column.

All of it is arithmetic on released numbers: post-processing, at no cost.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.features._additive_map import hat_means

_VISIBLE = 2.0  # standard deviations: a smaller mass could be noise alone
_SMALLEST_WEIGHT = 1e-3  # of a knot in a projection, against one


@dataclass(frozen=True, eq=False)
class KnotMasses:
    """How the rows are distributed over the knots of one column, as far as a release shows.

    A row between two knots counts for both, in proportion to its nearness; a row of squared length
    s (before it is scaled to length one, with the intercept's 1) weighs 1/s.

    Parameters
    ----------
    masses : array of shape (K + 1,)
        They sum to one; noise may make some negative.
    noise : array of shape (K + 1,)
        Their standard deviations.
    """

    masses: Vector
    noise: Vector

    @classmethod
    def of(cls, means: Vector, noise: float, table: Matrix) -> "KnotMasses":
        """From the noisy means of the columns of one variable, and the noise in each."""
        # The columns are sums over knots of mass times value, and masses sum to one.
        back = np.linalg.inv(np.vstack([table.T, np.ones(len(table))]))
        return cls(back @ np.append(means, 1.0), noise * np.linalg.norm(back[:, :-1], axis=1))

    @property
    def seen(self) -> Vector:
        """Whether there are rows about each knot, beyond what noise could show."""
        return np.asarray(self.masses > _VISIBLE * self.noise)

    @property
    def weights(self) -> Vector:
        """Masses without the negative ones; of those that noise hides, no more than the noise."""
        clipped = np.maximum(np.where(self.seen, self.masses, 0.0), 0.0)
        total = float(clipped.sum())
        return clipped / total if total > 0 else hat_means(len(clipped) - 1)


@dataclass(frozen=True, eq=False)
class RowProfile:
    """What the released second moment shows of the rows of an additive model.

    Parameters
    ----------
    length : float or None
        Typical length of a mapped row: one over the root of the mean of one over its square. None
        if noise hides it.
    masses : mapping of int to KnotMasses
        By the number of the column; empty if noise hides them.
    """

    length: float | None = None
    masses: Mapping[int, KnotMasses] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as in a model file."""
        return {
            "length": self.length,
            "masses": {
                str(column): {"masses": found.masses.tolist(), "noise": found.noise.tolist()}
                for column, found in self.masses.items()
            },
        }


def centred(values: Vector, masses: KnotMasses | None) -> Vector:
    """Values at the knots minus their mean over the rows, or over the range without masses."""
    weights = hat_means(len(values) - 1) if masses is None else masses.weights
    return values - float(weights @ values)


def smoothed(values: Vector, smoothness: float, weights: Vector) -> Vector:
    """The function nearest to some values at knots, with a penalty on its curvature.

    It minimises the mean squared change over the rows plus ``smoothness`` times the integral of
    the squared second derivative over the range, taken as [0, 1].
    """
    intervals = len(values) - 1
    if smoothness == 0.0 or intervals < 2:
        return values
    bends = np.diff(np.eye(intervals + 1), n=2, axis=0)
    penalty = smoothness * intervals**3 * bends.T @ bends
    kept = np.diag(np.maximum(weights, _SMALLEST_WEIGHT))
    return np.asarray(np.linalg.solve(kept + penalty, kept @ values))


def monotone(values: Vector, direction: int, weights: Vector) -> Vector:
    """The rising (direction 1) or falling (-1) function nearest to some values at knots."""
    if direction < 0:
        return -monotone(-values, 1, weights)
    # Adjacent violators are pooled: [mean, weight, knots] of each level found so far.
    levels: list[list[float]] = []
    for value, weight in zip(values, np.maximum(weights, _SMALLEST_WEIGHT), strict=True):
        levels.append([float(value), float(weight), 1])
        while len(levels) > 1 and levels[-2][0] >= levels[-1][0]:
            mean, own, count = levels.pop()
            before = levels[-1]
            total = before[1] + own
            levels[-1] = [
                (before[0] * before[1] + mean * own) / total,
                total,
                before[2] + count,
            ]
    return np.concatenate([np.full(int(count), mean) for mean, _, count in levels])


def weights_of(values: Vector, table: Matrix) -> tuple[Vector, float]:
    """Weights of the columns of one variable that give some values at its knots, and the constant
    that they cannot give.
    """
    both = np.column_stack([table, np.ones(len(table))])
    solved = np.linalg.solve(both, values)
    return np.asarray(solved[:-1], dtype=np.float64), float(solved[-1])
