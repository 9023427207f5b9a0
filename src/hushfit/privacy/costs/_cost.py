"""Privacy costs of releases: frozen descriptions that compose, compare and serialise.

A cost describes a mechanism, not its privacy loss: epsilon and delta come from `epsilon_of` and
`delta_of`. Everywhere *noise_multiplier = noise scale / true L2 sensitivity under the relation*.
Proofs: docs/proofs/{gaussian,poisson,fixed_size,composition}.md.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument, UnsupportedRelation
from hushfit.privacy import _check
from hushfit.privacy._relation import (
    Relation,
    exchanges,
    labels_only,
    no_proof_for_labels,
    replaces_one,
)
from hushfit.privacy.costs._curves import (
    fixed_size_curve,
    gaussian_curve,
    poisson_curve,
    poisson_swap_curve,
    pure_curve,
    tabulated_curve,
)
from hushfit.privacy.costs._release_cost import Cost, Directions, ReleaseCost


def _order_grid() -> tuple[float, ...]:
    """Grid of Renyi orders: dense where the optimum changes fast, geometric where it does not."""
    low = 1 + np.geomspace(1 / 64, 1, 13)
    grid = np.concatenate(
        [low, np.arange(2, 24, 0.25), np.arange(24, 64), np.round(np.geomspace(64, 8192, 64))]
    )
    return tuple(float(order) for order in np.unique(grid))


RENYI_ORDERS: Final = _order_grid()
"""Orders at which Renyi curves are tabulated: 1.016 to 8192."""

# Outside this range of mu the effect of sampling is negligible and floating point fails. Below it
# the batch counts as all rows; above it the release counts as published without noise. Both err on
# the safe side.
LEAST_MU: Final = 1e-7
MOST_MU: Final = 1e3


@dataclass(frozen=True)
class GaussianCost(ReleaseCost, kind="gaussian", place=0):
    """Gaussian noise on a statistic of all rows.

    Parameters
    ----------
    noise_multiplier : float
        Noise scale over L2 sensitivity. 0 means no noise, infinity means that nothing was revealed.
    count : int, default=1
        How many such releases.

    Examples
    --------
    >>> from hushfit.privacy import GaussianCost, epsilon_of
    >>> round(epsilon_of(GaussianCost(4.0, count=10), 1e-6, "replace-one"), 2)
    3.75
    """

    noise_multiplier: float
    count: int = 1

    for_labels = True  # it assumes of neighbours nothing but the distance of their answers

    def __post_init__(self) -> None:
        _check.store(
            self, noise_multiplier=_check.non_negative(self.noise_multiplier, "noise_multiplier")
        )
        _check.store(self, count=_check.count(self.count))

    @property
    def mu(self) -> float:
        """Sensitivity over noise scale of one release."""
        return _inverse(self.noise_multiplier)

    @property
    def reveals_all(self) -> bool:
        return self.mu == math.inf

    def gaussian_mu(self, relation: Relation) -> float:
        return self.mu

    def curve(self, orders: Vector, relation: Relation) -> Vector:
        return gaussian_curve(orders, self.mu)


@dataclass(frozen=True)
class PoissonGaussianCost(ReleaseCost, kind="poisson-gaussian", place=1):
    """Gaussian noise on a sum over a Poisson batch, which each row joins independently.

    Parameters
    ----------
    noise_multiplier : float
        Noise scale over the L2 sensitivity of the sum: the per-record bound C under add-remove, 2C
        under replace-one. Under replace-one the dominating pair needs records bounded by C, not
        merely pairs within 2C.
    rate : float
        Probability that a row is in the batch. The batch is fresh and secret, and its size never
        divides the sum.
    count : int, default=1
        How many such releases.

    Examples
    --------
    >>> from hushfit.privacy import PoissonGaussianCost
    >>> PoissonGaussianCost(noise_multiplier=1.1, rate=0.01, count=1000).mu < 1
    True
    """

    noise_multiplier: float
    rate: float
    count: int = 1

    paired = True
    # Replaced labels move a unit between two contributions of at most C, as replaced records do
    # (docs/proofs/ranking.md).
    for_labels = True

    def __post_init__(self) -> None:
        _check.store(
            self, noise_multiplier=_check.non_negative(self.noise_multiplier, "noise_multiplier")
        )
        _check.store(self, rate=_check.fraction(self.rate, "rate"), count=_check.count(self.count))

    @property
    def mu(self) -> float:
        """Sensitivity over noise scale of one release."""
        return _inverse(self.noise_multiplier)

    @property
    def reveals_all(self) -> bool:
        return self.mu > MOST_MU

    def gaussian_mu(self, relation: Relation) -> float | None:
        return unsampled_mu(self.mu, self.rate)

    def group_mu(self, relation: Relation) -> float:
        return self.mu  # given the batch, k units change the sum by at most k sensitivities

    def directions(self, relation: Relation) -> Directions:
        from hushfit.privacy.accounting.pld import poisson_directions

        return poisson_directions(self.mu, self.rate, self.count, relation)

    def curve(self, orders: Vector, relation: Relation) -> Vector:
        if not exchanges(relation):
            return poisson_curve(orders, self.mu, self.rate)
        return poisson_swap_curve(orders, self.mu, self.rate)


@dataclass(frozen=True)
class FixedSizeGaussianCost(ReleaseCost, kind="fixed-size-gaussian", place=2):
    """Gaussian noise on a sum over a fixed-size batch without replacement; replace-one only.

    Parameters
    ----------
    noise_multiplier : float
        Noise scale over the L2 sensitivity 2C of the sum.
    rate : float
        Batch size over number of rows. The batch is fresh, uniform and secret.
    count : int, default=1
        How many such releases.

    Examples
    --------
    >>> from hushfit.privacy import FixedSizeGaussianCost
    >>> FixedSizeGaussianCost(noise_multiplier=1.1, rate=0.01, count=1000).count
    1000
    """

    noise_multiplier: float
    rate: float
    count: int = 1

    paired = True

    def __post_init__(self) -> None:
        _check.store(
            self, noise_multiplier=_check.non_negative(self.noise_multiplier, "noise_multiplier")
        )
        _check.store(self, rate=_check.fraction(self.rate, "rate"), count=_check.count(self.count))

    @property
    def mu(self) -> float:
        """Sensitivity over noise scale of one release."""
        return _inverse(self.noise_multiplier)

    @property
    def reveals_all(self) -> bool:
        return self.mu > MOST_MU

    def gaussian_mu(self, relation: Relation) -> float | None:
        _require_replace_one(relation)
        return unsampled_mu(self.mu, self.rate)

    def group_mu(self, relation: Relation) -> float:
        _require_replace_one(relation)
        return self.mu  # given the batch, k units change the sum by at most k sensitivities

    def directions(self, relation: Relation) -> Directions:
        from hushfit.privacy.accounting.pld import fixed_size_pair

        _require_replace_one(relation)
        return Directions(fixed_size_pair(self.mu, self.rate, self.count))

    def curve(self, orders: Vector, relation: Relation) -> Vector:
        _require_replace_one(relation)
        return fixed_size_curve(orders, self.mu, self.rate)


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


@dataclass(frozen=True)
class RdpCost(ReleaseCost, kind="rdp", place=4):
    """A release described by upper bounds on its Renyi divergences, in both directions.

    Parameters
    ----------
    orders : tuple of float
        Increasing, each above 1.
    values : tuple of float
        Bounds at these orders, at least 0; infinity where none is known.
    count : int, default=1
        How many such releases.
    label : str, default=""
        What it is, for people.

    Examples
    --------
    >>> from hushfit.privacy import RdpCost, epsilon_of
    >>> curve = RdpCost(orders=(2.0, 8.0, 32.0), values=(0.01, 0.04, 0.16))
    >>> epsilon_of(curve, 1e-6, "replace-one") < 1
    True
    """

    orders: tuple[float, ...]
    values: tuple[float, ...]
    count: int = 1
    label: str = ""

    def __post_init__(self) -> None:
        orders = tuple(_check.number(order, "order") for order in self.orders)
        if not orders or orders[0] <= 1 or any(a >= b for a, b in pairwise(orders)):
            raise InvalidArgument(
                f"orders={orders[:4]}... must increase and stay above 1. Use RENYI_ORDERS."
            )
        if orders[-1] == math.inf:
            raise InvalidArgument("an order is infinite. Use finite orders, or a PureCost.")
        values = tuple(_check.non_negative(value, "Renyi divergence") for value in self.values)
        if len(values) != len(orders):
            raise InvalidArgument(
                f"{len(orders)} orders but {len(values)} values. Give one value per order."
            )
        _check.store(self, orders=orders, values=values, count=_check.count(self.count))
        _check.text(self.label, "label")

    @classmethod
    def from_curve(
        cls, curve: Callable[[Vector], Vector], label: str = "", count: int = 1
    ) -> "RdpCost":
        """Tabulate a Renyi curve on `RENYI_ORDERS`.

        Parameters
        ----------
        curve : callable
            Takes an array of orders and returns an array of bounds; infinity where the bound does
            not hold.
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

    @property
    def reveals_all(self) -> bool:
        return False  # an unknown bound does not mean that there is no noise

    @property
    def known_orders(self) -> tuple[float, ...]:
        return self.orders

    def curve(self, orders: Vector, relation: Relation) -> Vector:
        return tabulated_curve(orders, self.orders, self.values)


@dataclass(frozen=True)
class ComposedCost(Cost, kind="composed"):
    """Adaptive composition of several costs.

    Build it with `compose`, which keeps it flat and in one order.

    Parameters
    ----------
    parts : tuple of costs
        None of them composed. The empty tuple is the cost of no release.

    Examples
    --------
    >>> from hushfit.privacy import GaussianCost, PureCost, compose, epsilon_of
    >>> both = compose([GaussianCost(noise_multiplier=10.0), PureCost(0.2)])
    >>> len(both.parts), round(epsilon_of(both, 1e-6, "replace-one"), 3)
    (2, 0.583)
    """

    parts: tuple[ReleaseCost, ...]

    def __post_init__(self) -> None:
        _check.store(self, parts=tuple(self.parts))
        for part in self.parts:
            if not isinstance(part, ReleaseCost):
                raise InvalidArgument(
                    f"{type(part).__name__} cannot be a part of a cost. Combine costs with compose."
                )

    def entries(self) -> Iterator[ReleaseCost]:
        yield from self.parts

    def to_dict(self) -> dict[str, Any]:
        """Describe the cost in plain JSON values."""
        return {"kind": self.kind, "parts": [part.to_dict() for part in self.parts]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "ComposedCost":
        """Read what `to_dict` wrote."""
        parts = _check.fields(data, {"kind", "parts"}, "a composed cost")["parts"]
        if not isinstance(parts, list):
            raise InvalidArgument(
                "the parts of a composed cost should be a list. Use what to_dict() wrote."
            )
        # refuses composed parts
        return cls(tuple(cost_from_dict(part) for part in parts))  # type: ignore[misc]


def compose(costs: Iterable[Cost]) -> Cost:
    """Adaptive composition: the cost of several releases that may depend on earlier answers.

    Parameters
    ----------
    costs : iterable of costs
        In any order, composed or not.

    Returns
    -------
    Cost
        Flat, with equal releases counted together, in an order that does not depend on that of the
        input. Gaussian releases with different noise multipliers stay separate here, for the
        record; `epsilon_of` adds the squares of their mu.

    Examples
    --------
    >>> from hushfit.privacy import GaussianCost, PureCost, compose, epsilon_of
    >>> both = compose([GaussianCost(10.0), PureCost(0.1)])
    >>> round(epsilon_of(both, 1e-6, "add-remove"), 2)
    0.48
    """
    tally: Counter[ReleaseCost] = Counter()
    for cost in costs:
        for part in entries_of(cost):
            tally[part.times(1)] += part.count
    parts = tuple(
        sorted((one.times(count) for one, count in tally.items()), key=ReleaseCost.sort_key)
    )
    return parts[0] if len(parts) == 1 else ComposedCost(parts)


def repeat(cost: Cost, times: int) -> Cost:
    """Cost of the same releases repeated several times.

    Parameters
    ----------
    cost : Cost
        Of one repetition.
    times : int
        Number of repetitions, at least 1.

    Returns
    -------
    Cost

    Examples
    --------
    >>> from hushfit.privacy import GaussianCost, repeat
    >>> repeat(GaussianCost(10.0), 3)
    GaussianCost(noise_multiplier=10.0, count=3)
    """
    times = _check.count(times, "times")
    return compose(part.times(times * part.count) for part in entries_of(cost))


def parts_of(cost: Cost) -> Iterator[ReleaseCost]:
    """Releases with their own Renyi curve that make up a cost, or bound it."""
    for entry in entries_of(cost):
        yield from entry.parts()


def entries_of(cost: Cost) -> Iterator[ReleaseCost]:
    """Releases that were composed, unchanged."""
    if not isinstance(cost, Cost):
        raise InvalidArgument(
            f"{type(cost).__name__} is not a cost. Use GaussianCost or another kind of cost."
        )
    return cost.entries()


def require_proof(cost: Cost, relation: Relation | str) -> None:
    """Refuse a cost with a part that has no proof where labels alone are private."""
    if labels_only(relation) and not all(part.for_labels for part in entries_of(cost)):
        raise no_proof_for_labels(relation)


def cost_from_dict(data: Mapping[str, Any]) -> Cost:
    """Read what `to_dict` wrote.

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

    Examples
    --------
    >>> from hushfit.privacy import GaussianCost, cost_from_dict
    >>> cost_from_dict(GaussianCost(noise_multiplier=10.0, count=3).to_dict())
    GaussianCost(noise_multiplier=10.0, count=3)
    """
    kind = data.get("kind") if isinstance(data, Mapping) else None
    if not isinstance(kind, str) or kind not in Cost.kinds:
        raise InvalidArgument(
            f"cost kind {kind!r} is unknown. Known kinds: {', '.join(Cost.kinds)}."
        )
    return Cost.kinds[kind].from_dict(data)


def fixed_size_refused() -> UnsupportedRelation:
    """Error for a fixed-size batch under add-remove, with the reason."""
    return UnsupportedRelation(
        "a fixed-size batch has no proof under 'add-remove': when the record leaves the batch "
        "another one takes its place, which changes the sum by 2C while the noise multiplier "
        "counts C. Use adjacency='replace-one', or Poisson batches."
    )


def _require_replace_one(relation: Relation) -> None:
    if not replaces_one(relation):
        raise fixed_size_refused()


def unsampled_mu(mu: float, rate: float) -> float | None:
    """Mu of a sampled release that counts as unsampled, else None.

    It does at rate 1, or where mu is so small that sampling does not matter.
    """
    return mu if rate == 1 or mu < LEAST_MU else None


def _inverse(noise_multiplier: float) -> float:
    """mu = 1 / noise multiplier, infinite without noise."""
    return 1 / noise_multiplier if noise_multiplier > 0 else math.inf
