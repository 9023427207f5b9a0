"""Distribution of a column from noisy counts.

The counts are released, so everything here is post-processing.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from hushfit._typing import Vector

# Edges of the first histogram: for each sign, powers of two from 1e-12 to 1e18 in size, and one bin
# for zero alone.
_POWERS: Vector = np.ldexp(1.0, np.arange(-40, 61))
_BEFORE_ZERO = float(np.nextafter(0.0, -1.0))
FIRST_EDGES: Vector = np.concatenate([-_POWERS[::-1], [_BEFORE_ZERO, 0.0], _POWERS])

# A bin that is above the threshold by noise alone would move the bounds far away. Only utility
# depends on how often that happens.
FALSE_ALARM = 0.02


@dataclass(frozen=True, eq=False)
class Spread:
    """Distribution function of a column, linear between edges.

    ``below`` is the share of values up to each edge. Values beyond the outer edges count as lying
    on them.
    """

    edges: Vector
    below: Vector

    @classmethod
    def of(cls, edges: Vector, counts: Vector, least: float) -> "Spread | None":
        """From noisy counts, treating those below ``least`` as zero; None if all are."""
        counted = np.where(counts >= least, counts, 0.0)
        if not counted.any():
            return None
        below = np.cumsum(counted)[:-1] / counted.sum()
        # Edges outside the range of the values found carry no information either.
        first = max(int(np.searchsorted(below, 0.0, side="right")) - 1, 0)
        last = min(int(np.searchsorted(below, 1.0 - 1e-12)), len(edges) - 1)
        return cls(edges[first : last + 1], below[first : last + 1])

    def quantile(self, share: float) -> float:
        """The value below which the share of values is ``share``."""
        # Flat intervals hold no values: take the end that is nearer to the median.
        right = int(np.searchsorted(self.below, share, side="right" if share < 0.5 else "left"))
        if right == 0 or right == len(self.edges):
            return float(self.edges[min(right, len(self.edges) - 1)])
        low, high = self.below[right - 1], self.below[right]
        weight = (share - low) / (high - low) if high > low else 0.0
        return float(self.edges[right - 1] + weight * (self.edges[right] - self.edges[right - 1]))

    def finer(self, pieces: int) -> Vector:
        """Edges for the next histogram: each bin cut into pieces, about ``pieces`` in all.

        Bins with more values get more pieces.
        """
        masses = np.sqrt(np.diff(self.below))
        if not masses.any():
            return self.edges
        cuts = np.where(masses > 0, np.ceil(pieces * masses / masses.sum()), 1).astype(int)
        cuts[self.edges[:-1] == _BEFORE_ZERO] = 1
        inner = [
            np.linspace(a, b, k, endpoint=False)
            for a, b, k in zip(self.edges[:-1], self.edges[1:], cuts, strict=True)
        ]
        return np.unique(np.concatenate([*inner, self.edges[-1:]]))


def significant(std: float, bins: int) -> float:
    """A count that noise alone reaches in any bin with probability at most ``FALSE_ALARM``."""
    return -std * float(ndtri(FALSE_ALARM / bins))
