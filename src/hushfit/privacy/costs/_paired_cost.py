"""Costs with their own dominating pair. Proof: docs/proofs/composition.md."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from hushfit.privacy._relation import Relation
from hushfit.privacy.costs._release_cost import Directions, ReleaseCost


@dataclass(frozen=True)
class PairedCost(ReleaseCost):
    """Base class of costs with their own dominating pair, which is all that convolutions need."""

    paired: ClassVar[bool] = True

    count: int = field(default=1, kw_only=True)

    @abstractmethod
    def directions(self, relation: Relation) -> Directions:
        """The dominating pairs of one release; refuses a relation without a proof."""
