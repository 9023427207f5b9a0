"""What a ledger counts for plans whose prices were chosen after seeing the answers to earlier ones.
Proof: docs/proofs/filter.md.

Every plan is one mechanism, whose price was fixed before it began. It counts as the Gaussian
release that dominates it but for a small probability; the squares of these add up, in whatever way
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
from hushfit.privacy.costs import Cost, GaussianCost, PureCost, parts_of

LOST_SHARE: Final = 0.1
"""Share of delta for what Gaussian releases do not dominate. Half of it is for plans that say
what they lose themselves.
"""

# Points at which a profile is compared with a Gaussian one; in between both are bounded by their
# ends. Where that is loose, more.
_FIRST_POINTS: Final = 33
_ROUNDS: Final = 12
_LOOSE: Final = 1e-3
_MOST_MU: Final = 100.0


def filtered_epsilon(plans: Sequence[Cost], budget: Budget, relation: Relation | str) -> float:
    """The epsilon that a filter counts for plans chosen one after the other.

    As long as it is at most the budget's after every plan, everything together is private as the
    budget says, although the prices of later plans were chosen after seeing the answers to earlier
    ones.

    Parameters
    ----------
    plans : sequence of Cost
        In the order in which they began, each with all it will ever cost.
    budget : Budget
        Finite.
    relation : Relation or str

    Returns
    -------
    float
        For a single plan its exact epsilon. Infinity where nothing is left.

    Examples
    --------
    >>> from hushfit.privacy import Budget, GaussianCost, filtered_epsilon
    >>> round(filtered_epsilon([GaussianCost(10.0)] * 4, Budget(1.0, 1e-6), "replace-one"), 3)
    0.833
    """
    relation = Relation.parse(relation)
    if len(plans) < 2:
        return epsilon_of(plans[0], budget.delta, relation) if plans else 0.0
    left = delta_left(plans[0], budget, relation)
    by_gaussian = _gaussian_epsilon(plans, left, relation) if left > 0 else math.inf
    return min(by_gaussian, math.fsum(_pure_epsilon(plan) for plan in plans))


def delta_left(first: Cost, budget: Budget, relation: Relation) -> float:
    """Delta for all plans after the first, which was fixed before any answer: alone, it can lose
    the rest.
    """
    return budget.delta - delta_of(first, budget.epsilon, relation)


def lost_later(plans: Sequence[Cost]) -> float:
    """Probability with which plans after the first keep no promise; the first one's own is in
    what it can lose alone.
    """
    return math.fsum(_own_loss(plan) for plan in plans[1:])


def room_for_lost(left: float) -> float:
    """How much of the delta that the first plan left is for `lost_later`."""
    return LOST_SHARE * left / 2


def dominating_mu(cost: Cost, lost: float, relation: Relation | str) -> float:
    """The mu of a Gaussian release that dominates a cost, except with a given probability.

    Parameters
    ----------
    cost : Cost
    lost : float
        Probability with which the dominating release may say everything; strictly between 0 and 1.
        Gaussian and pure costs do not need it.
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
    if _is_exact(cost):
        return math.sqrt(_mu_square(cost))
    return _mu_of_profile(cost, lost, relation)


def _gaussian_epsilon(plans: Sequence[Cost], delta: float, relation: Relation) -> float:
    """Epsilon of the one Gaussian release that dominates all plans but for the probability set
    aside.
    """
    room = room_for_lost(delta)
    if lost_later(plans) > room:
        return math.inf
    squares, inexact = [], 0
    for plan in plans:
        inexact += not _is_exact(plan)
        # 1/2, 1/6, 1/12, ...: adds up to one, however many there will be.
        allowed = room / (inexact * (inexact + 1)) if inexact else room
        squares.append(dominating_mu(plan, _own_loss(plan) + allowed, relation) ** 2)
    mu = math.sqrt(math.fsum(squares))
    if mu == 0:
        return 0.0
    return (
        epsilon_of(GaussianCost(1 / mu), delta - 2 * room, relation) if mu < math.inf else math.inf
    )


def _is_exact(cost: Cost) -> bool:
    return all(isinstance(part, GaussianCost | PureCost) for part in parts_of(cost))


def _pure_epsilon(cost: Cost) -> float:
    """What a cost adds where epsilons simply add up."""
    return math.fsum(
        part.count * part.epsilon if isinstance(part, PureCost) else math.inf
        for part in parts_of(cost)
    )


def _own_loss(cost: Cost) -> float:
    """Probability with which a cost itself says that it keeps no promise."""
    # Of all its parts together, as its profile has it: a sum would be a little more than the
    # profile says.
    return -math.expm1(math.fsum(part.count * math.log1p(-part.lost) for part in parts_of(cost)))


# Every plan of a ledger is asked for again with each payment: fewer places than plans would be as
# good as none.
@lru_cache(maxsize=2**16)
def _mu_of_profile(cost: Cost, lost: float, relation: Relation) -> float:
    """Least mu whose profile, with the mass ``lost`` at infinity, lies above that of the cost."""
    reach = max(epsilon_of(cost, lost, relation), 1e-9)
    while (
        reach < math.inf and delta_of(cost, reach, relation) > lost
    ):  # the root of an inverse function has its rounding
        reach *= 1 + 1e-6
    if reach == math.inf:
        return math.inf
    epsilons = np.linspace(0.0, reach, _FIRST_POINTS)
    needed = _needed(cost, epsilons, lost, relation)
    for _ in range(_ROUNDS):
        attained = _least_mu(epsilons, needed)
        # Both fall: between two points the cost is at most its value at the first, the Gaussian one
        # at least its value at the second.
        loose = (
            gaussian_profile(epsilons[1:], (1 + _LOOSE) * attained) < needed[:-1]
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
    """What a Gaussian profile must be at these points."""
    return np.asarray(np.maximum(profile_of(cost, epsilons, relation) - lost, 0.0) / (1 - lost))


def _least_mu(epsilons: Vector, needed: Vector) -> float:
    """Least mu whose Gaussian profile is at least ``needed``: the safe end of a bisection."""

    def enough(mu: float) -> bool:
        return bool(np.all(gaussian_profile(epsilons, mu) >= needed))

    low, high = 0.0, _MOST_MU
    if not enough(high):
        return math.inf
    while high - low > 1e-6 * high and high > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
