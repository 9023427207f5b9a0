"""Cells of lists, arrays of objects and columns of texts as numbers, each read by itself.

numpy would refuse a whole table, or read it in another way, because of one cell. That would tell of
a row before anything is paid.
"""

import math
import re
import warnings
from collections.abc import Sequence
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
    values = np.empty(X.shape)
    for place in range(X.shape[1]):
        values[:, place] = _column(X[:, place], f"number {place}")
    return values


def _column(cells: AnyArray, name: str) -> Vector:
    """The numbers of a column; refuses one that has none, and is not just missing."""
    listed = cells.tolist()
    values = numbers_of_cells(listed)
    if np.isnan(values).all() and not all(map(_is_missing, listed)):
        raise InvalidArgument(
            f"Column {name} of X has no number: each of its cells is missing or not a number. "
            "Encode text columns first, with categories that are publicly known (SchemaEncoder of "
            "hushfit.preprocessing)."
        )
    return values


def _is_missing(cell: Any) -> bool:
    cell = plain(cell)
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _with_columns_of_pandas(X: Any) -> Any:
    # Kinds of periods, categories and texts are "O" too.
    found = [place for place, kind in enumerate(X.dtypes) if kind.kind in _NO_NUMBERS]
    if not found:
        return X
    X = X.copy(deep=False)
    for place in found:
        cells = np.asarray(X.iloc[:, place], object)
        X.isetitem(place, _column(cells, repr(X.columns[place])))
    return X


def _with_columns_of_polars(X: Any) -> Any:
    made = [
        type(column)(column.name, _column(as_objects(column.to_list()), repr(column.name)))
        for column in X
        if not (column.dtype.is_numeric() or str(column.dtype) in ("Boolean", "Null"))
    ]
    return X.with_columns(made) if made else X


def _with_columns_of_arrow(X: Any) -> Any:
    import pyarrow as pa

    types = pa.types
    for place, field in enumerate(X.schema):
        kind = field.type
        if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
            continue
        if types.is_null(kind) or types.is_temporal(kind):
            continue
        cells = as_objects(X.column(place).to_pylist())
        X = X.set_column(place, field.name, pa.array(_column(cells, repr(field.name))))
    return X
