"""Penalties after the fact: the rounds leave a quadratic, and any penalty can be added to it.

    w(alpha) = argmin of  (w - c) H (w - c) / 2 + alpha penalty(w)

With alpha given, the centre c is the estimate that empirical Bayes has denoised. With
``weight="auto"`` it is the free one, and alpha minimises Stein's unbiased estimate of the error
(SURE), which needs the noise alone. ``weight="select"`` takes an alpha above which noise alone
would hardly ever enter the model. All of it is post-processing.
"""

import math

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.problem import Problem
from hushfit.solvers.regression._metrics import Coordinates
from hushfit.solvers.regression._rounds import Estimate

GIVEN, AUTO, SELECT = "given", "auto", "select"
WEIGHTS = (GIVEN, AUTO, SELECT)
# Weights of the penalty that are tried, over the one at which no column is left.
_PATH = np.geomspace(4.0, 1e-4, 24)


def check_weight(problem: Problem, weight: str) -> None:
    """Refuse, before anything is charged, a penalty whose weight cannot be chosen."""
    penalty = problem.penalty
    chosen_freely = penalty.ridge is not None or (penalty.convex and penalty.separable)
    if weight != GIVEN and not chosen_freely:
        raise InvalidArgument(
            f"alpha={weight!r} can be chosen for convex, separable penalties alone, not for "
            f"{penalty!r}. Give a number."
        )


def penalised(
    problem: Problem, coordinates: Coordinates, estimate: Estimate, weight: str, residual: float
) -> Vector:
    """The weights of records that minimise quadratic and penalty.

    Parameters
    ----------
    problem : Problem
        With ``weight`` other than "given", of a penalty of weight one.
    coordinates : Coordinates
    estimate : Estimate
    weight : {"given", "auto", "select"}
    residual : float
        Standard deviation of the residuals.
    """
    to_weights, penalty = coordinates.whitening.weights, problem.penalty
    # A squared penalty whose weight is chosen is what empirical Bayes is.
    if penalty.ridge == 0 or (weight != GIVEN and penalty.ridge is not None):
        return to_weights(estimate.shrunk)
    if weight == GIVEN:
        return coordinates.penalised(to_weights(estimate.shrunk), 1.0)
    free = to_weights(estimate.start + estimate.free)
    if weight == SELECT:
        return coordinates.penalised(free, _noise_level(problem, coordinates, estimate, residual))
    path, found = [], None
    for alpha in float(np.abs(coordinates.slope_at_zero(free)).max(initial=1e-12)) * _PATH:
        found = coordinates.penalised(free, float(alpha), found)
        path.append((_sure(coordinates, estimate, free, found, float(alpha)), found))
    return min(path, key=lambda pair: pair[0])[1]


def _sure(
    coordinates: Coordinates, estimate: Estimate, free: Vector, found: Vector, alpha: float
) -> float:
    """Stein's unbiased estimate of the squared error, up to a constant."""
    noise = coordinates.information * estimate.noise
    change = float(coordinates.square(found - free).sum())
    return change + 2 * float(noise @ coordinates.response(free, found, alpha))


def _noise_level(
    problem: Problem, coordinates: Coordinates, estimate: Estimate, residual: float
) -> float:
    """Largest of the slopes that noise of the releases and of the rows has at zero weights."""
    d = problem.n_features
    rows = residual**2 / problem.n_units * coordinates.information / coordinates.information.max()
    deviation = coordinates.slope_noise(estimate.noise + rows)
    return math.sqrt(2 * math.log(2 * max(d, 1))) * float(deviation.max())
