"""Growth of a Rényi moment over the queries of an above-threshold gate. Proof:
docs/proofs/above_threshold.md.
"""

import math

import numpy as np

from hushfit.kernels._compile import compiled


@compiled(nogil=True, error_model="numpy")
def log_growth(stop, go, queries, slack):
    """Logarithm of V_k, where V_0 = 1 and V_k is the largest of V_{k-1} and of exp(stop_i) +
    exp(go_i) V_{k-1}.

    The points must be sorted by ``go``. The maximal line at V is at least as steep as the maximal
    one at a smaller V, so each search starts where the last one ended. ``slack`` covers the error
    between two points.
    """
    value, first = 0.0, 0
    for _ in range(queries):
        best, at = -math.inf, first
        for i in range(first, stop.shape[0]):
            a, b = stop[i], go[i] + value
            high = max(a, b)
            # The log of a sum is at most log 2 above its larger term: most sums need not be
            # computed.
            if high + 0.7 < best:
                continue
            total = high + math.log1p(math.exp(-abs(a - b)))
            if total > best:
                best, at = total, i
        first = at
        value = max(value, best) + slack
    return value


@compiled(nogil=True, error_model="numpy")
def not_dominated(stop, go):
    """Mask of the points, sorted by decreasing ``go``, that no earlier point exceeds in ``stop`` as
    well.
    """
    kept = np.zeros(stop.shape[0], np.bool_)
    best = -math.inf
    for i in range(stop.shape[0]):
        if stop[i] > best:
            kept[i] = True
            best = stop[i]
    return kept
