"""Numbers, counts, grades and classes as targets, from a file to a report."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from conftest_cli import write_csv

from hushfit import load_model
from hushfit.data.schema import encode
from hushfit.errors import InsecureNoiseWarning

COLUMNS = """
[columns.age]
kind = "numeric"
low = 18
high = 100

[columns.sex]
kind = "categorical"
categories = ["f", "m"]
"""
TARGETS = {
    "days": 'kind = "numeric"\nlow = 0\nhigh = 20',
    "visits": 'kind = "count"\nhigh = 20',
    "pain": 'kind = "ordinal"\ncategories = ["mild", "some", "much", "severe"]',
    "place": 'kind = "categorical"\ncategories = ["home", "clinic", "ward"]',
    "ill": 'kind = "categorical"\ncategories = ["no", "yes"]',
}
KINDS = {
    "days": "numeric",
    "visits": "count",
    "pain": "categorical",
    "place": "categorical",
    "ill": "categorical",
}


def make_table(count, seed=0):
    """Rows whose every target grows with age and is larger for men; some cells are odd."""
    generator = np.random.default_rng(seed)
    age, sex = generator.uniform(20, 90, count), generator.choice(["f", "m"], count)
    signal = (age - 55) / 35 + 0.5 * (sex == "m")
    noisy = signal + generator.normal(0, 0.3, count)
    table = {
        "age": [f"{a:.2f}" for a in age],
        "sex": sex.tolist(),
        "days": [f"{d:.3f}" for d in np.clip(6 + 3 * noisy, 0, 20)],
        "visits": [str(v) for v in generator.poisson(np.exp(0.4 + 0.6 * signal)).clip(0, 30)],
        "pain": np.array(["mild", "some", "much", "severe"])[np.digitize(noisy, [-0.5, 0.3, 0.9])],
        "place": np.array(["home", "clinic", "ward"])[np.digitize(noisy, [-0.3, 0.6])],
        "ill": np.where(noisy > 0.3, "yes", "no"),
    }
    table = {name: [str(cell) for cell in cells] for name, cells in table.items()}
    table["days"][3] = "unknown"
    table["visits"][3], table["visits"][4] = "", "1e9"
    table["pain"][3] = table["place"][3] = table["ill"][3] = "?"
    return table


@pytest.fixture
def targets(hushfit):
    """A folder with rows, held-out rows, a ledger, and a schema for each target."""
    write_csv("train.csv", make_table(1500))
    write_csv("test.csv", make_table(400, seed=1))
    for name, text in TARGETS.items():
        Path(f"{name}.toml").write_text(f'[target]\nname = "{name}"\n{text}\n{COLUMNS}')
    return hushfit


def fitted(hushfit, name, *options):
    result = hushfit(
        *("fit", "train.csv", "--schema", f"{name}.toml", "--epsilon", 4, "--delta", 1e-5),
        *("--seed", 1, "-o", f"{name}.json", "--overwrite", *options),
    )
    assert result.code == 0, result.err
    return load_model(f"{name}.json")


def features(model, path="test.csv"):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return encode({name: [row[name] for row in rows] for name in rows[0]}, model.schema)[0]


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_goes_through_every_verb(targets, name):
    hushfit = targets
    assert hushfit("schema", "train.csv", "--target", name, "-o", "draft.toml").code == 0
    assert f'kind = "{KINDS[name]}"' in Path("draft.toml").read_text().split("[columns")[0]
    assert hushfit("schema", "--check", "train.csv", f"{name}.toml").code == 0
    hushfit("ledger", "init", "ledger.db", "--dataset", "d", "--epsilon", 9, "--delta", 1e-4)
    model = fitted(hushfit, name, "--ledger", "ledger.db", "--dataset", "d")
    assert hushfit("ledger", "verify", "ledger.db", "--model", f"{name}.json").code == 0

    assert hushfit("predict", f"{name}.json", "test.csv", "-o", "out.csv").code == 0
    with open("out.csv", newline="") as file:
        predicted = [row["prediction"] for row in csv.DictReader(file)]
    own = model.labelled(model.estimator.predict(features(model)))
    relation = pytest.importorskip("duckdb").sql("FROM read_csv('test.csv', all_varchar = true)")
    assert np.array_equal(model.predict(relation), own)
    if name in ("days", "visits"):
        assert np.allclose(np.array(predicted, dtype=float), own, rtol=1e-5)
        assert own.min() >= 0
        assert own.max() <= 20
    else:
        assert predicted == own.tolist()

    scores = hushfit("evaluate", f"{name}.json", "test.csv", "--by", "sex", "--json").json
    assert scores["skipped"] == 1
    assert set(scores["by"]) == {"f", "m"}
    if "r2" in scores:
        assert scores["r2"] > (0.15 if name == "visits" else 0.6)
        assert scores["rmse"] < scores["rmse_baseline"]
    else:
        assert scores["accuracy"] > scores["majority"] + 0.2
        assert scores["log_loss"] < scores["log_loss_baseline"]
    shown = hushfit("evaluate", f"{name}.json", "test.csv")
    assert ("RMSE" if "r2" in scores else "balanced accuracy") in shown.out

    given = ("--held-out", "test.csv", "--ledger", "ledger.db")
    report = hushfit("report", f"{name}.json", *given, "-o", "r.html", "--json")
    assert report.code == 0
    points = report.json["nist_sp_800_226"]
    assert "1 payment on 'd' composes to" in points["total_budget"]["answer"]
    assert points["retention"]["open"]
    assert f"of {name}</h1>" in Path("r.html").read_text()
    assert hushfit("card", f"{name}.json", *given, "-o", "card.md").code == 0
    card = Path("card.md").read_text()
    assert card.startswith("---\nlibrary_name: hushfit\npipeline_tag: tabular-")
    assert hushfit("audit", f"{name}.json").code == 0
    planned = "logistic" if model.predicts_classes else "poisson" if name == "visits" else "linear"
    given = ("--rows", 1500, "--columns", model.estimator.n_features_in_, "--model", planned)
    assert hushfit("plan", *given, "--json").code == 0
    pytest.importorskip("onnx")
    assert hushfit("export", f"{name}.json", "-o", "model.onnx").code == 0


@pytest.mark.parametrize("name", ["days", "visits", "pain"])
def test_a_graph_predicts_what_the_model_does(targets, name):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    model = fitted(targets, name)
    assert targets("export", f"{name}.json", "-o", "model.onnx").code == 0
    X = features(model)
    session = runtime.InferenceSession("model.onnx")
    for rows in (X, 3 * X - 1):  # also outside the public ranges
        (found,) = session.run(None, {"X": rows.astype(np.float32)})
        assert np.allclose(found[:, 0], model.estimator.predict(rows), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", ["ridge", "lasso", "elasticnet", "huber"])
def test_every_model_of_numbers_by_name(targets, model):
    fitted(targets, "days", "--model", model)
    scores = targets("evaluate", "days.json", "test.csv", "--json").json
    assert scores["r2"] > 0.5


def test_labels_of_numbers_may_be_private_alone(targets):
    model = fitted(targets, "days", "--adjacency", "label")
    assert str(model.guarantee.relation) == "label"
    assert targets("evaluate", "days.json", "test.csv", "--json").json["r2"] > 0.5


def test_a_fit_from_a_file_is_that_of_the_library(targets):
    """The same noise on the same records: the schema's map is that of public ranges."""
    from hushfit import PrivateLinearRegression

    model = fitted(targets, "days")
    X = features(model, "train.csv")
    y = np.array([float(cell) if cell != "unknown" else 10 for cell in make_table(1500)["days"]])
    kept = np.arange(1500) != 3
    # In Python the number is mapped from its range to [-1, 1] if the range is not [0, 1] already.
    X[:, 0] = 18 + 82 * X[:, 0]
    bounds = np.array([(18.0, 100.0), (0.0, 1.0), (0.0, 1.0), (0.0, 1.0)])
    with pytest.warns(InsecureNoiseWarning):
        other = PrivateLinearRegression(
            4,
            1e-5,
            target_bounds=(0, 20),
            feature_bounds=bounds,
            random_state=1,
            nonfinite="zero",
        ).fit(np.where(kept[:, None], X, np.nan), y)
    assert np.allclose(other.coef_ * [82, 1, 1, 1], model.estimator.coef_, atol=1e-2)


def curved(count, seed=0):
    """A table whose targets rise up to the age of 55 and fall again: no straight line fits."""
    table = make_table(count, seed)
    age = np.array(table["age"], dtype=float)
    hump = np.cos((age - 55) / 35 * np.pi)
    generator = np.random.default_rng(seed + 10)
    table["days"] = [f"{d:.3f}" for d in 10 + 6 * hump + generator.normal(0, 1, count)]
    table["visits"] = [str(v) for v in generator.poisson(np.exp(1 + hump)).clip(0, 20)]
    return table


@pytest.mark.parametrize(
    ("name", "stated"), [("days", "in the schema"), ("visits", "as an option")]
)
def test_numbers_and_counts_have_curved_effects(targets, name, stated):
    hushfit = targets
    write_csv("train.csv", curved(1500))
    write_csv("test.csv", curved(400, seed=1))
    options = ("--features", "additive") if stated == "as an option" else ()
    if not options:
        schema = Path(f"{name}.toml")
        schema.write_text('features = "additive"\n' + schema.read_text())
    model = fitted(hushfit, name, *options)
    fit = model.estimator
    assert fit.features == "additive"
    assert fit.feature_map_.intervals[0] >= 4
    assert "the feature map" in str(model.guarantee)
    scores = hushfit("evaluate", f"{name}.json", "test.csv", "--json").json
    fitted(hushfit, name, "--features", "linear")
    straight = hushfit("evaluate", f"{name}.json", "test.csv", "--json").json
    assert scores["r2"] > 0.4
    assert straight["r2"] < 0.2
    model = fitted(hushfit, name, *options)

    assert hushfit("predict", f"{name}.json", "test.csv", "-o", "out.csv").code == 0
    with open("out.csv", newline="") as file:
        predicted = [float(row["prediction"]) for row in csv.DictReader(file)]
    assert np.allclose(predicted, model.estimator.predict(features(model)), rtol=1e-5)
    assert hushfit("report", f"{name}.json", "-o", "r.html").code == 0
    page = Path("r.html").read_text()
    assert "Effects of the numbers" in page
    assert "unit length" not in page
    assert hushfit("card", f"{name}.json", "-o", "card.md").code == 0

    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    assert hushfit("export", f"{name}.json", "-o", "model.onnx", "--overwrite").code == 0
    X = features(model)
    session = runtime.InferenceSession("model.onnx")
    for rows in (X, 3 * X - 1):  # also outside the public ranges
        (found,) = session.run(None, {"X": rows.astype(np.float32)})
        assert np.allclose(found[:, 0], model.estimator.predict(rows), rtol=1e-4, atol=1e-4)


def test_an_additive_fit_from_a_file_is_that_of_the_library(targets):
    """The same noise on the same mapped records."""
    from hushfit import PrivateLinearRegression
    from hushfit.features import AdditiveFeatures

    write_csv("train.csv", curved(1500))
    model = fitted(targets, "days", "--features", "additive", "--monotone", "age=+1")
    X = features(model, "train.csv")
    y = np.array([float(cell) for cell in curved(1500)["days"]])
    with pytest.warns(InsecureNoiseWarning):
        other = PrivateLinearRegression(
            4,
            1e-5,
            target_bounds=(0, 20),
            feature_bounds=(0, 1),
            random_state=1,
            features=AdditiveFeatures(binary=(1, 2, 3), monotone={0: 1}),
        ).fit(X, y)
    assert np.allclose(other.coef_, model.estimator.coef_, atol=1e-2)
    assert np.all(np.diff(model.estimator.shape_values(0)[1]) >= -1e-12)


@pytest.mark.parametrize("adjacency", ["add-remove", "label"])
def test_additive_numbers_under_other_relations(targets, adjacency):
    write_csv("train.csv", curved(1500))
    write_csv("test.csv", curved(400, seed=1))
    fitted(targets, "days", "--features", "additive", "--adjacency", adjacency)
    assert targets("evaluate", "days.json", "test.csv", "--json").json["r2"] > 0.4


WRONG = {
    "a Poisson model of numbers": ("days", ("--model", "poisson"), "kind = 'count'"),
    "classes of numbers": ("days", ("--model", "logistic"), "kind = 'categorical'"),
    "numbers of classes": ("ill", ("--model", "lasso"), "kind = 'numeric'"),
    "a penalty of another model": (
        "days",
        ("--model", "ridge", "--penalty", "l1"),
        "--model lasso",
    ),
    "a penalty of classes": ("days", ("--penalty", "scad"), "Leave it out"),
    "a constraint of classes": (
        "days",
        ("--penalty", "l1", "--constraint", "chain"),
        "Leave it out",
    ),
    "a weight without a penalty": ("days", ("--alpha", "0.1"), "--model ridge"),
    "a weight that is no number": ("days", ("--model", "ridge", "--alpha", "x"), "auto"),
    "a chosen weight of classes": ("ill", ("--penalty", "l2", "--alpha", "auto"), "not a number"),
    "curves of single columns": (
        "days",
        ("--features", "additive", "--model", "lasso"),
        "--model linear",
    ),
    "a shape of a straight line": ("days", ("--monotone", "age=+1"), "--features additive"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_what_does_not_suit_the_target_is_refused_with_the_remedy(targets, case):
    name, options, remedy = case
    place = ("--schema", f"{name}.toml", "--epsilon", 1, "--delta", 1e-5, "-o", "m.json")
    result = targets("fit", "train.csv", *place, *options)
    assert result.code == 2
    assert remedy in result.err
    assert not Path("m.json").exists()


WRONG_TARGETS = {
    'kind = "count"\nhigh = 0': "above 0",
    'kind = "count"': "public cap",
    'kind = "numeric"\nlow = 0\nhigh = 20\nfill = 3': "for features",
    'kind = "ordinal"\ncategories = ["one"]': "at least two",
    'kind = "percent"': "categorical, numeric, count, ordinal",
}


@pytest.mark.parametrize("text", WRONG_TARGETS)
def test_a_target_that_cannot_be_is_refused(targets, text):
    Path("bad.toml").write_text(f'[target]\nname = "days"\n{text}\n{COLUMNS}')
    place = ("--epsilon", 1, "--delta", 1e-5, "-o", "m.json")
    result = targets("fit", "train.csv", "--schema", "bad.toml", *place)
    assert result.code == 2
    assert WRONG_TARGETS[text] in result.err


def test_a_draft_takes_the_kind_that_is_given(targets):
    draft = ("schema", "train.csv", "--target", "pain", "--target-kind", "ordinal")
    assert targets(*draft, "-o", "draft.toml").code == 0
    assert 'kind = "ordinal"' in Path("draft.toml").read_text()
    assert "CHECK THE ORDER" in Path("draft.toml").read_text()
    wrong = targets("schema", "train.csv", "--target", "pain", "--target-kind", "count", "-o", "x")
    assert wrong.code == 2
    assert "--target-kind categorical" in wrong.err


# --- scores of private rows


def private(hushfit, name, *options):
    given = ("--private", "--epsilon", 2, "--delta", 1e-4, "--seed", 3, "--json")
    return hushfit("evaluate", f"{name}.json", "test.csv", *given, *options)


def test_private_scores_are_near_the_exact_ones_and_paid_for(targets):
    targets("ledger", "init", "ledger.db", "--dataset", "held", "--epsilon", 5, "--delta", 1e-3)
    account = ("--ledger", "ledger.db", "--dataset", "held")
    for name in ("ill", "place", "days", "pain"):
        fitted(targets, name)
        exact = targets("evaluate", f"{name}.json", "test.csv", "--json").json
        noisy = private(targets, name, *account).json
        assert noisy["guarantee"]["epsilon"] == 2
        # Four standard deviations of the noise, with a fixed seed: below 1e-4 for a false alarm.
        if "r2" in exact:
            low, high = noisy["rmse"]
            assert low <= exact["rmse"] * 1.05
            assert high >= exact["rmse"] * 0.95
        else:
            assert abs(noisy["accuracy"] - exact["accuracy"]) < 4 * noisy["noise"]
    targets("ledger", "init", "ledger.db", "--dataset", "small", "--epsilon", 1, "--delta", 1e-3)
    refused = private(targets, "ill", "--ledger", "ledger.db", "--dataset", "small")
    assert refused.code == 3


def test_private_scores_of_persons_protect_persons(targets):
    for name in ("train.csv", "test.csv"):
        with open(name, newline="") as file:
            rows = list(csv.reader(file))
        ids = ["who", *(str(k // 2) for k in range(len(rows) - 1))]
        with open(name, "w", newline="") as file:
            csv.writer(file).writerows([[*row, who] for row, who in zip(rows, ids, strict=True)])
    Path("ill.toml").write_text('person = "who"\n' + Path("ill.toml").read_text())
    fitted(targets, "ill")
    found = private(targets, "ill").json
    assert found["units"] == 200
    assert found["guarantee"]["unit"]["kind"] == "person"


def test_noise_of_scores_is_asked_for_completely(targets):
    fitted(targets, "ill")
    assert targets("evaluate", "ill.json", "test.csv", "--private").code == 2
    assert targets("evaluate", "ill.json", "test.csv", "--epsilon", 1).code == 2
    refused = private(targets, "ill", "--by", "age")
    assert refused.code == 2
    assert "'sex'" in refused.out
    groups = private(targets, "ill", "--by", "sex").json["by"]
    assert [*groups][-1] == "<other>"
    assert any(group["accuracy"] is not None for group in groups.values())


def test_plan_states_the_noise_of_regression(hushfit):
    place = ("plan", "--rows", 5000, "--columns", 20, "--epsilon-range", "1:1")
    for model in ("linear", "poisson"):
        plans = hushfit(*place, "--model", model, "--json").json["plans"]
        assert plans[0]["releases"][0][0] == "targets"
        assert 50 < plans[0]["units_needed"] < 1000
    assert hushfit(*place, "--model", "linear", "--svg", "x.svg").code == 2
    assert "rows at least" in hushfit(*place, "--model", "linear").out


def test_the_manual_of_the_file_knows_regressors(targets):
    jsonschema = pytest.importorskip("jsonschema")
    from importlib.resources import files

    published = json.loads(files("hushfit.models").joinpath("model.schema.json").read_text())
    for name in ("days", "visits", "pain"):
        fitted(targets, name)
        jsonschema.validate(json.loads(Path(f"{name}.json").read_text()), published)


@pytest.mark.parametrize("stated", ["option", "schema"])
def test_coefficients_of_a_table_are_log_odds_by_name(targets, stated):
    """A row's log-odds are the sum of its coefficients, in the file and on the page."""
    path = Path("ill.toml")
    if stated == "schema":
        path.write_text('scaling = "public"\n' + path.read_text())
    model = fitted(targets, "ill", *(("--scaling", "public") if stated == "option" else ()))
    X = features(model)
    margins = X @ model.estimator.coef_[0] + model.estimator.intercept_[0]
    assert np.allclose(model.estimator.decision_function(X), margins)
    assert model.estimator.scaling == model.schema.longest == np.sqrt(3)
    assert model.standard_error[0, 0] < abs(model.estimator.coef_[0, 0]) / 3
    targets("predict", "ill.json", "test.csv", "-o", "out.csv", "--probabilities")
    assert targets("report", "ill.json", "-o", "r.html").code == 0
    assert "a weight is what the column adds to the log-odds" in Path("r.html").read_text()


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("days", (), "--scaling public is for --model logistic and svm, not for linear"),
        ("ill", ("--features", "additive"), "is for --features linear, not for additive"),
        ("ill", ("--inference",), "is for models without --inference"),
    ],
)
def test_a_public_length_is_refused_where_it_means_nothing(targets, name, more, words):
    out = ("--epsilon", 1, "--delta", 1e-5, "-o", "m.json")
    outcome = targets(
        "fit", "train.csv", "--schema", f"{name}.toml", "--scaling", "public", *more, *out
    )
    assert outcome.code != 0
    assert words in " ".join(outcome.err.split())
