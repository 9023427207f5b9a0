"""Gaussian noise on all rows, on a Poisson batch, and on a batch of fixed size.

Everywhere *noise_multiplier = noise scale / true L2 sensitivity under the relation*. Proofs:
docs/proofs/{gaussian,poisson,fixed_size,composition}.md.
"""

import math
from dataclasses import dataclass
from typing import Final

from hushfit._typing import Vector
from hushfit.errors import UnsupportedRelation
from hushfit.privacy import _check
from hushfit.privacy._relation import Relation, exchanges, replaces_one
from hushfit.privacy.costs._curves import (
    fixed_size_curve,
    gaussian_curve,
    poisson_curve,
    poisson_swap_curve,
)
from hushfit.privacy.costs._release_cost import Directions, ReleaseCost

# Outside this range of mu the effect of sampling is negligible and floating point fails. Below it
# the batch counts as all rows; above it the release counts as published without noise. Both err on
# the safe side.
LEAST_MU: Final = 1e-7
MOST_MU: Final = 1e3


@dataclass(frozen=True)
class GaussianCost(ReleaseCost, kind="gaussian", place=0):
    """Gaussian noise on a statistic of all rows.

    Parameters
    ----------
    noise_multiplier : float
        Noise scale over L2 sensitivity. 0 means no noise, infinity means that nothing was revealed.
    count : int, default=1
        How many such releases.

    Examples
    --------
    >>> from hushfit.privacy import GaussianCost, epsilon_of
    >>> round(epsilon_of(GaussianCost(4.0, count=10), 1e-6, "replace-one"), 2)
    3.75
    """

    noise_multiplier: float
    count: int = 1

    for_labels = True  # it assumes of neighbours nothing but the distance of their answers

    def __post_init__(self) -> None:
        _check.store(
            self, noise_multiplier=_check.non_negative(self.noise_multiplier, "noise_multiplier")
        )
        _check.store(self, count=_check.count(self.count))

    @property
    def mu(self) -> float:
        """Sensitivity over noise scale of one release."""
        return _inverse(self.noise_multiplier)

    @property
    def reveals_all(self) -> bool:
        return self.mu == math.inf

    def gaussian_mu(self, relation: Relation) -> float:
        return self.mu

    def curve(self, orders: Vector, relation: Relation) -> Vector:
        return gaussian_curve(orders, self.mu)


@dataclass(frozen=True)
class PoissonGaussianCost(ReleaseCost, kind="poisson-gaussian", place=1):
    """Gaussian noise on a sum over a Poisson batch, which each row joins independently.

    Parameters
    ----------
    noise_multiplier : float
        Noise scale over the L2 sensitivity of the sum: the per-record bound C under add-remove, 2C
        under replace-one. Under replace-one the dominating pair needs records bounded by C, not
        merely pairs within 2C.
    rate : float
        Probability that a row is in the batch. The batch is fresh and secret, and its size never
        divides the sum.
    count : int, default=1
        How many such releases.

    Examples
    --------
    >>> from hushfit.privacy import PoissonGaussianCost
    >>> PoissonGaussianCost(noise_multiplier=1.1, rate=0.01, count=1000).mu < 1
    True
    """

    noise_multiplier: float
    rate: float
    count: int = 1

    paired = True
    # Replaced labels move a unit between two contributions of at most C, as replaced records do
    # (docs/proofs/ranking.md).
    for_labels = True

    def __post_init__(self) -> None:
        _check.store(
            self, noise_multiplier=_check.non_negative(self.noise_multiplier, "noise_multiplier")
        )
        _check.store(self, rate=_check.fraction(self.rate, "rate"), count=_check.count(self.count))

    @property
    def mu(self) -> float:
        """Sensitivity over noise scale of one release."""
        return _inverse(self.noise_multiplier)

    @property
    def reveals_all(self) -> bool:
        return self.mu > MOST_MU

    def gaussian_mu(self, relation: Relation) -> float | None:
        return unsampled_mu(self.mu, self.rate)

    def group_mu(self, relation: Relation) -> float:
        return self.mu  # given the batch, k units change the sum by at most k sensitivities

    def directions(self, relation: Relation) -> Directions:
        from hushfit.privacy.accounting.pld import poisson_directions

        return poisson_directions(self.mu, self.rate, self.count, relation)

    def curve(self, orders: Vector, relation: Relation) -> Vector:
        if not exchanges(relation):
            return poisson_curve(orders, self.mu, self.rate)
        return poisson_swap_curve(orders, self.mu, self.rate)


@dataclass(frozen=True)
class FixedSizeGaussianCost(ReleaseCost, kind="fixed-size-gaussian", place=2):
    """Gaussian noise on a sum over a fixed-size batch without replacement; replace-one only.

    Parameters
    ----------
    noise_multiplier : float
        Noise scale over the L2 sensitivity 2C of the sum.
    rate : float
        Batch size over number of rows. The batch is fresh, uniform and secret.
    count : int, default=1
        How many such releases.

    Examples
    --------
    >>> from hushfit.privacy import FixedSizeGaussianCost
    >>> FixedSizeGaussianCost(noise_multiplier=1.1, rate=0.01, count=1000).count
    1000
    """

    noise_multiplier: float
    rate: float
    count: int = 1

    paired = True

    def __post_init__(self) -> None:
        _check.store(
            self, noise_multiplier=_check.non_negative(self.noise_multiplier, "noise_multiplier")
        )
        _check.store(self, rate=_check.fraction(self.rate, "rate"), count=_check.count(self.count))

    @property
    def mu(self) -> float:
        """Sensitivity over noise scale of one release."""
        return _inverse(self.noise_multiplier)

    @property
    def reveals_all(self) -> bool:
        return self.mu > MOST_MU

    def gaussian_mu(self, relation: Relation) -> float | None:
        _require_replace_one(relation)
        return unsampled_mu(self.mu, self.rate)

    def group_mu(self, relation: Relation) -> float:
        _require_replace_one(relation)
        return self.mu  # given the batch, k units change the sum by at most k sensitivities

    def directions(self, relation: Relation) -> Directions:
        from hushfit.privacy.accounting.pld import fixed_size_pair

        _require_replace_one(relation)
        return Directions(fixed_size_pair(self.mu, self.rate, self.count))

    def curve(self, orders: Vector, relation: Relation) -> Vector:
        _require_replace_one(relation)
        return fixed_size_curve(orders, self.mu, self.rate)


def fixed_size_refused() -> UnsupportedRelation:
    """Error for a fixed-size batch under add-remove, with the reason."""
    return UnsupportedRelation(
        "a fixed-size batch has no proof under 'add-remove': when the record leaves the batch "
        "another one takes its place, which changes the sum by 2C while the noise multiplier "
        "counts C. Use adjacency='replace-one', or Poisson batches."
    )


def _require_replace_one(relation: Relation) -> None:
    if not replaces_one(relation):
        raise fixed_size_refused()


def unsampled_mu(mu: float, rate: float) -> float | None:
    """Mu of a sampled release that counts as unsampled, else None.

    It does at rate 1, or where mu is so small that sampling does not matter.
    """
    return mu if rate == 1 or mu < LEAST_MU else None


def _inverse(noise_multiplier: float) -> float:
    """mu = 1 / noise multiplier, infinite without noise."""
    return 1 / noise_multiplier if noise_multiplier > 0 else math.inf
