"""Theorems of the source texts as numbers, checked against their formulas and against runs."""

import math
from dataclasses import replace

import numpy as np
import pytest

from hushfit.errors import InvalidArgument
from hushfit.privacy import gaussian_mu
from hushfit.theory import (
    EXCESS,
    ROWS,
    Setting,
    all_bounds,
    dp_sadmm,
    dp_vradmm,
    ipp_admm,
    mp_admm,
    pp_admm,
    rsgd_ar,
    smoothing_gain,
    ss_admm,
    strongly_convex,
)

ADULT = Setting(n_units=40_000, n_features=100, epsilon=1.0, delta=1e-6)


def noise_of(setting, moved=2):
    return moved / (setting.n_units * gaussian_mu(setting.epsilon, setting.delta))


def test_ss_admm_is_the_sum_of_the_papers_proof_at_its_step_sizes():
    """The printed sum over the steps, evaluated with the printed step sizes, term by term."""
    t, d, p = ADULT.steps, ADULT.distance, ADULT.weights
    square = 1 + p * t * noise_of(ADULT) ** 2
    eta = d / np.sqrt(2 * square * np.arange(1, t + 1))
    printed = (square / 2 * eta.sum() + d**2 / (2 * eta[-1])) / t
    rho = 1 / d
    rest = rho * d**2 / (2 * t) + 1 / (2 * rho * t)
    # The paper bounds the sum of 1/sqrt(k) by 2 sqrt(t).
    assert printed + rest <= ss_admm(ADULT).value <= 1.02 * (printed + rest)


def test_no_number_of_steps_brings_the_bound_of_ss_admm_below_its_limit():
    values = [ss_admm(replace(ADULT, steps=steps)).value for steps in (10, 1000, 10**5, 10**9)]
    limit = ss_admm(ADULT).limit
    assert values == sorted(values, reverse=True)
    assert limit < values[-1] < 1.001 * limit
    assert limit == pytest.approx(ADULT.distance * math.sqrt(2 * 101) * noise_of(ADULT))


def test_a_noisy_run_of_ss_admm_stays_below_the_bound():
    """Algorithm 1 on a small problem with the theorem's step sizes; the distance is that of the
    longest excursion of the run, as the theorem asks.
    """
    rng = np.random.default_rng(0)
    n, t = 2000, 300
    X = rng.standard_normal((n, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.sign(X @ [2.0, -1.0, 0.5] + 0.3 * rng.standard_normal(n))

    def objective(w):
        return np.logaddexp(0, -y * (X @ w)).mean()

    best = np.zeros(3)
    for _ in range(4000):
        best += 4 * (X.T @ (y / (1 + np.exp(y * (X @ best))))) / n
    setting = Setting(n, 2, 1.0, 1e-6, distance=2 * float(np.linalg.norm(best)), steps=t)
    sigma = noise_of(setting) * math.sqrt(t)
    square, rho = 1 + 3 * sigma**2, 1 / setting.distance
    x = z = u = np.zeros(3)
    mean, far = np.zeros(3), 0.0
    for k in range(1, t + 1):
        eta = setting.distance / math.sqrt(2 * square * k)
        g = -(X.T @ (y / (1 + np.exp(y * (X @ x))))) / n + sigma * rng.standard_normal(3)
        x = (-g - u + rho * z + x / eta) / (rho + 1 / eta)
        z = x + u / rho
        u = u + rho * (x - z)
        mean, far = mean + x / t, max(far, float(np.linalg.norm(x - best)))
    assert far < setting.distance
    assert 0 < objective(mean) - objective(best) < ss_admm(setting).value


def test_noise_on_all_variables_costs_three_times_the_variance():
    assert mp_admm(ADULT).limit == pytest.approx(math.sqrt(3) * ss_admm(ADULT).limit)


def test_add_remove_halves_the_limit():
    removed = replace(ADULT, adjacency="add-remove")
    assert ss_admm(removed).limit == pytest.approx(ss_admm(ADULT).limit / 2)
    assert dp_sadmm(removed).limit == pytest.approx(dp_sadmm(ADULT).limit / 2)


@pytest.mark.parametrize("bound", [pp_admm, ipp_admm])
def test_rows_of_an_owner_solve_the_theorems_inequality(bound):
    found = bound(ADULT, error=0.2, confidence=0.9)
    n, rounds = found.value, 500 if bound is pp_admm else 250
    log = math.log(3 / 0.1)
    sigma = 2 / (n * gaussian_mu(1.0, 1e-6)) * math.sqrt(rounds)
    of_noise = 2 * sigma**2 * 101 * log
    assert n == pytest.approx(log / (0.2**2 / (2 * 10**2) - 2 * of_noise), rel=1e-9)
    assert found.quantity == ROWS
    assert found.limit < n


def test_dp_sadmm_has_the_best_step_size_of_its_lemma():
    t, d = ADULT.steps, ADULT.distance
    square = 1 / ADULT.n_units + 101 * t * noise_of(ADULT) ** 2
    etas = np.geomspace(1e-4, 2.0, 2001)
    sums = (d**2 / (2 * etas) + 2 * etas * square) / math.sqrt(t)
    assert dp_sadmm(ADULT).value == pytest.approx(sums.min(), rel=1e-4)


def test_smoothing_lowers_tau_and_not_the_bound():
    assert smoothing_gain(1000, 3.0) == pytest.approx(1 / math.sqrt(13))
    assert dp_vradmm(ADULT, smoothing=3.0).value < dp_vradmm(ADULT).value
    assert dp_sadmm(ADULT, smoothing=3.0).limit > dp_sadmm(ADULT).limit


def test_a_ridge_adds_the_bound_that_falls_with_the_square_of_the_rows():
    curved = replace(ADULT, ridge=1e-3)
    printed = 101 * math.log(40_000) * math.log(1e6) / (1e-3 * 1.0**2 * 40_000**2)
    assert strongly_convex(curved).value == pytest.approx(printed)
    assert strongly_convex(replace(curved, ridge=2e-3)).value == pytest.approx(printed / 2)
    assert strongly_convex(curved, smoothing=3.0).value < printed
    without, with_ridge = all_bounds(ADULT), all_bounds(curved)
    assert with_ridge == [*without, strongly_convex(curved)]


def test_the_noise_of_rsgd_has_no_dimension():
    wide = rsgd_ar(replace(ADULT, n_features=10_000))
    assert wide.value == pytest.approx(rsgd_ar(ADULT).value, rel=1e-3)  # room for rounding
    assert rsgd_ar(replace(ADULT, adjacency="add-remove")).value == math.inf


def test_every_algorithm_has_a_line_and_plain_values():
    bounds = all_bounds(replace(ADULT, adjacency="add-remove"))
    assert len({bound.algorithm for bound in bounds}) == len(bounds) == 7
    assert {bound.quantity for bound in bounds} == {EXCESS, ROWS}
    values = {bound.algorithm: bound.to_dict()["value"] for bound in bounds}
    assert values["rsgd-ar"] is None
    assert values["ss-admm"] > 0


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"n_units": 0}, "n_units"),
        ({"distance": math.inf}, "distance"),
        ({"steps": -1}, "steps"),
        ({"ridge": -1}, "ridge"),
    ],
    ids=str,
)
def test_settings_are_checked(wrong, named):
    with pytest.raises(InvalidArgument, match=named):
        replace(ADULT, **wrong)


def test_relations_without_a_theorem_are_refused():
    with pytest.raises(InvalidArgument, match="adjacency='label'"):
        replace(ADULT, adjacency="label")


def test_bounds_without_noise_are_refused():
    with pytest.raises(InvalidArgument, match="epsilon=inf"):
        replace(ADULT, epsilon=math.inf)
    with pytest.raises(InvalidArgument, match="ridge=0"):
        strongly_convex(ADULT)
    with pytest.raises(InvalidArgument, match="error=0"):
        pp_admm(ADULT, error=0)
