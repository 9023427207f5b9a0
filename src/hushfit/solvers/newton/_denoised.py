"""What noise did to the result of a walk, and what can be taken back: post-processing of releases,
at no cost.

A released gradient has noise of known size. How much of it reaches the weighted average of a walk
depends on the curvature that pulls the walk back, and the walk itself tells that: its gradients
grow as it moves. Given the noise of the average, its coordinates are shrunk by as much as their own
distribution says (empirical Bayes): where a few stand out from many that look like noise, the many
are put down and the few kept; where all look alike, nothing is changed.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hushfit._typing import Matrix, Vector

_CURVATURE_ROUNDS = 4
_LARGEST_CURVATURE = 0.5
_MIXING_ROUNDS = 200
# Variances that a coordinate may have had without noise, over that of the noise: half octaves, and
# zero.
_OCTAVES = np.arange(-8, 37) / 2
# Coordinates of two kinds are believed where they make what was seen so many times likelier: e to
# the sixth.
_ODDS_AGAINST = 6.0
_LARGEST_STRETCH = 10.0


@dataclass(frozen=True, eq=False)
class Walk:
    """A run of noisy gradient descent with momentum, flat coordinates; public, all of it.

    ``points`` are where the gradients were taken, ``weights`` what each position counts in the
    average, ``noise`` the deviation of each coordinate of a gradient.
    """

    points: Matrix
    gradients: Matrix
    steps: Vector
    weights: Vector
    momentum: float
    noise: float

    def responses(self, curvature: float) -> tuple[Matrix, Vector]:
        """How far a unit of noise in gradient t (second axis) moves each later point, and the
        average.
        """
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
        """Slope of the gradients along the walk, by least squares.

        A point has the noise of earlier gradients in it, so centred points and noise are correlated
        by what `responses` says; that much is taken off.
        """
        centred = self.points - self.points.mean(axis=0)
        spread = float((centred**2).sum())
        if spread == 0.0:
            return 0.0
        seen, found = float((self.gradients * centred).sum()), 0.0
        for _ in range(_CURVATURE_ROUNDS):
            responses, _ = self.responses(found)
            by_noise = -responses.mean(axis=0).sum() * self.noise**2 * self.points.shape[1]
            found = float(np.clip((seen - by_noise) / spread, 0.0, _LARGEST_CURVATURE))
        return found

    @property
    def average_noise(self) -> float:
        """Deviation of each coordinate of the average."""
        _, average = self.responses(self.curvature)
        return self.noise * float(np.linalg.norm(average))


def denoised(z: Vector, noise: float) -> Vector:
    """Coordinates with their noise put down as far as they are evidently of two kinds; unchanged
    without noise.

    Uniform shrinkage would only rescale, which other parts of a fit settle better, so it is undone:
    the result has the same projection on ``z``.
    """
    energy = float(z @ z)
    if noise == 0.0 or energy == 0.0:
        return z
    means, evidence = posterior_means(z, noise)
    stretch = min(energy / max(float(z @ means), 1e-12 * energy), _LARGEST_STRETCH)
    belief = 1 / (1 + np.exp(_ODDS_AGAINST - min(evidence, 2 * _ODDS_AGAINST + 30)))
    return np.asarray((1 - belief) * z + belief * stretch * means)


def posterior_means(z: Vector, noise: float) -> tuple[Vector, float]:
    """Means given ``z``, under the mixture of centred normals that fits it best, and that mixture's
    evidence.

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
