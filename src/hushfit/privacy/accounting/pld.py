"""Privacy loss distributions of whole costs, and the hockey-stick profiles of dominating pairs, in
units where *mu = sensitivity / noise scale*.

Proofs: docs/proofs/{gaussian,poisson,fixed_size,mixture,composition}.md.
"""

import math
from functools import lru_cache, reduce
from typing import Final

import numpy as np
from scipy.special import log_ndtr, ndtr

from hushfit._typing import Vector
from hushfit.privacy._gaussian import gaussian_profile
from hushfit.privacy._relation import Relation, exchanges
from hushfit.privacy.accounting._loss_distribution import LossDistribution
from hushfit.privacy.accounting._normal_form import NormalForm
from hushfit.privacy.costs import BY_NAME, Directions, Pair

# Convolution by FFT has an error of about 1e-16 of the total, and raising the transform to the T-th
# power multiplies it by T. These allowances, ten times the largest error found between 1e4 and 1e7
# steps, are added to every delta.
ROUNDING: Final = 1e-13
ROUNDING_PER_STEP: Final = 1e-15
# Gaussian tails are cut at 9.5 standard deviations (1e-21): the cut mass counts as infinite loss.
_TAIL_CUTOFF: Final = 9.5
# Share by which discretisation may inflate the variance of the total loss; noise grows by half of
# it.
_INFLATION: Final = 1e-3
# Widest bin, as a share of the standard deviation of the total loss.
_RESOLUTION: Final = 0.02
_MAX_BINS: Final = 2_000_000
# Above this mu the Poisson swap pair loses digits; its unsampled bound is used instead.
_MAX_SWAP_MU: Final = 40.0


def pld_delta(form: NormalForm, epsilon: float, relation: Relation) -> float:
    """Delta at epsilon >= 0 by composing privacy loss distributions."""
    if form.reveals_all:
        return 1.0
    return float(pld_profile(form, np.array([epsilon]), relation)[0])


def pld_profile(form: NormalForm, epsilons: Vector, relation: Relation) -> Vector:
    """`pld_delta` for many increasing epsilons."""
    if form.reveals_all:
        return np.ones_like(epsilons)
    found = np.array(
        [
            max((losses.delta(epsilon) for losses in _composed(form, relation)), default=0.0)
            for epsilon in epsilons.tolist()
        ]
    )
    profile: Vector = np.minimum(
        1.0, form.lost + (1 - form.lost) * np.maximum(found, 0.0) + _allowance(form, relation)
    )
    return profile


def pld_epsilon(form: NormalForm, delta: float, relation: Relation) -> float:
    """Epsilon at delta by composing privacy loss distributions.

    Infinite where delta is not well above the rounding error.
    """
    allowance = _allowance(form, relation)
    delta_without_failure = (delta - form.lost) / (1 - form.lost)
    if form.reveals_all or delta_without_failure <= 10 * allowance:
        return math.inf
    target = delta_without_failure - allowance
    return max((losses.epsilon(target) for losses in _composed(form, relation)), default=0.0)


def is_resolved(form: NormalForm, epsilon: float, delta: float, relation: Relation) -> bool:
    """Whether a delta found by convolution is so far above the rounding error that no Renyi curve
    is needed beside it.

    Above the largest loss delta is the error of the grid alone, however large.
    """
    largest = sum(d.remove.count * d.remove.high for d in _directions(form, relation))
    return epsilon < largest and delta - form.lost > 1e3 * _allowance(form, relation)


def _allowance(form: NormalForm, relation: Relation) -> float:
    """Bound on the rounding error in delta."""
    steps = (
        0
        if form.reveals_all
        else sum(direction.remove.count for direction in _directions(form, relation))
    )
    return ROUNDING + ROUNDING_PER_STEP * steps


def rough_mu(form: NormalForm, relation: Relation) -> float:
    """Square root of the second moment of the total loss.

    This is mu of the Gaussian mechanism that it resembles, as a first guess: no guarantee.
    """
    pairs = [d.remove for d in _directions(form, relation)]
    return math.sqrt(sum(pair.count * float(pair.weights @ pair.losses**2) for pair in pairs))


@lru_cache(maxsize=16)
def _composed(form: NormalForm, relation: Relation) -> tuple[LossDistribution, ...]:
    """Losses of the whole cost, rounded to the pessimistic side: one distribution for each
    direction, none if there is nothing to compose.
    """
    directions = _directions(form, relation)
    if not directions:
        return ()
    removing = [direction.remove for direction in directions]
    adding = [direction.add or direction.remove for direction in directions]
    interval = _interval(removing)
    return tuple(
        reduce(
            LossDistribution.plus,
            (LossDistribution.dominating(pair, interval).repeated(pair.count) for pair in pairs),
        )
        for pairs in ([removing] if adding == removing else [removing, adding])
    )


def _interval(pairs: list[Pair]) -> float:
    """Widest grid interval whose discretisation error is a small share of the total variance.

    An interval h adds at most min(|loss| h, h^2/4) of variance per step.
    """
    second = sum(pair.count * float(pair.weights @ pair.losses**2) for pair in pairs)

    def rounding(h: float) -> float:
        one_step = (
            pair.count * float(pair.weights @ np.minimum(np.abs(pair.losses) * h, h * h / 4))
            for pair in pairs
        )
        return sum(one_step)

    # With few steps the tail covers few bins: keep them small relative to the total as well.
    low, high = 1e-9 * math.sqrt(second), _RESOLUTION * math.sqrt(second)
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if rounding(middle) <= _INFLATION * second else (low, middle)
    drift = sum(pair.count * float(pair.weights @ np.abs(pair.losses)) for pair in pairs)
    widest = max(min(20 * math.sqrt(second), drift), max(pair.high - pair.low for pair in pairs))
    return max(low, widest / _MAX_BINS)


def _directions(form: NormalForm, relation: Relation) -> list[Directions]:
    """Dominating pairs of every part."""
    # Always in the same order, because convolutions round: pure parts come before the kinds that
    # are sorted by name.
    numbered = [part for part in form.paired if part.place < BY_NAME]
    named = [part for part in form.paired if part.place == BY_NAME]
    found = [part.directions(relation) for part in (*numbered, *form.pure, *named)]
    if form.mu > 0:
        found.append(Directions(gaussian_pair(form.mu, 1)))
    return found


def poisson_directions(mu: float, rate: float, count: int, relation: Relation) -> Directions:
    """Dominating pairs of a Gaussian release on a Poisson batch."""
    if exchanges(relation):
        return Directions(
            _swap_pair(mu, rate, count) if mu <= _MAX_SWAP_MU else gaussian_pair(mu, count)
        )
    return Directions(_remove_pair(mu, rate, count), _add_pair(mu, rate, count))


def gaussian_pair(mu: float, count: int) -> Pair:
    """N(mu) against N(0)."""
    reach = mu * mu / 2 + _TAIL_CUTOFF * mu
    x, weights = _grid(mu, 1.0)
    return Pair(
        lambda e: gaussian_profile(e, mu), -reach, reach, mu * x - mu * mu / 2, weights, count
    )


def _remove_pair(mu: float, rate: float, count: int) -> Pair:
    """(1-q) N(0) + q N(mu) against N(0)."""
    x, weights = _grid(mu, rate)
    losses = _mixture_loss(mu * x - mu * mu / 2, rate)
    reach = mu * mu / 2 + _TAIL_CUTOFF * mu
    low, high = _mixture_loss(np.array([-reach, reach]), rate).tolist()
    return Pair(lambda e: remove_profile(e, mu, rate), low, high, losses, weights, count)


def _add_pair(mu: float, rate: float, count: int) -> Pair:
    """N(0) against (1-q) N(0) + q N(mu)."""
    remove = _remove_pair(mu, rate, count)
    return Pair(
        lambda e: add_profile(e, mu, rate),
        -remove.high,
        -remove.low,
        -remove.losses,
        remove.weights,
        count,
    )


def _swap_pair(mu: float, rate: float, count: int) -> Pair:
    """(1-q) N(0) + q N(mu/2) against (1-q) N(0) + q N(-mu/2)."""
    half = mu / 2
    x, weights = _grid(half, rate)
    ends = np.append(x, half + _TAIL_CUTOFF)
    tilt = half * half / 2
    losses = _mixture_loss(half * ends - tilt, rate) - _mixture_loss(-half * ends - tilt, rate)
    reach = float(losses[-1])
    return Pair(lambda e: swap_profile(e, mu, rate), -reach, reach, losses[:-1], weights, count)


def fixed_size_pair(mu: float, rate: float, count: int) -> Pair:
    """Symmetric pair that dominates a release on a batch drawn without replacement."""
    remove = _remove_pair(mu, rate, count)
    return Pair(
        lambda e: fixed_size_profile(e, mu, rate),
        -remove.high,
        remove.high,
        remove.losses,
        remove.weights,
        count,
    )


def pure_pair(epsilon: float, count: int) -> Pair:
    """Randomised response, the worst epsilon-private mechanism."""
    likely = 1 / (1 + math.exp(-epsilon))
    losses, weights = np.array([epsilon, -epsilon]), np.array([likely, 1 - likely])
    return Pair(lambda e: pure_profile(e, epsilon), -epsilon, epsilon, losses, weights, count)


def remove_profile(epsilon: Vector, mu: float, rate: float) -> Vector:
    """Hockey-stick divergence of (1-q) N(0) + q N(mu) from N(0)."""
    # log(1 + (e^eps - 1) / q), in a form that does not overflow; where it is undefined no x is
    # rejected.
    above, below = np.maximum(epsilon, 0.0), np.minimum(epsilon, 0.0)
    inside = np.expm1(below) > -rate
    inner = above + np.log1p(-np.expm1(-above) * (1 - rate) / rate)
    inner[inside] += np.log1p(np.expm1(below[inside]) / rate)
    return np.where(inside, rate * gaussian_profile(inner, mu), -np.expm1(below))


def add_profile(epsilon: Vector, mu: float, rate: float) -> Vector:
    """Hockey-stick divergence of N(0) from (1-q) N(0) + q N(mu)."""
    # 1 - e^eps (1-q), the weight left on N(0), without cancellation for small q and eps. Beyond
    # e^50 nothing is left for any q below 1.
    capped = np.minimum(epsilon, 50.0)
    left = rate * np.exp(capped) - np.expm1(capped)
    inside = left > 0
    delta = np.zeros_like(epsilon)
    shifted = epsilon[inside] + math.log(rate) - np.log(left[inside])
    delta[inside] = left[inside] * gaussian_profile(shifted, mu)
    return delta


def swap_profile(epsilon: Vector, mu: float, rate: float) -> Vector:
    """Hockey-stick divergence of (1-q) N(0) + q N(mu/2) from (1-q) N(0) + q N(-mu/2)."""
    half, size = mu / 2, np.abs(epsilon)
    # The likelihood ratio is e^eps where y = e^{x mu/2} solves a quadratic; this is its positive
    # root divided by e^eps.
    linear = (1 - rate) * -np.expm1(-size)
    root = linear + np.hypot(linear, 2 * rate * np.exp(-half * half / 2 - size / 2))
    x = (size + np.log(root) - math.log(2 * rate) + half * half / 2) / half
    absent = (1 - rate) * np.expm1(size) * ndtr(-x)
    present = rate * (ndtr(half - x) - np.exp(size + log_ndtr(-half - x)))
    return _symmetric(epsilon, np.maximum(present - absent, 0.0))


def fixed_size_profile(epsilon: Vector, mu: float, rate: float) -> Vector:
    """Bound on both directions for a batch drawn without replacement, under replace-one."""
    return _symmetric(epsilon, remove_profile(np.abs(epsilon), mu, rate))


def pure_profile(epsilon: Vector, bound: float) -> Vector:
    """Hockey-stick divergence of randomised response."""
    size = np.minimum(np.abs(epsilon), bound)
    return _symmetric(epsilon, -np.expm1(size - bound) / (1 + math.exp(-bound)))


def _symmetric(epsilon: Vector, at_size: Vector) -> Vector:
    """Extend a profile from epsilon >= 0 to all epsilon, for a pair in either order."""
    size = np.abs(epsilon)
    return np.where(epsilon >= 0, at_size, -np.expm1(-size) + np.exp(-size) * at_size)


def _mixture_loss(tilt: Vector, rate: float) -> Vector:
    """log(1 - q + q e^tilt)."""
    if rate == 1:
        return tilt
    return np.asarray(np.logaddexp(math.log1p(-rate), math.log(rate) + tilt))


def _grid(mu: float, rate: float) -> tuple[Vector, Vector]:
    """Grid points and probabilities that approximate (1-q) N(0) + q N(mu)."""
    x = np.linspace(-8.0, mu + 8.0, 801)
    density = (1 - rate) * np.exp(-0.5 * x**2) + rate * np.exp(-0.5 * (x - mu) ** 2)
    return x, density / density.sum()
