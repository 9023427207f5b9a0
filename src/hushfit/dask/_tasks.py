"""What workers do: encode their parts of a table, keep them, and add up exact sums over them.

Every function here is deterministic: a task that is computed again, because a worker was lost,
gives the same bits. None draws anything random. Exceptions are caught inside, so that no log of a
worker and no message of a scheduler has a cell: a failed task returns a `Failure`.
"""

import hashlib
import os
import pickle
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar

import pyarrow as pa
import pyarrow.parquet

from hushfit._typing import Vector
from hushfit.dask._pieces import Span
from hushfit.data import Part, RecordScaling, SumsOverRows, sum_of_parts
from hushfit.data.design import MainEffects
from hushfit.data.schema import Schema
from hushfit.data.tables import CodedRows, Table, find_paths
from hushfit.errors import InvalidArgument, TooFewRows
from hushfit.features import AdditiveMap

# Bytes after the footer: its length and a mark.
_PARQUET_END = 8

Given = ParamSpec("Given")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Failure:
    """What went wrong in a task, in words that hold neither a cell nor a number of rows."""

    reason: str


def guarded(task: Callable[Given, Found]) -> Callable[Given, Found | Failure]:
    """A task that returns a `Failure` in place of an exception."""

    def quiet(*args: Given.args, **kwargs: Given.kwargs) -> Found | Failure:
        try:
            return task(*args, **kwargs)
        except TooFewRows:
            return Failure("a part of the table has too few rows")
        except InvalidArgument as error:  # names columns and files, never a value
            return Failure(str(error))
        except Exception as error:
            return Failure(f"{type(error).__name__} on a worker")

    quiet.__name__ = task.__name__
    return quiet


class View(Protocol):
    """A public map of the rows of a table, made wherever they are."""

    def __call__(self, rows: CodedRows) -> CodedRows: ...


@dataclass(frozen=True, eq=False)
class Mapped:
    """Rows that go through a public feature map."""

    feature_map: AdditiveMap

    def __call__(self, rows: CodedRows) -> CodedRows:
        return rows.mapped(self.feature_map)


@dataclass(frozen=True)
class DividedBy:
    """Rows that are divided by a public length."""

    length: float

    def __call__(self, rows: CodedRows) -> CodedRows:
        return rows.divided_by(self.length)


@dataclass(frozen=True, eq=False)
class ForDesign:
    """Rows as those of a regression table."""

    design: MainEffects

    def __call__(self, rows: CodedRows) -> CodedRows:
        return rows.for_design(self.design)


@dataclass(frozen=True, eq=False)
class ForRegression:
    """Rows with mapped targets."""

    scaling: RecordScaling
    mapped: Callable[[Vector], Vector]
    scaled_labels: bool

    def __call__(self, rows: CodedRows) -> CodedRows:
        return rows.for_regression(self.scaling, self.mapped, self.scaled_labels)


@dataclass(frozen=True)
class Encoding:
    """How rows are encoded; public.

    Parameters
    ----------
    schema : Schema
    fit_intercept, keep_unlabelled : bool
        As for `CodedRows`.
    """

    schema: Schema
    fit_intercept: bool = True
    keep_unlabelled: bool = False

    def rows(self, tables: Sequence[Table]) -> CodedRows:
        """The rows of some tables."""
        return CodedRows.from_tables(
            tables, self.schema, self.fit_intercept, keep_unlabelled=self.keep_unlabelled
        )

    def template(self) -> CodedRows:
        """The public half: no rows, but their columns, classes and ranges."""
        return CodedRows(self.schema, self.fit_intercept, self.keep_unlabelled)


@dataclass(eq=False)
class Kept:
    """A part that a worker has encoded and keeps, with the views of it that were asked for.

    It travels as the call that made it: a worker that takes it over encodes the rows again, and no
    encoded row is sent.
    """

    rows: CodedRows
    made_by: tuple[Callable[..., "Kept | Failure"], tuple[Any, ...]]
    _views: dict[bytes, Part] = field(default_factory=dict)

    def seen(self, views: tuple[View, ...], n_units: int) -> Part:
        """A view of the rows; each is made once."""
        key = pickle.dumps((views, n_units))
        if key not in self._views:
            rows = self.rows
            for view in views:
                rows = view(rows)
            self._views[key] = Part(rows, n_units)
        return self._views[key]

    def __reduce__(self) -> tuple[Any, ...]:
        return self.made_by


@dataclass(frozen=True)
class ParquetFile:
    """A version of a Parquet file: parts are read at different times, and must be of one version.

    If a row moved between parts in the meantime, it would count twice.

    Parameters
    ----------
    path : str
    footer : str
        Hash of the file's footer, which says where everything in the file is.
    size, written : int
        Bytes, and when they were last written: two versions that differ in the order of their rows
        may have one footer.
    """

    path: str
    footer: str
    size: int
    written: int

    @classmethod
    def now(cls, path: str) -> "ParquetFile":
        """The version that is there now."""
        with open(path, "rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(end - _PARQUET_END, 0))
            length = int.from_bytes(file.read(4), "little")
            file.seek(max(end - _PARQUET_END - length, 0))
            footer = hashlib.sha256(file.read()).hexdigest()
            return cls(path, footer, end, os.fstat(file.fileno()).st_mtime_ns)

    def refuse_if_changed(self) -> None:
        """Refuse another version under the same path."""
        if self != self.now(self.path):
            raise InvalidArgument(
                f"{self.path} has changed since its rows were counted, or a worker has another "
                "copy of it. Fit again with files that stay as they are, in a folder that all "
                "workers share."
            )


def listed_files(patterns: Sequence[str]) -> tuple[list[ParquetFile], list[int]]:
    """The Parquet files that patterns match where a worker runs, and the rows of each."""
    paths = find_paths(patterns)
    wrong = [path for path in paths if not path.endswith((".parquet", ".pq"))]
    if wrong:
        raise InvalidArgument(
            f"{wrong[0]} is no Parquet file, and only those can be read in parts. Convert it, or "
            "fit on one machine."
        )
    files = [ParquetFile.now(path) for path in paths]
    return files, [pyarrow.parquet.read_metadata(path).num_rows for path in paths]


def encoded_files(
    files: Sequence[ParquetFile], spans: tuple[Span, ...], encoding: Encoding
) -> Kept:
    """Encode some rows of Parquet files."""
    tables = [Table(files[span.place].path, "parquet", rows=span.rows) for span in spans]
    rows = encoding.rows(tables)
    try:
        for span in spans:  # after reading, which takes long
            files[span.place].refuse_if_changed()
    except BaseException:
        rows.close()
        raise
    return Kept(rows, (encode_files, (files, spans, encoding)))


def encoded_frames(frames: Sequence[Any], spans: tuple[Span, ...], encoding: Encoding) -> Kept:
    """Encode some rows of partitions of a data frame; ``spans`` number the frames given."""
    parts = [
        pa.Table.from_pandas(
            frames[span.place].iloc[span.rows.start : span.rows.stop], preserve_index=False
        )
        for span in spans
    ]
    with tempfile.TemporaryDirectory() as folder:  # for its owner alone
        tables = []
        for number, part in enumerate(parts):
            path = str(Path(folder) / f"{number}.parquet")
            pyarrow.parquet.write_table(part, path)
            tables.append(Table(path, "parquet"))
        rows = encoding.rows(tables)
    return Kept(rows, (encode_frames, (frames, spans, encoding)))


def sums_over(
    parts: Sequence[Kept | Failure], views: tuple[View, ...], n_units: int, query: SumsOverRows
) -> Vector | Failure:
    """Exact sums of a query over some parts, or what went wrong with one of them."""
    for part in parts:
        if isinstance(part, Failure):
            return part
    kept = (part for part in parts if isinstance(part, Kept))
    return sum_of_parts(query, [part.seen(views, n_units) for part in kept])


def rows_in(frame: Any) -> int:
    """Number of rows of a partition."""
    return len(frame)


list_files = guarded(listed_files)
encode_files = guarded(encoded_files)
encode_frames = guarded(encoded_frames)
count_rows = guarded(rows_in)
add_up = guarded(sums_over)
