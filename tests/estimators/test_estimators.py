"""Estimators: the minimum without privacy, the guarantee with it, and no side channels."""

import json
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.fixes import parse_version

from _support import problem_for, records_of, three_classes, two_classes
from hushfit import Guarantee, Ledger, PrivateLinearSVC, PrivateLogisticRegression
from hushfit.data import FeatureBounds
from hushfit.errors import (
    BudgetExceeded,
    InsecureNoiseWarning,
    InvalidArgument,
    NonFiniteRecords,
    PrivacyLeakWarning,
    WeakGuaranteeWarning,
)
from hushfit.losses import HuberHinge, OneVsRest
from hushfit.penalties import L1, L2Ball, ScaledL2
from hushfit.privacy import (
    FixedSizeGaussianCost,
    GaussianCost,
    PoissonGaussianCost,
    compose,
    delta_of,
    epsilon_of,
)
from hushfit.privacy.costs._composition import parts_of
from hushfit.release import FixedSizeBatch, PoissonBatch
from hushfit.solvers import ProximalGradient

ESTIMATORS = [PrivateLogisticRegression, PrivateLinearSVC]
over_estimators = pytest.mark.parametrize("Estimator", ESTIMATORS, ids=lambda kind: kind.__name__)
without_warnings = pytest.mark.usefixtures("quiet_fits")

FRAMES = {
    "pandas": lambda X, names: pd.DataFrame(X, columns=names),
    "polars": lambda X, names: pl.DataFrame(X, schema=names),
}
SIGNS, THREE = [-1.0, 1.0], [0.0, 1.0, 2.0]


def fitted(Estimator=PrivateLogisticRegression, data=None, **settings):
    """A small seeded fit."""
    X, y = data or two_classes()
    settings = {"classes": np.unique(y), "random_state": 0, **settings}
    return Estimator(**settings).fit(X, y)


# Without privacy: the minimum that other libraries find


def lasso_logistic(C):
    """scikit-learn's, whose arguments have changed."""
    spelling = (
        {"l1_ratio": 1.0}
        if parse_version(sklearn.__version__) >= parse_version("1.8")
        else {"penalty": "l1"}
    )
    return LogisticRegression(
        C=C,
        fit_intercept=False,
        solver="saga",
        tol=1e-8,
        max_iter=20_000,
        random_state=0,
        **spelling,
    )


def unit_rows(data):
    X, y = data
    return records_of(X, fit_intercept=False), y


@pytest.mark.parametrize("alpha", [1e-3, 0.1])
def test_ridge_matches_scikit_learn(alpha):
    Z, y = unit_rows(two_classes())
    ours = PrivateLogisticRegression(
        math.inf, penalty="l2", alpha=alpha, classes=SIGNS, fit_intercept=False
    ).fit(Z, y)
    theirs = LogisticRegression(
        C=1 / (alpha * len(y)), fit_intercept=False, tol=1e-10, max_iter=5000
    ).fit(Z, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("alpha", [3e-3, 0.05])
def test_lasso_matches_scikit_learn(alpha):
    Z, y = unit_rows(two_classes(d=8))
    ours = PrivateLogisticRegression(
        math.inf, penalty="l1", alpha=alpha, classes=SIGNS, fit_intercept=False
    ).fit(Z, y)
    theirs = lasso_logistic(1 / (alpha * len(y))).fit(Z, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-5)
    assert (ours.coef_ == 0).tolist() == (np.abs(theirs.coef_) < 1e-7).tolist()


def test_multinomial_ridge_matches_scikit_learn():
    Z, y = unit_rows(three_classes())
    ours = PrivateLogisticRegression(
        math.inf, penalty="l2", alpha=0.01, classes=THREE, fit_intercept=False
    ).fit(Z, y)
    theirs = LogisticRegression(
        C=1 / (0.01 * len(y)), fit_intercept=False, tol=1e-10, max_iter=5000
    ).fit(Z, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(Z), theirs.predict_proba(Z), atol=1e-5)


@pytest.mark.parametrize(
    "data", [two_classes(), three_classes()], ids=["two classes", "three classes"]
)
def test_support_vectors_match_scipy(data):
    """With an intercept, which is not penalised."""
    X, y = data
    outputs = 1 if len(np.unique(y)) == 2 else 3
    model = PrivateLinearSVC(math.inf, penalty="l2", alpha=0.05, classes=np.unique(y)).fit(X, y)
    Z, loss = records_of(X), HuberHinge() if outputs == 1 else OneVsRest(HuberHinge(), 3)

    def objective(flat):
        w = flat.reshape(problem_for(X, loss, outputs).shape)
        return loss.value(Z @ w.T, y).mean() + 0.025 * (w[..., :-1] ** 2).sum()

    found = minimize(objective, np.zeros(outputs * Z.shape[1]), options={"gtol": 1e-9})
    ours = np.column_stack([model.coef_, model.intercept_])
    np.testing.assert_allclose(ours, found.x.reshape(ours.shape), atol=2e-4)


def test_no_privacy_is_said_plainly():
    model = PrivateLogisticRegression(math.inf, classes=SIGNS).fit(*two_classes())
    assert model.privacy_.nonprivate
    assert str(model.privacy_).startswith("NOT PRIVATE")


# With privacy


@without_warnings
@over_estimators
def test_a_private_fit_learns(Estimator):
    """Far above chance on test rows, at epsilon 1; the seed is fixed."""
    X, y = two_classes(n=12_000, sharpness=12.0)
    model = fitted(Estimator, (X[:10_000], y[:10_000]))
    assert model.score(X[10_000:], y[10_000:]) > 0.85


@without_warnings
@over_estimators
def test_three_classes_are_one_model_with_one_budget(Estimator):
    X, y = three_classes(n=9000)
    ledger = Ledger(1.0, 1e-6)
    model = fitted(Estimator, (X, y), ledger=ledger)
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    assert len(ledger.entries) == 1
    assert ledger.spent().epsilon <= 1.0
    assert model.score(X, y) > 0.6


PLANS = {
    "auto": ("auto", None),
    "l1": ("auto", "l1"),
    "poisson": (ProximalGradient(steps=5, sampling=PoissonBatch(0.1)), None),
    "fixed size": (ProximalGradient(steps=5, sampling=FixedSizeBatch(40)), None),
}


def with_less_noise(cost, factor):
    """The same releases with the noise of each one scaled."""
    return compose(
        type(part)(
            **{**dict(vars(part).items()), "noise_multiplier": factor * part.noise_multiplier}
        )
        for part in parts_of(cost)
    )


@without_warnings
@pytest.mark.parametrize(("solver", "penalty"), PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_budget_is_spent_and_not_exceeded(solver, penalty, adjacency):
    """delta at the noise that was drawn is within the budget; with a hundredth less noise it is
    not.
    """
    if (
        adjacency == "add-remove"
        and isinstance(solver, ProximalGradient)
        and isinstance(solver.sampling, FixedSizeBatch)
    ):
        with pytest.raises(InvalidArgument, match="replace-one"):
            fitted(solver=solver, adjacency=adjacency)
        return
    promise = fitted(solver=solver, penalty=penalty, adjacency=adjacency, epsilon=0.7).privacy_
    assert {type(part) for part in parts_of(promise.cost)} <= {
        GaussianCost,
        PoissonGaussianCost,
        FixedSizeGaussianCost,
    }
    assert delta_of(promise.cost, 0.7, promise.relation) <= promise.delta
    assert delta_of(with_less_noise(promise.cost, 0.99), 0.7, promise.relation) > promise.delta


@without_warnings
def test_the_guarantee_lists_what_was_released():
    promise = fitted().privacy_
    assert {record.name: (record.query, record.count) for record in promise.releases} == {
        "second moment": ("SecondMoment", 1),
        "gradient": ("ClippedGradient", 60),
        "calibration": ("MarginHistogram", 1),
    }
    assert sum(record.share for record in promise.releases) == pytest.approx(1)
    assert any("number of rows, 400" in item for item in promise.public)


@without_warnings
@over_estimators
@pytest.mark.parametrize("epsilon", [0.5, math.inf])
def test_the_guarantee_survives_json(Estimator, epsilon):
    promise = fitted(Estimator, epsilon=epsilon).privacy_
    assert Guarantee.from_json(promise.to_json()) == promise
    assert json.loads(promise.to_json())["relation"] == "replace-one"


@over_estimators
def test_seeded_fits_repeat_and_say_that_they_are_insecure(Estimator):
    models = []
    for seed in (5, 5, 6):
        with pytest.warns(InsecureNoiseWarning, match="subtract"):
            models.append(fitted(Estimator, random_state=seed))
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    assert (models[0].coef_ != models[2].coef_).all()
    assert not models[0].privacy_.secure
    assert "secure=False" in str(models[0].privacy_)


@without_warnings
@pytest.mark.parametrize(
    "make", [np.random.RandomState, np.random.default_rng], ids=["RandomState", "Generator"]
)
def test_a_generator_moves_on_between_fits(make):
    generator = make(3)
    first, second = fitted(random_state=generator), fitted(random_state=generator)
    assert (first.coef_ != second.coef_).all()
    np.testing.assert_array_equal(first.coef_, fitted(random_state=make(3)).coef_)


@over_estimators
def test_unseeded_fits_differ_and_are_secure(Estimator):
    """Two draws of secure noise agree in a coordinate with probability below 1e-8; refits
    redraw.
    """
    X, y = two_classes()
    model = Estimator(classes=SIGNS)
    first = model.fit(X, y).coef_.copy()
    assert (model.fit(X, y).coef_ != first).all()
    assert (clone(model).fit(X, y).coef_ != first).all()
    assert model.privacy_.secure


@without_warnings
def test_one_budget_buys_the_same_multiplier_under_either_relation():
    """It is noise over the sensitivity, so for a Gaussian it does not depend on the relation."""
    replaced, removed = (
        fitted(adjacency=adjacency).privacy_.releases for adjacency in ("replace-one", "add-remove")
    )
    assert [r.noise_multiplier for r in replaced] == pytest.approx(
        [r.noise_multiplier for r in removed], rel=1e-6
    )


def attributes(model):
    """Fitted attributes with the shape of their values."""
    return {
        name: np.shape(value)
        for name, value in vars(model).items()
        if name.endswith("_") and not name.startswith("_")
    }


@without_warnings
@over_estimators
@pytest.mark.parametrize("solver", ["auto", "prox-newton", "proximal-gd"])
def test_nothing_on_the_side_depends_on_the_rows(Estimator, solver):
    """Neighbours leave the same attributes of the same shapes, and all that is not noisy is
    equal.
    """
    X, y = two_classes()
    other, labels = X.copy(), y.copy()
    other[7], labels[7] = 1e6, -labels[7]
    one, two = (fitted(Estimator, data, solver=solver) for data in ((X, y), (other, labels)))
    expected = {"classes_", "coef_", "intercept_", "n_features_in_", "n_iter_", "privacy_"}
    expected |= {"feature_map_", "row_profile_"}  # None, and empty, without a map
    expected |= {"threshold_"}  # None without a threshold
    expected |= {"receipt_"}  # names the payment, which is made before a row is read
    assert attributes(one) == attributes(two)
    assert set(attributes(one)) == expected
    assert set(vars(one)) - expected == set(one.get_params())
    assert one.n_iter_ == two.n_iter_
    assert one.privacy_ == two.privacy_
    np.testing.assert_array_equal(one.classes_, two.classes_)


@without_warnings
def test_nothing_is_printed(capsys):
    fitted()
    assert capsys.readouterr() == ("", "")


@without_warnings
def test_verbose_shows_progress_and_only_progress(capsys):
    fitted(verbose=1, solver=ProximalGradient(steps=4))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.endswith("4/4\n")
    assert fitted().coef_.shape == fitted(verbose=0).coef_.shape


# Labels and classes


@without_warnings
@over_estimators
def test_classes_may_be_words_in_any_order(Estimator):
    X, y = two_classes()
    words = np.where(y > 0, "yes", "no")
    model = fitted(Estimator, (X, words), classes=["yes", "no"])
    assert model.classes_.tolist() == ["no", "yes"]
    assert set(model.predict(X)) <= {"no", "yes"}
    np.testing.assert_array_equal(model.coef_, fitted(Estimator, (X, y)).coef_)
    np.testing.assert_array_equal(model.predict(X) == "yes", model.decision_function(X) > 0)


@without_warnings
def test_a_public_class_that_no_row_has_is_kept():
    X, y = three_classes()
    model = fitted(data=(X, y), classes=[0, 1, 2, 3])
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert model.predict_proba(X).shape == (300, 4)


def test_reading_the_classes_warns_and_is_written_down():
    X, y = two_classes()
    with pytest.warns(PrivacyLeakWarning, match=r"classes=\[...\]"):
        model = PrivateLogisticRegression().fit(X, y)
    assert any("READ FROM THE ROWS" in item for item in model.privacy_.public)


# Predicting


DATA = {"two classes": two_classes(), "three classes": three_classes()}
over_data = pytest.mark.parametrize("data", DATA.values(), ids=DATA)
over_intercepts = pytest.mark.parametrize(
    "fit_intercept", [True, False], ids=["intercept", "no intercept"]
)
over_bounds = pytest.mark.parametrize("bounds", [None, (-1.0, 2.0)], ids=["as given", "bounds"])


@without_warnings
@over_estimators
@over_data
@over_intercepts
@over_bounds
def test_decision_function_is_the_documented_formula(Estimator, data, fit_intercept, bounds):
    X, _y = data
    model = fitted(Estimator, data, fit_intercept=fit_intercept, feature_bounds=bounds)
    clipped = X if bounds is None else np.clip(X, *bounds)
    mapped = clipped if bounds is None else (clipped - bounds[0]) / (bounds[1] - bounds[0])
    length = np.sqrt((mapped**2).sum(axis=1) + fit_intercept)
    expected = (clipped @ model.coef_.T + model.intercept_) / length[:, None]
    expected = expected[:, 0] if len(model.classes_) == 2 else expected
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-9, atol=1e-9)
    if not fit_intercept and bounds is None:
        np.testing.assert_array_equal(model.intercept_, 0.0)


@without_warnings
@over_data
def test_probabilities_sum_to_one_and_follow_the_margins(data):
    X, _y = data
    model = fitted(data=data)
    p, margins = model.predict_proba(X), model.decision_function(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert ((p >= 0) & (p <= 1)).all()
    expected = (
        softmax(margins, axis=1)
        if margins.ndim == 2
        else np.column_stack([1 - expit(margins), expit(margins)])
    )
    np.testing.assert_allclose(p, expected, rtol=1e-12)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p, rtol=1e-10)
    np.testing.assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])


def test_log_probabilities_stay_finite_far_from_the_boundary():
    model = PrivateLogisticRegression(math.inf, classes=SIGNS, penalty="l2", alpha=1e-9).fit(
        [[-1.0], [1.0]], SIGNS
    )
    model.coef_ = np.array([[5000.0]])
    assert np.isfinite(model.predict_log_proba([[-1.0], [1.0]])).all()


@without_warnings
@over_estimators
@over_bounds
def test_a_row_that_counts_as_zero_lies_on_the_boundary(Estimator, bounds):
    model = fitted(Estimator, feature_bounds=bounds, nonfinite="zero")
    assert model.decision_function([[np.nan, 1, 1, 1, 1]]).tolist() == [0.0]
    assert fitted(Estimator, fit_intercept=False).decision_function(np.zeros((1, 5))).tolist() == [
        0.0
    ]


def test_svc_has_no_probabilities():
    assert not hasattr(PrivateLinearSVC(), "predict_proba")


# Tables


@without_warnings
@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_frames_give_names_and_the_same_fit(frame):
    X, y = two_classes()
    names = [f"column {j}" for j in range(5)]
    table = frame(X, names)
    model = fitted(data=(table, y))
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(model.coef_, fitted().coef_)
    np.testing.assert_array_equal(model.predict(table), fitted().predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame(X, names[::-1]))


@without_warnings
@over_data
@pytest.mark.parametrize(
    "make", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array]
)
def test_sparse_rows_give_the_same_fit(data, make):
    X, y = data
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    dense, thin = fitted(data=(X, y)), fitted(data=(make(X), y))
    np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(
        thin.decision_function(make(X)), dense.decision_function(X), rtol=1e-6, atol=1e-8
    )


@without_warnings
def test_an_entry_stored_twice_counts_as_its_sum():
    """A duplicate index would otherwise make a record longer than its computed norm."""
    twice = sparse.csr_array((np.ones(4), [0, 0, 1, 1], [0, 2, 4]), shape=(2, 2))
    once = sparse.csr_array((np.full(2, 2.0), [0, 1], [0, 1, 2]), shape=(2, 2))
    models = [fitted(data=(X, np.array(SIGNS)), solver="proximal-gd") for X in (twice, once)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    np.testing.assert_array_equal(
        models[0].decision_function(twice), models[1].decision_function(once)
    )
    assert twice.nnz == 4  # the caller's matrix is as it was


@without_warnings
def test_integers_and_lists_are_rows_too():
    X, y = np.arange(40).reshape(20, 2) % 7, np.tile([0, 1], 10)
    plain = fitted(data=(X.astype(float), y))
    for rows in (X, X.tolist(), X.astype(np.int8)):
        np.testing.assert_array_equal(fitted(data=(rows, y)).coef_, plain.coef_)


@without_warnings
def test_bounds_are_in_the_units_of_the_columns():
    """The unit of a column and its bounds rescale its weight, and change no prediction."""
    X, y = two_classes()
    metres = fitted(data=(X, y), feature_bounds=(-2, 2))
    X_mm = X * [1000, 1, 1, 1, 1]
    low, high = np.full(5, -2.0), np.full(5, 2.0)
    low[0], high[0] = -2000, 2000
    millimetres = fitted(data=(X_mm, y), feature_bounds=(low, high))
    np.testing.assert_allclose(millimetres.coef_ * [1000, 1, 1, 1, 1], metres.coef_, rtol=1e-6)
    np.testing.assert_allclose(
        millimetres.decision_function(X_mm), metres.decision_function(X), rtol=1e-6
    )


@without_warnings
def test_values_outside_the_bounds_are_clipped():
    X, y = two_classes()
    bounded = fitted(data=(X, y), feature_bounds=(-1, 1))
    np.testing.assert_array_equal(
        bounded.coef_, fitted(data=(np.clip(X, -1, 1), y), feature_bounds=(-1, 1)).coef_
    )
    np.testing.assert_array_equal(bounded.predict(X), bounded.predict(np.clip(X, -1, 1)))
    assert any("range of every column" in item for item in bounded.privacy_.public)


@without_warnings
def test_sparse_bounds_must_keep_zeros():
    X, y = two_classes()
    X = sparse.csr_array(np.abs(X))
    assert fitted(data=(X, y), feature_bounds=(0, 3)).coef_.shape == (1, 5)
    with pytest.raises(InvalidArgument, match=r"start at -1.*sparse"):
        fitted(data=(X, y), feature_bounds=(-1, 3))


@without_warnings
@over_estimators
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf], ids=str)
def test_a_record_that_is_not_finite_keeps_its_place(Estimator, bad):
    """n stays as it is, the fit works, and with nonfinite="zero" only that record is zero."""
    X, y = two_classes()
    X[3, 2] = bad
    model = fitted(Estimator, (X, y), nonfinite="zero")
    zeroed = X.copy()
    zeroed[3] = np.nan
    other = fitted(Estimator, (zeroed, y), nonfinite="zero")
    np.testing.assert_array_equal(model.coef_, other.coef_)
    assert any("number of rows, 400" in item for item in model.privacy_.public)
    with pytest.raises(NonFiniteRecords, match="nonfinite='fill'"):
        fitted(Estimator, (X, y), nonfinite="raise")


@without_warnings
def test_bounded_records_do_not_depend_on_each_other():
    """Preprocessing is record by record: replacing one leaves the margins of all others bitwise
    as they were.
    """
    X, _ = two_classes()
    other = X.copy()
    other[11] = [1e9, -1e9, np.inf, 0, 1]
    bounds = FeatureBounds.parse((-1, 1), 5)
    rest = np.arange(400) != 11
    np.testing.assert_array_equal(bounds.apply(X)[rest], bounds.apply(other)[rest])
    model = fitted(feature_bounds=(-1, 1))
    np.testing.assert_array_equal(
        model.decision_function(X)[rest], model.decision_function(other)[rest]
    )


# The account


@without_warnings
@over_estimators
def test_clones_share_the_ledger(Estimator):
    ledger = Ledger(10.0, 1e-5)
    model = Estimator(ledger=ledger, classes=SIGNS, random_state=0)
    copy = clone(model)
    assert copy.ledger is ledger
    for one in (model, copy):
        one.fit(*two_classes())
    assert [entry.label for entry in ledger.entries] == [Estimator.__name__] * 2
    assert ledger.spent().epsilon > 1


@without_warnings
def test_cross_validation_pays_for_every_fold():
    X, y = two_classes()
    ledger = Ledger(10.0, 1e-5)
    model = PrivateLogisticRegression(0.5, ledger=ledger, classes=SIGNS, random_state=0)
    scores = cross_val_score(model, X, y, cv=4, error_score="raise")
    assert len(scores) == len(ledger.entries) == 4


@without_warnings
def test_cross_validation_stops_when_the_account_is_empty():
    """Two fits at epsilon 0.5 fit into 0.9 because costs compose better than they add; the third
    is refused.
    """
    X, y = two_classes()
    ledger = Ledger(0.9, 1e-5)
    model = PrivateLogisticRegression(0.5, ledger=ledger, classes=SIGNS, random_state=0)
    with pytest.raises(BudgetExceeded, match="Nothing was released"):
        cross_val_score(model, X, y, cv=4, error_score="raise")
    assert 1 <= len(ledger.entries) < 4
    spent = len(ledger.entries)
    with pytest.raises(BudgetExceeded):
        model.fit(X, y)
    assert not hasattr(model, "coef_")
    assert len(ledger.entries) == spent


@without_warnings
def test_grid_search_pays_for_every_candidate():
    X, y = two_classes()
    ledger = Ledger(20.0, 1e-5)
    model = PrivateLogisticRegression(
        0.5, ledger=ledger, classes=SIGNS, random_state=0, penalty="l2"
    )
    search = GridSearchCV(model, {"alpha": [1e-4, 1e-2]}, cv=3, error_score="raise").fit(X, y)
    assert len(ledger.entries) == 2 * 3 + 1
    assert search.best_estimator_.ledger is ledger


@without_warnings
def test_a_refused_fit_releases_nothing():
    """The curator is made after the payment; without it no noise is drawn."""
    ledger = Ledger(0.5, 1e-6)
    model = PrivateLogisticRegression(1.0, ledger=ledger, classes=SIGNS, random_state=0)
    with pytest.raises(BudgetExceeded, match=r"epsilon=1.*ledger's 0\.5"):
        model.fit(*two_classes())
    assert ledger.entries == ()
    assert not [
        name for name in vars(model) if name in ("coef_", "intercept_", "privacy_", "n_iter_")
    ]


class _Stumbling:
    """A solver that records the state of the ledger when it runs, and raises."""

    takes_constraint = False

    def __init__(self, ledger):
        self.ledger, self.paid = ledger, None

    def plan(self, problem):
        return ProximalGradient().plan(problem)

    def iterates(self, problem, curator):
        self.paid = len(self.ledger.entries)
        raise RuntimeError("out of luck")


@without_warnings
def test_a_fit_pays_before_it_looks_and_is_not_refunded():
    ledger = Ledger(2.0, 1e-6)
    solver = _Stumbling(ledger)
    with pytest.raises(RuntimeError, match="out of luck"):
        fitted(solver=solver, ledger=ledger)
    assert solver.paid == len(ledger.entries) == 1


@without_warnings
def test_a_fit_without_privacy_does_not_fit_a_private_account():
    ledger = Ledger(5.0, 1e-6)
    with pytest.raises(BudgetExceeded):
        fitted(epsilon=math.inf, ledger=ledger)
    assert ledger.entries == ()


@without_warnings
def test_what_the_ledger_recorded_is_what_was_promised():
    ledger = Ledger(1.0, 1e-6)
    model = fitted(ledger=ledger)
    assert ledger.total_cost == compose([model.privacy_.cost])
    assert 0.999 <= epsilon_of(ledger.total_cost, 1e-6, "replace-one") <= 1.0


# With other tools


@without_warnings
@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_pipelines_and_set_output(output):
    X, y = two_classes()
    table = pd.DataFrame(X, columns=list("abcde"))
    scale = FunctionTransformer(lambda Z: Z / 2, feature_names_out="one-to-one")
    pipeline = make_pipeline(
        scale, PrivateLogisticRegression(classes=SIGNS, random_state=0)
    ).set_output(transform=output)
    pipeline.fit(table, y)
    assert pipeline.predict(table).shape == (400,)
    assert pipeline[-1].feature_names_in_.tolist() == list("abcde")


def test_sample_weight_is_refused_with_the_reason():
    X, y = two_classes()
    with pytest.raises(InvalidArgument, match="a weight multiplies the sensitivity to one row"):
        PrivateLogisticRegression(classes=SIGNS).fit(X, y, sample_weight=np.ones(400))


def test_class_weight_is_refused_with_the_reason_and_the_remedy():
    X, y = two_classes()
    with pytest.raises(InvalidArgument, match="threshold='balanced'"):
        PrivateLogisticRegression(classes=SIGNS).fit(X, y, class_weight="balanced")
    with pytest.raises(InvalidArgument, match=r"class_weight='balanced' is refused.*threshold="):
        PrivateLogisticRegression(class_weight="balanced")
    assert PrivateLogisticRegression(class_weight=None).epsilon == 1.0  # scikit-learn's default
    with pytest.raises(TypeError, match="class_weights"):
        PrivateLogisticRegression(class_weights="balanced")


@without_warnings
@pytest.mark.parametrize("penalty", [L1(0.01), ScaledL2(0.01), L2Ball(2.0)], ids=repr)
def test_penalties_may_be_objects(penalty):
    model = fitted(penalty=penalty)
    assert clone(model).penalty == penalty
    if isinstance(penalty, L2Ball):
        assert np.linalg.norm(model.coef_) <= 2.0 * (1 + 1e-9)


@without_warnings
def test_names_and_objects_of_penalties_agree():
    np.testing.assert_array_equal(
        fitted(penalty="l1", alpha=0.02).coef_, fitted(penalty=L1(0.02)).coef_
    )


def test_a_large_delta_is_pointed_out():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fitted(delta=0.01)
    messages = [
        str(warning.message) for warning in seen if warning.category is WeakGuaranteeWarning
    ]
    assert len(messages) == 1
    assert "delta=0.01 is above 1/n = 0.0025" in messages[0]


@pytest.mark.parametrize(
    "category", [WeakGuaranteeWarning, InsecureNoiseWarning, PrivacyLeakWarning]
)
def test_warnings_point_at_the_line_that_called_fit(category):
    X, y = two_classes()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        PrivateLogisticRegression(delta=0.01, random_state=0).fit(X, y)
    assert [warning.filename for warning in seen if warning.category is category] == [__file__]
