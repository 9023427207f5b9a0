"""Exact discrete Gaussians: comparisons use as many random bits as it takes.

The distribution is the one that the kernel draws from, without approximation. The kernel passes on
the one proposal in ten million whose 24 random bits are too close to the acceptance probability to
decide; drawing continues here from the first bit of that proposal. The proof is
``docs/proofs/noise.md``.
"""

from collections.abc import Callable
from functools import partial

from hushfit.kernels.noise import COMPARED_BITS, WIDTHS, acceptance_in_units

Take = Callable[[int], int]


def exact_gaussian(take: Take, log2_variance: int) -> int:
    """Draw one coordinate; ``take(n)`` returns n fresh random bits as an integer."""
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


def _lies_below(digits: int, take: Take, acceptance: Callable[[int], int]) -> bool:
    """Whether a random number with these leading digits lies below an acceptance probability.

    More digits are drawn until the comparison is decided.
    """
    count = COMPARED_BITS
    while abs(digits - acceptance(count)) <= 2:
        digits = digits << COMPARED_BITS | take(COMPARED_BITS)
        count += COMPARED_BITS
    return digits < acceptance(count)
