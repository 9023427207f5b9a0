"""Backtracking line search along an already released gradient: its candidates, and the gate or the
choice between them. Proofs: docs/proofs/{line_search,above_threshold,gated}.md.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushfit._typing import IntVector, Matrix, Vector
from hushfit.data import AT_MOST_ONE, DataSource, RecordScaling
from hushfit.privacy import Relation
from hushfit.problem import Problem
from hushfit.release.queries._gradient import ClippedGradient
from hushfit.release.queries._loss_drop import MOST_QUERIES, Choice, Gate, LossDrop

# Smallest bound of a candidate: decreases are divided by it, also if a candidate equals the
# iterate.
_MIN_BOUND = 2.0**-40


@dataclass(frozen=True, eq=False)
class Backtracking:
    r"""Candidates of a backtracking line search from an already released gradient: :math:`w_k =
    prox(w - \eta_k g)`.

    A candidate passes if the sum of the decreases over the batch, plus the public decrease of the
    penalty, is at least ``sufficient`` times the decrease predicted by the gradient, :math:`\eta_k
    \bar b \max(0, |G_k|^2 - d \sigma^2)`: all sums over the batch have the public divisor
    :math:`\bar b`, and the expected contribution of the noise to the squared norm is subtracted.

    Parameters
    ----------
    step_sizes : array
        In the order of trial.
    expected_units : float
        Expected batch size; the divisor of the gradient sum.
    objective_clip : float
        Clipping bound on the decrease of one record.
    sufficient : float
        Between 0 and 1.
    gradient_noise : float
        Standard deviation of the noise on a coordinate of the mean gradient.
    """

    step_sizes: Vector
    expected_units: float
    objective_clip: float
    sufficient: float
    gradient_noise: float

    def candidates(self, problem: Problem, w: Vector, g: Vector) -> Vector:
        """The candidate points, from a sum of gradients."""
        displacements = np.multiply.outer(self.step_sizes, self._slope(problem, w, g))
        if problem.penalty.ridge is not None:
            return np.asarray(w - displacements)
        return np.stack(
            [
                problem.prox(w - displacement, float(step))
                for displacement, step in zip(displacements, self.step_sizes, strict=True)
            ]
        )

    def gate(self, problem: Problem, w: Vector, g: Vector) -> Gate:
        """The gate over the candidates."""
        drop, asked = self._drop(problem, w, g)
        return Gate(drop, asked)

    def choice(self, problem: Problem, w: Vector, g: Vector) -> Choice:
        """The choice between the candidates by the objective alone."""
        drop, asked = self._drop(problem, w, g)
        return Choice(drop, asked)

    def _slope(self, problem: Problem, w: Vector, g: Vector) -> Vector:
        """Mean gradient, including that of a smooth penalty; other penalties act through their
        prox.
        """
        slope = g.reshape(problem.shape) / self.expected_units
        if problem.penalty.ridge:
            slope = slope + problem.penalty.ridge * _columns_only(problem, w)
        return slope

    def _drop(self, problem: Problem, w: Vector, g: Vector) -> tuple[LossDrop, Vector]:
        points = self.candidates(problem, w, g)
        lengths = _distances(w, points)
        predicted = np.maximum(
            0.0,
            (lengths / np.maximum(self.step_sizes, 1e-100)) ** 2 - w.size * self.gradient_noise**2,
        )
        asked = self.expected_units * (
            self.sufficient * self.step_sizes * predicted - _penalty_decrease(problem, w, points)
        )
        bounds = _drop_bounds(problem, lengths, self.objective_clip)
        return LossDrop(problem, *self._as_mixes(problem, w, g, points), bounds), asked

    def _as_mixes(
        self, problem: Problem, w: Vector, g: Vector, points: Vector
    ) -> tuple[Vector, Matrix]:
        """The points as linear combinations: of two vectors if they lie on a line."""
        if problem.penalty.ridge is None:
            return _each_by_itself(w, points)
        mixes = np.column_stack([np.ones(1 + len(points)), np.append(0.0, -self.step_sizes)])
        return np.stack([w, self._slope(problem, w, g)]), mixes


def choice_between(problem: Problem, w: Vector, points: Vector, objective_clip: float) -> Choice:
    """The choice among public points by the objective, a record's decrease from ``w`` clipped."""
    bounds = _drop_bounds(problem, _distances(w, points), objective_clip)
    drop = LossDrop(problem, *_each_by_itself(w, points), bounds)
    return Choice(drop, -problem.n_units * _penalty_decrease(problem, w, points))


def _distances(w: Vector, points: Vector) -> Vector:
    return np.asarray(np.sqrt(np.sum((w - points) ** 2, axis=tuple(range(1, points.ndim)))))


def _drop_bounds(problem: Problem, lengths: Vector, objective_clip: float) -> Vector:
    """No loss decreases by more than its largest slope times the distance."""
    bounds = np.minimum(objective_clip, (1 + 1e-9) * problem.loss.slope_bound * lengths)
    return np.asarray(np.maximum(np.nan_to_num(bounds, nan=objective_clip), _MIN_BOUND))


def _penalty_decrease(problem: Problem, w: Vector, points: Vector) -> Vector:
    penalties = np.array([problem.penalty.value(problem.columns(point)) for point in points])
    return np.asarray(problem.penalty.value(problem.columns(w)) - penalties)


def _each_by_itself(w: Vector, points: Vector) -> tuple[Vector, Matrix]:
    """The points as linear combinations, one vector each."""
    return np.concatenate([w[None], points]), np.eye(1 + len(points))


def _columns_only(problem: Problem, w: Vector) -> Vector:
    kept = np.zeros_like(w)
    kept[..., : problem.n_features] = problem.columns(w)
    return kept


@dataclass(frozen=True, eq=False)
class GatedStep:
    """Sum of clipped gradients, then the index of the first acceptable step size along it, over the
    same records.

    The answer has one entry more than the weights: the index, at its end.

    Parameters
    ----------
    gradient : ClippedGradient
    search : Backtracking
    """

    gradient: ClippedGradient
    search: Backtracking

    doubled = None
    sampled: ClassVar[bool] = True
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = "GatedBatch"

    @property
    def problem(self) -> Problem:
        return self.gradient.problem

    @property
    def size(self) -> int:
        return self.gradient.size + 1

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return 3 * math.prod(problem.shape) + 4 * MOST_QUERIES

    @property
    def candidates(self) -> int:
        return len(self.search.step_sizes)

    def gate(self, g: Vector) -> Gate:
        """The gate for a released gradient: a public function of it."""
        return self.search.gate(self.problem, self.gradient.w, g)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        g = self.gradient(source, units)
        return np.append(g, self.gate(g)(source, units))

    def radius(self) -> float:
        return self.gradient.radius()

    def sensitivity(self, relation: Relation) -> float:
        # Of the gradient; the gate has its own sensitivity and its own noise.
        return self.gradient.sensitivity(relation)
