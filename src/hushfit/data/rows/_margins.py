"""Margins of rows for predictions. No query reads them.

A margin depends on its row alone, to the last bit, so that scores of private rows do too.
"""

import math
from typing import Any

import numpy as np

from hushfit._typing import Matrix
from hushfit.data.rows._bounds import FeatureBounds
from hushfit.data.rows._csr import canonical
from hushfit.data.rows._persons import places
from hushfit.kernels import rows as row_kernels
from hushfit.kernels.threads import parallel_map

# Rows of one task: a number of cells, but not too few rows.
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
        if sparse:
            with np.errstate(invalid="ignore", over="ignore"):  # of rows that count as zero
                own[:] = rows @ columns
            own += constants
            row_kernels.divide_by_lengths_csr(rows.data, rows.indptr, unit, most, own)
        elif len(weights) == 1:
            row_kernels.unit_margins_dense(rows, unit, most, weights[0], own)
        else:
            row_kernels.several_unit_margins_dense(rows, unit, most, weights, own)

    pieces = places(X.shape[0], max(_CELLS_AT_ONCE // max(X.shape[1], 1), _FEWEST_ROWS))
    if len(pieces) == 1:
        fill(pieces[0])
        return margins
    list(parallel_map(fill, pieces))
    return margins
