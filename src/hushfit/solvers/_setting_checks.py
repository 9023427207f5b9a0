"""Checks of a solver's settings; each message names the value and what to do."""

import math

from hushfit.errors import InvalidArgument


def check_settings(solver: object, **positive: float | None) -> None:
    """Refuse numbers that should be positive (or None) and are not."""
    for name, value in positive.items():
        if value is not None and not 0 < value < math.inf:
            raise InvalidArgument(
                f"{name}={value!r} of {type(solver).__name__} should be positive. Give a finite "
                "number above 0."
            )


def check_not_negative(solver: object, **values: float) -> None:
    """Refuse negative or non-finite numbers."""
    for name, value in values.items():
        if not 0 <= value < math.inf:
            raise InvalidArgument(
                f"{name}={value!r} of {type(solver).__name__} should be 0 or more. Use 0 for none."
            )
