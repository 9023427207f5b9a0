"""Calibration: the largest signal strength, hence the least noise, that a budget allows.

Every candidate is measured on one scale: the mu of the Gaussian mechanism with the same delta at
the target epsilon. On that scale cost grows almost proportionally to strength, so the secant method
in logarithms needs very few evaluations. Proof that the result is safe: docs/proofs/composition.md.
"""

import math
from collections.abc import Callable
from typing import Final, TypeAlias

from hushfit.errors import InfeasibleBudget, InvalidArgument
from hushfit.privacy._budget import Budget
from hushfit.privacy._gaussian import gaussian_mu
from hushfit.privacy._relation import Relation
from hushfit.privacy.accounting._closed_forms import is_exact
from hushfit.privacy.accounting._interpret import delta_of
from hushfit.privacy.accounting._normal_form import normal_form
from hushfit.privacy.costs import Cost

# Relative width of the final bracket: closed forms are exact to rounding, convolutions do not
# justify a narrower one.
_EXACT_WIDTH: Final = 2e-9
_WIDTH: Final = 1e-3
# A strength this far below the first guess counts as no signal.
_VANISHING: Final = 1e-8
_MAX_EVALUATIONS: Final = 200

_Measure: TypeAlias = Callable[[float], float]
_Point: TypeAlias = tuple[float, float]


def calibrate(cost_at: Callable[[float], Cost], budget: Budget, relation: Relation | str) -> float:
    """Largest strength whose cost fits the budget.

    Parameters
    ----------
    cost_at : callable
        Takes a strength (like mu: sensitivity over noise scale, so ``GaussianCost(1 / strength)``)
        and returns a cost that grows with it. It may hold parts that do not change.
    budget : Budget
        The target. With infinite epsilon the result is infinity: no noise.
    relation : Relation or str
        Which data sets are neighbours.

    Returns
    -------
    float
        The safe end of the bracket: its delta is at most the target, and a strength 1 % higher is
        over it.

    Raises
    ------
    InfeasibleBudget
        If the parts that do not change exceed the budget by themselves.
    UnsupportedRelation
        If no proof covers the cost under the relation.

    Examples
    --------
    >>> from hushfit.privacy import Budget, GaussianCost, calibrate
    >>> strength = calibrate(lambda mu: GaussianCost(1 / mu, 10), Budget(1.0, 1e-6), "add-remove")
    >>> round(1 / strength, 2)  # noise multiplier of each of ten releases
    13.36
    """
    relation = Relation.parse(relation)
    if not budget.is_private:
        return math.inf
    target = gaussian_mu(budget.epsilon, budget.delta)

    def measured(strength: float) -> float:
        return _effective_mu(cost_at(strength), budget, relation)

    form = normal_form(cost_at(1.0), relation)
    if is_exact(form):
        return _largest(measured, target, start=target, width=_EXACT_WIDTH)
    if form.by_curve:
        return _largest(measured, target, start=target, width=_WIDTH)
    from hushfit.privacy.accounting.pld import rough_mu

    def roughly(strength: float) -> float:
        return rough_mu(normal_form(cost_at(strength), relation), relation)

    start = _first_guess(roughly, target)
    return _largest(measured, target, start=start, width=_WIDTH)


def _effective_mu(cost: Cost, budget: Budget, relation: Relation) -> float:
    """The mu of the Gaussian mechanism with the same delta at the target epsilon."""
    form = normal_form(cost, relation)
    if form.is_gaussian:
        return form.mu
    delta = delta_of(cost, budget.epsilon, relation)
    return gaussian_mu(budget.epsilon, max(delta, 1e-300)) if delta < 1 else math.inf


def _first_guess(roughly: _Measure, target: float) -> float:
    """Estimate from the central limit theorem; it affects speed only."""
    try:
        return _largest(roughly, target, start=target, width=0.01)
    except InvalidArgument:
        return target


def _largest(measure: _Measure, target: float, start: float, width: float) -> float:
    """Largest strength whose measure is at most the target, from below, to a relative width."""
    low: _Point | None = None
    high: _Point | None = None
    strength = start
    for evaluation in range(_MAX_EVALUATIONS):
        found = measure(strength)
        if found <= target:
            low = (strength, found)
        else:
            # Less strength did not suffice: check whether any strength would, before searching
            # further down.
            if (
                low is None
                and high is not None
                and high[0] == start
                and measure(_VANISHING * start) > target
            ):
                raise _infeasible()
            high = (strength, found)
        if low is not None and high is not None and high[0] <= low[0] * (1 + width):
            return low[0]
        if low is not None and low[0] > start / _VANISHING:
            raise InvalidArgument(
                "cost_at does not grow with strength. Noise must shrink as strength grows."
            )
        # Interpolation converges slowly where the cost has kinks: bisect every fourth time.
        strength = (
            _next(low, high, target, width)
            if evaluation % 4 < 3
            else _middle(low, high, target, width)
        )
    raise InvalidArgument(
        "cost_at is not monotone in strength. Every part must grow with it, or stay constant."
    )


def _infeasible() -> InfeasibleBudget:
    return InfeasibleBudget(
        "the parts of this plan whose noise is fixed already exceed the budget. "
        "Raise epsilon or delta, or give those parts a smaller share (for noise inside an "
        "objective: raise its mu)."
    )


def _middle(low: _Point | None, high: _Point | None, target: float, width: float) -> float:
    """Geometric mean of the bracket, once both ends are known."""
    if low is None or high is None:
        return _next(low, high, target, width)
    return math.sqrt(low[0] * high[0])


def _next(low: _Point | None, high: _Point | None, target: float, width: float) -> float:
    """Next strength to try: just past the expected root, so that it closes the bracket."""
    if low is None or high is None:
        strength, found = low or high or (1.0, 1.0)
        # Proportional, and a little beyond; extrapolate from one point by at most a factor of 8.
        jump = target / found if 0 < found < math.inf else math.inf * (target - found)
        push = 1 + width / 3 if low is not None else 1 - width / 3
        return strength * min(max(jump * push, 1 / 8), 8.0)
    a, b = math.log(low[0]), math.log(high[0])
    if low[1] <= 0 or high[1] == math.inf or low[1] >= high[1]:
        return math.exp((a + b) / 2)
    share = math.log(target / low[1]) / math.log(high[1] / low[1])
    root = a + (b - a) * share
    # Overshoot the root by a third of the width, towards the farther end.
    root += width / 3 if b - root > root - a else -width / 3
    # Interpolation close to one end converges slowly: keep a distance from both.
    margin = min(width / 3, (b - a) / 4)
    return math.exp(min(max(root, a + margin), b - margin))
