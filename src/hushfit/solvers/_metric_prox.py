"""The proximal step of a penalty in a metric: the subproblem of variable-metric methods."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.problem import Problem

_MAX_STEPS = 1000
_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class MetricProx:
    """Minimises ``(z - target) H (z - target) / 2 + step * penalty(z)``.

    Parameters
    ----------
    problem : Problem
    H : symmetric positive matrix of the records' dimension
    """

    problem: Problem
    H: Matrix

    def __call__(self, target: Vector, step: float, start: Vector | None = None) -> Vector:
        ridge = self.problem.penalty.ridge
        if ridge is not None:
            return self._solved(target, step * ridge)
        return self._accelerated(target, step, target if start is None else start)

    def _solved(self, target: Vector, weight: float) -> Vector:
        if weight == 0.0:
            return target
        penalised = np.zeros(self.problem.dimension)
        penalised[: self.problem.n_features] = weight
        solved = np.linalg.solve(self.H + np.diag(penalised), (target @ self.H).T)
        return np.asarray(solved.T)

    @cached_property
    def _largest(self) -> float:
        return float(np.linalg.eigvalsh(self.H)[-1])

    def _accelerated(self, target: Vector, step: float, start: Vector) -> Vector:
        """Accelerated proximal steps in the ordinary metric, restarted when they overshoot."""
        z = ahead = start
        momentum = 1.0
        for _ in range(_MAX_STEPS):
            descended = ahead - (ahead - target) @ self.H / self._largest
            previous, z = z, self.problem.prox(descended, step / self._largest)
            moved = z - previous
            if np.abs(moved).max() <= _TOLERANCE * (1 + np.abs(z).max()):
                break
            ahead, momentum = extrapolated(z, moved, ahead - z, momentum)
        return z


def extrapolated(
    z: Vector, moved: Vector, overshoot: Vector, momentum: float
) -> tuple[Vector, float]:
    """Nesterov's next point and momentum; the momentum restarts when the last step went uphill."""
    if np.sum(overshoot * moved) > 0:
        momentum = 1.0
    following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
    return z + (momentum - 1) / following * moved, following
