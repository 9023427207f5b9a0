"""Exact composition of Gaussian and pure releases; near-exact for one noisy objective.

Proofs: docs/proofs/{composition,objective}.md.
"""

import math

import numpy as np
from scipy.special import expit, gammaln

from hushfit._root import root
from hushfit._typing import Vector
from hushfit.privacy._gaussian import gaussian_profile
from hushfit.privacy.accounting._normal_form import NormalForm
from hushfit.privacy.costs import PureCost

# With more distinct losses than this a privacy loss distribution is cheaper.
MAX_ATOMS = 20_000
# Upper bound on the tail that an objective's losses leave out.
_MIN_DELTA = 1e-18


def is_exact(form: NormalForm) -> bool:
    """Whether the closed form applies and is small enough."""
    return (
        not (form.paired or form.by_curve)
        and math.prod(p.count + 1 for p in form.pure) <= MAX_ATOMS
    )


def is_single_objective(form: NormalForm) -> bool:
    """Whether the form is Gaussian but for one release with losses bounded by a known variable."""
    if form.pure or form.paired or form.lost or len(form.curved) != 1:
        return False
    (only,) = form.curved
    return only.count == 1 and only.bounded_losses() is not None


def exact_delta(form: NormalForm, epsilon: float) -> float:
    """Mixture of Gaussian profiles over the losses of the other parts; the worst of several."""
    if form.reveals_all:
        return 1.0
    mixtures = (form.curved[0].bounded_losses() if form.curved else None) or [_atoms(form.pure)]
    delta_without_failure = max(
        float(weights @ gaussian_profile(epsilon - losses, form.mu)) for losses, weights in mixtures
    )
    return min(1.0, form.lost + (1 - form.lost) * delta_without_failure)


def exact_epsilon(form: NormalForm, delta: float) -> float:
    """Inverse of `exact_delta` in epsilon, rounded to the safe side."""
    if form.reveals_all or delta < form.lost or (form.curved and delta <= _MIN_DELTA):
        return math.inf
    if exact_delta(form, 0.0) <= delta:
        return 0.0

    def excess(epsilon: float) -> float:
        return math.log(max(exact_delta(form, epsilon), 5e-324)) - math.log(delta)

    high = 1.0
    while excess(high) > 0:
        high *= 2
    epsilon = root(excess, 0.0, high)
    step = 1e-15
    while exact_delta(form, epsilon) > delta:
        epsilon, step = epsilon * (1 + step), 2 * step
    return epsilon


def _atoms(pure: tuple[PureCost, ...]) -> tuple[Vector, Vector]:
    """Total losses of the pure parts, each as randomised response, and their probabilities."""
    losses, weights = np.zeros(1), np.ones(1)
    for part in pure:
        j = np.arange(part.count + 1)
        log_binomial = gammaln(part.count + 1) - gammaln(j + 1) - gammaln(part.count - j + 1)
        log_odds = (part.count - j) * math.log(expit(part.epsilon)) + j * _log_expit(-part.epsilon)
        losses = np.add.outer(losses, (part.count - 2 * j) * part.epsilon).ravel()
        weights = np.multiply.outer(weights, np.exp(log_binomial + log_odds)).ravel()
    return losses, weights


def _log_expit(x: float) -> float:
    """log(1 / (1 + exp(-x))) for x <= 0."""
    return x - math.log1p(math.exp(x))
