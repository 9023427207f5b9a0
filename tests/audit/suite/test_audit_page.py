"""The audit page, the jobs and levels of the suite, and the ``audit`` command."""

import json
import re

import numpy as np
import pytest

from hushfit import PrivateLogisticRegression
from hushfit.audit import FALSE_ALARMS, TARGETS, Claim, audit, audit_page, explain
from hushfit.audit.suite import (
    alarm_level,
    attack_jobs,
    is_wrong,
    markdown_tables,
    persons_table,
    run_attack,
)
from hushfit.audit.suite._explanation import proof_of
from hushfit.audit.suite._jobs import ROW_LEVEL
from hushfit.audit.suite._results import measured
from hushfit.cli import run
from hushfit.errors import InsecureNoiseWarning
from hushfit.models import Model, save_model
from hushfit.solvers import SOLVERS


def small_audit(mu=1.0):
    return audit(
        lambda world, seed: float(np.random.default_rng(seed).normal(mu * (1 - world))),
        Claim.gaussian(4.0, 1e-5),
        400,
    )


def test_the_page_needs_nothing_and_shows_three_pictures():
    page = audit_page(small_audit())
    assert page.count("<svg") == 2
    assert (
        'class="levels" role="img" aria-label="claimed: epsilon 4; no assumption: epsilon' in page
    )
    assert "forbidden" in page
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")


@pytest.mark.parametrize(("mu", "word"), [(4.0, "violated"), (0.01, "no power")])
def test_the_page_says_its_verdict(mu, word):
    found = small_audit(mu)
    assert str(found.verdict) == word
    assert f">{word}</span>" in audit_page(found)


def test_scores_that_are_all_the_same_can_be_drawn():
    assert "no power" in audit_page(audit(lambda world, seed: 0.0, Claim.gaussian(4.0, 1e-5), 100))


def test_every_solver_is_attacked_in_both_views_and_all_together_keep_the_false_alarm_rate():
    jobs = attack_jobs()
    wanted = {
        (name, view) for name in SOLVERS if name != "exact" for view in ("white-box", "black-box")
    }
    missing = wanted - {(job.name, job.view) for job in jobs}
    assert not missing, f"{sorted(missing)}: add targets to audit/attacks/_targets.py."
    assert len(jobs) * alarm_level(jobs) <= FALSE_ALARMS / 2


def test_a_job_tells_plain_values_and_makes_a_line():
    job = next(job for job in attack_jobs() if job.name == "proximal-gd")
    line = run_attack(job, 200, 1e-5)
    assert json.loads(json.dumps(line)) == line
    assert "| proximal-gd | white-box | 8 |" in markdown_tables([line])


def test_a_claim_for_rows_must_break_when_it_is_read_for_a_person():
    job = next(job for job in attack_jobs() if job.view == ROW_LEVEL)
    line = run_attack(job, 400, 1e-5)
    assert line["verdict"] == "violated"
    assert not is_wrong(line)
    assert is_wrong({**line, "verdict": "consistent"})
    assert is_wrong({**line, "broken_claim": False})
    assert line["unit"] == "one row, read as one person"
    assert f"| {job.name.split(',')[0]} | rows | {job.relation} | 8, 1e-05 |" in persons_table(
        [line]
    )
    assert job.name not in markdown_tables([line])


def test_stored_attacks_on_persons_keep_their_claim():
    stored = [line for line in measured() if "person of 40 rows" in line["name"]]
    assert {line["unit"] for line in stored} == {"one person"}
    assert all(line["verdict"] == "consistent" for line in stored)
    assert all(line["ratio"] >= line["goal"] for line in stored)


def test_relations_never_share_a_table():
    line = {
        "name": "a",
        "view": "b",
        "claimed": 1.0,
        "measured": 1.0,
        "direct": 1.0,
        "ratio": 1.0,
        "verdict": "consistent",
    }
    tables = markdown_tables(
        [{**line, "relation": "replace-one"}, {**line, "relation": "add-remove"}]
    )
    assert tables.count("|---|") >= 2
    assert [part.count("| a |") for part in tables.split("### ")[1:]] == [1, 1]


def test_proofs_are_found_where_the_code_cites_them():
    assert proof_of("ClippedGradient") == "docs/proofs/gradient.md"
    assert proof_of("SecondMoment") == "docs/proofs/second_moment.md"
    assert proof_of("Nothing") == ""


@pytest.fixture
def model(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.tile([0, 1], 30)
    with pytest.warns(InsecureNoiseWarning):
        fitted = PrivateLogisticRegression(
            epsilon=1.0, delta=1e-6, classes=[0, 1], solver="ss-admm", random_state=0
        ).fit(X, y)
    save_model(Model(fitted), tmp_path / "model.json")
    return fitted, str(tmp_path / "model.json")


def test_a_model_is_told_what_its_algorithm_withstood(model, capsys):
    fitted, path = model
    explanation = explain(Model(fitted))
    assert explanation.releases[0][2] == "docs/proofs/gradient.md"
    assert {line["name"] for line in explanation.measured} <= {"ss-admm"}
    assert run(["audit", path]) == 0
    assert "ss-admm" in capsys.readouterr().out
    assert run(["audit", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["releases"] == [list(explanation.releases[0])]


def test_a_solver_is_attacked_and_the_page_written(tmp_path, capsys):
    page = tmp_path / "audit.html"
    assert run(["audit", "--solver", "proximal-gd", "--trials", "400", "-o", str(page)]) == 0
    assert "proximal-gd" in capsys.readouterr().out
    assert page.read_text().startswith("<!doctype html>")
    assert run(["audit", "--solver", "proximal-gd", "--trials", "400", "-o", str(page)]) == 2
    assert "exists" in capsys.readouterr().err
    assert run(["audit", "--solver", "proximal-gd", "--trials", "400", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] in ("consistent", "no power")


def test_what_cannot_be_attacked_is_refused_with_a_sentence(capsys):
    assert run(["audit", "--solver", "magic"]) == 2
    assert "not known" in capsys.readouterr().err
    assert run(["audit"]) == 2
    assert "--solver" in capsys.readouterr().err
    assert run(["audit", "--solver", "rsgd-ar", "--adjacency", "add-remove"]) == 2
    assert "replace-one" in capsys.readouterr().err
    assert run(["audit", "--list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in TARGETS)
