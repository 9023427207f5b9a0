"""Ledgers in an SQLite file: one writer at a time, durable on disk before a payment returns."""

import getpass
import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote

from hushfit.errors import LedgerError
from hushfit.privacy.ledger._mounts import mounts, refuse_unsafe_place
from hushfit.privacy.ledger._transaction import IN_DOUBT, CommitFailed, Execute, transaction

# How long a process waits for the lock of another payment. Composing hundreds of subsampled
# releases takes seconds.
LOCK_TIMEOUT_SECONDS: Final = 120.0


class Database(Protocol):
    """Database of ledgers.

    Every transaction opens its own connection, so forks, threads and pickles are safe.
    """

    @property
    def title(self) -> str:
        """Location, in words that may be shown to anyone."""

    def transaction(
        self, *, writing: bool, creating: bool = False
    ) -> AbstractContextManager[Execute]:
        """Run statements atomically; writers are serialised."""

    def tables(self, execute: Execute) -> set[str]:
        """Names of the existing tables."""

    def payer(self, execute: Execute) -> str:
        """Name of the connected user, from the database or the system."""

    def now(self, execute: Execute) -> datetime:
        """Time of the transaction, by the clock of the database."""

    @property
    def own_tables(self) -> Mapping[str, str]:
        """Statements that make the tables which only this kind of database has."""

    def attest(
        self, execute: Execute, dataset: str, number: int, writer: str | None = None
    ) -> None:
        """Let the database record who wrote an entry, where it knows; only the owner of the tables
        may name another writer.
        """

    def writers(self, execute: Execute, dataset: str, first: int) -> Mapping[int, str] | None:
        """Who wrote each entry from a number on; None where the database does not know."""


@dataclass(frozen=True)
class SqliteDatabase:
    """Ledger file on this machine, shared by its processes."""

    path: str

    @property
    def title(self) -> str:
        return f"at {self.path!r}"

    @contextmanager
    def transaction(self, *, writing: bool, creating: bool = False) -> Iterator[Execute]:
        with _with_remedy(self.path):
            self._refuse_second_names(creating)
            with transaction(lambda: _SqliteConnection(self.path, writing, creating)) as execute:
                yield execute

    def tables(self, execute: Execute) -> set[str]:
        found = execute("SELECT type, name FROM sqlite_master", {})
        if odd := sorted(name for kind, name in found if kind in ("trigger", "view")):
            raise LedgerError(
                f"the ledger at {self.path!r} has triggers or views ({', '.join(odd)}), which "
                "hushfit never makes: they could change what is recorded. Nothing was spent or "
                "released. Restore it from a backup."
            )
        return {name for kind, name in found if kind == "table"}

    def payer(self, execute: Execute) -> str:
        if sys.platform == "win32":
            return getpass.getuser()
        import pwd

        # Not from the environment, which anybody can set.
        user = os.geteuid()
        try:
            return pwd.getpwuid(user).pw_name
        except KeyError:  # an account without a name, as in some containers
            return f"uid {user}"

    def now(self, execute: Execute) -> datetime:
        return datetime.now(UTC)

    @property
    def own_tables(self) -> Mapping[str, str]:
        return {}

    def attest(
        self, execute: Execute, dataset: str, number: int, writer: str | None = None
    ) -> None:
        """Nothing: whoever may write to a file may write anything into it."""

    def writers(self, execute: Execute, dataset: str, first: int) -> Mapping[int, str] | None:
        return None

    def _refuse_second_names(self, creating: bool) -> None:
        """Refuse a file with several names: an interrupted payment's journal is found by name."""
        path = Path(self.path)
        if not creating and not path.is_file():
            raise LedgerError(
                f"there is no ledger at {self.path!r}. Nothing was spent or released. Make one "
                f"with `hushfit ledger init {self.path} --dataset NAME --epsilon E --delta D`, or "
                "check the path."
            )
        refuse_unsafe_place(self.path, mounts())
        if path.is_file() and path.stat().st_nlink > 1:
            raise LedgerError(
                f"the ledger at {self.path!r} has a second name (a hard link), and processes that "
                "use different names do not see each other's journal. Nothing was spent or "
                "released. Remove all names but one, or use a symbolic link."
            )


class _SqliteConnection:
    """A connection for one transaction."""

    def __init__(self, path: str, writing: bool, creating: bool) -> None:
        self._path, self._writing = path, writing
        before = _identity(path)
        address = f"file:{quote(path)}?mode={'rwc' if creating else 'rw'}"
        self._connection = sqlite3.connect(
            address, uri=True, isolation_level=None, timeout=LOCK_TIMEOUT_SECONDS
        )
        self._file = before or _identity(path)

    def execute(self, sql: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values).fetchall()

    def begin(self) -> None:
        if self._writing:
            # After a commit everything is in the file itself: nothing is lost with a side file, and
            # its locks belong to the file and not to a name. Earlier versions used a write-ahead
            # log.
            self._execute_with_retry("PRAGMA journal_mode = DELETE")
        self._connection.execute("PRAGMA synchronous = EXTRA")
        self._connection.execute("BEGIN IMMEDIATE" if self._writing else "BEGIN")

    def commit(self) -> None:
        self._connection.execute("COMMIT")
        if _identity(self._path) != self._file:
            raise sqlite3.OperationalError("the file was exchanged for another")

    def rollback(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()

    def _execute_with_retry(self, statement: str) -> None:
        """Execute with retries: SQLite does not wait for locks when it changes the journal mode."""
        deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
        while True:
            try:
                self._connection.execute(statement)
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)


def _identity(path: str) -> tuple[int, int] | None:
    """Device and inode, by name: closing a file descriptor here would drop SQLite's locks."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


# Meaning of SQLite's error messages for a payer.
_REMEDIES = {
    "locked": "another process has held it for two minutes. Try again when it has finished",
    "readonly": (
        "the file or its folder cannot be written. Pay from an account that may write there"
    ),
    "unable to open": (
        "the file or its folder cannot be opened for writing. Check the path and the permissions"
    ),
    "disk is full": "the disk is full. Free some space",
    "disk i/o": (
        "the disk refused to write, which a full disk or a quota also does. Free some space and "
        "verify the ledger"
    ),
    "not a database": (
        "the file is not an SQLite database, or has been damaged. Restore it from a backup"
    ),
    "malformed": "the file is damaged. Restore it from a backup",
    "no such table": (
        "the file is a database, but not a hushfit ledger. Check the path, or restore it from "
        "a backup"
    ),
    "exchanged": (
        "it was replaced while an entry was being written. Find out which of the two is the "
        "ledger, and verify it"
    ),
}


@contextmanager
def _with_remedy(path: str) -> Iterator[None]:
    try:
        yield
    except CommitFailed as failure:
        raise _refusal(path, str(failure.__cause__), IN_DOUBT) from failure
    except (sqlite3.Error, UnicodeError) as error:
        raise _refusal(path, str(error), "Nothing was released") from error


def _refusal(path: str, reason: str, outcome: str) -> LedgerError:
    remedy = next(
        (text for sign, text in _REMEDIES.items() if sign in reason.lower()), "verify the ledger"
    )
    return LedgerError(f"the ledger at {path!r} cannot be used ({reason}): {remedy}. {outcome}.")
