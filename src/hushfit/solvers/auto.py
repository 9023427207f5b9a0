"""The solver for people who do not want to choose one: a function of public numbers only."""

import math

from hushfit.losses import Logistic
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.solvers.admm import DPSADMM
from hushfit.solvers.base import Solver
from hushfit.solvers.gradient import ExactMinimiser, ProximalGradient
from hushfit.solvers.newton import ProxNewton, WhitenedGradientDescent
from hushfit.solvers.wrappers import Recalibrated

# A second moment has d(d+1)/2 noisy entries, so with many columns it says little for its price, and
# takes long to draw. For smooth penalties it was still well worth it at 785 columns (images).
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
        Without privacy the exact minimiser. Otherwise whitened gradient descent for smooth
        penalties and the variable-metric prox for others; without a penalty, recalibrated where
        there are probabilities of two classes. Proximal gradient descent for many columns;
        stochastic ADMM where there is a constraint.
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
