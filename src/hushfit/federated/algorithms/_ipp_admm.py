"""IPP-ADMM: PP-ADMM whose owners speak only when they have something to say, as corrected
(docs/algorithms/ipp-admm.md).

The paper tests the new solution and then releases the one it tested. Here an owner first asks how
far its last word is from the minimum of its present subproblem, and only if that is far it solves,
with fresh noise, and speaks. It speaks so many times at most. Proof: docs/proofs/federated.md.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.federated._protocol import Conversation, Seat
from hushfit.federated.algorithms._subproblem import (
    AdmmSettings,
    Subproblem,
    Words,
    dual_step,
    refuse,
    usual_eta,
)
from hushfit.release import (
    Door,
    FullBatch,
    GaussianInside,
    GradientNorm,
    NormAbove,
    PerturbedMinimiser,
    Plan,
    Planned,
    RestartedGate,
)

GATE, NAME = "gate", "primal step"
GATES = ("gaussian", "laplace")


@dataclass(frozen=True)
class IPPADMM(AdmmSettings):
    r"""As `PPADMM`, but an owner whose last word is still near the minimum of its subproblem is
    silent.

    Parameters
    ----------
    steps : int, default=30
        Rounds.
    broadcasts : int or None
        How often an owner may speak; after that it listens only. None is a third of the rounds.
    gate : {"gaussian", "laplace"}, default="gaussian"
        Noise on the norm of the gradient in every round, or a noisy threshold that is kept until it
        is reached. The second is better only with more than 35 rounds for each broadcast.
    threshold : float or None
        Norm of the gradient at the last word from which on an owner speaks. None is that of the
        noise of a primal step.
    gate_share : float, default=0.1
        Part of the budget for the gate.
    eta, ridge, output_share, tolerance, average_last, bound
        As for `PPADMM`.
    """

    broadcasts: int | None = None
    gate: str = "gaussian"
    threshold: float | None = None
    gate_share: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse(
            self,
            broadcasts=self.broadcasts is not None and not 1 <= self.broadcasts <= self.steps,
            threshold=self.threshold is not None and math.isnan(self.threshold),
            gate_share=not 0 < self.gate_share < 1,
        )
        if self.gate not in GATES:
            raise InvalidArgument(f"gate={self.gate!r} is not known. Use 'gaussian' or 'laplace'.")

    @property
    def most(self) -> int:
        """c: how often an owner may speak."""
        return math.ceil(self.steps / 3) if self.broadcasts is None else self.broadcasts

    def plan(self, seat: Seat) -> Plan:
        query = self._subproblem(seat).start
        noise = GaussianInside(query.kappa, query.rank, self.output_share)
        gate = (
            Planned(GATE, GradientNorm, self.steps, self.gate_share, FullBatch())
            if self.gate == "gaussian"
            else Planned(GATE, NormAbove, self.steps, self.gate_share, RestartedGate(self.most))
        )
        return Plan(
            (gate, Planned(NAME, PerturbedMinimiser, self.most, 1 - self.gate_share, noise))
        )

    def converse(self, seat: Seat, door: Door) -> Conversation:
        subproblem, words = self._subproblem(seat), Words(seat, self.bound)
        own = dual = np.zeros(seat.problem.shape)
        spoken = quiet = 0  # quiet: rounds since it last spoke

        for _ in range(self.steps):
            said = None
            if spoken < self.most:
                query = subproblem.query(own, words.last, dual)
                quiet += 1
                if self._opens(door, query, own, spoken, quiet - 1):
                    said = own = door.release(NAME, query).reshape(dual.shape)  # its noise is fresh
                    spoken, quiet = spoken + 1, 0
            words.hear((yield None if said is None else said.ravel()), said)
            dual = dual_step(subproblem.eta, own, words.last, dual)

        return words.average(self.average_last)

    def _opens(
        self, door: Door, query: PerturbedMinimiser, own: Vector, spoken: int, quiet: int
    ) -> bool:
        """Whether the last word seems far from the minimum."""
        norm, tau = GradientNorm(query, own), self._tau(door, query)
        if self.gate == "gaussian":
            return bool(door.release(GATE, norm)[0] >= tau)
        return bool(door.release(GATE, NormAbove(norm, tau, spoken, quiet))[0] == 1)

    def _tau(self, door: Door, query: PerturbedMinimiser) -> float:
        if self.threshold is not None:
            return self.threshold
        scale = door.noise_multiplier(NAME) * query.gradient_shift(door.relation)
        return scale * math.sqrt(query.size)

    def _subproblem(self, seat: Seat) -> Subproblem:
        eta = usual_eta(seat, self.most) if self.eta is None else self.eta
        return Subproblem(seat, eta, self.ridge, self.tolerance)
