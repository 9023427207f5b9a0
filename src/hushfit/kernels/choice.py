"""Exact sampling of an index with probabilities proportional to exp(-gap), from random bits and
integer arithmetic only.

Candidates are proposed uniformly and accepted with probability exp(-gap);
``docs/proofs/selection.md`` has the proof. As in ``kernels/noise.py`` the bits are a stream: a
proposal that runs out of them starts again *from its own first bit* when there are more.
"""

import numpy as np

from hushfit._typing import IntVector
from hushfit.kernels._compile import compiled
from hushfit.kernels.noise import _BUFFER_EXHAUSTED, Words, _all_exp_minus, _exp_minus, take


@compiled(nogil=True)
def _uniform(words, at, sides):
    """A uniform draw from {0, ..., sides - 1}, by rejection."""
    bits = 0
    while (1 << bits) < sides:
        bits += 1
    drawn = take(words, at, bits)
    while drawn >= sides and at[0] != _BUFFER_EXHAUSTED:
        drawn = take(words, at, bits)
    return drawn


@compiled(nogil=True)
def _accepted(words, at, gap, bits):
    """Bernoulli(exp(-gap / 2**bits)): a trial for each whole unit, and one for the rest."""
    whole = gap >> bits
    rest = gap - (whole << bits)
    return _all_exp_minus(words, at, 1, 0, whole) and _exp_minus(words, at, rest, bits)


@compiled(nogil=True)
def _choose(words, at, gaps, bits):
    while True:
        start = at[0]
        candidate = _uniform(words, at, gaps.shape[0])
        # The order of evaluation matters: a candidate drawn past the end of the words is not valid.
        accepted = at[0] != _BUFFER_EXHAUSTED and _accepted(words, at, gaps[candidate], bits)
        if at[0] == _BUFFER_EXHAUSTED:
            at[0] = start
            return -1
        if accepted:
            return candidate


def choose(words: Words, at: IntVector, gaps: IntVector, bits: int) -> int:
    """Choose an index with probability proportional to ``exp(-gaps / 2**bits)``.

    Parameters
    ----------
    words : array of uint32
        Independent uniform random words.
    at : array of int64 of length 1
        Position of the next unused bit; set to the end of the last finished proposal.
    gaps : array of int64
        At least 0; 0 for the best candidate.
    bits : int
        Between 0 and 31.

    Returns
    -------
    int
        The index, or -1 if the words ran out.
    """
    return int(_choose(words, at, np.ascontiguousarray(gaps), bits))
