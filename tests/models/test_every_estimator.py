"""Every estimator, selector, ranker and pipeline comes back from a file, a pickle and skops."""

import hashlib
import json
import pickle
import warnings
from importlib.resources import files

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from hushfit import (
    Ledger,
    PrivateElasticNet,
    PrivateFeatureSelector,
    PrivateHuberRegressor,
    PrivateLasso,
    PrivateLinearRegression,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivatePoissonRegressor,
    PrivateRanker,
    PrivateRidge,
    load_model,
    save_model,
)
from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema
from hushfit.errors import InsecureNoiseWarning, InvalidArgument, LedgerError
from hushfit.preprocessing import (
    BoundedScaler,
    PrivatePipeline,
    PrivateQuantileScaler,
    SchemaEncoder,
)

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(0, 10, (600, 3))
BIG = X @ [1.0, 0.5, 0.0] + GENERATOR.normal(0, 1, 600)
LABELS = (BIG > 8).astype(int)
COUNTS = GENERATOR.poisson(np.exp(0.15 * X[:, 0]))
RUN = {"epsilon": 5.0, "delta": 1e-5, "random_state": 0}
BOUNDS = {"feature_bounds": (0.0, 10.0)}
TARGET = {"target_bounds": (0.0, 15.0), **BOUNDS}
SCHEMA = Schema((NumericColumn("age", 0, 10), CategoricalColumn("sex", ("f", "m"))))
TABLE = {"age": X[:, 0], "sex": np.where(X[:, 1] > 5, "f", "m")}


def fit(estimator, rows=X, y=BIG, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        return estimator.fit(rows, y, **more)


def pipeline(*steps):
    return PrivatePipeline([(f"s{k}", step) for k, step in enumerate(steps)], **RUN)


CLASSES = {"classes": [0, 1]}
FITTED = {
    "linear": fit(PrivateLinearRegression(**RUN, **TARGET)),
    "ridge": fit(PrivateRidge(**RUN, **TARGET)),
    "lasso": fit(PrivateLasso(alpha="select", **RUN, **TARGET)),
    "elastic net": fit(PrivateElasticNet(alpha=0.01, l1_ratio=0.9, **RUN, **TARGET)),
    "huber": fit(PrivateHuberRegressor(threshold=1.5, **RUN, **TARGET)),
    "poisson": fit(PrivatePoissonRegressor(12, **RUN, **BOUNDS), y=COUNTS),
    "a named solver": fit(PrivateRidge(solver="dp-sgd", **RUN, **TARGET)),
    "logistic": fit(PrivateLogisticRegression(**RUN, **CLASSES), y=LABELS),
    "vectors": fit(PrivateLinearSVC(**RUN, **CLASSES), y=LABELS),
    "ranker": fit(
        PrivateRanker(epsilon=5.0, delta=1e-4, random_state=0),
        X,
        LABELS,
        qid=np.repeat(np.arange(60), 10),
    ),
    "selector": fit(PrivateFeatureSelector(2, **RUN, **CLASSES), y=LABELS),
    "quantiles, then classes": fit(
        pipeline(PrivateQuantileScaler(), PrivateLogisticRegression(**CLASSES)), y=LABELS
    ),
    "ranks, selected": fit(
        pipeline(
            PrivateQuantileScaler(output="rank"),
            PrivateFeatureSelector(2, **CLASSES),
            PrivateLogisticRegression(**CLASSES),
        ),
        y=LABELS,
    ),
    "bounds, then numbers": fit(
        pipeline(
            BoundedScaler((0.0, 10.0)),
            PrivateRidge(target_bounds=(0.0, 15.0), feature_bounds=(0.0, 1.0)),
        )
    ),
    "a schema": fit(
        pipeline(SchemaEncoder(SCHEMA), PrivateLogisticRegression(**CLASSES)), TABLE, LABELS
    ),
}


def rows_of(name):
    return TABLE if name == "a schema" else X


def answers(estimator, rows):
    how = (
        estimator.transform if isinstance(estimator, PrivateFeatureSelector) else estimator.predict
    )
    return how(rows)


@pytest.mark.parametrize("name", sorted(set(FITTED) - {"selector"}))
def test_a_loaded_model_predicts_by_itself(name, tmp_path):
    save_model(FITTED[name], tmp_path / "model.json")
    model, rows = load_model(tmp_path / "model.json"), rows_of(name)
    np.testing.assert_array_equal(model.predict(rows), FITTED[name].predict(rows))


def test_a_loaded_selector_says_that_it_transforms(tmp_path):
    save_model(FITTED["selector"], tmp_path / "model.json")
    with pytest.raises(InvalidArgument, match=r"estimator\.transform"):
        load_model(tmp_path / "model.json").predict(X)


@pytest.mark.parametrize("name", FITTED)
def test_a_file_gives_back_what_was_fitted(name, tmp_path):
    estimator, rows = FITTED[name], rows_of(name)
    digest = save_model(estimator, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert again.guarantee == estimator.privacy_
    assert np.array_equal(answers(again.estimator, rows), answers(estimator, rows))
    kept = save_model(again, tmp_path / "again.json")
    assert kept == digest
    if isinstance(rows, np.ndarray):  # outside the public ranges too
        far = 3 * rows - 10
        assert np.array_equal(answers(again.estimator, far), answers(estimator, far))


@pytest.mark.parametrize("name", FITTED)
def test_a_pickle_gives_back_what_was_fitted(name):
    again = pickle.loads(pickle.dumps(FITTED[name]))
    rows = rows_of(name)
    assert np.array_equal(answers(again, rows), answers(FITTED[name], rows))
    assert again.privacy_ == FITTED[name].privacy_


@pytest.mark.parametrize("name", FITTED)
def test_skops_gives_back_what_was_fitted(name):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    stored = skops.dumps(FITTED[name])
    trusted = skops.get_untrusted_types(data=stored)
    assert all(kind.startswith("hushfit.") for kind in trusted)
    again, rows = skops.loads(stored, trusted=trusted), rows_of(name)
    assert np.array_equal(answers(again, rows), answers(FITTED[name], rows))
    assert again.privacy_ == FITTED[name].privacy_


def test_a_ledger_in_a_skops_file_shows_its_history_and_cannot_pay():
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    ledger = Ledger(20.0, 1e-4)
    fitted = fit(PrivateRidge(**RUN, **TARGET, ledger=ledger))
    stored = skops.dumps(fitted)
    again = skops.loads(stored, trusted=skops.get_untrusted_types(data=stored))
    assert again.ledger.spent() == ledger.spent()
    with pytest.raises(LedgerError, match="another process"):
        fit(again)


def published(name):
    """A validator for files of a format, whose schema may refer to that of models."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    referencing = pytest.importorskip("referencing", reason="referencing is not installed")
    folder = files("hushfit.models")
    found = {
        kind: json.loads(folder.joinpath(f"{kind}.schema.json").read_text())
        for kind in ("model", "pipeline", "ranker")
    }
    registry = referencing.Registry().with_resources(
        (f"{kind}.schema.json", referencing.Resource.from_contents(one))
        for kind, one in found.items()
    )
    jsonschema.Draft202012Validator.check_schema(found[name])
    return jsonschema.Draft202012Validator(found[name], registry=registry)


@pytest.mark.parametrize("name", FITTED)
def test_a_file_is_as_its_published_json_schema_says(name, tmp_path):
    save_model(FITTED[name], tmp_path / "model.json")
    written = json.loads((tmp_path / "model.json").read_text())
    validator = published(written["format"].removeprefix("hushfit-"))
    assert [error.message for error in validator.iter_errors(written)] == []
    odd = {
        "another format": {"format": "pickle"},
        "a further field": {"code": "import os"},
        "a guarantee of nothing": {"guarantee": {}},
        "a hash that is none": {"hash": "abc"},
    }
    for change in odd.values():
        assert not validator.is_valid({**written, **change})
    for field in written:
        assert not validator.is_valid({k: v for k, v in written.items() if k != field})


def test_steps_of_a_pipeline_are_described_too(tmp_path):
    save_model(FITTED["ranks, selected"], tmp_path / "model.json")
    written, validator = json.loads((tmp_path / "model.json").read_text()), published("pipeline")
    for place, change in (
        (0, {"kind": "os.system"}),
        (0, {"state": None}),
        (2, {"model": {}}),
        (2, {"state": {}}),
    ):
        steps = [dict(step) for step in written["steps"]]
        steps[place] |= change
        assert not validator.is_valid({**written, "steps": steps})


@pytest.mark.parametrize("kind", [PrivateRidge, PrivateLogisticRegression])
def test_names_of_columns_come_back(kind, tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(X, columns=["age", "weight", "height"])
    own = TARGET if kind is PrivateRidge else CLASSES
    fitted = fit(kind(**RUN, **own), frame, BIG if kind is PrivateRidge else LABELS)
    save_model(fitted, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert again.feature_names == ["age", "weight", "height"]
    assert np.array_equal(again.estimator.predict(frame), fitted.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        again.estimator.predict(frame[["weight", "age", "height"]])


def rewritten(path, change):
    """Change the contents of a file, with the hash that belongs to them."""
    contents = json.loads(path.read_text())
    contents.pop("hash")
    change(contents)
    canonical = json.dumps(contents, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    path.write_text(json.dumps({**contents, "hash": digest}))


CHANGES = {
    "an unknown step": lambda c: c["steps"][0].update(kind="os.system"),
    "a lost field": lambda c: c.pop("guarantee"),
    "a bound that is text": lambda c: c["steps"][0]["state"].update(low_=["a", "b", "c"]),
    "an unknown setting": lambda c: c["steps"][0]["settings"].update(command="ls"),
    "another version": lambda c: c.update(version=2),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_pipeline_file_is_refused(change, tmp_path):
    path = tmp_path / "model.json"
    save_model(FITTED["quantiles, then classes"], path)
    rewritten(path, change)
    with pytest.raises(InvalidArgument):
        load_model(path)


RANGES = {
    "no range": lambda c: c.pop("ranges"),
    "a reversed range": lambda c: c["ranges"].update(target=[3, 1]),
    "classes of numbers": lambda c: c.update(classes=["a", "b"]),
    "too few columns": lambda c: c["ranges"].update(columns=[[0], [1], [0]]),
    "a lost setting": lambda c: c["settings"].pop("target_bounds"),
}


@pytest.mark.parametrize("change", RANGES.values(), ids=RANGES)
def test_a_changed_file_of_a_regressor_is_refused(change, tmp_path):
    path = tmp_path / "model.json"
    save_model(FITTED["linear"], path)
    rewritten(path, change)
    with pytest.raises(InvalidArgument):
        load_model(path)


def test_a_byte_that_changed_is_noticed(tmp_path):
    path = tmp_path / "model.json"
    save_model(FITTED["quantiles, then classes"], path)
    path.write_text(path.read_text().replace("0.", "1.", 1))
    with pytest.raises(InvalidArgument, match="changed after it was written"):
        load_model(path)


def test_foreign_steps_are_refused_with_the_way_out(tmp_path):
    foreign = pipeline(PolynomialFeatures(1), PrivateLogisticRegression(**CLASSES))
    with pytest.raises(InvalidArgument, match="PolynomialFeatures"):
        save_model(fit(foreign, y=LABELS), tmp_path / "model.json")
    with pytest.raises(InvalidArgument, match="not a fitted"):
        save_model(make_pipeline(PolynomialFeatures(1)), tmp_path / "model.json")
    with pytest.raises(InvalidArgument, match="not fitted"):
        save_model(PrivateFeatureSelector(), tmp_path / "model.json")


def test_shares_of_a_pipeline_add_up_to_one():
    for name in ("quantiles, then classes", "ranks, selected", "bounds, then numbers"):
        assert sum(made.share for made in FITTED[name].privacy_.releases) == pytest.approx(1.0)
