"""Models that are saved from Python name the payment of their ledger, which records their file."""

import json

import numpy as np
import pytest

from hushfit import (
    Ledger,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateRanker,
    load_model,
    save_model,
)
from hushfit.cli import run
from hushfit.models import Model, save_ranker
from hushfit.report import report_page

pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")

X = np.random.default_rng(0).uniform(size=(600, 2))
Y = (X[:, 0] > 0.5).astype(int)
PLACE = {"epsilon": 1.0, "delta": 1e-4, "random_state": 0}
MODELS = {
    "classes": (PrivateLogisticRegression(classes=[0, 1], **PLACE), {}),
    "numbers": (PrivateLinearRegression(target_bounds=(0, 1), feature_bounds=(0, 1), **PLACE), {}),
    "lists": (
        PrivateRanker(unit="list", max_grade=1, **PLACE),
        {"qid": np.repeat(np.arange(100), 6)},
    ),
}


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger.db", "visits", 9.0, 1e-2)


@pytest.mark.parametrize("kind", MODELS)
def test_the_file_names_the_payment_and_the_ledger_the_file(kind, ledger, tmp_path):
    unfitted, lists = MODELS[kind]
    fitted = unfitted.set_params(ledger=ledger).fit(X, Y, **lists)
    digest = save_model(fitted, tmp_path / "model.json")
    receipt = load_model(tmp_path / "model.json").receipt
    assert (receipt.dataset, receipt.number) == ("visits", 1)
    assert receipt.hash == ledger.account.hash_of(fitted.receipt_)
    recorded = [entry.body for entry in ledger.account.history() if entry.kind == "model"]
    assert [(body["receipt"], body["model"]) for body in recorded] == [(1, digest)]
    if kind == "lists":
        save_ranker(fitted, tmp_path / "model.json")
        assert load_model(tmp_path / "model.json").receipt == receipt
        return
    assert "visits, payment 1, entry" in report_page(load_model(tmp_path / "model.json"))
    path = str(tmp_path / "ledger.db")
    assert run(["ledger", "verify", path, "--model", str(tmp_path / "model.json")]) == 0


def test_without_a_ledger_on_disk_there_is_none(tmp_path):
    for ledger in (None, Ledger(9.0, 1e-2)):
        fitted = PrivateLogisticRegression(classes=[0, 1], ledger=ledger, **PLACE).fit(X, Y)
        save_model(fitted, tmp_path / "model.json")
        assert json.loads((tmp_path / "model.json").read_text())["receipt"] is None


def test_another_ledger_is_not_named(ledger, tmp_path):
    """A payment of the same number on another account has not paid for the model."""
    fitted = PrivateLogisticRegression(classes=[0, 1], ledger=ledger, **PLACE).fit(X, Y)
    other = Ledger.create(tmp_path / "other.db", "other", 9.0, 1e-2)
    PrivateLogisticRegression(classes=[0, 1], ledger=other, **PLACE, solver="newton").fit(X, Y)
    fitted.ledger = other
    save_model(fitted, tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").receipt is None


def test_a_model_that_has_its_receipt_is_written_as_it_is(ledger, tmp_path):
    fitted = PrivateLogisticRegression(classes=[0, 1], ledger=ledger, **PLACE).fit(X, Y)
    save_model(Model(fitted), tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").receipt is None
    assert all(entry.kind != "model" for entry in ledger.account.history())
