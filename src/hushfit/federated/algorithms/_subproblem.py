r"""Shared by the decentralised ADMM algorithms: an owner's subproblem, its dual step, and defaults
from public numbers.

Notation of the papers: :math:`\theta_i` is ``own``, :math:`\theta_j` is ``theirs[j]``,
:math:`\lambda_i` is ``dual``, :math:`\eta` is ``eta``. Proof: docs/proofs/federated.md.
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
from hushfit.release import GaussianInside, LaplaceInside, PerturbedMinimiser, Plan, Planned
from hushfit.solvers import tolerance_for

NAME = "primal step"
"""The release of a round."""
# Typical norm of the weights for unit records. Much longer ones are mostly noise at usual budgets.
_TYPICAL_NORM = 20.0
# Share of the budget that the curvature of one record may cost, and the constant in that cost
# (docs/proofs/objective.md).
_CURVATURE_SHARE, _CURVATURE_COST = 0.1, 1.4
# Least curvature of a subproblem relative to the smoothness of the loss, where the noise requires
# no more.
_LEAST_CURVATURE = 0.01
NOISES: dict[str, type[GaussianInside] | type[LaplaceInside]] = {
    "gaussian": GaussianInside,
    "laplace": LaplaceInside,
}
"""Distributions of noise inside an objective."""


@dataclass(frozen=True)
class AdmmSettings:
    """Settings of all these algorithms; each documents their meaning."""

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

    def subproblem(self, seat: Seat, releases: int, factor: float = 1.0) -> "Subproblem":
        """The owner's subproblem, with the default coupling weight unless it was set."""
        eta = default_eta(seat, releases, factor) if self.eta is None else self.eta
        return Subproblem(seat, eta, self.ridge, self.tolerance)


@dataclass(frozen=True)
class NoiseSettings(AdmmSettings):
    """Settings of the algorithms with a choice of noise distribution."""

    noise: str = "laplace"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise not in NOISES:
            raise InvalidArgument(
                f"noise={self.noise!r} is not known. Use 'laplace' or 'gaussian'."
            )

    def noisy_subproblem(self, seat: Seat, releases: int) -> "Subproblem":
        """The same where the noise has the chosen distribution."""
        # The norm of the noise relative to Gaussian noise of the same cost.
        factor = math.sqrt(2 * math.prod(seat.problem.shape)) if self.noise == "laplace" else 1.0
        return self.subproblem(seat, releases, factor)

    def noisy_minimisers(self, subproblem: "Subproblem", releases: int) -> Plan:
        """Plan for so many noisy minimisers."""
        noise = NOISES[self.noise].of(subproblem.start, self.output_share)
        return Plan((Planned(NAME, PerturbedMinimiser, releases, sampling=noise),))


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
    def coupling(self) -> float:
        """Curvature of the coupling to the neighbours."""
        return 2 * self.eta * len(self.seat.neighbours)

    @property
    def start(self) -> PerturbedMinimiser:
        """The query of the first round."""
        zero = np.zeros(self.seat.problem.shape)
        return self.query(zero, {}, zero)

    def linear(self, own: Vector, theirs: Mapping[str, Vector], dual: Vector) -> Vector:
        """Contribution of dual variables and neighbours to the gradient at zero."""
        attraction = self.eta * sum(
            (own + other for other in theirs.values()), start=np.zeros_like(own)
        )
        return np.asarray(2 * dual - attraction)

    def query(self, own: Vector, theirs: Mapping[str, Vector], dual: Vector) -> PerturbedMinimiser:
        """Its noisy minimiser."""
        problem, weight = self.seat.problem, self.seat.weight
        local = replace(problem, penalty=scaled(problem.penalty, 1 / weight))
        linear = self.linear(own, theirs, dual) / weight
        return PerturbedMinimiser(
            local,
            (self.ridge + self.coupling) / weight,
            linear,
            tolerance_for(problem, self.tolerance),
        )


def dual_step(eta: float, own: Vector, theirs: Mapping[str, Vector], dual: Vector) -> Vector:
    """The next lambda_i; depends on messages only."""
    differences = (own - other for other in theirs.values())
    return np.asarray(dual + eta / 2 * sum(differences, start=np.zeros_like(own)))


def default_eta(seat: Seat, releases: int, factor: float = 1.0) -> float:
    """Default coupling weight of an edge, for which the noisy rounds move about as far as their
    noise allows.

    Rounds with curvature mu move as far as one with mu / rounds, so noise and the norm of the
    weights determine that ratio. All numbers are public, and every owner computes the same.
    ``factor`` is the norm of the noise relative to Gaussian noise.
    """
    loss, budgets = seat.problem.loss, seat.budgets.values()
    # Every owner computes those of all owners, most of which are equal.
    mu_of = {budget: gaussian_mu(budget.epsilon, budget.delta) for budget in set(budgets)}
    mus = [mu_of[budget] for budget in budgets]
    noise = 2 * loss.slope_bound / seat.n_total * math.hypot(*(1 / mu for mu in mus))
    by_noise = releases * factor * noise * math.sqrt(math.prod(seat.problem.shape)) / _TYPICAL_NORM
    # Curvature costs about 1.4 kappa^2 a release, of rho = mu^2 / 2.
    kappa = min(mus) * math.sqrt(
        _CURVATURE_SHARE / (2 * _CURVATURE_COST * seat.problem.loss.hessian_rank * releases)
    )
    by_proof = loss.smoothness * len(budgets) / (seat.n_total * kappa)
    edges = max(len(seat.network.edges) / len(seat.network.names), 0.5)
    return max(by_noise, by_proof, _LEAST_CURVATURE * loss.smoothness) / (4 * edges)


class MessageHistory:
    """Messages that an owner sent and received, for an average of the last ones."""

    def __init__(self, seat: Seat, bound: float) -> None:
        self._bound = bound
        zero = np.zeros(seat.problem.shape)
        self.last = dict.fromkeys(seat.neighbours, zero)
        self._all: dict[str, list[Vector]] = {name: [] for name in (seat.name, *seat.neighbours)}
        self._zero, self._own = zero, seat.name

    def record(self, inbox: Inbox, sent: Vector | None) -> None:
        """Record one round; the last message of an owner that sent nothing stays."""
        if sent is not None:
            self._all[self._own].append(sent)
        for name in self.last:
            if name in inbox:
                self.last[name] = received(inbox, name, self.last[name], self._bound)
                self._all[name].append(self.last[name])

    def average(self, share: float) -> Vector:
        """Mean over owners of the average of their last messages: a ``share`` of them, at least
        one.
        """
        ends = [
            np.mean(messages[-max(1, round(share * len(messages))) :], axis=0)
            for messages in self._all.values()
            if messages
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
