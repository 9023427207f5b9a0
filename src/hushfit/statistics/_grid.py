"""The public grid of a column of numbers: noisy counts of its bins, at several widths, become one
estimate of the distribution function. Post-processing, but for the bins themselves.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from sklearn.isotonic import isotonic_regression

from hushfit._arrays import read_only
from hushfit._typing import Matrix, Vector
from hushfit.data.schema import NumericColumn
from hushfit.statistics._intervals import Interval, normal_quantile

# Bins of the finest histogram, and how many of one level are one bin of the next.
MOST_LEAVES = 512
BRANCHES = 8
# A level with fewer bins is not worth its share of the budget.
_FEWEST_BINS = 4
_MOST_BARS = 16


@dataclass(frozen=True)
class Grid:
    """Bins of a column: of equal width in its public range, after its transform; or one for each
    whole number.

    Parameters
    ----------
    column : NumericColumn
    most : int
        Largest number of bins.
    """

    column: NumericColumn
    most: int = MOST_LEAVES

    @cached_property
    def _whole(self) -> bool:
        first, last = math.ceil(self.column.low), math.floor(self.column.high)
        return self.column.integer and 0 < last - first < self.most

    @cached_property
    def edges(self) -> Vector:
        """Ends of the bins, from the lowest to the highest; a bin includes its right end."""
        column = self.column
        if self._whole:
            return np.arange(math.ceil(column.low), math.floor(column.high) + 2, dtype=float) - 0.5
        edges = column.original(np.linspace(0.0, 1.0, self.most + 1))
        edges[[0, -1]] = column.low, column.high
        return edges

    @property
    def leaves(self) -> int:
        return len(self.edges) - 1

    @property
    def tree(self) -> "Tree":
        return tree_of(self.leaves)

    def bins(self, values: Vector) -> Vector:
        """The bin of each value, clipped to the range; NaN if it is missing."""
        clipped = np.clip(values, self.column.low, self.column.high)
        codes = np.searchsorted(self.edges[1:-1], clipped).astype(np.float64)
        return np.where(np.isnan(values), np.nan, codes)

    def ends(self, below: int, above: int) -> tuple[float, float]:
        """The values beyond the first ``below`` bins and within the first ``above``, as ends of an
        interval.
        """
        low, high = float(self.edges[below]), float(self.edges[above])
        return (math.ceil(low), math.floor(high)) if self._whole else (low, high)

    def value_at(self, place: int, share: float) -> float:
        """The value at a share of the width of a bin."""
        low, high = self.edges[place], self.edges[place + 1]
        return float((low + high) / 2 if self._whole else low + share * (high - low))


@dataclass(frozen=True, eq=False)
class Tree:
    """How counts of bins at several widths are put together: least squares, all noise equal.

    Parameters
    ----------
    leaves : int
    widths : tuple of int
        Leaves in one bin of each level; the first is 1.
    """

    leaves: int
    widths: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of bins of each level."""
        return tuple(math.ceil(self.leaves / width) for width in self.widths)

    @cached_property
    def covariance(self) -> Matrix:
        """Covariance of the estimated counts of the leaves, for noise of variance one."""
        ancestors = [np.arange(self.leaves) // width for width in self.widths]
        return read_only(
            np.linalg.inv(sum((one[:, None] == one).astype(np.float64) for one in ancestors))
        )

    @cached_property
    def _of_sums(self) -> Matrix:
        """Covariance of the counts of the first leaves."""
        return read_only(self.covariance.cumsum(axis=0).cumsum(axis=1))

    def counts(self, levels: list[Vector]) -> Vector:
        """Counts of the leaves, from noisy counts of all levels."""
        spread = [
            np.repeat(counts, width)[: self.leaves]
            for counts, width in zip(levels, self.widths, strict=True)
        ]
        return np.asarray(self.covariance @ sum(spread))

    def variances(self, share: float) -> Vector:
        """Variance of the count of the first leaves minus a share of the total, for noise of
        variance one; for all numbers of leaves from 1 on.
        """
        sums = self._of_sums
        return np.asarray(np.diag(sums) - 2 * share * sums[:, -1] + share**2 * sums[-1, -1])


@lru_cache(maxsize=32)
def tree_of(leaves: int) -> Tree:
    """The tree of a grid: levels as long as they have several bins."""
    widths, width = [1], BRANCHES
    while math.ceil(leaves / width) >= _FEWEST_BINS:
        widths.append(width)
        width *= BRANCHES
    return Tree(leaves, tuple(widths))


class Bars(NamedTuple):
    """A histogram: the ends of its bars, their shares of the known values, and the standard
    deviation of the noise in each share.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.statistics import Bars
    >>> bars = Bars(np.array([0.0, 5.0, 10.0]), np.array([0.4, 0.6]), np.array([0.01, 0.01]))
    >>> bars.shares.sum()
    np.float64(1.0)
    """

    edges: Vector
    shares: Vector
    noise: Vector


@dataclass(frozen=True, eq=False)
class Distribution:
    """What was released about the distribution of a column.

    Parameters
    ----------
    grid : Grid
    counts : array
        Estimated counts of the leaves.
    noise : float
        Standard deviation of the noise in each count that was released.
    """

    grid: Grid
    counts: Vector
    noise: float

    @classmethod
    def of(cls, grid: Grid, levels: list[Vector], noise: float) -> "Distribution":
        """From the noisy counts of all levels."""
        return cls(grid, grid.tree.counts(levels), noise)

    @property
    def known(self) -> float:
        """Estimated number of known values."""
        return float(self.counts.sum())

    def quantile(self, share: float, level: float) -> Interval:
        """The value below which a share of the values lies. Its interval has ends of the grid: the
        first beyond which a test does not put the quantile, to each side. Errors are of shares.
        """
        total = max(self.known, 0.0)
        below = np.clip(isotonic_regression(np.cumsum(self.counts)), 0.0, None)
        apart = below - share * total
        noise = self.noise * np.sqrt(np.maximum(self.grid.tree.variances(share), 0.0))
        margin = normal_quantile(level) * np.hypot(noise, math.sqrt(total * share * (1 - share)))
        lower = np.flatnonzero(apart < -margin)
        upper = np.flatnonzero(apart > margin)
        first = int(lower[-1]) + 1 if len(lower) else 0
        last = int(upper[0]) + 1 if len(upper) else self.grid.leaves
        low, high = self.grid.ends(first, max(last, first))
        place = min(int(np.searchsorted(below, share * total)), self.grid.leaves - 1)
        value = min(max(self._within(below, place, share * total), low), max(low, high))
        errors = math.sqrt(share * (1 - share) / total) if total > 0 else math.inf
        return Interval(
            value, low, max(low, high), errors, float(noise[place]) / max(total, 1e-300)
        )

    def _within(self, below: Vector, place: int, wanted: float) -> float:
        before = float(below[place - 1]) if place else 0.0
        inside = float(below[place]) - before
        return self.grid.value_at(place, (wanted - before) / inside if inside > 0 else 0.5)

    def bars(self) -> Bars:
        """A coarse histogram, to be drawn."""
        groups = np.array_split(np.arange(self.grid.leaves), min(_MOST_BARS, self.grid.leaves))
        column = self.grid.column
        inner = [self.grid.edges[group[0]] for group in groups[1:]]
        edges = np.array([column.low, *inner, column.high])
        total = max(self.known, 1e-300)
        covariance = self.grid.tree.covariance
        variances = [float(covariance[np.ix_(group, group)].sum()) for group in groups]
        return Bars(
            edges,
            np.array([self.counts[group].sum() for group in groups]) / total,
            self.noise * np.sqrt(variances) / total,
        )
