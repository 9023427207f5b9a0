"""Regression with clipped targets, and private choice of columns."""

import math
import pickle
import warnings
from contextlib import nullcontext
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from _support import ERROR_FOR_A_CELL
from hushfit import (
    Ledger,
    PrivateElasticNet,
    PrivateFeatureSelector,
    PrivateHuberRegressor,
    PrivateLasso,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivatePoissonRegressor,
    PrivateRidge,
    load_model,
    save_model,
)
from hushfit.data import FeatureBounds
from hushfit.datasets import make_sparse_classification
from hushfit.errors import (
    BudgetExceeded,
    InvalidArgument,
    MissingBoundsWarning,
    PrivacyLeakWarning,
    TooLittleDataWarning,
)
from hushfit.privacy import gaussian_mu
from hushfit.solvers import WhitenedLeastSquares
from hushfit.support_recovery import coverage

LINEAR = [PrivateLinearRegression, PrivateRidge, PrivateLasso, PrivateElasticNet]
TARGETS = {"target_bounds": (-3, 9), "feature_bounds": (0, 1)}
IGNORED = [
    "ignore::hushfit.errors.PrivacyLeakWarning",
    "ignore::hushfit.errors.InsecureNoiseWarning",
    "ignore::hushfit.errors.MissingBoundsWarning",
    "ignore::hushfit.errors.TooLittleDataWarning",
]


def make(n=4000, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    truth = np.array([3.0, -2.0, 4.0, 0.0, 0.0, 0.0])
    return X, X @ truth + 1 + 0.2 * rng.normal(size=n), truth


def counts(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, rng.poisson(np.exp(X @ [1.0, -1.0, 0.0] + 0.3))


def huber(residual):
    size = np.abs(residual)
    return np.where(size <= 1, 0.5 * size**2, size - 0.5)


@pytest.mark.parametrize("bounds", [(0.0, 1.0), None], ids=["bounded", "as given"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_named_solver_minimises_the_objective_of_unit_rows(bounds, fit_intercept):
    X, y, _ = make(600)
    alpha = 1e-4
    model = PrivateElasticNet(
        alpha=alpha,
        l1_ratio=0.0,
        epsilon=np.inf,
        solver="exact",
        target_bounds=(-3, 9),
        feature_bounds=bounds,
        fit_intercept=fit_intercept,
    )
    with pytest.warns(MissingBoundsWarning) if bounds is None else nullcontext():
        model.fit(X, y)
    centre, half = (3.0, 6.0) if fit_intercept else (0.0, 9.0)
    records = np.column_stack([X, np.full(len(X), float(fit_intercept))])
    lengths = np.linalg.norm(records, axis=1)

    def objective(w):
        residual = (records @ w - (y - centre) / half) / lengths
        return huber(residual).mean() + alpha / 2 * np.sum(w[:-1] ** 2)

    best = minimize(objective, np.zeros(7), method="BFGS", options={"gtol": 1e-9}).fun
    found = np.append(model.coef_ / half, (model.intercept_ - centre) / half)
    assert objective(found) <= best + 1e-7


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_privacy_the_default_is_ridge_regression_in_mapped_units(fit_intercept):
    X, y, _ = make(600)
    model = PrivateRidge(alpha=0.01, epsilon=np.inf, fit_intercept=fit_intercept, **TARGETS)
    model.fit(X, y)
    centre, half = (3.0, 6.0) if fit_intercept else (0.0, 9.0)
    Z, t = np.column_stack([X, np.full(600, float(fit_intercept))]), (y - centre) / half
    penalty = np.diag([0.01] * 6 + [1e-12])
    best = np.linalg.solve(Z.T @ Z / 600 + penalty, Z.T @ t / 600)
    assert model.coef_ / half == pytest.approx(best[:-1], abs=1e-4)
    assert (model.intercept_ - centre) / half == pytest.approx(
        best[-1] if fit_intercept else 0.0, abs=1e-4
    )


@pytest.mark.parametrize("kind", [*LINEAR, PrivateHuberRegressor])
def test_a_generous_budget_finds_the_signal(kind):
    X, y, truth = make(6000)
    model = kind(epsilon=20.0, **TARGETS).fit(X, y)
    assert model.score(X, y) > 0.97
    assert model.coef_ == pytest.approx(truth, abs=0.3)
    assert model.predict(X[:5]) == pytest.approx(X[:5] @ model.coef_ + model.intercept_)
    assert "the range of the target, given" in str(model.privacy_).replace("\n", " ")


@pytest.mark.parametrize("kind", LINEAR)
def test_coefficients_can_be_kept_from_being_negative(kind):
    X, y, _ = make(3000)
    model = kind(epsilon=5.0, positive=True, **TARGETS).fit(X, y)
    assert (model.coef_ >= 0).all()
    assert model.coef_[0] > 1


def test_a_given_alpha_shrinks_and_selecting_drops_what_noise_explains():
    X, y, _ = make(8000)
    plain, strong = (PrivateLasso(alpha, epsilon=3.0, **TARGETS).fit(X, y) for alpha in (0.0, 0.02))
    assert np.abs(strong.coef_).sum() < 0.8 * np.abs(plain.coef_).sum()
    selected = PrivateLasso("select", epsilon=3.0, **TARGETS).fit(X, y)
    assert selected.support_.tolist() == [0, 1, 2]


def test_predictions_stay_in_the_range_of_the_target():
    X, y, _ = make(2000)
    model = PrivateLinearRegression(epsilon=np.inf, target_bounds=(2, 4), feature_bounds=(0, 1))
    predicted = model.fit(X, y).predict(X)
    assert predicted.min() == 2.0
    assert predicted.max() == 4.0


def test_an_outlier_in_the_target_is_clipped_to_the_bounds():
    X, y, _ = make(600)
    wild = y.copy()
    wild[0] = 1e9
    tame = y.copy()
    tame[0] = 9.0
    fits = [PrivateLasso(epsilon=np.inf, **TARGETS).fit(X, target).coef_ for target in (wild, tame)]
    assert np.array_equal(*fits)


# Rows of unit length need ranges that start at 0.
@pytest.mark.parametrize(
    ("solver", "bounds"), [("auto", (0, 1)), ("auto", (-2, 2)), ("exact", (0, 1))]
)
def test_dense_and_sparse_rows_give_the_same_model(solver, bounds):
    X, y, _ = make(500)
    X[X < 0.5] = 0
    models = [
        PrivateLasso(
            1e-3, epsilon=np.inf, solver=solver, target_bounds=(-3, 9), feature_bounds=bounds
        ).fit(rows, y)
        for rows in (X, sparse.csr_matrix(X))
    ]
    assert models[0].coef_ == pytest.approx(models[1].coef_, abs=1e-5)
    assert models[0].predict(X) == pytest.approx(models[1].predict(sparse.csr_matrix(X)), abs=1e-4)


def test_new_rows_outside_the_ranges_are_clipped_whether_dense_or_sparse():
    X, y, _ = make(500)
    model = PrivateLasso(epsilon=np.inf, **TARGETS).fit(X, y)
    wild = np.array([[5.0, 0, 0, -2.0, 0, 0.5]])
    tame = np.array([[1.0, 0, 0, 0, 0, 0.5]])
    for rows in (wild, sparse.csr_matrix(wild), tame):
        assert model.predict(rows) == pytest.approx(tame @ model.coef_ + model.intercept_)


def test_a_row_with_a_missing_value_gets_the_prediction_of_the_middle():
    X, y, _ = make(500)
    model = PrivateLinearRegression(
        epsilon=np.inf, target_bounds=(-3, 9), feature_bounds=(-1, 3)
    ).fit(X, y)
    missing = np.full((1, 6), np.nan)
    assert model.predict(missing) == pytest.approx(model.predict(np.ones((1, 6))))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"target_bounds": (1, 0)}, "low < high"),
        ({"target_bounds": 3}, "pair of numbers"),
        ({"target_bounds": (0, np.inf)}, "finite"),
        ({"target_bounds": (0, 1), "alpha": -1}, "alpha"),
        ({"target_bounds": (0, 1), "alpha": "best"}, "'auto', or 'select'"),
        ({"target_bounds": (0, 1), "alpha": "select", "solver": "ssp"}, "Give a number"),
        ({"target_bounds": (0, 1), "alpha": "select", "adjacency": "label"}, "Give a number"),
        ({"target_bounds": (0, 1), "epsilon": 0}, "epsilon"),
    ],
)
def test_bad_settings_are_refused_and_cost_nothing(settings, words):
    X, y, _ = make(100)
    ledger = Ledger(1.0, 1e-6)
    with pytest.raises(InvalidArgument, match=words):
        PrivateLasso(ledger=ledger, feature_bounds=(0, 1), **settings).fit(X, y)
    assert ledger.entries == ()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (PrivateHuberRegressor(adjacency="label"), "PrivateLinearRegression"),
        (PrivateHuberRegressor(solver="ssp"), "solver='auto'"),
        (PrivateHuberRegressor(threshold=0), "threshold=0"),
        (PrivatePoissonRegressor(solver="whitened-gd"), "solver='auto'"),
        (PrivatePoissonRegressor(max_count=-1), "most=-1"),
    ],
    ids=repr,
)
def test_what_a_regressor_does_not_do_is_refused_before_anything_is_paid(model, words):
    X, y, _ = make(100)
    ledger = Ledger(1.0, 1e-6)
    bounded = {"target_bounds": (0, 1)} if isinstance(model, PrivateHuberRegressor) else {}
    with pytest.raises(InvalidArgument, match=words):
        model.set_params(ledger=ledger, feature_bounds=(0, 1), **bounded).fit(X, y)
    assert ledger.entries == ()


def test_a_range_read_from_the_rows_is_warned_about_and_noted():
    X, y, _ = make(500)
    with pytest.warns(PrivacyLeakWarning, match="target_bounds"):
        model = PrivateLasso(feature_bounds=(0, 1)).fit(X, y)
    assert "READ FROM THE ROWS" in str(model.privacy_)


def test_columns_without_ranges_are_taken_as_standardised_with_a_warning():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=4000)
    with pytest.warns(MissingBoundsWarning, match=r"\[-3, 3\].*Give \(low, high\)"):
        model = PrivateLinearRegression(epsilon=3.0, target_bounds=(-4, 4)).fit(X, y)
    assert model.score(X, y) > 0.9


def test_too_little_data_is_said_before_anything_is_spent():
    X, y, _ = make(100)
    needed = math.ceil(35 * math.sqrt(7) / gaussian_mu(0.1, 1e-6))
    model = PrivateRidge(epsilon=0.1, **TARGETS)
    with pytest.warns(TooLittleDataWarning, match=f"at least {needed} rows.*spent yet"):
        model.quote(100, 6)
    ledger = Ledger(1.0, 1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TooLittleDataWarning):
            model.set_params(ledger=ledger).fit(X, y)
        assert ledger.entries == ()
        model.quote(needed, 6)


# Bad or unusual input, for every regressor.

RANGE = (0.0, 4.0)
EVERY = [kind(target_bounds=RANGE) for kind in (*LINEAR, PrivateHuberRegressor)] + [
    PrivatePoissonRegressor(max_count=RANGE[1])
]
CHOSEN = [
    PrivateLasso("select", target_bounds=RANGE),
    PrivateElasticNet(0.01, positive=True, target_bounds=RANGE),
    PrivateLinearRegression(positive=True, target_bounds=RANGE),
    PrivateRidge(0.1, adjacency="add-remove", target_bounds=RANGE),
]
over_regressors = pytest.mark.parametrize("model", EVERY, ids=lambda model: type(model).__name__)


def fitted(model, X, y, epsilon=5.0, seed=0):
    settings = {"epsilon": epsilon, "feature_bounds": (-1, 1), "random_state": seed}
    return clone(model).set_params(**settings).fit(X, y)


@pytest.mark.parametrize("model", EVERY + CHOSEN, ids=repr)
@pytest.mark.parametrize("epsilon", [0.01, 20.0])
@pytest.mark.filterwarnings(*IGNORED)
def test_no_row_gets_a_prediction_outside_the_range(model, epsilon):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 3))
    y = np.rint(np.clip(8 * X[:, 0], *RANGE))
    wild = 1e6 * rng.normal(size=(200, 3))
    wild[0, 0] = np.nan
    predicted = fitted(model, X, y, epsilon).predict(wild)
    assert RANGE[0] <= predicted.min() <= predicted.max() <= RANGE[1]


@over_regressors
@pytest.mark.filterwarnings(*IGNORED)
def test_a_target_that_is_not_finite_follows_a_public_rule(model):
    """Nan counts as the zero record, infinity as the end of the range; nothing tells of them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 2))
    y = np.rint(np.clip(2 + 2 * X[:, 0], *RANGE))
    holed, wild = y.copy(), y.copy()
    holed[3], wild[3], y[3] = np.nan, np.inf, RANGE[1]
    without = np.where(np.arange(400)[:, None] == 3, np.nan, X)
    clipped, whole, gone, zero = (
        fitted(clone(model).set_params(nonfinite="zero"), rows, targets)
        for rows, targets in ((X, wild), (X, y), (X, holed), (without, y))
    )
    np.testing.assert_array_equal(clipped.coef_, whole.coef_)
    np.testing.assert_array_equal(gone.coef_, zero.coef_)
    assert "a missing target makes its record the zero record" in " ".join(
        str(gone.privacy_).split()
    )
    thin = fitted(model, sparse.csr_array(X), holed)
    np.testing.assert_allclose(thin.coef_, fitted(model, X, holed).coef_, rtol=1e-6)
    of_pandas = pd.Series(holed, dtype=object).where(~np.isnan(holed), pd.NA)
    np.testing.assert_array_equal(fitted(model, X, of_pandas).coef_, fitted(model, X, holed).coef_)
    with pytest.raises(ValueError, match="NaN"):
        fitted(clone(model).set_params(nonfinite="raise"), X, holed)


ODD_TARGETS = {
    "a text": "much",
    "nothing": None,
    "missing in pandas": pd.NA,
    "a complex number": 1j,
    "a signalling decimal": Decimal("sNaN"),
    "a date": date(2020, 1, 1),
    "a list": [1, 2],
    "an array": np.ones(2),
    "an object": object(),
}


@pytest.mark.parametrize("odd", ODD_TARGETS.values(), ids=ODD_TARGETS)
@pytest.mark.parametrize("layout", [list, lambda cells: pd.Series(cells, dtype=object)])
@over_regressors
@pytest.mark.filterwarnings(*IGNORED)
def test_a_target_that_is_no_number_is_missing_and_nothing_tells_of_it(model, layout, odd):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 2))
    cells = np.rint(np.clip(2 + 2 * X[:, 0], *RANGE)).tolist()
    gone = fitted(model, X, np.array([math.nan, *cells[1:]]))
    found = fitted(model, X, layout([odd, *cells[1:]]))
    np.testing.assert_array_equal(found.coef_, gone.coef_)
    assert found.privacy_ == gone.privacy_


@pytest.mark.filterwarnings(*IGNORED)
def test_targets_in_a_list_are_read_one_by_one():
    X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    model = PrivateLinearRegression(target_bounds=(0.0, 4.0))
    y = [1.0, 2, True, "3", Fraction(1, 2), Decimal(3), 10**400, -(10**400), [2.0], *[4.0] * 51]
    plain = np.array([1.0, 2, 1, 3, 0.5, 3, 4, 0, 2, *[4.0] * 51])
    np.testing.assert_array_equal(fitted(model, X, y).coef_, fitted(model, X, plain).coef_)
    column = [[one] for one in plain]
    np.testing.assert_array_equal(fitted(model, X, column).coef_, fitted(model, X, plain).coef_)


@pytest.mark.parametrize("layout", [np.array, pd.Series, lambda y: pd.Series(y, dtype="category")])
def test_targets_of_a_type_for_texts_are_refused(layout):
    X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    ledger = Ledger(20.0, 1e-3)
    model = PrivateLinearRegression(target_bounds=(0.0, 4.0), epsilon=5.0, ledger=ledger)
    with pytest.raises(InvalidArgument, match=r"pandas\.to_numeric"):
        model.fit(X, layout(["1", "2"] * 30))
    assert ledger.entries == ()


@pytest.mark.filterwarnings(*IGNORED)
def test_a_missing_target_does_not_change_how_others_are_rounded():
    """Targets in float32 became float64 if one was missing, and all moved by their last digits."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 2))
    y = (X[:, 0] / 3).astype(np.float32)
    model = PrivateLinearRegression(target_bounds=(-0.3, 0.7), nonfinite="zero")
    without, holed = X.copy(), y.copy()
    without[3], holed[3] = np.nan, np.nan
    zero, gone = fitted(model, without, y), fitted(model, X, holed)
    np.testing.assert_array_equal(gone.coef_, zero.coef_)


@pytest.mark.parametrize(
    "model",
    [PrivateLinearRegression(target_bounds=(0, 4)), PrivatePoissonRegressor(max_count=4)],
    ids=repr,
)
@pytest.mark.filterwarnings(*IGNORED)
def test_where_features_are_public_a_missing_target_is_in_the_middle(model):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 2))
    y = np.rint(2 + 2 * X[:, 0])
    settings = {"adjacency": "label", "epsilon": 5.0, "feature_bounds": (-1, 1), "random_state": 0}
    model.set_params(**settings)
    y[3] = 2.0
    whole = clone(model).fit(X, y).coef_
    y[3] = np.nan
    np.testing.assert_array_equal(clone(model).fit(X, y).coef_, whole)


RANGES_OF_TWO = {
    "a list of tuples": ([(0, 5), (3, 10)], [0, 3], [5, 10]),
    "a tuple of lists": (([0, 3], [5, 10]), [0, 3], [5, 10]),
    "a tuple of arrays": ((np.array([0, 3]), np.array([5, 10])), [0, 3], [5, 10]),
    "one reading is no range": (np.array([[18, 100], [0, 1]]), [18, 0], [100, 1]),
    "both readings agree": ([[0, 1], [1, 2]], [0, 1], [1, 2]),
}


@pytest.mark.parametrize("case", RANGES_OF_TWO.values(), ids=RANGES_OF_TWO)
def test_ranges_of_two_columns_are_read_as_they_are_written(case):
    given, low, high = case
    found = FeatureBounds.parse(given, 2)
    assert found.low.tolist() == low
    assert found.high.tolist() == high


@pytest.mark.parametrize("kind", [np.array, list, tuple], ids=lambda kind: kind.__name__)
def test_ranges_of_two_columns_that_could_be_read_either_way_are_refused(kind):
    parts = ((0, 5), (3, 10)) if kind is tuple else ([0, 5], [3, 10])
    model = PrivateRidge(target_bounds=(0, 1), feature_bounds=kind(parts))
    with pytest.raises(InvalidArgument, match=r"\[\(0, 5\), \(3, 10\)\].*\(\[0, 5\], \[3, 10\]\)"):
        model.fit(np.ones((50, 2)), np.ones(50))


@pytest.mark.filterwarnings(*IGNORED)
def test_ranges_of_two_columns_survive_a_file(tmp_path):
    X = np.random.default_rng(0).uniform(0, 10, (400, 2))
    model = PrivateLogisticRegression(
        epsilon=5.0, classes=[0, 1], feature_bounds=[(0, 5), (3, 10)], random_state=0
    ).fit(X, (X[:, 0] > 3).astype(int))
    save_model(model, tmp_path / "model.json")
    read = load_model(tmp_path / "model.json").estimator
    np.testing.assert_array_equal(read.predict_proba(X), model.predict_proba(X))


@over_regressors
@pytest.mark.filterwarnings(*IGNORED)
def test_targets_outside_the_bounds_are_clipped_and_no_message_tells_of_them(model):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 2))
    y = np.rint(np.clip(2 + 2 * X[:, 0], *RANGE))
    outside = np.where(y == RANGE[1], 1e12, y)
    texts, models = [], []
    for targets in (y, outside):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            models.append(fitted(model, X, targets))
        texts.append([str(one.message) for one in caught])
    assert texts[0] == texts[1]
    assert np.array_equal(models[0].coef_, models[1].coef_)
    assert str(models[0].privacy_) == str(models[1].privacy_)
    assert str(models[0].privacy_).replace("\n", " ").count("targets to theirs") == 1


@over_regressors
@pytest.mark.filterwarnings(*IGNORED)
def test_a_constant_target_is_predicted(model):
    X = np.random.default_rng(0).uniform(-1, 1, (3000, 2))
    predicted = fitted(model, X, np.full(3000, 3.0), 10.0).predict(X)
    assert predicted == pytest.approx(np.full(3000, 3.0), abs=0.3)


@pytest.mark.parametrize("value", [0.0, 7.0, -1e12])
@pytest.mark.filterwarnings(*IGNORED)
def test_a_constant_target_without_bounds_has_a_range(value):
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    model = PrivateRidge(epsilon=50.0, feature_bounds=(-1, 1)).fit(X, np.full(200, value))
    assert np.isfinite(model.predict(X)).all()
    assert model.predict(X).min() >= value


@over_regressors
@pytest.mark.filterwarnings(*IGNORED)
def test_columns_of_zeros_do_no_harm(model):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 1, 4000), np.zeros((4000, 3))])
    y = np.rint(np.clip(2 + 2 * X[:, 0], *RANGE))
    found = fitted(model, X, y, 10.0)
    assert found.score(X, y) > 0.7
    nothing = fitted(model, np.zeros((4000, 4)), y, 10.0)
    assert np.isfinite(nothing.coef_).all()
    assert nothing.predict(np.zeros((1, 4))) == pytest.approx([y.mean()], abs=0.3)


@over_regressors
@pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")
def test_more_columns_than_rows_are_fitted_after_a_warning(model):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (40, 60)), rng.integers(0, 5, 40).astype(float)
    with pytest.warns(TooLittleDataWarning, match="40 rows with 60 columns are too few"):
        found = fitted(model, X, y, 1.0)
    assert np.isfinite(found.coef_).all()


def test_a_solver_object_gets_the_choice_of_alpha():
    X, y, _ = make(3000)
    solver = WhitenedLeastSquares(steps=15)
    model = PrivateLasso(alpha="select", solver=solver, epsilon=5.0, **TARGETS).fit(X, y)
    assert model.n_iter_ == 15
    assert len(model.support_) <= 3


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove", "label"])
def test_counts_have_a_log_link_and_a_cap(adjacency):
    X, y = counts(6000)
    model = PrivatePoissonRegressor(
        max_count=15, epsilon=10.0, adjacency=adjacency, feature_bounds=(0, 1)
    ).fit(X, y)
    assert model.coef_ == pytest.approx([1.0, -1.0, 0.0], abs=0.15)
    assert model.predict(X[:3]) == pytest.approx(np.exp(X[:3] @ model.coef_ + model.intercept_))
    assert model.predict(np.full((1, 3), 0.5)).max() <= 15
    assert "the largest count, given" in str(model.privacy_).replace("\n", " ")


def test_rows_of_a_person_are_protected_together():
    X, y, _ = make(4000)
    groups = np.repeat(np.arange(2000), 2)
    model = PrivateLinearRegression(epsilon=5.0, **TARGETS).fit(X, y, groups=groups)
    assert model.privacy_.unit.is_person
    assert model.score(X, y) > 0.95
    capped = PrivateLinearRegression(
        epsilon=5.0, person_weight="cap", rows_per_person=4, **TARGETS
    ).fit(X, y, groups=groups)
    assert capped.score(X, y) > 0.9


def test_fitted_models_can_be_pickled():
    X, y, _ = make(500)
    model = PrivateRidge(epsilon=5.0, **TARGETS).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(model.predict(X), again.predict(X))


def contradicting_privacy(estimator):
    """Checks that demand an error which tells of a row."""
    if not isinstance(estimator, PrivatePoissonRegressor):
        # Without target_bounds the range is read from the targets, which must be finite.
        return ERROR_FOR_A_CELL
    missing = {"check_supervised_y_no_nan": "a missing count makes its record the zero record"}
    return {**ERROR_FOR_A_CELL, **missing}


@parametrize_with_checks(
    [
        PrivateLinearRegression(),
        PrivateRidge(),
        PrivateLasso(),
        PrivateElasticNet(),
        PrivateHuberRegressor(),
        PrivatePoissonRegressor(),
    ],
    expected_failed_checks=contradicting_privacy,
)
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


@parametrize_with_checks(
    [PrivateFeatureSelector()], expected_failed_checks=lambda estimator: ERROR_FOR_A_CELL
)
@pytest.mark.filterwarnings(*IGNORED)
def test_the_selector_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)
