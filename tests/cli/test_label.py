"""Fits from the command line in which labels alone are private."""

import json

from conftest_cli import FIT, make_rows, write_csv

from hushfit import load_model

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
