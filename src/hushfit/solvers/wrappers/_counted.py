"""Private counts of the classes beside another solver, for thresholds that heed rare classes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import Relation, labels_only
from hushfit.problem import Problem
from hushfit.release import ClassCounts, Door, Plan, Planned, Released
from hushfit.solvers.base import Iterate, Solver, finished
from hushfit.solvers.wrappers._inner_plan import inner_parts

COUNTS = "class counts"
# Standard deviation of the counts of classes that is supposed beforehand, over their mean.
_COUNT_SPREAD = 0.4


@dataclass(frozen=True)
class Counted:
    """A solver, and the counts of the classes if it does not release them itself.

    Parameters
    ----------
    solver : Solver
    share : float, default=0.02
        Share of the budget (of mu squared) for the counts; the solver's releases have the rest.
    """

    solver: Solver
    share: float = 0.02

    takes_constraint = False

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InvalidArgument(f"{self} needs a share in (0, 1).")

    def plan(self, problem: Problem) -> Plan:
        if labels_only(problem.relation):
            raise InvalidArgument(
                f"Counts of classes have no proof under adjacency={str(problem.relation)!r}. Use "
                "'replace-one' or 'add-remove', or give a threshold as a number."
            )
        if self._counts_already(problem):
            return self.solver.plan(problem)
        counts = Planned(COUNTS, ClassCounts, 1, self.share)
        return Plan((*inner_parts(self.solver, problem, self.share), counts))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        return self.solver.iterates(problem, door)

    def finish(self, problem: Problem, door: Door, average: Vector) -> Vector:
        w = finished(self.solver, problem, door, average)
        if not self._counts_already(problem):
            door.release(COUNTS, ClassCounts(problem))
        return w

    def _counts_already(self, problem: Problem) -> bool:
        return any(part.query is ClassCounts for part in self.solver.plan(problem).parts)


def released_class_shares(
    transcript: Sequence[Released], multipliers: Mapping[str, float], relation: Relation
) -> Vector | None:
    """Frequencies of the classes by a released count; None if there is none."""
    for released in transcript:
        if isinstance(released.query, ClassCounts):
            noise = multipliers[released.name] * released.query.sensitivity(relation)
            counts = shrunk_counts(released.answer, noise)
            return np.asarray(counts / counts.sum())
    return None


def shrunk_counts(counts: Vector, noise: float) -> Vector:
    """Noisy counts, closer to their mean the more noise they have; above zero."""
    mean = max(float(counts.mean()), 1.0)
    kept = 1 / (1 + (noise / (_COUNT_SPREAD * mean)) ** 2)
    least = min(max(math.sqrt(kept) * noise, 1.0), mean)
    return np.asarray(np.maximum(mean + kept * (counts - counts.mean()), least))
