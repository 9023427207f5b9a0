"""First-order methods on noisy gradients.

DPAdam            Adam on noisy sums over Poisson batches
DPAGD             Gradient descent that spends more budget on a gradient when no step along it helps
DPSGD             Stochastic proximal gradient descent on noisy sums over Poisson batches
ExactMinimiser    Exact minimiser without privacy
FrankWolfe        Private Frank-Wolfe over an L1 ball
HeavyBall         Descent with momentum in a metric from a private mean record, for many columns
DPBLS             Gradient descent with a private backtracking line search
PermutedSGD       Mini-batch proximal gradient descent with noise on its last iterate only
tidied            Post-processing of released weights by the penalty
GradientAngles    Moving average of the angles between gradients of consecutive steps
SearchNoise       Noise and clipping norms of the next release of an adaptive run
StepSizes         Candidate step sizes and recent choices
angle_between     Angle between two vectors
PrivGene          Genetic search whose selections are private
ProximalGradient  Proximal gradient descent with clipped gradients and momentum
DPSVRG            Variance-reduced stochastic proximal gradient descent
"""

from hushfit.solvers.gradient._dp_adam import DPAdam
from hushfit.solvers.gradient._dp_agd import DPAGD
from hushfit.solvers.gradient._dp_sgd import DPSGD
from hushfit.solvers.gradient._exact_minimiser import ExactMinimiser
from hushfit.solvers.gradient._frank_wolfe import FrankWolfe
from hushfit.solvers.gradient._heavy_ball import HeavyBall
from hushfit.solvers.gradient._line_search import DPBLS
from hushfit.solvers.gradient._permuted_sgd import PermutedSGD, tidied
from hushfit.solvers.gradient._priv_gene import PrivGene
from hushfit.solvers.gradient._proximal import ProximalGradient
from hushfit.solvers.gradient._search_state import (
    GradientAngles,
    SearchNoise,
    StepSizes,
    angle_between,
)
from hushfit.solvers.gradient._svrg import DPSVRG

__all__ = [
    "DPAGD",
    "DPBLS",
    "DPSGD",
    "DPSVRG",
    "DPAdam",
    "ExactMinimiser",
    "FrankWolfe",
    "GradientAngles",
    "HeavyBall",
    "PermutedSGD",
    "PrivGene",
    "ProximalGradient",
    "SearchNoise",
    "StepSizes",
    "angle_between",
    "tidied",
]
