"""Cost of a selection by the exponential mechanism: its privacy loss has a bounded *range*.

Proof: docs/proofs/selection.md.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushfit._typing import Vector
from hushfit.privacy import _check
from hushfit.privacy._relation import Relation
from hushfit.privacy.costs._paired_cost import PairedCost
from hushfit.privacy.costs._release_cost import Directions, Pair

# In floating point a larger range cannot be distinguished from no privacy.
_MAX_RANGE: Final = 500.0


@dataclass(frozen=True)
class BoundedRangeCost(PairedCost, kind="bounded-range"):
    """A selection whose privacy losses lie within an interval of length ``2 / noise_multiplier``.

    The exponential mechanism is one. Such a selection is (2 / noise_multiplier)-private, and its
    Renyi divergences are at most those of Gaussian noise of this noise multiplier.

    Parameters
    ----------
    noise_multiplier : float
        Scale by which utilities are divided, over their sensitivity: the most that a neighbour
        changes any of them. 0 means no noise.
    count : int, default=1
        Number of such selections.

    Examples
    --------
    >>> from hushfit.privacy import BoundedRangeCost, epsilon_of
    >>> cost = BoundedRangeCost(noise_multiplier=4.0)
    >>> round(epsilon_of(cost, 1e-6, "replace-one"), 3)
    0.5
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        _check.store(
            self, noise_multiplier=_check.non_negative(self.noise_multiplier, "noise_multiplier")
        )
        _check.store(self, count=_check.count(self.count))

    @property
    def range(self) -> float:
        """Length of the interval that contains all losses of one selection."""
        return 2 / self.noise_multiplier if self.noise_multiplier > 0 else math.inf

    @property
    def reveals_all(self) -> bool:
        return self.range > _MAX_RANGE

    def directions(self, relation: Relation) -> Directions:
        """The worst pair with two losses ``range`` apart; either data set may come first."""
        eta = self.range
        likely = 1 / (1 + math.exp(-eta / 2))
        losses, weights = np.array([eta / 2, -eta / 2]), np.array([likely, 1 - likely])
        return Directions(
            Pair(lambda e: bounded_range_profile(e, eta), -eta, eta, losses, weights, self.count)
        )

    def curve(self, orders: Vector, relation: Relation) -> Vector:
        return np.minimum(orders * self.range**2 / 8, self.range)


def bounded_range_profile(epsilon: Vector, eta: float) -> Vector:
    """Largest hockey-stick divergence of distributions with losses in an interval ``eta`` long."""
    inside = np.clip(epsilon, -eta, eta)
    shape = np.expm1((inside - eta) / 2) ** 2 / -math.expm1(-eta)
    return np.where(epsilon < -eta, -np.expm1(np.minimum(epsilon, 0.0)), shape)
