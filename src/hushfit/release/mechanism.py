"""The mechanism interface: how an exact answer becomes a noisy one, and at what cost.

A new mechanism is a class with these methods and a proof page; the curator needs no change. Proof:
docs/proofs/noise.md.
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
from hushfit.privacy import Cost, Relation, Sampler
from hushfit.privacy.noise import DiscreteNoise
from hushfit.release.query import Query

# Noise has a standard deviation of 2**31 grid steps, or fewer where the answer would overflow
# 64-bit integers.
LOG2_DEVIATION = 31
_LOG2_LARGEST = 61


class Mechanism(Protocol):
    """How a planned release answers its queries, and the cost of doing so.

    A query that reaches ``objection`` or ``answer`` is of the type ``answers``: plans and curators
    check that.
    """

    @property
    def answers(self) -> type[Query] | None:
        """The only type of query that its cost is proved for; None for all types that need no
        particular mechanism.
        """

    @property
    def samples(self) -> bool:
        """Whether it reads a random batch, which not every query has a proof for."""

    @property
    def alone(self) -> bool:
        """Whether its proof allows no other release in the same plan."""

    @property
    def sized(self) -> bool:
        """Whether an answer has ``query.size`` entries; a list of texts has any number."""

    def expected_units(self, n_units: int) -> float:
        """Expected number of records in one release; public."""

    def multiplier(self, strength: float, count: int, n_units: int) -> float:
        """Noise multiplier at which ``count`` releases have about the privacy loss of one Gaussian
        release with mu = ``strength``.
        """

    def cost(self, noise_multiplier: float, count: int, n_units: int) -> Cost:
        """Cost of ``count`` releases."""

    def objection(self, query: Any, relation: Relation) -> str | None:
        """Why its cost does not cover this query, or None; called before anything is computed."""

    def answer(
        self, query: Any, source: DataSource, noise_multiplier: float, entropy: "Entropy"
    ) -> Vector:
        """The noisy answer; the exact one for a noise multiplier of 0."""


def objection_to(mechanism: Mechanism, kind: type[Query]) -> str | None:
    """Why no query of this type may be planned with a mechanism, or None."""
    if mechanism.answers is not None:
        own = mechanism.answers.__name__
        return (
            None
            if kind is mechanism.answers
            else f"its cost is proved for {own} alone. Plan only {own} with it"
        )
    if kind.made_for is not None:
        return f"a {kind.__name__} has its own cost. Plan it with {kind.made_for}"
    if mechanism.samples and not kind.sampled:
        return "its proof covers all rows only. Use FullBatch()"
    return None


class Entropy:
    """Random sources of a mechanism (noise and random bits), and the reserve that covers the
    discreteness of noise.
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
        self._reserve, self._drawn = epsilon_reserve, DiscreteNoise()

    def take_from_reserve(self, coordinates: int, log2_variance: int) -> None:
        """Charge the reserve for noise on so many coordinates; to be called before anything is
        drawn or computed.
        """
        self._drawn = self._drawn.with_more(coordinates, log2_variance)
        if self._drawn.loss > self._reserve:
            raise InvalidArgument(
                "This fit draws more noise than its reserve for discrete noise covers. Ask for a "
                "larger epsilon, or take fewer steps."
            )


@dataclass(frozen=True)
class NoiseGrid:
    """The grid on which an answer is rounded and noise is drawn: ``scale`` is the standard
    deviation, ``2**log2_deviation`` steps.
    """

    scale: float
    log2_deviation: int

    def __post_init__(self) -> None:
        # Infinite noise hides nothing that is not finite, and a sensitivity that is no number
        # bounds nothing.
        if not self.scale < math.inf:
            raise InvalidArgument(
                f"Noise of scale {self.scale:.3g} is not finite. Give a smaller clip or weights."
            )
        # A subnormal or zero step would be rounded, and all noise with it.
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
        n_units: float,
        stretch: float = 1.0,
        finest: int = LOG2_DEVIATION,
        least_move: float = 1.0,
    ) -> "NoiseGrid":
        """The grid on which noise is ``multiplier`` times the sensitivity, including the rounding
        to that grid.

        The norm of an answer is at most ``n_units`` sensitivities; ``stretch`` is the largest ratio
        of the norm that the noise is measured in to the Euclidean one. The standard deviation is at
        most ``2**finest`` steps. ``least_move`` is the smallest distance between answers that the
        cost assumes, as a share of the sensitivity: rounding is included in that one as well.
        """
        twice = 0 if query.doubled is None else int(query.doubled.sum())
        sensitivity = query.sensitivity(relation)
        room = stretch, finest, least_move
        return _noise_grid(sensitivity, query.size, twice, multiplier, n_units, *room)

    def noisy(self, answer: Vector, noise: IntVector) -> Vector:
        """Round to the grid, add integers, scale back."""
        if answer.shape != noise.shape:
            # The same noise on several entries would cancel in their difference.
            raise InvalidArgument(
                f"An answer of shape {answer.shape} does not match noise of shape {noise.shape}. "
                "Correct the size of the query."
            )
        noisy: Vector = add_on_grid(answer, noise, self.step)
        return noisy


@lru_cache  # the steps of a run all draw on one grid
def _noise_grid(
    sensitivity: float,
    size: int,
    twice: int,
    multiplier: float,
    n_units: float,
    stretch: float,
    finest: int,
    least_move: float,
) -> NoiseGrid:
    log2_deviation = min(
        finest, math.floor(_LOG2_LARGEST - math.log2(max(n_units / multiplier, 1.0)))
    )
    if log2_deviation < 0:
        raise InvalidArgument(
            f"A noise multiplier of {multiplier:.3g} for {n_units:.0f} units is too small to draw "
            "exactly. Ask for a smaller epsilon, or for epsilon=inf if no privacy is meant."
        )
    # Half a step for rounding, and the error of dividing by the step, on each of two answers.
    rounding_steps = (
        2 * math.sqrt(size + twice) * (1 + math.ldexp(n_units / multiplier, log2_deviation - 52))
    )
    rounding_share = multiplier * math.ldexp(stretch * rounding_steps, -log2_deviation) / least_move
    if rounding_share >= 0.5:
        raise too_large(multiplier, size)
    return NoiseGrid(multiplier * stretch * sensitivity / (1 - rounding_share), log2_deviation)


def too_large(multiplier: float, size: int) -> InvalidArgument:
    """The error for noise that cannot be drawn on the grid."""
    return InvalidArgument(
        f"A noise multiplier of {multiplier:.3g} on {size} coordinates is too large for the grid. "
        "Ask for a larger epsilon or fewer columns."
    )


def gaussian_answer(
    query: Query,
    source: DataSource,
    units: IntVector | None,
    multiplier: float,
    entropy: Entropy,
    least_move: float = 1.0,
) -> Vector:
    """The answer over some rows with Gaussian noise of standard deviation ``multiplier`` times the
    sensitivity. Proof: docs/proofs/noise.md.
    """
    if multiplier == 0:
        return query(source, units)
    grid = NoiseGrid.of(query, multiplier, entropy.relation, source.n_units, least_move=least_move)
    entropy.take_from_reserve(query.size, 2 * grid.log2_deviation - 1)
    answer = query(source, units)
    return grid.noisy(answer, _gaussian_noise(query, grid.log2_deviation, entropy.sampler))


def _gaussian_noise(query: Query, log2_deviation: int, sampler: Sampler) -> IntVector:
    if query.doubled is None:
        return sampler.gaussian(2 * log2_deviation, query.size)
    noise = np.empty(query.size, dtype=np.int64)
    twice = int(query.doubled.sum())
    noise[query.doubled] = sampler.gaussian(2 * log2_deviation - 1, twice)
    noise[~query.doubled] = sampler.gaussian(2 * log2_deviation, query.size - twice)
    return noise
