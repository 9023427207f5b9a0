"""The default solver: chosen from public numbers only."""

import math

from hushfit.losses import Logistic, Poisson
from hushfit.privacy import Budget, labels_only
from hushfit.problem import Problem
from hushfit.release import LineDerivative, RecordScaling
from hushfit.solvers.admm import DPSADMM
from hushfit.solvers.base import Solver
from hushfit.solvers.gradient import ExactMinimiser, HeavyBall
from hushfit.solvers.newton import ProxNewton, WhitenedGradientDescent
from hushfit.solvers.perturbation import OneRelease, TwoReleases
from hushfit.solvers.regression import WhitenedLeastSquares, WhitenedPoisson
from hushfit.solvers.wrappers import Recalibrated, Tempered

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
        Where features are public, one release of the label statistic; two for two classes without
        a penalty. On records that keep their lengths, private least squares or Poisson regression.
        Without privacy the exact minimiser. Otherwise whitened gradient descent for smooth
        penalties and the variable-metric prox for others, and heavy-ball descent for many columns;
        without a penalty, calibrated where there are probabilities. Stochastic ADMM where there is
        a constraint.

    Examples
    --------
    >>> from hushfit import Budget, Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import choose_solver
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> choose_solver(problem, Budget(1.0, 1e-6))
    WhitenedGradientDescent(steps=60, moment_share=0.1)
    """
    if labels_only(problem.relation):
        refits = isinstance(problem.loss, Logistic) and problem.penalty.ridge == 0
        return TwoReleases() if refits and budget.is_private else OneRelease()
    if problem.constraint is not None:
        return DPSADMM().for_budget(budget, problem)
    if problem.scaling is RecordScaling.BOUNDED:
        chosen = WhitenedPoisson() if isinstance(problem.loss, Poisson) else WhitenedLeastSquares()
        return chosen.for_budget(budget, problem)
    if math.isinf(budget.epsilon):
        return ExactMinimiser()
    smooth = problem.penalty.ridge is not None
    solver: Solver
    if problem.dimension > (MAX_SMOOTH_COLUMNS if smooth else MAX_WHITENED_COLUMNS):
        solver = HeavyBall().for_budget(budget, problem)
    else:
        solver = WhitenedGradientDescent() if smooth else ProxNewton()
    # With a penalty the norm of the weights is part of the objective.
    return _calibrated(solver, problem, budget) if problem.penalty.ridge == 0 else solver


def _calibrated(solver: Solver, problem: Problem, budget: Budget) -> Solver:
    """A solver whose probabilities are calibrated, for losses that have probabilities."""
    if problem.outputs == 1:
        return Recalibrated(solver) if isinstance(problem.loss, Logistic) else solver
    takes = LineDerivative.takes(problem.loss)
    return Tempered.for_budget_of(solver, budget, problem) if takes else solver
