"""Prices chosen after seeing answers: the filter of a ledger against the best adversary there is."""

import math
from functools import lru_cache

import numpy as np
import pytest

from hushfit.errors import BudgetExceeded, InvalidArgument
from hushfit.privacy import (
    ApproximateCost,
    Budget,
    FixedSizeGaussianCost,
    GaussianCost,
    Ledger,
    PoissonGaussianCost,
    PureCost,
    RdpCost,
    Relation,
    calibrate,
    compose,
    delta_of,
    dominating_mu,
    epsilon_of,
    filtered_epsilon,
    gaussian_delta,
    gaussian_mu,
    usable,
)
from hushfit.privacy._adaptive_total import LOST_SHARE

REPLACE, ADD_REMOVE = Relation.REPLACE_ONE, Relation.ADD_REMOVE
BUDGET = Budget(1.0, 1e-6)


def outcomes(cost):
    """Probabilities under both laws of the most revealing release of a pure or approximate price."""
    lost = getattr(cost, "delta", 0.0)
    likely = 1 / (1 + math.exp(-cost.epsilon))
    told = [((1 - lost) * likely, (1 - lost) * (1 - likely)), ((1 - lost) * (1 - likely), (1 - lost) * likely)]
    return told + ([(lost, 0.0), (0.0, lost)] if lost else [])


def best_adversary(budget, menu, rule, most=5):
    """Exact delta at the budget's epsilon of whoever chooses best, after each answer, what to buy next or to stop."""
    factor = math.exp(budget.epsilon)

    @lru_cache(None)
    def fits(bought):
        return rule(bought) <= budget.epsilon

    def value(p, q, bought):
        choices = [max(p - factor * q, 0.0)]
        if len(bought) < most:
            following = (bought + (cost,) for cost in menu)
            choices += [sum(value(p * a, q * b, f) for a, b in outcomes(f[-1])) for f in following if fits(f)]
        return max(choices)

    return value(1.0, 1.0, ())


MENUS = [
    (Budget(0.5, 0.1), (PureCost(0.5), PureCost(0.3))),
    (Budget(0.5, 0.05), (PureCost(0.3), PureCost(0.2))),
    (Budget(0.5, 0.2), (PureCost(0.15), PureCost(0.26))),
    (Budget(1.0, 0.05), (ApproximateCost(0.3, 0.001), PureCost(0.2))),
    (Budget(1.0, 0.2), (ApproximateCost(0.45, 0.005), PureCost(0.3))),
]


@pytest.mark.parametrize(("budget", "menu"), MENUS)
def test_the_best_adversary_stays_within_the_budget(budget, menu):
    lost = best_adversary(budget, menu, lambda bought: filtered_epsilon(bought, budget, REPLACE))
    assert lost <= budget.delta * (1 + 1e-12)


def test_ordinary_composition_is_beaten_by_choosing_along_the_way():
    """Eight per cent over delta, with two prices to choose from: composing what was bought is no filter."""
    budget, menu = MENUS[0]
    lost = best_adversary(budget, menu, lambda bought: epsilon_of(compose(bought), budget.delta, REPLACE))
    assert lost > 1.08 * budget.delta


def test_a_filter_that_counted_only_the_last_plan_would_be_seen():
    budget, menu = MENUS[0]
    assert best_adversary(budget, menu, lambda bought: filtered_epsilon(bought[-1:], budget, REPLACE)) > 2 * budget.delta


COSTS = [
    (PoissonGaussianCost(1.0, 0.01, 100), ADD_REMOVE),
    (PoissonGaussianCost(0.8, 0.02, 40), REPLACE),
    (FixedSizeGaussianCost(2.0, 0.05, 30), REPLACE),
    (compose([GaussianCost(8.0), PoissonGaussianCost(1.5, 0.02, 50), PureCost(0.05)]), REPLACE),
    (ApproximateCost(0.4, 1e-9), REPLACE),
    (RdpCost.from_curve(lambda orders: 0.01 * orders), REPLACE),
]


@pytest.mark.parametrize("lost", [1e-8, 1e-5])
@pytest.mark.parametrize(("cost", "relation"), COSTS)
def test_a_gaussian_release_dominates_but_for_the_stated_probability(cost, relation, lost):
    """At random epsilons, not those that were compared; and no much smaller one does."""
    epsilons = np.random.default_rng(0).uniform(0, 1.2 * epsilon_of(cost, lost, relation), 60).tolist()
    deltas = [delta_of(cost, epsilon, relation) for epsilon in epsilons]

    def dominates(mu):
        return all(d <= lost + (1 - lost) * gaussian_delta(e, mu) for d, e in zip(deltas, epsilons, strict=True))

    mu = dominating_mu(cost, lost, relation)
    assert dominates(mu)
    assert not dominates(0.95 * mu)


def test_gaussian_and_pure_costs_need_no_lost_probability():
    assert dominating_mu(GaussianCost(5.0, 4), 1e-9, REPLACE) == pytest.approx(0.4)
    mu = dominating_mu(PureCost(0.3), 1e-9, REPLACE)
    assert gaussian_delta(0.0, mu) == pytest.approx(delta_of(PureCost(0.3), 0.0, REPLACE))


def test_what_has_no_gaussian_bound_does_not_fit():
    assert dominating_mu(ApproximateCost(0.1, 1e-3), 1e-6, REPLACE) == math.inf
    assert filtered_epsilon([GaussianCost(20.0), ApproximateCost(0.1, 5e-7)], BUDGET, REPLACE) == math.inf
    assert filtered_epsilon([GaussianCost(1e6), GaussianCost(0.0)], BUDGET, REPLACE) == math.inf


def test_a_single_plan_is_exact_and_nothing_costs_nothing():
    cost = PoissonGaussianCost(1.0, 0.01, 100)
    assert filtered_epsilon([], BUDGET, REPLACE) == 0.0
    assert filtered_epsilon([cost], BUDGET, REPLACE) == epsilon_of(cost, BUDGET.delta, REPLACE)
    assert filtered_epsilon([GaussianCost(math.inf), PureCost(0.0)], BUDGET, REPLACE) == 0.0


def test_delta_is_shared_as_the_proof_says():
    """What the first plan can lose alone, what Gaussian releases do not dominate, and one Gaussian release: delta in all."""
    plans = [GaussianCost(6.0), GaussianCost(9.0), GaussianCost(9.0)]
    mu = math.sqrt(1 / 36 + 2 / 81)
    left = BUDGET.delta - delta_of(plans[0], BUDGET.epsilon, REPLACE)
    counted = filtered_epsilon(plans, BUDGET, REPLACE)
    assert gaussian_delta(counted, mu) == pytest.approx((1 - LOST_SHARE) * left, rel=1e-6)
    # The order matters only through the first plan.
    assert filtered_epsilon([plans[0], plans[2], plans[1]], BUDGET, REPLACE) == counted


@pytest.mark.parametrize("parts", [2, 7, 40])
def test_gaussian_fits_lose_less_than_a_per_cent(parts):
    share = GaussianCost(math.sqrt(parts) / gaussian_mu(1.0, 1e-6))
    assert 1 < filtered_epsilon([share] * parts, BUDGET, REPLACE) < 1.01


def test_sampled_fits_lose_a_few_per_cent():
    strength = calibrate(lambda s: PoissonGaussianCost(1 / s, 0.02, 400), BUDGET, ADD_REMOVE)
    quarter = PoissonGaussianCost(1 / strength, 0.02, 100)
    assert 1 < filtered_epsilon([quarter] * 4, BUDGET, ADD_REMOVE) < 1.1


def test_pure_epsilons_add_up():
    ledger = Ledger(1.0, 1e-6)
    for _ in range(4):
        ledger.charge(PureCost(0.2499), "count", "replace-one")
    assert ledger.spent().epsilon == pytest.approx(4 * 0.2499)


def test_the_first_fit_may_use_everything_and_leaves_nothing():
    spendable, _ = usable(BUDGET)
    strength = calibrate(lambda s: PoissonGaussianCost(1 / s, 0.02, 100), spendable, "replace-one")
    ledger = Ledger(1.0, 1e-6)
    ledger.charge(PoissonGaussianCost(1 / strength, 0.02, 100), "fit", "replace-one")
    for cost in (PureCost(1e-3), GaussianCost(200.0)):
        with pytest.raises(BudgetExceeded, match="Nothing was released"):
            ledger.charge(cost, "more", "replace-one")


def test_a_plan_fixed_beforehand_counts_as_one_mechanism():
    spendable, _ = usable(BUDGET)
    half = GaussianCost(math.sqrt(2) / gaussian_mu(spendable.epsilon, 1e-6))
    planned, chosen = Ledger(1.0, 1e-6), Ledger(1.0, 1e-6)
    for name in ("first", "second"):
        planned.charge(half, name, "replace-one", plan="survey")
    assert planned.spent().epsilon == pytest.approx(spendable.epsilon)
    chosen.charge(half, "first", "replace-one")
    with pytest.raises(BudgetExceeded, match="adaptive=False has a little more room"):
        chosen.charge(half, "second", "replace-one")
    assert len(chosen.entries) == 1


def test_a_ledger_says_its_rule():
    assert Ledger(1.0, 1e-6).rule.startswith("filter")
    assert Ledger(1.0, 1e-6, adaptive=False).rule.startswith("composition")
    books = Ledger(math.inf, 1e-6)
    assert "no budget" in books.rule
    for _ in range(2):
        books.charge(GaussianCost(5.0), "fit", "replace-one")
    assert books.spent().epsilon == epsilon_of(GaussianCost(5.0, 2), 1e-6, "replace-one")


def test_a_rule_that_is_no_rule_is_refused():
    with pytest.raises(InvalidArgument, match="neither True nor False"):
        Ledger(1.0, 1e-6, adaptive="no")


@pytest.mark.parametrize("lost", [0.0, 1.0, -1e-3])
def test_a_lost_probability_outside_its_range_is_refused(lost):
    with pytest.raises(InvalidArgument):
        dominating_mu(GaussianCost(1.0), lost, REPLACE)
