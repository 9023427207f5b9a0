"""Hash chain of a ledger on disk.

An entry is a line of canonical JSON and a hash over it and the previous hash; the first entry of a
data set states its budget. Each entry has a seal in a second table: a copy of its hash or, where
the account was opened with a key, a code that only holders of the key can compute. Both tables only
ever grow.
"""

import hashlib
import hmac
import json
import shlex
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any, Final

from hushfit.errors import LedgerError
from hushfit.privacy.ledger._grown import Grown
from hushfit.privacy.ledger._identity import Identity, identity
from hushfit.privacy.ledger._ledger_key import KEY_VARIABLE, LedgerKey
from hushfit.privacy.ledger._redact import redacted
from hushfit.privacy.ledger._sqlite import Database
from hushfit.privacy.ledger._transaction import Execute

# Accounts of format 1 were all opened without a filter, and stay so; format 2 has a filter, and a
# table with one head for each data set instead of seals; accounts of formats 1 to 3 all protect
# rows; format 5 has grants and approvals. A hushfit without a filter, without seals, without units
# or without grants must not pay from a newer ledger.
FORMAT: Final = 5
_FIRST_WITH_SEALS: Final = 3
_READABLE: Final = (1, 2, _FIRST_WITH_SEALS, 4, FORMAT)
_START: Final = "0" * 64
_MAX_COMMAND_LENGTH: Final = 1000

TABLES: Final = {
    "hushfit_format": "CREATE TABLE hushfit_format (version INTEGER NOT NULL)",
    "hushfit_entries": "CREATE TABLE hushfit_entries (dataset TEXT NOT NULL, number INTEGER NOT "
    "NULL, body TEXT NOT NULL, "
    "hash TEXT NOT NULL, PRIMARY KEY (dataset, number))",
    "hushfit_seals": "CREATE TABLE hushfit_seals (dataset TEXT NOT NULL, number INTEGER NOT NULL, "
    "seal TEXT NOT NULL, "
    "PRIMARY KEY (dataset, number))",
}


@dataclass(frozen=True)
class Entry:
    """One entry of a ledger on disk.

    Parameters
    ----------
    number : int
        Position in the chain of its data set; 0 opens it.
    body : dict
        What was recorded: ``kind`` is "open", "charge", "model", "releases", or an act of an
        administrator such as "grant".
    hash : str
        SHA-256 over the previous hash and the body.
    """

    number: int
    body: dict[str, Any]
    hash: str

    @property
    def kind(self) -> str:
        """Kind of event that the entry records."""
        return str(self.body["kind"])


NO_ENTRIES: Final = Grown[Entry]()


@dataclass(frozen=True)
class Book:
    """A database inside a transaction, read and written as a ledger.

    Parameters
    ----------
    database : Database
    execute : callable
        Runs statements in the transaction.
    key : LedgerKey, optional
        Key of the ledger, if one is set.
    token : str, optional
        Token of the person for whom entries are written.
    """

    database: Database
    execute: Execute
    key: LedgerKey | None
    token: str | None = None

    @cached_property
    def format(self) -> int:
        """Newest format that has written here; concurrent creators may each have recorded one."""
        if "hushfit_format" not in self.database.tables(self.execute):
            raise LedgerError(
                f"there is no ledger {self.database.title}: the database has no such table. "
                "Nothing was spent or released. Check the location, make a ledger with `hushfit "
                "ledger init`, or restore it from a backup."
            )
        versions = sorted(
            {version for (version,) in self.execute("SELECT version FROM hushfit_format", {})}
        )
        if not versions or not set(versions) <= set(_READABLE):
            raise LedgerError(
                f"the ledger has format {versions}, this hushfit reads formats {_READABLE}. "
                "Nothing was spent or released. Use the version of hushfit that wrote it, or a "
                "newer one."
            )
        return int(versions[-1])

    @property
    def _has_seals(self) -> bool:
        return self.format >= _FIRST_WITH_SEALS

    def datasets(self) -> list[str]:
        """Names of all accounts, including those that are only partly left."""
        marks = "hushfit_seals" if self._has_seals else "hushfit_heads"
        rows = self.execute(
            f"SELECT dataset FROM hushfit_entries UNION SELECT dataset FROM {marks}", {}
        )
        return sorted(str(name) for (name,) in rows)

    def read(
        self, dataset: str, known: Grown[Entry] = NO_ENTRIES
    ) -> tuple[Grown[Entry], list[str]]:
        """Entries of a data set, and problems of their numbers, hashes and seals; those of entries
        that are known are not looked for.
        """
        rows = self.execute(
            "SELECT number, body, hash FROM hushfit_entries WHERE dataset = :dataset AND number >= "
            ":first ORDER BY number",
            {"dataset": dataset, "first": len(known)},
        )
        added: list[Entry] = []
        for expected, (number, body, recorded) in enumerate(rows, start=len(known)):
            if number != expected:
                return known.after(added), [f"entry {expected} is missing"]
            if link_of(added or known, body) != recorded:
                return known.after(added), [f"entry {number} was edited, or the one before it was"]
            if (parsed := _parsed(body)) is None:
                return known.after(added), [f"entry {number} is not a JSON object with a kind"]
            added.append(Entry(number, parsed, recorded))
        chain, first = known.after(added), len(known)
        return chain, (
            self._seal_problems(dataset, chain, first)
            or self._writer_problems(dataset, chain, first)
        )

    def sound(self, dataset: str, known: Grown[Entry] = NO_ENTRIES) -> Grown[Entry]:
        """Entries of a data set without problems; a ledger that was tampered with is refused.

        ``known`` entries were found sound before. If the last of them is still there they are
        taken as they were: its hash covers all of them. Otherwise everything is read again.
        """
        trusted = known if self._still_has(dataset, known) else NO_ENTRIES
        chain, problems = self.read(dataset, trusted)
        if problems:
            raise LedgerError(
                f"the ledger of {dataset!r} does not verify: {problems[0]}. Nothing was spent or "
                "released. Restore it from a backup; `hushfit ledger verify` shows more."
            )
        return chain

    def _still_has(self, dataset: str, known: Grown[Entry]) -> bool:
        """Whether the last known entry and its seal are in the database."""
        if not known or not self._has_seals:
            return False
        head = known[-1]
        found = self.execute(
            "SELECT body, hash, seal FROM hushfit_entries JOIN hushfit_seals USING (dataset, "
            "number) WHERE dataset = :dataset AND number = :number",
            {"dataset": dataset, "number": head.number},
        )
        return [(link_of(known[-2:-1], body), link, seal) for body, link, seal in found] == [
            (head.hash, head.hash, self._seal(dataset, known[0], head))
        ]

    def add(self, dataset: str, chain: Sequence[Entry], body: dict[str, Any]) -> Entry:
        """Append one entry and its seal."""
        self._refuse_without_key(dataset, chain)
        signed = {**body, **self.stamp}
        line = canonical(signed)
        entry = Entry(len(chain), signed, link_of(chain, line))
        place = {"dataset": dataset, "number": entry.number}
        self.execute(
            "INSERT INTO hushfit_entries VALUES (:dataset, :number, :body, :hash)",
            place | {"body": line, "hash": entry.hash},
        )
        self._add_seal(dataset, chain[0] if chain else entry, entry)
        self.database.attest(self.execute, dataset, entry.number)
        # Read back what was written: a trigger could have discarded it.
        written = self.execute(
            "SELECT body, hash FROM hushfit_entries WHERE dataset = :dataset AND number = :number",
            place,
        )
        if written != [(line, entry.hash)]:
            raise LedgerError(
                f"the ledger of {dataset!r} does not store what is written to it. Nothing was "
                "spent or released. Look for triggers or rules on its tables."
            )
        return entry

    def prepared(self) -> "Book":
        """The same in the current format: missing tables are made, and unsealed entries sealed."""
        there = self.database.tables(self.execute)
        before = self.format if "hushfit_format" in there else None
        if before == FORMAT:
            return self
        sound = {} if before is None else self._sound_chains()
        missing = {
            name: statement
            for name, statement in {**TABLES, **self.database.own_tables}.items()
            if name not in there
        }
        for statement in missing.values():
            self.execute(statement, {})
        # A broken account gets neither seals nor writers, so that it remains broken.
        for dataset, chain in sound.items():
            for entry in chain:
                if "hushfit_seals" in missing:
                    self._add_seal(dataset, chain[0], entry)
                if missing.keys() & self.database.own_tables.keys():
                    self.database.attest(self.execute, dataset, entry.number, _writer(entry))
        self.execute("INSERT INTO hushfit_format VALUES (:version)", {"version": FORMAT})
        return replace(self)

    def _sound_chains(self) -> dict[str, Grown[Entry]]:
        read = {dataset: self.read(dataset) for dataset in self.datasets()}
        return {dataset: chain for dataset, (chain, problems) in read.items() if not problems}

    def _writer_problems(self, dataset: str, chain: Sequence[Entry], first: int) -> list[str]:
        """Problems of entries that another role wrote than the one they name."""
        if self.format < FORMAT:
            return []
        writers = self.database.writers(self.execute, dataset, first)
        if writers is None:
            return []
        wrong = [
            f"entry {entry.number} names {_writer(entry)!r}, and was written by "
            f"{writers.get(entry.number, 'nobody')!r}"
            for entry in chain[first:]
            if writers.get(entry.number) != _writer(entry)
        ]
        return wrong[:1]

    def _add_seal(self, dataset: str, opening: Entry, entry: Entry) -> None:
        values = {
            "dataset": dataset,
            "number": entry.number,
            "seal": self._seal(dataset, opening, entry),
        }
        self.execute("INSERT INTO hushfit_seals VALUES (:dataset, :number, :seal)", values)

    def _seal(self, dataset: str, opening: Entry, entry: Entry) -> str:
        if _key_of(opening) is None or self.key is None:
            return entry.hash
        return self.key.seal(dataset, entry.number, entry.hash)

    def _seal_problems(self, dataset: str, chain: Sequence[Entry], first: int) -> list[str]:
        """Problems of the seals from an entry on."""
        cut = ["the last entries were removed, or others were added"]
        if not self._has_seals:
            heads = self.execute(
                "SELECT number, hash FROM hushfit_heads WHERE dataset = :dataset",
                {"dataset": dataset},
            )
            return [] if chain and heads == [(chain[-1].number, chain[-1].hash)] else cut
        seals = self.execute(
            "SELECT number, seal FROM hushfit_seals WHERE dataset = :dataset AND number >= :first "
            "ORDER BY number",
            {"dataset": dataset, "first": first},
        )
        added = chain[first:]
        if not chain or [number for number, _ in seals] != [entry.number for entry in added]:
            return cut
        if problem := self._key_problem(chain[0]):
            return [problem]
        if _key_of(chain[0]) is not None and self.key is None:
            return []  # without the key, entries can be read and hashes checked
        wrong = [
            f"entry {entry.number} has a wrong seal: it was not written with the ledger's key, or "
            "not by hushfit"
            for entry, (_, seal) in zip(added, seals, strict=True)
            if not hmac.compare_digest(
                str(seal).encode(), self._seal(dataset, chain[0], entry).encode()
            )
        ]
        return wrong[:1]

    def _key_problem(self, opening: Entry) -> str | None:
        """Problem if the account was not opened with the current key."""
        stated = _key_of(opening)
        if self.key is None or stated == self.key.fingerprint:
            return None
        if stated is None:
            return (
                f"it was opened without a key, or replaced by one that was, and {KEY_VARIABLE} is "
                "set"
            )
        return f"it was opened with another key than the one in {KEY_VARIABLE}"

    def _refuse_without_key(self, dataset: str, chain: Sequence[Entry]) -> None:
        if chain and _key_of(chain[0]) is not None and self.key is None:
            raise LedgerError(
                f"the account {dataset!r} was opened with a key, and nothing can be added without "
                f"it. Nothing was spent or released. Set {KEY_VARIABLE} to the path of the key."
            )

    @cached_property
    def author(self) -> Identity:
        """Who writes in this transaction."""
        return identity(self.database.payer(self.execute), self.token, self.key, self._now.date())

    @cached_property
    def stamp(self) -> dict[str, str]:
        """When, by whom and how entries of this transaction are written."""
        command = redacted(shlex.join(sys.argv))[:_MAX_COMMAND_LENGTH]
        return {
            "at": self._now.isoformat(timespec="seconds"),
            **self.author.body,
            "host": socket.gethostname(),
            "command": command,
        }

    @property
    def today(self) -> date:
        """Day of the transaction, in UTC."""
        return self._now.date()

    @cached_property
    def _now(self) -> datetime:
        return self.database.now(self.execute).astimezone(UTC)


def _parsed(line: Any) -> dict[str, Any] | None:
    try:
        body = json.loads(line)
    except (TypeError, ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) and isinstance(body.get("kind"), str) else None


def _writer(entry: Entry) -> str:
    """Role that wrote an entry, as it says itself."""
    return str(entry.body.get("through", entry.body.get("user", "")))


def _key_of(opening: Entry) -> str | None:
    """Fingerprint of the key that an account was opened with."""
    return opening.body.get("key")


def canonical(body: dict[str, Any]) -> str:
    """The one line of JSON that a body is hashed as."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def link_of(chain: Sequence[Entry], line: str) -> str:
    """Hash of the next entry of a chain."""
    previous = chain[-1].hash if chain else _START
    return hashlib.sha256(f"{previous}\n{line}".encode("utf-8", "surrogatepass")).hexdigest()
