"""R-ADMM: every second step reuses the gradient that the step before has released (Zhang, Khalili
and Liu 2018).

The noisy gradient follows from the optimality condition of the released minimiser, so it is
post-processing and costs nothing (docs/algorithms/decentralised-rivals.md). Notation of the paper:
f_i is ``own``, lambda_i is ``dual``. Proof: docs/proofs/federated.md.
"""

from dataclasses import dataclass

import numpy as np

from hushfit._typing import Vector
from hushfit.federated._protocol import Conversation, Seat
from hushfit.federated.algorithms._subproblem import (
    NAME,
    MessageHistory,
    NoiseSettings,
    Subproblem,
    dual_step,
    refuse,
)
from hushfit.release import Door, Plan


@dataclass(frozen=True)
class RADMM(NoiseSettings):
    r"""Rounds in pairs: a noisy minimiser as in `DVP`, then a step along the noisy gradient that it
    reveals.

    Parameters
    ----------
    steps : int, default=60
        Rounds; half of them are releases.
    noise : {"laplace", "gaussian"}, default="laplace"
    eta : float or None
        Coupling weight of each edge. None is the smallest that the total noise of all owners
        allows.
    gamma : float or None
        Curvature that a recycled step adds to the coupling weight. None is the smoothness of the
        loss.
    ridge : float, default=1e-5
    output_share : float, default=0.01
    tolerance : float or None
    average_last : float, default=0.5
    bound : float, default=1e3
        As for `DVP`.

    Examples
    --------
    >>> from hushfit.federated import RADMM
    >>> RADMM(steps=10).steps  # give it as algorithm= of fit_together
    10
    """

    steps: int = 60
    gamma: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse(self, gamma=self.gamma is not None and not self.gamma >= 0)

    @property
    def releases(self) -> int:
        """Number of rounds that read the rows: the first and every second one after it."""
        return (self.steps + 1) // 2

    def plan(self, seat: Seat) -> Plan:
        return self.noisy_minimisers(self.noisy_subproblem(seat, self.releases), self.releases)

    def converse(self, seat: Seat, door: Door) -> Conversation:
        subproblem = self.noisy_subproblem(seat, self.releases)
        history = MessageHistory(seat, self.bound)
        own = dual = gradient = np.zeros(seat.problem.shape)
        gamma = seat.weight * seat.problem.loss.smoothness if self.gamma is None else self.gamma

        for t in range(self.steps):
            if t % 2 == 0:
                linear = subproblem.linear(own, history.last, dual)
                query = subproblem.query(own, history.last, dual)
                own = door.release(NAME, query).reshape(dual.shape)
                gradient = recycled(subproblem, linear, own)
            else:
                apart = sum(
                    (own - other for other in history.last.values()), start=np.zeros_like(own)
                )
                step = gradient + 2 * dual + subproblem.eta * apart
                own = own - step / (subproblem.coupling + gamma)
            history.record((yield own.ravel()), own)
            dual = dual_step(subproblem.eta, own, history.last, dual)

        return history.average(self.average_last)


def recycled(subproblem: Subproblem, linear: Vector, released: Vector) -> Vector:
    """Noisy gradient of loss, ridge and penalty, from the optimality condition at the minimiser."""
    return np.asarray(-(subproblem.coupling * released + linear))
