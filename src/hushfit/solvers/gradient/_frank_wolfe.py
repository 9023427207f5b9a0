"""Frank-Wolfe on the L1 ball (Talwar, Thakurta and Zhang, 2015): each step moves towards one
corner, chosen privately.

    each step t:  s = signed column with probability in proportion to exp(-(s . gradient sum) /
                  scale)
                  w <- (1 - 2/(t+2)) w + 2/(t+2) radius s

The intercept moves in an interval of its own, towards an end chosen in the same way.

A corner has one column, so after T steps at most T columns have a weight, and what a step costs
grows with the logarithm of the number of columns only. docs/algorithms/frank-wolfe.md.
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
_USUAL_CLIP = 0.5
_USUAL_STEPS, _STEPS_WITHOUT_NOISE = 50, 1000
# With more steps Frank-Wolfe comes closer and each choice gets noisier: theory balances the two at
# a power 2/3 of mu n.
_STEPS_PER_POWER, _LEAST_STEPS, _MOST_STEPS = 0.13, 40, 500


@dataclass(frozen=True)
class FrankWolfe:
    """Private Frank-Wolfe over weights whose absolute values add up to ``radius`` at most.

    Parameters
    ----------
    steps : int or None
        At most so many columns get a weight. None chooses it from the number of rows and the
        budget; 1000 without noise.
    radius : float, default=40.0
        Of the ball, for each output; a penalty ``L1Ball`` brings its own.
    intercept_radius : float, default=4.0
        The intercept stays between minus and plus this.
    clip : float or None
        Largest length of a record's gradient. None is 0.5, and no clipping when epsilon is
        infinite.
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
        """The same with a number of steps for the budget, unless one was given; without clipping
        if nothing is to be hidden.
        """
        if not budget.is_private:
            return replace(
                self,
                clip=self.clip or problem.loss.slope_bound,
                steps=self.steps or _STEPS_WITHOUT_NOISE,
            )
        balanced = _STEPS_PER_POWER * (
            gaussian_mu(budget.epsilon, budget.delta) * problem.n_rows
        ) ** (2 / 3)
        return replace(
            self, steps=self.steps or round(min(max(balanced, _LEAST_STEPS), _MOST_STEPS))
        )

    @property
    def _steps(self) -> int:
        return self.steps or _USUAL_STEPS

    def plan(self, problem: Problem) -> Plan:
        if problem.penalty.ridge is None and not isinstance(problem.penalty, L1Ball):
            raise InvalidArgument(
                "FrankWolfe keeps weights within an L1 ball and takes a squared penalty besides, "
                f"not {problem.penalty!r}. Give "
                "penalty=L1Ball(radius), or use 'prox-newton'."
            )
        return Plan((Planned(_NAME, SteepestCorner, self._steps, sampling=NoisyCorner()),))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        reach = self._reach(problem)
        w = np.zeros(problem.shape)
        for t in range(self._steps):
            query = SteepestCorner(problem, w, self.clip or _USUAL_CLIP, _tilt(problem, w))
            s = reach * corner(query, door.release(_NAME, query))
            share = 2 / (t + 2)
            w = (1 - share) * w + share * s
            yield Iterate(w, weight=float(t == self._steps - 1))

    def _reach(self, problem: Problem) -> Vector:
        """How far a corner lies from zero along each coordinate of a record."""
        reach = np.full(
            problem.dimension,
            problem.penalty.radius if isinstance(problem.penalty, L1Ball) else self.radius,
        )
        reach[problem.n_features :] = self.intercept_radius
        return reach


def _tilt(problem: Problem, w: Vector) -> Vector | None:
    """Gradient of a squared penalty, in units of the sum over all records."""
    ridge = problem.penalty.ridge
    if not ridge:
        return None
    tilt = np.zeros(problem.shape)
    problem.columns(tilt)[...] = problem.n_rows * ridge * problem.columns(w)
    return tilt
