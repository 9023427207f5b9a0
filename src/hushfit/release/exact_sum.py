"""Sums over records that floating point adds exactly. Proof: docs/proofs/gradient.md, lemma 1; for
persons docs/proofs/persons.md.

Sums over neighbouring tables must differ by one record's contribution and by little else. Plain
floating-point sums do not: every partial sum is rounded according to its size, so one record can
change the rounding of all that come after it, and the sum depends on the order of the rows. Here
contributions are rounded to a grid that is fine, yet coarse enough for all partial sums to be exact
multiples of it.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TypeGuard, TypeVar

import numpy as np

from hushfit._typing import IntVector, Vector
from hushfit.data import (
    FEWEST_BLOCK_ROWS,
    MOST_BLOCK_ROWS,
    PERSON_BLOCK_ROWS,
    DataSource,
    InParts,
    SumsOverRows,
)
from hushfit.errors import InvalidArgument
from hushfit.kernels.gradient import HEADROOM
from hushfit.kernels.threads import parallel_sum

Some = TypeVar("Some")  # records of a block: rows, or lists

_UNIT_ROUNDOFF = 2.0**-53
# A sum over all persons is at most so many times that of one block, of 2**51 steps: it fits into an
# integer.
_MOST_BLOCK_SUMS = 2**10


def exact_total(query: SumsOverRows, source: DataSource, units: IntVector | None) -> Vector:
    """Exact sums over all rows of a source, in one place or in several."""
    if not _in_parts(source):
        return query.exact_sums(source, units)
    if units is not None:
        raise InvalidArgument("A table in several places has no sampled batches. Use FullBatch().")
    return source.added_up(query)


def _in_parts(source: DataSource) -> TypeGuard[InParts]:
    return _has_parts(type(source))


@cache  # sums of small batches take less time than looking through a protocol
def _has_parts(kind: type) -> bool:
    return issubclass(kind, InParts)


@dataclass(frozen=True)
class ExactSum:
    """The grid of a sum over records, and a bound on what rounding to it adds to one contribution.

    Parameters
    ----------
    bound : float
        Largest absolute value of an entry that one record contributes.
    units : int
        Largest number of units in the sum, rows or persons; public. The weights of a unit's rows
        add up to at most one.
    size : int
        Number of entries of the sum.
    rows_per_unit : int, default=1
        Largest number of rows of one unit; public.
    least_units : int, default=MOST_BLOCK_ROWS
        The grid is chosen for at least so many units, so that small tables share one; not for
        persons.
    """

    bound: float
    units: int
    size: int
    rows_per_unit: int = 1
    least_units: int = MOST_BLOCK_ROWS

    @property
    def grid(self) -> float:
        """Step to which contributions are rounded: a power of two."""
        if self.rows_per_unit == 1:
            return _grid(self.bound, max(self.units, self.least_units), 1)
        # Persons may have many rows, each of which is rounded: their grid is as fine as the sum of
        # one block allows, and blocks are added up in 64-bit integers.
        in_block = max(min(self.units, PERSON_BLOCK_ROWS), self.units / _MOST_BLOCK_SUMS)
        return _grid(self.bound, in_block, self.rows_per_unit)

    @property
    def rounding(self) -> float:
        """Bound on the norm by which a unit changes the sum beyond its contribution."""
        # Lemma 1: rounding the unit's rows, and ties in the blocks after them, change an entry by
        # so many grid steps.
        blocks = math.ceil(self.units * self.rows_per_unit / FEWEST_BLOCK_ROWS)
        grid_steps = 2 * blocks + 2 * self.rows_per_unit
        # The integers that persons' sums are made of become floats once, on each table.
        as_floats = 0.0 if self.rows_per_unit == 1 else 2 * _UNIT_ROUNDOFF * self.units * self.bound
        return (grid_steps * self.grid + as_floats) * math.sqrt(self.size)

    def over(
        self,
        blocks: Iterable[Some],
        shape: tuple[int, ...],
        of_block: Callable[[Some, float], Vector],
    ) -> Vector:
        """Sum over blocks of ``of_block(block, grid)``, itself a sum of contributions rounded to
        the grid.
        """
        grid = self.grid
        if self.rows_per_unit == 1:
            return parallel_sum(lambda block: of_block(block, grid), blocks, shape)
        return sum_in_steps(lambda block: of_block(block, grid), blocks, shape, grid)


def sum_in_steps(
    of_block: Callable[[Some], Vector],
    blocks: Iterable[Some],
    shape: tuple[int, ...],
    grid: float | Vector,
) -> Vector:
    """Sum over blocks of multiples of a grid, added up as integers: exact beyond 2**53 steps."""

    def in_steps(block: Some) -> Vector:
        return (of_block(block) / grid).astype(np.int64)

    return np.asarray(parallel_sum(in_steps, blocks, shape) * grid, dtype=np.float64)


@lru_cache  # every step of a run makes a new query with the same bounds
def _grid(bound: float, units: float, rows_per_unit: int) -> float:
    grid: float = 2.0 ** math.ceil(math.log2(bound * units / HEADROOM))
    # Contributions may be rounded up, each by half a step at most; those of single rows are not if
    # the bound itself is on the grid. All rows of a block must stay within the headroom.
    rounded_up = 0 if rows_per_unit == 1 and (bound / grid).is_integer() else MOST_BLOCK_ROWS / 2
    return grid if bound * units / grid + rounded_up <= HEADROOM else 2 * grid
