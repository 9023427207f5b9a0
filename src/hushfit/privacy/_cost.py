"""What a release costs: frozen descriptions that compose, compare and serialise.

A cost says what was done, not what it amounts to: epsilon and delta come from `epsilon_of` and `delta_of`. Everywhere
*noise_multiplier = noise scale / true L2 sensitivity under the relation*.
Proofs: docs/proofs/{gaussian,poisson,fixed_size,composition}.md.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, fields, replace
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import _check
from hushfit.privacy._mixture_cost import MixtureGaussianCost
from hushfit.privacy._objective_cost import ObjectiveCost
from hushfit.privacy._paired_cost import PairedCost


def _order_grid() -> tuple[float, ...]:
    """Dense where the optimum moves fast, geometric where the curve is flat."""
    low = 1 + np.geomspace(1 / 64, 1, 13)
    grid = np.concatenate([low, np.arange(2, 24, 0.25), np.arange(24, 64), np.round(np.geomspace(64, 8192, 64))])
    return tuple(float(order) for order in np.unique(grid))


RENYI_ORDERS: Final = _order_grid()
"""The orders at which Renyi curves are tabulated: 1.016 to 8192."""


@dataclass(frozen=True)
class GaussianCost:
    """Gaussian noise on a statistic of all rows.

    Parameters
    ----------
    noise_multiplier : float
        Noise scale over L2 sensitivity. 0 means no noise, infinity means nothing was learnt.
    count : int, default=1
        How many such releases.
    """

    noise_multiplier: float
    count: int = 1

    def __post_init__(self) -> None:
        _check.store(self, noise_multiplier=_check.non_negative(self.noise_multiplier, "noise_multiplier"))
        _check.store(self, count=_check.count(self.count))

    @property
    def mu(self) -> float:
        """Sensitivity over noise scale of one release."""
        return _inverse(self.noise_multiplier)

    def to_dict(self) -> dict[str, Any]:
        """Describe the cost in plain JSON values."""
        return _check.described(self, "gaussian")


@dataclass(frozen=True)
class PoissonGaussianCost:
    """Gaussian noise on a sum over a batch that each row joins independently.

    Parameters
    ----------
    noise_multiplier : float
        Noise scale over the L2 sensitivity of the sum: the per-record bound C under add-remove, 2C under replace-one.
        Under replace-one the dominating pair needs records bounded by C, not merely pairs within 2C.
    rate : float
        Probability that a row is in the batch. The batch is fresh and secret, and its size never divides the sum.
    count : int, default=1
        How many such releases.
    """

    noise_multiplier: float
    rate: float
    count: int = 1

    def __post_init__(self) -> None:
        _check.store(self, noise_multiplier=_check.non_negative(self.noise_multiplier, "noise_multiplier"))
        _check.store(self, rate=_check.fraction(self.rate, "rate"), count=_check.count(self.count))

    @property
    def mu(self) -> float:
        """Sensitivity over noise scale of one release."""
        return _inverse(self.noise_multiplier)

    def to_dict(self) -> dict[str, Any]:
        """Describe the cost in plain JSON values."""
        return _check.described(self, "poisson-gaussian")


@dataclass(frozen=True)
class FixedSizeGaussianCost:
    """Gaussian noise on a sum over a batch of fixed size, drawn without replacement; replace-one only.

    Parameters
    ----------
    noise_multiplier : float
        Noise scale over the L2 sensitivity 2C of the sum.
    rate : float
        Batch size over number of rows. The batch is fresh, uniform and secret.
    count : int, default=1
        How many such releases.
    """

    noise_multiplier: float
    rate: float
    count: int = 1

    def __post_init__(self) -> None:
        _check.store(self, noise_multiplier=_check.non_negative(self.noise_multiplier, "noise_multiplier"))
        _check.store(self, rate=_check.fraction(self.rate, "rate"), count=_check.count(self.count))

    @property
    def mu(self) -> float:
        """Sensitivity over noise scale of one release."""
        return _inverse(self.noise_multiplier)

    def to_dict(self) -> dict[str, Any]:
        """Describe the cost in plain JSON values."""
        return _check.described(self, "fixed-size-gaussian")


@dataclass(frozen=True)
class PureCost:
    """Anything that is epsilon-private with delta 0, such as Laplace noise or an above-threshold gate.

    Parameters
    ----------
    epsilon : float
        At least 0; infinity means no privacy.
    count : int, default=1
        How many such releases.
    """

    epsilon: float
    count: int = 1

    def __post_init__(self) -> None:
        _check.store(self, epsilon=_check.non_negative(self.epsilon, "epsilon"), count=_check.count(self.count))

    def to_dict(self) -> dict[str, Any]:
        """Describe the cost in plain JSON values."""
        return _check.described(self, "pure")


@dataclass(frozen=True)
class RdpCost:
    """A release known by an upper bound on its Renyi divergences, in both directions.

    Parameters
    ----------
    orders : tuple of float
        Increasing, each above 1.
    values : tuple of float
        Bounds at these orders, at least 0; infinity where nothing is known.
    count : int, default=1
        How many such releases.
    label : str, default=""
        What it is, for people.
    """

    orders: tuple[float, ...]
    values: tuple[float, ...]
    count: int = 1
    label: str = ""

    def __post_init__(self) -> None:
        orders = tuple(_check.number(order, "order") for order in self.orders)
        if not orders or orders[0] <= 1 or any(a >= b for a, b in pairwise(orders)):
            raise InvalidArgument(f"orders={orders[:4]}... must increase and stay above 1. Use RENYI_ORDERS.")
        if orders[-1] == math.inf:
            raise InvalidArgument("an order is infinite. Use finite orders, or a PureCost.")
        values = tuple(_check.non_negative(value, "Renyi divergence") for value in self.values)
        if len(values) != len(orders):
            raise InvalidArgument(f"{len(orders)} orders but {len(values)} values. Give one value per order.")
        _check.store(self, orders=orders, values=values, count=_check.count(self.count))
        _check.text(self.label, "label")

    @classmethod
    def from_curve(cls, curve: Callable[[Vector], Vector], label: str = "", count: int = 1) -> "RdpCost":
        """Tabulate a Renyi curve on `RENYI_ORDERS`.

        Parameters
        ----------
        curve : callable
            Takes an array of orders and returns an array of bounds; infinity where the bound does not hold.
        label : str, default=""
            What it is, for people.
        count : int, default=1
            How many such releases.

        Returns
        -------
        RdpCost
        """
        values = np.asarray(curve(np.array(RENYI_ORDERS)), dtype=float)
        return cls(RENYI_ORDERS, tuple(values.tolist()), count, label)

    def to_dict(self) -> dict[str, Any]:
        """Describe the cost in plain JSON values."""
        return _check.described(self, "rdp")


@dataclass(frozen=True)
class ComposedCost:
    """Several costs together, adaptively. Build it with `compose`, which keeps it flat and in one order.

    Parameters
    ----------
    parts : tuple of costs
        None of them composed. The empty tuple is the cost of doing nothing.
    """

    parts: tuple["Entry", ...]

    def __post_init__(self) -> None:
        _check.store(self, parts=tuple(self.parts))
        for part in self.parts:
            if not isinstance(part, SIMPLE):
                raise InvalidArgument(f"{type(part).__name__} cannot be a part of a cost. Combine costs with compose.")

    def to_dict(self) -> dict[str, Any]:
        """Describe the cost in plain JSON values."""
        return {"kind": "composed", "parts": [part.to_dict() for part in self.parts]}


SimpleCost: TypeAlias = GaussianCost | PoissonGaussianCost | FixedSizeGaussianCost | PureCost | RdpCost | ObjectiveCost
# What a composed cost may hold: a mixture has a dominating pair of its own, but no Renyi curve of its own.
Entry: TypeAlias = SimpleCost | MixtureGaussianCost | PairedCost
Cost: TypeAlias = Entry | ComposedCost
SIMPLE: Final = (
    GaussianCost,
    PoissonGaussianCost,
    FixedSizeGaussianCost,
    PureCost,
    RdpCost,
    ObjectiveCost,
    MixtureGaussianCost,
    PairedCost,
)
_NAMES: Final = ("gaussian", "poisson-gaussian", "fixed-size-gaussian", "pure", "rdp", "objective", "mixture-gaussian")
_KINDS: Final = dict(zip(_NAMES, SIMPLE[:-1], strict=True))


def compose(costs: Iterable[Cost]) -> Cost:
    """The cost of several releases, each free to depend on the answers before it.

    Parameters
    ----------
    costs : iterable of costs
        In any order, composed or not.

    Returns
    -------
    Cost
        Flat, equal releases counted together, in an order that does not depend on that of the input. Gaussian releases
        with different multipliers stay apart here, for the record; `epsilon_of` adds them in squares.
    """
    tally: Counter[Entry] = Counter()
    for cost in costs:
        for part in entries_of(cost):
            tally[replace(part, count=1)] += part.count
    parts = tuple(sorted((replace(one, count=count) for one, count in tally.items()), key=_place))
    return parts[0] if len(parts) == 1 else ComposedCost(parts)


def repeat(cost: Cost, times: int) -> Cost:
    """The cost of the same releases made several times over.

    Parameters
    ----------
    cost : Cost
        Of one round.
    times : int
        Number of rounds, at least 1.

    Returns
    -------
    Cost
    """
    times = _check.count(times, "times")
    return compose(replace(part, count=times * part.count) for part in entries_of(cost))


def parts_of(cost: Cost) -> Iterator[SimpleCost | PairedCost]:
    """The simple costs that a cost is made of; a mixture counts as the two releases that it is no worse than."""
    for entry in entries_of(cost):
        if isinstance(entry, MixtureGaussianCost):
            yield from _split(entry)
        else:
            yield entry


def entries_of(cost: Cost) -> Iterator[Entry]:
    """What was composed, as it is."""
    if isinstance(cost, ComposedCost):
        yield from cost.parts
    elif isinstance(cost, SIMPLE):
        yield cost
    else:
        raise InvalidArgument(f"{type(cost).__name__} is not a cost. Use GaussianCost or its kin.")


def _split(mixture: MixtureGaussianCost) -> tuple[GaussianCost, PoissonGaussianCost]:
    """The full gradient and the batch, each with a part of the noise; their sum is the mixture (docs/proofs/mixture.md)."""
    rate, ratio, z = mixture.rate, mixture.ratio, mixture.noise_multiplier
    # Any split of the variance is valid; this one is best when there are many releases.
    share = ratio / (ratio + rate * (1 + ratio))
    everybody = GaussianCost(z * math.sqrt(share) / ratio, mixture.count)
    return everybody, PoissonGaussianCost(z * math.sqrt(1 - share) / (1 + ratio), rate, mixture.count)


def cost_from_dict(data: Mapping[str, Any]) -> Cost:
    """Read back what `to_dict` wrote.

    Parameters
    ----------
    data : mapping
        Plain JSON values.

    Returns
    -------
    Cost

    Raises
    ------
    InvalidArgument
        If the kind is unknown, a field is missing or added, or a value is out of range.
    """
    kind = data.get("kind") if isinstance(data, Mapping) else None
    if kind == "composed":
        parts = _check.fields(data, {"kind", "parts"}, "a composed cost")["parts"]
        if not isinstance(parts, list):
            raise InvalidArgument("the parts of a composed cost should be a list. Use what to_dict() wrote.")
        return ComposedCost(tuple(cost_from_dict(part) for part in parts))  # type: ignore[misc]  # a nested composed part is refused there
    kinds: dict[str, Any] = {**_KINDS, **PairedCost.kinds}
    if not isinstance(kind, str) or kind not in kinds:
        raise InvalidArgument(f"cost kind {kind!r} is unknown. Known kinds: {', '.join(kinds)}, composed.")
    cls = kinds[kind]
    given = _check.fields(data, {"kind", *(field.name for field in fields(cls))}, f"a {kind} cost")
    read: Entry = cls(**{field.name: _from_json(given[field.name], field) for field in fields(cls)})
    return read


def _from_json(value: Any, field: Field[Any]) -> Any:
    """The inverse of `_check.described`; labels and whole numbers are left to the constructor."""
    if field.type in (str, int):
        return value
    if field.type is not float:
        if not isinstance(value, list):
            raise InvalidArgument(f"{field.name} should be a list of numbers. Use what to_dict() wrote.")
        return tuple(_check.from_json_number(item, field.name) for item in value)
    return _check.from_json_number(value, field.name)


def _place(cost: Entry) -> tuple[Any, ...]:
    """Sort key: kind first, then the fields."""
    place = len(_NAMES) if isinstance(cost, PairedCost) else SIMPLE.index(type(cost))
    return (place, getattr(cost, "kind", ""), *(getattr(cost, field.name) for field in fields(cost)))


def _inverse(noise_multiplier: float) -> float:
    """mu = 1 / noise multiplier, infinite without noise."""
    return 1 / noise_multiplier if noise_multiplier > 0 else math.inf
