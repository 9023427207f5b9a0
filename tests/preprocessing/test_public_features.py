"""Public features: a step that learns nothing, and models whose rows go through a map."""

import json
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from _support import ERROR_FOR_A_CELL
from hushfit import (
    Ledger,
    PrivateLogisticRegression,
    PrivatePipeline,
    PublicFeatures,
    load_model,
    save_model,
)
from hushfit.errors import InvalidArgument
from hushfit.features import AdditiveFeatures, AdditiveMap, HashedText, ScatteringMap
from hushfit.models import Model, model_json, parse_model
from hushfit.preprocessing import BoundedScaler

pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")
SIDE = 8
STRIPES = ScatteringMap((SIDE, SIDE), scale=1, angles=4)


def images(n=300, seed=0):
    """Horizontal and vertical stripes at a random place, as pixels from 0 to 255."""
    draw = np.random.default_rng(seed)
    y = draw.integers(0, 2, n)
    X = draw.integers(0, 60, (n, SIDE, SIDE))
    for image, label, place in zip(X, y, draw.integers(0, SIDE, n), strict=True):
        (image if label else image.T)[place] = 255
    return X.reshape(n, -1), y


def notes(n=400, seed=0):
    """Notes of the ill and the well."""
    draw = np.random.default_rng(seed)
    y = draw.integers(0, 2, n)
    words = np.array([["well", "fine", "rested"], ["fever", "cough", "pain"]])
    return [" ".join([*draw.choice(words[k], 2), "today"]) for k in y], y


def model(**settings):
    return PrivateLogisticRegression(epsilon=8.0, random_state=0, **{"classes": [0, 1], **settings})


def pipeline(step, **settings):
    return PrivatePipeline(
        [("features", step), ("model", PrivateLogisticRegression(classes=[0, 1]))],
        epsilon=8.0,
        **settings,
    )


@parametrize_with_checks(
    [PublicFeatures(), PublicFeatures("centred", bounds=(-100, 100))],
    expected_failed_checks=lambda estimator: ERROR_FOR_A_CELL,
)
def test_the_checks_of_scikit_learn_pass(estimator, check):
    check(estimator)


def test_a_linear_model_of_scattering_coefficients_reads_images():
    X, y = images(2000)
    held_out = images(500, seed=1)
    step = PublicFeatures(STRIPES, bounds=(0, 255))
    fitted = pipeline(step, random_state=0).fit(X, y)
    assert fitted.score(*held_out) > 0.9
    assert fitted.row_norm_ == STRIPES.row_norm
    assert "features" not in fitted.parts_


def test_a_model_with_the_map_is_the_pipeline():
    X, y = images()
    made = STRIPES
    mapped = PublicFeatures(made, bounds=(0, 255)).fit_transform(X)
    assert mapped.dtype == np.float32
    inside = model(features=made, feature_bounds=(0, 255)).fit(X, y)
    assert np.array_equal(inside.coef_, model().fit(mapped, y).coef_)
    assert inside.n_features_in_ == SIDE * SIDE
    assert np.array_equal(
        inside.predict_proba(sparse.csr_array(X)),
        inside.predict_proba(X.astype(np.float64)),
    )


def test_texts_are_hashed_and_stay_sparse():
    texts, y = notes()
    step = PublicFeatures(HashedText(size=64))
    assert sparse.issparse(step.fit_transform(texts))
    held_out = notes(seed=1)
    assert pipeline(step, random_state=0).fit(texts, y).score(*held_out) > 0.9
    column = np.array(texts, dtype=object)[:, None]
    inside = model(features=HashedText(size=64)).fit(column, y)
    assert inside.score(np.array(held_out[0], dtype=object)[:, None], held_out[1]) > 0.9
    with pytest.raises(InvalidArgument, match="texts, which have no ranges"):
        model(features=HashedText(), feature_bounds=(0, 1)).fit(column, y)


def test_columns_of_a_frame_go_through_maps_of_their_own():
    texts, y = notes()
    frame = pd.DataFrame({"note": texts, "age": np.arange(400) % 90, "person": np.arange(400) // 2})
    parts = [
        ("note", PublicFeatures(HashedText(size=64)), ["note"]),
        ("age", PublicFeatures("additive", bounds=(0, 90)), ["age"]),
    ]
    loose = pipeline(ColumnTransformer(parts))
    with pytest.raises(InvalidArgument, match="sparse_threshold=0"):
        loose.fit(frame, y, groups="person")
    fitted = pipeline(ColumnTransformer(parts, sparse_threshold=0)).fit(frame, y, groups="person")
    assert fitted.privacy_.unit.is_person
    assert fitted.score(frame, y) > 0.9
    # Scattering leaves rows dense, and so do additive maps of dense rows: nothing to choose.
    dense = ColumnTransformer([("age", PublicFeatures(bounds=(0, 90)), ["age"])])
    pipeline(dense).fit(frame, y)


def test_an_additive_step_has_as_many_knots_as_it_may():
    X = np.random.default_rng(0).random((30, 2))
    step = PublicFeatures(AdditiveFeatures(binary=[1], most_intervals=4)).fit(X)
    assert step.feature_map_.intervals == (4, 0)
    given = PublicFeatures(AdditiveMap((4, 0))).fit(X)
    assert np.array_equal(step.transform(X), given.transform(X))
    assert list(step.get_feature_names_out()) == [f"publicfeatures{k}" for k in range(5)]
    for wrong in (AdditiveFeatures(monotone={0: 1}), AdditiveFeatures(smoothness=1e-3)):
        with pytest.raises(InvalidArgument, match="belong to a fitted model"):
            PublicFeatures(wrong).fit(X)


def test_rows_are_shortened_to_the_certified_norm():
    X = np.random.default_rng(0).random((50, 3))
    step = PublicFeatures(AdditiveMap((8, 8, 8)), max_row_norm=0.5).fit(X)
    assert step.row_norm_ == 0.5
    # Values outside of the range are clipped to it, so the norm is certified for all inputs.
    for rows in (X, 1e9 * X, sparse.csr_array(X)):
        mapped = step.transform(rows)
        mapped = mapped.toarray() if sparse.issparse(mapped) else mapped
        assert np.linalg.norm(mapped, axis=1).max() <= 0.5
    unbounded = PublicFeatures(AdditiveMap((8, 8, 8)), bounds=None).fit(X)
    assert np.linalg.norm(unbounded.transform(1e9 * X), axis=1).max() <= unbounded.row_norm_


class Centred(ScatteringMap):
    """A map that a careless user might write."""

    def transform(self, X):
        mapped = super().transform(X)
        return mapped - mapped.mean(axis=0)


def test_a_map_that_mixes_rows_is_refused_before_anything_is_charged():
    X, y = images(40)
    ledger = Ledger(10.0, 1e-4)
    wrong = Centred((SIDE, SIDE), scale=1, angles=4)
    for fit in (
        lambda: pipeline(PublicFeatures(wrong), ledger=ledger).fit(X, y),
        lambda: model(features=wrong, ledger=ledger).fit(X, y),
        lambda: model(features=wrong).quote(40, SIDE * SIDE),
    ):
        with pytest.raises(InvalidArgument, match="treats each row by itself"):
            fit()
    assert ledger.entries == ()


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (PublicFeatures("linear"), "changes nothing"),
        (PublicFeatures("cubic"), "not known"),
        (PublicFeatures(ScatteringMap((4, 4))), "takes 16 columns, and there are 64"),
        (PublicFeatures(max_row_norm=-1.0), "max_row_norm=-1"),
        (PublicFeatures(HashedText()), "takes 1 columns, and there are 64"),
        (PublicFeatures("additive", bounds=None), "needs the public range"),
    ],
)
def test_wrong_steps_are_refused(step, reason):
    X, _ = images(10)
    with pytest.raises(InvalidArgument, match=reason):
        clone(step).fit(X)


def test_a_missing_pixel_makes_the_zero_record():
    X, y = images()
    X = X.astype(np.float64)
    X[3, 5] = np.nan
    step = PublicFeatures(STRIPES, bounds=(0, 255)).fit(X)
    missing = np.isnan(step.transform(X)).any(axis=1)
    assert list(np.flatnonzero(missing)) == [3]
    fitted = model(features=STRIPES, feature_bounds=(0, 255)).fit(X, y)
    assert fitted.decision_function(X)[3] == 0.0


def stored_models():
    X, y = images(60)
    texts, labels = notes(60)
    yield model(features=STRIPES, feature_bounds=(0, 255)).fit(X, y), X
    column = np.array(texts, dtype=object)[:, None]
    yield model(features=HashedText(size=32)).fit(column, labels), column


def test_files_hold_the_map_and_predict_alike(tmp_path):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    published = json.loads(files("hushfit.models").joinpath("model.schema.json").read_text())
    for fitted, X in stored_models():
        save_model(fitted, tmp_path / "m.json")
        jsonschema.validate(json.loads((tmp_path / "m.json").read_text()), published)
        again = load_model(tmp_path / "m.json")
        assert again.estimator.features == fitted.features
        assert np.array_equal(again.predict_proba(X), fitted.predict_proba(X))
        assert len(again.weight_names) == again.estimator.coef_.shape[1]


def test_a_file_with_another_map_is_refused():
    fitted, _ = next(stored_models())
    contents = json.loads(model_json(Model(fitted))[0])
    contents["feature_map"]["angles"] = 5
    with pytest.raises(InvalidArgument, match="changed after it was written"):
        parse_model(json.dumps(contents).encode())


def test_files_of_pipelines_hold_the_step(tmp_path):
    X, y = images(60)
    texts, labels = notes(60)
    steps = [
        (PublicFeatures(STRIPES, bounds=(0, 255), max_row_norm=3.0), X, y),
        (PublicFeatures(HashedText(size=32)), texts, labels),
        (PublicFeatures("centred", bounds=(0, 255)), X, y),
    ]
    for step, rows, classes in steps:
        fitted = pipeline(step).fit(rows, classes)
        save_model(fitted, tmp_path / "m.json")
        again = load_model(tmp_path / "m.json").estimator
        assert again.row_norm_ == fitted.row_norm_
        assert np.array_equal(again.predict_proba(rows), fitted.predict_proba(rows))
        assert np.array_equal(again[0].get_feature_names_out(), fitted[0].get_feature_names_out())


def test_a_plain_pipeline_of_scikit_learn_takes_the_step():
    X, y = images(60)
    whole = make_pipeline(BoundedScaler((0, 255)), PublicFeatures(STRIPES), model())
    assert whole.fit(X, y).predict(X).shape == (60,)
