"""Solvers: each declares its queries, then works with the noisy answers alone.

admm/            The private ADMM family
gradient/        First-order methods on noisy gradients
inference/       Coefficients with a covariance that covers sampling and noise
newton/          Methods that work in a metric
perturbation/    One release: noise in the objective, on its minimiser, or on sufficient statistics
ranking/         Listwise losses over lists of documents
regression/      Least squares and counts, on records that keep their lengths
wrappers/        Solvers around another solver
load_checkpoint  Read the releases of an interrupted run, for ``Curator(..., replay=...)``
save_checkpoint  Write the releases so far
choose_solver    The default solver for a problem and a budget
MAX_SMOOTH_COLUMNS    Columns up to which the default solver releases a second moment
MAX_WHITENED_COLUMNS  The same for penalties that are not smooth
MAX_MATRIX_COLUMNS    The same for regression
Finishing        A solver whose result is more than the weighted average of its iterates
Iterate          One iterate of a solver, and its weight in the average that becomes the result
Result           Result of a run
Solver           An algorithm that declares its queries, then makes them
finished         The weights that a solver returns
run              Run a solver to its end and average its iterates
SOLVERS          Solvers by name
released_class_shares  Frequencies of the classes by a released count
solver_from      The solver of a user's argument
units_needed     Number of units below which a regression may be worse than one number for all
units_to_tell_classes  The same for a classifier and one class for all
noise_on_mean    Length of the noise on a mean of records, with the whole budget
"""

from hushfit.solvers._checkpoint import load_checkpoint, save_checkpoint
from hushfit.solvers._noise_on_mean import noise_on_mean, units_to_tell_classes
from hushfit.solvers.admm import DPSADMM, DPSC, DPVRADMM, MPADMM, SSADMM
from hushfit.solvers.auto import MAX_SMOOTH_COLUMNS, MAX_WHITENED_COLUMNS, choose_solver
from hushfit.solvers.base import Finishing, Iterate, Result, Solver, finished, run
from hushfit.solvers.gradient import (
    DPAGD,
    DPBLS,
    DPSGD,
    DPSVRG,
    DPAdam,
    ExactMinimiser,
    FrankWolfe,
    HeavyBall,
    PermutedSGD,
    PrivGene,
    ProximalGradient,
)
from hushfit.solvers.newton import DoubleNoiseNewton, ProxNewton, Screening, WhitenedGradientDescent
from hushfit.solvers.perturbation import (
    ClassicObjective,
    ObjectivePerturbation,
    OneRelease,
    OutputPerturbation,
    SufficientStatistics,
    TwoReleases,
    tolerance_for,
)
from hushfit.solvers.registry import SOLVERS, solver_from
from hushfit.solvers.regression import (
    MAX_MATRIX_COLUMNS,
    WhitenedLeastSquares,
    WhitenedPoisson,
    units_needed,
)
from hushfit.solvers.wrappers import (
    Counted,
    PrivateGraph,
    PublicGraph,
    Recalibrated,
    Tempered,
    released_class_shares,
)

__all__ = [
    "DPAGD",
    "DPBLS",
    "DPSADMM",
    "DPSC",
    "DPSGD",
    "DPSVRG",
    "DPVRADMM",
    "MAX_MATRIX_COLUMNS",
    "MAX_SMOOTH_COLUMNS",
    "MAX_WHITENED_COLUMNS",
    "MPADMM",
    "SOLVERS",
    "SSADMM",
    "ClassicObjective",
    "Counted",
    "DPAdam",
    "DoubleNoiseNewton",
    "ExactMinimiser",
    "Finishing",
    "FrankWolfe",
    "HeavyBall",
    "Iterate",
    "ObjectivePerturbation",
    "OneRelease",
    "OutputPerturbation",
    "PermutedSGD",
    "PrivGene",
    "PrivateGraph",
    "ProxNewton",
    "ProximalGradient",
    "PublicGraph",
    "Recalibrated",
    "Result",
    "Screening",
    "Solver",
    "SufficientStatistics",
    "Tempered",
    "TwoReleases",
    "WhitenedGradientDescent",
    "WhitenedLeastSquares",
    "WhitenedPoisson",
    "choose_solver",
    "finished",
    "load_checkpoint",
    "noise_on_mean",
    "released_class_shares",
    "run",
    "save_checkpoint",
    "solver_from",
    "tolerance_for",
    "units_needed",
    "units_to_tell_classes",
]
