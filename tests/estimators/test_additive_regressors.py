"""Additive models of numbers and counts."""

import math
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from hushfit import (
    Ledger,
    PrivateHuberRegressor,
    PrivateLasso,
    PrivateLinearRegression,
    PrivatePoissonRegressor,
    PrivateRidge,
    load_model,
    save_model,
)
from hushfit.errors import InsecureNoiseWarning, InvalidArgument
from hushfit.features import AdditiveFeatures, AdditiveMap
from hushfit.report import report_page

BOUNDS = ([20.0, 0.0, 0.0], [70.0, 1000.0, 1.0])
SETTINGS = AdditiveFeatures(binary=[2])
NUMBERS = [PrivateLinearRegression, PrivateRidge, PrivateHuberRegressor]


@pytest.fixture(autouse=True)
def _seeded():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        yield


def people(n=4000, seed=0):
    """A wave over age, a falling effect of income, and one of sex."""
    rng = np.random.default_rng(seed)
    age, income = rng.uniform(20, 70, n), 1000 * rng.random(n) ** 2
    sex = (rng.random(n) < 0.5).astype(float)
    X = np.column_stack([age, income, sex])
    return X, 3 * np.sin((age - 20) / 8) - 0.002 * income + sex + 0.3 * rng.normal(size=n)


def model(features=SETTINGS, kind=PrivateLinearRegression, **settings):
    given = {"epsilon": 4.0, "feature_bounds": BOUNDS, "random_state": 0}
    targets = {"max_count": 40} if kind is PrivatePoissonRegressor else {"target_bounds": (-6, 6)}
    return kind(**(given | targets | settings), features=features)


@pytest.mark.parametrize("kind", NUMBERS)
def test_an_additive_model_finds_what_a_linear_one_cannot(kind):
    X, y = people(seed=1)
    linear, additive = (model(f, kind).fit(*people()) for f in ("linear", SETTINGS))
    assert additive.score(X, y) > 0.9 > 0.7 > linear.score(X, y)
    assert additive.coef_.shape == (additive.feature_map_.n_outputs,)
    assert additive.n_features_in_ == 3
    assert linear.feature_map_ is None
    knots, values = additive.shape_values(0)
    truth = 3 * np.sin(50 * knots / 8)
    assert np.abs(values - values.mean() - truth + truth.mean()).max() < 0.5
    assert abs(additive.row_profile_.masses[0].weights @ values) < 1e-9


def test_counts_have_curves_in_their_logarithm():
    X, score = people()
    y = np.random.default_rng(1).poisson(np.exp(score / 2))
    linear, additive = (model(f, PrivatePoissonRegressor).fit(X, y) for f in ("linear", SETTINGS))
    assert additive.score(X, y) > linear.score(X, y) + 0.2
    assert additive.predict(X).max() <= 40


def test_masses_of_knots_are_those_of_the_rows():
    fitted = model(epsilon=math.inf).fit(*people())
    ages, incomes = (fitted.row_profile_.masses[j].masses for j in (0, 1))
    np.testing.assert_allclose(ages[1:-1], 1 / 8, atol=0.02)
    v = people()[0][:, 1] / 1000
    hats = np.maximum(0.0, 1 - np.abs(v[:, None] * 8 - np.arange(9)))
    # Records that were shortened count less.
    np.testing.assert_allclose(incomes, hats.mean(axis=0), atol=0.03)
    assert fitted.row_profile_.length is None


@pytest.mark.usefixtures("quiet_fits")
def test_few_rows_give_the_linear_model():
    """With one interval the map is that of the ranges, and answers are the same."""
    X, y = people(600)
    bounds = ([20.0, 0.0, -1.0], [70.0, 1000.0, 1.0])
    given = {"epsilon": 0.5, "feature_bounds": bounds}
    linear, additive = (model(f, **given).fit(X, y) for f in ("linear", "additive"))
    assert additive.feature_map_.intervals == (1, 1, 1)
    np.testing.assert_allclose(additive.predict(X), linear.predict(X), atol=1e-6)


@pytest.mark.parametrize("kind", [*NUMBERS, PrivatePoissonRegressor])
def test_dense_and_sparse_rows_and_frames_give_the_same_model(kind):
    pd = pytest.importorskip("pandas")
    X, y = people(600)
    X[:, 0] -= 20  # sparse ranges start at zero
    y = np.abs(y)
    given = {"feature_bounds": ([0.0] * 3, [50.0, 1000.0, 1.0]), "kind": kind}
    named = AdditiveFeatures(binary=["sex"])
    frame = pd.DataFrame(X, columns=["age", "income", "sex"])
    dense = model(**given).fit(X, y)
    others = (sparse.csr_array(X), model(**given)), (frame, model(named, **given))
    for table, other in others:
        found = clone(other).fit(table, y)
        np.testing.assert_allclose(found.coef_, dense.coef_, atol=1e-9)
        np.testing.assert_allclose(found.predict(table), dense.predict(X), atol=1e-9)


def test_predictions_stay_in_the_range_and_missing_values_are_treated_as_stated():
    X, y = people(1000)
    fitted, zero = model().fit(X, y), model(nonfinite="zero").fit(X, y)
    far = X + np.array([1000.0, -1e6, 0.0])
    assert np.abs(fitted.predict(far)).max() <= 6
    X[0, 0] = 45.0  # the middle of its range
    filled = fitted.predict(X)[0]
    X[0, 0] = np.nan
    np.testing.assert_allclose(fitted.predict(X)[0], filled)
    np.testing.assert_allclose(zero.predict(X)[0], zero.intercept_)


def test_missing_values_get_an_indicator_where_settings_say_so():
    X, y = people(2000)
    X[::4, 1], y = np.nan, y + 2.0 * (np.arange(2000) % 4 == 0)
    fitted = model(AdditiveFeatures(binary=[2], missing=[1])).fit(X, y)
    span = fitted.feature_map_.spans[1]
    assert span.has_indicator
    assert fitted.coef_[span.start + span.width - 1] > 0.5


@pytest.mark.parametrize("way", [1, -1])
def test_monotone_and_smooth_shapes_are_post_processing(way):
    X, y = people()
    plain = model().fit(X, y)
    shaped = model(AdditiveFeatures(binary=[2], monotone={0: way}, smoothness=1e-3)).fit(X, y)
    assert (way * np.diff(shaped.shape_values(0)[1]) >= -1e-9).all()
    assert shaped.privacy_.releases == plain.privacy_.releases
    bends = [np.sum(np.diff(m.shape_values(1)[1], 2) ** 2) for m in (shaped, plain)]
    assert bends[0] < bends[1]


@pytest.mark.parametrize("adjacency", ["label", "add-remove"])
def test_other_relations_and_persons(adjacency):
    X, y = people(2000)
    assert model(adjacency=adjacency).fit(X, y).score(X, y) > 0.6
    if adjacency != "label":
        grouped = model(adjacency=adjacency).fit(X, y, groups=np.arange(2000) // 2)
        assert grouped.privacy_.unit.is_person
        assert grouped.feature_map_.intervals <= model().fit(X, y).feature_map_.intervals


def test_a_quote_needs_no_rows_and_agrees_with_the_fit():
    fitted, quote = model().fit(*people(1000)), model().quote(1000, 3)
    made = {release.name: release.noise_multiplier for release in fitted.privacy_.releases}
    assert {part.name for part in quote.plan.parts} == set(made)
    assert "the feature map, which no row enters" in " ".join(str(fitted.privacy_).split())


class Scaled:
    """A public map of another kind: the columns themselves, times a number."""

    n_inputs, n_outputs, rotated, kept, reads_text = 3, 3, False, False, False

    def __init__(self, row_norm):
        self.row_norm = row_norm

    def leaves_sparse(self, sparse):
        return sparse

    def transform(self, X):
        return X * (self.row_norm / math.sqrt(3))

    transform_sparse = transform

    def output_names(self, names):
        return list(names)

    def to_dict(self):
        raise InvalidArgument("not in files")


def test_maps_of_the_caller_are_bounded_or_refused():
    X, y = people(500)
    own = model(AdditiveMap((4, 2, 0))).fit(X, y)
    assert np.abs(own.feature_map_.transform(np.random.default_rng(0).random((50, 3)))).max() <= 1
    assert model(Scaled(1.0)).fit(X, y).coef_.shape == (3,)
    with pytest.raises(InvalidArgument, match="row norm of 2"):
        model(Scaled(2.0)).fit(X, y)


def test_wrong_settings_are_refused_and_nothing_is_charged():
    X, y = people(100)
    ledger = Ledger(8.0, 1e-4)
    for wrong, text in (
        (model("additive", feature_bounds=None, ledger=ledger), "feature_bounds"),
        (model("cubic", ledger=ledger), "'cubic' is not known"),
        (model(AdditiveMap((1, 1)), ledger=ledger), "takes 2 columns"),
        (model(AdditiveFeatures(monotone={"height": 1}), ledger=ledger), "height"),
        (model(positive=True, ledger=ledger), "monotone"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            wrong.fit(X, y)
    assert not ledger.entries
    with pytest.raises(InvalidArgument, match="no shape function"):
        model("linear").fit(X, y).shape_values(0)
    # L1 chooses single columns, and those of an additive model mean nothing by themselves.
    with pytest.raises(TypeError, match="features"):
        PrivateLasso(features="additive")


@pytest.mark.parametrize("kind", [PrivateRidge, PrivatePoissonRegressor])
def test_files_graphs_and_reports_have_the_map(kind, tmp_path):
    X, y = people(800)
    settings = AdditiveFeatures(binary=[2], missing=[1])
    fitted = model(settings, kind).fit(X, np.abs(y))
    X[::3, 1] = np.nan
    save_model(fitted, tmp_path / "m.json")
    again = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(again.estimator.shape_values(0), fitted.shape_values(0))
    page = report_page(again)
    assert page.count('<div class="shapes">') == 1
    assert "Effect of x0" in page
    assert "x0[1]" not in page
    onnx = pytest.importorskip("hushfit.models.onnx")
    reference = pytest.importorskip("onnx.reference")
    onnx.export_onnx(again, tmp_path / "m.onnx")
    graph = reference.ReferenceEvaluator(str(tmp_path / "m.onnx"))
    (predictions,) = graph.run(None, {"X": X.astype(np.float32)})
    np.testing.assert_allclose(predictions.ravel(), fitted.predict(X), rtol=1e-4, atol=1e-4)
