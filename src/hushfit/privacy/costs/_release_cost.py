"""Base classes of costs, the registry of their kinds, and what a kind must declare.

A new kind of release needs no change elsewhere: a frozen dataclass with a ``kind`` and a Renyi
curve works with composition, ledgers, JSON and calibration. Anything else it declares (a mu, a
dominating pair, exact losses) makes its accounting tighter (docs/proofs/composition.md).
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

# Kinds are composed in this order: some by number, which predates the registry, all others by name.
BY_NAME: Final = 100


@dataclass(frozen=True)
class Pair:
    """A dominating pair: its profile, the range of its loss, and weighted samples of the loss.

    ``profile`` gives the hockey-stick divergence at any epsilon, also negative. The probability
    beyond ``low`` and ``high`` counts as infinite loss. ``losses`` and ``weights`` only choose the
    grid.
    """

    profile: Profile
    low: float
    high: float
    losses: Vector
    weights: Vector
    count: int


@dataclass(frozen=True)
class Directions:
    """Dominating pairs for removing and adding a record; one pair under a symmetric relation."""

    remove: Pair
    add: Pair | None = None


class Cost(ABC):
    """Cost of one or several releases: plain data that composes, compares and serialises."""

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
        """Releases that were composed, unchanged."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Describe the cost in plain JSON values."""

    @classmethod
    @abstractmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Cost":
        """Read what ``to_dict`` of this kind wrote."""


@dataclass(frozen=True)
class ReleaseCost(Cost):
    """``count`` releases of one kind. Each kind is a frozen dataclass that checks its fields."""

    paired: ClassVar[bool] = False
    """Whether ``directions`` returns dominating pairs; otherwise accounting uses the Renyi curve.
    """
    for_labels: ClassVar[bool] = False
    """Whether its proof also covers relations under which labels alone are private."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of such releases."""

    @abstractmethod
    def curve(self, orders: Vector, relation: Relation) -> Vector:
        """Bound on the Renyi divergences of one release; infinite where none is known."""

    @property
    @abstractmethod
    def reveals_all(self) -> bool:
        """Whether there is no noise, or next to none."""

    @property
    def lost(self) -> float:
        """Failure probability of one release; its Renyi curve holds otherwise."""
        return 0.0

    @property
    def known_orders(self) -> tuple[float, ...]:
        """Orders at which the curve is tabulated; empty if it is known at all orders."""
        return ()

    def gaussian_mu(self, relation: Relation) -> float | None:
        """Mu of the Gaussian release on all rows that one release counts as, or None.

        Refuses a relation without a proof.
        """
        return None

    def group_mu(self, relation: Relation) -> float | None:
        """Mu of a Gaussian release on all rows that bounds one release, so that k units count k mu
        together; None if none is known.
        """
        return self.gaussian_mu(relation)

    def pure_epsilon(self) -> float | None:
        """Pure epsilon of one release, except with probability ``lost``; None if there is none."""
        return None

    def directions(self, relation: Relation) -> Directions:
        """The dominating pairs of one release; refuses a relation without a proof."""
        raise InvalidArgument(
            f"{type(self).__name__} has no dominating pair. Account for it by its Renyi curve."
        )

    def bounded_losses(self) -> Iterable[Losses] | None:
        """Losses with probabilities, the worst of which bounds one release; None if unknown."""
        return None

    def entries(self) -> Iterator["ReleaseCost"]:
        yield self

    def parts(self) -> Iterator["ReleaseCost"]:
        """Releases, each with its own Renyi curve, whose composition bounds this cost."""
        yield self

    def times(self, count: int) -> Self:
        """The same kind of release with another count."""
        return replace(self, count=count)  # type: ignore[call-arg]  # a field of every kind

    def to_dict(self) -> dict[str, Any]:
        """Describe the cost in plain JSON values."""
        return _check.described(self, self.kind)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "ReleaseCost":
        """Read what ``to_dict`` of this kind wrote."""
        return cls(**_check.read(data, cls, cls.kind))

    def sort_key(self) -> tuple[Any, ...]:
        """Sort key: by kind first, then by fields."""
        return (self.place, self.kind, *(getattr(self, one.name) for one in fields(self)))
