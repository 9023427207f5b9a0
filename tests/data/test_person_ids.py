"""Ids of persons: equal ids are one person, whatever type holds them, and no cell changes how
another one is read.
"""

import datetime
import enum
import unicodedata
import uuid
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushfit.data.rows import PersonIndex, persons_of
from hushfit.data.rows import _person_ids as module
from hushfit.errors import InvalidArgument
from hushfit.kernels import person_ids as kernels
from hushfit.unit import PrivacyUnit

UNIT = PrivacyUnit.person()
BIG = 2**53 + 1
DAY = datetime.datetime(2020, 1, 1)


def partition(codes):
    """Codes by first appearance: equal for equal partitions. Missing ones stay apart."""
    first = {}
    alone = iter(range(-1, -len(codes) - 1, -1))
    return [first.setdefault(next(alone) if c < 0 else c, len(first)) for c in list(codes)]


def of(ids):
    return partition(persons_of(ids, len(ids), UNIT).codes)


def lenient_polars(values):
    dated = any(isinstance(value, datetime.date | datetime.timedelta) for value in values)
    return pl.Series(values, strict=dated)


LAYOUTS = {
    "list": list,
    "tuple": tuple,
    "numpy": np.array,
    "numpy object": lambda values: np.array(values, dtype=object),
    "pandas": pd.Series,
    "pandas object": lambda values: pd.Series(values, dtype=object),
    "pandas nullable": lambda values: pd.Series(values, dtype="Int64"),
    "pandas string": lambda values: pd.Series(values, dtype="string"),
    "pandas Arrow": lambda values: pd.Series(values, dtype=pd.ArrowDtype(pa.int64())),
    "pandas categorical": lambda values: pd.Series(values).astype("category"),
    "pandas index": pd.Index,
    "polars": lenient_polars,
    "polars object": lambda values: pl.Series(values, dtype=pl.Object),
    "pyarrow": pa.array,
    "pyarrow chunks": lambda values: pa.chunked_array([pa.array(values)]),
    "pyarrow dictionary": lambda values: pa.array(values).dictionary_encode(),
}
# Each with two persons of several rows.
VALUES = {
    "integers": [1, 2, 1, -4, 2],
    "large integers": [BIG, BIG + 1, BIG, BIG - 1, BIG + 1],
    "largest integers": [2**63 - 1, -(2**63), 2**63 - 1, 2**63 - 2, -(2**63)],
    "floats": [0.5, 1.0, 0.5, -2.25, 1.0],
    "texts": ["a", "b", "a", "B", "b"],
    "codes": ["007", "07", "007", "7a", "07"],
    "dates": [DAY.date(), datetime.date(2021, 2, 3), DAY.date(), datetime.date(1, 1, 1)],
    "datetimes": [DAY, DAY.replace(hour=5), DAY, DAY.replace(microsecond=20)],
    "decimals": [Decimal("1.5"), Decimal("2"), Decimal("1.5"), Decimal("7")],
    "bytes": [b"a", b"b", b"a", b"\xff"],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", VALUES)
def test_the_same_ids_are_the_same_persons_in_every_layout(name, layout):
    values = VALUES[name]
    try:
        column = LAYOUTS[layout](values)
    except (ValueError, OverflowError, TypeError, pa.ArrowException):
        return  # the library cannot hold these values
    if str(getattr(column, "dtype", "")) == "float64" and "large" in name:
        return  # the library has rounded them
    first = {}
    assert of(column) == [first.setdefault(value, len(first)) for value in values]


PLANTED = [None, np.nan, pd.NA, pd.NaT, 5, 0.25, BIG, 10**400, True, "text", "", b"x", DAY, 2j]


def read_or_refused(column):
    """The persons of a column; None if it is refused since the library has rounded its ids."""
    try:
        return of(column)
    except InvalidArgument as error:
        if "floats of 2**53" in str(error):
            return None
        raise


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["integers", "large integers", "texts", "codes", "floats"])
def test_no_cell_changes_whose_row_another_one_is(name, layout):
    """One cell may change the type of a column. Then the others are put together as before, or,
    where the library has rounded them, the ids are refused.
    """
    values = VALUES[name]
    # pandas itself reads whole numbers with a NaN as floats, whatever type is asked for.
    rounded = (layout, name) == ("pandas nullable", "large integers")
    for odd in (odd for odd in PLANTED if not (rounded and isinstance(odd, float))):
        for place in (0, len(values) - 1):
            rest = [k for k in range(len(values)) if k != place]
            mixed = [*values[:place], odd, *values[place + 1 :]]
            try:
                column = LAYOUTS[layout](mixed)
            except Exception:  # a library that refuses the mixture gives no column
                continue
            if (after := read_or_refused(column)) is None:
                continue
            before = of([values[k] for k in rest])
            assert partition([after[k] for k in rest]) == before, odd


NOON = datetime.datetime(2020, 1, 2, 12, 34, 56, 500_000)
EAST = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
UUID = uuid.UUID(int=2**100 + 1)
# pyarrow has a type for them since version 18.
ARROW_UUIDS = [pa.array([UUID.bytes], pa.uuid())] if "uuid" in dir(pa) else []


class Visit(enum.Enum):
    FIRST = "first visit"


class Number(enum.IntEnum):
    THREE = 3


EQUAL = [
    [
        1,
        1.0,
        "1",
        "1.0",
        " 1 ",
        "1\n",
        np.int8(1),
        np.float32(1),
        Decimal("1.00"),
        b"1",
        True,
        "+1",
        "1.00",
        "1.",
        "1.0e0",
        "True",
        "true",
        "TRUE",
        np.True_,
        Fraction(1),
        1 + 0j,
    ],
    [0, "0", -0.0, "-0", "0.0", "-0.000", "+0", ".0", "0.0E+3", False, "False", "false"],
    [-7, "-7", "-7.0", -7.0, "-7.000", "-.7e+1", Decimal("-7.00")],
    [BIG, str(BIG), f"{BIG}.0", np.uint64(BIG)],
    [2**64 - 1, str(2**64 - 1), np.uint64(2**64 - 1), f"{2**64 - 1}.0"],
    [-(2**63), str(-(2**63))],
    [10**30, str(10**30), f"{10**30}.0", Decimal(10**30)],
    ["a", " a", "a\t", b"a", b" a "],
    [
        DAY.date(),
        DAY,
        "2020-01-01",
        np.datetime64("2020-01-01"),
        pd.Timestamp(DAY),
        "2020-01-01 00:00:00",
        "2020-01-01T00:00:00.000",
        "2020-01-01T00:00Z",
        "2019-12-31 23:00-0100",
        np.datetime64("2020-01"),
        np.datetime64(DAY, "m"),
        pd.Timestamp(DAY, tz="UTC"),
    ],
    [
        NOON,
        pd.Timestamp(NOON),
        NOON.isoformat(),
        str(NOON),
        "2020-01-02T12:34:56.5000Z",
        np.datetime64(NOON, "ms"),
        np.datetime64(NOON, "ns"),
        NOON.replace(tzinfo=datetime.UTC),
        NOON.replace(tzinfo=datetime.UTC).astimezone(EAST),
        pd.Timestamp(NOON, tz="UTC"),
        pd.Timestamp(NOON, tz="UTC").tz_convert("Asia/Kolkata"),
        "2020-01-02 18:04:56.5 +05:30",
        "2020-01-02 18:04:56,5+0530",
        b"2020-01-02 12:34:56.5",
    ],
    [
        np.datetime64("2020-01-02T03:04", "m"),
        np.datetime64("2020-01-02T03:04", "ns"),
        "2020-01-02 03:04",
        "2020-01-02T03:04:00",
    ],
    [datetime.time(3, 4), "03:04", "03:04:00", "03:04:00.000"],
    [datetime.time(3, 4, 5, 120_000), "03:04:05.120000", "03:04:05.12"],
    [
        np.timedelta64(7, "D"),
        np.timedelta64(1, "W"),
        np.timedelta64(7 * 86_400, "s"),
        np.timedelta64(7 * 86_400 * 10**9, "ns"),
        datetime.timedelta(7),
        pd.Timedelta("7D"),
    ],
    [np.timedelta64(1, "ns"), np.timedelta64(1000, "ps"), pd.Timedelta(1, "ns")],
    [
        0.1,
        np.float32(0.1),
        np.float16(0.1),
        Decimal("0.1"),
        Decimal("0.10"),
        "0.1",
        ".1",
        "1e-1",
        "+0.10",
        np.complex64(0.1),
        b"0.1",
    ],
    [1e-7, Decimal("1E-7"), "1e-07", "1E-7", "0.0000001", np.float32(1e-7)],
    [10**16, "1e+16", Decimal("1E+16"), "1.0E16"],
    [10**5000, "1" + "0" * 5000, "1e+5000", Decimal("1E5000")],
    ["b", "\xa0b", "\ufeffb", "b\u2003", "\x1fb", "b\u200b", "\ufeffb".encode()],
    [8, "\xa08", "8.0\ufeff", "\u3000+8\u3000"],
    ["é", "e\u0301", "é".encode(), "e\u0301 "],
    [UUID, str(UUID)],
    [Visit.FIRST, "first visit", Visit("first visit")],
    [Number.THREE, 3, "3"],
]


def test_ids_are_compared_by_what_they_say():
    """In one column, with each of the others different from all in another group."""
    cells = [cell for group in EQUAL for cell in group]
    expected = [k for k, group in enumerate(EQUAL) for _ in group]
    assert of(cells) == expected


DIFFERENT = [
    "1", "01", "001", "01.5", "1e0", "1e1", "0e12", "0e34", "1.5", "-1", "a", "A", "1 2", "½",
    "nan",
    "NA", "None", "18446744073709551615", "18446744073709551616", "184467440737095516150",
    "-9223372036854775809", "9223372036854775808", "-9223372036854775808", "0.0.0", "-", "+", ".",
    "0x1", "é", "e", "1-2", "--1", "+-2", "1e", "1e+", "e+1", "1_0", "2020-01-02", "2020-01-02-17",
    "2020-1-2", "2020-01-02 17:00 CET", "2020-01-02 17:00", "12:34:56:78", "12:34", "1:2", "truer",
    "2020-0102", "0000-00-00 12:00+01:00", "1e+9999999999",
]  # fmt: skip


def test_other_texts_are_compared_as_they_are_written():
    assert of(DIFFERENT) == list(range(len(DIFFERENT)))
    assert of(np.array(DIFFERENT)) == list(range(len(DIFFERENT)))


def test_columns_in_zones_of_time_hold_the_instants_of_their_cells():
    moments = [pd.Timestamp(NOON), pd.Timestamp(DAY), pd.Timestamp(NOON)]
    aware = pd.Series(moments).dt.tz_localize("UTC")
    columns = [pd.Series(moments)]
    for zone in ("UTC", "Asia/Kolkata", "America/New_York"):
        local = aware.dt.tz_convert(zone)
        texts = local.astype(str)
        columns += [local, local.astype(object), pa.array(local), pl.from_pandas(local), texts]
        columns += [local.dt.as_unit("ms"), local.astype("category"), local.to_numpy()]
    index = PersonIndex()
    codes = [index.add(module._column(column)) for column in columns]
    assert index.n_ids == 2
    assert all(partition(found) == [0, 1, 0] for found in codes)


def test_one_id_in_columns_of_several_types():
    """Batches of one index, as files of one table have them."""
    hour = datetime.timedelta(hours=1)
    clock = datetime.time(1, 2, 3, 500_000)
    for columns in (
        [np.array([3600], "m8[s]"), np.array([3600 * 10**9], "m8[ns]"), np.array([1], "m8[h]"),
         pa.array([hour]), pa.array([hour], pa.duration("s")), pd.Series([hour]), pl.Series([hour]),
         np.array([hour], object)],
        [np.array([0.1], np.float32), np.array([0.1]), pa.array([0.1], pa.float32()),
         pa.array([Decimal("0.10")]), np.array(["0.1"]), np.array([0.1], np.complex64),
         pa.array([0.1], pa.float32()).dictionary_encode()],
        [pa.array([clock], pa.time64("ns")), pa.array([clock], pa.time32("ms")),
         np.array([clock], object), np.array([str(clock)])],
        [pa.array([DAY.date()]), pa.array([DAY.date()], pa.date64()), np.array([DAY], "M8[m]"),
         pa.array([DAY]), pl.Series([DAY]), np.array([str(DAY)])],
        [*ARROW_UUIDS, pa.array([str(UUID)]), np.array([UUID], object)],
        [pa.array([True]), np.array([True]), np.array(["True"]), pa.array(["false", "true"])[1:]],
    ):  # fmt: skip
        index = PersonIndex()
        assert [index.add(module._column(column)).tolist() for column in columns] == [
            [0] for _ in columns
        ]


def test_marked_texts_of_a_slice_and_nulls_keep_their_places():
    texts = pa.array(
        ["x", "2020-01-02T00:00", None, "é", "", "1.50", "2020-01-02", "1.5", "e\u0301"]
    )
    index = PersonIndex()
    assert partition(index.add(texts[1:])) == [0, 1, 2, 3, 4, 0, 4, 2]


def test_rows_without_an_id_are_persons_of_their_own():
    ids = ["a", None, "", "  ", "a", float("nan"), "\t\n"]
    persons = persons_of(ids, len(ids), UNIT)
    assert persons.n_persons == 6
    assert partition(persons.codes) == [0, 1, 2, 3, 0, 4, 5]
    assert persons.shares.tolist() == [0.5, 1, 1, 1, 0.5, 1, 1]
    floats = np.array([3.0, np.nan, 3.0, np.nan])
    assert of(floats) == [0, 1, 0, 2]
    nullable = pd.Series([BIG, None, BIG, BIG - 1], dtype="Int64")
    assert of(nullable) == [0, 1, 0, 2]


def test_unused_categories_are_nobody():
    ids = pd.Series(["a", "b", "a"], dtype=pd.CategoricalDtype(["z", "b", "a", "y"]))
    assert persons_of(ids, 3, UNIT).n_persons == 2


def _in_plain_python(text):
    before = None
    while text != before:
        before, text = text, text.strip().strip("\ufeff\u200b\u2060")
    return unicodedata.normalize("NFC", text)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.integers(-(2**70), 2**70),
            st.integers(-3, 3),
            # Without the characters of numbers and times, which have several notations.
            st.text(st.characters(exclude_characters="+.:eE", codec="utf-8"), max_size=12),
            st.sampled_from(["", " ", "x", "xx", "e\u0301", "é", None]),
        ),
        max_size=300,
    ),
    st.integers(1, 40),
)
def test_batches_number_ids_as_one_pass_does(cells, size):
    """Against a dictionary in plain Python, also across batches and types."""
    index = PersonIndex()
    codes = [index.add(np.array(cells[k : k + size], object)) for k in range(0, len(cells), size)]
    known = {}
    expected = []
    for cell in cells:
        text = None if cell is None else _in_plain_python(str(cell))
        whole = text and text.lstrip("-").isascii() and text.removeprefix("-").isdigit()
        plain = whole and str(int(text)).lstrip("-") == text.removeprefix("-")
        key = int(text) if plain else text
        expected.append(known.setdefault(key, len(known)) if text else -1)
    found = np.concatenate([np.empty(0, int), *codes])
    assert partition(found) == partition(expected)
    assert index.n_ids == len(known)


def test_many_ids_in_many_batches(monkeypatch):
    """The table grows and is filled again several times; numpy says which are equal."""
    monkeypatch.setattr(module, "_FEWEST_TOGETHER", 64)
    generator = np.random.default_rng(0)
    ids = generator.integers(-(2**63), 2**63 - 1, 3000)[generator.integers(0, 3000, 20_000)]
    _, expected = np.unique(ids, return_inverse=True)
    index = PersonIndex()
    pieces = np.array_split(ids, 7)
    mixed = [p if k % 2 else pa.array(p.astype(str)) for k, p in enumerate(pieces)]
    codes, count = index.numbered([index.add(piece) for piece in mixed])
    assert partition(codes) == partition(expected)
    assert count == len(np.unique(ids))
    assert index._keys.nbytes + index._slots.nbytes < 200 * count


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int64", "uint64"])
def test_close_numbers_are_numbered_as_far_ones_are(kind):
    """A plain table and one of hashes put the same rows together, at the ends of a type too."""
    generator = np.random.default_rng(0)
    ends = np.iinfo(kind)
    near = generator.integers(0, 40, 200)
    for ids in (
        (ends.min + near.astype(object)).astype(kind),
        (ends.max - near.astype(object)).astype(kind),
    ):
        assert module._is_dense(ids)
        assert of(ids) == of([int(one) for one in ids])
    assert not module._is_dense(np.array([0, 2**62, 5]))


def test_siphash_is_the_published_one():
    """The first vectors of the reference implementation, with the key 00 01 ... 0f."""
    key = np.frombuffer(bytes(range(16)), np.uint64)
    vectors = {
        0: "a3817f04ba25a8e66df67214c7550293",
        1: "da87c1d86b99af44347659119b22fc45",
        2: "8177228da4a45dc7fca38bdef60affe4",
    }
    for length, expected in vectors.items():
        data = np.frombuffer(bytes(range(64)), np.uint8)
        words = kernels.siphash(data, 0, length, key)
        assert b"".join(int(word).to_bytes(8, "little") for word in words).hex() == expected


def test_the_secret_is_fresh_and_does_not_show():
    ids = [f"id {k % 50}" for k in range(400)]
    first, second = PersonIndex(), PersonIndex()
    assert not np.array_equal(first._secret, second._secret)
    assert partition(first.add(np.array(ids))) == partition(second.add(np.array(ids)))


class Nameless:
    """Its text is its address."""

    __hash__ = None


REFUSED = {
    "too few": ([1, 2], "not as many ids as X has rows"),
    "two dimensions": (np.zeros((3, 1)), "2 dimensions"),
    "all equal": (["a", "a", " a "], "All ids in groups are equal"),
    "no id": ([None, "", np.nan], "No row has an id"),
    "rounded": (np.array([2.0**53, 1.0, np.nan]), "floats of 2"),
    "rounded in a list": ([1e300, 1, 2], "floats of 2"),
    "infinite": (np.array([np.inf, 1.0, 2.0]), "floats of 2"),
    "rounded in single precision": (np.array([2.0**24, 1, 2], np.float32), "floats of 2"),
    "rounded in a list of single precision": ([np.float32(2**24), 1, 2], "floats of 2"),
    "addresses": ([Nameless(), Nameless(), Nameless()], "type Nameless, which cannot be compared"),
    "sets": ([frozenset([1, 2]), frozenset([2, 1]), 1], "type frozenset"),
    "broken fractions": ([Fraction(1, 2), 1, 2], "type Fraction"),
    "periods": (pd.Series(pd.period_range("2020", periods=3, freq="M")), "cannot be compared"),
    "intervals": (pd.Series(pd.interval_range(0, 3)), "cannot be compared"),
    "lists": ([[1], [2], [3]], "cannot be compared"),
    "nested": (pa.array([[1], [2], [3]]), "cannot be compared"),
    "structs": (pa.array([{"a": 1}, {"a": 2}, {"a": 3}]), "cannot be compared"),
}


@pytest.mark.parametrize(("ids", "message"), REFUSED.values(), ids=REFUSED)
def test_ids_that_make_no_persons_are_refused(ids, message):
    with pytest.raises(InvalidArgument, match=message):
        persons_of(ids, 3, UNIT)
