"""One notation for each id: what says the same is written in the same way.

A person whose id is written in two ways would be two units, and the guarantee would not hold for
them. Two persons whose ids become one are protected together, which is safe. So wherever a library
or a file may write a value in several ways, they are brought to one; and a cell whose type has no
known notation is refused, since its text may be its address in memory.
"""

import datetime
import re
import sys
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache
from numbers import Integral
from typing import Any
from uuid import UUID

import numpy as np

from hushfit.data.schema import label_of
from hushfit.errors import InvalidArgument

# Recognised by name, so that pandas is not imported.
_MISSING_TYPES = ("NAType", "NaTType")
# An exponent needs its sign or a point before it: 0e12 and 0e34 are codes in base 16.
_NUMBER = re.compile(
    r"([+-]?)(0|[1-9][0-9]*|(?=\.[0-9]))(?![0-9]*[eE][0-9])(?:\.([0-9]*))?"
    r"(?:[eE]([+-]?[0-9]{1,9}))?"
)
# Zeros that are written out at the end of a whole number; there is an exponent for more.
_MOST_ZEROS = 10_000
_EXACT_BELOW: dict[type, float] = {np.float32: 2.0**24, np.float16: 2.0**11}
_CLOCK = r"([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?)?"
_ZONE = r"(?: ?(?:[Zz]|UTC|([+-])([0-9]{2})(?::?([0-9]{2}))?(?::?([0-9]{2}))?))?"
_MOMENT = re.compile(rf"([+-]?[0-9]{{4,}}-[0-9]{{2}})(-[0-9]{{2}})?(?:[Tt ]{_CLOCK}{_ZONE})?")
_TIME = re.compile(rf"(?=[0-9]{{2}}:){_CLOCK}")
_COARSE_DATES = {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s"}
_COARSE_DURATIONS = {"Y": "M", "W": "D"}
_PER_NANOSECOND = {"ps": 10**3, "fs": 10**6, "as": 10**9}


def ids_of(cells: Iterable[Any]) -> list[bytes | None]:
    """Ids as texts in UTF-8, each in one notation; None for missing ones.

    Parameters
    ----------
    cells : iterable

    Returns
    -------
    list of bytes or None

    Raises
    ------
    InvalidArgument
        For a type that has no notation as an id, and for floats that were rounded.
    """
    return [_id_of(cell) for cell in cells]


def exact_below(kind: type) -> float:
    """Below this, different whole numbers are different floats of a type."""
    return _EXACT_BELOW.get(kind, 2.0**53)


def _id_of(cell: Any) -> bytes | None:
    if cell is None or type(cell).__name__ in _MISSING_TYPES:
        return None
    if isinstance(cell, bytes):
        return _text(_decoded(cell)) if not cell.isascii() else _text(cell.decode("ascii"))
    if isinstance(cell, str):
        return _text(str.__str__(cell))
    # Before integers: numpy counts its durations among those.
    if isinstance(cell, datetime.timedelta | np.timedelta64):
        return _duration(cell)
    if isinstance(cell, np.datetime64):
        return None if np.isnat(cell) else _text(_iso(cell))
    if isinstance(cell, datetime.date | datetime.time):
        return _text(cell.isoformat())
    if isinstance(cell, Enum):
        return _id_of(cell.value)
    if isinstance(cell, UUID):
        return str(cell).encode()
    return _number(cell)


def _number(cell: Any) -> bytes | None:
    if isinstance(cell, Integral | np.bool_):
        return _whole(int(cell))
    if isinstance(cell, Decimal):
        return None if cell.is_nan() else _decimal(cell)
    if isinstance(cell, float | np.floating):
        return _float(cell)
    if isinstance(cell, complex | np.complexfloating):
        return _float(cell.real) if cell.imag == 0 else repr(complex(cell)).encode()
    # Others are 1/2 for one library and 0.5 for another.
    if isinstance(cell, Fraction) and cell.denominator == 1:
        return _whole(cell.numerator)
    raise incomparable(type(cell).__name__)


def _decoded(cell: bytes) -> str | bytes:
    """Bytes as text; those that are no UTF-8 stay bytes."""
    try:
        return cell.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return cell


@cache
def _blanks() -> str:
    """Blanks of all writing systems. Marks of the byte order and of no width show as little."""
    spaces = filter(str.isspace, map(chr, range(sys.maxunicode + 1)))
    return "".join(spaces) + "\ufeff\u200b\u2060"


def _text(text: str | bytes) -> bytes | None:
    if isinstance(text, bytes):
        return text.strip() or None
    text = text.strip(_blanks())
    if text.isascii():
        text = _number_text(text) or _moment_text(text) or text
    else:
        text = unicodedata.normalize("NFC", text)
    return text.encode("utf-8", "surrogatepass") or None


def _number_text(text: str) -> str | None:
    """A number in decimal notation, by its value; None for another text."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    sign, whole, fraction, exponent = found.groups(default="")
    return _decimal_text(sign == "-", whole + fraction, int(exponent or 0) - len(fraction))


def _decimal_text(negative: bool, digits: str, exponent: int) -> str:
    """A whole number as its digits, any other as its digits without zeros at the end and a power
    of ten.
    """
    short = digits.rstrip("0")
    exponent += len(digits) - len(short)
    short = short.lstrip("0")
    if not short:
        return "0"
    if 0 <= exponent <= _MOST_ZEROS:
        return "-" * negative + short + "0" * exponent
    return "-" * negative + f"{short}e{exponent}"


def _whole(number: int) -> bytes:
    try:
        return str(number).encode()
    except ValueError:  # Python refuses to write out integers of thousands of digits
        return str(Decimal(number)).encode()


def _decimal(cell: Decimal) -> bytes:
    sign, digits, exponent = cell.as_tuple()
    if not isinstance(exponent, int):
        return str(cell).encode()
    return _decimal_text(sign == 1, "".join(map(str, digits)), exponent).encode()


def _float(cell: Any) -> bytes | None:
    """By the shortest decimal text that gives the float in its type, so .1 is one id in all."""
    if cell != cell:
        return None
    if not abs(cell) < exact_below(type(cell)):
        raise rounded()
    if cell == int(cell):
        return _whole(int(cell))
    short = cell if type(cell) in _EXACT_BELOW else float(cell)
    return (_number_text(str(short)) or str(short)).encode()


def _iso(cell: Any) -> str:
    unit, _ = np.datetime_data(cell.dtype)
    if unit in _COARSE_DATES:
        cell = cell.astype(f"M8[{_COARSE_DATES[unit]}]")
    return str(np.datetime_as_string(cell))


def _moment_text(text: str) -> str | None:
    """A date, or a moment in UTC, or a time of the day, in one notation; None for another text.

    A moment without a zone is taken for UTC, and midnight is the date: libraries leave out either.
    """
    if (found := _TIME.fullmatch(text)) is not None:
        return _clock_text(*found.groups(default=""))
    if (found := _MOMENT.fullmatch(text)) is None:
        return None
    month, day, *rest = found.groups(default="")
    date, clock, (sign, *offset) = month + (day or "-01"), rest[:4], rest[4:]
    if any(part.strip("0") for part in offset):
        try:
            moment = datetime.datetime.fromisoformat(f"{date} {':'.join(_padded(clock[:3]))}")
            hours, minutes, seconds = map(int, _padded(offset))
            east = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
            moment = moment + east if sign == "-" else moment - east
        except (ValueError, OverflowError):
            return None
        date, time = moment.isoformat(" ").split(" ")
        clock = [*time.split(":"), clock[3]]
    time = _clock_text(*clock)
    return date if time == "00:00:00" else f"{date} {time}"


def _padded(parts: list[str]) -> list[str]:
    return [part or "00" for part in parts]


def _clock_text(hour: str, minute: str, second: str, fraction: str) -> str:
    digits = fraction.rstrip("0")
    return ":".join(_padded([hour, minute, second])) + (f".{digits}" if digits else "")


def _duration(cell: Any) -> bytes | None:
    if isinstance(cell, np.timedelta64) and not np.isnat(cell):
        unit, size = np.datetime_data(cell.dtype)
        if unit in _COARSE_DURATIONS:
            cell = cell.astype(f"m8[{_COARSE_DURATIONS[unit]}]")
        elif unit in _PER_NANOSECOND:
            count, rest = divmod(int(cell.astype(np.int64)) * size, _PER_NANOSECOND[unit])
            if rest:
                raise incomparable(str(cell.dtype))
            cell = np.timedelta64(count, "ns")
    label = label_of(cell)
    return None if label is None else label.encode()


def rounded() -> InvalidArgument:
    """The refusal of floats which may have been other whole numbers."""
    return InvalidArgument(
        "Some ids are floats of 2**53 or more (2**24 in single precision), where different whole "
        "numbers are rounded to one float: two persons could have become one. Store ids as "
        "integers or texts."
    )


def incomparable(kind: str) -> InvalidArgument:
    """The refusal of a type that has no notation as an id."""
    return InvalidArgument(
        f"Some ids are of type {kind}, which cannot be compared as ids. Give numbers, texts or "
        "dates."
    )
