"""Solvers of networks by their names."""

from collections.abc import Callable
from typing import Any

from hushfit.errors import InvalidArgument, UnknownName
from hushfit.privacy import Budget
from hushfit.torch._network import Network
from hushfit.torch.solvers._adam import NetworkAdam
from hushfit.torch.solvers._line_search import NetworkBLS
from hushfit.torch.solvers._sgd import NetworkSGD, auto
from hushfit.torch.solvers._state import NetworkSolver

NETWORK_SOLVERS: dict[str, Callable[[Budget, Network], NetworkSolver]] = {
    "auto": auto,
    "dp-sgd": lambda budget, network: NetworkSGD(),
    "dp-adam": lambda budget, network: NetworkAdam(),
    "bls": lambda budget, network: NetworkBLS(),
    "bls-cheb": lambda budget, network: NetworkBLS("cheb"),
    "bls-ac": lambda budget, network: NetworkBLS("ac"),
}


def network_solver_from(solver: Any, budget: Budget, network: Network) -> NetworkSolver:
    """The solver of a name, or as given, with its settings chosen for a budget."""
    if isinstance(solver, str):
        if solver not in NETWORK_SOLVERS:
            raise UnknownName(
                f"solver={solver!r} is not known for networks. Use one of "
                f"{', '.join(map(repr, NETWORK_SOLVERS))}, or an object of hushfit.torch.solvers."
            )
        return NETWORK_SOLVERS[solver](budget, network).for_budget(budget, network)
    if isinstance(solver, type) or not callable(getattr(solver, "advance", None)):
        raise InvalidArgument(
            f"solver={solver!r} is no solver of networks. Give a name, or an object such as "
            "hushfit.torch.solvers.NetworkSGD()."
        )
    chosen: NetworkSolver = solver.for_budget(budget, network)
    return chosen
