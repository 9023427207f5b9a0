"""Total privacy loss of plans whose costs depend on earlier answers. Proof: docs/proofs/filter.md.

Every plan is one mechanism whose cost was fixed before it began. It counts as the Gaussian release
that dominates it except with a small failure probability; the squares of their mu add up, however
each plan was chosen.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, reduce
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


@dataclass(frozen=True)
class FilteredTotal:
    """Total of plans chosen one after the other; adding a plan costs the same after any number.

    Parameters
    ----------
    budget : Budget
        Finite.
    relation : Relation
    first : Cost, optional
        The first plan, which was fixed before any answer.
    count : int, default=0
        Number of plans.
    inexact : int, default=0
        How many of them are dominated by a Gaussian release only up to a failure probability.
    mu_square : Fraction or float
        Sum of the squares of their mu, exact or infinite; not filled in for a single plan.
    lost : Fraction
        Failure probability of all plans after the first. That of the first is part of the delta
        which it uses by itself.
    pure : Fraction or float
        Sum of their pure epsilons.
    """

    budget: Budget
    relation: Relation
    first: Cost | None = None
    count: int = 0
    inexact: int = 0
    mu_square: Fraction | float = Fraction(0)
    lost: Fraction | float = Fraction(0)
    pure: Fraction | float = Fraction(0)

    def after(self, plan: Cost) -> "FilteredTotal":
        """The total with one more plan."""
        require_proof(plan, self.relation)
        pure = exact_sum(self.pure, _pure_epsilon(plan))
        if self.first is None:
            return replace(self, first=plan, count=1, pure=pure)
        failing = _failure_probability(plan)
        inexact, mu_square = self.inexact, self.mu_square
        if self.count == 1:  # a single plan has its exact epsilon, so its mu is needed only now
            first = self.first, _failure_probability(self.first)
            inexact, mu_square = self._with_mu(*first, inexact, mu_square)
        inexact, mu_square = self._with_mu(plan, failing, inexact, mu_square)
        return FilteredTotal(
            self.budget,
            self.relation,
            self.first,
            self.count + 1,
            inexact,
            mu_square,
            exact_sum(self.lost, failing),
            pure,
        )

    @property
    def left(self) -> float:
        """Delta left for all plans after the first.

        The first was fixed before any answer, so by itself it may use the rest.
        """
        if self.first is None:
            return self.budget.delta
        return self.budget.delta - _delta_used(self.first, self.budget.epsilon, self.relation)

    @property
    def room(self) -> float:
        """Share of the delta left by the first plan that is reserved for `lost`."""
        return LOST_SHARE * self.left / 2

    @property
    def epsilon(self) -> float:
        """Epsilon that the filter counts: for a single plan its exact one, infinity where no budget
        is left.
        """
        if self.first is None:
            return 0.0
        if self.count == 1:
            return epsilon_of(self.first, self.budget.delta, self.relation)
        gaussian = self._gaussian
        by_gaussian = math.inf if gaussian is None else _epsilon(*gaussian, self.relation)
        return min(by_gaussian, float(self.pure))

    def within(self, epsilon: float) -> bool:
        """Whether the total is at most epsilon; faster than computing it."""
        if self.count < 2 or self.pure <= epsilon:
            return self.epsilon <= epsilon
        gaussian = self._gaussian
        if gaussian is None:
            return False
        cost, delta = gaussian
        return delta_of(cost, epsilon, self.relation) <= delta

    def _with_mu(
        self, plan: Cost, failing: float, inexact: int, mu_square: Fraction | float
    ) -> tuple[int, Fraction | float]:
        """The number of inexact plans and the sum of squares with one more plan."""
        if self.left <= 0:
            return inexact, mu_square
        if _is_exact(plan):
            mu = math.sqrt(_mu_square(plan))
        else:
            inexact += 1
            # 1/2, 1/6, 1/12, ...: the shares sum to one, however many plans will follow.
            allowed = self.room / (inexact * (inexact + 1))
            mu = _mu_of_profile(plan, failing + allowed, self.relation)
        return inexact, exact_sum(mu_square, mu**2)

    @property
    def _gaussian(self) -> tuple[GaussianCost, float] | None:
        """One Gaussian release that dominates all plans up to failure probabilities, and the delta
        that is left for it; None if there is none.
        """
        if self.left <= 0 or self.lost > self.room or self.mu_square == math.inf:
            return None
        mu = math.sqrt(self.mu_square)
        return GaussianCost(1 / mu if mu > 0 else math.inf), self.left - 2 * self.room


def filtered_epsilon(plans: Iterable[Cost], budget: Budget, relation: Relation | str) -> float:
    """Epsilon that a filter counts for plans chosen one after the other.

    As long as it is at most the budget's epsilon after every plan, all plans together satisfy the
    budget, although the costs of later plans were chosen after seeing the answers to earlier ones.

    Parameters
    ----------
    plans : iterable of Cost
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
    return reduce(
        FilteredTotal.after, plans, FilteredTotal(budget, Relation.parse(relation))
    ).epsilon


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


# A charge is decided twice, the second time while others wait.
@lru_cache(maxsize=64)
def _epsilon(cost: Cost, delta: float, relation: Relation) -> float:
    return epsilon_of(cost, delta, relation)


# Every plan of a ledger asks for that of the first.
@lru_cache(maxsize=1024)
def _delta_used(cost: Cost, epsilon: float, relation: Relation) -> float:
    return delta_of(cost, epsilon, relation)


def exact_sum(total: Fraction | float, term: float) -> Fraction | float:
    """Sum without rounding, so that it does not depend on the order; infinity stays."""
    if isinstance(total, float) or term == math.inf:
        return math.inf
    return total + Fraction(term) if term else total


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
    reach, step = max(epsilon_of(cost, lost, relation), 1e-9), 1e-6
    # The root of an inverse function is rounded, and another accountant may have found it.
    while reach < math.inf and delta_of(cost, reach, relation) > lost:
        reach, step = reach * (1 + step), 2 * step
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
