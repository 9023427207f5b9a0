"""Solvers of networks: they see released answers only.

NetworkAdam          Adam on noisy sums over Poisson batches
NetworkBLS           Gradient descent with a private backtracking line search
NETWORK_SOLVERS      Solvers by their names
network_solver_from  The solver of a name, or as given
NetworkSGD           Stochastic gradient descent on noisy sums over Poisson batches
auto                 The rule that needs no tuning
NetworkSolver        An algorithm for networks that declares its releases, then makes them
State                Everything that a solver knows after some steps
run_network          Run a solver to its end and average its last iterates
"""

from hushfit.torch.solvers._adam import NetworkAdam
from hushfit.torch.solvers._line_search import NetworkBLS
from hushfit.torch.solvers._named import NETWORK_SOLVERS, network_solver_from
from hushfit.torch.solvers._sgd import NetworkSGD, auto
from hushfit.torch.solvers._state import NetworkSolver, State, run_network

__all__ = [
    "NETWORK_SOLVERS",
    "NetworkAdam",
    "NetworkBLS",
    "NetworkSGD",
    "NetworkSolver",
    "State",
    "auto",
    "network_solver_from",
    "run_network",
]
