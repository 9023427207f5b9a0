"""An SQLite file as the place of a ledger: write-ahead log, one writer at a time, on the platter before anyone goes on."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias
from urllib.parse import quote

from hushfit.errors import LedgerError

Execute: TypeAlias = Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]]

# How long a process waits for another one that is paying. Composing hundreds of subsampled releases takes seconds.
_PATIENCE_SECONDS = 120.0


class Database(Protocol):
    """A database that holds ledgers. Every transaction opens its own connection, so forks, threads and pickles are safe."""

    @property
    def title(self) -> str:
        """Where it is, without any password."""

    def transaction(self, *, writing: bool, creating: bool = False) -> "Any":
        """Run statements as one: all of them or none; writers one after the other. Yields an ``Execute``."""


@dataclass(frozen=True)
class SqliteDatabase:
    """A file on this machine, shared by its processes."""

    path: str

    @property
    def title(self) -> str:
        return self.path

    @contextmanager
    def transaction(self, *, writing: bool, creating: bool = False) -> Iterator[Execute]:
        with _explained(self.path), closing(self._connect(creating)) as connection:
            connection.execute("PRAGMA synchronous = FULL")
            if creating:
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
            try:
                yield lambda sql, values: connection.execute(sql, values).fetchall()
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _connect(self, creating: bool) -> sqlite3.Connection:
        if not creating and not Path(self.path).is_file():
            raise LedgerError(
                f"there is no ledger at {self.path!r}. Nothing was spent or released. Make one with `hushfit ledger init "
                f"{self.path} --dataset NAME --epsilon E --delta D`, or check the path."
            )
        if Path(self.path).is_file() and Path(self.path).stat().st_nlink > 1:
            raise LedgerError(
                f"the ledger at {self.path!r} has a second name (a hard link), and processes that use different names do not see each "
                "other's locks. Nothing was spent or released. Remove all names but one, or use a symbolic link."
            )
        mode = "rwc" if creating else "rw"
        return sqlite3.connect(f"file:{quote(self.path)}?mode={mode}", uri=True, isolation_level=None, timeout=_PATIENCE_SECONDS)


# What SQLite says, and what it means for somebody who wants to pay.
_REMEDIES = {
    "locked": "another process has held it for two minutes. Try again when it has finished",
    "readonly": "the file or its folder cannot be written. Pay from an account that may write there",
    "unable to open": "the file or its folder cannot be opened for writing. Check the path and the permissions",
    "disk is full": "the disk is full. Free some space",
    "disk i/o": "the disk refused to write, which a full disk or a quota also does. Free some space and verify the ledger",
    "not a database": "the file is not an SQLite database, or has been damaged. Restore it from a backup",
    "malformed": "the file is damaged. Restore it from a backup",
    "no such table": "the file is a database, but not a hushfit ledger. Check the path, or restore it from a backup",
}


@contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, UnicodeError) as error:
        said = str(error)
        remedy = next((text for sign, text in _REMEDIES.items() if sign in said.lower()), "verify the ledger")
        raise LedgerError(f"the ledger at {path!r} cannot be used ({said}): {remedy}. Nothing was released.") from error
