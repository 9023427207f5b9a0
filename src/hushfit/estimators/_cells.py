"""Cells of lists, arrays of objects and columns of texts as numbers, each read by itself.

numpy would refuse a whole table, or read it in another way, because of one cell. That would tell of
a row before anything is paid.
"""

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from hushfit._typing import AnyArray, Vector
from hushfit.data.schema import as_objects
from hushfit.errors import InvalidArgument

# Of pandas; recognised by name, so that it is not imported.
_MISSING_TYPES: Final = ("NAType", "NaTType")
# Types of arrays that are no numbers, though their cells may be: objects, texts and bytes.
_NO_NUMBERS: Final = "OUS"
# What arrays hold, by the kind of their type, and columns, by its name.
_HELD: Final = {**dict.fromkeys("biuf", "numbers"), "U": "texts"}
_DECLARED: Final = re.compile(r"(u?int|bool|float|double|halffloat)|(?P<texts>(large_)?str)")
# Columns that a message lists.
_NAMED: Final = 5
# Types of cells that are one number, or one text; most cells are of these.
_SIMPLE: Final = (float, int, str, bool)


def as_cells(y: Any) -> AnyArray:
    """Labels or targets as an array in which none is changed because of another: numpy would make
    texts of all numbers in a list if one cell is a text.
    """
    if not isinstance(y, list | tuple):
        return np.asarray(y)
    cells = as_objects(y)
    # A list of one stands for what it holds, so that one such cell does not change the shape.
    return cells.ravel() if cells.shape[1:] == (1,) else cells


def held_in(y: Any) -> str | None:
    """What a column holds, "numbers" or "texts", by its declared type; None for objects, each of
    which is what it is, and for lists.
    """
    kind = getattr(y, "dtype", getattr(y, "type", None))
    if isinstance(kind, np.dtype):
        return _HELD.get(kind.kind)
    found = _DECLARED.match(str(kind).lower())
    return None if found is None else "texts" if found["texts"] else "numbers"


def exact_cells(column: Any) -> AnyArray:
    """The cells of a column as an array: of objects if its type has missing values of its own, with
    which numpy would round the whole numbers.
    """
    if isinstance(getattr(column, "dtype", None), np.dtype):
        return np.asarray(column)
    listed = getattr(column, "to_pylist", getattr(column, "to_list", None))
    return as_cells(column if listed is None else listed())


def numbers_of_cells(cells: Sequence[Any]) -> Vector:
    """Cells as floats: NaN where one is no number, and infinite beyond the largest float."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of complex numbers, which would tell of them
        return np.array([_number(cell) for cell in cells], np.float64)


def alone(cell: Any) -> Any:
    """What a list of one holds; any other cell as it is."""
    return cell[0] if isinstance(cell, list | tuple) and len(cell) == 1 else cell


def plain(cell: Any) -> Any:
    """A cell, or NaN for pandas' marks of missing values."""
    return math.nan if type(cell).__name__ in _MISSING_TYPES else cell


def with_numbers(X: Any) -> Any:
    """Rows in which objects and texts are floats, NaN where they are no numbers.

    Rows whose type holds numbers alone are returned as they are, and so are rows that are no table,
    which others refuse.

    Raises
    ------
    InvalidArgument
        If a column has texts or objects, and no number at all: it is no column of numbers.
    """
    if isinstance(X, list | tuple):
        X = _table_of(X)
    if isinstance(X, np.ndarray):
        return _numbers_in(X) if X.dtype.kind in _NO_NUMBERS and X.ndim > 1 else X
    if hasattr(X, "iloc") and hasattr(X, "dtypes"):
        return _with_columns_of_pandas(X)
    if hasattr(X, "to_series") and hasattr(X, "with_columns"):
        return _with_columns_of_polars(X)
    return _with_columns_of_arrow(X) if hasattr(X, "set_column") else X


def refusal_of_texts(found: str, names: Sequence[str]) -> InvalidArgument:
    """What to raise where rows are no numbers, with the names of the columns, if they are known."""
    named = f" (columns of texts: {', '.join(map(repr, names[:_NAMED]))})" if names else ""
    return InvalidArgument(
        f"{found}{named}. Encode text columns first, with categories that are publicly known "
        "(SchemaEncoder of hushfit.preprocessing)."
    )


def _table_of(rows: Any) -> Any:
    """Lists of equal lengths as an array of objects; other rows as they are."""
    lengths = {len(row) if isinstance(row, list | tuple) else None for row in rows}
    if len(lengths) != 1 or None in lengths:
        return rows
    cells = np.fromiter((cell for row in rows for cell in row), object)
    nested = {isinstance(cell, list | tuple) for cell in cells.tolist()} == {True}
    return as_objects(rows) if nested else cells.reshape(len(rows), *lengths)


def _number(cell: Any) -> float:
    cell = alone(cell)
    try:
        if type(cell) not in _SIMPLE and (np.ndim(cell) > 0 or np.iscomplexobj(cell)):
            return math.nan
        return float(cell)
    except OverflowError:
        return _infinity(cell)
    except Exception:  # whatever an object raises would tell of it
        return math.nan


def _infinity(cell: Any) -> float:
    try:
        return math.inf if cell > 0 else -math.inf
    except Exception:
        return math.nan


def _numbers_in(X: AnyArray) -> AnyArray:
    if X.ndim > 2:
        return numbers_of_cells(X.ravel().tolist()).reshape(X.shape)
    places = range(X.shape[1])
    read = _columns_read({place: X[:, place] for place in places}, [f"number {j}" for j in places])
    return np.column_stack([*read.values()]) if read else np.empty(X.shape)


def _columns_read(cells: Mapping[int, AnyArray], names: Sequence[Any]) -> dict[int, Vector]:
    """The numbers of columns by their places; refuses those that have none, and are not just
    missing.
    """
    read = {place: numbers_of_cells(column.tolist()) for place, column in cells.items()}
    texts = [
        str(names[place])
        for place, values in read.items()
        if np.isnan(values).all() and not all(map(_is_missing, cells[place].tolist()))
    ]
    if texts:
        raise refusal_of_texts("X has columns in which every value is not a number", texts)
    return read


def _is_missing(cell: Any) -> bool:
    cell = plain(cell)
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _with_columns_of_pandas(X: Any) -> Any:
    # Kinds of periods, categories and texts are "O" too.
    found = [place for place, kind in enumerate(X.dtypes) if kind.kind in _NO_NUMBERS]
    if not found:
        return X
    cells = {place: np.asarray(X.iloc[:, place], object) for place in found}
    X = X.copy(deep=False)
    for place, values in _columns_read(cells, list(X.columns)).items():
        X.isetitem(place, values)
    return X


def _with_columns_of_polars(X: Any) -> Any:
    columns = list(X)
    cells = {
        place: as_objects(column.to_list())
        for place, column in enumerate(columns)
        if not (column.dtype.is_numeric() or str(column.dtype) in ("Boolean", "Null"))
    }
    read = _columns_read(cells, X.columns)
    made = [type(columns[place])(columns[place].name, values) for place, values in read.items()]
    return X.with_columns(made) if made else X


def _with_columns_of_arrow(X: Any) -> Any:
    import pyarrow as pa

    of_numbers = pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null
    left = *of_numbers, pa.types.is_temporal  # which others refuse
    cells = {
        place: as_objects(X.column(place).to_pylist())
        for place, field in enumerate(X.schema)
        if not any(is_one(field.type) for is_one in left)
    }
    for place, values in _columns_read(cells, X.column_names).items():
        X = X.set_column(place, X.column_names[place], pa.array(values))
    return X
