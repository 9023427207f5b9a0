"""Cost of releasing the frequent texts of a table (thresholded noisy counts).

Proof: docs/proofs/quantiles.md, "Vocabularies".
"""

import math
from dataclasses import dataclass

import numpy as np

from hushfit._typing import Vector
from hushfit.privacy import _check
from hushfit.privacy._gaussian import gaussian_profile
from hushfit.privacy._relation import Relation
from hushfit.privacy.costs._paired_cost import PairedCost
from hushfit.privacy.costs._release_cost import Directions, Pair

# Gaussian tails are cut at 9.5 standard deviations (1e-21): the cut mass counts as infinite loss.
_TAIL_CUTOFF = 9.5
_MIN_MU = 1e-9


@dataclass(frozen=True)
class ThresholdedGaussianCost(PairedCost, kind="thresholded-gaussian"):
    """Gaussian noise on counts; only items with a large noisy count are named.

    Parameters
    ----------
    noise_multiplier : float
        Noise scale over the L2 sensitivity of the counts.
    rare : float
        Probability that an item which only one record has is released; below 1.

    Examples
    --------
    >>> from hushfit.privacy import ThresholdedGaussianCost, epsilon_of
    >>> cost = ThresholdedGaussianCost(noise_multiplier=8.0, rare=1e-9)
    >>> round(epsilon_of(cost, 1e-6, "replace-one"), 3)
    0.504
    """

    noise_multiplier: float
    rare: float

    def __post_init__(self) -> None:
        _check.store(
            self, noise_multiplier=_check.non_negative(self.noise_multiplier, "noise_multiplier")
        )
        _check.store(
            self, rare=_check.probability(self.rare, "rare"), count=_check.count(self.count)
        )

    @property
    def mu(self) -> float:
        """Sensitivity over noise scale; always positive, as the grid needs a positive loss."""
        return max(1 / self.noise_multiplier, _MIN_MU) if self.noise_multiplier > 0 else math.inf

    @property
    def reveals_all(self) -> bool:
        return self.mu > 1e3

    @property
    def lost(self) -> float:
        return self.rare

    def directions(self, relation: Relation) -> Directions:
        """N(mu) against N(0), with probability ``rare`` of infinite loss; symmetric."""
        mu, lost = self.mu, self.rare
        reach = mu * mu / 2 + _TAIL_CUTOFF * mu
        x = np.linspace(-8.0, mu + 8.0, 801)
        density = np.exp(-0.5 * (x - mu) ** 2)

        def profile(epsilon: Vector) -> Vector:
            return lost + (1 - lost) * gaussian_profile(epsilon, mu)

        return Directions(
            Pair(profile, -reach, reach, mu * x - mu * mu / 2, density / density.sum(), self.count)
        )

    def curve(self, orders: Vector, relation: Relation) -> Vector:
        return orders * (self.mu * self.mu / 2)
