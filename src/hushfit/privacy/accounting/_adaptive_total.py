"""Total privacy loss of plans whose costs depend on earlier answers. Proof: docs/proofs/filter.md.

Every plan is one mechanism whose cost was fixed before it began. It counts as the Gaussian release
that dominates it except with a small failure probability; the squares of their mu add up, however
each plan was chosen.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from hushfit._typing import Vector
from hushfit.privacy import _check
from hushfit.privacy._budget import Budget
from hushfit.privacy._gaussian import gaussian_profile
from hushfit.privacy._relation import Relation
from hushfit.privacy.accounting._filter import _mu_square
from hushfit.privacy.accounting._interpret import delta_of, epsilon_of, profile_of
from hushfit.privacy.costs import Cost, GaussianCost, PureCost, parts_of, require_proof

LOST_SHARE: Final = 0.1
"""Share of delta for failure probabilities, which Gaussian releases do not dominate.

Half of it is for plans that declare their own failure probability.
"""

# Number of points at which a profile is first compared with a Gaussian one. In between, both are
# bounded by their values at the end points; where that bound is loose, points are added.
_FIRST_POINTS: Final = 33
_REFINEMENTS: Final = 12
_TOLERANCE: Final = 1e-3
_MAX_MU: Final = 100.0


def filtered_epsilon(plans: Sequence[Cost], budget: Budget, relation: Relation | str) -> float:
    """Epsilon that a filter counts for plans chosen one after the other.

    As long as it is at most the budget's epsilon after every plan, all plans together satisfy the
    budget, although the costs of later plans were chosen after seeing the answers to earlier ones.

    Parameters
    ----------
    plans : sequence of Cost
        In the order in which they began, each with its total cost.
    budget : Budget
        Finite.
    relation : Relation or str

    Returns
    -------
    float
        For a single plan its exact epsilon. Infinity where no budget is left.

    Examples
    --------
    >>> from hushfit.privacy import Budget, GaussianCost, filtered_epsilon
    >>> round(filtered_epsilon([GaussianCost(10.0)] * 4, Budget(1.0, 1e-6), "replace-one"), 3)
    0.833
    """
    relation = Relation.parse(relation)
    for plan in plans:
        require_proof(plan, relation)
    if len(plans) < 2:
        return epsilon_of(plans[0], budget.delta, relation) if plans else 0.0
    left = delta_left(plans[0], budget, relation)
    by_gaussian = _gaussian_epsilon(plans, left, relation) if left > 0 else math.inf
    return min(by_gaussian, math.fsum(_pure_epsilon(plan) for plan in plans))


def delta_left(first: Cost, budget: Budget, relation: Relation) -> float:
    """Delta left for all plans after the first.

    The first was fixed before any answer, so by itself it may use the rest.
    """
    return budget.delta - delta_of(first, budget.epsilon, relation)


def lost_later(plans: Sequence[Cost]) -> float:
    """Failure probability of all plans after the first.

    That of the first is part of the delta which it uses by itself.
    """
    return math.fsum(_failure_probability(plan) for plan in plans[1:])


def room_for_lost(left: float) -> float:
    """Share of the delta left by the first plan that is reserved for `lost_later`."""
    return LOST_SHARE * left / 2


def dominating_mu(cost: Cost, lost: float, relation: Relation | str) -> float:
    """Mu of a Gaussian release that dominates a cost, except with a given probability.

    Parameters
    ----------
    cost : Cost
    lost : float
        Failure probability: with it the dominating release may reveal everything; strictly between
        0 and 1. Gaussian and pure costs do not need it.
    relation : Relation or str

    Returns
    -------
    float
        Infinity if there is none.

    Examples
    --------
    >>> from hushfit.privacy import PoissonGaussianCost, dominating_mu
    >>> round(dominating_mu(PoissonGaussianCost(1.0, rate=0.01, count=100), 1e-8, "add-remove"), 2)
    0.25
    """
    lost, relation = _check.probability(lost, "lost"), Relation.parse(relation)
    require_proof(cost, relation)
    if _is_exact(cost):
        return math.sqrt(_mu_square(cost))
    return _mu_of_profile(cost, lost, relation)


def _gaussian_epsilon(plans: Sequence[Cost], delta: float, relation: Relation) -> float:
    """Epsilon of one Gaussian release that dominates all plans, up to the failure probability."""
    room = room_for_lost(delta)
    if lost_later(plans) > room:
        return math.inf
    squares, inexact = [], 0
    for plan in plans:
        inexact += not _is_exact(plan)
        # 1/2, 1/6, 1/12, ...: the shares sum to one, however many plans will follow.
        allowed = room / (inexact * (inexact + 1)) if inexact else room
        squares.append(dominating_mu(plan, _failure_probability(plan) + allowed, relation) ** 2)
    mu = math.sqrt(math.fsum(squares))
    if mu == 0:
        return 0.0
    return (
        epsilon_of(GaussianCost(1 / mu), delta - 2 * room, relation) if mu < math.inf else math.inf
    )


def _is_exact(cost: Cost) -> bool:
    return all(isinstance(part, GaussianCost | PureCost) for part in parts_of(cost))


def _pure_epsilon(cost: Cost) -> float:
    """Epsilon that a cost adds under basic composition."""
    return math.fsum(
        part.count * part.epsilon if isinstance(part, PureCost) else math.inf
        for part in parts_of(cost)
    )


def _failure_probability(cost: Cost) -> float:
    """Failure probability that a cost itself declares."""
    # Of all its parts together, as in its profile: a sum would be slightly larger.
    return -math.expm1(math.fsum(part.count * math.log1p(-part.lost) for part in parts_of(cost)))


# Every payment evaluates every plan of a ledger again: the cache must hold more entries than a
# ledger has plans.
@lru_cache(maxsize=2**16)
def _mu_of_profile(cost: Cost, lost: float, relation: Relation) -> float:
    """Smallest mu whose profile, with probability ``lost`` of infinite loss, dominates the cost."""
    reach = max(epsilon_of(cost, lost, relation), 1e-9)
    while (
        reach < math.inf and delta_of(cost, reach, relation) > lost
    ):  # the root of an inverse function is rounded
        reach *= 1 + 1e-6
    if reach == math.inf:
        return math.inf
    epsilons = np.linspace(0.0, reach, _FIRST_POINTS)
    needed = _needed(cost, epsilons, lost, relation)
    for _ in range(_REFINEMENTS):
        attained = _least_mu(epsilons, needed)
        # Both profiles decrease: between two points the cost is at most its value at the first, the
        # Gaussian one at least its value at the second.
        loose = (
            gaussian_profile(epsilons[1:], (1 + _TOLERANCE) * attained) < needed[:-1]
            if attained < math.inf
            else np.array([False])
        )
        if not loose.any():
            break
        middles = ((epsilons[:-1] + epsilons[1:]) / 2)[loose]
        after = np.flatnonzero(loose) + 1
        needed = np.insert(needed, after, _needed(cost, middles, lost, relation))
        epsilons = np.insert(epsilons, after, middles)
    return _least_mu(epsilons[1:], needed[:-1])


def _needed(cost: Cost, epsilons: Vector, lost: float, relation: Relation) -> Vector:
    """Values that a Gaussian profile must reach at these points."""
    return np.asarray(np.maximum(profile_of(cost, epsilons, relation) - lost, 0.0) / (1 - lost))


def _least_mu(epsilons: Vector, needed: Vector) -> float:
    """Smallest mu whose Gaussian profile is at least ``needed``: the safe end of a bisection."""

    def enough(mu: float) -> bool:
        return bool(np.all(gaussian_profile(epsilons, mu) >= needed))

    low, high = 0.0, _MAX_MU
    if not enough(high):
        return math.inf
    while high - low > 1e-6 * high and high > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
