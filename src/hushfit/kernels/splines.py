"""Public maps of single columns, linear between equally spaced knots: row by row, into new columns.

Column ``j`` with ``intervals[j] = K > 0`` becomes K columns. Their values at knot k are
``tables[offsets[j] + k * K :][:K]``, linear in between. With K = 0 it is copied. A column with a
number in ``fills`` gets one more column after these, which is 1 where the value is missing.
"""

import numpy as np

from hushfit.kernels._compile import compiled

_OPTIONS = {"nogil": True, "error_model": "numpy"}


@compiled(**_OPTIONS)
def _write(value, count, fill, offset, tables, out, at):
    """The columns of one value, from ``out[at]`` on; returns how many there are."""
    width = max(count, 1)
    total = width
    if not np.isnan(fill):
        total += 1
        out[at + width] = 1.0 if np.isnan(value) else 0.0
        if np.isnan(value):
            value = fill
    if count == 0:
        out[at] = value
        return total
    if np.isnan(value):
        out[at : at + width] = np.nan
        return total
    position = min(max(value, 0.0), 1.0) * count
    knot = min(int(position), count - 1)
    share = position - knot
    left = offset + knot * count
    for k in range(count):
        out[at + k] = (1.0 - share) * tables[left + k] + share * tables[left + count + k]
    return total


@compiled(**_OPTIONS)
def expand_dense(X, intervals, starts, fills, offsets, tables, out):
    """Rows of an array, into a flat array of rows."""
    width = out.shape[0] // max(X.shape[0], 1)
    for i in range(X.shape[0]):
        at = i * width
        for j in range(X.shape[1]):
            if intervals[j] == 0 and np.isnan(fills[j]):
                out[at + starts[j]] = X[i, j]
            else:
                value = np.float64(X[i, j])
                _write(value, intervals[j], fills[j], offsets[j], tables, out, at + starts[j])


@compiled(**_OPTIONS)
def expanded_ends(indices, indptr, is_full, full_width, ends):
    """Where each row ends in the result of ``expand_csr``; ``ends`` starts with a zero."""
    for i in range(indptr.shape[0] - 1):
        count = full_width
        for p in range(indptr[i], indptr[i + 1]):
            if not is_full[indices[p]]:
                count += 1
        ends[i + 1] = ends[i] + count


@compiled(**_OPTIONS)
def expand_csr(
    data,
    indices,
    indptr,
    full_columns,
    intervals,
    starts,
    fills,
    offsets,
    tables,
    ends,
    values,
    places,
):
    """Sparse rows with increasing indices. ``full_columns`` are those in which zero is not mapped
    to zeros: every row gets their entries.
    """
    last = full_columns.shape[0]
    for i in range(indptr.shape[0] - 1):
        at, p, f = ends[i], indptr[i], 0
        while p < indptr[i + 1] or f < last:
            column = indices[p] if p < indptr[i + 1] else starts.shape[0]
            value = np.float64(data[p]) if p < indptr[i + 1] else 0.0
            if f < last and full_columns[f] <= column:
                if full_columns[f] < column:
                    value = 0.0
                else:
                    p += 1
                column = full_columns[f]
                f += 1
            else:
                p += 1
            width = _write(
                value, intervals[column], fills[column], offsets[column], tables, values, at
            )
            for k in range(width):
                places[at + k] = starts[column] + k
            at += width
