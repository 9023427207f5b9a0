"""What all charges of an account amount to: enough to decide about the next one.

A tally grows by one charge at a time, so that a charge costs the same in a short and in a long
ledger.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Final, Protocol

from hushfit.privacy._budget import Budget, Spent
from hushfit.privacy._gaussian import gaussian_mu
from hushfit.privacy._relation import Relation, labels_only, replaces_one
from hushfit.privacy.accounting import FilteredTotal, epsilon_of, exact_sum, group_cost
from hushfit.privacy.costs import (
    Cost,
    GaussianCost,
    compose,
    entries_of,
    parts_of,
    require_proof,
)
from hushfit.privacy.ledger._reserve import RESERVED_SHARE, usable
from hushfit.unit import ROW, AccountUnit, PrivacyUnit

# Share of delta for the failure probability of charges for rows that count for several rows at once
# and are neither Gaussian nor pure; below the room that a filter leaves for later failures.
_CONVERSION_SHARE: Final = 0.02

# Two halves that exactly fill the budget must pass despite rounding; the reserve for discrete noise
# is withheld.
_SLACK: Final = 1e-9 - RESERVED_SHARE

# The search for the largest charge that fits.
_SMALLEST_EPSILON: Final = 1e-6
_LARGEST_EPSILON: Final = 1e3
_EPSILON_TOLERANCE: Final = 1e-4


@dataclass(frozen=True)
class Receipt:
    """Receipt of a payment: one entry of a ledger.

    Parameters
    ----------
    number : int
        Position in the ledger, from 1.
    label : str
        Who paid, for instance the name of an estimator.
    cost : Cost
        Cost that was paid for.
    relation : Relation
        Adjacency relation of the cost.
    total : Spent
        Total that the ledger had spent after this payment.
    unit : PrivacyUnit, default=ROW
        Whom the cost is for.

    Examples
    --------
    >>> from hushfit import Ledger
    >>> from hushfit.privacy import GaussianCost
    >>> ledger = Ledger(epsilon=1.0, delta=1e-6)
    >>> receipt = ledger.charge(GaussianCost(noise_multiplier=6.0), "mean", "replace-one")
    >>> receipt.number, receipt.label, round(receipt.total.epsilon, 3)
    (1, 'mean', 0.686)
    """

    number: int
    label: str
    cost: Cost
    relation: Relation
    total: Spent
    unit: PrivacyUnit = ROW


class AccountTerms(Protocol):
    """What an account was opened with."""

    @property
    def budget(self) -> Budget: ...
    @property
    def relation(self) -> Relation: ...
    @property
    def adaptive(self) -> bool:
        """Whether costs may be chosen after seeing answers.

        A filter decides then, ordinary composition otherwise.
        """
        ...

    @property
    def unit(self) -> AccountUnit | None:
        """Whom it protects; None for the account of one fit, where the first charge decides."""
        ...


class RunningTotal(Protocol):
    """Total of costs, one after the other."""

    def after(self, cost: Cost) -> "RunningTotal":
        """The total with one more cost."""

    @property
    def epsilon(self) -> float: ...
    def within(self, epsilon: float) -> bool:
        """Whether the total is at most epsilon; may be faster than computing it."""


@dataclass(frozen=True)
class ComposedTotal:
    """Total of costs that were all fixed before the first answer.

    Parameters
    ----------
    delta : float
    relation : Relation
    gaussian : Fraction or float
        Sum of the squares of mu of all Gaussian releases, exact or infinite.
    others : Cost
        All other releases; nothing by default.
    """

    delta: float
    relation: Relation
    gaussian: Fraction | float = Fraction(0)
    others: Cost = field(default_factory=lambda: compose(()))

    def after(self, cost: Cost) -> "ComposedTotal":
        """The total with one more cost; takes the same time after any number of Gaussian ones."""
        require_proof(cost, self.relation)
        gaussian, others = self.gaussian, []
        for part in entries_of(cost):
            mu = part.gaussian_mu(self.relation)
            if mu is None:
                others.append(part)
            else:
                gaussian = exact_sum(gaussian, part.count * mu * mu)
        rest = compose((self.others, *others)) if others else self.others
        return replace(self, gaussian=gaussian, others=rest)

    @property
    def epsilon(self) -> float:
        """Epsilon of all costs together."""
        mu = math.sqrt(self.gaussian)
        gaussian = GaussianCost(1 / mu if mu > 0 else math.inf)
        return _composed(compose((gaussian, self.others)), self.delta, self.relation)

    def within(self, epsilon: float) -> bool:
        """Whether the total is at most epsilon."""
        return self.epsilon <= epsilon


@dataclass(frozen=True)
class Tally:
    """All charges of an account so far, as far as the next decision needs them.

    Parameters
    ----------
    terms : AccountTerms
        Of the account.
    total : RunningTotal
        By the rule of the account, after the reserve for discrete noise was deducted.
    count : int, default=0
        Number of charges.
    recorded : float, default=0.0
        Total epsilon that the last receipt states.
    units : tuple of PrivacyUnit
        Whom charges were for, each unit once, in the order of their first charges.
    converted : int, default=0
        How many charges for rows count for several rows up to a failure probability.
    """

    terms: AccountTerms
    total: RunningTotal
    count: int = 0
    recorded: float = 0.0
    units: tuple[PrivacyUnit, ...] = ()
    converted: int = 0

    @classmethod
    def of(cls, terms: AccountTerms, receipts: Iterable[Receipt] = ()) -> "Tally":
        """The tally of an account with these receipts."""
        return reduce(Tally.after, receipts, cls(terms, empty_total(terms)))

    @property
    def epsilon(self) -> float:
        """Total epsilon by the rule of the account."""
        return self.total.epsilon

    @property
    def fits(self) -> bool:
        """Whether the total is within the budget, less its reserve."""
        return self.epsilon <= self.terms.budget.epsilon * (1 + _SLACK)

    def largest_fit(self, delta: float) -> float:
        """Epsilon, at some delta, of the largest charge with Gaussian noise that still fits.

        Rounded down to three digits; 0 if none fits. The charge is for the unit of the account.
        """
        if not self.terms.budget.is_private:
            return math.inf
        fits, too_much = 0.0, self.terms.budget.epsilon
        while too_much < _LARGEST_EPSILON and self._takes(Budget(too_much, delta)):
            fits, too_much = too_much, 2 * too_much
        while too_much - fits > _EPSILON_TOLERANCE * too_much and too_much > _SMALLEST_EPSILON:
            middle = (fits + too_much) / 2
            fits, too_much = (
                (middle, too_much) if self._takes(Budget(middle, delta)) else (fits, middle)
            )
        rounded = (_rounded(too_much, math.ceil), _rounded(fits, math.floor))
        return next((e for e in rounded if e > 0 and self._takes(Budget(e, delta))), 0.0)

    def _takes(self, budget: Budget) -> bool:
        """Whether a fit of this budget, with Gaussian noise, fits."""
        spendable, _ = usable(budget)
        total = self.total.after(GaussianCost(1 / gaussian_mu(spendable.epsilon, spendable.delta)))
        return total.within(self.terms.budget.epsilon * (1 + _SLACK))

    def counted(self, cost: Cost, unit: PrivacyUnit) -> Cost:
        """The next cost as it counts for the unit of the account: where that is a person, a charge
        for rows counts for as many rows as were declared.
        """
        size = 1 if self.terms.unit is None else self.terms.unit.units_at_once(unit)
        if size == 1:
            return cost
        # 1/2, 1/6, 1/12, ...: the shares sum to one, however many charges will follow.
        share = _CONVERSION_SHARE / ((self.converted + 1) * (self.converted + 2))
        return _for_rows(cost, size, share * self.terms.budget.delta, self.terms.relation)

    def after(self, receipt: Receipt) -> "Tally":
        """The tally with one more receipt."""
        cost = self.counted(receipt.cost, receipt.unit)
        failing = cost is not receipt.cost and any(part.lost for part in parts_of(cost))
        return Tally(
            self.terms,
            self.total.after(cost),
            self.count + 1,
            receipt.total.epsilon,
            self.units if receipt.unit in self.units else (*self.units, receipt.unit),
            self.converted + failing,
        )

    def unit_problem(self, unit: PrivacyUnit) -> str | None:
        """Why the account cannot take a charge for this unit now; None if it can."""
        account = self.terms.unit
        if account is not None:
            mixed = any(earlier.record != unit.record for earlier in self.units)
            return account.objection(unit, self.units) or _uncovered_row(
                account, self.terms.relation, unit, mixed
            )
        if all(earlier.same_kind(unit) for earlier in self.units):
            return None
        return (
            f"is for {unit}, but an earlier part of the same fit is for {self.units[0]}. Give all "
            "of them the same column of ids (groups=)"
        )


def empty_total(terms: AccountTerms) -> RunningTotal:
    """The total of no charges, by the rule of an account."""
    spendable, _ = usable(terms.budget)
    if terms.adaptive and spendable.is_private:
        return FilteredTotal(spendable, terms.relation)
    return ComposedTotal(spendable.delta, terms.relation)


def _rounded(epsilon: float, towards: Callable[[float], int], digits: int = 3) -> float:
    if epsilon <= 0:
        return 0.0
    place = digits - 1 - math.floor(math.log10(epsilon))
    return float(f"{towards(epsilon * 10.0**place) / 10.0**place:.{digits}g}")


def smaller_charge(largest: float, budget: Budget, otherwise: str) -> str:
    """What to do about a charge that does not fit; ``largest`` is the epsilon that does."""
    if not largest:
        return f"No further fit with Gaussian noise is possible: {otherwise}"
    return (
        f"Ask for a smaller epsilon (at delta={budget.delta:g} up to {largest:g} fits), or "
        f"{otherwise}"
    )


def counted_costs(terms: AccountTerms, receipts: Iterable[Receipt]) -> tuple[Cost, ...]:
    """Costs of receipts as they count for the unit of the account."""
    costs: list[Cost] = []
    tally = Tally.of(terms)
    for receipt in receipts:
        costs.append(tally.counted(receipt.cost, receipt.unit))
        tally = tally.after(receipt)
    return tuple(costs)


def _uncovered_row(
    account: AccountUnit, relation: Relation, charged: PrivacyUnit, mixed: bool
) -> str | None:
    """Replacing a row of a person is a way of replacing the person; a row that vanishes while its
    person stays is no way of removing the person. So it is with the rows of a list, if charges
    for rows and for lists are mixed.
    """
    if account.is_person or not (charged.is_person or mixed):
        return None
    if labels_only(relation) or replaces_one(relation):
        return None
    if mixed:
        return (
            f"is for {charged.plural}, and earlier charges are for others: under add-remove no "
            "proof covers both a list and a row that vanishes while its list stays. Use separate "
            "accounts for rows and for lists"
        )
    return (
        "protects persons, and under add-remove no proof covers a single row that vanishes while "
        "its person stays, which an account of rows is about. Use an account of persons"
    )


# A charge is decided twice, the second time inside a transaction for which others wait.
@lru_cache(maxsize=1024)
def _for_rows(cost: Cost, size: int, delta: float, relation: Relation) -> Cost:
    return group_cost(cost, size, delta, relation)


@lru_cache(maxsize=64)
def _composed(cost: Cost, delta: float, relation: Relation) -> float:
    return epsilon_of(cost, delta, relation)
