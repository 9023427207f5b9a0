"""Rows of persons: which rows belong together, and what each of them weighs.

Codes of persons are numbers from 0 in no public order. Weights are functions of a person's own
rows alone. Proof: docs/proofs/persons.md.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hushfit._arrays import keep_read_only
from hushfit._typing import IntVector, Vector
from hushfit.kernels import persons as kernels
from hushfit.unit import PrivacyUnit

# Share of every row where each row is its own unit.
WHOLE: Vector = np.ones(1)


@dataclass(frozen=True, eq=False)
class Persons:
    """The person of each row, and the shares of a person's rows, which add up to at most one.

    Parameters
    ----------
    codes : int array, one entry for each row
        The person of each row: every number from 0 to ``n_persons - 1`` occurs.
    n_persons : int
        Public.
    unit : PrivacyUnit
        Of kind ``"person"``.
    """

    codes: IntVector
    n_persons: int
    unit: PrivacyUnit

    def __post_init__(self) -> None:
        keep_read_only(self, "codes")  # sampled batches and weights must mean the same persons

    @cached_property
    def shares(self) -> Vector:
        """Weight of each row; 0 for rows beyond the bound on rows per person."""
        shares = np.empty(len(self.codes))
        bounds = self.unit.rows_per_person, self.unit.full_weight
        kernels.shares(self.codes, np.zeros(self.n_persons, np.int64), *bounds, shares)
        shares.setflags(write=False)
        return shares

    @cached_property
    def _by_person(self) -> tuple[IntVector, IntVector]:
        """Used rows in the order of their persons, and where each person starts."""
        starts = np.zeros(self.n_persons + 1, np.int64)
        order = np.empty(len(self.codes), np.int64)
        kernels.by_person(self.codes, self.shares, starts, order)
        return order, starts

    @cached_property
    def _used(self) -> IntVector | None:
        """Rows with a weight; None if all have one."""
        used = np.flatnonzero(self.shares)
        return None if len(used) == len(self.shares) else used

    def places(self, size: int) -> list[slice]:
        """The rows in pieces of ``size`` used ones: rows beyond the bound on rows per person must
        not add to the number of pieces, on which the bound on rounding depends.
        """
        if self._used is None:
            return places(len(self.codes), size)
        return [
            slice(int(used[0]), int(used[-1]) + 1)
            for used in (self._used[place] for place in places(len(self._used), size))
        ]

    def rows_of(self, persons: IntVector) -> IntVector:
        """All used rows of some persons, in the order of the table."""
        order, starts = self._by_person
        rows = np.empty(int((starts[persons + 1] - starts[persons]).sum()), np.int64)
        kernels.rows_of(persons, order, starts, rows)
        rows.sort()
        return rows


def places(n_rows: int, size: int) -> list[slice]:
    """Rows in pieces of ``size``."""
    if 0 < n_rows <= size:  # nearly every batch
        return [slice(0, n_rows)]
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def bits_of_one(n_units: int) -> int:
    """The b for which 2**b stands for one in sums of whole numbers: below 2**53 for all units."""
    return 52 - max(int(n_units), 1).bit_length()


def whole_shares(shares: Vector, n_units: int) -> tuple[Vector, float]:
    """Shares as whole numbers, rounded down, and the number that stands for one: counts of rows
    that are weighted with them are exact.
    """
    # A share 1 / k is rounded to the nearest float, and so is never taken for the next whole
    # number.
    bits = bits_of_one(n_units)
    return np.floor(np.ldexp(shares, bits)), float(2.0**bits)
