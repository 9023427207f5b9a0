r"""Solvers with one release: noise in the objective, on its minimiser, or on statistics.

ClassicObjective       Release the minimiser of mean loss + penalty + :math:`\frac\mu2 \|w\|^2` +
                       noise
ObjectivePerturbation  Release the minimiser of mean loss + penalty + :math:`\frac\mu2 \|w\|^2` +
                       noise
tolerance_for          Tolerance on the gradient norm of a minimiser
OneRelease             Release the label statistic once, for features that are public
TwoReleases            The same, and again with weights that favour rows near the boundary
OutputPerturbation     Release the minimiser of mean loss + penalty + :math:`\frac\mu2 \|w\|^2`,
                       with noise added
SufficientStatistics   A noisy second moment and a noisy gradient at zero
"""

from hushfit.solvers.perturbation._classic_objective import ClassicObjective
from hushfit.solvers.perturbation._objective import ObjectivePerturbation, tolerance_for
from hushfit.solvers.perturbation._one_release import OneRelease
from hushfit.solvers.perturbation._output_perturbation import OutputPerturbation
from hushfit.solvers.perturbation._sufficient_statistics import SufficientStatistics
from hushfit.solvers.perturbation._two_releases import TwoReleases

__all__ = [
    "ClassicObjective",
    "ObjectivePerturbation",
    "OneRelease",
    "OutputPerturbation",
    "SufficientStatistics",
    "TwoReleases",
    "tolerance_for",
]
