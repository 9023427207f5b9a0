"""Renyi curves of single releases, as functions of their parameters.

The moments below are known at integer orders. In between, (order - 1) times the divergence is the
logarithm of a moment, hence convex in the order, hence at most the chord between its neighbours; at
order 1 it is 0. Proofs: docs/proofs/{poisson,fixed_size,composition}.md.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import gammaln

from hushfit._typing import IntVector, Vector

# Below this epsilon the moment of a pure release is 1 up to rounding, and the bound of Bun and
# Steinke (2016) is as good.
_SMALL_PURE: Final = 1e-4


def gaussian_curve(orders: Vector, mu: float) -> Vector:
    """Renyi curve of a Gaussian release on all rows."""
    return orders * (mu * mu / 2)


def pure_curve(orders: Vector, epsilon: float) -> Vector:
    """Renyi curve of randomised response, the worst epsilon-private mechanism at every order."""
    if epsilon in (0.0, math.inf):
        return np.full_like(orders, epsilon)
    if epsilon < _SMALL_PURE:
        return np.minimum(epsilon, orders * (epsilon * epsilon / 2))
    log_likely = -math.log1p(math.exp(-epsilon))
    log_rare = log_likely - epsilon
    moment = np.logaddexp(
        orders * log_likely + (1 - orders) * log_rare, orders * log_rare + (1 - orders) * log_likely
    )
    return np.clip(moment / (orders - 1), 0.0, epsilon)


def tabulated_curve(orders: Vector, at: tuple[float, ...], values: tuple[float, ...]) -> Vector:
    """Tabulated values at known orders, chords of the log moment in between, infinity beyond."""
    known = np.array((1.0, *at))
    moments = np.array((0.0, *((o - 1) * v for o, v in zip(at, values, strict=True))))
    return chord(orders, known, moments) / (orders - 1)


def chord(orders: Vector, known: Vector, moments: Vector) -> Vector:
    """Piecewise linear interpolation without infinity times zero; infinite beyond the table."""
    right = np.searchsorted(known, orders)
    inside = right < len(known)
    right = np.minimum(right, len(known) - 1)
    left = np.maximum(right - 1, 0)
    weight = (orders - known[left]) / (known[right] - known[left])
    with np.errstate(invalid="ignore"):
        value = (1 - weight) * moments[left] + weight * moments[right]
    value = np.where(known[right] == orders, moments[right], value)
    return np.where(inside & ~np.isnan(value), value, math.inf)


def by_whole_orders(orders: Vector, log_moment: Callable[[int], float]) -> Vector:
    """Renyi curve at any order from log moments at integer orders."""
    whole = whole_orders(orders)
    return between_whole_orders(orders, whole, np.array([log_moment(order) for order in whole]))


def by_binomial_sums(
    orders: Vector, log_terms: Callable[[Vector], Vector], log_factor: float = 0.0
) -> Vector:
    """Renyi curve at any order from moments at integer orders that are binomial sums.

    ``log_terms`` takes every ``k`` and returns the logarithms of the terms that the binomial
    coefficients multiply; the whole sum has a factor to the power of the order.
    """
    whole = whole_orders(orders)
    order, k, log_binomials, starts = _binomials(whole)
    by_k = log_terms(np.arange(max(whole) + 1, dtype=np.float64))
    terms = log_binomials + order * log_factor + by_k[k]
    tops = np.maximum.reduceat(terms, starts)
    sizes = np.diff(np.append(starts, len(k)))
    sums = np.add.reduceat(np.exp(terms - np.repeat(tops, sizes)), starts)
    return between_whole_orders(orders, whole, tops + np.log(sums))


def whole_orders(orders: Vector) -> tuple[int, ...]:
    """The integers of at least 2 around some orders."""
    whole = np.unique(np.concatenate([np.floor(orders), np.ceil(orders)])).astype(int)
    return tuple(whole[whole >= 2].tolist())


def between_whole_orders(orders: Vector, whole: tuple[int, ...], moments: Vector) -> Vector:
    """Renyi curve by chords of the log moments at integer orders."""
    return chord(orders, np.array([1.0, *whole]), np.append(0.0, moments)) / (orders - 1)


# Calibration asks for the same orders over and over.
@lru_cache(maxsize=4)
def _binomials(whole: tuple[int, ...]) -> tuple[IntVector, IntVector, Vector, IntVector]:
    """Every order with every ``k`` from 0 to it, the logarithms of the binomial coefficients, and
    where each order begins.
    """
    sizes = np.add(whole, 1)
    starts = np.append(0, np.cumsum(sizes[:-1]))
    order = np.repeat(whole, sizes)
    k = np.arange(len(order)) - np.repeat(starts, sizes)
    return order, k, log_binomial(order, k), starts


def poisson_curve(orders: Vector, mu: float, rate: float) -> Vector:
    """Add-remove: binomial moment of (1-q) N(0) + q N(mu) against N(0), the worse direction."""
    if rate == 1 or mu * mu == math.inf:
        return gaussian_curve(orders, mu)
    log_absent = math.log1p(-rate)

    def log_terms(k: Vector) -> Vector:
        return k * (math.log(rate) - log_absent) + k * (k - 1) * (mu * mu / 2)

    return by_binomial_sums(orders, log_terms, log_absent)


def poisson_swap_curve(orders: Vector, mu: float, rate: float) -> Vector:
    """Replace-one: via the data set without the record (weak triangle inequality), or unsampled."""
    # Leaving the record out changes the sum by C, half of the sensitivity 2C that mu counts.
    first, second = 2 * orders, 2 * orders - 1
    both = poisson_curve(np.concatenate([first, second]), mu / 2, rate)
    triangle = (orders - 0.5) / (orders - 1) * both[: len(orders)] + both[len(orders) :]
    return np.minimum(triangle, gaussian_curve(orders, mu))


def fixed_size_curve(orders: Vector, mu: float, rate: float) -> Vector:
    """Replace-one: the subsampling bound of Wang, Balle and Kasiviswanathan, or unsampled."""
    if rate == 1 or mu * mu in (0.0, math.inf):
        return gaussian_curve(orders, mu)
    square = mu * mu
    # 4 (e^{r(2)} - 1) against 2 e^{r(2)}, with r(2) = mu^2.
    second = square + min(math.log(4) + math.log(-math.expm1(-square)), math.log(2))

    def log_terms(k: Vector) -> Vector:
        terms = math.log(2) + k * (k - 1) * (square / 2) + k * math.log(rate)
        terms[:3] = 0.0, -math.inf, second + 2 * math.log(rate)
        return terms

    return np.minimum(by_binomial_sums(orders, log_terms), gaussian_curve(orders, mu))


def log_binomial(order: int | IntVector, k: Vector | IntVector) -> Vector:
    return np.asarray(gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1))


def log_sum_exp(terms: Vector) -> float:
    """Log-sum-exp of finite terms; scipy's general version takes most of the time of a curve."""
    top = float(terms.max())
    return top + math.log(float(np.exp(terms - top).sum()))
