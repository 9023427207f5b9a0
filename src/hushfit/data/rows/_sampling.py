"""Secret sampling of the records of a batch. Drawn inside the trusted boundary and never
revealed.
"""

import math
import os
import ssl
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from itertools import accumulate, islice
from typing import Protocol

import numpy as np

from hushfit._typing import AnyArray, IntVector
from hushfit.kernels.coins import below, scan_gaps, zero_in_all

# Below this rate it is cheaper to draw the gaps between the sampled rows than a few digits for each
# row.
_SMALL_RATE = 1 / 32
# Bounds for gaps up to eight times the average one, unless they would fill the cache; longer gaps
# are drawn in parts.
_LONG_GAP, _MAX_BOUNDS = 8, 2048
_DIGITS = 192


class Coins(Protocol):
    """A random source of uniform 64-bit words."""

    def words(self, count: int) -> AnyArray: ...


@dataclass(frozen=True)
class SecureCoins:
    """Words from OpenSSL's cryptographic generator, with fresh entropy of the operating system
    mixed in; see docs/adr/0009.
    """

    def __post_init__(self) -> None:
        ssl.RAND_add(os.urandom(64), 64.0)

    def words(self, count: int) -> AnyArray:
        return np.frombuffer(ssl.RAND_bytes(8 * count), dtype=np.uint64)


@dataclass(frozen=True)
class SeededCoins:
    """Reproducible words, for tests and simulations only: whoever knows the seed knows the
    batches.
    """

    seed: int
    _generator: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_generator", np.random.default_rng(self.seed))

    def words(self, count: int) -> AnyArray:
        return self._generator.bit_generator.random_raw(count)


def poisson_units(n_units: int, rate: float, coins: Coins) -> IntVector:
    """Poisson sampling: each row independently with probability ``rate``, rounded down to a
    multiple of 2**-64; a smaller rate is never less private.

    Exact either way (docs/proofs/poisson.md): small rates draw the gap from one sampled row to the
    next, others some digits for every row.
    """
    if rate >= 1.0:
        return np.arange(n_units)
    threshold = int(rate * 2.0**64)
    if threshold == 0:
        return np.empty(0, dtype=np.int64)
    return (
        _rows_by_gaps(n_units, threshold, coins)
        if rate < _SMALL_RATE
        else _rows_by_digits(n_units, threshold, coins)
    )


def _rows_by_digits(n_units: int, threshold: int, coins: Coins) -> IntVector:
    """A row is sampled if its random number, in binary, is below the rate: almost always the first
    few digits decide, and no more are drawn.
    """
    # If the rate starts with zeros so must the number; the 64 digits after them are compared.
    zeros = 64 - threshold.bit_length()
    rows = _starting_with_zeros(n_units, zeros, coins)
    head, tail = divmod(threshold << zeros, 2**56)
    heads = _random_bytes(len(rows), coins)
    undecided = coins.words(int(np.count_nonzero(heads == head)))
    return rows[: below(rows, heads, head, undecided, np.uint64(tail))]


def _starting_with_zeros(n_units: int, zeros: int, coins: Coins) -> IntVector:
    """Rows whose number starts with ``zeros`` zeros; a word has one digit of 64 rows."""
    if zeros == 0:
        return np.arange(n_units)
    digits = coins.words(zeros * -(-n_units // 64)).reshape(zeros, -1)
    rows: IntVector = zero_in_all(digits, n_units)
    return rows


def _random_bytes(count: int, coins: Coins) -> AnyArray:
    return coins.words(-(-count // 8)).view(np.uint8)[:count]


@dataclass(frozen=True, eq=False)
class _Gaps:
    """Distribution of the gap to the next sampled row: more than ``k`` rows if a random number is
    below (1 - rate)^(k+1).

    ``beyond[k]`` has the first 64 digits of that bound or is one too small. For words that start
    like ``b``, ``guide[b]`` is the least gap. ``rows_per_word`` is the mean number of rows that a
    word advances the scan.
    """

    threshold: int
    beyond: AnyArray
    guide: AnyArray
    rows_per_word: float

    def words_for(self, n_units: int) -> int:
        """Words that suffice to scan that many rows, except a few times in a hundred thousand."""
        expected = n_units / self.rows_per_word
        return int(expected + 4 * math.sqrt(expected)) + 8

    def exact(self, word: int, coins: Coins) -> int:
        """The gap of a word that is too close to a bound: all digits of its number and of all
        bounds are compared.
        """
        longest, stay = len(self.beyond), 2**64 - self.threshold
        number = reduce(
            lambda digits, more: digits << 64 | int(more), coins.words(longest - 1), word
        )
        return bisect_left(
            range(longest), True, key=lambda k: number >= stay ** (k + 1) << 64 * (longest - k - 1)
        )


@lru_cache  # all steps of a run have the same rate
def _gaps(threshold: int) -> _Gaps:
    longest = min(_MAX_BOUNDS, -(-_LONG_GAP * 2**64 // threshold))
    # Rounded down at each step, with digits to spare: after a few thousand steps the first 64
    # digits are right or one too small.
    powers = accumulate(
        range(longest), lambda power, _: power * (2**64 - threshold) >> 64, initial=2**_DIGITS
    )
    beyond = np.array([power >> _DIGITS - 64 for power in islice(powers, 1, None)], dtype=np.uint64)
    starts = 2 ** (longest - 1).bit_length()
    last_words = np.arange(1, starts + 1, dtype=np.uint64) * np.uint64(2**64 // starts) - np.uint64(
        1
    )
    guide = longest - np.searchsorted(beyond[::-1], last_words, side="right")
    return _Gaps(threshold, beyond, guide.astype(np.int32), 1 + math.fsum(beyond[:-1]) / 2.0**64)


def _rows_by_gaps(n_units: int, threshold: int, coins: Coins) -> IntVector:
    """Scan the rows from one sampled row to the next."""
    gaps, row, parts = _gaps(threshold), 0, [np.empty(0, dtype=np.int64)]
    while row < n_units:
        words = coins.words(gaps.words_for(n_units - row))
        rows = np.empty(len(words), dtype=np.int64)
        taken, row, used = scan_gaps(words, gaps.beyond, gaps.guide, row, n_units, rows)
        if row < n_units and used < len(words):
            gap = gaps.exact(int(words[used]), coins)
            row += gap
            if gap < len(gaps.beyond) and row < n_units:
                rows[taken] = row
                taken, row = taken + 1, row + 1
        parts.append(rows[:taken])
    return parts[-1] if len(parts) == 2 else np.concatenate(parts)


def fixed_size_units(n_units: int, size: int, coins: Coins) -> IntVector:
    """``size`` different rows, every subset equally likely: those with the smallest of n random
    words.

    If the last word taken and the first one left are equal, all are drawn again; the rule is the
    same for all rows, so the result is exactly uniform.
    """
    if size >= n_units:
        return np.arange(n_units)
    while True:
        words = coins.words(n_units)
        order = np.argpartition(words, (size - 1, size))
        if words[order[size - 1]] != words[order[size]]:
            return np.sort(order[:size])
