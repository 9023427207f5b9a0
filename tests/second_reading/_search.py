"""What the searches share: divergences of laws, and climbing towards the worst neighbours."""

import math

import numpy as np


def hockey_stick(p, q, epsilon):
    """The larger of both divergences at an epsilon, of masses on the same outcomes."""
    factor = math.exp(epsilon)
    return max(
        float(np.maximum(p - factor * q, 0).sum()), float(np.maximum(q - factor * p, 0).sum())
    )


def climb(value, start, moved, steps, rng):
    """The largest value found from ``start`` by random moves that lead up; and where."""
    here, best = start, value(start)
    for _ in range(steps):
        there = moved(here, rng)
        found = value(there)
        if found > best:
            here, best = there, found
    return best, here
