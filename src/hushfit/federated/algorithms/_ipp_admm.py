"""IPP-ADMM: PP-ADMM whose owners send only if their solution has changed, as corrected
(docs/algorithms/ipp-admm.md).

The paper tests the new solution and then releases the one it tested. Here an owner first tests how
far its last message is from the minimum of its present subproblem. Only if it is far, the owner
solves the subproblem with fresh noise and sends the result. The number of its broadcasts is
limited. Proof: docs/proofs/federated.md.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.federated._protocol import Conversation, Seat
from hushfit.federated.algorithms._subproblem import (
    NAME,
    AdmmSettings,
    MessageHistory,
    dual_step,
    refuse,
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

GATE = "gate"
GATES = ("gaussian", "laplace")


@dataclass(frozen=True)
class IPPADMM(AdmmSettings):
    r"""As `PPADMM`, but an owner sends nothing while its last message is near the minimum of its
    subproblem.

    Parameters
    ----------
    steps : int, default=30
        Rounds.
    broadcasts : int or None
        Largest number of broadcasts of an owner; after that it only receives. None is a third of
        the rounds.
    gate : {"gaussian", "laplace"}, default="gaussian"
        Fresh noise on the norm of the gradient in every round, or a persistent threshold, whose
        noise is drawn once until it is reached. The second is better only with more than 35 rounds
        for each broadcast.
    threshold : float or None
        An owner sends if the norm of the gradient at its last message is at least this. None is the
        norm of the noise of a primal step.
    gate_share : float, default=0.1
        Share of the budget for the gate.
    eta, ridge, output_share, tolerance, average_last, bound
        As for `PPADMM`.

    Examples
    --------
    >>> from hushfit.federated import IPPADMM
    >>> IPPADMM(steps=10).steps  # give it as algorithm= of fit_together
    10
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
        """c: largest number of broadcasts of an owner."""
        return math.ceil(self.steps / 3) if self.broadcasts is None else self.broadcasts

    def plan(self, seat: Seat) -> Plan:
        noise = GaussianInside.of(self.subproblem(seat, self.most).start, self.output_share)
        gate = (
            Planned(GATE, GradientNorm, self.steps, self.gate_share, FullBatch())
            if self.gate == "gaussian"
            else Planned(GATE, NormAbove, self.steps, self.gate_share, RestartedGate(self.most))
        )
        return Plan(
            (gate, Planned(NAME, PerturbedMinimiser, self.most, 1 - self.gate_share, noise))
        )

    def converse(self, seat: Seat, door: Door) -> Conversation:
        subproblem, history = self.subproblem(seat, self.most), MessageHistory(seat, self.bound)
        own = dual = np.zeros(seat.problem.shape)
        broadcasts = silent = 0  # silent: rounds since the last broadcast

        for _ in range(self.steps):
            sent = None
            if broadcasts < self.most:
                query = subproblem.query(own, history.last, dual)
                silent += 1
                if self._opens(door, query, own, broadcasts, silent - 1):
                    sent = own = door.release(NAME, query).reshape(dual.shape)  # its noise is fresh
                    broadcasts, silent = broadcasts + 1, 0
            history.record((yield None if sent is None else sent.ravel()), sent)
            dual = dual_step(subproblem.eta, own, history.last, dual)

        return history.average(self.average_last)

    def _opens(
        self, door: Door, query: PerturbedMinimiser, own: Vector, broadcasts: int, silent: int
    ) -> bool:
        """Whether the last message seems far from the minimum."""
        norm, tau = GradientNorm(query, own), self._tau(door, query)
        if self.gate == "gaussian":
            return bool(door.release(GATE, norm)[0] >= tau)
        return bool(door.release(GATE, NormAbove(norm, tau, broadcasts, silent))[0] == 1)

    def _tau(self, door: Door, query: PerturbedMinimiser) -> float:
        if self.threshold is not None:
            return self.threshold
        scale = door.noise_multiplier(NAME) * query.gradient_shift(door.relation)
        return scale * math.sqrt(query.size)
