"""Exact discrete Gaussian and Laplace noise on the integers, from random bits and integer arithmetic only.

The idea is that of Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy" (2020): propose from a
discrete Laplace, accept with a Bernoulli(exp(-gamma)). All parameters are powers of two, so every gamma is a dyadic
rational and every trial compares fresh bits with an integer. ``docs/proofs/noise.md`` has the algebra and the proof.

The bits are a stream: ``at[0]`` is the position of the next one. Whatever a read past the end returns, the coordinate
it belongs to is thrown away and computed again *from the same bits*, followed by fresh ones, so that the output is a
function of the stream alone and the size of the buffer cannot bias it.
"""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hushfit._typing import IntVector

Words: TypeAlias = NDArray[np.uint32]
_Function = TypeVar("_Function", bound=Callable[..., Any])

# A position that no stream reaches: it marks "ran out", and every later read sees it.
_RAN_OUT = 1 << 62
# Width of the first look in a comparison: one trial in 256 has to look further.
_LOOK = 8


def _compiled(function: _Function) -> _Function:
    """Compile without the interpreter lock, keeping the signature for the type checker."""
    compiled: _Function = njit(nogil=True, cache=True)(function)
    return compiled


@_compiled
def _take(words: Words, at: IntVector, bits: int) -> int:
    """Return the next ``bits`` (at most 31) bits of the stream as an integer."""
    start = at[0]
    # The last word only completes reads that begin before it, so that two words can always be fetched.
    if start + bits >= 32 * (words.size - 1):
        at[0] = _RAN_OUT
        return 0
    at[0] = start + bits
    word = np.uint64(start >> 5)  # unsigned, so that no time goes into asking whether it is negative
    pair = np.int64(words[word]) | (np.int64(words[word + np.uint64(1)]) << 32)
    return int((pair >> (start & 31)) & ((1 << bits) - 1))


@_compiled
def _below(words: Words, at: IntVector, numerator: int, bits: int) -> bool:
    """Bernoulli(numerator / 2**bits): are ``bits`` fresh bits, most significant first, below the numerator?"""
    if numerator >> bits:
        return True
    while bits > 0:
        look = min(bits, _LOOK)
        bits -= look
        drawn = _take(words, at, look)
        wanted = (numerator >> bits) & ((1 << look) - 1)
        if drawn != wanted:
            return drawn < wanted  # the bits not looked at cannot change the answer
    return False


@_compiled
def _one_in(words: Words, at: IntVector, sides: int) -> bool:
    """Bernoulli(1 / sides): a uniform draw from {0, ..., sides - 1}, by rejection, is 0."""
    bits = 0
    while (1 << bits) < sides:
        bits += 1
    drawn = _take(words, at, bits)
    while drawn >= sides:
        drawn = _take(words, at, bits)
    return drawn == 0


@_compiled
def _exp_minus(words: Words, at: IntVector, numerator: int, bits: int) -> bool:
    """Bernoulli(exp(-x)), x = numerator / 2**bits in [0, 1]: of Bernoulli(x/K), K = 1, 2, ..., an odd K fails first."""
    K = 1
    while at[0] != _RAN_OUT and _one_in(words, at, K) and _below(words, at, numerator, bits):
        K += 1
    return at[0] != _RAN_OUT and K % 2 == 1


@_compiled
def _all_exp_minus(words: Words, at: IntVector, numerator: int, bits: int, times: int) -> bool:
    """Bernoulli(exp(-times * x)): ``times`` independent trials all succeed."""
    while times > 0 and _exp_minus(words, at, numerator, bits):
        times -= 1
    return times == 0


@_compiled
def _accept(words: Words, at: IntVector, V: int, U: int, log2_variance: int) -> bool:
    """Bernoulli(exp(-gamma)), gamma = (|Y| - variance/t)^2 / (2 variance), |Y| = V t + U, as trials with x <= 1."""
    k = (log2_variance + 1) // 2
    t = 1 << k
    if log2_variance % 2 == 0:  # variance = t^2: gamma = (V - 1 + u)^2 / 2 with u = U/t
        if V == 0:
            return _exp_minus(words, at, (t - U) * (t - U), 2 * k + 1)
        return (
            _all_exp_minus(words, at, 1, 1, (V - 1) * (V - 1))
            and _all_exp_minus(words, at, U, k, V - 1)
            and _exp_minus(words, at, U * U, 2 * k + 1)
        )
    if V == 0:  # variance = t^2 / 2: gamma = (V - 1/2 + u)^2
        return _exp_minus(words, at, (U - t // 2) * (U - t // 2), 2 * k)
    return (
        _all_exp_minus(words, at, 1, 0, V * (V - 1))
        and _exp_minus(words, at, 1, 2)
        and _all_exp_minus(words, at, U, k, 2 * V - 1)
        and _exp_minus(words, at, U * U, 2 * k)
    )


@_compiled
def _coordinate(words: Words, at: IntVector, k: int, log2_variance: int) -> int:
    """One draw with proposal scale 2**k; a negative ``log2_variance`` takes every proposal (discrete Laplace)."""
    while at[0] != _RAN_OUT:
        U = _take(words, at, k)
        if not _exp_minus(words, at, U, k):
            continue
        V = 0
        while _exp_minus(words, at, 1, 0):
            V += 1
        if log2_variance >= 0 and not _accept(words, at, V, U, log2_variance):
            continue
        magnitude = (V << k) + U
        if _take(words, at, 1) == 0:
            return magnitude
        if magnitude > 0:  # "minus zero" is rejected, or 0 would come twice as often
            return -magnitude
    return 0


@_compiled
def _fill(words: Words, at: IntVector, out: IntVector, done: int, k: int, log2_variance: int) -> int:
    """Fill ``out[done:]`` as far as the words reach; leave ``at`` where the first missing coordinate starts."""
    while done < out.size:
        start = at[0]
        drawn = _coordinate(words, at, k, log2_variance)
        if at[0] == _RAN_OUT:
            at[0] = start
            return done
        out[done] = drawn
        done += 1
    return done


@_compiled
def fill_gaussian(words: Words, at: IntVector, out: IntVector, done: int, log2_variance: int) -> int:
    """Write discrete Gaussians of variance parameter ``2**log2_variance`` into ``out[done:]``.

    Parameters
    ----------
    words : array of uint32
        Independent uniform random words.
    at : array of int64 of length 1
        Position of the next unused bit; moved to the end of the last finished coordinate.
    out : array of int64
        Where the noise goes.
    done : int
        How many coordinates are already filled.
    log2_variance : int
        Between 0 and 62.

    Returns
    -------
    int
        How many coordinates are now filled; fewer than ``out.size`` if the words ran out.
    """
    return _fill(words, at, out, done, (log2_variance + 1) // 2, log2_variance)


@_compiled
def fill_laplace(words: Words, at: IntVector, out: IntVector, done: int, log2_scale: int) -> int:
    """Write discrete Laplace noise of scale ``2**log2_scale`` (0 to 31) into ``out[done:]``.

    Parameters and result are those of `fill_gaussian`.
    """
    return _fill(words, at, out, done, log2_scale, -1)
