"""Tables as sources: packed rows answer every query as the encoded matrix does, one row at a
time.
"""

import gc
import os

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from conftest_cli import SCHEMA, make_rows, write_csv

from hushfit.data import as_source
from hushfit.data.schema._schema import encode
from hushfit.data.schema._schema_file import (
    SchemaFile,
    parse_schema,
    rounded_outwards,
    schema_to_toml,
)
from hushfit.data.tables import CodedRows, RowCodec, find_tables, table_batches
from hushfit.datasets import ADULT_SCHEMA
from hushfit.errors import InvalidArgument, TooFewRows

PUBLIC = parse_schema(SCHEMA).schema


@pytest.fixture
def columns():
    return make_rows(40_000)


@pytest.fixture
def rows(columns, tmp_path):
    with CodedRows.from_tables(
        find_tables([write_csv(tmp_path / "t.csv", columns)]), PUBLIC
    ) as packed:
        yield packed


def plain(columns):
    X, _ = encode(columns, PUBLIC)
    labels = np.array(columns["ill"])
    X[~np.isin(labels, ["yes", "no"])] = np.nan  # such a row counts as the zero record
    return as_source(X.astype(np.float32), np.where(labels == "no", 1.0, -1.0))


def test_packed_rows_answer_as_the_matrix_does(rows, columns):
    dense = plain(columns)
    generator = np.random.default_rng(1)
    w, A = generator.normal(size=6), generator.normal(size=(6, 6))

    def joined(source, question, pick=None):
        return np.concatenate([question(block) for block in source.blocks(pick)])

    assert rows.n_units == dense.n_units
    assert np.allclose(
        joined(rows, lambda b: b.margins(w)),
        joined(dense, lambda b: b.margins(w)),
        atol=1e-7,
        equal_nan=True,
    )
    assert np.allclose(
        joined(rows, lambda b: b.lengths(A)), joined(dense, lambda b: b.lengths(A)), atol=1e-6
    )
    moments = [sum(b.second_moment(2.0**20) for b in source.blocks()) for source in (rows, dense)]
    assert np.allclose(moments[0], moments[1], rtol=1e-6)
    sums = [
        sum(b.gradient_sum(w, np.array([0.4]), 0, 0.0, 2.0**-30) for b in source.blocks())
        for source in (rows, dense)
    ]
    assert np.allclose(sums[0], sums[1], rtol=1e-5)
    line = (
        np.stack([w, A[0]]),
        np.array([[1.0, 0.0], [1.0, -0.5], [1.0, -2.0]]),
        np.array([0.3, 0.7]),
    )
    drops = [
        sum(b.drop_sum(*line, 0, 0.0, np.full(2, 2.0**-30)) for b in source.blocks())
        for source in (rows, dense)
    ]
    assert np.allclose(drops[0], drops[1], rtol=1e-5)


def test_a_sample_of_packed_rows_is_that_sample(rows):
    w = np.arange(6.0)
    every = np.concatenate([block.margins(w) for block in rows.blocks()])
    chosen = np.array([39_999, 0, 20_000, 16_384, 16_383])
    blocks = list(rows.blocks(chosen))
    assert np.array_equal(np.concatenate([block.place for block in blocks]), np.sort(chosen))
    assert np.array_equal(
        np.concatenate([block.margins(w) for block in blocks]), every[np.sort(chosen)]
    )
    assert list(rows.blocks(np.empty(0, dtype=np.int64))) == []


def test_a_row_is_packed_by_itself(columns):
    """For all other rows in a batch: a row alone gives the same bytes."""
    codec = RowCodec(PUBLIC)
    few = {name: cells[:200] for name, cells in columns.items()}
    together = codec.pack(pa.record_batch(few))
    for k in range(200):
        alone = codec.pack(pa.record_batch({name: cells[k : k + 1] for name, cells in few.items()}))
        for own, all_ in zip(alone, together, strict=True):
            assert own.tobytes() == all_[k : k + 1].tobytes()


CELLS = [
    "1",
    " 2 ",
    "+3",
    "4e0",
    "1_0",
    "0x10",
    "inf",
    "-inf",
    "nan",
    "NA",
    "",
    "1.5.2",
    "٣",
    "1e400",
    None,
]


def test_numbers_are_read_as_the_python_encoder_reads_them():
    """One odd cell must not change how the others are read, so both readers have to agree."""
    codec = RowCodec(PUBLIC)
    expected = PUBLIC.columns[0].encode(np.array(CELLS, dtype=object)).astype(np.float32)
    for k, cell in enumerate(CELLS):
        batch = pa.record_batch({"age": pa.array([cell, "7"], pa.string()), "city": ["Ulm", "Ulm"]})
        packed = codec.pack(batch)[0][:, 0]
        assert packed[0] == expected[k], cell
        assert packed[1] == np.float32(0.07)


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([1, 50, None], pa.int16()),
        pa.array([1.0, 50.0, None]),
        pa.array(["1", "50", None]).dictionary_encode(),
    ],
    ids=["int16", "double", "dictionary"],
)
def test_typed_columns_read_like_texts(cells):
    batch = pa.record_batch(
        {"age": cells, "city": pa.array(["Ulm", None, "Rom"]).dictionary_encode()}
    )
    X = RowCodec(PUBLIC).matrix(batch).toarray()
    assert np.allclose(X, [[0.01, 0, 0, 1, 0], [0.5, 0, 0, 0, 1], [0.4, 0, 0, 0, 1]])


def test_a_date_is_not_a_number():
    batch = pa.record_batch({"age": pa.array([0], pa.timestamp("s")), "city": ["Ulm"]})
    with pytest.raises(InvalidArgument, match="column 'age' is of type timestamp"):
        RowCodec(PUBLIC).pack(batch)


def test_the_packed_rows_have_no_name_and_vanish(rows):
    place = os.readlink(f"/proc/self/fd/{rows._pages._file.fileno()}")
    assert not os.path.exists(place)
    rows.close()
    gc.collect()
    with pytest.raises(ValueError):
        rows._pages._file.fileno()


def test_too_few_rows_and_absent_columns_are_refused(tmp_path):
    empty = write_csv(tmp_path / "a.csv", {name: [] for name in ("age", "city", "ill")})
    with pytest.raises(TooFewRows):
        CodedRows.from_tables(find_tables([empty]), PUBLIC)
    other = write_csv(tmp_path / "b.csv", {"age": ["1"], "ill": ["no"]})
    with pytest.raises(InvalidArgument, match="has no column 'city'"):
        CodedRows.from_tables(find_tables([other]), PUBLIC)


def test_headers_are_read_with_care(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbf"a\nb", c \r\n1,2\r\n')
    (batch,) = table_batches(find_tables([str(path)])[0])
    assert batch.to_pydict() == {"a\nb": ["1"], "c": ["2"]}
    path.write_text("a,a\n1,2\n")
    with pytest.raises(InvalidArgument, match="twice"):
        list(table_batches(find_tables([str(path)])[0]))


def test_schema_files_come_back_as_they_were():
    for schema in (ADULT_SCHEMA, PUBLIC):
        marked = SchemaFile(schema, (schema.columns[0].name, "the unit of privacy"))
        assert (
            parse_schema(
                schema_to_toml(marked, {"": "Top", schema.columns[0].name: "first\nsecond"})
            )
            == marked
        )


@pytest.mark.parametrize(
    "bounds", [(17, 90), (0, 99_999), (-3.21, 0.004), (5, 5), (0, 0), (1e-9, 2e-9)], ids=str
)
def test_drafted_ranges_hold_the_values_and_look_round(bounds):
    low, high = rounded_outwards(*map(float, bounds))
    assert low <= bounds[0] <= bounds[1] <= high
    assert low < high


@pytest.mark.parametrize("line", ['unit = "person"', 'kind = "numeric"', "low = 0"])
def test_a_deeply_nested_schema_is_refused(line):
    """Dotted keys nest without limit in the parser, and a message that quotes such a value
    cannot be written.
    """
    nested = f"{line.split()[0]}.{'a.' * 1500}a = 1"
    with pytest.raises(InvalidArgument, match="too deeply"):
        parse_schema(SCHEMA.replace(line, nested))


def test_a_header_of_many_columns_is_looked_through_once(tmp_path):
    """Names are counted by hash, not compared pair by pair: forty thousand would take minutes."""
    names = [f"c{k}" for k in range(40_000)]
    path = tmp_path / "wide.csv"
    path.write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    (batch,) = table_batches(find_tables([str(path)])[0], names[::-400])
    assert batch.schema.names == names[::-400]


def test_columns_of_one_name_are_refused_in_every_format(tmp_path):
    table = pa.table([[1], [2]], names=["a", "a"])
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    for name in ("t.parquet", "t.arrow"):
        with pytest.raises(InvalidArgument, match="twice"):
            list(table_batches(find_tables([str(tmp_path / name)])[0]))


TEXTS = pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())


@pytest.mark.parametrize("kind", TEXTS, ids=str)
@pytest.mark.parametrize("listed", [True, False])
def test_labels_are_packed_alike_however_they_are_stored(tmp_path, columns, kind, listed):
    """Also where a column has more different texts than a batch has rows."""
    cities = columns["city"] if listed else [f"u{k}" for k in range(len(columns["city"]))]
    cells = pa.table({name: columns[name] for name in ("age", "ill")})
    cells = cells.append_column("city", pa.array(cities).cast(kind))
    pa.parquet.write_table(cells, tmp_path / "t.parquet")
    pa.feather.write_feather(cells, str(tmp_path / "t.arrow"), compression="uncompressed")
    write_csv(tmp_path / "t.csv", columns | {"city": cities})
    found = []
    for name in ("t.csv", "t.parquet", "t.arrow"):
        with CodedRows.from_tables(find_tables([str(tmp_path / name)]), PUBLIC) as packed:
            part = packed._pages.part(0, packed.n_units)
            found.append((part.numbers.tolist(), part.codes.tolist(), packed.y.tolist()))
    assert found[0] == found[1] == found[2]
