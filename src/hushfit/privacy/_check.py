"""Argument checks shared by the privacy layer: each error names the value and the remedy."""

import dataclasses
import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from hushfit.errors import InvalidArgument


def number(value: object, name: str) -> float:
    """A real number that is not NaN."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidArgument(f"{name}={value!r} is not a number. Give a float.")
    try:
        real = float(value)
    except OverflowError:
        raise InvalidArgument(
            f"{name} is too large: an integer beyond the largest float. Give a smaller one."
        ) from None
    if math.isnan(real):
        raise InvalidArgument(f"{name} is NaN. Give a number.")
    return real


def non_negative(value: object, name: str) -> float:
    """A number at least 0; infinity is allowed."""
    real = number(value, name)
    if real < 0:
        raise InvalidArgument(f"{name}={real:g} is negative. Give a value of at least 0.")
    return real


def fraction(value: object, name: str) -> float:
    """A number in (0, 1]."""
    real = number(value, name)
    if not 0 < real <= 1:
        raise InvalidArgument(
            f"{name}={real:g} is outside (0, 1]. Give the share of rows in a batch."
        )
    return real


def probability(value: object, name: str) -> float:
    """A number strictly between 0 and 1."""
    real = number(value, name)
    if not 0 < real < 1:
        raise InvalidArgument(
            f"{name}={real:g} is outside (0, 1). Give a small probability, well below 1/n."
        )
    return real


def count(value: object, name: str = "count") -> int:
    """An integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidArgument(f"{name}={value!r} is not an integer. Give an int of at least 1.")
    whole = int(value)
    if whole < 1:
        raise InvalidArgument(f"{name}={whole} is too small. Give an int of at least 1.")
    return whole


def text(value: object, name: str) -> str:
    """A string."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{name}={value!r} is not text. Give a str.")
    return value


def fields(data: object, names: set[str], what: str) -> Mapping[str, Any]:
    """A mapping with exactly these keys."""
    if not isinstance(data, Mapping):
        raise InvalidArgument(
            f"{what} should be a JSON object, got {type(data).__name__}. Use what to_dict() wrote."
        )
    if set(data) != names:
        odd = sorted(map(str, set(data) ^ names))
        raise InvalidArgument(
            f"{what} has missing or unknown fields {odd}. Use what to_dict() wrote, unedited."
        )
    return data


def described(cost: Any, kind: str) -> dict[str, Any]:
    """A dataclass as a JSON object: its kind, then its fields in order, tuples as lists."""

    def plain(value: Any) -> Any:
        return (
            [to_json_number(item) for item in value]
            if isinstance(value, tuple)
            else to_json_number(value)
        )

    return {
        "kind": kind,
        **{field.name: plain(getattr(cost, field.name)) for field in dataclasses.fields(cost)},
    }


def read(data: object, cls: Any, kind: str) -> dict[str, Any]:
    """Arguments of a dataclass from its JSON object: the inverse of `described`."""
    declared = dataclasses.fields(cls)
    given = fields(data, {"kind", *(field.name for field in declared)}, f"a {kind} cost")
    return {field.name: _from_json(given[field.name], field) for field in declared}


def _from_json(value: Any, field: dataclasses.Field[Any]) -> Any:
    """Field value from JSON; labels and integers are left to the constructor."""
    if field.type in (str, int):
        return value
    if field.type is not float:
        if not isinstance(value, list):
            raise InvalidArgument(
                f"{field.name} should be a list of numbers. Use what to_dict() wrote."
            )
        return tuple(from_json_number(item, field.name) for item in value)
    return from_json_number(value, field.name)


def store(cost: Any, **values: Any) -> None:
    """Store the checked, converted arguments of a frozen instance."""
    for name, value in values.items():
        object.__setattr__(cost, name, value)


def to_json_number(value: float) -> float | str:
    """Write infinity as a string, since strict JSON has none."""
    return "inf" if value == math.inf else value


def from_json_number(value: object, name: str) -> float:
    """Inverse of `to_json_number`; any other string is refused."""
    return math.inf if value == "inf" else number(value, name)


def finite(value: object, name: str) -> float:
    """A finite number at least 0."""
    real = non_negative(value, name)
    if real == math.inf:
        raise InvalidArgument(f"{name} is infinite. Give a finite number.")
    return real
