"""Lists of documents from the command line: fit, evaluate, predict and report."""

import io
import json
import lzma

import numpy as np
import pytest

from hushfit import Ledger, PrivateRanker
from hushfit.cli import run as run_command
from hushfit.data.lists import RankingSchema, read_documents
from hushfit.errors import InvalidArgument
from hushfit.estimators import QuadraticMap
from hushfit.models import RankingModel, load_ranker, save_ranker

pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")

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


def flat(text):
    return " ".join(text.split())


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
    assert "SP 800-226" in page
    scored = ("--held-out", "ranks.csv", "--ledger", "ledger.db")
    assert run("card", "model.json", *scored, "-o", "card.md") == 0
    card = (folder / "card.md").read_text()
    assert "pipeline_tag: text-ranking" in card
    assert "NDCG@10" in card
    assert "1 payment on 'judges'" in card
    assert run("export", "model.json", "-o", "model.onnx") == 0
    assert (folder / "model.onnx").exists()


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


PERSONS = SCHEMA + 'person = "judge"\n'


def judged(folder, judges):
    """The table with a column of judges, one for each document."""
    header, *lines = (folder / "ranks.csv").read_text().splitlines()
    rows = [f"{line},{judge}\n" for line, judge in zip(lines, judges, strict=True)]
    (folder / "judged.csv").write_text(f"{header},judge\n" + "".join(rows))
    (folder / "schema.toml").write_text(PERSONS)


def account(*more):
    init = ("--dataset", "judges", "--epsilon", 3, "--delta", 1e-2, "--adjacency", "person-label")
    assert run("ledger", "init", "ledger.db", *init, *more) == 0
    return "--ledger", "ledger.db", "--dataset", "judges", "--allow-large-delta"


def test_persons_of_lists_are_protected_by_the_name_of_their_column(folder):
    qid = documents()[2]
    judged(folder, [f"j{q % 20}" if q % 7 else "" for q in qid])  # some lists are nobody's
    paid = account("--unit", "person", "--person-column", "judge")
    assert fit("judged.csv", "schema.toml", *paid) == 0
    unit = load_ranker("model.json").guarantee.unit
    assert (unit.kind, unit.column, unit.record) == ("person", "judge", "list")
    (folder / "schema.toml").write_text(PERSONS.replace("judge", "clinic"))
    (folder / "other.csv").write_text(
        (folder / "judged.csv").read_text().replace("judge", "clinic")
    )
    assert fit("other.csv", "schema.toml", *paid) == 2  # other persons, perhaps
    assert len(Ledger("ledger.db", dataset="judges").entries) == 1


def test_a_list_with_documents_of_two_persons_is_refused(folder, capsys):
    """Counted as the first one's, it would have no bound on what the second contributes."""
    qid = documents()[2]
    judges = [f"j{q % 20}" for q in qid]
    several = int(np.flatnonzero(qid[1:] == qid[:-1])[0])
    for other in ("someone", ""):
        judges[several + 1] = other
        judged(folder, judges)
        (folder / "ledger.db").unlink(missing_ok=True)
        assert fit("judged.csv", "schema.toml", *account()) == 2
        assert "different persons" in capsys.readouterr().err
        assert not Ledger("ledger.db", dataset="judges").entries


IGNORED = {
    "--person": ("q", "is the grade, the query or a feature"),
    "--person-weight": ("mean", "would be ignored"),
}


@pytest.mark.parametrize("option", IGNORED)
def test_options_about_persons_are_not_ignored(folder, capsys, option):
    value, reason = IGNORED[option]
    assert fit("ranks.csv", "schema.toml", option, value) == 2
    assert reason in capsys.readouterr().err


BAD = {
    "grades among the features": (SCHEMA.replace('"b"', '"grade"'), "ranks.csv"),
    "no largest grade": (SCHEMA.replace("max_grade = 2", ""), "ranks.csv"),
    "unknown entry": (SCHEMA + "grades = 3\n", "ranks.csv"),
    "missing column": (SCHEMA.replace('"b"', '"c"'), "ranks.csv"),
    "columns and a number": (SCHEMA + "n_features = 2\n", "ranks.csv"),
    "too few features": (LETOR.replace("= 3", "= 2"), "ranks.txt.xz"),
    "persons in LETOR text": (LETOR + 'person = "judge"\n', "ranks.txt.xz"),
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


def drafted(text):
    """A draft that somebody has confirmed."""
    return "".join(
        line for line in text.splitlines(keepends=True) if not line.startswith("confirm")
    )


def test_a_draft_of_a_table_of_lists_is_confirmed_and_fitted(folder, capsys):
    given = ("ranks.csv", "--target", "grade", "--query", "q", "-o", "draft.toml")
    assert run("schema", *given) == 0
    assert "DOCUMENTS AND THEIR FEATURES ARE PUBLIC" in flat(capsys.readouterr().err)
    assert fit("ranks.csv", "draft.toml") == 2
    assert "not confirmed" in flat(capsys.readouterr().err)
    text = (folder / "draft.toml").read_text()
    (folder / "draft.toml").write_text(drafted(text))
    schema = RankingSchema.read("draft.toml")
    assert (schema.columns, schema.max_grade, schema.unit) == (("a", "b"), 2, "labels")
    assert fit("ranks.csv", "draft.toml") == 0
    capsys.readouterr()
    assert run("schema", "--check", "ranks.csv", "draft.toml", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    X, _, qid = documents()
    assert (found["documents"], found["lists"]) == (len(X), qid[-1] + 1)
    assert any("have one document" in remark for remark in found["remarks"])
    assert not found["private"]


def test_a_draft_of_letor_text_needs_no_names(folder, capsys):
    assert run("schema", "ranks.txt.xz", "-o", "draft.toml") == 0
    (folder / "draft.toml").write_text(drafted((folder / "draft.toml").read_text()))
    schema = RankingSchema.read("draft.toml")
    assert (schema.n_features, schema.max_grade) == (3, 2)
    assert fit("ranks.txt.xz", "draft.toml") == 0
    assert run("predict", "model.json", "ranks.txt.xz", "-o", "scores.csv", "--keep", "x") == 2
    assert "no named columns" in flat(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--target", "grade", "--query", "none"), "no column 'none'"),
        (("--target", "grade", "--query", "grade"), "both the grade and the query"),
        (("--target", "word", "--query", "q"), "no grade"),
        (("--query", "q"), "needs --target"),
    ],
)
def test_drafts_of_lists_that_make_no_sense_are_refused(folder, capsys, options, says):
    (folder / "words.csv").write_text("q,word,grade,a\n1,x,1,2\n1,y,0,3\n")
    assert run("schema", "words.csv", *options, "-o", "draft.toml") == 2
    assert says in flat(capsys.readouterr().err)
    assert not (folder / "draft.toml").exists()


def test_texts_and_identifiers_are_left_out_of_a_draft(folder):
    lines = [f"{k // 4},doc{k},{'xy'[k % 2]},{k % 3},{k % 7}\n" for k in range(80)]
    (folder / "words.csv").write_text("q,doc_id,word,grade,a\n" + "".join(lines))
    given = ("words.csv", "--target", "grade", "--query", "q", "-o", "draft.toml")
    assert run("schema", *given) == 0
    text = (folder / "draft.toml").read_text()
    (folder / "draft.toml").write_text(drafted(text))
    assert RankingSchema.read("draft.toml").columns == ("a",)
    assert "Left out: doc_id" in text
    assert "Left out: word" in text


def test_new_documents_need_no_grades_and_keep_their_columns(folder, capsys):
    assert fit("ranks.csv", "schema.toml") == 0
    (folder / "new.csv").write_text("q,doc,a,b\n7,=x,0.1,0.5\n7,y,0.9,0.5\n8,z,0.4,0.1\n")
    capsys.readouterr()
    assert run("predict", "model.json", "new.csv", "--keep", "doc", "--keep", "a") == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header == "doc,a,q,score,place"
    assert [line.split(",")[:3] for line in lines] == [
        ["'=x", "0.1", "7"],
        ["y", "0.9", "7"],
        ["z", "0.4", "8"],
    ]
    assert [line.rsplit(",", 1)[1] for line in lines] == ["2", "1", "1"]
    assert run("predict", "model.json", "new.csv", "--keep", "q") == 2
    assert run("predict", "model.json", "new.csv", "--keep", "none") == 2
    assert run("predict", "model.json", "new.csv", "--keep", "a", "--keep", "a") == 2
    told = run("predict", "model.json", "new.csv", "--json", "-o", "new-scores.csv")
    assert told == 0
    assert '"rows": 3' in capsys.readouterr().out


def with_persons(folder, person=lambda q: q % 20):
    """The lists with a column that says whose each is, and a schema that names it."""
    X, y, qid = documents()
    rows = zip(qid, X, y, strict=True)
    lines = [f"{q},p{person(q)},{a:.6f},{b:.6f},{g}\n" for q, (a, b), g in rows]
    (folder / "judged.csv").write_text("q,judge,a,b,grade\n" + "".join(lines))
    (folder / "judged.toml").write_text(SCHEMA + 'person = "judge"\n')


def test_persons_of_lists_are_paid_from_their_own_account(folder, capsys):
    with_persons(folder)
    for name, unit, relation in (("g", "labels", "person-label"), ("p", "person", "replace-one")):
        init = ("--dataset", name, "--epsilon", 3, "--delta", 1e-2, "--adjacency", relation)
        own = ("--unit", "person", "--person-column", "judge")
        assert run("ledger", "init", "ledger.db", *init, *own) == 0
        (folder / "judged.toml").write_text(SCHEMA + f'person = "judge"\nunit = "{unit}"\n')
        paid = ("--ledger", "ledger.db", "--dataset", name, "--overwrite", "--json")
        capsys.readouterr()
        assert fit("judged.csv", "judged.toml", *paid) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["guarantee"]["relation"] == relation
        assert told["guarantee"]["unit"]["column"] == "judge"
        assert told["ledger_total"]["budget"] == 3
        model = load_ranker("model.json")
        assert model.guarantee.unit.record == "list"
        assert ("FEATURES ARE NOT PROTECTED" in str(model.guarantee)) is (unit == "labels")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--penalty", "l1"), "would be ignored"),
        (("--model", "svm"), "would be ignored"),
        (("--accept-draft",), "would be ignored"),
        (("--adjacency", "replace-one"), "takes label"),
        (("--adjacency", "person-label"), "takes label"),
        (("--person", "none"), "no column 'none'"),
        (("--solver", "listwise-sgd"), "no proof under"),
        (("--loss", "listmle"), "no bound"),
        (("--solver", "auto", "--loss", "forest"), "forest"),
    ],
)
def test_options_that_do_not_suit_lists_are_refused_and_nothing_is_spent(
    folder, capsys, options, says
):
    init = ("--dataset", "judges", "--epsilon", 3, "--delta", 1e-2, "--adjacency", "label")
    run("ledger", "init", "ledger.db", *init)
    paid = ("--ledger", "ledger.db", "--dataset", "judges")
    assert fit("ranks.csv", "schema.toml", *paid, *options) == 2
    assert says in flat(capsys.readouterr().err)
    assert not Ledger("ledger.db", dataset="judges").entries


def test_the_loss_follows_the_solver(folder):
    assert fit("ranks.csv", "schema.toml", "--solver", "privbr") == 0
    assert load_ranker("model.json").estimator.loss == "bayesrank"
    assert fit("ranks.csv", "schema.toml", "--adjacency", "label", "--overwrite") == 0


def altered(folder, change):
    """The table with other lines."""
    header, *lines = (folder / "ranks.csv").read_text().splitlines()
    (folder / "ranks.csv").write_text("\n".join([header, *change(lines)]) + "\n")


WRONG = {
    "a query that is split": (lambda lines: [*lines[1:], lines[0]], "", "are apart"),
    "no query": (lambda lines: ["," + lines[0].split(",", 1)[1], *lines[1:]], "", "missing"),
    "lists longer than declared": (lambda lines: lines, "max_list_length = 3", "max_list_length"),
    "only lists of one document": (
        lambda lines: [f"{k},{line.split(',', 1)[1]}" for k, line in enumerate(lines)],
        "",
        "no order can be learnt",
    ),
    "a text for a number": (
        lambda lines: [lines[0].replace("0.", "a"), *lines[1:]],
        "",
        "not a number",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_lists_with_a_fault_are_refused_and_nothing_is_spent(folder, capsys, case):
    change, more, says = WRONG[case]
    altered(folder, change)
    (folder / "schema.toml").write_text(SCHEMA + more + "\n")
    init = ("--dataset", "judges", "--epsilon", 3, "--delta", 1e-2, "--adjacency", "label")
    run("ledger", "init", "ledger.db", *init)
    capsys.readouterr()
    assert fit("ranks.csv", "schema.toml", "--ledger", "ledger.db", "--dataset", "judges") == 2
    assert says in flat(capsys.readouterr().err)
    assert not Ledger("ledger.db", dataset="judges").entries
    assert not (folder / "model.json").exists()


@pytest.mark.parametrize(("odd", "read_as"), [("-1", "0"), ("", "0"), ("x", "0"), ("7", "2")])
def test_no_refusal_tells_of_a_grade_outside_its_range(folder, capsys, odd, read_as):
    """It counts as the nearest grade, and as irrelevant if it is missing or no number."""
    weights, said = [], []
    lines = (folder / "ranks.csv").read_text()
    for grade in (odd, read_as):
        (folder / "ranks.csv").write_text(lines)
        altered(folder, lambda all_lines, g=grade: [f"{all_lines[0][:-1]}{g}", *all_lines[1:]])
        assert fit("ranks.csv", "schema.toml", "--overwrite") == 0
        said.append(capsys.readouterr().err)
        weights.append(load_ranker("model.json").estimator.weights_)
    np.testing.assert_array_equal(*weights)
    assert said[0] == said[1]


def test_lists_without_a_relevant_document_are_fitted_as_all_others(folder):
    """Whether there is one is private: a refusal would tell it."""
    altered(folder, lambda lines: [f"{line[:-1]}0" for line in lines])
    assert fit("ranks.csv", "schema.toml") == 0


def test_a_schema_that_nests_too_deeply_is_refused_in_words(folder, capsys):
    (folder / "schema.toml").write_text("x = " + "[" * 100_000)
    assert fit("ranks.csv", "schema.toml") == 2
    assert "too deeply" in flat(capsys.readouterr().err)


@pytest.mark.parametrize(
    "more",
    [
        'unit = "person"',
        "max_list_length = 0",
        "lists_per_person = true",
        'feature_bounds = ["a", "b"]',
        'unit = "list"\nperson = "a b"',
    ],
)
def test_other_schemas_of_lists_are_refused(folder, more):
    (folder / "schema.toml").write_text(SCHEMA + more + "\n")
    assert fit("ranks.csv", "schema.toml") == 2


def test_patterns_and_standard_input_are_read(folder, monkeypatch):
    assert fit("ranks.*csv", "schema.toml") == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("1 qid:4 1:0.5\n0 qid:4 3:0.25 # two\n"))
    table = read_documents(["-"], RankingSchema.read("letor.toml"))
    np.testing.assert_array_equal(table.X, [[0.5, 0, 0], [0, 0, 0.25]])
    with pytest.raises(InvalidArgument, match="the same file"):
        read_documents(["ranks.csv", "ranks.csv"], RankingSchema.read("schema.toml"))


def test_a_ranker_with_a_feature_map_is_read_by_every_verb(folder, capsys):
    table = read_documents(["ranks.csv"], RankingSchema.read("schema.toml"))
    ranker = PrivateRanker(2.0, 1e-3, scorer=QuadraticMap(), max_grade=2, random_state=0)
    ranker.fit(table.X, table.y, qid=table.qid)
    save_ranker(RankingModel(ranker, RankingSchema.read("schema.toml")), "mapped.json")
    assert run("predict", "mapped.json", "ranks.csv", "-o", "scores.csv") == 0
    lines = (folder / "scores.csv").read_text().splitlines()[1:]
    scores = [float(line.split(",")[1]) for line in lines]
    np.testing.assert_allclose(scores, ranker.predict(table.X), rtol=1e-6)
    assert run("evaluate", "mapped.json", "ranks.csv") == 0
    assert run("report", "mapped.json", "-o", "page.html", "--json") == 0
    code = PrivateRanker(2.0, 1e-3, scorer=np.square, max_grade=2, random_state=0)
    code.fit(table.X, table.y, qid=table.qid)
    model = RankingModel(code, RankingSchema.read("schema.toml"))
    save_ranker(model, "code.json", without_map=True)
    capsys.readouterr()
    assert run("predict", "code.json", "ranks.csv") == 2
    assert "saved without its feature map" in flat(capsys.readouterr().err)


def test_the_audit_of_a_ranker_names_its_queries(folder, capsys):
    assert fit("ranks.csv", "schema.toml") == 0
    capsys.readouterr()
    assert run("audit", "model.json", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["releases"][0][1:3] == ["ListStatistic", "docs/proofs/ranking.md"]
    assert {line["name"] for line in told["measured"]} == {"one-release-ranking"}


@pytest.mark.parametrize(
    ("options", "relation", "release"),
    [
        (("--lists", 500), "label", "label statistic"),
        (("--persons", 500, "--unit", "labels"), "person-label", "label statistic"),
        (("--lists", 500, "--unit", "list"), "replace-one", "second moment"),
        (("--persons", 500, "--unit", "person"), "replace-one", "second moment"),
    ],
)
def test_a_plan_of_a_ranking_gives_its_noise(folder, capsys, options, relation, release):
    given = ("plan", *options, "--columns", 20, "--epsilon-range", "1:1")
    assert run(*given, "--json") == 0
    plan = json.loads(capsys.readouterr().out)["plans"][0]
    assert plan["relation"] == relation
    assert plan["releases"][0][0] == release
    assert plan["units_needed"] == pytest.approx(500 * plan["noise"], abs=1)
    assert run(*given) == 0
    assert "no forecast of NDCG" in flat(capsys.readouterr().err)


@pytest.mark.parametrize(
    "options",
    [
        ("--lists", 500, "--persons", 5),
        ("--lists", 500, "--rows", 5),
        ("--lists", 500, "--unit", "person"),
        ("--persons", 500, "--unit", "list"),
        ("--lists", 500, "--adjacency", "replace-one"),
        ("--lists", 500, "--adjacency", "person-label"),
        ("--lists", 500, "--unit", "list", "--adjacency", "label"),
        ("--lists", 500, "--svg", "x.svg"),
        ("--lists", 1),
    ],
)
def test_plans_of_rankings_that_make_no_sense_are_refused(folder, options):
    assert run("plan", *options, "--columns", 20, "--epsilon-range", "1:1") == 2
