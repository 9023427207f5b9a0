"""Fused pass over records with bounded entries: score, curvature and outer product of the score of
each record, in a public metric.

Sums are exact on a grid as in ``gradient.py``, whose rules hold here too. ``scale`` is 1, or 0 for
the zero record, whose values are never read. ``unit`` is the entry of the intercept.

A record z has the image t = z A, the weight a = min(1, 1/|t|^2), a residual r in [-1, 1] and a
curvature c in [0, 1]. It contributes a r t, then the upper triangles of b a c t t' and of
e (a r)^2 t t', row by row.
"""

import math

import numpy as np

from hushfit.kernels._compile import compiled
from hushfit.kernels.codes import LOGISTIC, POISSON, SQUARED, UNKNOWN
from hushfit.kernels.gradient import ROUNDER, _own, _slope

_STRICT = {"nogil": True, "error_model": "numpy"}


def size(p: int) -> int:
    """Number of entries of the sums, for images of p entries: a vector and two triangles."""
    return p + p * (p + 1)


@compiled(**_STRICT)
def clipped_count_mean(most, rate):
    """Mean of min(Y, most) and rate times the probability of Y < most, Y Poisson of that rate, both
    divided by ``most``, a whole number.
    """
    term, below, mean = math.exp(-rate), 0.0, 0.0
    for k in range(int(most)):
        below += term
        mean += 1.0 - below
        term *= rate / (k + 1)
    return min(1.0, max(0.0, mean / most)), min(1.0, max(0.0, rate * below / most))


@compiled(**_STRICT)
def _residual(code, parameter, margin, y):
    """Residual and curvature of a record, both in units of the largest residual."""
    if code == LOGISTIC:
        r = _slope(code, parameter, margin, 1.0 if y > 0.0 else -1.0)
        return r, abs(r) * (1.0 - abs(r))
    if code == SQUARED:
        return min(1.0, max(-1.0, (margin - y) / parameter)), 1.0
    if code == POISSON:
        mean, curvature = clipped_count_mean(
            parameter, math.exp(min(margin, math.log(parameter) + 1.0))
        )
        return mean - min(1.0, max(0.0, y / parameter)), curvature
    raise NotImplementedError(UNKNOWN)


@compiled(**_STRICT)
def _margin(X, i, unit, w):
    """Margin of a row, in one order: all loops must compute the same residual of it."""
    total = unit * w[X.shape[1]]
    for j in range(X.shape[1]):
        total += np.float64(X[i, j]) * w[j]
    return total


@compiled(**_STRICT)
def _margin_sparse(data, indices, start, stop, unit, w):
    """As ``_margin`` for a row in compressed sparse form."""
    total = unit * w[w.shape[0] - 1]
    for p in range(start, stop):
        total += np.float64(data[p]) * w[np.uint64(indices[p])]
    return total


@compiled(**_STRICT)
def _weight(t):
    """min(1, 1/|t|^2)"""
    square = 0.0
    for j in range(t.shape[0]):
        square += t[j] * t[j]
    return 1.0 if square <= 1.0 else 1.0 / square


@compiled(**_STRICT)
def _add_record(t, r, c, share, b, e, total):
    """Add what one record contributes, t its image."""
    p = t.shape[0]
    a = _weight(t)
    score = a * r
    along = share * score
    for j in range(p):
        total[j] += along * t[j]
    bent, spread = share * (b * (a * c)), share * (e * (score * score))
    half = p * (p + 1) // 2
    start = p
    for j in range(p):
        # Loops over slices that start at zero are compiled for several entries at a time.
        h, s, rest, width = bent * t[j], spread * t[j], t[j:], p - j
        bents, spreads = total[start:], total[start + half :]
        for k in range(width):
            bents[k] += h * rest[k]
        for k in range(width):
            spreads[k] += s * rest[k]
        start += width


@compiled(**_STRICT)
def _image(X, i, unit, A, t):
    """Write the image of a row."""
    width = X.shape[1]
    for k in range(t.shape[0]):
        t[k] = unit * A[width, k]
    for j in range(width):
        x = np.float64(X[i, j])
        for k in range(t.shape[0]):
            t[k] += x * A[j, k]


@compiled(**_STRICT)
def _image_sparse(data, indices, start, stop, unit, A, t):
    """As ``_image`` for a row in compressed sparse form."""
    for k in range(t.shape[0]):
        t[k] = unit * A[A.shape[0] - 1, k]
    for p in range(start, stop):
        x, j = np.float64(data[p]), np.uint64(indices[p])
        for k in range(t.shape[0]):
            t[k] += x * A[j, k]


@compiled(**_STRICT)
def scores_dense(X, y, scale, shares, unit, w, A, code, parameter, b, e, grid, total):
    """Write the sums over all rows. ``w`` and ``A`` have an entry, and a row, more than X has
    columns, for the intercept.
    """
    t = np.empty(A.shape[1])
    total[:] = ROUNDER * grid
    for i in range(X.shape[0]):
        if scale[i] == 0.0 or not math.isfinite(y[i]):
            continue
        _image(X, i, unit, A, t)
        margin = _margin(X, i, unit, w)
        r, c = _residual(code, parameter, margin, y[i])
        _add_record(t, r, c, _own(shares, i), b, e, total)
    total -= ROUNDER * grid


@compiled(**_STRICT)
def scores_csr(
    data, indices, indptr, y, scale, shares, unit, w, A, code, parameter, b, e, grid, total
):
    """As ``scores_dense`` for rows in compressed sparse form."""
    t = np.empty(A.shape[1])
    total[:] = ROUNDER * grid
    for i in range(indptr.shape[0] - 1):
        if scale[i] == 0.0 or not math.isfinite(y[i]):
            continue
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        _image_sparse(data, indices, start, stop, unit, A, t)
        margin = _margin_sparse(data, indices, start, stop, unit, w)
        r, c = _residual(code, parameter, margin, y[i])
        _add_record(t, r, c, _own(shares, i), b, e, total)
    total -= ROUNDER * grid


@compiled(**_STRICT)
def row_scores_dense(X, y, scale, shares, unit, w, A, code, parameter, scores):
    """Write the score of every row, times its share."""
    for i in range(X.shape[0]):
        scores[i] = 0.0
        if scale[i] == 0.0 or not math.isfinite(y[i]):
            continue
        _image(X, i, unit, A, scores[i])
        margin = _margin(X, i, unit, w)
        r, _ = _residual(code, parameter, margin, y[i])
        scores[i] *= _own(shares, i) * (_weight(scores[i]) * r)


@compiled(**_STRICT)
def row_scores_csr(data, indices, indptr, y, scale, shares, unit, w, A, code, parameter, scores):
    """As ``row_scores_dense`` for rows in compressed sparse form."""
    for i in range(indptr.shape[0] - 1):
        scores[i] = 0.0
        if scale[i] == 0.0 or not math.isfinite(y[i]):
            continue
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        _image_sparse(data, indices, start, stop, unit, A, scores[i])
        margin = _margin_sparse(data, indices, start, stop, unit, w)
        r, _ = _residual(code, parameter, margin, y[i])
        scores[i] *= _own(shares, i) * (_weight(scores[i]) * r)


@compiled(**_STRICT)
def add_to_persons(codes, scores, totals):
    """Add the scores of rows to those of their persons; ``totals`` starts at ``ROUNDER`` grid
    steps.
    """
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            totals[codes[i], j] += scores[i, j]


@compiled(**_STRICT)
def outer_products(vectors, e, grid, total):
    """Write the upper triangle of the sum of the outer products of vectors, times e, where
    ``scores_dense`` has those of scores.
    """
    p = vectors.shape[1]
    half = p * (p + 1) // 2
    total[p + half :] = ROUNDER * grid
    for i in range(vectors.shape[0]):
        at = p + half
        for j in range(p):
            s = e * vectors[i, j]
            for k in range(j, p):
                total[at] += s * vectors[i, k]
                at += 1
    total[p + half :] -= ROUNDER * grid
