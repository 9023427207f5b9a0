"""Whether intervals can be given at all, from public numbers: docs/algorithms/inference.md."""

import math

from hushfit.privacy import Budget, by_relation, gaussian_mu
from hushfit.problem import Problem
from hushfit.release import score_family
from hushfit.solvers.inference._metric import squared_reach

# Largest ratio of the noise of the last curvature to the curvature that is expected.
_MOST_RATIO = 0.35
_LAST_SHARE = 0.65


def least_units(problem: Problem, budget: Budget) -> int:
    """Fewest units for which a model of this shape has intervals at this budget."""
    if not budget.is_private:
        return problem.dimension + 1
    p, family = problem.dimension, score_family(problem.loss)
    mu = gaussian_mu(budget.epsilon, budget.delta)
    moved = by_relation(problem.relation, replace_one=family.diameter, add_remove=family.radius)
    noise = moved / family.factors[0] * squared_reach(p) * math.sqrt(2 * p)
    return math.ceil(noise / (math.sqrt(_LAST_SHARE) * mu * family.usual_curvature * _MOST_RATIO))
