"""Groups of records whose gradients are added in float32. Proof: docs/proofs/networks.md.

The rounding of a sum in float32 is bounded by the number of its terms, so sums are taken over few
records at a time. Which records form a group depends on the records alone, not on their order: the
range of keys is halved until no part has too many. One record more or less changes the groups of
one such part, and no other group by a single bit.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hushfit._typing import AnyArray, BoolVector
from hushfit.torch._parts import Part, Totals

# Largest number of records whose gradients are added in float32.
GROUP_ROWS = 320
_KEY_BITS = 64
_MIXER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: odd, with even spread
_BLOCK = 4096


def keys_of(*arrays: AnyArray) -> AnyArray:
    """A number for each record, from the bits of its entries alone: a multilinear hash.

    Parameters
    ----------
    *arrays : arrays with one entry of the first axis for each record

    Returns
    -------
    uint64 array
    """
    keys = np.zeros(len(arrays[0]), dtype=np.uint64)
    for place, array in enumerate(arrays):
        bits = np.ascontiguousarray(array).reshape(len(array), -1)
        bits = bits.view(f"u{bits.dtype.itemsize}")
        factors = _mixed(np.arange(1, bits.shape[1] + 1, dtype=np.uint64) + np.uint64(place << 32))
        for start in range(0, len(bits), _BLOCK):
            block = slice(start, start + _BLOCK)
            keys[block] += bits[block].astype(np.uint64) @ factors
    return _mixed(keys)


def finite_rows(array: AnyArray) -> BoolVector:
    """Which records have finite entries only."""
    flat = array.reshape(len(array), -1)
    found = np.empty(len(flat), dtype=np.bool_)
    for start in range(0, len(flat), _BLOCK):
        block = slice(start, start + _BLOCK)
        found[block] = np.isfinite(flat[block]).all(axis=1)
    return found


def _mixed(numbers: AnyArray) -> AnyArray:
    """Well mixed bits (the finaliser of splitmix64)."""
    numbers = numbers * _MIXER
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def group_ends(keys: AnyArray, most: int = GROUP_ROWS) -> list[int]:
    """Where groups of records with sorted keys end: as large as halving the range of keys makes
    them, of at most ``most`` records, or of one key.
    """
    ends: list[int] = []
    _halve(keys, 0, len(keys), 0, _KEY_BITS, most, ends)
    return ends


def _halve(
    keys: AnyArray, first: int, last: int, low: int, bits: int, most: int, ends: list[int]
) -> None:
    if first == last:
        return
    if last - first <= most or bits == 0:
        ends.append(last)
        return
    middle = low + (1 << (bits - 1))
    cut = first + int(np.searchsorted(keys[first:last], np.uint64(middle)))
    _halve(keys, first, cut, low, bits - 1, most, ends)
    _halve(keys, cut, last, middle, bits - 1, most, ends)


@dataclass(frozen=True, eq=False)
class Weighted:
    """Gradients of some records, and what each is multiplied by (float64)."""

    parts: list[Part]
    weights: Tensor

    def __len__(self) -> int:
        return len(self.weights)

    def some(self, rows: slice) -> "Weighted":
        """Those of some records."""
        if rows == slice(0, len(self)):
            return self
        return Weighted([part.some(rows) for part in self.parts], self.weights[rows])

    def with_more(self, others: Sequence["Weighted"]) -> "Weighted":
        """The same, followed by those of further records."""
        if not others:
            return self
        layers = zip(self.parts, *(one.parts for one in others), strict=True)
        parts = [part.with_more(more) for part, *more in layers]
        return Weighted(parts, torch.cat([self.weights, *(one.weights for one in others)]))

    def add_to(self, totals: Totals) -> None:
        """Add the weighted sum to totals, in float64."""
        for part in self.parts:
            part.add_to(totals, self.weights)

    def write_rounded(self, sums: Totals, unit: float) -> None:
        """Write the weighted sum, in units of ``unit`` and in float32."""
        weights = (self.weights / unit).float()
        for part in self.parts:
            part.write_rounded(sums, weights)


def regrouped(chunks: Iterable[Weighted], ends: Iterable[int]) -> Iterator[Weighted]:
    """The same records in the same order, in pieces that end at the given places."""
    held: list[Weighted] = []
    at, coming = 0, iter(ends)
    end = next(coming, math.inf)
    for chunk in chunks:
        start = 0
        while at + len(chunk) - start >= end:
            stop = start + int(end) - at
            first, *others = [*held, chunk.some(slice(start, stop))]
            yield first.with_more(others)
            held, start, at, end = [], stop, int(end), next(coming, math.inf)
        if start < len(chunk):
            held.append(chunk.some(slice(start, len(chunk))))
            at += len(chunk) - start
