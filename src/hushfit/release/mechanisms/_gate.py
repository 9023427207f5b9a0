"""Private line search: choose a step size by the decrease of the loss at public candidates, with an
above-threshold test (a gate) or by report noisy max.

The candidates may come from a noisy gradient over the same batch that the gate reads (`GatedStep`);
then one cost covers both. Proofs: docs/proofs/{line_search,above_threshold,gated}.md.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from hushfit._arrays import keep_read_only, read_only
from hushfit._typing import BoolVector, IntVector, Matrix, Vector
from hushfit.data import AT_MOST_ONE, Block, DataSource, RecordScaling, poisson_units
from hushfit.errors import InvalidArgument
from hushfit.kernels.threads import parallel_sum
from hushfit.privacy import (
    AboveThresholdCost,
    Cost,
    GatedCost,
    GaussianCost,
    PureCost,
    Relation,
    by_relation,
    compose,
)
from hushfit.privacy.costs import GATE_NOISES
from hushfit.problem import Problem
from hushfit.release.exact_sum import ExactSum, sum_in_steps
from hushfit.release.mechanism import Entropy, NoiseGrid, gaussian_answer
from hushfit.release.mechanisms._batches import _subsampled_multiplier
from hushfit.release.queries import ClippedGradient, with_intercept
from hushfit.release.query import Query

# Largest log2 of the threshold's noise scale in grid steps. Noise on a query has twice the scale of
# that on the threshold, or for Gaussian noise twice its variance: both are exact on one grid.
_MAX_LOG2_DEVIATION = 30
# Smallest bound of a candidate: decreases are divided by it, also if a candidate equals the
# iterate.
_MIN_BOUND = 2.0**-40
# Required decreases are clipped to so many bounds per row: beyond, they decide the comparison
# alone.
_MAX_REQUIRED = 2.0
# Upper bound on the noise values that a gate draws, for the reserve that covers discrete noise.
_MOST_QUERIES = 256


class Scores(Query, Protocol):
    """A gate's query: scores of public candidates, each of which one record changes by at most its
    radius.
    """

    @property
    def candidates(self) -> int:
        """Number of scores; public."""

    def scores(self, source: DataSource, units: IntVector | None) -> Vector:
        """Decreases minus the required ones, in units that one record changes by about one."""


class GatedQuery(Query, Protocol):
    """A gradient, and a gate on the step along it over the same records."""

    @property
    def gradient(self) -> Query:
        """The query of the gradient; its radius and sensitivity are those of the whole."""

    @property
    def candidates(self) -> int:
        """Number of candidates of the gate; public."""

    def gate(self, g: Vector) -> Scores:
        """The gate for a released gradient: a public function of it."""


@dataclass(frozen=True, eq=False)
class LossDrop:
    r"""Sums over the records of :math:`\ell_i(w) - \ell_i(w_k)` for public candidates, each clipped
    to its ``bounds`` entry.

    Parameters
    ----------
    problem : Problem
    vectors : array of shape (vectors, \*problem.shape)
        The points are linear combinations of these.
    mixes : array of shape (1 + candidates, vectors)
        The first row is the current iterate, the others are the candidates.
    bounds : array
        One clipping bound above 0 for each candidate.
    """

    problem: Problem
    vectors: Vector
    mixes: Matrix
    bounds: Vector

    doubled = None
    sampled: ClassVar[bool] = True
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        shapes = self.vectors.shape[1:], self.mixes.shape
        if (
            shapes != (self.problem.shape, (1 + len(self.bounds), len(self.vectors)))
            or self.bounds.ndim != 1
        ):
            raise InvalidArgument(
                f"{len(self.bounds)} candidates of shape {self.problem.shape} need as many bounds "
                "and one more row of mixes; vectors "
                f"have shape {self.vectors.shape} and mixes {self.mixes.shape}."
            )
        keep_read_only(self, "bounds")  # the grids that belong to them are computed once

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return _MOST_QUERIES

    @property
    def size(self) -> int:
        return len(self.bounds)

    @cached_property
    def _sums(self) -> tuple[ExactSum, ...]:
        """One sum for each candidate: their bounds differ by orders of magnitude."""
        n_units, rows_per_unit = self.problem.n_units, self.problem.rows_per_unit
        return tuple(ExactSum(bound, n_units, 1, rows_per_unit) for bound in self.bounds.tolist())

    @property
    def grids(self) -> Vector:
        """Grid steps to which the contributions to each sum are rounded."""
        return read_only(np.array([one.grid for one in self._sums]))

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        vectors = np.ascontiguousarray(with_intercept(self.vectors, self.problem))
        # Loops are compiled for writable arrays.
        bounds, grids = self.bounds.copy(), self.grids.copy()

        def of_block(block: Block) -> Vector:
            return block.drop_sum(vectors, self.mixes, bounds, *self.problem.loss.kernel, grids)

        blocks, shape = source.blocks(units), (self.size,)
        if self.problem.rows_per_unit == 1:
            return parallel_sum(of_block, blocks, shape)
        return sum_in_steps(of_block, blocks, shape, grids)

    @property
    def radii(self) -> Vector:
        """Bound on the contribution of one record to each sum."""
        return np.asarray(self.bounds + [one.rounding for one in self._sums])

    def radius(self) -> float:
        return float(np.linalg.norm(self.radii))

    def sensitivity(self, relation: Relation) -> float:
        # Replace-one removes one contribution and adds another; add-remove only removes one.
        return self.radius() * by_relation(relation, replace_one=2, add_remove=1)


class _DecreaseScores:
    """Common part of `Gate` and `Choice`: one score for each candidate, which one record changes by
    at most one, rounding aside.
    """

    drop: LossDrop
    asked: Vector

    doubled = None
    sampled: ClassVar[bool] = True
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE

    def __post_init__(self) -> None:
        if self.asked.shape != (self.drop.size,):
            # One sum compared with many thresholds would reveal more than the cost of a gate
            # covers.
            raise InvalidArgument(
                f"asked has shape {self.asked.shape}, but there are {self.drop.size} candidates. "
                "Give one number for each."
            )

    @property
    def problem(self) -> Problem:
        return self.drop.problem

    @property
    def size(self) -> int:
        return 1

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return 4 * _MOST_QUERIES

    @property
    def divisors(self) -> Vector:
        """Divisors of the decreases."""
        raise NotImplementedError

    def scores(self, source: DataSource, units: IntVector | None) -> Vector:
        """Decreases minus the required ones (``asked``), divided by ``divisors``."""
        most = _MAX_REQUIRED * self.problem.n_units
        asked = np.clip(
            np.nan_to_num(self.asked / self.divisors, nan=most, posinf=most, neginf=-most),
            -most,
            most,
        )
        return np.asarray(self.drop(source, units) / self.divisors - asked)

    def radius(self) -> float:
        # Division and subtraction have rounding errors of a few units in the last place of numbers
        # up to three times the number of rows.
        rounding = 16 * self.problem.n_units * 2.0**-53
        return float((self.drop.radii / self.divisors).max()) * (1 + 1e-12) + rounding

    def sensitivity(self, relation: Relation) -> float:
        return self.radius() * by_relation(relation, replace_one=2, add_remove=1)


@dataclass(frozen=True, eq=False)
class Gate(_DecreaseScores):
    """Index of the first candidate whose decrease is at least the required one, or the number of
    candidates if there is none.

    Parameters
    ----------
    drop : LossDrop
    asked : array
        Required decrease of each candidate, in units of the sums; public.
    """

    drop: LossDrop
    asked: Vector

    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = "FreshGate"

    @property
    def candidates(self) -> int:
        return self.drop.size

    @property
    def divisors(self) -> Vector:
        return self.drop.bounds

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return _first(self.scores(source, units) >= 0)


@dataclass(frozen=True, eq=False)
class Choice(_DecreaseScores):
    """Index of the candidate whose decrease most exceeds the required one.

    Parameters
    ----------
    drop : LossDrop
    asked : array
        Required decrease of each candidate, in units of the sums; public.
    """

    drop: LossDrop
    asked: Vector

    sampled: ClassVar[bool] = False
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = "NoisyChoice"

    @property
    def divisors(self) -> Vector:
        # Candidates are compared with each other, so all have the same unit.
        return np.full(self.drop.size, self.drop.bounds.max())

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return np.array([float(np.argmax(self.scores(source, units)))])


def _first(passed: BoolVector) -> Vector:
    return np.array([float(np.argmax(passed)) if passed.any() else float(len(passed))])


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
        return 3 * math.prod(problem.shape) + 4 * _MOST_QUERIES

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


def gate_multipliers(noise: str, epsilon: float) -> tuple[float, float]:
    """Noise multipliers of threshold and queries for a gate with about the privacy loss of an
    ``epsilon``-private one.
    """
    if epsilon == math.inf:
        return 0.0, 0.0
    # Laplace: epsilon/2 + 2 epsilon/4. Gaussian: the same in terms of rho = epsilon^2/2, with
    # variances 3/(2 rho) and 3/rho.
    return (
        (2 / epsilon, 4 / epsilon)
        if noise == "laplace"
        else (math.sqrt(3) / epsilon, math.sqrt(6) / epsilon)
    )


def first_above(
    gate: Scores,
    source: DataSource,
    units: IntVector | None,
    noise: str,
    threshold_multiplier: float,
    entropy: Entropy,
) -> Vector:
    """Compare noisy scores with a noisy threshold. All scores are computed and all noise is drawn,
    so that the running time reveals nothing.
    """
    if threshold_multiplier == 0:
        return gate(source, units)
    count = gate.candidates
    grid = NoiseGrid.of(
        gate, threshold_multiplier, entropy.relation, 4 * source.n_units, finest=_MAX_LOG2_DEVIATION
    )
    k = grid.log2_deviation
    if noise == "laplace":
        threshold, on_scores = entropy.sampler.laplace(k, 1), entropy.sampler.laplace(k + 1, count)
    else:
        entropy.take_from_reserve(count + 1, 2 * k)
        threshold, on_scores = (
            entropy.sampler.gaussian(2 * k, 1),
            entropy.sampler.gaussian(2 * k + 1, count),
        )
    steps = np.rint(gate.scores(source, units) / grid.step).astype(np.int64) + on_scores
    return _first(steps >= threshold)


@dataclass(frozen=True)
class GatedBatch:
    """One Poisson batch for a noisy gradient and the gate on the step along it.

    Parameters
    ----------
    rate : float, default=0.1
        Probability that a record is in the batch; 1 takes all records.
    noise : {"laplace", "gaussian"}, default="laplace"
        Noise distribution of the gate.
    gate : float, default=1/3
        Epsilon of the gate times the noise multiplier of the gradient: 1/3 gives it a tenth of the
        budget.
    queries : int, default=20
        Largest number of candidates of a gate.
    answers : type, default=GatedStep
        The type of query, a `GatedQuery` whose proof is for this cost.
    """

    rate: float = 0.1
    noise: str = "laplace"
    gate: float = 1 / 3
    queries: int = 20
    answers: type[Query] = field(default=GatedStep, repr=False)

    alone, sized = False, True

    def __post_init__(self) -> None:
        _check_batch(self.rate, self.noise, self.queries)
        if not 0 < self.gate < math.inf:
            raise InvalidArgument(
                f"gate={self.gate!r} must be above 0: the gate's epsilon times the noise "
                "multiplier. Use 1/3."
            )

    def expected_units(self, n_units: int) -> float:
        return self.rate * n_units

    def multiplier(self, strength: float, count: int, n_units: int) -> float:
        return _multiplier(strength / math.sqrt(1 + self.gate**2), count, self.rate)

    def gate_multipliers(self, noise_multiplier: float) -> tuple[float, float]:
        """Noise multipliers of the gate for that of the gradient."""
        return gate_multipliers(
            self.noise, self.gate / noise_multiplier if noise_multiplier > 0 else math.inf
        )

    def cost(self, noise_multiplier: float, count: int, n_units: int) -> Cost:
        multipliers = self.gate_multipliers(noise_multiplier)
        if self.rate == 1:
            return compose(
                [
                    GaussianCost(noise_multiplier, count),
                    _unsampled(self.noise, multipliers, self.queries, count),
                ]
            )
        return GatedCost(
            noise_multiplier, self.rate, self.noise, *multipliers, self.queries, count=count
        )

    @property
    def samples(self) -> bool:
        return self.rate < 1

    def objection(self, query: GatedQuery, relation: Relation) -> str | None:
        return _too_many(query.candidates, self.queries)

    def answer(
        self, query: GatedQuery, source: DataSource, noise_multiplier: float, entropy: Entropy
    ) -> Vector:
        """Noise on the gradient, then the gate, over one batch."""
        units = None if self.rate == 1 else poisson_units(source.n_units, self.rate, entropy.coins)
        g = gaussian_answer(query.gradient, source, units, noise_multiplier, entropy)
        threshold, _ = self.gate_multipliers(noise_multiplier)
        return np.append(
            g, first_above(query.gate(g), source, units, self.noise, threshold, entropy)
        )

    def __str__(self) -> str:
        who = "all rows" if self.rate == 1 else f"each unit with probability {self.rate:g}"
        return f"{who}, with a gate of {self.noise} noise over {self.queries} candidates"


@dataclass(frozen=True)
class FreshGate:
    """A gate on its own records: all of them, or a Poisson batch that no other query reads.

    Its noise multiplier is the one of the threshold.

    Parameters
    ----------
    rate : float, default=0.1
    noise : {"laplace", "gaussian"}, default="laplace"
    queries : int, default=20
    answers : type, default=Gate
        The type of query, one of `Scores` whose proof is for this cost.
    """

    rate: float = 0.1
    noise: str = "laplace"
    queries: int = 20
    answers: type[Query] = field(default=Gate, repr=False)

    alone, sized = False, True

    def __post_init__(self) -> None:
        _check_batch(self.rate, self.noise, self.queries)

    def expected_units(self, n_units: int) -> float:
        return self.rate * n_units

    def multiplier(self, strength: float, count: int, n_units: int) -> float:
        return gate_multipliers(self.noise, 1 / _multiplier(strength, count, self.rate))[0]

    def cost(self, noise_multiplier: float, count: int, n_units: int) -> Cost:
        multipliers = (
            noise_multiplier,
            noise_multiplier * (2 if self.noise == "laplace" else math.sqrt(2)),
        )
        if self.rate == 1:
            return _unsampled(self.noise, multipliers, self.queries, count)
        return GatedCost(math.inf, self.rate, self.noise, *multipliers, self.queries, count=count)

    @property
    def samples(self) -> bool:
        return self.rate < 1

    def objection(self, query: Scores, relation: Relation) -> str | None:
        return _too_many(query.candidates, self.queries)

    def answer(
        self, query: Scores, source: DataSource, noise_multiplier: float, entropy: Entropy
    ) -> Vector:
        """The gate over freshly drawn records."""
        units = None if self.rate == 1 else poisson_units(source.n_units, self.rate, entropy.coins)
        return first_above(query, source, units, self.noise, noise_multiplier, entropy)

    def __str__(self) -> str:
        who = "all rows" if self.rate == 1 else f"each unit with probability {self.rate:g}"
        return f"{who}, behind {self.noise} noise over {self.queries} candidates"


@dataclass(frozen=True)
class NoisyChoice:
    """Report noisy max: the largest of scores with Laplace noise over all records; the noise
    multiplier is noise scale over sensitivity.
    """

    answers: ClassVar[type[Query]] = Choice
    alone, samples, sized = False, False, True

    def expected_units(self, n_units: int) -> float:
        return n_units

    def multiplier(self, strength: float, count: int, n_units: int) -> float:
        return 2 * math.sqrt(count) / strength

    def cost(self, noise_multiplier: float, count: int, n_units: int) -> Cost:
        return PureCost(2 / noise_multiplier if noise_multiplier > 0 else math.inf, count)

    def objection(self, query: Choice, relation: Relation) -> str | None:
        return None

    def answer(
        self, query: Choice, source: DataSource, noise_multiplier: float, entropy: Entropy
    ) -> Vector:
        """Index of the largest noisy score; the first in a tie."""
        if noise_multiplier == 0:
            return query(source, None)
        grid = NoiseGrid.of(query, noise_multiplier, entropy.relation, 4 * source.n_units)
        noise = entropy.sampler.laplace(grid.log2_deviation, query.drop.size)
        steps = np.rint(query.scores(source, None) / grid.step).astype(np.int64) + noise
        return np.array([float(np.argmax(steps))])

    def __str__(self) -> str:
        return "all rows, the largest of noisy scores"


def _unsampled(noise: str, multipliers: tuple[float, float], queries: int, count: int) -> Cost:
    # Not a pure cost, though Laplace noise has one: a gate has the worst-case privacy loss with far
    # smaller probability than randomised response.
    return AboveThresholdCost(noise, *multipliers, queries, count=count)


def _multiplier(strength: float, count: int, rate: float) -> float:
    return (
        math.sqrt(count) / strength if rate == 1 else _subsampled_multiplier(strength, count, rate)
    )


def _too_many(candidates: int, queries: int) -> str | None:
    return (
        f"with at most {queries} candidates, not with {candidates}"
        if candidates > queries
        else None
    )


def _check_batch(rate: float, noise: str, queries: int) -> None:
    if not 0 < rate <= 1:
        raise InvalidArgument(
            f"rate={rate!r} must lie in (0, 1]: the share of rows in an average batch."
        )
    if noise not in GATE_NOISES:
        raise InvalidArgument(f"noise={noise!r} is not known. Use 'laplace' or 'gaussian'.")
    if not 1 <= queries <= _MOST_QUERIES:
        raise InvalidArgument(
            f"queries={queries!r} must lie between 1 and {_MOST_QUERIES}: the most candidates of a "
            "gate."
        )
