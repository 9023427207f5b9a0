"""PrivGene: a genetic algorithm whose selections are private (Zhang et al., SIGMOD 2013).

    parents = two copies of zero
    each generation:  children = the parents, and crossings of both with one coordinate moved by
                      plus or minus the mutation scale
                      new parents = the two children with the least noisy objective, chosen one
                      after the other
                      mutation scale *= decay

Only indices of chosen children are released. Children are functions of earlier choices and of a
public seed. docs/algorithms/priv-gene.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget, gaussian_mu
from hushfit.problem import Problem
from hushfit.release import Choice, Door, NoisyChoice, Plan, Planned, choice_between
from hushfit.solvers._setting_checks import check_settings
from hushfit.solvers.base import Iterate

_NAME = "selection"
_PARENTS = 2
_MOST_CHILDREN = 256
_MIN_GENERATIONS, _MAX_GENERATIONS, _GENERATIONS_PER_UNIT = 8, 100, 0.0025


@dataclass(frozen=True)
class PrivGene:
    """Genetic search: children of two parents, of which two are chosen by a noisy objective.

    Parameters
    ----------
    generations : int or None
        None chooses it from the number of rows and the budget.
    children : int, default=32
        Candidates of each generation, the two parents among them; at most 256.
    mutation : float, default=4.0
        Distance by which the first generation moves a coordinate.
    last_mutation : float, default=0.5
        The same for the last generation; it decays geometrically in between.
    objective_clip : float, default=1.0
        Bound on the decrease of a record's loss that counts in a choice.
    seed : int, default=0
        Public seed of crossings and mutations.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import Zero
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import PrivGene
    >>> problem = Problem(Logistic(), Zero(), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = PrivGene(generations=20).plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('selection', 40)]
    """

    generations: int | None = None
    children: int = 32
    mutation: float = 4.0
    last_mutation: float = 0.5
    objective_clip: float = 1.0
    seed: int = 0

    takes_constraint = False

    def __post_init__(self) -> None:
        check_settings(
            self,
            generations=self.generations,
            mutation=self.mutation,
            last_mutation=self.last_mutation,
            objective_clip=self.objective_clip,
        )
        if not _PARENTS < self.children <= _MOST_CHILDREN:
            raise InvalidArgument(
                f"children={self.children!r} must lie between {_PARENTS + 1} and {_MOST_CHILDREN}: "
                "the two parents and their crossings."
            )

    def for_budget(self, budget: Budget, problem: Problem) -> "PrivGene":
        """The same with a number of generations, unless given; without privacy, unclipped."""
        if not budget.is_private:
            return replace(
                self, generations=self.generations or _MAX_GENERATIONS, objective_clip=1e6
            )
        units = gaussian_mu(budget.epsilon, budget.delta) * problem.n_units
        most = min(max(_GENERATIONS_PER_UNIT * units, _MIN_GENERATIONS), _MAX_GENERATIONS)
        return replace(self, generations=self.generations or round(most))

    @property
    def _generations(self) -> int:
        return self.generations or _MIN_GENERATIONS

    def plan(self, problem: Problem) -> Plan:
        return Plan((Planned(_NAME, Choice, _PARENTS * self._generations, sampling=NoisyChoice()),))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        rng = np.random.default_rng(self.seed)
        parents = np.zeros((_PARENTS, *problem.shape))
        for t, scale in enumerate(self._scales(), start=1):
            children = self._children(rng, parents, scale)
            parents = np.stack(
                [self._selected(problem, door, parents[0], children) for _ in range(_PARENTS)]
            )
            yield Iterate(parents[0], weight=float(t == self._generations))

    def _scales(self) -> Vector:
        """Mutation scales of all generations."""
        return np.geomspace(self.mutation, self.last_mutation, self._generations)

    def _children(self, rng: np.random.Generator, parents: Vector, scale: float) -> Vector:
        """The parents, and crossings with one coordinate mutated."""
        size, count = parents[0].size, self.children - _PARENTS
        order = rng.permuted(np.tile(np.arange(_PARENTS), (count, 1)), axis=1)
        first, second = parents.reshape(_PARENTS, size)[order.T]
        point = rng.integers(size + 1, size=(count, 1))
        crossed = np.where(np.arange(size) < point, first, second)
        moves = scale * rng.choice([-1.0, 1.0], count)
        crossed[np.arange(count), rng.integers(size, size=count)] += moves
        return np.concatenate([parents, crossed.reshape(count, *parents.shape[1:])])

    def _selected(self, problem: Problem, door: Door, w: Vector, children: Vector) -> Vector:
        query = choice_between(problem, w, children, self.objective_clip)
        return np.asarray(children[int(door.release(_NAME, query)[0])])
