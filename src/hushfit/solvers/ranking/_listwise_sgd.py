"""Noisy stochastic gradient descent on a listwise loss, lists clipped as wholes.

ListNet, ListMLE or BayesRank with per-list clipped gradients (chapter 6 of the thesis, its
baselines): documents are private too.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.ranking_problem import RankingProblem
from hushfit.release import Door, ListGradient, Plan, Planned, PoissonBatch
from hushfit.solvers._setting_checks import check_settings
from hushfit.solvers.base import Watch
from hushfit.solvers.ranking._descent import descend
from hushfit.solvers.ranking._network import start_of

GRADIENT: Final = "gradient"


@dataclass(frozen=True)
class ListwiseSGD:
    """Stochastic gradient descent on noisy sums over Poisson batches of lists.

    Parameters
    ----------
    steps : int, default=400
    batch : float, default=10
        Expected number of lists (or persons) in a batch.
    clip : float, default=1.0
        Clipping norm of a list's gradient.
    learning_rate : float or None
        First step size. None is 1, and 0.1 for a network.
    average_last : float, default=0.5
        Share of the iterates, from the end, whose mean is the result; 0 means the last one.
    """

    steps: int = 400
    batch: float = 10
    clip: float = 1.0
    learning_rate: float | None = None
    average_last: float = 0.5

    def __post_init__(self) -> None:
        check_settings(
            self,
            steps=self.steps,
            batch=self.batch,
            clip=self.clip,
            learning_rate=self.learning_rate,
        )
        if not 0 <= self.average_last <= 1:
            raise InvalidArgument(f"{self} needs 0 <= average_last <= 1.")

    def plan(self, problem: RankingProblem) -> Plan:
        return Plan((Planned(GRADIENT, ListGradient, self.steps, sampling=self._batches(problem)),))

    def _batches(self, problem: RankingProblem) -> PoissonBatch:
        return PoissonBatch(min(1.0, self.batch / problem.n_units))

    def solve(self, problem: RankingProblem, door: Door, watch: Watch | None = None) -> Vector:
        expected = self._batches(problem).expected_units(problem.n_units)

        def gradient(theta: Vector) -> Vector:
            return door.release(GRADIENT, ListGradient(problem, theta, self.clip)) / expected

        first = self.learning_rate or (0.1 if problem.hidden else 1.0)
        start = start_of(problem)
        return descend(start, self.steps, first, self.average_last, gradient, np.asarray, watch)
