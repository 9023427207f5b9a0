"""Cost of a noisy sum and above-threshold gates on the same secret Poisson batch.

The answers depend on each other through the batch, so they are composed first and sampled
afterwards; the other order would understate the privacy loss. Proof: docs/proofs/gated.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
from scipy.special import gammaln, log_ndtr

from hushfit._typing import Vector
from hushfit.privacy import _check
from hushfit.privacy._gaussian import gaussian_profile
from hushfit.privacy._relation import Relation, replaces_one
from hushfit.privacy.costs._above_threshold_cost import AboveThresholdCost
from hushfit.privacy.costs._curves import by_whole_orders, gaussian_curve, log_binomial, log_sum_exp
from hushfit.privacy.costs._paired_cost import PairedCost
from hushfit.privacy.costs._release_cost import Directions, Pair, Profile

# Gaussian tails are cut at 9.5 standard deviations (1e-21): the cut mass counts as infinite loss.
_TAIL_CUTOFF: Final = 9.5
# Spacing of the table of a swap pair, in standard deviations. It only chooses where to evaluate a
# bound that holds everywhere.
_SPACING: Final = 2e-3
_MAX_POINTS: Final = 200_001
# Beyond this order the general amplification bound is not evaluated.
_MAX_AMPLIFIED_ORDER: Final = 256


@dataclass(frozen=True)
class GatedCost(PairedCost, kind="gated"):
    """Gaussian noise on a sum over a Poisson batch, and above-threshold gates on the same batch.

    Each may depend on the answers before it. Without the sum (``noise_multiplier=inf``) only the
    gates use the batch.

    Parameters
    ----------
    noise_multiplier : float
        Noise scale over L2 sensitivity of the sum under the relation.
    rate : float
        Probability that a record is in the batch. The batch is fresh and secret, and its size never
        divides the sum.
    gate_noise : {"laplace", "gaussian"}
    threshold_multiplier, query_multiplier : float
        Noise scales over the sensitivity of a query under the relation. Under replace-one every
        record must be bounded by half of each sensitivity, not merely pairs by the whole.
    queries : int
        Largest number of queries of one gate.
    gates : int, default=1
        Number of gates that use the batch.
    count : int, default=1
        Number of such batches.

    Examples
    --------
    >>> from hushfit.privacy import GatedCost, epsilon_of
    >>> cost = GatedCost(5.0, 0.1, "laplace", 10.0, 20.0, queries=8)
    >>> round(epsilon_of(cost, 1e-6, "replace-one"), 3)
    0.089
    """

    noise_multiplier: float
    rate: float
    gate_noise: str
    threshold_multiplier: float
    query_multiplier: float
    queries: int
    gates: int = 1

    def __post_init__(self) -> None:
        _check.store(
            self,
            noise_multiplier=_check.non_negative(self.noise_multiplier, "noise_multiplier"),
            rate=_check.fraction(self.rate, "rate"),
            gates=_check.count(self.gates, "gates"),
            count=_check.count(self.count),
        )
        gate = self.gate
        _check.store(
            self,
            threshold_multiplier=gate.threshold_multiplier,
            query_multiplier=gate.query_multiplier,
            queries=gate.queries,
        )

    @property
    def gate(self) -> AboveThresholdCost:
        """A single gate, over all records."""
        return AboveThresholdCost(
            self.gate_noise, self.threshold_multiplier, self.query_multiplier, self.queries
        )

    @property
    def mu(self) -> float:
        """Sensitivity over noise scale of the sum."""
        return 1 / self.noise_multiplier if self.noise_multiplier > 0 else math.inf

    @property
    def reveals_all(self) -> bool:
        return self.noise_multiplier < 1e-3 or self.gate.reveals_all

    def directions(self, relation: Relation) -> Directions:
        if replaces_one(relation):
            return Directions(_swap_pair(self._inner(0.5), self.rate, self.count))
        return Directions(*_sampled_pairs(self._inner(1.0), self.rate, self.count))

    def curve(self, orders: Vector, relation: Relation) -> Vector:
        if self.reveals_all:
            return np.full_like(orders, math.inf)
        unsampled = self._unsampled(orders, 1.0)
        if self.rate == 1:
            return unsampled
        if not replaces_one(relation):
            return np.minimum(self._sampled(orders, 1.0), unsampled)
        # Through the data set without the record, which changes every answer by half as much.
        both = self._sampled(np.concatenate([2 * orders, 2 * orders - 1]), 0.5)
        triangle = (orders - 0.5) / (orders - 1) * both[: len(orders)] + both[len(orders) :]
        return np.minimum(triangle, unsampled)

    def _inner(self, part: float) -> "_Inner":
        """Dominating pair of a batch that contains the record.

        The record changes every answer by ``part`` of its sensitivity.
        """
        mu, gate = part * self.mu, self.gate
        if self.gate_noise == "gaussian":
            return _Inner(math.hypot(mu, part * math.sqrt(self.gates) * gate.mu), 0.0, 0)
        return _Inner(mu, part * gate.epsilon, self.gates)

    def _unsampled(self, orders: Vector, part: float) -> Vector:
        gate = self._rescaled_gate(part)
        # The recursion is slow and hardly improves on the closed forms for Laplace noise.
        of_gate = (
            gate.closed_curve(orders)
            if self.gate_noise == "laplace"
            else gate.curve(orders, Relation.ADD_REMOVE)
        )
        return gaussian_curve(orders, part * self.mu) + self.gates * of_gate

    def _rescaled_gate(self, part: float) -> AboveThresholdCost:
        return AboveThresholdCost(
            self.gate_noise,
            self.threshold_multiplier / part,
            self.query_multiplier / part,
            self.queries,
        )

    def _sampled(self, orders: Vector, part: float) -> Vector:
        """Add-remove: moments of the pair, or the general bound from the mechanism's curve."""
        by_pair = by_whole_orders(
            orders, lambda order: _mixed_moment(order, self.rate, self._inner(part))
        )
        if self.gate_noise == "laplace":
            return by_pair
        return np.minimum(
            by_pair, amplified(orders, self.rate, lambda whole: self._unsampled(whole, part))
        )


@dataclass(frozen=True)
class _Inner:
    """N(mu) against N(0) together with ``gates`` randomised responses: a symmetric pair.

    ``losses`` and ``weights`` are those of the responses alone, under the first distribution.
    """

    mu: float
    epsilon: float
    gates: int

    @cached_property
    def losses(self) -> Vector:
        return np.asarray(
            (self.gates - 2 * np.arange(self.gates + 1)) * self.epsilon, dtype=np.float64
        )

    @cached_property
    def log_weights(self) -> Vector:
        j, gates = np.arange(self.gates + 1), self.gates
        log_binomial = gammaln(gates + 1) - gammaln(j + 1) - gammaln(gates - j + 1)
        log_likely = -math.log1p(math.exp(-self.epsilon))
        return np.asarray(log_binomial + gates * log_likely - j * self.epsilon)

    @property
    def reach(self) -> float:
        """Privacy loss beyond which the probability is negligible."""
        return self.mu * self.mu / 2 + _TAIL_CUTOFF * self.mu + self.gates * self.epsilon

    def profile(self, epsilon: Vector) -> Vector:
        """Hockey-stick divergence, in either direction."""
        parts = zip(np.exp(self.log_weights).tolist(), self.losses.tolist(), strict=True)
        return np.asarray(
            sum(weight * gaussian_profile(epsilon - loss, self.mu) for weight, loss in parts)
        )

    def log_moment(self, k: Vector) -> Vector:
        """log E[ratio^k] under the second distribution."""
        log_likely = -math.log1p(math.exp(-self.epsilon))
        one = np.logaddexp(k * self.epsilon, (1 - k) * self.epsilon) + log_likely - self.epsilon
        one = one if self.epsilon > 0 else np.zeros_like(k)
        return np.asarray(k * (k - 1) * (self.mu**2 / 2) + self.gates * one)

    def loss_grid(self) -> tuple[Vector, Vector]:
        """Losses with their probabilities under the first distribution, on a coarse grid."""
        x = np.linspace(-8.0, 8.0, 161)
        density = np.exp(-0.5 * x**2)
        losses = np.add.outer(self.mu * x + self.mu**2 / 2, self.losses)
        weights = np.multiply.outer(density / density.sum(), np.exp(self.log_weights))
        return losses.ravel(), weights.ravel()

    # Tail probabilities of the loss under both distributions, as logarithms.

    def log_below(self, s: Vector, first: bool) -> Vector:
        """log P(loss <= s) under the first or the second distribution."""
        return self._log_tail(s, first, 1.0)

    def log_above(self, s: Vector, first: bool) -> Vector:
        """log P(loss > s)."""
        return self._log_tail(s, first, -1.0)

    def _log_tail(self, s: Vector, first: bool, sign: float) -> Vector:
        centre, weights = (
            (1.0, self.log_weights) if first else (-1.0, self.log_weights - self.losses)
        )
        total = np.full_like(s, -math.inf)
        for weight, loss in zip(weights.tolist(), self.losses.tolist(), strict=True):
            total = np.logaddexp(
                total, weight + log_ndtr(sign * ((s - loss) / self.mu - centre * self.mu / 2))
            )
        return total


def _mixed_loss(loss: Vector, rate: float) -> Vector:
    """log(1 - q + q e^loss)."""
    if rate == 1:
        return loss
    return np.asarray(np.logaddexp(math.log1p(-rate), math.log(rate) + loss))


def _mixed_moment(order: int, rate: float, inner: _Inner) -> float:
    """log E[(1 - q + q ratio)^order] under the second distribution, for an integer order."""
    k = np.arange(order + 1, dtype=np.float64)
    terms = (order - k) * math.log1p(-rate) + k * math.log(rate) + inner.log_moment(k)
    return log_sum_exp(log_binomial(order, k) + terms)


def amplified(orders: Vector, rate: float, curve: Callable[[Vector], Vector]) -> Vector:
    """Add-remove Renyi curve of any mechanism on a Poisson batch, from its own curve.

    The bound is that of Zhu and Wang (2019), with their factor 3.

    Parameters
    ----------
    orders : ndarray
    rate : float
    curve : callable
        The mechanism's own curve, at integer orders.

    Returns
    -------
    ndarray
        Infinite beyond the order 256.
    """
    whole = np.arange(2, _MAX_AMPLIFIED_ORDER + 1, dtype=np.float64)
    own = np.concatenate([np.zeros(2), (whole - 1) * curve(whole)])

    def log_moment(order: int) -> float:
        if order > _MAX_AMPLIFIED_ORDER:
            return math.inf
        j = np.arange(2, order + 1, dtype=np.float64)
        terms = (
            log_binomial(order, j)
            + (order - j) * math.log1p(-rate)
            + j * math.log(rate)
            + own[2 : order + 1]
        )
        terms[1:] += math.log(3)
        first = (order - 1) * math.log1p(-rate) + math.log1p((order - 1) * rate)
        return math.inf if np.isinf(terms).any() else float(np.logaddexp(first, log_sum_exp(terms)))

    return by_whole_orders(orders, log_moment)


# Add-remove: a mixture against one of its components


def _sampled_pairs(inner: _Inner, rate: float, count: int) -> tuple[Pair, Pair]:
    losses, weights = _mixture_losses(inner, rate)
    low, high = _mixed_loss(np.array([-inner.reach, inner.reach]), rate).tolist()
    return (
        Pair(lambda e: removal_profile(e, inner.profile, rate), low, high, losses, weights, count),
        Pair(
            lambda e: addition_profile(e, inner.profile, rate), -high, -low, -losses, weights, count
        ),
    )


def _mixture_losses(inner: _Inner, rate: float) -> tuple[Vector, Vector]:
    """Losses of (1-q) Q + q P against Q, with their probabilities under the mixture."""
    losses, weights = inner.loss_grid()
    # The second distribution weights a loss by e^-loss, and is the mirror image of the first.
    both = np.concatenate([losses, -losses]), np.concatenate([rate * weights, (1 - rate) * weights])
    return _mixed_loss(both[0], rate), both[1]


def removal_profile(epsilon: Vector, inner: Profile, rate: float) -> Vector:
    """Hockey-stick divergence of (1-q) Q + q P from Q, given that of P from Q."""
    above, below = np.maximum(epsilon, 0.0), np.minimum(epsilon, 0.0)
    inside = np.expm1(below) > -rate
    tilt = above + np.log1p(-np.expm1(-above) * (1 - rate) / rate)
    tilt[inside] += np.log1p(np.expm1(below[inside]) / rate)
    return np.where(inside, rate * inner(tilt), -np.expm1(below))


def addition_profile(epsilon: Vector, inner: Profile, rate: float) -> Vector:
    """Hockey-stick divergence of Q from (1-q) Q + q P, given that of the symmetric pair P, Q."""
    capped = np.minimum(epsilon, 50.0)
    left = rate * np.exp(capped) - np.expm1(capped)
    inside = left > 0
    delta = np.zeros_like(epsilon)
    delta[inside] = left[inside] * inner(epsilon[inside] + math.log(rate) - np.log(left[inside]))
    return delta


# Replace-one: two mixtures whose likelihood ratios to the data set without the record are as
# opposed as possible


def _swap_pair(inner: _Inner, rate: float, count: int) -> Pair:
    losses, weights = _mixture_losses(inner, rate)
    high, profile = _swap(inner, rate)
    return Pair(profile, -high, high, 2 * losses, weights, count)


@lru_cache(maxsize=32)
def _swap(inner: _Inner, rate: float) -> tuple[float, Profile]:
    """Largest loss and profile of the swap pair."""
    if inner.mu == 0:
        return _discrete_swap(inner, rate)
    table = _SwapTable.of(inner)
    if table is None:
        # The table would be too large. No pair is worse than the unsampled one of twice the loss
        # (joint convexity).
        whole = _Inner(2 * inner.mu, 2 * inner.epsilon, inner.gates)
        return whole.reach, whole.profile
    return table.high(rate), lambda epsilon: _symmetric(
        epsilon, table.profile(np.abs(epsilon), rate)
    )


@dataclass(frozen=True, eq=False)
class _SwapTable:
    """Levels ``s`` of the loss, and the loss at the mirrored quantile of each.

    The mirrored quantile has as much probability below it as there is above ``s``.
    """

    inner: _Inner
    s: Vector
    mirrored: Vector

    @classmethod
    def of(cls, inner: _Inner) -> "_SwapTable | None":
        mu, widest = inner.mu, inner.gates * inner.epsilon
        furthest = math.sqrt((mu + _TAIL_CUTOFF) ** 2 + 2 * widest + 2 * inner.gates) + 0.5
        count = math.ceil((inner.reach + mu * furthest + mu * mu / 2 + widest) / (_SPACING * mu))
        if count > _MAX_POINTS:
            return None
        s = np.linspace(-mu * furthest - mu * mu / 2 - widest, inner.reach, count)
        log_above = inner.log_above(s, first=False)
        log_below = inner.log_below(s, first=False)
        upper = log_above <= math.log(0.5) + 1e-9  # the lower half is the mirror image
        return cls(inner, s[upper], np.interp(log_above[upper], log_below, s))

    def losses(self, rate: float) -> Vector:
        """Loss of the swap pair at each level."""
        return _mixed_loss(self.s, rate) - _mixed_loss(self.mirrored, rate)

    def high(self, rate: float) -> float:
        return float(self.losses(rate)[-1])

    def profile(self, epsilon: Vector, rate: float) -> Vector:
        """Upper bound for epsilon >= 0.

        It is the bound of the proof, at and next to the split where the table indicates it is
        tight.
        """
        level = np.interp(epsilon, self.losses(rate), self.s)
        nearby = (-2.0, -0.5, 0.0, 0.5, 2.0)
        return np.asarray(
            np.min(
                [self._split(epsilon, level + k * (self.s[1] - self.s[0]), rate) for k in nearby],
                axis=0,
            )
        )

    def _split(self, epsilon: Vector, level: Vector, rate: float) -> Vector:
        """q E(X - d)_+ + q E(d - c - e^epsilon X)_+, valid for every d.

        Here d = e^level, or the smallest d above c.
        """
        log_c = np.full_like(epsilon, -math.inf)
        if rate < 1:
            some = epsilon > 0
            # log of (e^epsilon - 1) (1 - q) / q
            log_c[some] = (
                epsilon[some]
                + np.log(-np.expm1(-epsilon[some]))
                + math.log1p(-rate)
                - math.log(rate)
            )
        log_d = np.maximum(level, log_c + 1e-9)
        log_rest = log_d + np.log(-np.expm1(np.minimum(log_c - log_d, -1e-10)))
        return np.asarray(
            rate
            * (
                self.inner.profile(log_d)
                + np.exp(log_rest) * self.inner.profile(epsilon - log_rest)
            )
        )


def _discrete_swap(inner: _Inner, rate: float) -> tuple[float, Profile]:
    """Swap pair without Gaussian noise: the ratio and its mirrored quantile have few values."""
    order = np.argsort(inner.losses)
    losses, weights = inner.losses[order], np.exp((inner.log_weights - inner.losses)[order])
    ends = np.cumsum(weights / weights.sum())
    cuts = np.unique(np.concatenate([[0.0], ends, 1 - ends, [1.0]]).clip(0.0, 1.0))
    middle, width = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts)
    last = len(losses) - 1
    here = losses[np.minimum(np.searchsorted(ends, middle), last)]
    there = losses[np.minimum(np.searchsorted(ends, 1 - middle), last)]
    one, other = np.exp(_mixed_loss(here, rate)), np.exp(_mixed_loss(there, rate))

    def profile(epsilon: Vector) -> Vector:
        size = np.minimum(np.abs(epsilon), 700.0)
        at_size = sum(
            w * np.maximum(a - np.exp(size) * b, 0.0)
            for w, a, b in zip(width, one, other, strict=True)
        )
        return _symmetric(epsilon, np.asarray(at_size))

    return float(np.log(one / other).max()), profile


def _symmetric(epsilon: Vector, at_size: Vector) -> Vector:
    """Extend a profile from epsilon >= 0 to all epsilon, for a pair in either order."""
    size = np.abs(epsilon)
    return np.where(epsilon >= 0, at_size, -np.expm1(-size) + np.exp(-size) * at_size)
