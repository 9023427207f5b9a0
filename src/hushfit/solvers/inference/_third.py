"""What a quadratic approximation of the loss leaves out, estimated from what has been released.

The third derivative of a sum of losses is the sum of c' t t t: c is the curvature of a record, c'
its derivative, t its image. What is known of the images is their mean and covariance when each
weighs its curvature: the curvature of the sum and its column of the intercept. Here they are taken
to be normal. Then the margin is normal too, an image is linear in it but for a part that is
independent of it, and one integral over the margin remains.
"""

from dataclasses import dataclass

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.release import Means
from hushfit.solvers.inference._metric import intercept_direction

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
# Margins are taken to be no larger, and derivatives are differences over such a step.
_LARGEST, _STEP = 15.0, 1e-3


@dataclass(frozen=True, eq=False)
class Third:
    """The third derivative of a sum of losses, where ``weights`` is the sum of c' at each node of
    the margin, ``means`` are the images expected there, and ``rest`` is the covariance of what
    does not depend on the margin.
    """

    weights: Vector
    means: Matrix
    rest: Matrix

    @classmethod
    def of(
        cls, curvature: Matrix, images: Matrix, theta: Vector, constant: float, means: Means
    ) -> "Third":
        """From a positive curvature at the weights ``theta`` of images."""
        a = intercept_direction(images) / constant
        total = float(a @ curvature @ a)
        mean = curvature @ a / total
        covariance = curvature / total - np.outer(mean, mean)
        spread = float(np.sqrt(max(float(theta @ covariance @ theta), 1e-300)))
        along = covariance @ theta / spread
        margins = np.clip(mean @ theta + spread * _NODES, -_LARGEST, _LARGEST)
        slopes = np.array([_relative_slope(means, margin) for margin in margins])
        rest = covariance - np.outer(along, along)
        return cls(total * _WEIGHTS * slopes, mean + np.outer(_NODES, along), rest)

    def along(self, square: Matrix) -> Vector:
        """The derivative applied to a symmetric matrix, such as the outer product of a step."""
        means, rest = self.means, self.rest
        squares = np.einsum("ni,ij,nj->n", means, square, means) + np.sum(square * rest)
        return np.asarray(
            (self.weights * squares) @ means + 2 * rest @ (square @ (self.weights @ means))
        )

    def change(self, step: Vector) -> Matrix:
        """The derivative applied to a step: how much the curvature changes."""
        means, rest, weights = self.means, self.rest, self.weights * (self.means @ step)
        cross = np.outer(self.weights @ means, rest @ step)
        return np.asarray((means.T * weights) @ means + weights.sum() * rest + cross + cross.T)


def _relative_slope(means: Means, margin: float) -> float:
    """Derivative of the curvature over the curvature; from -1 to 1, as it is where counts are
    hardly clipped.
    """
    low, middle, high = (means.curvature(margin + step) for step in (-_STEP, 0.0, _STEP))
    return float(np.clip((high - low) / (2 * _STEP * max(middle, 1e-300)), -1.0, 1.0))
