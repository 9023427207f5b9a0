"""The last iterate of mini-batch proximal gradient descent, released once. Proof:
docs/proofs/permuted.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from hushfit._typing import IntVector, Vector
from hushfit.data import (
    AT_MOST_ONE,
    FEWEST_BLOCK_ROWS,
    Block,
    Coins,
    DataSource,
    RecordScaling,
    SeededCoins,
)
from hushfit.errors import InvalidArgument, UnsupportedRelation
from hushfit.privacy import Cost, PermutedGaussianCost, Relation, replaces_one
from hushfit.problem import Problem
from hushfit.release.exact_sum import ExactSum
from hushfit.release.mechanism import Entropy, NoiseGrid, gaussian_answer, too_large
from hushfit.release.queries import ARITHMETIC_SLACK
from hushfit.release.query import Query, three_weight_arrays

_UNIT_ROUNDOFF = 2.0**-53
# Assumed relative error of a computed prox.
_PROX_ERROR = 1e-13
# Share of the largest distance that the cost of every batch reserves for rounding the answer to the
# noise grid.
_GRID_SHARE = 1e-5
# The cost is that of a mixture with one Gaussian for each batch, and bounding a run takes time
# quadratic in their number in each epoch.
_MOST_BATCHES = 2000


@dataclass(frozen=True)
class Passes:
    """Schedule of a run: batch sizes, step sizes and restarts. It is public and does not depend on
    the rows.

    Parameters
    ----------
    sizes : tuple of int
        Number of records in each batch.
    steps : tuple of float
        Step size of each epoch; an epoch visits every batch once, in order.
    restart : int or None
        After every ``restart`` epochs the iterate is replaced by the mean of all iterates since the
        last restart.
    """

    sizes: tuple[int, ...]
    steps: tuple[float, ...]
    restart: int | None = None

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1 or len(self.sizes) > _MOST_BATCHES:
            raise InvalidArgument(
                f"{len(self.sizes)} batches: give 1 to {_MOST_BATCHES}, each with at least one row."
            )
        if not self.steps or not all(0 < step < math.inf for step in self.steps):
            raise InvalidArgument(
                f"steps={self.steps} must be one finite number above 0 for each epoch, and at "
                "least one."
            )
        if self.restart is not None and self.restart < 1:
            raise InvalidArgument(
                f"restart={self.restart} must be at least 1: epochs between two averages. None "
                "never averages."
            )

    @classmethod
    def even(
        cls, n_units: int, batches: int, steps: tuple[float, ...], restart: int | None = None
    ) -> "Passes":
        """Batches whose sizes differ by one at most."""
        if not 1 <= batches <= n_units:
            raise InvalidArgument(
                f"batches={batches} must be at least 1 and at most the number of rows, {n_units}."
            )
        small, larger = divmod(n_units, batches)
        return cls((small + 1,) * larger + (small,) * (batches - larger), steps, restart)

    def follow(self, start: Vector, move: Callable[[Vector, int, float], Vector]) -> Vector:
        """Run the recursion ``state = move(state, batch, step)`` over all batches and epochs.

        It computes the weights, and also the bounds on the distance between two runs: the distance
        between two means is at most the mean of the distances.
        """
        state, total, summed = start, np.zeros_like(start), 0
        for epoch, step in enumerate(self.steps, start=1):
            for batch in range(len(self.sizes)):
                state = move(state, batch, step)
                total += state
                summed += 1
            if self.restart is not None and epoch % self.restart == 0:
                state, total, summed = total / summed, np.zeros_like(start), 0
        return state


@dataclass(frozen=True, eq=False)
class PermutedRun:
    r"""Last iterate of mini-batch proximal gradient descent from zero, minus the last iterate if
    every gradient were zero.

    Each step is :math:`w \leftarrow \mathrm{prox}(w - \eta (g_B + \mu w), \eta)` with :math:`g_B`
    the mean, over the batch, of the records' gradients with slopes cut off at ``clip``. No iterate
    in between is released.

    Parameters
    ----------
    problem : Problem
        With a convex penalty, whose prox is then nonexpansive.
    passes : Passes
    clip : float
        Clipping norm of a record's gradient; with several outputs at least the slope bound of the
        loss.
    mu : float, default=0.0
        Weight of :math:`\frac12 \|w\|^2`, on the intercept too; it makes steps contract.
    order : int or None
        Seed of the public order in which rows are partitioned into batches if no secret one is
        given; None keeps the given order.
    """

    problem: Problem
    passes: Passes
    clip: float
    mu: float = 0.0
    order: int | None = None

    doubled = None
    sampled: ClassVar[bool] = False
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return three_weight_arrays(problem)

    def __post_init__(self) -> None:
        problem = self.problem
        if sum(self.passes.sizes) != problem.n_units:
            raise InvalidArgument(
                f"The batches hold {sum(self.passes.sizes)} rows, but there are {problem.n_units}. "
                "Partition all rows."
            )
        if not (self.clip > 0 and 0 <= self.mu < math.inf):
            raise InvalidArgument(f"clip={self.clip} must be above 0 and mu={self.mu} at least 0.")
        _require_convex(problem)
        if problem.outputs > 1 and self.clip < problem.loss.slope_bound:
            raise InvalidArgument(
                f"clip={self.clip:g} would clip vectors of slopes, which are then not the gradient "
                "of a convex loss, so several steps have no proof. With several outputs give "
                f"clip={problem.loss.slope_bound:.4g} or more, or None."
            )
        if not np.isfinite(self.shifts).all():
            raise InvalidArgument(
                f"With step sizes up to {max(self.passes.steps):g} the distance between two runs "
                "is unbounded. Use step sizes of at most "
                f"{2 / (self._smoothness + self.mu):.4g}, or fewer steps."
            )

    @property
    def size(self) -> int:
        return math.prod(self.problem.shape)

    @property
    def _slope(self) -> float:
        """Bound on the norm of a record's gradient, including rounding."""
        return min(self.clip, self.problem.loss.slope_bound) * (1 + ARITHMETIC_SLACK)

    @property
    def _smoothness(self) -> float:
        """Smoothness of the mean loss plus ``mu``."""
        return self.problem.loss.smoothness * (1 + ARITHMETIC_SLACK) + self.mu

    def contraction(self, step: float) -> float:
        """Lipschitz constant of a step: largest ratio of the distance between two points after a
        step on the same batch to that before it.
        """
        return max(abs(1 - step * self.mu), abs(1 - step * self._smoothness))

    @cached_property
    def shifts(self) -> Vector:
        """Bounds on the distance between two last iterates when a record of the first batch is
        replaced, of the second, and so on.
        """
        shifts = self._shifts(2)
        shifts.setflags(write=False)  # noise is proportional to them
        return shifts

    def _shifts(self, gradients: int) -> Vector:
        """Like ``shifts`` for a difference of so many gradients: two when a record is replaced, one
        when it is removed.
        """

        def update(distances: Vector, batch: int, step: float) -> Vector:
            # Every step multiplies the distance by the contraction factor, every visit to the batch
            # that differs adds the change of its gradient, and both runs are rounded.
            after = self.contraction(step) * distances + 2 * self._rounding(step)
            after[batch] += gradients * step * self._slope / self.passes.sizes[batch]
            return after

        with np.errstate(over="ignore", invalid="ignore"):
            return np.nan_to_num(
                self.passes.follow(np.zeros(len(self.passes.sizes)), update),
                nan=math.inf,
                posinf=math.inf,
            )

    @cached_property
    def _iterate_norm_bound(self) -> float:
        """Bound on the norm of every iterate: that of the run without gradients, plus the distance
        from it.
        """
        without: list[float] = []
        distances: list[float] = []

        def zero_gradient_step(w: Vector, batch: int, step: float) -> Vector:
            w = self._step(w, np.zeros_like(w), step)
            without.append(float(np.linalg.norm(w)))
            return w

        def distance_step(distance: Vector, batch: int, step: float) -> Vector:
            distance = self.contraction(step) * distance + step * self._slope
            distances.append(float(distance[0]))
            return distance

        with np.errstate(over="ignore", invalid="ignore"):
            self.passes.follow(np.zeros(self.problem.shape), zero_gradient_step)
            self.passes.follow(np.zeros(1), distance_step)
        return max(without) + max(distances)

    def _rounding(self, step: float) -> float:
        """Bound on the distance between a computed step and the exact one from the same point."""
        problem, root = self.problem, math.sqrt(self.size)
        # Error of the mean: half a grid step for each row of a unit, and that of adding up blocks
        # and dividing.
        rows = problem.rows_per_unit
        blocks = math.ceil(max(self.passes.sizes) * rows / FEWEST_BLOCK_ROWS)
        sums = root * (0.5 * rows * self._sum.grid + (blocks + 1) * _UNIT_ROUNDOFF * self._slope)
        margins = (
            problem.loss.smoothness
            * (problem.dimension + 8)
            * _UNIT_ROUNDOFF
            * self._iterate_norm_bound
        )
        gradient = sums + margins + 40 * _UNIT_ROUNDOFF * self._slope
        largest = (1 + step * self.mu) * self._iterate_norm_bound + step * self._slope
        prox = _PROX_ERROR if problem.penalty.ridge is None else 0.0
        # Rounding of the mean at a restart is included: each of its terms has at least this bound.
        summed = len(self.passes.sizes) * (self.passes.restart or 0)
        return step * gradient + ((8 + summed) * _UNIT_ROUNDOFF + prox) * largest

    @cached_property
    def _sum(self) -> ExactSum:
        """Exact sum of one batch's gradients; its grid is as fine as the batch allows, because a
        mean divides by its size.
        """
        return ExactSum(
            self.problem.loss.slope_bound,
            max(self.passes.sizes),
            self.size,
            self.problem.rows_per_unit,
            least_units=1,
        )

    def radius(self) -> float:
        return float(self._shifts(1).max())

    def sensitivity(self, relation: Relation) -> float:
        if replaces_one(relation):
            return float(self.shifts.max())
        if len(self.passes.sizes) > 1:
            raise UnsupportedRelation(
                "a run over several batches is proved under 'replace-one' only: adding or removing "
                "a record moves others from batch to batch. Use adjacency='replace-one', or one "
                "batch of all rows (solver='outpert-gd')."
            )
        return self.radius()

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        """The answer for the public order, or for the order ``rows``, which contains every row
        once.
        """
        batches = self._partitioned(source.n_units, units)

        def update(w: Vector, batch: int, step: float) -> Vector:
            return self._step(w, self._gradient(w, source, batches[batch]), step)

        return (self.passes.follow(np.zeros(self.problem.shape), update) - self.origin()).ravel()

    def weights(self, answer: Vector) -> Vector:
        """The weights of a released answer."""
        return self.origin() + answer.reshape(self.problem.shape)

    def origin(self) -> Vector:
        """Last iterate if every gradient were zero; public."""
        return self.passes.follow(
            np.zeros(self.problem.shape),
            lambda w, batch, step: self._step(w, np.zeros_like(w), step),
        )

    def _step(self, w: Vector, gradient: Vector, step: float) -> Vector:
        return self.problem.prox(w - step * (gradient + self.mu * w), step)

    def _gradient(self, w: Vector, source: DataSource, units: IntVector | None) -> Vector:
        kernel, caps = self.problem.loss.kernel, np.array([self.clip])
        padded = (
            w
            if self.problem.fit_intercept
            else np.concatenate([w, np.zeros((*w.shape[:-1], 1))], axis=-1)
        )

        def of_block(block: Block, grid: float) -> Vector:
            return block.gradient_sum(padded, caps, kernel.code, kernel.parameter, grid)

        total = self._sum.over(source.blocks(units), padded.shape, of_block)
        return total[..., : self.problem.dimension] / (
            self.problem.n_units if units is None else len(units)
        )

    def require_order_free(self) -> None:
        """Refuse persons in a known order of several batches: a person whose id changes moves all
        that come after, and no proof covers that.
        """
        if self.problem.privacy_unit.is_person and len(self.passes.sizes) > 1:
            raise InvalidArgument(
                "Batches of persons in a known order have no proof: a changed id moves everyone "
                "after it to another place. Use order='secret', or one batch."
            )

    def _partitioned(self, n_units: int, order: IntVector | None) -> list[IntVector | None]:
        """Rows of each batch, sorted by position; None for all rows."""
        if order is not None and len(order) != n_units:
            raise InvalidArgument(
                f"A run takes every row once, in some order: {n_units} rows, not {len(order)}."
            )
        if len(self.passes.sizes) == 1:
            return [None]
        if order is None:
            self.require_order_free()
            order = (
                np.arange(n_units)
                if self.order is None
                else uniform_order(n_units, SeededCoins(self.order))
            )
        return [np.sort(batch) for batch in np.split(order, np.cumsum(self.passes.sizes)[:-1])]


def uniform_order(n_units: int, coins: Coins) -> IntVector:
    """A uniform random permutation: rows sorted by random words. If two words are equal, all are
    drawn again.
    """
    while True:
        words = coins.words(n_units)
        order = np.argsort(words)
        if (np.diff(words[order]) != 0).all():
            return order


@dataclass(frozen=True)
class SecretOrder:
    """Gaussian noise on the last iterate of a run whose batches follow a secret random order,
    freshly drawn for each release.

    Parameters
    ----------
    shares : tuple of float
        Share of the rows in each batch.
    ratios : tuple of float
        Sensitivity of the answer to a record of each batch, over the largest.
    """

    shares: tuple[float, ...]
    ratios: tuple[float, ...]

    answers: ClassVar[type[Query]] = PermutedRun
    alone, samples, sized = False, False, True

    @classmethod
    def of(cls, run: PermutedRun) -> "SecretOrder":
        """The mechanism for a run, with a reserve for rounding."""
        ratios = run.shifts / run.shifts.max()
        ratios += _GRID_SHARE * (1 - ratios)
        return cls(
            tuple(size / run.problem.n_units for size in run.passes.sizes), tuple(ratios.tolist())
        )

    def expected_units(self, n_units: int) -> float:
        return n_units

    def multiplier(self, strength: float, count: int, n_units: int) -> float:
        return math.sqrt(count) / strength

    def cost(self, noise_multiplier: float, count: int, n_units: int) -> Cost:
        return PermutedGaussianCost(noise_multiplier, self.shares, self.ratios, count=count)

    def objection(self, query: PermutedRun, relation: Relation) -> str | None:
        """Why its cost does not cover this query, or None."""
        if not replaces_one(relation):
            return "in a secret order, which is proved under 'replace-one' only"
        own = SecretOrder.of(query)
        # The largest ratio is 1 in both, and noise is proportional to the query's own largest
        # distance.
        if own.shares == self.shares and all(
            ratio <= priced for ratio, priced in zip(own.ratios, self.ratios, strict=True)
        ):
            return None
        return "with other batches, steps or restarts than this run has"

    def answer(
        self, query: PermutedRun, source: DataSource, noise_multiplier: float, entropy: Entropy
    ) -> Vector:
        """Run over a secret random order of the rows and add noise."""
        if noise_multiplier > 0:
            _require_fine_grid(query, noise_multiplier, entropy.relation, source.n_units)
        return gaussian_answer(
            query, source, uniform_order(source.n_units, entropy.coins), noise_multiplier, entropy
        )

    def __str__(self) -> str:
        return f"all rows, in {len(self.shares)} batches of a secret order"


def _require_fine_grid(query: Query, multiplier: float, relation: Relation, n_units: int) -> None:
    """Refuse a coarse grid: rounding to it is part of the largest distance, and the others reserve
    ``_GRID_SHARE`` for it.
    """
    grid = NoiseGrid.of(query, multiplier, relation, n_units)
    if 1 - multiplier * query.sensitivity(relation) / grid.scale > _GRID_SHARE:
        raise too_large(multiplier, query.size)


def _require_convex(problem: Problem) -> None:
    if problem.constraint is not None:
        raise InvalidArgument(
            "A run penalises the weights themselves, not a linear map of them. Use 'dp-sadmm' for "
            "a constraint."
        )
    if not problem.penalty.convex:
        raise InvalidArgument(
            f"{problem.penalty!r} is not convex, so its prox can increase the distance between "
            "neighbours, and a run has no proof. Use 'dpsc', whose prox is post-processing, or a "
            "convex penalty."
        )
