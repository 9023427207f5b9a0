"""Fused passes over the rows: margin, slope, clip and accumulation while a row is still in the
cache.

Accumulators start at ``ROUNDER * grid``, where neighbouring floats are exactly ``grid`` apart, so
that adding a contribution rounds it to a multiple of ``grid`` and the sum itself is exact. Sums
over two neighbouring tables therefore differ by one record's contribution and a few grid steps per
coordinate, for every floating-point unit (docs/proofs/gradient.md, lemma 1).

Two rules guarantee that. The contribution of a record must not depend on other records: every
margin comes from the same machine code (one call site), and accumulation is plain IEEE
multiply-then-add in the order of the rows, so that the grouping of rows does not matter. Only the
dot product may be reassociated or contracted.

A record is ``scale * [x, unit]``: ``unit`` is 1 with an intercept and 0 without; ``scale`` makes it
a unit vector, or is 0 for a record that counts as the zero record (its values, which may be nan,
are then never read).
"""

import math
from typing import Any

import numpy as np

from hushfit.kernels._compile import compiled, inlined
from hushfit.kernels._prefetch import prefetch
from hushfit.kernels.codes import (
    HUBER_HINGE,
    LOGISTIC,
    ONE,
    POISSON,
    SATURATING_SQUARES,
    SOFTMAX,
    SQUARED,
    UNKNOWN,
)

# In [2**52, 2**53) neighbouring floats are 1 apart; starting in the middle leaves 2**51 units in
# both directions.
ROUNDER = 1.5 * 2.0**52
HEADROOM = 2.0**51

# rows whose margins are computed before any of them is added: small enough for the first-level
# cache
_CHUNK = 16
_LINE = 8  # float64 values in a cache line

_STRICT = {"nogil": True, "error_model": "numpy"}
_ANY_ORDER = {**_STRICT, "fastmath": {"contract", "reassoc", "nsz"}}


@inlined
def _slope(code, parameter, t, y):
    """Slope dl/dt of the pointwise loss named by ``code``."""
    if code == LOGISTIC:
        # exp(-|t|) cannot overflow; choosing the numerator afterwards needs no branch
        e = math.exp(-abs(t))
        return -y * ((e if y * t >= 0.0 else 1.0) / (1.0 + e))
    if code == HUBER_HINGE:
        return -y * min(1.0, max(0.0, (1.0 + parameter - y * t) / (2.0 * parameter)))
    if code == SQUARED:
        return min(parameter, max(-parameter, t - y))
    if code == POISSON:
        return min(parameter, math.exp(t)) - min(parameter, max(0.0, y))
    if code == SATURATING_SQUARES:
        return min(parameter, max(-parameter, t)) - min(parameter, max(-parameter, y))
    if code == ONE:
        return 1.0
    raise NotImplementedError(UNKNOWN)


@inlined
def _weight(code, parameter, margin, y, scale, cap):
    """Factor of the raw row in its clipped gradient, from the unscaled margin."""
    slope = _slope(code, parameter, scale * margin, y)
    return scale * min(cap, max(-cap, slope))


@inlined
def _count(n_rows, rows):
    return n_rows if rows.shape[0] == 0 else rows.shape[0]


@inlined
def _pick(rows, k):
    return k if rows.shape[0] == 0 else rows[k]


@inlined
def _own(values, i):
    """The entry of a row, of one value per row or one for all. No branch: the loops around it are
    equally fast with and without weights.
    """
    return values[min(np.uint64(i), np.uint64(values.shape[0] - 1))]


@compiled(**_ANY_ORDER)
def _dot(X, i, w):
    total = 0.0
    for j in range(X.shape[1]):
        total += X[i, j] * w[j]
    return total


@compiled(**_ANY_ORDER)
def _two_dots(X, i, v, w):
    """Inner products of a row with two vectors: each value is read and converted once for both."""
    one, other = 0.0, 0.0
    for j in range(X.shape[1]):
        one += X[i, j] * v[j]
        other += X[i, j] * w[j]
    return one, other


@compiled(**_ANY_ORDER)
def _dot_sparse(data, indices, start, stop, w):
    total = 0.0
    for p in range(start, stop):  # unsigned, to avoid tests for negative indices
        total += data[p] * w[np.uint64(indices[p])]
    return total


@inlined
def _add(X, i, weight, unit, total):
    last = X.shape[1]
    for j in range(last):
        total[j] += weight * X[i, j]
    total[last] += weight * unit


@inlined
def _add_sparse(data, indices, start, stop, weight, unit, total):
    """As ``_add`` for a row in compressed sparse form."""
    for p in range(start, stop):
        total[np.uint64(indices[p])] += weight * data[p]
    total[total.shape[0] - 1] += weight * unit


@inlined
def _add_chunk(X, chosen, weights, count, unit, total):
    """Add rows times their weights in their order, four with one pass over the accumulators. What
    is missing to a multiple of four is the last row with weight zero, which changes no bit.
    """
    last = X.shape[1]
    padded = count
    while padded % 4:
        chosen[padded], weights[padded] = chosen[count - 1], 0.0
        padded += 1
    for k in range(0, padded, 4):
        a, b, c, d = chosen[k], chosen[k + 1], chosen[k + 2], chosen[k + 3]
        e, f, g, h = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for j in range(last):
            total[j] = (((total[j] + e * X[a, j]) + f * X[b, j]) + g * X[c, j]) + h * X[d, j]
        total[last] = (((total[last] + e * unit) + f * unit) + g * unit) + h * unit


def scalar_dense(*problem: Any) -> None:
    """Write the sum of the clipped gradients of ``rows`` (of all rows if empty) into ``total``.

    Parameters
    ----------
    *problem
        X, rows, y, scale, shares, caps, unit, w, code, parameter, grid and total. ``w`` and
        ``total`` have one entry more than X has columns: the intercept. ``caps`` bounds |slope| and
        ``shares`` is the weight of a row, each per row or for all.
    """
    _scalar_dense(*problem, np.empty(_CHUNK, np.int64), np.empty(_CHUNK))


@compiled(**_STRICT)
def _scalar_dense(
    X, rows, y, scale, shares, caps, unit, w, code, parameter, grid, total, chosen, weights
):
    """The loop of ``scalar_dense``. It gets its arrays: a compiler that need not know how to make
    them is done sooner.
    """
    width = X.shape[1]
    intercept = unit * w[width]
    for j in range(width + 1):
        total[j] = ROUNDER * grid
    count = _count(X.shape[0], rows)
    k = 0
    while k < count:
        filled = np.int64(0)  # a literal 0 would compile the chunk's loop for it too
        stop = min(k + _CHUNK, count)
        for q in range(k, stop):
            if q + _CHUNK < count:  # prefetch the row at the same position of the next chunk
                start = _pick(rows, q + _CHUNK) * width
                for element in range(start, start + width, _LINE):
                    prefetch(X, element)
            i = _pick(rows, q)
            if scale[i] != 0.0:
                margin = _dot(X, i, w) + intercept
                chosen[filled] = i
                weights[filled] = _own(shares, i) * _weight(
                    code, parameter, margin, y[i], scale[i], _own(caps, i)
                )
                filled += 1
        _add_chunk(X, chosen, weights, filled, unit, total)
        k = stop
    for j in range(width + 1):
        total[j] -= ROUNDER * grid


@compiled(**_STRICT)
def scalar_csr(
    data, indices, indptr, rows, y, scale, shares, caps, unit, w, code, parameter, grid, total
):
    """As ``scalar_dense`` for rows in compressed sparse form."""
    last = w.shape[0] - 1
    intercept = unit * w[last]
    total[:] = ROUNDER * grid
    for k in range(_count(indptr.shape[0] - 1, rows)):
        i = _pick(rows, k)
        if scale[i] == 0.0:
            continue
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        margin = _dot_sparse(data, indices, start, stop, w) + intercept
        cap, share = _own(caps, i), _own(shares, i)
        weight = share * _weight(code, parameter, margin, y[i], scale[i], cap)
        _add_sparse(data, indices, start, stop, weight, unit, total)
    total -= ROUNDER * grid


@inlined
def _weigh_outputs(code, parameter, t, label, scale, cap):
    """Replace one row's unscaled margins ``t`` by its factors in each output's gradient, clipped as
    one vector.
    """
    if code == SOFTMAX:
        top = t.max()
        mass = 0.0
        for o in range(t.shape[0]):
            t[o] = math.exp(scale * (t[o] - top))
            mass += t[o]
        for o in range(t.shape[0]):
            t[o] /= mass
        t[label] -= 1.0
    else:
        for o in range(t.shape[0]):
            t[o] = _slope(code, parameter, scale * t[o], 1.0 if o == label else -1.0)
    square = 0.0
    for o in range(t.shape[0]):
        square += t[o] * t[o]
    length = math.sqrt(square)
    if not length < math.inf:  # the margins overflowed; a nan here would make the whole sum nan
        t[:] = 0.0
        return
    factor = scale * (cap / length) if length > cap else scale
    for o in range(t.shape[0]):
        t[o] *= factor


@inlined
def _margins(X, i, unit, w, t):
    """Write the unscaled margins of a row into ``t``. An output always takes the same machine code,
    so that a margin depends on its row alone.
    """
    outputs, last = w.shape[0], w.shape[1] - 1
    for o in range(0, outputs - 1, 2):
        t[o], t[o + 1] = _two_dots(X, i, w[o], w[o + 1])
    if outputs % 2:
        t[outputs - 1] = _dot(X, i, w[outputs - 1])
    for o in range(outputs):
        t[o] += unit * w[o, last]


@compiled(**_STRICT)
def vector_dense(X, rows, y, scale, shares, caps, unit, w, code, parameter, grid, total):
    """As ``scalar_dense`` for a loss with several outputs: ``w`` and ``total`` are (outputs,
    columns + 1).
    """
    outputs = w.shape[0]
    t = np.empty(outputs)
    chosen = np.empty(_CHUNK, np.int64)
    weights = np.empty((outputs, _CHUNK))
    total[:] = ROUNDER * grid
    count = _count(X.shape[0], rows)
    k = 0
    while k < count:
        filled = 0
        stop = min(k + _CHUNK, count)
        for q in range(k, stop):
            i = _pick(rows, q)
            if scale[i] != 0.0:
                _margins(X, i, unit, w, t)
                _weigh_outputs(code, parameter, t, int(y[i]), scale[i], _own(caps, i))
                chosen[filled] = i
                weights[:, filled] = _own(shares, i) * t
                filled += 1
        for o in range(outputs):
            _add_chunk(X, chosen, weights[o], filled, unit, total[o])
        k = stop
    total -= ROUNDER * grid


@compiled(**_STRICT)
def vector_csr(
    data, indices, indptr, rows, y, scale, shares, caps, unit, w, code, parameter, grid, total
):
    """As ``vector_dense`` for rows in compressed sparse form."""
    outputs, last = w.shape[0], w.shape[1] - 1
    t = np.empty(outputs)
    total[:] = ROUNDER * grid
    for k in range(_count(indptr.shape[0] - 1, rows)):
        i = _pick(rows, k)
        if scale[i] == 0.0:
            continue
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        for o in range(outputs):
            t[o] = _dot_sparse(data, indices, start, stop, w[o]) + unit * w[o, last]
        _weigh_outputs(code, parameter, t, int(y[i]), scale[i], _own(caps, i))
        for o in range(outputs):
            _add_sparse(data, indices, start, stop, _own(shares, i) * t[o], unit, total[o])
    total -= ROUNDER * grid
