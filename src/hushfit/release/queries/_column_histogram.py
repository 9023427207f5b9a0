"""Histograms of the values of every column. Proof: docs/proofs/quantiles.md."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

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
    """Histograms of the values of all columns at once. A record adds one to one bin of each column,
    or to none if the value is missing.

    Parameters
    ----------
    edges : tuple of increasing arrays
        Public inner edges of the bins of each column; a bin includes its right edge, and the first
        and the last are unbounded.
    """

    edges: tuple[Vector, ...]

    doubled = None
    sampled: ClassVar[bool] = False
    for_labels: ClassVar[bool] = False
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
        if source.n_features != len(self.edges):
            raise InvalidArgument(
                f"There are {source.n_features} columns and edges for {len(self.edges)}. Give "
                "edges for each."
            )
        totals = [np.zeros(len(edges) + 1) for edges in self.edges]
        for block in source.blocks():
            shares, one = whole_shares(block.shares, source.n_units)
            for total, edges, (values, weights, zeros) in zip(
                totals, self.edges, _columns(block, shares), strict=True
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


def _columns(block: Block, shares: Vector) -> Iterator[tuple[AnyArray, Vector, float]]:
    """The stored values of each column with the weights of their rows, and the weight of the rows
    whose zeros are not stored.
    """
    if isinstance(block, DenseBlock):
        weights = np.broadcast_to(shares, len(block.X))
        for column in block.X.T:
            yield column, weights, 0.0
    elif isinstance(block, SparseBlock):
        from scipy.sparse import csr_array  # loaded already wherever sparse rows come from

        stored = slice(block.indptr[0], block.indptr[-1])
        shape = (len(block.scale), block.n_features)
        by_column = csr_array(
            (block.data[stored], block.indices[stored], block.indptr - block.indptr[0]), shape=shape
        ).tocsc()
        weights = np.broadcast_to(shares, shape[0])
        total = float(weights.sum())
        for start, stop in zip(by_column.indptr[:-1], by_column.indptr[1:], strict=True):
            own = weights[by_column.indices[start:stop]]
            yield by_column.data[start:stop], own, total - float(own.sum())
    else:
        raise InvalidArgument(
            f"{type(block).__name__} holds encoded rows, whose ranges are public already. Give "
            "rows in memory."
        )
