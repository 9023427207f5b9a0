"""Model files: a round trip is exact, and a changed file is refused."""

import copy
import hashlib
import json
import os
import warnings
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest
from scipy.special import expit

from hushfit import PrivateLinearSVC, PrivateLogisticRegression, load_model, save_model
from hushfit.data import as_source
from hushfit.data.schema._schema import CategoricalColumn, NumericColumn, Schema, encode
from hushfit.errors import InsecureNoiseWarning, InvalidArgument
from hushfit.estimators import Fit, private_fit
from hushfit.losses import Logistic
from hushfit.models import (
    Model,
    PaidReceipt,
    Provenance,
    model_json,
    parse_model,
    read_model,
)
from hushfit.models._standard_errors import noise_standard_errors
from hushfit.penalties import Zero
from hushfit.privacy import Budget, Guarantee, Relation, ReleaseRecord
from hushfit.problem import Problem
from hushfit.release import Randomness, Released, Terms
from hushfit.report import report_page
from hushfit.solvers import Result, solver_from
from hushfit.unit import ROW, PrivacyUnit

SCHEMA = Schema(
    (NumericColumn("age", 0, 100, fill=40), CategoricalColumn("sex", ("f", "m"))),
    CategoricalColumn("ill", ("no", "yes")),
    "person",
)


def fitted(kind=PrivateLogisticRegression, classes=("no", "yes"), **settings):
    generator = np.random.default_rng(0)
    table = {"age": generator.uniform(0, 100, 400), "sex": generator.choice(["f", "m", "x"], 400)}
    X, _ = encode(table, SCHEMA)
    y = np.array(classes)[(len(classes) * table["age"] / 100.001).astype(int)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        return (
            kind(epsilon=2.0, delta=1e-4, classes=list(classes), random_state=0, **settings).fit(
                X, y
            ),
            X,
            table,
        )


def papers(estimator):
    error = np.full((len(estimator.coef_), estimator.coef_.shape[1] + 1), 0.25)
    return Model(
        estimator,
        SCHEMA,
        error,
        PaidReceipt("patients", 3, "a" * 64),
        Provenance.now("hushfit fit", "b" * 64),
    )


ESTIMATORS = [
    fitted(),
    fitted(PrivateLinearSVC),
    fitted(classes=("a", "b", "c")),
    fitted(classes=(0, 1), feature_bounds=(0.0, 1.0), fit_intercept=False),
    fitted(penalty="l1"),
]


@pytest.mark.parametrize("case", ESTIMATORS, ids=lambda case: repr(case[0])[:60])
def test_a_model_comes_back_as_it_was(case, tmp_path):
    estimator, X, _ = case
    digest = save_model(estimator, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert np.array_equal(again.estimator.coef_, estimator.coef_)
    assert np.array_equal(again.estimator.decision_function(X), estimator.decision_function(X))
    assert np.array_equal(again.estimator.predict(X), estimator.predict(X))
    assert again.guarantee == estimator.privacy_
    assert again.estimator.get_params()["solver"] == estimator.get_params()["solver"]
    assert model_json(again)[1] == digest


def rewritten(model, change):
    """The file of a model after a change of its contents, with the hash that belongs to them."""
    contents = json.loads(model_json(model)[0])
    contents.pop("hash")
    change(contents)
    canonical = json.dumps(contents, sort_keys=True, separators=(",", ":"))
    return json.dumps({**contents, "hash": hashlib.sha256(canonical.encode()).hexdigest()})


def as_older_versions_wrote_it(contents):
    """The unit was a label of the schema, and nothing was known of persons."""
    contents["guarantee"]["unit"] = "one patient"
    del contents["settings"]["person_weight"], contents["settings"]["rows_per_person"]


def test_an_older_file_opens_and_promises_one_row(tmp_path):
    path = tmp_path / "model.json"
    path.write_text(rewritten(papers(ESTIMATORS[0][0]), as_older_versions_wrote_it))
    again = load_model(path)
    assert again.guarantee.unit == ROW
    assert again.estimator.person_weight == "mean"
    assert "unit of privacy is one row" in " ".join(str(again.guarantee).split())
    assert "<dd>one row<small>" in report_page(again)
    assert read_model(path)[1] == json.loads(path.read_text())["hash"]


PERSONS = [
    PrivacyUnit.person(column="patient_nbr"),
    PrivacyUnit.person("cap", 3),
    PrivacyUnit.person("mean", 7, "id"),
]


@pytest.mark.parametrize("unit", PERSONS, ids=str)
def test_the_unit_comes_back_and_the_published_schema_knows_it(unit, tmp_path):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    estimator = copy.deepcopy(ESTIMATORS[0][0])
    estimator.set_params(person_weight=unit.weighting, rows_per_person=7)
    estimator.privacy_ = replace(estimator.privacy_, unit=unit)
    schema = replace(SCHEMA, person="patient_nbr", person_weight="cap", rows_per_person=3)
    model = replace(papers(estimator), schema=schema)
    digest = save_model(model, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert again.guarantee.unit == unit
    assert again.schema == schema
    assert again.estimator.get_params()["person_weight"] == unit.weighting
    assert again.estimator.get_params()["rows_per_person"] == 7
    assert model_json(again)[1] == digest
    published = json.loads(files("hushfit.models").joinpath("model.schema.json").read_text())
    jsonschema.validate(json.loads((tmp_path / "model.json").read_text()), published)


WRONG_UNITS = {
    "kind": {"kind": "hospital"},
    "rows": {"rows_per_person": 0},
    "weights": {"full_weight": 2000},
    "column": {"column": 3},
}


@pytest.mark.parametrize("wrong", WRONG_UNITS.values(), ids=WRONG_UNITS)
def test_a_file_with_a_unit_that_does_not_exist_is_refused(wrong):
    estimator = copy.deepcopy(ESTIMATORS[0][0])
    estimator.privacy_ = replace(estimator.privacy_, unit=PERSONS[0])
    text = rewritten(papers(estimator), lambda c: c["guarantee"]["unit"].update(wrong))
    with pytest.raises(InvalidArgument):
        parse_model(text.encode())


def test_a_file_with_unknown_weights_of_persons_is_refused():
    for wrong in ({"person_weight": "max"}, {"rows_per_person": "many"}):
        text = rewritten(papers(ESTIMATORS[0][0]), lambda c, w=wrong: c["settings"].update(w))
        with pytest.raises(InvalidArgument, match="person"):
            parse_model(text.encode())


def test_the_papers_come_back(tmp_path):
    estimator, X, table = ESTIMATORS[0]
    model = papers(estimator)
    save_model(model, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert (again.schema, again.receipt, again.provenance) == (
        model.schema,
        model.receipt,
        model.provenance,
    )
    assert np.array_equal(again.standard_error, model.standard_error)
    assert np.array_equal(again.predict(table), estimator.predict(X))
    assert np.array_equal(again.predict_proba(table), estimator.predict_proba(X))


def test_the_published_json_schema_describes_the_file():
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    published = json.loads(files("hushfit.models").joinpath("model.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(published)
    for estimator, _, _ in ESTIMATORS:
        for model in (
            Model(estimator),
            papers(estimator) if estimator.coef_.shape[1] == 4 else Model(estimator),
        ):
            jsonschema.validate(json.loads(model_json(model)[0]), published)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(
            {**json.loads(model_json(Model(estimator))[0]), "kind": "forest"}, published
        )


def stored(tmp_path, **changes):
    """A model file with fields replaced, its hash made to match."""
    contents = json.loads(model_json(papers(ESTIMATORS[0][0]))[0])
    del contents["hash"]
    contents.update(changes)
    canonical = json.dumps(contents, sort_keys=True, separators=(",", ":"))
    contents["hash"] = hashlib.sha256(canonical.encode()).hexdigest()
    place = tmp_path / "model.json"
    place.write_text(json.dumps(contents))
    return place


def test_a_changed_number_is_noticed(tmp_path):
    text, _ = model_json(papers(ESTIMATORS[0][0]))
    contents = json.loads(text)
    contents["coef"][0][0] += 1e-9
    (tmp_path / "model.json").write_text(json.dumps(contents))
    with pytest.raises(InvalidArgument, match="changed after it was written"):
        load_model(tmp_path / "model.json")


REFUSED = {
    "newer version": ({"version": 2}, "version 2, this hushfit reads version 1"),
    "other format": ({"format": "pickle"}, "not a model file"),
    "unknown kind": ({"kind": "os.system"}, "Known kinds"),
    "unknown field": ({"code": "import os"}, "missing or unknown fields"),
    "text for a number": ({"coef": [["1", 2, 3, 4]]}, "table of numbers"),
    "ragged": ({"coef": [[1.0], [1.0, 2.0]]}, "table of numbers"),
    "wrong shape": ({"coef": [[1.0, 2.0]]}, "do not belong together"),
    "wrong rows": ({"coef": [[1.0, 2.0, 3.0, 4.0]] * 2}, "does not fit its classes"),
    "infinite": ({"intercept": [1e999]}, "not finite|strict JSON"),
    "unsorted classes": ({"classes": ["yes", "no"]}, "labels of one type"),
    "mixed classes": ({"classes": ["no", 1]}, "labels of one type"),
    "no guarantee": ({"guarantee": {}}, "a guarantee has missing"),
    "bad schema": ({"schema": {"columns": 3}}, "should be a table"),
    "bad settings": ({"settings": {}}, "settings of the model file"),
    "bad receipt": ({"receipt": {"dataset": 1}}, "wrong type"),
    "bad provenance": (
        {"provenance": {"command": 1, "created": "", "versions": {}, "schema_hash": ""}},
        "not text",
    ),
    "bad steps": ({"steps": -1}, "should be a count"),
    "features": ({"features": ["a", 3]}, "list of names"),
}


@pytest.mark.parametrize(("changes", "told"), REFUSED.values(), ids=REFUSED)
def test_a_file_with_a_matching_hash_is_still_read_with_suspicion(tmp_path, changes, told):
    place = stored(tmp_path, **changes)
    with pytest.raises(InvalidArgument, match=told) as refusal:
        load_model(place)
    assert "model.json" in str(refusal.value)


@pytest.mark.parametrize("key", ["epsilon", "coef", r"\u0065psilon"])
def test_a_key_that_comes_twice_is_refused(tmp_path, key):
    """The hash is over what was read, and other readers would take the first of the two."""
    name = json.loads(f'"{key}"')
    text, _ = model_json(papers(ESTIMATORS[0][0]))
    place = text.index(f'"{name}"')
    (tmp_path / "model.json").write_text(f'{text[:place]}"{key}": 0.01, {text[place:]}')
    with pytest.raises(InvalidArgument, match="a key twice"):
        load_model(tmp_path / "model.json")


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[1]", b"NaN", b"\xff\xfe", b"[" * 100_000, b'"' + b"9" * 10_000], ids=repr
)
def test_what_is_not_json_is_refused(tmp_path, raw):
    (tmp_path / "model.json").write_bytes(raw)
    with pytest.raises(InvalidArgument):
        load_model(tmp_path / "model.json")


def test_missing_and_unwritable_places_are_named(tmp_path):
    with pytest.raises(InvalidArgument, match="cannot be read"):
        load_model(tmp_path / "none.json")
    with pytest.raises(InvalidArgument, match="cannot be written"):
        save_model(ESTIMATORS[0][0], tmp_path / "nowhere" / "model.json")
    with pytest.raises(InvalidArgument, match="not a fitted"):
        save_model(PrivateLogisticRegression(), tmp_path / "model.json")
    assert os.listdir(tmp_path) == []


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    place = tmp_path / "model.json"
    place.write_text("old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidArgument, match="No space left"):
        save_model(ESTIMATORS[0][0], place)
    assert place.read_text() == "old"
    assert os.listdir(tmp_path) == ["model.json"]


def test_settings_that_are_objects_are_described_not_rebuilt(tmp_path):
    from hushfit.penalties import L1

    save_model(fitted(penalty=L1(0.01))[0], tmp_path / "model.json")
    again = load_model(tmp_path / "model.json").estimator
    assert again.penalty == "L1(alpha=0.01)"
    with pytest.raises(InvalidArgument):
        again.fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize("case", ESTIMATORS, ids=lambda case: repr(case[0])[:60])
def test_onnx_gives_the_same_margins_and_probabilities(case, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed (hushfit[onnx])")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    from hushfit.models.onnx import export_onnx

    estimator, X, _ = case
    export_onnx(Model(estimator), tmp_path / "model.onnx")
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"))
    outputs = dict(
        zip(
            [o.name for o in session.get_outputs()],
            session.run(None, {"X": X.astype(np.float32)}),
            strict=True,
        )
    )
    margins = estimator.decision_function(X)
    assert np.allclose(outputs["margins"].squeeze(), margins, atol=1e-4, rtol=1e-4)
    if hasattr(estimator, "predict_proba"):
        assert np.allclose(outputs["probabilities"], estimator.predict_proba(X), atol=1e-4)
    assert session.get_modelmeta().custom_metadata_map["guarantee"] == estimator.privacy_.to_json()


@pytest.mark.parametrize("solver", ["whitened-gd", "proximal-gd"])
def test_standard_errors_are_the_spread_of_real_fits(solver):
    """Against 16 fits of the same rows with other noise, whose standard deviation is known to about
    18 %.
    """
    generator = np.random.default_rng(5)
    X = generator.uniform(0, 1, (12_000, 6))
    y = np.where(generator.random(12_000) < expit(6 * (X[:, 0] - X[:, 1])), 1.0, -1.0)
    source, budget = as_source(X, y), Budget(1.0, 1e-5)
    problem = Problem(Logistic(), Zero(), 12_000, 6, Relation.REPLACE_ONE)
    weights, claimed = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        for seed in range(16):
            fit = private_fit(source, problem, solver, Terms(budget, "test", Randomness.of(seed)))
            weights.append(fit.result.w)
            if seed < 4:
                claimed.append(noise_standard_errors(fit, problem)[0])
    ratio = np.mean(claimed, axis=0) / np.std(weights, axis=0, ddof=1)
    assert 0.5 < np.median(ratio) < 2.0
    assert (ratio > 0.25).all()


def test_standard_errors_exist_where_noise_hides_the_second_moment():
    """The released moment of so few rows has no eigenvalue above the noise."""
    X = np.random.default_rng(5).uniform(-1, 1, (40, 1))
    problem = Problem(Logistic(), Zero(), 40, 1, Relation.REPLACE_ONE)
    terms = Terms(Budget(0.05, 1e-5), "test", Randomness.of(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        fit = private_fit(as_source(X, np.sign(X[:, 0])), problem, "whitened-gd", terms)
    assert np.isfinite(noise_standard_errors(fit, problem)).all()


def test_no_standard_errors_are_claimed_where_noise_is_not_added():
    problem = Problem(Logistic(), Zero(), 400, 4, Relation.REPLACE_ONE)
    solver, result = solver_from("proximal-gd", problem, Budget(1.0, 1e-5)), Result(np.zeros(5), 1)

    def fit(multiplier, transcript):
        record = ReleaseRecord("gradient", "ClippedGradient", 1, multiplier, "all rows")
        guarantee = Guarantee(1.0, 1e-5, Relation.REPLACE_ONE, releases=(record,))
        return Fit(solver, result, guarantee, None, transcript)

    assert noise_standard_errors(fit(0.0, ()), problem) is None
    assert (
        noise_standard_errors(fit(3.0, [Released("gradient", np.zeros(5), object())]), problem)
        is None
    )
