"""Ledgers that outlive a process.

An entry is a line of canonical JSON and a hash over it and the hash before it; the first entry of a data set states its
budget. A table of heads says which entry is the last. So an entry that was edited, added, or removed, the last one
included, is found by `verify_ledger`. Whoever can rewrite the whole file can also rewrite the hashes: model files carry
the hash of the entry that paid for them, which pins the history up to there from outside.
"""

import getpass
import hashlib
import json
import os
import re
import shlex
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from hushfit.errors import HushfitError, InvalidArgument, LedgerError
from hushfit.privacy import _check
from hushfit.privacy._budget import Budget, Spent
from hushfit.privacy._cost import cost_from_dict
from hushfit.privacy._ledger import Decide, Receipt, total_epsilon
from hushfit.privacy._relation import Relation
from hushfit.privacy._reserve import RESERVED_SHARE
from hushfit.privacy._sqlite import Database, Execute, SqliteDatabase

# Accounts of format 1 were all opened without a filter, and go on like that; a hushfit that knows no filter must not pay from others.
FORMAT: Final = 2
_READABLE: Final = (1, FORMAT)
_START: Final = "0" * 64
_LONGEST_COMMAND: Final = 1000
# Re-deriving a total may differ from the recorded one by rounding between machines, and by the reserve that older ones lack.
_ROUNDING: Final = RESERVED_SHARE

_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS hushfit_format (version INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS hushfit_heads (dataset TEXT PRIMARY KEY, number INTEGER NOT NULL, hash TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS hushfit_entries (dataset TEXT NOT NULL, number INTEGER NOT NULL, body TEXT NOT NULL, "
    "hash TEXT NOT NULL, PRIMARY KEY (dataset, number))",
)


@dataclass(frozen=True)
class Entry:
    """One line of a ledger on disk.

    Parameters
    ----------
    number : int
        Place in the chain of its data set; 0 opens it.
    body : dict
        What was recorded: ``kind`` is "open", "charge", "model" or "releases".
    hash : str
        SHA-256 over the previous hash and the body.
    """

    number: int
    body: dict[str, Any]
    hash: str

    @property
    def kind(self) -> str:
        """What the line records."""
        return str(self.body["kind"])


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

    location: str
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
        with _database(self.location).transaction(writing=False) as execute:
            return _sound_chain(execute, self.dataset)

    def entries(self) -> tuple[Receipt, ...]:
        return _receipts(self.history(), self.budget, self.relation)

    def append(self, decide: Decide) -> Receipt:
        # What takes time is remembered, so that others do not wait for it below. A refusal stays one: totals only grow.
        decide(self.entries())
        with _database(self.location).transaction(writing=True) as execute:
            chain = _sound_chain(execute, self.dataset)
            if _account(self.location, self.dataset, chain) != self:
                raise LedgerError(
                    f"the account {self.dataset!r} at {self.location!r} was opened with other terms than this handle has; the ledger "
                    "may have been made anew. Nothing was spent or released. Open it again."
                )
            receipt = decide(_receipts(chain, self.budget, self.relation))
            body = {
                "kind": "charge",
                "receipt": receipt.number,
                "label": receipt.label,
                "cost": receipt.cost.to_dict(),
                "total": _check.to_json_number(receipt.total.epsilon),
            }
            _add(execute, self.dataset, chain, body)
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
        with _database(self.location).transaction(writing=True) as execute:
            chain = _sound_chain(execute, self.dataset)
            _add(execute, self.dataset, chain, {"kind": "model", "receipt": receipt.number, "model": digest})

    def record_releases(self, receipt: Receipt, count: int, digest: str) -> None:
        """Note that a payment has led to so many releases by now, so that none of them is made again.

        Parameters
        ----------
        receipt : Receipt
            Of the payment.
        count : int
            More than was recorded before.
        digest : str
            Hash of all these releases.
        """
        with _database(self.location).transaction(writing=True) as execute:
            chain = _sound_chain(execute, self.dataset)
            recorded, _ = _last_releases(chain, receipt)
            if count <= recorded:
                raise LedgerError(
                    f"release {count} of payment {receipt.number} was made before: two processes speak for one "
                    "payment. Nothing was said. End one of them."
                )
            body = {"kind": "releases", "receipt": receipt.number, "releases": count, "digest": digest}
            _add(execute, self.dataset, chain, body)

    def releases_recorded(self, receipt: Receipt) -> tuple[int, str]:
        """What `record_releases` was told last for a payment; 0 if nothing."""
        return _last_releases(self.history(), receipt)

    def hash_of(self, receipt: Receipt) -> str:
        """The chain's hash at a payment: whoever keeps it can tell whether the history before it was rewritten."""
        return next(e.hash for e in self.history() if e.kind == "charge" and e.body["receipt"] == receipt.number)


def create_account(
    location: str | os.PathLike[str], dataset: str, budget: Budget, relation: Relation, adaptive: bool = True
) -> DiskAccount:
    """Open the account of a data set in a database, which is made if there is none."""
    place, dataset = os.fspath(location), _named(dataset)
    with _database(place).transaction(writing=True, creating=True) as execute:
        for statement in _TABLES:
            execute(statement, {})
        if execute("SELECT version FROM hushfit_format", {}):
            _check_format(execute)
            execute("DELETE FROM hushfit_format", {})
        execute("INSERT INTO hushfit_format VALUES (:version)", {"version": FORMAT})
        if execute("SELECT 1 FROM hushfit_heads WHERE dataset = :dataset", {"dataset": dataset}):
            raise LedgerError(
                f"the ledger already has a data set {dataset!r}, whose budget is fixed. Nothing was changed. Use it as it is, "
                "or choose another name for other rows."
            )
        body = {
            "kind": "open",
            "dataset": dataset,
            "epsilon": _check.to_json_number(budget.epsilon),
            "delta": budget.delta,
            "relation": str(relation),
            "adaptive": adaptive,
        }
        _add(execute, dataset, (), body)
    return DiskAccount(place, dataset, budget, relation, adaptive)


def open_account(location: str | os.PathLike[str], dataset: str | None = None) -> DiskAccount:
    """The account of a data set; its name may be left out if the ledger has only one."""
    place = os.fspath(location)
    with _database(place).transaction(writing=False) as execute:
        known = _datasets(execute)
        if dataset is None and len(known) == 1:
            dataset = known[0]
        if dataset not in known:
            asked = "no dataset was named" if dataset is None else f"there is no data set {dataset!r}"
            raise LedgerError(
                f"{asked} in the ledger {_database(place).title}. Nothing was spent or released. It has: "
                f"{', '.join(known) or 'none'}. Name one of them, or open an account with `hushfit ledger init`."
            )
        return _account(place, dataset, _sound_chain(execute, dataset))


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
    with _database(os.fspath(location)).transaction(writing=False) as execute:
        return _datasets(execute)


def verify_ledger(location: str | os.PathLike[str]) -> dict[str, list[str]]:
    """Check every hash of a ledger on disk and re-derive every total from the recorded costs.

    Parameters
    ----------
    location : path or str
        SQLite file or ``postgresql://`` address.

    Returns
    -------
    dict of str to list of str
        What is wrong with each data set; empty lists are good news.

    Raises
    ------
    LedgerError
        If the ledger cannot be read at all.
    """
    place = os.fspath(location)
    with _database(place).transaction(writing=False) as execute:
        _check_format(execute)
        orphans = execute(
            "SELECT DISTINCT dataset FROM hushfit_entries WHERE dataset NOT IN (SELECT dataset FROM hushfit_heads)", {}
        )
        found = {str(name): ["its account was removed, but entries of it are left"] for (name,) in orphans}
        for dataset in _datasets(execute):
            chain, problems = _read_chain(execute, dataset)
            found[dataset] = problems or list(_wrong_totals(place, dataset, chain))
    return found


def redacted(command: str) -> str:
    """A command line without the passwords of database addresses."""
    return re.sub(r"://[^/@\s]*@", "://***@", command)


def _database(location: str) -> Database:
    if location.startswith(("postgresql://", "postgres://", "postgresql+psycopg://")):
        try:
            from hushfit.privacy._postgres import PostgresDatabase
        except ModuleNotFoundError as error:
            raise LedgerError(
                f"a ledger on PostgreSQL needs {error.name}, which is not installed. Run `pip install hushfit[teams]`."
            ) from None
        return PostgresDatabase(location.replace("postgres://", "postgresql://", 1))
    return SqliteDatabase(location)


def _named(dataset: object) -> str:
    if not isinstance(dataset, str) or not dataset.strip() or not dataset.isprintable() or len(dataset) > 200:
        raise InvalidArgument(f"dataset={dataset!r} is not a name. Give a printable text of at most 200 letters.")
    return dataset


def _check_format(execute: Execute) -> None:
    versions = [version for (version,) in execute("SELECT version FROM hushfit_format", {})]
    if len(versions) != 1 or versions[0] not in _READABLE:
        raise LedgerError(
            f"the ledger has format {versions}, this hushfit reads formats {_READABLE}. Nothing was spent or released. Use the "
            "version of hushfit that wrote it, or a newer one."
        )


def _datasets(execute: Execute) -> list[str]:
    _check_format(execute)
    return [str(name) for (name,) in execute("SELECT dataset FROM hushfit_heads ORDER BY dataset", {})]


def _link(previous: str, body: str) -> str:
    return hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()


def _read_chain(execute: Execute, dataset: str) -> tuple[tuple[Entry, ...], list[str]]:
    """The lines of a data set, and what is wrong with their hashes and numbers."""
    key = {"dataset": dataset}
    rows = execute("SELECT number, body, hash FROM hushfit_entries WHERE dataset = :dataset ORDER BY number", key)
    heads = execute("SELECT number, hash FROM hushfit_heads WHERE dataset = :dataset", key)
    chain: list[Entry] = []
    problems: list[str] = []
    previous = _START
    for expected, (number, body, recorded) in enumerate(rows):
        if number != expected:
            problems.append(f"entry {expected} is missing")
            break
        if _link(previous, body) != recorded:
            problems.append(f"entry {number} was edited, or the one before it was")
            break
        try:
            chain.append(Entry(number, json.loads(body), recorded))
        except ValueError:
            problems.append(f"entry {number} is not JSON")
            break
        previous = recorded
    if not problems and heads != [(len(rows) - 1, previous)]:
        problems.append("the last entries were removed, or others were added")
    return tuple(chain), problems


def _sound_chain(execute: Execute, dataset: str) -> tuple[Entry, ...]:
    """The lines of a data set whose hashes agree; a ledger that was tampered with is not paid into."""
    _check_format(execute)
    chain, problems = _read_chain(execute, dataset)
    if problems:
        raise LedgerError(
            f"the ledger of {dataset!r} does not verify: {problems[0]}. Nothing was spent or released. Restore it from a "
            "backup; `hushfit ledger verify` tells more."
        )
    return chain


def _add(execute: Execute, dataset: str, chain: tuple[Entry, ...], body: dict[str, Any]) -> None:
    """Append one line and move the head, inside the caller's transaction."""
    signed = {**body, "at": datetime.now(UTC).isoformat(timespec="seconds"), **_who()}
    line = json.dumps(signed, sort_keys=True, separators=(",", ":"), allow_nan=False)
    link = _link(chain[-1].hash if chain else _START, line)
    values = {"dataset": dataset, "number": len(chain), "body": line, "hash": link}
    execute("INSERT INTO hushfit_entries VALUES (:dataset, :number, :body, :hash)", values)
    execute("DELETE FROM hushfit_heads WHERE dataset = :dataset", {"dataset": dataset})
    head = {"dataset": dataset, "number": len(chain), "hash": link}
    execute("INSERT INTO hushfit_heads VALUES (:dataset, :number, :hash)", head)


def _who() -> dict[str, str]:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as in some containers
        user = f"uid {os.getuid()}"
    command = redacted(shlex.join(sys.argv))[:_LONGEST_COMMAND].encode("utf-8", "replace").decode()
    return {"user": user, "host": socket.gethostname(), "command": command}


def _account(place: str, dataset: str, chain: tuple[Entry, ...]) -> DiskAccount:
    try:
        opening = chain[0].body
        epsilon = _check.from_json_number(opening["epsilon"], "epsilon")
        adaptive = opening.get("adaptive", False)
        if not isinstance(adaptive, bool):
            raise InvalidArgument(f"adaptive={adaptive!r} is neither true nor false.")
        return DiskAccount(place, dataset, Budget(epsilon, opening["delta"]), Relation.parse(opening["relation"]), adaptive)
    except (KeyError, IndexError, InvalidArgument) as error:
        raise _unreadable(dataset, error) from error


def _receipts(chain: tuple[Entry, ...], budget: Budget, relation: Relation) -> tuple[Receipt, ...]:
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


def _last_releases(chain: tuple[Entry, ...], receipt: Receipt) -> tuple[int, str]:
    lines = (entry.body for entry in reversed(chain) if entry.kind == "releases")
    return next(((line["releases"], line["digest"]) for line in lines if line["receipt"] == receipt.number), (0, ""))


def _unreadable(dataset: object, error: Exception) -> LedgerError:
    return LedgerError(
        f"the ledger of {dataset!r} has an entry that this hushfit cannot read ({error}). Nothing was spent or released. A "
        "newer hushfit may have written it: use that one."
    )


def _wrong_totals(place: str, dataset: str, chain: tuple[Entry, ...]) -> Iterator[str]:
    """Compose the recorded costs again, payment by payment."""
    try:
        account = _account(place, dataset, chain)
        receipts = _receipts(chain, account.budget, account.relation)
    except HushfitError as error:
        yield str(error)
        return
    for number, receipt in enumerate(receipts, start=1):
        epsilon = total_epsilon(account, receipts[:number])
        if receipt.number != number:
            yield f"payment {number} is numbered {receipt.number}"
        if not epsilon <= receipt.total.epsilon * (1 + _ROUNDING):
            yield f"after payment {number} the record says epsilon={receipt.total.epsilon:g}, its costs give {epsilon:g}"
        if not epsilon <= account.budget.epsilon * (1 + _ROUNDING):
            yield f"payment {number} brought the total to epsilon={epsilon:g}, over the budget of {account.budget.epsilon:g}"
