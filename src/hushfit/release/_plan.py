"""What a solver will ask, said before it asks."""

import math
from dataclasses import dataclass
from typing import Protocol

from hushfit._typing import IntVector
from hushfit.data import Coins, fixed_size_rows, poisson_rows
from hushfit.errors import InvalidArgument, TooFewRows
from hushfit.privacy import (
    Cost,
    FixedSizeGaussianCost,
    GaussianCost,
    PoissonGaussianCost,
    ReleaseRecord,
    compose,
    discretisation_loss,
)
from hushfit.problem import Problem
from hushfit.release._minimiser import InsideNoise, PerturbedMinimiser
from hushfit.release._query import Query

# Of the coarsest noise that a fit usually draws: half of (2**31)^2 grid steps.
DRAWN_LOG2_VARIANCE = 61


class Sampling(Protocol):
    """Which records take part in one release, and what that does to its price."""

    def rows(self, n_rows: int, coins: Coins) -> IntVector | None: ...
    def expected_rows(self, n_rows: int) -> float: ...
    def multiplier(self, strength: float, count: int, n_rows: int) -> float: ...
    def cost(self, noise_multiplier: float, count: int, n_rows: int) -> Cost: ...


@dataclass(frozen=True)
class FullBatch:
    """Every record, every time."""

    def rows(self, n_rows: int, coins: Coins) -> None:
        return None

    def expected_rows(self, n_rows: int) -> float:
        return n_rows

    def multiplier(self, strength: float, count: int, n_rows: int) -> float:
        return math.sqrt(count) / strength

    def cost(self, noise_multiplier: float, count: int, n_rows: int) -> Cost:
        return GaussianCost(noise_multiplier, count)

    def __str__(self) -> str:
        return "all rows"


def _subsampled_multiplier(strength: float, count: int, rate: float) -> float:
    # By the central limit theorem, count steps at this multiplier amount to about `strength` in Gaussian terms.
    return 1 / math.sqrt(math.log1p(strength**2 / (rate**2 * count)))


@dataclass(frozen=True)
class PoissonBatch:
    """Each record on its own with probability ``rate``; sums are divided by the public ``rate * n``."""

    rate: float

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise InvalidArgument(f"rate={self.rate!r} must lie in (0, 1]: the share of rows in an average batch.")

    def rows(self, n_rows: int, coins: Coins) -> IntVector:
        return poisson_rows(n_rows, self.rate, coins)

    def expected_rows(self, n_rows: int) -> float:
        return self.rate * n_rows

    def multiplier(self, strength: float, count: int, n_rows: int) -> float:
        return _subsampled_multiplier(strength, count, self.rate)

    def cost(self, noise_multiplier: float, count: int, n_rows: int) -> Cost:
        return PoissonGaussianCost(noise_multiplier, self.rate, count)

    def __str__(self) -> str:
        return f"each row with probability {self.rate:g}"


@dataclass(frozen=True)
class FixedSizeBatch:
    """``size`` different records, uniformly chosen, afresh for each release."""

    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InvalidArgument(f"size={self.size!r} must be at least 1: the number of rows in a batch.")

    def _rate(self, n_rows: int) -> float:
        if self.size > n_rows:
            raise TooFewRows(
                f"The plan samples {self.size} rows without replacement but there are only {n_rows}. Ask for a smaller batch."
            )
        return self.size / n_rows

    def rows(self, n_rows: int, coins: Coins) -> IntVector:
        return fixed_size_rows(n_rows, self.size, coins)

    def expected_rows(self, n_rows: int) -> float:
        return self.size

    def multiplier(self, strength: float, count: int, n_rows: int) -> float:
        return _subsampled_multiplier(strength, count, self._rate(n_rows))

    def cost(self, noise_multiplier: float, count: int, n_rows: int) -> Cost:
        return FixedSizeGaussianCost(noise_multiplier, self._rate(n_rows), count)

    def __str__(self) -> str:
        return f"{self.size} rows without replacement"


@dataclass(frozen=True)
class Planned:
    """``count`` releases of one kind of query under one name, with a share of the budget between them.

    ``share`` divides the square of the Gaussian parameter mu, which is what adds up.
    """

    name: str
    query: type[Query]
    count: int
    share: float = 1.0
    sampling: Sampling = FullBatch()

    def coordinates(self, problem: Problem) -> int:
        """At least the number of coordinates of one answer: what the query says of itself, or the size of the weights."""
        of_query = getattr(self.query, "coordinates", None)
        return int(of_query(problem)) if of_query else 3 * math.prod(problem.shape)

    def __post_init__(self) -> None:
        if (self.query is PerturbedMinimiser) != isinstance(self.sampling, InsideNoise):
            raise InvalidArgument(
                f"{self.name!r} asks {self.query.__name__} of {self.sampling}, but noise inside an objective has its own "
                "price. Plan PerturbedMinimiser with GaussianInside or LaplaceInside, and nothing else with them."
            )
        only_for = getattr(self.sampling, "only_for", None)
        if only_for is not None and self.query.__name__ != only_for:
            raise InvalidArgument(
                f"{self.name!r} asks {self.query.__name__} of {self.sampling}, whose price is proved for {only_for} alone. "
                "Use FullBatch()."
            )
        if only_for is None and not (self.query.sampled or isinstance(self.sampling, FullBatch | InsideNoise)):
            raise InvalidArgument(
                f"{self.name!r} asks {self.query.__name__} of {self.sampling}, but its proof covers all rows only. Use FullBatch()."
            )


@dataclass(frozen=True)
class Plan:
    """All releases of a fit. Shares need not add up to one: they are weights."""

    parts: tuple[Planned, ...]

    def __post_init__(self) -> None:
        names = [part.name for part in self.parts]
        if len(set(names)) < len(names):
            raise InvalidArgument(f"Releases of one plan need different names; got {names}.")

    def shares(self) -> dict[str, float]:
        """Share of each name, adding up to one."""
        total = sum(part.share for part in self.parts)
        return {part.name: part.share / total for part in self.parts}

    def multipliers(self, strength: float, n_rows: int) -> dict[str, float]:
        """Noise multiplier of each name when the whole plan is about as revealing as one Gaussian of that mu."""
        if math.isinf(strength):
            return {part.name: 0.0 for part in self.parts}
        shares = self.shares()
        return {
            part.name: part.sampling.multiplier(strength * math.sqrt(shares[part.name]), part.count, n_rows) for part in self.parts
        }

    def cost(self, multipliers: dict[str, float], n_rows: int) -> Cost:
        """Price of the whole plan."""
        return compose([part.sampling.cost(multipliers[part.name], part.count, n_rows) for part in self.parts])

    def require_drawable(self, multipliers: dict[str, float], problem: Problem, reserve: float) -> None:
        """Refuse, before anything is paid, a plan whose noise could not be drawn within the reserve for discrete noise."""
        loss = sum(
            part.count * discretisation_loss(part.coordinates(problem), DRAWN_LOG2_VARIANCE)
            for part in self.parts
            if multipliers[part.name] > 0
        )
        if loss > reserve:
            raise InvalidArgument(
                f"{problem.dimension} columns and {sum(part.count for part in self.parts)} releases draw more noise than the "
                "reserve for discrete noise covers. Ask for a larger epsilon, fewer steps or fewer columns."
            )

    def records(self, multipliers: dict[str, float]) -> tuple[ReleaseRecord, ...]:
        """The plan as a guarantee tells it."""
        shares = self.shares()
        return tuple(
            ReleaseRecord(part.name, part.query.__name__, part.count, multipliers[part.name], str(part.sampling), shares[part.name])
            for part in self.parts
        )
