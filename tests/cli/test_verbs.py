"""Each verb does what its help says, and nothing else."""

import io
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest_cli import FIT, SCHEMA, make_rows, write_csv

from hushfit import load_model
from hushfit.cli import _app
from hushfit.cli._app import VERBS
from hushfit.cli._manual import manual
from hushfit.cli._written_rows import without_formula
from hushfit.privacy.ledger._verify import verify_ledger
from hushfit.theory import Setting, ss_admm
from hushfit.unit import ROW

DOCS = Path(__file__).parents[2] / "docs"
# Verbs that consist of commands. `owner run` stays in the foreground and prints for a person.
GROUPS = {
    "ledger": ("init", "show"),
    "federate": ("init", "join", "approve", "run", "status"),
    "owner": ("show",),
}


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_examples_and_every_verb_speaks_json(hushfit, verb):
    result = hushfit(verb, "--help")
    assert result.code == 0
    assert "Example" in result.out
    if verb in GROUPS:
        for command in GROUPS[verb]:
            assert "--json" in hushfit(verb, command, "--help").out, command
    elif verb not in ("completion", "studio"):  # these print for a shell, and serve pages
        assert "--json" in result.out


def test_help_loads_no_library():
    """Help must not wait for numpy."""
    code = (
        "import sys\nfrom hushfit.cli import run\nrun(['--help'])\n"
        "assert not {'numpy', 'sklearn', 'pyarrow', 'rich'} & set(sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode
        == 0
    )


def test_a_draft_loads_no_compiler(tmp_path):
    """Importing numba, pandas and scipy takes longer than to read most tables. Quoted cells alone
    need compiled code.
    """
    rows = "".join(
        f"{k},{'ab'[k % 2] if k % 5 else ''},{'yes' if k % 3 else 'no'}\n" for k in range(60)
    )
    (tmp_path / "train.csv").write_text("age,city,ill\n" + rows)
    code = (
        "import sys\nfrom hushfit.cli import run\n"
        "run(['schema', 'train.csv', '--target', 'ill', '-o', 'draft.toml'])\n"
        "found = {'numba', 'pandas', 'scipy.sparse', 'sklearn'} & set(sys.modules)\n"
        "assert not found, found"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, cwd=tmp_path, check=False, text=True
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "draft.toml").exists()


def test_the_manual_page_is_up_to_date():
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == manual()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(hushfit, shell):
    result = hushfit("completion", shell)
    assert result.code == 0
    assert "_HUSHFIT_COMPLETE" in result.out


# --- schema


def test_a_draft_is_marked_and_refused_until_it_is_confirmed(hushfit, folder):
    result = hushfit("schema", "train.csv", "--target", "ill", "-o", "draft.toml")
    assert result.code == 0
    assert "NOT private" in result.err
    assert "NOT private" in Path("draft.toml").read_text()
    assert (
        "name"
        in hushfit("schema", "train.csv", "--target", "ill", "-o", "b.toml", "--json").json[
            "left_out"
        ]
    )
    fit = (
        "fit",
        "train.csv",
        "--schema",
        "draft.toml",
        "--epsilon",
        1,
        "--delta",
        1e-5,
        "-o",
        "model.json",
    )
    refused = hushfit(*fit)
    assert refused.code == 2
    assert "not confirmed" in refused.err
    assert not Path("model.json").exists()


def test_accepting_a_draft_is_told_in_the_guarantee(hushfit, folder):
    hushfit("schema", "train.csv", "--target", "ill", "-o", "draft.toml")
    text = Path("draft.toml").read_text().replace('"maybe", ', "")
    Path("draft.toml").write_text(text)
    fit = ("fit", "train.csv", "--schema", "draft.toml", "--epsilon", 1, "--delta", 1e-5)
    assert hushfit(*fit, "--accept-draft", "-o", "model.json").code == 0
    guarantee = load_model("model.json").guarantee
    assert "READ FROM THE ROWS" in " ".join(guarantee.public)
    assert "--accept-draft" in " ".join(guarantee.notes)
    Path("confirmed.toml").write_text(text.replace("confirm = true", ""))
    assert hushfit(*fit[:2], "--schema", "confirmed.toml", *fit[4:], "-o", "clean.json").code == 0
    assert "READ FROM THE ROWS" not in str(load_model("clean.json").guarantee)


def test_a_draft_knows_numbers_from_labels(hushfit, folder):
    described = hushfit("schema", "train.csv", "--target", "ill", "-o", "draft.toml", "--json").json
    assert described["columns"]["age"]["kind"] == "numeric"
    assert described["columns"]["city"]["categories"] == ["Bern", "Rom", "Ulm", "Zug, upper"]
    assert described["private"] is False


def test_a_unit_other_than_a_row_is_refused_and_never_promised(hushfit, folder):
    refused = hushfit(
        "schema", "train.csv", "--target", "ill", "--unit", "patient", "-o", "draft.toml"
    )
    assert refused.code == 2
    assert "protects one row" in refused.err
    assert not Path("draft.toml").exists()
    result = hushfit(*FIT, "-o", "model.json")  # its schema says unit = "person"
    assert "label only: the guarantee protects one row" in result.err
    assert "one person" not in result.out


def test_check_tells_what_a_fit_could_not_use(hushfit, folder):
    described = (
        Path("schema.toml")
        .read_text()
        .replace('"yes", "no"', '"yes", "never"')
        .replace('"Bern"', '"Paris"')
    )
    Path("schema.toml").write_text(described.replace("high = 100", "high = 50"))
    write_csv("train.csv", {**make_rows(200), "name": [""] * 200})
    described += "[columns.name]\nkind = 'categorical'\ncategories = ['x']\n"
    Path("other.toml").write_text(described)
    before = sorted(os.listdir())
    result = hushfit("schema", "--check", "train.csv", "schema.toml", "--json").json
    assert result["private"] is False
    target, age, city = result["columns"]
    rows = make_rows(200)
    assert target["unused"] == ["never"]
    assert target["unlisted"] == sum(label != "yes" for label in rows["ill"])
    assert (age["missing"], age["unreadable"]) == (1, 1)
    assert age["outside"] == sum(
        text not in ("", "unknown") and float(text) > 50 for text in rows["age"]
    )
    assert city["unused"] == ["Paris"]
    assert city["unlisted"] == sum(text in ("Bern", "Rom") for text in rows["city"])
    shown = hushfit("schema", "--check", "train.csv", "other.toml")
    assert "every cell is missing" in shown.out
    assert "NOT PRIVATE" in shown.out
    assert "NOT private" in shown.err
    assert sorted(os.listdir()) == before
    assert "schema --check" in hushfit(*FIT, "-o", "model.json").err


# --- fit


def test_fit_leaves_a_model_a_receipt_and_a_guarantee(hushfit, model):
    stored = load_model(model)
    assert stored.guarantee.epsilon == 2.0
    assert stored.guarantee.unit == ROW
    assert stored.guarantee.secure
    assert stored.receipt.dataset == "people"
    assert stored.standard_error.shape == (1, 6)
    assert (stored.standard_error > 0).all()
    assert hushfit("ledger", "verify", "ledger.db", "--model", "model.json").code == 0
    (line,) = hushfit("ledger", "history", "ledger.db", "--json").json["datasets"]["people"]
    assert line["model"] == json.loads(model.read_text())["hash"]
    assert stored.provenance.command.startswith("hushfit fit train.csv --schema schema.toml")


def test_fit_tells_what_to_do_next(hushfit, folder):
    result = hushfit(*FIT, "-o", "model.json")
    assert "Differentially private with epsilon=2" in result.out
    assert "hushfit report model.json" in result.out
    assert "is not recorded" in result.err


def same_numbers(first, second):
    return np.array_equal(load_model(first).estimator.coef_, load_model(second).estimator.coef_)


def test_few_rows_for_the_budget_are_said_once(hushfit, folder):
    """By the planner, whose sentence has numbers; the library's own would repeat it."""
    usual, few = hushfit(*FIT, "-o", "usual.json"), hushfit(*FIT, "--epsilon", 0.01, "-o", "m.json")
    assert (usual.code, few.code) == (0, 0)
    assert "rows are few" not in usual.err
    assert few.err.count("rows are few") == 1
    assert "too few" not in few.err


def test_every_format_gives_the_same_model(hushfit, folder, monkeypatch):
    """With a seed the noise is the same, so equal rows must give equal weights."""
    import gzip

    import pyarrow as pa
    import pyarrow.parquet

    columns = make_rows(1500)
    Path("copy.csv.gz").write_bytes(gzip.compress(Path("train.csv").read_bytes()))
    write_csv("copy.tsv", columns, "\t")
    table = pa.table(columns)
    pa.parquet.write_table(table, "copy.parquet", row_group_size=400)
    with pa.ipc.new_file("copy.arrow", table.schema) as writer:
        writer.write_table(table)
    halves = [{k: v[:700] for k, v in columns.items()}, {k: v[700:] for k, v in columns.items()}]
    for k, half in enumerate(halves):
        write_csv(f"part-{k}.csv", half)
    seeded = ("--schema", "schema.toml", "--epsilon", 2, "--delta", 1e-5, "--seed", 3)
    assert hushfit("fit", "train.csv", *seeded, "-o", "first.json").code == 0
    for source in ("copy.csv.gz", "copy.tsv", "copy.parquet", "copy.arrow", "part-*.csv"):
        result = hushfit("fit", source, *seeded, "-o", "other.json", "--overwrite")
        assert result.code == 0, result.err
        assert same_numbers("first.json", "other.json"), source
    stdin = io.TextIOWrapper(io.BytesIO(Path("train.csv").read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert hushfit("fit", "-", *seeded, "-o", "piped.json").code == 0
    assert same_numbers("first.json", "piped.json")
    assert not load_model("first.json").guarantee.secure


def test_an_existing_model_is_not_replaced_by_accident(hushfit, model):
    refused = hushfit(*FIT, "--ledger", "ledger.db", "-o", "model.json")
    assert refused.code == 2
    assert "--overwrite" in refused.err
    assert hushfit("ledger", "show", "ledger.db", "--json").json["datasets"][0]["payments"] == 1


def test_over_budget_is_code_3_and_leaves_nothing(hushfit, model):
    refused = hushfit(*FIT, "--ledger", "ledger.db", "--dataset", "people", "-o", "second.json")
    assert refused.code == 3
    assert "Nothing was released" in refused.err
    assert not Path("second.json").exists()
    assert hushfit("ledger", "show", "ledger.db", "--json").json["datasets"][0]["payments"] == 1


def test_ledger_trouble_is_code_4_and_leaves_nothing(hushfit, folder):
    for ledger in ("none.db", "train.csv"):
        assert (
            hushfit(*FIT, "--ledger", ledger, "--dataset", "people", "-o", "model.json").code == 4
        )
    assert not Path("model.json").exists()


BAD = {
    "no such table": (
        "fit",
        "none.csv",
        "--schema",
        "schema.toml",
        "--epsilon",
        1,
        "--delta",
        1e-5,
        "-o",
        "m.json",
    ),
    "no such schema": (
        "fit",
        "train.csv",
        "--schema",
        "none.toml",
        "--epsilon",
        1,
        "--delta",
        1e-5,
        "-o",
        "m.json",
    ),
    "epsilon": (
        "fit",
        "train.csv",
        "--schema",
        "schema.toml",
        "--epsilon",
        -1,
        "--delta",
        1e-5,
        "-o",
        "m.json",
    ),
    "delta": (
        "fit",
        "train.csv",
        "--schema",
        "schema.toml",
        "--epsilon",
        1,
        "--delta",
        2,
        "-o",
        "m.json",
    ),
    "solver": (*FIT, "--solver", "magic", "-o", "m.json"),
    "penalty": (*FIT, "--penalty", "l3", "-o", "m.json"),
    "place": (*FIT, "-o", "nowhere/m.json"),
    "dataset alone": (*FIT, "--dataset", "people", "-o", "m.json"),
    "verb": ("fitt",),
    "missing options": ("fit", "train.csv"),
    "same file twice": (FIT[0], "train.csv", *FIT[1:], "-o", "m.json"),
    "same file by a detour": (FIT[0], "./train.csv", *FIT[1:], "-o", "m.json"),
    "large delta": (*FIT[:-1], 0.1, "-o", "m.json"),
    "check without a schema": ("schema", "--check", "train.csv"),
    "check with an output": ("schema", "--check", "train.csv", "schema.toml", "-o", "m.toml"),
    "draft without a target": ("schema", "train.csv", "-o", "m.toml"),
}


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD)
def test_bad_input_is_code_2_and_leaves_nothing(hushfit, folder, arguments):
    before = sorted(os.listdir())
    refused = hushfit(*arguments)
    assert refused.code == 2
    assert "error: " in refused.err
    assert sorted(os.listdir()) == before


IGNORED_ON_A_CLUSTER = {"--cache": "rows", "--encoding": "cp1252", "--format": "csv"}


@pytest.mark.parametrize("option", IGNORED_ON_A_CLUSTER)
def test_options_that_a_cluster_would_ignore_are_refused_before_payment(hushfit, folder, option):
    cluster = ("--dask", "tls://127.0.0.1:1", "-o", "m.json")
    refused = hushfit(*FIT, *cluster, option, IGNORED_ON_A_CLUSTER[option])
    assert refused.code == 2
    assert f"{option} would be ignored" in refused.err
    assert "without --dask" in " ".join(refused.err.split())
    assert not os.path.exists("rows")


def test_errors_are_json_when_json_is_asked_for(hushfit, folder):
    result = hushfit(*FIT, "--ledger", "none.db", "-o", "m.json", "--json")
    assert result.json["error"]["exit_code"] == result.code == 4


def test_a_charge_that_waits_has_a_kind_of_its_own(hushfit, folder):
    """Programs tell it from a damaged ledger, which has the same code."""
    hushfit(*("ledger", "init", "l.db", "--dataset", "d", "--epsilon", 9, "--delta", 1e-5))
    hushfit("ledger", "limit", "d", "--ledger", "l.db", "--epsilon", 0.01)
    waits = hushfit(*FIT, "--ledger", "l.db", "-o", "m.json", "--json")
    assert (waits.code, waits.json["error"]["kind"]) == (4, "needs approval")


def test_a_lack_of_memory_is_said(hushfit, folder, monkeypatch):
    def full(*given, **more):
        raise MemoryError

    monkeypatch.setattr("hushfit.models.fit_rows", full)
    result = hushfit(*FIT, "-o", "m.json")
    assert result.code == 1
    assert "needs more memory than there is" in result.err


def test_an_unexpected_error_is_code_1_and_quotes_nothing(hushfit, folder, monkeypatch):
    def broken(*given, **more):
        raise RuntimeError("row 17: Jane Doe")

    monkeypatch.setattr("hushfit.data.tables._encoded_rows.CodedRows.from_tables", broken)
    result = hushfit(*FIT, "-o", "m.json")
    assert result.code == 1
    assert "RuntimeError" in result.err
    assert "Jane" not in result.err


def test_a_ragged_row_is_named_but_not_quoted(hushfit, folder):
    with open("train.csv", "a") as file:
        file.write("1,2,secret words,4,5,6\n")
    result = hushfit(*FIT, "-o", "m.json")
    assert result.code == 2
    assert "6 cells" in result.err
    assert "secret" not in result.err


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
def test_a_file_under_two_names_is_counted_once(hushfit, folder, link):
    link("train.csv", "again.csv")
    for tables in (("train.csv", "again.csv"), ("*a*n.csv",), ("-", "again.csv")):
        result = (
            hushfit("fit", *tables, *FIT[2:], "-o", "m.json")
            if "-" not in tables
            else piped(hushfit, tables)
        )
        assert result.code == 2, tables
        assert "are the same file" in result.err
        assert not Path("m.json").exists()


def piped(hushfit, tables):
    """A run whose standard input is the file itself."""
    honest = sys.stdin
    try:
        with open("train.csv") as sys.stdin:
            return hushfit("fit", *tables, *FIT[2:], "-o", "m.json")
    finally:
        sys.stdin = honest


def test_a_large_delta_needs_a_flag_and_costs_nothing_without(hushfit, folder):
    hushfit("ledger", "init", "ledger.db", "--dataset", "people", "--epsilon", 5, "--delta", 0.2)
    fit = (*FIT[:-1], 0.1, "--ledger", "ledger.db", "--dataset", "people", "-o", "m.json")
    refused = hushfit(*fit)
    assert refused.code == 2
    assert "--allow-large-delta" in refused.err
    assert hushfit("ledger", "show", "ledger.db", "--json").json["datasets"][0]["payments"] == 0
    assert hushfit(*fit, "--allow-large-delta").code == 0


def test_rows_go_to_the_chosen_temporary_folder_or_nowhere(hushfit, folder, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(folder / "absent"))
    refused = hushfit(*FIT, "-o", "m.json")
    assert refused.code == 2
    assert "TMPDIR" in refused.err
    (folder / "absent").mkdir()
    assert hushfit(*FIT, "-o", "m.json").code == 0


# --- predict and evaluate


def test_a_label_is_no_formula_in_a_spreadsheet(hushfit, folder):
    named = {"yes": "=cmd()", "no": "-1"}
    rows = make_rows(1500)
    write_csv("train.csv", {**rows, "ill": [named.get(label, label) for label in rows["ill"]]})
    Path("schema.toml").write_text(SCHEMA.replace('"yes", "no"', '"=cmd()", "-1"'))
    assert hushfit(*FIT, "-o", "model.json").code == 0
    safe, raw = (
        hushfit("predict", "model.json", "test.csv", *flag).out.splitlines()[1:]
        for flag in ((), ("--raw",))
    )
    assert {line.split(",")[0] for line in safe} == {"'=cmd()", "-1"}
    assert {line.split(",")[0] for line in raw} == {"=cmd()", "-1"}


@pytest.mark.parametrize(
    ("label", "written"),
    [
        ("a", "a"),
        ("@x", "'@x"),
        ("+1", "+1"),
        ("-1.5e3", "-1.5e3"),
        ("-1+1", "'-1+1"),
        ("=1", "'=1"),
        ("\tx", "'\tx"),
        (-2, "-2"),
    ],
)
def test_numbers_stay_and_formulas_get_an_apostrophe(label, written):
    assert without_formula(label) == written


def test_predict_agrees_with_the_library(hushfit, model):
    hushfit("predict", "model.json", "test.csv", "-o", "out.csv")
    lines = Path("out.csv").read_text().splitlines()
    assert lines[0] == "prediction,p(no),p(yes)"
    stored = load_model(model)
    rows = make_rows(500, seed=1)
    assert [line.split(",")[0] for line in lines[1:]] == stored.predict(rows).tolist()
    probabilities = [[float(cell) for cell in line.split(",")[1:]] for line in lines[1:]]
    assert np.allclose(probabilities, stored.predict_proba(rows), atol=1e-5)
    assert hushfit("predict", "model.json", "test.csv").out.splitlines() == lines


def test_predict_needs_no_target(hushfit, model):
    rows = make_rows(50)
    del rows["ill"]
    write_csv("new.csv", rows)
    assert hushfit("predict", "model.json", "new.csv", "-o", "out.csv", "--json").json["rows"] == 50


def test_evaluate_agrees_with_scikit_learn(hushfit, model):
    from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

    result = hushfit("evaluate", "model.json", "test.csv", "--json").json
    rows, stored = make_rows(500, seed=1), load_model(model)
    known = [k for k, label in enumerate(rows["ill"]) if label != "maybe"]
    truth = np.array(rows["ill"])[known]
    proba = stored.predict_proba(rows)[known]
    assert result["rows"] == 499
    assert result["skipped"] == 1
    assert result["accuracy"] == pytest.approx(accuracy_score(truth, stored.predict(rows)[known]))
    assert result["auc"] == pytest.approx(roc_auc_score(truth == "yes", proba[:, 1]), abs=1e-6)
    assert result["log_loss"] == pytest.approx(
        log_loss(truth, proba, labels=["no", "yes"]), rel=1e-5
    )
    assert sum(cell["rows"] for cell in result["calibration"]) == 499
    assert "held out" in hushfit("evaluate", "model.json", "test.csv").err


def test_a_support_vector_machine_has_labels_only(hushfit, folder):
    assert hushfit(*FIT, "--model", "svm", "-o", "svm.json").code == 0
    assert hushfit("predict", "svm.json", "test.csv").out.startswith("prediction\n")
    result = hushfit("evaluate", "svm.json", "test.csv", "--json").json
    assert result["auc"] is None
    assert result["accuracy"] > result["majority"]


# --- plan


@pytest.mark.slow
def test_plan_promises_less_loss_for_more_budget(hushfit):
    result = hushfit(
        "plan", "--rows", 50_000, "--columns", 100, "--epsilon-range", ".05:4", "--json"
    ).json
    losses = [plan["loss"] for plan in result["plans"]]
    assert losses == sorted(losses, reverse=True)
    assert all(plan["loss_low"] < plan["loss"] < plan["loss_high"] for plan in result["plans"])
    noise = [plan["noise"][0]["releases"][0][2] for plan in result["plans"]]
    assert noise == sorted(noise, reverse=True)


def test_rows_needed_and_expected_loss_are_one_rule():
    from hushfit.forecast import forecast, rows_needed

    rows, low, high = rows_needed(0.01, 100, 0.5, 1e-6)
    assert low < rows < high
    assert forecast(rows, 100, 0.5, 1e-6).loss == pytest.approx(0.01, rel=1e-3)
    assert forecast(low, 100, 0.5, 1e-6).loss_low == pytest.approx(0.01, rel=1e-2)


def test_plan_calibrates_what_was_asked_for(hushfit):
    """The default algorithm alone, so that the answer comes at once."""
    plan = ("plan", "--rows", 1500, "--columns", 5, "--epsilon-range", "2:2", "--json")
    noise = hushfit(*plan).json["plans"][0]["noise"]
    assert [one["solver"] for one in noise] == ["auto"]
    wrong = hushfit(*plan, "--solver", "fastest")
    assert wrong.code == 2
    assert "whitened-gd" in wrong.out


def test_plan_noise_is_what_fit_uses(hushfit, model):
    result = hushfit(
        *("plan", "--rows", 1500, "--columns", 5, "--epsilon-range", "2:2", "--delta", 1e-5),
        *("--solver", "prox-newton", "--json"),
    ).json
    planned = {
        n["solver"]: {r[0]: r[2] for r in n["releases"]} for n in result["plans"][0]["noise"]
    }
    hushfit(*FIT, "--solver", "prox-newton", "-o", "second.json")
    used = {r.name: r.noise_multiplier for r in load_model("second.json").guarantee.releases}
    assert planned["prox-newton"] == pytest.approx(used)


def test_plan_says_what_the_theorems_promise(hushfit):
    sizes = ("plan", "--rows", 50_000, "--columns", 100, "--epsilon-range", "1:1")
    printed = hushfit(*sizes, "--theory")
    assert printed.code == 0
    assert "pp-admm" in printed.out
    plan = hushfit(*sizes, "--theory", "--steps", 10, "--distance", 1, "--json").json["plans"][0]
    bounds = {bound["algorithm"]: bound["value"] for bound in plan["bounds"]}
    setting = Setting(50_000, 100, 1.0, 0.1 / 50_000, distance=1.0, steps=10)
    assert bounds["ss-admm"] == ss_admm(setting).value
    curved = hushfit(*sizes, "--theory", "--ridge", 0.001, "--json").json["plans"][0]["bounds"]
    assert "(ridge)" in curved[-1]["algorithm"]
    for wrong in (
        ["--steps", 10],
        ["--ridge", 0.1],
        ["--theory", "--inference"],
        ["--theory", "--distance", -1],
        ["--theory", "--ridge", -1],
    ):
        assert hushfit(*sizes, *wrong).code == 2


@pytest.mark.slow
def test_plan_draws(hushfit):
    assert hushfit("plan", "--rows", 1000, "--columns", 10, "--svg", "plan.svg").code == 0
    assert Path("plan.svg").read_text().startswith("<svg")
    assert hushfit("plan", "--rows", 1000, "--columns", 10, "--epsilon-range", "4:1").code == 2
    assert hushfit("plan", "--rows", 0, "--columns", 10).code == 2


# --- ledger


def test_the_ledger_verbs_tell_one_story(hushfit, model):
    shown = hushfit("ledger", "show", "ledger.db", "--json").json["datasets"][0]
    assert shown["spent"] == pytest.approx(2.0, rel=1e-4)
    assert shown["budget"] == 2.5
    lines = [json.loads(line) for line in hushfit("ledger", "export", "ledger.db").out.splitlines()]
    assert [line["kind"] for line in lines] == ["open", "charge", "model"]
    assert lines[-1]["hash"] == shown["head"]
    assert "people" in hushfit("ledger", "show", "ledger.db").out
    assert "PrivateLogisticRegression" in hushfit("ledger", "history", "ledger.db").out
    export = ("ledger", "export", "ledger.db", "-o", "copy.jsonl")
    assert hushfit(*export).out == "Export: copy.jsonl, 3 entries\n"
    assert len(Path("copy.jsonl").read_text().splitlines()) == 3
    Path("copy.jsonl").write_text("stored\n")
    refused = hushfit(*export)
    assert refused.code == 2
    assert "copy.jsonl exists" in refused.err
    assert Path("copy.jsonl").read_text() == "stored\n"
    assert hushfit(*export, "--overwrite", "--json").json == {"export": "copy.jsonl", "entries": 3}
    assert len(Path("copy.jsonl").read_text().splitlines()) == 3


def test_a_ledger_without_limit_only_keeps_the_books(hushfit, folder):
    hushfit(
        "ledger", "init", "books.db", "--dataset", "people", "--epsilon", "inf", "--delta", 1e-5
    )
    for epsilon in (2, "inf"):
        fit = (
            "fit",
            "train.csv",
            "--schema",
            "schema.toml",
            "--epsilon",
            epsilon,
            "--delta",
            1e-5,
            "--ledger",
            "books.db",
        )
        assert hushfit(*fit, "-o", f"{epsilon}.json", "--json").code == 0
    shown = hushfit("ledger", "show", "books.db", "--json").json["datasets"][0]
    assert (shown["budget"], shown["spent"], shown["payments"]) == ("inf", "inf", 2)
    for verb in ("show", "history", "export", "verify"):
        assert hushfit("ledger", verb, "books.db").code == 0
    assert [
        p["total"]
        for p in hushfit("ledger", "history", "books.db", "--json").json["datasets"]["people"]
    ][1] == "inf"


def test_verify_finds_a_removed_payment(hushfit, model):
    with sqlite3.connect("ledger.db") as connection:
        connection.execute("DELETE FROM hushfit_entries WHERE number = 2")
    connection.close()
    result = hushfit("ledger", "verify", "ledger.db")
    assert result.code == 4
    assert "removed" in result.err


def test_a_model_pins_the_history_of_its_ledger(hushfit, model):
    """A ledger rewritten as a whole has good hashes, but not those that the models carry."""
    os.rename("ledger.db", "old.db")
    hushfit("ledger", "init", "ledger.db", "--dataset", "people", "--epsilon", 3, "--delta", 1e-5)
    assert verify_ledger("ledger.db") == {"people": []}
    result = hushfit("ledger", "verify", "ledger.db", "--model", "model.json")
    assert result.code == 4
    assert "not in the ledger any more" in result.err


def test_codes_are_those_of_the_manual():
    codes = (_app.OK, _app.UNEXPECTED, _app.BAD_INPUT, _app.OVER_BUDGET, _app.LEDGER_FAULT)
    assert codes == (0, 1, 2, 3, 4)
    assert (
        "0 done; 1 unexpected error; 2 bad input; 3 over budget;" in (DOCS / "cli.md").read_text()
    )
