"""Reading rows, filling missing values and limiting row length, for all scalers."""

import math
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from hushfit._typing import Vector
from hushfit.data.rows import canonical
from hushfit.errors import InvalidArgument
from hushfit.estimators import refusal_of_shape
from hushfit.privacy import Budget
from hushfit.release import Randomness, Terms

# Bound on the relative rounding error of the length of a row.
_ROUNDING = 1e-12


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
            X,
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


def check_settings(missing: str, max_row_norm: float | None) -> None:
    """Refuse unknown or invalid settings."""
    if missing not in ("keep", "middle"):
        raise InvalidArgument(f"missing={missing!r} is not known. Use 'keep' or 'middle'.")
    if max_row_norm is not None and not 0 < max_row_norm < math.inf:
        raise InvalidArgument(
            f"max_row_norm={max_row_norm!r} is not a length. Give a positive number, or None."
        )


def certified_norm(n_features: int, max_row_norm: float | None) -> float:
    """Bound on the length of a row with entries in [-1, 1], after shortening."""
    longest = math.sqrt(n_features) * (1 + _ROUNDING)
    return longest if max_row_norm is None else min(longest, float(max_row_norm))


def filled(X: Any, middle: Vector, missing: str) -> Any:
    """Rows with missing values unchanged, or replaced by the middle of their column."""
    if missing == "keep":
        return X
    if issparse(X):
        return type(X)(
            (np.where(np.isnan(X.data), middle[X.indices], X.data), X.indices, X.indptr),
            shape=X.shape,
        )
    return np.where(np.isnan(X), middle, X)
