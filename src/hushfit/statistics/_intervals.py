"""Confidence intervals of released sums and counts: sampling and noise together.

All of it is post-processing of released numbers and of the known standard deviations of their
noise. docs/statistics.md has the formulas and what they cover.
"""

import math
from typing import NamedTuple

from scipy.special import ndtri, stdtrit

# Fewest degrees of freedom of a t quantile: below, noise hides the variance and the quantile of the
# normal distribution would do as well as any.
_FEWEST_FREEDOM = 3.0


class Interval(NamedTuple):
    """An estimate with its interval, which may be unbounded where noise hides everything, and the
    standard errors that sampling and noise alone would give it.
    """

    value: float
    low: float
    high: float
    sampling_error: float
    noise_error: float

    def within(self, low: float, high: float) -> "Interval":
        """The same, clipped to a public range."""
        value, below, above = (min(max(number, low), high) for number in self[:3])
        return Interval(value, below, above, *self[3:])

    def moved(self, origin: float, scale: float) -> "Interval":
        """The same in other units: ``origin + scale * number``."""
        ends = (origin + scale * number for number in self[:3])
        return Interval(*ends, *(scale * error for error in self[3:]))


class Moments(NamedTuple):
    """Noisy sums of numbers in [-1, 1], of their squares and of how many are known, with the
    standard deviations of their noise; that of an exact number is 0.
    """

    total: float
    squares: float
    known: float
    total_noise: float
    square_noise: float
    known_noise: float


def normal_quantile(level: float) -> float:
    """Two-sided quantile of the normal distribution."""
    return float(ndtri(0.5 + level / 2))


def mean_interval(sums: Moments, level: float) -> Interval:
    """Interval of a mean of numbers in [-1, 1], by the method of Fieller: the means that a test
    would not reject. The noise of the variance is in the degrees of freedom (Satterthwaite).
    """
    if sums.known <= 0:
        return Interval(0.0, -math.inf, math.inf, math.inf, math.inf)
    n, mean = sums.known, min(max(sums.total / sums.known, -1.0), 1.0)
    largest = 1 - mean**2  # of all distributions on [-1, 1] with this mean
    variance = min(max(sums.squares / n - mean**2, 0.0), largest)
    noise = math.hypot(sums.total_noise, mean * sums.known_noise) / n
    whole = variance / n + noise**2
    t = _t_quantile(level, whole, _noise_of_variance(sums, mean) / n, n)
    low, high = _accepted(
        n**2 - (t * sums.known_noise) ** 2,
        -2 * sums.total * n,
        sums.total**2 - t**2 * (sums.total_noise**2 + n * variance),
    )
    return Interval(sums.total / n, low, high, math.sqrt(variance / n), noise)


def _noise_of_variance(sums: Moments, mean: float) -> float:
    """Standard deviation of the noise in the variance."""
    by_count = (2 * mean**2 - sums.squares / sums.known) * sums.known_noise
    return math.hypot(sums.square_noise, 2 * mean * sums.total_noise, by_count) / sums.known


def _t_quantile(level: float, whole: float, deviation: float, n: float) -> float:
    """Quantile for an estimate whose variance ``whole`` is known up to a noise of ``deviation``,
    and up to the sampling of n numbers.
    """
    relative = deviation / whole if whole > 0 else math.inf
    inverse = relative**2 / 2 + 1 / max(n - 1, 1.0)
    freedom = max(1 / inverse, _FEWEST_FREEDOM) if inverse > 0 else math.inf
    if math.isinf(freedom):
        return normal_quantile(level)
    return float(stdtrit(freedom, 0.5 + level / 2))


class Counted(NamedTuple):
    """A noisy count among ``cells`` noisy counts of known labels, whose sum is ``total``.

    With ``of_all`` the sum of so many counts, those of missing labels included, was known exactly
    and used; 0 if it was not.
    """

    number: float
    total: float
    cells: int
    noise: float
    of_all: int = 0


def share_interval(counted: Counted, level: float) -> Interval:
    """Interval of a share, as Wilson's with the noise in it: the shares p for which the count minus
    p times the total is not too far from zero.
    """
    z, n = normal_quantile(level), counted.total
    if n <= 0:
        return Interval(0.0, -math.inf, math.inf, math.inf, math.inf)
    constant, linear, square = _noise_by_share(counted)
    low, high = _accepted(
        n**2 + z**2 * (n - square),
        -2 * counted.number * n - z**2 * (n + linear),
        counted.number**2 - z**2 * constant,
    )
    share = counted.number / n
    p = min(max(share, 0.0), 1.0)
    noise = math.sqrt(max(constant + p * (linear + p * square), 0.0)) / n
    return Interval(share, low, high, math.sqrt(p * (1 - p) / n), noise)


def _noise_by_share(counted: Counted) -> tuple[float, float, float]:
    """Variance of the noise of the count minus p times the total, as a polynomial of p."""
    cells, known = counted.cells, 1 / counted.of_all if counted.of_all else 0.0
    parts = 1 - known, 2 * known * cells - 2, cells - known * cells**2
    constant, linear, square = (counted.noise**2 * part for part in parts)
    return constant, linear, square


def difference(one: Interval, other: Interval) -> Interval:
    """Interval of ``one - other``, of groups with independent noise and records, from their
    intervals (method of variance estimates recovery).
    """
    value = one.value - other.value
    return Interval(
        value,
        value - math.hypot(one.value - one.low, other.high - other.value),
        value + math.hypot(one.high - one.value, other.value - other.low),
        math.hypot(one.sampling_error, other.sampling_error),
        math.hypot(one.noise_error, other.noise_error),
    )


def _accepted(square: float, linear: float, constant: float) -> tuple[float, float]:
    """Where a quadratic polynomial is at most zero, as an interval; all numbers if that is not
    one.
    """
    if square <= 0:
        return -math.inf, math.inf
    root = math.sqrt(max(linear**2 - 4 * square * constant, 0.0))
    return (-linear - root) / (2 * square), (-linear + root) / (2 * square)
