"""Epsilon and delta for several units together, from the cost for one of them.

A cost bounds the outcomes of two data sets that differ in one unit. Two data sets that differ in
``size`` units are joined by a chain of that many steps. Proof: docs/proofs/groups.md.
"""

import math
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import ndtr, ndtri

from hushfit._typing import Vector
from hushfit.privacy import _check
from hushfit.privacy._gaussian import gaussian_delta
from hushfit.privacy._relation import Relation
from hushfit.privacy.accounting._adaptive_total import dominating_mu
from hushfit.privacy.accounting._interpret import delta_of, epsilon_of, profile_of
from hushfit.privacy.accounting._normal_form import normal_form
from hushfit.privacy.accounting._renyi import lost_mass
from hushfit.privacy.costs import (
    ApproximateCost,
    Cost,
    GaussianCost,
    PureCost,
    ReleaseCost,
    ThresholdedGaussianCost,
    compose,
    entries_of,
)

# Where the profile of one unit is read: up to the epsilon at which delta is negligible.
_POINTS: Final = 129
_NEGLIGIBLE: Final = 1e-30
_MAX_EPSILON: Final = 256.0
# Probabilities of an event at the far end of a chain, from which chains of lines are started.
_STARTS: Final = np.concatenate([np.exp(np.arange(-600.0, -4.0, 1.25)), np.arange(1, 65) / 64])
# How often a Gaussian release is tried for a chain, by what factor its mu grows each time, and
# where that ends.
_ATTEMPTS: Final = 8
_MARGIN: Final = 1.01
_MAX_MU: Final = 100.0
_LEAST_LOST: Final = 1e-200
# Covers the rounding of a chain of additions, which is at most 1e-15 a step.
_ROUNDING: Final = 1e-9


def group_epsilon(cost: Cost, size: int, delta: float, relation: Relation | str) -> float:
    """Smallest epsilon that is proved for several units together.

    Parameters
    ----------
    cost : Cost
        Of releases, for one unit.
    size : int
        How many units are exchanged at once, each for one other.
    delta : float
        Strictly between 0 and 1.
    relation : Relation or str
        Which data sets are neighbours if one unit is exchanged.

    Returns
    -------
    float
        Exact for Gaussian releases, whose mu is multiplied by ``size``, and for pure ones. Infinity
        if nothing is proved at this delta.
    """
    size, relation = _check.count(size, "size"), Relation.parse(relation)
    delta = _check.probability(delta, "delta")
    if size == 1 or normal_form(cost, relation).reveals_all:
        return epsilon_of(cost, delta, relation)
    by_part = _by_part(cost, size, relation)
    exact = math.inf if by_part is None else epsilon_of(by_part, delta, relation)
    if normal_form(cost, relation).is_gaussian:
        return exact
    return min(exact, _chained_epsilon(*_lines(cost, size, relation), delta))


def group_delta(cost: Cost, size: int, epsilon: float, relation: Relation | str) -> float:
    """Smallest delta that is proved for several units together.

    Parameters
    ----------
    cost : Cost
        Of releases, for one unit.
    size : int
        How many units are exchanged at once, each for one other.
    epsilon : float
        At least 0 and finite.
    relation : Relation or str
        Which data sets are neighbours if one unit is exchanged.

    Returns
    -------
    float
        Between 0 and 1, by the same bounds as `group_epsilon`.
    """
    size, relation = _check.count(size, "size"), Relation.parse(relation)
    epsilon = _check.finite(epsilon, "epsilon")
    if size == 1 or normal_form(cost, relation).reveals_all:
        return delta_of(cost, epsilon, relation)
    by_part = _by_part(cost, size, relation)
    exact = 1.0 if by_part is None else delta_of(by_part, epsilon, relation)
    if normal_form(cost, relation).is_gaussian:
        return exact
    return min(
        exact,
        _chained_delta(*_lines(cost, size, relation), epsilon),
        _equal_steps_delta(cost, size, epsilon, relation),
    )


def group_cost(cost: Cost, size: int, delta: float, relation: Relation | str) -> Cost:
    """Cost of the same releases for several units together, which composes with other costs.

    Parameters
    ----------
    cost : Cost
        Of releases, for one unit.
    size : int
        How many units are exchanged at once, each for one other.
    delta : float
        Failure probability that the cost may declare, strictly between 0 and 1. Gaussian and pure
        releases do not need it.
    relation : Relation or str
        Which data sets are neighbours if one unit is exchanged.

    Returns
    -------
    Cost
        Part by part for Gaussian and pure releases. Otherwise that of a Gaussian release which
        dominates all of them together, except with probability delta; or (epsilon, delta) alone,
        if there is none.
    """
    size, relation = _check.count(size, "size"), Relation.parse(relation)
    if size == 1:
        return cost
    form, by_part = normal_form(cost, relation), _by_part(cost, size, relation)
    if by_part is not None and not (form.paired or form.by_curve):
        return by_part
    by_gaussian = _as_gaussian(cost, size, delta, relation)
    if by_gaussian is None:
        return ApproximateCost(group_epsilon(cost, size, delta, relation), delta)
    if by_part is not None and dominating_mu(by_part, delta, relation) <= by_gaussian.mu:
        return by_part
    return by_gaussian


def _as_gaussian(
    cost: Cost, size: int, delta: float, relation: Relation
) -> ThresholdedGaussianCost | None:
    """Gaussian release with a failure probability of at most delta that dominates a chain, if one
    is found.

    A step that is dominated by mu except with probability ``lost`` makes a chain that is dominated
    by size * mu, except with the sum of Phi(Phi^-1(lost) + i mu) over i < size.
    """
    mu = dominating_mu(cost, delta / size, relation)
    for _ in range(_ATTEMPTS):
        mu *= _MARGIN  # a smaller failure probability will need a larger mu
        if not 0 < mu < _MAX_MU / size:
            return None
        room = delta * (1 - gaussian_delta(0.0, size * mu))
        lost = float(ndtr(ndtri(room / size) - (size - 1) * mu))
        if lost < _LEAST_LOST:
            return None
        needed = dominating_mu(cost, lost, relation)
        if needed <= mu:
            return ThresholdedGaussianCost(count=1, noise_multiplier=1 / (size * mu), rare=delta)
        mu = needed
    return None


def _by_part(cost: Cost, size: int, relation: Relation) -> Cost | None:
    """Every release converted by itself; None if that is not proved for some of them."""
    converted = [_converted(part, size, relation) for part in entries_of(cost)]
    known = [part for part in converted if part is not None]
    return compose(known) if len(known) == len(converted) else None


def _converted(part: ReleaseCost, size: int, relation: Relation) -> ReleaseCost | None:
    mu, epsilon = part.group_mu(relation), part.pure_epsilon()
    if mu is not None:
        return GaussianCost(1 / (size * mu) if mu > 0 else math.inf, part.count)
    if epsilon is None:
        return None
    if part.lost == 0:
        return PureCost(size * epsilon, part.count)
    lost = part.lost * _steps_together(size, epsilon)
    return ApproximateCost(size * epsilon, lost, count=part.count) if lost < 1 else None


def _steps_together(size: int, epsilon: float) -> float:
    """1 + e^epsilon + ... + e^((size - 1) epsilon): what the failure probability of one step counts
    in a chain of equal ones.
    """
    if size * epsilon > 700:
        return math.inf
    return size if epsilon == 0 else math.expm1(size * epsilon) / math.expm1(epsilon)


def _equal_steps_delta(cost: Cost, size: int, epsilon: float, relation: Relation) -> float:
    """The group inequality: delta(epsilon / k) (e^epsilon - 1) / (e^(epsilon / k) - 1)."""
    step = epsilon / size
    weight = _steps_together(size, step)
    return min(1.0, delta_of(cost, step, relation) * weight) if weight < math.inf else 1.0


@lru_cache(maxsize=16)
def _lines(cost: Cost, size: int, relation: Relation) -> tuple[Vector, Vector]:
    """Lines that bound the probability of an event at one end of a chain by that at the other.

    P(S) <= e^slope Q(S) + offset for every event S and each pair of the two arrays. Slopes rise and
    offsets fall. Every line is composed of ``size`` statements about one unit, whose epsilons are
    chosen for an event of some probability: equal epsilons give the group inequality, others are
    better.
    """
    epsilons, deltas = _statements(cost, relation)
    factors = np.exp(epsilons)
    at, slope, offset = _STARTS, np.zeros(len(_STARTS)), np.zeros(len(_STARTS))
    for _ in range(size):
        best = np.array([int(np.argmin(factors * x + deltas)) for x in at.tolist()])
        at = np.minimum(factors[best] * at + deltas[best], 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            offset = factors[best] * offset + deltas[best]
        slope = slope + epsilons[best]
    useful = offset < 1
    order = np.argsort(slope[useful], kind="stable")
    slopes, offsets = slope[useful][order], offset[useful][order]
    return slopes, np.minimum.accumulate(offsets) * (1 + _ROUNDING)


@lru_cache(maxsize=16)
def _statements(cost: Cost, relation: Relation) -> tuple[Vector, Vector]:
    """Statements P(S) <= e^epsilon Q(S) + delta about neighbours, with epsilons of either sign."""
    reach, least = 1.0 / 16, max(_NEGLIGIBLE, (1 + 1e-6) * lost_mass(cost))
    while reach < _MAX_EPSILON and profile_of(cost, np.array([reach]), relation)[0] > least:
        reach *= 2
    fine = np.linspace(0.0, reach / 8, _POINTS // 2)
    grid = np.unique(np.concatenate([fine, np.linspace(0.0, reach, _POINTS)]))
    deltas = profile_of(cost, grid, relation)
    # What holds for all events and both orders of the neighbours holds for complements.
    mirrored = 1 - np.exp(-grid) * (1 - deltas)
    return np.concatenate([-grid[:0:-1], grid]), np.concatenate([mirrored[:0:-1], deltas])


def _chained_delta(slopes: Vector, offsets: Vector, epsilon: float) -> float:
    """Offset of the line with slope e^epsilon: a weighted mean of two known lines, which is a bound
    as well.
    """
    after = int(np.searchsorted(slopes, epsilon))
    if after == len(slopes):
        return float(offsets[-1]) if len(offsets) else 1.0
    # Before the first line there is the trivial one, P(S) <= 1.
    before = offsets[after - 1] if after else 1.0
    share = (
        math.expm1(epsilon - slopes[after - 1]) / math.expm1(slopes[after] - slopes[after - 1])
        if after
        else math.exp(epsilon - slopes[0])
    )
    return float(before + share * (offsets[after] - before))


def _chained_epsilon(slopes: Vector, offsets: Vector, delta: float) -> float:
    """Smallest epsilon at which `_chained_delta` is at most delta."""
    enough = np.flatnonzero(offsets <= delta)
    if not len(enough):
        return math.inf
    low, high = 0.0, max(0.0, float(slopes[enough[0]]))
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if _chained_delta(slopes, offsets, middle) <= delta:
            high = middle
        else:
            low = middle
    return high
