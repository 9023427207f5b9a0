"""The one sum through which grades enter listwise cross-entropy. Proof: docs/proofs/ranking.md."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hushfit._arrays import keep_read_only, read_only
from hushfit._typing import IntVector, Matrix, Vector
from hushfit.data import DataSource
from hushfit.data.lists import ListBlock, RankedLists
from hushfit.errors import InvalidArgument
from hushfit.kernels import lists as kernels
from hushfit.privacy import Relation, require_labels
from hushfit.ranking_problem import RankingProblem
from hushfit.release.exact_sum import ExactSum
from hushfit.release.queries._gradient import ARITHMETIC_SLACK
from hushfit.release.query import refuse_batch


def ranked_lists(source: DataSource) -> RankedLists:
    """The source as lists of documents; refuses rows of a table."""
    if not isinstance(source, RankedLists):
        raise InvalidArgument(
            f"{type(source).__name__} holds no lists of documents. Give RankedLists."
        )
    return source


def require_same_documents(problem: RankingProblem, source: RankedLists) -> None:
    """Refuse a source with other documents than those that a bound was computed from."""
    if source.documents is not problem.documents:
        raise InvalidArgument(
            "The lists have other documents than the problem, from which the sensitivity was "
            "computed. Make both from the same documents."
        )


@dataclass(frozen=True, eq=False)
class ListStatistic:
    r"""Sum over lists of :math:`c_j B^T \phi_j^T u_j`, each clipped to norm ``clip``: documents
    centred in their lists, weighted by their gains over the sum of gains.

    The factor of a list is :math:`c_j = \min(1, s / \ell_j)` with a public size of the list: any
    size with clipping, and without the largest distance between two of its documents.

    Parameters
    ----------
    problem : RankingProblem
        With its documents.
    B : array of shape (n_features, size)
        Public metric.
    scale : float
        The s above: lists of at most this size count in full.
    clip : float or None
        Clipping norm of what a list contributes; None for no clipping.
    sizes : array of shape (n_lists,) or None
        Public sizes of the lists; only with clipping, whose bound needs none.
    """

    problem: RankingProblem
    B: Matrix
    scale: float
    clip: float | None = None
    sizes: Vector | None = None

    doubled = None
    sampled: ClassVar[bool] = False
    for_labels: ClassVar[bool] = True
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        keep_read_only(self, "B")  # sizes of lists are computed once
        for name, length in (("scale", self.scale), ("clip", self.clip)):
            if length is not None and not 0 < length < math.inf:
                raise InvalidArgument(f"{name}={length!r} is not a length. Give a positive number.")
        if (self.clip is None) != (self.sizes is None):
            raise InvalidArgument("Give sizes of the lists with clip, and only with it.")

    @staticmethod
    def coordinates(problem: Any) -> int:
        return int(problem.n_features)

    @property
    def size(self) -> int:
        return int(self.B.shape[1])

    @cached_property
    def scales(self) -> Vector:
        """Factor of each list; public."""
        sizes = (
            self.problem.public_documents.diameters(self.B) if self.sizes is None else self.sizes
        )
        return read_only(np.asarray(self.scale / np.maximum(sizes, self.scale)))

    @property
    def weights(self) -> Vector:
        """Scale of each list times its share of its unit; public."""
        shares = self.problem.shares
        return self.scales if shares is None else self.scales * shares

    @property
    def _longest(self) -> float:
        """Bound on the norm of what a unit contributes."""
        return self.scale if self.clip is None else self.clip

    @property
    def _sum(self) -> ExactSum:
        problem = self.problem
        return ExactSum(self._longest, problem.n_units, self.size, problem.rows_per_unit)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)
        lists = ranked_lists(source)
        require_same_documents(self.problem, lists)
        B, scales = self.B.copy(), self.scales.copy()  # loops are compiled for writable arrays
        clip = math.inf if self.clip is None else self.clip

        def of_block(block: ListBlock, grid: float) -> Vector:
            total = np.empty(self.size)
            X, starts = block.documents.X, block.documents.starts
            kernels.label_statistic(
                X, starts, block.lists, block.y, scales, block.shares, B, clip, grid, total
            )
            return total

        return self._sum.over(lists.list_blocks(), (self.size,), of_block)

    def radius(self) -> float:
        # Without clipping, no document is further than D_j from the mean of its list, and a target
        # is a mixture of documents. Shares of a unit's lists add up to at most one.
        return self._longest * (1 + ARITHMETIC_SLACK) + self._sum.rounding

    def sensitivity(self, relation: Relation) -> float:
        require_labels(relation, self.problem.privacy_unit)
        # Clipped: two points of a ball. Otherwise two mixtures of documents at most D_j apart.
        return self.radius() * (1 if self.clip is None else 2)
