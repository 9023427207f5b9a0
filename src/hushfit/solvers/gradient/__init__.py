"""First-order methods on noisy gradients.

DPAdam            Adam on noisy sums over Poisson batches
DPAGD             Gradient descent that buys a better gradient whenever no step along the present
                  one seems to help
DPSGD             Stochastic proximal gradient descent on noisy sums over Poisson batches
ExactMinimiser    Preconditioned by the second moment
FrankWolfe        Private Frank-Wolfe over weights whose absolute values add up to ``radius`` at
                  most
DPBLS             Gradient descent whose step sizes are chosen by the rows, behind an
                  above-threshold gate
PermutedSGD       Mini-batch proximal gradient descent with noise on its end only
tidied            Released weights as the penalty would have them
ProximalGradient  Clipped gradient, momentum, prox
DPSVRG            Variance-reduced stochastic proximal gradient descent
"""

from hushfit.solvers.gradient._dp_adam import DPAdam
from hushfit.solvers.gradient._dp_agd import DPAGD
from hushfit.solvers.gradient._dp_sgd import DPSGD
from hushfit.solvers.gradient._exact_minimiser import ExactMinimiser
from hushfit.solvers.gradient._frank_wolfe import FrankWolfe
from hushfit.solvers.gradient._line_search import DPBLS
from hushfit.solvers.gradient._permuted_sgd import PermutedSGD, tidied
from hushfit.solvers.gradient._proximal import ProximalGradient
from hushfit.solvers.gradient._svrg import DPSVRG

__all__ = [
    "DPAGD",
    "DPBLS",
    "DPSGD",
    "DPSVRG",
    "DPAdam",
    "ExactMinimiser",
    "FrankWolfe",
    "PermutedSGD",
    "ProximalGradient",
    "tidied",
]
