"""Sum over lists of clipped gradients of a listwise loss, and of second moments of their documents.
Proof: docs/proofs/ranking.md.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hushfit._arrays import read_only, symmetric
from hushfit._typing import BoolVector, IntVector, Matrix, Vector
from hushfit.data import DataSource
from hushfit.data.lists import ListBlock
from hushfit.errors import InvalidArgument
from hushfit.kernels import lists as kernels
from hushfit.privacy import Relation, by_relation
from hushfit.ranking_problem import RankingProblem
from hushfit.release.exact_sum import ExactSum
from hushfit.release.queries._gradient import ARITHMETIC_SLACK, Metric
from hushfit.release.queries._list_statistic import ranked_lists
from hushfit.release.query import refuse_batch

NO_MATRIX: Matrix = np.empty((0, 0))
NO_FACTORS: Vector = np.empty(0)


@dataclass(frozen=True, eq=False)
class ListGradient:
    """Sum over the lists of the gradients of their losses, each clipped to norm ``clip``.

    Lists of a linear scorer are centred and scaled to a mean squared length of one, each by itself:
    that changes no order of its documents.

    Parameters
    ----------
    problem : RankingProblem
    weights : array of shape (problem.n_weights,)
        Weights of the scorer; public.
    clip : float
    metric : Metric or None
        Gradients are multiplied by it before they are clipped; the identity when None.
    """

    problem: RankingProblem
    weights: Vector
    clip: float
    metric: Metric | None = None

    doubled = None
    sampled: ClassVar[bool] = True
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        if self.weights.shape != (self.problem.n_weights,):
            raise InvalidArgument(
                f"weights have shape {self.weights.shape}, but the scorer has "
                f"{self.problem.n_weights}."
            )
        if not 0 < self.clip < math.inf:
            raise InvalidArgument(f"clip={self.clip!r} is not a norm. Give a positive number.")

    @staticmethod
    def coordinates(problem: Any) -> int:
        return math.prod(problem.shape)

    @property
    def size(self) -> int:
        return self.problem.n_weights

    @property
    def _sum(self) -> ExactSum:
        problem = self.problem
        return ExactSum(self.clip, problem.n_units, self.size, problem.rows_per_unit)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        A = NO_MATRIX if self.metric is None else self.metric.A.copy()
        return self._sum.over(
            ranked_lists(source).list_blocks(units),
            (self.size,),
            lambda block, grid: gradient_of(
                self.problem, self.weights, block, A, self.clip, NO_FACTORS, grid
            ),
        )

    def radius(self) -> float:
        # Computing and clipping a gradient has relative errors of some hundred operations for each
        # weight; lists are added as wholes.
        slack = max(ARITHMETIC_SLACK, 4 * self.size * 2.0**-53)
        return self.clip * (1 + slack) + self._sum.rounding

    def sensitivity(self, relation: Relation) -> float:
        # Replace-one removes one contribution and adds another; add-remove only removes one.
        return self.radius() * by_relation(relation, replace_one=2, add_remove=1)


def gradient_of(
    problem: RankingProblem,
    weights: Vector,
    block: ListBlock,
    A: Matrix,
    clip: float,
    factors: Vector,
    grid: float,
) -> Vector:
    """Sum of the clipped or rescaled gradients of the lists of a block, on a grid."""
    total = np.empty(problem.n_weights)
    kernels.gradient_sum(
        block.documents.X,
        block.documents.starts,
        block.lists,
        block.y,
        block.shares,
        np.array(weights),  # loops are compiled for writable arrays
        problem.hidden,
        *problem.loss.codes,
        A,
        clip,
        factors,
        grid,
        total,
    )
    return total


@dataclass(frozen=True, eq=False)
class ListSecondMoment:
    r"""Upper triangle of the sum over lists of the covariance of their documents, each list scaled
    to a mean squared length of one.

    A list contributes a positive semidefinite matrix of trace one (or zero, if all its documents
    are equal), so its Frobenius norm is at most one and two of them are at most :math:`\sqrt 2`
    apart.
    """

    problem: RankingProblem

    sampled: ClassVar[bool] = False
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = None

    @staticmethod
    def coordinates(problem: Any) -> int:
        return int(problem.n_features * (problem.n_features + 1) // 2)

    @property
    def size(self) -> int:
        return self.coordinates(self.problem)

    @cached_property
    def doubled(self) -> BoolVector:
        row, column = np.triu_indices(self.problem.n_features)
        off_diagonal: BoolVector = row != column
        return read_only(off_diagonal)  # it determines where the noise variance is halved

    @property
    def _sum(self) -> ExactSum:
        return ExactSum(1.0, self.problem.n_units, self.size, self.problem.rows_per_unit)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)

        def of_block(block: ListBlock, grid: float) -> Vector:
            total = np.empty(self.size)
            X, starts = block.documents.X, block.documents.starts
            kernels.second_moment(X, starts, block.lists, block.shares, grid, total)
            return total

        return self._sum.over(ranked_lists(source).list_blocks(), (self.size,), of_block)

    def matrix(self, answer: Vector) -> Matrix:
        """The symmetric matrix of a released answer."""
        d = self.problem.n_features
        return symmetric(answer, d)

    def radius(self) -> float:
        # Off-diagonal entries count twice in the norm, and so does their rounding.
        return 1.0 + ARITHMETIC_SLACK + math.sqrt(2) * self._sum.rounding

    def sensitivity(self, relation: Relation) -> float:
        # |M - N|^2 = |M|^2 + |N|^2 - 2 <M, N>, and <M, N> >= 0 for positive semidefinite matrices.
        return self.radius() * by_relation(relation, replace_one=math.sqrt(2), add_remove=1.0)
