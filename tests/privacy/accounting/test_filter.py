"""Filters keep adaptive runs within their budget; the thesis' rule does not; approximate costs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from hushfit.errors import BudgetExceeded, InvalidArgument
from hushfit.privacy import (
    FILTER_ORDERS,
    ApproximateCost,
    Budget,
    FixedSizeGaussianCost,
    GaussianCost,
    GaussianFilter,
    Ledger,
    PoissonGaussianCost,
    PureCost,
    RdpFilter,
    RdpOdometer,
    Relation,
    compose,
    cost_from_dict,
    delta_of,
    epsilon_of,
    gaussian_delta,
    rdp_curve,
    rdp_delta,
    repeat,
)
from hushfit.privacy._gaussian import gaussian_profile
from hushfit.privacy.accounting._filter import (
    filter_orders,
    gaussian_mu_of_pure,
    order_share,
    pure_epsilon_of_gaussian,
)
from hushfit.privacy.accounting._normal_form import normal_form
from hushfit.privacy.accounting.pld import pld_delta, pure_profile

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE


# Delta of a rule that tracks several orders


def test_the_grid_of_orders_and_that_of_the_thesis():
    """privacy_C 4.7: the thesis' rule over 2..500 gives 2.28 delta, the shipped grid 0.73 delta.

    The latter is before the rest of delta is used up.
    """
    assert sum(order_share(order) for order in range(2, 501)) == pytest.approx(2.28, abs=0.005)
    assert sum(map(order_share, FILTER_ORDERS)) == pytest.approx(0.73, abs=0.005)
    assert sum(order_share(order) for order in range(2, 16)) <= 1


@pytest.mark.parametrize(
    "orders", [FILTER_ORDERS, (2.0, 3.0, 4.5), (32.0,), filter_orders(1.0, 1e-6)], ids=len
)
def test_allowances_add_up_to_exactly_delta(orders):
    """Each surviving order has its own delta at the filter's epsilon; they sum to the filter's
    delta.
    """
    made = RdpFilter(1.3, 1e-6, ADD, orders)
    of_orders = [
        math.exp((a - 1) * (allowed - 1.3)) * order_share(a)
        for a, allowed in zip(orders, made.allowances, strict=True)
    ]
    assert math.fsum(of_orders) == pytest.approx(1e-6, rel=1e-9)


def test_the_thesis_allowances_promise_too_much():
    """Its budgets epsilon - log(1/delta)/(a-1), for integer orders to 500, exceed any that sum to
    delta.
    """
    made = RdpFilter(1.0, 1e-6, ADD, tuple(map(float, range(2, 501))))
    thesis = 1.0 - math.log(1e6) / (np.arange(2, 501) - 1)
    assert np.all(thesis > made.allowances)
    shipped = RdpFilter(1.0, 1e-6, ADD)
    assert np.all(shipped.allowances > 1.0 - math.log(1e6) / (np.array(FILTER_ORDERS) - 1))


# Adversaries


def leaves(filter_of, prices, choose, depth):
    """Probabilities, under both hypotheses, of all paths of adaptive randomised responses.

    ``choose`` picks each epsilon from the history. The first hypothesis answers truthfully, the
    second lies. A response that the filter refuses ends the path.
    """

    def paths(history, p, q):
        if len(history) == depth:
            return [(p, q)]
        epsilon = prices[choose(history)]
        made = filter_of()
        for _, spent in history:
            made.charge(PureCost(spent))
        if not made.affords(PureCost(epsilon)):
            return [(p, q)]
        likely = expit(epsilon)
        return paths((*history, (1, epsilon)), p * likely, q * (1 - likely)) + paths(
            (*history, (0, epsilon)), p * (1 - likely), q * likely
        )

    return np.array(paths((), 1.0, 1.0))


CHOICES = {
    "always expensive": lambda history: 1,
    "expensive after a hit": lambda history: int(bool(history) and history[-1][0] == 1),
    "expensive while ahead": lambda history: int(sum(2 * bit - 1 for bit, _ in history) >= 0),
    "expensive after a miss": lambda history: int(bool(history) and history[-1][0] == 0),
}


@pytest.mark.parametrize("choose", CHOICES.values(), ids=CHOICES)
@pytest.mark.parametrize("orders", [FILTER_ORDERS, (2.0, 3.0, 4.0), (6.0,)], ids=len)
def test_no_adversary_exceeds_delta(choose, orders):
    """T11: the exact distribution of an adaptive run, path by path, at the filter's epsilon."""
    epsilon, delta = 1.5, 0.05
    found = leaves(lambda: RdpFilter(epsilon, delta, ADD, orders), (0.2, 0.6), choose, 12)
    assert found.sum(axis=0) == pytest.approx([1, 1])
    true = max(
        np.maximum(found[:, i] - math.exp(epsilon) * found[:, 1 - i], 0).sum() for i in (0, 1)
    )
    assert true <= delta


def test_a_filter_that_looks_afterwards_overdraws():
    """Checking past costs without the cost of the current call exceeds every allowance."""
    made, cost = RdpFilter(0.5, 1e-6, ADD), GaussianCost(8.0)
    curve = rdp_curve(cost, np.array(FILTER_ORDERS), ADD)
    spent = np.zeros_like(curve)
    while np.any(spent <= made.allowances):
        spent = spent + curve
    assert np.all(spent > made.allowances)
    while made.affords(cost):
        made.charge(cost)
    assert np.any(made._spent <= made.allowances)
    assert made.certified_orders


@given(
    st.lists(
        st.tuples(st.sampled_from([3.0, 5.0, 9.0, 20.0]), st.sampled_from([0.05, 0.3, 1.0])),
        max_size=25,
    )
)
@settings(max_examples=12)
def test_what_passed_is_within_an_allowance_of_some_order(releases):
    made, passed = RdpFilter(0.8, 1e-6, REPLACE), []
    for multiplier, rate in releases:
        cost = PoissonGaussianCost(multiplier, rate)
        if made.affords(cost):
            made.charge(cost)
            passed.append(cost)
        else:
            with pytest.raises(BudgetExceeded, match=r"epsilon=0\.8"):
                made.charge(cost)
    if passed:
        total = rdp_curve(compose(passed), np.array(FILTER_ORDERS), REPLACE)
        assert np.any(total <= made.allowances * (1 + 1e-12))
        assert (
            epsilon_of(compose(passed), 1e-6, REPLACE) <= 0.8
        )  # costs fixed beforehand give a smaller epsilon still


def test_a_refused_release_leaves_room_for_a_cheaper_one():
    made = RdpFilter(0.3, 1e-6, ADD)
    with pytest.raises(BudgetExceeded):
        made.charge(GaussianCost(1.0))
    assert made.affords(GaussianCost(60.0))


def test_one_order_chosen_beforehand_serves_a_known_schedule_best():
    """As many releases as the best single order allows; a grid of orders allows fewer."""

    def room(orders):
        made, count = RdpFilter(1.0, 1e-6, ADD, orders), 0
        while made.affords(GaussianCost(30.0)):
            made.charge(GaussianCost(30.0))
            count += 1
        return count

    offline = (
        next(k for k in range(1, 500) if epsilon_of(GaussianCost(30.0, k), 1e-6, ADD) > 1.0) - 1
    )
    assert room(FILTER_ORDERS) < room(filter_orders(1.0, 1e-6)) <= offline
    assert room(filter_orders(1.0, 1e-6)) > 0.75 * offline


def test_releases_that_may_keep_no_promise_need_an_allowance_for_it():
    leaky = ApproximateCost(0.01, 1e-7)
    assert not RdpFilter(1.0, 1e-6, ADD).affords(leaky)
    made = RdpFilter(1.0, 1e-6, ADD, lost=2.5e-7)
    made.charge(leaky)
    made.charge(leaky)
    assert not made.affords(leaky)


def test_a_ledger_can_ask_a_filter():
    """Earlier costs count, under the relation of the account."""
    before = [GaussianCost(5.0), PoissonGaussianCost(2.0, 0.1, 3)]
    fresh, used = RdpFilter(1.5, 1e-6, REPLACE), RdpFilter(1.5, 1e-6, REPLACE, spent=before)
    assert fresh.affords(GaussianCost(4.0))
    assert not used.affords(GaussianCost(4.0))


# Gaussian releases: adaptivity costs nothing


def two_steps(mu_one, mu_two, epsilon):
    """Delta of a Gaussian release followed by one whose mu depends on the first answer, by
    quadrature.
    """
    y = np.linspace(mu_one - 12, mu_one + 12, 24_001)
    density = np.exp(-0.5 * (y - mu_one) ** 2)
    loss = mu_one * y - mu_one**2 / 2
    mus = mu_two(y)
    inner = np.empty_like(y)
    for mu in np.unique(mus):
        inner[mus == mu] = gaussian_profile(epsilon - loss[mus == mu], float(mu))
    return float(density @ inner / density.sum())


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_gaussian_releases_may_adapt_for_nothing(epsilon):
    """Using all, nothing or part of the rest is never worse than one Gaussian of the whole mu."""
    left = math.sqrt(1.0 - 0.36)
    whole = gaussian_delta(epsilon, 1.0)
    for rule in (
        lambda y: np.where(y > 0, left, 0.0),
        lambda y: np.where(y > 1, 0.3, left),
        lambda y: np.full_like(y, left),
    ):
        assert two_steps(0.6, rule, epsilon) <= whole * (1 + 1e-6)
    assert two_steps(0.6, lambda y: np.full_like(y, left), epsilon) == pytest.approx(
        whole, rel=1e-6
    )


def test_a_gaussian_filter_that_looks_afterwards_would_be_worse_than_one_release():
    overdrawn = two_steps(0.6, lambda y: np.where(y > 0.6, 1.0, 0.0), 1.0)
    assert overdrawn > two_steps(0.6, lambda y: np.where(y > 0.6, 0.8, 0.0), 1.0)
    assert two_steps(0.6, lambda y: np.full_like(y, 1.0), 1.0) > gaussian_delta(1.0, 1.0)


def test_gaussian_filter_adds_squares():
    made = GaussianFilter(1.0)
    made.charge(GaussianCost(2.0, 3))  # three quarters
    assert made.affords(GaussianCost(2.01))
    assert not made.affords(GaussianCost(1.99))
    made.charge(GaussianCost(2.01))
    with pytest.raises(BudgetExceeded, match="mu=1"):
        made.charge(GaussianCost(5.0))


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 2.0, 30.0])
def test_a_pure_release_is_dominated_by_its_gaussian(epsilon):
    mu = gaussian_mu_of_pure(epsilon)
    grid = np.linspace(-2 * epsilon, 2 * epsilon, 201)
    assert np.all(pure_profile(grid, epsilon) <= gaussian_profile(grid, mu) + 1e-12)
    assert np.any(pure_profile(grid, epsilon) > gaussian_profile(grid, 0.97 * mu))
    assert pure_epsilon_of_gaussian(mu) == pytest.approx(epsilon, rel=1e-9)


def test_a_gaussian_filter_refuses_what_it_cannot_price():
    with pytest.raises(InvalidArgument, match="Use RdpFilter"):
        GaussianFilter(1.0).affords(PoissonGaussianCost(1.0, 0.1))
    with pytest.raises(InvalidArgument, match="Use RdpFilter"):
        GaussianFilter(1.0).affords(compose([GaussianCost(9.0), FixedSizeGaussianCost(1.0, 0.1)]))


# Odometer


def test_an_odometer_reads_at_every_moment():
    """Reports grow, and a filter of that epsilon and its share of delta would have let the run
    pass.
    """
    odometer, levels = RdpOdometer(1e-6, ADD, levels=(0.5, 1.0, 2.0, 4.0)), []
    spent = []
    for _ in range(60):
        odometer.charge(GaussianCost(12.0))
        spent.append(GaussianCost(12.0))
        levels.append(odometer.epsilon)
        if odometer.epsilon < math.inf:
            RdpFilter(odometer.epsilon, 1e-6 / 4, ADD, spent=spent)
            assert epsilon_of(compose(spent), 1e-6, ADD) <= odometer.epsilon
    assert levels == sorted(levels)
    assert levels[0] == 0.5
    assert levels[-1] > 2.0
    odometer.charge(GaussianCost(0.1))
    assert odometer.epsilon == math.inf


@pytest.mark.parametrize(
    "make",
    [
        lambda: RdpFilter(math.inf, 1e-6, ADD),
        lambda: RdpFilter(1.0, 0.0, ADD),
        lambda: RdpFilter(1.0, 1e-6, ADD, ()),
        lambda: RdpFilter(1.0, 1e-6, ADD, (1.0, 2.0)),
        lambda: RdpFilter(1.0, 1e-6, "nobody"),
        lambda: GaussianFilter(-1.0),
        lambda: ApproximateCost(1.0, 1.0),
        lambda: ApproximateCost(-1.0, 0.1),
    ],
)
def test_senseless_filters_are_refused(make):
    with pytest.raises(InvalidArgument):
        make()


# Approximate costs


def test_an_approximate_cost_is_what_it_says():
    cost = ApproximateCost(1.0, 1e-6)
    assert epsilon_of(cost, 1e-6, ADD) == pytest.approx(1.0)
    assert epsilon_of(cost, 0.99e-6, ADD) == math.inf
    assert delta_of(cost, 1.0, ADD) == pytest.approx(1e-6)
    assert delta_of(cost, 0.0, ADD) == pytest.approx(1e-6 + (1 - 1e-6) * math.tanh(0.5))
    assert delta_of(ApproximateCost(math.inf, 1e-6), 3.0, ADD) == 1.0
    assert delta_of(ApproximateCost(0.0, 1e-6), 0.0, ADD) == pytest.approx(1e-6)
    assert cost_from_dict(cost.to_dict()) == cost


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 1.7])
def test_approximate_costs_compose_as_lost_or_randomised(epsilon):
    """Two of them, by enumeration: a failure if either fails, else two randomised responses."""
    cost, likely = ApproximateCost(0.8, 0.01), expit(0.8)
    p = np.outer([likely, 1 - likely], [likely, 1 - likely]).ravel()
    kept = np.maximum(p - math.exp(epsilon) * p[::-1], 0).sum()
    lost = 1 - 0.99**2
    assert delta_of(repeat(cost, 2), epsilon, ADD) == pytest.approx(
        lost + (1 - lost) * kept, rel=1e-9
    )


@pytest.mark.parametrize(
    "other", [GaussianCost(2.0, 3), PoissonGaussianCost(1.5, 0.1, 4), PureCost(0.2, 2)], ids=repr
)
@pytest.mark.parametrize("relation", [ADD, REPLACE], ids=str)
def test_in_company_all_interpreters_agree_on_the_safe_side(other, relation):
    total = compose([ApproximateCost(0.5, 1e-7), other])
    found = delta_of(total, 0.6, relation)
    assert 1e-7 < found <= rdp_delta(total, 0.6, relation)
    assert found >= delta_of(other, 0.6, relation)
    assert pld_delta(normal_form(total, relation), 0.6, relation) == pytest.approx(found, rel=0.01)
    assert epsilon_of(total, found, relation) == pytest.approx(0.6, rel=0.01)


def test_its_pair_by_itself():
    cost = ApproximateCost(0.7, 1e-3)
    pair = cost.directions(ADD).remove
    grid = np.array([-0.9, -0.2, 0.0, 0.4, 0.7, 3.0])
    np.testing.assert_allclose(pair.profile(grid), 1e-3 + (1 - 1e-3) * pure_profile(grid, 0.7))


def test_a_ledger_keeps_tiny_deltas():
    """At delta = 1e-12 rounding would dominate a convolution; the closed form is exact."""
    ledger = Ledger(1.0, 1e-12)
    kept = Budget(1.0, 1e-12)
    ledger.charge(ApproximateCost(0.999 * kept.epsilon, 0.99 * kept.delta), "run", REPLACE)
    with pytest.raises(BudgetExceeded):
        ledger.charge(ApproximateCost(0.1, 0.5e-12), "again", REPLACE)
