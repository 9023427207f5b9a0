"""Derivatives of each record's loss along a line of weights, one record after the other."""

import math

from hushfit.kernels._compile import compiled
from hushfit.kernels.codes import LOGISTIC, SOFTMAX, UNKNOWN

_STRICT = {"nogil": True, "error_model": "numpy"}


@compiled(**_STRICT)
def _of_softmax(t, d, label):
    """Descent and curvature of the multinomial logistic loss, from margins and their change."""
    top = t.max()
    mass = 0.0
    mean = 0.0
    for o in range(t.shape[0]):
        e = math.exp(t[o] - top)
        mass += e
        mean += e * d[o]
    mean /= mass
    variance = 0.0
    for o in range(t.shape[0]):
        variance += math.exp(t[o] - top) / mass * (d[o] - mean) ** 2
    return d[label] - mean, variance


@compiled(**_STRICT)
def _of_logistic(t, d, label):
    """The same for logistic losses of one class against the rest each, or for a single one with
    label -1 or 1.
    """
    descent = 0.0
    curvature = 0.0
    for o in range(t.shape[0]):
        own = label == 1 if t.shape[0] == 1 else label == o
        sign = 1.0 if own else -1.0
        e = math.exp(-abs(t[o]))
        descent += sign * d[o] * ((e if sign * t[o] >= 0.0 else 1.0) / (1.0 + e))
        curvature += d[o] * d[o] * (e / (1.0 + e) / (1.0 + e))
    return descent, curvature


@compiled(**_STRICT)
def line_derivatives(code, t, d, y, bound, sums):
    """Write each record's descent over ``bound``, within [-1, 1], and its curvature over the square
    of ``bound``, within [0, 1], into the columns of ``sums``; zeros where a margin is no number.

    ``t`` and ``d``, of shape (records, outputs), are margins and their change along the line.
    """
    for i in range(t.shape[0]):
        sums[i] = 0.0
        if math.isnan(t[i, 0]):  # the zero record, whose label is not read
            continue
        if code == SOFTMAX:
            descent, curvature = _of_softmax(t[i], d[i], int(y[i]))
        elif code == LOGISTIC:
            descent, curvature = _of_logistic(t[i], d[i], int(y[i]))
        else:
            raise NotImplementedError(UNKNOWN)
        if math.isfinite(descent) and math.isfinite(curvature):
            sums[i, 0] = min(1.0, max(-1.0, descent / bound))
            sums[i, 1] = min(1.0, curvature / (bound * bound))
