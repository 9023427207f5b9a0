"""Methods that work in a metric: of the curvature, or of a private second moment.

DoubleNoiseNewton        Newton steps from a private gradient and a private curvature
at_least                 The symmetric matrix with eigenvalues below ``floor`` raised to it
ProxNewton               Variable-metric proximal gradient descent
Screening                A few clipped gradient steps without a penalty, for ranking columns
Settings                 Clipping norm, momentum and step sizes, given the noise level
WhitenedGradientDescent  Clipped gradient descent in the metric of a private second moment
"""

from hushfit.solvers.newton._newton import DoubleNoiseNewton, at_least
from hushfit.solvers.newton._prox_newton import ProxNewton
from hushfit.solvers.newton._screening import Screening
from hushfit.solvers.newton._whitened import Settings, WhitenedGradientDescent

__all__ = [
    "DoubleNoiseNewton",
    "ProxNewton",
    "Screening",
    "Settings",
    "WhitenedGradientDescent",
    "at_least",
]
