"""Plans: all releases that a solver will make, declared in advance."""

import math
from dataclasses import dataclass

from hushfit.data import DataSource, InParts, scaling_of
from hushfit.errors import InvalidArgument
from hushfit.privacy import (
    Budget,
    Cost,
    Relation,
    ReleaseRecord,
    calibrate,
    compose,
    discretisation_loss,
    usable,
)
from hushfit.problem import Problem
from hushfit.release.mechanism import Mechanism, objection_to
from hushfit.release.mechanisms import FullBatch
from hushfit.release.query import Query, require_relation, require_scaling

# log2 variance of the coarsest noise that a fit usually draws: half of (2**31)^2 grid steps.
DRAWN_LOG2_VARIANCE = 61


@dataclass(frozen=True)
class Planned:
    """``count`` releases of one type of query under one name, with a share of the budget for all of
    them.

    ``share`` is a share of the squared Gaussian parameter mu, which adds up under composition.
    """

    name: str
    query: type[Query]
    count: int
    share: float = 1.0
    sampling: Mechanism = FullBatch()

    def __post_init__(self) -> None:
        objection = objection_to(self.sampling, self.query)
        if objection is not None:
            raise InvalidArgument(
                f"{self.name!r} plans {self.query.__name__} with {self.sampling}, but {objection}."
            )


@dataclass(frozen=True)
class Plan:
    """All releases of a fit. Shares need not add up to one: they are weights."""

    parts: tuple[Planned, ...]

    def __post_init__(self) -> None:
        names = [part.name for part in self.parts]
        if len(set(names)) < len(names):
            raise InvalidArgument(f"Releases of one plan need different names; got {names}.")
        if len(names) > 1 and any(part.sampling.alone for part in self.parts):
            raise InvalidArgument(
                "An adaptive run is proved only as a whole plan, without other releases; got "
                f"{names}. Use two fits."
            )

    def shares(self) -> dict[str, float]:
        """Share of each release name, adding up to one."""
        total = sum(part.share for part in self.parts)
        return {part.name: part.share / total for part in self.parts}

    def multipliers(self, strength: float, n_units: int) -> dict[str, float]:
        """Noise multiplier of each release name when the whole plan has about the privacy loss of
        one Gaussian release with mu = ``strength``.
        """
        if math.isinf(strength):
            return {part.name: 0.0 for part in self.parts}
        shares = self.shares()
        return {
            part.name: part.sampling.multiplier(
                strength * math.sqrt(shares[part.name]), part.count, n_units
            )
            for part in self.parts
        }

    def cost(self, multipliers: dict[str, float], n_units: int) -> Cost:
        """Cost of the whole plan."""
        return compose(
            [part.sampling.cost(multipliers[part.name], part.count, n_units) for part in self.parts]
        )

    def quote(self, problem: Problem, budget: Budget) -> "Quote":
        """Calibrate a fit to a budget: the smallest noise multipliers and their cost; nothing is
        charged yet.
        """
        for part in self.parts:
            require_scaling(part.query, scaling_of(problem))
        drawn = sum(part.count * part.query.coordinates(problem) for part in self.parts)
        return self.quote_for(problem.n_units, problem.relation, budget, drawn)

    def quote_for(
        self, n_units: int, relation: Relation, budget: Budget, coordinates: int
    ) -> "Quote":
        """Calibrate releases other than a fit; ``coordinates`` bounds how many values get noise."""
        for part in self.parts:
            require_relation(part.query, relation)
        spendable, reserve = usable(budget)

        def cost(mu: float) -> Cost:
            return self.cost(self.multipliers(mu, n_units), n_units)

        multipliers = self.multipliers(calibrate(cost, spendable, relation), n_units)
        if discretisation_loss(coordinates, DRAWN_LOG2_VARIANCE) > reserve:
            raise InvalidArgument(
                f"{coordinates} noisy values are more than the reserve for discrete noise covers. "
                "Ask for a larger epsilon, fewer steps or fewer columns."
            )
        return Quote.at(self, multipliers, n_units, reserve)

    def records(self, multipliers: dict[str, float]) -> tuple[ReleaseRecord, ...]:
        """The plan as it is listed in a guarantee."""
        shares = self.shares()
        return tuple(
            ReleaseRecord(
                part.name,
                part.query.__name__,
                part.count,
                multipliers[part.name],
                str(part.sampling),
                shares[part.name],
            )
            for part in self.parts
        )


def refuse_in_parts(plan: Plan, source: DataSource) -> None:
    """Refuse a plan that a table in several places cannot answer, before anything is charged."""
    if not isinstance(source, InParts):
        return
    for part in plan.parts:
        if part.sampling.samples:
            raise InvalidArgument(
                f"The rows lie in several places, and {part.name!r} is over sampled batches: which "
                "rows are in one must be drawn, in secret, where all of them are. Nothing was "
                "spent. Use solver='auto' or another one that reads all rows, or fit on one "
                "machine."
            )
        if not part.query.in_parts:
            raise InvalidArgument(
                f"The rows lie in several places, and {part.name!r} needs them in one: "
                f"{part.query.__name__} is no function of sums over rows. Nothing was spent. Use "
                "solver='auto', or fit on one machine."
            )


@dataclass(frozen=True)
class Quote:
    """A plan with its noise multipliers and its cost."""

    plan: Plan
    multipliers: dict[str, float]
    cost: Cost
    reserve: float = math.inf

    @classmethod
    def at(
        cls, plan: Plan, multipliers: dict[str, float], n_units: int, reserve: float = math.inf
    ) -> "Quote":
        """A plan at given noise multipliers."""
        return cls(plan, multipliers, plan.cost(multipliers, n_units), reserve)

    def __str__(self) -> str:
        return "\n".join(map(str, self.records()))

    def records(self) -> tuple[ReleaseRecord, ...]:
        """The plan as it is listed in a guarantee."""
        return self.plan.records(self.multipliers)
