"""Distributions of privacy losses on a grid, and their composition by Fourier transforms.

Everything is rounded to the pessimistic side but for the errors of the transforms, for which
``pld`` adds an allowance. Proof: docs/proofs/composition.md.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from hushfit._typing import Vector
from hushfit.kernels.threads import one_blas_thread
from hushfit.privacy.costs import Pair

# Probability that one composition may move: losses above the range that is kept count as infinite.
_TAIL: Final = 1e-15


@dataclass(frozen=True, eq=False)
class LossDistribution:
    """Privacy losses at multiples of an interval, with their probabilities.

    Parameters
    ----------
    interval : float
    lowest : int
        The smallest loss, in intervals.
    masses : ndarray
        Probabilities of that loss and the following ones.
    infinite : float
        Probability of an infinite loss.
    """

    interval: float
    lowest: int
    masses: Vector
    infinite: float

    @classmethod
    def dominating(cls, pair: Pair, interval: float) -> "LossDistribution":
        """Smallest distribution on the grid that dominates a pair between its ends: the profile at
        the grid points, joined by straight lines in the exponential of epsilon.
        """
        low, high = math.floor(pair.low / interval) - 1, math.ceil(pair.high / interval) + 1
        profile = pair.profile(interval * np.arange(low, high + 1, dtype=np.float64))
        profile = np.clip(np.minimum.accumulate(profile), 0.0, 1.0)
        # A mass is the change of slope at its point. A line from one point to the next has the
        # slope rise / (e^interval - 1) in units of e^epsilon at its left end.
        slopes = np.diff(profile) / math.expm1(interval)
        before = np.append(1.0 - profile[0], -slopes * math.exp(interval))
        masses = np.maximum(before + np.append(slopes, 0.0), 0.0)
        return cls(interval, low, masses, float(profile[-1]))

    @cached_property
    def losses(self) -> Vector:
        """The finite losses."""
        return self.interval * (self.lowest + np.arange(len(self.masses), dtype=np.float64))

    def delta(self, epsilon: float) -> float:
        """Hockey-stick divergence at epsilon."""
        above = int(np.searchsorted(self.losses, epsilon, side="right"))
        shares = -np.expm1(epsilon - self.losses[above:])
        return self.infinite + float(shares @ self.masses[above:])

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon of at least 0 with at most this delta; infinity if there is none."""
        if self.infinite > delta:
            return math.inf
        if self.delta(0.0) <= delta:
            return 0.0
        first = int(np.searchsorted(self.losses, 0.0, side="right"))
        enough = bisect_left(
            range(first, len(self.losses) - 1),
            True,
            key=lambda place: self.delta(float(self.losses[place])) <= delta,
        )
        # Just below this loss delta is a straight line in e^epsilon.
        masses, losses = self.masses[first + enough :], self.losses[first + enough :]
        slope = float(masses @ np.exp(losses[0] - losses))
        excess = self.infinite + float(masses.sum()) - delta
        return max(0.0, float(losses[0]) + math.log(excess / slope))

    def plus(self, other: "LossDistribution") -> "LossDistribution":
        """Distribution of the sum of both losses, which have the same interval."""
        size = len(self.masses) + len(other.masses) - 1
        length = _fast_length(size)
        spectrum = np.fft.rfft(self.masses, length) * np.fft.rfft(other.masses, length)
        masses = np.fft.irfft(spectrum, length)[:size]
        infinite = self.infinite + other.infinite - self.infinite * other.infinite
        return LossDistribution(
            self.interval, self.lowest + other.lowest, masses, infinite
        )._without_tails()

    def repeated(self, count: int) -> "LossDistribution":
        """Distribution of the sum of ``count`` independent losses."""
        if count == 1:
            return self
        with one_blas_thread():  # several are slower, on a busy machine ten times
            low, high = self._range_of_sum(count)
        length = _fast_length(max(high - low + 1, len(self.masses)))
        # What lies outside the range is wrapped into it, and counted as infinite besides.
        wrapped = np.fft.irfft(np.fft.rfft(self.masses, length) ** count, length)
        masses = np.roll(wrapped, -low)[: high - low + 1]
        infinite = _TAIL - math.expm1(count * math.log1p(-self.infinite))
        return LossDistribution(self.interval, count * self.lowest + low, masses, infinite)

    def _range_of_sum(self, count: int) -> tuple[int, int]:
        """Places, from 0, of all sums of ``count`` losses but for a small probability."""
        places = np.arange(len(self.masses), dtype=np.float64)
        total = float(self.masses.sum())
        mean = float(self.masses @ places) / total
        variance = max(float(self.masses @ (places - mean) ** 2) / total, 1e-300)
        rare = math.log(2 / _TAIL)
        best = math.sqrt(2 * rare / (count * variance))

        def reach(order: float) -> float:
            # Chernoff: P(|sum - count * mean| >= t) <= exp(count * log moment - |order| t).
            exponents = order * (places - mean)
            top = float(exponents.max())
            moment = float(self.masses @ np.exp(exponents - top))
            log_moment = top + math.log(moment) if moment > 0 else math.inf
            return (count * log_moment + rare) / abs(order)

        most = (len(self.masses) - 1) * count
        low, high = _least_by_steps(reach, -best), _least_by_steps(reach, best)
        return (
            math.floor(max(0.0, count * mean - low)),
            math.ceil(min(most, count * mean + high)),
        )

    def _without_tails(self) -> "LossDistribution":
        """Rare losses at the lower end raised to the lowest that is kept, those at the upper end
        counted as infinite.
        """
        low = int(np.argmax(np.cumsum(self.masses) > _TAIL / 2))
        above = int(np.argmax(np.cumsum(self.masses[::-1]) > _TAIL / 2))
        kept = self.masses[low : len(self.masses) - above].copy()
        kept[0] += max(float(self.masses[:low].sum()), 0.0)
        lost = max(float(self.masses[len(self.masses) - above :].sum()), 0.0)
        return LossDistribution(self.interval, self.lowest + low, kept, self.infinite + lost)


def _least_by_steps(value: Callable[[float], float], start: float) -> float:
    """Least value found by halving or doubling the argument for as long as that helps."""
    least = value(start)
    for factor in (0.5, 2.0):
        argument = start * factor
        while (found := value(argument)) < least:
            least, argument = found, argument * factor
    return least


def _fast_length(size: int) -> int:
    """Least length of at least ``size`` that is 1, 3 or 5 times a power of two."""
    power = 1 << max(size - 1, 1).bit_length()
    return min(
        length for length in (power, power // 4 * 3, power // 8 * 5, power // 2) if length >= size
    )
