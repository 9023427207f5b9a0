"""Rows that are divided by one public length: coefficients are log-odds, also in files."""

import pickle

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from hushfit import PrivateLinearSVC, PrivateLogisticRegression, load_model, save_model
from hushfit.errors import InvalidArgument

BOUNDS = [(0, 100), (-1, 1), (0, 1)]
pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")


def make_rows(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(0, 100, n), rng.uniform(-1, 1, n), rng.integers(0, 2, n)])
    odds = X @ [0.03, 1.2, -0.8] - 1.5
    return X, (rng.uniform(size=n) < expit(odds)).astype(int)


def fitted(kind=PrivateLogisticRegression, rows=None, **settings):
    X, y = make_rows() if rows is None else rows
    given = {"feature_bounds": BOUNDS, "classes": [0, 1], "random_state": 0, "scaling": "public"}
    return kind(**{"epsilon": 300.0, "delta": 1e-5, **given, **settings}).fit(X, y)


@pytest.mark.parametrize("scaling", ["public", 2.5])
def test_coefficients_approach_those_of_an_unpenalised_fit(scaling):
    """In the units of the columns; with rows of length one they are a third larger."""
    X, y = make_rows()
    ordinary = LogisticRegression(C=np.inf).fit(X, y)
    widths = np.array([100.0, 2.0, 1.0])
    expected = np.append(ordinary.coef_[0] * widths, ordinary.intercept_)

    def found(**settings):
        model = fitted(**settings)
        return np.append(model.coef_[0] * widths, model.intercept_)

    assert np.abs(found(scaling=scaling) - expected).max() < 0.1
    assert np.abs(found(scaling=scaling, epsilon=np.inf) - expected).max() < 0.005
    assert np.abs(found(scaling="unit", epsilon=np.inf) - expected).max() > 0.5


def test_a_margin_is_linear_in_the_row_and_longer_rows_are_shortened():
    X, _ = make_rows(50)
    model = fitted()
    margins = X @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), margins, rtol=1e-9)
    outside = model.decision_function([[1e6, 0.0, 0.0]])
    np.testing.assert_allclose(outside, model.decision_function([[100.0, 0.0, 0.0]]))
    short = fitted(scaling=1.2)
    scaled = (X - [0, -1, 0]) / [100, 2, 1]
    lengths = np.sqrt(1 + (scaled**2).sum(axis=1))
    margins = (X @ short.coef_[0] + short.intercept_[0]) * np.minimum(1, 1.2 / lengths)
    np.testing.assert_allclose(short.decision_function(X), margins, rtol=1e-9)


def test_several_classes_have_log_odds_too():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (6000, 2))
    margins = np.column_stack([np.zeros(6000), 2 * X[:, 0] + 1, X[:, 1] - X[:, 0]])
    y = (margins + rng.gumbel(size=margins.shape)).argmax(axis=1)
    settings = {"feature_bounds": (-1, 1), "classes": [0, 1, 2]}
    model = fitted(rows=(X, y), **settings)
    ordinary = LogisticRegression(C=np.inf).fit(X, y)
    contrasts = [own[1:] - own[:1] for own in (model.coef_, ordinary.coef_)]
    assert np.abs(contrasts[0] - contrasts[1]).max() < 0.35


@pytest.mark.parametrize(
    "settings",
    [
        {"adjacency": "add-remove"},
        {"adjacency": "label"},
        {"penalty": "l1"},
        {"penalty": "l2"},
        {"solver": "objective", "penalty": "l2", "alpha": 1e-3},
        {"solver": "dp-sgd", "epsilon": 4.0},
        {"kind": PrivateLinearSVC},
    ],
    ids=str,
)
def test_every_way_to_fit_takes_a_public_length(settings):
    X, y = make_rows()
    assert fitted(**settings).score(X, y) > 0.66


@pytest.mark.parametrize("scaling", ["public", 1.2])
def test_files_and_graphs_predict_what_the_model_does(tmp_path, scaling):
    runtime = pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("hushfit.models.onnx")
    X, _ = make_rows(40)
    model = fitted(scaling=scaling)
    expected = model.predict_proba(X)
    save_model(model, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    for other in (loaded.estimator, pickle.loads(pickle.dumps(model))):
        assert other.scaling == scaling
        np.testing.assert_allclose(other.predict_proba(X), expected)
    onnx.export_onnx(loaded, tmp_path / "model.onnx")
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"))
    _, probabilities = session.run(None, {"X": X.astype(np.float32)})
    np.testing.assert_allclose(probabilities, expected, atol=1e-5)


def test_the_guarantee_says_how_rows_were_scaled():
    said = str(fitted(scaling=2.5).privacy_).replace("\n", " ")
    assert "divided by the public length 2.5, longer ones by their own" in said
    assert "the length that rows are divided by, given by the caller" in said
    assert "public length 2, longer" in str(fitted().privacy_).replace("\n", " ")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"scaling": "length"}, "Use 'unit', 'public', or a public length"),
        ({"scaling": 0.5}, "from 1 to 1,000,000"),
        ({"scaling": True}, "is not known"),
        ({"scaling": np.nan}, "is not known"),
        ({"feature_bounds": None}, "it needs feature_bounds and features='linear'"),
        ({"features": "additive"}, "it needs feature_bounds and features='linear'"),
        ({"inference": True}, "for models without intervals"),
    ],
    ids=str,
)
def test_what_cannot_be_scaled_is_refused_with_the_remedy(settings, words):
    with pytest.raises(InvalidArgument, match=words):
        fitted(**settings)
