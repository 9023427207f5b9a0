"""Cost of objective perturbation: its description, Renyi curve and profile.

Proof: docs/proofs/objective.md; for persons with several rows docs/proofs/persons.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from scipy.special import erfc, log_ndtr

from hushfit._typing import Vector
from hushfit.privacy import _check
from hushfit.privacy._relation import Relation
from hushfit.privacy.costs._release_cost import Losses, ReleaseCost

# The profile is a maximum over an angle, bounded on each of these arcs of [0, pi/4].
_ARCS: Final = 40
# Beyond this many standard deviations (probability below 1e-20) the loss counts as infinite; below,
# as that of the upper end of its bin.
_TAIL_CUTOFF: Final = 9.5
_BINS: Final = 2000


@dataclass(frozen=True)
class ObjectiveCost(ReleaseCost, kind="objective", place=5):
    r"""The exact minimiser of an objective to which Gaussian noise was added as a linear term.

    Parameters
    ----------
    noise_multiplier : float
        Noise scale over the sensitivity of the gradient of the objective.
    kappa : float
        Largest curvature that one record adds to the objective, over the curvature that it has
        without any record.
    rank : int, default=1
        Largest rank of one record's Hessian: 1 for a model with one output.
    count : int, default=1
        How many such releases, each with fresh noise.

    Examples
    --------
    >>> from hushfit.privacy import ObjectiveCost, epsilon_of
    >>> cost = ObjectiveCost(noise_multiplier=10.0, kappa=0.1)
    >>> round(epsilon_of(cost, 1e-6, "replace-one"), 3)
    0.508
    """

    noise_multiplier: float
    kappa: float
    rank: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        _check.store(
            self,
            noise_multiplier=_check.non_negative(self.noise_multiplier, "noise_multiplier"),
            kappa=_check.finite(self.kappa, "kappa"),
            rank=_check.count(self.rank, "rank"),
            count=_check.count(self.count),
        )

    @property
    def mu(self) -> float:
        """Sensitivity of the gradient over noise scale of one release."""
        return 1 / self.noise_multiplier if self.noise_multiplier > 0 else math.inf

    @property
    def reveals_all(self) -> bool:
        return self.mu == math.inf

    @property
    def trace(self) -> float:
        """Largest trace of the curvature that one record adds."""
        return self.rank * self.kappa

    @property
    def unit_rank(self) -> int:
        """Largest rank of the curvature that one unit adds: of one record."""
        return self.rank

    def curve(self, orders: Vector, relation: Relation) -> Vector:
        return objective_curve(orders, self)

    def bounded_losses(self) -> Iterator[Losses] | None:
        return objective_losses(self) if self.rank == 1 else None


@dataclass(frozen=True)
class PersonObjectiveCost(ReleaseCost, kind="person-objective"):
    r"""As `ObjectiveCost` where a unit is a person, whose weighted rows add several small
    curvatures in place of one large one.

    Parameters
    ----------
    noise_multiplier : float
        Noise scale over the sensitivity of the gradient of the objective.
    kappa : float
        Largest curvature that one person adds to the objective, over the curvature that it has
        without any row.
    trace : float
        Largest trace of what one person adds, likewise; at least ``kappa`` and at most
        ``unit_rank * kappa``.
    rank : int
        Largest rank of one row's Hessian: 1 for a model with one output.
    unit_rank : int
        Largest rank of what one person adds.
    count : int, default=1
        How many such releases, each with fresh noise.

    Examples
    --------
    >>> from hushfit.privacy import PersonObjectiveCost, epsilon_of
    >>> cost = PersonObjectiveCost(10.0, kappa=0.1, trace=0.2, rank=1, unit_rank=5)
    >>> round(epsilon_of(cost, 1e-6, "replace-one"), 3)
    0.641
    """

    noise_multiplier: float
    kappa: float
    trace: float
    rank: int
    unit_rank: int
    count: int = 1

    def __post_init__(self) -> None:
        _check.store(
            self,
            noise_multiplier=_check.non_negative(self.noise_multiplier, "noise_multiplier"),
            kappa=_check.finite(self.kappa, "kappa"),
            trace=_check.finite(self.trace, "trace"),
            rank=_check.count(self.rank, "rank"),
            unit_rank=_check.count(self.unit_rank, "unit_rank"),
            count=_check.count(self.count),
        )

    @property
    def mu(self) -> float:
        """Sensitivity of the gradient over noise scale of one release."""
        return 1 / self.noise_multiplier if self.noise_multiplier > 0 else math.inf

    @property
    def reveals_all(self) -> bool:
        return self.mu == math.inf

    def curve(self, orders: Vector, relation: Relation) -> Vector:
        # The curve alone: the profile of one release is proved for a record, whose shift has one
        # direction.
        return objective_curve(orders, self)


def log_determinant(trace: float, unit_rank: int) -> float:
    """Bound on log det(I + E) for a positive semidefinite E of this trace and rank: attained by
    equal eigenvalues.
    """
    return unit_rank * math.log1p(trace / unit_rank)


def objective_curve(orders: Vector, cost: ObjectiveCost | PersonObjectiveCost) -> Vector:
    """Renyi curve of one release: the smaller of theorems A and A'."""
    second_order = _theorem_a(orders, cost)
    return (
        second_order if cost.rank > 1 else np.minimum(second_order, _theorem_a_prime(orders, cost))
    )


def _theorem_a(orders: Vector, cost: ObjectiveCost | PersonObjectiveCost) -> Vector:
    """Gaussian curve plus a correction of second order in kappa; for orders below 1 + 1/kappa."""
    shrink = orders * (orders - 1) * cost.kappa**2 / (1 + cost.kappa)
    valid = ((orders - 1) * cost.kappa < 1) & (shrink < 1)
    correction = np.full_like(orders, math.inf)
    # As many eigenvalues of size kappa as the trace allows.
    number = cost.trace / cost.kappa if cost.kappa > 0 else 0.0
    several = _several_small(orders[valid], cost)
    correction[valid] = (several - number * np.log1p(-shrink[valid])) / (orders[valid] - 1)
    return orders * (cost.mu**2 / 2) + correction


def _several_small(orders: Vector, cost: ObjectiveCost | PersonObjectiveCost) -> Vector:
    """What eigenvalues below 1 add if several smaller ones exceed fewer of size kappa; 0 for one
    record, and for kappa up to 1.
    """
    if cost.kappa <= 1 or cost.trace >= cost.unit_rank * cost.kappa:
        return np.zeros_like(orders)
    at_kappa = _shrunk(cost.kappa, orders)
    best = np.minimum(cost.kappa, _steepest_chord(orders))
    most = np.minimum(cost.trace * _shrunk(best, orders) / best, cost.unit_rank * at_kappa)
    more = most * (1 + 1e-9) - cost.trace / cost.kappa * at_kappa
    return np.asarray(np.maximum(more, 0.0))


def _shrunk(u: Vector | float, orders: Vector) -> Vector:
    """The psi of the proof: what an eigenvalue 1 / (1 + u) adds."""
    return np.asarray(orders * np.log1p(u) - np.log1p(orders * u))


def _steepest_chord(orders: Vector) -> Vector:
    """Where psi(u) / u is largest: it rises before and falls after, so that bisection finds it."""
    low, high = 1 / np.sqrt(orders), np.full_like(orders, 8.0)
    for _ in range(60):
        u = (low + high) / 2
        rising = orders * (orders - 1) * u * u / ((1 + u) * (1 + orders * u)) > _shrunk(u, orders)
        low, high = np.where(rising, u, low), np.where(rising, high, u)
    return np.asarray(low)


def _theorem_a_prime(orders: Vector, cost: ObjectiveCost | PersonObjectiveCost) -> Vector:
    """Bound at every order for rows with Hessians of rank one; first order in kappa and in mu."""
    half_normal: Vector = (math.log(2) + log_ndtr((orders - 1) * cost.mu)) / (orders - 1)
    determinant = log_determinant(cost.trace, cost.unit_rank)
    return orders * (cost.mu**2 / 2) + determinant + half_normal


def objective_losses(cost: ObjectiveCost) -> Iterator[tuple[Vector, Vector]]:
    """Privacy losses and their probabilities, for each arc of angles.

    The worst of them bounds one release of rank one. The loss is at most ``log(1 + kappa) + mu^2/2
    + mu M`` with M the larger of ``cos(psi) |Z1|`` and ``sin(psi) |Z2|``.
    """
    upper_ends = np.linspace(0.0, _TAIL_CUTOFF, _BINS + 1)[1:]
    losses = np.append(math.log1p(cost.kappa) + cost.mu**2 / 2 + cost.mu * upper_ends, math.inf)
    arcs = np.linspace(0.0, math.pi / 4, _ARCS + 1)
    for low, high in pairwise(arcs):
        first, second = _beyond(upper_ends, math.cos(low)), _beyond(upper_ends, math.sin(high))
        yield losses, -np.diff(first + second - first * second, prepend=1.0, append=0.0)


def _beyond(size: Vector, scale: float) -> Vector:
    """P(scale |Z| > size)."""
    return np.asarray(erfc(size / (scale * math.sqrt(2))))
