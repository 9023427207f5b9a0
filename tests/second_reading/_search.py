"""Shared by the searches: divergence of distributions, and hill climbing to worst neighbours."""

import math

import numpy as np


def hockey_stick(p, q, epsilon):
    """The larger hockey-stick divergence of two distributions at an epsilon, in either order."""
    factor = math.exp(epsilon)
    return max(
        float(np.maximum(p - factor * q, 0).sum()), float(np.maximum(q - factor * p, 0).sum())
    )


def climb(value, start, moved, steps, rng):
    """The largest value found from ``start`` by random hill climbing, and its position."""
    here, best = start, value(start)
    for _ in range(steps):
        there = moved(here, rng)
        found = value(there)
        if found > best:
            here, best = there, found
    return best, here
