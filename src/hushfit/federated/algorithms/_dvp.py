"""DVP: dual variable perturbation (Zhang and Zhu 2016), with its true cost
(docs/algorithms/decentralised-rivals.md).

Noise on the dual variable is noise inside the subproblem's objective, so each round is one
perturbed minimiser. The paper's guarantee is for one round; here the cost of all rounds is
composed. The rest is the iteration of PP-ADMM with another noise distribution: `alternate`.
Notation of the paper: f_i is ``own`` there, lambda_i is ``dual``. Proof: docs/proofs/federated.md.
"""

from dataclasses import dataclass

from hushfit.federated._protocol import Conversation, Seat
from hushfit.federated.algorithms._pp_admm import alternate
from hushfit.federated.algorithms._subproblem import NoiseSettings
from hushfit.release import Door, Plan


@dataclass(frozen=True)
class DVP(NoiseSettings):
    r"""Dual variable perturbation: in each round every owner perturbs its dual variable and sends
    the minimiser of its subproblem.

    Parameters
    ----------
    steps : int, default=30
        Rounds.
    noise : {"laplace", "gaussian"}, default="laplace"
        The paper's noise is "laplace"; with "gaussian" the algorithm is `PPADMM`.
    eta : float or None
        Coupling weight of each edge. None is the smallest that the total noise of all owners
        allows.
    ridge : float, default=1e-5
        Weight of half the squared norm of the common weights.
    output_share : float, default=0.01
        Share of the budget for output noise, which hides the error of an inexact minimiser; the
        paper assumes an exact one.
    tolerance : float or None
    average_last : float, default=0.5
        Share of the last messages, its own and its neighbours', that an owner averages into the
        result; 0 takes the last ones only.
    bound : float, default=1e3
        Longest message that an owner accepts unchanged; longer ones are shortened.

    Examples
    --------
    >>> from hushfit.federated import DVP
    >>> DVP(steps=10).steps  # give it as algorithm= of fit_together
    10
    """

    def plan(self, seat: Seat) -> Plan:
        return self.noisy_minimisers(self.noisy_subproblem(seat, self.steps), self.steps)

    def converse(self, seat: Seat, door: Door) -> Conversation:
        return alternate(self.noisy_subproblem(seat, self.steps), self, door)
