"""The schema's encoding, and the census table that comes with the library."""

import copy
import json
import pickle
import sys
import tomllib
from importlib.resources import files

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushfit.data.schema._schema import CategoricalColumn, NumericColumn, Schema, encode
from hushfit.datasets import ADULT_SCHEMA, load_adult
from hushfit.errors import InvalidArgument

SCHEMA = Schema(
    columns=(
        NumericColumn("age", low=17, high=90, fill=40),
        NumericColumn("gain", low=0, high=999, transform="log1p"),
        CategoricalColumn("colour", ("red", "blue", "7")),
    ),
    target=CategoricalColumn("label", ("no", "yes")),
    unit="person",
)

cells = st.one_of(
    st.none(),
    st.floats(),
    st.integers(),
    st.booleans(),
    st.sampled_from(["red", " blue", "7", "7.0", "1e3", "", "?"]),
    st.text(),
)
tables = st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=8)


def as_columns(rows):
    return dict(zip(("age", "gain", "colour"), map(list, zip(*rows, strict=True)), strict=True))


@settings(deadline=None)
@given(rows=tables)
def test_a_row_is_encoded_as_if_it_were_alone(rows):
    together, _ = encode(as_columns(rows), SCHEMA)
    alone = np.vstack([encode(as_columns([row]), SCHEMA)[0] for row in rows])
    np.testing.assert_array_equal(together, alone)


@settings(deadline=None)
@given(rows=tables)
def test_whatever_is_in_the_table_the_encoding_is_in_the_unit_cube(rows):
    X, names = encode(as_columns(rows), SCHEMA)
    assert X.shape == (len(rows), len(names))
    assert ((X >= 0) & (X <= 1)).all()
    np.testing.assert_array_equal(X[:, 2:].sum(axis=1), 1.0)


def test_numbers_are_clipped_filled_and_scaled():
    column = NumericColumn("age", low=20, high=70, fill=45)
    values = np.array([-np.inf, 10, 20, 45, 70, 80, np.inf, np.nan])
    np.testing.assert_allclose(column.encode(values), [0, 0, 0, 0.5, 1, 1, 1, 0.5])
    np.testing.assert_allclose(
        column.encode(np.array(["45", " 57.5 ", "many", ""])), [0.5, 0.75, 0.5, 0.5]
    )


def test_a_missing_number_without_a_fill_becomes_the_lower_bound():
    assert NumericColumn("age", low=20, high=70).encode(np.array([np.nan])).tolist() == [0.0]


def test_log1p_scales_between_the_transformed_bounds():
    column = NumericColumn("gain", low=0, high=999, transform="log1p")
    np.testing.assert_allclose(
        column.encode(np.array([0, 9, 99, 999, 10**6])), [0, 1 / 3, 2 / 3, 1, 1], atol=1e-15
    )


def test_unlisted_and_missing_categories_share_the_last_feature():
    column = CategoricalColumn("colour", ("red", "blue"))
    values = np.array(["red", " blue ", "mauve", "<other>", None, np.nan, pd.NA], dtype=object)
    assert column.codes(values).tolist() == [0, 1, 2, 2, 2, 2, 2]
    assert column.feature_names == ["colour=red", "colour=blue", "colour=<other>"]


def test_an_integer_category_is_the_same_beside_a_missing_value():
    """pandas stores integers as floats as soon as one is missing; the other rows must not
    change.
    """
    column = CategoricalColumn("code", ("1", "2"))
    assert column.codes(np.array([1, 2])).tolist() == [0, 1]
    assert column.codes(pd.Series([1, 2, None]).to_numpy()).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "frame", [dict, pd.DataFrame, pl.DataFrame], ids=["dict", "pandas", "polars"]
)
def test_every_kind_of_table_is_encoded_alike(frame):
    table = {
        "age": [20, 95, None],
        "gain": [0, 10, 500],
        "colour": ["red", "mauve", None],
        "unused": [1, 2, 3],
    }
    X, names = encode(frame(table), SCHEMA)
    assert names == ["age", "gain", "colour=red", "colour=blue", "colour=7", "colour=<other>"]
    np.testing.assert_allclose(X[:, 0], [3 / 73, 1, 23 / 73])
    np.testing.assert_array_equal(X[:, 2:], [[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1]])


@pytest.mark.parametrize("schema", [SCHEMA, ADULT_SCHEMA], ids=["small", "adult"])
def test_a_schema_survives_a_round_trip(schema):
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert pickle.loads(pickle.dumps(schema)) == copy.deepcopy(schema) == schema
    assert hash(Schema.from_dict(schema.to_dict())) == hash(schema)


def test_a_schema_is_read_from_toml():
    text = """
        unit = "person"
        [target]
        name = "label"
        kind = "categorical"
        categories = ["no", "yes"]
        [columns.age]
        kind = "numeric"
        low = 17
        high = 90
        fill = 40
        [columns.gain]
        kind = "numeric"
        low = 0
        high = 999
        transform = "log1p"
        [columns.colour]
        kind = "categorical"
        categories = ["red", "blue", 7]
    """
    assert Schema.from_dict(tomllib.loads(text)) == SCHEMA


AGE = {"kind": "numeric", "low": 0, "high": 1}
FAULTS = {
    "no public range": {"columns": {"age": {"kind": "numeric", "low": 0}}},
    "no public vocabulary": {"columns": {"sex": {"kind": "categorical"}}},
    "kind='time'": {"columns": {"day": {"kind": "time"}}},
    "kind=None": {"columns": {"day": {}}},
    "unknown keys \\['hihg'\\]": {"columns": {"age": AGE | {"hihg": 2}}},
    "unknown keys \\['colums'\\]": {"colums": {}},
    "low < high": {"columns": {"age": AGE | {"low": 1}}},
    "finite": {"columns": {"age": AGE | {"high": float("inf")}}},
    "outside its range": {"columns": {"age": AGE | {"fill": -1}}},
    "transform='sqrt'": {"columns": {"age": AGE | {"transform": "sqrt"}}},
    "needs low > -1": {"columns": {"age": AGE | {"low": -1, "transform": "log1p"}}},
    "each once; '<other>'": {"columns": {"sex": {"kind": "categorical", "categories": ["f", "f"]}}},
    "added by the encoding": {
        "columns": {"sex": {"kind": "categorical", "categories": ["f", "<other>"]}}
    },
    "list of labels": {"columns": {"sex": {"kind": "categorical", "categories": "fm"}}},
    "lists the columns \\[\\]": {"columns": {}},
    "target has no name": {"columns": {"age": AGE}, "target": AGE},
    "also among": {"columns": {"age": AGE}, "target": AGE | {"name": "age"}},
}


@pytest.mark.parametrize(("message", "description"), FAULTS.items(), ids=list(FAULTS))
def test_a_faulty_schema_is_refused_with_the_reason(message, description):
    with pytest.raises(InvalidArgument, match=message):
        Schema.from_dict(description)


def test_a_column_cannot_be_listed_twice():
    with pytest.raises(InvalidArgument, match="each once"):
        Schema((NumericColumn("age", 0, 1), NumericColumn("age", 0, 2)))


@pytest.mark.parametrize(
    ("message", "table"),
    {
        "no column 'gain'": {"age": [1]},
        "different lengths": {"age": [1], "gain": [1, 2], "colour": ["red"]},
        "shape \\(1, 2\\)": {"age": np.ones((1, 2))},
    }.items(),
)
def test_a_table_that_does_not_fit_the_schema_is_refused(message, table):
    with pytest.raises(InvalidArgument, match=message):
        encode(table, SCHEMA)


@pytest.fixture(scope="module")
def adult():
    return load_adult()


def test_adult_has_the_published_counts(adult):
    """48,842 rows, 11,687 above 50K, 7,841 of these among the 32,561 training rows; 6,465
    unknown cells.
    """
    assert adult.X.shape == (48_842, len(adult.feature_names))
    assert adult.y.sum() == (adult.target == ">50K").sum() == 11_687
    assert adult.y[:32_561].sum() == 7_841
    assert (
        sum((column == "?").sum() for column in adult.columns.values() if column.dtype.kind == "U")
        == 6_465
    )


def test_adult_begins_and_ends_as_the_uci_files_do(adult):
    first = {name: column[0] for name, column in adult.columns.items()}
    assert first == {
        "age": 39,
        "workclass": "State-gov",
        "education": "Bachelors",
        "education-num": 13,
        "marital-status": "Never-married",
        "occupation": "Adm-clerical",
        "relationship": "Not-in-family",
        "race": "White",
        "sex": "Male",
        "capital-gain": 2174,
        "capital-loss": 0,
        "hours-per-week": 40,
        "native-country": "United-States",
    }
    assert (adult.columns["age"][-1], adult.columns["workclass"][-1], adult.target[-1]) == (
        35,
        "Self-emp-inc",
        ">50K",
    )


def test_adult_splits_are_the_two_uci_files(adult):
    train, test = load_adult(split="train"), load_adult(split="test")
    assert (len(train.y), len(test.y)) == (32_561, 16_281)
    np.testing.assert_array_equal(np.vstack([train.X, test.X]), adult.X)
    np.testing.assert_array_equal(np.concatenate([train.target, test.target]), adult.target)


def test_adult_education_and_its_number_say_the_same(adult):
    pairs = set(
        zip(
            adult.columns["education"].tolist(),
            adult.columns["education-num"].tolist(),
            strict=True,
        )
    )
    assert len(pairs) == 16
    assert {("Bachelors", 13), ("HS-grad", 9), ("Preschool", 1), ("Doctorate", 16)} <= pairs


def test_adult_lies_within_its_public_ranges(adult):
    """Nothing is clipped: only '?' is outside the documented ranges and vocabularies."""
    for column in adult.schema.columns:
        values = adult.columns[column.name]
        if isinstance(column, NumericColumn):
            assert values.min() >= column.low
            assert values.max() <= column.high
        else:
            assert set(np.unique(values)) <= {*column.categories, "?"}
            np.testing.assert_array_equal(
                column.codes(values) == len(column.categories), values == "?"
            )


def test_adult_is_encoded_by_its_own_schema(adult):
    X, names = encode(adult.columns, adult.schema)
    np.testing.assert_array_equal(X, adult.X)
    assert names == adult.feature_names == adult.schema.feature_names
    assert ((adult.X >= 0) & (adult.X <= 1)).all()
    assert "fnlwgt" not in adult.columns


def test_adult_as_arrays_and_as_a_frame(adult):
    X, y = load_adult(return_X_y=True)
    np.testing.assert_array_equal(X, adult.X)
    np.testing.assert_array_equal(y, adult.y)
    frame = adult.to_frame()
    assert frame.shape == (48_842, 14)
    np.testing.assert_array_equal(encode(frame, adult.schema)[0], adult.X)
    assert frame["income"].tolist() == adult.target.tolist()


def test_a_frame_without_pandas_names_the_extra(adult, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InvalidArgument, match=r"pip install 'hushfit\[frames\]'"):
        adult.to_frame()


def test_an_unknown_split_is_refused():
    with pytest.raises(InvalidArgument, match="split='validation'"):
        load_adult(split="validation")


def test_the_bundled_table_is_small_and_carries_its_attribution():
    folder = files("hushfit.datasets")
    assert len(folder.joinpath("adult.npz").read_bytes()) < 700_000
    attribution = folder.joinpath("adult.txt").read_text()
    assert all(
        words in attribution for words in ("Becker", "Kohavi", "10.24432/C5XW20", "CC BY 4.0")
    )
