"""Rows of a Poisson batch, from random bits: by comparing digits or by sampling the gaps."""

import numpy as np

from hushfit.kernels._compile import compiled

# A de Bruijn sequence: multiplied by a power of two, its top six bits differ for each power.
_SEQUENCE = np.uint64(0x03F79D71B4CB0A89)
_SHIFT = np.uint64(58)
_PLACES = np.empty(64, dtype=np.int64)
for _bit in range(64):
    _PLACES[(int(_SEQUENCE) << _bit) % 2**64 >> 58] = _bit
_AT_ONCE = 3


@compiled(nogil=True)
def _popcount(word):
    """Number of one bits: added up in pairs, in fours, in bytes, and all bytes by one product."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled(nogil=True)
def _lowest_one(word):
    """Position of the lowest one bit; arbitrary for zero."""
    return _PLACES[((word & (~word + np.uint64(1))) * _SEQUENCE) >> _SHIFT]


@compiled(nogil=True)
def zero_in_all(planes, count):
    """Positions among the first ``count`` bits where no plane has a one."""
    zeros = ~planes[0]
    for plane in range(1, planes.shape[0]):
        for place in range(zeros.shape[0]):
            zeros[place] &= ~planes[plane, place]
    if count % 64:
        zeros[-1] &= (np.uint64(1) << np.uint64(count % 64)) - np.uint64(1)
    # Counted first: allocating an array for all rows costs more time than the count.
    total = 0
    for word in zeros:
        total += _popcount(word)
    found = np.empty(total + _AT_ONCE, np.int64)
    taken = 0
    for place in range(zeros.shape[0]):
        word = zeros[place]
        # At a small rate a word has one or two bits. Writing a fixed number of positions, valid or
        # not, avoids mispredicted branches.
        for k in range(_AT_ONCE):
            found[taken + k] = 64 * place + _lowest_one(word)
            word &= word - np.uint64(1)
        following = taken + _popcount(zeros[place])
        taken += _AT_ONCE
        while word:
            found[taken] = 64 * place + _lowest_one(word)
            word &= word - np.uint64(1)
            taken += 1
        taken = following
    return found[:total]


@compiled(nogil=True)
def below(rows, heads, head, words, tail):
    """Move the rows whose digits are below a bound to the front of ``rows``; returns their number.

    The first eight bits of each are compared with ``head``; if they are equal, the next 56, from a
    separate word, with ``tail``.
    """
    taken = tied = 0
    for k in range(rows.shape[0]):
        inside = heads[k] < head
        if heads[k] == head:
            inside = (words[tied] >> np.uint64(8)) < tail
            tied += 1
        rows[taken] = rows[k]
        taken += inside
    return taken


@compiled(nogil=True)
def scan_gaps(words, beyond, guide, row, n_units, rows):
    """Sample the gaps between taken rows, one random word for each, and write the taken rows into
    ``rows``.

    Gap ``k`` corresponds to the words from ``beyond[k]`` to ``beyond[k - 1]``. A word below all
    bounds skips as many rows as there are bounds and takes none. A word at a bound, or just above
    it, is left to the caller, because more digits are needed.

    Returns the number of rows taken, the next row, and the number of words used.
    """
    longest = beyond.shape[0]
    shift = np.uint64(64 - _popcount(np.uint64(guide.shape[0] - 1)))
    taken = 0
    for used in range(words.shape[0]):
        word = words[used]
        gap = np.int64(guide[word >> shift])
        while gap < longest and word < beyond[gap]:
            gap += 1
        if gap < longest and word - beyond[gap] <= np.uint64(1):
            return taken, row, used
        row += gap
        if row >= n_units:
            return taken, n_units, used + 1
        if gap < longest:
            rows[taken] = row
            taken += 1
            row += 1
    return taken, row, words.shape[0]
