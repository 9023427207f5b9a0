"""The positive class that a schema names, from the draft to the report."""

from pathlib import Path

import pytest
from conftest_cli import FIT, SCHEMA, make_rows, write_csv

from hushfit import load_model
from hushfit.data.schema import read_schema

NAMED = SCHEMA.replace('"no"]', '"no"]\npositive = "no"')


@pytest.fixture
def named(hushfit, folder):
    """A model whose positive class is the first of the sorted ones."""
    Path("schema.toml").write_text(NAMED)
    assert hushfit(*FIT, "--seed", 0, "--threshold", 0.3, "-o", "model.json").code == 0
    return "model.json"


def test_every_page_and_score_speaks_of_it(hushfit, named):
    model = load_model(named)
    assert (model.classes, model.outputs) == (["no", "yes"], ["no"])
    predicted = hushfit("predict", named, "test.csv", "-o", "p.csv")
    assert predicted.code == 0
    head, *lines = Path("p.csv").read_text().splitlines()
    assert head == "prediction,p(no),p(yes)"
    labels, no, _ = zip(*(line.split(",") for line in lines), strict=True)
    assert [label == "no" for label in labels] == [float(p) >= 0.3 for p in no]
    scores = hushfit("evaluate", named, "test.csv", "--json").json
    assert scores["positive"] == "no"
    counted = scores["confusion"]["counts"]
    assert scores["pr_auc_baseline"] == pytest.approx(sum(counted[0]) / scores["rows"])
    told = hushfit("evaluate", named, "test.csv").out
    assert "probability of no" in told
    assert "average precision for no" in " ".join(told.split())
    assert hushfit("report", named, "--held-out", "test.csv", "-o", "r.html").code == 0
    page = Path("r.html").read_text()
    assert "Towards no" in page
    assert "the probability of no" in page
    age = model.feature_names.index("age")
    assert model.weights[0][0, age] == -model.shown_weights[0][0, age] > 0


def test_areas_under_curves_do_not_depend_on_who_is_positive(hushfit, named):
    """The area of a ROC curve is the same for both; that of precision and recall is not."""
    one = hushfit("evaluate", named, "test.csv", "--json").json
    Path("schema.toml").write_text(SCHEMA)
    assert hushfit(*FIT, "--seed", 0, "--threshold", 0.7, "-o", "other.json").code == 0
    other = hushfit("evaluate", "other.json", "test.csv", "--json").json
    assert one["auc"] == pytest.approx(other["auc"])
    assert one["accuracy"] == other["accuracy"]
    assert one["pr_auc"] != other["pr_auc"]


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        (("ja", "nein"), "ja"),
        (("No", "YES"), "YES"),
        (("absent", "present"), "present"),
        (("not readmitted", "readmitted"), "readmitted"),
        (("0", "1"), "1"),
        (("cat", "dog"), "dog"),
        (("a", "b", "c"), None),
    ],
)
def test_a_draft_proposes_it(hushfit, labels, positive):
    rows = make_rows(600)
    rows["ill"] = [labels[k % len(labels)] for k in range(600)]
    write_csv("draft.csv", rows)
    assert hushfit("schema", "draft.csv", "--target", "ill", "-o", "draft.toml").code == 0
    draft = read_schema("draft.toml")
    assert draft.schema.target.positive == positive
    assert "ill" in draft.unconfirmed


def test_a_name_that_is_no_class_is_refused(hushfit, folder):
    Path("schema.toml").write_text(NAMED.replace('positive = "no"', 'positive = "No"'))
    refused = hushfit(*FIT, "-o", "model.json")
    assert refused.code == 2
    assert "positive='No', which is not among its categories ['yes', 'no']" in refused.err
    assert not Path("model.json").exists()
