"""The end of a run of mini-batch proximal gradient descent, released once. Proof:
docs/proofs/permuted.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from hushfit._typing import IntVector, Vector
from hushfit.data import FEWEST_BLOCK_ROWS, Block, Coins, DataSource, SeededCoins
from hushfit.errors import InvalidArgument, UnsupportedRelation
from hushfit.privacy import Cost, PermutedGaussianCost, Relation, replaces_one
from hushfit.problem import Problem
from hushfit.release.exact_sum import ExactSum
from hushfit.release.mechanism import Entropy, NoiseGrid, gaussian_answer, too_large
from hushfit.release.queries import ARITHMETIC_SLACK
from hushfit.release.query import Query, thrice_the_weights

_UNIT_ROUNDOFF = 2.0**-53
# How well a penalty's prox is taken to be computed, relative to its argument.
_PROX_ERROR = 1e-13
# Of the largest distance: room in the price of every batch for rounding the answer to the grid of
# the noise.
_GRID_SHARE = 1e-5
# The price is a mixture of one Gaussian for each batch, and bounding a run takes their number
# squared in each epoch.
_MOST_BATCHES = 2000


@dataclass(frozen=True)
class Passes:
    """What a run does and when: public, and the same whatever the rows are.

    Parameters
    ----------
    sizes : tuple of int
        Number of records in each batch.
    steps : tuple of float
        Step size of each epoch; an epoch visits every batch once, in order.
    restart : int or None
        After each so many epochs the mean of all iterates since the last time takes the place of
        the iterate.
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
        cls, n_rows: int, batches: int, steps: tuple[float, ...], restart: int | None = None
    ) -> "Passes":
        """Batches whose sizes differ by one at most."""
        if not 1 <= batches <= n_rows:
            raise InvalidArgument(
                f"batches={batches} must be at least 1 and at most the number of rows, {n_rows}."
            )
        small, larger = divmod(n_rows, batches)
        return cls((small + 1,) * larger + (small,) * (batches - larger), steps, restart)

    def follow(self, start: Vector, move: Callable[[Vector, int, float], Vector]) -> Vector:
        """Where ``move(state, batch, step)`` leads.

        The weights take this way, and so do the bounds on how far two runs can be apart: a mean of
        runs is no further apart than the mean of their distances.
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
    r"""Where mini-batch proximal gradient descent from zero ends, less where it would end if every
    gradient were zero.

    Each step is :math:`w \leftarrow \mathrm{prox}(w - \eta (g_B + \mu w), \eta)` with :math:`g_B`
    the mean, over the batch, of the records' gradients with slopes cut off at ``clip``. Nothing is
    released on the way.

    Parameters
    ----------
    problem : Problem
        With a convex penalty, whose prox then moves no further than its argument.
    passes : Passes
    clip : float
        Largest length of a record's gradient; with several outputs no less than the slope bound of
        the loss.
    mu : float, default=0.0
        Weight of :math:`\frac12 \|w\|^2`, on the intercept too: what brings runs together again.
    order : int or None
        Seed of the public order in which rows are dealt into batches when no secret one is given;
        None takes them as they lie.
    """

    problem: Problem
    passes: Passes
    clip: float
    mu: float = 0.0
    order: int | None = None

    doubled = None
    sampled: ClassVar[bool] = False
    made_for: ClassVar[str | None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return thrice_the_weights(problem)

    def __post_init__(self) -> None:
        problem = self.problem
        if sum(self.passes.sizes) != problem.n_rows:
            raise InvalidArgument(
                f"The batches hold {sum(self.passes.sizes)} rows, but there are {problem.n_rows}. "
                "Deal out all."
            )
        if not (self.clip > 0 and 0 <= self.mu < math.inf):
            raise InvalidArgument(f"clip={self.clip} must be above 0 and mu={self.mu} at least 0.")
        _require_convex(problem)
        if problem.outputs > 1 and self.clip < problem.loss.slope_bound:
            raise InvalidArgument(
                f"clip={self.clip:g} would shorten vectors of slopes, which is no gradient of a "
                "convex loss, so several steps have no "
                f"proof. With several outputs give clip={problem.loss.slope_bound:.4g} or more, or "
                "None."
            )
        if not np.isfinite(self.shifts).all():
            raise InvalidArgument(
                f"Steps of up to {max(self.passes.steps):g} drive two runs apart without bound. "
                "Take steps of at most "
                f"{2 / (self._smoothness + self.mu):.4g}, or fewer of them."
            )

    @property
    def size(self) -> int:
        return math.prod(self.problem.shape)

    @property
    def _slope(self) -> float:
        """Largest length of a record's gradient, rounding included."""
        return min(self.clip, self.problem.loss.slope_bound) * (1 + ARITHMETIC_SLACK)

    @property
    def _smoothness(self) -> float:
        """Of the mean loss and ``mu`` together."""
        return self.problem.loss.smoothness * (1 + ARITHMETIC_SLACK) + self.mu

    def contraction(self, step: float) -> float:
        """Largest ratio of the distance between two points after a step on the same batch to
        that before it.
        """
        return max(abs(1 - step * self.mu), abs(1 - step * self._smoothness))

    @cached_property
    def shifts(self) -> Vector:
        """How far apart two runs can end when a record of the first batch was replaced, of the
        second, and so on.
        """
        shifts = self._shifts(2)
        shifts.setflags(write=False)  # noise is in proportion to them
        return shifts

    def _shifts(self, gradients: int) -> Vector:
        """As ``shifts`` for a difference of so many gradients: two when a record is replaced,
        one when it is taken away.
        """

        def move(apart: Vector, batch: int, step: float) -> Vector:
            # Every step on a common batch stretches, every visit to the batch that differs pushes,
            # on either side something is rounded.
            moved = self.contraction(step) * apart + 2 * self._rounding(step)
            moved[batch] += gradients * step * self._slope / self.passes.sizes[batch]
            return moved

        with np.errstate(over="ignore", invalid="ignore"):
            return np.nan_to_num(
                self.passes.follow(np.zeros(len(self.passes.sizes)), move),
                nan=math.inf,
                posinf=math.inf,
            )

    @cached_property
    def _reach(self) -> float:
        """Bound on the length of the weights at any time: of the run without gradients, and of
        the distance from it.
        """
        without: list[float] = []
        distances: list[float] = []

        def walk(w: Vector, batch: int, step: float) -> Vector:
            w = self._step(w, np.zeros_like(w), step)
            without.append(float(np.linalg.norm(w)))
            return w

        def part(distance: Vector, batch: int, step: float) -> Vector:
            distance = self.contraction(step) * distance + step * self._slope
            distances.append(float(distance[0]))
            return distance

        with np.errstate(over="ignore", invalid="ignore"):
            self.passes.follow(np.zeros(self.problem.shape), walk)
            self.passes.follow(np.zeros(1), part)
        return max(without) + max(distances)

    def _rounding(self, step: float) -> float:
        """Bound on the distance between a computed step and the exact one from the same point."""
        problem, root = self.problem, math.sqrt(self.size)
        # In the mean: half a step of the grid for each record, and the error of adding up blocks
        # and dividing.
        blocks = math.ceil(max(self.passes.sizes) / FEWEST_BLOCK_ROWS)
        sums = root * (0.5 * self._sum.grid + (blocks + 1) * _UNIT_ROUNDOFF * self._slope)
        margins = problem.loss.smoothness * (problem.dimension + 8) * _UNIT_ROUNDOFF * self._reach
        gradient = sums + margins + 40 * _UNIT_ROUNDOFF * self._slope
        largest = (1 + step * self.mu) * self._reach + step * self._slope
        prox = _PROX_ERROR if problem.penalty.ridge is None else 0.0
        # Of the mean at a restart, too: each of its terms has at least this bound.
        summed = len(self.passes.sizes) * (self.passes.restart or 0)
        return step * gradient + ((8 + summed) * _UNIT_ROUNDOFF + prox) * largest

    @cached_property
    def _sum(self) -> ExactSum:
        """Of one batch's gradients; its grid is as fine as the batch allows, because a mean
        divides by its size.
        """
        return ExactSum(
            self.problem.loss.slope_bound, max(self.passes.sizes), self.size, least_rows=1
        )

    def radius(self) -> float:
        return float(self._shifts(1).max())

    def sensitivity(self, relation: Relation) -> float:
        if replaces_one(relation):
            return float(self.shifts.max())
        if len(self.passes.sizes) > 1:
            raise UnsupportedRelation(
                "a run over several batches is proved under 'replace-one' only: adding or removing "
                "a record moves others from batch "
                "to batch. Use adjacency='replace-one', or one batch of all rows "
                "(solver='outpert-gd')."
            )
        return self.radius()

    def __call__(self, source: DataSource, rows: IntVector | None) -> Vector:
        """The answer for the public order, or for the order ``rows``, which holds every row
        once.
        """
        batches = self._dealt(source.n_rows, rows)

        def move(w: Vector, batch: int, step: float) -> Vector:
            return self._step(w, self._gradient(w, source, batches[batch]), step)

        return (self.passes.follow(np.zeros(self.problem.shape), move) - self.origin()).ravel()

    def weights(self, answer: Vector) -> Vector:
        """The weights that a released answer stands for."""
        return self.origin() + answer.reshape(self.problem.shape)

    def origin(self) -> Vector:
        """Where the run would end if every gradient were zero; public."""
        return self.passes.follow(
            np.zeros(self.problem.shape),
            lambda w, batch, step: self._step(w, np.zeros_like(w), step),
        )

    def _step(self, w: Vector, gradient: Vector, step: float) -> Vector:
        return self.problem.prox(w - step * (gradient + self.mu * w), step)

    def _gradient(self, w: Vector, source: DataSource, rows: IntVector | None) -> Vector:
        kernel, caps = self.problem.loss.kernel, np.array([self.clip])
        padded = (
            w
            if self.problem.fit_intercept
            else np.concatenate([w, np.zeros((*w.shape[:-1], 1))], axis=-1)
        )

        def of_block(block: Block, grid: float) -> Vector:
            return block.gradient_sum(padded, caps, kernel.code, kernel.parameter, grid)

        total = self._sum.over(source.blocks(rows), padded.shape, of_block)
        return total[..., : self.problem.dimension] / (
            self.problem.n_rows if rows is None else len(rows)
        )

    def _dealt(self, n_rows: int, order: IntVector | None) -> list[IntVector | None]:
        """Rows of each batch, in the order in which they lie in memory; None for all rows."""
        if order is not None and len(order) != n_rows:
            raise InvalidArgument(
                f"A run takes every row once, in some order: {n_rows} rows, not {len(order)}."
            )
        if len(self.passes.sizes) == 1:
            return [None]
        if order is None:
            order = (
                np.arange(n_rows)
                if self.order is None
                else uniform_order(n_rows, SeededCoins(self.order))
            )
        return [np.sort(rows) for rows in np.split(order, np.cumsum(self.passes.sizes)[:-1])]


def uniform_order(n_rows: int, coins: Coins) -> IntVector:
    """A permutation, all equally likely: rows sorted by random words. Words with a tie are drawn
    again, all of them.
    """
    while True:
        words = coins.words(n_rows)
        order = np.argsort(words)
        if (np.diff(words[order]) != 0).all():
            return order


@dataclass(frozen=True)
class SecretOrder:
    """Gaussian noise on the end of a run whose batches are dealt in a secret order, drawn afresh
    for each release.

    Parameters
    ----------
    shares : tuple of float
        Share of the rows in each batch.
    ratios : tuple of float
        Distance by which a record of each batch can move the answer, over the largest.
    """

    shares: tuple[float, ...]
    ratios: tuple[float, ...]

    answers: ClassVar[type[Query]] = PermutedRun
    alone, samples, sized = False, False, True

    @classmethod
    def of(cls, run: PermutedRun) -> "SecretOrder":
        """The mechanism for a run, with room for rounding."""
        ratios = run.shifts / run.shifts.max()
        ratios += _GRID_SHARE * (1 - ratios)
        return cls(
            tuple(size / run.problem.n_rows for size in run.passes.sizes), tuple(ratios.tolist())
        )

    def expected_rows(self, n_rows: int) -> float:
        return n_rows

    def multiplier(self, strength: float, count: int, n_rows: int) -> float:
        return math.sqrt(count) / strength

    def cost(self, noise_multiplier: float, count: int, n_rows: int) -> Cost:
        return PermutedGaussianCost(noise_multiplier, self.shares, self.ratios, count=count)

    def objection(self, query: PermutedRun, relation: Relation) -> str | None:
        """Why its price does not cover this very query."""
        if not replaces_one(relation):
            return "in a secret order, which is proved under 'replace-one' only"
        own = SecretOrder.of(query)
        # The largest ratio is 1 in both, and noise is in proportion to the query's own largest
        # distance.
        if own.shares == self.shares and all(
            ratio <= priced for ratio, priced in zip(own.ratios, self.ratios, strict=True)
        ):
            return None
        return "with other batches, steps or restarts than this run has"

    def answer(
        self, query: PermutedRun, source: DataSource, noise_multiplier: float, entropy: Entropy
    ) -> Vector:
        """Deal the rows in an order that nobody learns, run, add noise."""
        if noise_multiplier > 0:
            _require_fine_grid(query, noise_multiplier, entropy.relation, source.n_rows)
        return gaussian_answer(
            query, source, uniform_order(source.n_rows, entropy.coins), noise_multiplier, entropy
        )

    def __str__(self) -> str:
        return f"all rows, in {len(self.shares)} batches of a secret order,"


def _require_fine_grid(query: Query, multiplier: float, relation: Relation, n_rows: int) -> None:
    """Rounding to the grid is part of the largest distance; the others have ``_GRID_SHARE`` of
    it to spare.
    """
    grid = NoiseGrid.of(query, multiplier, relation, n_rows)
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
            f"{problem.penalty!r} is not convex, and the prox of such a penalty can pull "
            "neighbours apart, so a run has no proof. "
            "Use 'dpsc', whose prox never touches the rows, or a convex penalty."
        )
