"""Solvers: each says what it will ask of the rows, then works with the noisy answers alone."""

from hushfit.solvers._auto import SOLVERS, choose_solver, solver_from
from hushfit.solvers._bls import DPBLS
from hushfit.solvers._checkpoint import load_checkpoint, save_checkpoint
from hushfit.solvers._dp_adam import DPAdam
from hushfit.solvers._dp_agd import DPAGD
from hushfit.solvers._dp_sgd import DPSGD
from hushfit.solvers._dpsc import DPSC
from hushfit.solvers._exact import ExactMinimiser
from hushfit.solvers._frank_wolfe import FrankWolfe
from hushfit.solvers._kifer import ClassicObjective
from hushfit.solvers._mp_admm import MPADMM
from hushfit.solvers._newton import DoubleNoiseNewton
from hushfit.solvers._objective import ObjectivePerturbation, tolerance_for
from hushfit.solvers._output import OutputPerturbation
from hushfit.solvers._private_graph import PrivateGraph, PublicGraph
from hushfit.solvers._prox_newton import ProxNewton
from hushfit.solvers._proximal import ProximalGradient
from hushfit.solvers._recalibrated import Recalibrated
from hushfit.solvers._rsgd import PermutedSGD
from hushfit.solvers._run import Finishing, Iterate, Result, Solver, finished, run
from hushfit.solvers._sadmm import DPSADMM
from hushfit.solvers._screening import Screening
from hushfit.solvers._ss_admm import SSADMM
from hushfit.solvers._ssp import SufficientStatistics
from hushfit.solvers._svrg import DPSVRG
from hushfit.solvers._vradmm import DPVRADMM
from hushfit.solvers._whitened import WhitenedGradientDescent

__all__ = [
    "DPAGD",
    "DPBLS",
    "DPSADMM",
    "DPSC",
    "DPSGD",
    "DPSVRG",
    "DPVRADMM",
    "MPADMM",
    "SOLVERS",
    "SSADMM",
    "ClassicObjective",
    "DPAdam",
    "DoubleNoiseNewton",
    "ExactMinimiser",
    "Finishing",
    "FrankWolfe",
    "Iterate",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "PermutedSGD",
    "PrivateGraph",
    "ProxNewton",
    "ProximalGradient",
    "PublicGraph",
    "Recalibrated",
    "Result",
    "Screening",
    "Solver",
    "SufficientStatistics",
    "WhitenedGradientDescent",
    "choose_solver",
    "finished",
    "load_checkpoint",
    "run",
    "save_checkpoint",
    "solver_from",
    "tolerance_for",
]
