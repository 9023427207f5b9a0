"""Names of columns below a title: seen by a draft, stated in the schema, used by every verb."""

from pathlib import Path

import pytest
from conftest_cli import FIT, SCHEMA, make_rows, write_csv

from hushfit import load_model
from hushfit.data.schema import TextForm, read_schema
from hushfit.data.tables import find_tables, sniffed_form, table_batches
from hushfit.data.tables._title_rows import header_among
from hushfit.errors import InvalidArgument

TITLES = {
    "two lines and an empty one": "Patients, north ward\nAs of 2024\n\n",
    "padded cells": "Patients;;;\n;;;\n;;;\n",
    "a quotation mark": 'Ward "North\nx\ny\n',
}


def titled(path, title, delimiter=";"):
    write_csv(path, make_rows(400), delimiter)
    Path(path).write_text(title + Path(path).read_text())


@pytest.mark.parametrize("title", TITLES)
def test_a_title_changes_nothing_but_the_row_of_the_header(hushfit, title):
    titled("titled.csv", TITLES[title])
    write_csv("plain.csv", make_rows(400), ";")
    for name in ("plain", "titled"):
        drafted = hushfit("schema", f"{name}.csv", "--target", "ill", "-o", f"{name}.toml")
        assert drafted.code == 0, drafted.err
    plain, found = (read_schema(f"{name}.toml").schema for name in ("plain", "titled"))
    assert found.columns == plain.columns
    assert (plain.file, found.file) == (TextForm(delimiter=";"), TextForm("utf-8", ";", 4))
    assert "the header in row 4" in drafted.err


@pytest.mark.parametrize(
    ("rows", "header"),
    [
        ([["a", "b"], ["1", "2"]], None),
        ([["", "b"], ["1", "2"]], None),  # as pandas writes an index
        ([["title"], ["a", "b"], ["1", "2"]], 2),
        ([["title", ""], ["a", "b"], ["1", "2"]], 2),
        ([["title", "", ""], ["", "", ""], ["a", "b", "c"], ["1", "2", "3"]], 3),
        ([["title"], ["1", "2"], ["3", "4"]], None),  # numbers are no names
        ([["title"], ["a", "a"], ["3", "4"]], None),
        ([], None),
    ],
)
def test_a_row_of_names_is_as_wide_as_the_rows_and_no_numbers(rows, header):
    assert header_among(rows) == header


def test_decimal_commas_do_not_look_like_a_table(tmp_path):
    path = tmp_path / "de.csv"
    path.write_text("age;size;y\n" + "1,5;2,5;3,5\n" * 9)
    assert sniffed_form(*find_tables([str(path)])) == TextForm(delimiter=";")


def test_every_verb_reads_below_the_title(hushfit, folder):
    for name in ("train", "test"):
        path = Path(f"{name}.csv")
        path.write_text("A title\n\n" + path.read_text())
    assert hushfit(*FIT, "-o", "m.json").code == 2
    assert not Path("m.json").exists()
    assert hushfit(*FIT, "--header", 3, "-o", "m.json").code == 0
    assert load_model("m.json").schema.file.header == 3
    checked = hushfit("schema", "--check", "train.csv", "schema.toml", "--header", 3, "--json")
    assert checked.json["columns"][0]["rows"] == 1500
    assert hushfit("evaluate", "m.json", "test.csv").code == 0  # as the model's schema says
    assert hushfit("predict", "m.json", "test.csv", "-o", "p.csv").code == 0
    assert hushfit("report", "m.json", "--held-out", "test.csv", "-o", "r.html").code == 0
    write_csv("plain.csv", make_rows(50))
    refused = hushfit("evaluate", "m.json", "plain.csv")
    assert refused.code == 2
    assert hushfit("evaluate", "m.json", "plain.csv", "--header", 1).code == 0
    described = ("describe", "train.csv", "--schema", "schema.toml", "--epsilon", 1)
    assert hushfit(*described, "--header", 3).code == 0
    assert hushfit(*described).code == 2


@pytest.mark.parametrize("above", [0, 2])
def test_spreadsheets_count_rows_as_they_show_them(tmp_path, above):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("python_calamine")
    book = openpyxl.Workbook()
    if above == 0:
        book.active.append(["A title"])
    for column, name in enumerate("ab", 1):
        book.active.cell(3, column, name)
        book.active.cell(4, column, column)
    path = str(tmp_path / "t.xlsx")
    book.save(path)
    (table,) = find_tables([path])
    form = sniffed_form(table)
    assert form.header == 3
    (stated,) = find_tables([path], form=form)
    (batch,) = table_batches(stated)
    assert batch.to_pydict() == {"a": ["1"], "b": ["2"]}
    (wrong,) = find_tables([path], form=TextForm(header=2))
    with pytest.raises(InvalidArgument, match="without a name in row 2"):
        list(table_batches(wrong))


@pytest.mark.parametrize("header", [0, -1, 51, 10**9, True, "3", 1.0])
def test_a_header_is_a_row(header):
    with pytest.raises(InvalidArgument, match=f"header={header!r} is no row"):
        TextForm(header=header)


def test_options_of_another_format_are_refused(hushfit, folder):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table(make_rows(50)), "t.parquet")
    Path("schema.toml").write_text(SCHEMA)
    fit = ("fit", "t.parquet", "--schema", "schema.toml", "--epsilon", 1, "--delta", 1e-3)
    for option in (("--header", 2), ("--delimiter", ";"), ("--encoding", "cp1252")):
        refused = hushfit(*fit, *option, "-o", "m.json")
        assert refused.code == 2
        assert f"{option[0]} would be ignored: t.parquet is read as parquet" in refused.err
    assert not Path("m.json").exists()


@pytest.mark.parametrize("header", [None, 2])
@pytest.mark.parametrize(
    ("asked", "cells"),
    [(("age", "name"), "12.5,Lovelace,0,0"), (("Lovelac", "code"), "12.5,Lovelace,c1,c2")],
)
def test_no_cell_of_a_row_that_is_no_header_is_shown(tmp_path, header, asked, cells):
    """A file without a header, or with another one than was said: its names are cells of a row."""
    path = tmp_path / "t.csv"
    path.write_text(f"{cells}\n{cells}\n")
    (table,) = find_tables([str(path)], form=TextForm(header=header))
    with pytest.raises(InvalidArgument) as refused:
        list(table_batches(table, asked))
    message = str(refused.value).replace(str(tmp_path), "").replace(repr(asked[0]), "")
    assert not any(cell in message for cell in ("Lovelace", "12.5", "'0'", "c1"))


def test_a_name_in_other_letters_is_shown(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Patient Age,b\n1,2\n")
    (table,) = find_tables([str(path)])
    with pytest.raises(InvalidArgument, match="It has 'Patient Age'"):
        list(table_batches(table, ("patient_age",)))
