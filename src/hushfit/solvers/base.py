"""What a solver is, and the one loop that runs them all."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from hushfit._typing import Vector
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.release import Door, Plan
from hushfit.solvers._checkpoint import save_checkpoint


@dataclass(frozen=True, eq=False)
class Iterate:
    """One iterate of a solver, and its weight in the average that becomes the result."""

    w: Vector
    weight: float = 1.0


class Solver(Protocol):
    """An algorithm that declares its queries, then makes them.

    It sees noisy answers only, so it is post-processing and needs no privacy proof of its own.

    Examples
    --------
    >>> from hushfit.solvers import SSADMM, Solver
    >>> solver: Solver = SSADMM(steps=20)
    >>> solver.takes_constraint  # so a problem with a constraint is refused
    False
    """

    @property
    def takes_constraint(self) -> bool:
        """Whether it supports ``problem.constraint``; if not, a problem with one is refused."""

    def plan(self, problem: Problem) -> Plan:
        """All releases it will make, independent of the answers."""

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        """Make the releases; yield one iterate for each step."""


@runtime_checkable
class Finishing(Protocol):
    """A solver whose result is more than the weighted average of its iterates."""

    def finish(self, problem: Problem, door: Door, average: Vector) -> Vector:
        """The weights to return."""


def finished(solver: Solver, problem: Problem, door: Door, average: Vector) -> Vector:
    """The weights that a solver returns: the average of its iterates, or a function of it."""
    return solver.finish(problem, door, average) if isinstance(solver, Finishing) else average


@runtime_checkable
class Budgeted(Protocol):
    """A solver with settings that depend on the budget."""

    def for_budget(self, budget: Budget, problem: Problem) -> Solver:
        """The same with these settings chosen; refuses a budget that it does not support."""


def settled(solver: Solver, budget: Budget, problem: Problem) -> Solver:
    """The solver with all settings that depend on the budget chosen."""
    return solver.for_budget(budget, problem) if isinstance(solver, Budgeted) else solver


@dataclass(frozen=True, eq=False)
class Result:
    """Result of a run: weights and number of steps.

    The number of steps is public because the plan fixed it.
    """

    w: Vector
    steps: int


Watch = Callable[[int], None]


def run(
    solver: Solver,
    problem: Problem,
    door: Door,
    watch: Watch | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Result:
    """Run a solver to its end and average its iterates.

    Parameters
    ----------
    solver : Solver
    problem : Problem
    door : Door
    watch : callable, optional
        Called after each step with the number of steps done, for instance by a progress bar.
    checkpoint : path, optional
        File to store the releases in after each step. After an interruption, ``load_checkpoint``
        reads them for ``Curator(..., replay=...)`` and the run continues where it stopped.

    Returns
    -------
    Result
    """
    total, weight, steps = np.zeros(problem.shape), 0.0, 0
    for steps, iterate in enumerate(solver.iterates(problem, door), start=1):
        if iterate.weight:
            total += iterate.weight * iterate.w
            weight += iterate.weight
        if checkpoint is not None:
            save_checkpoint(checkpoint, door.transcript)
        if watch is not None:
            watch(steps)
    return Result(finished(solver, problem, door, total / weight), steps)
