"""A PostgreSQL database as the place of a ledger, through SQLAlchemy: for teams. Needs ``pip install hushfit[teams]``."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from hushfit.errors import LedgerError
from hushfit.privacy._sqlite import Execute


@dataclass(frozen=True)
class PostgresDatabase:
    """A server that several machines can reach."""

    url: str

    def __post_init__(self) -> None:
        try:
            make_url(self.url)
        except (ArgumentError, ValueError):
            raise LedgerError(
                "the address of the ledger cannot be read. Write it as postgresql://user@host:5432/database."
            ) from None

    @property
    def title(self) -> str:
        return str(make_url(self.url).render_as_string(hide_password=True))

    @contextmanager
    def transaction(self, *, writing: bool, creating: bool = False) -> Iterator[Execute]:
        engine = create_engine(_with_driver(self.url), poolclass=NullPool)
        try:
            with engine.begin() as connection:

                def execute(sql: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
                    result = connection.execute(text(sql), values)
                    return [tuple(row) for row in result] if result.returns_rows else []

                if not writing:  # entries and heads must be read as of one moment
                    connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
                # A team's server may have been told not to wait for its disk; a charge always does.
                connection.execute(text("SET LOCAL synchronous_commit = on"))
                if creating:  # two that create the same tables at once would trip over each other
                    connection.execute(text("SELECT pg_advisory_xact_lock(7264893)"))
                elif writing:
                    connection.execute(text("LOCK TABLE hushfit_heads IN EXCLUSIVE MODE"))
                yield execute
        except SQLAlchemyError as error:
            said = str(getattr(error, "orig", None) or type(error).__name__).splitlines()[0]
            raise LedgerError(
                f"the ledger at {self.title} cannot be used ({said}). Nothing was released. Check that the server runs, that "
                "the ledger has been made with `hushfit ledger init`, and that you may write to it."
            ) from error
        finally:
            engine.dispose()


def _with_driver(url: str) -> str:
    parsed = make_url(url)
    return str(parsed.set(drivername="postgresql+psycopg").render_as_string(hide_password=False))
