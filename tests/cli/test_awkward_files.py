"""Awkward files as people have them: each is accepted and drafted as a person would read it, or
refused with the remedy, and nothing is paid for before that.
"""

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from conftest_cli import write_csv

from hushfit.data.schema import TextForm, parse_schema
from hushfit.data.tables import find_tables, sniffed_form, table_batches
from hushfit.errors import InvalidArgument
from hushfit.models import _standard_errors

COUNT = 600


@pytest.fixture(autouse=True)
def few_replays(monkeypatch):
    monkeypatch.setattr(_standard_errors, "REPLAYS", 2)  # none is looked at here


def visits(count=COUNT):
    """Visits of a hospital, as texts."""
    generator = np.random.default_rng(5)
    days = generator.integers(0, 900, count)
    dates = np.datetime64("2019-03-01") + days
    ages = generator.integers(18, 90, count)
    codes = [f"{k}.{k % 7}" if k % 9 else f"V{k % 60}" for k in generator.integers(100, 400, count)]
    return {
        "visit_id": [str(10_000 + k) for k in range(count)],
        "patient_nbr": [f"P{k}" for k in generator.integers(0, count // 2, count)],
        "age": [str(age) for age in ages],
        "weight": [
            f"{w:.1f}" if k % 3 else "?" for k, w in enumerate(generator.normal(80, 9, count))
        ],
        "sex": generator.choice(["f", "m"], count).tolist(),
        "diagnosis": codes,
        "admission_type_id": [str(k) for k in generator.integers(1, 9, count)],
        "ward": [f"{k:03d}" for k in generator.integers(1, 30, count)],
        "admitted": [str(day) for day in dates],
        "born": [str(2020 - age) for age in ages],
        "note": [f"patient {k} came with pain in the left arm" for k in range(count)],
        "site": ["north"] * count,
        "outcome": np.where(ages > 60, "ill", "well").tolist(),
    }


def drafted(hushfit, path, *options):
    """The draft of a table, its schema file and what was said."""
    outcome = hushfit(
        "schema", path, "--target", "outcome", *options, "-o", "draft.toml", "--overwrite", "--json"
    )
    assert outcome.code == 0, outcome.err
    return outcome.json, Path("draft.toml").read_text(), outcome.err


def fitted(hushfit, path, *options):
    return hushfit(
        *("fit", path, "--schema", "draft.toml", "--accept-draft", "--epsilon", 8),
        *("--delta", 1e-5, "-o", "model.json", "--overwrite", *options),
    )


def test_a_draft_sees_what_a_person_sees(hushfit):
    write_csv("visits.csv", visits())
    found, text, _ = drafted(hushfit, "visits.csv")
    columns = found["columns"]
    assert found["person"] == "patient_nbr"
    assert set(found["left_out"]) == {"visit_id", "note", "site"}
    assert "free text" in found["left_out"]["note"]
    assert "all cells are equal" in found["left_out"]["site"]
    assert columns["age"]["kind"] == "numeric"
    assert columns["weight"]["missing"] == "indicator"
    assert columns["sex"] == {"kind": "categorical", "categories": ["f", "m"]}
    assert columns["diagnosis"]["kind"] == "hashed"
    assert "cells are no numbers, so all are read as labels" in text
    assert "hushfit discover" in text
    assert columns["admission_type_id"]["categories"] == [str(k) for k in range(1, 9)]
    assert "Numbers that look like codes" in text
    assert columns["ward"]["categories"][0] == "001"
    assert columns["admitted"] == {"kind": "date", "low": "2019-01-01", "high": "2021-12-31"}
    assert "Years? They are used as numbers" in text
    assert fitted(hushfit, "visits.csv").code == 0


UNKNOWNS = {
    "numbers": ([f"{k / 3:.2f}" for k in range(200)], "numeric", ["unknown", "k.A."]),
    "decimal commas": ([f"{k / 3:.2f}".replace(".", ",") for k in range(200)], "numeric", ["-"]),
    "dates": ([f"{1 + k % 28:02d}.03.2021" for k in range(200)], "date", ["unbekannt"]),
    "labels": (["north", "south"] * 100, "categorical", ["unknown"]),
    "two numbers": (["0", "1"] * 100, "categorical", ["unbekannt"]),
}


@pytest.mark.parametrize("case", UNKNOWNS.values(), ids=UNKNOWNS)
def test_words_for_unknown_values_are_missing_among_numbers_and_dates(hushfit, folder, case):
    cells, kind, words = case
    cells = [words[k % len(words)] if k % 9 == 0 else cell for k, cell in enumerate(cells)]
    columns = {"x": cells, "outcome": ["ill", "well"] * 100}
    write_csv("odd.csv", columns, ";")
    schema, _, _ = drafted(hushfit, "odd.csv")
    column = schema["columns"]["x"]
    assert column["kind"] == kind
    if kind == "numeric":
        assert column["missing"] == "indicator"
        assert sorted(column["missing_values"]) == sorted(words)
    if kind == "categorical":
        assert set(words) <= set(column["categories"])


PLACES = {
    "a folder": ("some", "is a folder", "some/*.csv"),
    "a web page": ("https://user:secret@example.org/x.csv", "https:// addresses", "give its path"),
    "an archive": ("table.zip", "archive", "Unpack it first"),
    "nothing": ("none.csv", "there is no file 'none.csv'", "Check the path"),
    "a header alone": ("header.csv", "header.csv has no row below", "Give a table with rows"),
}


@pytest.mark.parametrize("case", PLACES.values(), ids=PLACES)
def test_what_is_no_table_is_said_to_be_what_it_is(hushfit, folder, case):
    path, *said = case
    Path("some").mkdir()
    Path("table.zip").write_bytes(b"PK")
    Path("header.csv").write_text("age,outcome\n")
    refused = hushfit("schema", path, "--target", "outcome", "-o", "draft.toml")
    assert refused.code == 2
    assert all(part in refused.err for part in said), refused.err
    assert "secret" not in refused.err
    assert not Path("draft.toml").exists()


def test_lines_may_end_in_a_carriage_return_alone(hushfit, folder):
    write_csv("new.csv", visits())
    text = Path("new.csv").read_bytes()
    Path("old.csv").write_bytes(text.replace(b"\r\n", b"\r"))
    assert drafted(hushfit, "old.csv")[1] == drafted(hushfit, "new.csv")[1]
    Path("old.csv").write_bytes(b"Title\r\r" + text.replace(b"\r\n", b"\r"))
    assert "header = 3" in drafted(hushfit, "old.csv")[1]


OUTPUTS = {
    "report": ("report", "model.json", "-o", "page.pdf"),
    "card": ("card", "model.json", "-o", "card.html"),
    "fit": ("fit", "train.csv", "--schema", "schema.toml", "--epsilon", 1, "--delta", 1e-5)
    + ("-o", "model.pkl"),
    "statistics": ("describe", "train.csv", "--schema", "schema.toml", "--epsilon", 1)
    + ("-o", "statistics.xlsx"),
    "page": ("describe", "train.csv", "--schema", "schema.toml", "--epsilon", 1)
    + ("--report", "page.pdf"),
    "draft": ("schema", "train.csv", "--target", "ill", "-o", "draft.csv"),
}


@pytest.mark.parametrize("line", OUTPUTS.values(), ids=OUTPUTS)
def test_an_output_that_promises_another_format_is_refused(hushfit, model, line):
    refused = hushfit(*line)
    assert refused.code == 2
    assert "would not be a" in refused.err
    assert not Path(str(line[-1])).exists()


TARGETS = {
    "a word that is a class": (["None", "Norm", ">7"], ["None", "Norm", ">7"], "'None' is listed"),
    "a mark among words": (["yes", "no", "?"], ["?", "no", "yes"], "'?' is listed"),
    "a mark among numbers": (["1", "2", "NA"], ["1", "2"], "'NA' is taken for a missing value"),
}


@pytest.mark.parametrize("case", TARGETS.values(), ids=TARGETS)
def test_no_class_is_dropped_in_silence(hushfit, folder, case):
    cells, classes, said = case
    ages = [str(20 + k % 50) for k in range(90)]
    write_csv("odd.csv", {"age": ages, "outcome": cells * 30})
    schema, text, _ = drafted(hushfit, "odd.csv")
    assert sorted(schema["target"]["categories"]) == sorted(classes)
    assert said in text


def test_a_long_draft_is_shown_in_part(hushfit, folder):
    wide = {f"c{k}": [str(k + j % 9) for j in range(40)] for k in range(70)}
    write_csv("wide.csv", {**wide, "outcome": ["a", "b"] * 20})
    outcome = hushfit("schema", "wide.csv", "--target", "outcome", "-o", "wide.toml")
    assert "more" in outcome.out
    assert "c69" not in outcome.out
    assert "c69" in Path("wide.toml").read_text()


def test_semicolons_and_decimal_commas(hushfit):
    rows = visits()
    rows["weight"] = [cell.replace(".", ",") for cell in rows["weight"]]
    write_csv("german.csv", rows, delimiter=";")
    found, text, said = drafted(hushfit, "german.csv")
    assert "delimiter ';'" in said
    assert found["file"] == {"delimiter": ";"}
    assert found["columns"]["weight"]["decimal"] == ","
    assert 90 < found["columns"]["weight"]["high"] < 200
    assert parse_schema(text).schema.file == TextForm(delimiter=";")
    assert fitted(hushfit, "german.csv").code == 0
    # A header is public: another file of the same columns may have another delimiter.
    Path("draft.toml").write_text(text.replace('[file]\ndelimiter = ";"\n', ""))
    assert fitted(hushfit, "german.csv").code == 0
    assert hushfit("evaluate", "model.json", "german.csv").code == 0


def test_a_target_with_decimal_commas_is_a_number(hushfit):
    """Written as 1.234,50; the model predicts what it would of 1234.50."""
    ages = np.arange(COUNT) % 60 + 20
    euros = [f"{20 * age:,}".replace(",", ".") + ",50" for age in ages]
    rows = {"age": ages.astype(str).tolist(), "outcome": euros}
    write_csv("euros.csv", rows, delimiter=";")
    found, _, _ = drafted(hushfit, "euros.csv")
    assert found["target"] == {
        "name": "outcome",
        "kind": "numeric",
        "low": 400,
        "high": 1600,
        "decimal": ",",
    }
    assert fitted(hushfit, "euros.csv").code == 0
    scores = hushfit("evaluate", "model.json", "euros.csv", "--json").json
    assert scores["skipped"] == 0
    assert scores["r2"] > 0.9


def test_commas_between_thousands_are_not_taken_for_decimals(hushfit):
    """As decimals, 1,234 would be less than 999."""
    rows = {**visits(), "paid": [f"{7 * k:,}" for k in range(COUNT)]}
    rows["rent"] = [f"{k % 9 + 1},{k % 1000:03d}" for k in range(COUNT)]
    write_csv("american.csv", rows)
    found, text, _ = drafted(hushfit, "american.csv")
    assert "commas between thousands" in found["left_out"]["paid"]
    assert found["columns"]["rent"]["decimal"] == ","  # either is possible, so it is said
    assert "If the commas stand between thousands" in text
    refused = hushfit("schema", "american.csv", "--target", "paid", "-o", "paid.toml")
    assert refused.code == 2
    assert "commas between thousands" in refused.err
    assert not Path("paid.toml").exists()


CODES = {
    "zip_code": [str(10_000 + 7 * (k % 300)) for k in range(COUNT)],
    "diag_2": [f"{100 + k % 200}.{k % 7}" for k in range(COUNT)],
    "site_id": [str(k % 11) for k in range(COUNT)],
}


@pytest.mark.parametrize("name", CODES)
def test_numbers_whose_name_says_code_are_labels_however_many(hushfit, name):
    ages = [str(20 + k % 50) for k in range(COUNT)]
    counts = [str(k % 9) for k in range(COUNT)]
    rows = {"age": ages, name: CODES[name], "num_diagnoses": counts, "outcome": ["a", "b"] * 300}
    write_csv("codes.csv", rows)
    found, text, _ = drafted(hushfit, "codes.csv")
    many = len(set(CODES[name])) > 50
    assert found["columns"][name]["kind"] == ("hashed" if many else "categorical")
    assert "Numbers that look like codes" in text
    assert found["columns"]["num_diagnoses"]["kind"] == "numeric"


@pytest.mark.parametrize(
    ("name", "kind"), [("number_inpatient", "count"), ("VisitCount", "count"), ("stage", "classes")]
)
def test_few_whole_numbers_are_counts_by_name_and_classes_otherwise(hushfit, name, kind):
    ages = [str(20 + k % 50) for k in range(90)]
    write_csv("few.csv", {"age": ages, name: [str(k % 5) for k in range(90)]})
    made = hushfit("schema", "few.csv", "--target", name, "-o", "few.toml", "--json")
    assert (made.json["target"]["kind"] == "count") == (kind == "count")
    assert ('if they count something, kind = "count"' in Path("few.toml").read_text()) == (
        kind == "classes"
    )


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-8-sig"])
def test_encodings(hushfit, encoding):
    rows = {**visits(), "größe": [f"{k % 40 + 150}" for k in range(COUNT)]}
    rows["sex"] = ["weiblich" if sex == "f" else "männlich" for sex in rows["sex"]]
    write_csv("plain.csv", rows)
    Path("coded.csv").write_bytes(Path("plain.csv").read_text("utf-8").encode(encoding))
    found, _, said = drafted(hushfit, "coded.csv")
    assert found["columns"]["größe"]["kind"] == "numeric"
    assert found["columns"]["sex"]["categories"] == ["männlich", "weiblich"]
    assert found.get("file", {}) == ({"encoding": "cp1252"} if encoding == "cp1252" else {})
    assert ("encoding 'cp1252'" in said) == (encoding == "cp1252")
    assert fitted(hushfit, "coded.csv").code == 0
    assert hushfit("predict", "model.json", "coded.csv", "-o", "labels.csv").code == 0


def test_bytes_outside_the_stated_encoding_are_replaced_and_not_reported(tmp_path):
    """An error would tell that some row has such a byte."""
    (tmp_path / "t.csv").write_bytes(b"a,b\n1,\x81\n2,x\n")
    tables = find_tables([str(tmp_path / "t.csv")], None, TextForm("cp1252"))
    [batch] = table_batches(tables[0])
    assert batch.column("b").to_pylist() == ["\ufffd", "x"]


@pytest.mark.parametrize("packing", ["gz", "zst"])
def test_packed_files(hushfit, packing):
    write_csv("visits.csv", visits())
    data = Path("visits.csv").read_bytes()
    packed = gzip.compress(data) if packing == "gz" else pa.compress(data, "zstd", asbytes=True)
    Path(f"visits.csv.{packing}").write_bytes(packed)
    found, _, _ = drafted(hushfit, f"visits.csv.{packing}")
    assert found["person"] == "patient_nbr"
    assert fitted(hushfit, f"visits.csv.{packing}").code == 0


def write_excel(path, **sheets):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, columns in sheets.items():
        sheet = book.create_sheet(name)
        sheet.append(list(columns))
        for row in zip(*columns.values(), strict=True):
            sheet.append(list(row))
    book.save(path)


def test_spreadsheets_and_their_sheets(hushfit):
    pytest.importorskip("python_calamine")
    rows = visits()
    typed = {**rows, "age": [int(age) for age in rows["age"]]}
    typed["admitted"] = np.array(rows["admitted"], "datetime64[D]").tolist()
    write_excel("visits.xlsx", visits=typed)
    found, _, _ = drafted(hushfit, "visits.xlsx")
    write_csv("visits.csv", rows)
    assert found["columns"] == drafted(hushfit, "visits.csv")[0]["columns"]
    assert fitted(hushfit, "visits.xlsx").code == 0
    write_excel("two.xlsx", cover={"x": [1]}, visits=typed)
    refused = hushfit("schema", "two.xlsx", "--target", "outcome", "-o", "two.toml")
    assert refused.code == 2
    assert "2 sheets: 'cover', 'visits'" in refused.err.replace("\n", " ")
    assert "two.xlsx?sheet=cover" in refused.err
    assert not Path("two.toml").exists()
    assert drafted(hushfit, "two.xlsx?sheet=visits")[0]["columns"] == found["columns"]
    for twice in (("visits.xlsx", "visits.xlsx?sheet=visits"), ("two.xlsx?sheet=visits",) * 2):
        with pytest.raises(InvalidArgument, match="the same file"):
            find_tables(twice)
    assert len(find_tables(["two.xlsx?sheet=visits", "two.xlsx?sheet=cover"])) == 2
    missing = hushfit("schema", "two.xlsx?sheet=old", "--target", "outcome", "-o", "two.toml")
    assert "no sheet 'old'" in missing.err
    Path("broken.xlsx").write_bytes(b"PK no spreadsheet")
    broken = hushfit("schema", "broken.xlsx", "--target", "outcome", "-o", "two.toml")
    assert broken.code == 2
    assert "cannot be read as excel" in broken.err


def test_tables_of_duckdb(hushfit):
    duckdb = pytest.importorskip("duckdb")
    rows = pa.table(visits())
    with duckdb.connect("hospital.db") as connection:
        connection.register("given", rows)
        connection.execute('CREATE TABLE "all visits" AS SELECT * FROM given')
    address = "duckdb:///hospital.db?table=all visits"
    found, _, _ = drafted(hushfit, address)
    assert found["person"] == "patient_nbr"
    assert fitted(hushfit, address).code == 0
    query = "duckdb:///hospital.db?query=SELECT * FROM \"all visits\" WHERE sex = 'f'"
    assert fitted(hushfit, query).code == 0
    for bad, says in (
        ("duckdb:///hospital.db", "?table=NAME"),
        ("duckdb:///hospital.db?table=none", "cannot be read (CatalogException)"),
        ("duckdb:///no.db?table=t", "cannot be read (IOException)"),
    ):
        refused = fitted(hushfit, bad)
        assert refused.code == 2
        assert says in " ".join(refused.err.split()), bad


def test_a_password_is_in_no_message():
    from hushfit.data.tables._databases import DatabaseTable

    address = "postgresql://ann:secret@db.example:5433/h?sslmode=require&table=public.visits"
    found = DatabaseTable.parse(address)
    assert "secret" not in found.title
    assert found.database == "postgresql://ann:secret@db.example:5433/h?sslmode=require"
    assert found.selected(["a", 'b"c']) == (
        'SELECT "a", "b""c" FROM "public"."visits" AS hushfit_rows'
    )
    [table] = find_tables([address])
    assert "secret" not in table.title


def test_typed_columns_of_parquet(hushfit):
    rows = visits()
    typed = pa.table(
        {
            **rows,
            "age": pa.array([int(age) for age in rows["age"]], pa.int8()),
            "sex": pa.array(rows["sex"]).dictionary_encode(),
            "admitted": pa.array(np.array(rows["admitted"], "datetime64[us]")),
            "flag": pa.array([k % 2 == 0 for k in range(COUNT)]),
            "scans": pa.array([[1, 2]] * COUNT),
            "stay": pa.array(np.arange(COUNT).astype("timedelta64[s]")),
        }
    )
    pa.parquet.write_table(typed, "visits.parquet")
    found, _, _ = drafted(hushfit, "visits.parquet")
    assert found["columns"]["admitted"]["kind"] == "date"
    assert found["columns"]["flag"]["kind"] == "categorical"
    assert "lists or bytes" in found["left_out"]["scans"]
    assert "durations; store numbers" in found["left_out"]["stay"]
    assert fitted(hushfit, "visits.parquet").code == 0


REFUSED = {
    "no header": ("h.csv", b"\n1,2\n", "has no header"),
    "column twice": ("t.csv", b"outcome,a,a\nx,1,2\ny,2,3\n", "the columns ['a'] twice"),
    "ragged": ("r.csv", b"outcome,a\nx,1\ny,2,3\n", "has 3 cells, the header has 2"),
    "archive": ("visits.zip", None, "is an archive"),
    "no such target": ("n.csv", b"a,b\n1,2\n3,4\n", "no column 'outcome'"),
    "only text": (
        "o.csv",
        b"outcome,n\n"
        + b"".join(b"xy"[k % 2 :][:1] + b",story %d is long\n" % k for k in range(40)),
        "no column is left",
    ),
}


@pytest.mark.parametrize(("name", "data", "says"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_refused_with_the_remedy(hushfit, name, data, says):
    if data is None:
        with zipfile.ZipFile(name, "w") as archive:
            archive.writestr("visits.csv", "a,b\n1,2\n")
    else:
        Path(name).write_bytes(data)
    refused = hushfit("schema", name, "--target", "outcome", "-o", "draft.toml")
    assert refused.code == 2
    assert says in " ".join(refused.err.split())
    assert not Path("draft.toml").exists()


def test_bad_options_name_the_value():
    for settings, says in (({"encoding": "klingon"}, "klingon"), ({"delimiter": ";;"}, "';;'")):
        with pytest.raises(InvalidArgument, match=says):
            TextForm(**settings)


def test_a_form_is_seen_once(tmp_path):
    (tmp_path / "t.csv").write_bytes("näme|b\nü|1\n".encode())
    [table] = find_tables([str(tmp_path / "t.csv")])
    assert sniffed_form(table) == TextForm(delimiter="|")


def test_frequent_labels_are_found_privately_and_paid_for(hushfit):
    """At epsilon 2 a label of two thirds of 600 rows is named; one of a single row never is: the
    threshold is exceeded by chance with probability below delta.
    """
    rows = visits()
    rows["diagnosis"] = [["250.01", "V57", "?"][k % 3] for k in range(COUNT)]
    rows["diagnosis"][7] = "rare"
    del rows["patient_nbr"]
    write_csv("visits.csv", rows)
    _, text, _ = drafted(hushfit, "visits.csv")
    hashed = 'kind = "hashed"\nmissing_values = ["?"]\n'
    start = text.index('[columns."diagnosis"]')
    stop = text.index("confirm", start)
    Path("schema.toml").write_text(text[:start] + '[columns."diagnosis"]\n' + hashed + text[stop:])
    hushfit("ledger", "init", "l.db", "--dataset", "v", "--epsilon", 3, "--delta", 1e-4)
    call = (
        "discover",
        "visits.csv",
        "--schema",
        "schema.toml",
        "--delta",
        1e-5,
        "-o",
        "found.toml",
    )
    account = ("--ledger", "l.db", "--dataset", "v")
    told = hushfit(*call, "--epsilon", 2, "--seed", 1, *account, "--json").json
    assert set(told["labels"]["diagnosis"]) == {"250.01", "V57"}
    file = parse_schema(Path("found.toml").read_text())
    [column] = [c for c in file.schema.columns if c.name == "diagnosis"]
    assert set(column.categories) == {"250.01", "V57"}
    assert (column.missing, column.missing_values) == ("indicator", ("?",))
    assert "diagnosis" not in file.unconfirmed
    assert "Found privately" in Path("found.toml").read_text()
    spent = hushfit("ledger", "show", "l.db", "--dataset", "v", "--json").json
    assert 1 < spent["datasets"][0]["spent"] <= 2
    over = hushfit(*call, "--epsilon", 2.9, *account, "--overwrite")
    assert over.code == 3
    for options, says in (
        (("--column", "outcome", "--epsilon", 1), "is the target"),
        (("--column", "none", "--epsilon", 0.1), "no column 'none'"),
    ):
        refused = hushfit(*call, *options, *account, "--overwrite")
        assert refused.code == 2
        assert says in " ".join(refused.err.split())


def test_an_index_without_a_name_is_left_out(hushfit):
    """As pandas writes it, unless it is told not to."""
    write_csv("visits.csv", {"": [str(k) for k in range(COUNT)], **visits()})
    found, _, _ = drafted(hushfit, "visits.csv")
    assert "it has no name" in found["left_out"][""]
    assert fitted(hushfit, "visits.csv").code == 0


def test_columns_are_listed_without_a_draft(hushfit):
    rows = {"größe": visits()["age"], **visits()}
    write_csv("visits.csv", rows)
    listed = hushfit("schema", "visits.csv", "--columns", "--json")
    assert listed.json["columns"] == list(rows)
    Path("latin.csv").write_bytes(Path("visits.csv").read_text("utf-8").encode("cp1252"))
    assert hushfit("schema", "latin.csv", "--columns").out.split()[0] == "größe"
    assert not Path("draft.toml").exists()
