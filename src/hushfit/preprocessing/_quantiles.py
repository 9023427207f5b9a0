"""What noisy counts say about a column: public from the moment they exist, so everything here is
post-processing.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from hushfit._typing import Vector

# The first cells: a sign, then a power of two, from 1e-12 to 1e18 in size; and one for the zeros
# alone.
_POWERS: Vector = np.ldexp(1.0, np.arange(-40, 61))
_BEFORE_ZERO = float(np.nextafter(0.0, -1.0))
FIRST_EDGES: Vector = np.concatenate([-_POWERS[::-1], [_BEFORE_ZERO, 0.0], _POWERS])

# A cell that noise alone has filled would send the bounds far away; only utility depends on how
# often that happens.
FALSE_ALARM = 0.02


@dataclass(frozen=True, eq=False)
class Spread:
    """How the values of a column are spread: the share of them up to each edge, straight lines in
    between.

    What lies beyond the outer edges counts as lying on them.
    """

    edges: Vector
    below: Vector

    @classmethod
    def of(cls, edges: Vector, counts: Vector, least: float) -> "Spread | None":
        """From noisy counts, of which those under ``least`` say nothing; None if all do."""
        kept = np.where(counts >= least, counts, 0.0)
        if not kept.any():
            return None
        below = np.cumsum(kept)[:-1] / kept.sum()
        # Edges outside all that was found say nothing either.
        first = max(int(np.searchsorted(below, 0.0, side="right")) - 1, 0)
        last = min(int(np.searchsorted(below, 1.0 - 1e-12)), len(edges) - 1)
        return cls(edges[first : last + 1], below[first : last + 1])

    def quantile(self, share: float) -> float:
        """Where the share of smaller values is ``share``."""
        # Flat stretches hold no values: take their end that is nearer to the middle of the column.
        right = int(np.searchsorted(self.below, share, side="right" if share < 0.5 else "left"))
        if right == 0 or right == len(self.edges):
            return float(self.edges[min(right, len(self.edges) - 1)])
        low, high = self.below[right - 1], self.below[right]
        weight = (share - low) / (high - low) if high > low else 0.0
        return float(self.edges[right - 1] + weight * (self.edges[right] - self.edges[right - 1]))

    def finer(self, pieces: int) -> Vector:
        """Edges for the next look: each cell cut into pieces, more of them where there is more,
        about ``pieces`` in all.
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


def significant(deviation: float, cells: int) -> float:
    """A count that noise alone reaches in any of all cells with a probability of ``FALSE_ALARM``
    at most.
    """
    return -deviation * float(ndtri(FALSE_ALARM / cells))
