"""How wide intervals will be, from public numbers: docs/algorithms/inference.md."""

import math

from hushfit.privacy import Budget, by_relation, gaussian_mu
from hushfit.problem import Problem
from hushfit.release import score_family
from hushfit.solvers.inference._feasible import response
from hushfit.solvers.inference._metric import longer_reach, squared_reach
from hushfit.solvers.inference._score_steps import POOLED, RESIDUALS, ScoreSteps


def noise_over_sampling(
    problem: Problem, budget: Budget, robust: bool = False, expected_mean: float | None = None
) -> float:
    """Variance that noise is expected to add to a coefficient, over its sampling variance.

    In the metric of the last looks all coefficients are alike: the ratio is the same for each.
    ``robust`` says whether the model may be wrong, ``expected_mean`` what the responses are on
    average.
    """
    if not budget.is_private:
        return 0.0
    family, n, p = score_family(problem.loss), problem.n_units, problem.dimension
    moved = by_relation(problem.relation, replace_one=family.diameter, add_remove=family.radius)
    noise = moved / gaussian_mu(budget.epsilon, budget.delta)
    shares, square = ScoreSteps().for_budget(budget, problem).shares, squared_reach(p)
    assumed = response(family, expected_mean)
    variance = assumed.variance
    if family.means is None:  # where residuals are clipped follows from a noisy look
        error = 2 * noise / family.factors[1] * square / (n * math.sqrt(p))
        unit = RESIDUALS * math.sqrt(variance + error / math.sqrt(shares[-POOLED - 1]))
        variance = score_family(problem.loss, min(1.0, unit)).usual_variance
    last = noise / math.sqrt(sum(shares[-POOLED:]))
    added = last**2 * square / (n * variance)
    curved = n * assumed.curvature * family.factors[0]
    return added * longer_reach(added, last * math.sqrt(2 * p) * square / curved, robust)


def sampling_deviation(problem: Problem, expected_mean: float | None = None) -> float:
    """Standard error of a coefficient without privacy, times the standard deviation of its column;
    for linear models in standard deviations of the residuals.
    """
    family = score_family(problem.loss)
    if family.means is None:
        return 1 / math.sqrt(problem.n_units)
    assumed = response(family, expected_mean)
    return math.sqrt(assumed.variance / problem.n_units) / assumed.curvature
