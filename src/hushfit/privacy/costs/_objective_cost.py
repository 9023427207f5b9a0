"""Cost of objective perturbation: its description, Renyi curve and profile.

Proof: docs/proofs/objective.md.
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

    def curve(self, orders: Vector, relation: Relation) -> Vector:
        return objective_curve(orders, self)

    def bounded_losses(self) -> Iterator[Losses] | None:
        return objective_losses(self) if self.rank == 1 else None


def objective_curve(orders: Vector, cost: ObjectiveCost) -> Vector:
    """Renyi curve of one release: the smaller of theorems A and A'."""
    second_order = _theorem_a(orders, cost)
    return (
        second_order if cost.rank > 1 else np.minimum(second_order, _theorem_a_prime(orders, cost))
    )


def _theorem_a(orders: Vector, cost: ObjectiveCost) -> Vector:
    """Gaussian curve plus a correction of second order in kappa; for orders below 1 + 1/kappa."""
    shrink = orders * (orders - 1) * cost.kappa**2 / (1 + cost.kappa)
    valid = ((orders - 1) * cost.kappa < 1) & (shrink < 1)
    correction = np.full_like(orders, math.inf)
    correction[valid] = -cost.rank * np.log1p(-shrink[valid]) / (orders[valid] - 1)
    return orders * (cost.mu**2 / 2) + correction


def _theorem_a_prime(orders: Vector, cost: ObjectiveCost) -> Vector:
    """Bound at every order for Hessians of rank one; first order in kappa and in mu."""
    half_normal: Vector = (math.log(2) + log_ndtr((orders - 1) * cost.mu)) / (orders - 1)
    return orders * (cost.mu**2 / 2) + math.log1p(cost.kappa) + half_normal


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
