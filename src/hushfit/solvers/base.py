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
    """Where a solver is, and how much of it belongs into the average that becomes the result."""

    w: Vector
    weight: float = 1.0


class Solver(Protocol):
    """Says what it will ask, then asks it. It sees noisy answers only, so it needs no privacy
    proof of its own.
    """

    @property
    def takes_constraint(self) -> bool:
        """Whether it heeds ``problem.constraint``; it is never given a problem with one
        otherwise.
        """

    def plan(self, problem: Problem) -> Plan:
        """All releases it will make, whatever the answers."""

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        """Make the releases; one item for each step."""


@runtime_checkable
class Finishing(Protocol):
    """A solver whose result is more than the weighted average of its iterates."""

    def finish(self, problem: Problem, door: Door, average: Vector) -> Vector:
        """The weights to hand out."""


def finished(solver: Solver, problem: Problem, door: Door, average: Vector) -> Vector:
    """The weights that a solver hands out: the average of its iterates, or what it makes of
    that.
    """
    return solver.finish(problem, door, average) if isinstance(solver, Finishing) else average


@runtime_checkable
class Budgeted(Protocol):
    """A solver with settings that depend on the budget."""

    def for_budget(self, budget: Budget, problem: Problem) -> Solver:
        """The same, settled; refuses a budget that it is not for."""


def settled(solver: Solver, budget: Budget, problem: Problem) -> Solver:
    """The solver with whatever the budget decides."""
    return solver.for_budget(budget, problem) if isinstance(solver, Budgeted) else solver


@dataclass(frozen=True, eq=False)
class Result:
    """What came of a run: weights, and the number of steps, which is public because the plan
    fixed it.
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
        File to keep the releases in after each step. After an interruption, ``load_checkpoint``
        reads them for ``Curator(..., replay=...)`` and the run goes on where it stopped.

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
