"""Ranking solvers by name, and the solver of a user's argument."""

from collections.abc import Callable
from typing import Any, Final, Protocol, runtime_checkable

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument, UnknownName
from hushfit.privacy import labels_only
from hushfit.ranking_problem import RankingProblem
from hushfit.release import Door, Plan
from hushfit.solvers.base import Watch
from hushfit.solvers.ranking._listwise_sgd import ListwiseSGD
from hushfit.solvers.ranking._one_release import OneReleaseRanking
from hushfit.solvers.ranking._privbr import PrivBR
from hushfit.solvers.ranking._whitened_lists import WhitenedLists


@runtime_checkable
class RankingSolver(Protocol):
    """An algorithm that declares its queries over lists, then makes them."""

    def plan(self, problem: RankingProblem) -> Plan:
        """All releases it will make, independent of the answers."""

    def solve(self, problem: RankingProblem, door: Door, watch: Watch | None = None) -> Vector:
        """Make the releases; the weights of the scorer."""


RANKING_SOLVERS: Final[dict[str, Callable[[], RankingSolver]]] = {
    "one-release": OneReleaseRanking,
    "privbr": PrivBR,
    "whitened-lists": WhitenedLists,
    "listwise-sgd": ListwiseSGD,
}


def ranking_solver_from(solver: Any, problem: RankingProblem) -> RankingSolver:
    """The solver of a user's argument: ``"auto"``, another name, or a solver object."""
    if isinstance(solver, str):
        if solver == "auto":
            return _default(problem)
        if solver not in RANKING_SOLVERS:
            names = ", ".join(repr(name) for name in ("auto", *RANKING_SOLVERS))
            raise UnknownName(f"solver={solver!r} is not known. Use one of {names}.")
        return RANKING_SOLVERS[solver]()
    if not isinstance(solver, RankingSolver):
        raise InvalidArgument(
            f"solver={solver!r} is neither a name nor a ranking solver. Use 'auto', or an object "
            "of hushfit.solvers.ranking."
        )
    return solver


def _default(problem: RankingProblem) -> RankingSolver:
    if labels_only(problem.relation):
        if problem.loss.name == "listmle":
            raise InvalidArgument(
                "loss='listmle' reads the order of all grades in every step, which has no bound "
                "from public documents. Use loss='listnet', or unit='list', which protects "
                "documents too."
            )
        return PrivBR() if problem.loss.name == "bayesrank" else OneReleaseRanking()
    return ListwiseSGD() if problem.hidden else WhitenedLists()
