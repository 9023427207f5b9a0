"""``hushfit fit --inference``: coefficients with intervals, from a file to a report."""

import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import statsmodels.api as sm
from conftest_cli import write_csv
from scipy.special import expit

from hushfit import PrivateLogisticRegression, load_model
from hushfit.data.design import MainEffects
from hushfit.data.schema import (
    CategoricalColumn,
    DateColumn,
    HashedColumn,
    NumericColumn,
    Schema,
)
from hushfit.errors import InvalidArgument

COLUMNS = """
[columns.age]
kind = "numeric"
low = 20
high = 90

[columns.ward]
kind = "categorical"
categories = ["a", "b", "c"]
"""
TARGETS = {
    "ill": 'kind = "categorical"\ncategories = ["no", "yes"]',
    "days": 'kind = "numeric"\nlow = -5\nhigh = 15',
    "visits": 'kind = "count"\nhigh = 15',
}


def make_table(count=6000, seed=0):
    """Rows of three models with the coefficients .02, .5 and -.5; some have an unlisted ward."""
    rng = np.random.default_rng(seed)
    age, ward = (
        rng.uniform(20, 90, count),
        rng.choice(list("abcz"), count, p=[0.4, 0.3, 0.28, 0.02]),
    )
    eta = 0.02 * (age - 55) + 0.5 * (ward == "b") - 0.5 * (ward == "c")
    return {
        "age": [f"{a:.3f}" for a in age],
        "ward": ward.tolist(),
        "ill": np.where(rng.random(count) < expit(eta), "yes", "no").tolist(),
        "days": [f"{v:.3f}" for v in 4 + eta + rng.normal(size=count)],
        "visits": [str(v) for v in rng.poisson(np.exp(eta))],
        "id": [str(k) for k in rng.integers(0, 5000, count)],
    }


@pytest.fixture
def targets(hushfit):
    write_csv("rows.csv", make_table())
    for name, text in TARGETS.items():
        Path(f"{name}.toml").write_text(f'[target]\nname = "{name}"\n{text}\n{COLUMNS}')
    return hushfit


def fitted(hushfit, name, *options, epsilon=3):
    budget = ("--epsilon", epsilon, "--delta", 1e-6, "--seed", 1)
    output = ("-o", f"{name}.json", "--overwrite")
    return hushfit("fit", "rows.csv", "--schema", f"{name}.toml", *budget, *output, *options)


@pytest.mark.parametrize("name", TARGETS)
def test_a_table_of_coefficients_goes_through_every_verb(targets, name):
    """Three coefficients within five standard errors of the truth: false alarms below 1e-5."""
    result = fitted(targets, name, "--inference", "--cov-type", "robust")
    assert result.code == 0, result.err
    assert "P>|z|" in result.out
    assert "Covariance: robust" in result.out
    model = load_model(f"{name}.json")
    found = model.estimator.inference_
    assert list(found.names) == ["(intercept)", "age", "ward=b", "ward=c"]
    assert np.all(np.abs(found.params[1:] - [0.02, 0.5, -0.5]) < 5 * found.bse[1:])
    assert found.summary() in result.out
    contents = json.loads(Path(f"{name}.json").read_text())
    schema = json.loads(files("hushfit.models").joinpath("model.schema.json").read_text())
    jsonschema.validate(contents, schema)

    assert targets("predict", f"{name}.json", "rows.csv", "-o", "out.csv", "--overwrite").code == 0
    table = make_table()
    shown = [line.split(",")[0] for line in Path("out.csv").read_text().splitlines()[1:]]
    own = model.predict(table)
    if name == "ill":
        assert shown == own.tolist()
    else:
        np.testing.assert_allclose(np.array(shown, dtype=float), own, rtol=1e-4)
    assert targets("evaluate", f"{name}.json", "rows.csv").code == 0
    assert targets("report", f"{name}.json", "-o", "r.html", "--overwrite").code == 0
    page = Path("r.html").read_text()
    assert "confidence intervals of 95%" in page
    assert "age, per 20" in page
    assert targets("card", f"{name}.json", "-o", "card.md", "--overwrite").code == 0


def test_without_noise_the_streamed_fit_is_that_of_statsmodels(targets):
    """Rows with an unlisted label are left out."""
    assert fitted(targets, "ill", "--inference", epsilon="inf").code == 0
    found = load_model("ill.json").estimator.inference_
    table = make_table()
    ward, ages = np.array(table["ward"]), np.array(table["age"], dtype=float)
    X = np.column_stack([np.ones(len(ages)), ages, ward == "b", ward == "c"])
    y, kept = np.array(table["ill"]) == "yes", ward != "z"
    plain = sm.Logit(y[kept].astype(float), X[kept].astype(float)).fit(disp=0, tol=1e-12)
    np.testing.assert_allclose(found.params, plain.params, rtol=1e-6)
    np.testing.assert_allclose(found.bse, plain.bse, rtol=1e-6)


def test_a_row_without_a_number_is_left_out_unless_the_schema_says_what_it_becomes(targets):
    table = make_table()
    full = fitted(targets, "ill", "--inference", epsilon="inf")
    assert "or without a number that the schema does not fill" in full.out.replace("\n", " ")
    filled = Path("ill.toml").read_text().replace("high = 90", "high = 90\nfill = 50")
    Path("filled.toml").write_text(filled)
    told = filled.replace("fill = 50", 'fill = 50\nmissing = "indicator"')
    Path("told.toml").write_text(told)
    gap = np.arange(len(table["age"])) % 7 == 3
    write_csv("rows.csv", {name: np.array(cells)[~gap].tolist() for name, cells in table.items()})
    fitted(targets, "ill", "--inference", epsilon="inf")
    whole = load_model("ill.json").estimator.inference_
    ages = np.where(gap, "", table["age"])
    write_csv("rows.csv", {**table, "age": ages.tolist()})
    fitted(targets, "ill", "--inference", epsilon="inf")
    found = load_model("ill.json")
    np.testing.assert_allclose(found.estimator.inference_.params, whole.params, rtol=1e-9)
    assert np.isfinite(found.predict_proba({**table, "age": ages.tolist()})).all()
    fitted(targets, "filled", "--inference", epsilon="inf")
    assert (
        abs(load_model("filled.json").estimator.inference_.params[1] / whole.params[1] - 1) > 1e-3
    )
    fitted(targets, "told", "--inference", epsilon="inf")
    assert "age=<missing>" in load_model("told.json").estimator.inference_.names


def test_a_coefficient_without_an_interval_is_not_drawn_as_a_clear_one(targets):
    """No row is in ward d. Its dot is hollow, and no odds ratio stands beside it."""
    schema = Path("ill.toml").read_text().replace('"c"]', '"c", "d"]')
    Path("wide.toml").write_text(schema)
    assert fitted(targets, "wide", "--inference").code == 0
    assert targets("report", "wide.json", "-o", "r.html", "--overwrite").code == 0
    rows = Path("r.html").read_text().split("<tr data-name=")[1:]
    shown = {row.split('"')[1]: row for row in rows}
    assert 'class="point faint"' in shown["ward=d"]
    assert shown["ward=d"].count("&ndash;") == 1
    assert 'class="point"' in shown["age, per 20"]
    assert "&ndash;" not in shown["age, per 20"]


def test_persons_are_clusters_on_the_command_line(targets):
    result = fitted(
        targets, "ill", "--inference", "--cov-type", "robust", "--even-weights", "--person", "id"
    )
    assert result.code == 0, result.err
    assert "one person" in result.out
    assert "All rows weigh the same." in result.out
    assert load_model("ill.json").guarantee.unit.kind == "person"


def test_too_few_rows_are_refused_before_anything_is_spent(targets):
    targets("ledger", "init", "l.db", "--dataset", "d", "--epsilon", 9, "--delta", 1e-4)
    account = ("--ledger", "l.db", "--dataset", "d")
    result = fitted(targets, "visits", "--inference", *account, epsilon=0.1)
    assert result.code != 0
    assert "are needed. Nothing was charged" in result.err
    assert not Path("visits.json").exists()
    assert targets("ledger", "show", "l.db", "--json").json["datasets"][0]["payments"] == 0


def test_a_stated_mean_refuses_a_fit_that_its_plan_refuses(targets):
    plan = ("plan", "--rows", 6000, "--columns", 3, "--inference", "--delta", 1e-6, "--json")
    for mean in (0.3, 0.005):
        stated = ("--expected-mean", mean)
        needed = targets(*plan, "--epsilon-range", "1:1", *stated).json["plans"][0]["units_needed"]
        result = fitted(targets, "ill", "--inference", *stated, epsilon=1)
        assert (result.code == 0) == (needed <= 6000)
    assert f"about {needed} are needed. Nothing was charged" in result.err
    refused = fitted(targets, "days", "--inference", "--expected-mean", 0.3)
    assert "does not depend on the mean. Nothing was spent" in refused.err


def test_json_has_the_coefficients_and_the_verdict(targets):
    shown = fitted(targets, "days", "--inference", "--json").json
    assert shown["verdict"] == "good"
    assert [line["name"] for line in shown["coefficients"]][1:] == ["age", "ward=b", "ward=c"]
    assert all(line["low"] < line["coef"] < line["high"] for line in shown["coefficients"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--inference", "--model", "svm"), "--inference is for --model"),
        (("--inference", "--penalty", "l1"), "penalty"),
        (("--inference", "--features", "additive"), "features"),
        (("--inference", "--adjacency", "label"), "adjacency"),
        (("--cov-type", "robust"), "--expected-mean are for --inference"),
        (("--even-weights",), "--expected-mean are for --inference"),
        (("--expected-mean", 0.1), "--expected-mean are for --inference"),
    ],
)
def test_options_that_do_not_go_with_intervals_are_refused(targets, options, said):
    result = fitted(targets, "ill", *options)
    assert result.code != 0
    assert said in result.err
    assert not Path("ill.json").exists()


def test_columns_of_every_kind_have_a_place_in_the_design():
    schema = Schema(
        (
            NumericColumn("pay", 0, 99, transform="log1p", missing="indicator"),
            CategoricalColumn("ward", ("a", "b"), missing="indicator"),
            DateColumn("seen", "2020-01-01", "2020-12-31", ("since", "weekday")),
        )
    )
    design = MainEffects(schema)
    days = ["Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    assert design.names[:5] == [
        "log1p(pay)",
        "pay=<missing>",
        "ward=b",
        "ward=<missing>",
        "seen (days since 2020-01-01)",
    ]
    assert len(design.names) == 5 + len(days)
    rows = design.rows(
        {
            "pay": [99.0, None, 0.0],
            "ward": ["b", "", "q"],
            "seen": ["2020-01-11", "2020-01-01", ""],
        }
    )
    np.testing.assert_allclose(rows[0, :5], [np.log(100), 0, 1, 0, 10])
    np.testing.assert_allclose(rows[1, :4], [0, 1, 0, 1])
    assert np.isnan(rows[2, 2:]).all()
    low, high = np.array(design.bounds).T
    assert np.nanmin(rows - low) >= 0
    assert np.nanmin(high - rows) >= 0


def test_hashed_columns_have_no_coefficients():
    with pytest.raises(InvalidArgument, match="List its categories"):
        MainEffects(Schema((HashedColumn("icd", 4),)))


@pytest.mark.parametrize("change", ["noise_ratio", "covariances", "cov_type", "weakest"])
def test_a_file_with_other_intervals_is_refused(targets, change):
    from hushfit.models._file import model_from, model_json

    assert fitted(targets, "ill", "--inference").code == 0
    contents = json.loads(model_json(load_model("ill.json"))[0])
    odd = {"noise_ratio": "x", "covariances": {}, "cov_type": 3, "weakest": [1]}
    contents["inference"][change] = odd[change]
    with pytest.raises((InvalidArgument, TypeError, ValueError)):
        model_from({k: v for k, v in contents.items() if k != "hash"})


def test_a_graph_of_a_model_with_intervals_gives_its_probabilities(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    from hushfit.models import Model
    from hushfit.models.onnx import export_onnx

    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 7, (3000, 2))
    y = (rng.random(3000) < expit(0.3 * X[:, 0])).astype(int)
    settings = {"classes": [0, 1], "feature_bounds": (-2, 6), "inference": True}
    model = PrivateLogisticRegression(epsilon=float("inf"), **settings).fit(X, y)
    export_onnx(Model(model), tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    found = session.run(["probabilities"], {"X": X[:50].astype(np.float32)})[0]
    np.testing.assert_allclose(found, model.predict_proba(X[:50]), atol=1e-5)


def test_plan_says_how_many_rows_a_width_takes(hushfit):
    given = ("plan", "--rows", 20000, "--columns", 10, "--inference", "--epsilon-range", "0.1:1")
    shown = hushfit(*given, "--width", 0.3, "--json").json
    first, last = shown["plans"][0], shown["plans"][-1]
    assert first["width"] is None
    assert first["units_needed"] > 20000
    assert last["width"] < 0.3
    assert last["units_for_width"] < 20000
    text = hushfit(*given, "--width", 0.3)
    assert "rows for width 0.3" in text.out
    assert "refused" in text.out
    assert hushfit("plan", "--rows", 100, "--columns", 3, "--width", 0.3).code != 0
