"""Features of rows without their labels, for relations under which features are public.

A curator makes them, and only where labels alone are private: docs/adr/0011-label-relation.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hushfit._typing import IntVector, Matrix, Vector
from hushfit.data.rows._persons import Persons

# Records up to so many bytes are kept between passes.
_KEPT_BYTES = 2**28


class PublicBlock(NamedTuple):
    """Some records, with the intercept's entry last: an array or a CSR matrix. ``place`` picks
    their entries of a per-row vector.
    """

    place: slice | IntVector
    records: Any


@dataclass(eq=False)
class PublicRows:
    """Records without labels. They hold no reference to a label.

    Parameters
    ----------
    read : callable
        Returns the records, block by block, in the order of the table.
    n_rows, n_features : int
    persons : Persons or None
        Whose row each is, which is public here; None if every row is its own unit.
    label_factors : array of length n_rows, or of length 1
        What labels are multiplied by: lengths of records where labels shrink with them.
    """

    read: Callable[[], Iterator[PublicBlock]]
    n_rows: int
    n_features: int
    persons: Persons | None
    label_factors: Vector
    _kept: list[PublicBlock] | None = None

    @property
    def n_units(self) -> int:
        return self.n_rows if self.persons is None else self.persons.n_persons

    @property
    def shares(self) -> Vector:
        """Weight of each row; those of a unit's rows add up to at most one."""
        return np.ones(self.n_rows) if self.persons is None else self.persons.shares

    @property
    def units(self) -> IntVector:
        """The unit of each row: the row itself, or its person."""
        return np.arange(self.n_rows) if self.persons is None else self.persons.codes

    def blocks(self) -> Iterator[PublicBlock]:
        """The records, block by block; kept in memory if they are few."""
        if 8 * self.n_rows * (self.n_features + 1) > _KEPT_BYTES:
            yield from self.read()
            return
        if self._kept is None:
            self._kept = list(self.read())
        yield from self._kept

    def per_row(self, of_records: Callable[[Any], Vector]) -> Vector:
        """One number, or several, for each record; zeros for rows that are in no block because
        they are beyond the bound on rows per person.
        """
        found = [(block.place, of_records(block.records)) for block in self.blocks()]
        numbers = np.zeros((self.n_rows, *found[0][1].shape[1:]))
        for place, own in found:
            numbers[place] = own
        return numbers

    def lengths(self, A: Matrix | None = None) -> Vector:
        """Norm of each record, or of the image under ``A`` of its first ``len(A)`` entries."""
        if A is None:
            return self.per_row(_norms)
        return self.per_row(lambda records: _norms(records[:, : len(A)] @ A))

    def margins(self, w: Vector) -> Vector:
        """Inner products of each record with weights: one for each row, or (n_rows, outputs)."""
        return self.per_row(lambda records: np.asarray(records[:, : w.shape[-1]] @ w.T))

    def weighted_sum(self, weights: Vector, width: int) -> Vector:
        """Sum of the records times weights, one for each row or (n_rows, outputs)."""
        total = np.zeros((*weights.shape[1:], width))
        for block in self.blocks():
            total += np.asarray(weights[block.place].T @ block.records[:, :width])
        return total

    def moment(self, weights: Vector, width: int) -> Matrix:
        """Sum of outer products of the records times weights."""
        total = np.zeros((width, width))
        for block in self.blocks():
            records, w = block.records[:, :width], weights[block.place, None]
            if isinstance(records, np.ndarray):
                total += records.T @ (records * w)
            else:
                total += (records.T @ records.multiply(w)).toarray()
        return total


def _norms(records: Any) -> Vector:
    if isinstance(records, np.ndarray):
        squares = np.einsum("ij,ij->i", records, records)
    else:
        squares = np.asarray(records.multiply(records).sum(axis=1)).ravel()
    norms: Vector = np.sqrt(squares)
    return norms
