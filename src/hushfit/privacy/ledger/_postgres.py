"""Ledgers in a PostgreSQL database, through SQLAlchemy. Needs ``pip install hushfit[teams]``.

A payment inserts and selects, and does nothing else: a role with only these privileges cannot
rewrite what was recorded. Errors name neither server nor role, since they may be shown to others;
the server's own message is in the exception's notes, for the local user.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from hushfit.errors import LedgerError
from hushfit.privacy.ledger._sqlite import LOCK_TIMEOUT_SECONDS
from hushfit.privacy.ledger._transaction import IN_DOUBT, CommitFailed, Execute, transaction

# Every writer to a ledger takes the advisory lock of this number. It needs no privilege.
_LOCK: Final = 7264893

# A payer may insert into the first two columns only, so that the server names the writer.
_WRITERS: Final = (
    "CREATE TABLE hushfit_writers (dataset TEXT NOT NULL, number INTEGER NOT NULL, writer TEXT NOT "
    "NULL DEFAULT session_user, PRIMARY KEY (dataset, number))"
)


@dataclass(frozen=True)
class PostgresDatabase:
    """Ledger database on a server, shared by several machines."""

    url: str = field(repr=False)

    def __post_init__(self) -> None:
        try:
            make_url(self.url)
        except (ArgumentError, ValueError):
            raise LedgerError(
                "the address of the ledger cannot be read. Write it as "
                "postgresql://user@host:5432/database."
            ) from None

    @property
    def title(self) -> str:
        return "on PostgreSQL"

    @contextmanager
    def transaction(self, *, writing: bool, creating: bool = False) -> Iterator[Execute]:
        try:
            with transaction(lambda: _PostgresConnection(self.url, writing)) as execute:
                yield execute
        except CommitFailed as failure:
            raise self._refusal(failure.__cause__, IN_DOUBT) from failure
        except SQLAlchemyError as error:
            raise self._refusal(error, "Nothing was released") from error

    def tables(self, execute: Execute) -> set[str]:
        return {
            str(name)
            for (name,) in execute(
                "SELECT relname FROM pg_class WHERE pg_table_is_visible(oid)", {}
            )
        }

    def payer(self, execute: Execute) -> str:
        ((role,),) = execute("SELECT CAST(session_user AS TEXT)", {})
        return str(role)

    def now(self, execute: Execute) -> datetime:
        ((now,),) = execute("SELECT CURRENT_TIMESTAMP", {})
        return datetime.fromisoformat(str(now))

    @property
    def own_tables(self) -> Mapping[str, str]:
        return {"hushfit_writers": _WRITERS}

    def attest(
        self, execute: Execute, dataset: str, number: int, writer: str | None = None
    ) -> None:
        values = {"dataset": dataset, "number": number}
        if writer is None:
            execute(
                "INSERT INTO hushfit_writers (dataset, number) VALUES (:dataset, :number)", values
            )
        else:
            execute(
                "INSERT INTO hushfit_writers VALUES (:dataset, :number, :writer)",
                values | {"writer": writer},
            )

    def writers(self, execute: Execute, dataset: str, first: int) -> Mapping[int, str] | None:
        rows = execute(
            "SELECT number, writer FROM hushfit_writers WHERE dataset = :dataset AND number >= "
            ":first",
            {"dataset": dataset, "first": first},
        )
        return {int(number): str(writer) for number, writer in rows}

    def _refusal(self, error: BaseException | None, outcome: str) -> LedgerError:
        orig = getattr(error, "orig", None)
        refusal = LedgerError(
            f"the ledger on PostgreSQL cannot be used: {_meaning(orig)}. {outcome}."
        )
        address = make_url(self.url).set(query={}).render_as_string(hide_password=True)
        refusal.add_note(f"{address} reported: {str(orig or type(error).__name__).strip()}")
        return refusal


class _PostgresConnection:
    """A connection for one transaction."""

    def __init__(self, url: str, writing: bool) -> None:
        address = make_url(url).set(drivername="postgresql+psycopg")
        self._engine, self._writing = create_engine(address, poolclass=NullPool), writing
        self._connection = self._engine.connect()

    def execute(self, sql: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        result = self._connection.execute(text(sql), values)
        return [tuple(row) for row in result] if result.returns_rows else []

    def begin(self) -> None:
        # For every server default: a writer must see what was committed while it waited for the
        # lock; a reader must see entries and seals of the same moment.
        level = "READ COMMITTED" if self._writing else "REPEATABLE READ"
        self.execute(f"SET TRANSACTION ISOLATION LEVEL {level}", {})
        # The server may be configured not to wait for its disk; a charge always does.
        self.execute("SET LOCAL synchronous_commit = on", {})
        self.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_SECONDS:g}s'", {})
        if self._writing:
            self.execute(f"SELECT pg_advisory_xact_lock({_LOCK})", {})

    def commit(self) -> None:
        self._connection.commit()

    def rollback(self) -> None:
        self._connection.rollback()

    def close(self) -> None:
        self._connection.close()
        self._engine.dispose()


# Meaning of an SQLSTATE of the server, or of its prefix, for a payer.
_MEANINGS: Final = {
    "42P01": (
        "the database holds no ledger. Make one with `hushfit ledger init`, or check the address"
    ),
    "42501": (
        "this role lacks a privilege. It needs SELECT and INSERT on the ledger's tables "
        "(docs/ledger.md has the statements); only their owner can make or upgrade them"
    ),
    "3D000": "the server has no such database. Check the address",
    "28": "the server does not accept this login. Check role and password",
    "23505": "another payment was recorded at the same moment. Try again",
    "40": "another payment was recorded at the same moment. Try again",
    "55P03": "another process has held it for two minutes. Try again when it has finished",
    "25006": "the server is read-only. Pay on the primary server",
    "53": "the server is out of disk space, memory or connections. Try again when it has some",
    "57": "the server stopped the connection. Try again when it runs",
}
_UNREACHED: Final = (
    "the server cannot be reached, did not accept the login, or cut the connection. Check that it "
    "runs and the address"
)


def _meaning(orig: Any) -> str:
    state = getattr(orig, "sqlstate", None) or ""
    found = next((meaning for code, meaning in _MEANINGS.items() if state.startswith(code)), None)
    return found or (f"the server refused (SQLSTATE {state})" if state else _UNREACHED)
