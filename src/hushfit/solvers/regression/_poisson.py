"""Private Poisson regression by the rounds of private least squares.

The mean count gives the first log-rate and, times the second moment of the records, the curvature
there. Rates, and so the curvature, change as the weights move: the first rounds count for less,
and for less again whenever a gradient grows.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hushfit.errors import InvalidArgument
from hushfit.losses import Poisson
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.release import (
    Door,
    MeanAndSquare,
    Plan,
    Planned,
    RecordScaling,
    ResidualGradient,
    Target,
)
from hushfit.solvers.base import Iterate
from hushfit.solvers.regression._least_squares import (
    GRADIENT,
    LENGTHS,
    TARGET,
    moment_plan,
    released_coordinates,
    rounds_for,
    target_moments,
    usual_square,
)
from hushfit.solvers.regression._penalised import GIVEN, WEIGHTS, check_weight, penalised
from hushfit.solvers.regression._rounds import Rounds

_FIRST_SHARE = 0.02
# Rounds do not converge as fast as those of a quadratic.
_FEWEST_ROUNDS, _MOST_ROUNDS = 30, 60
_LEAST_RATE = 1e-3
_LEAST_SIGNAL, _MOST_SIGNAL = 0.05, 4.0
# Largest counts whose squares, and those of clipping norms in proportion to them, are exact enough.
_LEAST_COUNT, _MOST_COUNT = 1e-50, 1e50


@dataclass(frozen=True)
class WhitenedPoisson:
    """Poisson regression on records that keep their lengths; counts have a public cap.

    Parameters
    ----------
    steps : int or None
        Number of rounds. None chooses it from the number of rows and columns and the budget.
    weight : {"given", "auto", "select"}, default="given"
        Weight of the penalty, as for `WhitenedLeastSquares`.

    Examples
    --------
    >>> from hushfit import PrivatePoissonRegressor
    >>> from hushfit.solvers import WhitenedPoisson
    >>> PrivatePoissonRegressor(solver=WhitenedPoisson(steps=10), max_count=5)
    PrivatePoissonRegressor(max_count=5,
                            solver=WhitenedPoisson(steps=10, weight='given'))
    """

    steps: int | None = None
    weight: str = GIVEN

    takes_constraint = False
    scaling: ClassVar[RecordScaling] = RecordScaling.BOUNDED

    def __post_init__(self) -> None:
        if self.steps is not None and self.steps < 1:
            raise InvalidArgument(f"steps={self.steps} is below 1. Give a number, or None.")
        if self.weight not in WEIGHTS:
            raise InvalidArgument(f"weight={self.weight!r} is not one of {WEIGHTS}.")

    def for_budget(self, budget: Budget, problem: Problem) -> "WhitenedPoisson":
        """The same with the number of rounds chosen."""
        if self.steps is not None:
            return self
        return replace(self, steps=max(_FEWEST_ROUNDS, rounds_for(budget, problem)))

    def plan(self, problem: Problem) -> Plan:
        if problem.scaling is not RecordScaling.BOUNDED or not isinstance(problem.loss, Poisson):
            raise InvalidArgument(
                "WhitenedPoisson is for counts and records that keep their lengths, not for "
                f"{problem.loss!r} on {problem.scaling.value}. Use PrivatePoissonRegressor."
            )
        if not _LEAST_COUNT <= problem.loss.slope_bound <= _MOST_COUNT:
            raise InvalidArgument(
                f"The largest count, {problem.loss.slope_bound:g}, is outside [{_LEAST_COUNT:g}, "
                f"{_MOST_COUNT:g}]. Give counts in another unit."
            )
        check_weight(problem, self.weight)
        moments = moment_plan(problem)
        rest = 1 - 2 * _FIRST_SHARE - moments.share
        return Plan(
            (
                Planned(TARGET, MeanAndSquare, 1, _FIRST_SHARE),
                Planned(LENGTHS, MeanAndSquare, 1, _FIRST_SHARE),
                moments,
                Planned(GRADIENT, ResidualGradient, self._rounds, rest),
            )
        )

    @property
    def _rounds(self) -> int:
        return _MOST_ROUNDS if self.steps is None else self.steps

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        half = problem.loss.slope_bound / 2
        mean, spread, error = target_moments(problem, door, Target(0.0, 2 * half))
        coordinates, weight = released_coordinates(problem, door, usual_square(problem, door))
        least = max(_LEAST_RATE * half, error * half / 2)
        rate = min(max(half * (1 + mean / weight), least), 2 * half)
        deviation = spread * half
        # Counts vary more than by chance because their log-rates do.
        signal = math.log1p(max(deviation**2 - rate, 0.0) / rate**2)
        rounds = Rounds(
            problem,
            coordinates,
            coordinates.constant(math.log(rate)),
            deviation,
            float(np.clip(signal, _LEAST_SIGNAL, _MOST_SIGNAL)),
            min((error * half / rate) ** 2, _MOST_SIGNAL),
            self._rounds,
            damped=True,
            curvature=rate,
        )
        estimate = None
        for number, estimate in enumerate(rounds(door, GRADIENT), start=1):
            if number < self._rounds:
                yield Iterate(coordinates.whitening.weights(estimate.shrunk), weight=0.0)
        assert estimate is not None
        yield Iterate(penalised(problem, coordinates, estimate, self.weight, deviation / rate))
