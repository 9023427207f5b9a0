"""The default solver: chosen from public numbers only."""

import math

from hushfit.losses import Logistic
from hushfit.privacy import Budget, labels_only
from hushfit.problem import Problem
from hushfit.solvers.admm import DPSADMM
from hushfit.solvers.base import Solver
from hushfit.solvers.gradient import ExactMinimiser, ProximalGradient
from hushfit.solvers.newton import ProxNewton, WhitenedGradientDescent
from hushfit.solvers.perturbation import OneRelease
from hushfit.solvers.wrappers import Recalibrated

# A second moment has d(d+1)/2 noisy entries, so with many columns it gives little information for
# its cost, and takes long to draw. For smooth penalties it was still worth its cost at 785 columns
# (images).
MAX_WHITENED_COLUMNS = 500


MAX_SMOOTH_COLUMNS = 1000


def choose_solver(problem: Problem, budget: Budget) -> Solver:
    """The default solver for a problem and a budget.

    Parameters
    ----------
    problem : Problem
    budget : Budget

    Returns
    -------
    Solver
        Where features are public, one release of the label statistic. Without privacy the
        exact minimiser. Otherwise whitened gradient descent for smooth
        penalties and the variable-metric prox for others; without a penalty, recalibrated where
        there are probabilities of two classes. Proximal gradient descent for many columns;
        stochastic ADMM where there is a constraint.
    """
    if labels_only(problem.relation):
        return OneRelease()
    if problem.constraint is not None:
        return DPSADMM().for_budget(budget, problem)
    if math.isinf(budget.epsilon):
        return ExactMinimiser()
    smooth = problem.penalty.ridge is not None
    if problem.dimension > (MAX_SMOOTH_COLUMNS if smooth else MAX_WHITENED_COLUMNS):
        return ProximalGradient()
    solver: Solver = WhitenedGradientDescent() if smooth else ProxNewton()
    # With a penalty the norm of the weights is part of the objective.
    unpenalised = problem.penalty.ridge == 0
    return Recalibrated(solver) if unpenalised and isinstance(problem.loss, Logistic) else solver
