"""``hushfit plan --schema``: sizes, classes and unit from the schema instead of by hand."""

from pathlib import Path

import pytest
from conftest_cli import SCHEMA

from hushfit.data.design import MainEffects
from hushfit.data.schema import read_schema

RANGE = ("--epsilon-range", "1:1", "--json")
LISTS = 'target = "grade"\nquery = "q"\nmax_grade = 3\ncolumns = ["a", "b"]\nunit = "list"\n'


@pytest.fixture
def schema(hushfit):
    def write(text):
        Path("s.toml").write_text(text)
        return ("plan", "--schema", "s.toml")

    return write


NUMBERS = SCHEMA.replace('kind = "categorical"\ncategories = ["yes", "no"]', "low = 0\nhigh = 9")
KINDS = {
    "classes": (SCHEMA, ("--rows", 5000), ("--rows", 5000, "--columns", 5)),
    "several classes": (
        SCHEMA.replace('"no"', '"no", "maybe"'),
        ("--rows", 5000),
        ("--rows", 5000, "--columns", 5, "--classes", 3),
    ),
    "persons": (
        'person = "id"\n' + SCHEMA.replace('unit = "person"', ""),
        ("--persons", 5000),
        ("--persons", 5000, "--columns", 5),
    ),
    "numbers": (
        NUMBERS.replace("low = 0\n", 'kind = "numeric"\nlow = 0\n', 1),
        ("--rows", 5000),
        ("--rows", 5000, "--columns", 5, "--model", "linear"),
    ),
    "a penalty": (
        f'{SCHEMA}\n[penalty]\nname = "l1"\n',
        ("--rows", 5000),
        ("--rows", 5000, "--columns", 5, "--penalty", "l1"),
    ),
    "theorems": (
        SCHEMA,
        ("--rows", 5000, "--theory"),
        ("--rows", 5000, "--columns", 5, "--theory"),
    ),
    "lists": (LISTS, ("--lists", 300), ("--lists", 300, "--columns", 2, "--unit", "list")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_by_a_schema_is_the_plan_of_its_sizes(hushfit, schema, kind):
    text, options, by_hand = KINDS[kind]
    found = hushfit(*schema(text), *options, *RANGE)
    assert found.code == 0, found.err
    assert found.json == hushfit("plan", *by_hand, *RANGE).json


def test_several_classes_have_releases_of_their_own(hushfit):
    sizes = ("plan", "--rows", 5000, "--columns", 5, *RANGE)
    two, three = (hushfit(*sizes, "--classes", k).json["plans"][0] for k in (2, 3))
    assert two["loss"] == three["loss"]
    assert two["noise"] != three["noise"]


def test_intervals_are_planned_with_the_columns_that_they_are_about(hushfit, schema):
    found = hushfit(*schema(SCHEMA), "--rows", 50_000, "--inference", *RANGE).json
    assert found["columns"] == len(MainEffects(read_schema("s.toml").schema).names) < 5


def test_without_a_number_of_rows_it_says_how_many_are_needed(hushfit, schema):
    found = hushfit(*schema(SCHEMA), *RANGE).json
    (plan,) = found["plans"]
    expected, low, high = plan["rows_needed"]
    assert low < expected < high
    by_hand = hushfit("plan", "--rows", 5000, "--columns", 5, "--delta", found["delta"], *RANGE)
    assert by_hand.json["plans"][0]["rows_needed"] == plan["rows_needed"]
    assert "With --rows" in hushfit(*schema(SCHEMA)).err


WRONG = {
    "columns twice": (SCHEMA, ("--columns", 5), "s.toml states what --columns would"),
    "classes twice": (SCHEMA, ("--classes", 2), "s.toml states what --classes would"),
    "persons of rows": (SCHEMA, ("--persons", 9), "names no column of ids"),
    "rows of persons": (KINDS["persons"][0], ("--rows", 9), "--persons instead of --rows"),
    "lists of rows": (SCHEMA, ("--lists", 9), "--lists is for a schema with a `query`"),
    "lists without a number": (LISTS, (), "Give --lists"),
    "another model": (SCHEMA, ("--model", "linear"), "describes as classes"),
    "a figure of nothing": (SCHEMA, ("--svg", "p.svg"), "Give --rows"),
    "no target": (SCHEMA.split("[target]")[0] + "[columns.a]\nkind='hashed'", (), "[target]"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_does_not_fit_the_schema_is_refused(hushfit, schema, wrong):
    text, options, why = WRONG[wrong]
    refused = hushfit(*schema(text), *options)
    assert refused.code == 2
    assert why in refused.err


def test_sizes_by_hand_are_asked_for(hushfit):
    assert "--columns, the number of encoded columns, or --schema" in hushfit("plan").err
