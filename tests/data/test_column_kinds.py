"""Columns of a schema: dates, hashed labels, marks of missing values, decimal commas. Each cell is
read by itself, and packed rows are those of the matrix.
"""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hushfit.data.schema import (
    CategoricalColumn,
    DateColumn,
    HashedColumn,
    NumericColumn,
    Schema,
    SchemaFile,
    encode,
    parse_schema,
    schema_to_toml,
)
from hushfit.data.tables import RowCodec
from hushfit.errors import InvalidArgument

DATE = DateColumn("admitted", "2020-01-01", "2021-12-31", ("since", "year", "month", "weekday"))
COLUMNS = (
    NumericColumn("age", 0, 100, missing="indicator", missing_values=(-9, "?")),
    NumericColumn("dose", 0, 2000, decimal=","),
    CategoricalColumn("city", ("Ulm", "Bonn"), missing="indicator", missing_values=("?",)),
    DATE,
    HashedColumn("icd", columns=8, missing_values=("?",)),
)
SCHEMA = Schema(COLUMNS, CategoricalColumn("ill", ("no", "yes")))
CELLS = {
    "age": ["50", "-9", "?", "", "200"],
    "dose": ["1.234,5", "3,5", "17", "1.5", ""],
    "city": ["Ulm", "?", "", "Paris", "Bonn"],
    "admitted": ["2020-01-01", "2021-12-31 10:30:00", "", "31.12.2020", "1999-06-01"],
    "icd": ["V57", "250.01", "?", "", "V57"],
}


def parts(row):
    """The features of a row that are not zero."""
    X, names = encode({name: [cells[row]] for name, cells in CELLS.items()}, SCHEMA)
    return {name: value for name, value in zip(names, X[0], strict=True) if value}


def test_each_kind_is_encoded_as_its_documentation_says():
    first, second, third = parts(0), parts(1), parts(2)
    assert first["age"] == 0.5
    assert first["dose"] == pytest.approx(1234.5 / 2000)
    assert {"city=Ulm", "admitted year=2020", "admitted month=01", "admitted weekday=Wed"} <= {
        *first
    }
    assert second["age=<missing>"] == second["city=<missing>"] == 1.0
    assert second["admitted"] == 1.0
    assert {"admitted year=2021", "admitted month=12", "admitted weekday=Fri"} <= {*second}
    assert third["age=<missing>"] == third["city=<missing>"] == third["icd=<missing>"] == 1.0
    assert third["admitted=<missing>"] == third["admitted month=<missing>"] == 1.0
    assert third["admitted"] == 0.5
    assert "dose" not in parts(3)  # 1.5 is no number with a decimal comma
    assert parts(3)["city=<other>"] == parts(3)["admitted=<missing>"] == 1.0
    assert "admitted" not in parts(4)  # before the range
    assert parts(4)["admitted month=06"] == parts(4)["admitted year=2020"] == 1.0


def test_the_calendar_is_that_of_python():
    days = [datetime.date(2019, 12, 25) + datetime.timedelta(k) for k in range(900)]
    _, _, year, month, weekday = DATE.words(np.array([str(day) for day in days]))
    assert month.tolist() == [day.month - 1 for day in days]
    assert weekday.tolist() == [day.weekday() for day in days]
    assert year.tolist() == [min(max(day.year, 2020), 2021) - 2020 for day in days]


@pytest.mark.parametrize(
    "cells",
    [
        ["2020-03-04"],
        ["2020-03-04T05:06:07Z"],
        [datetime.date(2020, 3, 4)],
        [datetime.datetime(2020, 3, 4, 5, 6)],
        np.array(["2020-03-04"], dtype="datetime64[D]"),
        pd.Series(pd.to_datetime(["2020-03-04 05:06:07.123"])),
        ["04/03/2020"],
    ],
    ids=["iso", "zone", "date", "datetime", "numpy", "pandas", "format"],
)
def test_dates_are_read_in_every_type(cells):
    column = DateColumn("d", "2000-01-01", "2030-01-01", format="%d/%m/%Y")
    given = np.array(cells, dtype=object) if isinstance(cells, list) else np.asarray(cells)
    assert column.days(given).tolist() == [datetime.date(2020, 3, 4).toordinal()]


def test_packed_rows_are_the_rows_of_the_matrix_and_each_is_packed_alone():
    codec, n = RowCodec(SCHEMA), len(CELLS["age"])
    batch = pa.record_batch({name: pa.array(cells) for name, cells in CELLS.items()})
    expected, names = encode(CELLS, SCHEMA)
    assert codec.n_features == len(names) == expected.shape[1]
    np.testing.assert_allclose(codec.matrix(batch).toarray(), expected, atol=1e-7)
    together = codec.pack(batch)
    for k in range(n):
        alone = codec.pack(batch.slice(k, 1))
        for own, all_ in zip(alone, together, strict=True):
            assert own.tobytes() == all_[k : k + 1].tobytes()


def test_typed_columns_are_read_like_texts():
    texts = {"age": ["50", None], "dose": ["3,5", None], "city": ["Ulm", None], "icd": ["12", None]}
    batch = pa.record_batch(
        {
            "age": pa.array([50, None], pa.int16()),
            "dose": pa.array([3.5, None]),
            "city": pa.array(["Ulm", None]).dictionary_encode(),
            "admitted": pa.array([datetime.date(2020, 3, 4), None]),
            "icd": pa.array([12, None], pa.int64()),
        }
    )
    expected, _ = encode({**texts, "admitted": ["2020-03-04", None]}, SCHEMA)
    np.testing.assert_allclose(RowCodec(SCHEMA).matrix(batch).toarray(), expected, atol=1e-7)


def test_a_schema_of_all_kinds_survives_its_file():
    file = SchemaFile(SCHEMA, ("admitted",))
    assert parse_schema(schema_to_toml(file)) == file


def test_a_hash_is_the_same_everywhere():
    """Pinned: a model file must mean the same in ten years."""
    column = HashedColumn("icd", columns=64)
    assert column.codes(np.array(["V57", "250.01", "Ä"], dtype=object)).tolist() == PINNED
    whole = np.array([250, 250.0, "250"], dtype=object)
    assert len(set(column.codes(whole).tolist())) == 1


PINNED = [42, 27, 10]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kind": "date"}, "no public range of dates"),
        ({"kind": "date", "low": "2020-13-01", "high": "2021-01-01"}, "2020-13-01"),
        ({"kind": "date", "low": "2021-01-01", "high": "2020-01-01"}, "low < high"),
        ({"kind": "date", "low": "2020-01-01", "high": "2021-01-01", "parts": ["hour"]}, "since"),
        ({"kind": "date", "low": "0001-01-01", "high": "2021-01-01", "parts": ["year"]}, "200"),
        ({"kind": "date", "low": "2020-01-01", "high": "2021-01-01", "format": "d/m"}, "%d/%m/%Y"),
        ({"kind": "hashed", "columns": 1}, "from 2 to 4096"),
        ({"kind": "hashed", "missing_values": "?"}, "Give a list"),
        ({"kind": "numeric", "low": 0, "high": 1, "decimal": ";"}, "Write '.' or ','"),
        ({"kind": "numeric", "low": 0, "high": 1, "missing_values": [[1]]}, "Give a list"),
        ({"kind": "categorical", "categories": ["a"], "missing": "fill"}, "'other' or 'indicator'"),
        (
            {"kind": "categorical", "categories": ["a", "?"], "missing_values": ["?"]},
            "Keep one",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_settings_name_the_value_and_the_remedy(settings, words):
    with pytest.raises(InvalidArgument, match=r"(column|of) 'c'") as raised:
        Schema.from_dict({"columns": {"c": settings}})
    assert words in str(raised.value)
