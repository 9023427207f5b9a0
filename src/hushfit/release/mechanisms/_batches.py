"""Gaussian noise on an answer over all records, or over a batch of them. Proofs:
docs/proofs/{gaussian,noise,poisson,fixed_size}.md.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from hushfit._typing import IntVector, Vector
from hushfit.data import Coins, DataSource, fixed_size_units, poisson_units
from hushfit.errors import InvalidArgument, TooFewRows
from hushfit.privacy import (
    Cost,
    FixedSizeGaussianCost,
    GaussianCost,
    PoissonGaussianCost,
    Relation,
    exchanges,
)
from hushfit.release.mechanism import Entropy, gaussian_answer
from hushfit.release.query import Query


class Sampling(ABC):
    """Which records are in one release, and the cost of its Gaussian noise."""

    alone, samples, sized = False, True, True

    @property
    def answers(self) -> type[Query] | None:
        """Every type of query that needs no particular mechanism."""
        return None

    @abstractmethod
    def units(self, n_units: int, coins: Coins) -> IntVector | None:
        """The records of one release; None for all."""

    @abstractmethod
    def expected_units(self, n_units: int) -> float:
        """Expected number of records in one release; public."""

    @abstractmethod
    def multiplier(self, strength: float, count: int, n_units: int) -> float:
        """Noise multiplier at which ``count`` releases have about the privacy loss of one Gaussian
        release with mu = ``strength``.
        """

    @abstractmethod
    def cost(self, noise_multiplier: float, count: int, n_units: int) -> Cost:
        """Cost of ``count`` releases."""

    def objection(self, query: Any, relation: Relation) -> str | None:
        """Why its cost does not cover this query, or None."""
        return None

    def answer(
        self, query: Any, source: DataSource, noise_multiplier: float, entropy: Entropy
    ) -> Vector:
        """Noise on the answer over freshly drawn records."""
        return gaussian_answer(
            query, source, self.units(source.n_units, entropy.coins), noise_multiplier, entropy
        )


@dataclass(frozen=True)
class FullBatch(Sampling):
    """Every record, every time."""

    samples = False

    def units(self, n_units: int, coins: Coins) -> IntVector | None:
        return None

    def expected_units(self, n_units: int) -> float:
        return n_units

    def multiplier(self, strength: float, count: int, n_units: int) -> float:
        return math.sqrt(count) / strength

    def cost(self, noise_multiplier: float, count: int, n_units: int) -> Cost:
        return GaussianCost(noise_multiplier, count)

    def __str__(self) -> str:
        return "all rows"


def _subsampled_multiplier(strength: float, count: int, rate: float) -> float:
    # By the central limit theorem, the composition of `count` steps at this multiplier is about
    # Gaussian with mu = `strength`.
    return 1 / math.sqrt(math.log1p(strength**2 / (rate**2 * count)))


@dataclass(frozen=True)
class PoissonBatch(Sampling):
    """Poisson sampling: each record independently with probability ``rate``; sums are divided by
    the public ``rate * n``.
    """

    rate: float

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise InvalidArgument(
                f"rate={self.rate!r} must lie in (0, 1]: the share of rows in an average batch."
            )

    def units(self, n_units: int, coins: Coins) -> IntVector:
        return poisson_units(n_units, self.rate, coins)

    def expected_units(self, n_units: int) -> float:
        return self.rate * n_units

    def multiplier(self, strength: float, count: int, n_units: int) -> float:
        return _subsampled_multiplier(strength, count, self.rate)

    def cost(self, noise_multiplier: float, count: int, n_units: int) -> Cost:
        return PoissonGaussianCost(noise_multiplier, self.rate, count)

    def objection(self, query: Any, relation: Relation) -> str | None:
        # docs/proofs/poisson.md: under replace-one the dominating pair has two records of opposite
        # direction.
        # direction, and so has that of replaced labels.
        least = (2 if exchanges(relation) else 1) * query.radius() * (1 - 1e-12)
        if query.sensitivity(relation) < least:
            return (
                "on Poisson batches, whose cost is proved for a sensitivity of twice the radius, "
                "and this query has less"
            )
        return None

    def __str__(self) -> str:
        return f"each unit with probability {self.rate:g}"


@dataclass(frozen=True)
class FixedSizeBatch(Sampling):
    """Sampling without replacement: ``size`` different records, uniformly chosen, freshly drawn for
    each release.
    """

    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InvalidArgument(
                f"size={self.size!r} must be at least 1: the number of rows in a batch."
            )

    def _rate(self, n_units: int) -> float:
        if self.size > n_units:
            raise TooFewRows(
                f"The plan samples {self.size} units without replacement but there are only "
                f"{n_units}. Ask for a smaller batch."
            )
        return self.size / n_units

    def units(self, n_units: int, coins: Coins) -> IntVector:
        return fixed_size_units(n_units, self.size, coins)

    def expected_units(self, n_units: int) -> float:
        return self.size

    def multiplier(self, strength: float, count: int, n_units: int) -> float:
        return _subsampled_multiplier(strength, count, self._rate(n_units))

    def cost(self, noise_multiplier: float, count: int, n_units: int) -> Cost:
        return FixedSizeGaussianCost(noise_multiplier, self._rate(n_units), count)

    def __str__(self) -> str:
        return f"{self.size} units without replacement"
