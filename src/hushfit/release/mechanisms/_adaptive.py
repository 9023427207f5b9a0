"""Runs that choose noise adaptively from earlier releases, under a privacy filter. Proof:
docs/proofs/filter.md.

A plan declares the run as a whole: a maximal number of releases, at the cost of the filter. Each
release has its own noise and mechanism (`Priced`), and the curator, which holds the filter, refuses
the one that would exceed the budget.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from hushfit._typing import BoolVector, IntVector, Vector
from hushfit.data import DataSource
from hushfit.errors import InvalidArgument
from hushfit.privacy import (
    ApproximateCost,
    Cost,
    Filter,
    GaussianCost,
    GaussianFilter,
    RdpFilter,
    Relation,
    epsilon_of,
)
from hushfit.privacy.accounting import filter_orders
from hushfit.problem import Problem
from hushfit.release.mechanism import Entropy, Mechanism, objection_to
from hushfit.release.queries import GatedStep
from hushfit.release.query import Assumed, Query


@dataclass(frozen=True, eq=False)
class Priced:
    """A query of an adaptive run, with its mechanism and noise multiplier.

    Parameters
    ----------
    query : Query
        One whose bounds assume a problem.
    sampling : Mechanism
    noise_multiplier : float
        Above 0. Without privacy the curator adds no noise.
    """

    query: Query
    sampling: Mechanism
    noise_multiplier: float

    sampled: ClassVar[bool] = False
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = "GaussianRun or RenyiRun"

    def __post_init__(self) -> None:
        if not 0 < self.noise_multiplier < math.inf:
            raise InvalidArgument(
                f"noise_multiplier={self.noise_multiplier!r} must be finite and above 0."
            )

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return GatedStep.coordinates(problem)

    @property
    def problem(self) -> Assumed:
        if self.query.problem is None:
            raise InvalidArgument(
                f"{type(self.query).__name__} has no number of rows, which the cost of a release "
                "within an adaptive run needs. Plan it outside the run."
            )
        return self.query.problem

    @property
    def cost(self) -> Cost:
        """Cost of this release."""
        return self.sampling.cost(self.noise_multiplier, 1, self.problem.n_units)

    @property
    def size(self) -> int:
        return self.query.size

    @property
    def doubled(self) -> BoolVector | None:
        return self.query.doubled

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return self.query(source, units)

    def radius(self) -> float:
        return self.query.radius()

    def sensitivity(self, relation: Relation) -> float:
        return self.query.sensitivity(relation)


class AdaptiveRun(ABC):
    """Cost of a whole adaptive run, and the privacy filter that enforces it. Its noise multiplier
    is that of the run, not of a release.
    """

    answers: ClassVar[type[Query]] = Priced
    # The proof of a filter allows no other releases in between.
    alone, samples, sized = True, False, True

    def expected_units(self, n_units: int) -> float:
        return n_units

    def multiplier(self, strength: float, count: int, n_units: int) -> float:
        # One noise multiplier for the run, for any number of releases.
        return 1 / strength

    @abstractmethod
    def cost(self, noise_multiplier: float, count: int, n_units: int) -> Cost:
        """Cost of the whole run."""

    @abstractmethod
    def filter(self, noise_multiplier: float, relation: Relation) -> Filter:
        """A privacy filter that keeps a run within that cost."""

    def objection(self, query: Priced, relation: Relation) -> str | None:
        if query.sampling.alone:
            return "as one run, and a run inside a run would not be charged"
        reason = objection_to(query.sampling, type(query.query))
        if reason is not None:
            return f"but {reason}"
        return query.sampling.objection(query.query, relation)

    def answer(
        self, query: Priced, source: DataSource, noise_multiplier: float, entropy: Entropy
    ) -> Vector:
        """The answer of the query's own mechanism; the filter has been charged by then."""
        own = query.noise_multiplier if noise_multiplier > 0 else 0.0
        return query.sampling.answer(query.query, source, own, entropy)


@dataclass(frozen=True)
class GaussianRun(AdaptiveRun):
    """Gaussian and pure releases over all rows whose composition has at most the privacy loss of
    one Gaussian release: adaptivity costs nothing.
    """

    def cost(self, noise_multiplier: float, count: int, n_units: int) -> Cost:
        return GaussianCost(noise_multiplier)

    def filter(self, noise_multiplier: float, relation: Relation) -> Filter:
        return GaussianFilter(1 / noise_multiplier)

    def __str__(self) -> str:
        return (
            "all rows at the most, with noise chosen during the run under a Gaussian filter, "
            "as a whole"
        )


@dataclass(frozen=True)
class RenyiRun(AdaptiveRun):
    """Releases with any Rényi curve, also sampled ones, under a filter that keeps them (epsilon,
    delta)-private.

    Parameters
    ----------
    delta : float
        Delta of the filter. The noise multiplier of the run determines its epsilon: that of one
        Gaussian release at this delta.
    """

    delta: float

    def cost(self, noise_multiplier: float, count: int, n_units: int) -> Cost:
        return ApproximateCost(self._epsilon(noise_multiplier), self.delta)

    def filter(self, noise_multiplier: float, relation: Relation) -> Filter:
        epsilon = self._epsilon(noise_multiplier)
        return RdpFilter(epsilon, self.delta, relation, filter_orders(epsilon, self.delta))

    def _epsilon(self, noise_multiplier: float) -> float:
        # A Gaussian release has the same epsilon under both relations.
        return (
            epsilon_of(GaussianCost(noise_multiplier), self.delta, Relation.REPLACE_ONE)
            if noise_multiplier > 0
            else math.inf
        )

    def __str__(self) -> str:
        return (
            "batches at the most, with noise chosen during the run under a Renyi filter, as a whole"
        )
