"""Frank-Wolfe on the L1 ball (Talwar, Thakurta and Zhang, 2015), vertices chosen privately.

    each step t:  s = signed column with probability proportional to exp(-(s . gradient sum) /
                  scale)
                  w <- (1 - 2/(t+2)) w + 2/(t+2) radius s

Each step moves towards one vertex of the ball. The intercept moves in a separate interval, towards
an end chosen in the same way.

A vertex has one column, so after T steps at most T columns have a weight, and the cost of a step
grows only with the logarithm of the number of columns. docs/algorithms/frank-wolfe.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.penalties import L1Ball
from hushfit.privacy import Budget, gaussian_mu
from hushfit.problem import Problem
from hushfit.release import Door, NoisyCorner, Plan, Planned, SteepestCorner, corner
from hushfit.solvers._setting_checks import check_settings
from hushfit.solvers.base import Iterate

_NAME = "corner"
_DEFAULT_CLIP = 0.5
_DEFAULT_STEPS, _STEPS_WITHOUT_NOISE = 50, 1000
# With more steps Frank-Wolfe gets closer to the minimum and each choice gets noisier: theory
# balances the two at a power 2/3 of mu n.
_STEPS_PER_POWER, _MIN_STEPS, _MAX_STEPS = 0.13, 40, 500


@dataclass(frozen=True)
class FrankWolfe:
    """Private Frank-Wolfe over an L1 ball: weights whose absolute values sum to at most ``radius``.

    Parameters
    ----------
    steps : int or None
        Also the largest number of columns with a weight. None chooses it from the number of rows
        and the budget; 1000 without noise.
    radius : float, default=40.0
        Radius of the ball, for each output; a penalty ``L1Ball`` replaces it.
    intercept_radius : float, default=4.0
        The intercept stays between minus and plus this.
    clip : float or None
        Clipping norm of a record's gradient. None is 0.5, and no clipping when epsilon is infinite.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import FrankWolfe
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = FrankWolfe().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('corner', 50)]
    """

    steps: int | None = None
    radius: float = 40.0
    intercept_radius: float = 4.0
    clip: float | None = None

    takes_constraint = False

    def __post_init__(self) -> None:
        check_settings(
            self,
            steps=self.steps,
            radius=self.radius,
            intercept_radius=self.intercept_radius,
            clip=self.clip,
        )

    def for_budget(self, budget: Budget, problem: Problem) -> "FrankWolfe":
        """The same with a number of steps, unless given; without privacy, without clipping."""
        if not budget.is_private:
            return replace(
                self,
                clip=self.clip or problem.loss.slope_bound,
                steps=self.steps or _STEPS_WITHOUT_NOISE,
            )
        balanced = _STEPS_PER_POWER * (
            gaussian_mu(budget.epsilon, budget.delta) * problem.n_units
        ) ** (2 / 3)
        return replace(self, steps=self.steps or round(min(max(balanced, _MIN_STEPS), _MAX_STEPS)))

    @property
    def _steps(self) -> int:
        return self.steps or _DEFAULT_STEPS

    def plan(self, problem: Problem) -> Plan:
        if problem.penalty.ridge is None and not isinstance(problem.penalty, L1Ball):
            raise InvalidArgument(
                "FrankWolfe keeps weights within an L1 ball and may add a squared penalty, not "
                f"{problem.penalty!r}. Give penalty=L1Ball(radius), or use 'prox-newton'."
            )
        return Plan((Planned(_NAME, SteepestCorner, self._steps, sampling=NoisyCorner()),))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        distance = self._vertex_distance(problem)
        w = np.zeros(problem.shape)
        for t in range(self._steps):
            query = SteepestCorner(
                problem, w, self.clip or _DEFAULT_CLIP, _penalty_gradient(problem, w)
            )
            s = distance * corner(query, door.release(_NAME, query))
            share = 2 / (t + 2)
            w = (1 - share) * w + share * s
            yield Iterate(w, weight=float(t == self._steps - 1))

    def _vertex_distance(self, problem: Problem) -> Vector:
        """Distance of a vertex from zero along each coordinate of a record."""
        distance = np.full(
            problem.dimension,
            problem.penalty.radius if isinstance(problem.penalty, L1Ball) else self.radius,
        )
        distance[problem.n_features :] = self.intercept_radius
        return distance


def _penalty_gradient(problem: Problem, w: Vector) -> Vector | None:
    """Gradient of a squared penalty, in units of the sum over all records; None without one."""
    ridge = problem.penalty.ridge
    if not ridge:
        return None
    gradient = np.zeros(problem.shape)
    problem.columns(gradient)[...] = problem.n_units * ridge * problem.columns(w)
    return gradient
