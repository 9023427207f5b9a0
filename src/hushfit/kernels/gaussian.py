"""Exact discrete Gaussians on the integers, from one random word each, nearly always.

The area under the density is covered by slots of equal size, a power of two in number: columns of
slots over cells of the line, and some slots for what lies beyond all cells. A word chooses a slot,
a sign and a place in its cell. Most slots lie below the density entirely, and the place is the
draw. In the others more bits of the word are a height, which is compared with an exponential, known
to 31 bits but for a few units of the last. If the comparison is too close to decide, the kernel
reports it and leaves that proposal to ``privacy/noise/_exact_gaussian.py``.
``docs/proofs/noise.md`` has the algebra and the proof. All arithmetic is with integers.
"""

from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    InvalidOperation,
    Overflow,
    localcontext,
)
from fractions import Fraction
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hushfit._typing import IntVector
from hushfit.kernels._compile import compiled, inlined

LongWords: TypeAlias = NDArray[np.uint64]

# The bits of a word, from the lowest: a slot, a sign, a place in the cell, a height in the slot.
SLOT_BITS, PLACE_BITS, HEIGHT_BITS = 14, 25, 24
_SIGN_AT = SLOT_BITS
_PLACE_AT = SLOT_BITS + 1
_HEIGHT_AT = _PLACE_AT + PLACE_BITS
# A width has at most 2**MAX_FINE cells; for small variances, as many as it has integers.
MAX_FINE = 6
# Widths that have cells, for even and odd exponents. Beyond them, slots propose a place by its
# width, each with half the probability of the one before.
CELL_WIDTHS = (4, 3)
# The bits of a second word that give a place within such a width; the others count widths.
TAIL_BITS = MAX_FINE
_LONGEST_RUN = 64 - TAIL_BITS
_MAX_WIDTHS = 8  # from so many widths on, proposals have an acceptance probability below 2**-30
# Bound on the error of `_weight` in units of 2**-31: at most 11 by docs/proofs/noise.md.
WEIGHT_ERROR = 16


def _exact(digits: int) -> Context:
    """Decimal arithmetic of so many digits, independent of the context of the application."""
    return Context(
        digits,
        ROUND_HALF_EVEN,
        MIN_EMIN,
        MAX_EMAX,
        capitals=1,
        clamp=0,
        flags=[],
        traps=[InvalidOperation, Overflow],
    )


def _decimal_weight(y: int, k: int, odd: int) -> Decimal:
    square: Decimal = (Decimal(y) / 2**k) ** 2
    return (-square if odd else -square / 2).exp()


def weight_in_units(factor: int | Fraction, y: int, k: int, odd: int, digits: int) -> int:
    """A factor times exp(-c x^2), of x = y / 2**k widths, in units of 2**-digits; truncated, so too
    large by a negligible error and too small by less than one plus that error.
    """
    with localcontext(_exact(digits + 100)):  # enough for the square to be exact
        scaled = factor.numerator * _decimal_weight(y, k, odd) / factor.denominator
        return int(scaled * 2**digits)


def _exp_in_units(numerator: int, denominator: int) -> int:
    with localcontext(_exact(40)):
        return int((Decimal(-numerator) / denominator).exp() * 2**31)


# exp(-c V^2) of whole widths, for even and odd exponents; exp(-x) for integer x, 64ths and 4096ths.
_WEIGHT: IntVector = np.array(
    [[weight_in_units(1, V, 0, odd, 31) for V in range(_MAX_WIDTHS)] for odd in (0, 1)]
)
_EXP: IntVector = np.array([[_exp_in_units(i, part) for i in range(64)] for part in (1, 64, 4096)])


class Slots(NamedTuple):
    """What the slots stand for.

    Parameters
    ----------
    cells : array of int16
        The cell of each slot: as it is if the slot lies below the density, else its complement. A
        slot beyond all cells has the complement of their number.
    firsts : array of int64
        The first slot of each cell, and last the first one beyond all cells.
    """

    cells: NDArray[np.int16]
    firsts: IntVector

    @property
    def height(self) -> int:
        """Slots over the first cell: the density at zero, in slots."""
        return int(self.firsts[1])

    @property
    def beyond(self) -> int:
        """Number of slots beyond all cells."""
        return len(self.cells) - int(self.firsts[-1])


def fine_bits(k: int) -> int:
    """Logarithm of the number of cells of a width of 2**k integers."""
    return min(k, MAX_FINE)


@cache
def slots_for(fine: int, odd: int) -> Slots:
    """Slots over cells of ``2**-fine`` widths: as many over zero as there is room for."""
    count = CELL_WIDTHS[odd] << fine
    with localcontext(_exact(60)):
        weights = [_decimal_weight(i, fine, odd) for i in range(count + 1)]
        # Two proposals of the first width beyond the cells for each acceptance at its beginning.
        beyond = 2 * weights[-1] * 2**fine
        height = int(2**SLOT_BITS / (sum(weights[:-1]) + beyond))
        while (
            sum(_rounded(height * weight, ROUND_CEILING) for weight in (*weights[:-1], beyond))
            > 2**SLOT_BITS
        ):
            height -= 1
        tops = [_rounded(height * weight, ROUND_CEILING) for weight in weights[:-1]]
        below = [_rounded(height * weight, ROUND_FLOOR) for weight in weights[1:]]
    firsts = np.cumsum([0, *tops])
    cells = np.full(2**SLOT_BITS, ~count, np.int16)
    for cell, (first, sure, top) in enumerate(zip(firsts, below, tops, strict=False)):
        cells[first : first + sure] = cell
        cells[first + sure : first + top] = ~cell
    return Slots(cells, firsts)


def _rounded(number: Decimal, rounding: str) -> int:
    return int(number.to_integral_value(rounding))


@inlined
def _weight(y, k, odd):
    """exp(-c x^2), x = y / 2**k = V + u widths, in units of 2**-31: exp(-c V^2) times exp(-c (2 V u
    + u^2)); of fewer than eight widths.
    """
    V, u = y >> k, (y & ((1 << k) - 1)) << (31 - k)
    x = (((V * u) << 2) + ((u * u) >> 30)) >> (1 - odd)  # c (2 V u + u^2) in units of 2**-32
    rest = x & 0xFFFFF
    weight = (_WEIGHT[odd, V] * _EXP[0, x >> 32]) >> 31
    weight = (weight * _EXP[1, (x >> 26) & 63]) >> 31
    weight = (weight * _EXP[2, (x >> 20) & 63]) >> 31
    return (weight * ((1 << 31) - (rest >> 1) + ((rest * rest) >> 34))) >> 31


@inlined
def _compared(height, step, weight, factor):
    """Whether heights from ``height`` to ``height + step`` lie below ``factor * weight``, which has
    an error: 1 if they do, 0 if they lie above, -1 if that is not certain.
    """
    density, error = factor * weight, factor * WEIGHT_ERROR
    if height + step <= density - error:
        return 1
    return 0 if height >= density + error else -1


@compiled(nogil=True)
def fill_gaussian(words, at, out, done, k, odd, cells, firsts):
    """Write discrete Gaussians of variance parameter ``2**(2 k - odd)`` into ``out[done:]``.

    Parameters
    ----------
    words : array of uint64
        Independent uniform random words.
    at : array of int64 of length 1
        Position of the next unused word; set to the end of the last finished proposal.
    out : array of int64
        Output array of the noise.
    done : int
        Number of coordinates already filled.
    k, odd : int
        A width has ``2**k`` integers; k is at most 31.
    cells, firsts : arrays
        `Slots` for these.

    Returns
    -------
    int
        Number of coordinates now filled; fewer than ``out.size`` if the words ran out. If a
        comparison was too close to decide, the complement ``~filled``, which is negative:
        ``exact_gaussian`` continues with the proposal that ``at`` points to.
    """
    fine = min(k, MAX_FINE)
    low = k - fine
    mask, count = (1 << low) - 1, firsts.size - 1
    height, beyond = firsts[1], cells.size - firsts[count]
    place, size = at[0], words.size
    while done < out.size and place < size:
        word = words[np.uint64(place)]  # unsigned, to avoid a test for negative indices
        slot = np.int64(word & np.uint64((1 << SLOT_BITS) - 1))
        cell = np.int64(cells[np.uint64(slot)])
        minus = np.int64(word >> np.uint64(_SIGN_AT)) & 1
        y, used = np.int64(word >> np.uint64(_PLACE_AT)) & mask, 1
        if cell >= 0:
            y |= cell << low
        else:
            cell, digits = ~cell, np.int64(word >> np.uint64(_HEIGHT_AT))
            if cell < count:
                y |= cell << low
                # the rank of the slot over its cell, and then the digits
                bottom, step = ((slot - firsts[cell]) << 31) + (digits << 7), 1 << 7
                density, far = height, False
            elif place + 1 == size:
                break
            else:
                word, run, used = words[np.uint64(place + 1)], 0, 2
                y |= np.int64(word & np.uint64((1 << fine) - 1)) << low
                word >>= np.uint64(TAIL_BITS)
                while word & np.uint64(1):
                    run += 1
                    word >>= np.uint64(1)
                if run == _LONGEST_RUN:  # it goes on in the next word
                    at[0] = place
                    return ~done
                y += ((count >> fine) + run) << k
                far = y >> k >= _MAX_WIDTHS
                bottom, step = (beyond * digits) << 7, beyond << 7
                density = 0 if far else height << (fine + run + 1)
            if far:
                accepted = 0 if digits > 2 else -1  # the definition asks for more digits up to 2
            else:
                accepted = _compared(bottom, step, _weight(y, k, odd), density)
            if accepted < 0:
                at[0] = place
                return ~done
            if not accepted:
                place += used
                continue
        place += used
        if y | (minus ^ 1):  # "minus zero" is rejected, or 0 would be twice as likely
            out[done] = (y ^ -minus) + minus
            done += 1
    at[0] = place
    return done
