"""The norm of an objective's gradient at a public point, and an above-threshold test (a gate) on
it.

An owner that tests this first need not solve, nor spend budget on, a problem whose solution it
already knows well enough. The gate keeps one noisy threshold as long as its answers are no, and
draws at most ``segments`` thresholds. Proof: docs/proofs/gradient_norm.md.
"""

import math
from dataclasses import dataclass
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from hushfit._typing import IntVector, Vector
from hushfit.data import AT_MOST_ONE, DataSource, RecordScaling
from hushfit.errors import InvalidArgument
from hushfit.privacy import Cost, PureCost, Relation, by_relation
from hushfit.problem import Problem
from hushfit.release.mechanism import Entropy, NoiseGrid
from hushfit.release.mechanisms.perturbed_minimiser import PerturbedMinimiser
from hushfit.release.queries import ClippedGradient
from hushfit.release.query import Query, refuse_batch

_UNIT_ROUNDOFF = 2.0**-53
# Assumed relative error of a computed prox.
_PROX_ERROR = 1e-13
# In units of the slope bound: public parts of the gradient are clipped to it, so that all rounding
# errors have one bound.
_MAX_PUBLIC_NORM = 100.0
# Largest log2 of the threshold's noise scale in grid steps. Noise on an answer has twice the scale
# of that on the threshold: both are exact on one grid.
_MAX_LOG2_DEVIATION = 30


@dataclass(frozen=True, eq=False)
class GradientNorm:
    r"""Norm of the gradient of a `PerturbedMinimiser`'s objective, without noise, at a public
    point.

    With a penalty it is the length of the proximal step from there, times the smoothness: zero only
    at the minimum. Answers are capped at the largest slope of the loss, far above any useful
    threshold.

    Parameters
    ----------
    asked : PerturbedMinimiser
        With a convex penalty.
    at : array of shape ``problem.shape``
    """

    asked: PerturbedMinimiser
    at: Vector

    doubled = None
    sampled: ClassVar[bool] = False
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return 4

    @property
    def problem(self) -> Problem:
        return self.asked.problem

    @property
    def size(self) -> int:
        return 1

    @property
    def largest(self) -> float:
        """Bound on the answer."""
        return self.problem.loss.slope_bound

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)
        at, asked = self._point, self.asked
        public = clipped(
            asked.mu * at + (0.0 if asked.linear is None else asked.linear), self._public_norm_bound
        )
        total = self._gradient(source, None).reshape(at.shape)
        return np.array(
            [min(self._length(at, total / self.problem.n_units + public), self.largest)]
        )

    def radius(self) -> float:
        # The norm changes by at most the change of the mean gradient, and a prox is nonexpansive;
        # the rest is rounding.
        loss = self.problem.loss
        reach = loss.slope_bound + 2 * self._public_norm_bound
        relative = (math.prod(self.problem.shape) + 32) * _UNIT_ROUNDOFF
        prox = 0.0 if self.problem.penalty.ridge == 0 else 4 * _PROX_ERROR
        return (
            self._gradient.radius() / self.problem.n_units * (1 + 1e-12)
            + 2 * (relative + prox) * reach
        )

    def sensitivity(self, relation: Relation) -> float:
        # Replace-one removes one gradient and adds another; add-remove only removes one.
        return self.radius() * by_relation(relation, replace_one=2, add_remove=1)

    @property
    def _public_norm_bound(self) -> float:
        """Clipping norm of the public parts of the gradient."""
        return _MAX_PUBLIC_NORM * self.problem.loss.slope_bound

    @property
    def _smoothness(self) -> float:
        return self.problem.loss.smoothness + self.asked.mu

    @property
    def _point(self) -> Vector:
        return clipped(self.at, self._public_norm_bound / self._smoothness)

    @property
    def _gradient(self) -> ClippedGradient:
        return ClippedGradient(self.problem, self._point, self.problem.loss.slope_bound)

    def _length(self, at: Vector, g: Vector) -> float:
        if self.problem.penalty.ridge == 0:
            return float(np.linalg.norm(g))
        step = 1 / self._smoothness
        return float(np.linalg.norm(at - self.problem.prox(at - step * g, step))) / step


@dataclass(frozen=True, eq=False)
class NormAbove:
    """Whether a gradient norm is at least a public threshold: 1 or 0.

    Parameters
    ----------
    norm : GradientNorm
    threshold : float
    segment : int, default=0
        Number of answers of 1 so far. Each starts a new segment with a new noisy threshold.
    place : int, default=0
        Number of answers of 0 in this segment so far.
    """

    norm: GradientNorm
    threshold: float
    segment: int = 0
    place: int = 0

    doubled = None
    sampled: ClassVar[bool] = False
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = "RestartedGate"

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return 4

    @property
    def problem(self) -> Problem:
        return self.norm.problem

    @property
    def size(self) -> int:
        return 1

    def excess(self, source: DataSource) -> float:
        """The norm minus the threshold."""
        most = 2 * self.norm.largest
        return float(self.norm(source, None)[0]) - min(max(self.threshold, -most), most)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)
        return np.array([float(self.excess(source) >= 0)])

    def radius(self) -> float:
        return self.norm.radius()

    def sensitivity(self, relation: Relation) -> float:
        return self.norm.sensitivity(relation)


@dataclass(eq=False)
class _Segment:
    """A noisy threshold and the state of the comparisons with it."""

    number: int
    grid: NoiseGrid
    threshold: int
    next_place: int = 0
    over: bool = False


# The open segment of each curator, for the lifetime of its entropy; thresholds never leave this
# module.
_open: WeakKeyDictionary[Entropy, _Segment] = WeakKeyDictionary()


@dataclass(frozen=True)
class RestartedGate:
    """Laplace noise on every norm and on the threshold; the threshold noise is drawn once per
    segment, which ends with its first 1.

    Its noise multiplier is that of the threshold; each norm gets twice that noise. A process that
    restarts in the middle of a segment has lost the threshold: it answers 0 from then on, without
    reading the rows.

    Parameters
    ----------
    segments : int
        Largest number of answers of 1, on which the cost depends.
    """

    segments: int

    answers: ClassVar[type[Query]] = NormAbove
    alone, samples, sized = False, False, True

    def __post_init__(self) -> None:
        if self.segments < 1:
            raise InvalidArgument(
                f"segments={self.segments!r} must be 1 or more: the number of times that the gate "
                "may open."
            )

    def expected_units(self, n_units: int) -> float:
        return n_units

    def multiplier(self, strength: float, count: int, n_units: int) -> float:
        return 2 * math.sqrt(self.segments) / strength

    def cost(self, noise_multiplier: float, count: int, n_units: int) -> Cost:
        # 1/m for the threshold and 2/(2m) for all comparisons with it, for any number of them.
        return PureCost(2 / noise_multiplier if noise_multiplier > 0 else math.inf, self.segments)

    def objection(self, query: NormAbove, relation: Relation) -> str | None:
        return (
            None
            if 0 <= query.segment < self.segments
            else f"with {self.segments} segments, and this would be one more"
        )

    def answer(
        self, query: NormAbove, source: DataSource, noise_multiplier: float, entropy: Entropy
    ) -> Vector:
        """1 if the noisy norm is at least the noisy threshold."""
        if noise_multiplier == 0:
            return query(source, None)
        grid = NoiseGrid.of(
            query,
            noise_multiplier,
            entropy.relation,
            4 * source.n_units,
            finest=_MAX_LOG2_DEVIATION,
        )
        segment = _segment_of(query, grid, entropy)
        if segment is None:
            return np.zeros(1)
        noise = int(entropy.sampler.laplace(grid.log2_deviation + 1, 1)[0])
        segment.next_place += 1
        steps = round(query.excess(source) / grid.step) + noise
        # An infinite threshold decides alone, for all rows.
        segment.over = (
            query.threshold < 0 if math.isinf(query.threshold) else steps >= segment.threshold
        )
        return np.array([float(segment.over)])

    def __str__(self) -> str:
        return f"all rows, behind a noisy threshold until it has been reached {self.segments} times"


def _segment_of(query: NormAbove, grid: NoiseGrid, entropy: Entropy) -> _Segment | None:
    """The segment that a query continues, or a new one; None if its threshold was lost with an
    earlier process.
    """
    now = _open.get(entropy)
    if query.place == 0 and (now is None or (now.over and query.segment > now.number)):
        threshold = int(entropy.sampler.laplace(grid.log2_deviation, 1)[0])
        _open[entropy] = _Segment(query.segment, grid, threshold)
        return _open[entropy]
    if now is None:
        return None
    if now.over or (query.segment, query.place) != (now.number, now.next_place) or grid != now.grid:
        raise InvalidArgument(
            f"A gate got segment {query.segment}, place {query.place}, after segment "
            f"{now.number}, place {now.next_place - 1}. Query in order, with the curvature of one "
            "objective: a new segment after a 1, and only then."
        )
    return now


def clipped(v: Vector, longest: float) -> Vector:
    """The vector clipped to norm ``longest``."""
    v = np.clip(v, -longest, longest)  # so that the square of its norm is finite
    length = float(np.linalg.norm(v))
    return v if length <= longest else v * (longest / length)
