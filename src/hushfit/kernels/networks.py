"""Sums in float64 of the float32 numbers of a network, without copies of these in float64."""

import numpy as np

from hushfit.kernels._compile import compiled

_STRICT = {"nogil": True, "error_model": "numpy"}
# The order of the terms of one row is free, and is the same for all rows of a length.
_ANY_ORDER = {**_STRICT, "fastmath": {"contract", "reassoc", "nsz"}}


@compiled(**_ANY_ORDER)
def row_squares(values):
    """Sum of the squares of each row of a matrix, in float64."""
    sums = np.empty(values.shape[0])
    for i in range(values.shape[0]):
        total = 0.0
        for j in range(values.shape[1]):
            value = np.float64(values[i, j])
            total += value * value
        sums[i] = total
    return sums


@compiled(**_STRICT)
def add_scaled(totals, values, factor):
    """Add float32 values times a factor to totals in float64, in place."""
    for i in range(totals.shape[0]):
        totals[i] += factor * np.float64(values[i])
