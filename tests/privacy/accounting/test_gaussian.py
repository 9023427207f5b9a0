"""The Gaussian profile and its inverse."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushfit.errors import InvalidArgument
from hushfit.privacy import gaussian_delta, gaussian_mu

MU_OF_BUDGET = [
    (0.1, 1e-6, 0.027545),
    (0.5, 1e-6, 0.124106),
    (1, 1e-5, 0.268051),
    (1, 1e-6, 0.236704),
    (1, 1e-8, 0.196067),
    (2, 1e-6, 0.448335),
    (5, 1e-6, 1.020357),
    (8, 1e-5, 1.666031),
]


@pytest.mark.parametrize(("epsilon", "delta", "mu"), MU_OF_BUDGET)
def test_mu_matches_known_values(epsilon, delta, mu):
    assert gaussian_mu(epsilon, delta) == pytest.approx(mu, abs=1e-6)


@pytest.mark.parametrize("mu", [1e-3, 0.05, 0.0999, 0.1, 0.5, 3.0, 12.0])
@pytest.mark.parametrize("epsilon", [-2.0, 0.0, 1e-3, 0.1, 1.0, 6.0])
def test_delta_is_the_hockey_stick_of_two_gaussians(epsilon, mu):
    """Trapezoidal rule from the point where the integrand becomes positive."""
    start = epsilon / mu + mu / 2
    x = start + np.linspace(0, 60, 400_001) if start > -20 else np.linspace(-20, 60, 400_001)
    gap = np.exp(-0.5 * (x - mu) ** 2) - np.exp(epsilon - 0.5 * x**2)
    expected = np.trapezoid(gap, x) / math.sqrt(2 * math.pi)
    assert gaussian_delta(epsilon, mu) == pytest.approx(expected, rel=1e-6, abs=1e-15)


def test_small_and_large_mu_formulas_meet():
    """The two formulas for the difference of tails agree to many digits where they meet."""
    for epsilon in (0.0, 0.5, 3.0):
        below, above = gaussian_delta(epsilon, 0.1 * (1 - 1e-12)), gaussian_delta(epsilon, 0.1)
        assert below == pytest.approx(above, rel=1e-8)
        assert below <= above


@given(st.floats(1e-4, 300), st.floats(-690, -0.2))
def test_mu_is_the_safe_end_of_a_tight_bracket(epsilon, log_delta):
    delta = math.exp(log_delta)
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(epsilon, mu) <= delta
    assert gaussian_delta(epsilon, mu * (1 + 1e-7)) > delta


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e4, 1e6])
def test_mu_survives_extreme_budgets(epsilon):
    mu = gaussian_mu(epsilon, 1e-300)
    assert 0.99e-300 <= gaussian_delta(epsilon, mu) <= 1e-300


@given(st.floats(0, 20), st.floats(1e-3, 20), st.floats(1.001, 3))
def test_delta_grows_with_mu_and_falls_with_epsilon(epsilon, mu, factor):
    here = gaussian_delta(epsilon, mu)
    rounding = 1e-12 * here
    assert here <= gaussian_delta(epsilon, mu * factor) + rounding
    assert gaussian_delta(epsilon * factor, mu) <= here + rounding


@given(st.floats(0, 5), st.floats(0.01, 5))
def test_exchanging_the_data_sets_mirrors_the_profile(epsilon, mu):
    expected = -math.expm1(-epsilon) + math.exp(-epsilon) * gaussian_delta(epsilon, mu)
    assert gaussian_delta(-epsilon, mu) == pytest.approx(expected, rel=1e-12)


def test_limits():
    assert gaussian_delta(1.0, 0.0) == 0.0
    assert gaussian_delta(1.0, 1e-320) == 0.0
    assert gaussian_delta(1.0, math.inf) == 1.0
    assert gaussian_delta(math.inf, 3.0) == 0.0
    assert gaussian_mu(math.inf, 1e-6) == math.inf
    assert gaussian_delta(0.0, 1.0) == pytest.approx(math.erf(0.5 / math.sqrt(2)), rel=1e-14)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(-1.0, 1e-6), (1.0, 0.0), (1.0, 1.0), (math.nan, 1e-6), (1.0, "x")]
)
def test_nonsense_is_refused(epsilon, delta):
    with pytest.raises(InvalidArgument):
        gaussian_mu(epsilon, delta)
