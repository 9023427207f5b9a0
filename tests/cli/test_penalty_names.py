"""Penalties by name from the command line, constraints as arguments, and messages in options."""

from pathlib import Path

import numpy as np
import pytest
from conftest_cli import make_rows, write_csv

from hushfit import PrivateLogisticRegression, load_model
from hushfit.cli._models import PENALTIES
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
    "a graph without its file": (("--penalty", "graph"), "Give both"),
    "a file without its graph": (("--graph", "edges.csv"), "Give both"),
    "a graph with a solver": (("--penalty", "graph", "--solver", "dp-sgd"), "dp-sadmm"),
    "groups of curves": (("--penalty", "group", "--features", "additive"), "Use one of them"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_what_does_not_belong_together_is_refused(hushfit, edges, case):
    options, remedy = case
    extra = () if "--graph" in options or remedy == "Give both" else edges
    extra = () if "group" in options else extra
    result = hushfit("fit", "few.csv", "--schema", "schema.toml", *PLACE, *options, *extra)
    assert result.code == 2
    assert remedy in result.err


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
