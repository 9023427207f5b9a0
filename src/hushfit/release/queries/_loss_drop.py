"""Decreases of the loss at public candidates, and their comparison with required ones: what a
private line search asks. Proofs: docs/proofs/{line_search,above_threshold,gated}.md.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from hushfit._arrays import keep_read_only, read_only
from hushfit._typing import BoolVector, IntVector, Matrix, Vector
from hushfit.data import AT_MOST_ONE, Block, DataSource, RecordScaling
from hushfit.errors import InvalidArgument
from hushfit.kernels.threads import parallel_sum
from hushfit.privacy import Relation, by_relation
from hushfit.problem import Problem
from hushfit.release.exact_sum import ExactSum, sum_in_steps
from hushfit.release.queries._gradient import with_intercept

# Required decreases are clipped to so many bounds per row: beyond, they decide the comparison
# alone.
_MAX_REQUIRED = 2.0
# Upper bound on the noise values that a gate draws, for the reserve that covers discrete noise.
MOST_QUERIES = 256


@dataclass(frozen=True, eq=False)
class LossDrop:
    r"""Sums over the records of :math:`\ell_i(w) - \ell_i(w_k)` for public candidates, each clipped
    to its ``bounds`` entry.

    Parameters
    ----------
    problem : Problem
    vectors : array of shape (vectors, \*problem.shape)
        The points are linear combinations of these.
    mixes : array of shape (1 + candidates, vectors)
        The first row is the current iterate, the others are the candidates.
    bounds : array
        One clipping bound above 0 for each candidate.
    """

    problem: Problem
    vectors: Vector
    mixes: Matrix
    bounds: Vector

    doubled = None
    sampled: ClassVar[bool] = True
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        shapes = self.vectors.shape[1:], self.mixes.shape
        if (
            shapes != (self.problem.shape, (1 + len(self.bounds), len(self.vectors)))
            or self.bounds.ndim != 1
        ):
            raise InvalidArgument(
                f"{len(self.bounds)} candidates of shape {self.problem.shape} need as many bounds "
                "and one more row of mixes; vectors "
                f"have shape {self.vectors.shape} and mixes {self.mixes.shape}."
            )
        keep_read_only(self, "bounds")  # the grids that belong to them are computed once

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return MOST_QUERIES

    @property
    def size(self) -> int:
        return len(self.bounds)

    @cached_property
    def _sums(self) -> tuple[ExactSum, ...]:
        """One sum for each candidate: their bounds differ by orders of magnitude."""
        n_units, rows_per_unit = self.problem.n_units, self.problem.rows_per_unit
        return tuple(ExactSum(bound, n_units, 1, rows_per_unit) for bound in self.bounds.tolist())

    @property
    def grids(self) -> Vector:
        """Grid steps to which the contributions to each sum are rounded."""
        return read_only(np.array([one.grid for one in self._sums]))

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        vectors = np.ascontiguousarray(with_intercept(self.vectors, self.problem))
        # Loops are compiled for writable arrays.
        bounds, grids = self.bounds.copy(), self.grids.copy()

        def of_block(block: Block) -> Vector:
            return block.drop_sum(vectors, self.mixes, bounds, *self.problem.loss.kernel, grids)

        blocks, shape = source.blocks(units), (self.size,)
        if self.problem.rows_per_unit == 1:
            return parallel_sum(of_block, blocks, shape)
        return sum_in_steps(of_block, blocks, shape, grids)

    @property
    def radii(self) -> Vector:
        """Bound on the contribution of one record to each sum."""
        return np.asarray(self.bounds + [one.rounding for one in self._sums])

    def radius(self) -> float:
        return float(np.linalg.norm(self.radii))

    def sensitivity(self, relation: Relation) -> float:
        # Replace-one removes one contribution and adds another; add-remove only removes one.
        return self.radius() * by_relation(relation, replace_one=2, add_remove=1)


class _DecreaseScores:
    """Common part of `Gate` and `Choice`: one score for each candidate, which one record changes by
    at most one, rounding aside.
    """

    drop: LossDrop
    asked: Vector

    doubled = None
    sampled: ClassVar[bool] = True
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE

    def __post_init__(self) -> None:
        if self.asked.shape != (self.drop.size,):
            # One sum compared with many thresholds would reveal more than the cost of a gate
            # covers.
            raise InvalidArgument(
                f"asked has shape {self.asked.shape}, but there are {self.drop.size} candidates. "
                "Give one number for each."
            )

    @property
    def problem(self) -> Problem:
        return self.drop.problem

    @property
    def size(self) -> int:
        return 1

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return 4 * MOST_QUERIES

    @property
    def divisors(self) -> Vector:
        """Divisors of the decreases."""
        raise NotImplementedError

    def scores(self, source: DataSource, units: IntVector | None) -> Vector:
        """Decreases minus the required ones (``asked``), divided by ``divisors``."""
        required = clipped_requirements(self.asked / self.divisors, self.problem.n_units)
        return np.asarray(self.drop(source, units) / self.divisors - required)

    def radius(self) -> float:
        # Division and subtraction have rounding errors of a few units in the last place of numbers
        # up to three times the number of rows.
        rounding = 16 * self.problem.n_units * 2.0**-53
        return float((self.drop.radii / self.divisors).max()) * (1 + 1e-12) + rounding

    def sensitivity(self, relation: Relation) -> float:
        return self.radius() * by_relation(relation, replace_one=2, add_remove=1)


@dataclass(frozen=True, eq=False)
class Gate(_DecreaseScores):
    """Index of the first candidate whose decrease is at least the required one, or the number of
    candidates if there is none.

    Parameters
    ----------
    drop : LossDrop
    asked : array
        Required decrease of each candidate, in units of the sums; public.
    """

    drop: LossDrop
    asked: Vector

    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = "FreshGate"

    @property
    def candidates(self) -> int:
        return self.drop.size

    @property
    def divisors(self) -> Vector:
        return self.drop.bounds

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return first_passed(self.scores(source, units) >= 0)


@dataclass(frozen=True, eq=False)
class Choice(_DecreaseScores):
    """Index of the candidate whose decrease most exceeds the required one.

    Parameters
    ----------
    drop : LossDrop
    asked : array
        Required decrease of each candidate, in units of the sums; public.
    """

    drop: LossDrop
    asked: Vector

    sampled: ClassVar[bool] = False
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = "NoisyChoice"

    @property
    def divisors(self) -> Vector:
        # Candidates are compared with each other, so all have the same unit.
        return np.full(self.drop.size, self.drop.bounds.max())

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return np.array([float(np.argmax(self.scores(source, units)))])


def clipped_requirements(required: Vector, n_units: int) -> Vector:
    """Required decreases in units of the bound on one record, clipped to what decides by itself."""
    most = _MAX_REQUIRED * n_units
    return np.clip(np.nan_to_num(required, nan=most, posinf=most, neginf=-most), -most, most)


def first_passed(passed: BoolVector) -> Vector:
    """Index of the first candidate that passed, or their number if none did, as an answer."""
    return np.array([float(np.argmax(passed)) if passed.any() else float(len(passed))])
