"""Calibration: the least noise for a budget is safe, tight and equal to the stock search."""

import math

import dp_accounting as dpa
import pytest
from dp_accounting.pld import privacy_loss_distribution as stock
from hypothesis import given, settings
from hypothesis import strategies as st

from hushfit.errors import InfeasibleBudget, InvalidArgument, UnsupportedRelation
from hushfit.privacy import (
    Budget,
    FixedSizeGaussianCost,
    GaussianCost,
    PoissonGaussianCost,
    PureCost,
    RdpCost,
    Relation,
    calibrate,
    compose,
    delta_of,
    epsilon_of,
    gaussian_mu,
    repeat,
)

REPLACE, ADD = Relation.REPLACE_ONE, Relation.ADD_REMOVE


def assert_tight(cost_at, strength, budget, relation):
    """Within the budget, and over it at one per cent more strength."""
    assert delta_of(cost_at(strength), budget.epsilon, relation) <= budget.delta
    assert delta_of(cost_at(1.01 * strength), budget.epsilon, relation) > budget.delta
    assert epsilon_of(cost_at(strength), budget.delta, relation) <= budget.epsilon * (1 + 1e-9)


def renyi(strength):
    return RdpCost.from_curve(lambda a: a * strength**2 / 2, "like a Gaussian")


PLANS = {
    "gaussian": (lambda s: GaussianCost(1 / s, 50), REPLACE),
    "two gaussians": (lambda s: compose([GaussianCost(1 / s, 50), GaussianCost(3 / s)]), ADD),
    "gaussian and a fixed gate": (lambda s: compose([GaussianCost(1 / s), PureCost(0.01, 3)]), ADD),
    "scaled gate": (lambda s: PureCost(s, 20), ADD),
    "poisson": (lambda s: PoissonGaussianCost(1 / s, 0.02, 300), ADD),
    "poisson swap": (lambda s: PoissonGaussianCost(1 / s, 0.02, 300), REPLACE),
    "fixed size": (lambda s: FixedSizeGaussianCost(1 / s, 0.02, 300), REPLACE),
    "poisson and a fixed release": (
        lambda s: compose([PoissonGaussianCost(1 / s, 0.02, 9), GaussianCost(200.0)]),
        ADD,
    ),
    "curve": (renyi, REPLACE),
    "curve and poisson": (
        lambda s: compose([renyi(s), PoissonGaussianCost(1 / s, 0.05, 20)]),
        REPLACE,
    ),
}
BUDGETS = [Budget(0.1, 1e-6), Budget(1.0, 1e-8), Budget(8.0, 1e-5)]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("plan", PLANS)
def test_safe_and_within_one_per_cent(plan, budget):
    cost_at, relation = PLANS[plan]
    assert_tight(cost_at, calibrate(cost_at, budget, relation), budget, relation)


# Batch size of 40000 rows, steps, and noise multipliers: in units of the per-record bound for
# Poisson, of twice that for fixed size.
TABLE = [
    (200, 200, 1.003, 1.026, 1.010),
    (200, 2000, 1.386, 2.298, 1.556),
    (2000, 200, 3.834, 7.215, 4.016),
    (4000, 100, 5.361, 10.201, 5.507),
]


@pytest.mark.parametrize(("batch", "steps", "add", "swap", "fixed"), TABLE)
def test_table_of_subsampled_multipliers(batch, steps, add, swap, fixed):
    """The table was made on grids of 3e-4 and 1e-3, which need up to 0.4 % more noise than ours."""
    budget, rate = Budget(1.0, 1e-8), batch / 40_000
    rows = [
        (add, 1, lambda s: PoissonGaussianCost(1 / s, rate, steps), ADD),
        (swap, 2, lambda s: PoissonGaussianCost(1 / s, rate, steps), REPLACE),
        (fixed, 1, lambda s: FixedSizeGaussianCost(1 / s, rate, steps), REPLACE),
    ]
    for expected, unit, cost_at, relation in rows:
        multiplier = unit / calibrate(cost_at, budget, relation)
        assert expected * (1 - 5e-3) <= multiplier <= expected + max(2e-3, 1e-3 * expected)


@pytest.mark.parametrize(("rate", "steps"), [(0.005, 200), (0.05, 400)])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_half_a_per_cent_from_the_stock_root(rate, steps, relation):
    """The stock distribution on a fine grid has its root within 0.5 % of our noise multiplier."""
    budget = Budget(1.0, 1e-6)
    multiplier = 1 / calibrate(lambda s: PoissonGaussianCost(1 / s, rate, steps), budget, relation)
    unit = 1 if relation is ADD else 2
    theirs = (
        dpa.NeighboringRelation.ADD_OR_REMOVE_ONE
        if relation is ADD
        else dpa.NeighboringRelation.REPLACE_ONE
    )

    def stock_delta(noise):
        one = stock.from_gaussian_mechanism(
            unit * noise, sampling_prob=rate, neighboring_relation=theirs
        )
        return one.self_compose(steps).get_delta_for_epsilon(budget.epsilon)

    assert stock_delta(1.005 * multiplier) <= budget.delta < stock_delta(0.995 * multiplier)


@given(st.floats(0.01, 50), st.floats(-30, -2), st.integers(1, 1000))
@settings(max_examples=40)
def test_gaussian_plans_use_the_closed_form(epsilon, log_delta, count):
    budget = Budget(epsilon, math.exp(log_delta))
    strength = calibrate(lambda s: repeat(GaussianCost(1 / s), count), budget, REPLACE)
    exact = gaussian_mu(budget.epsilon, budget.delta) / math.sqrt(count)
    assert exact * (1 - 3e-9) <= strength <= exact
    assert delta_of(GaussianCost(1 / strength, count), budget.epsilon, REPLACE) <= budget.delta


def test_no_privacy_asks_for_no_noise():
    assert calibrate(lambda s: GaussianCost(1 / s), Budget(math.inf, 1e-6), REPLACE) == math.inf


@pytest.mark.parametrize(
    "fixed",
    [GaussianCost(0.5), PureCost(5.0), FixedSizeGaussianCost(0.3, 0.5, 10), GaussianCost(0.0)],
)
def test_fixed_parts_over_budget_are_reported(fixed):
    with pytest.raises(InfeasibleBudget, match="Raise epsilon"):
        calibrate(lambda s: compose([GaussianCost(1 / s), fixed]), Budget(1.0, 1e-6), REPLACE)


def test_cost_that_ignores_strength_is_reported():
    with pytest.raises(InvalidArgument, match="does not grow"):
        calibrate(lambda s: GaussianCost(100.0), Budget(1.0, 1e-6), REPLACE)


def test_unproved_relation_is_refused():
    with pytest.raises(UnsupportedRelation):
        calibrate(lambda s: FixedSizeGaussianCost(1 / s, 0.1), Budget(1.0, 1e-6), ADD)


@pytest.mark.parametrize(("steps", "noise"), [(200, 0.003606), (2000, 0.011405), (100, 0.002550)])
def test_full_batches_of_the_same_table(steps, noise):
    """Noise on the mean gradient of 40000 rows, C = 1: noise multiplier times sensitivity 2C/n."""
    strength = calibrate(lambda s: GaussianCost(1 / s, steps), Budget(1.0, 1e-8), REPLACE)
    assert 2 / 40_000 / strength == pytest.approx(noise, abs=1e-6)
