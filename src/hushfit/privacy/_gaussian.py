"""The Gaussian mechanism, exactly. Proof: docs/proofs/gaussian.md."""

import math
from functools import lru_cache

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from hushfit._root import root
from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import _check

# Below this mu the difference of two scaled tails is computed as an integral of their derivative,
# to avoid cancellation.
_SMALL_MU = 0.1
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Smallest delta of a Gaussian mechanism at a given epsilon.

    Parameters
    ----------
    epsilon : float
        Privacy loss bound; any real number, or infinity.
    mu : float
        Sensitivity over noise scale, at least 0; the squares of several releases add up.

    Returns
    -------
    float
        ``Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu)``.

    Examples
    --------
    >>> from hushfit.privacy import gaussian_delta
    >>> round(gaussian_delta(1.0, 0.5), 4)
    0.0068
    """
    epsilon, mu = _check.number(epsilon, "epsilon"), _check.non_negative(mu, "mu")
    if epsilon == math.inf:
        return 0.0
    return float(gaussian_profile(np.array([epsilon]), mu)[0])


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu that a Gaussian mechanism may have and still be (epsilon, delta)-private.

    Parameters
    ----------
    epsilon : float
        At least 0; infinity gives infinity.
    delta : float
        Strictly between 0 and 1.

    Returns
    -------
    float
        The safe end of the root's bracket: ``gaussian_delta(epsilon, mu) <= delta``.

    Examples
    --------
    >>> from hushfit.privacy import gaussian_mu
    >>> round(1 / gaussian_mu(1.0, 1e-6), 3)  # noise multiplier of a single release
    4.225
    """
    epsilon, delta = _check.non_negative(epsilon, "epsilon"), _check.probability(delta, "delta")
    return math.inf if epsilon == math.inf else _largest_mu(epsilon, delta)


@lru_cache  # fits ask for the same budgets again and again
def _largest_mu(epsilon: float, delta: float) -> float:
    def excess(log_mu: float) -> float:
        # Below the smallest double only the sign matters.
        return math.log(max(gaussian_delta(epsilon, math.exp(log_mu)), 5e-324)) - math.log(delta)

    low = high = 0.5 * math.log(2 * epsilon) if epsilon > 0 else 0.0
    while excess(low) > 0:
        low -= 1.0
        if low < -700:
            raise InvalidArgument(
                f"delta={delta:g} is too small at epsilon={epsilon:g}. Give a larger delta."
            )
    while excess(high) <= 0:
        high += 1.0
    mu = math.exp(root(excess, low, high))
    step = 1e-15
    while gaussian_delta(epsilon, mu) > delta:
        mu, step = mu * (1 - step), 2 * step
    return mu


def gaussian_profile(epsilon: Vector, mu: float) -> Vector:
    """`gaussian_delta` for many finite epsilons of either sign."""
    size = np.abs(epsilon)
    if mu == 0:
        delta = np.zeros_like(size)
    elif mu == math.inf:
        return np.ones_like(size)
    else:
        delta = _at_positive(size, mu)
    # The two hypotheses are mirror images, so the value at -epsilon follows from the one at
    # epsilon.
    return np.where(epsilon >= 0, delta, -np.expm1(-size) + np.exp(-size) * delta)


def _at_positive(epsilon: Vector, mu: float) -> Vector:
    """Profile for epsilon >= 0, with a small relative error even where it is 1e-300."""
    with np.errstate(over="ignore"):
        # At a thousand standard deviations the tail is zero in floating point; infinity would give
        # NaN.
        near = np.minimum(epsilon / mu - mu / 2, 1e3)
    far = near + mu
    in_tail = near > -5
    tail, bulk = near[in_tail], near[~in_tail]
    delta = np.empty_like(epsilon)
    # exp(epsilon) Phi(-far) and Phi(-near) share the factor exp(-near^2/2): factor it out, then
    # subtract.
    delta[in_tail] = np.exp(-0.5 * tail**2) * _scaled_tail_drop(tail, mu)
    delta[~in_tail] = ndtr(-bulk) - np.exp(epsilon[~in_tail] + log_ndtr(-far[~in_tail]))
    return np.clip(delta, 0.0, 1.0)


def _scaled_tail_drop(start: Vector, mu: float) -> Vector:
    """r(start) - r(start + mu) for the scaled tail r(t) = exp(t^2/2) Phi(-t)."""
    if mu >= _SMALL_MU:
        return np.asarray(_scaled_tail(start) - _scaled_tail(start + mu))
    t = start[:, None] + 0.5 * mu * (_NODES + 1)
    slope = 1 / math.sqrt(2 * math.pi) - t * _scaled_tail(t)
    return np.asarray(0.5 * mu * (slope @ _WEIGHTS))


def _scaled_tail(t: Vector) -> Vector:
    """exp(t^2/2) Phi(-t)."""
    return np.asarray(0.5 * erfcx(t / math.sqrt(2)))
