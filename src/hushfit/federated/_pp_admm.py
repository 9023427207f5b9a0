"""PP-ADMM: decentralised ADMM whose every primal step is a perturbed minimiser, as corrected (docs/algorithms/pp-admm.md).

Beside the paper: theta_i is ``own``, theta_j is ``theirs[j]``, lambda_i is ``dual``, eta is ``eta``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.federated._protocol import Conversation, Seat, received
from hushfit.federated._scaled import scaled
from hushfit.release import Curator, GaussianInside, PerturbedMinimiser, Plan, Planned
from hushfit.solvers import tolerance_for

NAME = "primal step"


@dataclass(frozen=True)
class PPADMM:
    r"""Each round every owner releases the noisy minimiser of its own loss, pulled towards its neighbours' last words.

    Parameters
    ----------
    steps : int or None
        Rounds, each a release of every owner. None is 10, 20 or 30 for a smallest epsilon up to 1, up to 4, and beyond.
    eta : float or None
        Strength of the pull along each edge. None is 0.1 over the number of the owner's edges, on average.
    ridge : float, default=1e-3
        Weight of half the squared norm of the common weights, intercept included.
    output_share : float, default=0.01
        Part of the budget for the noise that hides how a minimiser was found.
    tolerance : float or None
        Norm of the gradient at what is released. None is 1e-8, or 1e-6 for more than 600 weights.
    average_last : float, default=0.5
        Share of the rounds whose words, of all the owners that one hears, are averaged into the result.
    bound : float, default=1e3
        Longest message that an owner takes at its word.
    """

    steps: int | None = None
    eta: float | None = None
    ridge: float = 1e-3
    output_share: float = 0.01
    tolerance: float | None = None
    average_last: float = 0.5
    bound: float = 1e3

    def __post_init__(self) -> None:
        if (self.steps is not None and self.steps < 1) or (self.eta is not None and not self.eta > 0):
            raise InvalidArgument(f"{self} needs steps >= 1 and eta > 0, or None for the usual ones.")
        if not (self.ridge >= 0 and 0 <= self.average_last <= 1 and self.bound > 0):
            raise InvalidArgument(f"{self} needs ridge >= 0, average_last in [0, 1] and bound > 0.")

    def rounds(self, seat: Seat) -> int:
        if self.steps is not None:
            return self.steps
        return 10 if seat.least_epsilon <= 1 else 20 if seat.least_epsilon <= 4 else 30

    def plan(self, seat: Seat) -> Plan:
        query = primal_query(self, seat, np.zeros(seat.problem.shape), {}, np.zeros(seat.problem.shape))
        noise = GaussianInside(query.kappa, query.rank, self.output_share)
        return Plan((Planned(NAME, PerturbedMinimiser, self.rounds(seat), sampling=noise),))

    def converse(self, seat: Seat, curator: Curator) -> Conversation:
        zero = np.zeros(seat.problem.shape)
        own, dual = zero, zero
        theirs = dict.fromkeys(seat.neighbours, zero)
        steps = self.rounds(seat)
        first_averaged = steps - max(1, round(self.average_last * steps))
        heard: list[Vector] = []

        for t in range(steps):
            own = curator.release(NAME, primal_query(self, seat, own, theirs, dual)).reshape(zero.shape)
            inbox = yield own.ravel()
            theirs = {name: received(inbox, name, theirs[name], self.bound) for name in seat.neighbours}
            dual = dual_step(self, seat, own, theirs, dual)
            if t >= first_averaged:
                heard.append(np.mean([own, *theirs.values()], axis=0))

        return np.asarray(np.mean(heard, axis=0))


def pull(algorithm: PPADMM, seat: Seat) -> float:
    """eta: the strength of one edge."""
    if algorithm.eta is not None:
        return algorithm.eta
    return 0.1 * len(seat.network.names) / (2 * max(len(seat.network.edges), 1))


def primal_query(algorithm: PPADMM, seat: Seat, own: Vector, theirs: Mapping[str, Vector], dual: Vector) -> PerturbedMinimiser:
    r"""The subproblem: loss + ridge + :math:`2\lambda_i^T\theta + \eta \sum_j \|(\theta_i + \theta_j)/2 - \theta\|^2`.

    It is divided by the owner's weight, since the query's loss is a plain mean over its rows.
    """
    eta, weight, problem = pull(algorithm, seat), seat.weight, seat.problem
    mu = algorithm.ridge + 2 * eta * len(seat.neighbours)
    linear = 2 * dual - eta * sum((own + other for other in theirs.values()), start=np.zeros_like(own))
    local = replace(problem, penalty=scaled(problem.penalty, 1 / weight))
    return PerturbedMinimiser(local, mu / weight, linear / weight, tolerance_for(problem, algorithm.tolerance))


def dual_step(algorithm: PPADMM, seat: Seat, own: Vector, theirs: Mapping[str, Vector], dual: Vector) -> Vector:
    """lambda_i, from what was said aloud only."""
    differences = (own - other for other in theirs.values())
    return dual + pull(algorithm, seat) / 2 * sum(differences, start=np.zeros_like(own))
