"""A studio with accounts: people log in with tokens of the ledger and pay in their own name."""

import secrets

import pytest
from _studio import Client, Server, prepare

from hushfit import Ledger
from hushfit.privacy.ledger import KEY_VARIABLE, issue_token


@pytest.fixture(scope="module")
def accounts(tmp_path_factory):
    """A studio where people log in with tokens of the ledger; the total is 1."""
    folder = tmp_path_factory.mktemp("accounts")
    file = tmp_path_factory.mktemp("key") / "key"
    file.write_bytes(secrets.token_bytes(32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_VARIABLE, str(file))
        ledger = prepare(folder, budget=1.0)
        for name in ("alice", "bob"):
            ledger.team.grant(name, 0.9)
        server = Server(folder, "--accounts", "--officer", "carol")
        yield server
        server.kill()


def logged_in(server, name, until="2030-01-01"):
    client = Client.__new__(Client)
    client.server, client.headers, client.csrf = server, {}, ""
    fields = {"token": issue_token(name, until)}
    answer = client.send("/login", fields, cookie=None)
    if answer.status != 200:
        return None
    client.cookie = answer.headers["set-cookie"].partition(";")[0]
    page = client.ask("GET", "/budget").text
    client.csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
    return client


def test_two_analysts_race_for_the_last_of_a_budget(accounts):
    """Both ceilings allow it, the total allows one: the other is told so, nothing is overspent."""
    people = {name: logged_in(accounts, name) for name in ("alice", "bob")}
    keys = {name: secrets.token_hex(16) for name in people}
    for name, client in people.items():
        assert client.start_fit(keys[name], epsilon="0.8").status == 303
    told = {name: client.ended(keys[name]) for name, client in people.items()}
    paid = [name for name, text in told.items() if "Done." in text]
    (refused,) = set(people) - set(paid)
    assert "Refused. Nothing was spent." in told[refused]
    assert "over the ledger" in told[refused]
    ledger = Ledger(accounts.folder / "ledger.db")
    (charge,) = (e.body for e in ledger.account.history() if e.kind == "charge")
    assert [charge["user"]] == paid
    assert ledger.spent().epsilon <= 1.0


def test_accounts_show_officers_everything_and_let_them_do_nothing(accounts):
    carol = logged_in(accounts, "carol")
    assert "adult" in carol.ask("GET", "/budget").text
    grant = {"dataset": "adult", "act": "grant", "person": "alice", "epsilon": "1"}
    assert carol.send("/budget/act", grant).status == 403
    assert logged_in(accounts, "alice", until="2020-01-01") is None
    alice = logged_in(accounts, "alice")
    assert "is no administrator" in alice.send("/budget/act", grant).text
    wrong = alice.send("/login", {"token": "hushfit1.e30.00"}, cookie=None)
    assert wrong.status == 403
    assert alice.ask("GET", "/budget", cookie=None).status == 303  # to the login
