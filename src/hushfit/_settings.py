"""What settings of every kind have in common: numbers that floating point can hold."""

import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from hushfit.errors import InvalidArgument


def refuse_beyond_floats(settings: Any) -> None:
    """Refuse a solver, loss or penalty with a whole number that no float holds, before anything
    is computed or paid with it.
    """
    for name in _beyond_floats(settings, type(settings).__name__):
        raise InvalidArgument(
            f"{name} is a whole number beyond the largest float. Give a smaller one."
        )


def _beyond_floats(value: Any, name: str) -> Iterator[str]:
    """Names of such numbers, wherever they are inside."""
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        yield name
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _beyond_floats(item, name)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _beyond_floats(getattr(value, field.name, None), f"{name}.{field.name}")
