"""Above-threshold tests (gates) and report noisy max over public candidates.

A gate may read the batch of the noisy gradient that its candidates come from (`GatedBatch`); then
one cost covers both. Proofs: docs/proofs/{line_search,above_threshold,gated}.md.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from hushfit._typing import IntVector, Vector
from hushfit.data import DataSource, poisson_units
from hushfit.errors import InvalidArgument
from hushfit.privacy import (
    AboveThresholdCost,
    Cost,
    GatedCost,
    GaussianCost,
    PureCost,
    Relation,
    compose,
)
from hushfit.privacy.costs import GATE_NOISES
from hushfit.release.mechanism import Entropy, NoiseGrid, gaussian_answer
from hushfit.release.mechanisms._batches import _subsampled_multiplier
from hushfit.release.queries import MOST_QUERIES, Choice, Gate, GatedStep, first_passed
from hushfit.release.query import Query

# Largest log2 of the threshold's noise scale in grid steps. Noise on a query has twice the scale of
# that on the threshold, or for Gaussian noise twice its variance: both are exact on one grid.
_MAX_LOG2_DEVIATION = 30


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
    return first_passed(steps >= threshold)


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
    if not 1 <= queries <= MOST_QUERIES:
        raise InvalidArgument(
            f"queries={queries!r} must lie between 1 and {MOST_QUERIES}: the most candidates of a "
            "gate."
        )
