"""Histograms of the values of every column. Proof: docs/proofs/quantiles.md."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hushfit._typing import AnyArray, IntVector, Vector
from hushfit.data import Block, DataSource, whole_shares
from hushfit.data.rows import DenseBlock, SparseBlock
from hushfit.errors import InvalidArgument
from hushfit.privacy import Relation, by_relation
from hushfit.problem import Problem
from hushfit.release.queries._margin_histogram import MAX_BINS, check_bins
from hushfit.release.query import refuse_batch


@dataclass(frozen=True, eq=False)
class ColumnHistogram:
    """Histograms of the values of all columns at once, or of some. A record adds one to one bin of
    each of them, or to none if the value is missing.

    Parameters
    ----------
    edges : tuple of increasing arrays
        Public inner edges of the bins of each column; a bin includes its right edge, and the first
        and the last are unbounded.
    columns : tuple of int, optional
        The columns that the edges are of; without it all of them, in order.
    """

    edges: tuple[Vector, ...]
    columns: tuple[int, ...] | None = None

    doubled = None
    sampled: ClassVar[bool] = False
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = None
    problem: ClassVar[None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return problem.n_features * MAX_BINS

    def __post_init__(self) -> None:
        check_bins(max(len(edges) + 1 for edges in self.edges))

    @property
    def size(self) -> int:
        return sum(len(edges) + 1 for edges in self.edges)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)
        counted = range(source.n_features) if self.columns is None else self.columns
        if len(counted) != len(self.edges):
            raise InvalidArgument(
                f"There are {len(counted)} columns and edges for {len(self.edges)}. Give "
                "edges for each."
            )
        totals = [np.zeros(len(edges) + 1) for edges in self.edges]
        for block in source.blocks():
            shares, one = whole_shares(block.shares, source.n_units)
            for total, edges, (values, weights, zeros) in zip(
                totals, self.edges, _columns(block, shares, counted), strict=True
            ):
                known = ~np.isnan(values)
                bins = np.searchsorted(edges, values[known])
                total += np.bincount(bins, weights[known], minlength=len(total)) / one
                total[np.searchsorted(edges, 0.0)] += zeros / one
        return np.concatenate(totals)

    def by_column(self, answer: Vector) -> list[Vector]:
        """A released answer, split into the counts of each column."""
        return np.split(answer, np.cumsum([len(edges) + 1 for edges in self.edges])[:-1])

    def radius(self) -> float:
        return math.sqrt(len(self.edges))

    def sensitivity(self, relation: Relation) -> float:
        # In each column a replaced record leaves one bin and enters another.
        return self.radius() * by_relation(relation, replace_one=math.sqrt(2), add_remove=1.0)


def _columns(
    block: Block, shares: Vector, counted: Sequence[int]
) -> Iterator[tuple[AnyArray, Vector, float]]:
    """The stored values of some columns with the weights of their rows, and the weight of the rows
    whose zeros are not stored.
    """
    if isinstance(block, DenseBlock):
        weights = np.broadcast_to(shares, len(block.X))
        for column in counted:
            yield block.X[:, column], weights, 0.0
    else:
        by_column = _stored(block).tocsc()
        weights = np.broadcast_to(shares, by_column.shape[0])
        total = float(weights.sum())
        for column in counted:
            stored = slice(by_column.indptr[column], by_column.indptr[column + 1])
            own = weights[by_column.indices[stored]]
            yield by_column.data[stored], own, total - float(own.sum())


def cells_of_block(block: Block) -> AnyArray:
    """The cells of a block as they are in the table."""
    return block.X if isinstance(block, DenseBlock) else _stored(block).toarray()


def _stored(block: Block) -> Any:
    """The cells of sparse rows; refuses rows that are encoded."""
    from scipy.sparse import csr_array  # loaded already wherever sparse rows come from

    if not isinstance(block, SparseBlock):
        raise InvalidArgument(
            f"{type(block).__name__} holds encoded rows, whose ranges are public already. Give "
            "rows in memory."
        )
    data, indices, indptr = block.matrix
    stored = slice(indptr[0], indptr[-1])
    parts = data[stored], indices[stored], indptr - indptr[0]
    return csr_array(parts, shape=(len(block.scale), block.n_features))
