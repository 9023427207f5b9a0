"""Fused passes over the rows for differences of gradients: two margins, two slopes, their clipped
difference, accumulation.

The rules of ``kernels/gradient.py`` hold here as well: sums are exact on a grid, and the
contribution of a record does not depend on other records. Both margins of every row come from the
same call site. A loss without a branch in ``_slope`` raises.
"""

import math

import numpy as np

from hushfit.kernels._compile import compiled, inlined
from hushfit.kernels._prefetch import prefetch
from hushfit.kernels.gradient import (
    _ANY_ORDER,
    _CHUNK,
    _LINE,
    _STRICT,
    ROUNDER,
    _add,
    _add_chunk,
    _add_sparse,
    _count,
    _dot,
    _dot_sparse,
    _own,
    _pick,
    _slope,
    _weigh_outputs,
)


@compiled(**_ANY_ORDER)
def _two_dots(X, i, w, v):
    """Inner products of a row with two vectors, reading the row once."""
    first, second = 0.0, 0.0
    for j in range(X.shape[1]):
        first += X[i, j] * w[j]
        second += X[i, j] * v[j]
    return first, second


@compiled(**_ANY_ORDER)
def _two_dots_sparse(data, indices, start, stop, w, v):
    first, second = 0.0, 0.0
    for p in range(start, stop):
        column = np.uint64(indices[p])
        first += data[p] * w[column]
        second += data[p] * v[column]
    return first, second


@inlined
def _weight(code, parameter, margin, other, y, scale, cap, bound):
    """Factor of the raw row: the difference of two capped slopes, itself capped."""
    here = min(cap, max(-cap, _slope(code, parameter, scale * margin, y)))
    there = min(cap, max(-cap, _slope(code, parameter, scale * other, y)))
    return scale * min(bound, max(-bound, here - there))


@compiled(**_STRICT)
def scalar_dense(X, rows, y, scale, shares, unit, w, v, cap, bound, code, parameter, grid, total):
    """Write the sum, over ``rows`` or over all if empty, of clipped gradients at ``w`` minus those
    at ``v`` into ``total``.

    ``w``, ``v`` and ``total`` have one entry more than X has columns: the intercept. ``cap`` bounds
    each slope and ``bound`` their difference.
    """
    width = X.shape[1]
    chosen = np.empty(_CHUNK, np.int64)
    weights = np.empty(_CHUNK)
    total[:] = ROUNDER * grid
    count = _count(X.shape[0], rows)
    k = 0
    while k < count:
        filled = 0
        stop = min(k + _CHUNK, count)
        for q in range(k, stop):
            if q + _CHUNK < count:  # prefetch the row at the same position of the next chunk
                start = _pick(rows, q + _CHUNK) * width
                for element in range(start, start + width, _LINE):
                    prefetch(X, element)
            i = _pick(rows, q)
            if scale[i] != 0.0:
                margin, other = _two_dots(X, i, w, v)
                margin += unit * w[width]
                other += unit * v[width]
                chosen[filled] = i
                weights[filled] = _own(shares, i) * _weight(
                    code, parameter, margin, other, y[i], scale[i], cap, bound
                )
                filled += 1
        _add_chunk(X, chosen, weights, filled, unit, total)
        k = stop
    total -= ROUNDER * grid


@compiled(**_STRICT)
def add_scalar_csr(
    data,
    indices,
    indptr,
    rows,
    y,
    scale,
    shares,
    unit,
    w,
    v,
    cap,
    bound,
    code,
    parameter,
    total,
):
    """Add what ``scalar_csr`` sums up, in steps of a grid that ``total`` starts at."""
    last = w.shape[0] - 1
    for k in range(_count(indptr.shape[0] - 1, rows)):
        i = _pick(rows, k)
        if scale[i] == 0.0:
            continue
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        margin, other = _two_dots_sparse(data, indices, start, stop, w, v)
        margin += unit * w[last]
        other += unit * v[last]
        weight = _own(shares, i) * _weight(
            code, parameter, margin, other, y[i], scale[i], cap, bound
        )
        _add_sparse(data, indices, start, stop, weight, unit, total)


@compiled(**_STRICT)
def scalar_csr(
    data,
    indices,
    indptr,
    rows,
    y,
    scale,
    shares,
    unit,
    w,
    v,
    cap,
    bound,
    code,
    parameter,
    grid,
    total,
):
    """As ``scalar_dense`` for rows in compressed sparse form."""
    total[:] = ROUNDER * grid
    add_scalar_csr(
        data,
        indices,
        indptr,
        rows,
        y,
        scale,
        shares,
        unit,
        w,
        v,
        cap,
        bound,
        code,
        parameter,
        total,
    )
    total -= ROUNDER * grid


@inlined
def _subtract_outputs(code, parameter, t, other, label, scale, cap, bound):
    """Replace one row's margins ``t`` by the clipped difference of its factors at two points."""
    _weigh_outputs(code, parameter, t, label, scale, cap)
    _weigh_outputs(code, parameter, other, label, scale, cap)
    square = 0.0
    for o in range(t.shape[0]):
        t[o] -= other[o]
        square += t[o] * t[o]
    longest, length = scale * bound, math.sqrt(square)
    if length > longest:
        for o in range(t.shape[0]):
            t[o] *= longest / length


@compiled(**_STRICT)
def vector_dense(X, rows, y, scale, shares, unit, w, v, cap, bound, code, parameter, grid, total):
    """As ``scalar_dense`` for a loss with several outputs: ``w``, ``v`` and ``total`` are
    (outputs, columns + 1).
    """
    outputs, last = w.shape[0], w.shape[1] - 1
    t, other = np.empty(outputs), np.empty(outputs)
    total[:] = ROUNDER * grid
    for k in range(_count(X.shape[0], rows)):
        i = _pick(rows, k)
        if scale[i] == 0.0:
            continue
        for o in range(outputs):
            t[o] = _dot(X, i, w[o]) + unit * w[o, last]
            other[o] = _dot(X, i, v[o]) + unit * v[o, last]
        _subtract_outputs(code, parameter, t, other, int(y[i]), scale[i], cap, bound)
        for o in range(outputs):
            _add(X, i, _own(shares, i) * t[o], unit, total[o])
    total -= ROUNDER * grid


@compiled(**_STRICT)
def add_vector_csr(
    data,
    indices,
    indptr,
    rows,
    y,
    scale,
    shares,
    unit,
    w,
    v,
    cap,
    bound,
    code,
    parameter,
    total,
):
    """Add what ``vector_csr`` sums up, in steps of a grid that ``total`` starts at."""
    outputs, last = w.shape[0], w.shape[1] - 1
    t, other = np.empty(outputs), np.empty(outputs)
    for k in range(_count(indptr.shape[0] - 1, rows)):
        i = _pick(rows, k)
        if scale[i] == 0.0:
            continue
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        for o in range(outputs):
            t[o] = _dot_sparse(data, indices, start, stop, w[o]) + unit * w[o, last]
            other[o] = _dot_sparse(data, indices, start, stop, v[o]) + unit * v[o, last]
        _subtract_outputs(code, parameter, t, other, int(y[i]), scale[i], cap, bound)
        for o in range(outputs):
            _add_sparse(data, indices, start, stop, _own(shares, i) * t[o], unit, total[o])


@compiled(**_STRICT)
def vector_csr(
    data,
    indices,
    indptr,
    rows,
    y,
    scale,
    shares,
    unit,
    w,
    v,
    cap,
    bound,
    code,
    parameter,
    grid,
    total,
):
    """As ``vector_dense`` for rows in compressed sparse form."""
    total[:] = ROUNDER * grid
    add_vector_csr(
        data,
        indices,
        indptr,
        rows,
        y,
        scale,
        shares,
        unit,
        w,
        v,
        cap,
        bound,
        code,
        parameter,
        total,
    )
    total -= ROUNDER * grid
