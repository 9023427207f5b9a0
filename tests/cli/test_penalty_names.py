"""Penalties by name from the command line, constraints as arguments, and messages in options."""

from pathlib import Path

import numpy as np
import pytest
from conftest_cli import make_rows, write_csv

from hushfit import PrivateLogisticRegression, load_model
from hushfit.cli._penalties import PENALTIES
from hushfit.cli._wording import in_options
from hushfit.constraints import Constraint, chain, generalised, graph
from hushfit.errors import InsecureNoiseWarning, InvalidArgument
from hushfit.estimators._constraints import constraint_of
from hushfit.models import _standard_errors
from hushfit.penalties import penalty_from_name

PLACE = ("--epsilon", 4, "--delta", 1e-4, "--seed", 0, "-o", "model.json", "--overwrite")


@pytest.fixture
def edges(folder, monkeypatch):
    monkeypatch.setattr(_standard_errors, "REPLAYS", 2)  # none is looked at here
    write_csv("few.csv", make_rows(150))
    Path("edges.csv").write_text('city=Bern,"city=Zug, upper"\ncity=Ulm,age\n')
    return ("--graph", "edges.csv")


@pytest.mark.parametrize("penalty", PENALTIES)
def test_every_penalty_has_a_name(hushfit, edges, penalty):
    extra = edges if penalty == "graph" else ()
    options = ("--penalty", penalty, "--alpha", 0.01, *extra)
    result = hushfit("fit", "few.csv", "--schema", "schema.toml", *PLACE, *options)
    assert result.code == 0, result.err
    fitted = load_model("model.json").estimator
    assert np.isfinite(fitted.coef_).all()
    if penalty == "nonnegative":
        assert (fitted.coef_ >= 0).all()


def test_a_strong_group_penalty_drops_whole_columns(hushfit, edges):
    options = ("--penalty", "group", "--alpha", 10)
    assert hushfit("fit", "few.csv", "--schema", "schema.toml", *PLACE, *options).code == 0
    assert (load_model("model.json").estimator.coef_ == 0).all()


WRONG = {
    "a graph without its file": (("--penalty", "graph"), "give --graph FILE"),
    "a file without its graph": (("--graph", "edges.csv"), "Give both"),
    "a graph with a solver": (("--penalty", "graph", "--solver", "dp-sgd"), "dp-sadmm"),
    "a constraint of nothing": (("--constraint", "chain"), "Choose one"),
    "a graph twice": (("--penalty", "graph", "--constraint", "graph"), "Choose one"),
    "a chain of curves": (
        ("--penalty", "l1", "--constraint", "chain", "--features", "additive"),
        "Use one of them",
    ),
    "groups of curves": (("--penalty", "group", "--features", "additive"), "Use one of them"),
    "a weight of nothing": (("--alpha", 0.1), "Give one too, such as --penalty l2"),
    "a share of nothing": (("--l1-ratio", 0.3), "--l1-ratio would be ignored"),
    "layers of a linear model": (
        ("--hidden", "3"),
        "--hidden would be ignored by --model logistic",
    ),
    "curves of a network": (("--model", "mlp", "--features", "additive"), "--features would be"),
    "a smooth network": (
        ("--model", "mlp", "--smoothness", 0.1),
        "Leave it out. Nothing was spent",
    ),
    "intervals of a network": (("--model", "mlp", "--inference"), "--inference would be ignored"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_what_does_not_belong_together_is_refused(hushfit, edges, case):
    options, remedy = case
    needs_file = "graph" in options and "FILE" not in remedy
    extra = edges if needs_file else ()
    result = hushfit("fit", "few.csv", "--schema", "schema.toml", *PLACE, *options, *extra)
    assert result.code == 2
    assert remedy in result.err


def stated(text):
    """The schema of the table with a penalty in it."""
    path = Path("schema.toml")
    path.write_text(f"{path.read_text()}\n[penalty]\n{text}\n")


# What a schema states, and the same fit by options.
STATED = {
    "scad": ('name = "scad"\nalpha = 0.01', ("--penalty", "scad", "--alpha", 0.01)),
    "a share": (
        'name = "elasticnet"\nl1_ratio = 0.9\nalpha = 0.01',
        ("--penalty", "elasticnet", "--alpha", 0.01, "--l1-ratio", 0.9),
    ),
    "groups of columns": (
        'name = "group"\nalpha = 0.01\ngroups = [["age"], ["city"]]',
        ("--penalty", "group", "--alpha", 0.01),
    ),
    "edges": (
        'name = "graph"\nalpha = 0.01\n'
        'edges = [["city=Bern", "city=Zug, upper"], ["city=Ulm", "age"]]',
        ("--penalty", "graph", "--alpha", 0.01, "--graph", "edges.csv"),
    ),
    "a chain": (
        'name = "l1"\nalpha = 0.01\nconstraint = "chain"',
        ("--penalty", "l1", "--alpha", 0.01, "--constraint", "chain"),
    ),
    "combinations": (
        'name = "l1"\nalpha = 0.01\nconstraint = "generalised"\n'
        'combinations = [{"city=Bern" = -1, "city=Zug, upper" = 1}, {"city=Ulm" = -1, age = 1}]',
        ("--penalty", "l1", "--alpha", 0.01, "--constraint", "graph", "--graph", "ends.csv"),
    ),
}


@pytest.mark.parametrize("case", STATED.values(), ids=STATED)
def test_a_schema_states_what_options_do(hushfit, edges, case):
    text, options = case
    Path("ends.csv").write_text('city=Bern,"city=Zug, upper"\ncity=Ulm,age\n')
    place = ("few.csv", "--schema", "schema.toml", *PLACE)
    assert hushfit("fit", *place, *options).code == 0
    by_options = load_model("model.json")
    stated(text)
    result = hushfit("fit", *place)
    assert result.code == 0, result.err
    by_schema = load_model("model.json")
    assert np.array_equal(by_options.estimator.coef_, by_schema.estimator.coef_)
    assert by_schema.schema.penalty is not None
    assert hushfit("fit", *place, "--penalty", "none").code == 0
    assert load_model("model.json").estimator.penalty is None


def test_groups_that_overlap_are_copied(hushfit, edges):
    stated('name = "group"\nalpha = 10\ngroups = [["age", "city=Bern"], ["city"]]')
    result = hushfit("fit", "few.csv", "--schema", "schema.toml", *PLACE)
    assert result.code == 0, result.err
    assert (abs(load_model("model.json").estimator.coef_) < 0.1).all()


NOT_STATED = {
    'name = "l3"': "Choose one of none, l1",
    "name = 3": "Write a text",
    'weight = 3\nname = "l1"': "unknown keys ['weight']",
    'name = "l1"\nalpha = true': "Write a number",
    'name = "l1"\nconstraint = "ring"': "Choose one of identity",
    'name = "l1"\ngroups = [["age"]]': "'group' or 'sparse-group'",
    'name = "group"\ngroups = [["age"]]\nconstraint = "chain"': "Delete one",
    'name = "l1"\nedges = [["age", "city"]]': "constraint = 'graph'",
    'name = "graph"\nedges = [["age"]]': "pairs of names",
    'name = "graph"\nedges = [["age", "height"]]': "'height'",
    'name = "graph"': "needs edges",
    'name = "l1"\nconstraint = "generalised"': "needs combinations",
    'name = "l1"\nconstraint = "generalised"\ncombinations = [3]': "{age = 1, dose = -2}",
    'name = "group"\ngroups = [["height"]]': "'height'",
}


@pytest.mark.parametrize("text", NOT_STATED)
def test_a_penalty_that_cannot_be_is_refused_with_the_remedy(hushfit, edges, text):
    stated(text)
    result = hushfit("fit", "few.csv", "--schema", "schema.toml", *PLACE)
    assert result.code == 2
    assert NOT_STATED[text] in " ".join(result.err.split())


@pytest.mark.parametrize("text", ["age,height\n", "age\n", ""])
def test_a_graph_of_other_features_is_refused(hushfit, edges, text):
    Path("edges.csv").write_text(text)
    options = ("--penalty", "graph", *edges)
    result = hushfit("fit", "few.csv", "--schema", "schema.toml", *PLACE, *options)
    assert result.code == 2
    assert "edges.csv" in result.err


def test_command_line_and_library_know_the_same_names():
    structured = {"none", "group", "sparse-group", "graph"}
    for name in set(PENALTIES) - structured:
        assert penalty_from_name(name, 0.1, 0.5).value(np.zeros(3)) == 0


CONSTRAINTS = {
    "chain": "chain",
    "graph": lambda d: graph([(0, 1), (1, 2)], d),
    "generalised": generalised(np.array([[1.0, -1.0, 0.0]])),
}


@pytest.mark.parametrize("given", CONSTRAINTS.values(), ids=CONSTRAINTS)
def test_a_constraint_ties_coefficients_together(given):
    generator = np.random.default_rng(0)
    X = generator.uniform(size=(400, 3))
    y = (X[:, 0] > 0.5).astype(int)
    settings = {"penalty": "l1", "alpha": 10.0, "classes": [0, 1], "random_state": 0}
    with pytest.warns(InsecureNoiseWarning):
        model = PrivateLogisticRegression(8.0, 1e-4, constraint=given, **settings).fit(X, y)
    free = PrivateLogisticRegression(8.0, 1e-4, classes=[0, 1], random_state=0)
    with pytest.warns(InsecureNoiseWarning):
        free.fit(X, y)
    assert abs(model.coef_[0, 0] - model.coef_[0, 1]) < 0.2 * abs(
        free.coef_[0, 0] - free.coef_[0, 1]
    )


def test_constraints_that_cannot_be_are_refused():
    assert isinstance(constraint_of("chain", 4), Constraint)
    assert constraint_of(None, 4) is None
    for wrong, word in (("ring", "not known"), (chain(3), "4 columns"), (7, "type int")):
        with pytest.raises(InvalidArgument, match=word):
            constraint_of(wrong, 4)


WORDS = {
    "epsilon=-1 is not positive.": "--epsilon -1 is not positive.",
    "solver='magic' is not known.": "--solver magic is not known.",
    "Leave random_state=None for a release.": "Leave --seed out for a release.",
    "l1_ratio=2.5, alpha=1e-3: too large": "--l1-ratio 2.5, --alpha 1e-3: too large",
    "low=3 is above high=2": "low=3 is above high=2",
}


@pytest.mark.parametrize("text", WORDS)
def test_messages_name_the_options(text):
    names = ("epsilon", "solver", "l1_ratio", "alpha")
    options = {name: f"--{name.replace('_', '-')}" for name in names}
    assert in_options(text, options) == WORDS[text]


def test_a_refusal_of_the_library_names_the_option(hushfit, folder):
    place = ("--schema", "schema.toml", "--delta", 1e-4, "-o", "model.json")
    result = hushfit("fit", "train.csv", *place, "--epsilon", -1)
    assert "--epsilon -1" in result.err
    assert "epsilon=" not in result.err
