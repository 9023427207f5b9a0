"""The argument ``feature_bounds`` of an estimator, whose ranges may be given by name."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hushfit.errors import InvalidArgument


def feature_ranges(estimator: Any) -> Any:
    """The ranges of the columns by position, for a table that the estimator has seen.

    Raises
    ------
    InvalidArgument
        If they were given by name, and the names are not those of the columns.
    """
    return ranges_by_place(estimator.feature_bounds, getattr(estimator, "feature_names_in_", None))


def quoted_ranges(given: Any, n_features: int) -> Any:
    """The ranges by position for a quote, where columns have no names yet and their order changes
    nothing.

    Raises
    ------
    InvalidArgument
        If they were given by name, for another number of columns.
    """
    if isinstance(given, Mapping) and len(given) != n_features:
        raise InvalidArgument(
            f"feature_bounds names {len(given)} columns, and n_features={n_features}. Give the "
            "range of every column."
        )
    return ranges_by_place(given, list(given) if isinstance(given, Mapping) else None)


def ranges_by_place(
    given: Any, names: Sequence[Any] | None, argument: str = "feature_bounds"
) -> Any:
    """Ranges in the order of the columns, if they were given by name; else as they are.

    Parameters
    ----------
    given : mapping of str to (low, high), or other
    names : sequence of str or None
        Of the columns; None if they have none.
    argument : str, default="feature_bounds"
        For messages.
    """
    if not isinstance(given, Mapping):
        return given
    if names is None:
        raise InvalidArgument(
            f"{argument} is given by name, but the columns of X have no names. Give a data frame "
            "whose names are texts, or a list of one (low, high) per column, in their order."
        )
    if unknown := [name for name in given if name not in names]:
        raise InvalidArgument(
            f"{argument} names {_listed(unknown)}, and X has no such column. Its columns are "
            f"{_listed(names)}."
        )
    if missing := [name for name in names if name not in given]:
        raise InvalidArgument(
            f"{argument} has no range of {_listed(missing)}. Give (low, high) as you know them "
            "without looking at the rows."
        )
    return [_range(given[name], f"{argument}[{name!r}]") for name in names]


def _range(ends: Any, name: str) -> tuple[float, float]:
    try:
        low, high = map(float, ends)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(
            f"{name}={ends!r} is not a pair of numbers. Give (low, high)."
        ) from None
    if not (low < high and math.isfinite(high - low)):
        raise InvalidArgument(
            f"{name}={ends!r} is not a range. Give finite numbers with low < high."
        )
    return low, high


def _listed(names: Sequence[Any]) -> str:
    return ", ".join(repr(str(name)) for name in names)
