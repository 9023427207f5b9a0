"""Checks that columns of several kinds share."""

from typing import Any

from hushfit.errors import InvalidArgument


def refuse_nameless(name: Any) -> None:
    """Refuse a column without a name."""
    if not isinstance(name, str) or not name:
        raise InvalidArgument(
            f"a column is named {name!r}. Give the name it has in the table, as text."
        )


def settle_markers(column: Any) -> None:
    """Make the marks of missing values a tuple: a list from a file becomes hashable."""
    given = column.missing_values
    scalars = str | int | float
    if not isinstance(given, list | tuple) or not all(isinstance(one, scalars) for one in given):
        raise InvalidArgument(
            f"column {column.name!r} has missing_values={given!r}. Give a list, such as "
            '["?", "NA"] or [-9].'
        )
    object.__setattr__(column, "missing_values", tuple(given))
