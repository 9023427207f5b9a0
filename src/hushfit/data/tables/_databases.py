"""Tables and queries of databases: DuckDB (``pip install hushfit[duckdb]``), and PostgreSQL through
its ADBC driver (``pip install hushfit[postgresql]``).

An address is that of the database with ``?table=NAME`` or ``?query=SELECT ...`` after it:
``duckdb:///visits.db?table=visits``, ``postgresql://host/db?query=SELECT * FROM visits``. The types
of columns are those that the database declares.
"""

import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

import pyarrow as pa

from hushfit.errors import InvalidArgument

SCHEMES = ("duckdb", "postgresql", "postgres")


def is_address(path: str) -> bool:
    """Whether a path is the address of a database."""
    scheme, found, _ = path.partition("://")
    return bool(found) and scheme in SCHEMES


@dataclass(frozen=True)
class DatabaseTable:
    """A table or query of a database.

    Parameters
    ----------
    scheme : str
    database : str
        A file, or an address without the table.
    source : str
        What SQL selects from.
    title : str
        Its name in messages, without a password.
    """

    scheme: str
    database: str
    source: str
    title: str

    @classmethod
    def parse(cls, address: str) -> "DatabaseTable":
        """Take an address apart.

        Raises
        ------
        InvalidArgument
            If it names neither a table nor a query, or both.
        """
        parts = urlsplit(address)
        options = dict(parse_qsl(parts.query))
        table, query = options.pop("table", None), options.pop("query", None)
        host = parts.hostname or ""
        title = f"{parts.scheme}://{host}{parts.path}"
        if (table is None) == (query is None):
            raise InvalidArgument(
                f"{title} should name what to read: add ?table=NAME, or ?query=SELECT ..., to the "
                "address."
            )
        source = _quoted(table) if table is not None else f"({query})"
        named = f"{title}, table {table}" if table is not None else f"{title}, a query"
        if parts.scheme == "duckdb":
            return cls(parts.scheme, unquote(parts.path.removeprefix("/")), source, named)
        rest = urlencode(options, quote_via=quote)
        database = urlunsplit(("postgresql", parts.netloc, parts.path, rest, ""))
        return cls("postgresql", database, source, named)

    @property
    def identity(self) -> tuple[str, str, str]:
        """What identifies it: the database, and what is selected from it."""
        place = os.path.realpath(self.database) if self.scheme == "duckdb" else self.database
        return self.scheme, place, self.source

    @contextmanager
    def opened(self) -> Iterator[Callable[[str], Any]]:
        """A function that runs SQL and returns an Arrow reader."""
        if self.scheme == "duckdb":
            with _driver("duckdb", "duckdb").connect(self.database, read_only=True) as connection:
                yield lambda sql: pa.RecordBatchReader.from_stream(connection.sql(sql))
            return
        driver = _driver("adbc_driver_postgresql.dbapi", "postgresql")
        with driver.connect(self.database) as connection, connection.cursor() as cursor:

            def run(sql: str) -> Any:
                cursor.execute(sql)
                return cursor.fetch_record_batch()

            yield run

    def selected(self, columns: Sequence[str] | None) -> str:
        """SQL that reads some columns; with None, no row of any."""
        if columns is None:
            return f"SELECT * FROM {self.source} AS hushfit_rows LIMIT 0"
        names = ", ".join(_quoted_name(name) for name in columns)
        return f"SELECT {names} FROM {self.source} AS hushfit_rows"


def _driver(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise InvalidArgument(
            f"{extra} tables need a driver that is not installed: pip install hushfit[{extra}]."
        ) from None


def _quoted(table: str) -> str:
    """A table's name, perhaps with its schema, as SQL takes it."""
    return ".".join(map(_quoted_name, table.split(".")))


def _quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
