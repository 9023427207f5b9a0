"""The account of one data set: what has been paid, and whether more may be.

A `Ledger` decides; an `Account` remembers. The account is shared by every copy of the ledger and belongs to one
process: two processes that both held it could each spend the whole budget.
"""

import math
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Protocol

from hushfit.errors import BudgetExceeded, InvalidArgument, LedgerError
from hushfit.privacy import _check
from hushfit.privacy._adaptive_total import filtered_epsilon
from hushfit.privacy._budget import Budget, Spent
from hushfit.privacy._cost import Cost, compose
from hushfit.privacy._interpret import epsilon_of
from hushfit.privacy._relation import Relation
from hushfit.privacy._reserve import RESERVED_SHARE

# Two halves that exactly fill the budget must pass whatever the rounding; the reserve for discrete noise is kept back.
_SLACK: Final = 1e-9 - RESERVED_SHARE

_RULES: Final = {
    True: "filter: prices may be chosen after seeing answers",
    False: "composition: prices were fixed before the first answer",
}
_NO_RULE: Final = "composition: there is no budget to hold"


@dataclass(frozen=True)
class Receipt:
    """Proof of payment: one line of a ledger.

    Parameters
    ----------
    number : int
        Position in the ledger, from 1.
    label : str
        Who paid, for instance the name of an estimator.
    cost : Cost
        What was paid for.
    relation : Relation
        Under which relation.
    total : Spent
        What the ledger had spent after this payment.
    plan : str, default=""
        Payments of one plan were fixed together, before the first of them; the empty text is a plan of its own.
    """

    number: int
    label: str
    cost: Cost
    relation: Relation
    total: Spent
    plan: str = ""


Decide = Callable[[tuple[Receipt, ...]], Receipt]


class Account(Protocol):
    """Where a ledger keeps its entries; one in memory, others on disk."""

    @property
    def budget(self) -> Budget: ...
    @property
    def relation(self) -> Relation: ...
    @property
    def name(self) -> str: ...
    @property
    def adaptive(self) -> bool:
        """Whether prices may be chosen after seeing answers: a filter decides then, ordinary composition otherwise."""
        ...

    def entries(self) -> tuple[Receipt, ...]: ...
    def append(self, decide: Decide) -> Receipt:
        """Show the entries to ``decide`` and record its receipt, nobody in between; if it raises, nothing."""
        ...


class MemoryAccount:
    """Entries in the memory of one process."""

    def __init__(self, budget: Budget, relation: Relation, name: str, adaptive: bool = True) -> None:
        self.budget, self.relation, self.name, self.adaptive = budget, relation, name, adaptive
        self._entries: list[Receipt] = []
        self._lock = threading.RLock()
        self._key = secrets.token_hex(16)
        self._process = os.getpid()

    def entries(self) -> tuple[Receipt, ...]:
        return tuple(self._entries)

    def append(self, decide: Decide) -> Receipt:
        # A forked child holds a copy of this object, hence the check on every call.
        if os.getpid() != self._process:
            raise _elsewhere(self.name)
        with self._lock:
            receipt = decide(self.entries())
            self._entries.append(receipt)
        return receipt

    def __copy__(self) -> "MemoryAccount":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "MemoryAccount":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # From here on the bytes may outlive every other reference: keep the account for when they come back.
        _PICKLED[self._key] = self
        return _reopen, (self._key, self.budget, self.relation, self.name, self.entries(), self.adaptive)


@dataclass(frozen=True)
class ClosedAccount:
    """The history of an account that lives in another process: it can be read, not charged."""

    budget: Budget
    relation: Relation
    name: str
    history: tuple[Receipt, ...]
    adaptive: bool = True

    def entries(self) -> tuple[Receipt, ...]:
        return self.history

    def append(self, decide: Decide) -> Receipt:
        raise _elsewhere(self.name)


_PICKLED: dict[str, MemoryAccount] = {}


def _reopen(
    key: str, budget: Budget, relation: Relation, name: str, history: tuple[Receipt, ...], adaptive: bool = True
) -> Account:
    """Unpickle an account: the same one in its own process, its history anywhere else."""
    account = _PICKLED.get(key)
    if account is not None and account._process == os.getpid():
        return account
    return ClosedAccount(budget, relation, name, history, adaptive)


class Ledger:
    """An append-only account of the privacy spent on one data set.

    ``Ledger(epsilon, delta)`` lives in memory: copies, clones and pickles made in one process all share the account, and
    threads may race for it; in another process it shows its history and refuses to pay. ``Ledger("ledger.db",
    dataset="patients")`` opens one on disk, made with `Ledger.create`, which any number of processes may charge.

    Parameters
    ----------
    epsilon : float, path or str
        Total budget; infinity only keeps the books. A path or a ``postgresql://`` address opens a ledger on disk, whose
        budget and relation were fixed when it was made.
    delta : float
        Delta at which the total is held. Not given for a ledger on disk.
    adjacency : str, default="replace-one"
        Which data sets are neighbours. Every charge must be stated under the same relation.
    name : str, default=""
        Which data set this is, for people.
    dataset : str, optional
        Which data set of a ledger on disk; may be left out if it has only one.
    adaptive : bool, default=True
        Whether what is asked next, and at which price, may depend on what was answered. A filter then decides whether a
        charge fits (docs/proofs/filter.md). False composes as if all prices had been fixed before the first answer, which
        leaves some per cent more room and is honest only if they were. A ledger on disk keeps what it was made with.

    Examples
    --------
    >>> from hushfit.privacy import GaussianCost, Ledger
    >>> ledger = Ledger(epsilon=1.0, delta=1e-6, name="patients")
    >>> receipt = ledger.charge(GaussianCost(noise_multiplier=6.0), "mean", "replace-one")
    >>> round(ledger.spent().epsilon, 3)
    0.686
    """

    def __init__(
        self,
        epsilon: float | str | os.PathLike[str],
        delta: float | None = None,
        adjacency: str = "replace-one",
        name: str = "",
        *,
        dataset: str | None = None,
        adaptive: bool = True,
    ) -> None:
        self._account: Account
        if isinstance(epsilon, str | os.PathLike):
            from hushfit.privacy._disk_ledger import open_account

            if not adaptive:
                raise InvalidArgument(
                    "adaptive=False was given for a ledger on disk, whose rule is fixed. Leave it out, or make another one with "
                    "Ledger.create(..., adaptive=False)."
                )
            if delta is not None:
                raise InvalidArgument(
                    f"delta={delta!r} was given for a ledger on disk, whose budget is fixed. Leave it out, or make another "
                    "one with Ledger.create."
                )
            self._account = open_account(epsilon, dataset)
            return
        if dataset is not None:
            raise InvalidArgument(f"dataset={dataset!r} names an account on disk. Give the path of the ledger, or use name.")
        budget = Budget(epsilon, _check.number(delta, "delta"))
        self._account = MemoryAccount(budget, Relation.parse(adjacency), _check.text(name, "name"), _flag(adaptive))

    @classmethod
    def create(
        cls,
        location: str | os.PathLike[str],
        dataset: str,
        epsilon: float,
        delta: float,
        adjacency: str = "replace-one",
        adaptive: bool = True,
    ) -> "Ledger":
        """Open an account on disk for a data set; its budget is fixed from then on.

        Parameters
        ----------
        location : path or str
            SQLite file, made if there is none, or a ``postgresql://`` address.
        dataset : str
            Name of the data set.
        epsilon, delta : float
            Total budget.
        adjacency : str, default="replace-one"
            Which data sets are neighbours.
        adaptive : bool, default=True
            Whether prices may be chosen after seeing answers; see `Ledger`.

        Returns
        -------
        Ledger

        Raises
        ------
        LedgerError
            If the data set has an account already, or the place cannot be written.
        """
        from hushfit.privacy._disk_ledger import create_account

        return cls.over(create_account(location, dataset, Budget(epsilon, delta), Relation.parse(adjacency), _flag(adaptive)))

    @classmethod
    def over(cls, account: Account) -> "Ledger":
        """A ledger that keeps its entries in a given account.

        Parameters
        ----------
        account : Account
            Holds budget, relation, name and entries.

        Returns
        -------
        Ledger
        """
        ledger = cls.__new__(cls)
        ledger._account = account
        return ledger

    @property
    def account(self) -> Account:
        """Where the entries are kept."""
        return self._account

    @property
    def budget(self) -> Budget:
        """What may be spent in total."""
        return self._account.budget

    @property
    def relation(self) -> Relation:
        """The relation of every charge."""
        return self._account.relation

    @property
    def name(self) -> str:
        """Which data set this is."""
        return self._account.name

    @property
    def adaptive(self) -> bool:
        """Whether prices may be chosen after seeing answers."""
        return self._account.adaptive

    @property
    def rule(self) -> str:
        """By which rule payments add up, in words."""
        return _RULES[self.adaptive] if self.budget.is_private else _NO_RULE

    @property
    def entries(self) -> tuple[Receipt, ...]:
        """Every payment so far, oldest first."""
        return self._account.entries()

    @property
    def total_cost(self) -> Cost:
        """Everything paid for, composed."""
        return compose(entry.cost for entry in self.entries)

    def spent(self) -> Spent:
        """The composed privacy loss so far, by the ledger's rule.

        Returns
        -------
        Spent
            Epsilon at the ledger's delta. Epsilons of single charges do not add up to it, and the budget minus it is
            not what another charge may cost. Where prices are chosen along the way the promise is the budget; this is how
            much of it is used.
        """
        # Composed again rather than read off the last receipt: an accountant that has become tighter lowers it.
        return Spent(total_epsilon(self._account, self.entries), self.budget.delta)

    def charge(self, cost: Cost, label: str, relation: Relation | str, plan: str = "") -> Receipt:
        """Pay for a release before it is made. There are no refunds.

        Parameters
        ----------
        cost : Cost
            What will be released.
        label : str
            Who pays, for instance the name of an estimator.
        relation : Relation or str
            The relation under which the cost is stated; must be the ledger's.
        plan : str, default=""
            Charges under one name of a plan count as one mechanism. Honest if their prices were all fixed before the first of
            them, and none is left out because of an answer.

        Returns
        -------
        Receipt

        Raises
        ------
        BudgetExceeded
            If the total would pass the budget. Nothing is recorded then.
        LedgerError
            If the relation differs from the ledger's, or the account lives in another process.
        """
        relation = Relation.parse(relation)
        _check.text(label, "label")
        _check.text(plan, "plan")
        if relation is not self.relation:
            raise LedgerError(
                f"{label} is stated under {str(relation)!r}, the ledger under {str(self.relation)!r}: they do not add "
                f"up to one number. Use adjacency={str(self.relation)!r}, or a second ledger."
            )

        def decide(entries: tuple[Receipt, ...]) -> Receipt:
            receipt = Receipt(len(entries) + 1, label, cost, relation, _total(entries, self.budget), plan)
            epsilon = total_epsilon(self._account, (*entries, receipt))
            if not epsilon <= self.budget.epsilon * (1 + _SLACK):
                raise _over_budget(receipt, epsilon, self.budget, _filter_remedy(self._account, entries, epsilon))
            return replace(receipt, total=Spent(epsilon, self.budget.delta))

        return self._account.append(decide)

    def __copy__(self) -> "Ledger":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Ledger":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Ledger.over, (self._account,)

    def __repr__(self) -> str:
        name = f"{self.name!r}: " if self.name else ""
        many = len(self.entries)
        return (
            f"Ledger({name}spent epsilon={self.spent().epsilon:.4g}, budget epsilon={self.budget.epsilon:g}, "
            f"delta={self.budget.delta:g}, {self.relation}, {many} {'entry' if many == 1 else 'entries'})"
        )


def _flag(adaptive: object) -> bool:
    if not isinstance(adaptive, bool):
        raise InvalidArgument(
            f"adaptive={adaptive!r} is neither True nor False. True is right unless all prices were fixed beforehand."
        )
    return adaptive


def total_epsilon(account: Account, entries: tuple[Receipt, ...]) -> float:
    """What entries come to by the rule of an account."""
    if account.adaptive and account.budget.is_private:
        return _filtered(tuple(_plans(entries)), account.budget, account.relation)
    return _composed(compose(entry.cost for entry in entries), account.budget.delta, account.relation)


def _plans(entries: tuple[Receipt, ...]) -> Iterator[Cost]:
    """The cost of each plan, in the order in which they began."""
    plans: dict[object, list[Cost]] = {}
    for entry in entries:
        plans.setdefault(entry.plan or entry.number, []).append(entry.cost)
    return (compose(costs) for costs in plans.values())


# Totals are asked for again and again.
@lru_cache(maxsize=64)
def _composed(cost: Cost, delta: float, relation: Relation) -> float:
    return epsilon_of(cost, delta, relation)


@lru_cache(maxsize=64)
def _filtered(plans: tuple[Cost, ...], budget: Budget, relation: Relation) -> float:
    return filtered_epsilon(plans, budget, relation)


def _total(entries: tuple[Receipt, ...], budget: Budget) -> Spent:
    """The last total on record: each receipt carries it, so nothing is composed again."""
    return entries[-1].total if entries else Spent(0.0, budget.delta)


def _filter_remedy(account: Account, entries: tuple[Receipt, ...], epsilon: float) -> str:
    """What else to do where the price of choosing along the way may be what was too much."""
    if not (account.adaptive and entries and math.isfinite(epsilon)):
        return ""
    return " If all analyses were fixed before the first answer, a ledger made with adaptive=False has a little more room."


def _over_budget(receipt: Receipt, epsilon: float, budget: Budget, remedy: str) -> BudgetExceeded:
    """The refusal, with as many digits as it takes to tell the total from the budget."""
    digits = next((k for k in range(3, 17) if f"{epsilon:.{k}g}" != f"{budget.epsilon:.{k}g}"), 17)
    total = f"{epsilon:.{digits}g}" if math.isfinite(epsilon) else "inf (no privacy)"
    return BudgetExceeded(
        f"{receipt.label} would bring the total to epsilon={total}, over the ledger's {budget.epsilon:g} "
        f"(spent so far: {receipt.total.epsilon:.3g}). Nothing was released. "
        f"Ask for a smaller epsilon, or reuse a model you have already paid for.{remedy}"
    )


def _elsewhere(name: str) -> LedgerError:
    """The refusal outside the process that holds the account."""
    which = f"the ledger {name!r}" if name else "this ledger"
    return LedgerError(
        f"{which} lives in the memory of another process, so paying here could spend the budget twice. Nothing was "
        "released. Fit in that process, or keep a ledger on disk, which processes can share."
    )
