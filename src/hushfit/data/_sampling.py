"""Secret coins: which records take part in a step. Drawn inside the boundary and never shown."""

import os
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from hushfit._typing import AnyArray, IntVector


class Coins(Protocol):
    """A source of uniform 64-bit words."""

    def words(self, count: int) -> AnyArray: ...


@dataclass(frozen=True)
class SecureCoins:
    """Words from the operating system's cryptographic generator."""

    def words(self, count: int) -> AnyArray:
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


@dataclass(frozen=True)
class SeededCoins:
    """Reproducible words, for tests and simulations only: whoever knows the seed knows the batches."""

    seed: int
    _generator: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_generator", np.random.default_rng(self.seed))

    def words(self, count: int) -> AnyArray:
        return self._generator.integers(0, 2**64, size=count, dtype=np.uint64)


def poisson_rows(n_rows: int, rate: float, coins: Coins) -> IntVector:
    """Each row on its own with probability ``rate``, rounded down to a multiple of 2**-64: less is never less private."""
    if rate >= 1.0:
        return np.arange(n_rows)
    threshold = np.uint64(int(rate * 2.0**64))
    return np.flatnonzero(coins.words(n_rows) < threshold)


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
