"""Lists of documents in files: tables with a column of queries, or LETOR (SVMlight) text.

Messages name files, lines and columns, never a value.
"""

import bz2
import gzip
import lzma
import math
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hushfit._typing import AnyArray, Matrix, Vector
from hushfit.data.lists._grouping import one_for_each_list
from hushfit.data.schema import TextForm
from hushfit.errors import InvalidArgument

if TYPE_CHECKING:
    from hushfit.data.tables import Table

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_KEYS = {
    *("target", "query", "max_grade", "person", "columns", "n_features", "feature_bounds"),
    *("unit", "max_list_length", "lists_per_person", "confirm"),
}
_UNITS = ("labels", "list", "person")
# The grade of a document that was not read, since it is not needed or not there.
_NO_GRADE = math.nan


@dataclass(frozen=True)
class RankingSchema:
    """The public description of lists of documents, as a TOML file has it.

    Parameters
    ----------
    target : str
        Column of the grades.
    query : str
        Column that groups documents into lists.
    max_grade : float
        Largest grade.
    columns : tuple of str
        Columns of features; empty for LETOR text, which numbers them.
    n_features : int or None
        Number of features of LETOR text.
    person : str or None
        Column that says whose list each is.
    feature_bounds : (low, high) or None
        Public range of all features.
    unit : {"labels", "list", "person"}
        What is protected; see `PrivateRanker`.
    max_list_length : int or None
        Longer lists are refused.
    lists_per_person : int or None
        How many lists of one person are used; see `PrivateRanker`.
    unconfirmed : bool, default=False
        Whether it was drafted from the rows, and nobody has confirmed it yet.
    """

    target: str
    query: str
    max_grade: float
    columns: tuple[str, ...] = ()
    n_features: int | None = None
    person: str | None = None
    feature_bounds: tuple[float, float] | None = None
    unit: str = "labels"
    max_list_length: int | None = None
    lists_per_person: int | None = None
    unconfirmed: bool = False

    def __post_init__(self) -> None:
        """Checks of the column of persons, which options may replace."""
        if self.person is None:
            return
        if self.n_features is not None:
            raise InvalidArgument(
                f"person={self.person!r} names a column, and LETOR text has none: lists would be "
                "protected one by one. Use a table with a column of persons, or leave person out."
            )
        if self.person in (self.target, self.query, *self.columns):
            raise InvalidArgument(
                f"person={self.person!r} is the grade, the query or a feature. Name the column "
                "that says whose list each is; where every query is a person of its own, leave "
                "person out and use unit 'list'."
            )

    @classmethod
    def read(cls, path: str | Path) -> "RankingSchema | None":
        """Read a file; None if it describes no lists: it has no ``query``."""
        try:
            contents = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None  # whoever reads it as the schema of a table says what is wrong
        if not isinstance(contents.get("query"), str):
            return None
        unknown = sorted(set(contents) - _KEYS)
        if unknown:
            raise InvalidArgument(
                f"{path} has unknown entries {unknown}. A schema of lists has {sorted(_KEYS)}."
            )
        return cls._checked(contents, path)

    @classmethod
    def _checked(cls, contents: dict[str, Any], path: str | Path) -> "RankingSchema":
        columns, width = contents.get("columns", []), contents.get("n_features")
        named = isinstance(columns, list) and all(isinstance(name, str) for name in columns)
        if not named or bool(columns) == (width is not None):
            raise InvalidArgument(
                f"{path} should have columns, the names of the features of a table, or n_features, "
                "the number of features of LETOR text: one of the two."
            )
        target, query, person = (contents.get(name) for name in ("target", "query", "person"))
        for name in (target, query, *(() if person is None else (person,))):
            if not isinstance(name, str) or name in columns:
                raise InvalidArgument(
                    f"{path}: target, query and person are names of columns, and none of them is "
                    "among the features. With public documents the grades would be published."
                )
        grade = contents.get("max_grade")
        if isinstance(grade, bool) or not isinstance(grade, int | float) or not grade > 0:
            raise InvalidArgument(f"{path}: max_grade should be the largest grade, such as 4.")
        if width is not None and (not isinstance(width, int) or isinstance(width, bool)):
            raise InvalidArgument(f"{path}: n_features should be a whole number.")
        bounds = contents.get("feature_bounds")
        numbers = isinstance(bounds, list) and all(
            isinstance(end, int | float) and not isinstance(end, bool) for end in bounds
        )
        if bounds is not None and not (numbers and len(bounds) == 2):
            raise InvalidArgument(f"{path}: feature_bounds should be [low, high].")
        unit = contents.get("unit", "labels")
        if unit not in _UNITS:
            raise InvalidArgument(
                f"{path}: unit should be 'labels' (all grades of a list; documents are public), "
                "'list' or 'person'."
            )
        if unit == "person" and person is None:
            raise InvalidArgument(
                f"{path}: unit 'person' needs person, the column that says whose list each is."
            )
        for name in ("max_list_length", "lists_per_person"):
            value = contents.get(name)
            if value is not None and (type(value) is not int or value < 1):
                raise InvalidArgument(f"{path}: {name} should be a whole number of 1 or more.")
        return cls(
            str(target),
            str(query),
            float(grade),
            tuple(columns),
            width,
            person,
            None if bounds is None else (float(bounds[0]), float(bounds[1])),
            unit,
            contents.get("max_list_length"),
            contents.get("lists_per_person"),
            contents.get("confirm", False) is not False,
        )


@dataclass(frozen=True, eq=False)
class DocumentTable:
    """Documents as read from files: features, grades, queries and, if there are any, persons.

    Grades are NaN if they were not to be read. ``kept`` has further columns by their names.
    """

    X: Matrix
    y: Vector
    qid: AnyArray
    persons: AnyArray | None
    kept: dict[str, list[str]] = field(default_factory=dict)

    def list_persons(self) -> AnyArray | None:
        """The person of each list; None without persons."""
        if self.persons is None:
            return None
        changes = np.flatnonzero(self.qid[1:] != self.qid[:-1]) + 1
        return one_for_each_list(self.persons, np.array([0, *changes, len(self.qid)]))


def read_documents(
    paths: Sequence[str],
    schema: RankingSchema,
    format: str | None = None,
    *,
    form: TextForm | None = None,
    graded: bool = True,
    keep: Sequence[str] = (),
) -> DocumentTable:
    """Read documents with their grades and queries.

    Parameters
    ----------
    paths : sequence of str
        Files, patterns, or "-" for standard input: CSV, Parquet or Arrow with the columns of the
        schema, or LETOR (SVMlight) text, which may be compressed.
    schema : RankingSchema
    format : str, optional
        Format of tables, if their names do not show it.
    form : TextForm, optional
        Encoding, delimiter and header of text files and spreadsheets.
    graded : bool, default=True
        Whether grades and persons are needed. New documents of a table have none.
    keep : sequence of str, default=()
        Further columns to read, as texts; tables only.

    Returns
    -------
    DocumentTable
    """
    if schema.n_features is not None:
        if keep:
            raise InvalidArgument("LETOR text has no named columns to keep. Use a table for that.")
        parts = [_letor(path, schema) for path in _paths(paths)]
    else:
        from hushfit.data.tables import find_tables

        parts = _of_tables(find_tables(paths, format, form), schema, graded, tuple(keep))
    return DocumentTable(
        np.concatenate([part.X for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.qid for part in parts]),
        None
        if parts[0].persons is None
        else np.concatenate([part.persons for part in parts if part.persons is not None]),
        {name: [cell for part in parts for cell in part.kept[name]] for name in parts[0].kept},
    )


def _paths(patterns: Sequence[str]) -> list[str]:
    from hushfit.data.tables import find_paths

    return find_paths(patterns)


def is_letor(path: str) -> bool:
    """Whether a file is LETOR text: its first document has a ``qid``.

    Parameters
    ----------
    path : str

    Returns
    -------
    bool
    """
    if path == "-" or not Path(path).is_file():
        return False
    try:
        first = next((line for line in _lines(path) if line.split("#", 1)[0].strip()), "")
    except InvalidArgument:
        return False
    return len(cells := first.split()) > 1 and cells[1].startswith("qid:")


def letor_documents(path: str) -> Iterator[tuple[int, float, str, list[tuple[int, float]]]]:
    """The documents of LETOR text: line, grade, query, and numbers and values of features.

    Parameters
    ----------
    path : str
        "-" is standard input.
    """
    for number, line in enumerate(_lines(path), start=1):
        cells = line.split("#", 1)[0].split()
        if not cells:
            continue
        try:
            if not cells[1].startswith("qid:") or len(cells[1]) == 4:
                raise ValueError
            pairs = [cell.split(":") for cell in cells[2:]]
            features = [(int(column), float(value)) for column, value in pairs]
            if any(column < 1 for column, _ in features):
                raise ValueError
            found = number, float(cells[0]), cells[1][4:], features
        except (ValueError, IndexError):
            raise InvalidArgument(
                f"{path}, line {number}: not 'grade qid:query number:value ...' with feature "
                "numbers from 1. Nothing was spent."
            ) from None
        yield found


def _letor(path: str, schema: RankingSchema) -> DocumentTable:
    width = schema.n_features or 0
    rows: list[Vector] = []
    grades: list[float] = []
    queries: list[str] = []
    for number, grade, query, features in letor_documents(path):
        row = np.zeros(width)
        for column, value in features:
            if column > width:
                raise InvalidArgument(
                    f"{path}, line {number}: a feature number is above n_features = {width} of the "
                    "schema. Nothing was spent. Correct n_features."
                )
            row[column - 1] = value
        rows.append(row)
        grades.append(grade)
        queries.append(query)
    if not rows:
        raise InvalidArgument(f"{path} has no documents.")
    return DocumentTable(np.array(rows), np.array(grades), np.array(queries), None)


def _lines(path: str) -> Iterator[str]:
    if path == "-":
        yield from sys.stdin
        return
    opener = _OPENERS.get(Path(path).suffix, open)
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            yield from file
    except (OSError, UnicodeDecodeError, EOFError, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise InvalidArgument(f"{path} cannot be read ({reason}). Check the path.") from None


def _of_tables(
    tables: Sequence["Table"],
    schema: RankingSchema,
    graded: bool,
    keep: tuple[str, ...],
) -> list[DocumentTable]:
    from hushfit.data.tables import table_batches

    needed = [schema.query, *schema.columns]
    persons = [schema.person] if graded and schema.person is not None else []
    needed += [schema.target, *persons] if graded else []
    wanted = [*needed, *(name for name in dict.fromkeys(keep) if name not in needed)]
    parts = [
        _documents_of(batch, schema, graded, keep)
        for table in tables
        for batch in table_batches(table, wanted)
        if batch.num_rows
    ]
    if not parts:
        raise InvalidArgument("the tables have no rows. Give documents.")
    _refuse_unreadable(parts, schema)
    return parts


def _documents_of(
    batch: Any, schema: RankingSchema, graded: bool, keep: tuple[str, ...]
) -> DocumentTable:
    n = batch.num_rows
    features = [_numbers(batch.column(name), name) for name in schema.columns]
    return DocumentTable(
        np.column_stack(features),
        _numbers(batch.column(schema.target), schema.target) if graded else np.full(n, _NO_GRADE),
        _queries(batch.column(schema.query), schema.query),
        _texts(batch.column(schema.person)) if graded and schema.person is not None else None,
        {name: _texts(batch.column(name)).tolist() for name in keep},
    )


def _texts(cells: Any) -> AnyArray:
    """Cells as texts; missing ones are empty."""
    values = cells.to_pylist()
    return np.array(["" if value is None else str(value) for value in values], dtype=object)


def _queries(cells: Any, name: str) -> AnyArray:
    queries = _texts(cells)
    if any(text.strip() == "" for text in queries):
        raise InvalidArgument(
            f"column {name!r}, the query, has missing values. Nothing was spent. Give the query of "
            "every document."
        )
    return queries


def _numbers(cells: Any, name: str) -> Vector:
    from hushfit.data.schema import NumericColumn
    from hushfit.data.tables import numbers_of

    values = numbers_of(cells, NumericColumn(name, 0.0, 1.0))
    return np.where(np.isfinite(values), values, math.nan)


def _refuse_unreadable(parts: Sequence[DocumentTable], schema: RankingSchema) -> None:
    """Refuse a column of texts; with public documents, any cell that is no number."""
    public = schema.unit == "labels"
    for place, name in enumerate(schema.columns):
        readable = [np.isfinite(part.X[:, place]) for part in parts]
        if public and not all(own.all() for own in readable):
            raise InvalidArgument(
                f"column {name!r} has a value that is missing or not a number. Nothing was spent. "
                "Documents are public with unit 'labels': fill those cells, encode texts as "
                "numbers, or drop the column."
            )
        if not any(own.any() for own in readable):
            raise InvalidArgument(
                f"column {name!r} has no number. Nothing was spent. Encode texts as numbers first, "
                "or drop the column."
            )
