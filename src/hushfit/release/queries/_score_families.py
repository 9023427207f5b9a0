"""How far apart two records' scores, curvatures and score covariances can be, for each family of
generalised linear models. Proof: docs/proofs/inference.md.

A residual r of size rho is in [-1, 1], in units of its largest size; the curvature that a record
may have beside it is at most ``curvature(rho)``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
import scipy
from scipy.special import expit, logit

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.kernels.codes import LOGISTIC, POISSON, SQUARED
from hushfit.kernels.scores import clipped_count_mean
from hushfit.losses import Loss

_PRECISION = 1e-7
_FIRST_CELLS = 64
_MOST_CELLS = 400_000
# Steps of the table of curvatures of counts, and the largest count whose loop is short and whose
# probabilities are normal numbers.
_TABULATED = 20_000
USUAL_RESIDUAL = 0.2  # standard deviation, as a share of half the range of the target
MOST_COUNT = 250
_LEAST_LOG_RATE = -20.0

Curvature = Callable[[Vector, Vector], Vector]


class ScoreFamily(Protocol):
    """Residual, curvature and bounds of a generalised linear model in the query `ScoreMoments`."""

    @property
    def code(self) -> int:
        """Code of the loss in compiled code."""

    @property
    def unit(self) -> float:
        """The largest residual, in which residuals and curvatures are measured."""

    @property
    def factors(self) -> tuple[float, float]:
        """What curvatures and outer products of scores are multiplied by, beside the scores."""

    @property
    def largest_curvature(self) -> float: ...

    @property
    def diameter(self) -> float:
        """Bound on the distance between the contributions of two records."""

    @property
    def radius(self) -> float:
        """Bound on the contribution of one record."""

    @property
    def margin_unit(self) -> float:
        """The change of a residual with its margin is the curvature divided by it."""

    @property
    def dispersed(self) -> bool:
        """Whether the variance of a residual is an unknown multiple of its curvature, and not the
        curvature itself.
        """

    @property
    def usual_curvature(self) -> float:
        """Mean curvature that is assumed before anything is known."""

    @property
    def usual_variance(self) -> float:
        """Variance of a residual that is assumed before anything is known."""

    @property
    def means(self) -> "Means | None":
        """Means of responses as functions of the margin; None if they are the margin itself."""


class Means(Protocol):
    """Mean of a response in units of the largest residual, as a function of the margin."""

    @property
    def largest(self) -> float:
        """The largest mean that a start may have."""

    def mean(self, margin: float) -> float: ...

    def curvature(self, margin: float) -> float:
        """Derivative of the mean."""

    def margin(self, mean: float) -> float:
        """Inverse of the mean."""


@dataclass(frozen=True)
class LogisticMeans:
    """Probability of the second class."""

    largest = 0.995

    def mean(self, margin: float) -> float:
        return float(expit(margin))

    def curvature(self, margin: float) -> float:
        return float(expit(margin) * expit(-margin))

    def margin(self, mean: float) -> float:
        return float(logit(mean))


@dataclass(frozen=True)
class CountMeans:
    """Mean of a Poisson count clipped to ``most``, over ``most``."""

    most: int

    @property
    def largest(self) -> float:
        return self.mean(math.log(self.most) + 0.5)

    def mean(self, margin: float) -> float:
        return float(clipped_count_mean(float(self.most), math.exp(margin))[0])

    def curvature(self, margin: float) -> float:
        return float(clipped_count_mean(float(self.most), math.exp(margin))[1])

    def margin(self, mean: float) -> float:
        top = math.log(self.most) + 1.0
        return float(scipy.optimize.brentq(lambda t: self.mean(t) - mean, _LEAST_LOG_RATE, top))


@dataclass(frozen=True)
class LinearScores:
    """Least squares; residuals are clipped to ``unit``."""

    unit: float = 1.0

    code = SQUARED
    # The sum of their squares is below one half: then no pair is further apart than two opposite
    # scores.
    factors = 0.6, 0.37
    largest_curvature = usual_curvature = 1.0
    diameter = 2.0
    dispersed = True
    means = None

    @property
    def margin_unit(self) -> float:
        return self.unit

    @property
    def usual_variance(self) -> float:
        return (USUAL_RESIDUAL / self.unit) ** 2

    @property
    def radius(self) -> float:
        b, e = self.factors
        return math.sqrt(1 + b**2 + e**2)


@dataclass(frozen=True)
class LogisticScores:
    """Logistic regression: a residual of size rho has the curvature rho (1 - rho)."""

    code = LOGISTIC
    unit = 1.0
    factors = 4.5, 0.7
    largest_curvature = 0.25
    margin_unit = 1.0
    dispersed = False
    usual_curvature = usual_variance = 0.2  # a class of 28 %
    means = LogisticMeans()

    @property
    def diameter(self) -> float:
        return certified_diameter(_logistic_curvature, *self.factors)

    @property
    def radius(self) -> float:
        return certified_radius(_logistic_curvature, *self.factors)


@dataclass(frozen=True)
class CountScores:
    """Poisson regression of counts clipped to ``most``: the residual is the mean of the clipped
    count less the clipped count.
    """

    most: int

    code = POISSON
    margin_unit = 1.0
    dispersed = True
    usual_curvature = 0.2  # a mean of a fifth of the largest count

    @property
    def usual_variance(self) -> float:
        return self.usual_curvature / self.most

    def __post_init__(self) -> None:
        if not (float(self.most).is_integer() and 1 <= self.most <= MOST_COUNT):
            raise InvalidArgument(
                f"The largest count is {self.most:g}; inference needs a whole number from 1 to "
                f"{MOST_COUNT}. Give a smaller one: counts above it are clipped, which the model "
                "takes into account."
            )

    @property
    def unit(self) -> float:
        return float(self.most)

    @property
    def means(self) -> CountMeans:
        return CountMeans(self.most)

    @property
    def factors(self) -> tuple[float, float]:
        return (1.5 if self.most <= 8 else 1.0), 0.7

    @property
    def _curvature(self) -> Curvature:
        return _count_curvature(int(self.most))

    @property
    def largest_curvature(self) -> float:
        return float(self._curvature(np.zeros(1), np.zeros(1))[0])

    @property
    def diameter(self) -> float:
        return certified_diameter(self._curvature, *self.factors)

    @property
    def radius(self) -> float:
        return certified_radius(self._curvature, *self.factors)


def score_family(loss: Loss, unit: float = 1.0) -> ScoreFamily:
    """The family of a loss; ``unit`` is where residuals of least squares are clipped."""
    kernel = loss.kernel
    if kernel.code == SQUARED:
        return LinearScores(unit)
    if kernel.code == LOGISTIC:
        return LogisticScores()
    if kernel.code == POISSON:
        return CountScores(kernel.parameter)  # type: ignore[arg-type]
    raise InvalidArgument(
        f"{loss!r} has no inference. It is for least squares, logistic regression of two classes "
        "and Poisson regression. Give two classes, or fit one class against all others."
    )


def _logistic_curvature(low: Vector, high: Vector) -> Vector:
    nearest = np.clip(0.5, low, high)
    return np.asarray(nearest * (1 - nearest))


@cache
def _count_curvature(most: int) -> Curvature:
    """Largest curvature beside residuals of a size in [low, high], tabulated.

    The mean m of the clipped count is at least rho if the residual is positive, and at most 1 - rho
    if it is negative. With the logarithm of the rate the logarithm of the curvature rises by at
    most as much, so that a point of the table covers all rates up to the next.
    """
    log_rates, step = np.linspace(_LEAST_LOG_RATE, math.log(most) + 1.0, _TABULATED, retstep=True)
    pairs = [clipped_count_mean(float(most), rate) for rate in np.exp(log_rates)]
    means, curvatures = (np.array(values) for values in zip(*pairs, strict=True))
    covering = curvatures * math.exp(float(step)) + 1e-12
    above = np.maximum.accumulate(covering[::-1])[::-1]
    below = np.maximum.accumulate(covering)

    def largest(low: Vector, high: Vector) -> Vector:
        first = np.maximum(np.searchsorted(means, low, side="right") - 1, 0)
        last = np.minimum(np.searchsorted(means, 1 - low, side="left"), len(means) - 1)
        return np.asarray(np.maximum(above[first], below[last]))

    return largest


@cache
def certified_diameter(curvature: Curvature, b: float, e: float) -> float:
    """Bound on the distance between two contributions, by branch and bound over the sizes of the
    two residuals.

    For given sizes the squared distance rises with the lengths of the scores, is convex in the
    curvatures and concave in the cosine between the scores: its largest value over a cell is at
    most that at the upper ends of the sizes, for curvatures of zero or of their bounds over the
    cell, at the best cosine.
    """
    side = 1 / _FIRST_CELLS
    ends = np.arange(_FIRST_CELLS) * side
    low, other = (grid.ravel() for grid in np.meshgrid(ends, ends))
    attained = 4.0
    while True:
        bounds = _cell_bounds(curvature, low, other, side, b, e)
        open_cells = bounds > attained * (1 + _PRECISION)
        if not open_cells.any() or 4 * int(open_cells.sum()) > _MOST_CELLS:
            largest = max(float(bounds.max()), attained * (1 + _PRECISION))
            return math.sqrt(largest) * (1 + 1e-12)
        low, other, side = low[open_cells], other[open_cells], side / 2
        # What can be attained at corners decides which cells are of interest, not the bound.
        attained = max(attained, float(_cell_bounds(curvature, low, other, 0.0, b, e).max()))
        low, other = (
            np.concatenate([low, low, low + side, low + side]),
            np.concatenate([other, other + side, other, other + side]),
        )


def _cell_bounds(
    curvature: Curvature, low: Vector, other: Vector, side: float, b: float, e: float
) -> Vector:
    x, y = low + side, other + side
    c, d = curvature(low, x), curvature(other, y)
    corners = [
        _squared_distance(x, y, c * first, d * second, b, e)
        for first in (0.0, 1.0)
        for second in (0.0, 1.0)
    ]
    return np.asarray(np.max(corners, axis=0))


def _squared_distance(x: Vector, y: Vector, c: Vector, d: Vector, b: float, e: float) -> Vector:
    """Of contributions with scores of lengths x and y and curvatures c and d, at the worst cosine
    -s between the scores.
    """
    along, across = x * y, b**2 * c * d + e**2 * x**2 * y**2
    s = np.where(2 * across > along, along / np.maximum(2 * across, 1e-300), 1.0)
    return np.asarray(
        x**2
        + y**2
        + 2 * along * s
        + b**2 * (c**2 + d**2)
        + e**2 * (x**4 + y**4)
        - 2 * across * s**2
    )


@cache
def certified_radius(curvature: Curvature, b: float, e: float) -> float:
    """Bound on the length of one contribution: over short intervals of the size of its residual."""
    ends = np.linspace(0.0, 1.0, _TABULATED + 1)
    c, x = curvature(ends[:-1], ends[1:]), ends[1:]
    return math.sqrt(float(np.max(x**2 + b**2 * c**2 + e**2 * x**4))) * (1 + 1e-12)
