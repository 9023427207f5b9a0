"""Tables in files and pipes, read in record batches with pyarrow.

Text files are read as text and each cell is interpreted on its own, by the schema. A reader that
guesses types would let one person's cell decide how all others are read.
"""

import bz2
import codecs
import csv
import glob
import gzip
import io
import lzma
import os
import re
import sys
import tempfile
import zlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import pyarrow as pa
import pyarrow.parquet

from hushfit.data.schema import LAST_HEADER, UTF_8, TextForm
from hushfit.data.tables._databases import SCHEMES, DatabaseTable, is_address
from hushfit.data.tables._text_blocks import BlockParser, Ragged, TooLong, row_blocks
from hushfit.data.tables._title_rows import header_among
from hushfit.errors import InvalidArgument
from hushfit.kernels.threads import parallel_map

STDIN = "-"
_BLOCK_BYTES = 1 << 23
_BATCH_ROWS = 1 << 16
# Of Parquet: several batches of decoded cells wait for the pool that packs them.
_PARQUET_BATCH_ROWS, _PARQUET_BUFFER_BYTES = 1 << 13, 1 << 16
_LONGEST_HEADER = 1 << 24
_DELIMITERS = {"csv": ",", "tsv": "\t"}
# What a header may be divided by, if neither the schema nor an option says so.
_OTHER_DELIMITERS = (",", ";", "\t", "|")
# Byte order marks, at the very beginning of a file.
_MARKS = ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_TEXT_FORMATS = ("csv", "tsv")
FORMATS = ("csv", "tsv", "parquet", "arrow", "excel")
DATABASE = "database"
_ENDINGS = {
    "csv": (".csv", ".txt"),
    "tsv": (".tsv", ".tab"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "excel": (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"),
}
_SUFFIXES = {ending: format for format, endings in _ENDINGS.items() for ending in endings}
_AFTER_RETURN = re.compile(rb"(?<=\r)(?!\n)")
_SHEET = re.compile(r"(.*\.(?:xlsx|xlsm|xlsb|xls|ods))\?sheet=(.+)", re.IGNORECASE)


def _unpacked_zst(raw: Any) -> Any:
    return io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd"))


_PACKED: dict[str, Callable[[Any], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _unpacked_zst,
}
_ARCHIVES = (".zip", ".tar", ".tgz", ".7z", ".rar")
# Those that pyarrow decompresses without Python.
_NATIVE = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_UNREADABLE = (
    *(pa.ArrowException, OSError, EOFError, lzma.LZMAError, zlib.error, csv.Error, UnicodeError),
    *(KeyError, IndexError, OverflowError, TooLong),
)
MORE_MEMORY = "Allow the process more memory, or set HUSHFIT_THREADS=1, which takes less"

Watch = Callable[[int], None]
Batch = TypeVar("Batch")


@dataclass(frozen=True)
class Table:
    """One file, standard input, or a table of a database.

    Parameters
    ----------
    path : str
        "-" is standard input. A spreadsheet may have ``?sheet=NAME`` after it.
    format : str
        One of "csv", "tsv", "parquet", "arrow", "excel", "database".
    form : TextForm
        Of a text file.
    rows : range, optional
        Of a Parquet file, the rows that are read; all of them when not given.
    """

    path: str
    format: str
    form: TextForm = TextForm()
    rows: range | None = None

    @property
    def title(self) -> str:
        """Its name in messages."""
        if self.format == DATABASE:
            return DatabaseTable.parse(self.path).title
        return "standard input" if self.path == STDIN else self.path


def find_tables(
    patterns: Sequence[str], format: str | None = None, form: TextForm | None = None
) -> list[Table]:
    """The tables that paths and patterns match.

    Parameters
    ----------
    patterns : sequence of str
        Paths, patterns with ``*``, "-" for standard input, ``book.xlsx?sheet=NAME``, or the address
        of a table in a database (``duckdb:///file.db?table=NAME``).
    format : str, optional
        One of "csv", "tsv", "parquet", "arrow", "excel"; by the ending of each file when not given,
        CSV for standard input.
    form : TextForm, optional
        Encoding and delimiter of text files, as a schema states them.

    Returns
    -------
    list of Table

    Raises
    ------
    InvalidArgument
        If a file does not exist, its format is not known, or one file is given twice, also under
        different names.

    Examples
    --------
    >>> from pathlib import Path
    >>> from hushfit.data.tables import find_tables
    >>> for month in ("january", "february"):
    ...     _ = Path(f"{month}.csv").write_text("age,ill\\n40,no\\n")
    >>> [table.path for table in find_tables(["*ary.csv"])]
    ['february.csv', 'january.csv']
    """
    if format is not None and format not in FORMATS:
        raise InvalidArgument(f"format={format!r} is not known. Use one of {', '.join(FORMATS)}.")
    written = TextForm() if form is None else form
    return [
        Table(path, _format_of(path) if format is None or is_address(path) else format, written)
        for path in find_paths(patterns)
    ]


def sniffed_form(table: Table) -> TextForm:
    """The form of a text file that its owner has not stated: reads all of it. NOT private.

    Parameters
    ----------
    table : Table

    Returns
    -------
    TextForm
        UTF-8 if all of it is valid, else cp1252, which Western European programs write. With the
        row of the header if a title is above it, also of a spreadsheet.
    """
    if table.format == "excel" and table.form.header is None:
        first = [[cell.strip() for cell in row] for row in _sheet_texts(table, LAST_HEADER)]
        return replace(table.form, header=header_among(first))
    if table.format not in _TEXT_FORMATS or table.path == STDIN:
        return table.form
    with _stream(table, lambda done: None) as stream:
        marked = _marked(stream)
        encoding = marked or (table.form.encoding if _is_utf_8(stream) else "cp1252")
    stated = replace(table.form, encoding=encoding)
    with _on_disk(replace(table, form=stated), lambda done: None) as (path, packing):
        if stated.header is None:
            stated = replace(stated, header=_header_below_title(path, packing, table))
        _, line = _header(path, packing, stated)
    delimiter = table.form.delimiter or _delimiter_of(line, table, None)
    default = _DELIMITERS[table.format]
    return TextForm(
        UTF_8 if marked else encoding,
        table.form.delimiter or (None if delimiter == default else delimiter),
        stated.header,
    )


def _header_below_title(path: str, packing: str | None, table: Table) -> int | None:
    """The line of the header if a title is above it: by the delimiter that finds most names."""
    lines = _first_lines(path, packing, LAST_HEADER)
    known = table.form.delimiter
    found: dict[int, int] = {}  # lines, and how many names they have
    for delimiter in _OTHER_DELIMITERS if known is None else (known,):
        try:
            rows = [next(csv.reader([line], delimiter=delimiter), []) for line in lines]
        except csv.Error:
            continue
        place = header_among([[cell.strip() for cell in row] for row in rows])
        width = len(rows[(place or 1) - 1]) if rows else 0
        found[place or 1] = max(found.get(place or 1, 0), width)
    best = max(found, key=lambda place: (found[place], -place), default=1)
    return None if best == 1 else best


def _first_lines(path: str, packing: str | None, count: int) -> list[str]:
    """The first lines of a text file, whatever they hold."""
    with open(path, "rb") as raw:
        lines = list(islice(_lines(raw, packing), count))
    return [line.decode("utf-8-sig", "replace").rstrip("\r\n") for line in lines]


def _lines(raw: Any, packing: str | None) -> Iterator[bytes]:
    """The lines of a file, which may end in a carriage return alone."""
    stream = raw if packing is None else _PACKED[packing](raw)
    while read := stream.readline(_LONGEST_HEADER):
        yield from filter(None, _AFTER_RETURN.split(read))


def find_paths(patterns: Sequence[str]) -> list[str]:
    """The files that paths and patterns match, whatever their format.

    Parameters
    ----------
    patterns : sequence of str
        As for `find_tables`.

    Returns
    -------
    list of str
    """
    paths = [path for pattern in patterns for path in _expanded(str(pattern))]
    _refuse_the_same_file_twice(paths)
    return paths


def _as_it_is(batch: Any) -> Any:
    return batch


def _each_of(batches: Iterator[Any], each: Callable[[Any], Batch]) -> Iterator[Batch]:
    return batches if each is _as_it_is else parallel_map(each, batches)


def table_batches(
    table: Table,
    columns: Sequence[str] | None = None,
    watch: Watch | None = None,
    optional: Sequence[str] = (),
    numbers: Sequence[str] = (),
    labels: Sequence[str] = (),
    each: Callable[[Any], Any] = _as_it_is,
) -> Iterator[Any]:
    """Read a table in record batches.

    Parameters
    ----------
    table : Table
    columns : sequence of str, optional
        Which columns, in this order; all of them when not given.
    watch : callable, optional
        Called with the number of bytes read since the last call.
    optional : sequence of str, default=()
        Further columns, which are read if the table has them.
    numbers : sequence of str, default=()
        Columns of text files that are given as floats, in each batch in which all their cells are
        plain numbers or empty.
    labels : sequence of str, default=()
        Columns whose texts may be given as positions among the distinct ones of the batch.
    each : callable, optional
        What is made of each batch, by several threads at once.

    Yields
    ------
    pyarrow.RecordBatch, or what ``each`` makes of it
        Text files give texts, but for ``numbers``.

    Raises
    ------
    InvalidArgument
        If the file is damaged or lacks a column. Messages name rows and columns, never a value.
    """
    readers = {"parquet": _parquet, "arrow": _arrow, "excel": _excel, DATABASE: _database}
    read, watch = readers.get(table.format), watch or (lambda done: None)
    named = None if columns is None else tuple(columns)
    wanted = _Columns(named, tuple(optional), tuple(numbers), tuple(labels))
    try:
        if read is None:
            yield from _delimited(table, wanted, watch, each)
        else:
            yield from _each_of(read(table, wanted, watch), each)
    except MemoryError:  # also of a damaged file that states a size
        raise InvalidArgument(
            f"{table.title} cannot be read as {table.format}: memory does not suffice, or it is "
            f"damaged. {MORE_MEMORY}, or repair the file."
        ) from None
    except _UNREADABLE as error:
        # Messages of pyarrow may quote cells, so only the kind of error is passed on.
        raise InvalidArgument(
            f"{table.title} cannot be read as {table.format}: {_kind_of(error)}. Repair the file, "
            "or say --format."
        ) from None


def _expanded(pattern: str) -> list[str]:
    if pattern == STDIN or is_address(pattern) or Path(_file_of(pattern)).is_file():
        return [pattern]
    found = sorted(path for path in glob.glob(pattern, recursive=True) if Path(path).is_file())
    if not found:
        raise InvalidArgument(_why_no_file(pattern))
    return found


def _why_no_file(path: str) -> str:
    if Path(path).is_dir():
        return f"{path!r} is a folder. Name its files, for example '{Path(path) / '*.csv'}'."
    scheme, found, _ = path.partition("://")
    if found:  # the address is not repeated, since it may hold a password
        known = " and ".join(f"{name}://" for name in SCHEMES[:2])
        return (
            f"{scheme}:// addresses are not read; those of databases are ({known}). Copy the file "
            "to this machine and give its path."
        )
    return f"there is no file {path!r}. Check the path."


def _refuse_the_same_file_twice(paths: Sequence[str]) -> None:
    """Refuse one file under two names: compares files, since links lead to the same rows."""
    given: dict[object, dict[str, str]] = {}
    for path in paths:
        parts = given.setdefault(_identity(path), {})
        part = path.removeprefix(_file_of(path))  # different sheets have different rows
        if parts and (part in parts or "" in (part, *parts)):
            other = parts.get(part, next(iter(parts.values())))
            raise InvalidArgument(
                f"{_shown(other)!r} and {_shown(path)!r} are the same file, so its rows would "
                "count twice and lose protection. Give it once."
            )
        parts[part] = path


def _shown(path: str) -> str:
    """A path as messages have it: without a password."""
    return DatabaseTable.parse(path).title if is_address(path) else path


def _identity(path: str) -> object:
    """What identifies a file: device and inode; of a table in a database, where it is."""
    if is_address(path):
        return DatabaseTable.parse(path).identity
    try:
        found = os.fstat(sys.stdin.fileno()) if path == STDIN else os.stat(_file_of(path))
    except OSError:  # standard input without a file descriptor, in a notebook for example
        return path
    return found.st_dev, found.st_ino


def _file_of(path: str) -> str:
    """The file of a path that may name a sheet of it."""
    named = _SHEET.fullmatch(path)
    return path if named is None or Path(path).is_file() else named[1]


def _format_of(path: str) -> str:
    if path == STDIN:
        return "csv"
    if is_address(path):
        return DATABASE
    name = Path(_file_of(path))
    suffix = (name.with_suffix("") if name.suffix.lower() in _PACKED else name).suffix.lower()
    if suffix in _ARCHIVES:
        raise InvalidArgument(
            f"{path!r} is an archive, which may hold several files. Unpack it first. A single file "
            f"may be compressed: {', '.join(_PACKED)}."
        )
    if suffix not in _SUFFIXES:
        raise InvalidArgument(
            f"the format of {path!r} is not clear from its name. Use --format {'|'.join(FORMATS)}."
        )
    return _SUFFIXES[suffix]


def _kind_of(error: Exception) -> str:
    message = str(error).lower()
    if "utf8" in message or "utf-8" in message or isinstance(error, UnicodeError):
        return "a text is not UTF-8"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    if isinstance(error, TooLong) or "straddl" in message or "block" in message:
        return "a row is longer than a block of 8 MB; a quotation mark may be left open"
    return f"it is damaged or of another format ({type(error).__name__})"


class _Counted(io.RawIOBase):
    """A binary stream that reports the number of bytes read."""

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
    """The bytes of a table, decompressed; progress counts compressed bytes, as the file's size
    does.
    """
    if table.path == STDIN:
        yield io.BufferedReader(_Counted(sys.stdin.buffer, watch), _BLOCK_BYTES)
        return
    with open(table.path, "rb", buffering=0) as raw:
        counted = io.BufferedReader(_Counted(raw, watch), _BLOCK_BYTES)
        unpack = _PACKED.get(Path(table.path).suffix.lower())
        unpacked: Any = (
            counted if unpack is None else io.BufferedReader(unpack(counted), _BLOCK_BYTES)
        )
        yield unpacked


def _delimited(
    table: Table, columns: "_Columns", watch: Watch, each: Callable[[Any], Batch]
) -> Iterator[Batch]:
    with _on_disk(table, watch) as (path, packing):
        above, line = _header(path, packing, table.form)
        delimiter = table.form.delimiter or _delimiter_of(line, table, columns.required)
        names = _names(line, delimiter, table)
        wanted = columns.among(names, table)
        labels = set(wanted) & set(columns.labels)
        parser = BlockParser(names, wanted, set(columns.numbers), delimiter, labels)

        def read(block: bytes) -> tuple[int, Batch]:
            batch = parser(block)
            return batch.num_rows, each(batch)

        with pa.OSFile(os.fspath(path)) as file:
            rows = file if packing is None else pa.CompressedInputStream(file, _NATIVE[packing])
            rows.read(above + len(line))
            counted = watch if path == table.path else None
            blocks = _watched(row_blocks(rows, delimiter), file, counted)
            yield from _whole_rows(parallel_map(read, blocks), table)


def _whole_rows(batches: Iterator[tuple[int, Batch]], table: Table) -> Iterator[Batch]:
    """The batches, given with their numbers of rows; an error names the row by its place in the
    table.
    """
    done = 0
    try:
        for rows, batch in batches:
            yield batch
            done += rows
    except Ragged as error:
        row = "a row" if error.row is None else f"row {done + int(error.row)}"
        raise InvalidArgument(
            f"{table.title}: {row} has {error.actual} cells, the header has {error.expected}. "
            "Repair that row."
        ) from None


@contextmanager
def _on_disk(table: Table, watch: Watch) -> Iterator[tuple[str, str | None]]:
    """A file that pyarrow can read directly, and its compression.

    pyarrow reads CSV ahead in its own threads. After an error those would still call a Python
    stream while the interpreter shuts down, and abort the process or hang. What only Python can
    read is first copied to a file that has no name.
    """
    packing = Path(table.path).suffix.lower() if table.path != STDIN else ""
    if table.path != STDIN and (packing in _NATIVE or packing not in _PACKED):
        with _stream(table, lambda done: None) as stream:
            as_it_is = (_marked(stream) or table.form.encoding) == UTF_8
        if as_it_is:
            yield table.path, packing if packing in _NATIVE else None
            return
    with unnamed_file() as copy:
        with _stream(table, watch) as stream:
            encoding = _marked(stream) or table.form.encoding
            pieces = iter(lambda: stream.read(_BLOCK_BYTES), b"")
            write_all(copy, pieces if encoding == UTF_8 else _in_utf_8(pieces, encoding))
        yield f"/dev/fd/{copy.fileno()}", None


def _marked(stream: Any) -> str | None:
    """The encoding that a byte order mark at the beginning states."""
    start = stream.peek(2)[:2]
    return next((encoding for mark, encoding in _MARKS if start == mark), None)


def _in_utf_8(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Text in UTF-8. Bytes that the encoding does not know are replaced: an error would tell that
    some row has one.
    """
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for piece in pieces:
        yield decoder.decode(piece).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def _is_utf_8(stream: Any) -> bool:
    decoder = codecs.getincrementaldecoder(UTF_8)()
    try:
        for piece in iter(lambda: stream.read(_BLOCK_BYTES), b""):
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _watched(batches: Any, file: Any, watch: Watch | None) -> Iterator[Any]:
    """The batches; reports the bytes read."""
    done = 0
    for batch in batches:
        if watch is not None:
            place = file.tell()
            watch(place - done)
            done = place
        yield batch


def scratch_folder() -> str:
    """Where rows are stored while they are read: Python alone would silently ignore a TMPDIR that
    cannot be used.
    """
    named = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    return next((folder for folder in named if folder), None) or tempfile.gettempdir()


def unnamed_file() -> Any:
    """A temporary file without a name in the scratch folder; it is removed with the process."""
    folder = scratch_folder()
    try:
        return tempfile.TemporaryFile(buffering=0, dir=folder)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else type(error).__name__
        raise InvalidArgument(
            f"the encoded rows cannot be stored in {folder} ({reason}). Nothing was spent. Set "
            "TMPDIR to a folder that can be written."
        ) from None


def write_all(file: Any, pieces: Iterable[bytes | bytearray]) -> None:
    """Write to an unbuffered file, which may write less than requested when a disk is full."""
    for piece in pieces:
        rest = memoryview(piece)
        while rest:
            rest = rest[file.write(rest) :]


def _header_in_words(table: Table) -> str:
    """Where the names of the columns were looked for."""
    return "the first row" if table.form.header is None else f"row {table.form.header}"


def _header(path: str, packing: str | None, form: TextForm) -> tuple[int, bytes]:
    """The bytes above the header, and the header, which may hold line breaks inside quotation
    marks.
    """
    with open(path, "rb") as raw:
        found = _lines(raw, packing)
        above = sum(map(len, islice(found, form.rows_above)))
        lines, length, marks = [], 0, 0
        for line in found:
            lines.append(line)
            length, marks = length + len(line), marks + line.count(b'"')
            if marks % 2 == 0 or length >= _LONGEST_HEADER:
                break
    return above, b"".join(lines)


def _names(line: bytes, delimiter: str, table: Table) -> list[str]:
    """The names in a header."""
    text = line.decode("utf-8-sig")
    cells = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True), [])
    names = [cell.strip() for cell in cells]
    if not any(names):
        raise InvalidArgument(
            f"{table.title} has no header in {_header_in_words(table)}. Put the names of the "
            "columns there, or say which row has them: --header, or header under [file] of the "
            "schema."
        )
    return names


def _delimiter_of(line: bytes, table: Table, required: Sequence[str] | None) -> str:
    """The delimiter that the header shows: with it the required columns are there, or the most
    names. Names of columns are public, so this tells nothing about rows.
    """
    usual = _DELIMITERS[table.format]
    found = {}
    for delimiter in (usual, *(other for other in _OTHER_DELIMITERS if other != usual)):
        try:
            found[delimiter] = _names(line, delimiter, table)
        except csv.Error:
            continue
    if not found:
        return usual
    have = {d: set(required or ()) <= set(names) for d, names in found.items()}
    return max(found, key=lambda d: (have[d], len(found[d]), d == usual))


@dataclass(frozen=True)
class _Columns:
    """Which columns to read: all, or those required and, if they are there, those optional."""

    required: tuple[str, ...] | None
    optional: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def among(self, names: Sequence[str], table: Table) -> list[str]:
        """The columns to read; refused if one is absent or any name is duplicated."""
        counts = Counter(names)
        twice = sorted(name for name, count in counts.items() if count > 1)
        if twice:
            raise InvalidArgument(
                f"{table.title} has {self._shown(twice)} twice. Give each its own name."
            )
        required = list(names if self.required is None else self.required)
        absent = [name for name in required if name not in counts]
        if absent:
            raise InvalidArgument(
                f"{table.title} has no column {absent[0]!r}, which the schema or an option "
                f"names.{_similar(absent[0], names)} Add it to the table, or correct the name."
            )
        there = [name for name in self.optional if name in counts and name not in required]
        return required + there

    def _shown(self, twice: Sequence[str]) -> str:
        """Names that are there twice, if they were asked for: in a file without a header, or with
        another one than was said, they are the cells of a row.
        """
        asked = twice if self.required is None else [n for n in twice if n in self.required]
        return f"the columns {list(asked[:5])}" if asked else "a column that was not asked for"


def _similar(name: str, names: Sequence[str]) -> str:
    """The column that may have been meant: the same but for case, blanks and signs. Another name
    may be a cell, in a file without a header, and is not shown.
    """
    found = next((one for one in names if _letters(one) == _letters(name)), None)
    return f" It has {found!r}." if found is not None and _letters(name) else ""


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def _parquet(table: Table, columns: "_Columns", watch: Watch) -> Iterator[Any]:
    if table.path == STDIN:
        raise InvalidArgument(
            "Parquet has its index at the end and cannot be piped. Give a file, or pipe Arrow or "
            "CSV."
        )
    with pa.OSFile(os.fspath(table.path)) as source:
        known = pa.parquet.ParquetFile(source)
        texts = [
            field.name
            for field in known.schema_arrow
            if field.name in columns.labels and field.type in (pa.string(), pa.large_string())
        ]
        file = pa.parquet.ParquetFile(
            source,
            metadata=known.metadata,
            read_dictionary=texts,
            # Without these a whole row group is in memory, and writers make groups of a million
            # rows.
            pre_buffer=False,
            buffer_size=_PARQUET_BUFFER_BYTES,
        )
        wanted = columns.among(file.schema_arrow.names, table)
        bytes_per_row = Path(table.path).stat().st_size / max(file.metadata.num_rows, 1)
        for batch in _parquet_batches(file, wanted, table.rows):
            watch(round(bytes_per_row * batch.num_rows))
            yield _validated(batch.select(wanted))


def _parquet_batches(file: Any, columns: list[str], rows: range | None) -> Iterator[Any]:
    """Record batches of a Parquet file; of some rows, only the row groups that they are in are
    read.
    """
    if rows is None:
        yield from file.iter_batches(batch_size=_PARQUET_BATCH_ROWS, columns=columns)
        return
    ends = list(accumulate(file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)))
    first, last = bisect_right(ends, rows.start), bisect_left(ends, rows.stop)
    groups, start = list(range(first, last + 1)), ends[first - 1] if first else 0
    for batch in file.iter_batches(
        batch_size=_PARQUET_BATCH_ROWS, columns=columns, row_groups=groups
    ):
        own = batch.slice(max(rows.start - start, 0))
        own = own.slice(0, max(rows.stop - max(rows.start, start), 0))
        start += batch.num_rows
        if own.num_rows:
            yield own


def _excel(table: Table, columns: "_Columns", watch: Watch) -> Iterator[Any]:
    sheets, rows = _sheet(table)
    header, *rows = rows or [[]]
    names = [sheets.cell_text(cell).strip() for cell in header]
    if not names or not all(names):
        raise InvalidArgument(
            f"{table.title} has columns without a name in {_header_in_words(table)}. Say which row "
            "has the names (--header, or header under [file] of the schema), and leave nothing "
            "beside the table."
        )
    wanted = columns.among(names, table)
    places = [names.index(name) for name in wanted]
    watch(Path(_file_of(table.path)).stat().st_size)
    yield from sheets.text_batches(rows, places, wanted, _BATCH_ROWS)


def _sheet(table: Table) -> tuple[Any, list[list[Any]]]:
    """The reader of spreadsheets, and the cells of a sheet from its header on."""
    try:
        from hushfit.data.tables import _excel as sheets
    except ModuleNotFoundError:
        raise InvalidArgument(
            f"{table.title} is a spreadsheet, which needs a reader that is not installed: pip "
            "install hushfit[excel]. Or save the sheet as CSV."
        ) from None
    if table.path == STDIN:
        raise InvalidArgument("a spreadsheet cannot be piped. Give a file, or pipe CSV.")
    path = _file_of(table.path)
    sheet = None if path == table.path else table.path.removeprefix(f"{path}?sheet=")
    try:
        return sheets, sheets.sheet_rows(path, sheet, table.form.header)
    except sheets.UNREADABLE as error:
        raise InvalidArgument(
            f"{table.title} cannot be read as excel: {_kind_of(error)}. Repair the file, or save "
            "the sheet as CSV."
        ) from None


def _sheet_texts(table: Table, count: int) -> list[list[str]]:
    """The first rows of a sheet as texts, from its first row on."""
    sheets, rows = _sheet(replace(table, form=replace(table.form, header=1)))
    return [[sheets.cell_text(cell) for cell in row] for row in rows[:count]]


def _database(table: Table, columns: "_Columns", watch: Watch) -> Iterator[Any]:
    found = DatabaseTable.parse(table.path)
    try:
        with found.opened() as run:
            names = run(found.selected(None)).schema.names
            wanted = columns.among(names, table)
            for batch in run(found.selected(wanted)):
                watch(batch.nbytes)
                yield batch
    except InvalidArgument:
        raise
    except Exception as error:  # of a driver; its message may quote cells or passwords
        raise InvalidArgument(
            f"{table.title} cannot be read ({type(error).__name__}). Check the address, the names "
            "and the rights, and that no other program has the file open for writing."
        ) from None


def _arrow(table: Table, columns: "_Columns", watch: Watch) -> Iterator[Any]:
    with _stream(table, watch) as stream:
        is_file = stream.peek(6)[:6] == b"ARROW1"
        if is_file and table.path != STDIN:
            with pa.OSFile(os.fspath(table.path)) as source:
                opened = pa.ipc.open_file(source)
                batches = (opened.get_batch(k) for k in range(opened.num_record_batches))
                yield from _selected(batches, opened.schema.names, columns, table)
            return
        opened = pa.ipc.open_stream(pa.PythonFile(stream, mode="r"))
        yield from _selected(opened, opened.schema.names, columns, table)


def _selected(batches: Any, names: list[str], columns: "_Columns", table: Table) -> Iterator[Any]:
    wanted = columns.among(names, table)
    for batch in batches:
        selected = _validated(batch.select(wanted))
        for start in range(0, batch.num_rows, _BATCH_ROWS):
            yield selected.slice(start, _BATCH_ROWS)


def _validated(batch: Any) -> Any:
    """The batch, if its offsets, indices and texts are valid: pyarrow trusts them, and a damaged
    file would crash the process.
    """
    batch.validate(full=True)
    return batch
