"""Fused passes over the rows for line searches: the decrease of each record's loss at every
candidate, in one pass.

The rules of ``kernels/gradient.py`` hold here as well: sums are exact on a grid, and the
contribution of a record does not depend on other records. Candidates are linear combinations of a
few vectors (a line needs two), so a row is multiplied with those vectors only. The first
combination is the point that the others are compared with.
"""

import math

import numpy as np

from hushfit.kernels._compile import compiled
from hushfit.kernels.codes import (
    HUBER_HINGE,
    LOGISTIC,
    POISSON,
    SATURATING_SQUARES,
    SOFTMAX,
    SQUARED,
    UNKNOWN,
)
from hushfit.kernels.gradient import _STRICT, ROUNDER, _count, _dot, _dot_sparse, _own, _pick


@compiled(**_STRICT)
def _value(code, parameter, t, y):
    """The pointwise loss named by ``code``."""
    if code == LOGISTIC:
        return max(0.0, -y * t) + math.log1p(math.exp(-abs(t)))
    if code == HUBER_HINGE:
        short = 1.0 + parameter - y * t
        bent = min(2.0 * parameter, max(0.0, short))
        return bent * bent / (4.0 * parameter) + max(0.0, short - 2.0 * parameter)
    if code == SQUARED:
        miss = abs(t - y)
        near = min(miss, parameter)
        return 0.5 * near * near + parameter * (miss - near)
    if code == POISSON:
        top = math.log(parameter)
        rate = math.exp(min(t, top)) + parameter * max(0.0, t - top)
        count = min(parameter, max(0.0, y))
        rest = count * math.log(count) - count if count > 0.0 else 0.0
        return max(0.0, rate - count * t + rest)
    if code == SATURATING_SQUARES:
        inside = min(parameter, max(-parameter, t))
        miss = inside - min(parameter, max(-parameter, y))
        return 0.5 * miss * miss + miss * (t - inside)
    raise NotImplementedError(UNKNOWN)


@compiled(**_STRICT)
def _value_of_outputs(code, parameter, t, label):
    """The loss of several outputs."""
    if code == SOFTMAX:
        top = t.max()
        mass = 0.0
        for o in range(t.shape[0]):
            mass += math.exp(t[o] - top)
        return top + math.log(mass) - t[label]
    total = 0.0
    for o in range(t.shape[0]):
        total += _value(code, parameter, t[o], 1.0 if o == label else -1.0)
    return total


@compiled(**_STRICT)
def _clipped(drop, bound):
    """Clip a decrease to the bound; 0 if the margins of the record overflow, so that it is not a
    number.
    """
    return min(bound, max(-bound, drop)) if drop == drop else 0.0


@compiled(**_STRICT)
def _add_drops(code, parameter, margins, mixes, y, share, bounds, total):
    """Add the decreases of one record with one output: ``margins`` are its products with the
    vectors that ``mixes`` combines.
    """
    start = 0.0
    for k in range(mixes.shape[0]):
        t = 0.0
        for b in range(margins.shape[0]):
            t += mixes[k, b] * margins[b]
        value = _value(code, parameter, t, y)
        if k == 0:
            start = value
        else:
            total[k - 1] += share * _clipped(start - value, bounds[k - 1])


@compiled(**_STRICT)
def _add_drops_of_outputs(code, parameter, margins, mixes, label, share, bounds, t, total):
    """Like ``_add_drops`` for a loss with several outputs."""
    start = 0.0
    for k in range(mixes.shape[0]):
        for o in range(t.shape[0]):
            t[o] = 0.0
            for b in range(margins.shape[0]):
                t[o] += mixes[k, b] * margins[b, o]
        value = _value_of_outputs(code, parameter, t, label)
        if k == 0:
            start = value
        else:
            total[k - 1] += share * _clipped(start - value, bounds[k - 1])


@compiled(**_STRICT)
def scalar_dense(
    X, rows, y, scale, shares, unit, vectors, mixes, bounds, code, parameter, grids, total
):
    """Write into ``total`` the sums, over ``rows`` or over all if empty, of clipped decreases from
    the first mix to each other one.

    ``vectors`` is (vectors, columns + 1), ``mixes`` (1 + candidates, vectors); the rest has one
    entry for each candidate.
    """
    last = X.shape[1]
    margins = np.empty(vectors.shape[0])
    total[:] = ROUNDER * grids
    for k in range(_count(X.shape[0], rows)):
        i = _pick(rows, k)
        if scale[i] == 0.0:
            continue
        for b in range(vectors.shape[0]):
            margins[b] = scale[i] * (_dot(X, i, vectors[b]) + unit * vectors[b, last])
        _add_drops(code, parameter, margins, mixes, y[i], _own(shares, i), bounds, total)
    total -= ROUNDER * grids


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
    vectors,
    mixes,
    bounds,
    code,
    parameter,
    total,
):
    """Add what ``scalar_csr`` sums up, in steps of grids that ``total`` starts at."""
    last = vectors.shape[1] - 1
    margins = np.empty(vectors.shape[0])
    for k in range(_count(indptr.shape[0] - 1, rows)):
        i = _pick(rows, k)
        if scale[i] == 0.0:
            continue
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        for b in range(vectors.shape[0]):
            margins[b] = scale[i] * (
                _dot_sparse(data, indices, start, stop, vectors[b]) + unit * vectors[b, last]
            )
        _add_drops(code, parameter, margins, mixes, y[i], _own(shares, i), bounds, total)


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
    vectors,
    mixes,
    bounds,
    code,
    parameter,
    grids,
    total,
):
    """As ``scalar_dense`` for rows in compressed sparse form."""
    total[:] = ROUNDER * grids
    add_scalar_csr(
        data,
        indices,
        indptr,
        rows,
        y,
        scale,
        shares,
        unit,
        vectors,
        mixes,
        bounds,
        code,
        parameter,
        total,
    )
    total -= ROUNDER * grids


@compiled(**_STRICT)
def vector_dense(
    X, rows, y, scale, shares, unit, vectors, mixes, bounds, code, parameter, grids, total
):
    """As ``scalar_dense`` for a loss with several outputs: ``vectors`` is (vectors, outputs,
    columns + 1).
    """
    outputs, last = vectors.shape[1], X.shape[1]
    margins, t = np.empty(vectors.shape[:2]), np.empty(outputs)
    total[:] = ROUNDER * grids
    for k in range(_count(X.shape[0], rows)):
        i = _pick(rows, k)
        if scale[i] == 0.0:
            continue
        for b in range(vectors.shape[0]):
            for o in range(outputs):
                margins[b, o] = scale[i] * (_dot(X, i, vectors[b, o]) + unit * vectors[b, o, last])
        _add_drops_of_outputs(
            code, parameter, margins, mixes, int(y[i]), _own(shares, i), bounds, t, total
        )
    total -= ROUNDER * grids


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
    vectors,
    mixes,
    bounds,
    code,
    parameter,
    total,
):
    """Add what ``vector_csr`` sums up, in steps of grids that ``total`` starts at."""
    outputs, last = vectors.shape[1], vectors.shape[2] - 1
    margins, t = np.empty(vectors.shape[:2]), np.empty(outputs)
    for k in range(_count(indptr.shape[0] - 1, rows)):
        i = _pick(rows, k)
        if scale[i] == 0.0:
            continue
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        for b in range(vectors.shape[0]):
            for o in range(outputs):
                product = _dot_sparse(data, indices, start, stop, vectors[b, o])
                margins[b, o] = scale[i] * (product + unit * vectors[b, o, last])
        _add_drops_of_outputs(
            code, parameter, margins, mixes, int(y[i]), _own(shares, i), bounds, t, total
        )


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
    vectors,
    mixes,
    bounds,
    code,
    parameter,
    grids,
    total,
):
    """As ``vector_dense`` for rows in compressed sparse form."""
    total[:] = ROUNDER * grids
    add_vector_csr(
        data,
        indices,
        indptr,
        rows,
        y,
        scale,
        shares,
        unit,
        vectors,
        mixes,
        bounds,
        code,
        parameter,
        total,
    )
    total -= ROUNDER * grids
