"""Fused passes over packed rows: numbers in single precision and codes of labels, without sparse
rows in memory.

A packed row has one entry for each of its words: a number with a feature of its own, or a label,
whose code says which of several features is 1. Sums are exact on a grid and in the order of the
rows, by the rules of ``gradient.py``: the margin of a row comes from one call site.

Gradients, which are asked for most often, read the words as they are: a dot product of the numbers,
and one weight for each label. Other queries write a few rows at a time out as sparse entries, in
the order of the table's columns, which stay in the first-level cache, and call the functions that
read compressed sparse rows.

``runs`` has the numbers that are next to each other: the first one, its position among the entries
of a row, and how many there are. ``code_at`` has the positions of labels, ``number_features`` the
feature of each number and ``code_starts`` the first feature of each label. ``data``, ``indices``
and ``ends`` are sparse rows to write to, with the features of numbers and the ones of labels.
"""

import math

import numpy as np

from hushfit.kernels import difference, line_search
from hushfit.kernels._compile import compiled, inlined
from hushfit.kernels.gradient import (
    _ANY_ORDER,
    _STRICT,
    ROUNDER,
    _add_chunk,
    _dot,
    _margins,
    _own,
    _weigh_outputs,
    _weight,
)

CHUNK = 32  # rows that are treated together: small enough for the first-level cache


@inlined
def _write_rows(numbers, codes, start, stop, runs, code_at, code_starts, data, indices):
    """Write the values and features of some rows where `_blank` left them out."""
    # Unsigned, to avoid tests for negative indices.
    width = np.uint64(numbers.shape[1] + codes.shape[1])
    for i in range(np.uint64(start), np.uint64(stop)):
        base = (i - np.uint64(start)) * width
        for k in range(np.uint64(runs.shape[0])):
            first, at = np.uint64(runs[k, 0]), base + np.uint64(runs[k, 1])
            for j in range(np.uint64(runs[k, 2])):
                data[at + j] = numbers[i, first + j]
        for k in range(np.uint64(code_at.shape[0])):
            indices[base + np.uint64(code_at[k])] = code_starts[k] + np.int32(codes[i, k])


@inlined
def _part(values, start, stop):
    """The entries of some rows, of one value per row or one for all."""
    return values if values.shape[0] == 1 else values[start:stop]


@compiled(**_STRICT)
def unpack(numbers, codes, runs, code_at, code_starts, data, indices, ends):
    """Complete packed rows as compressed sparse rows, of which ``PackedLayout.blank`` has written
    what no row changes.
    """
    n = numbers.shape[0]
    _write_rows(numbers, codes, 0, n, runs, code_at, code_starts, data, indices)


@inlined
def _of_numbers(w, number_features):
    """The weights of the numbers, in their order, and that of the intercept."""
    p = number_features.shape[0]
    own = np.empty(p + 1)
    for j in range(p):
        own[j] = w[number_features[j]]
    own[p] = w[w.shape[0] - 1]
    return own


@compiled(**_ANY_ORDER)
def _dot_codes(codes, i, code_starts, w):
    """Sum of the weights of a row's labels."""
    total = 0.0
    for k in range(np.uint64(code_starts.shape[0])):  # unsigned: no tests for negative indices
        total += w[np.uint64(code_starts[k]) + np.uint64(codes[i, k])]
    return total


@inlined
def _add_codes(codes, code_starts, chosen, weights, count, total):
    """Add the weights of some rows to the features of their labels."""
    for r in range(count):
        i, weight = np.uint64(chosen[r]), weights[r]
        for k in range(np.uint64(code_starts.shape[0])):
            total[np.uint64(code_starts[k]) + np.uint64(codes[i, k])] += weight


@inlined
def _settle(own, number_features, total):
    """Copy the sums of numbers, and of the intercept, to their features."""
    p = number_features.shape[0]
    for j in range(p):
        total[number_features[j]] = own[j]
    total[total.shape[0] - 1] = own[p]


@compiled(**_STRICT)
def scalar_gradient(
    numbers,
    codes,
    number_features,
    code_starts,
    y,
    scale,
    shares,
    caps,
    unit,
    w,
    code,
    parameter,
    grid,
    total,
):
    """Write the sum of the clipped gradients of all rows: see ``gradient.scalar_csr``."""
    intercept = unit * w[w.shape[0] - 1]
    weights_of_numbers = _of_numbers(w, number_features)
    chosen, margins, weights = np.empty(CHUNK, np.int64), np.empty(CHUNK), np.empty(CHUNK)
    own = np.empty(number_features.shape[0] + 1)
    own[:] = ROUNDER * grid
    total[:] = ROUNDER * grid
    n = numbers.shape[0]
    for start in range(0, n, CHUNK):
        filled = np.int64(0)  # a literal 0 would compile the chunk's loops for it too
        for i in range(start, min(start + CHUNK, n)):
            if scale[i] != 0.0:
                margin = _dot(numbers, i, weights_of_numbers) + intercept
                margins[filled] = margin + _dot_codes(codes, i, code_starts, w)
                chosen[filled] = i
                filled += 1
        for r in range(filled):
            i = chosen[r]
            weights[r] = _own(shares, i) * _weight(
                code, parameter, margins[r], y[i], scale[i], _own(caps, i)
            )
        _add_chunk(numbers, chosen, weights, filled, unit, own)
        _add_codes(codes, code_starts, chosen, weights, filled, total)
    _settle(own, number_features, total)
    total -= ROUNDER * grid


@inlined
def _each_dot_codes(codes, i, code_starts, by_feature, t):
    """Add, for every output at once, the weights of a row's labels to its margins."""
    for k in range(np.uint64(code_starts.shape[0])):
        row = by_feature[np.uint64(code_starts[k]) + np.uint64(codes[i, k])]
        for o in range(t.shape[0]):
            t[o] += row[o]


@inlined
def _add_codes_each(codes, code_starts, chosen, weights, count, by_feature):
    """As ``_add_codes`` for every output at once."""
    for r in range(count):
        i, own = np.uint64(chosen[r]), weights[r]
        for k in range(np.uint64(code_starts.shape[0])):
            row = by_feature[np.uint64(code_starts[k]) + np.uint64(codes[i, k])]
            for o in range(own.shape[0]):
                row[o] += own[o]


@inlined
def _place(share, t, filled, weights, by_output):
    """Write the weighted factors of a row into both tables; a product of arrays would allocate."""
    for o in range(t.shape[0]):
        weights[filled, o] = share * t[o]
        by_output[o, filled] = share * t[o]


@compiled(**_STRICT)
def vector_gradient(
    numbers,
    codes,
    number_features,
    code_starts,
    y,
    scale,
    shares,
    caps,
    unit,
    w,
    code,
    parameter,
    grid,
    total,
):
    """As ``scalar_gradient`` for a loss with several outputs: see ``gradient.vector_csr``."""
    outputs, p = w.shape[0], number_features.shape[0]
    weights_of_numbers, own = np.empty((outputs, p + 1)), np.empty((outputs, p + 1))
    for o in range(outputs):
        weights_of_numbers[o] = _of_numbers(w[o], number_features)
    by_feature = np.ascontiguousarray(w.T)
    sums = np.empty(by_feature.shape)
    chosen, t = np.empty(CHUNK, np.int64), np.empty(outputs)
    weights, by_output = np.empty((CHUNK, outputs)), np.empty((outputs, CHUNK))
    own[:] = ROUNDER * grid
    sums[:] = ROUNDER * grid
    n = numbers.shape[0]
    for start in range(0, n, CHUNK):
        filled = np.int64(0)
        for i in range(start, min(start + CHUNK, n)):
            if scale[i] != 0.0:
                _margins(numbers, i, unit, weights_of_numbers, t)
                _each_dot_codes(codes, i, code_starts, by_feature, t)
                _weigh_outputs(code, parameter, t, int(y[i]), scale[i], _own(caps, i))
                chosen[filled] = i
                _place(_own(shares, i), t, filled, weights, by_output)
                filled += 1
        for o in range(outputs):
            _add_chunk(numbers, chosen, by_output[o], filled, unit, own[o])
        _add_codes_each(codes, code_starts, chosen, weights, filled, sums)
    for o in range(outputs):
        total[o] = sums[:, o]
        _settle(own[o], number_features, total[o])
    total -= ROUNDER * grid


@compiled(**_STRICT)
def difference_sum(
    numbers,
    codes,
    runs,
    code_at,
    code_starts,
    data,
    indices,
    ends,
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
    """Write the sum of differences of clipped gradients of all rows, for one output or several:
    see ``difference.scalar_csr``.
    """
    every = np.empty(0, np.int64)
    total[:] = ROUNDER * grid
    n = numbers.shape[0]
    for start in range(0, n, CHUNK):
        stop = min(start + CHUNK, n)
        _write_rows(numbers, codes, start, stop, runs, code_at, code_starts, data, indices)
        matrix = data, indices, ends[: stop - start + 1]
        own = y[start:stop], scale[start:stop], _part(shares, start, stop)
        if w.ndim == 1:
            difference.add_scalar_csr(
                *matrix, every, *own, unit, w, v, cap, bound, code, parameter, total
            )
        else:
            difference.add_vector_csr(
                *matrix, every, *own, unit, w, v, cap, bound, code, parameter, total
            )
    total -= ROUNDER * grid


@compiled(**_STRICT)
def drop_sum(
    numbers,
    codes,
    runs,
    code_at,
    code_starts,
    data,
    indices,
    ends,
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
    """Write the sums of clipped decreases of all rows, for one output or several: see
    ``line_search.scalar_csr``.
    """
    every = np.empty(0, np.int64)
    total[:] = ROUNDER * grids
    n = numbers.shape[0]
    for start in range(0, n, CHUNK):
        stop = min(start + CHUNK, n)
        _write_rows(numbers, codes, start, stop, runs, code_at, code_starts, data, indices)
        matrix = data, indices, ends[: stop - start + 1]
        own = y[start:stop], scale[start:stop], _part(shares, start, stop)
        if vectors.ndim == 2:
            line_search.add_scalar_csr(
                *matrix, every, *own, unit, vectors, mixes, bounds, code, parameter, total
            )
        else:
            line_search.add_vector_csr(
                *matrix, every, *own, unit, vectors, mixes, bounds, code, parameter, total
            )
    total -= ROUNDER * grids


@compiled(**_STRICT)
def lengths(values, features, scale, unit, A, stops, image, found):
    """Norm of ``A`` times each record: see ``rows.lengths_csr``. A row has its values and features
    in words, as many as a multiple of four: what is missing is zeros, which change no bit.
    """
    width = A.shape[0]
    for i in range(values.shape[0]):
        found[i] = 0.0
        if scale[i] == 0.0:
            continue
        for j in range(width):
            image[j] = scale[i] * unit * A[width - 1, j]
        for k in range(0, values.shape[1], 4):
            a, b, c, d = features[i, k], features[i, k + 1], features[i, k + 2], features[i, k + 3]
            x, y = scale[i] * values[i, k], scale[i] * values[i, k + 1]
            z, t = scale[i] * values[i, k + 2], scale[i] * values[i, k + 3]
            stop = stops[a]  # tuples, and functions of them, would be compiled on their own
            stop = stops[b] if stops[b] > stop else stop
            stop = stops[c] if stops[c] > stop else stop
            stop = stops[d] if stops[d] > stop else stop
            for j in range(stop):
                image[j] = (((image[j] + x * A[a, j]) + y * A[b, j]) + z * A[c, j]) + t * A[d, j]
        square = 0.0
        for j in range(width):
            square += image[j] * image[j]
        found[i] = math.sqrt(square)


@compiled(**_STRICT)
def add_label_products(records, codes, code_starts, ones, at, beside, labels):
    """Add the products of each row's labels: with its numbers and the intercept, which are its
    record, to ``beside``, and with each other, above the diagonal, to ``labels``. All are whole
    numbers and their sums exact. ``ones`` has the entries of labels.
    """
    for i in range(records.shape[0]):
        one = ones[i]
        for k in range(codes.shape[1]):
            place = np.uint64(code_starts[k]) + np.uint64(codes[i, k])
            at[k] = place
            for j in range(records.shape[1]):
                beside[place, j] += one * records[i, j]
            for other in range(k + 1):
                labels[at[other], place] += one * one
