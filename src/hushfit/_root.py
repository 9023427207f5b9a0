"""A root finder without scipy.optimize, whose import takes longer than a whole Gaussian fit."""

import math
from collections.abc import Callable
from itertools import pairwise


def root(
    excess: Callable[[float], float], low: float, high: float, tolerance: float = 1e-14
) -> float:
    """Root of a continuous function with a change of sign, by Ridders' method; tolerance is
    relative to the root.
    """
    at_low, at_high = excess(low), excess(high)
    last = math.inf
    for _ in range(200):
        middle = (low + high) / 2
        at_middle = excess(middle)
        spread = math.sqrt(at_middle * at_middle - at_low * at_high)
        if spread == 0:
            return middle
        # Exact for an exponential times a line; always inside the bracket.
        guess = middle + (middle - low) * math.copysign(1.0, at_low - at_high) * at_middle / spread
        at_guess = excess(guess)
        if at_guess == 0 or abs(guess - last) <= tolerance * abs(guess):
            return guess
        last = guess
        ends = sorted([(low, at_low), (middle, at_middle), (guess, at_guess), (high, at_high)])
        for (a, at_a), (b, at_b) in pairwise(ends):
            if (at_a > 0) != (at_b > 0):
                low, at_low, high, at_high = a, at_a, b, at_b
                break
    return last
