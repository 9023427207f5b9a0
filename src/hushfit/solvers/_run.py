"""What a solver is, and the one loop that runs them all."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hushfit._typing import Vector
from hushfit.problem import Problem
from hushfit.release import Door, Plan
from hushfit.solvers._checkpoint import save_checkpoint


@dataclass(frozen=True, eq=False)
class Iterate:
    """Where a solver is, and how much of it belongs into the average that becomes the result."""

    w: Vector
    weight: float = 1.0


class Solver(Protocol):
    """Says what it will ask, then asks it. It sees noisy answers only, so it needs no privacy proof of its own."""

    def plan(self, problem: Problem) -> Plan:
        """All releases it will make, whatever the answers."""

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        """Make the releases; one item for each step."""

    def finish(self, problem: Problem, door: Door, average: Vector) -> Vector:
        """The weights to hand out, from the weighted average of the iterates."""


@dataclass(frozen=True, eq=False)
class Result:
    """What came of a run: weights, and the number of steps, which is public because the plan fixed it."""

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
        File to keep the releases in after each step. After an interruption, ``load_checkpoint`` reads them for
        ``Curator(..., replay=...)`` and the run goes on where it stopped.

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
    return Result(solver.finish(problem, door, total / weight), steps)
