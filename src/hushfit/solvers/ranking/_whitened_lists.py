"""Clipped gradient descent over lists in the metric of a private second moment: the default where
documents are private.

As `WhitenedGradientDescent` for rows, with lists in their place: a tenth of the budget pays for the
second moment of documents, centred in their lists and each list scaled to a mean squared length of
one.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import by_relation
from hushfit.ranking_problem import RankingProblem
from hushfit.release import Door, ListGradient, ListSecondMoment, Metric, Plan, Planned
from hushfit.solvers._setting_checks import check_settings
from hushfit.solvers._whitening import Spectrum, spectrum_of
from hushfit.solvers.base import Watch
from hushfit.solvers.newton import Settings

MOMENT: Final = "second moment"
GRADIENT: Final = "gradient"
# The rule of step sizes was measured on the logistic loss, whose curvature is at most a quarter of
# a record's second moment; that of a list is its second moment.
_STEP_FACTOR = 0.25
# Share of the columns: a metric in which lists are longer than that is no better than none.
_MOST_DIMENSION = 0.9


@dataclass(frozen=True)
class WhitenedLists:
    """Clipped gradient descent over all lists in the metric of their private second moment.

    Parameters
    ----------
    steps : int, default=60
    moment_share : float, default=0.1
        Share of the budget (of mu squared) for the second moment.
    """

    steps: int = 60
    moment_share: float = 0.1

    def __post_init__(self) -> None:
        check_settings(self, steps=self.steps)
        if not 0 < self.moment_share < 1:
            raise InvalidArgument(f"moment_share={self.moment_share!r} is outside (0, 1). Use 0.1.")

    def plan(self, problem: RankingProblem) -> Plan:
        if problem.hidden:
            raise InvalidArgument(
                "A network has no second moment to work with. Use solver='listwise-sgd'."
            )
        return Plan(
            (
                Planned(MOMENT, ListSecondMoment, 1, self.moment_share),
                Planned(GRADIENT, ListGradient, self.steps, 1 - self.moment_share),
            )
        )

    def solve(self, problem: RankingProblem, door: Door, watch: Watch | None = None) -> Vector:
        spectrum = _released_spectrum(problem, door)
        metric = Metric(spectrum.power(-0.5))
        settings = self._settings(problem, door, spectrum)
        weights = settings.weights(self.steps)
        u = velocity = result = np.zeros(problem.n_features)
        for t in range(self.steps):
            ahead = u + settings.momentum * velocity
            query = ListGradient(problem, metric.A @ ahead, settings.clip, metric)
            g = door.release(GRADIENT, query) / problem.n_units
            u, before = ahead - settings.step(t, self.steps) * g, u
            velocity = u - before
            result = result + weights[t] * u
            if watch is not None:
                watch(t + 1)
        return np.asarray(metric.A @ result)

    def _settings(self, problem: RankingProblem, door: Door, spectrum: Spectrum) -> Settings:
        multiplier, dimension = door.noise_multiplier(GRADIENT), spectrum.effective_dimension
        factor = by_relation(problem.relation, replace_one=2.0, add_remove=1.0)
        nu = dimension * multiplier * factor / problem.n_units / math.sqrt(self.steps)
        settings = Settings.for_noise(nu, dimension, self.steps).for_smooth(nu)
        return settings.for_columns(problem.n_features).with_scaled_steps(_STEP_FACTOR)


def _released_spectrum(problem: RankingProblem, door: Door) -> Spectrum:
    """The spectrum of the mean second moment of lists, corrected for the noise."""
    query = ListSecondMoment(problem)
    total = float(problem.n_units)
    mean = query.matrix(door.release(MOMENT, query)) / total
    mean -= (np.trace(mean) - 1) / len(mean) * np.eye(len(mean))  # its trace is known to be one
    noise = door.noise_multiplier(MOMENT) * query.sensitivity(problem.relation) / total
    return spectrum_of(mean, noise).compressed_to_dimension(_MOST_DIMENSION * len(mean))
