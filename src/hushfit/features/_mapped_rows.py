"""All rows through a feature map, some at a time: memory is that of the mapped rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from hushfit._typing import AnyArray
from hushfit.errors import HushfitError, InvalidArgument
from hushfit.features._feature_map import FeatureMap

_ROWS_AT_ONCE = 1024
# Bounds on the relative rounding error of the length of a row, in float64 and in float32.
_ROUNDING, _SINGLE_ROUNDING = 1e-12, 1e-5


def mapped_rows(
    feature_map: FeatureMap,
    X: Any,
    before: Callable[[Any], Any] | None = None,
    max_row_norm: float = np.inf,
) -> Any:
    """The mapped rows, as an array or a CSR matrix.

    Parameters
    ----------
    feature_map : FeatureMap
    X : array or CSR matrix of shape (n, n_inputs)
    before : callable, optional
        Applied to some rows before the map, each row by itself, such as public bounds.
    max_row_norm : float, default=inf
        Longer rows are shortened to it, each by its own length.

    Returns
    -------
    array or CSR matrix of shape (n, n_outputs)
    """
    sparse = hasattr(X, "indptr")
    change = feature_map.transform_sparse if sparse else feature_map.transform

    def mapped(place: slice) -> Any:
        rows = X[place] if before is None else before(X[place])
        with _failures_hidden(feature_map):
            return shortened(change(rows), max_row_norm)

    places = [slice(k, k + _ROWS_AT_ONCE) for k in range(0, X.shape[0], _ROWS_AT_ONCE)]
    if feature_map.leaves_sparse(sparse):
        from scipy.sparse import vstack

        return vstack([mapped(place) for place in places or [slice(0, 0)]], format="csr")
    first = mapped(slice(0, _ROWS_AT_ONCE))
    whole: AnyArray = np.empty((X.shape[0], feature_map.n_outputs), first.dtype)
    whole[:_ROWS_AT_ONCE] = first
    for place in places[1:]:
        whole[place] = mapped(place)
    return whole


@contextmanager
def _failures_hidden(feature_map: FeatureMap) -> Iterator[None]:
    """Report an error in a map without its text, which could quote a row."""
    try:
        yield
    except HushfitError:
        raise
    except Exception as error:
        raise InvalidArgument(
            f"the feature map {type(feature_map).__name__} failed ({type(error).__name__}) on some "
            "row, although it took random ones. The message of the error is not shown, since it "
            "could quote the row. Nothing was charged. Make the map take every row."
        ) from None


def shortened(X: Any, max_row_norm: float | None) -> Any:
    """Rows scaled down to ``max_row_norm``, each by its own length.

    Parameters
    ----------
    X : array or CSR matrix of floats
    max_row_norm : float or None
        None and infinity set no limit.

    Returns
    -------
    array or CSR matrix of the same type
    """
    if max_row_norm is None or max_row_norm == np.inf:
        return X
    sparse = hasattr(X, "indptr")
    squares = (X.multiply(X) if sparse else np.square(X)).sum(axis=1, dtype=np.float64)
    rounding = _ROUNDING if X.dtype == np.float64 else _SINGLE_ROUNDING
    lengths = np.sqrt(np.asarray(squares, dtype=np.float64)).ravel() * (1 + rounding)
    factor = np.minimum(1.0, max_row_norm / np.maximum(lengths, max_row_norm)).astype(X.dtype)
    if sparse:
        values = X.data * np.repeat(factor, np.diff(X.indptr))
        return type(X)((values, X.indices, X.indptr), shape=X.shape)
    return X * factor[:, None]
