"""Secret coins: which records take part in a step. Drawn inside the boundary and never shown."""

import os
import ssl
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from hushfit._typing import AnyArray, IntVector
from hushfit.kernels.coins import below, zero_in_all

# Beyond so many leading zeros of a rate it is cheaper to compare whole bytes.
_MOST_ZEROS = 6


class Coins(Protocol):
    """A source of uniform 64-bit words."""

    def words(self, count: int) -> AnyArray: ...


@dataclass(frozen=True)
class SecureCoins:
    """Words from OpenSSL's cryptographic generator, with fresh entropy of the operating system mixed in; see docs/adr/0009."""

    def __post_init__(self) -> None:
        ssl.RAND_add(os.urandom(64), 64.0)

    def words(self, count: int) -> AnyArray:
        return np.frombuffer(ssl.RAND_bytes(8 * count), dtype=np.uint64)


@dataclass(frozen=True)
class SeededCoins:
    """Reproducible words, for tests and simulations only: whoever knows the seed knows the batches."""

    seed: int
    _generator: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_generator", np.random.default_rng(self.seed))

    def words(self, count: int) -> AnyArray:
        return self._generator.bit_generator.random_raw(count)


def poisson_rows(n_rows: int, rate: float, coins: Coins) -> IntVector:
    """Each row on its own with probability ``rate``, rounded down to a multiple of 2**-64: less is never less private.

    A row is in when its random number, written in binary, lies below the rate. Almost always the first few digits tell, and only
    as many are drawn as it takes.
    """
    if rate >= 1.0:
        return np.arange(n_rows)
    threshold = int(rate * 2.0**64)
    if threshold == 0:
        return np.empty(0, dtype=np.int64)
    # Where the rate starts with zeros so must the number; what follows is compared with the 64 digits after them.
    zeros = min(64 - threshold.bit_length(), _MOST_ZEROS)
    rows = _starting_with_zeros(n_rows, zeros, coins)
    head, tail = divmod(threshold << zeros, 2**56)
    heads = _random_bytes(len(rows), coins)
    undecided = coins.words(int(np.count_nonzero(heads == head)))
    return rows[: below(rows, heads, head, undecided, np.uint64(tail))]


def _starting_with_zeros(n_rows: int, zeros: int, coins: Coins) -> IntVector:
    """Rows whose number starts with so many zeros, one digit of 64 rows to a word."""
    if zeros == 0:
        return np.arange(n_rows)
    digits = coins.words(zeros * -(-n_rows // 64)).reshape(zeros, -1)
    rows: IntVector = zero_in_all(digits, n_rows)
    return rows


def _random_bytes(count: int, coins: Coins) -> AnyArray:
    return coins.words(-(-count // 8)).view(np.uint8)[:count]


def fixed_size_rows(n_rows: int, size: int, coins: Coins) -> IntVector:
    """``size`` different rows, every subset equally likely: those with the smallest of n random words.

    A tie between the last word taken and the first one left is drawn again; the rule is the same for all rows, so what
    remains is exactly uniform.
    """
    if size >= n_rows:
        return np.arange(n_rows)
    while True:
        words = coins.words(n_rows)
        order = np.argpartition(words, (size - 1, size))
        if words[order[size - 1]] != words[order[size]]:
            return np.sort(order[:size])
