"""Storage of a ledger's entries: what any account does, and accounts in memory.

An account is shared by every copy of its ledger and belongs to one process: two processes that both
held it could each spend the whole budget.
"""

import os
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from hushfit.errors import LedgerError
from hushfit.privacy._budget import Budget
from hushfit.privacy._relation import Relation
from hushfit.privacy.ledger._tally import AccountTerms, Receipt, Tally
from hushfit.unit import ROW_ACCOUNT, AccountUnit

Decide = Callable[[Tally], Receipt]


class Account(AccountTerms, Protocol):
    """Storage for the entries of a ledger, in memory or on disk."""

    @property
    def name(self) -> str: ...
    def entries(self) -> tuple[Receipt, ...]: ...
    def tally(self) -> Tally:
        """What all entries amount to."""
        ...

    def append(self, decide: Decide) -> Receipt:
        """Pass the tally to ``decide`` and record its receipt, atomically.

        If it raises, nothing is recorded.
        """
        ...


class Receipts:
    """Receipts in memory, with their tally; shared by the accounts that live in memory.

    Parameters
    ----------
    terms : AccountTerms
        Of the account.
    """

    def __init__(self, terms: AccountTerms) -> None:
        self.kept: list[Receipt] = []
        self.tally = Tally.of(terms)

    def refuse_if_changed(self, before: Tally, name: str) -> None:
        """Refuse a charge if receipts were added while it was being decided.

        The lock is reentrant, so the same thread may pay again in the meantime.
        """
        if self.tally is not before:
            raise LedgerError(
                f"{title_of(name)} was charged while another charge was being decided, by the same "
                "thread. The outer charge was not recorded, and nothing was released for it. Make "
                "one charge after the other."
            )

    def add(self, receipt: Receipt) -> None:
        """Record a receipt."""
        self.tally = self.tally.after(receipt)
        self.kept.append(receipt)


class MemoryAccount:
    """Account in the memory of one process."""

    def __init__(
        self,
        budget: Budget,
        relation: Relation,
        name: str,
        adaptive: bool = True,
        unit: AccountUnit = ROW_ACCOUNT,
    ) -> None:
        self.budget, self.relation, self.name, self.adaptive = budget, relation, name, adaptive
        self.unit = unit
        self._receipts = Receipts(self)
        self._lock = threading.RLock()
        self._key = secrets.token_hex(16)
        self._process = os.getpid()

    def entries(self) -> tuple[Receipt, ...]:
        return tuple(self._receipts.kept)

    def tally(self) -> Tally:
        return self._receipts.tally

    def append(self, decide: Decide) -> Receipt:
        # A forked child has a copy of this object, hence the check on every call.
        if os.getpid() != self._process:
            raise _wrong_process(self.name)
        with self._lock:
            before = self._receipts.tally
            receipt = decide(before)
            self._receipts.refuse_if_changed(before, self.name)
            self._receipts.add(receipt)
        return receipt

    def __copy__(self) -> "MemoryAccount":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "MemoryAccount":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # The pickle may outlive every other reference: keep the account for when it is loaded.
        _PICKLED[self._key] = self
        return _reopen, (
            self._key,
            self.budget,
            self.relation,
            self.name,
            self.entries(),
            self.adaptive,
            self.unit,
        )


@dataclass(frozen=True)
class ClosedAccount:
    """Read-only history of an account that belongs to another process."""

    budget: Budget
    relation: Relation
    name: str
    history: tuple[Receipt, ...]
    adaptive: bool = True
    unit: AccountUnit | None = ROW_ACCOUNT

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        # Formats without enumerations store the relation as its name.
        self.__dict__.update({**state, "relation": Relation.parse(state["relation"])})

    def entries(self) -> tuple[Receipt, ...]:
        return self.history

    def tally(self) -> Tally:
        return Tally.of(self, self.history)

    def append(self, decide: Decide) -> Receipt:
        raise _wrong_process(self.name)


_PICKLED: dict[str, MemoryAccount] = {}


def _reopen(
    key: str,
    budget: Budget,
    relation: Relation,
    name: str,
    history: tuple[Receipt, ...],
    adaptive: bool = True,
    unit: AccountUnit = ROW_ACCOUNT,
) -> Account:
    """Unpickle an account: the same one in its own process, its history in any other."""
    account = _PICKLED.get(key)
    if account is not None and account._process == os.getpid():
        return account
    return ClosedAccount(budget, relation, name, history, adaptive, unit)


def title_of(name: str) -> str:
    return f"the ledger {name!r}" if name else "this ledger"


def _wrong_process(name: str) -> LedgerError:
    """Error for a charge outside the process that owns the account."""
    return LedgerError(
        f"{title_of(name)} belongs to the memory of another process, so paying here could spend "
        "the budget twice. Nothing was released. Fit in that process, or use a ledger on disk, "
        "which processes can share."
    )
