"""Exact discrete Gaussian and Laplace noise on the integers, from random bits and integer
arithmetic only.

The Laplace is that of Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy"
(2020): all parameters are powers of two, so every exponent is a dyadic rational and every trial
compares fresh bits with an integer. The Gaussian uses rejection sampling: proposals come from a
table of dyadic probabilities and are accepted by one comparison of random bits with an exponential,
known to 31 bits but for a few units of the last. If the comparison is too close to decide, the
kernel reports it and leaves that proposal to ``privacy/noise/_exact_gaussian.py``.
``docs/proofs/noise.md`` has the algebra and the proof.

The bits are a stream: ``at[0]`` is the position of the next one. A coordinate that reads past the
end is discarded and computed again *from the same bits*, followed by fresh ones, so that the output
is a function of the stream alone and the size of the buffer cannot bias it.
"""

from collections.abc import Callable
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    InvalidOperation,
    Overflow,
    localcontext,
)
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from hushfit._typing import IntVector
from hushfit.kernels._compile import compiled, inlined

Words: TypeAlias = NDArray[np.uint32]
_Function = TypeVar("_Function", bound=Callable[..., Any])

# Positions that no stream reaches: the first marks an exhausted buffer, and every later read sees
# it; from the second on, an undecided proposal, with the position where that proposal starts added
# to it.
_BUFFER_EXHAUSTED = 1 << 62
_UNDECIDED = _BUFFER_EXHAUSTED + 1
# Bits compared at a time: one trial in 256 needs more than the first.
_BITS_PER_COMPARISON = 8

# Of 64 proposals so many are 0, 1 and 2 widths, for even and odd exponents; the last is 3 plus a
# geometric number. Relative to the first weight they are at least exp(-V^2/2) and exp(-V^2), so
# that no acceptance probability exceeds one.
PROPOSAL_WEIGHTS = ((36, 22, 5), (45, 17, 1))
WIDTHS = np.array([np.repeat([0, 1, 2, 3], [*weights, 1]) for weights in PROPOSAL_WEIGHTS])
COMPARED_BITS = 24  # bits of a random number that are compared with an acceptance probability
_MAX_WIDTHS = 8  # from so many widths on, the acceptance probability is below 2**-31
# Bound on the error of `_acceptance_probability` in units of 2**-31: at most 11 by
# docs/proofs/noise.md.
ACCEPTANCE_ERROR = 16


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


def acceptance_in_units(V: int, U: int, k: int, odd: int, digits: int) -> int:
    """Acceptance probability of V + U / 2**k widths, in units of 2**-digits; truncated, so too
    large by a negligible error and too small by less than one plus that error.
    """
    with localcontext(_exact(digits + 100)):  # enough for the square to be exact
        square = (V + Decimal(U) / 2**k) ** 2
        weight = Decimal(PROPOSAL_WEIGHTS[odd][V] if V < 3 else Decimal(2) ** (2 - V))
        return int(
            PROPOSAL_WEIGHTS[odd][0] / weight * (-square if odd else -square / 2).exp() * 2**digits
        )


def _exp_in_units(numerator: int, denominator: int) -> int:
    with localcontext(_exact(40)):
        return int((Decimal(-numerator) / denominator).exp() * 2**31)


_ACCEPTANCE: IntVector = np.array(
    [[acceptance_in_units(V, 0, 0, odd, 31) for V in range(_MAX_WIDTHS)] for odd in (0, 1)]
)
# exp(-x) for integer x, 64ths and 4096ths.
_EXP: IntVector = np.array([[_exp_in_units(i, part) for i in range(64)] for part in (1, 64, 4096)])


def _compiled(function: _Function) -> _Function:
    """Compile without the interpreter lock, keeping the signature for the type checker."""
    loop: _Function = compiled(nogil=True)(function)
    return loop


@inlined
def take(words: Words, at: IntVector, bits: int) -> int:
    """Return the next ``bits`` (at most 31) bits of the stream as an integer."""
    start = at[0]
    # The last word only completes reads that begin before it, so that two words can always be read.
    if start + bits >= 32 * (words.size - 1):
        at[0] = _BUFFER_EXHAUSTED
        return 0
    at[0] = start + bits
    word = np.uint64(start >> 5)  # unsigned, to avoid a test for negative indices
    pair = np.int64(words[word]) | (np.int64(words[word + np.uint64(1)]) << 32)
    return int((pair >> (start & 31)) & ((1 << bits) - 1))


@inlined
def _below(words: Words, at: IntVector, numerator: int, bits: int) -> bool:
    """Bernoulli(numerator / 2**bits): are ``bits`` fresh bits, most significant first, below the
    numerator?
    """
    if numerator >> bits:
        return True
    while bits > 0:
        width = min(bits, _BITS_PER_COMPARISON)
        bits -= width
        drawn = take(words, at, width)
        wanted = (numerator >> bits) & ((1 << width) - 1)
        if drawn != wanted:
            return drawn < wanted  # the remaining bits cannot change the answer
    return False


@inlined
def _one_in(words: Words, at: IntVector, sides: int) -> bool:
    """Bernoulli(1 / sides): a uniform draw from {0, ..., sides - 1}, by rejection, is 0."""
    bits = 0
    while (1 << bits) < sides:
        bits += 1
    drawn = take(words, at, bits)
    while drawn >= sides:
        drawn = take(words, at, bits)
    return drawn == 0


@inlined
def _exp_minus(words: Words, at: IntVector, numerator: int, bits: int) -> bool:
    """Bernoulli(exp(-x)), x = numerator / 2**bits in [0, 1]: of Bernoulli(x/K), K = 1, 2, ...,
    an odd K fails first.
    """
    K = 1
    while (
        at[0] != _BUFFER_EXHAUSTED and _one_in(words, at, K) and _below(words, at, numerator, bits)
    ):
        K += 1
    return at[0] != _BUFFER_EXHAUSTED and K % 2 == 1


@inlined
def _all_exp_minus(words: Words, at: IntVector, numerator: int, bits: int, times: int) -> bool:
    """Bernoulli(exp(-times * x)): ``times`` independent trials all succeed."""
    while times > 0 and _exp_minus(words, at, numerator, bits):
        times -= 1
    return times == 0


@inlined
def _laplace(words: Words, at: IntVector, k: int) -> int:
    """One discrete Laplace draw of scale 2**k."""
    while at[0] < _BUFFER_EXHAUSTED:
        U = take(words, at, k)
        if not _exp_minus(words, at, U, k):
            continue
        V = 0
        while _exp_minus(words, at, 1, 0):
            V += 1
        magnitude = (V << k) + U
        if take(words, at, 1) == 0:
            return magnitude
        if magnitude > 0:  # "minus zero" is rejected, or 0 would be twice as likely
            return -magnitude
    return 0


@inlined
def _acceptance_probability(V: int, U: int, k: int, odd: int) -> int:
    """Acceptance probability of V + u widths, u = U / 2**k, in units of 2**-31: exp(-c V^2) /
    weight times exp(-c (2 V u + u^2)).
    """
    if V >= _MAX_WIDTHS:
        return 0
    u = U << (31 - k)
    x = (((V * u) << 2) + ((u * u) >> 30)) >> (1 - odd)  # c (2 V u + u^2) in units of 2**-32
    rest = x & 0xFFFFF
    probability = (_ACCEPTANCE[odd, V] * _EXP[0, x >> 32]) >> 31
    probability = (probability * _EXP[1, (x >> 26) & 63]) >> 31
    probability = (probability * _EXP[2, (x >> 20) & 63]) >> 31
    return int((probability * ((1 << 31) - (rest >> 1) + ((rest * rest) >> 34))) >> 31)


@inlined
def _gaussian(words: Words, at: IntVector, k: int, odd: int) -> int:
    """One discrete Gaussian draw, of |V + u| widths of 2**k each; if a comparison is too close to
    decide, ``at`` is marked.
    """
    while at[0] < _BUFFER_EXHAUSTED:
        first = at[0]
        U = take(words, at, k)
        drawn = take(words, at, 31)  # a sign, a proposal and the bits to be compared
        minus, proposal, digits = drawn & 1, (drawn >> 1) & 63, drawn >> 7
        V = int(WIDTHS[odd, proposal])
        if V == 3:
            while take(words, at, 1) == 1:
                V += 1
        magnitude = (V << k) + U
        if minus and magnitude == 0:  # "minus zero" is rejected, or 0 would be twice as likely
            continue
        excess = (digits << 7) - _acceptance_probability(V, U, k, odd)
        if excess + (1 << 7) <= -ACCEPTANCE_ERROR:
            return -magnitude if minus else magnitude
        if excess < ACCEPTANCE_ERROR and at[0] < _BUFFER_EXHAUSTED:
            at[0] = _UNDECIDED + first
    return 0


@inlined
def _unfinished(at: IntVector, start: int, done: int) -> int:
    """What a loop returns whose bits ended in a coordinate; ``at`` is left where it starts.

    If a comparison was too close to decide, ``at`` is left at the start of that proposal. Proposals
    before it are rejected by their own bits and finished: reading them again, by a rule that
    compares more bits, would shift the meaning of the bits after them.
    """
    undecided = at[0] >= _UNDECIDED
    at[0] = at[0] - _UNDECIDED if undecided else start
    return ~done if undecided else done


@_compiled
def fill_gaussian(
    words: Words, at: IntVector, out: IntVector, done: int, log2_variance: int
) -> int:
    """Write discrete Gaussians of variance parameter ``2**log2_variance`` into ``out[done:]``.

    Parameters
    ----------
    words : array of uint32
        Independent uniform random words.
    at : array of int64 of length 1
        Position of the next unused bit; set to the end of the last finished coordinate.
    out : array of int64
        Output array of the noise.
    done : int
        Number of coordinates already filled.
    log2_variance : int
        Between 0 and 62.

    Returns
    -------
    int
        Number of coordinates now filled; fewer than ``out.size`` if the words ran out. If a
        comparison was too close to decide, the complement ``~filled``, which is negative:
        ``exact_gaussian`` continues with the proposal that ``at`` points to.
    """
    k, odd = (log2_variance + 1) // 2, log2_variance % 2
    while done < out.size:
        start = at[0]
        drawn = _gaussian(words, at, k, odd)
        if at[0] >= _BUFFER_EXHAUSTED:
            return _unfinished(at, start, done)
        out[done] = drawn
        done += 1
    return done


@_compiled
def fill_laplace(words: Words, at: IntVector, out: IntVector, done: int, log2_scale: int) -> int:
    """Write discrete Laplace noise of scale ``2**log2_scale`` (0 to 31) into ``out[done:]``.

    Parameters and result are those of `fill_gaussian`; no comparison is ever undecided.
    """
    while done < out.size:
        start = at[0]
        drawn = _laplace(words, at, log2_scale)
        if at[0] >= _BUFFER_EXHAUSTED:
            return _unfinished(at, start, done)
        out[done] = drawn
        done += 1
    return done
