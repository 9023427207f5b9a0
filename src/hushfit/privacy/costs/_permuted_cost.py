"""Cost of Gaussian noise on the last iterate of a run over secretly permuted batches.

The record in which two data sets differ falls into batch j with probability ``shares[j]``, and how
far it changes the last iterate depends on j. The batch j is secret, but a proof that treats it as
public needs no more than this. Proof: docs/proofs/permuted.md.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import logsumexp

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument, UnsupportedRelation
from hushfit.privacy import _check
from hushfit.privacy._gaussian import gaussian_profile
from hushfit.privacy._relation import Relation, replaces_one
from hushfit.privacy.costs._paired_cost import PairedCost
from hushfit.privacy.costs._release_cost import Directions, Pair

# Gaussian tails are cut at 9.5 standard deviations (1e-21): the cut mass counts as infinite loss.
_TAIL_CUTOFF: Final = 9.5
# Outside this range of mu floating point fails; both ends err on the safe side.
_MIN_MU: Final = 1e-7
_MAX_MU: Final = 1e3
# Shares are quotients of integers, each rounded once.
_SHARE_ERROR: Final = 1e-9


@dataclass(frozen=True)
class PermutedGaussianCost(PairedCost, kind="permuted-gaussian"):
    """Gaussian noise on the last iterate of a run over permuted batches; replace-one only.

    The permutation is fresh, secret and uniform.

    Parameters
    ----------
    noise_multiplier : float
        Noise scale over the largest distance by which a record of any batch changes the last
        iterate.
    shares : tuple of float
        Share of the records in each batch; they sum to one.
    ratios : tuple of float
        How far a record of each batch changes the last iterate, as a share of the largest such
        distance.
    count : int, default=1
        Number of such runs, each with its own permutation and noise.

    Examples
    --------
    >>> from hushfit.privacy import PermutedGaussianCost, epsilon_of
    >>> cost = PermutedGaussianCost(5.0, shares=(0.5, 0.5), ratios=(1.0, 0.8))
    >>> round(epsilon_of(cost, 1e-6, "replace-one"), 3)
    0.803
    """

    noise_multiplier: float
    shares: tuple[float, ...]
    ratios: tuple[float, ...]

    def __post_init__(self) -> None:
        _check.store(
            self,
            noise_multiplier=_check.non_negative(self.noise_multiplier, "noise_multiplier"),
            shares=tuple(_check.fraction(share, "shares") for share in self.shares),
            ratios=tuple(_check.finite(ratio, "ratios") for ratio in self.ratios),
            count=_check.count(self.count),
        )
        if len(self.shares) != len(self.ratios) or not self.shares:
            raise InvalidArgument(
                f"{len(self.shares)} shares and {len(self.ratios)} ratios. Give one of each for "
                "every batch."
            )
        if abs(math.fsum(self.shares) - 1) > _SHARE_ERROR:
            raise InvalidArgument(
                f"shares sum to {math.fsum(self.shares):g}, not to 1. Give batch size over number "
                "of rows."
            )
        if max(self.ratios) != 1:
            raise InvalidArgument(
                f"the largest ratio is {max(self.ratios):g}, not 1. Divide by the largest distance."
            )

    @property
    def mu(self) -> float:
        """Largest distance over noise scale."""
        return 1 / self.noise_multiplier if self.noise_multiplier > 0 else math.inf

    @property
    def reveals_all(self) -> bool:
        return self.mu > _MAX_MU

    def directions(self, relation: Relation) -> Directions:
        """Dominating pair in which the batch is known: a symmetric mixture of Gaussian pairs."""
        _require_replace_one(relation)
        mu = max(self.mu, _MIN_MU)
        reach = mu * mu / 2 + _TAIL_CUTOFF * mu
        typical = mu * math.sqrt(float(np.dot(self.shares, np.square(self.ratios))))
        x = np.linspace(-8.0, 8.0, 801)
        density = np.exp(-0.5 * x**2)
        losses = typical * x + typical**2 / 2
        return Directions(
            Pair(
                lambda e: self._profile(e, mu),
                -reach,
                reach,
                losses,
                density / density.sum(),
                self.count,
            )
        )

    def _profile(self, epsilon: Vector, mu: float) -> Vector:
        total = np.zeros_like(epsilon)
        for share, ratio in zip(self.shares, self.ratios, strict=True):
            total += share * gaussian_profile(epsilon, mu * ratio)
        return total

    def curve(self, orders: Vector, relation: Relation) -> Vector:
        """Log of the mean, over batches, of the Gaussian moments."""
        _require_replace_one(relation)
        squares = np.square(np.array(self.ratios)) * (self.mu**2 / 2)
        moments = logsumexp(
            (orders * (orders - 1))[:, None] * squares, b=np.array(self.shares), axis=1
        )
        return np.asarray(moments / (orders - 1))


def _require_replace_one(relation: Relation) -> None:
    if not replaces_one(relation):
        raise UnsupportedRelation(
            "a run over permuted batches is proved under 'replace-one' only: adding or removing a "
            "record moves others from batch to batch. Use adjacency='replace-one', or one batch "
            "of all rows (solver='outpert-gd')."
        )
