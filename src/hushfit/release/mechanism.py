"""How an exact answer becomes a noisy one: the part of the boundary that differs from mechanism to
mechanism.

A new mechanism is a class with these methods and a proof page; the curator need not know of it.
Proof: docs/proofs/noise.md.
"""

import math
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from hushfit._typing import IntVector, Vector
from hushfit.data import Coins, DataSource
from hushfit.errors import InvalidArgument
from hushfit.kernels.grid import add_on_grid
from hushfit.privacy import Cost, Relation, Sampler, discretisation_loss
from hushfit.release.query import Query

# Noise has a standard deviation of 2**31 grid steps, or fewer where integers of 64 bits would not
# hold the answer.
LOG2_DEVIATION = 31
_LOG2_LARGEST = 61


class Mechanism(Protocol):
    """What one planned release does with a query, and what that costs.

    A query that reaches ``objection`` or ``answer`` is of the kind that ``answers`` names:
    plans and curators see to that.
    """

    @property
    def answers(self) -> type[Query] | None:
        """The one kind of query that its price is proved for; None for all kinds that are
        made for no mechanism.
        """

    @property
    def samples(self) -> bool:
        """Whether it looks at a random batch, which not every query has a proof for."""

    @property
    def alone(self) -> bool:
        """Whether its proof allows no other release in the same plan."""

    @property
    def sized(self) -> bool:
        """Whether an answer has as many entries as the query's ``size`` says; a list of
        texts has any number.
        """

    def expected_rows(self, n_rows: int) -> float:
        """Records that take part in one release, on average; public."""

    def multiplier(self, strength: float, count: int, n_rows: int) -> float:
        """Noise with which ``count`` releases are about as revealing as one Gaussian of mu
        ``strength``.
        """

    def cost(self, noise_multiplier: float, count: int, n_rows: int) -> Cost:
        """Price of ``count`` releases."""

    def objection(self, query: Any, relation: Relation) -> str | None:
        """Why its price does not cover this very query; asked before anything is computed."""

    def answer(
        self, query: Any, source: DataSource, noise_multiplier: float, entropy: "Entropy"
    ) -> Vector:
        """The noisy answer; the exact one for a multiplier of 0."""


def objection_to(mechanism: Mechanism, kind: type[Query]) -> str | None:
    """Why no query of this kind may be planned with a mechanism."""
    if mechanism.answers is not None:
        own = mechanism.answers.__name__
        return (
            None
            if kind is mechanism.answers
            else f"its price is proved for {own} alone. Plan only {own} with it"
        )
    if kind.made_for is not None:
        return f"a {kind.__name__} has its own price. Plan it with {kind.made_for}"
    if mechanism.samples and not kind.sampled:
        return "its proof covers all rows only. Use FullBatch()"
    return None


class Entropy:
    """What a mechanism draws from: noise, coins, and the reserve that pays for noise being
    discrete.
    """

    def __init__(
        self,
        relation: Relation | str,
        sampler: Sampler,
        coins: Coins,
        epsilon_reserve: float = math.inf,
    ) -> None:
        self.relation = Relation.parse(relation)
        self.sampler = sampler
        self.coins = coins
        self._reserve = epsilon_reserve

    def take_from_reserve(self, coordinates: int, log2_variance: int) -> None:
        """Pay for noise on so many coordinates; to be called before anything is drawn or
        computed.
        """
        self._reserve -= discretisation_loss(coordinates, log2_variance)
        if self._reserve < 0:
            raise InvalidArgument(
                "This fit draws more noise than its reserve for discrete noise covers. Ask for a "
                "larger epsilon, or take "
                "fewer steps."
            )


@dataclass(frozen=True)
class NoiseGrid:
    """Where an answer is rounded and noise drawn: ``scale`` is the standard deviation,
    ``2**log2_deviation`` steps.
    """

    scale: float
    log2_deviation: int

    def __post_init__(self) -> None:
        # A step with fewer digits, or none, would be rounded, and all noise with it.
        if self.step < sys.float_info.min:
            reason = f"Noise of scale {self.scale:.3g} is too small for floating point."
            raise InvalidArgument(f"{reason} Give a larger clip.")

    @property
    def step(self) -> float:
        return math.ldexp(self.scale, -self.log2_deviation)

    @classmethod
    def of(
        cls,
        query: Query,
        multiplier: float,
        relation: Relation,
        n_rows: float,
        stretch: float = 1.0,
        finest: int = LOG2_DEVIATION,
        least_move: float = 1.0,
    ) -> "NoiseGrid":
        """The grid on which noise is ``multiplier`` times the sensitivity, rounding to that very
        grid included.

        An answer is at most ``n_rows`` sensitivities long; ``stretch`` is the most by which the
        norm that the noise is measured in exceeds the Euclidean one. No more than ``2**finest``
        steps make up the noise. ``least_move`` is the shortest distance that the price counts on,
        as a share of the sensitivity: rounding is inside that one as well.
        """
        twice = 0 if query.doubled is None else int(query.doubled.sum())
        sensitivity = query.sensitivity(relation)
        room = stretch, finest, least_move
        return _noise_grid(sensitivity, query.size, twice, multiplier, n_rows, *room)

    def noisy(self, answer: Vector, noise: IntVector) -> Vector:
        """Round to the grid, add integers, scale back."""
        if answer.shape != noise.shape:
            # One number drawn for several entries would cancel in their difference.
            raise InvalidArgument(
                f"An answer of shape {answer.shape} was to get noise of shape {noise.shape}. Give "
                "the query its own size."
            )
        noisy: Vector = add_on_grid(answer, noise, self.step)
        return noisy


@lru_cache  # the steps of a run all draw on one grid
def _noise_grid(
    sensitivity: float,
    size: int,
    twice: int,
    multiplier: float,
    n_rows: float,
    stretch: float,
    finest: int,
    least_move: float,
) -> NoiseGrid:
    log2_deviation = min(
        finest, math.floor(_LOG2_LARGEST - math.log2(max(n_rows / multiplier, 1.0)))
    )
    if log2_deviation < 0:
        raise InvalidArgument(
            f"A noise multiplier of {multiplier:.3g} with {n_rows:.0f} rows is too small to draw "
            "exactly. Ask for a "
            "smaller epsilon, or for epsilon=inf if no privacy is meant."
        )
    # Half a step for rounding, and the error of dividing by the step, on each of two answers.
    lost_steps = (
        2 * math.sqrt(size + twice) * (1 + math.ldexp(n_rows / multiplier, log2_deviation - 52))
    )
    lost = multiplier * math.ldexp(stretch * lost_steps, -log2_deviation) / least_move
    if lost >= 0.5:
        raise too_large(multiplier, size)
    return NoiseGrid(multiplier * stretch * sensitivity / (1 - lost), log2_deviation)


def too_large(multiplier: float, size: int) -> InvalidArgument:
    """Why noise cannot be drawn on the grid."""
    return InvalidArgument(
        f"A noise multiplier of {multiplier:.3g} on {size} coordinates is too large for the grid. "
        "Ask for a larger epsilon or "
        "fewer columns."
    )


def gaussian_answer(
    query: Query,
    source: DataSource,
    rows: IntVector | None,
    multiplier: float,
    entropy: Entropy,
    least_move: float = 1.0,
) -> Vector:
    """The answer over some rows with Gaussian noise of ``multiplier`` sensitivities. Proof:
    docs/proofs/noise.md.
    """
    if multiplier == 0:
        return query(source, rows)
    grid = NoiseGrid.of(query, multiplier, entropy.relation, source.n_rows, least_move=least_move)
    entropy.take_from_reserve(query.size, 2 * grid.log2_deviation - 1)
    answer = query(source, rows)
    return grid.noisy(answer, _gaussian_noise(query, grid.log2_deviation, entropy.sampler))


def _gaussian_noise(query: Query, log2_deviation: int, sampler: Sampler) -> IntVector:
    if query.doubled is None:
        return sampler.gaussian(2 * log2_deviation, query.size)
    noise = np.empty(query.size, dtype=np.int64)
    twice = int(query.doubled.sum())
    noise[query.doubled] = sampler.gaussian(2 * log2_deviation - 1, twice)
    noise[~query.doubled] = sampler.gaussian(2 * log2_deviation, query.size - twice)
    return noise
