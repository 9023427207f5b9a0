"""Whether intervals can be given at all, from public numbers: docs/algorithms/inference.md."""

import math
from typing import NamedTuple

from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget, by_relation, gaussian_mu
from hushfit.problem import Problem
from hushfit.release import ScoreFamily, score_family
from hushfit.solvers.inference._metric import squared_reach

# Largest ratio of the noise of the last curvature to the curvature that is expected.
_MOST_RATIO = 0.35
_LAST_SHARE = 0.65


class Response(NamedTuple):
    """What is assumed about the responses: mean curvature and variance of a residual."""

    curvature: float
    variance: float


def response(family: ScoreFamily, mean: float | None = None) -> Response:
    """The usual response, or one of a stated mean: a share of a class, or a count."""
    if mean is None:
        return Response(family.usual_curvature, family.usual_variance)
    if family.means is None:
        raise InvalidArgument(
            f"expected_mean={mean!r}: what intervals of a linear model take does not depend on the "
            "mean. Leave it out."
        )
    if not 0 < mean < family.unit:
        raise InvalidArgument(
            f"expected_mean={mean!r} is not between 0 and {family.unit:g}. Give the share of a "
            "class, or the mean count."
        )
    within = min(mean / family.unit, family.means.largest)
    curvature = family.means.curvature(family.means.margin(within))
    return Response(curvature, curvature / family.unit)


def least_units(problem: Problem, budget: Budget, expected_mean: float | None = None) -> int:
    """Fewest units for which a model of this shape has intervals at this budget.

    A stated mean never makes them fewer than the usual response does: coverage was measured there.
    """
    if not budget.is_private:
        return problem.dimension + 1
    p, family = problem.dimension, score_family(problem.loss)
    mu = gaussian_mu(budget.epsilon, budget.delta)
    moved = by_relation(problem.relation, replace_one=family.diameter, add_remove=family.radius)
    noise = moved / family.factors[0] * squared_reach(p) * math.sqrt(2 * p)
    curvature = min(response(family).curvature, response(family, expected_mean).curvature)
    return math.ceil(noise / (math.sqrt(_LAST_SHARE) * mu * curvature * _MOST_RATIO))
