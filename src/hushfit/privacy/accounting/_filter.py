"""Privacy filters and odometers for adaptive composition. Proof: docs/proofs/filter.md.

Composition theorems take the noise of every release as fixed beforehand. Where it depends on
earlier releases, a *filter* decides before each release whether its cost still fits. An *odometer*
reports at any time what a run has cost so far.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, Protocol

import numpy as np
from scipy.special import erfinv, expit, log_ndtr, ndtri

from hushfit._typing import Vector
from hushfit.errors import BudgetExceeded, InvalidArgument
from hushfit.privacy import _check
from hushfit.privacy._relation import Relation
from hushfit.privacy.accounting._renyi import rdp_curve
from hushfit.privacy.costs import Cost, GaussianCost, PureCost, parts_of

FILTER_ORDERS: Final = tuple(
    map(float, (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512))
)
"""Renyi orders that a filter tracks, fixed before the run."""

ODOMETER_LEVELS: Final = tuple(2.0**k for k in range(-4, 7))
"""Epsilons that an odometer can report: 1/16 to 64."""


class Filter(Protocol):
    """Decides before a release whether it still fits, and records what was released."""

    def affords(self, cost: Cost) -> bool:
        """Whether a release of this cost may be made now."""

    def charge(self, cost: Cost) -> None:
        """Record a release before it is made; refuse it if it does not fit."""


def order_share(order: float) -> float:
    """Contribution of one order to delta, in units of ``exp((order - 1) (spent - epsilon))``."""
    return math.exp((order - 1) * math.log1p(-1 / order)) / order


def filter_orders(epsilon: float, delta: float) -> tuple[float, ...]:
    """Two integer orders near the best one for Gaussian releases: public, fixed before the run."""
    scale = 1 + 2 * math.log(1 / delta) / epsilon
    return tuple(sorted({float(max(2, round(scale * factor))) for factor in (0.5, 0.75)}))


class RdpFilter:
    r"""Filter for releases with known Renyi curves; the run is (epsilon, delta + lost)-private.

    A release is refused when it would exhaust **every** order :math:`a`, whose allowance is
    :math:`\epsilon - \log(S / \delta) / (a - 1)` with :math:`S = \sum_a \frac1a (1 -
    \frac1a)^{a-1}`. S accounts for the fact that which order survives depends on the answers; with
    one order nothing is lost.

    Parameters
    ----------
    epsilon : float
        Above 0, finite.
    delta : float
        Strictly between 0 and 1.
    relation : Relation or str
    orders : sequence of float, default=FILTER_ORDERS
        Each above 1, chosen before the run.
    lost : float, default=0.0
        Further delta, for releases with a failure probability (`ApproximateCost`).
    spent : iterable of Cost, default=()
        Costs of earlier releases, as recorded in a ledger.

    Examples
    --------
    >>> from hushfit.privacy import GaussianCost, RdpFilter
    >>> filter = RdpFilter(1.0, 1e-6, "replace-one")
    >>> filter.affords(GaussianCost(10.0)), filter.affords(GaussianCost(1.0))
    (True, False)
    """

    def __init__(
        self,
        epsilon: float,
        delta: float,
        relation: Relation | str,
        orders: Sequence[float] = FILTER_ORDERS,
        lost: float = 0.0,
        spent: Iterable[Cost] = (),
    ) -> None:
        self.epsilon, self.delta = (
            _check.finite(epsilon, "epsilon"),
            _check.probability(delta, "delta"),
        )
        self.relation = Relation.parse(relation)
        self._orders = _checked_orders(orders)
        share = math.fsum(order_share(order) for order in self._orders)
        self.allowances: Vector = self.epsilon - math.log(share / self.delta) / (
            np.array(self._orders) - 1
        )
        self._lost = _check.finite(lost, "lost")
        self._spent: Vector = np.zeros(len(self._orders))
        self._spent_lost = 0.0
        for cost in spent:
            self.charge(cost)

    @property
    def certified_orders(self) -> tuple[float, ...]:
        """Orders whose allowance is not exhausted: always at least one."""
        return tuple(
            order
            for order, left in zip(self._orders, self._spent <= self.allowances, strict=True)
            if left
        )

    def affords(self, cost: Cost) -> bool:
        """Whether the cost of this release fits the allowance of some order."""
        curve, lost = _curve_and_failure_probability(cost, self._orders, self.relation)
        return self._spent_lost + lost <= self._lost and bool(
            np.any(self._spent + curve <= self.allowances)
        )

    def charge(self, cost: Cost) -> None:
        """Record a release before it is made.

        Raises
        ------
        BudgetExceeded
            If it fits no order. Nothing is recorded then, and a cheaper release may still fit.
        """
        if not self.affords(cost):
            raise BudgetExceeded(
                f"This release would bring an adaptive run over its epsilon={self.epsilon:g} at "
                f"delta={self.delta:g}. Nothing was released. Use more noise, or stop here."
            )
        curve, lost = _curve_and_failure_probability(cost, self._orders, self.relation)
        self._spent = self._spent + curve
        self._spent_lost += lost


class GaussianFilter:
    """Filter for Gaussian and pure releases on all rows; the run is as private as one Gaussian.

    Adaptivity costs nothing here: Gaussian releases whose squared mu sum to that of one release are
    no worse than it, however each was chosen. A pure release counts as the Gaussian one that
    dominates it.

    Parameters
    ----------
    mu : float
        Sensitivity over noise scale of the one release, at least 0.

    Examples
    --------
    >>> from hushfit.privacy import GaussianCost, GaussianFilter
    >>> whole = GaussianFilter(mu=1.0)
    >>> whole.charge(GaussianCost(noise_multiplier=1.25))
    >>> whole.affords(GaussianCost(noise_multiplier=1.25))
    False
    >>> whole.affords(GaussianCost(noise_multiplier=2.0))
    True
    """

    def __init__(self, mu: float) -> None:
        self.mu = _check.non_negative(mu, "mu")
        self._squares: list[float] = []

    def affords(self, cost: Cost) -> bool:
        """Whether the squared mu still sum to at most that of the whole."""
        # The margin covers rounding: the sum is exact, its terms are not.
        return math.fsum((*self._squares, _mu_square(cost))) <= self.mu**2 * (1 - 1e-12)

    def charge(self, cost: Cost) -> None:
        """Record a release before it is made.

        Raises
        ------
        BudgetExceeded
            If it does not fit. Nothing is recorded then, and a cheaper release may still fit.
        """
        if not self.affords(cost):
            raise BudgetExceeded(
                f"This release would bring an adaptive run over its mu={self.mu:g}. Nothing was "
                "released. Use more noise, or stop here."
            )
        self._squares.append(_mu_square(cost))


class RdpOdometer:
    """Reports at any time an epsilon that covers an adaptive run so far, at one delta for all
    reports.

    Parameters
    ----------
    delta : float
        Strictly between 0 and 1, shared evenly among the levels.
    relation : Relation or str
    levels : sequence of float, default=ODOMETER_LEVELS
        Increasing epsilons; a report is one of them.
    orders : sequence of float, default=FILTER_ORDERS

    Examples
    --------
    >>> from hushfit.privacy import GaussianCost, RdpOdometer
    >>> odometer = RdpOdometer(delta=1e-6, relation="replace-one")
    >>> odometer.charge(GaussianCost(noise_multiplier=10.0))
    >>> odometer.epsilon
    1.0
    """

    def __init__(
        self,
        delta: float,
        relation: Relation | str,
        levels: Sequence[float] = ODOMETER_LEVELS,
        orders: Sequence[float] = FILTER_ORDERS,
    ) -> None:
        share = _check.probability(delta, "delta") / len(levels)
        self._filters = [RdpFilter(level, share, relation, orders) for level in sorted(levels)]

    def charge(self, cost: Cost) -> None:
        """Record a release. An odometer refuses nothing: levels that it exhausts are dropped."""
        remaining = []
        for one in self._filters:
            if one.affords(cost):
                one.charge(cost)
                remaining.append(one)
        self._filters = remaining

    @property
    def epsilon(self) -> float:
        """Smallest level that covers the run so far, or infinity beyond the last one."""
        return self._filters[0].epsilon if self._filters else math.inf


def gaussian_mu_of_pure(epsilon: float) -> float:
    """Mu of the Gaussian release that dominates every epsilon-private one.

    It is tight: the trade-off curve of randomised response touches that of the Gaussian.
    """
    if epsilon < 1:
        # The same formula without a difference from 1/2, which would cancel for small epsilon.
        return float(2 * math.sqrt(2) * erfinv(math.tanh(epsilon / 2)))
    return float(-2 * ndtri(expit(-epsilon)))


def pure_epsilon_of_gaussian(mu: float) -> float:
    """Epsilon whose pure releases a Gaussian of that mu dominates; inverse of
    `gaussian_mu_of_pure`.
    """
    return float(log_ndtr(mu / 2) - log_ndtr(-mu / 2))


def _mu_square(cost: Cost) -> float:
    """Square of the mu of a Gaussian release that dominates a cost."""
    total = 0.0
    for part in parts_of(cost):
        if not isinstance(part, GaussianCost | PureCost):
            raise InvalidArgument(
                f"A Gaussian filter cannot account for {type(part).__name__}: it takes Gaussian "
                "and pure releases on all rows. Use RdpFilter."
            )
        mu = part.mu if isinstance(part, GaussianCost) else gaussian_mu_of_pure(part.epsilon)
        total += part.count * mu * mu
    return total


@lru_cache(maxsize=256)
def _curve_and_failure_probability(
    cost: Cost, orders: tuple[float, ...], relation: Relation
) -> tuple[Vector, float]:
    """Renyi curve of a cost at the orders of a filter, and its failure probability."""
    lost = math.fsum(part.count * part.lost for part in parts_of(cost))
    return rdp_curve(cost, np.array(orders), relation), lost


def _checked_orders(orders: Sequence[float]) -> tuple[float, ...]:
    checked = tuple(_check.finite(order, "order") for order in orders)
    if not checked or min(checked) <= 1:
        raise InvalidArgument(
            f"orders={tuple(orders)} must be above 1 and not empty. Use FILTER_ORDERS."
        )
    return checked
