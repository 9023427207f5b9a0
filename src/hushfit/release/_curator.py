"""The door: the only place where rows meet noise, and the only way out. Proof: docs/proofs/noise.md and composition.md."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import NoReturn

import numpy as np

from hushfit._typing import IntVector, Vector
from hushfit.data import Coins, DataSource
from hushfit.errors import InvalidArgument, UndeclaredRelease
from hushfit.privacy import Relation, Sampler, discretisation_loss
from hushfit.release._difference import VarianceReducedGradient, anchored_batch
from hushfit.release._minimiser import CertifiedMinimiser, InsideNoise, PerturbedMinimiser
from hushfit.release._plan import Plan, Planned, PoissonBatch
from hushfit.release._query import Query

# Noise has a standard deviation of 2**31 grid steps, or fewer where integers of 64 bits would not hold the answer.
_LOG2_DEVIATION = 31
_LOG2_LARGEST = 61


@dataclass(frozen=True, eq=False)
class Released:
    """One noisy answer: public from the moment it exists."""

    name: str
    answer: Vector


@dataclass(frozen=True)
class NoiseGrid:
    """Where an answer is rounded and noise drawn: ``scale`` is the standard deviation, ``2**log2_deviation`` steps."""

    scale: float
    log2_deviation: int

    @property
    def step(self) -> float:
        return math.ldexp(self.scale, -self.log2_deviation)

    @classmethod
    def of(cls, query: Query, multiplier: float, relation: Relation, n_rows: float, stretch: float = 1.0) -> "NoiseGrid":
        """The grid on which noise is ``multiplier`` times the sensitivity, rounding to that very grid included.

        An answer is at most ``n_rows`` sensitivities long; ``stretch`` is the most by which the norm that the noise is
        measured in exceeds the Euclidean one.
        """
        log2_deviation = min(_LOG2_DEVIATION, math.floor(_LOG2_LARGEST - math.log2(max(n_rows / multiplier, 1.0))))
        if log2_deviation < 0:
            raise InvalidArgument(
                f"A noise multiplier of {multiplier:.3g} with {n_rows:.0f} rows is too small to draw exactly. Ask for a "
                "smaller epsilon, or for epsilon=inf if no privacy is meant."
            )
        entries = query.size + (0 if query.doubled is None else int(query.doubled.sum()))
        # Half a step for rounding, and the error of dividing by the step, on each of two answers.
        lost_steps = 2 * math.sqrt(entries) * (1 + math.ldexp(n_rows / multiplier, log2_deviation - 52))
        lost = multiplier * math.ldexp(stretch * lost_steps, -log2_deviation)
        if lost >= 0.5:
            raise InvalidArgument(
                f"A noise multiplier of {multiplier:.3g} on {query.size} coordinates is too large for the grid. Ask for a "
                "larger epsilon or fewer columns."
            )
        return cls(multiplier * stretch * query.sensitivity(relation) / (1 - lost), log2_deviation)

    @classmethod
    def inside(cls, query: PerturbedMinimiser, multiplier: float, relation: Relation, stretch: float) -> "NoiseGrid":
        """The grid of noise inside an objective; being a grid costs one step in each coordinate, in the norm of the noise."""
        lost = multiplier * math.ldexp(stretch**2, -_LOG2_DEVIATION)
        if lost >= 0.5:
            raise InvalidArgument(
                f"A noise multiplier of {multiplier:.3g} on {query.size} coordinates is too large for the grid. Ask for a "
                "larger epsilon or fewer columns."
            )
        return cls(multiplier * stretch * query.gradient_shift(relation) / (1 - lost), _LOG2_DEVIATION)


class Curator:
    """Holds the rows and answers only what the plan declared, with the noise that was paid for.

    Parameters
    ----------
    source : DataSource
        The private rows. Nobody else needs them from here on.
    plan : Plan
    multipliers : mapping from release name to noise multiplier
        As given by ``plan.multipliers``; 0 means no noise, for fits that claim no privacy.
    relation : Relation
    sampler : Sampler
    coins : Coins
        Secret coins for sampled batches.
    epsilon_reserve : float, default=inf
        What the budget has set aside for the difference between discrete and continuous noise.
    replay : iterable of Released, default=()
        Answers already released by an interrupted run of the same plan; they are given again instead of new ones.
    """

    def __init__(
        self,
        source: DataSource,
        plan: Plan,
        multipliers: Mapping[str, float],
        relation: Relation,
        sampler: Sampler,
        coins: Coins,
        epsilon_reserve: float = math.inf,
        replay: Iterable[Released] = (),
    ) -> None:
        self.__source = source
        self._parts: dict[str, Planned] = {part.name: part for part in plan.parts}
        self._left = {part.name: part.count for part in plan.parts}
        self._multipliers = dict(multipliers)
        self._sampler = sampler
        self._coins = coins
        self._reserve = epsilon_reserve
        self._replay = list(replay)
        self._lock = Lock()
        self.relation = relation
        self.transcript: list[Released] = []

    def noise_multiplier(self, name: str) -> float:
        """Noise scale over sensitivity of the releases under this name; public."""
        return self._multipliers[name]

    def release(self, name: str, query: Query) -> Vector:
        """Answer a declared query with noise.

        Raises
        ------
        UndeclaredRelease
            If the plan has no release of that name left, or declared another kind of query. Nothing is computed.
        """
        with self._lock:
            self._take(name, query)
        answer = self._replayed(name, query) if self._replay else self._noisy(name, query)
        answer.setflags(write=False)  # a solver that wrote into its answer would rewrite the transcript
        self.transcript.append(Released(name, answer))
        return answer

    def _take(self, name: str, query: Query) -> None:
        if name not in self._parts:
            raise UndeclaredRelease(_refusal(f"declares no release named {name!r}"))
        declared = self._parts[name]
        if not isinstance(query, declared.query):
            raise UndeclaredRelease(_refusal(f"declares {name!r} as {declared.query.__name__}, not as {type(query).__name__}"))
        if self._left[name] < 1:
            raise UndeclaredRelease(_refusal(f"declares {declared.count} releases of {name!r}, and they have been made"))
        if isinstance(declared.sampling, PoissonBatch) and query.sensitivity(self.relation) < _least_for_poisson(
            query, self.relation
        ):
            raise UndeclaredRelease(
                _refusal(
                    f"declares {name!r} on Poisson batches, whose price is proved for twice the radius, and this query has less"
                )
            )
        if isinstance(query, VarianceReducedGradient) and declared.sampling != anchored_batch(query.problem, query.rate):
            raise UndeclaredRelease(_refusal(f"declares {name!r} with {declared.sampling!r}, which is not the batch of this query"))
        if isinstance(query, PerturbedMinimiser) and not query.is_covered_by(declared.sampling):
            raise UndeclaredRelease(_refusal(f"declares {name!r} with {declared.sampling!r}, not with kappa={query.kappa:g}"))
        self._left[name] -= 1

    def _replayed(self, name: str, query: Query) -> Vector:
        released = self._replay.pop(0)
        if released.name != name or released.answer.shape != (query.size,):
            raise InvalidArgument(
                f"The checkpoint has a release of {released.name!r} where the solver asks for {name!r}: it belongs to another "
                "fit. Delete it or give its own settings."
            )
        return released.answer

    def _noisy(self, name: str, query: Query) -> Vector:
        multiplier, sampling = self._multipliers[name], self._parts[name].sampling
        n_rows = self.__source.n_rows
        rows_meant = getattr(getattr(query, "problem", None), "n_rows", n_rows)
        if rows_meant != n_rows:
            raise UndeclaredRelease(_refusal(f"is for {n_rows} rows, and this query counts on {rows_meant}"))
        if multiplier == 0:
            return query(self.__source, sampling.rows(n_rows, self._coins))
        if isinstance(query, PerturbedMinimiser) and isinstance(sampling, InsideNoise):
            return self._minimiser(query, multiplier, sampling)
        grid = NoiseGrid.of(query, multiplier, self.relation, n_rows)
        self._take_from_reserve(query.size, grid)
        answer = query(self.__source, sampling.rows(n_rows, self._coins))
        return _on_grid(answer, grid, self._noise(query, grid.log2_deviation))

    def _minimiser(self, query: PerturbedMinimiser, multiplier: float, noise: InsideNoise) -> Vector:
        """Noise in the objective, then noise on what was found to minimise it."""
        stretch = noise.stretch(query.size)
        inside = NoiseGrid.inside(query, multiplier, self.relation, stretch)
        zero = np.zeros(query.size)
        bounds = CertifiedMinimiser(query, zero, inside.scale, inside.step)
        reach = bounds.largest / bounds.sensitivity(self.relation)
        grid = NoiseGrid.of(bounds, noise.output_multiplier(multiplier), self.relation, reach, stretch)
        self._take_from_reserve(2 * query.size, grid)
        drawn = _on_grid(zero, inside, noise.draw(self._sampler, inside.log2_deviation, query.size))
        answer = CertifiedMinimiser(query, drawn, inside.scale, inside.step)(self.__source, None)
        return _on_grid(answer, grid, noise.draw(self._sampler, grid.log2_deviation, query.size))

    def _take_from_reserve(self, coordinates: int, grid: NoiseGrid) -> None:
        self._reserve -= discretisation_loss(coordinates, 2 * grid.log2_deviation - 1)
        if self._reserve < 0:
            raise InvalidArgument(
                "This fit draws more noise than its reserve for discrete noise covers. Ask for a larger epsilon, or take "
                "fewer steps."
            )

    def _noise(self, query: Query, log2_deviation: int) -> IntVector:
        if query.doubled is None:
            return self._sampler.gaussian(2 * log2_deviation, query.size)
        noise = np.empty(query.size, dtype=np.int64)
        twice = int(query.doubled.sum())
        noise[query.doubled] = self._sampler.gaussian(2 * log2_deviation - 1, twice)
        noise[~query.doubled] = self._sampler.gaussian(2 * log2_deviation, query.size - twice)
        return noise

    def __repr__(self) -> str:
        return f"Curator(relation={self.relation.value!r}, left={self._left})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A curator cannot be copied or pickled: a copy could release everything twice.")


def _least_for_poisson(query: Query, relation: Relation) -> float:
    """docs/proofs/poisson.md: under replace-one the dominating pair has two records of opposite direction."""
    return (2 if relation is Relation.REPLACE_ONE else 1) * query.radius() * (1 - 1e-12)


def _on_grid(answer: Vector, grid: NoiseGrid, noise: IntVector) -> Vector:
    """Round to the grid, add integers, scale back."""
    steps = np.rint(answer / grid.step).astype(np.int64) + noise
    noisy: Vector = np.multiply(steps, grid.step, dtype=np.float64)
    return noisy


def _refusal(reason: str) -> str:
    return f"The plan {reason}. Nothing was released. Declare in the solver's plan all that it will ask."
