"""The solver for people who do not want to choose one: a function of public numbers only."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from hushfit._settings import refuse_beyond_floats
from hushfit.errors import InvalidArgument, UnknownName
from hushfit.losses import Logistic
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.solvers._bls import DPBLS
from hushfit.solvers._dp_adam import DPAdam
from hushfit.solvers._dp_agd import DPAGD
from hushfit.solvers._dp_sgd import DPSGD
from hushfit.solvers._dpsc import DPSC
from hushfit.solvers._exact import ExactMinimiser
from hushfit.solvers._frank_wolfe import FrankWolfe
from hushfit.solvers._kifer import ClassicObjective
from hushfit.solvers._mp_admm import MPADMM
from hushfit.solvers._newton import DoubleNoiseNewton
from hushfit.solvers._objective import ObjectivePerturbation
from hushfit.solvers._output import OutputPerturbation
from hushfit.solvers._prox_newton import ProxNewton
from hushfit.solvers._proximal import ProximalGradient
from hushfit.solvers._recalibrated import Recalibrated
from hushfit.solvers._rsgd import PermutedSGD
from hushfit.solvers._run import Solver, settled
from hushfit.solvers._sadmm import DPSADMM
from hushfit.solvers._ss_admm import SSADMM
from hushfit.solvers._ssp import SufficientStatistics
from hushfit.solvers._svrg import DPSVRG
from hushfit.solvers._vradmm import DPVRADMM
from hushfit.solvers._whitened import WhitenedGradientDescent

# A second moment has d(d+1)/2 noisy entries, so with many columns it says little for its price, and takes long to draw. For
# smooth penalties it was still well worth it at 785 columns (images).
MOST_WHITENED_COLUMNS = 500
MOST_SMOOTH_COLUMNS = 1000


def choose_solver(problem: Problem, budget: Budget) -> Solver:
    """The best rule known for a problem and a budget.

    Parameters
    ----------
    problem : Problem
    budget : Budget

    Returns
    -------
    Solver
        Without privacy the exact minimiser. Otherwise whitened gradient descent for smooth penalties and the
        variable-metric prox for others; without a penalty, recalibrated where there are probabilities of two classes.
        Proximal gradient descent for many columns; stochastic ADMM where there is a constraint.
    """
    if problem.constraint is not None:
        return DPSADMM().for_budget(budget, problem)
    if math.isinf(budget.epsilon):
        return ExactMinimiser()
    smooth = problem.penalty.ridge is not None
    if problem.dimension > (MOST_SMOOTH_COLUMNS if smooth else MOST_WHITENED_COLUMNS):
        return ProximalGradient()
    solver: Solver = WhitenedGradientDescent() if smooth else ProxNewton()
    # With a penalty the length of the weights is part of what was asked for.
    unpenalised = problem.penalty.ridge == 0
    return Recalibrated(solver) if unpenalised and isinstance(problem.loss, Logistic) else solver


SOLVERS: dict[str, Callable[[], Solver]] = {
    "whitened-gd": WhitenedGradientDescent,
    "prox-newton": ProxNewton,
    "proximal-gd": ProximalGradient,
    "exact": ExactMinimiser,
    "ss-admm": SSADMM,
    "mp-admm": MPADMM,
    "objective": ObjectivePerturbation,
    "dpsc": DPSC,
    "dp-sadmm": DPSADMM,
    "dp-vradmm": DPVRADMM,
    "dp-sgd": DPSGD,
    "dp-adam": DPAdam,
    "dp-svrg": DPSVRG,
    "newton": DoubleNoiseNewton,
    "frank-wolfe": FrankWolfe,
    "objective-kifer": ClassicObjective,
    "ssp": SufficientStatistics,
    "rsgd-ar": PermutedSGD,
    "nsgd": partial(PermutedSGD, schedule="constant", restart=None, order=0),
    "outpert-gd": partial(PermutedSGD, schedule="constant", restart=None, batches=1),
    "output": OutputPerturbation,
    "bls": DPBLS,
    "dp-agd": DPAGD,
}


_MEMBERS = ("takes_constraint", "plan", "iterates")


def solver_from(solver: Any, problem: Problem, budget: Budget) -> Solver:
    """The solver that a user's argument stands for: ``"auto"``, another name, or a solver object."""
    if solver == "auto":
        return choose_solver(problem, budget)
    if isinstance(solver, str):
        if solver not in SOLVERS:
            names = ", ".join(repr(name) for name in ("auto", *SOLVERS))
            raise UnknownName(f"solver={solver!r} is not known. Use one of {names}, or an object of hushfit.solvers.")
        return _fit_for(budget, problem, SOLVERS[solver]())
    missing = [name for name in _MEMBERS if not hasattr(solver, name)]
    if missing:
        raise InvalidArgument(
            f"solver={solver!r} is neither a name nor a solver: it does not declare {', '.join(missing)}. "
            "Use 'auto', an object of hushfit.solvers, or a class with all members of solvers.Solver."
        )
    refuse_beyond_floats(solver)
    return _fit_for(budget, problem, solver)


def _fit_for(budget: Budget, problem: Problem, solver: Solver) -> Solver:
    """Refuse before anything is paid what would only be refused when it runs, or not at all; settle what the budget decides."""
    if problem.constraint is not None and not solver.takes_constraint:
        raise InvalidArgument(f"{type(solver).__name__} would ignore the constraint of the problem. Use 'dp-sadmm' or 'dp-vradmm'.")
    return settled(solver, budget, problem)
