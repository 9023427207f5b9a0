"""Proximal operators without a closed form, computed row by row of the coefficients.

Every function takes rows of shape (outputs, features), C-contiguous float64, and returns a new
array of that shape.
"""

import numpy as np

from hushfit.kernels._compile import compiled

_OPTIONS = {"nogil": True, "error_model": "numpy"}


@compiled(**_OPTIONS)
def _power_root(size, weight, q, start):
    """Larger root z of ``z + weight * q * z**(q - 1) = size``, which is at least ``start``.

    On [start, size] the left side is convex and increasing and at ``size`` it is too large, so
    Newton's method decreases monotonically from there. It stops when rounding prevents progress.
    """
    z = size
    while True:
        derivative = weight * q * z ** (q - 1.0)
        lower = max(start, z - (z - size + derivative) / (1.0 - (1.0 - q) * derivative / z))
        if not lower < z:
            return z
        z = lower


@compiled(**_OPTIONS)
def power_threshold(v, weight, q):
    """Minimise ``weight * |z|**q + (z - v)**2 / 2`` for each entry, 0 < q < 1.

    A nonzero minimiser must have a smaller objective than 0. Where the two are equal, ``z = start``
    and ``|v| = threshold``; both follow from setting the derivative and the difference to zero.
    Below the threshold the minimiser is 0, above it the larger stationary point.
    """
    z = np.zeros_like(v)
    start = (2.0 * weight * (1.0 - q)) ** (1.0 / (2.0 - q))
    threshold = start * (2.0 - q) / (2.0 - 2.0 * q)
    for i in range(v.shape[0]):
        for j in range(v.shape[1]):
            size = abs(v[i, j])
            if not size <= threshold:
                root = _power_root(size, weight, q, start)
                z[i, j] = root if v[i, j] > 0.0 else -root
    return z


@compiled(**_OPTIONS)
def _fuse(y, weight, z, at, slope, offset, low, high):
    """Minimise ``weight * sum |z[i + 1] - z[i]| + ||z - y||**2 / 2`` by dynamic programming, in
    time O(n).

    Let D_k(t) be the derivative of the best cost of entries 0..k given ``z[k] = t``. It is
    increasing and piecewise linear, and D_{k+1}(t) is t - y[k + 1] plus D_k(t) clipped to [-weight,
    weight]. Clipping cuts off both ends, at ``low[k]`` and ``high[k]``: the best ``z[k]`` given
    ``z[k + 1]`` is the latter clipped to [low[k], high[k]]. The knots of the clipped D_k are
    ``at[first:last]``; passing one from left to right adds (slope, offset) to the line. A knot is
    inserted once and removed at most once.
    """
    n = y.shape[0]
    first = last = n  # two knots are added per entry, one at either end
    for k in range(n - 1):
        # Left of all knots the clipped part is constantly -weight, right of them it is +weight (0
        # for the first entry).
        edge = weight if k > 0 else 0.0
        a, b = 1.0, -edge - y[k]
        while first < last and a * at[first] + b <= -weight:
            a += slope[first]
            b += offset[first]
            first += 1
        low[k] = (-weight - b) / a
        first -= 1
        at[first], slope[first], offset[first] = low[k], a, b + weight
        a, b = 1.0, edge - y[k]
        while first < last - 1 and a * at[last - 1] + b >= weight:
            last -= 1
            a -= slope[last]
            b -= offset[last]
        high[k] = (weight - b) / a
        at[last], slope[last], offset[last] = high[k], -a, weight - b
        last += 1
    edge = weight if n > 1 else 0.0
    a, b = 1.0, -edge - y[n - 1]
    while first < last and a * at[first] + b <= 0.0:
        a += slope[first]
        b += offset[first]
        first += 1
    z[n - 1] = -b / a
    for k in range(n - 2, -1, -1):
        z[k] = min(max(z[k + 1], low[k]), high[k])


@compiled(**_OPTIONS)
def fuse(v, weight):
    """Prox of ``weight`` times the total variation of each row."""
    n = v.shape[1]
    z = np.empty_like(v)
    at, slope, offset = np.empty(2 * n), np.empty(2 * n), np.empty(2 * n)
    low, high = np.empty(n), np.empty(n)
    for i in range(v.shape[0]):
        if n > 0:
            _fuse(v[i], weight, z[i], at, slope, offset, low, high)
    return z


@compiled(**_OPTIONS)
def decreasing(v):
    """Projection of each row onto the non-increasing, non-negative vectors.

    By pooling adjacent violators: a block whose mean would exceed that of the one before it is
    merged with it.
    """
    z = np.empty_like(v)
    total, length = np.empty(v.shape[1]), np.empty(v.shape[1], dtype=np.int64)
    for i in range(v.shape[0]):
        blocks = 0
        for j in range(v.shape[1]):
            total[blocks], length[blocks] = v[i, j], 1
            while (
                blocks > 0
                and total[blocks] * length[blocks - 1] >= total[blocks - 1] * length[blocks]
            ):
                total[blocks - 1] += total[blocks]
                length[blocks - 1] += length[blocks]
                blocks -= 1
            blocks += 1
        end = 0
        for block in range(blocks):
            start, end = end, end + length[block]
            z[i, start:end] = max(total[block] / length[block], 0.0)
    return z
