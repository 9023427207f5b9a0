"""What would be ignored is refused before payment: options of the command line, and of schemas."""

from pathlib import Path

import pytest
from conftest_cli import FIT, SCHEMA, make_rows, write_csv

from hushfit import PrivateLogisticRegression
from hushfit.data.tables import CodedRows, find_tables
from hushfit.errors import InvalidArgument

LISTS = """
target = "grade"
query = "q"
max_grade = 2
columns = ["a", "b"]
"""
NUMBERS = SCHEMA.replace(
    'kind = "categorical"\ncategories = ["yes", "no"]', 'kind = "numeric"\nlow = 0\nhigh = 1', 1
)
OF_SCHEMAS = {
    "curves of a network": ('features = "additive"', ("--model", "mlp"), "Delete that line"),
    "a length of a network": ('scaling = "public"', ("--model", "mlp"), "--scaling unit"),
    "a length with intervals": ('scaling = "public"', ("--inference",), "--scaling unit"),
}
OF_FITS = {
    "intervals of a network": ("--model", "mlp", "--even-weights"),
    "a threshold of a network": ("--model", "mlp", "--threshold", 0.3),
    "a cache of a network": ("--model", "mlp", "--cache", "kept"),
    "a share of the lasso of a ridge": ("--penalty", "l2", "--l1-ratio", 0.3),
    "a threshold of a machine without probabilities": ("--model", "svm", "--threshold", 0.3),
}
OF_LISTS = {
    "--features": "additive",
    "--scaling": "public",
    "--inference": None,
    "--hidden": "8",
    "--constraint": "chain",
    "--monotone": "a=+1",
    "--smoothness": 0.1,
    "--cov-type": "robust",
}
OF_PLANS = {
    "--solver": ("newton", "--inference"),
    "--target-loss": (0.1, "--model", "linear"),
    "--classes": (3, "--model", "poisson"),
    "--penalty": ("l1", "--inference"),
    "--model": ("svm", "--theory"),
}


@pytest.mark.parametrize("case", OF_SCHEMAS)
def test_entries_of_a_schema(hushfit, folder, case):
    entry, options, remedy = OF_SCHEMAS[case]
    Path("schema.toml").write_text(f"{entry}\n{SCHEMA}")
    refused = hushfit(*FIT, *options, "-o", "m.json")
    assert refused.code == 2
    assert "Nothing was spent" in refused.err
    assert remedy in refused.err
    assert not Path("m.json").exists()


def test_a_length_of_a_model_of_numbers(hushfit, folder):
    Path("schema.toml").write_text(f'scaling = "public"\n{NUMBERS}')
    refused = hushfit(*FIT, "-o", "m.json")
    assert refused.code == 2
    assert "not for linear, whose rows keep their lengths. Delete it" in refused.err
    assert hushfit(*FIT, "--scaling", "unit", "-o", "m.json").code == 0


def test_a_length_with_intervals_in_python(hushfit, folder):
    from hushfit.data.schema import read_schema

    Path("schema.toml").write_text(f'scaling = "public"\n{SCHEMA}')
    schema = read_schema("schema.toml").schema
    with CodedRows.from_tables(find_tables(["train.csv"]), schema) as rows:
        model = PrivateLogisticRegression(inference=True, delta=1e-5, feature_bounds=(0, 1))
        with pytest.raises(InvalidArgument, match="for classifiers without intervals"):
            model.fit(rows)


@pytest.mark.parametrize("case", OF_FITS)
def test_options_of_fits(hushfit, folder, case):
    *_, option, _ = OF_FITS[case] if case != "intervals of a network" else (*OF_FITS[case], None)
    refused = hushfit(*FIT, *OF_FITS[case], "-o", "m.json")
    assert refused.code == 2
    assert f"{option} would be ignored" in refused.err
    assert not Path("m.json").exists()


@pytest.mark.parametrize("option", OF_LISTS)
def test_options_of_fits_of_lists(hushfit, option):
    Path("lists.toml").write_text(LISTS)
    write_csv("lists.csv", {"grade": [0, 1], "q": [1, 1], "a": [0, 1], "b": [1, 0]})
    value = () if OF_LISTS[option] is None else (OF_LISTS[option],)
    fit = ("fit", "lists.csv", "--schema", "lists.toml", "--epsilon", 1, "--delta", 0.1)
    refused = hushfit(*fit, option, *value, "-o", "m.json")
    assert refused.code == 2
    assert f"{option} would be ignored: lists.toml has a `query`" in refused.err


@pytest.mark.parametrize("option", OF_PLANS)
def test_options_of_plans(hushfit, option):
    value, *kind = OF_PLANS[option]
    refused = hushfit("plan", "--rows", 500, "--columns", 3, *kind, option, value)
    assert refused.code == 2
    assert f"{option} would be ignored" in refused.err


def test_a_network_has_no_plan(hushfit):
    refused = hushfit("plan", "--rows", 500, "--columns", 3, "--model", "mlp")
    assert refused.code == 2
    assert "no plan for networks" in refused.err


def test_how_a_table_is_written_without_a_table(hushfit, model):
    for verb in ("report", "card"):
        refused = hushfit(verb, "model.json", "--header", 2, "-o", "out")
        assert refused.code == 2
        assert "--header would be ignored: there is no --held-out TABLE" in refused.err
        assert not Path("out").exists()


def test_options_of_drafts_of_lists(hushfit):
    write_csv("lists.csv", {"grade": [0, 1], "q": [1, 1], "a": [0, 1], "b": [1, 0]})
    draft = ("schema", "lists.csv", "--target", "grade", "--query", "q", "-o", "l.toml")
    for option in (("--decimal", ","), ("--target-kind", "count")):
        refused = hushfit(*draft, *option)
        assert refused.code == 2
        assert "not for lists of documents" in refused.err
    assert hushfit("schema", "lists.csv", "--columns", "--target", "grade").code == 2
    assert not Path("l.toml").exists()


def test_a_relation_without_private_scores(hushfit, model):
    write_csv("test.csv", make_rows(50))
    refused = hushfit("evaluate", "model.json", "test.csv", "--adjacency", "add-remove")
    assert refused.code == 2
    assert "--adjacency: only with --private" in refused.err
