"""Reading rows, filling missing values and limiting row length, for all scalers."""

import math
from typing import Any

import numpy as np
from scipy.sparse import hstack, issparse
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import validate_data

from hushfit._typing import AnyArray, Vector
from hushfit.data.rows import canonical
from hushfit.data.schema import MISSING_VALUE
from hushfit.errors import InvalidArgument
from hushfit.estimators import input_names, refusal_of_shape, with_numbers
from hushfit.privacy import Budget
from hushfit.release import Randomness, Terms

# Bound on the relative rounding error of the length of a row.
_ROUNDING = 1e-12
_MISSING_RULES = ("middle", "indicator", "keep")


def column_terms(estimator: Any, *notes: str) -> Terms:
    """The terms of a step that learns from each column."""
    return Terms(
        Budget(estimator.epsilon, estimator.delta),
        type(estimator).__name__,
        Randomness.of(estimator.random_state),
        estimator.ledger,
        public=("the names and number of the columns",),
        notes=notes,
    )


def read_rows(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Rows as floats, missing values allowed; no message reveals a value."""
    try:
        rows = validate_data(
            estimator,
            with_numbers(X),
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
        )
    except (ValueError, OverflowError) as error:  # an integer beyond the range of floats overflows
        if isinstance(error, ValueError) and "convert string" not in str(error):
            if (refusal := refusal_of_shape(error)) is not None:
                raise refusal from None
            raise
        raise InvalidArgument(
            "X has a value that is not a number or too large for a float. Encode text columns "
            "with SchemaEncoder first."
        ) from None
    # Duplicate entries would each be clipped, counted and measured separately.
    return canonical(rows) if issparse(rows) else rows


def read_texts(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Rows of texts; a sequence of texts is one column."""
    if np.ndim(X) == 1 and not issparse(X):
        X = np.asarray(X, dtype=object)[:, None]
    try:
        return validate_data(
            estimator, X, reset=reset, accept_sparse=False, dtype=object, ensure_all_finite=False
        )
    except ValueError as error:
        if (refusal := refusal_of_shape(error)) is not None:
            raise refusal from None
        raise


def check_settings(missing: Any, max_row_norm: float | None) -> None:
    """Refuse unknown or invalid settings."""
    named = isinstance(missing, str) and missing in _MISSING_RULES
    if not named and not isinstance(missing, list | tuple):
        raise InvalidArgument(
            f"missing={missing!r} is not known. Use 'middle', 'indicator' or 'keep', or a list of "
            "the columns that get an indicator."
        )
    if max_row_norm is not None and not 0 < max_row_norm < math.inf:
        raise InvalidArgument(
            f"max_row_norm={max_row_norm!r} is not a length. Give a positive number, or None."
        )


def certified_norm(n_features: int, max_row_norm: float | None) -> float:
    """Bound on the length of a row with entries in [-1, 1], after shortening."""
    longest = math.sqrt(n_features) * (1 + _ROUNDING)
    return longest if max_row_norm is None else min(longest, float(max_row_norm))


def flagged_columns(estimator: Any, missing: Any) -> list[int]:
    """Columns with an indicator of missing values, by number: a public setting decides."""
    count = int(estimator.n_features_in_)
    if isinstance(missing, str):
        return list(range(count)) if missing == "indicator" else []
    names = input_names(estimator)
    places = [names.index(column) if column in names else column for column in missing]
    for column, place in zip(missing, places, strict=True):
        if not isinstance(place, int) or not 0 <= place < count:
            raise InvalidArgument(
                f"missing names the column {column!r}, which is not there. Use a name or a number "
                f"below {count}."
            )
    return sorted(set(places))


class IndicatorNames(OneToOneFeatureMixin):
    """Names of scaled columns, followed by those of the indicators of missing values."""

    _flagged: list[int]

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Names of the columns of the output.

        Parameters
        ----------
        input_features : sequence of str, optional

        Returns
        -------
        array of str
        """
        names = super().get_feature_names_out(input_features)
        flags = [f"{names[j]}={MISSING_VALUE}" for j in self._flagged]
        return np.array([*names, *flags], dtype=object)


def filled(X: Any, middle: Vector, missing: Any) -> Any:
    """Rows with missing values unchanged, or replaced by the middle of their column."""
    if missing == "keep":
        return X
    if issparse(X):
        return type(X)(
            (np.where(np.isnan(X.data), middle[X.indices], X.data), X.indices, X.indptr),
            shape=X.shape,
        )
    return np.where(np.isnan(X), middle, X)


def with_indicators(scaled: Any, X: Any, flagged: list[int]) -> Any:
    """Scaled rows, followed by one indicator of missing values for each flagged column of X."""
    if not flagged:
        return scaled
    if not issparse(X):
        return np.hstack([scaled, np.isnan(X[:, flagged])])
    gaps = type(X)((np.isnan(X.data).astype(scaled.dtype), X.indices, X.indptr), shape=X.shape)
    gaps = gaps[:, flagged]
    gaps.eliminate_zeros()
    return hstack([scaled, gaps], format="csr")
