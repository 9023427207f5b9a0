"""Cost of objective perturbation by the classic theorem. Proof: docs/proofs/kifer.md.

The theorem is that of Kifer, Smith and Thakurta (2012): half of epsilon for the curvature, half for
the noise. `ObjectiveCost` is tighter for the same release; this one is for comparison.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from hushfit._typing import Vector
from hushfit.privacy import _check
from hushfit.privacy._relation import Relation
from hushfit.privacy.costs._paired_cost import PairedCost
from hushfit.privacy.costs._release_cost import Directions, Pair

# Beyond the epsilon at which the theorem's delta falls below this, the loss counts as infinite.
_MIN_DELTA: Final = 1e-22
_SEARCH_POINTS: Final = 4000
# Below it epsilon is in the hundreds, and e^epsilon overflows.
_MIN_MULTIPLIER: Final = 0.2


@dataclass(frozen=True)
class ClassicObjectiveCost(PairedCost, kind="classic-objective"):
    r"""The exact minimiser of a perturbed objective, one output, by the classic theorem.

    For every epsilon of at least ``2 * kappa`` its delta is :math:`2 \exp(-(m^2 \epsilon^2 - 4
    \epsilon) / 8)`, m being the noise multiplier; solved for m this is the formula in the paper.

    Parameters
    ----------
    noise_multiplier : float
        Noise scale over the sensitivity of the gradient of the objective.
    kappa : float
        Largest curvature that one record adds to the objective, over the curvature that it has
        without any record.
    count : int, default=1
        How many such releases, each with fresh noise.

    Examples
    --------
    >>> from hushfit.privacy import ClassicObjectiveCost, epsilon_of
    >>> cost = ClassicObjectiveCost(noise_multiplier=10.0, kappa=0.1)
    >>> round(epsilon_of(cost, 1e-6, "replace-one"), 3)
    1.098
    """

    noise_multiplier: float
    kappa: float

    def __post_init__(self) -> None:
        _check.store(
            self,
            noise_multiplier=_check.non_negative(self.noise_multiplier, "noise_multiplier"),
            kappa=_check.finite(self.kappa, "kappa"),
            count=_check.count(self.count),
        )

    @property
    def reveals_all(self) -> bool:
        return self.noise_multiplier < _MIN_MULTIPLIER

    def directions(self, relation: Relation) -> Directions:
        """Privacy profile from the theorem's deltas; symmetric: either data set may come first."""
        spread = max(2 / self.noise_multiplier, self.kappa)
        x = np.linspace(-4.0, 4.0, 161)
        weights = np.exp(-(x**2) / 2)
        reach = self._reach
        return Directions(
            Pair(self._profile, -reach, reach, spread * x, weights / weights.sum(), self.count)
        )

    def curve(self, orders: Vector, relation: Relation) -> Vector:
        """Infinite: the theorem does not bound moments."""
        return np.full_like(orders, math.inf)

    @cached_property
    def _reach(self) -> float:
        return max(classic_epsilon(self.noise_multiplier, _MIN_DELTA), 2 * self.kappa)

    @cached_property
    def _chord(self) -> tuple[float, float]:
        """End and slope of the lowest chord between the theorem's curve and its mirror image."""
        low, high = 2 * self.kappa, self._reach
        for _ in range(2):  # the second time near the best point of the first
            ends = np.linspace(low, high, _SEARCH_POINTS)
            steepness = (1 - classic_delta(self.noise_multiplier, ends)) / (1 + np.exp(ends))
            best = int(np.argmax(steepness))
            low, high = ends[max(best - 1, 0)], ends[min(best + 1, _SEARCH_POINTS - 1)]
        return float(ends[best]), float(steepness[best])

    def _profile(self, epsilon: Vector) -> Vector:
        # A profile is convex in e^epsilon, so it lies below every chord of its bounds; this chord
        # is its own mirror image.
        (end, steepness), size = self._chord, np.abs(epsilon)
        beyond = classic_delta(self.noise_multiplier, np.maximum(size, end))
        mirrored = np.where(epsilon >= 0, beyond, -np.expm1(-size) + np.exp(-size) * beyond)
        return np.where(
            size < end, 1 - steepness * (1 + np.exp(np.clip(epsilon, -end, end))), mirrored
        )


def classic_delta(noise_multiplier: float, epsilon: Vector) -> Vector:
    """Delta of the theorem, at most 1."""
    exponent = (noise_multiplier**2 * epsilon**2 - 4 * epsilon) / 8
    return np.asarray(np.minimum(2 * np.exp(-exponent), 1.0))


def classic_epsilon(noise_multiplier: float, delta: float) -> float:
    """Epsilon at which the theorem's delta has this value, ignoring kappa."""
    square = noise_multiplier**2
    return (2 + math.sqrt(4 + 8 * square * math.log(2 / delta))) / square


def classic_multiplier(epsilon: float, delta: float) -> float:
    """The theorem's noise multiplier."""
    return math.sqrt(8 * math.log(2 / delta) + 4 * epsilon) / epsilon
