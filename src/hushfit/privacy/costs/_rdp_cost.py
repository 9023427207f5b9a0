"""A release known by its Renyi curve alone. Proof: docs/proofs/composition.md."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import _check
from hushfit.privacy._relation import Relation
from hushfit.privacy.costs._curves import tabulated_curve
from hushfit.privacy.costs._release_cost import ReleaseCost


def _order_grid() -> tuple[float, ...]:
    """Grid of Renyi orders: dense where the optimum changes fast, geometric where it does not."""
    low = 1 + np.geomspace(1 / 64, 1, 13)
    grid = np.concatenate(
        [low, np.arange(2, 24, 0.25), np.arange(24, 64), np.round(np.geomspace(64, 8192, 64))]
    )
    return tuple(float(order) for order in np.unique(grid))


RENYI_ORDERS: Final = _order_grid()
"""Orders at which Renyi curves are tabulated: 1.016 to 8192."""


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
