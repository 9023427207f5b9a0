"""What a cost is: the registry of its kinds, and what each must say of itself to be accounted with.

A new kind of release needs no change elsewhere: a frozen dataclass with a ``kind`` and a Renyi
curve, and
composition, ledgers, JSON and calibration follow. Whatever else it declares (a mu, a dominating
pair, exact
losses) makes its price tighter (docs/proofs/composition.md).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Final, Self, TypeAlias

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import _check
from hushfit.privacy._relation import Relation

Profile: TypeAlias = Callable[[Vector], Vector]
Losses: TypeAlias = tuple[Vector, Vector]

# Kinds are composed in this order: some by their number, which is older than the registry, all
# others by name.
BY_NAME: Final = 100


@dataclass(frozen=True)
class Pair:
    """One dominating pair: its profile, the range of its loss, and draws of the loss with their
    weights.

    ``profile`` gives the hockey-stick divergence at any epsilon, negative ones too. Beyond
    ``low`` and ``high`` lies
    a mass that counts as an infinite loss. ``losses`` and ``weights`` only choose the grid.
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


class Cost(ABC):
    """What one release, or several, cost: plain data that composes, compares and serialises."""

    kinds: ClassVar[dict[str, type["Cost"]]] = {}
    kind: ClassVar[str]
    place: ClassVar[int]

    def __init_subclass__(
        cls, kind: str | None = None, place: int = BY_NAME, **kwargs: Any
    ) -> None:
        super().__init_subclass__(**kwargs)
        if kind is not None:
            cls.kind, cls.place = kind, place
            Cost.kinds[kind] = cls

    @abstractmethod
    def entries(self) -> Iterator["ReleaseCost"]:
        """What was composed, as it is."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Describe the cost in plain JSON values."""

    @classmethod
    @abstractmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Cost":
        """Read back what ``to_dict`` of this kind wrote."""


@dataclass(frozen=True)
class ReleaseCost(Cost):
    """``count`` releases of one kind. Each kind is a frozen dataclass that checks its fields."""

    paired: ClassVar[bool] = False
    """Whether ``directions`` knows dominating pairs; without them a price rests on the Renyi
    curve.
    """

    @property
    @abstractmethod
    def count(self) -> int:
        """How many such releases."""

    @abstractmethod
    def curve(self, orders: Vector, relation: Relation) -> Vector:
        """Bound on the Renyi divergences of one release; infinite where none is known."""

    @property
    @abstractmethod
    def reveals_all(self) -> bool:
        """Whether there is no noise to speak of."""

    @property
    def lost(self) -> float:
        """Probability with which one release keeps no promise at all; its Renyi curve holds
        otherwise.
        """
        return 0.0

    @property
    def known_orders(self) -> tuple[float, ...]:
        """The only orders at which the curve is known as such; empty if it is at all of them."""
        return ()

    def gaussian_mu(self, relation: Relation) -> float | None:
        """The mu of the Gaussian release over all rows that one counts as; refuses a
        relation without a proof.
        """
        return None

    def pure_epsilon(self) -> float | None:
        """The epsilon with which one is private, except with probability ``lost``."""
        return None

    def directions(self, relation: Relation) -> Directions:
        """The dominating pairs of one release; refuses a relation without a proof."""
        raise InvalidArgument(
            f"{type(self).__name__} has no dominating pair. Account for it by its Renyi curve."
        )

    def bounded_losses(self) -> Iterable[Losses] | None:
        """Losses with their probabilities, the worst of which bounds one release; None
        where none are known.
        """
        return None

    def entries(self) -> Iterator["ReleaseCost"]:
        yield self

    def parts(self) -> Iterator["ReleaseCost"]:
        """Releases that together are no better than these, each with a Renyi curve of its own."""
        yield self

    def times(self, count: int) -> Self:
        """So many releases of this kind, in place of its own count."""
        return replace(self, count=count)  # type: ignore[call-arg]  # a field of every kind

    def to_dict(self) -> dict[str, Any]:
        """Describe the cost in plain JSON values."""
        return _check.described(self, self.kind)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "ReleaseCost":
        """Read back what ``to_dict`` of this kind wrote."""
        return cls(**_check.read(data, cls, cls.kind))

    def sort_key(self) -> tuple[Any, ...]:
        """Where it stands among others: by kind first, then by its fields."""
        return (self.place, self.kind, *(getattr(self, one.name) for one in fields(self)))
