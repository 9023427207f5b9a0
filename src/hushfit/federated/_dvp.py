"""DVP: dual variable perturbation (Zhang and Zhu 2016), at its true price (docs/algorithms/decentralised-rivals.md).

Noise on the dual variable is noise inside the subproblem's objective, so each round is one perturbed minimiser. The paper promises
each round by itself; here all of them are paid for together. Beside the paper: f_i is ``own``, lambda_i is ``dual``.
"""

from dataclasses import dataclass

import numpy as np

from hushfit.federated._protocol import Conversation, Seat
from hushfit.federated._subproblem import NOISES, NoiseSettings, Subproblem, Words, dual_step, louder_by, usual_eta
from hushfit.release import Curator, PerturbedMinimiser, Plan, Planned

NAME = "primal step"


@dataclass(frozen=True)
class DVP(NoiseSettings):
    r"""Each round every owner adds noise to its dual variable and says the minimiser that this leads to.

    Parameters
    ----------
    steps : int, default=30
        Rounds.
    noise : {"laplace", "gaussian"}, default="laplace"
        The paper's is of the first kind; with the second the algorithm is `PPADMM`.
    eta : float or None
        Strength of the pull along each edge. None is as little as the noise of all owners together allows.
    ridge : float, default=1e-5
        Weight of half the squared norm of the common weights.
    output_share : float, default=0.01
        Part of the budget for the noise that hides how a minimiser was found; the paper takes it to be exact.
    tolerance : float or None
    average_last : float, default=0.5
        Share of the words of all the owners that one hears that are averaged into the result; 0 is the last ones.
    bound : float, default=1e3
        Longest message that an owner takes at its word.
    """

    def plan(self, seat: Seat) -> Plan:
        query = self._subproblem(seat).start
        noise = NOISES[self.noise](query.kappa, query.rank, self.output_share)
        return Plan((Planned(NAME, PerturbedMinimiser, self.steps, sampling=noise),))

    def converse(self, seat: Seat, curator: Curator) -> Conversation:
        subproblem, words = self._subproblem(seat), Words(seat, self.bound)
        own = dual = np.zeros(seat.problem.shape)

        for _ in range(self.steps):
            own = curator.release(NAME, subproblem.query(own, words.last, dual)).reshape(dual.shape)
            words.hear((yield own.ravel()), own)
            dual = dual_step(subproblem.eta, own, words.last, dual)

        return words.average(self.average_last)

    def _subproblem(self, seat: Seat) -> Subproblem:
        eta = usual_eta(seat, self.steps, louder_by(self.noise, seat)) if self.eta is None else self.eta
        return Subproblem(seat, eta, self.ridge, self.tolerance)
