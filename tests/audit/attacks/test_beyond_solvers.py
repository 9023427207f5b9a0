"""Attacks on private preprocessing and private model selection, and the audit report of models made
with them.
"""

import json

import numpy as np
import pytest

from hushfit import PrivateLogisticRegression
from hushfit.audit import SEARCHES, Verdict, attack_on, audit_solver, explain, search_attacks
from hushfit.audit.attacks import RELATIONS
from hushfit.audit.suite import _results, attack_jobs
from hushfit.cli import run
from hushfit.errors import InsecureNoiseWarning
from hushfit.model_selection import PrivateSearchCV
from hushfit.models import Model, save_model
from hushfit.preprocessing import PrivatePipeline, PrivateQuantileScaler, SchemaEncoder
from hushfit.privacy import RECORD_RELATIONS, Budget, SeededSampler
from hushfit.release import vocabulary_of

BUDGET = Budget(8.0, 1e-5)


@pytest.fixture
def half_the_noise(monkeypatch):
    original = SeededSampler.gaussian
    monkeypatch.setattr(
        SeededSampler, "gaussian", lambda self, variance, size: original(self, variance, size) // 2
    )


# Preprocessing


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize("name", ["quantiles", "vocabulary", "screening", "recalibrated"])
def test_preparation_is_attacked_and_keeps_its_claim(name, relation):
    found = audit_solver(name, relation, trials=300)
    assert found.verdict is not Verdict.VIOLATED
    assert found.ratio > 0.15


@pytest.mark.parametrize("name", ["quantiles", "vocabulary", "screening", "recalibrated"])
def test_preparation_with_half_the_noise_is_seen(half_the_noise, name):
    assert audit_solver(name, trials=500).verdict is Verdict.VIOLATED


def test_looks_are_those_of_the_scaler():
    """The attack has the queries of `PrivateQuantileScaler`: same plan, same cost."""
    attack = attack_on("quantiles")
    rows = attack.neighbours.first.X
    with pytest.warns(InsecureNoiseWarning):
        scaler = PrivateQuantileScaler(
            epsilon=BUDGET.epsilon, delta=BUDGET.delta, random_state=4
        ).fit(rows)
    assert scaler.privacy_.cost == attack.quote.cost
    assert [release.name for release in scaler.privacy_.releases] == [
        part.name for part in attack.quote.plan.parts
    ]


def test_the_vocabulary_is_that_of_the_encoder():
    attack = attack_on("vocabulary")
    table = {f"c{j}": list(column) for j, column in enumerate(attack.neighbours.first.columns)}
    with pytest.warns(InsecureNoiseWarning):
        encoder = SchemaEncoder(
            discover=list(table), epsilon=BUDGET.epsilon, delta=BUDGET.delta, random_state=4
        ).fit(table)
    assert encoder.privacy_.cost == attack.quote.cost


# Model selection


@pytest.fixture(scope="module")
def search():
    return search_attacks("replace-one", BUDGET)["search"]


def test_the_attacked_search_is_the_search(search):
    """Bit for bit what `PrivateSearchCV` publishes with the same seed."""
    model = PrivateLogisticRegression(
        solver=search.settled.trials.estimator.solver, classes=[0, 1], fit_intercept=False
    )
    for world, seed in ((0, 11), (1, 12)):
        whole = PrivateSearchCV(
            model,
            {},
            search.expected_trials,
            8.0,
            1e-5,
            "replace-one",
            search.stopping,
            0.05,
            search.score,
            random_state=seed,
        )
        with pytest.warns(InsecureNoiseWarning):
            whole.fit(*search.tables[world])
        assert whole.best_estimator_.coef_[0, 0] == search.published(world, seed)
        assert whole.privacy_.cost == search.settled.cost


@pytest.mark.slow
def test_a_search_keeps_its_claim():
    found = audit_solver("search", trials=240)
    assert found.verdict is not Verdict.VIOLATED
    assert found.ratio > 0.05
    assert found.view == "black-box"


def test_a_search_with_little_noise_is_seen(monkeypatch):
    original = SeededSampler.gaussian
    monkeypatch.setattr(
        SeededSampler, "gaussian", lambda self, variance, size: original(self, variance, size) // 16
    )
    assert audit_solver("search", budget=Budget(1.0, 1e-5), trials=160).verdict is Verdict.VIOLATED


# Audit reports of models


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    return X, (X[:, 0] > 0).astype(int)


def stored_results(monkeypatch, *names):
    """Pretend that the whole audit stored these results."""
    line = {
        "view": "white-box",
        "relation": "replace-one",
        "claimed": 8.0,
        "measured": 6.0,
        "ratio": 0.75,
        "verdict": "consistent",
    }
    stored = tuple({**line, "name": name} for name in names)
    monkeypatch.setattr(_results, "measured", lambda: stored)


def test_the_model_of_a_search_is_told_of_the_search(rows, tmp_path, monkeypatch, capsys):
    stored_results(monkeypatch, "search", "ss-admm", "dpsc")
    model = PrivateLogisticRegression(classes=[0, 1], solver="ss-admm")
    with pytest.warns(InsecureNoiseWarning):
        found = PrivateSearchCV(model, {"alpha": [1e-4, 1e-3]}, 2.0, 2.0, random_state=0).fit(*rows)
    explanation = explain(Model(found.best_estimator_))
    assert {line["name"] for line in explanation.measured} == {"search", "ss-admm"}
    assert explanation.releases[0][2] == "docs/proofs/random_stopping.md"
    path = str(tmp_path / "model.json")
    save_model(Model(found.best_estimator_), path)
    assert run(["audit", path, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert "search" in report["summary"]
    assert run(["audit", path]) == 0
    assert "search" in capsys.readouterr().out


def test_a_pipeline_is_told_of_its_parts(rows, tmp_path, monkeypatch, capsys):
    stored_results(monkeypatch, "quantiles", "ss-admm", "vocabulary")
    steps = [
        ("scale", PrivateQuantileScaler()),
        ("model", PrivateLogisticRegression(classes=[0, 1], solver="ss-admm")),
    ]
    with pytest.warns(InsecureNoiseWarning):
        fitted = PrivatePipeline(steps, epsilon=2.0, random_state=0).fit(*rows)
    last = fitted.steps[-1][1]
    path = str(tmp_path / "model.json")
    save_model(Model(last), path)
    assert run(["audit", path, "--json"]) == 0
    assert {line["name"] for line in json.loads(capsys.readouterr().out)["measured"]} == {"ss-admm"}
    # With the guarantee of the whole pipeline the report includes the scaler's part.
    last.privacy_ = fitted.privacy_
    explanation = explain(Model(last))
    assert {line["name"] for line in explanation.measured} == {"ss-admm", "quantiles"}
    assert {line[2] for line in explanation.releases} >= {
        "docs/proofs/quantiles.md",
        "docs/proofs/gradient.md",
    }


def test_without_results_that_were_kept_no_attack_is_claimed(rows, monkeypatch):
    stored_results(monkeypatch)
    with pytest.warns(InsecureNoiseWarning):
        fitted = PrivateLogisticRegression(classes=[0, 1], random_state=0).fit(*rows)
    assert "No attack is stored" in explain(Model(fitted)).summary


def test_every_search_is_a_job():
    jobs = {(job.name, job.relation) for job in attack_jobs()}
    assert {(name, relation) for name in SEARCHES for relation in RECORD_RELATIONS} <= jobs


def test_named_texts_are_read_back():
    attack = attack_on("vocabulary")
    answer = attack._curator(0, 3).release(
        "vocabulary", attack.quote.plan.parts[0].query(attack.problem.n_features)
    )
    assert {text for column in vocabulary_of(answer) for text in column} <= {"first", "second"}
