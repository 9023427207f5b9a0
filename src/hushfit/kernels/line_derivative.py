"""Derivative of each record's loss along a line of weights, one record after the other."""

import math

from hushfit.kernels._compile import compiled
from hushfit.kernels.codes import LOGISTIC, SOFTMAX, UNKNOWN

_STRICT = {"nogil": True, "error_model": "numpy"}


@compiled(**_STRICT)
def _of_softmax(t, d, label):
    """Descent of the multinomial logistic loss, from margins and their change."""
    top = t.max()
    mass = 0.0
    mean = 0.0
    for o in range(t.shape[0]):
        e = math.exp(t[o] - top)
        mass += e
        mean += e * d[o]
    return d[label] - mean / mass


@compiled(**_STRICT)
def _of_logistic(t, d, label):
    """The same for logistic losses of one class against the rest each, or for a single one with
    label -1 or 1.
    """
    descent = 0.0
    for o in range(t.shape[0]):
        own = label == 1 if t.shape[0] == 1 else label == o
        sign = 1.0 if own else -1.0
        e = math.exp(-abs(t[o]))
        descent += sign * d[o] * ((e if sign * t[o] >= 0.0 else 1.0) / (1.0 + e))
    return descent


@compiled(**_STRICT)
def line_derivative(code, t, d, y, bound, parts):
    """Write each record's descent over ``bound``, within [-1, 1], into ``parts``; zero where a
    margin is no number.

    ``t`` and ``d``, of shape (records, outputs), are margins and their change along the line.
    """
    for i in range(t.shape[0]):
        parts[i] = 0.0
        if math.isnan(t[i, 0]):  # the zero record, whose label is not read
            continue
        if code == SOFTMAX:
            descent = _of_softmax(t[i], d[i], int(y[i]))
        elif code == LOGISTIC:
            descent = _of_logistic(t[i], d[i], int(y[i]))
        else:
            raise NotImplementedError(UNKNOWN)
        if math.isfinite(descent):
            parts[i] = min(1.0, max(-1.0, descent / bound))
