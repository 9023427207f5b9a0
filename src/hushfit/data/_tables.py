"""Tables in files and pipes, read in record batches; the one door to pyarrow.

Text files are read as text and each cell is interpreted on its own, by the schema. A reader that guesses types would let
one person's cell decide how everybody else's are read.
"""

import bz2
import csv
import glob
import gzip
import io
import lzma
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from hushfit.errors import InvalidArgument

STDIN = "-"
_BLOCK_BYTES = 1 << 23
_BATCH_ROWS = 1 << 16
_LONGEST_HEADER = 1 << 24
_DELIMITERS = {"csv": ",", "tsv": "\t"}
FORMATS = ("csv", "tsv", "parquet", "arrow")
_ENDINGS = {
    "csv": (".csv", ".txt"),
    "tsv": (".tsv", ".tab"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
}
_SUFFIXES = {ending: format for format, endings in _ENDINGS.items() for ending in endings}
_PACKED: dict[str, Callable[[Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}

Watch = Callable[[int], None]


@dataclass(frozen=True)
class Table:
    """One file, or what comes through a pipe.

    Parameters
    ----------
    path : str
        "-" is standard input.
    format : str
        One of "csv", "tsv", "parquet", "arrow".
    """

    path: str
    format: str

    @property
    def title(self) -> str:
        """How to speak of it."""
        return "standard input" if self.path == STDIN else self.path


def find_tables(patterns: Sequence[str], format: str | None = None) -> list[Table]:
    """The tables that paths and patterns stand for.

    Parameters
    ----------
    patterns : sequence of str
        Paths, patterns with ``*``, or "-" for standard input.
    format : str, optional
        One of "csv", "tsv", "parquet", "arrow"; by the ending of each file when not given, CSV for standard input.

    Returns
    -------
    list of Table

    Raises
    ------
    InvalidArgument
        If a file does not exist, or its format cannot be told.
    """
    if format is not None and format not in FORMATS:
        raise InvalidArgument(f"format={format!r} is not known. Use one of {', '.join(FORMATS)}.")
    paths = [path for pattern in patterns for path in _expanded(pattern)]
    if len(set(paths)) < len(paths):
        raise InvalidArgument("a file is named twice, so its rows would count twice and lose protection. Name it once.")
    return [Table(path, format or _format_of(path)) for path in paths]


def table_batches(table: Table, columns: Sequence[str] | None = None, watch: Watch | None = None) -> Iterator[Any]:
    """Read a table piece by piece.

    Parameters
    ----------
    table : Table
    columns : sequence of str, optional
        Which columns, in this order; all of them when not given.
    watch : callable, optional
        Called with the number of bytes read since the last call.

    Yields
    ------
    pyarrow.RecordBatch
        Text files give texts only.

    Raises
    ------
    InvalidArgument
        If the file is damaged or lacks a column. Messages name rows and columns, never a value.
    """
    readers = {"parquet": _parquet, "arrow": _arrow}
    read = readers.get(table.format, _delimited)
    try:
        yield from read(table, columns, watch or (lambda done: None))
    except (pa.ArrowException, OSError, EOFError, lzma.LZMAError, csv.Error, UnicodeError) as error:
        # What pyarrow says may quote cells, so only the kind of trouble is passed on.
        raise InvalidArgument(
            f"{table.title} cannot be read as {table.format}: {_kind_of(error)}. Repair the file, or say --format."
        ) from None


def _expanded(pattern: str) -> list[str]:
    if pattern == STDIN or Path(pattern).is_file():
        return [pattern]
    found = sorted(path for path in glob.glob(pattern, recursive=True) if Path(path).is_file())
    if not found:
        raise InvalidArgument(f"there is no file {pattern!r}. Check the path.")
    return found


def _format_of(path: str) -> str:
    if path == STDIN:
        return "csv"
    name = Path(path)
    suffix = (name.with_suffix("") if name.suffix.lower() in _PACKED else name).suffix.lower()
    if suffix not in _SUFFIXES:
        raise InvalidArgument(f"the format of {path!r} cannot be told from its name. Say --format {'|'.join(FORMATS)}.")
    return _SUFFIXES[suffix]


def _kind_of(error: Exception) -> str:
    said = str(error).lower()
    if "utf8" in said or "utf-8" in said or isinstance(error, UnicodeError):
        return "a text is not UTF-8"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    if "straddl" in said or "block" in said:
        return "a row is longer than a block of 8 MB; a quotation mark may be left open"
    return f"it is damaged or of another format ({type(error).__name__})"


class _Counted(io.RawIOBase):
    """A binary stream that tells how many bytes have gone through it."""

    def __init__(self, stream: BinaryIO, watch: Watch) -> None:
        self._stream, self._watch = stream, watch

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._stream.readinto(buffer)  # type: ignore[attr-defined]
        self._watch(count or 0)
        return count or 0


@contextmanager
def _stream(table: Table, watch: Watch) -> Iterator[Any]:
    """The bytes of a table, unpacked; progress counts packed bytes, as the file's size does."""
    if table.path == STDIN:
        yield io.BufferedReader(_Counted(sys.stdin.buffer, watch), _BLOCK_BYTES)
        return
    with open(table.path, "rb", buffering=0) as raw:
        counted = io.BufferedReader(_Counted(raw, watch), _BLOCK_BYTES)
        unpack = _PACKED.get(Path(table.path).suffix.lower())
        unpacked: Any = counted if unpack is None else io.BufferedReader(unpack(counted), _BLOCK_BYTES)
        yield unpacked


def _delimited(table: Table, columns: Sequence[str] | None, watch: Watch) -> Iterator[Any]:
    with _stream(table, watch) as stream:
        delimiter = _DELIMITERS[table.format]
        names = _header(stream, delimiter, table)
        wanted = list(names) if columns is None else list(columns)
        _refuse_absent(wanted, names, table)
        ragged: list[str] = []

        def note(row: Any) -> str:
            where = "a row" if row.number is None else f"row {row.number}"
            ragged.append(f"{where} has {row.actual_columns} cells, the header has {row.expected_columns}")
            return "error"

        try:
            yield from pa.csv.open_csv(
                pa.PythonFile(stream, mode="r"),
                pa.csv.ReadOptions(column_names=names, block_size=_BLOCK_BYTES),
                pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note),
                pa.csv.ConvertOptions(
                    include_columns=wanted, column_types={name: pa.string() for name in wanted}, strings_can_be_null=False
                ),
            )
        except pa.ArrowInvalid as error:
            if ragged:
                raise InvalidArgument(f"{table.title}: {ragged[0]}. Repair that row.") from None
            if "empty csv" not in str(error).lower():  # a header and nothing else is a table without rows
                raise


def _header(stream: Any, delimiter: str, table: Table) -> list[str]:
    """The names in the first line, which may hold line breaks inside quotation marks."""
    line = stream.readline(_LONGEST_HEADER)
    while line.count(b'"') % 2 and len(line) < _LONGEST_HEADER and (more := stream.readline(_LONGEST_HEADER)):
        line += more
    cells = next(csv.reader(io.StringIO(line.decode("utf-8-sig"), newline=""), delimiter=delimiter, strict=True), [])
    names = [cell.strip() for cell in cells]
    if not any(names):
        raise InvalidArgument(f"{table.title} has no header. Put the names of the columns into the first line.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidArgument(f"{table.title} has the columns {twice} twice. Give each its own name.")
    return names


def _refuse_absent(wanted: Sequence[str], names: Sequence[str], table: Table) -> None:
    absent = [name for name in wanted if name not in names]
    if absent:
        raise InvalidArgument(
            f"{table.title} has no column {absent[0]!r}, which the schema lists. Add it, or drop it from the schema."
        )


def _parquet(table: Table, columns: Sequence[str] | None, watch: Watch) -> Iterator[Any]:
    if table.path == STDIN:
        raise InvalidArgument("Parquet has its index at the end and cannot be piped. Give a file, or pipe Arrow or CSV.")
    with pa.parquet.ParquetFile(table.path) as file:
        wanted = file.schema_arrow.names if columns is None else list(columns)
        _refuse_absent(wanted, file.schema_arrow.names, table)
        bytes_per_row = Path(table.path).stat().st_size / max(file.metadata.num_rows, 1)
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=wanted):
            watch(round(bytes_per_row * batch.num_rows))
            yield batch.select(wanted)


def _arrow(table: Table, columns: Sequence[str] | None, watch: Watch) -> Iterator[Any]:
    with _stream(table, watch) as stream:
        is_file = stream.peek(6)[:6] == b"ARROW1"
        if is_file and table.path != STDIN:
            with pa.memory_map(table.path) as source:
                opened = pa.ipc.open_file(source)
                batches = (opened.get_batch(k) for k in range(opened.num_record_batches))
                yield from _selected(batches, opened.schema.names, columns, table)
            return
        opened = pa.ipc.open_stream(pa.PythonFile(stream, mode="r"))
        yield from _selected(opened, opened.schema.names, columns, table)


def _selected(batches: Any, names: list[str], columns: Sequence[str] | None, table: Table) -> Iterator[Any]:
    wanted = names if columns is None else list(columns)
    _refuse_absent(wanted, names, table)
    for batch in batches:
        for start in range(0, batch.num_rows, _BATCH_ROWS):
            yield batch.select(wanted).slice(start, _BATCH_ROWS)
