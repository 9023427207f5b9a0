"""Ranking: listwise losses over lists of documents.

ListwiseSGD          Stochastic gradient descent on noisy sums over Poisson batches of lists
OneReleaseRanking    One noisy sum over the grades, then a public convex problem
PrivBR               Stochastic gradient ascent on the expected NDCG of the top one or two documents
WhitenedLists        Clipped gradient descent over all lists in the metric of their private second
                     moment
RANKING_SOLVERS      Ranking solvers by name
RankingSolver        An algorithm that declares its queries over lists, then makes them
ranking_solver_from  The solver of a user's argument
"""

from hushfit.solvers.ranking._listwise_sgd import ListwiseSGD
from hushfit.solvers.ranking._one_release import OneReleaseRanking
from hushfit.solvers.ranking._privbr import PrivBR
from hushfit.solvers.ranking._registry import (
    RANKING_SOLVERS,
    RankingSolver,
    ranking_solver_from,
)
from hushfit.solvers.ranking._whitened_lists import WhitenedLists

__all__ = [
    "RANKING_SOLVERS",
    "ListwiseSGD",
    "OneReleaseRanking",
    "PrivBR",
    "RankingSolver",
    "WhitenedLists",
    "ranking_solver_from",
]
