"""DVP: dual variable perturbation (Zhang and Zhu 2016), at its true price
(docs/algorithms/decentralised-rivals.md).

Noise on the dual variable is noise inside the subproblem's objective, so each round is one
perturbed minimiser. The paper promises each round by itself; here all of them are paid for
together. What is left is the walk of PP-ADMM with another noise: `alternate`. Beside the paper: f_i
is ``own`` there, lambda_i is ``dual``. Proof: docs/proofs/federated.md.
"""

from dataclasses import dataclass

from hushfit.federated._protocol import Conversation, Seat
from hushfit.federated.algorithms._pp_admm import NAME, alternate
from hushfit.federated.algorithms._subproblem import (
    NOISES,
    NoiseSettings,
    Subproblem,
    louder_by,
    usual_eta,
)
from hushfit.release import Door, PerturbedMinimiser, Plan, Planned


@dataclass(frozen=True)
class DVP(NoiseSettings):
    r"""Each round every owner adds noise to its dual variable and says the minimiser that this
    leads to.

    Parameters
    ----------
    steps : int, default=30
        Rounds.
    noise : {"laplace", "gaussian"}, default="laplace"
        The paper's is of the first kind; with the second the algorithm is `PPADMM`.
    eta : float or None
        Strength of the pull along each edge. None is as little as the noise of all owners together
        allows.
    ridge : float, default=1e-5
        Weight of half the squared norm of the common weights.
    output_share : float, default=0.01
        Part of the budget for the noise that hides how a minimiser was found; the paper takes it to
        be exact.
    tolerance : float or None
    average_last : float, default=0.5
        Share of the words of all the owners that one hears that are averaged into the result; 0 is
        the last ones.
    bound : float, default=1e3
        Longest message that an owner takes at its word.
    """

    def plan(self, seat: Seat) -> Plan:
        query = self._subproblem(seat).start
        noise = NOISES[self.noise](query.kappa, query.rank, self.output_share)
        return Plan((Planned(NAME, PerturbedMinimiser, self.steps, sampling=noise),))

    def converse(self, seat: Seat, door: Door) -> Conversation:
        return alternate(self._subproblem(seat), self, door)

    def _subproblem(self, seat: Seat) -> Subproblem:
        eta = (
            usual_eta(seat, self.steps, louder_by(self.noise, seat))
            if self.eta is None
            else self.eta
        )
        return Subproblem(seat, eta, self.ridge, self.tolerance)
