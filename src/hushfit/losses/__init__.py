"""Losses: pointwise functions of margin and label, with the constants that privacy proofs use."""

from hushfit.losses._huber_hinge import HuberHinge
from hushfit.losses._logistic import Logistic
from hushfit.losses._loss import KernelLoss, Loss
from hushfit.losses._one_vs_rest import OneVsRest
from hushfit.losses._softmax import Softmax
from hushfit.losses._squared import Squared

__all__ = ["HuberHinge", "KernelLoss", "Logistic", "Loss", "OneVsRest", "Softmax", "Squared"]
