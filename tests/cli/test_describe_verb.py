"""``hushfit describe``: what it prints, writes and charges, and what it refuses."""

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from conftest_cli import SCHEMA, make_rows, write_csv

from hushfit import Ledger
from hushfit.data.schema import parse_schema
from hushfit.statistics import describe

ASKED = ("describe", "train.csv", "--schema", "schema.toml", "--seed", 0)


@pytest.fixture
def ledger(hushfit, folder):
    opened = ("ledger", "init", "ledger.db", "--dataset", "people", "--epsilon", 3)
    assert hushfit(*opened, "--delta", 1e-5).code == 0
    return "--ledger", "ledger.db", "--dataset", "people"


def payments():
    return len(Ledger("ledger.db", dataset="people").entries)


def test_a_table_json_and_a_page(hushfit, folder, ledger):
    outputs = ("-o", "found.json", "--report", "page.html")
    done = hushfit(*ASKED, "--epsilon", 2, *ledger, *outputs)
    assert done.code == 0, done.err
    assert "1500 rows; intervals of 95% cover sampling and noise" in done.out
    assert "share of Zug, upper" in done.out
    assert "payment 1 on 'people'" in done.out
    plain = json.loads((folder / "found.json").read_text())
    names = {(one["column"], one["statistic"]) for one in plain["estimates"]}
    assert {("age", "mean"), ("age", "median"), ("city", "share"), ("ill", "share")} <= names
    assert plain["receipt"] == {"dataset": "people", "number": 1}
    assert plain["guarantee"]["epsilon"] == 2
    page = (folder / "page.html").read_text()
    assert "Statistics of train.csv" in page
    assert "Histogram of age" in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_statistics_are_a_table_if_the_name_says_so(hushfit, folder, ending):
    asked = (*ASKED, "--epsilon", 50, "--columns", "age,city", "--by", "ill")
    plain = hushfit(*asked, "--json").json["estimates"]
    assert hushfit(*asked, "-o", f"found{ending}").code == 0
    read = pa.csv.read_csv if ending == ".csv" else pa.parquet.read_table
    rows = read(folder / f"found{ending}").to_pylist()
    assert [row["column"] for row in rows] == [one["column"] for one in plain]
    assert [row["value"] for row in rows] == pytest.approx([one["value"] for one in plain])
    assert {"statistic", "group", "low", "high", "noise_error"} <= set(rows[0])


def test_answers_are_close_to_the_truth(hushfit, folder):
    done = hushfit(*ASKED, "--epsilon", 1e4, "--json", "--by", "ill", "--columns", "age,city")
    assert done.code == 0, done.err
    found = done.json["estimates"]
    by_group = {one["group"]: one["value"] for one in found if one["statistic"] == "mean"}
    rows = make_rows(1500)
    for group in ("yes", "no"):
        ages = [
            min(float(age), 100.0)
            for age, ill in zip(rows["age"], rows["ill"], strict=True)
            if ill == group and age not in ("", "unknown")
        ]
        assert by_group[group] == pytest.approx(sum(ages) / len(ages), abs=0.1)
    (apart,) = [one for one in found if one["statistic"] == "difference of means"]
    assert apart["value"] == pytest.approx(by_group["yes"] - by_group["no"])
    assert apart["group"] == "yes - no"


def test_files_are_read_as_arrays_are(hushfit, folder):
    """Without noise the command and the library give the same numbers."""
    done = hushfit(*ASKED, "--epsilon", "inf", "--json")
    table = {name: np.array(cells, dtype=object) for name, cells in make_rows(1500).items()}
    wanted = describe(table, parse_schema(SCHEMA).schema, epsilon=float("inf"))
    for one, own in zip(done.json["estimates"], wanted.estimates, strict=True):
        assert (one["column"], one["of"]) == (own.column, own.of)
        assert one["value"] == pytest.approx(own.value, abs=1e-9)


def test_persons_are_protected_and_the_number_of_rows_is_not_printed(hushfit, folder):
    rows = make_rows(3000)
    rows["patient"] = [f"p{k // 2}" for k in range(3000)]
    write_csv(folder / "train.csv", rows)
    (folder / "schema.toml").write_text(f'person = "patient"\n{SCHEMA}')
    done = hushfit(*ASKED, "--epsilon", 2)
    assert done.code == 0, done.err
    assert "1500 persons" in done.out
    assert "3000" not in done.out + done.err
    assert "one person" in done.out
    assert "cover more often than stated" in done.err
    assert "of a quantile as a share of the values" in done.err


REFUSED = {
    "too few rows": (("--epsilon", 0.01), "At least [0-9]+ rows are needed. Nothing was spent"),
    "over the budget": (("--epsilon", 5), "over the ledger's 3"),
    "no such column": (("--epsilon", 1, "--columns", "agee"), "no column 'agee'"),
    "groups of numbers": (("--epsilon", 1, "--by", "age"), "--by age is a column of numbers"),
    "quantiles that are none": (("--epsilon", 1, "--quantiles", "half"), "not a list of shares"),
    "quantiles outside": (("--epsilon", 1, "--quantiles", "50"), "between 0 and 1"),
    "a level of 95": (("--epsilon", 1, "--level", 95), "--level 95"),
    "a large delta": (("--epsilon", 1, "--delta", 0.01), r"above 1/.number of rows. ="),
    "a negative epsilon": (("--epsilon", -1), "--epsilon -1"),
}


@pytest.mark.parametrize(("asked", "said"), REFUSED.values(), ids=REFUSED)
def test_refusals_cost_nothing_and_write_nothing(hushfit, folder, ledger, asked, said):
    done = hushfit(*ASKED, *asked, *ledger, "-o", "found.json")
    assert done.code in (2, 3)
    assert re.search(said, done.err), done.err
    assert payments() == 0
    assert not (folder / "found.json").exists()


def test_drafts_files_and_headers_are_checked_before_payment(hushfit, folder, ledger):
    drafted = SCHEMA.replace("fill = 40", "fill = 40\nconfirm = true")
    (folder / "schema.toml").write_text(drafted)
    paid = ("--epsilon", 1, *ledger)
    done = hushfit(*ASKED, *paid)
    assert (done.code, payments()) == (2, 0)
    assert "drafted from the rows" in done.err
    assert hushfit(*ASKED, *paid, "--columns", "city,ill").code == 0  # the others are confirmed
    accepted = hushfit(*ASKED, *paid, "--accept-draft", "--columns", "age", "--quantiles", "none")
    assert accepted.code == 0, accepted.err
    assert "outside the guarantee" in accepted.out.replace("\n", " ") or ("drafted" in accepted.out)
    (folder / "found.json").write_text("{}")
    done = hushfit(*ASKED, *paid, "--columns", "city", "-o", "found.json")
    assert (done.code, payments()) == (2, 2)
    assert "exists" in done.err
    rows = make_rows(1500)
    del rows["city"]
    write_csv(folder / "train.csv", rows)
    done = hushfit(*ASKED, *paid, "--columns", "city")
    assert (done.code, payments()) == (2, 2)
    assert "city" in done.err
    write_csv(folder / "train.csv", {name: [] for name in make_rows(12)})
    done = hushfit(*ASKED, *paid, "--columns", "city")
    assert (done.code, payments()) == (2, 2)
