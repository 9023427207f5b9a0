"""Persistent ledgers: accounts in an SQLite file or a PostgreSQL database."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from functools import reduce
from typing import Any, Final

from hushfit.errors import ApprovalNeeded, InvalidArgument, LedgerError
from hushfit.privacy import _check
from hushfit.privacy._budget import Budget, Spent
from hushfit.privacy._relation import Relation
from hushfit.privacy.costs import cost_from_dict
from hushfit.privacy.ledger._accounts import Decide
from hushfit.privacy.ledger._chain import NO_ENTRIES, Book, Entry
from hushfit.privacy.ledger._grown import Grown
from hushfit.privacy.ledger._identity import Identity
from hushfit.privacy.ledger._ledger_key import key_from_environment
from hushfit.privacy.ledger._sqlite import Database, SqliteDatabase
from hushfit.privacy.ledger._tally import Receipt, Tally
from hushfit.privacy.ledger._team import CLOSED, Admission, Team, read_team
from hushfit.unit import ROW, ROW_ACCOUNT, AccountUnit, PrivacyUnit

# How nearly every payment describes its unit.
_ROW: Final = ROW.to_dict()


@dataclass(frozen=True)
class DiskAccount:
    """Account of one data set in a database, shared by any number of processes.

    Parameters
    ----------
    location : str
        Path of an SQLite file, or a ``postgresql://`` address.
    dataset : str
        Name of the data set.
    budget : Budget
    relation : Relation
    adaptive : bool, default=True
        Whether a filter decides which charges fit.
    unit : AccountUnit
        Whom it protects; a row by default.
    token : str, optional
        Token of the person who pays; the user of the system or the database by default.
    """

    location: str = field(repr=False)  # it may hold a password
    dataset: str
    budget: Budget
    relation: Relation
    adaptive: bool = True
    unit: AccountUnit = ROW_ACCOUNT
    token: str | None = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        """Name of the data set."""
        return self.dataset

    def team(self) -> Team:
        """Who may spend what."""
        return self._state().team

    def author(self) -> Identity:
        """Who pays and administers through this account."""
        with self._opened() as book:
            return book.author

    def history(self) -> tuple[Entry, ...]:
        """Every entry, oldest first, after the hash chain has been checked."""
        return tuple(self._state().chain)

    def entries(self) -> tuple[Receipt, ...]:
        return tuple(self._state().receipts)

    def tally(self) -> Tally:
        with self._opened() as book:
            return self._own(book).tally

    def _opened(self, *, writing: bool = False) -> AbstractContextManager[Book]:
        return opened(self.location, writing=writing, token=self.token)

    def _state(self) -> "_Verified":
        with self._opened() as book:
            return _verified(book, self.location, self.dataset)

    def _own(self, book: Book) -> "_Verified":
        """The account as it is now, refused if it was opened with other terms than this handle."""
        state = _verified(book, self.location, self.dataset)
        if state.account != self:
            raise LedgerError(
                f"the account {self.dataset!r} {book.database.title} was opened with other "
                "terms than this handle has; the ledger may have been made again. Nothing was "
                "spent or released. Open it again."
            )
        return state

    def append(self, decide: Decide) -> Receipt:
        self._try_out(decide)
        with self._opened(writing=True) as found:
            book = found.prepared()
            state = self._own(book)
            receipt = decide(state.tally)
            admission = state.team.admission(receipt, book.author.name, book.today)
            charge = {
                "label": receipt.label,
                "cost": receipt.cost.to_dict(),
                "unit": receipt.unit.to_dict(),
            }
            if not admission.waits:
                total = _check.to_json_number(receipt.total.epsilon)
                paid = {"receipt": receipt.number, "total": total, **admission.body}
                book.add(self.dataset, state.chain, {"kind": "charge", **charge, **paid})
                return receipt
            request = admission.request
            if request is None:
                request = book.add(self.dataset, state.chain, {"kind": "request", **charge}).number
        raise ApprovalNeeded(
            f"{receipt.label} is above the limit of epsilon={state.team.limit:g} for one charge "
            f"and waits for a second person, as request {request} of {self.dataset!r}. Nothing was "
            "spent or released. When an administrator "
            f"({', '.join(state.team.administrators)}) has run `hushfit ledger approve "
            f"{self.dataset} {request}`, make the same charge again."
        )

    def rehearse(self, decide: Decide) -> Receipt:
        """The receipt that `append` would record now. Nothing is recorded; a charge that would wait
        for a second person is refused, without a request.
        """
        receipt, admission, limit = self._try_out(decide)
        if admission.waits:
            raise ApprovalNeeded(
                f"{receipt.label} is above the limit of epsilon={limit:g} for one charge on "
                f"{self.dataset!r} and would wait for a second person. Nothing was spent, and no "
                "request was made."
            )
        return receipt

    def _try_out(self, decide: Decide) -> tuple[Receipt, Admission, float | None]:
        """Slow computations are cached here, so that others do not wait for them inside the
        transaction that records. A refusal is final: totals only grow.
        """
        with self._opened() as book:
            state, user, today = self._own(book), book.author.name, book.today
        receipt = decide(state.tally)
        return receipt, state.team.admission(receipt, user, today), state.team.limit

    def administer(self, body: dict[str, Any]) -> Entry:
        """Record an act of an administrator, if the rules of the account allow it.

        Parameters
        ----------
        body : dict
            With its ``kind``.

        Returns
        -------
        Entry
        """
        with self._opened() as book:  # for the cache, as above
            _act(self._own(book), book, body)
        with self._opened(writing=True) as found:
            book = found.prepared()
            state = self._own(book)
            _act(state, book, body)
            return book.add(self.dataset, state.chain, body)

    def record_model(self, receipt: Receipt, digest: str) -> None:
        """Record which model a payment led to.

        Parameters
        ----------
        receipt : Receipt
            Of the payment.
        digest : str
            Hash of the model file.
        """
        self._note({"kind": "model", "receipt": receipt.number, "model": digest})

    def _note(self, body: dict[str, Any]) -> None:
        """Add an entry without a cost."""
        with self._opened(writing=True) as found:
            book = found.prepared()
            state = _verified(book, self.location, self.dataset)
            book.add(self.dataset, state.chain, body)

    def record_releases(self, receipt: Receipt, count: int, digest: str) -> None:
        """Record how many releases a payment has led to, so that none of them is made again.

        Parameters
        ----------
        receipt : Receipt
            Of the payment.
        count : int
            More than was recorded before.
        digest : str
            Hash of all these releases.
        """
        with self._opened(writing=True) as found:
            book = found.prepared()
            chain = _verified(book, self.location, self.dataset).chain
            recorded, _ = _last_releases(chain, receipt)
            if count <= recorded:
                raise LedgerError(
                    f"release {count} of payment {receipt.number} was made before: two processes "
                    "use one payment. Nothing was sent. End one of them."
                )
            body = {
                "kind": "releases",
                "receipt": receipt.number,
                "releases": count,
                "digest": digest,
            }
            book.add(self.dataset, chain, body)

    def releases_recorded(self, receipt: Receipt) -> tuple[int, str]:
        """Arguments of the last `record_releases` for a payment; count 0 if there is none."""
        return _last_releases(self.history(), receipt)

    def hash_of(self, receipt: Receipt) -> str:
        """Hash of the chain at a payment; a copy shows whether earlier entries were rewritten."""
        return next(
            e.hash
            for e in reversed(self.history())
            if e.kind == "charge" and e.body["receipt"] == receipt.number
        )


def create_account(
    location: str | os.PathLike[str],
    dataset: str,
    budget: Budget,
    relation: Relation,
    adaptive: bool = True,
    unit: AccountUnit = ROW_ACCOUNT,
    until: date | None = None,
    token: str | None = None,
) -> DiskAccount:
    """Open the account of a data set in a database, which is created if there is none."""
    place, dataset = os.fspath(location), _checked_name(dataset)
    made = DiskAccount(place, dataset, budget, relation, adaptive, unit, token)
    with opened(place, writing=True, creating=True, token=token) as found:
        _open_account(found.prepared(), made, until)
    return made


def renew_account(
    old: DiskAccount, dataset: str, budget: Budget, until: date | None = None
) -> DiskAccount:
    """Close an account and open one that names it as its predecessor, in one transaction."""
    made = replace(old, dataset=_checked_name(dataset), budget=budget)
    with opened(old.location, writing=True, token=old.token) as found:
        book = found.prepared()
        state = _verified(book, old.location, old.dataset)
        head = state.chain[-1]
        if state.team.state != CLOSED:
            close = {"kind": "close", "renewed_by": made.dataset}
            _act(state, book, close)
            head = book.add(old.dataset, state.chain, close)
        elif book.author.name not in state.team.administrators:
            raise LedgerError(
                f"{book.author.name!r} is no administrator of {old.dataset!r}. Nothing was "
                f"changed. Ask one of them: {', '.join(state.team.administrators)}."
            )
        _open_account(book, made, until, {"dataset": old.dataset, "head": head.hash})
    return made


def _open_account(
    book: Book, made: DiskAccount, until: date | None, renews: Mapping[str, str] | None = None
) -> None:
    """Record the entry that opens an account."""
    if made.dataset in book.datasets():
        raise LedgerError(
            f"the ledger already has a data set {made.dataset!r}, whose budget is fixed. Nothing "
            "was changed. Use it as it is, or choose another name for other rows."
        )
    body = {
        "kind": "open",
        "dataset": made.dataset,
        "epsilon": _check.to_json_number(made.budget.epsilon),
        "delta": made.budget.delta,
        "relation": str(made.relation),
        "adaptive": made.adaptive,
        "unit": made.unit.to_dict(),
        **({} if until is None else {"until": until.isoformat()}),
        **({} if renews is None else {"renews": dict(renews)}),
        **({} if book.key is None else {"key": book.key.fingerprint}),
    }
    book.add(made.dataset, (), body)


def open_account(
    location: str | os.PathLike[str], dataset: str | None = None, token: str | None = None
) -> DiskAccount:
    """Account of a data set; its name may be left out if the ledger has only one."""
    place = os.fspath(location)
    with opened(place, token=token) as book:
        known = book.datasets()
        if dataset is None and len(known) == 1:
            dataset = known[0]
        if dataset not in known:
            problem = (
                "no dataset was named" if dataset is None else f"there is no data set {dataset!r}"
            )
            raise LedgerError(
                f"{problem} in the ledger {book.database.title}. Nothing was spent or released. It "
                f"has: {', '.join(known) or 'none'}. Name one of them, or open an account with "
                "`hushfit ledger init`."
            )
        return replace(_verified(book, place, dataset, anew=True).account, token=token)


def ledger_datasets(location: str | os.PathLike[str]) -> list[str]:
    """Names of the data sets with an account in a ledger on disk.

    Parameters
    ----------
    location : path or str
        SQLite file or ``postgresql://`` address.

    Returns
    -------
    list of str
    """
    with opened(os.fspath(location)) as book:
        return book.datasets()


@dataclass(frozen=True)
class _Verified:
    """An account as this process found it last, with every entry checked once."""

    account: DiskAccount
    chain: Grown[Entry]
    receipts: Grown[Receipt]
    tally: Tally
    team: Team

    def grown(self, chain: Grown[Entry]) -> "_Verified":
        """The same with the entries of a chain that are new."""
        entries = chain[len(self.chain) :]
        added = receipts_of(entries, self.account)
        tally = reduce(Tally.after, added, self.tally)
        team, paid = self.team, iter(added)
        for entry in entries:
            team = read_team(team, entry, next(paid) if entry.kind == "charge" else None)
        return _Verified(self.account, chain, self.receipts.after(added), tally, team)


def _act(state: _Verified, book: Book, body: dict[str, Any]) -> None:
    """Refuse an act that breaks the rules of an account."""
    state.team.after(Entry(len(state.chain), {**body, **book.stamp}, ""))


# By location, data set and key. Hashes of later entries cover earlier ones, so what was checked
# when a ledger was opened is not read again for every payment.
_VERIFIED: dict[tuple[str, str, str | None], _Verified] = {}
_MOST_VERIFIED: Final = 64


def _verified(book: Book, location: str, dataset: str, *, anew: bool = False) -> _Verified:
    """The account of a data set, inside a transaction; unless anew, only entries that this process
    has not seen before are checked.
    """
    place = (location, dataset, None if book.key is None else book.key.fingerprint)
    known = None if anew else _VERIFIED.get(place)
    chain = book.sound(dataset, NO_ENTRIES if known is None else known.chain)
    if known is None or known.chain[-1] not in chain[len(known.chain) - 1 : len(known.chain)]:
        account = account_of(location, dataset, chain)
        known = _Verified(account, NO_ENTRIES, Grown(), Tally.of(account), Team(dataset, account))
    state = known.grown(chain)
    if len(_VERIFIED) >= _MOST_VERIFIED:
        _VERIFIED.clear()
    _VERIFIED[place] = state
    return state


@contextmanager
def opened(
    location: str, *, writing: bool = False, creating: bool = False, token: str | None = None
) -> Iterator[Book]:
    """Open the ledger at a location for one transaction."""
    key, database = key_from_environment(), _database(location)
    with database.transaction(writing=writing, creating=creating) as execute:
        yield Book(database, execute, key, token)


def account_of(place: str, dataset: str, chain: Sequence[Entry]) -> DiskAccount:
    """Account that the first entry of a chain describes."""
    try:
        opening = chain[0].body
        epsilon = _check.from_json_number(opening["epsilon"], "epsilon")
        adaptive = opening.get("adaptive", False)
        if not isinstance(adaptive, bool):
            raise InvalidArgument(f"adaptive={adaptive!r} is neither true nor false.")
        return DiskAccount(
            place,
            dataset,
            Budget(epsilon, opening["delta"]),
            Relation.parse(opening["relation"]),
            adaptive,
            unit_of_account(chain[0]),
        )
    except (KeyError, IndexError, InvalidArgument) as error:
        raise _unreadable(dataset, error) from error


def receipts_of(entries: Iterable[Entry], account: DiskAccount) -> tuple[Receipt, ...]:
    """Receipts of the payments among entries of an account."""
    try:
        return tuple(
            Receipt(
                entry.body["receipt"],
                entry.body["label"],
                cost_from_dict(entry.body["cost"]),
                account.relation,
                Spent(_check.from_json_number(entry.body["total"], "total"), account.budget.delta),
                unit_of_charge(entry),
            )
            for entry in entries
            if entry.kind == "charge"
        )
    except (KeyError, InvalidArgument) as error:
        raise _unreadable(account.dataset, error) from error


def unit_of_account(opening: Entry) -> AccountUnit:
    """Whom an account protects, by its first entry. All accounts of older formats protect rows."""
    stated = opening.body.get("unit")
    return ROW_ACCOUNT if stated is None else AccountUnit.from_dict(stated)


def unit_of_charge(entry: Entry) -> PrivacyUnit:
    """Whom a payment was for. All payments of older formats were for rows."""
    stated = entry.body.get("unit")
    return ROW if stated in (None, _ROW) else PrivacyUnit.from_dict(stated)


def _database(location: str) -> Database:
    if location.startswith(("postgresql://", "postgres://", "postgresql+psycopg://")):
        try:
            from hushfit.privacy.ledger._postgres import PostgresDatabase
        except ModuleNotFoundError as error:
            raise LedgerError(
                f"a ledger on PostgreSQL needs {error.name}, which is not installed. Run `pip "
                "install hushfit[teams]`."
            ) from None
        return PostgresDatabase(location.replace("postgres://", "postgresql://", 1))
    return SqliteDatabase(location)


def _checked_name(dataset: object) -> str:
    if (
        not isinstance(dataset, str)
        or not dataset.strip()
        or not dataset.isprintable()
        or len(dataset) > 200
    ):
        raise InvalidArgument(
            f"dataset={dataset!r} is not a name. Give printable text of at most 200 characters."
        )
    return dataset


def _last_releases(chain: Sequence[Entry], receipt: Receipt) -> tuple[int, str]:
    lines = (entry.body for entry in reversed(chain) if entry.kind == "releases")
    return next(
        ((line["releases"], line["digest"]) for line in lines if line["receipt"] == receipt.number),
        (0, ""),
    )


def _unreadable(dataset: object, error: Exception) -> LedgerError:
    return LedgerError(
        f"the ledger of {dataset!r} has an entry that this hushfit cannot read ({error}). Nothing "
        "was spent or released. Use the newer hushfit that may have written it."
    )
