"""Exact discrete Laplace noise on the integers, from random bits and integer arithmetic only.

It is that of Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy" (2020):
all parameters are powers of two, so every exponent is a dyadic rational and every trial compares
fresh bits with an integer. ``docs/proofs/noise.md`` has the algebra and the proof.

The bits are a stream: ``at[0]`` is the position of the next one. A coordinate that reads past the
end is discarded and computed again *from the same bits*, followed by fresh ones, so that the output
is a function of the stream alone and the size of the buffer cannot bias it.
"""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from hushfit._typing import IntVector
from hushfit.kernels._compile import compiled, inlined

Words: TypeAlias = NDArray[np.uint32]
_Function = TypeVar("_Function", bound=Callable[..., Any])

# A position that no stream reaches: it marks an exhausted buffer, and every later read sees it.
_BUFFER_EXHAUSTED = 1 << 62
# Bits compared at a time: one trial in 256 needs more than the first.
_BITS_PER_COMPARISON = 8


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


@_compiled
def fill_laplace(words: Words, at: IntVector, out: IntVector, done: int, log2_scale: int) -> int:
    """Write discrete Laplace noise of scale ``2**log2_scale`` (0 to 31) into ``out[done:]``.

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
    log2_scale : int

    Returns
    -------
    int
        Number of coordinates now filled; fewer than ``out.size`` if the words ran out.
    """
    while done < out.size:
        start = at[0]
        drawn = _laplace(words, at, log2_scale)
        if at[0] == _BUFFER_EXHAUSTED:
            at[0] = start
            return done
        out[done] = drawn
        done += 1
    return done
