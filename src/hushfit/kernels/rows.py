"""Compiled loops over single rows: norms, margins, and the second moment of sparse rows."""

import math

import numpy as np

from hushfit._typing import IntVector, Matrix, Vector
from hushfit.kernels._compile import compiled, inlined
from hushfit.kernels.gradient import _ANY_ORDER, _dot, _margins

_OPTIONS = {"nogil": True, "error_model": "numpy"}

_SMALLEST_SQUARE = 1e-280
_ROWS_AT_ONCE, _SIDE_BY_SIDE = 8, 64
# Columns up to which it does not pay to leave zeros out.
_NARROW = 64


@inlined
def _inverse_length(square):
    """1 / norm; 0 for the empty record and for one with a value that is not a finite number."""
    # Squares of smaller entries underflow one by one, and the scaled record would have a norm above
    # one.
    if square > _SMALLEST_SQUARE and square < math.inf:
        return 1.0 / math.sqrt(square)
    return 0.0


def inverse_lengths(squares: Vector) -> Vector:
    """As ``_inverse_length`` for several squared norms."""
    usable = (squares > _SMALLEST_SQUARE) & (squares < math.inf)
    return np.where(usable, 1.0 / np.sqrt(np.where(usable, squares, 1.0)), 0.0)


@compiled(**_OPTIONS)
def unit_scales_dense(X, unit, scale):
    """Factors that make each record ``[x, unit]`` a unit vector."""
    for i in range(X.shape[0]):
        square = unit
        for j in range(X.shape[1]):
            square += np.float64(X[i, j]) * np.float64(X[i, j])
        scale[i] = _inverse_length(square)


@compiled(**_OPTIONS)
def is_canonical_csr(indices, indptr, n_features):
    """Whether every row has increasing indices within the columns: each column once."""
    for i in range(indptr.shape[0] - 1):
        before = -1
        for p in range(indptr[i], indptr[i + 1]):
            if indices[p] <= before or indices[p] >= n_features:
                return False
            before = indices[p]
    return True


@compiled(**_OPTIONS)
def unit_scales_csr(data, indptr, unit, scale):
    """As ``unit_scales_dense`` for rows in compressed sparse form."""
    for i in range(indptr.shape[0] - 1):
        square = unit
        for p in range(indptr[i], indptr[i + 1]):
            square += np.float64(data[p]) * np.float64(data[p])
        scale[i] = _inverse_length(square)


@compiled(**_OPTIONS)
def second_moment_csr(data, indices, indptr, scale, unit, steps, total):
    """Add the outer products of the records, each entry first rounded to a multiple of 1 /
    ``steps``, in units of steps^-2.
    """
    last = total.shape[0] - 1
    for i in range(indptr.shape[0] - 1):
        if scale[i] == 0.0:
            continue
        constant = np.rint(scale[i] * unit * steps)
        for p in range(indptr[i], indptr[i + 1]):
            a = np.rint(scale[i] * data[p] * steps)
            row = total[indices[p]]
            for q in range(indptr[i], indptr[i + 1]):
                row[indices[q]] += a * np.rint(scale[i] * data[q] * steps)
            row[last] += a * constant
            total[last, indices[p]] += a * constant
        total[last, last] += constant * constant


def lengths_dense(X: Matrix, scale: Vector, unit: float, A: Matrix, lengths: Vector) -> None:
    """Norm of ``A`` times each record. Every operation is IEEE multiply or add in the order of the
    columns, so that a norm does not depend on the position of its record; nor, in a single bit, on
    which of the two loops computes it.
    """
    width = A.shape[0]
    columns = np.zeros((width, width + 3))
    columns[:, :width] = A.T
    starts = np.argmax(columns != 0.0, axis=1)  # half as many products for a triangle
    k = 0
    if width > _NARROW:
        # One of the loops gets no rows: what is compiled, and kept on disk, must not depend on
        # them.
        k = len(X) if _mostly_zeros(X) else 0
        _lengths_one_by_one(X[:k], scale[:k], unit, A, stops_of(A), lengths[:k])
    rows = np.zeros((width + 3, _SIDE_BY_SIDE)), *np.empty((2, _SIDE_BY_SIDE))
    _lengths_side_by_side(X[k:], scale[k:], unit, columns, starts, *rows, lengths[k:])


def _mostly_zeros(X: Matrix) -> bool:
    """Whether more than half of the entries of the first rows are zero."""
    first = X[:_SIDE_BY_SIDE]
    return bool(2 * np.count_nonzero(first) < first.size)


def stops_of(A: Matrix) -> IntVector:
    """Number of entries of each row up to its last one that is not zero: half as many products for
    a triangle.
    """
    filled = A != 0.0
    return np.where(filled.any(axis=1), A.shape[1] - np.argmax(filled[:, ::-1], axis=1), 0)


@compiled(**_OPTIONS)
def _lengths_side_by_side(X, scale, unit, columns, starts, records, image, squares, lengths):
    """As `lengths_dense`, for rows with few zeros: each operation is one on some rows at once, even
    where fewer are left. What is missing to a multiple of four columns is zeros, which change no
    bit.
    """
    width, last = columns.shape[0], X.shape[1]
    for start in range(0, X.shape[0], _SIDE_BY_SIDE):
        count = min(_SIDE_BY_SIDE, X.shape[0] - start)
        for r in range(count):
            factor = scale[start + r]
            for j in range(last):
                records[j, r] = factor * X[start + r, j] if factor != 0.0 else 0.0
            records[last, r] = factor * unit
        for r in range(_SIDE_BY_SIDE):
            squares[r] = 0.0
        for j in range(width):
            for r in range(_SIDE_BY_SIDE):
                image[r] = 0.0
            for k in range(starts[j], width, 4):
                a, b, c, d = columns[j, k], columns[j, k + 1], columns[j, k + 2], columns[j, k + 3]
                for r in range(_SIDE_BY_SIDE):
                    half = (image[r] + a * records[k, r]) + b * records[k + 1, r]
                    image[r] = (half + c * records[k + 2, r]) + d * records[k + 3, r]
            for r in range(_SIDE_BY_SIDE):
                squares[r] += image[r] * image[r]
        for r in range(count):
            lengths[start + r] = math.sqrt(squares[r])


@compiled(**_OPTIONS)
def _lengths_one_by_one(X, scale, unit, A, stops, lengths):
    """As `lengths_dense`, for rows of which many entries are zeros: these are left out."""
    width = A.shape[0]
    grouped = width - width % 4
    image = np.empty((_ROWS_AT_ONCE, width))
    records = np.empty((_ROWS_AT_ONCE, width))
    for start in range(0, X.shape[0], _ROWS_AT_ONCE):
        count = min(_ROWS_AT_ONCE, X.shape[0] - start)
        image[:] = 0.0
        for r in range(count):
            _record(X, start + r, scale[start + r], unit, records[r])
        # Four columns at once load and store the image once, and zeros, which add nothing, are left
        # out. Neither changes a bit.
        for k in range(0, grouped, 4):
            stop = max(stops[k], stops[k + 1], stops[k + 2], stops[k + 3])
            for r in range(count):
                a, b, c, d = records[r, k], records[r, k + 1], records[r, k + 2], records[r, k + 3]
                if a == b == c == d == 0.0:
                    continue
                for j in range(stop):
                    two = (image[r, j] + a * A[k, j]) + b * A[k + 1, j]
                    image[r, j] = (two + c * A[k + 2, j]) + d * A[k + 3, j]
        for k in range(grouped, width):
            for r in range(count):
                entry = records[r, k]
                for j in range(stops[k]):
                    image[r, j] += entry * A[k, j]
        for r in range(count):
            square = 0.0
            for j in range(width):
                square += image[r, j] * image[r, j]
            lengths[start + r] = math.sqrt(square)


@inlined
def _record(X, i, scale, unit, record):
    """Write one record, with the entry of the intercept."""
    last = X.shape[1]
    if scale == 0.0:
        record[:] = 0.0
        return
    for j in range(last):
        record[j] = scale * X[i, j]
    record[last] = scale * unit


def rounded_records_dense(
    X: Matrix, scale: Vector, unit: float, steps: float, records: Matrix
) -> None:
    """Write the records in units of 1 / ``steps``, rounded to whole ones."""
    with np.errstate(invalid="ignore", over="ignore"):  # of rows that count as zero
        np.multiply(X, scale[:, None], out=records[:, :-1])
    np.multiply(scale, unit, out=records[:, -1])
    records[scale == 0.0] = 0.0
    records *= steps
    np.rint(records, out=records)


@compiled(**_OPTIONS)
def rounded_records_csr(data, indices, indptr, scale, unit, steps, records):
    """As ``rounded_records_dense`` for rows in compressed sparse form."""
    records[:] = 0.0
    last = records.shape[1] - 1
    for i in range(indptr.shape[0] - 1):
        if scale[i] == 0.0:
            continue
        for p in range(indptr[i], indptr[i + 1]):
            records[i, indices[p]] = np.rint(scale[i] * data[p] * steps)
        records[i, last] = np.rint(scale[i] * unit * steps)


@compiled(**_OPTIONS)
def signed_dense(X, low, high, origin, width, mapped):
    """Clip each column to its range, map it into [-1, 1] and write it; nan stays nan."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            value = np.float64(X[i, j])
            value = low[j] if value < low[j] else value
            value = high[j] if value > high[j] else value
            scaled = (value - origin[j]) / width[j]  # division may round up
            mapped[i, j] = 1.0 if scaled > 1.0 else (-1.0 if scaled < -1.0 else scaled)


@compiled(**_OPTIONS)
def margins_dense(X, scale, unit, w, margins):
    """Inner product of each record with ``w``; nan for the zero record. The same machine code
    computes every margin, whatever the position of its record.
    """
    last = X.shape[1]
    for i in range(X.shape[0]):
        margins[i] = scale[i] * (_dot(X, i, w) + unit * w[last]) if scale[i] != 0.0 else math.nan


@inlined
def _length_sparse(data, indices, start, stop, scale, unit, A, stops, image):
    """Norm of ``A`` times one sparse record; 0 for the zero record."""
    if scale == 0.0:
        return 0.0
    last = A.shape[0] - 1
    for j in range(A.shape[0]):
        image[j] = scale * unit * A[last, j]
    # Four entries at once load and store the image once; zeros beyond a stop add nothing. Neither
    # changes a bit. Entries are scaled first: the square of an unscaled product may underflow.
    p = start
    while p + 4 <= stop:
        a, b, c, d = indices[p], indices[p + 1], indices[p + 2], indices[p + 3]
        x, y = scale * data[p], scale * data[p + 1]
        z, t = scale * data[p + 2], scale * data[p + 3]
        for j in range(max(stops[a], stops[b], stops[c], stops[d])):
            image[j] = (((image[j] + x * A[a, j]) + y * A[b, j]) + z * A[c, j]) + t * A[d, j]
        p += 4
    while p < stop:
        row, entry = A[indices[p]], scale * data[p]
        for j in range(stops[indices[p]]):
            image[j] += entry * row[j]
        p += 1
    square = 0.0
    for j in range(A.shape[0]):
        square += image[j] * image[j]
    return math.sqrt(square)


@compiled(**_OPTIONS)
def lengths_csr(data, indices, indptr, scale, unit, A, stops, lengths):
    """Norm of ``A`` times each record; ``stops`` are ``stops_of(A)``."""
    image = np.empty(A.shape[0])
    for i in range(indptr.shape[0] - 1):
        lengths[i] = _length_sparse(
            data, indices, indptr[i], indptr[i + 1], scale[i], unit, A, stops, image
        )


@inlined
def _margin_sparse(data, indices, start, stop, scale, unit, w):
    """Inner product of one sparse record with ``w``; nan for the zero record."""
    if scale == 0.0:
        return math.nan
    total = unit * w[w.shape[0] - 1]
    for p in range(start, stop):
        total += data[p] * w[indices[p]]
    return scale * total


@compiled(**_OPTIONS)
def margins_csr(data, indices, indptr, scale, unit, w, margins):
    """Inner product of each record with ``w``; nan for the zero record."""
    for i in range(indptr.shape[0] - 1):
        margins[i] = _margin_sparse(data, indices, indptr[i], indptr[i + 1], scale[i], unit, w)


@compiled(**_OPTIONS)
def clip_and_map(X, low, high, mapped):
    """Clip each column to its range and map that to [0, 1], in one pass; nan stays nan."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            value = np.float64(X[i, j])
            value = low[j] if value < low[j] else value
            value = high[j] if value > high[j] else value
            mapped[i, j] = (value - low[j]) / (high[j] - low[j])


@compiled(**_OPTIONS)
def bounded_scales_dense(X, scale):
    """1 for each record with all entries in [-1, 1], 0 for the others, which count as zero."""
    for i in range(X.shape[0]):
        scale[i] = 1.0
        for j in range(X.shape[1]):
            if not abs(X[i, j]) <= 1.0:
                scale[i] = 0.0


@compiled(**_OPTIONS)
def bounded_scales_csr(data, indptr, scale):
    """As ``bounded_scales_dense`` for rows in compressed sparse form."""
    for i in range(indptr.shape[0] - 1):
        scale[i] = 1.0
        for p in range(indptr[i], indptr[i + 1]):
            if not abs(data[p]) <= 1.0:
                scale[i] = 0.0


@compiled(**_ANY_ORDER)
def _square(X, i):
    """Squared norm of a row, which the order of its columns may round differently."""
    square = 0.0
    for j in range(X.shape[1]):
        square += np.float64(X[i, j]) * np.float64(X[i, j])
    return square


@inlined
def _divide(margins, i, square, most):
    """Divide the margins of a row by the length of its record, or multiply them by ``most`` if that
    is less; 0 for the zero record.
    """
    factor = min(_inverse_length(square), most)
    for k in range(margins.shape[1]):
        margins[i, k] = factor * margins[i, k] if factor != 0.0 else 0.0


@compiled(**_OPTIONS)
def divide_by_lengths_csr(data, indptr, unit, most, margins):
    """Divide the margins of each row by the length of its record ``[x, unit]``."""
    for i in range(indptr.shape[0] - 1):
        square = unit
        for p in range(indptr[i], indptr[i + 1]):
            square += np.float64(data[p]) * np.float64(data[p])
        _divide(margins, i, square, most)


@compiled(**_ANY_ORDER)
def _dot_and_square(X, i, w):
    """Inner product of a row with a vector and squared norm of the row, reading it once."""
    total, square = 0.0, 0.0
    for j in range(X.shape[1]):
        x = np.float64(X[i, j])
        total += x * w[j]
        square += x * x
    return total, square


@compiled(**_OPTIONS)
def unit_margins_dense(X, unit, most, w, margins):
    """Inner product of ``w`` with each row's record; 0 for the zero record."""
    for i in range(X.shape[0]):
        total, square = _dot_and_square(X, i, w)
        margins[i, 0] = total + unit * w[X.shape[1]]
        _divide(margins, i, unit + square, most)


@compiled(**_OPTIONS)
def several_unit_margins_dense(X, unit, most, w, margins):
    """As ``unit_margins_dense`` for several vectors, the rows of ``w``. Not a product of matrices,
    in which the last bit of a margin depends on the place of its row.
    """
    for i in range(X.shape[0]):
        _margins(X, i, unit, w, margins[i])
        _divide(margins, i, unit + _square(X, i), most)


@compiled(**_OPTIONS)
def squares_dense(X, scale, squares):
    """Squared norm of the features of each record; nan for the zero record."""
    for i in range(X.shape[0]):
        squares[i] = math.nan
        if scale[i] == 0.0:
            continue
        squares[i] = scale[i] * scale[i] * _square(X, i)


@compiled(**_OPTIONS)
def squares_csr(data, indices, indptr, scale, squares):
    """As ``squares_dense`` for rows in compressed sparse form."""
    for i in range(indptr.shape[0] - 1):
        squares[i] = math.nan
        if scale[i] == 0.0:
            continue
        square = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            square += np.float64(data[p]) * np.float64(data[p])
        squares[i] = scale[i] * scale[i] * square


@compiled(**_OPTIONS)
def centred_lengths_dense(X, scale, inverse, centre, lengths):
    """Norm of ``[(x - centre) * inverse, 1]`` for each record; 0 for the zero record."""
    for i in range(X.shape[0]):
        lengths[i] = 0.0
        if scale[i] == 0.0:
            continue
        square = 1.0
        for j in range(X.shape[1]):
            entry = (np.float64(X[i, j]) - centre[j]) * inverse[j]
            square += entry * entry
        lengths[i] = math.sqrt(square)


@compiled(**_OPTIONS)
def centred_lengths_csr(data, indices, indptr, scale, inverse, centre, lengths):
    """As ``centred_lengths_dense`` for rows in compressed sparse form, by the difference to the
    empty record.
    """
    empty = 1.0
    for j in range(centre.shape[0]):
        empty += (centre[j] * inverse[j]) * (centre[j] * inverse[j])
    for i in range(indptr.shape[0] - 1):
        lengths[i] = 0.0
        if scale[i] == 0.0:
            continue
        square = empty
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            entry = (np.float64(data[p]) - centre[j]) * inverse[j]
            absent = centre[j] * inverse[j]
            square += entry * entry - absent * absent
        lengths[i] = math.sqrt(max(square, 1.0))
