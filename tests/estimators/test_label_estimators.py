"""Estimators and the command line under relations where labels alone are private."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from hushfit import (
    Ledger,
    PrivateElasticNet,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
)
from hushfit.errors import InvalidArgument, UnsupportedRelation
from hushfit.models import load_model, save_model

BOUNDS = (-3.0, 3.0)
pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")


def rows(n=1500, d=5, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(size=(n, d)), *BOUNDS)
    scores = 2 * X @ rng.normal(size=(d, classes)) + rng.gumbel(size=(n, classes))
    return X, scores.argmax(axis=1)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("layout", [np.asarray, csr_matrix], ids=["dense", "sparse"])
def test_a_classifier_learns_and_says_what_is_not_protected(classes, layout):
    X, y = rows(classes=classes)
    model = PrivateLogisticRegression(
        epsilon=1.0, adjacency="label", classes=range(classes), random_state=0
    )
    score = model.fit(layout(X), y).score(layout(X), y)
    assert score > LogisticRegression().fit(X, y).score(X, y) - 0.03
    assert str(model.privacy_).startswith("FEATURES ARE NOT PROTECTED")
    assert "every feature of every row" in model.privacy_.public
    assert model.privacy_.releases[0].query == "LabelStatistic"
    assert model.coef_.shape == (1 if classes == 2 else classes, X.shape[1])


def test_coefficients_are_in_the_units_of_the_columns():
    X, y = rows()
    model = PrivateLogisticRegression(
        epsilon=np.inf, adjacency="label", classes=[0, 1], feature_bounds=BOUNDS
    ).fit(X, y)
    other = PrivateLogisticRegression(
        epsilon=np.inf, classes=[0, 1], feature_bounds=BOUNDS, solver="exact"
    ).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-3)
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), atol=1e-2)


def test_persons_are_protected_together():
    X, y = rows()
    groups = np.arange(len(y)) // 3
    model = PrivateLogisticRegression(adjacency="person-label", classes=[0, 1], random_state=0)
    model.fit(X, y, groups=groups)
    text = str(model.privacy_)
    assert "all labels of one person" in text
    assert "WHOSE ROW EACH IS" in text
    assert model.score(X, y) > 0.75
    with pytest.raises(InvalidArgument, match="give groups"):
        model.fit(X, y)
    with pytest.raises(InvalidArgument, match="'person-label'"):
        model.set_params(adjacency="label").fit(X, y, groups=groups)


@pytest.mark.parametrize("kind", [PrivateLasso, PrivateElasticNet])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_regression_is_plain_least_squares(kind, fit_intercept):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 4))
    y = X @ np.array([2.0, -1.0, 0.0, 0.5]) + (4.0 if fit_intercept else 0.0)
    y = y + 0.1 * rng.normal(size=3000)
    model = kind(
        alpha=1e-4,
        epsilon=1.0,
        adjacency="label",
        target_bounds=(-6.0, 14.0),
        fit_intercept=fit_intercept,
        random_state=0,
    ).fit(X, y)
    np.testing.assert_allclose(model.coef_, [2.0, -1.0, 0.0, 0.5], atol=0.35)
    assert model.score(X, y) > 0.9
    assert str(model.privacy_).startswith("FEATURES ARE NOT PROTECTED")


def test_what_has_no_proof_is_refused_and_costs_nothing():
    X, y = rows(60)
    ledger = Ledger(3.0, 1e-5, "label")
    svm = PrivateLinearSVC(adjacency="label", classes=[0, 1], ledger=ledger)
    with pytest.raises(InvalidArgument, match="labels enter it in another way"):
        svm.fit(X, y)
    other = PrivateLogisticRegression(
        adjacency="label", classes=[0, 1], solver="ss-admm", ledger=ledger
    )
    with pytest.raises(UnsupportedRelation, match="no proof"):
        other.fit(X, y)
    assert not ledger.entries


def test_a_quote_needs_no_rows():
    model = PrivateLogisticRegression(adjacency="label", classes=[0, 1])
    rows_too = PrivateLogisticRegression(classes=[0, 1], solver="proximal-gd")
    quote = model.quote(1000, 5)
    assert "LabelStatistic" in str(quote)
    assert quote.cost != rows_too.quote(1000, 5).cost


def test_a_model_file_keeps_the_relation(tmp_path):
    X, y = rows(200)
    model = PrivateLogisticRegression(adjacency="label", classes=[0, 1]).fit(X, y)
    save_model(model, tmp_path / "m.json")
    again = load_model(tmp_path / "m.json")
    assert again.guarantee == model.privacy_
    text = (tmp_path / "m.json").read_text()
    (tmp_path / "m.json").write_text(text.replace('"relation": "label"', '"relation": "lable"'))
    with pytest.raises(InvalidArgument):
        load_model(tmp_path / "m.json")
