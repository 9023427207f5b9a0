"""Additive models through estimators, tables on disk, files, graphs, reports and commands."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from hushfit import (
    Ledger,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateRanker,
    load_model,
    save_model,
)
from hushfit.cli import run
from hushfit.data.schema import (
    CategoricalColumn,
    NumericColumn,
    Schema,
    SchemaFile,
    encode,
    parse_schema,
    schema_to_toml,
)
from hushfit.data.tables import CodedRows, RowCodec, find_tables
from hushfit.errors import InsecureNoiseWarning, InvalidArgument
from hushfit.estimators import PrivateGraphLogisticRegression
from hushfit.features import AdditiveFeatures, AdditiveMap
from hushfit.federated import fit_together
from hushfit.models import Model, fit_rows, model_json, parse_model
from hushfit.report import report_page

BOUNDS = ([20.0, 0.0, 0.0], [70.0, 1000.0, 1.0])
SETTINGS = AdditiveFeatures(binary=[2])


def people(n=1500, seed=0):
    """A wave over age, a falling effect of income, and one of sex: labels 0 and 1."""
    rng = np.random.default_rng(seed)
    age, income = rng.uniform(20, 70, n), 1000 * rng.random(n) ** 3
    sex = (rng.random(n) < 0.5).astype(float)
    score = 3 * np.sin((age - 20) / 8) - 0.004 * income + sex
    return np.column_stack([age, income, sex]), (rng.random(n) < 1 / (1 + np.exp(-score))).astype(
        int
    )


def model(features=SETTINGS, kind=PrivateLogisticRegression, **settings):
    given = {"epsilon": 4.0, "classes": [0, 1], "feature_bounds": BOUNDS, "random_state": 0}
    return kind(**(given | settings), features=features)


@pytest.fixture(autouse=True)
def _seeded():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        yield


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        return model().fit(*people())


def test_an_additive_model_finds_what_a_linear_one_cannot(fitted):
    X, y = people(seed=1)
    linear = model("linear").fit(*people())
    assert fitted.score(X, y) > linear.score(X, y) + 0.015
    assert fitted.coef_.shape == (1, fitted.feature_map_.n_outputs)
    assert fitted.n_features_in_ == 3


def test_shapes_follow_the_truth_and_are_centred(fitted):
    knots, values = fitted.shape_values(0)
    truth = np.sin(50 * knots / 8)
    assert np.corrcoef(values, truth)[0, 1] > 0.8
    assert abs(fitted.row_profile_.masses[0].weights @ values) < 1e-9
    # Half of the incomes are below an eighth of the range.
    masses = fitted.row_profile_.masses[1].masses
    assert masses[0] > 0.25 > masses[-1]
    with pytest.raises(InvalidArgument, match="no shape function"):
        fitted.shape_values(2)


@pytest.mark.parametrize("column", [3, -1, "age"])
def test_shapes_of_a_column_or_class_that_is_not_there_are_refused(fitted, column):
    with pytest.raises(InvalidArgument, match=f"column {column!r}, which is not there"):
        fitted.shape_values(column)
    with pytest.raises(InvalidArgument, match="output=1 is no row of coef_"):
        fitted.shape_values(0, 1)


def test_a_column_may_be_given_by_its_name():
    X, y = people(300)
    named = model().fit(pd.DataFrame(X, columns=["age", "income", "member"]), y)
    np.testing.assert_array_equal(named.shape_values("income"), named.shape_values(1))


@pytest.mark.parametrize("kind", [PrivateLogisticRegression, PrivateLinearSVC])
@pytest.mark.parametrize("penalty", [None, "l1", "l2"])
def test_dense_and_sparse_rows_give_the_same_model(kind, penalty):
    X, y = people(300)
    X[:, 0] -= 20  # sparse ranges start at zero
    given = {"feature_bounds": ([0.0] * 3, [50.0, 1000.0, 1.0]), "penalty": penalty, "kind": kind}
    dense, csr = model(**given).fit(X, y), model(**given).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(dense.coef_, csr.coef_, atol=1e-9)
    np.testing.assert_allclose(
        dense.decision_function(X), dense.decision_function(sparse.csr_array(X)), atol=1e-9
    )


def test_blocks_give_the_model_of_rows_that_were_mapped_beforehand():
    """The map is applied while rows are read; the same fit on a mapped copy is the same."""
    X, y = people(6000)
    additive = model().fit(X, y)
    low, high = map(np.array, BOUNDS)
    mapped = additive.feature_map_.transform((X - low) / (high - low))
    plain = model("linear", feature_bounds=None, penalty="l2", alpha=1e-4)
    same = model(penalty="l2", alpha=1e-4)
    np.testing.assert_allclose(same.fit(X, y).coef_, plain.fit(mapped, y).coef_, atol=1e-9)


def test_single_weights_are_not_denoised_where_they_mean_nothing():
    X, y = people(300)
    assert model().prepare(X, y).problem.rotated
    assert not model("centred").prepare(X, y).problem.rotated
    assert not model("linear").prepare(X, y).problem.rotated


def test_centred_is_a_straight_line_per_column():
    X, y = people(300)
    found = model("centred").fit(X, y).feature_map_
    assert found.intervals == (1, 1, 1)
    np.testing.assert_allclose(
        found.transform(np.array([[0.5, 0.25, 0.0]])), [[0.0, 0.0, -0.75]], atol=1e-12
    )


def test_ranges_are_needed_and_nothing_is_charged_without_them():
    X, y = people(100)
    ledger = Ledger(8.0, 1e-4)
    for wrong, text in (
        (model("additive", feature_bounds=None, ledger=ledger), "feature_bounds"),
        (model("cubic", ledger=ledger), "'cubic' is not known"),
        (model(AdditiveMap((1, 1)), ledger=ledger), "takes 2 columns"),
        (model(AdditiveFeatures(monotone={"height": 1}), ledger=ledger), "height"),
        (model(AdditiveFeatures(monotone={0: 1}), ledger=ledger, classes=[0, 1, 2]), "two classes"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            wrong.fit(X, y)
    assert not ledger.entries


def test_a_quote_needs_no_rows_and_agrees_with_the_fit(fitted):
    X, _ = people()
    quote = model().quote(len(X), 3)
    made = {release.name: release.noise_multiplier for release in fitted.privacy_.releases}
    assert quote.plan.parts[0].name in made
    with pytest.raises(InvalidArgument, match="feature_bounds"):
        model(feature_bounds=None).quote(100, 3)


def test_names_of_a_frame_are_understood():
    pd = pytest.importorskip("pandas")
    X, y = people(300)
    frame = pd.DataFrame(X, columns=["age", "income", "sex"])
    named = AdditiveFeatures(binary=["sex"], monotone={"income": -1})
    found = clone(model(named)).fit(frame, y)
    assert found.feature_map_.intervals[2] == 0
    assert (np.diff(found.shape_values(1)[1]) <= 1e-9).all()


@pytest.mark.parametrize("way", [1, -1])
def test_monotone_and_smooth_shapes_are_post_processing_of_the_same_releases(fitted, way):
    X, y = people()
    shaped = model(AdditiveFeatures(binary=[2], monotone={0: way, 2: -1}, smoothness=1e-3))
    shaped.fit(X, y)
    assert (way * np.diff(shaped.shape_values(0)[1]) >= -1e-9).all()
    assert shaped.coef_[0, shaped.feature_map_.spans[2].start] <= 0
    assert shaped.privacy_.releases == fitted.privacy_.releases
    bends = [np.sum(np.diff(m.shape_values(1)[1], 2) ** 2) for m in (shaped, fitted)]
    assert bends[0] < bends[1]


def test_several_classes_and_persons():
    X, y = people(400)
    several = model(classes=[0, 1, 2]).fit(X, y, groups=np.arange(400) // 2)
    assert several.coef_.shape == (3, several.feature_map_.n_outputs)
    assert several.predict_proba(X).shape == (400, 3)
    # Persons are the units: fewer of them than rows decide the number of knots.
    assert several.feature_map_.intervals <= model().fit(X, y).feature_map_.intervals


@pytest.mark.parametrize("adjacency", ["label", "add-remove"])
def test_other_relations(adjacency):
    X, y = people(600)
    assert model(adjacency=adjacency).fit(X, y).score(X, y) > 0.6


def test_files_predict_alike_bit_by_bit(fitted, tmp_path):
    X, _ = people(200, seed=2)
    save_model(fitted, tmp_path / "m.json")
    again = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(again.estimator.shape_values(0)[1], fitted.shape_values(0)[1])
    assert again.estimator.row_profile_.length == fitted.row_profile_.length
    assert len(again.weight_names) == fitted.coef_.shape[1]


def test_a_file_of_a_linear_model_has_no_map(tmp_path):
    text, _ = model_json(Model(model("linear").fit(*people(200))))
    assert "feature_map" not in json.loads(text)
    assert parse_model(text.encode()).estimator.feature_map_ is None


def test_onnx_has_the_map(fitted, tmp_path):
    onnx = pytest.importorskip("hushfit.models.onnx")
    reference = pytest.importorskip("onnx.reference")
    X, y = people(400, seed=2)
    X[::5, 1] = np.nan
    given = model(AdditiveFeatures(binary=[2], missing=[1])).fit(X, y)
    onnx.export_onnx(Model(given), tmp_path / "m.onnx")
    graph = reference.ReferenceEvaluator(str(tmp_path / "m.onnx"))
    _, probabilities = graph.run(None, {"X": X.astype(np.float32)})
    np.testing.assert_allclose(probabilities, given.predict_proba(X), atol=1e-5)


def test_owners_need_one_map():
    X, y = people(400)
    parts = {"north": (X[:200], y[:200]), "south": (X[200:], y[200:])}
    with pytest.raises(InvalidArgument, match="AdditiveMap"):
        fit_together(model(), parts)
    shared = model(AdditiveMap((4, 2, 0)))
    together = fit_together(shared, parts, random_state=0)
    assert together.models["north"].coef_.shape == (1, 7)


def test_a_ranker_takes_the_map_as_its_scorer():
    rng = np.random.default_rng(0)
    X = rng.random((240, 2))
    grades = np.rint(4 * np.abs(X[:, 0] - 0.5)).astype(float)
    ranker = PrivateRanker(epsilon=50.0, scorer=AdditiveMap((4, 1)), max_grade=2, random_state=0)
    ranker.fit(X, grades, group=[8] * 30)
    assert ranker.coef_.shape == (5,)
    assert ranker.score(X, grades, group=[8] * 30) > 0.8


def test_graphs_take_linear_features_only():
    assert PrivateGraphLogisticRegression(graph=[(0, 1)]).features == "linear"


SCHEMA = Schema(
    (
        NumericColumn("age", 20, 70, integer=True),
        NumericColumn("income", 0, 1000, missing="indicator", fill=100),
        CategoricalColumn("sex", ("f", "m")),
    ),
    CategoricalColumn("ill", ("0", "1")),
    features="additive",
)


@pytest.fixture
def table(tmp_path):
    """A file of people, some without an income, and a schema."""
    X, y = people(1200)
    X[:, 0] = np.rint(X[:, 0])
    cells = [
        f"{a:g},{'' if k % 9 == 0 else f'{i:.3f}'},{'m' if s else 'f'},{label}"
        for k, ((a, i, s), label) in enumerate(zip(X, y, strict=True))
    ]
    (tmp_path / "people.csv").write_text("age,income,sex,ill\n" + "\n".join(cells) + "\n")
    (tmp_path / "schema.toml").write_text(schema_to_toml(SchemaFile(SCHEMA)))
    return tmp_path


def test_a_schema_with_new_keys_is_read_back():
    assert parse_schema(schema_to_toml(SchemaFile(SCHEMA))).schema == SCHEMA
    assert SCHEMA.feature_names[1:3] == ["income", "income=<missing>"]
    assert [column.steps for column in SCHEMA.inputs] == [50, None, 1, 1, 1, 1]
    for wrong in ({"missing": "drop"}, {"integer": 1}):
        with pytest.raises(InvalidArgument):
            NumericColumn("a", 0, 1, **wrong)
    with pytest.raises(InvalidArgument, match="features="):
        Schema(SCHEMA.columns, features="cubic")


def test_missing_numbers_are_packed_with_their_indicator():
    pa = pytest.importorskip("pyarrow")
    cells = {"age": [30, 40], "income": [None, 500.0], "sex": ["f", "?"]}
    matrix = RowCodec(SCHEMA).matrix(pa.record_batch(cells)).toarray()
    wanted, _ = encode(cells, SCHEMA)
    np.testing.assert_allclose(matrix, wanted, atol=1e-7)
    np.testing.assert_array_equal(wanted[:, 2], [1, 0])


def test_a_table_on_disk_gives_the_model_of_its_encoded_rows(table):
    given = PrivateLogisticRegression(epsilon=4.0, random_state=0)
    with CodedRows.from_tables(find_tables([str(table / "people.csv")], None), SCHEMA) as rows:
        found, _ = fit_rows(given, rows, SchemaFile(SCHEMA))
    assert isinstance(found.estimator.feature_map_, AdditiveMap)
    cells = np.genfromtxt(table / "people.csv", delimiter=",", dtype=str, skip_header=1)
    columns = dict(zip(("age", "income", "sex"), cells.T, strict=False))
    X, _ = encode(columns, SCHEMA)
    again = PrivateLogisticRegression(
        epsilon=4.0, random_state=0, classes=["0", "1"], features=found.estimator.feature_map_
    ).fit(X, cells[:, 3])
    # Packed rows are float32.
    np.testing.assert_allclose(found.estimator.coef_, again.coef_, rtol=0.02, atol=0.02)
    assert (found.predict(columns) == again.predict(X)).mean() > 0.99


@pytest.fixture
def command(table, capsys):
    """Run the program beside the table; returns the exit code and the output."""

    def called(verb, *arguments):
        places = {name: str(table / name) for name in ("people.csv", "schema.toml", "m.json")}
        capsys.readouterr()
        code = run([verb, *(places.get(a, a) for a in arguments)])
        printed = capsys.readouterr()
        return code, printed.out, " ".join((printed.out + printed.err).split())

    return called


FIT = ("--schema", "schema.toml", "--epsilon", "4", "--delta", "1e-6", "--seed", "1")


def test_commands_fit_evaluate_and_report(table, command):
    shaped = ["--monotone", "income=-1", "--smoothness", "1e-4"]
    code, _, printed = command("fit", "people.csv", *FIT, *shaped, "-o", "m.json")
    assert code == 0, printed
    assert "curved" not in printed
    found = load_model(table / "m.json").estimator
    assert (np.diff(found.shape_values(1)[1]) <= 1e-9).all()
    _, out, _ = command("evaluate", "m.json", "people.csv", "--json")
    assert json.loads(out)["auc"] > 0.8
    assert command("report", "m.json", "-o", str(table / "r.html"))[0] == 0
    html = " ".join((table / "r.html").read_text().split())
    assert "Effect of age" in html
    assert "age[1]" not in html
    assert "No error bands" in html


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("--monotone", "income"), "COLUMN=+1"),
        (("--monotone", "height=1"), "height"),
        (("--features", "linear", "--smoothness", "1"), "--features additive"),
    ],
    ids=["no direction", "no column", "not additive"],
)
def test_commands_refuse_wrong_shapes(table, command, wrong, said):
    code, _, printed = command("fit", "people.csv", *FIT, *wrong, "-o", "m.json")
    assert code != 0
    assert said in printed
    assert not (table / "m.json").exists()


def test_the_fit_command_recommends_curves_for_numeric_columns(table, command):
    code, _, printed = command("fit", "people.csv", *FIT, "--features", "linear", "-o", "m.json")
    assert code == 0
    assert "2 of the columns are numeric. --features additive" in printed
    assert load_model(table / "m.json").estimator.feature_map_ is None


def test_a_report_of_several_classes_has_shapes_for_each():
    X, y = people(300)
    page = report_page(Model(model(classes=[0, 1, 2]).fit(X, y)))
    assert page.count('<div class="shapes">') == 3
