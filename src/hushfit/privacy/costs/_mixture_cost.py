"""Cost of one noise draw on a full gradient *and* a Poisson batch. Proof: docs/proofs/mixture.md.

Every record changes such an answer a little, through the full gradient, and with probability
``rate`` further, through the batch.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import UnsupportedRelation
from hushfit.privacy import _check
from hushfit.privacy._gaussian import gaussian_profile
from hushfit.privacy._relation import Relation, replaces_one
from hushfit.privacy.costs._gaussian_cost import (
    MOST_MU,
    GaussianCost,
    PoissonGaussianCost,
    unsampled_mu,
)
from hushfit.privacy.costs._release_cost import Directions, Pair, ReleaseCost

# Newton's method on a convex function from the right of the root: more than enough for the last
# digit.
_NEWTON_STEPS: Final = 60
# Gaussian tails are cut at 9.5 standard deviations (1e-21): the cut mass counts as infinite loss.
_TAIL_CUTOFF: Final = 9.5


@dataclass(frozen=True)
class MixtureGaussianCost(ReleaseCost, kind="mixture-gaussian", place=6):
    """Gaussian noise on an answer that a sampled record changes further; add-remove only.

    Every record changes the answer a little, and a sampled record further.

    Parameters
    ----------
    noise_multiplier : float
        Noise scale over the distance by which a sampled record changes the answer.
    rate : float
        Probability that a record is sampled. The batch is fresh and secret.
    ratio : float
        How far a record that is not sampled changes the answer, as a share of how far a sampled one
        does.
    count : int, default=1
        How many such releases.

    Examples
    --------
    >>> from hushfit.privacy import MixtureGaussianCost, epsilon_of
    >>> cost = MixtureGaussianCost(noise_multiplier=5.0, rate=0.1, ratio=0.2)
    >>> round(epsilon_of(cost, 1e-6, "add-remove"), 3)
    0.234
    """

    noise_multiplier: float
    rate: float
    ratio: float
    count: int = 1

    paired = True

    def __post_init__(self) -> None:
        _check.store(
            self,
            noise_multiplier=_check.non_negative(self.noise_multiplier, "noise_multiplier"),
            rate=_check.fraction(self.rate, "rate"),
            ratio=_check.fraction(self.ratio, "ratio"),
            count=_check.count(self.count),
        )

    @property
    def mu(self) -> float:
        """Distance over noise scale for a sampled record."""
        return 1 / self.noise_multiplier if self.noise_multiplier > 0 else math.inf

    @property
    def reveals_all(self) -> bool:
        return self.mu > MOST_MU

    def gaussian_mu(self, relation: Relation) -> float | None:
        if replaces_one(relation):
            raise mixture_refused()
        return unsampled_mu(self.mu, self.rate)

    def directions(self, relation: Relation) -> Directions:
        """(1-q) N(ratio mu) + q N(mu) against N(0), and the reverse."""
        mu, rate, ratio = self.mu, self.rate, self.ratio
        x = np.linspace(-8.0, mu + 8.0, 801)
        density = (1 - rate) * np.exp(-0.5 * (x - ratio * mu) ** 2) + rate * np.exp(
            -0.5 * (x - mu) ** 2
        )
        weights = density / density.sum()
        losses = mixture_loss(x, mu, rate, ratio)
        low, high = mixture_loss(
            np.array([-_TAIL_CUTOFF, mu + _TAIL_CUTOFF]), mu, rate, ratio
        ).tolist()
        remove = Pair(
            lambda e: mixture_remove_profile(e, mu, rate, ratio),
            low,
            high,
            losses,
            weights,
            self.count,
        )
        add = Pair(
            lambda e: mixture_add_profile(e, mu, rate, ratio),
            -high,
            -low,
            -losses,
            weights,
            self.count,
        )
        return Directions(remove, add)

    def parts(self) -> Iterator[ReleaseCost]:
        """The full gradient and the batch, each with part of the noise; they sum to the mixture."""
        rate, ratio, z = self.rate, self.ratio, self.noise_multiplier
        # Any split of the variance is valid; this one is best when there are many releases.
        share = ratio / (ratio + rate * (1 + ratio))
        yield GaussianCost(z * math.sqrt(share) / ratio, self.count)
        yield PoissonGaussianCost(z * math.sqrt(1 - share) / (1 + ratio), rate, self.count)

    def curve(self, orders: Vector, relation: Relation) -> Vector:
        curves = [part.curve(orders, relation) for part in self.parts()]
        return curves[0] + curves[1]


def mixture_refused() -> UnsupportedRelation:
    """Error for the mixture under replace-one, with the reason."""
    return UnsupportedRelation(
        "one noise draw on a full gradient and a batch together has a proved dominating pair "
        "under 'add-remove' only: under 'replace-one' two records may act in directions that no "
        "known pair covers. Use adjacency='add-remove', or the two-noise form, which is proved "
        "for both."
    )


def mixture_loss(x: Vector, mu: float, rate: float, ratio: float) -> Vector:
    """Privacy loss of (1-q) N(ratio mu) + q N(mu) against N(0) at x; increasing and convex in x."""
    if rate == 1:
        return mu * x - mu * mu / 2
    near, far = _tilts(x, mu, ratio)
    return np.asarray(np.logaddexp(math.log1p(-rate) + near, math.log(rate) + far))


def mixture_remove_profile(epsilon: Vector, mu: float, rate: float, ratio: float) -> Vector:
    """Hockey-stick divergence of (1-q) N(ratio mu) + q N(mu) from N(0)."""
    # Beyond the point where the loss is epsilon, each component is a Gaussian profile at its own
    # loss there.
    near, far = _tilts(_where_loss_is(epsilon, mu, rate, ratio), mu, ratio)
    return (1 - rate) * gaussian_profile(near, ratio * mu) + rate * gaussian_profile(far, mu)


def mixture_add_profile(epsilon: Vector, mu: float, rate: float, ratio: float) -> Vector:
    """Hockey-stick divergence of N(0) from (1-q) N(ratio mu) + q N(mu)."""
    near, far = _tilts(_where_loss_is(-epsilon, mu, rate, ratio), mu, ratio)
    # Log odds of the components given x, plus epsilon: neither overflows nor underflows.
    absent, present = (
        np.exp(epsilon + near + math.log1p(-rate)),
        np.exp(epsilon + far + math.log(rate)),
    )
    return absent * gaussian_profile(-near, ratio * mu) + present * gaussian_profile(-far, mu)


def _tilts(x: Vector, mu: float, ratio: float) -> tuple[Vector, Vector]:
    """Privacy losses of the two components alone."""
    shift = ratio * mu
    return shift * x - shift * shift / 2, mu * x - mu * mu / 2


def _where_loss_is(epsilon: Vector, mu: float, rate: float, ratio: float) -> Vector:
    """The point whose loss is epsilon."""
    shift = ratio * mu
    # Where either component alone reaches epsilon the sum exceeds it, by log 2 at most at the first
    # such point.
    by_near = (epsilon - math.log1p(-rate) + shift * shift / 2) / shift
    by_far = (epsilon - math.log(rate) + mu * mu / 2) / mu
    x = np.minimum(by_near, by_far)
    for _ in range(_NEWTON_STEPS):
        far = mu * x - mu * mu / 2
        loss = mixture_loss(x, mu, rate, ratio)
        weight = np.exp(math.log(rate) + far - loss)
        step = (loss - epsilon) / (shift + (mu - shift) * weight)
        x = x - step
        if np.all(np.abs(step) <= 1e-14 * (1 + np.abs(x))):
            break
    return x
