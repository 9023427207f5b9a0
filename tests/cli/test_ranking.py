"""Lists of documents from the command line: fit, evaluate, predict and report."""

import json
import lzma

import numpy as np
import pytest

from hushfit import Ledger
from hushfit.cli import run as run_command
from hushfit.data.lists import RankingSchema, read_documents
from hushfit.errors import InvalidArgument
from hushfit.models import load_ranker

SCHEMA = """
target = "grade"
query = "q"
max_grade = 2
columns = ["a", "b"]
"""
LETOR = """
target = "grade"
query = "qid"
max_grade = 2
n_features = 3
unit = "list"
"""


def documents(seed=0, m=60):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 8, m)
    X = rng.random((sizes.sum(), 2))
    return X, (X[:, 0] > 0.6).astype(int) + (X[:, 0] > 0.9), np.repeat(np.arange(m), sizes)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y, qid = documents()
    lines = [f"{q},{a:.6f},{b:.6f},{g}\n" for q, (a, b), g in zip(qid, X, y, strict=True)]
    (tmp_path / "ranks.csv").write_text("q,a,b,grade\n" + "".join(lines))
    with lzma.open(tmp_path / "ranks.txt.xz", "wt") as file:
        for q, (a, b), g in zip(qid, X, y, strict=True):
            file.write(f"{g} qid:{q} 1:{a:.6f} 3:{b:.6f} #docid = x\n")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "letor.toml").write_text(LETOR)
    return tmp_path


def run(*arguments):
    return run_command([str(part) for part in arguments])


def fit(table, schema, *more):
    budget = ("--epsilon", 2, "--delta", 1e-3, "--seed", 0)
    return run("fit", table, "--schema", schema, *budget, "-o", "model.json", *more)


def test_a_schema_with_a_query_fits_a_ranker_that_every_verb_takes(folder, capsys):
    init = ("--dataset", "judges", "--epsilon", 3, "--delta", 1e-2, "--adjacency", "label")
    assert run("ledger", "init", "ledger.db", *init) == 0
    paid = ("--ledger", "ledger.db", "--dataset", "judges")
    assert fit("ranks.csv", "schema.toml", *paid) == 0
    model = load_ranker("model.json")
    assert model.receipt.dataset == "judges"
    assert "FEATURES ARE NOT PROTECTED" in str(model.guarantee)
    assert len(Ledger("ledger.db", dataset="judges").entries) == 1
    capsys.readouterr()
    assert run("evaluate", "model.json", "ranks.csv", "--json") == 0
    assert json.loads(capsys.readouterr().out)["ndcg@1"] > 0.5
    assert run("predict", "model.json", "ranks.csv", "-o", "scores.csv") == 0
    lines = (folder / "scores.csv").read_text().splitlines()
    assert lines[0] == "q,score,place"
    assert len(lines) == 1 + len(documents()[1])
    assert run("report", "model.json", "--held-out", "ranks.csv", "-o", "page.html") == 0
    page = (folder / "page.html").read_text()
    assert "NDCG by depth" in page
    assert "NOT protected" in page


def test_letor_text_is_read_compressed_too(folder):
    assert fit("ranks.txt.xz", "letor.toml") == 0
    model = load_ranker("model.json")
    assert model.estimator.weights_.shape == (3,)
    assert model.guarantee.unit.in_words == "one list"
    X, y, qid = documents()
    table = read_documents(["ranks.txt.xz"], RankingSchema.read("letor.toml"))
    np.testing.assert_allclose(table.X[:, [0, 2]], X, atol=1e-6)
    np.testing.assert_array_equal(table.y, y)
    np.testing.assert_array_equal(table.qid, qid.astype(str))


BAD = {
    "grades among the features": (SCHEMA.replace('"b"', '"grade"'), "ranks.csv"),
    "no largest grade": (SCHEMA.replace("max_grade = 2", ""), "ranks.csv"),
    "grades beyond it": (SCHEMA.replace("= 2", "= 1"), "ranks.csv"),
    "unknown entry": (SCHEMA + "grades = 3\n", "ranks.csv"),
    "missing column": (SCHEMA.replace('"b"', '"c"'), "ranks.csv"),
    "columns and a number": (SCHEMA + "n_features = 2\n", "ranks.csv"),
    "too few features": (LETOR.replace("= 3", "= 2"), "ranks.txt.xz"),
    "a table as LETOR": (LETOR, "ranks.csv"),
    "no such file": (SCHEMA, "none.csv"),
    "unknown unit": (SCHEMA + 'unit = "row"\n', "ranks.csv"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_schemas_and_tables_are_refused_and_nothing_is_spent(folder, case):
    schema, table = BAD[case]
    (folder / "schema.toml").write_text(schema)
    init = ("--dataset", "judges", "--epsilon", 3, "--delta", 1e-2, "--adjacency", "label")
    run("ledger", "init", "ledger.db", *init)
    assert fit(table, "schema.toml", "--ledger", "ledger.db", "--dataset", "judges") == 2
    assert not (folder / "model.json").exists()
    assert not Ledger("ledger.db", dataset="judges").entries


def test_a_large_delta_is_refused(folder):
    given = ("--epsilon", 1, "--delta", 0.5, "-o", "model.json", "--seed", 0)
    assert run("fit", "ranks.csv", "--schema", "schema.toml", *given) == 2


def test_other_schemas_are_none_of_lists(folder):
    (folder / "other.toml").write_text("[target]\n")
    assert RankingSchema.read("other.toml") is None
    assert RankingSchema.read("none.toml") is None
    with pytest.raises(InvalidArgument):
        read_documents(["none.txt"], RankingSchema.read("letor.toml"))
