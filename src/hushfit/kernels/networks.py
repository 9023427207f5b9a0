"""Sums in float64 of the float32 numbers of a network, without copies of these in float64; and
copies of the patches of images.
"""

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


@compiled(**_STRICT)
def copy_windows(memory, sizes, strides, matrices):
    """Copy numbers that lie at the given strides in memory into matrices, one for each index of the
    first two of seven axes; other entries of these are left as they are.
    """
    rows, groups, n2, n3, n4, n5, run = sizes
    s0, s1, s2, s3, s4, s5, s6 = strides
    if s5 == run * s6:  # the last two axes are one
        run, n5 = run * n5, 1
    for i in range(rows * groups):
        to = matrices[i]
        base, at = i // groups * s0 + i % groups * s1, 0
        for j in range(n2):
            for k in range(n3):
                for l in range(n4):
                    for m in range(n5):
                        start = base + j * s2 + k * s3 + l * s4 + m * s5
                        given, found = memory[start:], to[at:]
                        if s6 == 1:
                            for t in range(run):
                                found[t] = given[t]
                        else:
                            for t in range(run):
                                found[t] = given[t * s6]
                        at += run


@compiled(**_STRICT)
def _larger(value, best):
    return (value > best) | (value != value)


@compiled(**_STRICT)
def pool_maxima(images, maxima, places):
    """Largest number of each window of two by two numbers, side by side, and its place in the
    window: the first of equal ones, and the last that is no number.

    Arrays are of shape (rows, height, width, channels).
    """
    channels = images.shape[3]
    for i in range(maxima.shape[0]):
        for y in range(maxima.shape[1]):
            above, below = images[i, 2 * y], images[i, 2 * y + 1]
            for x in range(maxima.shape[2]):
                for c in range(channels):
                    best, place = above[2 * x, c], 0
                    value = above[2 * x + 1, c]
                    larger = _larger(value, best)
                    best, place = value if larger else best, 1 if larger else place
                    value = below[2 * x, c]
                    larger = _larger(value, best)
                    best, place = value if larger else best, 2 if larger else place
                    value = below[2 * x + 1, c]
                    larger = _larger(value, best)
                    maxima[i, y, x, c] = value if larger else best
                    places[i, y, x, c] = 3 if larger else place


@compiled(**_STRICT)
def unpool(slopes, places, found):
    """Slopes of the numbers that `pool_maxima` chose, and zeros for the others in its windows."""
    for i in range(slopes.shape[0]):
        for y in range(slopes.shape[1]):
            lines = found[i, 2 * y : 2 * y + 2]
            lines[:] = 0
            for x in range(slopes.shape[2]):
                for c in range(slopes.shape[3]):
                    place = np.uint64(places[i, y, x, c])
                    column = np.uint64(2 * x) + (place & np.uint64(1))
                    lines[place >> np.uint64(1), column, np.uint64(c)] = slopes[i, y, x, c]
