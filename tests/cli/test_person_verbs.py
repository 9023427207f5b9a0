"""Persons with several rows, from the column of ids in a schema or an option to the report."""

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from conftest_cli import SCHEMA, write_csv

from hushfit import load_model
from hushfit.cli._draft import named_like_ids
from hushfit.cli._printing import reading_bar
from hushfit.data import as_source
from hushfit.data.rows import PersonIndex, persons_of
from hushfit.data.schema import Schema, encode, parse_schema, schema_hash, schema_to_toml
from hushfit.data.tables import CodedRows, SchemaFile, find_tables, table_batches
from hushfit.datasets import ADULT_SCHEMA
from hushfit.errors import InvalidArgument
from hushfit.report.scores._score_errors import auc_influences, mean_influences, standard_error
from hushfit.solvers import SOLVERS
from hushfit.unit import ROW, PrivacyUnit

PUBLIC = parse_schema(SCHEMA).schema
PERSON = replace(PUBLIC, person="who")
FIT = ("fit", "visits.csv", "--schema", "schema.toml", "--epsilon", 2, "--delta", 1e-5)


def make_visits(persons, seed=0):
    """Visits of persons, 1 to 6 each and alike, in no order of persons."""
    generator = np.random.default_rng(seed)
    counts = generator.integers(1, 7, persons)
    who = generator.permutation(np.repeat(np.arange(persons), counts))
    ages = np.clip(
        generator.uniform(0, 100, persons)[who] + generator.normal(0, 2, len(who)), 0, 99
    )
    ill = generator.random(persons)[who] < 1 / (1 + np.exp(-(ages - 50) / 8))
    return {
        "visit": [str(10_000 + k) for k in range(len(who))],
        "who": [str(2**53 + int(p)) for p in who],
        "age": [f"{age:.2f}" for age in ages],
        "city": generator.choice(["Bern", "Zug, upper", "Ulm", "Rom"], len(who)).tolist(),
        "ill": np.where(ill, "yes", "no").tolist(),
    }


VISITS = make_visits(600)


@pytest.fixture
def visits(hushfit, tmp_path):
    """A folder with visits of persons, a schema without and one with their ids, and a ledger."""
    write_csv("visits.csv", VISITS)
    write_csv("held-out.csv", make_visits(120, seed=1))
    Path("schema.toml").write_text(SCHEMA)
    Path("person.toml").write_text('person = "who"\n' + SCHEMA)
    opened = hushfit(
        "ledger", "init", "ledger.db", "--dataset", "people", "--epsilon", 9, "--delta", 1e-5
    )
    assert opened.code == 0
    return tmp_path


# --- the schema


def test_a_schema_with_ids_comes_back_and_an_old_one_keeps_its_hash():
    assert schema_hash(ADULT_SCHEMA) == schema_hash(Schema.from_dict(ADULT_SCHEMA.to_dict()))
    assert "person" not in PUBLIC.to_dict()
    assert PUBLIC.privacy_unit == ROW
    for schema in (PERSON, replace(PERSON, person_weight="cap", rows_per_person=3)):
        assert Schema.from_dict(schema.to_dict()) == schema
        marked = SchemaFile(schema, ("age", "the unit of privacy"))
        text = schema_to_toml(marked, {"": "Top", "the unit of privacy": "who\nis who"})
        assert parse_schema(text) == marked
    assert PERSON.privacy_unit == PrivacyUnit.person(column="who")
    assert PERSON.feature_names == PUBLIC.feature_names


BAD_SCHEMAS = {
    "target": ('person = "ill"', "target 'ill' is also named"),
    "feature": ('person = "age"', "id column 'age' is also among the columns"),
    "no name": ('person = ""', "named ''"),
    "a number": ("person = 3", "named 3"),
    "weight": ('person = "who"\nperson_weight = "max"', "person_weight='max' is not known"),
    "empty weight": ('person = "who"\nperson_weight = ""', "is not known"),
    "cap": ('person = "who"\nperson_weight = "cap"', "needs rows_per_person"),
    "none": ('person = "who"\nrows_per_person = 0', "rows_per_person=0"),
    "negative": ('person = "who"\nrows_per_person = -3', "rows_per_person=-3"),
    "true": ('person = "who"\nrows_per_person = true', "rows_per_person=True"),
    "text": ('person = "who"\nrows_per_person = "3"', "rows_per_person='3'"),
    "huge": (f'person = "who"\nrows_per_person = {10**400}', "is above 1000000"),
    "beyond digits": (f'person = "who"\nrows_per_person = 1{"0" * 9000}', "TOML"),
    "alone": ("rows_per_person = 3", "no column of ids is named"),
}


@pytest.mark.parametrize(("line", "message"), BAD_SCHEMAS.values(), ids=BAD_SCHEMAS)
def test_a_schema_that_makes_no_persons_is_refused(line, message):
    with pytest.raises(InvalidArgument, match=message):
        parse_schema(f"{line}\n{SCHEMA}")


# --- the draft


def test_a_draft_proposes_ids_and_never_learns_from_them(hushfit, visits):
    drafted = hushfit("schema", "visits.csv", "--target", "ill", "-o", "draft.toml", "--json").json
    assert "person" not in drafted  # 'who' and 'visit' do not say that they are ids
    rows = {**VISITS, "patient_nbr": VISITS["who"], "VisitID": VISITS["visit"]}
    del rows["who"], rows["visit"]
    write_csv("named.csv", rows)
    shown = hushfit("schema", "named.csv", "--target", "ill", "-o", "named.toml")
    assert "patient_nbr (person)" in shown.out
    text = Path("named.toml").read_text()
    file = parse_schema(text)
    assert file.schema.person == "patient_nbr"
    assert [column.name for column in file.schema.columns] == ["age", "city"]
    assert "the unit of privacy" in file.unconfirmed
    assert "every row has another value" in text
    assert "# Rows with the same id are one person's" in text
    fit = ("fit", "named.csv", "--schema", "named.toml", "--epsilon", 2, "--delta", 1e-5)
    refused = hushfit(*fit, "-o", "m.json")
    assert refused.code == 2
    assert "the unit of privacy" in refused.err
    # Whoever names the column has confirmed it.
    Path("named.toml").write_text(text.replace("confirm = true\n", "", 1))
    assert "the unit of privacy" not in parse_schema(Path("named.toml").read_text()).unconfirmed
    assert "the unit of privacy" not in hushfit(*fit, "--person", "patient_nbr", "-o", "m.json").err


def test_a_draft_without_names_needs_many_ids(hushfit, tmp_path):
    generator = np.random.default_rng(0)
    count = 4000
    table = {
        "a": generator.integers(10**6, 10**6 + 3000, count).astype(str).tolist(),
        "b": [str(7 * k) for k in generator.permutation(count)],
        "age": generator.integers(0, 90, count).astype(str).tolist(),
        "income": [f"{v:.2f}" for v in generator.uniform(0, 1e5, count)],
        "born": [f"19{k % 90 + 10}-0{k % 9 + 1}-{k % 28 + 1:02d}" for k in range(count)],
        "ill": ["yes", "no"] * (count // 2),
    }
    write_csv("t.csv", table)
    drafted = hushfit("schema", "t.csv", "--target", "ill", "-o", "t.toml", "--json").json
    assert drafted["person"] == "a"
    assert set(drafted["columns"]) == {"age", "income", "born"}
    assert drafted["columns"]["born"]["kind"] == "date"
    assert set(drafted["left_out"]) == {"b"}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("patient_nbr", True),
        ("PatientID", True),
        ("customerId", True),
        ("user", True),
        ("account number", True),
        ("paid", False),
        ("patient_weight", False),
        ("number_outpatient", False),
        ("humid", False),
        ("", False),
    ],
)
def test_names_that_tell_of_ids(name, told):
    assert named_like_ids(name) is told


# --- the rows


def packed(tables, schema=PERSON):
    return CodedRows.from_tables(find_tables([str(table) for table in tables]), schema)


def test_packed_rows_of_persons_answer_as_rows_in_memory(tmp_path):
    """With the ids in three files of three formats, as texts and as numbers."""
    n = len(VISITS["who"])
    parts = np.array_split(np.arange(n), 3)
    pieces = [{k: [v[i] for i in part] for k, v in VISITS.items()} for part in parts]
    write_csv(tmp_path / "0.csv", pieces[0])
    numbers = pa.array([int(v) for v in pieces[1]["who"]], pa.int64())
    typed = pa.table({**pieces[1], "who": numbers})
    pa.parquet.write_table(typed, tmp_path / "1.parquet", row_group_size=100)
    coded = pa.table({**pieces[2], "who": pa.array(pieces[2]["who"]).dictionary_encode()})
    with pa.ipc.new_file(tmp_path / "2.arrow", coded.schema) as writer:
        writer.write_table(coded)
    X, _ = encode(VISITS, PUBLIC)
    y = np.where(np.array(VISITS["ill"]) == "no", 1.0, -1.0)
    dense = as_source(X.astype(np.float32), y, persons=persons_of(VISITS["who"], n, ROW_OF_PERSON))
    w = np.random.default_rng(1).normal(size=6)
    with packed([tmp_path / "0.csv", tmp_path / "1.parquet", tmp_path / "2.arrow"]) as rows:
        assert rows.n_units == dense.n_units == 600
        assert rows.privacy_unit == PrivacyUnit.person(column="who")
        assert np.array_equal(rows.shares, dense.shares)
        sums = [
            sum(b.gradient_sum(w, np.array([0.4]), 0, 0.0, 2.0**-30) for b in source.blocks())
            for source in (rows, dense)
        ]
        assert np.allclose(sums[0], sums[1], rtol=1e-5)
        drawn = rows.persons.codes[[5, 9, 700]]
        places = np.concatenate([block.place for block in rows.blocks(np.unique(drawn))])
        assert set(np.flatnonzero(np.isin(rows.persons.codes, drawn))) == set(places)


ROW_OF_PERSON = PrivacyUnit.person()


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([2**53, 2**53 + 1, 2**53, None, None], pa.int64()),
        pa.array([2**64 - 1, 2**64 - 2, 2**64 - 1, None, None], pa.uint64()),
        pa.array([1.0, 2.0, 1.0, None, float("nan")]),
        pa.array(["a", "b", " a", "", None]),
        pa.array(["a", "b", "a", "", None]).dictionary_encode(),
        pa.array(["a", "b", "a", None, None], pa.string_view()),
        pa.array([b"\xff", b"\xfe", b"\xff", b"", None]),
        pa.array([b"\xff1", b"\xfe1", b"\xff1", None, None], pa.binary(2)),
        pa.array([7, 9, 7, None, None], pa.date32()),
        pa.array([7, 9, 7, None, None], pa.timestamp("ns", "UTC")),
        pa.array([7, 9, 7, None, None], pa.decimal128(38, 0)),
        pa.array([True, False, True, None, None]),
    ],
    ids=lambda cells: str(cells.type),
)
def test_ids_of_every_type_in_a_file(cells, tmp_path):
    count = len(cells)
    columns = {"age": ["1"] * count, "city": ["Ulm"] * count, "ill": ["no"] * count, "who": cells}
    table = pa.table(columns)
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    with packed([tmp_path / "t.arrow"]) as rows:
        codes = rows.persons.codes
        assert rows.n_units == 4
        assert codes[0] == codes[2]
        assert len({int(code) for code in codes}) == 4


def test_a_slice_of_a_batch_has_its_own_ids():
    whole = pa.array(["x", "a", "b", "a", None, "b"])
    index = PersonIndex()
    a, b, *rest = index.add(whole[1:]).tolist()
    assert {a, b} == {0, 1}  # in which order, a random key decides
    assert rest == [a, -1, b]
    assert index.add(whole[:2].dictionary_encode()).tolist() == [2, a]


def test_optional_columns_are_read_where_they_are(tmp_path):
    path = write_csv(tmp_path / "t.csv", {"a": ["1"], "b": ["2"]})
    (table,) = find_tables([path])
    (batch,) = table_batches(table, ["b"], optional=["c", "a", "b"])
    assert batch.schema.names == ["b", "a"]


PEAK = """
import sys, resource
import numpy as np, pyarrow as pa
from hushfit.data.rows import PersonIndex
index = PersonIndex()
index.add(np.arange(70_000)), index.add(pa.array(["a"]))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for k in range(60):
    ids = pa.array(np.arange(65_536) % 1000 + 0.5 + 1000 * (k % 2))
    index.add(ids.cast(pa.string()))
print(index.n_ids, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_ids_are_counted_without_holding_rows():
    """Four million rows of two thousand persons; as texts they would take 40 MB."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    ids, kilobytes = map(int, done.stdout.split())
    assert ids == 70_000 + 1 + 2000
    assert kilobytes < 25_000


# --- fit


def test_an_option_and_a_schema_give_the_same_model(hushfit, visits):
    seeded = (*FIT[4:], "--seed", 3)
    by_schema = hushfit(*FIT[:2], "--schema", "person.toml", *seeded, "-o", "a.json")
    assert by_schema.code == 0, by_schema.err
    assert hushfit(*FIT[:4], *seeded, "--person", "who", "-o", "b.json").code == 0
    first, second = load_model("a.json"), load_model("b.json")
    assert first.guarantee == second.guarantee
    assert first.guarantee.unit == PrivacyUnit.person(column="who")
    assert np.array_equal(first.estimator.coef_, second.estimator.coef_)
    assert first.schema == second.schema
    assert "who" not in " ".join(first.feature_names)
    assert "label only" not in by_schema.err
    assert "one person" in by_schema.out
    assert "the number of persons, 600" in " ".join(by_schema.out.replace("│", "").split())


def test_weights_are_stated_and_overridden(hushfit, visits):
    capped = ("--person-weight", "cap", "--rows-per-person", 3)
    for schema, person in (("schema.toml", ("--person", "who")), ("person.toml", ())):
        fit = (*FIT[:2], "--schema", schema, *FIT[4:], *person, *capped)
        assert hushfit(*fit, "-o", "m.json", "--overwrite").code == 0
        unit = load_model("m.json").guarantee.unit
        assert (unit.weighting, unit.full_weight, unit.rows_per_person) == ("cap", 3, 1000)
    assert hushfit(*FIT, "--person", "who", "--rows-per-person", 2, "-o", "n.json").code == 0
    unit = load_model("n.json").guarantee.unit
    assert (unit.weighting, unit.full_weight, unit.rows_per_person) == ("mean", 1, 2)


@pytest.mark.parametrize(
    ("weight", "options", "rows"),
    [("mean", (), 1000), ("mean", ("--rows-per-person", 5), 5), ("cap", (), 1000)],
)
def test_another_weighting_does_not_take_the_schemas_bound(hushfit, visits, weight, options, rows):
    """3 is where a person counts as one under "cap"; under "mean" it would cut rows off."""
    lines = 'person = "who"\nperson_weight = "cap"\nrows_per_person = 3\n'
    Path("capped.toml").write_text(lines + SCHEMA)
    fit = (*FIT[:2], "--schema", "capped.toml", *FIT[4:], "--person-weight", weight)
    result = hushfit(*fit, *options, "-o", "m.json")
    assert result.code == 0
    unit = load_model("m.json").guarantee.unit
    assert (unit.weighting, unit.rows_per_person) == (weight, rows)
    assert unit.full_weight == (3 if weight == "cap" else 1)
    assert ("rows_per_person = 3 is for another" in result.err) is (
        weight == "mean" and not options
    )


def test_a_cap_does_not_take_the_bound_of_a_mean(hushfit, visits):
    Path("person.toml").write_text('person = "who"\nrows_per_person = 3\n' + SCHEMA)
    fit = (*FIT[:2], "--schema", "person.toml", *FIT[4:], "--person-weight", "cap")
    result = hushfit(*fit, "-o", "m.json")
    assert result.code == 2
    assert "needs rows_per_person" in result.err


def test_fit_says_what_an_account_means_for_persons(hushfit, visits):
    opened = ("ledger", "init", "ledger.db", "--epsilon", 9, "--delta", 1e-5, "--unit", "person")
    assert hushfit(*opened, "--dataset", "named", "--person-column", "who").code == 0
    assert hushfit(*opened, "--dataset", "open").code == 0
    paid = (*FIT, "--person", "who", "--ledger", "ledger.db", "--overwrite", "-o", "m.json")
    rows, named, first, second = (
        hushfit(*paid, "--dataset", name) for name in ("people", "named", "open", "open")
    )
    assert [result.code for result in (rows, named, first, second)] == [0, 0, 0, 0]
    assert "'people' protects rows only" in rows.err
    assert "ledger init ledger.db --dataset NAME" in rows.err
    assert "--unit person --person-column who" in rows.err
    assert "binds it: all later ones for persons must use column 'who'" in first.err
    for result in (named, first, second):
        assert "protects rows only" not in result.err
    for result in (rows, named, second):
        assert "binds it" not in result.err
    # Refusals name the options of the program.
    alone = hushfit(*FIT, "--ledger", "ledger.db", "--dataset", "open", "-o", "n.json")
    other = (*FIT, "--person", "visit", "--ledger", "ledger.db", "--dataset", "open")
    other = hushfit(*other, "-o", "n.json")
    assert (alone.code, other.code) == (4, 4)
    assert "--person on the command line" in alone.err
    assert "--person on the command line" in other.err
    bare = hushfit(*opened[:-2], "--dataset", "bare", "--person-column", "who")
    assert bare.code == 2
    assert "--unit person" in bare.err


def test_a_missing_id_is_explained_once(hushfit, visits):
    shown = hushfit(*FIT, "--person", "who", "-o", "m.json").out
    words = " ".join(shown.replace("│", "").split())
    assert words.count("without an id") == 1


def test_ids_in_several_files_are_one_persons(hushfit, visits):
    half = len(VISITS["who"]) // 2
    write_csv("part-0.csv", {k: v[:half] for k, v in VISITS.items()})
    write_csv("part-1.csv", {k: v[half:] for k, v in VISITS.items()})
    seeded = (*FIT[2:], "--person", "who", "--seed", 3)
    assert hushfit("fit", "visits.csv", *seeded, "-o", "a.json").code == 0
    assert hushfit("fit", "part-*.csv", *seeded, "-o", "b.json").code == 0
    first, second = load_model("a.json"), load_model("b.json")
    assert first.guarantee.public == second.guarantee.public
    assert np.array_equal(first.estimator.coef_, second.estimator.coef_)


def test_every_id_different_is_the_fit_of_single_rows(hushfit, visits):
    """Up to the grid of the noise, which allows for more rows of a person."""
    seeded = (*FIT, "--seed", 3)
    assert hushfit(*seeded, "-o", "rows.json").code == 0
    assert hushfit(*seeded, "--person", "visit", "-o", "persons.json").code == 0
    rows, persons = load_model("rows.json"), load_model("persons.json")
    assert np.allclose(rows.estimator.coef_, persons.estimator.coef_, rtol=1e-3)
    assert persons.guarantee.unit.is_person


def test_a_large_delta_is_one_over_the_number_of_persons(hushfit, visits):
    rows = len(VISITS["who"])
    delta = 0.5 * (1 / rows + 1 / 600)  # above one over the rows, below one over the persons
    fit = (*FIT[:-1], delta, "--ledger", "ledger.db", "--dataset", "people")
    assert 1 / rows < delta < 1 / 600
    assert hushfit(*fit[:-4], "--person", "who", "-o", "m.json").code == 0
    assert hushfit(*fit[:-4], "-o", "n.json").code == 2
    refused = hushfit(*FIT[:-1], 0.002, "--person", "who", "-o", "n.json")
    assert refused.code == 2
    assert "1/(number of persons)" in refused.err
    assert "all rows of one person" in refused.err
    assert str(rows) not in refused.err


def stretched(columns):
    """The same persons, the first of them with thirty more rows."""
    first = columns["who"].index(str(2**53))
    return {name: cells + [cells[first]] * 30 for name, cells in columns.items()}


def test_nothing_written_or_printed_tells_the_number_of_rows(hushfit, visits):
    """Everything but the weights, whose noise covers them, is the same for more rows of a person.

    Of the weights only their number and the digits they are written with may differ.
    """
    outputs = []
    for columns in (VISITS, stretched(VISITS)):
        write_csv("visits.csv", columns)
        run = hushfit(*FIT, "--person", "who", "-o", "m.json", "--overwrite")
        shown = run.out.split("Model:")[0] + run.err
        stored = json.loads(Path("m.json").read_text())
        for key in ("coef", "intercept", "standard_error", "hash"):
            stored.pop(key)
        stored["provenance"].pop("created")
        machine = hushfit(*FIT, "--person", "who", "-o", "m.json", "--overwrite", "--json").json
        machine.pop("hash")
        outputs.append((shown, stored, machine))
        assert str(len(columns["who"])) not in shown + json.dumps(stored)
    assert outputs[0] == outputs[1]


def test_progress_shows_no_size_when_rows_are_private(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    path = tmp_path / "t.csv"
    path.write_bytes(b"x" * 123_456)
    shown = {}
    for sized in (True, False):
        with reading_bar([str(path)], True, sized) as watch:
            watch(123_456)
        shown[sized] = capsys.readouterr().err
    assert "123.5" in shown[True]
    assert "Reading" in shown[False]
    assert "123" not in shown[False]
    assert "kB" not in shown[False]


BAD_FITS = {
    "unknown column": (("--person", "nobody"), "has no column 'nobody'"),
    "target": (("--person", "ill"), "target 'ill'"),
    "feature": (("--person", "age"), "id column 'age' is also among"),
    "no rows": (("--person", "who", "--rows-per-person", 0), "--rows-per-person 0"),
    "negative": (("--person", "who", "--rows-per-person", -2), "--rows-per-person -2"),
    "huge": (("--person", "who", "--rows-per-person", 10**400), "is above 1000000"),
    "text": (("--person", "who", "--rows-per-person", "many"), "not a valid integer"),
    "weight": (("--person", "who", "--person-weight", "max"), "'max' is not one of"),
    "cap": (("--person", "who", "--person-weight", "cap"), "needs rows_per_person"),
    "weights alone": (("--rows-per-person", 3), "no column of ids is named"),
    "all equal": (("--person", "same"), "All ids in column 'same' are equal"),
    "all missing": (("--person", "none"), "No row has an id in column 'none'"),
    "empty name": (("--person", ""), "named ''"),
}


@pytest.mark.parametrize(("options", "message"), BAD_FITS.values(), ids=BAD_FITS)
def test_bad_persons_are_code_2_and_cost_nothing(hushfit, visits, options, message):
    count = len(VISITS["who"])
    write_csv("visits.csv", {**VISITS, "same": ["a"] * count, "none": [""] * count})
    before = sorted(os.listdir())
    result = hushfit(*FIT, *options, "--ledger", "ledger.db", "--dataset", "people", "-o", "m.json")
    assert result.code == 2
    assert message in result.err
    assert sorted(os.listdir()) == before
    assert payments(hushfit) == 0


def payments(hushfit):
    return hushfit("ledger", "show", "ledger.db", "--json").json["datasets"][0]["payments"]


def test_ids_missing_in_one_of_two_files_cost_nothing(hushfit, visits):
    write_csv("more.csv", {name: cells for name, cells in VISITS.items() if name != "who"})
    paid = ("--ledger", "ledger.db", "--dataset", "people", "-o", "m.json")
    result = hushfit("fit", "visits.csv", "more.csv", *FIT[2:], "--person", "who", *paid)
    assert result.code == 2
    assert "more.csv has no column 'who'" in result.err
    assert not Path("m.json").exists()
    assert payments(hushfit) == 0


def test_two_rows_are_refused_without_their_number(hushfit, visits):
    write_csv("visits.csv", {name: cells[:1] for name, cells in VISITS.items()})
    result = hushfit(*FIT, "--person", "who", "-o", "m.json")
    assert result.code == 2
    assert "fewer than 2 rows" in result.err


# --- check, plan, evaluate, report


def test_check_counts_persons(hushfit, visits):
    who = VISITS["who"]
    write_csv("visits.csv", {**VISITS, "who": ["", "", *who[2:]]})
    Path("person.toml").write_text('person = "who"\nrows_per_person = 2\n' + SCHEMA)
    found = hushfit("schema", "--check", "visits.csv", "person.toml", "--json").json
    assert found["private"] is False
    _, counts = np.unique(who[2:], return_counts=True)
    counts = np.sort(np.append(counts, [1, 1]))
    persons = found["persons"]
    assert (persons["persons"], persons["missing"]) == (len(counts), 2)
    assert (persons["median"], persons["most"]) == (counts[(len(counts) - 1) // 2], 6)
    assert persons["ninety"] == counts[int(np.ceil(0.9 * len(counts))) - 1]
    assert persons["unused"] == np.maximum(counts - 2, 0).sum()
    shown = hushfit("schema", "--check", "visits.csv", "person.toml")
    assert "NOT PRIVATE: persons, by column who" in shown.out
    assert "2 of" in shown.out
    assert (
        hushfit("schema", "--check", "visits.csv", "schema.toml", "--json").json["persons"] is None
    )


def test_check_prints_long_remarks_in_full_below_the_table(hushfit, visits):
    labels = [f"label number {k} that no row has" for k in range(40)]
    unused = SCHEMA.replace('"Ulm"', ", ".join(f'"{label}"' for label in labels))
    Path("long.toml").write_text(unused)
    shown = hushfit("schema", "--check", "visits.csv", "long.toml", "--person", "who")
    assert shown.code == 0
    head = next(line for line in shown.out.splitlines() if "column" in line)
    assert head.split() == ["column", "rows", "missing"]
    words = " ".join(shown.out.split())
    assert all(repr(label) in words for label in labels)
    assert "NOT PRIVATE: persons, by column who" in shown.out
    assert all(len(line) <= 120 for line in shown.out.splitlines())
    found = hushfit("schema", "--check", "visits.csv", "long.toml", "--person", "who", "--json")
    assert found.json["persons"]["persons"] == 600
    absent = hushfit("schema", "--check", "visits.csv", "schema.toml", "--person", "nosuch")
    assert absent.code == 2
    assert "no column 'nosuch', which the schema or an option names" in absent.err
    draft = hushfit("schema", "visits.csv", "--target", "ill", "--person", "who", "-o", "d.toml")
    assert draft.code == 2
    assert "See `hushfit schema --help`" in draft.err


REMARKS = {
    "every person has one row": ["a", "b", "c"],
    "no row has an id": ["", "", ""],
    "fewer than two persons": ["a", "a", "a"],
    "is it a mark for missing ids": [*map(str, range(30)), *["NA"] * 40],
}


@pytest.mark.parametrize(("remark", "ids"), REMARKS.items(), ids=REMARKS)
def test_check_says_what_is_odd_about_ids(hushfit, visits, remark, ids):
    columns = {name: cells[: len(ids)] for name, cells in VISITS.items()}
    write_csv("few.csv", {**columns, "who": ids})
    found = hushfit("schema", "--check", "few.csv", "person.toml", "--json").json["persons"]
    assert remark in " ".join(found["remarks"])


def test_plan_counts_persons(hushfit, monkeypatch):
    few = {name: SOLVERS[name] for name in ("whitened-gd", "ssp")}
    monkeypatch.setattr("hushfit.forecast._accuracy.SOLVERS", few)
    rows = hushfit("plan", "--rows", 5000, "--columns", 9, "--epsilon-range", "1:1", "--json").json
    plan = ("plan", "--persons", 5000, "--columns", 9, "--epsilon-range", "1:1")
    persons = hushfit(*plan, "--json").json
    assert persons["persons"] == 5000
    assert "rows" not in persons
    first, second = rows["plans"][0], persons["plans"][0]
    assert first["loss"] == second["loss"]
    assert first["rows_needed"] == second["persons_needed"]
    assert first["noise"][0] == second["noise"][0]
    shown = hushfit(*plan, "--person-weight", "cap", "--rows-per-person", 3)
    assert "5,000 persons" in shown.out
    assert "persons to lose" in shown.out
    assert "measured with one row per person and two classes" in shown.err
    wrong = ((), ("--rows", 9, "--persons", 9), ("--rows", 9, "--rows-per-person", 3))
    for options in (*wrong, ("--persons", 9, "--person-weight", "cap"), ("--persons", 1)):
        assert hushfit("plan", "--columns", 9, *options).code == 2, options


def test_clustered_errors_are_those_computed_by_hand():
    values, persons = np.array([1.0, 0.0, 1.0, 1.0]), np.array([7, 7, 2, 3])
    # Mean 3/4; deviations 1/4, -3/4, 1/4, 1/4; sums per person -1/2, 1/4, 1/4.
    expected = np.sqrt(3 / 2 * (0.5**2 + 0.25**2 + 0.25**2)) / 4
    assert standard_error(mean_influences(values), persons) == pytest.approx(expected)
    # Without persons the textbook formula, with n - 1.
    assert standard_error(mean_influences(values), None) == pytest.approx(
        values.std(ddof=1) / np.sqrt(4)
    )
    assert standard_error(mean_influences(values), np.zeros(4, int)) is None


def test_auc_influences_are_the_change_when_a_row_is_left_out():
    """The jackknife, to first order; ties included."""
    generator = np.random.default_rng(0)
    score = generator.integers(0, 40, 400) / 40.0
    positive = generator.random(400) < score

    def area(keep):
        above = score[keep & positive][:, None] - score[keep & ~positive][None, :]
        return np.mean((above > 0) + 0.5 * (above == 0))

    every = np.ones(400, bool)
    left_out = []
    for k in range(400):
        keep = every.copy()
        keep[k] = False
        left_out.append(area(every) - area(keep))
    influences = auc_influences(score, positive)
    assert abs(influences.sum()) < 1e-12
    assert np.allclose(influences, left_out, rtol=0.02, atol=1e-7)


def test_clustered_errors_match_the_spread_over_tables():
    """Tables of 150 persons with 1 to 6 like rows: the spread of 400 tables' scores against the
    mean stated error. The ratio has a standard deviation of about .04; seeds are fixed.
    """
    found = {"mean": [], "auc": []}
    stated = {"mean": [], "auc": [], "rows": []}
    for seed in range(400):
        generator = np.random.default_rng(seed)
        counts = generator.integers(1, 7, 150)
        persons = np.repeat(np.arange(150), counts)
        level = generator.normal(size=150)[persons]
        positive = generator.normal(size=150)[persons] + 0.3 * generator.normal(size=len(level)) > 0
        score = level + 0.5 * positive + 0.3 * generator.normal(size=len(level))
        ranks = score.argsort().argsort() + 1.0
        n1 = positive.sum()
        area = (ranks[positive].sum() - n1 * (n1 + 1) / 2) / (n1 * (len(score) - n1))
        found["mean"].append(positive.mean())
        found["auc"].append(area)
        stated["mean"].append(standard_error(mean_influences(positive), persons))
        stated["rows"].append(standard_error(mean_influences(positive), None))
        stated["auc"].append(standard_error(auc_influences(score, positive), persons))
    for name in found:
        assert np.mean(stated[name]) / np.std(found[name]) == pytest.approx(1, abs=0.15), name
    assert np.mean(stated["rows"]) < 0.65 * np.std(found["mean"])


def test_evaluate_clusters_by_person_where_it_can(hushfit, visits):
    assert hushfit(*FIT, "--person", "who", "-o", "m.json").code == 0
    held_out = make_visits(120, seed=1)
    clustered = hushfit("evaluate", "m.json", "held-out.csv", "--json").json
    assert clustered["persons"] == 120
    right = np.array(load_model("m.json").predict(held_out)) == np.array(held_out["ill"])
    _, codes = np.unique(held_out["who"], return_inverse=True)
    sums = np.bincount(codes, right - right.mean()) / len(right)
    expected = np.sqrt(120 / 119 * np.sum(sums**2))
    assert clustered["accuracy_error"] == pytest.approx(expected)
    shown = hushfit("evaluate", "m.json", "held-out.csv")
    assert f"+- {expected:.4f}" in shown.out
    assert "clustered by person: 120 persons" in shown.err
    del held_out["who"]
    write_csv("no-ids.csv", held_out)
    rows = hushfit("evaluate", "m.json", "no-ids.csv", "--json").json
    assert rows["persons"] is None
    p, n = rows["accuracy"], rows["rows"]
    assert rows["accuracy_error"] == pytest.approx(np.sqrt(p * (1 - p) / (n - 1)))
    assert rows["accuracy"] == clustered["accuracy"]
    assert rows["accuracy_error"] < clustered["accuracy_error"]
    assert "too small" in hushfit("evaluate", "m.json", "no-ids.csv").err
    # Ids in one of two files are not enough to put rows together.
    both = hushfit("evaluate", "m.json", "held-out.csv", "no-ids.csv", "--json").json
    assert both["persons"] is None


def test_predict_needs_no_ids(hushfit, visits):
    assert hushfit(*FIT, "--person", "who", "-o", "m.json").code == 0
    rows = {name: cells for name, cells in make_visits(30).items() if name not in ("who", "ill")}
    write_csv("new.csv", rows)
    assert hushfit("predict", "m.json", "new.csv").code == 0


def test_a_report_says_whom_it_protects(hushfit, visits):
    capped = ("--person-weight", "cap", "--rows-per-person", 3)
    assert hushfit(*FIT, "--person", "who", "-o", "m.json").code == 0
    assert hushfit(*FIT, "--person", "who", *capped, "-o", "c.json").code == 0
    assert hushfit("report", "m.json", "--held-out", "held-out.csv", "-o", "m.html").code == 0
    assert hushfit("report", "c.json", "-o", "c.html").code == 0
    page, other = Path("m.html").read_text(), Path("c.html").read_text()
    for text in (
        "<dd>one person<small>with all of their rows, replace-one",
        "What epsilon means for one person",
        "the most that one person can change the answer",
        "at most the first 1,000 of each person",
        "each weighs 1/k",
        "by column who",
        "clustered by person: 120 persons",
    ):
        assert text in page, text
    assert "About a person with several rows" not in page
    assert "1/max(k, 3), and one with 3 rows or more counts as one" in other


def test_piped_tables_have_persons_too(hushfit, visits, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(Path("visits.csv").read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert hushfit("fit", "-", *FIT[2:], "--person", "who", "-o", "m.json").code == 0
    assert "the number of persons, 600" in load_model("m.json").guarantee.public
