"""Epsilon and delta of a cost, by every accountant, against definitions and dp_accounting."""

import math

import dp_accounting as dpa
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as stock
from hypothesis import given, settings
from hypothesis import strategies as st

from hushfit.errors import BudgetExceeded, InvalidArgument, UnsupportedRelation
from hushfit.privacy import (
    RENYI_ORDERS,
    ComposedCost,
    FixedSizeGaussianCost,
    GaussianCost,
    Ledger,
    PoissonGaussianCost,
    PureCost,
    RdpCost,
    Relation,
    compose,
    delta_of,
    epsilon_of,
    gaussian_delta,
    rdp_curve,
    rdp_delta,
    rdp_epsilon,
    repeat,
)
from hushfit.privacy.accounting import pld as accounting
from hushfit.privacy.accounting._closed_forms import exact_delta, exact_epsilon
from hushfit.privacy.accounting._loss_distribution import LossDistribution
from hushfit.privacy.accounting._normal_form import normal_form

REPLACE, ADD = Relation.REPLACE_ONE, Relation.ADD_REMOVE
NEIGHBOURS = dpa.NeighboringRelation


def pld_epsilon(cost, delta, relation):
    return accounting.pld_epsilon(normal_form(cost, relation), delta, relation)


def pld_delta(cost, epsilon, relation):
    return accounting.pld_delta(normal_form(cost, relation), epsilon, relation)


# Known values -------------------------------------------------------------------------------------


def test_one_gaussian_in_two_units():
    """dp_accounting's 'noise multiplier 2' gives 4.8866 as PLD (our 1) and 2.419 as RDP (our 2)."""
    assert epsilon_of(GaussianCost(1.0), 1e-6, REPLACE) == pytest.approx(4.8866, abs=1e-4)
    assert pld_epsilon(GaussianCost(1.0), 1e-6, REPLACE) == pytest.approx(4.8866, rel=2e-3)
    assert epsilon_of(GaussianCost(1.0), 1e-5, REPLACE) == pytest.approx(4.377, abs=1e-3)
    assert rdp_epsilon(GaussianCost(2.0), 1e-6, REPLACE) == pytest.approx(2.419, abs=2e-3)
    assert rdp_epsilon(GaussianCost(2.0), 1e-5, REPLACE) == pytest.approx(2.166, abs=2e-3)


@pytest.mark.parametrize("multiplier", [1.0, 2.0, 8.0])
def test_distributions_and_curves_agree_about_the_same_noise(multiplier):
    """Within 15 % under replace-one; a factor of two in the unit would be far outside."""
    by_pld = pld_epsilon(GaussianCost(multiplier, 10), 1e-5, REPLACE)
    assert by_pld <= rdp_epsilon(GaussianCost(multiplier, 10), 1e-5, REPLACE) * 1.001
    assert rdp_epsilon(GaussianCost(multiplier, 10), 1e-5, REPLACE) <= 1.15 * by_pld
    assert rdp_epsilon(GaussianCost(2 * multiplier, 10), 1e-5, REPLACE) < by_pld / 1.15
    assert rdp_epsilon(GaussianCost(multiplier / 2, 10), 1e-5, REPLACE) > 1.15 * by_pld


def test_the_stock_accountants_still_disagree_about_units():
    """Why only one module may import them: if this fails, dp_accounting has changed."""
    by_pld = (
        dpa.pld.PLDAccountant(NEIGHBOURS.REPLACE_ONE)
        .compose(dpa.GaussianDpEvent(2.0))
        .get_epsilon(1e-6)
    )
    by_rdp = dpa.rdp.RdpAccountant(neighboring_relation=NEIGHBOURS.REPLACE_ONE)
    assert by_pld == pytest.approx(4.8866, abs=1e-3)
    assert by_rdp.compose(dpa.GaussianDpEvent(2.0)).get_epsilon(1e-6) == pytest.approx(
        2.419, abs=1e-3
    )


def test_single_fixed_size_batch():
    assert delta_of(FixedSizeGaussianCost(2.0, 0.05), 0.2, REPLACE) == pytest.approx(
        5.2413e-6, rel=1e-3
    )


# (n, m, T, sigma m / C): add-remove Poisson, replace-one Poisson, fixed size; delta = 1e-8.
@pytest.mark.parametrize(
    ("rate", "steps", "scale", "fixed_size", "swap"),
    [(0.05, 100, 4.0, 1.699, 1.294), (0.005, 2000, 2.0, 2.101, None)],
)
def test_subsampled_gaussians(rate, steps, scale, fixed_size, swap):
    """Scale is noise over per-record bound: half of it is the replace-one noise multiplier."""
    e_fixed = epsilon_of(FixedSizeGaussianCost(scale / 2, rate, steps), 1e-8, REPLACE)
    e_swap = epsilon_of(PoissonGaussianCost(scale / 2, rate, steps), 1e-8, REPLACE)
    e_add = epsilon_of(PoissonGaussianCost(scale, rate, steps), 1e-8, ADD)
    assert e_fixed == pytest.approx(fixed_size, abs=0.005)
    assert swap is None or e_swap == pytest.approx(swap, abs=0.005)
    assert e_add <= e_swap <= e_fixed
    assert e_fixed <= rdp_epsilon(FixedSizeGaussianCost(scale / 2, rate, steps), 1e-8, REPLACE)


@pytest.mark.parametrize(
    ("rate", "steps", "scale", "wrong"), [(0.05, 100, 4.0, 1.591), (0.005, 2000, 2.0, 1.789)]
)
def test_fixed_size_is_not_the_worse_of_add_and_remove(rate, steps, scale, wrong):
    """The unproved shortcut: Poisson add-remove with the doubled sensitivity."""
    assert epsilon_of(PoissonGaussianCost(scale / 2, rate, steps), 1e-8, ADD) == pytest.approx(
        wrong, abs=0.005
    )
    assert epsilon_of(FixedSizeGaussianCost(scale / 2, rate, steps), 1e-8, REPLACE) > 1.05 * wrong


def test_equilateral_triple():
    """Three contributions at pairwise distance 1 reach 1.698; the worse of add and remove gives
    1.586.
    """
    rate, steps = 0.003, 10_000
    assert epsilon_of(PoissonGaussianCost(1.0, rate, steps), 1e-5, ADD) == pytest.approx(
        1.586, abs=0.01
    )
    fixed = epsilon_of(FixedSizeGaussianCost(1.0, rate, steps), 1e-5, REPLACE)
    assert fixed >= 1.698
    assert fixed == pytest.approx(2.044, abs=0.005)


def test_tiny_steps_do_not_inflate():
    """A grid of 1e-3 would give 0.079 here; the grid is chosen from the steps."""
    cost = PoissonGaussianCost(5.0, 50 / 290_506, 290_506)
    clt = gaussian_delta(0.02, math.sqrt(290_506 * (50 / 290_506) ** 2 * math.expm1(1 / 25)))
    assert delta_of(cost, 0.02, ADD) == pytest.approx(clt, rel=0.05)


# Definitions --------------------------------------------------------------------------------------


def hockey_stick(p, q, x, epsilon):
    return np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), x)


@pytest.mark.parametrize("mu", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("rate", [0.01, 0.4, 0.95])
@pytest.mark.parametrize("epsilon", [-1.0, -0.02, 0.0, 0.02, 0.7, 3.0])
def test_profiles_are_the_hockey_sticks_of_their_pairs(mu, rate, epsilon):
    x = np.linspace(-14, 14, 200_001)
    normal = {
        c: np.exp(-0.5 * (x - c) ** 2) / math.sqrt(2 * math.pi) for c in (0, mu, mu / 2, -mu / 2)
    }
    mixed = {c: (1 - rate) * normal[0] + rate * normal[c] for c in (mu, mu / 2, -mu / 2)}
    at = np.array([epsilon])
    wanted = {
        accounting.remove_profile: hockey_stick(mixed[mu], normal[0], x, epsilon),
        accounting.add_profile: hockey_stick(normal[0], mixed[mu], x, epsilon),
        accounting.swap_profile: hockey_stick(mixed[mu / 2], mixed[-mu / 2], x, epsilon),
    }
    for profile, expected in wanted.items():
        assert profile(at, mu, rate)[0] == pytest.approx(expected, abs=2e-7), profile.__name__


@pytest.mark.parametrize("bound", [0.1, 1.0, 5.0])
def test_pure_profile_is_randomised_response(bound):
    likely = 1 / (1 + math.exp(-bound))
    for epsilon in (-7.0, -0.5, 0.0, 0.05, 0.9, 7.0):
        pairs = [(likely, 1 - likely), (1 - likely, likely)]
        expected = sum(max(p - math.exp(epsilon) * q, 0) for p, q in pairs)
        assert accounting.pure_profile(np.array([epsilon]), bound)[0] == pytest.approx(
            expected, abs=1e-14
        )


@given(st.floats(0.05, 10), st.floats(1e-4, 0.999))
@settings(max_examples=50)
def test_fixed_size_profile_is_a_profile_and_dominates_the_others(mu, rate):
    """Convex and non-increasing in e^epsilon, and above every pair within the same distance."""
    grid = np.exp(np.linspace(-3, 6, 400))
    values = accounting.fixed_size_profile(np.log(grid), mu, rate)
    slopes = np.diff(values) / np.diff(grid)
    assert np.all(slopes <= 1e-12)
    assert np.all(np.diff(slopes) >= -1e-10)
    for smaller in (accounting.remove_profile, accounting.add_profile, accounting.swap_profile):
        assert np.all(smaller(np.log(grid), mu, rate) <= values + 1e-12)


def test_swap_is_worst_for_opposite_records():
    """Two records of norm C at any angle, on a grid in the plane, are never worse than opposite
    ones.
    """
    half, rate = 0.8, 0.3
    line = np.linspace(-9, 9, 601)
    x, y = np.meshgrid(line, line)
    area = (line[1] - line[0]) ** 2

    def density(centre):
        return np.exp(-0.5 * ((x - centre[0]) ** 2 + (y - centre[1]) ** 2)) / (2 * math.pi)

    one = (1 - rate) * density((0, 0)) + rate * density((half, 0))
    for angle in np.linspace(0, math.pi, 7):
        for length in (0.5, 1.0):
            centre = (length * half * math.cos(angle), length * half * math.sin(angle))
            other = (1 - rate) * density((0, 0)) + rate * density(centre)
            for epsilon in (0.0, 0.1, 0.4):
                delta = np.maximum(one - math.exp(epsilon) * other, 0).sum() * area
                assert (
                    delta <= accounting.swap_profile(np.array([epsilon]), 2 * half, rate)[0] + 1e-4
                )


# Against dp_accounting ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("multiplier", "rate", "steps"), [(0.7, 0.001, 300), (1.0, 0.01, 500), (4.0, 0.2, 50)]
)
def test_poisson_agrees_with_the_stock_distribution(multiplier, rate, steps):
    for relation, unit, theirs in (
        (ADD, 1, NEIGHBOURS.ADD_OR_REMOVE_ONE),
        (REPLACE, 2, NEIGHBOURS.REPLACE_ONE),
    ):
        one = stock.from_gaussian_mechanism(
            unit * multiplier, sampling_prob=rate, neighboring_relation=theirs
        )
        expected = one.self_compose(steps).get_epsilon_for_delta(1e-6)
        ours = pld_epsilon(PoissonGaussianCost(multiplier, rate, steps), 1e-6, relation)
        assert ours == pytest.approx(expected, rel=3e-3)


@pytest.mark.parametrize(("multiplier", "rate"), [(1.0, 0.01), (3.0, 0.3)])
def test_poisson_curve_agrees_with_the_stock_accountant(multiplier, rate):
    event = dpa.PoissonSampledDpEvent(rate, dpa.GaussianDpEvent(multiplier))
    theirs = dpa.rdp.RdpAccountant(orders=range(2, 200)).compose(event, 40).get_epsilon(1e-5)
    assert rdp_epsilon(PoissonGaussianCost(multiplier, rate, 40), 1e-5, ADD) == pytest.approx(
        theirs, rel=1e-2
    )


def test_fixed_size_curve_is_not_below_the_stock_bound():
    """Theirs is the same theorem at integer orders with a sharper sum: ours may only be larger."""
    orders = list(range(2, 64))
    event = dpa.SampledWithoutReplacementDpEvent(1000, 50, dpa.GaussianDpEvent(2.0))
    theirs = dpa.rdp.RdpAccountant(
        orders=orders, neighboring_relation=NEIGHBOURS.REPLACE_ONE
    ).compose(event, 100)
    ours = rdp_epsilon(FixedSizeGaussianCost(2.0, 0.05, 100), 1e-8, REPLACE)
    assert theirs.get_epsilon(1e-8) * (1 - 1e-3) <= ours <= 1.5 * theirs.get_epsilon(1e-8)


# Accountants against each other -------------------------------------------------------------------

PAIRED = [
    (GaussianCost(1.3), REPLACE),
    (PureCost(0.3), ADD),
    (PoissonGaussianCost(1.0, 0.02), ADD),
    (PoissonGaussianCost(1.0, 0.02), REPLACE),
    (FixedSizeGaussianCost(1.0, 0.02), REPLACE),
]
ALL = [*PAIRED, (RdpCost.from_curve(lambda a: a / 8, "curve"), ADD)]
NAMES = [f"{type(c).__name__}-{r}" for c, r in ALL]


@pytest.mark.parametrize(("cost", "relation"), ALL, ids=NAMES)
def test_many_at_once_costs_as_much_as_one_many_times(cost, relation):
    """Merged by compose, counted, or listed one by one: the same epsilon."""
    merged = epsilon_of(compose([cost] * 6), 1e-6, relation)
    assert merged == epsilon_of(repeat(cost, 6), 1e-6, relation)
    assert epsilon_of(ComposedCost((cost,) * 6), 1e-6, relation) == pytest.approx(merged, rel=1e-6)


@pytest.mark.parametrize(("cost", "relation"), PAIRED[2:], ids=NAMES[2:-1])
@pytest.mark.parametrize("count", [1, 30])
def test_distributions_are_tighter_than_curves(cost, relation, count):
    cost = repeat(cost, count)
    for delta in (1e-4, 1e-9):
        assert pld_epsilon(cost, delta, relation) <= rdp_epsilon(cost, delta, relation) * (1 + 1e-3)


@pytest.mark.parametrize(("cost", "relation"), PAIRED[2:], ids=NAMES[2:-1])
def test_curve_dominates_the_moments_of_the_pair(cost, relation):
    """Moments of the truncated loss never exceed the Renyi bound by more than rounding."""
    pairs = accounting._directions(normal_form(cost, relation), relation)
    x, weights = pairs[0].remove.losses, pairs[0].remove.weights
    for order in (1.3, 2.0, 3.5, 8.0):
        moment = math.log(float(weights @ np.exp((order - 1) * x))) / (order - 1)
        assert moment <= float(rdp_curve(cost, np.array([order]), relation)[0]) + 1e-9


@pytest.mark.parametrize(("cost", "relation"), ALL, ids=NAMES)
def test_epsilon_and_delta_are_inverse(cost, relation):
    cost = repeat(cost, 20)
    epsilon = epsilon_of(cost, 1e-6, relation)
    assert delta_of(cost, epsilon, relation) == pytest.approx(1e-6, rel=1e-3)
    assert rdp_delta(cost, rdp_epsilon(cost, 1e-6, relation), relation) == pytest.approx(
        1e-6, rel=1e-6
    )


def test_gaussians_add_in_squares_and_need_no_convolution():
    cost = compose([GaussianCost(5.0, 9), GaussianCost(2.0)])
    assert delta_of(cost, 1.0, REPLACE) == pytest.approx(
        gaussian_delta(1.0, math.sqrt(9 / 25 + 1 / 4)), rel=1e-12
    )


def test_full_batches_are_not_sampled():
    for cost in (PoissonGaussianCost(2.0, 1.0, 5), FixedSizeGaussianCost(2.0, 1.0, 5)):
        assert epsilon_of(cost, 1e-6, REPLACE) == epsilon_of(GaussianCost(2.0, 5), 1e-6, REPLACE)


@given(
    st.lists(st.tuples(st.floats(0.01, 2), st.integers(1, 6)), min_size=1, max_size=3),
    st.floats(0.05, 2),
)
@settings(max_examples=15)
def test_gaussian_with_pure_parts_is_exact(pures, mu):
    """The convolution approaches the closed form from above."""
    cost = compose([GaussianCost(1 / mu), *(PureCost(e, k) for e, k in pures)])
    form = normal_form(cost, REPLACE)
    exact = exact_delta(form, 1.0)
    assert exact <= pld_delta(cost, 1.0, REPLACE) * (1 + 1e-9)
    assert exact == pytest.approx(pld_delta(cost, 1.0, REPLACE), rel=0.25, abs=1e-6)


def test_pure_cost_alone():
    """One release at epsilon 1 has delta 0 from 1 on; a hundred compose far below the sum."""
    assert epsilon_of(PureCost(1.0), 1e-9, ADD) == pytest.approx(1.0, abs=1e-8)
    assert delta_of(PureCost(1.0), 1.0, ADD) == 0.0
    assert epsilon_of(PureCost(0.05, 100), 1e-6, ADD) < 3.0
    assert exact_epsilon(normal_form(PureCost(0.05, 100), ADD), 1e-300) == pytest.approx(5.0)


def test_many_different_pure_parts_fall_back_to_distributions():
    cost = compose([PureCost(0.01 * k, 20) for k in range(1, 6)])
    epsilon = epsilon_of(cost, 1e-6, ADD)
    assert 0 < epsilon < 0.01 * 20 * 15
    assert epsilon <= rdp_epsilon(cost, 1e-6, ADD)


def test_tiny_delta_goes_by_the_curve():
    """Convolutions cannot resolve 1e-30; the Renyi bound can."""
    cost = FixedSizeGaussianCost(2.0, 0.05, 100)
    assert pld_epsilon(cost, 1e-30, REPLACE) == math.inf
    assert epsilon_of(cost, 1e-30, REPLACE) == rdp_epsilon(cost, 1e-30, REPLACE) < 20


def test_a_curve_in_the_mix_means_curves_for_all():
    curve = RdpCost.from_curve(lambda a: a / 18, "as a Gaussian with multiplier 3")
    mixed = compose([curve, PoissonGaussianCost(1.0, 0.02, 10), PureCost(0.1)])
    same = compose([GaussianCost(3.0), PoissonGaussianCost(1.0, 0.02, 10), PureCost(0.1)])
    assert epsilon_of(mixed, 1e-6, REPLACE) == pytest.approx(
        rdp_epsilon(same, 1e-6, REPLACE), rel=1e-12
    )
    assert epsilon_of(mixed, 1e-6, REPLACE) >= epsilon_of(same, 1e-6, REPLACE)


def test_tables_with_different_orders_meet_on_chords():
    """Between orders, chords of the log moment are upper bounds; beyond the last, infinity."""
    coarse = RdpCost((2.0, 4.0, 16.0), (0.1, 0.2, 0.8))
    at = rdp_curve(coarse, np.array([1.5, 2.0, 3.0, 4.0, 17.0]), ADD)
    assert at[0] == pytest.approx(0.1)
    assert at[1] == pytest.approx(0.1)
    assert at[2] == pytest.approx((0.1 + 0.6) / 2 / 2)
    assert at[2] >= 3 * 0.05
    assert at[3] == pytest.approx(0.2)
    assert at[4] == math.inf
    partly = RdpCost((2.0, 4.0), (0.1, math.inf))
    assert rdp_curve(partly, np.array([2.0, 3.0]), ADD).tolist() == [pytest.approx(0.1), math.inf]
    both = compose([coarse, RdpCost((3.0, 8.0), (0.15, 0.4))])
    assert 0 < epsilon_of(both, 1e-3, ADD) < math.inf


def test_nothing_and_everything():
    nothing = [
        ComposedCost(()),
        GaussianCost(math.inf),
        PureCost(0.0),
        PoissonGaussianCost(math.inf, 0.1),
    ]
    for cost in nothing:
        assert epsilon_of(cost, 1e-6, REPLACE) == 0.0
        assert delta_of(cost, 0.0, REPLACE) == 0.0
    everything = [
        GaussianCost(0.0),
        PureCost(math.inf),
        PoissonGaussianCost(0.0, 0.1),
        FixedSizeGaussianCost(0.0, 0.1),
    ]
    for cost in everything:
        for whole in (
            cost,
            compose([cost, PoissonGaussianCost(2.0, 0.1)]),
            compose([cost, ALL[-1][0]]),
        ):
            assert epsilon_of(whole, 1e-6, REPLACE) == math.inf
            assert delta_of(whole, 5.0, REPLACE) == 1.0


@pytest.mark.parametrize("multiplier", [1e-200, 1e-6, 0.01, 0.03, 1e6, 1e200])
def test_extreme_noise_is_accounted_without_fuss(multiplier):
    for cost, relation in (
        (PoissonGaussianCost(multiplier, 0.01, 3), ADD),
        (PoissonGaussianCost(multiplier, 0.01, 3), REPLACE),
        (FixedSizeGaussianCost(multiplier, 0.01, 3), REPLACE),
        (GaussianCost(multiplier), REPLACE),
    ):
        epsilon = epsilon_of(cost, 1e-6, relation)
        assert epsilon > 50 if multiplier < 0.1 else epsilon < 1e-3


def test_fixed_size_batches_are_refused_under_add_remove():
    for read in (epsilon_of, delta_of):
        with pytest.raises(UnsupportedRelation, match=r"2C.*replace-one"):
            read(compose([GaussianCost(1.0), FixedSizeGaussianCost(1.0, 0.1)]), 0.1, ADD)
    with pytest.raises(UnsupportedRelation):
        rdp_curve(FixedSizeGaussianCost(1.0, 0.1), np.array(RENYI_ORDERS), ADD)


def test_arguments_are_checked():
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(InvalidArgument):
            epsilon_of(GaussianCost(1.0), delta, REPLACE)
    for epsilon in (-1.0, math.inf):
        with pytest.raises(InvalidArgument):
            delta_of(GaussianCost(1.0), epsilon, REPLACE)
    with pytest.raises(InvalidArgument, match="adjacency"):
        epsilon_of(GaussianCost(1.0), 1e-6, "both")


@pytest.mark.parametrize(("mu", "count"), [(0.02, 2500), (0.1, 400), (1.0, 10)])
def test_convolution_stays_above_the_truth_down_to_its_rounding(mu, count):
    """A Gaussian composed by convolution, against its closed form."""
    pair = accounting.gaussian_pair(mu, count)
    one = LossDistribution.dominating(pair, accounting._interval([pair]))
    total = one.repeated(count)
    for epsilon in np.linspace(0.0, 8.0, 33) * mu * math.sqrt(count):
        exact = gaussian_delta(epsilon, mu * math.sqrt(count))
        found = total.delta(epsilon) + accounting.ROUNDING
        assert exact <= found <= 1.05 * exact + 2 * accounting.ROUNDING


def test_rounding_of_long_compositions_stays_on_the_safe_side():
    """Raising a transform to the millionth power multiplies its error; compare with the closed
    form.
    """
    cost = PoissonGaussianCost(1e3 / 0.3, 1 - 1e-9, 10**6)
    exact = gaussian_delta(2.0, 0.3)
    assert pld_delta(cost, 2.0, REPLACE) >= exact
    assert delta_of(cost, 2.0, REPLACE) >= exact * (1 - 1e-6)
    with pytest.raises(BudgetExceeded):
        Ledger(1.81, 2e-12).charge(cost, "fit", "replace-one")
