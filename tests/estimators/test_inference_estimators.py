"""Estimators with ``inference=True``: results in the units of the caller, and refusals."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.special import expit
from sklearn.base import clone

from hushfit import (
    Ledger,
    PrivateLinearRegression,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivatePoissonRegressor,
)
from hushfit.errors import InvalidArgument, NoIntervals, TooFewRows
from hushfit.models import Model, load_model, save_model
from hushfit.models._file import model_from, model_json

pytestmark = pytest.mark.usefixtures("quiet_fits")

FAMILIES = {
    "logistic": sm.families.Binomial(),
    "linear": sm.families.Gaussian(),
    "counts": sm.families.Poisson(),
}
BOUNDS = [(0.0, 100.0), (0.0, 1.0), (-5.0, 5.0)]


def table(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(0, 100, n), rng.integers(2, size=n), rng.uniform(-5, 5, n)])
    return pd.DataFrame(X, columns=["age", "treated", "score"])


def margins(X):
    return 0.02 * (X["age"] - 50) + 0.5 * X["treated"] - 0.1 * X["score"]


def responses(X, seed=1):
    rng, eta = np.random.default_rng(seed), margins(X)
    return {
        "logistic": (rng.random(len(X)) < expit(eta)).astype(int),
        "linear": np.asarray(10 + 3 * eta + rng.normal(size=len(X))),
        "counts": rng.poisson(np.exp(eta)),
    }


def estimator(kind, **settings):
    common = {"feature_bounds": BOUNDS, "inference": True, **settings}
    if kind == "logistic":
        return PrivateLogisticRegression(classes=[0, 1], **common)
    if kind == "linear":
        return PrivateLinearRegression(target_bounds=(0, 20), **common)
    return PrivatePoissonRegressor(max_count=8, **common)


@pytest.mark.parametrize("kind", ["logistic", "linear", "counts"])
def test_without_noise_coefficients_and_errors_are_those_of_statsmodels(kind):
    X = table()
    y = responses(X)[kind]
    model = estimator(kind, epsilon=float("inf"), cov_type="robust")
    if kind == "counts":
        model.set_params(max_count=100)
    model.fit(X, y)
    plain = sm.GLM(y, sm.add_constant(X), family=FAMILIES[kind]).fit(cov_type="HC0", tol=1e-12)
    np.testing.assert_allclose(np.ravel(model.coef_), plain.params.iloc[1:], rtol=1e-6)
    np.testing.assert_allclose(np.ravel(model.intercept_)[0], plain.params.iloc[0], rtol=1e-5)
    np.testing.assert_allclose(model.bse_, plain.bse, rtol=1e-6)
    assert list(model.inference_.names) == ["(intercept)", "age", "treated", "score"]


@pytest.mark.parametrize("kind", ["logistic", "linear", "counts"])
def test_rows_with_a_missing_entry_are_left_out_as_statsmodels_leaves_them_out(kind):
    """A filled entry would bias every coefficient; predictions still fill it."""
    X = table()
    y = responses(X)[kind]
    rng = np.random.default_rng(3)
    X["score"] = X["score"].where((X["treated"] == 0) | (rng.random(len(X)) < 0.5))
    model = estimator(kind, epsilon=float("inf"))
    if kind == "counts":
        model.set_params(max_count=100)
    model.fit(X, y)
    whole = X["score"].notna().to_numpy()
    ols = {"linear": sm.OLS, "logistic": sm.Logit, "counts": sm.Poisson}[kind]
    settings = {} if kind == "linear" else {"disp": 0, "tol": 1e-12}
    plain = ols(y[whole], sm.add_constant(X[whole])).fit(**settings)
    found = model.inference_
    np.testing.assert_allclose(found.params, plain.params, rtol=1e-6)
    np.testing.assert_allclose(found.bse, plain.bse, rtol=1e-6)
    assert "one with a missing value counts as the zero record" in str(model.privacy_)
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("kind", ["logistic", "linear", "counts"])
def test_without_noise_clustered_errors_are_those_of_statsmodels(kind):
    """Persons of three rows each: the weight of one third drops out."""
    ids = np.repeat(np.arange(1000), 3)
    X = table(len(ids))
    X["treated"] = (ids % 2).astype(float)
    y = responses(X)[kind]
    model = estimator(kind, epsilon=float("inf"), cov_type="cluster")
    if kind == "counts":
        model.set_params(max_count=100)
    model.fit(X, y, groups=ids)
    plain = sm.GLM(y, sm.add_constant(X), family=FAMILIES[kind]).fit(
        cov_type="cluster", cov_kwds={"groups": ids, "use_correction": False}, tol=1e-12
    )
    np.testing.assert_allclose(model.inference_.params, plain.params, rtol=1e-6)
    np.testing.assert_allclose(model.bse_, plain.bse, rtol=1e-6)


@pytest.mark.parametrize("kind", ["logistic", "linear", "counts"])
def test_a_private_fit_has_intervals_in_the_units_of_the_columns(kind):
    """Four coefficients of five standard errors' room: false alarms below 1e-5."""
    X = table()
    y = responses(X)[kind]
    model = estimator(kind, epsilon=2.0, random_state=0).fit(X, y)
    truth = np.array([-1.0, 0.02, 0.5, -0.1])
    if kind == "linear":
        truth = np.array([10 - 3.0, 0.06, 1.5, -0.3])
    assert np.all(np.abs(model.inference_.params - truth) < 5 * model.bse_)
    np.testing.assert_allclose(np.ravel(model.coef_), model.inference_.params[1:], rtol=1e-12)
    assert model.pvalues_[1] < 1e-4
    assert "treated" in model.summary()
    assert model.contrast([0, 0, 1, 0])[0, 0] == pytest.approx(model.inference_.params[2])
    assert model.wald_test(np.eye(4)[1:]).df == 3
    assert model.privacy_.epsilon == 2.0
    assert "keep their lengths" in str(model.privacy_)


def test_probabilities_are_those_of_the_log_odds():
    X = table()
    y = responses(X)["logistic"]
    model = estimator("logistic", epsilon=3.0, random_state=0).fit(X, y)
    expected = expit(X.to_numpy() @ model.coef_[0] + model.intercept_[0])
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected)


def test_persons_are_clusters():
    """Every row twice, with one id: robust errors are those of the rows taken once."""
    X = table(3000)
    y = responses(X)["logistic"]
    twice, ids = pd.concat([X, X]), np.tile(np.arange(len(X)), 2)
    settings = {"epsilon": float("inf"), "cov_type": "robust"}
    once = estimator("logistic", **settings).fit(X, y)
    doubled = estimator("logistic", **settings).fit(twice, np.tile(y, 2), groups=ids)
    np.testing.assert_allclose(doubled.bse_, once.bse_, rtol=1e-6)
    np.testing.assert_array_equal(doubled.cov_params("cluster"), doubled.cov_params("robust"))
    with pytest.raises(InvalidArgument, match="single rows"):
        estimator("logistic", cov_type="cluster").fit(X, y)
    assert doubled.privacy_.unit.kind == "person"


def test_too_few_rows_are_refused_and_nothing_is_charged():
    X = table(300)
    ledger = Ledger(epsilon=5.0, delta=1e-5)
    with pytest.raises(TooFewRows, match="300 rows are too few"):
        estimator("logistic", epsilon=0.5, ledger=ledger).fit(X, responses(X)["logistic"])
    assert not ledger.entries


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"feature_bounds": None}, "feature_bounds"),
        ({"fit_intercept": False}, "fit_intercept"),
        ({"solver": "dp-sgd"}, "solver"),
        ({"features": "additive"}, "features"),
        ({"adjacency": "label"}, "adjacency"),
        ({"penalty": "l1"}, "penalty"),
        ({"cov_type": "HC3"}, "HC3"),
        ({"threshold": "balanced"}, "balanced"),
    ],
)
def test_settings_without_intervals_are_named(settings, named):
    X = table(100)
    with pytest.raises(InvalidArgument, match=named):
        estimator("logistic", **settings).fit(X, responses(X)["logistic"])


def test_what_has_no_intervals_says_so():
    X = table()
    y = responses(X)["logistic"]
    with pytest.raises(InvalidArgument, match="no inference"):
        PrivateLinearSVC(classes=[0, 1], feature_bounds=BOUNDS, inference=True).fit(X, y)
    plain = PrivateLogisticRegression(classes=[0, 1], random_state=0).fit(X, y)
    with pytest.raises(AttributeError, match="inference=True"):
        plain.summary()


@pytest.mark.parametrize("kind", ["logistic", "linear", "counts"])
def test_intervals_come_back_from_a_file(kind, tmp_path):
    X = table()
    y = responses(X)[kind]
    model = estimator(kind, epsilon=2.0, random_state=0, cov_type="robust").fit(X, y)
    save_model(model, tmp_path / "model.json")
    read = load_model(tmp_path / "model.json").estimator
    assert read.summary(0.9) == model.summary(0.9)
    np.testing.assert_allclose(
        read.conf_int(0.9, simultaneous=True), model.conf_int(0.9, simultaneous=True), rtol=1e-12
    )
    np.testing.assert_array_equal(read.cov_params("model"), model.cov_params("model"))
    own, other = (m.wald_test(np.eye(4)[1:]).statistic for m in (model, read))
    assert other == pytest.approx(own, rel=1e-9)
    assert not read.even_weights
    np.testing.assert_array_equal(read.predict(X), model.predict(X))
    rows = X.to_numpy()[:5]
    np.testing.assert_allclose(
        read.marginal_effects(rows).effects, model.marginal_effects(rows).effects, rtol=1e-12
    )


@pytest.mark.parametrize("kind", ["logistic", "linear", "counts"])
def test_even_weights_are_said_and_come_back_from_a_file(kind):
    X = table()
    y = responses(X)[kind]
    usual = estimator(kind, epsilon=3.0, random_state=0, cov_type="robust").fit(X, y)
    model = clone(usual).set_params(even_weights=True).fit(X, y)
    assert "Rows with unusual features weigh less." in usual.summary()
    assert "All rows weigh the same." in model.summary()
    read = model_from(json.loads(model_json(Model(model))[0])).estimator
    assert read.even_weights
    assert read.summary() == model.summary()
    contents = json.loads(model_json(Model(model))[0])
    del contents["hash"]
    contents["inference"]["even_weights"] = "yes"
    with pytest.raises(InvalidArgument, match="unknown fields"):
        model_from(contents)


def test_files_of_earlier_versions_say_what_they_said(tmp_path):
    X = table()
    model = estimator("logistic", epsilon=2.0, random_state=0).fit(X, responses(X)["logistic"])
    contents = json.loads(model_json(Model(model))[0])
    del contents["hash"], contents["inference"]["unknown"]
    assert model_from(contents).estimator.inference_.verdict == "good"
    contents["inference"]["noise_ratio"] = 2.5
    assert model_from(contents).estimator.inference_.verdict == "none"


def test_a_penalty_of_counts_is_refused():
    X = table(100)
    with pytest.raises(InvalidArgument, match="penalty"):
        estimator("counts", alpha=0.1).fit(X, responses(X)["counts"])


@pytest.mark.parametrize("kind", ["logistic", "counts"])
def test_marginal_effects_over_rows_are_those_of_statsmodels(kind):
    X = table()
    y = responses(X)[kind]
    model = estimator(kind, epsilon=float("inf"))
    if kind == "counts":
        model.set_params(max_count=100)
    model.fit(X, y)
    plain = (sm.Logit if kind == "logistic" else sm.Poisson)(y, sm.add_constant(X))
    expected = plain.fit(disp=0, tol=1e-12, maxiter=200).get_margeff(at="overall")
    found = model.marginal_effects(X.to_numpy())
    np.testing.assert_allclose(found.effects[:, 0], expected.margeff, rtol=1e-5)
    if kind == "logistic":  # the covariance of counts has an estimated dispersion
        np.testing.assert_allclose(found.effects[:, 1], expected.margeff_se, rtol=1e-4)
    assert "4000 public reference rows" in str(found)


def test_marginal_effects_need_rows_of_all_columns():
    X = table()
    model = estimator("linear", epsilon=float("inf")).fit(X, responses(X)["linear"])
    np.testing.assert_allclose(model.marginal_effects().effects[:, 0], model.coef_)
    with pytest.raises(InvalidArgument, match="age, treated, score"):
        model.marginal_effects([[1.0, 2.0]])


@pytest.mark.parametrize("epsilon", [3.0, float("inf")])
def test_collinear_columns_are_named_and_the_others_keep_their_intervals(epsilon, tmp_path):
    """Two equal columns: noise hides the difference of their coefficients at any seed, and not
    their sum. Without noise nothing tells them apart either.
    """
    X = table()
    y = responses(X)["logistic"]
    X["copy"] = X["age"]
    settings = {"feature_bounds": [*BOUNDS, BOUNDS[0]], "epsilon": epsilon, "random_state": 0}
    model = estimator("logistic", **settings).fit(X, y)
    found = model.inference_
    assert found.verdict != "none"
    hidden = [name for name, is_hidden in zip(found.names, found.hidden, strict=True) if is_hidden]
    assert hidden == ["age", "copy"]
    assert "None for age, copy" in model.summary()
    low, high = model.conf_int().T
    assert (low[[2, 3]] < [0.5, -0.1]).all()
    assert (high[[2, 3]] > [0.5, -0.1]).all()
    _, error, low, high = model.contrast([0, 1, 0, 0, 1])[0]
    assert low < 0.02 < high
    assert error < 0.02
    save_model(model, tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").estimator.summary() == model.summary()


@pytest.mark.parametrize("epsilon", [2.0, float("inf")])
def test_separated_classes_have_no_intervals(epsilon):
    """A column that tells the classes apart: its coefficient is infinite, and steps never settle.
    The change of the margins is .95 or more in eighteen of eighteen seeds; the limit is .75.
    """
    X = table()
    y = (X["age"] > 50).astype(int)
    model = estimator("logistic", epsilon=epsilon, random_state=0).fit(X, y)
    assert model.inference_.verdict == "none"
    with pytest.raises(NoIntervals, match="separate the classes"):
        model.conf_int()


def test_a_class_without_rows_has_no_intervals_and_the_reason_is_named():
    X = table()
    model = estimator("logistic", epsilon=2.0, random_state=0).fit(X, np.zeros(len(X), dtype=int))
    with pytest.raises(NoIntervals, match=r"hides|hardly any rows"):
        model.conf_int()


def test_what_the_last_step_leaves_out_is_kept_in_model_files():
    """Where more is allowed for it than for noise, intervals are called conservative."""
    X = table()
    model = estimator("logistic", epsilon=3.0, random_state=0).fit(X, responses(X)["logistic"])
    assert 0 < model.inference_.allowance < 1
    assert model.inference_.verdict == "good"
    model.keep_inference(replace(model.inference_, allowance=1.5))
    contents = json.loads(model_json(Model(model))[0])
    assert model_from(contents).estimator.inference_.verdict == "conservative"
    del contents["hash"], contents["inference"]["allowance"]  # as in files of earlier versions
    assert model_from(contents).estimator.inference_.allowance == 0.0
