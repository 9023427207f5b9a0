"""Releases that are not a fit: calibrate, pay, then open the door. Proof: docs/proofs/quantiles.md."""

from dataclasses import dataclass, field
from typing import Any

from hushfit.data import DataSource
from hushfit.errors import InvalidArgument
from hushfit.estimators._fit import _warn_about, noise_and_coins
from hushfit.privacy import Budget, Guarantee, Ledger, Relation, calibrate, discretisation_loss, usable
from hushfit.release import Curator, Plan
from hushfit.release._plan import DRAWN_LOG2_VARIANCE


@dataclass(frozen=True)
class Request:
    """On what terms rows may be looked at."""

    epsilon: float
    delta: float
    adjacency: str
    ledger: Any
    random_state: Any
    label: str
    public: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())


def opened(source: DataSource, plan: Plan, coordinates: int, request: Request) -> tuple[Curator, Guarantee]:
    """A curator that answers the plan, paid for; everything that can be refused is refused before."""
    if not isinstance(request.ledger, Ledger | None):
        raise InvalidArgument(f"ledger={request.ledger!r} keeps no account. Give a Ledger(epsilon, delta), or None for none.")
    budget, relation, n = Budget(request.epsilon, request.delta), Relation.parse(request.adjacency), source.n_rows
    sampler, coins = noise_and_coins(request.random_state)
    spendable, reserve = usable(budget)
    strength = calibrate(lambda mu: plan.cost(plan.multipliers(mu, n), n), spendable, relation)
    multipliers = plan.multipliers(strength, n)
    if discretisation_loss(coordinates, DRAWN_LOG2_VARIANCE) > reserve:
        raise InvalidArgument(
            f"{coordinates} noisy counts are more than the reserve for discrete noise covers. Ask for a larger epsilon or give "
            "fewer columns."
        )
    cost = plan.cost(multipliers, n)
    guarantee = Guarantee(
        budget.epsilon,
        budget.delta,
        relation,
        public=(f"the number of rows, {n}", *request.public),
        releases=plan.records(multipliers),
        cost=cost,
        secure=sampler.secure,
        notes=request.notes,
    )
    _warn_about(budget, n, sampler)
    if request.ledger is not None:
        request.ledger.charge(cost, request.label, relation)
    return Curator(source, plan, multipliers, relation, sampler, coins, reserve), guarantee
