r"""Private least squares without tuning: docs/algorithms/least-squares.md.

Targets t and the entries of records x are in [-1, 1]; z = (x, sqrt(1/2)). Shares are of the squared
Gaussian parameter mu.

    A  2 %   mean and deviation of the targets
    B  2 %   mean and deviation of log |x|^2: the length to which records are shortened for C
    C 25 %   second moment of shortened records; eigenvectors V, eigenvalues corrected for noise
    D 68 %   rounds: residual gradients at the current weights, in the metric of C, clipped;
             all rounds are averaged, and shrunk by empirical Bayes
             penalty, as post-processing
    E  3 %   mean and slope of the residuals: the last correction of level and spread

Above 500 columns C releases squares and means of the columns alone (6 %), and no matrix is formed.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.losses import LeastSquares, SaturatingSquares
from hushfit.privacy import Budget, gaussian_mu
from hushfit.problem import Problem
from hushfit.release import (
    ColumnMoments,
    Door,
    LogLength,
    MeanAndSquare,
    Plan,
    Planned,
    Prediction,
    RecordScaling,
    ResidualGradient,
    ResidualMoments,
    ShortenedMoment,
    Target,
)
from hushfit.solvers.base import Iterate
from hushfit.solvers.regression._metrics import (
    ColumnCoordinates,
    Coordinates,
    SpectralCoordinates,
)
from hushfit.solvers.regression._penalised import GIVEN, WEIGHTS, check_weight, penalised
from hushfit.solvers.regression._rounds import Rounds

TARGET, LENGTHS, MOMENT, GRADIENT = "targets", "lengths", "second moment", "residual gradient"
PREDICTIONS, CALIBRATION = "predictions", "residuals"
MAX_MATRIX_COLUMNS = 500
_MOMENT_SHARE, _COLUMNS_SHARE = 0.25, 0.06
_FIRST_SHARE = 0.02
_CALIBRATION_SHARES = 0.01, 0.02
# Squared lengths are told apart over this range below the largest possible one.
_LENGTH_RANGE = 256.0
_MOST_ROUNDS, _FEWEST_ROUNDS = 60, 15
# Variance of the level of targets in [-1, 1], before anything is released.
_LEVEL_VARIANCE = 0.1
# Residuals are clipped to so many of their standard deviations in the last step.
_RESIDUALS = 5.0
# Least number of units times mu; and the same for each square root of the number of weights.
_LEAST_SIGNAL, _SIGNAL_PER_ROOT = 80.0, 35.0
_COUNTS = 1.5
_ROWS_PER_WEIGHT = 4
# Signal per column and unit of noise, n mu / d, up to which the largest number of rounds pays.
_NOISY = 50.0


@dataclass(frozen=True)
class WhitenedLeastSquares:
    """Least squares on records that keep their lengths; the default for the squared loss.

    Parameters
    ----------
    steps : int or None
        Number of rounds. None chooses it from the number of rows and columns and the budget.
    weight : {"given", "auto", "select"}, default="given"
        Weight of the penalty: as given, chosen from the releases for prediction, or larger, for
        telling which columns matter.
    clipped : float or None
        Least share of records whose gradients are clipped, for targets with heavy tails: more than
        a few per cent make the fit follow the middle of the targets, as Huber's loss does. None
        clips as many as the noise demands, and corrects level and slope at the end.

    Examples
    --------
    >>> from hushfit import PrivateLinearRegression
    >>> from hushfit.solvers import WhitenedLeastSquares
    >>> PrivateLinearRegression(solver=WhitenedLeastSquares(steps=10), target_bounds=(0, 1))
    PrivateLinearRegression(solver=WhitenedLeastSquares(steps=10,
                                                        weight='given',
                                                        clipped=None),
                            target_bounds=(0, 1))
    """

    steps: int | None = None
    weight: str = GIVEN
    clipped: float | None = None

    takes_constraint = False
    scaling: ClassVar[RecordScaling] = RecordScaling.BOUNDED

    def __post_init__(self) -> None:
        if self.steps is not None and self.steps < 1:
            raise InvalidArgument(f"steps={self.steps} is below 1. Give a number, or None.")
        if self.weight not in WEIGHTS:
            raise InvalidArgument(f"weight={self.weight!r} is not one of {WEIGHTS}.")
        if self.clipped is not None and not 0 < self.clipped < 1:
            raise InvalidArgument(
                f"clipped={self.clipped!r} is outside (0, 1). Give the share of records to clip."
            )

    def for_budget(self, budget: Budget, problem: Problem) -> "WhitenedLeastSquares":
        """The same with the number of rounds chosen."""
        return self if self.steps is not None else replace(self, steps=rounds_for(budget, problem))

    def plan(self, problem: Problem) -> Plan:
        require_squared(self, problem)
        check_weight(problem, self.weight)
        moments = moment_plan(problem)
        parts = [
            Planned(TARGET, MeanAndSquare, 1, _FIRST_SHARE),
            Planned(LENGTHS, MeanAndSquare, 1, _FIRST_SHARE),
            moments,
            Planned(
                GRADIENT,
                ResidualGradient,
                self._rounds,
                1 - 2 * _FIRST_SHARE - moments.share,
            ),
        ]
        if not self._calibrates:
            return Plan(tuple(parts))
        rest = 1 - sum(_CALIBRATION_SHARES)
        scaled = [replace(part, share=rest * part.share) for part in parts]
        last = (
            Planned(PREDICTIONS, MeanAndSquare, 1, _CALIBRATION_SHARES[0]),
            Planned(CALIBRATION, ResidualMoments, 1, _CALIBRATION_SHARES[1]),
        )
        return Plan((*scaled, *last))

    @property
    def _rounds(self) -> int:
        return _MOST_ROUNDS if self.steps is None else self.steps

    @property
    def _calibrates(self) -> bool:
        return self.clipped is None

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        level, spread, error = target_moments(problem, door, Target())
        square = usual_square(problem, door)
        coordinates, weight = released_coordinates(problem, door, square)
        known = _LEVEL_VARIANCE / (_LEVEL_VARIANCE + error**2)
        start = coordinates.constant(known * level / weight)
        rounds = Rounds(
            problem,
            coordinates,
            start,
            spread,
            spread**2,
            known * error**2,
            self._rounds,
            self.clipped,
        )
        estimate = None
        for number, estimate in enumerate(rounds(door, GRADIENT), start=1):
            if number < self._rounds:
                yield Iterate(coordinates.whitening.weights(estimate.shrunk), weight=0.0)
        assert estimate is not None
        w = penalised(problem, coordinates, estimate, self.weight, spread)
        if self._calibrates:
            w = self._calibrated(problem, door, w, spread, estimate.residual)
        yield Iterate(w)

    def _calibrated(
        self, problem: Problem, door: Door, w: Vector, spread: float, residual: float
    ) -> Vector:
        """Step E: level and slope of the residuals, each as far as its noise allows."""
        moments = MeanAndSquare(problem, Prediction(w))
        mean, square = moments.moments(door.release(PREDICTIONS, moments))
        mean = float(np.clip(mean, -1.0, 1.0))
        width = max(math.sqrt(min(max(square - mean**2, 0.0), 1.0)), 0.05 * spread)
        query = ResidualMoments(problem, w, mean, width, min(1.0, _RESIDUALS * residual))
        a, b = door.release(CALIBRATION, query) / problem.n_units
        multiplier = door.noise_multiplier(CALIBRATION)
        if multiplier == 0 or not problem.fit_intercept:  # a minimum already; or no level to move
            return w
        error = multiplier * query.sensitivity(problem.relation) / problem.n_units
        level_prior, slope_prior = (0.1 * spread) ** 2, (0.3 * width) ** 2
        level = a * level_prior / (level_prior + error**2)
        slope = 4 * b * slope_prior / (slope_prior + 16 * error**2) / (2 * width)
        # A penalty of a given weight shrinks the slope on purpose.
        keeps_slope = self.weight == GIVEN and problem.penalty.ridge != 0
        slope = 0.0 if keeps_slope else float(np.clip(slope, -0.9, 1.0))
        moved = (1 + slope) * w
        moved[-1] += (level - slope * mean) / problem.constant
        return np.asarray(moved)


def require_squared(solver: object, problem: Problem) -> None:
    """Refuse a problem that is not one of least squares on records with bounded entries."""
    if problem.scaling is not RecordScaling.BOUNDED or not isinstance(
        problem.loss, LeastSquares | SaturatingSquares
    ):
        raise InvalidArgument(
            f"{type(solver).__name__} is for the squared loss on records that keep their lengths, "
            f"not for {problem.loss!r} on {problem.scaling.value}. Use it through "
            "PrivateLinearRegression, PrivateRidge, PrivateLasso or PrivateElasticNet."
        )
    if problem.constraint is not None:
        raise InvalidArgument(
            f"{type(solver).__name__} would ignore the constraint of the problem. Use 'dp-sadmm'."
        )


def rounds_for(budget: Budget, problem: Problem) -> int:
    """Many rounds where noise is large, and the weights move with every round; fewer where the
    first ones find nearly all.
    """
    if not budget.is_private:
        return _FEWEST_ROUNDS
    mu = gaussian_mu(budget.epsilon, budget.delta)
    signal = problem.n_units * mu / problem.dimension
    wanted = round(_MOST_ROUNDS * math.sqrt(_NOISY / max(signal, 1e-300)))
    return max(_FEWEST_ROUNDS, min(_MOST_ROUNDS, wanted))


def units_needed(budget: Budget, dimension: int, counts: bool = False) -> int:
    """Number of units below which a fit may be worse than one number for all; public.

    The level of the predictions has a noise of about 2 sqrt(d) / (n mu) standard deviations of the
    targets, d with the intercept. R2 falls to -0.1 where it is off by a third of one. Here this
    takes five deviations of the noise: the weights, and chance in the rows, add to it. With few
    columns the spread of the targets and the last step need more. Chance in the rows, which
    shrinkage does not know of, takes a few rows for each weight, whatever the budget.
    """
    if not budget.is_private:
        return 1
    signal = max(_LEAST_SIGNAL, _SIGNAL_PER_ROOT * math.sqrt(dimension))
    if counts:  # most of them are far below the largest
        signal *= _COUNTS
    hidden = math.ceil(signal / gaussian_mu(budget.epsilon, budget.delta))
    return max(hidden, _ROWS_PER_WEIGHT * dimension)


def moment_plan(problem: Problem) -> Planned:
    """The release that the metric is made of."""
    if problem.n_features <= MAX_MATRIX_COLUMNS:
        return Planned(MOMENT, ShortenedMoment, 1, _MOMENT_SHARE)
    return Planned(MOMENT, ColumnMoments, 1, _COLUMNS_SHARE)


def target_moments(problem: Problem, door: Door, target: Target) -> tuple[float, float, float]:
    """Step A: mean and standard deviation of the targets, and the error of the mean."""
    query = MeanAndSquare(problem, target)
    mean, square = query.moments(door.release(TARGET, query))
    error = noise_of(query, problem, door, TARGET)
    mean = float(np.clip(mean, -1.0, 1.0))
    variance = min(max(square - (mean**2 if problem.fit_intercept else 0.0), 0.0), 1.0)
    spread = math.sqrt(max(variance, error / math.sqrt(2)))
    known = 1 / (1 + (error / 0.2) ** 2)
    return mean, float(np.clip(known * spread + (1 - known) * 0.25, 0.02, 0.6)), error


def usual_square(problem: Problem, door: Door) -> float:
    """Step B: the squared length of the features that most records stay below."""
    most = float(problem.n_features)  # entries are in [-1, 1]
    length_range = math.log(max(_LENGTH_RANGE, 4 * most))
    query = MeanAndSquare(problem, LogLength(most, length_range))
    mean, square = query.moments(door.release(LENGTHS, query))
    if door.noise_multiplier(LENGTHS) == 0:
        return most
    mean = float(np.clip(mean, -1.0, 1.0))
    spread = math.sqrt(min(max(square - mean**2, 0.0), 1.0))
    error = noise_of(query, problem, door, LENGTHS)
    shorter = length_range / 2 * (mean + spread + 2 * error - 1)
    return most * math.exp(min(0.0, max(shorter, -length_range)))


def released_coordinates(problem: Problem, door: Door, square: float) -> tuple[Coordinates, float]:
    """Step C: whitened coordinates, and the mean weight of a unit."""
    n = problem.n_units
    if problem.n_features > MAX_MATRIX_COLUMNS:
        columns = ColumnMoments(problem, square)
        squares, means = columns.moments(door.release(MOMENT, columns))
        noise = noise_of(columns, problem, door, MOMENT)
        return ColumnCoordinates.of(squares, means, noise, problem), 1.0
    query = ShortenedMoment(problem, square + problem.constant**2)
    M = query.matrix(door.release(MOMENT, query)) / n
    noise = noise_of(query, problem, door, MOMENT) / math.sqrt(2)
    weight = 1.0
    if problem.fit_intercept and not problem.privacy_unit.total_weight_is_public:
        least = 1 / problem.privacy_unit.full_weight
        weight = min(max(float(M[-1, -1]) / problem.constant**2, least), 1.0)
    return SpectralCoordinates.of(M, noise, problem), weight


def noise_of(
    query: MeanAndSquare | ColumnMoments | ShortenedMoment, problem: Problem, door: Door, name: str
) -> float:
    """Standard deviation of a released mean."""
    sensitivity = query.sensitivity(problem.relation)
    return door.noise_multiplier(name) * sensitivity / problem.n_units
