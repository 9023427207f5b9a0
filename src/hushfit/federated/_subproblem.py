r"""What the decentralised ADMM algorithms share: an owner's subproblem, its dual step, and settings from public numbers.

Beside the papers: :math:`\theta_i` is ``own``, :math:`\theta_j` is ``theirs[j]``, :math:`\lambda_i` is ``dual``, :math:`\eta` is ``eta``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.federated._protocol import Seat
from hushfit.federated._scaled import scaled
from hushfit.privacy import Budget, gaussian_mu
from hushfit.release import GaussianInside, LaplaceInside, PerturbedMinimiser, hessian_rank
from hushfit.solvers import tolerance_for

# Length that the weights of unit records usually reach. Much longer ones are mostly noise at the budgets that people use.
_USUAL_LENGTH = 20.0
# Share of the budget that the curvature of one record may cost, and the constant of its price (docs/proofs/objective.md).
_CURVATURE_SHARE, _CURVATURE_PRICE = 0.01, 1.4
# Curvature of a subproblem over the smoothness of the loss, for each round, where no noise asks for more.
_OPEN_CURVATURE = 0.01
NOISES = {"gaussian": GaussianInside, "laplace": LaplaceInside}


@dataclass(frozen=True)
class Subproblem:
    r"""Loss + ridge + :math:`2\lambda_i^T\theta + \eta \sum_j \|(\theta_i + \theta_j)/2 - \theta\|^2`, for one owner in one round.

    Its queries are divided by the owner's weight, since a query's loss is a plain mean over the owner's rows.
    """

    seat: Seat
    eta: float
    ridge: float
    tolerance: float | None

    @property
    def pull(self) -> float:
        """Curvature that the neighbours give it."""
        return 2 * self.eta * len(self.seat.neighbours)

    @property
    def start(self) -> PerturbedMinimiser:
        """That of the first round."""
        zero = np.zeros(self.seat.problem.shape)
        return self.query(zero, {}, zero)

    def linear(self, own: Vector, theirs: Mapping[str, Vector], dual: Vector) -> Vector:
        """What duals and neighbours add to the gradient at zero."""
        pulls = self.eta * sum((own + other for other in theirs.values()), start=np.zeros_like(own))
        return np.asarray(2 * dual - pulls)

    def query(self, own: Vector, theirs: Mapping[str, Vector], dual: Vector) -> PerturbedMinimiser:
        """Its noisy minimiser."""
        problem, weight = self.seat.problem, self.seat.weight
        local = replace(problem, penalty=scaled(problem.penalty, 1 / weight))
        linear = self.linear(own, theirs, dual) / weight
        return PerturbedMinimiser(local, (self.ridge + self.pull) / weight, linear, tolerance_for(problem, self.tolerance))


def dual_step(eta: float, own: Vector, theirs: Mapping[str, Vector], dual: Vector) -> Vector:
    """lambda_i, from what was said aloud only."""
    differences = (own - other for other in theirs.values())
    return np.asarray(dual + eta / 2 * sum(differences, start=np.zeros_like(own)))


def usual_steps(seat: Seat) -> int:
    """More rounds for larger budgets; every owner gets the same number."""
    return 10 if seat.least_epsilon <= 1 else 20 if seat.least_epsilon <= 4 else 30


def usual_eta(seat: Seat, steps: int) -> float:
    """The strength of one edge with which so many noisy rounds lead about as far as their noise allows.

    Rounds with curvature mu lead as far as one with mu / rounds, so that is what noise and the length of the weights decide. All
    numbers are public and the same for all owners.
    """
    degree = max(2 * len(seat.network.edges) / len(seat.network.names), 1.0)
    return usual_curvature(seat, steps) / (2 * degree)


def usual_curvature(seat: Seat, steps: int) -> float:
    """The curvature mu of `usual_eta`: enough for the noise, and for the privacy proof to be cheap."""
    loss, owners = seat.problem.loss, len(seat.sizes)
    noises = [1 / _mu(budget) for budget in seat.budgets.values()]
    noise = 2 * loss.slope_bound / seat.n_total * math.sqrt(sum(each**2 for each in noises))
    by_noise = steps * noise * math.sqrt(math.prod(seat.problem.shape)) / _USUAL_LENGTH
    # kappa^2 releases of curvature cost a share of rho = mu^2 / 2.
    kappa = math.sqrt(_CURVATURE_SHARE / (2 * _CURVATURE_PRICE * hessian_rank(seat.problem) * steps)) / max(noises) if max(noises) else math.inf
    by_proof = loss.smoothness * owners / (seat.n_total * kappa)
    return max(by_noise, by_proof, _OPEN_CURVATURE * loss.smoothness)


def _mu(budget: Budget) -> float:
    return gaussian_mu(budget.epsilon, budget.delta)


def refuse_settings(algorithm: object, **wrong: bool) -> None:
    """Name the settings that are out of range."""
    names = [name for name, is_wrong in wrong.items() if is_wrong]
    if names:
        raise InvalidArgument(f"{algorithm} has {', '.join(names)} out of range. See its documentation, or leave it at its default.")
