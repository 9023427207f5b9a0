"""Checks common to all settings: numbers must be within the range of floats."""

import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from hushfit.errors import InvalidArgument


def refuse_beyond_floats(settings: Any) -> None:
    """Refuse a solver, loss or penalty with an integer beyond the range of floats, before anything
    is computed or charged.
    """
    for name in _beyond_floats(settings, type(settings).__name__):
        raise InvalidArgument(
            f"{name} is a whole number beyond the largest float. Give a smaller one."
        )


def _beyond_floats(value: Any, name: str) -> Iterator[str]:
    """Names of such numbers, at any depth."""
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        yield name
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _beyond_floats(item, name)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _beyond_floats(getattr(value, field.name, None), f"{name}.{field.name}")
