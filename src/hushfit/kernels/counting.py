"""Fused passes over records with bounded entries: clipped gradients with the weight of those that
were clipped, sums of squares and entries, and sums of a few numbers of each record.

Sums are exact on a grid as in ``gradient.py``, whose rules hold here too. ``scale`` is 1, or 0 for
the zero record, whose values are never read. ``unit`` is the entry of the intercept.
"""

import numpy as np

from hushfit.kernels._compile import compiled
from hushfit.kernels._prefetch import prefetch
from hushfit.kernels.gradient import (
    _CHUNK,
    _LINE,
    ROUNDER,
    _add_chunk,
    _add_sparse,
    _dot,
    _dot_sparse,
    _own,
    _slope,
)

_STRICT = {"nogil": True, "error_model": "numpy"}


@compiled(**_STRICT)
def counted_dense(X, y, scale, shares, inverse, clip, bound, unit, w, code, parameter, grid, total):
    """Write the sum of the clipped gradients of all rows, then the weight of the clipped rows.

    A slope is clipped to ``clip`` times the inverse length of its row, and to ``bound``.

    ``w`` has one entry more than X has columns, for the intercept, and ``total`` one more than
    ``w``.
    """
    width = X.shape[1]
    intercept = unit * w[width]
    chosen = np.empty(_CHUNK, np.int64)
    weights = np.empty(_CHUNK)
    total[:] = ROUNDER * grid
    sums = total[: width + 1]
    count = X.shape[0]
    k = 0
    while k < count:
        filled = 0
        stop = min(k + _CHUNK, count)
        for i in range(k, stop):
            if i + _CHUNK < count:
                start = (i + _CHUNK) * width
                for element in range(start, start + width, _LINE):
                    prefetch(X, element)
            if scale[i] != 0.0:
                slope = _slope(code, parameter, _dot(X, i, w) + intercept, y[i])
                cap, share = min(clip * inverse[i], bound), _own(shares, i)
                if abs(slope) > cap:
                    total[width + 1] += share
                chosen[filled] = i
                weights[filled] = share * min(cap, max(-cap, slope))
                filled += 1
        _add_chunk(X, chosen, weights, filled, unit, sums)
        k = stop
    total -= ROUNDER * grid


@compiled(**_STRICT)
def counted_csr(
    data,
    indices,
    indptr,
    y,
    scale,
    shares,
    inverse,
    clip,
    bound,
    unit,
    w,
    code,
    parameter,
    grid,
    total,
):
    """As ``counted_dense`` for rows in compressed sparse form."""
    last = w.shape[0] - 1
    intercept = unit * w[last]
    total[:] = ROUNDER * grid
    sums = total[: last + 1]
    for i in range(indptr.shape[0] - 1):
        if scale[i] == 0.0:
            continue
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        margin = _dot_sparse(data, indices, start, stop, w) + intercept
        slope = _slope(code, parameter, margin, y[i])
        cap, share = min(clip * inverse[i], bound), _own(shares, i)
        if abs(slope) > cap:
            total[last + 1] += share
        weight = share * min(cap, max(-cap, slope))
        _add_sparse(data, indices, start, stop, weight, unit, sums)
    total -= ROUNDER * grid


@compiled(**_STRICT)
def rounded_totals(values, shares, grid, totals):
    """Write the weighted sum of each row of ``values``, one column for each record, every product
    rounded to a multiple of ``grid``; nan counts as zero.
    """
    for k in range(values.shape[0]):
        steps = 0.0
        for i in range(values.shape[1]):
            step = np.rint(values[k, i] * (_own(shares, i) / grid))
            steps += step if step == step else 0.0
        totals[k] = steps * grid


@compiled(**_STRICT)
def moments_dense(X, scale, shares, factors, grids, totals):
    """Write the sums of the squares (first row) and of the entries (second row) of the features
    times ``factors``.
    """
    totals[0, :] = ROUNDER * grids[0]
    totals[1, :] = ROUNDER * grids[1]
    for i in range(X.shape[0]):
        if scale[i] == 0.0:
            continue
        share = _own(shares, i)
        for j in range(X.shape[1]):
            entry = factors[i] * np.float64(X[i, j])
            totals[0, j] += share * (entry * entry)
            totals[1, j] += share * entry
    totals[0, :] -= ROUNDER * grids[0]
    totals[1, :] -= ROUNDER * grids[1]


@compiled(**_STRICT)
def moments_csr(data, indices, indptr, scale, shares, factors, grids, totals):
    """As ``moments_dense`` for rows in compressed sparse form."""
    totals[0, :] = ROUNDER * grids[0]
    totals[1, :] = ROUNDER * grids[1]
    for i in range(indptr.shape[0] - 1):
        if scale[i] == 0.0:
            continue
        share = _own(shares, i)
        for p in range(indptr[i], indptr[i + 1]):
            entry = factors[i] * np.float64(data[p])
            totals[0, indices[p]] += share * (entry * entry)
            totals[1, indices[p]] += share * entry
    totals[0, :] -= ROUNDER * grids[0]
    totals[1, :] -= ROUNDER * grids[1]
