"""PP-ADMM: decentralised ADMM whose every primal step is a perturbed minimiser, as corrected
(docs/algorithms/pp-admm.md).

Beside the paper: theta_i is ``own``, theta_j is ``words.last[j]``, lambda_i is ``dual``, eta is
``eta``. Proof: docs/proofs/federated.md.
"""

from dataclasses import dataclass

import numpy as np

from hushfit.federated._protocol import Conversation, Seat
from hushfit.federated.algorithms._subproblem import (
    AdmmSettings,
    Subproblem,
    Words,
    dual_step,
    usual_eta,
)
from hushfit.release import Door, GaussianInside, PerturbedMinimiser, Plan, Planned

NAME = "primal step"


@dataclass(frozen=True)
class PPADMM(AdmmSettings):
    r"""Each round every owner releases the noisy minimiser of its own loss, pulled towards its
    neighbours' last words.

    Parameters
    ----------
    steps : int, default=30
        Rounds, each a release of every owner.
    eta : float or None
        Strength of the pull along each edge. None is as little as the noise of all owners together
        allows.
    ridge : float, default=1e-5
        Weight of half the squared norm of the common weights, intercept included.
    output_share : float, default=0.01
        Part of the budget for the noise that hides how a minimiser was found.
    tolerance : float or None
        Norm of the gradient at what is released. None is 1e-8, or 1e-6 for more than 600 weights.
    average_last : float, default=0.5
        Share of the rounds whose words, of all the owners that one hears, are averaged into the
        result.
    bound : float, default=1e3
        Longest message that an owner takes at its word.
    """

    def plan(self, seat: Seat) -> Plan:
        query = self._subproblem(seat).start
        noise = GaussianInside(query.kappa, query.rank, self.output_share)
        return Plan((Planned(NAME, PerturbedMinimiser, self.steps, sampling=noise),))

    def converse(self, seat: Seat, door: Door) -> Conversation:
        return alternate(self._subproblem(seat), self, door)

    def _subproblem(self, seat: Seat) -> Subproblem:
        eta = usual_eta(seat, self.steps) if self.eta is None else self.eta
        return Subproblem(seat, eta, self.ridge, self.tolerance)


def alternate(subproblem: Subproblem, settings: AdmmSettings, door: Door) -> Conversation:
    """Noisy minimisers and dual steps in turn, whatever the law of the noise."""
    words = Words(subproblem.seat, settings.bound)
    own = dual = np.zeros(subproblem.seat.problem.shape)

    for _ in range(settings.steps):
        own = door.release(NAME, subproblem.query(own, words.last, dual)).reshape(dual.shape)
        words.hear((yield own.ravel()), own)
        dual = dual_step(subproblem.eta, own, words.last, dual)

    return words.average(settings.average_last)
