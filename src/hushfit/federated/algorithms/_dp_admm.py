"""DP-ADMM (Huang et al. 2019): linearised ADMM around a common model, with an exact cost: that of
Gaussian noise on a gradient.

The paper's server averages what the owners send; here the sum travels up a tree of the network and
the average down again. A star is the simplest tree. Notation of the paper: w_i is ``own``, the
server's w is ``common``, gamma_i is ``dual`` (docs/algorithms/decentralised-rivals.md). Proof:
docs/proofs/federated.md.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushfit._typing import Vector
from hushfit.federated._protocol import Conversation, Seat, sum_over_owners
from hushfit.federated.algorithms._subproblem import refuse
from hushfit.problem import Problem
from hushfit.release import ClippedGradient, Door, Plan, Planned

NAME = "gradient"


@dataclass(frozen=True)
class DPADMM:
    r"""Consensus ADMM around a common model; in each step every owner takes one noisy gradient
    step.

    Parameters
    ----------
    steps : int, default=30
        Each step is a release of every owner and a sum over all owners.
    rho : float, default=0.002
        Coupling weight of the common model (the paper's penalty).
    step_size : float, default=100.0
        Step size of the first step; that of step k is this divided by the square root of k.
    clip : float or None
        Clipping norm of a record's gradient. None clips nothing.
    ridge : float, default=1e-5
        Weight of half the squared norm of the common weights.
    average_last : float, default=0.5
        Share of the last common models that are averaged into the result.
    bound : float, default=1e3
        Longest message that is accepted from a neighbour, per owner.

    Examples
    --------
    >>> from hushfit.federated import DPADMM
    >>> DPADMM(steps=10).steps  # give it as algorithm= of fit_together
    10
    """

    steps: int = 30
    rho: float = 0.002
    step_size: float = 100.0
    clip: float | None = None
    ridge: float = 1e-5
    average_last: float = 0.5
    bound: float = 1e3

    def __post_init__(self) -> None:
        refuse(
            self,
            steps=self.steps < 1,
            rho=not self.rho > 0,
            step_size=not self.step_size > 0,
            clip=self.clip is not None and not self.clip > 0,
            ridge=not self.ridge >= 0,
            average_last=not 0 <= self.average_last <= 1,
            bound=not self.bound > 0,
        )

    def rounds(self, seat: Seat) -> int:
        return 2 * seat.network.height * self.steps

    def plan(self, seat: Seat) -> Plan:
        return Plan((Planned(NAME, ClippedGradient, self.steps),))

    def converse(self, seat: Seat, door: Door) -> Conversation:
        problem, owners = seat.problem, len(seat.sizes)
        own = dual = common = np.zeros(problem.shape)
        clip = problem.loss.slope_bound if self.clip is None else self.clip
        averaged = []

        for k in range(1, self.steps + 1):
            eta = self.step_size / math.sqrt(k)
            answer = door.release(NAME, ClippedGradient(problem, own, clip))
            g = seat.weight * answer.reshape(own.shape) / problem.n_units
            own = (self.rho * common + own / eta + dual - g) / (self.rho + 1 / eta)
            total = yield from sum_over_owners(
                seat, (own - dual / self.rho).ravel(), owners * self.bound
            )
            common = self._common(problem, total.reshape(own.shape) / owners)
            dual = dual - self.rho * (own - common)
            averaged.append(common)

        last = max(1, round(self.average_last * self.steps))
        return np.asarray(np.mean(averaged[-last:], axis=0))

    def _common(self, problem: Problem, mean: Vector) -> Vector:
        """The server's step: proximal step of penalty and ridge at the mean of the owners."""
        curvature = self.rho + self.ridge
        return problem.prox(mean * (self.rho / curvature), 1 / curvature)
