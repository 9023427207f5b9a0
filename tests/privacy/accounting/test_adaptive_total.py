"""Costs chosen after seeing answers: the filter of a ledger against the best adversary."""

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
    ThresholdedGaussianCost,
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
from hushfit.privacy.accounting._adaptive_total import LOST_SHARE, FilteredTotal, _mu_of_profile
from hushfit.privacy.accounting._interpret import profile_of

REPLACE, ADD_REMOVE = Relation.REPLACE_ONE, Relation.ADD_REMOVE
BUDGET_GIVEN = (1.0, 1e-6)
BUDGET = Budget(*BUDGET_GIVEN)


def outcomes(cost):
    """Probabilities under both hypotheses of the most revealing release of a pure or approximate
    cost.
    """
    lost = getattr(cost, "delta", 0.0)
    likely = 1 / (1 + math.exp(-cost.epsilon))
    responses = [
        ((1 - lost) * likely, (1 - lost) * (1 - likely)),
        ((1 - lost) * (1 - likely), (1 - lost) * likely),
    ]
    return responses + ([(lost, 0.0), (0.0, lost)] if lost else [])


def best_adversary(budget, menu, rule, most=5):
    """Exact delta, at the budget's epsilon, of the best adaptive adversary.

    After each answer it chooses the next release or stops.
    """
    factor = math.exp(budget.epsilon)

    @lru_cache(None)
    def fits(charged):
        return rule(charged) <= budget.epsilon

    def value(p, q, charged):
        choices = [max(p - factor * q, 0.0)]
        if len(charged) < most:
            following = (charged + (cost,) for cost in menu)
            choices += [
                sum(value(p * a, q * b, f) for a, b in outcomes(f[-1]))
                for f in following
                if fits(f)
            ]
        return max(choices)

    return value(1.0, 1.0, ())


MENUS = [
    (Budget(0.5, 0.1), (PureCost(0.5), PureCost(0.3))),
    (Budget(0.5, 0.05), (PureCost(0.3), PureCost(0.2))),
    (Budget(0.5, 0.2), (PureCost(0.15), PureCost(0.26))),
    (Budget(1.0, 0.05), (ApproximateCost(0.3, 0.001), PureCost(0.2))),
    (Budget(1.0, 0.2), (ApproximateCost(0.45, 0.005), PureCost(0.3))),
    # The first of them may use most of delta as failure probability.
    (Budget(0.5, 0.1), (ApproximateCost(0.2, 0.06), PureCost(0.15), ApproximateCost(0.1, 0.001))),
    (Budget(1.0, 0.2), (ApproximateCost(0.3, 0.12), ApproximateCost(0.2, 0.002), PureCost(0.25))),
]


@pytest.mark.parametrize(("budget", "menu"), MENUS)
def test_the_best_adversary_stays_within_the_budget(budget, menu):
    lost = best_adversary(budget, menu, lambda charged: filtered_epsilon(charged, budget, REPLACE))
    assert lost <= budget.delta * (1 + 1e-12)


def test_ordinary_composition_is_beaten_by_choosing_along_the_way():
    """Eight per cent over delta with two costs to choose from: composition is no filter."""
    budget, menu = MENUS[0]
    lost = best_adversary(
        budget, menu, lambda charged: epsilon_of(compose(charged), budget.delta, REPLACE)
    )
    assert lost > 1.08 * budget.delta


# Each second charge reveals as much as a ledger accepts after a Gaussian first one.
SECOND = [
    lambda s: GaussianCost(1 / s),
    PureCost,
    lambda s: ApproximateCost(0.0, min(1e-6 * s, 0.5)),
    lambda s: PoissonGaussianCost(1 / s, 0.01, 1),
]


def largest_accepted(first, made, adaptive):
    def accepted(strength):
        ledger = Ledger(*BUDGET_GIVEN, adaptive=adaptive)
        ledger.charge(first, "first", REPLACE)
        try:
            ledger.charge(made(strength), "second", REPLACE)
        except BudgetExceeded:
            return False
        return True

    low, high = 1e-6, 20.0
    assert accepted(low)
    for _ in range(16):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if accepted(middle) else (low, middle)
    return made(low)


def profile_anywhere(cost, epsilons):
    """The profile of a symmetric pair, at negative epsilons too."""
    order = np.argsort(np.abs(epsilons))
    profile = np.empty_like(epsilons)
    profile[order] = profile_of(cost, np.abs(epsilons)[order], REPLACE)
    factor = np.exp(-np.abs(epsilons))
    return np.where(epsilons >= 0, profile, 1 - factor + factor * profile)


def best_second_charge(share, adaptive):
    """Delta at the budget's epsilon, in units of its delta, of the best second charge.

    It is chosen after each first answer.
    """
    mu = gaussian_mu(*BUDGET_GIVEN) * math.sqrt(share)
    seconds = [largest_accepted(GaussianCost(1 / mu), made, adaptive) for made in SECOND]
    z = np.linspace(-9, 9, 3001)
    weights = np.exp(-z * z / 2) / np.exp(-z * z / 2).sum()
    rest = BUDGET.epsilon - (mu * z + mu * mu / 2)
    return (
        float(weights @ np.max([profile_anywhere(cost, rest) for cost in seconds], axis=0))
        / BUDGET.delta
    )


@pytest.mark.slow
@pytest.mark.parametrize(("share", "least"), [(0.1, 0.6), (0.5, 0.9)])
def test_the_best_of_many_second_charges_stays_within_the_budget(share, least):
    """And comes close to it: the ledger is not safe merely because it refuses everything."""
    assert least < best_second_charge(share, adaptive=True) <= 1


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_ordinary_composition_loses_more_than_twice_delta_to_the_best_second_charge(share):
    assert 2.4 < best_second_charge(share, adaptive=False) < 3.1


def test_a_filter_that_counted_only_the_last_plan_would_be_seen():
    budget, menu = MENUS[0]
    assert (
        best_adversary(
            budget, menu, lambda charged: filtered_epsilon(charged[-1:], budget, REPLACE)
        )
        > 2 * budget.delta
    )


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
    """At random epsilons, not those of the comparison; and no much smaller mu does."""
    epsilons = (
        np.random.default_rng(0).uniform(0, 1.2 * epsilon_of(cost, lost, relation), 60).tolist()
    )
    deltas = [delta_of(cost, epsilon, relation) for epsilon in epsilons]

    def dominates(mu):
        return all(
            d <= lost + (1 - lost) * gaussian_delta(e, mu)
            for d, e in zip(deltas, epsilons, strict=True)
        )

    mu = dominating_mu(cost, lost, relation)
    assert dominates(mu)
    assert not dominates(0.95 * mu)


def test_gaussian_and_pure_costs_need_no_lost_probability():
    assert dominating_mu(GaussianCost(5.0, 4), 1e-9, REPLACE) == pytest.approx(0.4)
    mu = dominating_mu(PureCost(0.3), 1e-9, REPLACE)
    assert gaussian_delta(0.0, mu) == pytest.approx(delta_of(PureCost(0.3), 0.0, REPLACE))


def test_what_has_no_gaussian_bound_does_not_fit():
    assert dominating_mu(ApproximateCost(0.1, 1e-3), 1e-6, REPLACE) == math.inf
    assert (
        filtered_epsilon([GaussianCost(20.0), ApproximateCost(0.1, 5e-7)], BUDGET, REPLACE)
        == math.inf
    )
    assert filtered_epsilon([GaussianCost(1e6), GaussianCost(0.0)], BUDGET, REPLACE) == math.inf


def test_a_single_plan_is_exact_and_nothing_costs_nothing():
    cost = PoissonGaussianCost(1.0, 0.01, 100)
    assert filtered_epsilon([], BUDGET, REPLACE) == 0.0
    assert filtered_epsilon([cost], BUDGET, REPLACE) == epsilon_of(cost, BUDGET.delta, REPLACE)
    assert filtered_epsilon([GaussianCost(math.inf), PureCost(0.0)], BUDGET, REPLACE) == 0.0


def test_delta_is_shared_as_the_proof_says():
    """The delta of the first plan, the failure share and one Gaussian release sum to delta."""
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


def test_a_list_fixed_beforehand_is_one_charge():
    spendable, _ = usable(BUDGET)
    half = GaussianCost(math.sqrt(2) / gaussian_mu(spendable.epsilon, spendable.delta))
    planned, chosen = Ledger(1.0, 1e-6), Ledger(1.0, 1e-6)
    planned.charge(compose([half, half]), "survey", "replace-one")
    assert planned.spent().epsilon == pytest.approx(spendable.epsilon)
    chosen.charge(half, "first", "replace-one")
    with pytest.raises(BudgetExceeded, match="none will be left out, a ledger for fixed analyses"):
        chosen.charge(half, "second", "replace-one")
    assert len(chosen.entries) == 1


VOCABULARY = ThresholdedGaussianCost(13.578, 2.5e-7)


@pytest.mark.parametrize(
    "made", [lambda s: GaussianCost(1 / s), lambda s: PoissonGaussianCost(1 / s, 0.02, 300)]
)
def test_a_fit_after_a_vocabulary_costs_about_a_per_cent(made):
    """The failure probability of the first plan is reserved once, not twice."""
    strength = calibrate(lambda s: compose([VOCABULARY, made(s)]), BUDGET, REPLACE)
    assert 1 < filtered_epsilon([VOCABULARY, made(strength)], BUDGET, REPLACE) < 1.015
    ledger = Ledger(1.0, 1e-6)
    for cost in (VOCABULARY, made(0.95 * strength)):
        ledger.charge(cost, "step", REPLACE)


def test_a_lost_probability_that_does_not_fit_is_named():
    """A second vocabulary may not fail with probability delta / 4, whatever its noise."""
    ledger = Ledger(1.0, 1e-6)
    ledger.charge(VOCABULARY, "first", REPLACE)
    with pytest.raises(
        BudgetExceeded,
        match=(
            r"failure probability of payments after the first would be 2\.5e-07, "
            r"over the 3\.\d+e-08 that .*smaller delta"
        ),
    ):
        ledger.charge(VOCABULARY, "second", REPLACE)
    ledger.charge(ThresholdedGaussianCost(13.578, 2.5e-8), "second", REPLACE)
    with pytest.raises(BudgetExceeded, match="no privacy"):
        ledger.charge(GaussianCost(0.0), "rows", REPLACE)


def test_a_delta_that_the_first_payment_took_is_named():
    """A first payment within the rounding that a ledger allows leaves less than no delta."""
    spendable, _ = usable(BUDGET)
    ledger = Ledger(1.0, 1e-6)
    ledger.charge(
        GaussianCost(1 / gaussian_mu(spendable.epsilon * (1 + 5e-10), spendable.delta)),
        "first",
        REPLACE,
    )
    with pytest.raises(
        BudgetExceeded, match="the first payment took the whole of the ledger's delta=1e-06"
    ):
        ledger.charge(GaussianCost(50.0), "second", REPLACE)


def test_lost_probabilities_of_one_plan_are_those_of_its_profile():
    both = compose([ApproximateCost(0.0, 0.3), ApproximateCost(0.0, 0.2)])
    total = FilteredTotal(BUDGET, REPLACE).after(GaussianCost(1.0)).after(both)
    assert float(total.lost) == pytest.approx(delta_of(both, 5.0, REPLACE), rel=1e-12)


def test_tiny_pure_releases_count():
    """A huge number of them counts, though each alone is nearly nothing."""
    for epsilon in (1e-17, 1e-12, 1e-6, 0.01):
        many = PureCost(epsilon, round(epsilon**-2))
        assert dominating_mu(many, 1e-9, REPLACE) == pytest.approx(math.sqrt(math.pi / 2), rel=1e-4)
        assert epsilon_of(many, 1e-6, REPLACE) > epsilon_of(GaussianCost(1.0), 1e-6, REPLACE) * (
            1 - 1e-3
        )
    ledger = Ledger(1.0, 1e-6)
    ledger.charge(GaussianCost(1e3), "first", REPLACE)
    with pytest.raises(BudgetExceeded):
        ledger.charge(PureCost(1e-16, 10**36), "many", REPLACE)


@pytest.mark.slow
def test_hundreds_of_plans_are_remembered():
    plans = [RdpCost.from_curve(lambda orders: 1e-5 * orders)] * 270
    filtered_epsilon(plans, BUDGET, REPLACE)
    misses = _mu_of_profile.cache_info().misses
    filtered_epsilon([*plans, GaussianCost(1e3)], BUDGET, REPLACE)
    assert _mu_of_profile.cache_info().misses == misses


def test_a_ledger_says_its_rule():
    assert Ledger(1.0, 1e-6).rule.startswith("filter")
    assert Ledger(1.0, 1e-6, adaptive=False).rule.startswith("composition")
    unlimited = Ledger(math.inf, 1e-6)
    assert "no budget" in unlimited.rule
    for _ in range(2):
        unlimited.charge(GaussianCost(5.0), "fit", "replace-one")
    assert unlimited.spent().epsilon == epsilon_of(GaussianCost(5.0, 2), 1e-6, "replace-one")


def test_a_rule_that_is_no_rule_is_refused():
    with pytest.raises(InvalidArgument, match="neither True nor False"):
        Ledger(1.0, 1e-6, adaptive="no")


@pytest.mark.parametrize("lost", [0.0, 1.0, -1e-3])
def test_a_lost_probability_outside_its_range_is_refused(lost):
    with pytest.raises(InvalidArgument):
        dominating_mu(GaussianCost(1.0), lost, REPLACE)
