"""A gradient and a matrix of second moments in one release: no pair of records attains both
sensitivities at once. Proof: docs/proofs/joint.md.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from hushfit._arrays import read_only
from hushfit._typing import BoolVector, IntVector, Matrix, Vector
from hushfit.data import AT_MOST_ONE, DataSource, RecordScaling
from hushfit.errors import InvalidArgument
from hushfit.privacy import Relation, by_relation
from hushfit.problem import Problem
from hushfit.release.queries._gradient import ClippedGradient
from hushfit.release.queries._hessian import HessianSum
from hushfit.release.queries._second_moment import SecondMoment
from hushfit.release.query import refuse_batch

_UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True, eq=False)
class GradientWithMoment:
    r"""The sum of clipped gradients and a second moment or Hessian of the same records,
    concatenated.

    Each is divided by its sensitivity and multiplied by the square root of its share, so that the
    same noise standard deviation fits both. Under replace-one the two do not attain their
    sensitivities together: gradients are furthest apart for opposite records and matrices for
    orthogonal ones.

    Parameters
    ----------
    gradient : ClippedGradient
        Without a metric.
    moment : SecondMoment or HessianSum
        Of the same problem.
    share : float
        Share of the matrix in the budget (in mu squared), between 0 and 1; the gradient has the
        rest.
    """

    gradient: ClippedGradient
    moment: SecondMoment | HessianSum
    share: float

    sampled: ClassVar[bool] = False
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = True
    made_for: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        if (
            self.gradient.metric is not None
            or self.gradient.problem is not self.moment.problem
            or not 0 < self.share < 1
        ):
            raise InvalidArgument(
                "A gradient and its moment need one problem, no metric, and a share between 0 and "
                "1."
            )

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return math.prod(problem.shape) + SecondMoment.coordinates(problem)

    @property
    def problem(self) -> Problem:
        return self.gradient.problem

    @property
    def size(self) -> int:
        return self.gradient.size + self.moment.size

    @cached_property
    def doubled(self) -> BoolVector:
        return read_only(
            np.concatenate([np.zeros(self.gradient.size, dtype=np.bool_), self.moment.doubled])
        )

    @property
    def largest_curvature(self) -> float:
        """Largest factor of one record's outer product."""
        return self.problem.loss.smoothness if isinstance(self.moment, HessianSum) else 1.0

    @cached_property
    def weights(self) -> tuple[float, float]:
        """Factors of gradient and matrix."""
        factors = by_relation(
            self.problem.relation, replace_one=(2.0, math.sqrt(2)), add_remove=(1.0, 1.0)
        )
        return (
            math.sqrt(1 - self.share) / (factors[0] * self.gradient.clip),
            math.sqrt(self.share) / (factors[1] * self.largest_curvature),
        )

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)
        a, b = self.weights
        return np.concatenate([a * self.gradient(source, None), b * self.moment(source, None)])

    def split(self, answer: Vector) -> tuple[Vector, Matrix]:
        """The sum of gradients and the symmetric matrix of a released answer."""
        a, b = self.weights
        k = self.gradient.size
        return (answer[:k] / a).reshape(self.problem.shape), self.moment.matrix(answer[k:] / b)

    def moment_deviation(self, multiplier: float) -> float:
        """Standard deviation of the noise on a diagonal entry of the matrix."""
        return multiplier * self.sensitivity(self.problem.relation) / self.weights[1]

    def radius(self) -> float:
        a, b = self.weights
        return math.hypot(a * self.gradient.radius(), b * self.moment.radius())

    def sensitivity(self, relation: Relation) -> float:
        a, b = self.weights
        gradient, moment = a * self.gradient.clip, b * self.largest_curvature
        exact = by_relation(
            relation,
            replace_one=self._replaced(gradient, moment),
            add_remove=math.hypot(gradient, moment),
        )
        # Rounding error of a computed contribution, on each table, and of multiplying the sums by
        # their weights.
        rounding = a * (self.gradient.radius() - self.gradient.clip) + b * (
            self.moment.radius() - self.largest_curvature
        )
        return (
            exact * (1 + 1e-12)
            + 2 * rounding
            + 2 * _UNIT_ROUNDOFF * self.problem.n_units * self.radius()
        )

    def _replaced(self, gradient: float, moment: float) -> float:
        """Largest distance for two records whose cosine is t: 2 g^2 (1 + t) + 2 m^2 (1 - t^2),
        over t from 0 to 1.
        """
        t = min(1.0, gradient**2 / (2 * moment**2))
        squared_distance = 2 * gradient**2 * (1 + t) + 2 * moment**2 * (1 - t * t)
        if isinstance(self.moment, HessianSum):
            # Of two opposite records, or two alike with opposite slopes, one may have no curvature.
            squared_distance = max(squared_distance, 4 * gradient**2 + moment**2)
        return math.sqrt(squared_distance)
