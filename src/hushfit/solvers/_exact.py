"""The minimiser itself, for fits that claim no privacy (epsilon = inf): the yardstick for everything else."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hushfit._typing import Matrix
from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.release import ClippedGradient, Door, Plan, Planned, SecondMoment
from hushfit.solvers._metric_prox import MetricProx, extrapolated
from hushfit.solvers._run import Iterate

_MOST_PRECONDITIONED_COLUMNS = 600


@dataclass(frozen=True)
class ExactMinimiser:
    """Accelerated proximal descent, preconditioned by the second moment, until it stands still.

    It refuses to run with noise: when it stops depends on the rows.

    Parameters
    ----------
    most_steps : int, default=5000
    tolerance : float, default=1e-8
        Stop when no weight moves by more than this, relative to the largest one.
    """

    most_steps: int = 5_000
    tolerance: float = 1e-8

    takes_constraint = False

    def for_budget(self, budget: Budget, problem: Problem) -> "ExactMinimiser":
        """The same, where nothing is to be hidden."""
        if budget.is_private:
            raise InvalidArgument(
                f"solver='exact' stops when the rows tell it to, so it needs epsilon=inf, not {budget.epsilon:g}. Use 'auto'."
            )
        return self

    def plan(self, problem: Problem) -> Plan:
        return Plan((Planned("second moment", SecondMoment, 1), Planned("gradient", ClippedGradient, self.most_steps)))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        if door.noise_multiplier("gradient") > 0:
            raise InvalidArgument("ExactMinimiser stops when the rows tell it to, so it needs epsilon=inf. Choose another solver.")
        H = self._curvature(problem, door)
        inverse_H, prox = np.linalg.inv(H), MetricProx(problem, H)
        whole = problem.loss.slope_bound  # nothing is clipped
        w = ahead = np.zeros(problem.shape)
        momentum = 1.0
        for _ in range(self.most_steps):
            g = door.release("gradient", ClippedGradient(problem, ahead, whole)).reshape(problem.shape)
            target = ahead - (g / problem.n_rows) @ inverse_H
            previous, w = w, prox(target, 1.0)
            moved = w - previous
            if np.abs(moved).max() <= self.tolerance * (1 + np.abs(w).max()):
                break
            ahead, momentum = extrapolated(w, moved, (ahead - w) @ H, momentum)
            yield Iterate(w, weight=0.0)
        yield Iterate(w)

    def _curvature(self, problem: Problem, door: Door) -> Matrix:
        """A bound on the Hessian: the second moment, or for many columns the identity."""
        d = problem.dimension
        if d > _MOST_PRECONDITIONED_COLUMNS:
            return problem.loss.smoothness * np.eye(d)
        query = SecondMoment(problem)
        M = query.matrix(door.release("second moment", query)) / problem.n_rows
        # Directions that no row has must still be solvable, and for a prox with corners quickly so.
        return problem.loss.smoothness * (M + (1e-4 if problem.penalty.ridge is None else 1e-9) * np.eye(d))
