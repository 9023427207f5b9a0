"""Discrete Gaussians whose comparisons are carried as far as it takes.

The law that the kernel draws from, without an approximation: it comes here with the one try in ten
million whose 24 random digits lie too close to a chance of acceptance to tell, and this goes on
from the first bit of that try. The proof is ``docs/proofs/noise.md``.
"""

from collections.abc import Callable
from functools import partial

from hushfit.kernels.noise import COMPARED_BITS, WIDTHS, acceptance_in_units

Take = Callable[[int], int]


def exact_gaussian(take: Take, log2_variance: int) -> int:
    """One coordinate, from a function that returns so many fresh bits as an integer."""
    k, odd = (log2_variance + 1) // 2, log2_variance % 2
    while True:
        U, drawn = take(k), take(31)
        minus, proposal, digits = drawn & 1, (drawn >> 1) & 63, drawn >> 7
        V = int(WIDTHS[odd, proposal])
        if V == 3:
            while take(1):
                V += 1
        magnitude = (V << k) + U
        if (magnitude or not minus) and _lies_below(
            digits, take, partial(acceptance_in_units, V, U, k, odd)
        ):
            return -magnitude if minus else magnitude


def _lies_below(digits: int, take: Take, chance: Callable[[int], int]) -> bool:
    """Whether a random number that starts with these digits lies below a chance; more of them
    are drawn until they tell.
    """
    count = COMPARED_BITS
    while abs(digits - chance(count)) <= 2:
        digits = digits << COMPARED_BITS | take(COMPARED_BITS)
        count += COMPARED_BITS
    return digits < chance(count)
