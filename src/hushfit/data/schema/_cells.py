"""How one cell of a table is read: as a number, or as a label. A function of that cell alone.

Frames and arrays keep a column in one type, and one row can change it for all: a missing cell turns
whole numbers into floats (and those beyond 2**53 into others), one integer turns truth values into
integers, one text turns dates into objects or texts. So a value is read in the same way in every
type that such a change may give it. Otherwise exchanging one person would change the records of all
others, and the sensitivity proofs would not apply to the table.
"""

import datetime
import math
import re
from numbers import Number
from typing import Any

import numpy as np

from hushfit._typing import Vector

MISSING_VALUE = "<missing>"
"""The name of the indicator of missing values."""

# How Python and the frame libraries write a whole number, also after it became a float. A code such
# as "007" is a text.
_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)(\.0)?")
# Points between groups of three digits, as in 1.234.567,8.
_GROUPED = re.compile(r"[-+]?[0-9]{1,3}(\.[0-9]{3})+(,[0-9]*)?")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d+))?(.*)", re.DOTALL)
_TRUTH = {"True": "1", "False": "0", "true": "1", "false": "0"}
# Recognised by name, so that pandas is not imported.
_MISSING_TYPES = ("NAType", "NaTType")
_UNITS = {
    "d": 86_400 * 10**9,
    "h": 3600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "µs": 10**3,
    "ns": 1,
}
_NUMPY_UNITS = {"D": "d", "us": "µs", "M": "months"}


def listed(values: Any) -> list[Any]:
    """The cells of a column as objects; not dates and durations as integers, as numpy lists some
    of them.
    """
    array = np.asarray(values)
    if array.dtype.kind == "M":
        return [None if text == "NaT" else text for text in np.datetime_as_string(array).tolist()]
    if array.dtype.kind == "m":
        return list(array)
    cells: list[Any] = array.tolist()
    return cells


def number_of(cell: Any) -> float:
    """A cell as a number, NaN for what cannot be read as one. A date is no number."""
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return math.nan
    if isinstance(cell, bytes):
        cell = _decoded(cell)
    if isinstance(cell, str):
        cell = _TRUTH.get(cell.strip(), cell)
    elif isinstance(
        cell, complex | np.complexfloating
    ):  # one complex cell makes a whole array complex
        cell = cell.real if cell.imag == 0 else math.nan
    if cell is np.ma.masked:  # it would warn, which tells of it
        return math.nan
    try:
        return float(cell)
    except Exception:  # whatever an object raises would tell of it
        return math.nan


def numbers_in(values: Any, decimal: str = ".") -> Vector:
    """The cells of a column as floats, NaN for those that cannot be read as numbers. With a decimal
    comma, texts are read as 1.234,5.
    """
    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    read = number_of if decimal == "." else _number_with_comma
    return np.array([read(cell) for cell in listed(array)], dtype=np.float64)


def _number_with_comma(cell: Any) -> float:
    if isinstance(cell, bytes):
        cell = _decoded(cell)
    if not isinstance(cell, str) or cell.strip() in _TRUTH:
        return number_of(cell)
    text = cell.strip()
    if _GROUPED.fullmatch(text):
        text = text.replace(".", "")
    return math.nan if "." in text else number_of(text.replace(",", ".", 1))


def label_of(cell: Any) -> str | None:
    """The text by which a cell is compared with categories; None for a missing one.

    Numbers are compared as floats, whole ones without a decimal point, truth values as 1 and 0,
    dates in one notation, and texts that are just a notation of one of these by its value.
    """
    if cell is None or type(cell).__name__ in _MISSING_TYPES:
        return None
    if isinstance(cell, np.datetime64):
        return _moment(str(np.datetime_as_string(cell))) if not np.isnat(cell) else None
    if isinstance(cell, datetime.timedelta | np.timedelta64):
        return _duration_label(cell)
    if isinstance(cell, bytes):
        cell = _decoded(cell)
    if isinstance(cell, Number):
        return _number_label(cell)
    try:
        text = str(cell)
    except Exception:  # whatever an object raises would tell of it
        return None
    return _text_label(text.strip())


def as_objects(cells: Any) -> Any:
    """A list as an array of objects; in one dimension if a cell cannot be looked into."""
    try:
        return np.array(cells, dtype=object)
    except Exception:
        return np.fromiter(cells, object, len(cells))


def _decoded(cell: bytes) -> str:
    return cell.decode("utf-8", errors="replace")


def _number_label(cell: Any) -> str | None:
    value = number_of(cell)
    if math.isfinite(value):
        return _written(value)
    try:
        text = str(cell)
    except ValueError:  # Python refuses to write out integers of thousands of digits
        return None
    return None if text.lower().lstrip("-+s") == "nan" else text


def _text_label(text: str) -> str:
    if _WHOLE.fullmatch(text) or _is_float(text):
        value = float(text)
        return _written(value) if math.isfinite(value) else text
    return _TRUTH.get(text) or _moment(text)


def _is_float(text: str) -> bool:
    """Whether a text is Python's notation of a float."""
    try:
        return repr(float(text)) == text
    except ValueError:
        return False


def _written(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(value)


def _moment(text: str) -> str:
    """A date and time in one notation: no T, no zeros at the end of a fraction, no midnight."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return text
    day, time, fraction, zone = found.groups()
    digits = (fraction or "").rstrip("0")
    clock = time + (f".{digits}" if digits else "") + zone
    return day if clock == "00:00:00" else f"{day} {clock}"


def _duration(nanoseconds: int) -> str:
    """A duration in the notation of polars, such as 1d 2h, the only library notation that a column
    may be converted to.
    """
    sign, rest = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    parts = []
    for unit, size in _UNITS.items():
        count, rest = divmod(rest, size)
        parts += [f"{sign}{count}{unit}"] if count else []
    return " ".join(parts) or "0ns"


def _duration_label(cell: Any) -> str | None:
    if isinstance(cell, datetime.timedelta):
        count = (
            cell.days * _UNITS["d"] + cell.seconds * _UNITS["s"] + cell.microseconds * _UNITS["µs"]
        )
        return _duration(count + getattr(cell, "nanoseconds", 0))  # pandas has these
    if np.isnat(cell):
        return None
    unit, size = np.datetime_data(cell.dtype)
    unit = _NUMPY_UNITS.get(unit, unit)
    return (
        _duration(int(cell.astype(np.int64)) * size * _UNITS[unit]) if unit in _UNITS else str(cell)
    )
