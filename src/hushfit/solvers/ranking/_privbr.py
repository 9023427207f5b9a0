r"""PrivBR (private BayesRank): noisy gradient ascent on expected NDCG, with public documents.

Chapter 6 of the thesis, corrected (docs/errata.md):

* noise is scaled by a bound that is the same for every batch. The thesis takes the largest
  sensitivity in the current batch, and the size of the noise then tells which lists were drawn;
  here lists above the bound are scaled down by a public factor;
* the step ascends: NDCG is to grow;
* batches are priced for replaced grades, not for added or removed ones;
* gradients of a list lie in the hull of public vectors, which gives smaller bounds than adding up
  their norms.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import require_labels
from hushfit.ranking_problem import RankingProblem
from hushfit.release import BayesRankGradient, Door, Plan, Planned, PoissonBatch, gradient_norms
from hushfit.solvers._setting_checks import check_settings
from hushfit.solvers.base import Watch
from hushfit.solvers.ranking._descent import descend
from hushfit.solvers.ranking._network import spectrally_normalised, start_of

GRADIENT: Final = "gradient"
# Lists from which the bound is computed, and steps after which it is computed anew: a quantile
# needs few lists, and weights change slowly.
_SAMPLED_LISTS = 60
_BOUND_STEPS = 20


@dataclass(frozen=True)
class PrivBR:
    """Stochastic gradient ascent on the expected NDCG of the top one or two documents.

    Parameters
    ----------
    steps : int, default=400
    batch : float, default=10
        Expected number of lists (or persons) in a batch.
    learning_rate : float or None
        First step size, for gradients in units of their bound. None is 1, and 0.3 for a network.
    quantile : float, default=0.5
        Share of the lists whose gradients are used in full; longer ones are scaled down.
    spectral_normalisation : bool, default=True
        Whether the layers of a network are divided by their largest singular values after each
        step.
    average_last : float, default=0.5
        Share of the iterates, from the end, whose mean is the result; 0 means the last one.
    """

    steps: int = 400
    batch: float = 10
    learning_rate: float | None = None
    quantile: float = 0.5
    spectral_normalisation: bool = True
    average_last: float = 0.5

    def __post_init__(self) -> None:
        check_settings(self, steps=self.steps, batch=self.batch, learning_rate=self.learning_rate)
        if not 0 < self.quantile <= 1 or not 0 <= self.average_last <= 1:
            raise InvalidArgument(f"{self} needs 0 < quantile <= 1 and 0 <= average_last <= 1.")

    def plan(self, problem: RankingProblem) -> Plan:
        if problem.loss.name != "bayesrank":
            raise InvalidArgument(
                f"PrivBR maximises expected NDCG and does not take loss={problem.loss.name!r}. Use "
                "loss='bayesrank', or another solver."
            )
        require_labels(problem.relation, problem.privacy_unit)
        return Plan(
            (Planned(GRADIENT, BayesRankGradient, self.steps, sampling=self._batches(problem)),)
        )

    def _batches(self, problem: RankingProblem) -> PoissonBatch:
        return PoissonBatch(min(1.0, self.batch / problem.n_units))

    def solve(self, problem: RankingProblem, door: Door, watch: Watch | None = None) -> Vector:
        expected = self._batches(problem).expected_units(problem.n_units)

        bounds: list[float] = []

        def gradient(theta: Vector) -> Vector:
            # Of minus the expected NDCG, so that descending ascends; in units of its bound.
            bound = bounds[-1] if len(bounds) % _BOUND_STEPS else self._bound(problem, theta)
            bounds.append(bound)
            query = BayesRankGradient(problem, theta, bound)
            return door.release(GRADIENT, query) / (expected * bound)

        def normalised(theta: Vector) -> Vector:
            return spectrally_normalised(theta, problem) if self.spectral_normalisation else theta

        first = self.learning_rate or (0.3 if problem.hidden else 1.0)
        start = start_of(problem)
        return descend(start, self.steps, first, self.average_last, gradient, normalised, watch)

    def _bound(self, problem: RankingProblem, theta: Vector) -> float:
        """A quantile of the largest gradients of some lists: public, whatever the batch."""
        documents = problem.public_documents
        every = max(1, documents.n_lists // _SAMPLED_LISTS)
        norms = gradient_norms(problem, theta, np.arange(0, documents.n_lists, every))
        positive = norms[norms > 0]
        return float(np.quantile(positive, self.quantile)) if len(positive) else 1.0
