"""Gradient of expected NDCG with public documents and private grades. Proof:
docs/proofs/ranking.md.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hushfit._typing import IntVector, Matrix, Vector
from hushfit.data import DataSource
from hushfit.data.lists import DIAMETER_SLACK, Documents, ListBlock
from hushfit.errors import InvalidArgument
from hushfit.kernels import lists as kernels
from hushfit.privacy import Relation, require_labels
from hushfit.ranking_problem import RankingProblem
from hushfit.release.exact_sum import ExactSum
from hushfit.release.queries._gradient import ARITHMETIC_SLACK
from hushfit.release.queries._list_gradient import NO_MATRIX, gradient_of
from hushfit.release.queries._list_statistic import ranked_lists, require_same_documents

# Bound on the rounding error of a derivative by a score, for each document of its list: terms of at
# most one are added up.
ABSOLUTE_ERROR = 1e-12
_UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True, eq=False)
class BayesRankGradient:
    r"""Sum over the lists of :math:`w_j \partial L_j`, where minus :math:`L_j` is the expected NDCG
    of the top documents of a list.

    Grades enter through one number between 0 and 1 for each document; the rest of the gradient is
    public. So is the largest norm :math:`R_j` that a list's gradient can have, whatever its grades,
    and the weight :math:`w_j = \min(1, C / R_j)`.

    Parameters
    ----------
    problem : RankingProblem
        With the loss ``"bayesrank"`` and its documents.
    weights : array of shape (problem.n_weights,)
        Weights of the scorer; public.
    bound : float
        The C of the weights: the same for every batch.
    """

    problem: RankingProblem
    weights: Vector
    bound: float

    doubled = None
    sampled: ClassVar[bool] = True
    for_labels: ClassVar[bool] = True
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        if self.problem.loss.name != "bayesrank":
            raise InvalidArgument(
                f"loss={self.problem.loss.name!r} is not bounded by expected NDCG. Use 'bayesrank'."
            )
        if not 0 < self.bound < math.inf:
            raise InvalidArgument(f"bound={self.bound!r} is not a norm. Give a positive number.")

    @staticmethod
    def coordinates(problem: Any) -> int:
        return math.prod(problem.shape)

    @property
    def size(self) -> int:
        return self.problem.n_weights

    @property
    def _sum(self) -> ExactSum:
        problem = self.problem
        return ExactSum(self.bound, problem.n_units, self.size, problem.rows_per_unit)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        lists = ranked_lists(source)
        require_same_documents(self.problem, lists)

        def of_block(block: ListBlock, grid: float) -> Vector:
            factors = np.zeros(block.documents.n_lists)
            norms = gradient_norms(self.problem, self.weights, block.lists)
            factors[block.lists] = self.bound / np.maximum(norms, self.bound)
            return gradient_of(self.problem, self.weights, block, NO_MATRIX, 0.0, factors, grid)

        return self._sum.over(lists.list_blocks(units), (self.size,), of_block)

    def radius(self) -> float:
        slack = max(ARITHMETIC_SLACK, 4 * self.size * 2.0**-53)
        return self.bound * (1 + slack) + self._sum.rounding

    def sensitivity(self, relation: Relation) -> float:
        require_labels(relation, self.problem.privacy_unit)
        # Replaced grades move a list's gradient between two points of a ball, and a batch without
        # the list has its centre: as in replace-one (docs/proofs/poisson.md).
        return 2 * self.radius()


def gradient_norms(problem: RankingProblem, weights: Vector, lists: IntVector) -> Vector:
    """Bounds on the norms of the gradients of lists, over all grades; public."""
    documents, own = problem.public_documents, np.array(weights)  # compiled for writable arrays
    norms = [_norm_of(problem, own, documents, int(j)) for j in lists]
    return np.array(norms) * (1 + DIAMETER_SLACK)


def _norm_of(problem: RankingProblem, weights: Vector, documents: Documents, j: int) -> float:
    F = documents.features_of(j, centred=problem.hidden == 0)
    scores, gram = scores_and_gram(F, weights, problem.hidden)
    Q = np.empty((len(F), len(F)))
    kernels.utility_slopes(scores, problem.loss.depth, Q)
    K = Q @ gram @ Q.T  # inner products of the gradients of single utilities
    if not np.isfinite(K).all():
        return math.inf
    longest, reach = float(gram.diagonal().max()), np.abs(Q).sum(axis=1)
    error = ABSOLUTE_ERROR * len(F) * math.sqrt(longest)
    # Entries of K may be tiny sums of large terms. Their rounding errors are in proportion to the
    # terms: without these, a list of documents that hardly differ would have no bound at all.
    operations = 2 * (2 * len(F) + F.shape[1] + problem.hidden + 10)
    rounding = operations * _UNIT_ROUNDOFF * longest
    if problem.loss.target != "all":
        # A mixture of them, or one of them, or zero.
        return math.sqrt(max(float((K.diagonal() + rounding * reach**2).max()), 0.0)) + error
    # They add up to zero, so utilities in [0, 1] may be taken to lie in [-1/2, 1/2].
    most = min(float(np.abs(K).sum()), len(F) * float(np.linalg.eigvalsh(K)[-1]))
    most += rounding * len(F) * float(reach @ reach)
    return 0.5 * math.sqrt(max(most, 0.0)) + error


def scores_and_gram(F: Matrix, weights: Vector, hidden: int) -> tuple[Vector, Matrix]:
    """Scores of the documents of a list, and the inner products of their derivatives by all
    weights.
    """
    # By the code that computes gradients: the bound is about these scores and active units.
    units, scores = np.empty((len(F), hidden)), np.empty(len(F))
    kernels.list_scores(F, weights, hidden, units, scores)
    if hidden == 0:
        return scores, F @ F.T
    outer = weights[(F.shape[1] + 1) * hidden :]
    values, slopes = np.maximum(units, 0.0), (units > 0) * outer
    # Derivatives: of the inner weights, slope x document; of the thresholds, slope; of the outer
    # weights, value.
    return scores, (F @ F.T + 1.0) * (slopes @ slopes.T) + values @ values.T
