"""Lists of documents in files: tables with a column of queries, or LETOR (SVMlight) text.

Messages name files, lines and columns, never a value.
"""

import bz2
import gzip
import lzma
import math
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hushfit._typing import AnyArray, Matrix, Vector
from hushfit.errors import InvalidArgument

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_KEYS = {
    *("target", "query", "max_grade", "person", "columns", "n_features", "feature_bounds"),
    "unit",
}


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
    """

    target: str
    query: str
    max_grade: float
    columns: tuple[str, ...] = ()
    n_features: int | None = None
    person: str | None = None
    feature_bounds: tuple[float, float] | None = None
    unit: str = "labels"

    @classmethod
    def read(cls, path: str | Path) -> "RankingSchema | None":
        """Read a file; None if it describes no lists: it has no ``query``."""
        try:
            contents = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
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
        if bounds is not None and not (isinstance(bounds, list) and len(bounds) == 2):
            raise InvalidArgument(f"{path}: feature_bounds should be [low, high].")
        return cls(
            str(target),
            str(query),
            float(grade),
            tuple(columns),
            width,
            person,
            None if bounds is None else (float(bounds[0]), float(bounds[1])),
            str(contents.get("unit", "labels")),
        )


@dataclass(frozen=True, eq=False)
class DocumentTable:
    """Documents as read from files: features, grades, queries and, if there are any, persons."""

    X: Matrix
    y: Vector
    qid: AnyArray
    persons: AnyArray | None

    def list_persons(self) -> AnyArray | None:
        """The person of each list, from that of its first document."""
        if self.persons is None:
            return None
        first = np.concatenate([[True], self.qid[1:] != self.qid[:-1]])
        persons: AnyArray = self.persons[first]
        return persons


def read_documents(paths: Sequence[str], schema: RankingSchema) -> DocumentTable:
    """Read documents with their grades and queries.

    Parameters
    ----------
    paths : sequence of str
        CSV, Parquet or Arrow files with the columns of the schema, or LETOR (SVMlight) text, which
        may be compressed.
    schema : RankingSchema

    Returns
    -------
    DocumentTable
    """
    parts = [
        _letor(Path(path), schema) if schema.n_features is not None else _table(path, schema)
        for path in paths
    ]
    return DocumentTable(
        np.concatenate([part.X for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.qid for part in parts]),
        None
        if parts[0].persons is None
        else np.concatenate([part.persons for part in parts if part.persons is not None]),
    )


def _letor(path: Path, schema: RankingSchema) -> DocumentTable:
    width = schema.n_features or 0
    rows: list[Vector] = []
    grades: list[float] = []
    queries: list[str] = []
    for number, line in enumerate(_lines(path), start=1):
        cells = line.split("#", 1)[0].split()
        if not cells:
            continue
        row = np.zeros(width)
        try:
            if not cells[1].startswith("qid:"):
                raise ValueError
            grades.append(float(cells[0]))
            for cell in cells[2:]:
                column, value = cell.split(":")
                if not 1 <= int(column) <= width:
                    raise ValueError
                row[int(column) - 1] = float(value)
        except (ValueError, IndexError):
            raise InvalidArgument(
                f"{path}, line {number}: not 'grade qid:query number:value ...' with feature "
                f"numbers from 1 to n_features = {width}. Nothing was spent."
            ) from None
        queries.append(cells[1][4:])
        rows.append(row)
    if not rows:
        raise InvalidArgument(f"{path} has no documents.")
    return DocumentTable(np.array(rows), np.array(grades), np.array(queries), None)


def _lines(path: Path) -> Iterator[str]:
    opener = _OPENERS.get(path.suffix, open)
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            yield from file
    except (OSError, UnicodeDecodeError, EOFError, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise InvalidArgument(f"{path} cannot be read ({reason}). Check the path.") from None


def _table(path: str, schema: RankingSchema) -> DocumentTable:
    wanted = [schema.target, schema.query, *schema.columns]
    wanted += [] if schema.person is None else [schema.person]
    table = _arrow(Path(path))
    missing = sorted(set(wanted) - set(table.column_names))
    if missing:
        raise InvalidArgument(
            f"{path} has no columns {missing[:5]} of the schema. Correct the schema or the table."
        )
    persons = None if schema.person is None else table[schema.person].to_numpy()
    qid = table[schema.query].to_numpy()
    features = [_numbers(table[name], name, path) for name in schema.columns]
    return DocumentTable(
        np.column_stack(features), _numbers(table[schema.target], schema.target, path), qid, persons
    )


def _numbers(column: Any, name: str, path: str) -> Vector:
    import pyarrow

    try:
        values = column.cast(pyarrow.float64()).to_numpy()
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        raise InvalidArgument(
            f"{path}: column {name!r} has a value that is not a number. Encode texts first."
        ) from None
    return np.where(np.isfinite(values), values, math.nan)


def _arrow(path: Path) -> Any:
    import pyarrow
    from pyarrow import csv, feather, parquet

    try:
        match path.suffix:
            case ".parquet":
                return parquet.read_table(path)
            case ".arrow" | ".feather":
                return feather.read_table(path)
            case ".tsv":
                return csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="\t"))
            case _:
                return csv.read_csv(path)
    except (OSError, pyarrow.ArrowInvalid) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise InvalidArgument(f"{path} cannot be read as a table ({reason}).") from None
