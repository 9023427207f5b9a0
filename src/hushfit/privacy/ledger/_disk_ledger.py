"""Ledgers that outlive a process: accounts in an SQLite file or a PostgreSQL database."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hushfit.errors import InvalidArgument, LedgerError
from hushfit.privacy import _check
from hushfit.privacy._budget import Budget, Spent
from hushfit.privacy._relation import Relation
from hushfit.privacy.costs import cost_from_dict
from hushfit.privacy.ledger._chain import Book, Entry
from hushfit.privacy.ledger._ledger import Decide, Receipt
from hushfit.privacy.ledger._ledger_key import key_from_environment
from hushfit.privacy.ledger._sqlite import Database, SqliteDatabase


@dataclass(frozen=True)
class DiskAccount:
    """The account of one data set in a database; any process may hold it.

    Parameters
    ----------
    location : str
        Path of an SQLite file, or a ``postgresql://`` address.
    dataset : str
        Which data set.
    budget : Budget
    relation : Relation
    adaptive : bool, default=True
        Whether a filter decides what fits.
    """

    location: str = field(repr=False)  # it may hold a password
    dataset: str
    budget: Budget
    relation: Relation
    adaptive: bool = True

    @property
    def name(self) -> str:
        """Which data set."""
        return self.dataset

    def history(self) -> tuple[Entry, ...]:
        """Every line, oldest first, after the chain has been checked."""
        with opened(self.location) as book:
            return book.sound(self.dataset)

    def entries(self) -> tuple[Receipt, ...]:
        return receipts_of(self.history(), self.budget, self.relation)

    def append(self, decide: Decide) -> Receipt:
        # What takes time is remembered, so that others do not wait for it below. A refusal stays
        # one: totals only grow.
        decide(self.entries())
        with opened(self.location, writing=True) as found:
            book = found.prepared()
            chain = book.sound(self.dataset)
            if account_of(self.location, self.dataset, chain) != self:
                raise LedgerError(
                    f"the account {self.dataset!r} {book.database.title} was opened with other "
                    "terms than this handle has; the ledger may have been made anew. Nothing was "
                    "spent or released. Open it again."
                )
            receipt = decide(receipts_of(chain, self.budget, self.relation))
            body = {
                "kind": "charge",
                "receipt": receipt.number,
                "label": receipt.label,
                "cost": receipt.cost.to_dict(),
                "total": _check.to_json_number(receipt.total.epsilon),
            }
            book.add(self.dataset, chain, body)
        return receipt

    def record_model(self, receipt: Receipt, digest: str) -> None:
        """Note which model a payment led to.

        Parameters
        ----------
        receipt : Receipt
            Of the payment.
        digest : str
            Hash of the model file.
        """
        self._note({"kind": "model", "receipt": receipt.number, "model": digest})

    def _note(self, body: dict[str, Any]) -> None:
        """Add a line that costs nothing."""
        with opened(self.location, writing=True) as found:
            book = found.prepared()
            book.add(self.dataset, book.sound(self.dataset), body)

    def record_releases(self, receipt: Receipt, count: int, digest: str) -> None:
        """Note that a payment has led to so many releases by now, so that none of them is made
        again.

        Parameters
        ----------
        receipt : Receipt
            Of the payment.
        count : int
            More than was recorded before.
        digest : str
            Hash of all these releases.
        """
        with opened(self.location, writing=True) as found:
            book = found.prepared()
            chain = book.sound(self.dataset)
            recorded, _ = _last_releases(chain, receipt)
            if count <= recorded:
                raise LedgerError(
                    f"release {count} of payment {receipt.number} was made before: two processes "
                    "speak for one "
                    "payment. Nothing was said. End one of them."
                )
            body = {
                "kind": "releases",
                "receipt": receipt.number,
                "releases": count,
                "digest": digest,
            }
            book.add(self.dataset, chain, body)

    def releases_recorded(self, receipt: Receipt) -> tuple[int, str]:
        """What `record_releases` was told last for a payment; 0 if nothing."""
        return _last_releases(self.history(), receipt)

    def hash_of(self, receipt: Receipt) -> str:
        """The chain's hash at a payment: whoever keeps it can tell whether the history before it
        was rewritten.
        """
        return next(
            e.hash
            for e in self.history()
            if e.kind == "charge" and e.body["receipt"] == receipt.number
        )


def create_account(
    location: str | os.PathLike[str],
    dataset: str,
    budget: Budget,
    relation: Relation,
    adaptive: bool = True,
) -> DiskAccount:
    """Open the account of a data set in a database, which is made if there is none."""
    place, dataset = os.fspath(location), _named(dataset)
    with opened(place, writing=True, creating=True) as found:
        book = found.prepared()
        if dataset in book.datasets():
            raise LedgerError(
                f"the ledger already has a data set {dataset!r}, whose budget is fixed. Nothing "
                "was changed. Use it as it is, or choose another name for other rows."
            )
        body = {
            "kind": "open",
            "dataset": dataset,
            "epsilon": _check.to_json_number(budget.epsilon),
            "delta": budget.delta,
            "relation": str(relation),
            "adaptive": adaptive,
            **({} if book.key is None else {"key": book.key.fingerprint}),
        }
        book.add(dataset, (), body)
    return DiskAccount(place, dataset, budget, relation, adaptive)


def open_account(location: str | os.PathLike[str], dataset: str | None = None) -> DiskAccount:
    """The account of a data set; its name may be left out if the ledger has only one."""
    place = os.fspath(location)
    with opened(place) as book:
        known = book.datasets()
        if dataset is None and len(known) == 1:
            dataset = known[0]
        if dataset not in known:
            asked = (
                "no dataset was named" if dataset is None else f"there is no data set {dataset!r}"
            )
            raise LedgerError(
                f"{asked} in the ledger {book.database.title}. Nothing was spent or released. It "
                f"has: {', '.join(known) or 'none'}. Name one of them, or open an account with "
                "`hushfit ledger init`."
            )
        return account_of(place, dataset, book.sound(dataset))


def ledger_datasets(location: str | os.PathLike[str]) -> list[str]:
    """Names of the data sets that a ledger on disk has accounts for.

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


@contextmanager
def opened(location: str, *, writing: bool = False, creating: bool = False) -> Iterator[Book]:
    """The ledger at a place, for one transaction."""
    key, database = key_from_environment(), _database(location)
    with database.transaction(writing=writing, creating=creating) as execute:
        yield Book(database, execute, key)


def account_of(place: str, dataset: str, chain: tuple[Entry, ...]) -> DiskAccount:
    """What the first line of a chain says about its account."""
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
        )
    except (KeyError, IndexError, InvalidArgument) as error:
        raise _unreadable(dataset, error) from error


def receipts_of(
    chain: tuple[Entry, ...], budget: Budget, relation: Relation
) -> tuple[Receipt, ...]:
    """The payments among the lines, as a ledger wants them."""
    try:
        return tuple(
            Receipt(
                entry.body["receipt"],
                entry.body["label"],
                cost_from_dict(entry.body["cost"]),
                relation,
                Spent(_check.from_json_number(entry.body["total"], "total"), budget.delta),
            )
            for entry in chain
            if entry.kind == "charge"
        )
    except (KeyError, InvalidArgument) as error:
        raise _unreadable(chain[0].body.get("dataset"), error) from error


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


def _named(dataset: object) -> str:
    if (
        not isinstance(dataset, str)
        or not dataset.strip()
        or not dataset.isprintable()
        or len(dataset) > 200
    ):
        raise InvalidArgument(
            f"dataset={dataset!r} is not a name. Give a printable text of at most 200 letters."
        )
    return dataset


def _last_releases(chain: tuple[Entry, ...], receipt: Receipt) -> tuple[int, str]:
    lines = (entry.body for entry in reversed(chain) if entry.kind == "releases")
    return next(
        ((line["releases"], line["digest"]) for line in lines if line["receipt"] == receipt.number),
        (0, ""),
    )


def _unreadable(dataset: object, error: Exception) -> LedgerError:
    return LedgerError(
        f"the ledger of {dataset!r} has an entry that this hushfit cannot read ({error}). Nothing "
        "was spent or released. A newer hushfit may have written it: use that one."
    )
