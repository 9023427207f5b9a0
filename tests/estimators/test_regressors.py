"""Regression with clipped targets, and private choice of columns."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from hushfit import (
    Ledger,
    PrivateElasticNet,
    PrivateFeatureSelector,
    PrivateLasso,
    PrivateLogisticRegression,
)
from hushfit.datasets import make_sparse_classification
from hushfit.errors import BudgetExceeded, InvalidArgument, PrivacyLeakWarning
from hushfit.support_recovery import coverage

MODELS = [PrivateLasso, PrivateElasticNet]
IGNORED = [
    "ignore::hushfit.errors.PrivacyLeakWarning",
    "ignore::hushfit.errors.InsecureNoiseWarning",
]


def make(n=4000, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    truth = np.array([3.0, -2.0, 4.0, 0.0, 0.0, 0.0])
    return X, X @ truth + 1 + 0.2 * rng.normal(size=n), truth


def huber(residual):
    size = np.abs(residual)
    return np.where(size <= 1, 0.5 * size**2, size - 0.5)


@pytest.mark.parametrize("bounds", [(0.0, 1.0), None], ids=["bounded", "as given"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_privacy_it_minimises_the_documented_objective(bounds, fit_intercept):
    X, y, _ = make(600)
    alpha = 1e-4
    model = PrivateElasticNet(
        alpha=alpha,
        l1_ratio=0.0,
        epsilon=np.inf,
        target_bounds=(-3, 9),
        feature_bounds=bounds,
        fit_intercept=fit_intercept,
    ).fit(X, y)
    centre, half = (3.0, 6.0) if fit_intercept else (0.0, 9.0)
    records = np.column_stack([X, np.full(len(X), float(fit_intercept))])
    lengths = np.linalg.norm(records, axis=1)

    def objective(w):
        residual = (records @ w - (y - centre) / half) / lengths
        return huber(residual).mean() + alpha / 2 * np.sum(w[:-1] ** 2)

    best = minimize(objective, np.zeros(7), method="BFGS", options={"gtol": 1e-9}).fun
    found = np.append(model.coef_ / half, (model.intercept_ - centre) / half)
    assert objective(found) <= best + 1e-7


@pytest.mark.parametrize("kind", MODELS)
def test_a_generous_budget_finds_the_signal(kind):
    X, y, truth = make(20_000)
    model = kind(alpha=1e-5, epsilon=20.0, target_bounds=(-3, 9), feature_bounds=(0, 1)).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.coef_ == pytest.approx(truth, abs=0.5)
    assert model.predict(X[:5]) == pytest.approx(X[:5] @ model.coef_ + model.intercept_)
    assert "the range of the target, given" in str(model.privacy_).replace("\n", " ")


def test_an_outlier_in_the_target_is_clipped_to_the_bounds():
    X, y, _ = make(600)
    wild = y.copy()
    wild[0] = 1e9
    tame = y.copy()
    tame[0] = 9.0
    fits = [
        PrivateLasso(epsilon=np.inf, target_bounds=(-3, 9)).fit(X, target).coef_
        for target in (wild, tame)
    ]
    assert np.array_equal(*fits)


def test_dense_and_sparse_rows_give_the_same_model():
    X, y, _ = make(500)
    X[X < 0.5] = 0
    models = [
        PrivateLasso(epsilon=np.inf, target_bounds=(-3, 9)).fit(rows, y)
        for rows in (X, sparse.csr_matrix(X))
    ]
    assert models[0].coef_ == pytest.approx(models[1].coef_, abs=1e-8)
    assert models[0].predict(X) == pytest.approx(models[1].predict(sparse.csr_matrix(X)), abs=1e-7)


def test_new_rows_outside_the_ranges_are_clipped_whether_dense_or_sparse():
    X, y, _ = make(500)
    model = PrivateLasso(epsilon=np.inf, target_bounds=(-3, 9), feature_bounds=(0, 1)).fit(X, y)
    wild = np.array([[5.0, 0, 0, -2.0, 0, 0.5]])
    tame = np.array([[1.0, 0, 0, 0, 0, 0.5]])
    for rows in (wild, sparse.csr_matrix(wild), tame):
        assert model.predict(rows) == pytest.approx(tame @ model.coef_ + model.intercept_)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"target_bounds": (1, 0)}, "low < high"),
        ({"target_bounds": 3}, "pair of numbers"),
        ({"target_bounds": (0, np.inf)}, "finite"),
        ({"target_bounds": (0, 1), "alpha": -1}, "alpha"),
        ({"target_bounds": (0, 1), "epsilon": 0}, "epsilon"),
    ],
)
def test_bad_settings_are_refused_and_cost_nothing(settings, words):
    X, y, _ = make(100)
    ledger = Ledger(1.0, 1e-6)
    with pytest.raises(InvalidArgument, match=words):
        PrivateLasso(ledger=ledger, **settings).fit(X, y)
    assert ledger.entries == ()


def test_a_range_read_from_the_rows_is_warned_about_and_noted():
    X, y, _ = make(200)
    with pytest.warns(PrivacyLeakWarning, match="target_bounds"):
        model = PrivateLasso().fit(X, y)
    assert "READ FROM THE ROWS" in str(model.privacy_)


@parametrize_with_checks([PrivateLasso(), PrivateElasticNet()])
@pytest.mark.filterwarnings(*IGNORED)
def test_regressors_keep_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


# Choosing columns


def test_the_selector_finds_most_informative_columns_and_pays_once():
    S = make_sparse_classification(random_state=0)
    ledger = Ledger(1.0, 1e-6)
    selector = PrivateFeatureSelector(20, epsilon=0.5, classes=np.unique(S.y), ledger=ledger).fit(
        S.X, S.y
    )
    assert len(ledger.entries) == 1
    assert selector.transform(S.X).shape == (len(S.X), 20)
    assert coverage(selector.ranking_, S.support, 20) >= 0.8
    assert selector.get_support().sum() == 20


def test_a_pipeline_pays_for_selection_and_for_the_model():
    S = make_sparse_classification(n_rows=3000, random_state=1)
    ledger = Ledger(1.0, 1e-6)
    classes = np.unique(S.y)
    pipeline = make_pipeline(
        PrivateFeatureSelector(10, epsilon=0.5, classes=classes, ledger=ledger),
        PrivateLogisticRegression(epsilon=0.5, classes=classes, ledger=ledger),
    )
    pipeline.fit(S.X, S.y)
    assert len(ledger.entries) == 2
    assert pipeline[-1].coef_.shape == (1, 10)
    with pytest.raises(BudgetExceeded):
        clone(pipeline).set_params(privatelogisticregression__epsilon=0.9).fit(S.X, S.y)


def test_without_a_number_columns_with_a_coefficient_are_kept():
    S = make_sparse_classification(n_rows=5000, random_state=2)
    selector = PrivateFeatureSelector(epsilon=5.0, alpha=5e-3, classes=np.unique(S.y)).fit(S.X, S.y)
    assert np.array_equal(selector.get_support(), selector.scores_ > 0)
    assert 0 < selector.get_support().sum() < S.X.shape[1]


@pytest.mark.parametrize("wanted", [0, 101])
def test_an_impossible_number_of_columns_is_refused(wanted):
    S = make_sparse_classification(n_rows=200, random_state=0)
    with pytest.raises(InvalidArgument, match=f"n_features_to_select={wanted}"):
        PrivateFeatureSelector(wanted, classes=np.unique(S.y)).fit(S.X, S.y)


@parametrize_with_checks([PrivateFeatureSelector()])
@pytest.mark.filterwarnings(*IGNORED)
def test_the_selector_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)
