"""The solver for people who do not want to choose one: a function of public numbers only."""

import math
from collections.abc import Callable
from typing import Any

from hushfit.errors import InvalidArgument, UnknownName
from hushfit.losses import Logistic
from hushfit.penalties import Zero
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.solvers._dpsc import DPSC
from hushfit.solvers._exact import ExactMinimiser
from hushfit.solvers._metric_prox import is_smooth
from hushfit.solvers._mp_admm import MPADMM
from hushfit.solvers._objective import ObjectivePerturbation
from hushfit.solvers._prox_newton import ProxNewton
from hushfit.solvers._proximal import ProximalGradient
from hushfit.solvers._recalibrated import Recalibrated
from hushfit.solvers._run import Solver
from hushfit.solvers._sadmm import DPSADMM
from hushfit.solvers._ss_admm import SSADMM
from hushfit.solvers._vradmm import DPVRADMM
from hushfit.solvers._whitened import WhitenedGradientDescent

# A second moment has d(d+1)/2 noisy entries; beyond this many columns it says too little for its price.
MOST_WHITENED_COLUMNS = 500


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
        return DPSADMM()
    if math.isinf(budget.epsilon):
        return ExactMinimiser()
    if problem.dimension > MOST_WHITENED_COLUMNS:
        return ProximalGradient()
    solver: Solver = WhitenedGradientDescent() if is_smooth(problem) else ProxNewton()
    # With a penalty the length of the weights is part of what was asked for.
    unpenalised = isinstance(problem.penalty, Zero)
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
}


def solver_from(solver: Any, problem: Problem, budget: Budget) -> Solver:
    """The solver that a user's argument stands for: ``"auto"``, another name, or a solver object."""
    if solver == "auto":
        return choose_solver(problem, budget)
    if isinstance(solver, str):
        if solver not in SOLVERS:
            names = ", ".join(repr(name) for name in ("auto", *SOLVERS))
            raise UnknownName(f"solver={solver!r} is not known. Use one of {names}, or an object of hushfit.solvers.")
        return _fit_for(budget, problem, SOLVERS[solver]())
    if not (hasattr(solver, "plan") and hasattr(solver, "iterates")):
        raise InvalidArgument(f"solver={solver!r} is neither a name nor a solver. Use 'auto' or an object of hushfit.solvers.")
    return _fit_for(budget, problem, solver)


def _fit_for(budget: Budget, problem: Problem, solver: Solver) -> Solver:
    """Refuse before anything is paid what would only be refused when it runs, or not at all; settle what the budget decides."""
    if problem.constraint is not None and not isinstance(solver, DPSADMM | DPVRADMM):
        raise InvalidArgument(f"{type(solver).__name__} would ignore the constraint of the problem. Use 'dp-sadmm' or 'dp-vradmm'.")
    if isinstance(solver, ExactMinimiser) and budget.is_private:
        raise InvalidArgument(
            f"solver='exact' stops when the rows tell it to, so it needs epsilon=inf, not {budget.epsilon:g}. Use 'auto'."
        )
    return solver.for_budget(budget) if isinstance(solver, ObjectivePerturbation) else solver
