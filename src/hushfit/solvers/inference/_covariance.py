"""An estimate and its covariance from the last looks: sampling, noise of the scores, and noise of
the curvature.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.problem import Problem
from hushfit.release import Means, Moments, score_family
from hushfit.solvers.inference._metric import Seen, intercept_direction, total_curvature
from hushfit.solvers.inference._third import Third

COVARIANCES = ("model", "robust")
# Share of the curvature times the squared step that a quadratic approximation leaves out.
_LEFT_OUT = 0.25
# Error of what is estimated of that, as a share of it.
_ESTIMATED = 0.3
# Between these the inverse of the curvature may change in the last step.
_FEWEST, _MOST = 0.5, 2.0
# Eigenvalues of the curvature above so many times the edge of its noise, and so many times the
# largest one, are resolved.
_RESOLVED, _SINGULAR = 0.5, 1e-10
# Share of a mean that clipping counts may take away where it is taken to do nothing.
_UNCLIPPED = 1e-9
# What else could be: weights in a direction that is not resolved give the margins of typical
# records such a variance.
_UNKNOWN_VARIANCE = 2.0


class Look(NamedTuple):
    """What one look saw: the map of records to images, the weights, and the released sums.

    ``unit`` is where residuals were clipped, in units of which scores are measured. ``apart`` is
    the covariance of the weights of looks that were pooled.
    """

    images: Matrix
    w: Vector
    moments: Moments
    unit: float
    apart: Matrix | None = None


@dataclass(frozen=True, eq=False)
class Covariance:
    """Weights of records, and their covariance.

    Parameters
    ----------
    w : array of p entries
    sampling, noise : arrays of shape (p, p)
        Covariance that is there without privacy, and what noise adds.
    unknown : array of shape (p, p)
        Covariance of what the looks say nothing about: directions of weights in which noise hides
        the curvature. There the weights are those before the last step.
    noise_ratio : float
        Edge of the noise of the curvature over its smallest resolved eigenvalue; infinite if none
        is resolved.
    weakest : array of p entries
        Direction of weights in which the curvature is smallest.
    last_step : float
        Root mean square of what the last step adds to the margins of records, weighted by their
        curvature.
    allowance : float
        Variance that is allowed for what the last step leaves out of a score, over that of its
        noise.
    """

    w: Vector
    sampling: Matrix
    noise: Matrix
    unknown: Matrix
    noise_ratio: float
    weakest: Vector
    last_step: float
    allowance: float

    @property
    def total(self) -> Matrix:
        return self.sampling + self.noise + self.unknown


def left_out(step: Vector, curvature: Matrix) -> float:
    """Typical size of what a quadratic approximation leaves out of each entry of the scores.

    The curvature of a record changes by at most its size times the change of the margin, so the
    sum of scores is off by at most half the sum of curvatures times squared changes; typically by
    half of that, in some direction.
    """
    return _LEFT_OUT * float(step @ curvature @ step) / math.sqrt(len(step))


def pooled(looks: Sequence[Look]) -> Look:
    """Looks in one metric as one, weighted by their precision."""
    noise = np.array([look.moments.score_noise for look in looks])
    if not noise.all():  # without noise the last look is the nearest one
        return looks[-1]
    precision = [1 / (look.moments.score_noise**2 + _own_error(look) ** 2) for look in looks]
    weights = np.array(precision) / np.sum(precision)

    def average(values: Sequence[Vector]) -> Vector:
        return np.asarray(np.tensordot(weights, np.array(values), 1))

    def deviation(values: Sequence[float]) -> float:
        return float(np.linalg.norm(weights * np.array(values)))

    seen = [look.moments for look in looks]
    moments = Moments(
        average([one.score for one in seen]),
        average([one.curvature for one in seen]),
        average([one.spread for one in seen]),
        deviation([one.score_noise for one in seen]),
        deviation([one.curvature_noise for one in seen]),
        deviation([one.spread_noise for one in seen]),
    )
    w = average([look.w for look in looks])
    apart = average([np.outer(look.w - w, look.w - w) for look in looks])
    return Look(looks[-1].images, w, moments, looks[-1].unit, apart)


def _own_error(look: Look) -> float:
    """What the quadratic of a look leaves out where its own step leads."""
    seen = Seen(look.moments.curvature / look.unit, look.moments.curvature_noise / look.unit)
    curvature = seen.floored()
    return left_out(np.asarray(np.linalg.solve(curvature, look.moments.score)), curvature)


def covariance(
    look: Look, kind: str, scale: float, constant: float, means: Means | None = None
) -> Covariance:
    """One Newton step from the weights of a look, without what a quadratic approximation leaves
    out, and the covariance of where it leads.

    ``scale`` is the variance of a residual over its curvature if the model holds, ``constant`` the
    last entry of every record, ``means`` the mean of the response if it is not linear.
    """
    p, unit = len(look.w), look.unit
    score, curvature, spread, s, h, _ = look.moments
    seen = Seen(curvature / unit, h / unit)
    total = total_curvature(seen, look.images, constant)
    values, vectors = np.linalg.eigh(seen.matrix)
    resolved = values > max(_RESOLVED * seen.edge, _SINGULAR * float(np.abs(values).max()), 1e-300)
    known, lost = vectors[:, resolved], vectors[:, ~resolved]
    inverse = (known / values[resolved]) @ known.T
    # The mean square of images, weighted by curvature, is the trace over the total.
    typical = max(float(np.trace(seen.matrix)), seen.edge, 1e-300) / total
    unknown = _UNKNOWN_VARIANCE / typical * lost @ lost.T
    step, to_images = -inverse @ score, np.linalg.inv(look.images.T)
    moved = float(np.sqrt(max(float(step @ seen.matrix @ step), 0.0) / total))
    variance = _positive(spread)
    if kind != "robust":
        variance = _at_most(variance, scale * (known * values[resolved]) @ known.T, look)
    # Noise of the curvature turns the step. An estimated step is longer than the true one, on
    # average by its own variance, so that nothing is added for that.
    square = float(step @ step) + float(np.trace(unknown))
    turned = seen.noise**2 / 2 * (square * np.eye(p) + np.outer(step, step) + unknown)
    errors, theta = s**2 * np.eye(p) + turned, to_images @ look.w
    if s == 0:
        bent = np.zeros((p, p))
    elif means is None:
        bent = left_out(step, seen.matrix) ** 2 * np.eye(p)
    else:
        third = Third.of(seen.floored(), look.images, theta, constant, means)
        # The square of the true step: without what noise adds to it. The mean of scores to both
        # sides has its own share of what is left out, in the other direction.
        true = np.outer(step, step) - inverse @ errors @ inverse
        if look.apart is not None:
            true = true - to_images @ look.apart @ to_images.T
        rest = third.along(true) / 2
        step = step - inverse @ rest
        bent = _ESTIMATED**2 * np.outer(rest, rest)
        inverse = _changed(known / np.sqrt(values[resolved]), third.change(step))
    sampling = inverse @ variance @ inverse
    noise = inverse @ (errors + bent) @ inverse
    back = look.images.T
    return Covariance(
        back @ (theta + step),
        back @ sampling @ back.T,
        back @ noise @ back.T,
        back @ unknown @ back.T,
        seen.edge / float(values[resolved][0]) if resolved.any() else np.inf,
        back @ vectors[:, 0],
        moved,
        float(np.trace(bent)) / (p * s**2) if s > 0 else 0.0,
    )


def _changed(root: Matrix, change: Matrix) -> Matrix:
    """The inverse of a curvature that changes on the way, to first order, as the estimate is.

    ``root`` times its transpose is the inverse before.
    """
    shares, turned = np.linalg.eigh(root.T @ change @ root)
    turned = root @ turned
    return np.asarray((turned * (1 - np.clip(shares, 1 - _MOST, 1 - _FEWEST))) @ turned.T)


def model_scale(look: Look, problem: Problem) -> float:
    """Variance of the residuals over their curvature if the model holds, in the units of a look.

    Linear models and clipped counts have an unknown one, which is estimated: weighted by squared
    images, which noise disturbs least; without noise by nothing and over n - p, as is usual.
    """
    family, spread = score_family(problem.loss), look.moments.spread
    if not family.dispersed:
        return 1.0
    curvature = look.moments.curvature / look.unit
    if look.moments.score_noise > 0:
        return max(float(np.trace(spread)), 0.0) / max(float(np.trace(curvature)), 1e-300)
    a = intercept_direction(look.images)
    scale = float(a @ spread @ a) / float(a @ curvature @ a)
    if family.means is None:  # every record of full weight has a curvature of one; others are zero
        used = float(a @ look.moments.curvature @ a) / problem.constant**2
        return scale * used / max(used - problem.dimension, 1)
    # Where no rate of the box comes near the largest count, the variance is the mean.
    top = float(np.abs(look.w[:-1]).sum() + look.w[-1] * problem.constant)
    clipped = family.means.mean(top) * family.unit
    return 1 / family.unit if clipped > (1 - _UNCLIPPED) * math.exp(top) else scale


def _at_most(spread: Matrix, model: Matrix, look: Look) -> Matrix:
    """Variance of the scores of a model that holds: at most ``model``, which is that of records of
    full weight, and less where ``spread`` is smaller by more than its noise.
    """
    values, vectors = np.linalg.eigh(model)
    shown = values > max(_SINGULAR * float(values[-1]), 1e-300)
    if look.moments.score_noise == 0 or not shown.any():  # full weights, or nothing to compare with
        return model
    root = vectors[:, shown] * np.sqrt(values[shown])
    whiten = vectors[:, shown] / np.sqrt(values[shown])
    edge = look.moments.spread_noise * math.sqrt(2 * len(values)) / float(values[shown][0])
    shares, turned = np.linalg.eigh(whiten.T @ spread @ whiten)
    turned = root @ turned
    return np.asarray((turned * np.minimum(shares + edge, 1.0)) @ turned.T)


def _positive(matrix: Matrix) -> Matrix:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
