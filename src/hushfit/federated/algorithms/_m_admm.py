"""M-ADMM: penalty perturbation with growing penalties (Zhang, Khalili and Liu 2018), with its true
cost.

The noise is inside the quadratic term: eta_i sum_j |(f_i + f_j)/2 - f - e|^2 has the linear term 2
eta_i V_i e . f, so each round is one perturbed minimiser (docs/algorithms/decentralised-rivals.md).
Notation of the paper: f_i is ``own``, lambda_i is ``dual``, theta is the fixed step of the duals,
eta_i(t) grows. Proof: docs/proofs/federated.md.
"""

from dataclasses import dataclass, replace

import numpy as np

from hushfit.federated._protocol import Conversation, Seat
from hushfit.federated.algorithms._subproblem import (
    NAME,
    MessageHistory,
    NoiseSettings,
    dual_step,
    refuse,
)
from hushfit.release import Door, Plan


@dataclass(frozen=True)
class MADMM(NoiseSettings):
    r"""As `DVP` with a coupling weight that grows from round to round, so that later messages are
    less noisy and change less.

    Parameters
    ----------
    steps : int, default=30
        Rounds.
    noise : {"laplace", "gaussian"}, default="laplace"
    eta : float or None
        Coupling weight of each edge in the first round, and step size of the dual variables in all
        rounds. None is the smallest that the total noise of all owners allows.
    growth : float, default=1.05
        Growth factor of the coupling weight per round, at least 1.
    ridge : float, default=1e-5
    output_share : float, default=0.01
    tolerance : float or None
    average_last : float, default=0.5
    bound : float, default=1e3
        As for `DVP`.

    Examples
    --------
    >>> from hushfit.federated import MADMM
    >>> MADMM(steps=10).steps  # give it as algorithm= of fit_together
    10
    """

    growth: float = 1.05

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse(self, growth=not 1 <= self.growth < 2)

    def plan(self, seat: Seat) -> Plan:
        # At first the coupling is smallest, and a record's share of the curvature largest.
        return self.noisy_minimisers(self.noisy_subproblem(seat, self.steps), self.steps)

    def converse(self, seat: Seat, door: Door) -> Conversation:
        first, history = self.noisy_subproblem(seat, self.steps), MessageHistory(seat, self.bound)
        own = dual = np.zeros(seat.problem.shape)

        for t in range(self.steps):
            subproblem = replace(first, eta=first.eta * self.growth**t)
            query = subproblem.query(own, history.last, dual)
            own = door.release(NAME, query).reshape(dual.shape)
            history.record((yield own.ravel()), own)
            dual = dual_step(first.eta, own, history.last, dual)  # theta is eta of the first round

        return history.average(self.average_last)
