"""Missing values in arrays: filled by a public rule, each row by itself, and nothing that anyone
sees depends on whether there are any.
"""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from hushfit import PrivateLinearRegression, PrivateLogisticRegression
from hushfit.estimators._missing import without_gaps
from hushfit.features import AdditiveFeatures
from hushfit.preprocessing import BoundedScaler, PrivatePipeline

pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")

LOW, HIGH = np.array([0.0, -4.0, 10.0]), np.array([2.0, 4.0, 30.0])
BOUNDS = (LOW.tolist(), HIGH.tolist())


def visits(n=4_000, seed=0, missing=0.97):
    """Rows of three columns, the last one of which is missing in nearly all of them."""
    generator = np.random.default_rng(seed)
    X = generator.uniform(LOW, HIGH, size=(n, 3))
    y = (X[:, 0] + 0.1 * generator.normal(size=n) > 1.0).astype(int)
    X[generator.random(n) < missing, 2] = np.nan
    return X, y


def logistic(**settings):
    chosen = {"classes": [0, 1], "random_state": 0, "feature_bounds": BOUNDS, **settings}
    return PrivateLogisticRegression(**chosen)


def test_a_column_that_is_mostly_missing_does_not_silence_the_others():
    X, y = visits()
    model = logistic().fit(X, y)
    assert model.score(X, y) > 0.9
    assert np.unique(model.predict_proba(X)[:, 1]).size > 1_000
    silent = logistic(nonfinite="zero").fit(X, y)
    assert np.mean(silent.predict_proba(X)[:, 1] == 0.5) > 0.9


@pytest.mark.parametrize("bounds", [BOUNDS, None], ids=["ranges", "no ranges"])
def test_a_missing_value_is_the_middle_of_its_range_or_zero(bounds):
    X, y = visits()
    whole = np.where(np.isnan(X), 0.0 if bounds is None else (LOW + HIGH) / 2, X)
    found, expected = (logistic(feature_bounds=bounds).fit(rows, y) for rows in (X, whole))
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.predict_proba(X), found.predict_proba(whole))
    assert found.privacy_ == expected.privacy_


def test_an_infinite_value_is_clipped_by_a_range_and_missing_without_one():
    rows = np.array([[np.inf, 0.0, 20.0], [1.0, -np.inf, 20.0]])
    X, y = visits(missing=0.0)
    bounded, plain = logistic().fit(X, y), logistic(feature_bounds=None).fit(X, y)
    ends, zeros = [[2.0, 0.0, 20.0], [1.0, -4.0, 20.0]], [[0.0, 0.0, 20.0], [1.0, 0.0, 20.0]]
    np.testing.assert_array_equal(bounded.decision_function(rows), bounded.decision_function(ends))
    np.testing.assert_array_equal(plain.decision_function(rows), plain.decision_function(zeros))


def test_nothing_that_is_seen_depends_on_whether_values_are_missing():
    """Shape of the coefficients, guarantee and price: with one missing value, and with none."""
    X, y = visits(missing=0.0)
    holed = X.copy()
    holed[7, 1] = np.nan
    with_gap, without = logistic().fit(holed, y), logistic().fit(X, y)
    assert with_gap.coef_.shape == without.coef_.shape == (1, 3)
    assert with_gap.privacy_ == without.privacy_
    assert with_gap.privacy_.to_json() == without.privacy_.to_json()


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, csr_matrix])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rows_are_filled_one_by_one_in_every_layout(layout, kind):
    from hushfit.data import FeatureBounds

    generator = np.random.default_rng(3)
    X = generator.uniform(size=(5_000, 4)).astype(kind)
    X[generator.random(X.shape) < 0.2] = np.nan
    bounds = FeatureBounds(np.zeros(4), np.full(4, 2.0))
    before = X.copy()
    found = without_gaps(layout(X), "fill", bounds)
    dense = found.toarray() if isinstance(found, csr_matrix) else found
    np.testing.assert_array_equal(dense, np.where(np.isnan(X), 1.0, X).astype(kind))
    assert dense.dtype == kind
    np.testing.assert_array_equal(X, before)  # the caller's array is not changed
    alone = without_gaps(layout(X[11:12]), "fill", bounds)
    dense_alone = alone.toarray() if isinstance(alone, csr_matrix) else alone
    np.testing.assert_array_equal(dense_alone, dense[11:12])


def test_complete_rows_are_not_copied():
    X = np.ones((100, 3))
    assert without_gaps(X, "fill", None) is X
    large = np.full((100, 3), 1e308)  # whose sum overflows
    assert without_gaps(large, "fill", None) is large


def test_columns_that_the_additive_map_fills_keep_their_indicator():
    X, y = visits()
    model = logistic(features=AdditiveFeatures(missing=[2])).fit(X, y)
    assert model.feature_map_.fills == (None, None, 0.5)
    holed = X[:5].copy()
    holed[:, 0] = np.nan  # filled with the middle of the range, not the zero record
    assert np.all(model.decision_function(holed) != 0.0)


def test_regressors_fill_too():
    X, y = visits()
    settings = {"target_bounds": (0, 1), "feature_bounds": BOUNDS, "random_state": 0}
    whole = np.where(np.isnan(X), (LOW + HIGH) / 2, X)
    found, expected = (PrivateLinearRegression(**settings).fit(rows, y) for rows in (X, whole))
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.predict(X), found.predict(whole))
    assert found.score(X, y) > 0.4


def test_declared_columns_get_an_indicator_in_a_pipeline():
    """Where the absence of a value says something, a declared indicator finds it."""
    X, _ = visits(missing=0.5)
    y = np.isnan(X[:, 2]).astype(int)
    scaler = BoundedScaler(BOUNDS, missing=[2])
    model = PrivateLogisticRegression(classes=[0, 1], random_state=0)
    pipeline = PrivatePipeline([("scale", scaler), ("model", model)]).fit(X, y)
    assert pipeline.score(X, y) > 0.99
    assert logistic().fit(X, y).score(X, y) < 0.8
