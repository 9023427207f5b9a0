"""PP-ADMM: decentralised ADMM in which every primal step is a perturbed minimiser, as corrected
(docs/algorithms/pp-admm.md).

Notation of the paper: theta_i is ``own``, theta_j is ``history.last[j]``, lambda_i is ``dual``, eta
is ``eta``. Proof: docs/proofs/federated.md.
"""

from dataclasses import dataclass

import numpy as np

from hushfit.federated._protocol import Conversation, Seat
from hushfit.federated.algorithms._subproblem import (
    NAME,
    AdmmSettings,
    MessageHistory,
    Subproblem,
    dual_step,
)
from hushfit.release import Door, GaussianInside, PerturbedMinimiser, Plan, Planned


@dataclass(frozen=True)
class PPADMM(AdmmSettings):
    r"""In each round every owner releases the noisy minimiser of its own loss, coupled to its
    neighbours' last messages.

    Parameters
    ----------
    steps : int, default=30
        Rounds, each a release of every owner.
    eta : float or None
        Coupling weight of each edge. None is the smallest that the total noise of all owners
        allows.
    ridge : float, default=1e-5
        Weight of half the squared norm of the common weights, intercept included.
    output_share : float, default=0.01
        Share of the budget for output noise, which hides the error of an inexact minimiser.
    tolerance : float or None
        Largest norm of the gradient at the released minimiser. None is 1e-8, or 1e-6 for more than
        600 weights.
    average_last : float, default=0.5
        Share of the last messages, its own and its neighbours', that an owner averages into the
        result.
    bound : float, default=1e3
        Longest message that an owner accepts unchanged; longer ones are shortened.

    Examples
    --------
    >>> from hushfit.federated import PPADMM
    >>> PPADMM(steps=10).steps  # give it as algorithm= of fit_together
    10
    """

    def plan(self, seat: Seat) -> Plan:
        start = self.subproblem(seat, self.steps).start
        noise = GaussianInside.of(start, self.output_share)
        return Plan((Planned(NAME, PerturbedMinimiser, self.steps, sampling=noise),))

    def converse(self, seat: Seat, door: Door) -> Conversation:
        return alternate(self.subproblem(seat, self.steps), self, door)


def alternate(subproblem: Subproblem, settings: AdmmSettings, door: Door) -> Conversation:
    """Alternate noisy minimisers and dual steps, for any noise distribution."""
    history = MessageHistory(subproblem.seat, settings.bound)
    own = dual = np.zeros(subproblem.seat.problem.shape)

    for _ in range(settings.steps):
        own = door.release(NAME, subproblem.query(own, history.last, dual)).reshape(dual.shape)
        history.record((yield own.ravel()), own)
        dual = dual_step(subproblem.eta, own, history.last, dual)

    return history.average(settings.average_last)
