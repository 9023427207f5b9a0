"""Coefficients with intervals: those of maximum likelihood without noise, covering with it."""

import math
from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit
from scipy.stats import norm

from hushfit import PrivatePoissonRegressor
from hushfit.data import RecordScaling, as_source
from hushfit.errors import InvalidArgument, NoIntervals, TooFewRows
from hushfit.estimators._inference import (
    About,
    Inference,
    Line,
    Parts,
    inference_of,
    require_feasible,
)
from hushfit.estimators._private_fit import private_fit
from hushfit.losses import LeastSquares, Logistic, Poisson
from hushfit.penalties import L1, Zero
from hushfit.privacy import Budget, Guarantee, Relation
from hushfit.problem import Problem
from hushfit.release import Randomness, Terms
from hushfit.solvers.inference import ScoreSteps, least_units, noise_over_sampling
from hushfit.solvers.inference._metric import farthest_square, longer_reach

pytestmark = pytest.mark.usefixtures("quiet_fits")

LOSSES = {"linear": LeastSquares(), "logistic": Logistic(), "counts": Poisson(60.0)}
WEIGHTS = np.array([0.4, -0.3, 0.2])


def rows(family, n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    X[:, 1] = 0.6 * X[:, 0] + 0.4 * X[:, 1]
    eta = 0.1 + X @ WEIGHTS
    if family == "linear":
        return X, np.clip(0.5 * eta + 0.1 * rng.normal(size=n), -1, 1)
    if family == "logistic":
        return X, np.where(rng.random(n) < expit(2 * eta), 1.0, -1.0)
    return X, rng.poisson(np.exp(eta)).astype(float)


def problem_of(loss, n, d=3, penalty=None, relation=Relation.REPLACE_ONE, **more):
    return Problem(loss, penalty or Zero(), n, d, relation, scaling=RecordScaling.BOUNDED, **more)


def in_units(w):
    """Intercept and coefficients of columns in [-1, 1]."""
    return np.append(w[-1] * math.sqrt(0.5), w[:-1])


def inference(family, X, y, budget, seed=0, cov_type="model", even_weights=False):
    loss = Poisson(8.0) if family == "counts" and budget.is_private else LOSSES[family]
    problem = problem_of(loss, len(X), X.shape[1])
    source = as_source(X, y, scaled_labels=True, scaling=RecordScaling.BOUNDED)
    terms = Terms(budget, "test", Randomness.of(seed), None, (), ())
    solver = ScoreSteps(robust=cov_type == "robust", even_weights=even_weights)
    fit = private_fit(source, problem, solver, terms)
    names = [f"x{j}" for j in range(X.shape[1])]
    link = {"linear": "identity", "logistic": "logit", "counts": "log"}[family]
    about = About(names, cov_type, family, link, np.zeros(X.shape[1]))
    return inference_of(fit, problem, in_units, about)


@pytest.mark.parametrize("family", LOSSES)
def test_without_noise_estimates_and_robust_errors_are_those_of_statsmodels(family):
    X, y = rows(family, 500)
    found = inference(family, X, y, Budget(math.inf, 1e-6), cov_type="robust")
    kind = {
        "linear": sm.families.Gaussian(),
        "logistic": sm.families.Binomial(),
        "counts": sm.families.Poisson(),
    }[family]
    targets = (y > 0).astype(float) if family == "logistic" else y
    model = sm.GLM(targets, sm.add_constant(X), family=kind).fit(cov_type="HC0", tol=1e-12)
    np.testing.assert_allclose(found.params, model.params, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.bse, model.bse, rtol=1e-6)
    np.testing.assert_allclose(found.pvalues, model.pvalues, rtol=1e-4, atol=1e-12)
    np.testing.assert_allclose(found.conf_int(0.9), model.conf_int(alpha=0.1), rtol=1e-5, atol=1e-8)
    C = np.array([[0, 1, -1, 0], [0, 0, 0, 1.0]])
    ours, theirs = found.wald_test(C), model.wald_test(C, scalar=True, use_f=False)
    assert ours.statistic == pytest.approx(float(theirs.statistic), rel=1e-6)
    assert ours.pvalue == pytest.approx(float(theirs.pvalue), rel=1e-5)


@pytest.mark.parametrize("family", LOSSES)
def test_without_noise_model_errors_are_those_of_statsmodels(family):
    X, y = rows(family, 400)
    found = inference(family, X, y, Budget(math.inf, 1e-6))
    kind = {"linear": sm.OLS, "logistic": sm.Logit, "counts": sm.Poisson}[family]
    settings = {} if family == "linear" else {"disp": 0, "tol": 1e-12}
    model = kind((y > 0) + 0.0 if family == "logistic" else y, sm.add_constant(X)).fit(**settings)
    np.testing.assert_allclose(found.params, model.params, rtol=1e-6)
    np.testing.assert_allclose(found.bse, model.bse, rtol=1e-6)
    np.testing.assert_allclose(found.zvalues, model.tvalues, rtol=1e-6)


def test_without_noise_clipped_counts_have_a_dispersion_of_their_own():
    """Counts clipped to 2 vary less than Poisson counts of their means do."""
    X, y = rows("counts", 4000)
    model = PrivatePoissonRegressor(
        max_count=2, epsilon=math.inf, feature_bounds=(-1, 1), inference=True
    ).fit(X, y)
    np.testing.assert_allclose(model.bse_, np.sqrt(np.diag(model.cov_params("robust"))), rtol=0.1)


@pytest.mark.parametrize(("family", "n"), [("logistic", 2000), ("linear", 2000), ("counts", 6000)])
def test_intervals_cover_and_noise_is_part_of_them(family, n):
    """60 fits of 4 coefficients: fewer than 205 of 240 intervals of 95 % cover with a probability
    below 1e-6 if each covers with .93; more than sampling alone would cover.
    """
    truth = np.append(0.1, WEIGHTS) * {"linear": 0.5, "logistic": 2.0, "counts": 1.0}[family]
    covered = alone = 0
    for seed in range(60):
        X, y = rows(family, n, seed + 1)
        found = inference(family, X, y, Budget(3.0, 1e-6), seed)
        low, high = found.conf_int().T
        covered += int(np.sum((low <= truth) & (truth <= high)))
        sampling = np.sqrt(np.diag(found.covariances["model"].sampling))
        alone += int(np.sum(np.abs(found.params - truth) <= norm.ppf(0.975) * sampling))
    assert covered >= 205
    assert alone < covered


def test_too_few_rows_are_refused_before_anything_is_charged():
    budget = Budget(1.0, 1e-6)
    problem = problem_of(Logistic(), 2000, 10)
    with pytest.raises(TooFewRows, match="about 35"):
        require_feasible(problem, budget)
    require_feasible(problem_of(Logistic(), 2000, 3), budget)
    assert least_units(problem, budget) > least_units(problem, Budget(3.0, 1e-6))
    removed = problem_of(Logistic(), 2000, 10, relation=Relation.ADD_REMOVE)
    assert least_units(removed, budget) < least_units(problem, budget)
    assert least_units(problem, Budget(math.inf, 1e-6)) == 12


def test_a_stated_mean_raises_the_number_of_rows_that_are_needed():
    budget, problem = Budget(1.0, 1e-6), problem_of(Logistic(), 10_000, 10)
    require_feasible(problem, budget)
    with pytest.raises(TooFewRows, match=r"response with the mean 0.05 .* about 149"):
        require_feasible(problem, budget, expected_mean=0.05)
    usual = least_units(problem, budget)
    assert least_units(problem, budget, 0.05) == pytest.approx(
        usual * 0.2 / (0.05 * 0.95), rel=0.01
    )
    assert least_units(problem, budget, 0.95) == least_units(problem, budget, 0.05)
    assert least_units(problem, budget, 0.5) == usual  # never fewer
    counts = problem_of(Poisson(10.0), 10_000, 3)
    assert least_units(counts, budget, 0.1) > 10 * least_units(counts, budget)
    for wrong in (0.0, 1.0, math.nan):
        with pytest.raises(InvalidArgument, match="not between 0 and 1"):
            least_units(problem, budget, wrong)
    with pytest.raises(InvalidArgument, match="does not depend on the mean"):
        least_units(problem_of(LeastSquares(), 10_000, 3), budget, 0.1)


def test_penalties_and_models_without_an_intercept_have_no_intervals():
    with pytest.raises(InvalidArgument, match="bias every interval"):
        ScoreSteps().plan(problem_of(Logistic(), 100, penalty=L1(0.1)))
    with pytest.raises(InvalidArgument, match="intercept"):
        ScoreSteps().plan(problem_of(Logistic(), 100, fit_intercept=False))
    with pytest.raises(InvalidArgument, match="positive numbers"):
        ScoreSteps(shares=(0.5, 0.5))


def result(noise_ratio=0.2, allowance=0.1):
    sampling = np.array([[0.04, 0.01], [0.01, 0.09]])
    nothing = np.zeros((2, 2))
    parts = Parts(sampling, 0.5 * sampling, nothing)
    guarantee = Guarantee(1.0, 1e-6, Relation.REPLACE_ONE)
    return Inference(
        ("(intercept)", "age"),
        np.array([0.5, -1.2]),
        {"model": parts, "robust": Parts(2 * sampling, sampling, nothing)},
        "model",
        noise_ratio,
        guarantee,
        "Logistic regression",
        link="logit",
        middle=np.array([50.0]),
        weakest=("age",),
        last_step=0.1,
        allowance=allowance,
    )


def test_intervals_contrasts_and_tests_follow_from_the_covariance():
    found = result()
    errors = np.sqrt([0.06, 0.135])
    np.testing.assert_allclose(found.bse, errors)
    np.testing.assert_allclose(found.zvalues, found.params / errors)
    reach = norm.ppf(0.975) * errors
    np.testing.assert_allclose(found.conf_int()[:, 1], found.params + reach)
    together = found.conf_int(simultaneous=True)
    wider = (together[:, 1] - found.params) / reach
    # Two independent ones would need 2.236 / 1.96.
    assert np.all((wider > 1.09) & (wider < 1.142))
    np.testing.assert_allclose(found.cov_params("robust")[0, 0], 0.12)
    estimate, error, low, high = found.contrast([1.0, 1.0])[0]
    assert (estimate, error) == pytest.approx((-0.7, math.sqrt(0.06 + 0.135 + 0.03)))
    assert low < estimate < high
    test = found.wald_test([0.0, 1.0], -1.2)
    assert (test.statistic, test.df, test.pvalue) == (0.0, 1, 1.0)
    assert found.wald_test([0.0, 1.0]).pvalue == pytest.approx(found.pvalues[1])
    with pytest.raises(InvalidArgument, match="rank 1"):
        found.wald_test([[0.0, 1.0], [0.0, 2.0]])
    with pytest.raises(InvalidArgument, match="one for each of"):
        found.contrast([1.0])
    with pytest.raises(InvalidArgument, match="level=95"):
        found.conf_int(95)
    with pytest.raises(InvalidArgument, match="cov_type='HC1'"):
        found.cov_params("HC1")


def test_the_summary_shows_both_parts_of_a_standard_error_and_says_how_good_intervals_are():
    text = result().summary()
    for word in ("sampling", "noise", "P>|z|", "age", "replace-one", "cover sampling and noise"):
        assert word in text
    assert "wider than they need be" in str(result(1.5))
    assert "wider than they need be" in str(result(allowance=1.5))
    unseen = Line("ward", 0.3, math.inf, math.inf, math.inf, 0.0, 1.0, -math.inf, math.inf)
    assert np.isnan(unseen.shown[4])
    assert result().lines()[1].shown == result().lines()[1][1:]
    hidden = result(math.inf)
    assert "there are no standard errors" in hidden.summary()
    assert "std err" not in hidden.summary()
    with pytest.raises(NoIntervals, match="more rows"):
        hidden.conf_int()


def test_small_probabilities_of_a_test_are_said_to_be_small():
    found = result()
    clear = replace(found, params=np.array([2.0, -1.2]))  # z is 8.2 and -3.3
    lines = clear.summary().splitlines()
    assert "<0.0001" in lines[4]
    assert "0.0011" in lines[5]


def test_more_looks_where_noise_is_small():
    needed = least_units(problem_of(Logistic(), 10_000, 3), Budget(1.0, 1e-6))
    counts = {
        n: len(ScoreSteps().for_budget(Budget(1.0, 1e-6), problem_of(Logistic(), n, 3)).shares)
        for n in (needed, 3 * needed - 1, 3 * needed)
    }
    assert list(counts.values()) == [4, 4, 7]
    own = ScoreSteps((0.1, 0.2, 0.7))
    assert own.for_budget(Budget(1.0, 1e-6), problem_of(Logistic(), 10**6, 3)) == own


def test_strong_coefficients_are_reached():
    """Margins of a standard deviation of about 3 and little noise: Newton's method must have
    converged. The mean of twelve errors, in standard errors and in the direction of the
    coefficients, is within four of its own deviations; seeds are fixed.
    """
    truth, short = np.array([4.0, -3.0, 2.0]), []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (20_000, 3))
        y = np.where(rng.random(len(X)) < expit(X @ truth - 1), 1.0, -1.0)
        found = inference("logistic", X, y, Budget(3.0, 1e-6), seed=seed)
        short += list(np.sign(truth) * (found.params[1:] - truth) / found.bse[1:])
    assert abs(np.mean(short)) < 4 / math.sqrt(12)
    assert np.abs(short).max() < 5


def test_a_level_without_rows_leaves_the_other_intervals():
    """An indicator that is never one has no interval; the others cover within five standard errors,
    with false alarms below 1e-5, and are hardly wider than without it.
    """
    X, y = rows("logistic", 8000)
    empty = np.column_stack([X, np.full(len(X), -1.0)])
    found = inference("logistic", empty, y, Budget(3.0, 1e-6))
    # In units of an indicator of 0 and 1 the intercept stands for rows without it.
    plain = inference("logistic", X, y, Budget(3.0, 1e-6))
    assert found.verdict == "good"
    assert found.hidden.tolist() == [True, False, False, False, True]
    np.testing.assert_array_equal(found.conf_int()[4], [-np.inf, np.inf])
    assert found.pvalues[4] == 1.0
    truth = 2 * WEIGHTS
    assert np.all(np.abs(found.params[1:4] - truth) < 5 * found.bse[1:4])
    assert np.all(found.bse[1:4] < 1.3 * plain.bse[1:4])
    # The difference that every row has is known, though both of its coefficients are not.
    assert np.isfinite(found.contrast([1.0, 0, 0, 0, -1.0])[0]).all()
    assert np.isinf(found.contrast([1.0, 0, 0, 0, 0])[0, 1])
    assert found.wald_test(np.eye(5)[1:4]).df == 3
    with pytest.raises(NoIntervals, match="x3"):
        found.wald_test(np.eye(5)[3:])
    assert np.isfinite(found.conf_int(simultaneous=True)[1:4]).all()
    assert np.isinf(found.cov_params()[4, 4])
    assert "None for (intercept), x3" in found.summary()
    effects = found.marginal_effects(empty[:20]).effects
    assert np.isfinite(effects[:3]).all()
    assert np.isinf(effects[3, 1])


def test_weights_become_even_as_noise_vanishes():
    """Never shorter than usual; with even weights where noise adds little, and sooner where the
    model may be wrong.
    """
    assert longer_reach(0.5, 0.05, robust=False) == 1.0
    assert longer_reach(0.5, 0.05, robust=True) == 2.0
    assert longer_reach(0.08, 0.05, robust=True) == pytest.approx(2.5)
    assert longer_reach(0.5, 0.2, robust=True) == pytest.approx(1.25)
    assert longer_reach(1e-4, 1e-4, robust=False) == pytest.approx(200)
    budget, known = Budget(1.0, 1e-6), problem_of(Logistic(), 10_000, 3)
    assert noise_over_sampling(known, budget, robust=True) == pytest.approx(
        2 * noise_over_sampling(known, budget)
    )


def test_where_the_model_is_wrong_robust_fits_estimate_the_ordinary_coefficient():
    """A parabola with rows of large leverage: the mean of eight errors, over the standard error, is
    within four of its own deviations. With the usual reach it is seven of them off.
    """
    rng = np.random.default_rng(0)
    X = np.clip(rng.normal(0, 0.3, (400_000, 1)) ** 3 * 6, -1, 1)

    def response(X):
        return np.where(rng.random(len(X)) < expit(4 * X[:, 0] ** 2 + X[:, 0] - 1), 1.0, -1.0)

    goal = inference("logistic", X, response(X), Budget(math.inf, 1e-6)).params[1]
    errors = []
    for seed in range(8):
        sample = X[rng.integers(len(X), size=20_000)]
        kind = {"seed": seed, "cov_type": "robust"}
        found = inference("logistic", sample, response(sample), Budget(3.0, 1e-6), **kind)
        errors.append((found.params[1] - goal) / found.bse[1])
    assert abs(np.mean(errors)) < 4 / math.sqrt(8)


def test_rows_of_small_weight_do_not_widen_intervals_of_a_model_that_holds():
    """A level of 5 % of the rows weighs less, which changes neither its scores' share of the
    curvature nor of their variance: its error is within 1.6 of that without privacy.
    """
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (20_000, 3))
    X[:, 1] = np.where(rng.random(len(X)) < 0.05, 1.0, -1.0)
    y = np.where(rng.random(len(X)) < expit(X @ WEIGHTS), 1.0, -1.0)
    private = inference("logistic", X, y, Budget(3.0, 1e-6))
    plain = inference("logistic", X, y, Budget(math.inf, 1e-6))
    assert private.bse[2] < 1.6 * plain.bse[2]


@pytest.mark.parametrize("d", [1, 3, 12, 13, 20])
def test_no_record_is_farther_than_the_farthest_one(d):
    """All corners of few columns; of many an upper bound, better than that of lengths alone."""
    rng = np.random.default_rng(d)
    images = rng.normal(size=(d + 1, d + 1)) * rng.uniform(0.2, 5, d + 1)
    signs = rng.choice([-1.0, 1.0], size=(50_000, d))
    records = np.column_stack([signs, np.full(len(signs), 0.7)])
    largest = np.sum((records @ images.T) ** 2, axis=1).max()
    found = farthest_square(images, 0.7)
    assert largest <= found * (1 + 1e-12)
    assert found < (d + 0.49) * np.linalg.norm(images, 2) ** 2
    if d <= 3:
        assert found == pytest.approx(largest)


def test_with_even_weights_a_far_group_keeps_its_say():
    """3 % of the rows are far from the others and do not follow their line. The mean of six errors
    over the standard error is within four of its own deviations of the ordinary coefficient; where
    rows weigh less it is more than five of them off.
    """
    rng = np.random.default_rng(3)

    def drawn(n):
        far = rng.random(n) < 0.03
        X = np.where(far, 0.95, rng.normal(-0.5, 0.06, n)).clip(-1, 1)[:, None]
        return X, np.where(far, -0.2, 0.3 * X[:, 0] + 0.1 * rng.normal(size=n)).clip(-1, 1)

    goal = inference("linear", *drawn(400_000), Budget(math.inf, 1e-6)).params[1]

    def mean_error(even_weights):
        kind = {"cov_type": "robust", "even_weights": even_weights}
        found = [inference("linear", *drawn(8000), Budget(2.0, 1e-6), k, **kind) for k in range(6)]
        return np.mean([(one.params[1] - goal) / one.bse[1] for one in found]) * math.sqrt(6)

    assert abs(mean_error(even_weights=True)) < 4
    assert abs(mean_error(even_weights=False)) > 5
