"""What a cost must say of itself to be accounted with: a dominating pair, and a Renyi curve.

A new kind of release needs no change elsewhere: subclass `PairedCost` with a ``kind``, and composition, ledgers, JSON and
calibration follow (docs/proofs/composition.md).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from hushfit._typing import Vector
from hushfit.privacy import _check
from hushfit.privacy._relation import Relation

Profile: TypeAlias = Callable[[Vector], Vector]


@dataclass(frozen=True)
class Pair:
    """One dominating pair: its profile, the range of its loss, and draws of the loss with their weights.

    ``profile`` gives the hockey-stick divergence at any epsilon, negative ones too. Beyond ``low`` and ``high`` lies a mass
    that counts as an infinite loss. ``losses`` and ``weights`` only choose the grid.
    """

    profile: Profile
    low: float
    high: float
    losses: Vector
    weights: Vector
    count: int


@dataclass(frozen=True)
class Directions:
    """The pair for removing a record and for adding it; under a symmetric relation they are one."""

    remove: Pair
    add: Pair | None = None


@dataclass(frozen=True)
class PairedCost(ABC):
    """Base of costs that bring their own dominating pair; each is a frozen dataclass that checks its fields."""

    kinds: ClassVar[dict[str, type["PairedCost"]]] = {}
    kind: ClassVar[str]

    count: int = field(default=1, kw_only=True)

    def __init_subclass__(cls, kind: str, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.kind = kind
        PairedCost.kinds[kind] = cls

    @property
    @abstractmethod
    def reveals_all(self) -> bool:
        """Whether there is no noise to speak of."""

    @property
    def lost(self) -> float:
        """Probability with which one release keeps no promise at all; its Renyi curve holds otherwise."""
        return 0.0

    @abstractmethod
    def directions(self, relation: Relation) -> Directions:
        """The dominating pairs of one release; refuses a relation without a proof."""

    @abstractmethod
    def curve(self, orders: Vector, relation: Relation) -> Vector:
        """Bound on the Renyi divergences of one release; infinite where none is known."""

    def to_dict(self) -> dict[str, Any]:
        """Describe the cost in plain JSON values."""
        return _check.described(self, self.kind)
