"""What becomes of missing values in an array: a public rule, applied to each row by itself.

Whether a value is missing is private. So neither the number of columns nor any message depends on
it: a missing value is filled, and where its absence may say something, the caller declares the
columns that get an indicator (docs/missing-values.md).
"""

from collections.abc import Collection
from typing import Any

import numpy as np
from scipy.sparse import issparse

from hushfit._typing import AnyArray, Vector
from hushfit.data import FeatureBounds, SignedBounds
from hushfit.errors import InvalidArgument, NonFiniteRecords
from hushfit.estimators._cells import plain

_RULES = ("fill", "zero", "raise")
_ROWS_AT_ONCE = 4_096


def check_rule(nonfinite: Any) -> None:
    """Refuse a rule that is not known."""
    if not isinstance(nonfinite, str) or nonfinite not in _RULES:
        raise InvalidArgument(
            f"nonfinite={nonfinite!r} is not known. Use 'fill', 'zero' or 'raise'."
        )


def with_plain_gaps(X: Any) -> Any:
    """Rows in which pandas' marks of missing values are NaN.

    Among objects, numpy can make no float of them, and its error would tell that there is one.
    """
    if hasattr(X, "isetitem"):
        return _with_plain_columns(X)
    if isinstance(X, np.ndarray):
        return np.frompyfunc(plain, 1, 1)(X) if X.dtype == object else X
    if isinstance(X, list | tuple) and all(isinstance(row, list | tuple) for row in X):
        return [[plain(cell) for cell in row] for row in X]
    return X


def _with_plain_columns(X: Any) -> Any:
    # Not by `notna`, which some objects make raise an error.
    found = [place for place, kind in enumerate(X.dtypes) if str(kind) == "object"]
    if not found:
        return X
    X = X.copy(deep=False)
    for place in found:
        column = X.iloc[:, place]
        cells = [np.nan if cell is None else plain(cell) for cell in column.tolist()]
        # As a series: of an array pandas would infer the type, from all cells.
        X.isetitem(place, type(column)(cells, column.index, object))
    return X


def without_gaps(
    X: Any,
    nonfinite: str,
    bounds: FeatureBounds | SignedBounds | None,
    left: Collection[int] = (),
) -> Any:
    """Rows under the rule ``nonfinite``.

    Parameters
    ----------
    X : array or CSR matrix
    nonfinite : {"fill", "zero", "raise"}
        With "fill" a missing value becomes the middle of its range, or 0 without ranges, where
        infinite values do too: ranges clip them. With "zero" nothing is changed: such records
        count as the zero record.
    bounds : FeatureBounds, SignedBounds or None
    left : collection of int
        Columns whose missing values a feature map fills.

    Returns
    -------
    array or CSR matrix
        The same object if there is nothing to fill.

    Raises
    ------
    NonFiniteRecords
        With "raise", if a value is not finite.
    """
    values = X.data if issparse(X) else X
    if values.dtype == object:  # texts: their feature map reads missing ones too
        return X
    with np.errstate(over="ignore", invalid="ignore"):
        complete = bool(np.isfinite(np.sum(values))) or bool(np.isfinite(values).all())
    if complete or nonfinite == "zero":
        return X
    if nonfinite == "raise":
        raise NonFiniteRecords(
            "X contains NaN or infinity. Fill or drop those values, or leave nonfinite='fill', "
            "which fills them with the middle of their range. (This error reveals something about "
            "the rows to whoever sees it.)"
        )
    middle = np.zeros(X.shape[1]) if bounds is None else bounds.low + (bounds.high - bounds.low) / 2
    middle[list(left)] = np.nan
    if issparse(X):
        return type(X)(
            (_filled(X.data, middle[X.indices], bounds is None), X.indices, X.indptr),
            shape=X.shape,
        )
    whole = np.empty_like(X)
    for start in range(0, len(X), _ROWS_AT_ONCE):
        place = slice(start, start + _ROWS_AT_ONCE)
        whole[place] = _filled(X[place], middle, bounds is None)
    return whole


def stated_rule(nonfinite: str, bounded: bool) -> str:
    """The rule as a guarantee states it."""
    if nonfinite == "zero":
        what = "a missing value" if bounded else "a missing or infinite value"
        return f"one with {what} counts as the zero record"
    if nonfinite == "raise":
        return "rows with missing values are refused"
    return "a missing value becomes " + ("the middle of its range" if bounded else "0")


def _filled(values: AnyArray, fills: Vector, also_infinite: bool) -> AnyArray:
    gaps = ~np.isfinite(values) if also_infinite else np.isnan(values)
    return np.where(gaps, fills, values).astype(values.dtype, copy=False)
