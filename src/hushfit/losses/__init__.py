r"""Losses: pointwise functions of margin and label, with the constants that privacy proofs use.

HuberHinge  Huberised (smoothed) hinge loss for labels -1 and +1
Logistic    Logistic loss :math:`\log(1 + e^{-y t})` for labels -1 and +1
CanonicalLoss  A loss in which the label enters linearly
LeastSquares   Squared loss of targets in a public range, for relations where features are public
KernelLoss  Code and parameter of a loss in compiled code
Loss        A pointwise loss l(t, y) of a margin ``t`` and a label ``y``
OneVsRest   Sum of K binary losses, the k-th with label +1 for class k and -1 for all others
Poisson     Half the Poisson deviance of counts that are at most ``most``
SaturatingSquares  Squared loss of predictions that stay inside the range of the targets
Softmax     Multinomial logistic loss :math:`\log \sum_k e^{t_k} - t_y` for labels 0, ..., K - 1
Squared     Squared loss :math:`(t - y)^2 / 2` whose slope is clipped
"""

from hushfit.losses._huber_hinge import HuberHinge
from hushfit.losses._least_squares import LeastSquares
from hushfit.losses._logistic import Logistic
from hushfit.losses._loss import CanonicalLoss, KernelLoss, Loss
from hushfit.losses._one_vs_rest import OneVsRest
from hushfit.losses._poisson import Poisson
from hushfit.losses._saturating_squares import SaturatingSquares
from hushfit.losses._softmax import Softmax
from hushfit.losses._squared import Squared

__all__ = [
    "CanonicalLoss",
    "HuberHinge",
    "KernelLoss",
    "LeastSquares",
    "Logistic",
    "Loss",
    "OneVsRest",
    "Poisson",
    "SaturatingSquares",
    "Softmax",
    "Squared",
]
