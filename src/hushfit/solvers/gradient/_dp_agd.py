"""DP-AGD: gradient descent with an adaptive budget per iteration (Lee and Kifer, KDD 2018).

    each step:  g = clipped gradients over all rows + noise
                choose among the lengths 0 = a_0 < a_1 < ... < a_max the one whose noisy objective
                at w - a g/|g| is least
                a_0 was chosen: the gradient has too much noise. Raise its budget, measure it once
                more with the difference, average the two weighted by their budgets, and choose
                again, among shorter steps
                every ten steps:  a_max = 1.1 * largest recent length

The noise depends on earlier releases, so a privacy filter checks every release. All of them are
Gaussian or pure, so adaptivity costs nothing (docs/proofs/filter.md). docs/algorithms/dp-agd.md has
the rest.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget
from hushfit.privacy.accounting import pure_epsilon_of_gaussian
from hushfit.problem import Problem
from hushfit.release import (
    Backtracking,
    ClippedGradient,
    Door,
    FullBatch,
    GaussianRun,
    NoisyChoice,
    Plan,
    Planned,
    Priced,
)
from hushfit.solvers.base import Iterate

# Maximum number of releases of a run, per expected step.
_RELEASES_PER_STEP = 4


@dataclass(frozen=True)
class DPAGD:
    """Gradient descent that spends more budget on a gradient when no step along it helps.

    Parameters
    ----------
    steps : int, default=60
        Expected number of steps, among which the budget is divided.
    clip : float, default=0.5
        Clipping norm of a record's gradient.
    objective_clip : float, default=1.0
        Bound on the decrease of a record's loss that counts in a choice.
    first_length : float, default=4.0
        Longest step at first.
    candidates : int, default=20
        Lengths to choose from, with 0 among them.
    choice_share : float, default=0.2
        Part of the budget of a step (of mu squared) for its choice.
    increase : float, default=0.3
        By how much a choice of no step raises the budget of the gradient.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import DPAGD
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = DPAGD().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('run', 240)]
    """

    steps: int = 60
    clip: float = 0.5
    objective_clip: float = 1.0
    first_length: float = 4.0
    candidates: int = 20
    choice_share: float = 0.2
    increase: float = 0.3

    takes_constraint = False

    def __post_init__(self) -> None:
        positive = {
            "steps": self.steps,
            "clip": self.clip,
            "objective_clip": self.objective_clip,
            "first_length": self.first_length,
            "increase": self.increase,
        }
        for name, value in positive.items():
            if not 0 < value < math.inf:
                raise InvalidArgument(f"{name}={value!r} must be above 0.")
        if not 2 <= self.candidates <= 256 or not 0 < self.choice_share < 1:
            raise InvalidArgument(f"{self} needs 2 to 256 candidates and 0 < choice_share < 1.")

    def for_budget(self, budget: Budget, problem: Problem) -> "DPAGD":
        """The same without clipping if epsilon is infinite."""
        return (
            self
            if budget.is_private
            else replace(self, clip=problem.loss.slope_bound, objective_clip=1e6)
        )

    def plan(self, problem: Problem) -> Plan:
        if not problem.penalty.convex:
            raise InvalidArgument(
                f"{problem.penalty!r} is not convex, and a line search may stop anywhere. Use "
                "'proximal-gd'."
            )
        return Plan(
            (Planned("run", Priced, _RELEASES_PER_STEP * self.steps, sampling=GaussianRun()),)
        )

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        run = door.noise_multiplier("run")
        # Without privacy any number will do: no noise is drawn.
        per_step = 1 / (run * math.sqrt(self.steps)) if run > 0 else 1.0
        mu, choice = (
            per_step * math.sqrt(1 - self.choice_share),
            self._choice(per_step * math.sqrt(self.choice_share)),
        )
        lengths = _Lengths(self.first_length, self.candidates)
        w, done = np.zeros(problem.shape), 0
        while (g := self._gradient(problem, door, w, mu)) is not None:
            k = 0
            while k == 0:
                search = _search(problem, lengths.sizes, g, self.objective_clip)
                choose = Priced(search.choice(problem, w, g), NoisyChoice(), choice)
                if not door.affords("run", choose):
                    break
                k = int(door.release("run", choose)[0])
                if k == 0:
                    # The average of two Gaussian answers, weighted by their budgets, has the
                    # variance of one answer with both budgets.
                    better = self._gradient(problem, door, w, mu * math.sqrt(self.increase))
                    if better is None:
                        break
                    g = (g + self.increase * better) / (1 + self.increase)
                    mu, lengths = mu * math.sqrt(1 + self.increase), lengths.shorter()
            if k == 0:
                break
            w = search.candidates(problem, w, g)[k]
            lengths, done = lengths.after(k), done + 1
            yield Iterate(w, weight=float(done))
        if done == 0:
            yield Iterate(w)

    def _gradient(self, problem: Problem, door: Door, w: Vector, mu: float) -> Vector | None:
        """A noisy sum of gradients, or None if the filter refuses it."""
        query = Priced(ClippedGradient(problem, w, self.clip), FullBatch(), 1 / mu)
        return door.release("run", query) if door.affords("run", query) else None

    def _choice(self, mu: float) -> float:
        """Noise multiplier of a choice that costs as much as a Gaussian release of this mu."""
        return 2 / pure_epsilon_of_gaussian(mu)


def _search(problem: Problem, lengths: Vector, g: Vector, objective_clip: float) -> Backtracking:
    """Candidates by the length of the step, independent of that of the gradient."""
    length = float(np.linalg.norm(g)) / problem.n_units
    return Backtracking(lengths / max(length, 1e-300), problem.n_units, objective_clip, 0.0, 0.0)


@dataclass(frozen=True)
class _Lengths:
    """Candidate lengths and recent choices, which set the longest candidate every ten steps."""

    longest: float
    candidates: int
    taken: tuple[float, ...] = ()

    period = 10
    slack = 1.1
    shrink = 0.7

    @property
    def sizes(self) -> Vector:
        return np.linspace(0.0, self.longest, self.candidates)

    def shorter(self) -> "_Lengths":
        return replace(self, longest=self.shrink * self.longest)

    def after(self, k: int) -> "_Lengths":
        taken = (*self.taken, float(self.sizes[k]))
        if len(taken) < self.period:
            return replace(self, taken=taken)
        return _Lengths(self.slack * max(taken), self.candidates)
