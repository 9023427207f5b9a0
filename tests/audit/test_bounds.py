"""Lower bounds are valid and close to the true epsilon, and tests have the stated level.

Statistical tests here fix their seeds; unfixed, each would fail by chance with probability below
1e-3.
"""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from hushfit.audit import Claim, Curve, Verdict, curve_p_value, lower_bound
from hushfit.audit._bounds import Counted, verdict_of
from hushfit.errors import InvalidArgument
from hushfit.privacy import (
    GaussianCost,
    PoissonGaussianCost,
    PureCost,
    Relation,
    epsilon_of,
    gaussian_mu,
)


def gaussian_scores(mu, trials, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(mu / 2, 1, trials), rng.normal(-mu / 2, 1, trials)


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_the_curve_of_a_gaussian_cost_is_the_gaussian_trade_off(mu):
    rates = np.array([1e-4, 0.01, 0.2, 0.5, 0.9])
    most = Curve.of_cost(GaussianCost(1 / mu), Relation.REPLACE_ONE).most(rates)
    exact = norm.cdf(norm.ppf(rates) + mu)
    assert (most >= exact - 1e-12).all()  # a subset of the profile's points is a weaker bound
    np.testing.assert_allclose(most, exact, atol=6e-3)


def test_the_curve_of_a_point_is_what_epsilon_and_delta_say():
    curve, epsilon, delta = Curve.of_point(1.0, 0.05), 1.0, 0.05
    assert curve.most(np.array([0.1]))[0] == pytest.approx(math.exp(epsilon) * 0.1 + delta)
    assert curve.most(np.array([0.9]))[0] == pytest.approx(1 - math.exp(-epsilon) * (0.1 - delta))


def test_clopper_pearson_bounds_are_the_exact_ones():
    """At the bound itself, a count as extreme has exactly the level as its probability."""
    event = Counted(0.0, True, 40, 200, 3, 150)
    assert binom.sf(39, 200, event.at_least(0.01)) == pytest.approx(0.01)
    assert binom.cdf(3, 150, event.at_most(0.01)) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("rate", "curve"),
    [(0.02, Curve.of_point(1.0, 1e-3)), (0.3, Curve.of_point(0.5, 0.0))],
    ids=["rare", "common"],
)
def test_the_exact_test_of_a_curve_keeps_its_level(rate, curve):
    """Counts drawn on the boundary of the curve: p-values below 0.05 in at most 5 % of cases, but
    in some.
    """
    rng, n, runs = np.random.default_rng(1), 400, 400
    most = float(curve.most(np.array([rate]))[0])
    p_values = [
        curve_p_value(curve, hits, n, alarms, n)
        for hits, alarms in zip(
            rng.binomial(n, most, runs), rng.binomial(n, rate, runs), strict=True
        )
    ]
    alarms = sum(p <= 0.05 for p in p_values)
    assert binom.sf(alarms - 1, runs, 0.05) > 1e-3
    assert alarms > 0


def test_the_whole_bound_raises_false_alarms_no_more_often_than_it_says():
    """A mechanism that attains its claim, 120 times at 90 % confidence: selecting events on other
    trials adds no false alarms.
    """
    mu = gaussian_mu(2.0, 1e-5)
    claim = Claim(2.0, 1e-5, cost=GaussianCost(1 / mu))
    alarms = sum(
        lower_bound(*gaussian_scores(mu, 200, seed), claim, confidence=0.9).violated
        for seed in range(120)
    )
    assert binom.sf(alarms - 1, 120, 0.1) > 1e-3


@pytest.mark.parametrize("epsilon", [2.0, 8.0])
def test_measured_epsilon_is_below_the_true_one_and_near_it(epsilon):
    claim = Claim.gaussian(epsilon, 1e-5)
    bound = lower_bound(*gaussian_scores(gaussian_mu(epsilon, 1e-5), 8000), claim)
    assert 0.75 * epsilon < bound.family <= epsilon
    assert 0 < bound.direct <= epsilon
    assert not bound.violated
    assert verdict_of(bound, claim) is Verdict.CONSISTENT


def test_half_the_noise_is_a_violation_and_hardly_any_leak_has_no_power():
    mu = gaussian_mu(2.0, 1e-5)
    claim = Claim.gaussian(2.0, 1e-5)
    half_noise = lower_bound(*gaussian_scores(2 * mu, 4000), claim)
    assert half_noise.violated
    assert half_noise.epsilon > 2.0
    assert verdict_of(half_noise, claim) is Verdict.VIOLATED
    small_leak = lower_bound(*gaussian_scores(0.05 * mu, 4000), claim)
    assert verdict_of(small_leak, claim) is Verdict.NO_POWER


def test_a_violation_at_a_single_rare_event_is_found_without_any_family():
    """With probability 2 % the release reveals everything, against a claimed delta of 1e-5; other
    scores reveal nothing.
    """
    rng = np.random.default_rng(3)
    first, second = rng.normal(size=4000), rng.normal(size=4000)
    first[rng.random(4000) < 0.02] = 99.0
    bound = lower_bound(first, second, Claim(1.0, 1e-5))
    assert bound.violated
    assert bound.family is None
    assert bound.direct > 1.0


def test_sampled_claims_are_measured_in_their_own_family():
    """Poisson pair at rate 0.2, one release, add-remove: exact likelihood ratios."""
    rate, z, rng = 0.2, 0.5, np.random.default_rng(4)
    x = rng.normal(size=(2, 8000))
    x[0] += (rng.random(8000) < rate) / z
    score = np.log(1 - rate + rate * np.exp(x / z - 0.5 / z**2))
    cost = PoissonGaussianCost(z, rate)
    epsilon = epsilon_of(cost, 1e-5, "add-remove")
    claim = Claim(
        epsilon, 1e-5, "add-remove", cost, lambda factor: PoissonGaussianCost(factor * z, rate)
    )
    bound = lower_bound(*score, claim)
    assert 0.6 * epsilon < bound.family <= epsilon
    assert not bound.violated


def test_randomised_response_is_measured_without_assumption():
    epsilon, rng = 1.5, np.random.default_rng(5)
    likely = math.exp(epsilon) / (1 + math.exp(epsilon))
    first, second = (
        (rng.random(6000) < likely).astype(float),
        (rng.random(6000) < 1 - likely).astype(float),
    )
    bound = lower_bound(first, second, Claim(epsilon, 1e-9, cost=PureCost(epsilon)))
    assert 0.85 * epsilon < bound.direct <= epsilon
    assert lower_bound(first, second, Claim(0.8 * epsilon, 1e-9)).violated


def test_scores_that_are_no_numbers_or_too_few_are_refused():
    claim = Claim(1.0, 1e-5)
    with pytest.raises(InvalidArgument, match="20 scores"):
        lower_bound(np.zeros(5), np.zeros(100), claim)
    with pytest.raises(InvalidArgument, match="without NaN"):
        lower_bound(np.full(100, np.nan), np.zeros(100), claim)
    with pytest.raises(InvalidArgument, match="no claim that can be tested"):
        Claim(math.inf, 1e-5)
    with pytest.raises(InvalidArgument, match="confidence"):
        lower_bound(np.zeros(100), np.zeros(100), claim, confidence=1.0)
