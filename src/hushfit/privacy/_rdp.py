"""Renyi curves of every cost, and their conversion. Proofs: docs/proofs/{poisson,fixed_size,objective,composition}.md.

The moments below are known at whole orders. In between, (order - 1) times the divergence is the logarithm of a moment,
hence convex in the order, hence at most the chord between its neighbours; at order 1 it is 0.
"""

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from scipy.special import gammaln

from hushfit._typing import Vector
from hushfit.errors import UnsupportedRelation
from hushfit.privacy._cost import (
    RENYI_ORDERS,
    Cost,
    FixedSizeGaussianCost,
    GaussianCost,
    PoissonGaussianCost,
    PureCost,
    RdpCost,
    SimpleCost,
    parts_of,
)
from hushfit.privacy._objective_cost import ObjectiveCost, objective_curve
from hushfit.privacy._paired_cost import PairedCost
from hushfit.privacy._relation import Relation, replaces_one

# Below it the moment of a pure release is 1 but for rounding, and a bound by Bun and Steinke (2016) is as good.
_SMALL_PURE: Final = 1e-4


def rdp_curve(cost: Cost, orders: Vector, relation: Relation | str) -> Vector:
    """Upper bound on the Renyi divergence of a cost at some orders.

    Parameters
    ----------
    cost : Cost
        Of any kind.
    orders : ndarray
        Each above 1.
    relation : Relation or str
        Which data sets are neighbours.

    Returns
    -------
    ndarray
        One bound per order; infinity where none is known.
    """
    relation, total = Relation.parse(relation), np.zeros_like(orders)
    for part in parts_of(cost):
        total = total + part.count * _one(part, orders, relation)
    return total


def rdp_epsilon(cost: Cost, delta: float, relation: Relation | str) -> float:
    """Epsilon of a cost through its Renyi curve.

    Parameters
    ----------
    cost : Cost
        Of any kind.
    delta : float
        Strictly between 0 and 1.
    relation : Relation or str
        Which data sets are neighbours.

    Returns
    -------
    float
        ``min over orders a of r(a) + log(1 - 1/a) - log(delta a) / (a - 1)``, or 0 if that is negative.
    """
    left = delta - _lost(cost)
    if left <= 0:
        return math.inf
    orders = _orders(cost)
    curve = rdp_curve(cost, orders, relation)
    epsilon = curve + np.log1p(-1 / orders) - (math.log(left) + np.log(orders)) / (orders - 1)
    return max(0.0, float(epsilon.min()))


def rdp_delta(cost: Cost, epsilon: float, relation: Relation | str) -> float:
    """Delta of a cost through its Renyi curve: `rdp_epsilon` solved for delta.

    Parameters
    ----------
    cost : Cost
        Of any kind.
    epsilon : float
        At least 0.
    relation : Relation or str
        Which data sets are neighbours.

    Returns
    -------
    float
        At most 1.
    """
    return float(rdp_profile(cost, np.array([epsilon]), relation)[0])


def rdp_profile(cost: Cost, epsilons: Vector, relation: Relation | str) -> Vector:
    """`rdp_delta` for many epsilons."""
    orders = _orders(cost)
    curve = rdp_curve(cost, orders, relation)
    log_delta = (orders - 1) * (curve + np.log1p(-1 / orders) - epsilons[:, None]) - np.log(orders)
    profile: Vector = np.minimum(1.0, np.exp(np.minimum(0.0, log_delta.min(axis=1))) + _lost(cost))
    return profile


def _lost(cost: Cost) -> float:
    """Probability that some release keeps no promise; the curve holds for what is left."""
    return math.fsum(part.count * part.lost for part in parts_of(cost) if isinstance(part, PairedCost))


def fixed_size_refused() -> UnsupportedRelation:
    """Why a fixed-size batch has no add-remove statement here."""
    return UnsupportedRelation(
        "a fixed-size batch has no proof under 'add-remove': when the record leaves the batch another one takes its "
        "place, which moves the sum by 2C while the multiplier counts C. Use adjacency='replace-one', or Poisson batches."
    )


def _orders(cost: Cost) -> Vector:
    """Those of the tabulated parts, else the common grid: off the table a bound is only a chord."""
    given = {order for part in parts_of(cost) if isinstance(part, RdpCost) for order in part.orders}
    return np.array(sorted(given) or RENYI_ORDERS)


def _one(part: SimpleCost | PairedCost, orders: Vector, relation: Relation) -> Vector:
    """Curve of a single release."""
    match part:
        case GaussianCost():
            return _gaussian(orders, part.mu)
        case PoissonGaussianCost() if not replaces_one(relation):
            return _poisson(orders, part.mu, part.rate)
        case PoissonGaussianCost():
            return _poisson_swap(orders, part.mu, part.rate)
        case FixedSizeGaussianCost():
            if not replaces_one(relation):
                raise fixed_size_refused()
            return _fixed_size(orders, part.mu, part.rate)
        case PureCost():
            return _pure(orders, part.epsilon)
        case RdpCost():
            return _tabulated(orders, part)
        case ObjectiveCost():
            return objective_curve(orders, part)
        case PairedCost():
            return part.curve(orders, relation)


def _gaussian(orders: Vector, mu: float) -> Vector:
    return orders * (mu * mu / 2)


def _pure(orders: Vector, epsilon: float) -> Vector:
    """Randomised response is the worst epsilon-private mechanism at every order."""
    if epsilon in (0.0, math.inf):
        return np.full_like(orders, epsilon)
    if epsilon < _SMALL_PURE:
        return np.minimum(epsilon, orders * (epsilon * epsilon / 2))
    log_likely = -math.log1p(math.exp(-epsilon))
    log_rare = log_likely - epsilon
    moment = np.logaddexp(orders * log_likely + (1 - orders) * log_rare, orders * log_rare + (1 - orders) * log_likely)
    return np.clip(moment / (orders - 1), 0.0, epsilon)


def _tabulated(orders: Vector, part: RdpCost) -> Vector:
    """The table where it has the order, a chord of the log moment in between, nothing beyond."""
    known = np.array((1.0, *part.orders))
    moments = np.array((0.0, *((o - 1) * v for o, v in zip(part.orders, part.values, strict=True))))
    return _chord(orders, known, moments) / (orders - 1)


def _chord(orders: Vector, known: Vector, moments: Vector) -> Vector:
    """Piecewise linear interpolation that never multiplies infinity by zero; infinite beyond the last known order."""
    right = np.searchsorted(known, orders)
    inside = right < len(known)
    right = np.minimum(right, len(known) - 1)
    left = np.maximum(right - 1, 0)
    weight = (orders - known[left]) / (known[right] - known[left])
    with np.errstate(invalid="ignore"):
        value = (1 - weight) * moments[left] + weight * moments[right]
    value = np.where(known[right] == orders, moments[right], value)
    return np.where(inside & ~np.isnan(value), value, math.inf)


def _by_whole_orders(orders: Vector, log_moment: Callable[[int], float]) -> Vector:
    """Curve at any order from log moments at whole orders."""
    whole = np.unique(np.concatenate([np.floor(orders), np.ceil(orders)]))
    whole = whole[whole >= 2]
    moments = np.array([log_moment(int(order)) for order in whole])
    return _chord(orders, np.append(1.0, whole), np.append(0.0, moments)) / (orders - 1)


def _poisson(orders: Vector, mu: float, rate: float) -> Vector:
    """Add-remove: the binomial moment of ((1-q) N(0) + q N(mu)) against N(0), the worse of the two directions."""
    if rate == 1 or mu * mu == math.inf:
        return _gaussian(orders, mu)

    def log_moment(order: int) -> float:
        k = np.arange(order + 1, dtype=np.float64)
        terms = (order - k) * math.log1p(-rate) + k * math.log(rate) + k * (k - 1) * (mu * mu / 2)
        return _log_sum_exp(_log_binomial(order, k) + terms)

    return _by_whole_orders(orders, log_moment)


def _poisson_swap(orders: Vector, mu: float, rate: float) -> Vector:
    """Replace-one: through the data set without the record, by the weak triangle inequality; or without sampling."""
    # Leaving the record out moves the sum by C, half of the sensitivity 2C that mu counts.
    first, second = 2 * orders, 2 * orders - 1
    both = _poisson(np.concatenate([first, second]), mu / 2, rate)
    triangle = (orders - 0.5) / (orders - 1) * both[: len(orders)] + both[len(orders) :]
    return np.minimum(triangle, _gaussian(orders, mu))


def _fixed_size(orders: Vector, mu: float, rate: float) -> Vector:
    """Replace-one: the subsampling bound of Wang, Balle and Kasiviswanathan; or without sampling."""
    if rate == 1 or mu * mu in (0.0, math.inf):
        return _gaussian(orders, mu)
    square = mu * mu
    # 4 (e^{r(2)} - 1) against 2 e^{r(2)}, with r(2) = mu^2.
    second = square + min(math.log(4) + math.log(-math.expm1(-square)), math.log(2))

    def log_moment(order: int) -> float:
        j = np.arange(2, order + 1, dtype=np.float64)
        rest = math.log(2) + j * (j - 1) * (square / 2)
        rest[0] = second
        return float(np.logaddexp(0.0, _log_sum_exp(_log_binomial(order, j) + j * math.log(rate) + rest)))

    return np.minimum(_by_whole_orders(orders, log_moment), _gaussian(orders, mu))


def _log_binomial(order: int, k: Vector) -> Vector:
    return np.asarray(gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1))


def _log_sum_exp(terms: Vector) -> float:
    """For finite terms; scipy's general version takes most of the time of a curve."""
    top = float(terms.max())
    return top + math.log(float(np.exp(terms - top).sum()))
