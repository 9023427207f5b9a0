"""The trusted sequence of every release: state the guarantee, charge the ledger, then open the
rows.

This is the only module that constructs a `Curator`. Estimators, the command line, preprocessing,
data owners and searches all use it, with a `Quote` and their `Terms`.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from hushfit.data import Coins, DataSource, SecureCoins, SeededCoins
from hushfit.errors import (
    InsecureNoiseWarning,
    InvalidArgument,
    LedgerError,
    WeakGuaranteeWarning,
)
from hushfit.privacy import (
    Budget,
    Cost,
    Guarantee,
    Ledger,
    Receipt,
    Relation,
    ReleaseRecord,
    Sampler,
    labels_only,
    sampler_for,
)
from hushfit.release.curator import Curator
from hushfit.release.door import Released
from hushfit.release.plan import Quote, refuse_in_parts
from hushfit.unit import ROW, PrivacyUnit


class Randomness(NamedTuple):
    """Random sources of noise and of sampled batches."""

    sampler: Sampler
    coins: Coins

    @classmethod
    def of(cls, random_state: Any) -> "Randomness":
        """Secure sources for None; for a seed, two independent reproducible streams."""
        if random_state is None:
            return cls(sampler_for(None), SecureCoins())
        noise, batches = np.random.SeedSequence(_seed(random_state)).generate_state(2)
        return cls(sampler_for(int(noise)), SeededCoins(int(batches)))


def _seed(random_state: Any) -> int:
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    is_int = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if not is_int or random_state < 0:
        raise InvalidArgument(
            f"random_state={random_state!r} is not a seed. Use None for secure noise, or an int "
            "of at least 0 or a numpy generator for reproducible, insecure noise."
        )
    return int(random_state)


@runtime_checkable
class Payer(Protocol):
    """An account that is charged for releases: a `Ledger`, or an object that acts as one."""

    def charge(
        self, cost: Cost, label: str, relation: Relation | str, unit: PrivacyUnit = ROW
    ) -> Receipt:
        """Record the cost for one unit, or refuse it. Nothing is released before it returns."""


@dataclass(frozen=True, eq=False)
class Terms:
    """The conditions under which rows may be used.

    Parameters
    ----------
    budget : Budget
        Epsilon and delta of the guarantee.
    label : str
        Name of the caller, for the ledger.
    randomness : Randomness
    ledger : Payer, optional
        Account to charge; None keeps no account.
    public, notes : tuple of str
        What the guarantee lists in addition to the number of units, which it always lists.
    warn : bool, default=True
        Whether to warn of a large delta and of reproducible noise.
    """

    budget: Budget
    label: str
    randomness: Randomness
    ledger: Payer | None = None
    public: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warn: bool = True

    def __post_init__(self) -> None:
        require_payer(self.ledger)


def require_payer(ledger: Any) -> None:
    """Refuse an object that cannot be charged, before anything else is done."""
    if not isinstance(ledger, Payer | None):
        raise InvalidArgument(
            f"ledger={ledger!r} is not a ledger. Give Ledger(epsilon, delta), or None for no "
            "account."
        )


@dataclass(frozen=True, eq=False)
class Contract:
    """The guarantee, the receipt of its cost, and the curator that answers from now on."""

    guarantee: Guarantee
    receipt: Receipt | None
    curator: Curator

    @classmethod
    def signed(
        cls,
        source: DataSource,
        quote: Quote,
        relation: Relation,
        terms: Terms,
        replay: Iterable[Released] = (),
        keep: Callable[[Released], None] | None = None,
        remember: bool = True,
    ) -> "Contract":
        """State the guarantee, charge the ledger, open the rows; in this order.

        Parameters
        ----------
        source : DataSource
            The private rows. Only the public number of units is read before the charge.
        quote : Quote
        relation : Relation
        terms : Terms
        replay : iterable of Released, default=()
            Answers of an interrupted run of the same plan, already charged.
        keep : callable, optional
            Called with each new answer before it is returned.
        remember : bool, default=True
            Whether the curator keeps a transcript of its answers.

        Returns
        -------
        Contract
        """
        refuse_in_parts(quote.plan, source)
        guarantee, receipt = promised_and_paid(
            quote.cost,
            quote.records(),
            source.n_units,
            relation,
            terms,
            source.privacy_unit,
        )
        curator = unpaid_curator(
            source, quote, relation, terms.randomness, replay, keep, remember=remember
        )
        return cls(guarantee, receipt, curator)

    @classmethod
    def signed_once(
        cls, source: DataSource, quote: Quote, relation: Relation, terms: Terms
    ) -> "Contract":
        """Sign a contract, unless its payment is in the ledger: then open the rows for it.

        For a label that names one run and no other. The caller knows that nothing was released for
        it yet: the process that paid was stopped before it went on.

        Parameters
        ----------
        source, quote, relation, terms
            As for `signed`.

        Returns
        -------
        Contract
            Whose curator keeps no transcript.
        """
        for paid in _payments(terms.ledger):
            if paid.label == terms.label:
                return cls.resumed(source, quote, relation, terms, paid.number, {})
        return cls.signed(source, quote, relation, terms, remember=False)

    @classmethod
    def resumed(
        cls,
        source: DataSource,
        quote: Quote,
        relation: Relation,
        terms: Terms,
        payment: int | None,
        made: Mapping[str, int],
    ) -> "Contract":
        """Open the rows again for the rest of a plan that was paid for and then interrupted.

        Nothing is charged: the payment covers every release of the plan once, and those that were
        made, or begun, are not made again. The caller must not resume one payment twice, for
        instance from a copied checkpoint; two runs would then share it.

        Parameters
        ----------
        source, quote, relation, terms
            As they were when the contract was signed.
        payment : int or None
            Number of the receipt; None if there was no ledger.
        made : mapping from release name to int
            Releases that were made or begun.

        Returns
        -------
        Contract

        Raises
        ------
        LedgerError
            If the ledger has no such payment.
        """
        unit = source.privacy_unit
        receipt = _earlier_payment(terms.ledger, payment, quote.cost, relation, unit)
        unsigned = replace(terms, ledger=None, warn=False)
        guarantee, _ = promised_and_paid(
            quote.cost, quote.records(), source.n_units, relation, unsigned, unit
        )
        curator = unpaid_curator(
            source, quote, relation, terms.randomness, made=made, remember=False
        )
        return cls(guarantee, receipt, curator)


def _payments(ledger: Payer | None) -> tuple[Receipt, ...]:
    """Earlier payments, of an account that lists them."""
    return ledger.entries if isinstance(ledger, Ledger) else ()


def _earlier_payment(
    ledger: Payer | None, number: int | None, cost: Cost, relation: Relation, unit: PrivacyUnit
) -> Receipt | None:
    """The receipt of a payment that the ledger has; refuses to go on without it."""
    if ledger is None and number is None:
        return None
    paid = [
        entry
        for entry in _payments(ledger)
        if (entry.number, entry.cost, entry.relation, entry.unit) == (number, cost, relation, unit)
    ]
    if not paid:
        raise LedgerError(
            f"The ledger has no payment number {number} for this fit, so it cannot be resumed. "
            "Nothing was released. Give the ledger that the fit was charged to, or delete the "
            "checkpoint to start, and pay, again."
        )
    return paid[0]


def promised_and_paid(
    cost: Cost,
    releases: tuple[ReleaseRecord, ...],
    n_units: int,
    relation: Relation,
    terms: Terms,
    unit: PrivacyUnit = ROW,
) -> tuple[Guarantee, Receipt | None]:
    """The guarantee of releases with a given cost, and the receipt for it; nothing is released."""
    features = ("every feature of every row",) if labels_only(relation) else ()
    guarantee = Guarantee(
        terms.budget.epsilon,
        terms.budget.delta,
        relation,
        unit=unit,
        public=(f"the number of {unit.plural}, {n_units}", *features, *terms.public),
        releases=releases,
        cost=cost,
        secure=terms.randomness.sampler.secure,
        notes=terms.notes,
    )
    if terms.warn:
        _warn_about(terms.budget, n_units, terms.randomness.sampler, unit)
    if terms.ledger is None:
        return guarantee, None
    return guarantee, terms.ledger.charge(cost, terms.label, relation, unit)


def unpaid_curator(
    source: DataSource,
    quote: Quote,
    relation: Relation,
    randomness: Randomness,
    replay: Iterable[Released] = (),
    keep: Callable[[Released], None] | None = None,
    made: Mapping[str, int] | None = None,
    remember: bool = True,
) -> Curator:
    """A curator without any charge: for audits and tests, on rows that are not private."""
    return Curator(
        source,
        quote.plan,
        quote.multipliers,
        relation,
        randomness.sampler,
        randomness.coins,
        quote.reserve,
        replay,
        keep,
        made,
        remember,
    )


def _warn_about(budget: Budget, n_units: int, sampler: Sampler, unit: PrivacyUnit) -> None:
    if budget.delta > 1 / n_units and budget.is_private:
        warnings.warn(
            f"delta={budget.delta:g} is above 1/n = {1 / n_units:.2g}: publishing "
            f"{unit.in_words} in full, chosen at random, would also satisfy this guarantee. Use a "
            f"delta well below it, for instance {0.1 / n_units:.0e}.",
            WeakGuaranteeWarning,
            stacklevel=6,
        )
    if not sampler.secure and budget.is_private:
        warnings.warn(
            "random_state makes the noise reproducible, so whoever knows the seed can subtract it: "
            "for tests and simulations only. Leave random_state=None for a release.",
            InsecureNoiseWarning,
            stacklevel=6,
        )
