"""Coefficients with a covariance that covers both sampling and noise.

ScoreSteps     Newton steps on scores that come with their own covariance
Covariance     Estimate of the weights and the parts of its covariance
COVARIANCES    Names of the kinds of covariance
least_units    Fewest units for which intervals of a model can be given
noise_over_sampling  Variance that noise is expected to add, over the sampling variance
sampling_deviation   Standard error of a coefficient without privacy
"""

from hushfit.solvers.inference._covariance import COVARIANCES, Covariance
from hushfit.solvers.inference._feasible import least_units
from hushfit.solvers.inference._forecast import noise_over_sampling, sampling_deviation
from hushfit.solvers.inference._score_steps import ScoreSteps

__all__ = [
    "COVARIANCES",
    "Covariance",
    "ScoreSteps",
    "least_units",
    "noise_over_sampling",
    "sampling_deviation",
]
