"""Lists of documents with private grades, as the queries see them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hushfit._arrays import keep_read_only
from hushfit._typing import IntVector, Vector
from hushfit.data.lists._documents import Documents
from hushfit.data.rows import FEWEST_BLOCK_ROWS, WHOLE, Block, Persons, PublicRows
from hushfit.unit import LIST, PrivacyUnit


@dataclass(frozen=True, eq=False)
class ListBlock:
    """Some lists: their documents, their grades and what each of them weighs."""

    documents: Documents
    lists: IntVector
    y: Vector
    shares: Vector


@dataclass(frozen=True, eq=False)
class RankedLists:
    """Documents in lists, and a grade for each document.

    Parameters
    ----------
    documents : Documents
    y : float64 array of shape (n_documents,)
        Grades, from 0 for irrelevant.
    persons : Persons or None
        The person of each list; None if every list is its own unit.
    """

    documents: Documents
    y: Vector
    persons: Persons | None = None

    def __post_init__(self) -> None:
        keep_read_only(self, "y")

    @property
    def n_units(self) -> int:
        return self.documents.n_lists if self.persons is None else self.persons.n_persons

    @property
    def privacy_unit(self) -> PrivacyUnit:
        return LIST if self.persons is None else self.persons.unit

    @property
    def n_features(self) -> int:
        return self.documents.n_features

    @property
    def shares(self) -> Vector:
        """Weight of each list, or one weight for all. Those of a person add up to at most one."""
        return WHOLE if self.persons is None else self.persons.shares

    def row_vector(self) -> Vector:
        return np.zeros(len(self.y))

    def blocks(self, units: IntVector | None = None) -> Iterator[Block]:
        """Lists are no rows: queries over rows find none."""
        return iter(())

    def public_rows(self) -> PublicRows:
        """None: where documents are public, the problem has them."""
        return PublicRows(lambda: iter(()), 0, self.n_features, None, WHOLE)

    def list_blocks(self, units: IntVector | None = None) -> Iterator[ListBlock]:
        """All lists, or those of some units, some thousand at a time."""
        lists = self._lists_of(units)
        shares = self.shares.copy()  # loops are compiled for writable arrays
        # As small as the proof of rounding allows (docs/proofs/gradient.md, lemma 1).
        for start in range(0, len(lists), FEWEST_BLOCK_ROWS):
            chosen = lists[start : start + FEWEST_BLOCK_ROWS]
            yield ListBlock(self.documents, chosen, self.y, shares)

    def _lists_of(self, units: IntVector | None) -> IntVector:
        if self.persons is None:
            return np.arange(self.documents.n_lists) if units is None else units
        # Lists beyond the bound of a person must not add to the number of blocks.
        return np.flatnonzero(self.shares) if units is None else self.persons.rows_of(units)
