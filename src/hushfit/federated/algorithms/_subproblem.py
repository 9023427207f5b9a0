r"""What the decentralised ADMM algorithms share: an owner's subproblem, its dual step, and settings
from public numbers.

Beside the papers: :math:`\theta_i` is ``own``, :math:`\theta_j` is ``theirs[j]``, :math:`\lambda_i`
is ``dual``, :math:`\eta` is ``eta``. Proof: docs/proofs/federated.md.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.federated._protocol import Inbox, Seat, received
from hushfit.federated.algorithms._scaled_penalty import scaled
from hushfit.privacy import gaussian_mu
from hushfit.release import GaussianInside, LaplaceInside, PerturbedMinimiser
from hushfit.solvers import tolerance_for

# Length that the weights of unit records usually reach. Much longer ones are mostly noise at the
# budgets that people use.
_USUAL_LENGTH = 20.0
# Share of the budget that the curvature of one record may cost, and the constant of its price
# (docs/proofs/objective.md).
_CURVATURE_SHARE, _CURVATURE_PRICE = 0.1, 1.4
# Curvature of a subproblem over the smoothness of the loss, for each round, where no noise asks for
# more.
_OPEN_CURVATURE = 0.01
NOISES: dict[str, type[GaussianInside] | type[LaplaceInside]] = {
    "gaussian": GaussianInside,
    "laplace": LaplaceInside,
}
"""Laws of noise inside an objective."""


@dataclass(frozen=True)
class AdmmSettings:
    """What all these algorithms can be told; each says in its own words what it means there."""

    steps: int = 30
    eta: float | None = None
    ridge: float = 1e-5
    output_share: float = 0.01
    tolerance: float | None = None
    average_last: float = 0.5
    bound: float = 1e3

    def __post_init__(self) -> None:
        refuse(
            self,
            steps=self.steps < 1,
            eta=self.eta is not None and not self.eta > 0,
            ridge=not self.ridge >= 0,
            average_last=not 0 <= self.average_last <= 1,
            bound=not self.bound > 0,
        )

    def rounds(self, seat: Seat) -> int:
        return self.steps


@dataclass(frozen=True)
class NoiseSettings(AdmmSettings):
    """Of those that leave a choice of noise."""

    noise: str = "laplace"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise not in NOISES:
            raise InvalidArgument(
                f"noise={self.noise!r} is not known. Use 'laplace' or 'gaussian'."
            )


@dataclass(frozen=True)
class Subproblem:
    r"""Loss + ridge + :math:`2\lambda_i^T\theta + \eta \sum_j \|(\theta_i + \theta_j)/2 -
    \theta\|^2`, for one owner in one round.

    Its queries are divided by the owner's weight, since a query's loss is a plain mean over the
    owner's rows.
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
        return PerturbedMinimiser(
            local, (self.ridge + self.pull) / weight, linear, tolerance_for(problem, self.tolerance)
        )


def dual_step(eta: float, own: Vector, theirs: Mapping[str, Vector], dual: Vector) -> Vector:
    """lambda_i, from what was said aloud only."""
    differences = (own - other for other in theirs.values())
    return np.asarray(dual + eta / 2 * sum(differences, start=np.zeros_like(own)))


def usual_eta(seat: Seat, releases: int, louder: float = 1.0) -> float:
    """The strength of one edge with which so many noisy rounds lead about as far as their noise
    allows.

    Rounds with curvature mu lead as far as one with mu / rounds, so that is what noise and the
    length of the weights decide. All numbers are public, and every owner finds the same. ``louder``
    is how much longer the noise is than Gaussian noise.
    """
    loss, budgets = seat.problem.loss, seat.budgets.values()
    mus = [gaussian_mu(budget.epsilon, budget.delta) for budget in budgets]
    noise = 2 * loss.slope_bound / seat.n_total * math.hypot(*(1 / mu for mu in mus))
    by_noise = releases * louder * noise * math.sqrt(math.prod(seat.problem.shape)) / _USUAL_LENGTH
    # Curvature costs about 1.4 kappa^2 a release, of rho = mu^2 / 2.
    kappa = min(mus) * math.sqrt(
        _CURVATURE_SHARE / (2 * _CURVATURE_PRICE * seat.problem.loss.hessian_rank * releases)
    )
    by_proof = loss.smoothness * len(budgets) / (seat.n_total * kappa)
    edges = max(len(seat.network.edges) / len(seat.network.names), 0.5)
    return max(by_noise, by_proof, _OPEN_CURVATURE * loss.smoothness) / (4 * edges)


def louder_by(noise: str, seat: Seat) -> float:
    """How much longer noise of a law is than Gaussian noise of the same price."""
    return math.sqrt(2 * math.prod(seat.problem.shape)) if noise == "laplace" else 1.0


class Words:
    """All that an owner said and heard, for an average of the last part of it."""

    def __init__(self, seat: Seat, bound: float) -> None:
        self._bound = bound
        zero = np.zeros(seat.problem.shape)
        self.last = dict.fromkeys(seat.neighbours, zero)
        self._all: dict[str, list[Vector]] = {name: [] for name in (seat.name, *seat.neighbours)}
        self._zero, self._own = zero, seat.name

    def hear(self, inbox: Inbox, said: Vector | None) -> None:
        """Take down one round; who was silent keeps its last word."""
        if said is not None:
            self._all[self._own].append(said)
        for name in self.last:
            if name in inbox:
                self.last[name] = received(inbox, name, self.last[name], self._bound)
                self._all[name].append(self.last[name])

    def average(self, share: float) -> Vector:
        """Mean over all that spoke of the last ``share`` of their words, and of the last one at
        least.
        """
        ends = [
            np.mean(words[-max(1, round(share * len(words))) :], axis=0)
            for words in self._all.values()
            if words
        ]
        return np.asarray(np.mean(ends, axis=0)) if ends else self._zero


def refuse(algorithm: object, **wrong: bool) -> None:
    """Name the settings that are out of range."""
    names = [name for name, is_wrong in wrong.items() if is_wrong]
    if names:
        raise InvalidArgument(
            f"{algorithm} has {' and '.join(names)} out of range. Give what its documentation "
            "says, or nothing."
        )
