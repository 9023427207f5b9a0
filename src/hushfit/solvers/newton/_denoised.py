"""Denoising of the result of noisy gradient descent: post-processing of releases, at no cost.

A released gradient has noise of known standard deviation. How much of it remains in the weighted
average of the iterates depends on the curvature, and the released gradients show the curvature:
they change as the iterates move. Given the noise of the average, its coordinates are shrunk as far
as their own distribution suggests (empirical Bayes). Where a few stand out from many that look like
noise, the many are shrunk and the few kept; where all look alike, nothing is changed.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hushfit._typing import Matrix, Vector

_CURVATURE_ROUNDS = 4
_MAX_CURVATURE = 0.5
_MIXING_ROUNDS = 200
# Variances of a coordinate without noise, over that of the noise: half octaves, and zero.
_OCTAVES = np.arange(-8, 37) / 2
# Posterior means are used where the mixture makes the coordinates more likely than a single normal
# by this log factor.
_LOG_BAYES_FACTOR_THRESHOLD = 6.0
_MAX_STRETCH = 10.0


@dataclass(frozen=True, eq=False)
class GradientTrajectory:
    """A run of noisy gradient descent with momentum, in flat coordinates; all of it is public.

    ``points`` are where the gradients were taken, ``weights`` those of the iterates in the average,
    ``noise`` the standard deviation of each coordinate of a gradient.
    """

    points: Matrix
    gradients: Matrix
    steps: Vector
    weights: Vector
    momentum: float
    noise: float

    def responses(self, curvature: float) -> tuple[Matrix, Vector]:
        """Response of later points and of the average to unit noise in each gradient (axis 1)."""
        count = len(self.steps)
        at, velocity, average = np.zeros(count), np.zeros(count), np.zeros(count)
        points = np.zeros((count, count))
        for s in range(count):
            points[s] = at + self.momentum * velocity
            gradient = curvature * points[s]
            gradient[s] += 1.0
            velocity = self.momentum * velocity - self.steps[s] * gradient
            at = at + velocity
            average += self.weights[s] * at
        return points, average

    @cached_property
    def curvature(self) -> float:
        """Slope of the gradients along the trajectory, by least squares.

        A point contains the noise of earlier gradients, so centred points and noise are correlated
        as `responses` gives; that part is subtracted.
        """
        centred = self.points - self.points.mean(axis=0)
        spread = float((centred**2).sum())
        if spread == 0.0:
            return 0.0
        seen, found = float((self.gradients * centred).sum()), 0.0
        for _ in range(_CURVATURE_ROUNDS):
            responses, _ = self.responses(found)
            by_noise = -responses.mean(axis=0).sum() * self.noise**2 * self.points.shape[1]
            found = float(np.clip((seen - by_noise) / spread, 0.0, _MAX_CURVATURE))
        return found

    @property
    def average_noise(self) -> float:
        """Standard deviation of each coordinate of the average."""
        _, average = self.responses(self.curvature)
        return self.noise * float(np.linalg.norm(average))


def denoised(z: Vector, noise: float) -> Vector:
    """Coordinates shrunk towards posterior means where these are well supported.

    Unchanged without noise. Uniform shrinkage would only rescale, which other parts of a fit do
    better, so it is undone: the result has the same projection on ``z``.
    """
    energy = float(z @ z)
    if noise == 0.0 or energy == 0.0:
        return z
    means, evidence = posterior_means(z, noise)
    stretch = min(energy / max(float(z @ means), 1e-12 * energy), _MAX_STRETCH)
    posterior_weight = 1 / (
        1
        + np.exp(_LOG_BAYES_FACTOR_THRESHOLD - min(evidence, 2 * _LOG_BAYES_FACTOR_THRESHOLD + 30))
    )
    return np.asarray((1 - posterior_weight) * z + posterior_weight * stretch * means)


def posterior_means(z: Vector, noise: float) -> tuple[Vector, float]:
    """Posterior means under the best mixture of centred normals, and its evidence.

    The evidence is the gain in log-likelihood over the best single normal, under which all
    coordinates shrink alike.
    """
    variances = np.concatenate([[0.0], noise**2 * 2.0**_OCTAVES])
    variances = variances[variances <= max(4 * float((z**2).max()), noise**2)]
    totals = variances + noise**2
    logs = -0.5 * z[:, None] ** 2 / totals - 0.5 * np.log(totals)
    largest = logs.max(axis=1, keepdims=True)
    densities = np.exp(logs - largest)
    shares = np.full(len(variances), 1 / len(variances))
    for _ in range(_MIXING_ROUNDS):
        shares = _memberships(densities, shares).mean(axis=0)
    mixed = float(np.log(densities @ shares).sum() + largest.sum())
    means = z * (_memberships(densities, shares) @ (variances / totals))
    return means, mixed - float(logs.sum(axis=0).max())


def _memberships(densities: Matrix, shares: Vector) -> Matrix:
    """Probability of each component for each coordinate."""
    joint = densities * shares
    memberships: Matrix = joint / joint.sum(axis=1, keepdims=True)
    return memberships
