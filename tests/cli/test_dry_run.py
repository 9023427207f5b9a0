"""``--dry-run``: everything is checked, nothing is paid and nothing is written."""

from pathlib import Path

import pytest
from conftest_cli import FIT

from hushfit import Ledger

ACCOUNT = ("--ledger", "ledger.db", "--dataset", "people")
LINES = {
    "fit": (*FIT, "-o", "new.json"),
    "fit with intervals": (*FIT, "--inference", "-o", "new.json"),
    "network": (*FIT, "--model", "mlp", "--hidden", "4", "-o", "new.safetensors"),
    "describe": ("describe", "train.csv", "--schema", "schema.toml", "--epsilon", 2)
    + ("-o", "new.json", "--report", "new.html"),
    "discover": ("discover", "train.csv", "--schema", "schema.toml", "--column", "city")
    + ("--epsilon", 2, "--delta", 1e-6, "-o", "new.toml"),
}


@pytest.fixture
def ledger(hushfit, folder):
    opened = ("ledger", "init", "ledger.db", "--dataset", "people", "--epsilon", 2.5)
    assert hushfit(*opened, "--delta", 1e-5).code == 0
    return Ledger("ledger.db", dataset="people")


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
@pytest.mark.parametrize("account", [ACCOUNT, ()], ids=["account", "no account"])
def test_nothing_is_paid_and_nothing_is_written(hushfit, ledger, line, account):
    before = sorted(path.name for path in Path().iterdir())
    done = hushfit(*line, *account, "--dry-run")
    assert done.code == 0, done.err
    assert "Dry run: nothing was spent, released or written" in done.out
    assert ("payment 1" in done.out) is bool(account)
    assert ledger.entries == ()
    assert sorted(path.name for path in Path().iterdir()) == before


def test_it_says_what_the_payment_then_costs(hushfit, ledger):
    line = (*FIT, "-o", "new.json", *ACCOUNT)
    after = hushfit(*line, "--dry-run", "--json").json["account"]["after"]
    assert hushfit(*line).code == 0
    assert ledger.spent().epsilon == pytest.approx(after)


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (("--epsilon", 9), 3, "over the ledger's 2.5"),
        (("--schema", "none.toml"), 2, "none.toml"),
        (("-o", "train.csv"), 2, "train.csv"),
        (("--dataset", "others"), 4, "others"),
    ],
)
def test_what_a_fit_would_refuse_is_refused(hushfit, ledger, change, code, said):
    done = hushfit(*FIT, "-o", "new.json", *ACCOUNT, *change, "--dry-run")
    assert (done.code, said in done.err) == (code, True), done.err
    assert ledger.entries == ()


def test_a_charge_that_would_wait_makes_no_request(hushfit, ledger):
    assert hushfit("ledger", "limit", "people", "--epsilon", 1).code == 0
    done = hushfit(*FIT, "-o", "new.json", *ACCOUNT, "--dry-run")
    assert done.code == 4
    assert "would wait for a second person" in done.err
    assert ledger.team.now.requests == ()


def test_without_a_grant_it_is_refused(hushfit, ledger):
    assert hushfit("ledger", "grant", "people", "--to", "alice", "--epsilon", 1).code == 0
    done = hushfit(*FIT, "-o", "new.json", *ACCOUNT, "--dry-run")
    assert done.code == 4
    assert "has no grant" in done.err
