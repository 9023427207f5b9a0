"""Releases known only to be (epsilon, delta)-private. Proof: docs/proofs/filter.md."""

import math
from dataclasses import dataclass

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import _check
from hushfit.privacy._relation import Relation
from hushfit.privacy.costs._curves import pure_curve
from hushfit.privacy.costs._paired_cost import PairedCost
from hushfit.privacy.costs._release_cost import Directions, Pair


@dataclass(frozen=True)
class ApproximateCost(PairedCost, kind="approximate"):
    """An (epsilon, delta)-private release: epsilon-private except with probability delta.

    With probability delta it may reveal everything. This is the cost of a run that a Renyi filter
    stops, or of a mechanism of which no more is known.

    Parameters
    ----------
    epsilon : float
        At least 0; infinity means no privacy.
    delta : float
        At least 0 and below 1.
    count : int, default=1
        How many such releases.

    Examples
    --------
    >>> from hushfit.privacy import ApproximateCost, epsilon_of
    >>> cost = ApproximateCost(epsilon=0.5, delta=1e-7, count=2)
    >>> round(epsilon_of(cost, 1e-6, "replace-one"), 3)
    1.0
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        delta = _check.non_negative(self.delta, "delta")
        if delta >= 1:
            raise InvalidArgument(
                f"delta={delta:g} gives no privacy. Give a small probability, well below 1/n."
            )
        epsilon = _check.non_negative(self.epsilon, "epsilon")
        _check.store(self, epsilon=epsilon, delta=delta, count=_check.count(self.count))

    @property
    def reveals_all(self) -> bool:
        return self.epsilon == math.inf

    @property
    def lost(self) -> float:
        return self.delta

    def pure_epsilon(self) -> float:
        # An infinite loss with probability delta, independent of all others, is best counted
        # separately.
        return self.epsilon

    def directions(self, relation: Relation) -> Directions:
        from hushfit.privacy.accounting.pld import pure_profile

        likely = 1 / (1 + math.exp(-self.epsilon))
        losses, weights = np.array([self.epsilon, -self.epsilon]), np.array([likely, 1 - likely])

        def profile(epsilon: Vector) -> Vector:
            return self.delta + (1 - self.delta) * pure_profile(epsilon, self.epsilon)

        return Directions(Pair(profile, -self.epsilon, self.epsilon, losses, weights, self.count))

    def curve(self, orders: Vector, relation: Relation) -> Vector:
        return pure_curve(orders, self.epsilon)
