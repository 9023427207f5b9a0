"""Exact discrete Gaussians: comparisons use as many random bits as it takes.

The distribution is the one that the kernel draws from, without approximation. The kernel passes on
the one proposal in ten million whose random bits are too close to the density to decide; drawing
continues here from the first word of that proposal. The proof is ``docs/proofs/noise.md``.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import partial

from hushfit.kernels.gaussian import (
    CELL_WIDTHS,
    HEIGHT_BITS,
    PLACE_BITS,
    SLOT_BITS,
    TAIL_BITS,
    fine_bits,
    slots_for,
    weight_in_units,
)

Word = Callable[[], int]
_WORD_BITS = 64


def exact_gaussian(word: Word, log2_variance: int) -> int:
    """Draw one coordinate; ``word()`` returns a fresh random word of 64 bits."""
    k, odd = (log2_variance + 1) // 2, log2_variance % 2
    fine = fine_bits(k)
    low, slots = k - fine, slots_for(fine, odd)
    while True:
        drawn = word()
        slot, drawn = _split(drawn, SLOT_BITS)
        minus, drawn = _split(drawn, 1)
        place, height = _split(drawn, PLACE_BITS)
        y, cell = place & (1 << low) - 1, int(slots.cells[slot])
        if cell >= 0:
            y, accepted = (cell << low) + y, True
        else:
            if ~cell < CELL_WIDTHS[odd] << fine:
                y += ~cell << low
                factor, rank = Fraction(slots.height), slot - int(slots.firsts[~cell])
            else:
                within, run = _tail(word)
                y += ((within & (1 << fine) - 1) << low) + (CELL_WIDTHS[odd] + run << k)
                factor, rank = Fraction(slots.height << fine + run + 1, slots.beyond), 0
            density = partial(weight_in_units, factor, y, k, odd)
            accepted = _lies_below(rank << HEIGHT_BITS | height, word, density)
        if accepted and (y or not minus):
            return -y if minus else y


def _split(number: int, bits: int) -> tuple[int, int]:
    """The lowest bits, and the others."""
    return number % 2**bits, number >> bits


def _tail(word: Word) -> tuple[int, int]:
    """A place within a width, and the number of ones before the first zero; the other bits of the
    last word are not used.
    """
    within, rest = _split(word(), TAIL_BITS)
    run, bits = 0, _WORD_BITS - TAIL_BITS
    while rest == 2**bits - 1:
        run, rest, bits = run + bits, word(), _WORD_BITS
    return within, run + (~rest & rest + 1).bit_length() - 1


def _lies_below(height: int, word: Word, density: Callable[[int], int]) -> bool:
    """Whether a random height with these leading digits lies below a density.

    More digits are drawn until the comparison is decided.
    """
    digits = HEIGHT_BITS
    while abs(height - density(digits)) <= 2:
        height = height << _WORD_BITS | word()
        digits += _WORD_BITS
    return height < density(digits)
