"""The planned width of intervals: consistent with refusals, and with what fits give."""

import math

import numpy as np
import pytest
from scipy.special import expit

from hushfit import PrivateLinearRegression, PrivateLogisticRegression
from hushfit.errors import InvalidArgument, TooFewRows
from hushfit.forecast import interval_forecast

pytestmark = pytest.mark.usefixtures("quiet_fits")
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def logistic(n, seed=0, **more):
    rng = np.random.default_rng(seed)
    X = rng.integers(2, size=(n, 3)).astype(float)
    y = (rng.random(n) < expit(-1.2 + 0.4 * X[:, 0])).astype(int)
    settings = {"classes": [0, 1], "feature_bounds": (0, 1), "inference": True}
    return PrivateLogisticRegression(**BUDGET, **settings, random_state=seed, **more).fit(X, y)


def linear(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(2, size=(n, 3)).astype(float)
    y = np.clip(rng.normal(0, 1, n) + 0.5 * X[:, 0], -5, 5)
    settings = {"target_bounds": (-5, 5), "feature_bounds": (0, 1), "inference": True}
    return PrivateLinearRegression(**BUDGET, **settings, random_state=seed).fit(X, y)


@pytest.mark.parametrize(("make", "model"), [(logistic, "logistic"), (linear, "linear")])
@pytest.mark.parametrize("n", [2500, 20_000])
def test_fits_have_the_width_that_was_planned(make, model, n):
    """The median of three fits, within a third of the plan; seeds are fixed."""
    planned = interval_forecast(n, 3, **BUDGET, model=model).width
    found = [np.median(np.diff(make(n, seed).conf_int()[1:], axis=1)) for seed in range(3)]
    assert np.median(found) == pytest.approx(planned, rel=1 / 3)


def test_the_least_number_of_rows_is_that_of_the_refusal():
    needed = interval_forecast(2500, 3, **BUDGET).units_needed
    assert logistic(needed).inference_ is not None
    with pytest.raises(TooFewRows, match=f"about {needed} are needed"):
        logistic(needed - 1)
    refused = interval_forecast(needed - 1, 3, **BUDGET)
    assert (refused.width, refused.over_plain) == (None, None)


@pytest.mark.parametrize("model", ["logistic", "linear", "poisson"])
def test_the_number_for_a_width_gives_it_and_one_less_does_not(model):
    for wished in (0.1, 0.3):
        found = interval_forecast(100_000, 5, **BUDGET, model=model, wished=wished).units_for_width
        assert interval_forecast(found, 5, **BUDGET, model=model).width <= wished
        fewer = interval_forecast(found - 1, 5, **BUDGET, model=model).width
        assert fewer is None or fewer > wished


def test_without_privacy_the_width_is_the_usual_one():
    found = interval_forecast(10_000, 3, np.inf, 1e-6, model="linear")
    assert found.over_plain == 1.0
    assert found.width == pytest.approx(2 * 1.959964 / 100 / 0.5)


def test_a_rare_class_takes_more_rows_and_gives_wider_intervals():
    usual, rare = (interval_forecast(50_000, 3, **BUDGET, expected_mean=m) for m in (None, 0.05))
    assert rare.units_needed == pytest.approx(usual.units_needed * 0.2 / 0.0475, rel=0.01)
    assert rare.width > math.sqrt(0.2 / 0.0475) * usual.width
    with pytest.raises(TooFewRows, match=f"about {rare.units_needed} are needed"):
        logistic(rare.units_needed - 1, expected_mean=0.05)
    assert logistic(rare.units_needed, expected_mean=0.05).inference_ is not None


def test_impossible_wishes_are_refused():
    with pytest.raises(InvalidArgument, match="wished=0"):
        interval_forecast(1000, 3, **BUDGET, wished=0.0)
    with pytest.raises(InvalidArgument, match="ridge"):
        interval_forecast(1000, 3, **BUDGET, model="ridge")
    with pytest.raises(InvalidArgument, match=r"expected_mean=1\.5"):
        interval_forecast(1000, 3, **BUDGET, expected_mean=1.5)
    with pytest.raises(InvalidArgument, match="so narrow"):
        interval_forecast(1000, 3, **BUDGET, wished=1e-9)
