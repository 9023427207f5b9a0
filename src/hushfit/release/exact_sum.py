"""Sums over records that floating point adds exactly. Proof: docs/proofs/gradient.md, lemma 1.

Sums over neighbouring tables must differ by one record's contribution and by little else. Plain
floating-point sums do not: every partial sum is rounded according to its size, so one record can
change the rounding of all that come after it, and the sum depends on the order of the rows. Here
contributions are rounded to a grid that is fine, yet coarse enough for all partial sums to be exact
multiples of it.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from hushfit._typing import Vector
from hushfit.data import FEWEST_BLOCK_ROWS, MOST_BLOCK_ROWS, Block
from hushfit.kernels.gradient import HEADROOM
from hushfit.kernels.threads import parallel_sum


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
        The grid is chosen for at least so many units, so that small tables share one.
    """

    bound: float
    units: int
    size: int
    rows_per_unit: int = 1
    least_units: int = MOST_BLOCK_ROWS

    @property
    def grid(self) -> float:
        """Step to which contributions are rounded: a power of two."""
        return _grid(self.bound, max(self.units, self.least_units))

    @property
    def rounding(self) -> float:
        """Bound on the norm by which a unit changes the sum beyond its contribution."""
        # Lemma 1: rounding the unit's rows, and ties in the blocks after them, change an entry by
        # so many grid steps.
        blocks = math.ceil(self.units * self.rows_per_unit / FEWEST_BLOCK_ROWS)
        grid_steps = 2 * blocks + 2 * self.rows_per_unit
        return grid_steps * self.grid * math.sqrt(self.size)

    def over(
        self,
        blocks: Iterable[Block],
        shape: tuple[int, ...],
        of_block: Callable[[Block, float], Vector],
    ) -> Vector:
        """Sum over blocks of ``of_block(block, grid)``, itself a sum of contributions rounded to
        the grid.
        """
        grid = self.grid
        return parallel_sum(lambda block: of_block(block, grid), blocks, shape)


@lru_cache  # every step of a run makes a new query with the same bounds
def _grid(bound: float, units: int) -> float:
    return 2.0 ** math.ceil(math.log2(bound * units / HEADROOM))
