"""Fits from the command line in which labels alone are private."""

import json

from conftest_cli import FIT, make_rows, write_csv

from hushfit import Ledger, load_model

LABELS = ("--adjacency", "label")


def test_from_ledger_to_report(hushfit, folder):
    made = hushfit(
        *("ledger", "init", "l.db", "--dataset", "p", "--epsilon", 3, "--delta", 1e-5), *LABELS
    )
    assert made.code == 0, made.err
    fit = (*FIT, "--ledger", "l.db", "--dataset", "p", "-o", "m.json")
    refused = hushfit(*fit)
    assert refused.code != 0
    assert "do not compose" in refused.err
    done = hushfit(*fit, *LABELS, "--json")
    assert done.code == 0, done.err
    guarantee = json.loads(done.out)["guarantee"]
    assert guarantee["relation"] == "label"
    assert "every feature of every row" in guarantee["public"]
    assert any("halfway between the classes" in note for note in guarantee["notes"])
    assert hushfit("evaluate", "m.json", "test.csv").code == 0
    assert hushfit("report", "m.json", "-o", "r.html").code == 0
    assert "<strong>FEATURES ARE NOT PROTECTED" in (folder / "r.html").read_text()
    assert load_model("m.json").standard_error is not None


def test_a_fit_prints_first_what_is_not_protected(hushfit, folder):
    printed = hushfit(*FIT, *LABELS, "-o", "m.json")
    assert printed.code == 0, printed.err
    words = " ".join(printed.out.split())
    assert words.index("FEATURES ARE NOT PROTECTED") < words.index("Differentially private")


def test_a_row_whose_label_is_no_class_keeps_its_features(hushfit, folder):
    """Leaving it out would tell its label to whoever knows the features."""
    from hushfit.data.schema import read_schema
    from hushfit.data.tables import CodedRows, find_tables

    rows = make_rows(50)
    target = read_schema("schema.toml").schema.target.name
    first, *others = rows[target]
    write_csv("odd.csv", {**rows, target: ["neither", *others]})
    write_csv("even.csv", {**rows, target: [first, *others]})
    schema = read_schema("schema.toml").schema
    found = []
    for name in ("odd.csv", "even.csv"):
        with CodedRows.from_tables(find_tables([name]), schema, keep_unlabelled=True) as packed:
            found.append(packed.public_rows().lengths())
    assert (found[0] == found[1]).all()
    assert (found[0] > 0).all()


def test_a_support_vector_machine_is_refused_and_costs_nothing(hushfit, folder):
    hushfit("ledger", "init", "l.db", "--dataset", "p", "--epsilon", 3, "--delta", 1e-5, *LABELS)
    fit = (*FIT, *LABELS, "--model", "svm", "--ledger", "l.db", "--dataset", "p", "-o", "m.json")
    refused = hushfit(*fit)
    assert refused.code != 0
    assert "labels enter it in another way" in " ".join(refused.err.split())
    assert json.loads(hushfit("ledger", "show", "l.db", "--json").out)


PERSON_SCHEMA = '\nperson = "who"\n'


def persons_table(folder):
    """Rows of persons, three each, and a schema that names the column of their ids."""
    rows = make_rows(600)
    write_csv("visits.csv", {**rows, "who": [f"p{k // 3}" for k in range(600)]})
    text = (folder / "schema.toml").read_text().replace('unit = "person"', "")
    (folder / "persons.toml").write_text(PERSON_SCHEMA + text)


VISITS = ("fit", "visits.csv", "--schema", "persons.toml", "--epsilon", 2, "--delta", 1e-5)


def test_labels_of_persons_from_ledger_to_report(hushfit, folder):
    persons_table(folder)
    account = ("ledger", "init", "l.db", "--dataset", "p", "--epsilon", 3, "--delta", 1e-5)
    own = ("--adjacency", "person-label", "--unit", "person", "--person-column", "who")
    assert hushfit(*account, *own).code == 0
    paid = ("--ledger", "l.db", "--dataset", "p", "-o", "m.json")
    done = hushfit(*VISITS, *paid, "--adjacency", "person-label")
    assert done.code == 0, done.err
    words = " ".join(done.out.replace("│", " ").split())
    assert "FEATURES ARE NOT PROTECTED" in words
    assert "all labels of one person" in words
    guarantee = load_model("m.json").guarantee
    assert str(guarantee.relation) == "person-label"
    assert (guarantee.unit.is_person, guarantee.unit.column) == (True, "who")
    assert hushfit("report", "m.json", "-o", "r.html").code == 0
    page = (folder / "r.html").read_text()
    assert "<strong>FEATURES ARE NOT PROTECTED" in page
    assert "Not hidden" in page
    assert "Also hidden" not in page


def test_labels_of_rows_and_of_persons_are_told_apart(hushfit, folder):
    persons_table(folder)
    hushfit("ledger", "init", "l.db", "--dataset", "p", "--epsilon", 3, "--delta", 1e-5, *LABELS)
    paid = ("--ledger", "l.db", "--dataset", "p", "-o", "m.json")
    for fit, relation, says in (
        (VISITS, "label", "Use --adjacency person-label"),
        (FIT, "person-label", "names the column of their ids"),
    ):
        refused = hushfit(*fit, *paid, "--adjacency", relation)
        assert refused.code == 2
        assert says in " ".join(refused.err.split())
    assert not Ledger("l.db", dataset="p").entries


def test_the_guarantee_is_printed_with_its_warning_in_bold(monkeypatch, capsys):
    import io

    from rich.console import Console

    from hushfit import PrivateLogisticRegression
    from hushfit.cli import _printing

    shown = io.StringIO()
    terminal = Console(file=shown, force_terminal=True, width=120)
    monkeypatch.setattr(_printing, "console", lambda: terminal)
    model = PrivateLogisticRegression(2.0, 1e-5, adjacency="label", classes=[0, 1])
    model.fit([[0.0], [1.0]] * 20, [0, 1] * 20)
    _printing.print_guarantee(model.privacy_)
    assert "\x1b[1mFEATURES ARE NOT PROTECTED" in shown.getvalue()
    assert "\x1b[1mDifferentially" not in shown.getvalue()


def test_a_plan_for_labels_has_the_one_algorithm_with_a_proof(hushfit, folder, monkeypatch):
    few = dict.fromkeys(("proximal-gd", "one-release"))
    monkeypatch.setattr("hushfit.forecast._accuracy.SOLVERS", few)
    plan = ("plan", "--columns", 20, "--epsilon-range", "1:1", "--solver", "all", "--json")
    rows = hushfit(*plan, "--rows", 5000, *LABELS)
    assert rows.code == 0, rows.err
    own = rows.json["plans"][0]
    assert [noise["solver"] for noise in own["noise"]] == ["one-release"]
    whole = hushfit(*plan, "--rows", 5000).json["plans"][0]
    assert own["loss"] < whole["loss"]
    assert "one-release" not in [noise["solver"] for noise in whole["noise"]]
    persons = hushfit(*plan, "--persons", 5000, "--adjacency", "person-label")
    assert persons.json["plans"][0]["noise"] == own["noise"]
    for wrong in (("--persons", 5000, *LABELS), ("--rows", 50, "--adjacency", "person-label")):
        assert hushfit(*plan, *wrong).code == 2


def test_labels_are_attacked_by_name(hushfit, folder):
    attack = ("audit", "--solver", "one-release", "--trials", 120, "--json")
    for given, relation, unit in (
        ((), "label", "one row"),
        (("--adjacency", "person-label"), "person-label", "one person"),
    ):
        found = hushfit(*attack, *given)
        assert found.code == 0, found.err
        assert (found.json["relation"], found.json["unit"]) == (relation, unit)
        assert found.json["verdict"] != "violated"
        assert found.json["measured"] > 0.5
    refused = hushfit(*attack, "--adjacency", "replace-one")
    assert refused.code == 2
    assert "label or person-label" in refused.out
    listed = hushfit("audit", "--list")
    assert "one-release-ranking" in listed.out


def test_a_verb_without_a_subcommand_prints_its_help(hushfit):
    for verb in ((), ("ledger",)):
        told = hushfit(*verb)
        assert told.code == 2
        assert told.err.startswith("Usage: hushfit")
        assert "error:" not in told.err


def test_predictions_keep_columns_of_the_table(hushfit, model):
    assert hushfit("predict", "model.json", "test.csv", "-o", "all.csv").code == 0
    kept = hushfit("predict", "model.json", "test.csv", "--keep", "name", "--keep", "city")
    assert kept.code == 0, kept.err
    header, first = kept.out.splitlines()[:2]
    assert header == "name,city,prediction,p(no),p(yes)"
    assert first.startswith('"P ""0""",')
    assert first.endswith(folder_lines("all.csv")[1])
    for wrong, says in ((("none",), "none"), (("name", "name"), "twice")):
        refused = hushfit(
            "predict", "model.json", "test.csv", *(x for n in wrong for x in ("--keep", n))
        )
        assert refused.code == 2
        assert says in refused.err


def folder_lines(name):
    from pathlib import Path

    return Path(name).read_text().splitlines()
