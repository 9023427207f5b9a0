"""A pure release: epsilon alone. Proof: docs/proofs/composition.md."""

import math
from dataclasses import dataclass

from hushfit._typing import Vector
from hushfit.privacy import _check
from hushfit.privacy._relation import Relation
from hushfit.privacy.costs._curves import pure_curve
from hushfit.privacy.costs._release_cost import Directions, ReleaseCost


@dataclass(frozen=True)
class PureCost(ReleaseCost, kind="pure", place=3):
    """Any epsilon-private release (delta 0), such as Laplace noise or an above-threshold gate.

    Parameters
    ----------
    epsilon : float
        At least 0; infinity means no privacy.
    count : int, default=1
        How many such releases.

    Examples
    --------
    >>> from hushfit.privacy import PureCost, epsilon_of
    >>> epsilon_of(PureCost(0.1, count=3), 1e-9, "add-remove") <= 0.3
    True
    """

    epsilon: float
    count: int = 1

    paired = True

    def __post_init__(self) -> None:
        _check.store(
            self,
            epsilon=_check.non_negative(self.epsilon, "epsilon"),
            count=_check.count(self.count),
        )

    @property
    def reveals_all(self) -> bool:
        return self.epsilon == math.inf

    def pure_epsilon(self) -> float:
        return self.epsilon

    def directions(self, relation: Relation) -> Directions:
        from hushfit.privacy.accounting.pld import pure_pair

        return Directions(pure_pair(self.epsilon, self.count))

    def curve(self, orders: Vector, relation: Relation) -> Vector:
        return pure_curve(orders, self.epsilon)
