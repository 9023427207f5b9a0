"""Margins of rows for predictions: one product for all outputs. No query reads them."""

import math
from typing import Any

import numpy as np

from hushfit._typing import Matrix
from hushfit.data.rows._persons import places
from hushfit.data.rows._source import FeatureBounds, canonical
from hushfit.kernels import rows as row_kernels
from hushfit.kernels.threads import one_blas_thread, parallel_map

# Rows whose lengths are computed while they are in the cache after the product: a number of cells,
# but enough rows for a product.
_CELLS_AT_ONCE, _FEWEST_ROWS = 2**18, 2_048


def record_margins(
    X: Any,
    weights: Matrix,
    fit_intercept: bool,
    bounds: FeatureBounds | None = None,
    least: float = 0.0,
) -> Matrix:
    """Inner products of records with several vectors.

    Parameters
    ----------
    X : array or CSR matrix
        Rows, which are scaled to length one as in training.
    weights : array of shape (outputs, columns + 1)
        The weight of the intercept is last.
    fit_intercept : bool
    bounds : FeatureBounds or None
        Applied to the rows first.
    least : float, default=0.0
        Public length by which shorter records are divided.

    Returns
    -------
    array of shape (rows, outputs)
        0 for a record that counts as the zero record.
    """
    sparse, unit = hasattr(X, "indptr"), float(fit_intercept)
    X, most = canonical(X) if sparse else X, 1.0 / least if least else math.inf
    weights = np.ascontiguousarray(weights)
    columns, constants = np.ascontiguousarray(weights[:, :-1].T), unit * weights[:, -1]
    margins = np.empty((X.shape[0], len(weights)))

    def fill(place: slice) -> None:
        given = X[place] if sparse else np.ascontiguousarray(X[place])
        rows: Any = given if bounds is None else bounds.apply_any(given)
        own = margins[place]
        if not sparse and len(weights) == 1:
            row_kernels.unit_margins_dense(rows, unit, most, weights[0], own)
            return
        with np.errstate(invalid="ignore", over="ignore"):  # of rows that count as zero
            own[:] = rows @ columns
        own += constants
        if sparse:
            row_kernels.divide_by_lengths_csr(rows.data, rows.indptr, unit, most, own)
        else:
            row_kernels.divide_by_lengths_dense(rows, unit, most, own)

    pieces = places(X.shape[0], max(_CELLS_AT_ONCE // max(X.shape[1], 1), _FEWEST_ROWS))
    if len(pieces) == 1:
        fill(pieces[0])
        return margins
    with one_blas_thread():
        list(parallel_map(fill, pieces))
    return margins
