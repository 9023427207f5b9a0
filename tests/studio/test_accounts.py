"""A studio with accounts: people log in with tokens of the ledger and pay in their own name."""

import secrets

import pytest
from _studio import logged_in, team_server

from hushfit import Ledger
from hushfit.privacy.ledger import KEY_VARIABLE, issue_token
from hushfit.studio import Settings
from hushfit.studio._access import Access


@pytest.fixture(scope="module")
def accounts(tmp_path_factory):
    """The total is 1."""
    folder, elsewhere = (tmp_path_factory.mktemp(name) for name in ("accounts", "key"))
    with team_server(folder, elsewhere) as server:
        yield server


def test_officers_see_everything_and_do_nothing(accounts):
    carol = logged_in(accounts, "carol")
    assert "adult" in carol.ask("GET", "/budget").text
    assert carol.act("grant", person="alice", epsilon="1").status == 403
    assert logged_in(accounts, "alice", until="2020-01-01") is None
    alice = logged_in(accounts, "alice")
    assert "is no administrator" in alice.act("grant", person="alice", epsilon="1").text
    wrong = alice.send("/login", {"token": "hushfit1.e30.00"}, cookie=None)
    assert wrong.status == 403
    assert alice.ask("GET", "/budget", cookie=None).status == 303  # to the login


def test_whoever_logs_out_is_out(accounts):
    """Officers too, whose forms are refused otherwise."""
    for name in ("alice", "carol"):
        client = logged_in(accounts, name)
        assert client.send("/logout", {"csrf": "guess"}).status == 400
        assert client.ask("GET", "/budget").status == 200
        assert client.send("/logout", {}).status == 303
        assert client.ask("GET", "/budget").status == 303


def test_a_session_ends_with_its_token(tmp_path, monkeypatch):
    (tmp_path / "key").write_bytes(secrets.token_bytes(32))
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "key"))
    access = Access(Settings(tmp_path, accounts=True))
    key = access.enter(issue_token("alice", "2030-01-01"))
    assert access.session(key).person == "alice"
    (tmp_path / "key").write_bytes(secrets.token_bytes(32))  # the ledger has another key now
    assert access.session(key) is None


def test_a_table_is_paid_from_the_account_that_it_was_assigned_to(accounts):
    """Otherwise a ceiling on one account, or a new account, would pay for the rows of another."""
    lead, alice = logged_in(accounts, "lead"), logged_in(accounts, "alice")
    opened = {"dataset": "mine", "epsilon": "9", "delta": "1e-6"}
    assert "opened by administrators" in alice.send("/budget/open", opened).text
    assert "Open an account" not in alice.ask("GET", "/budget").text
    assert lead.send("/budget/open", {**opened, "dataset": "other"}).status == 303
    lead.act("grant", "other", person="alice", epsilon="9")
    refused = alice.start_fit(secrets.token_hex(16), dataset="other")
    assert refused.status == 400
    assert "train.csv is paid from &#39;adult&#39;" in refused.text
    assert "is no administrator" in alice.act("assign", "other", table="train.csv").text
    lead.act("appoint", "other", person="bob")
    bob = logged_in(accounts, "bob")  # of the new account, and not of the one that pays now
    assert (
        "no administrator of &#39;adult&#39;" in bob.act("assign", "other", table="train.csv").text
    )
    assert "opened by administrators" not in bob.send("/budget/open", opened).text
    assert lead.act("assign", "other", table="train.csv").status == 303
    assert lead.act("assign", "adult", table="train.csv").status == 303


def test_a_large_fit_waits_for_a_second_person_and_is_paid_once(accounts):
    lead, alice = logged_in(accounts, "lead"), logged_in(accounts, "alice")
    lead.act("limit", epsilon="0.1")
    first, second, third = (secrets.token_hex(16) for _ in range(3))
    alice.start_fit(first, epsilon="0.2")
    page = alice.ended(first)
    assert "Waits for a second person. Nothing was spent." in page
    ledger = Ledger(accounts.folder / "ledger.db", dataset="adult")
    (request,) = ledger.team.requests
    assert "asks for epsilon 0.2" in lead.ask("GET", "/budget").text
    assert "is no administrator" in alice.act("approve", request=str(request.number)).text
    assert lead.act("approve", request=str(request.number)).status == 303
    assert lead.act("approve", request=str(request.number)).status == 400  # a double click
    for key in (second, third):
        alice.start_fit(key, epsilon="0.2")
    assert "Done." in alice.ended(second)
    assert "Waits for a second person" in alice.ended(third)
    (charge,) = (e.body for e in ledger.account.history() if e.kind == "charge")
    assert (charge["user"], charge["request"]) == ("alice", request.number)
    lead.act("limit", epsilon="")


def test_every_act_of_a_team_is_on_the_page(accounts):
    """On an account of its own; what is for ever needs a tick."""
    lead = logged_in(accounts, "lead")
    lead.send("/budget/open", {"dataset": "trial", "epsilon": "2", "delta": "1e-6"})
    for act, fields in (
        ("grant", {"person": "dora", "epsilon": "1", "until": "2029-01-01"}),
        ("grant", {"person": "eve", "epsilon": "0.5"}),
        ("transfer", {"person": "dora", "to": "eve", "epsilon": "0.25"}),
        ("transfer", {"person": "dora", "to": "fay", "epsilon": ""}),
        ("freeze", {"person": "eve"}),
        ("thaw", {"person": "eve"}),
        ("revoke", {"person": "fay"}),
        ("freeze", {}),
        ("thaw", {}),
        ("appoint", {"person": "eve"}),
        ("dismiss", {"person": "eve"}),
    ):
        assert lead.act(act, "trial", **fields).status == 303, act
    ledger = Ledger(accounts.folder / "ledger.db", dataset="trial")
    held = [(g.holder, g.budget.epsilon, g.state) for g in ledger.team.grants]
    assert held == [("fay", 0.75, "closed"), ("eve", 0.75, "open")]
    renewed = {"as": "trial 2", "epsilon": "1"}
    assert "is for ever" in lead.act("renew", "trial", **renewed).text
    assert lead.act("renew", "trial", **renewed, sure="1").status == 303
    assert ledger.team.now.state == "closed"
    page = lead.ask("GET", "/budget").text
    assert "Renews trial." in page
    assert "grantee dora, epsilon 1.0" in page  # who did what, for officers
    assert lead.act("close", "trial 2", sure="1").status == 303
    assert lead.act("explode", "trial 2").status == 400
    assert lead.act("approve", "trial 2", request="x").status == 400
