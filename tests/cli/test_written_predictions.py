"""The files that ``hushfit predict`` writes."""

import csv
import gzip
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from hushfit.cli._written_rows import RowForm, holds_rows, rounded, write_rows
from hushfit.errors import InvalidArgument

RAW = RowForm(raw=True)


@pytest.mark.parametrize("digits", [6, 8])
def test_numbers_have_no_more_digits_than_asked_for(digits):
    rng = np.random.default_rng(0)
    values = rng.normal(size=2000) * 10.0 ** rng.integers(-12, 12, 2000)
    values = np.concatenate([values, [0.0, 1.0, -1.0, 999999.5, 0.1, 1e-13, 12345678.9]])
    wanted = [float(f"{value:.{digits}g}") for value in values]
    np.testing.assert_allclose(rounded(values, digits), wanted, rtol=0.51 * 10.0 ** (1 - digits))
    longest = max(len(repr(v).split("e")[0].strip("-0.").replace(".", "")) for v in wanted)
    ours = rounded(values, digits).tolist()
    assert max(len(repr(v).split("e")[0].strip("-0.").replace(".", "")) for v in ours) == longest


def test_numbers_out_of_reach_stay_as_they_are():
    values = np.array([1.23456789e-200, 1.23456789e200, np.inf, 0.0])
    np.testing.assert_array_equal(rounded(values, 6), values)


def test_a_reader_of_csv_gets_the_cells_back():
    labels = ['a "b"', "c, d", "e\nf", "g\rh", "plain", "", None]
    columns = [RAW.texts(pa.array(labels)), pa.array(np.arange(7.0))]
    rows = list(csv.reader(io.StringIO(RAW.lines(columns), newline="")))
    assert [row[0] for row in rows] == [label or "" for label in labels]
    assert [float(row[1]) for row in rows] == list(range(7))


def test_no_quotation_marks_where_none_are_needed():
    columns = [RAW.texts(["yes", "no", "yes"]), pa.array(np.array([0.25, 0.5, 1e-10]))]
    assert RAW.lines(columns) == "yes,0.25\nno,0.5\nyes,1e-10\n"
    assert RAW.lines([RAW.texts(["a,b", "c"]), columns[1][:2]]) == '"a,b",0.25\nc,0.5\n'


def test_every_different_label_is_made_safe():
    cells = pa.array(["=1+1", "-5", "x"] * 3).dictionary_encode()
    assert RowForm().texts(cells).to_pylist() == ["'=1+1", "-5", "x"] * 3


def test_decimal_commas_go_with_semicolons():
    form = RowForm.of("out.csv", decimal=",")
    columns = [form.texts(["a;b", "c,d"]), pa.array([0.25, 1e-10]), pa.array([1, 2])]
    assert form.lines(columns) == '"a;b";0,25;1\nc,d;1e-10;2\n'
    assert RowForm.of("out.tsv", decimal=",").delimiter == "\t"


def test_the_name_decides_the_format(hushfit, model):
    write = ("predict", "model.json", "test.csv", "--keep", "city", "--keep", "age")
    for name in ("p.csv", "p.tsv", "p.parquet", "p.arrow", "p.csv.gz", "p"):
        assert hushfit(*write, "-o", name).code == 0, name
    rows = list(csv.DictReader(Path("p.csv").read_text().splitlines()))
    assert Path("p.csv").read_bytes() == gzip.decompress(Path("p.csv.gz").read_bytes())
    assert Path("p.csv").read_bytes() == Path("p").read_bytes()
    for table in (pa.parquet.read_table("p.parquet"), pa.ipc.open_file("p.arrow").read_all()):
        assert table.column_names == list(rows[0])
        assert table.column("prediction").to_pylist() == [row["prediction"] for row in rows]
        assert table.column("p(yes)").to_pylist() == [float(row["p(yes)"]) for row in rows]
        assert [one or "" for one in table.column("city").to_pylist()] == [r["city"] for r in rows]


@pytest.mark.parametrize("name", ["p.xlsx", "p.json", "p.csv.zip", "p.parquet.gz"])
def test_a_name_that_promises_what_is_not_written_is_refused(hushfit, model, name):
    refused = hushfit("predict", "model.json", "test.csv", "-o", name)
    assert refused.code == 2
    assert name in refused.err
    assert not Path(name).exists()


def test_typed_files_take_no_settings_of_text(hushfit, model):
    for option in (("--raw",), ("--decimal", ",")):
        refused = hushfit("predict", "model.json", "test.csv", "-o", "p.parquet", *option)
        assert refused.code == 2
        assert "parquet" in refused.err


def test_no_rows_are_a_header_or_an_empty_table(tmp_path):
    for name in ("none.csv", "none.parquet"):
        path = str(tmp_path / name)
        assert holds_rows(path)
        write_rows(path, RowForm.of(path), ["a", "b"], [], print)
    assert (tmp_path / "none.csv").read_text() == "a,b\n"
    assert pa.parquet.read_table(tmp_path / "none.parquet").column_names == ["a", "b"]


def test_a_column_of_two_types_is_refused_and_leaves_nothing(tmp_path):
    path = str(tmp_path / "two.parquet")
    batches = [[pa.array([1])], [pa.array(["x"])]]
    with pytest.raises(InvalidArgument, match="another type"):
        write_rows(path, RowForm.of(path), ["a"], batches, print)
    assert list(tmp_path.iterdir()) == []
