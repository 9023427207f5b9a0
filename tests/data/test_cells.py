"""No cell changes how another one is read, for every library that holds the column and every type
that it then has.
"""

import datetime
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushfit.data.schema._cells import label_of, listed, number_of
from hushfit.data.schema._schema import CategoricalColumn, NumericColumn, Schema, encode
from hushfit.data.tables import RowCodec
from hushfit.errors import InvalidArgument

BIG = 2**53 + 1


def lenient_polars(values):
    """Numbers, truth values and texts as polars mixes them; it mixes dates only by dropping their
    type.
    """
    return pl.Series(
        values,
        strict=any(isinstance(value, datetime.date | datetime.timedelta) for value in values),
    )


LAYOUTS = {
    "list": list,
    "numpy": np.array,
    "pandas": pd.Series,
    "pandas object": lambda values: pd.Series(values, dtype=object),
    "pandas nullable": lambda values: pd.Series(values, dtype=object).convert_dtypes(),
    "pandas Arrow": lambda values: pd.Series(values, dtype=object).convert_dtypes(
        dtype_backend="pyarrow"
    ),
    "pandas categorical": lambda values: pd.Series(values).astype("category"),
    "polars": lenient_polars,
    "polars object": lambda values: pl.Series(values, dtype=pl.Object),
    "pyarrow": pa.array,
    "pyarrow dictionary": lambda values: pa.array(values).dictionary_encode(),
}
DAY = datetime.datetime(2020, 1, 1)
VALUES = {
    "integers": [1, 2, 3, -4],
    "large integers": [BIG, BIG + 2, -BIG, 2**63 - 1],
    "floats": [0.5, 1.0, -2.25, 1e20],
    "booleans": [True, False, True, False],
    "texts": ["a", " b ", "1", "01"],
    "dates": [datetime.date(2020, 1, 1), datetime.date(2021, 2, 3), DAY.date(), DAY.date()],
    "datetimes": [DAY, DAY.replace(hour=5), DAY.replace(microsecond=20), DAY],
    "durations": [
        datetime.timedelta(days=1),
        datetime.timedelta(seconds=5),
        datetime.timedelta(0),
        -datetime.timedelta(hours=3),
    ],
    "decimals": [Decimal("1.5"), Decimal("2"), Decimal("0.25"), Decimal("7")],
    "bytes": [b"a", b"b", b"7", b""],
}
PLANTED = [
    None,
    np.nan,
    pd.NA,
    pd.NaT,
    5,
    0.5,
    BIG,
    10**400,
    True,
    "text",
    "",
    b"x",
    Decimal("1.234"),
    DAY,
    2j,
]
NUMPY_TYPES = [f"{kind}{size}" for kind in ("int", "uint") for size in (8, 16, 32, 64)] + [
    "float16",
    "float32",
    "float64",
    "bool",
]


def codes(cells, categories):
    column = CategoricalColumn("c", categories)
    number = NumericColumn("c", -1e20, 1e20, fill=3e19)
    return [encode({"c": cells}, Schema((kind,)))[0].tolist() for kind in (column, number)]


def vocabulary(values):
    """Categories for every value, as the library itself compares them."""
    return tuple(dict.fromkeys(label for label in map(label_of, values) if label))


def others_moved(make, values, odd, place):
    """Cells that are read differently when one is exchanged; None if the library makes no such
    column.
    """
    mixed = [*values[:place], odd, *values[place + 1 :]]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # older pandas, of 1e20 as an integer
            columns = make(values), make(mixed)
    except Exception:  # a library that refuses the mixture gives no table: nothing to read
        return None
    before, after = (codes(column, vocabulary(values)) for column in columns)
    return sum(
        a[k] != b[k]
        for a, b in zip(before, after, strict=True)
        for k in range(len(values))
        if k != place
    )


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_cell_changes_how_another_is_read(layout, kind):
    changes = {
        repr(odd)[:20]: others_moved(LAYOUTS[layout], VALUES[kind], odd, 2) for odd in PLANTED
    }
    assert {odd: moved for odd, moved in changes.items() if moved} == {}
    assert any(moved == 0 for moved in changes.values())


@pytest.mark.parametrize("name", NUMPY_TYPES)
@pytest.mark.parametrize("odd", [None, 0.5, "text", 2**40, True], ids=str)
def test_no_cell_changes_a_column_of_any_numpy_type(name, odd):
    values = np.array([1, 0, 1, 1]).astype(name)
    whole = pd.Series(values)
    mixed = pd.concat([whole[:2], pd.Series([odd]), whole[3:]], ignore_index=True)
    before, after = (codes(column, ("0", "1")) for column in (whole, mixed))
    for one, other in zip(before, after, strict=True):
        assert [one[k] for k in (0, 1, 3)] == [other[k] for k in (0, 1, 3)]


cells = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.datetimes(),
    st.dates(),
    st.timedeltas(),
    st.decimals(),
)


@settings(max_examples=300)
@given(
    values=st.lists(
        st.one_of(st.integers(-(2**63), 2**63 - 1), st.booleans()), min_size=2, max_size=5
    ),
    odd=cells,
)
def test_whole_numbers_and_truth_values_stand_by_themselves(values, odd):
    for layout in ("pandas", "numpy", "pandas nullable"):
        assert not others_moved(LAYOUTS[layout], values, odd, 0), layout


@settings(max_examples=300)
@given(cell=cells)
def test_a_label_is_compared_as_itself(cell):
    label = label_of(cell)
    assert label is None or label_of(label) == label
    assert isinstance(number_of(cell), float)


def test_a_missing_cell_elsewhere_keeps_every_large_label():
    """The attack: 2,000 rows of one large identifier, one row missing, and all of them were read
    as another label.
    """
    column = CategoricalColumn("id", (str(BIG), "5"))
    whole, missing = pd.Series([BIG] * 2000), pd.Series([*[BIG] * 1999, None])
    assert column.codes(whole).tolist() == [0] * 2000
    assert column.codes(missing).tolist() == [*[0] * 1999, 2]


def test_files_and_frames_read_alike():
    for kind, values in VALUES.items():
        column = CategoricalColumn("c", vocabulary(values))
        array = pa.array(values)
        X = RowCodec(Schema((column,))).matrix(pa.record_batch({"c": array})).toarray()
        np.testing.assert_array_equal(
            X, column.encode(np.array(values, dtype=object)), err_msg=kind
        )
        assert X[:, -1].sum() == sum(label_of(value) in ("", None) for value in values)


def test_dates_with_nanoseconds_need_no_pandas():
    array = pa.array([1, 10**9], pa.timestamp("ns"))
    column = CategoricalColumn("c", ("1970-01-01 00:00:00.000000001", "1970-01-01T00:00:01"))
    assert RowCodec(Schema((column,))).matrix(pa.record_batch({"c": array})).toarray()[
        :, :2
    ].tolist() == [[1, 0], [0, 1]]
    assert listed(np.array(["NaT", "2020-01-01"], dtype="datetime64[ns]"))[0] is None


@pytest.mark.parametrize(
    "pair",
    [("1", "1.0"), ("True", "1"), (str(BIG), str(BIG - 1)), ("2020-01-01", "2020-01-01T00:00:00")],
)
def test_categories_that_no_column_tells_apart_are_refused(pair):
    with pytest.raises(InvalidArgument, match="keep one of them"):
        CategoricalColumn("c", pair)


def test_codes_with_zeros_in_front_are_texts():
    assert CategoricalColumn("zip", ("01", "1")).codes(
        np.array(["01", "1", 1], dtype=object)
    ).tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    "nested", [pa.array([[1], [2]]), pa.array([{"a": 1}, {"a": 2}])], ids=["list", "struct"]
)
def test_a_nested_column_is_no_label(nested):
    with pytest.raises(InvalidArgument, match="the schema says it is a label"):
        RowCodec(Schema((CategoricalColumn("c", ("1",)),))).matrix(pa.record_batch({"c": nested}))
