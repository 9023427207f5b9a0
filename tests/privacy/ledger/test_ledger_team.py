"""One budget for a team: ceilings, approvals, identities, and a total that always holds."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from tempfile import gettempdir

import pytest
from test_disk_ledger import change, old_statements

from _ledgers import DELTA, forked, pay
from hushfit import Ledger
from hushfit.cli import run
from hushfit.errors import ApprovalNeeded, BudgetExceeded, InvalidArgument, LedgerError
from hushfit.privacy.ledger import (
    KEY_VARIABLE,
    TOKEN_VARIABLE,
    _chain,
    _disk_ledger,
    export_text,
    issue_token,
    person_of_token,
    verify_export,
)
from hushfit.privacy.ledger._sqlite import SqliteDatabase
from hushfit.privacy.ledger._team import Admission, Team
from hushfit.privacy.ledger._verify import verify_ledger

TODAY = datetime.now(UTC).date()
PAST, FUTURE = str(TODAY - timedelta(days=2)), str(TODAY + timedelta(days=400))


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "ledger.db")


@pytest.fixture
def key(tmp_path, monkeypatch):
    file = tmp_path / "key"
    file.write_bytes(os.urandom(32))
    monkeypatch.setenv(KEY_VARIABLE, str(file))
    return file


class People:
    """One ledger as several people see it, each by a token; ``lead`` opened it."""

    def __init__(self, path):
        self.path = path
        Ledger.create(path, "patients", 2.0, DELTA, token=issue_token("lead", FUTURE))

    def __getattr__(self, name):
        return Ledger(self.path, dataset="patients", token=issue_token(name, FUTURE))


@pytest.fixture
def people(path, key):
    return People(path)


@pytest.fixture
def team(people):
    """Alice and bob have a ceiling of 1.5 each; the total is 2."""
    for name in ("alice", "bob"):
        people.lead.team.grant(name, 1.5)
    return people


def test_a_charge_must_fit_the_ceiling_and_the_total(team):
    pay(team.alice, 1.4)
    with pytest.raises(BudgetExceeded, match=r"'alice' to epsilon=.*over the ceiling of 1.5"):
        pay(team.alice, 0.8)
    with pytest.raises(BudgetExceeded, match="over the ledger's 2"):
        pay(team.bob, 1.4)
    assert pay(team.bob, 0.5).number == 2
    alice, bob = team.lead.team.grants
    assert (alice.tally.epsilon, bob.tally.epsilon) == pytest.approx((1.4, 0.5), rel=1e-6)
    assert verify_ledger(team.path) == {"patients": []}


def test_ceilings_compose_as_ledgers_do(team):
    """Two charges of .9 compose to less than 1.8: a ceiling is a filter, not a subtraction."""
    pay(team.alice, 0.9)
    pay(team.alice, 0.9)
    assert team.lead.team.grants[0].tally.epsilon < 1.5
    assert team.lead.team.grants[0].tally.epsilon == pytest.approx(
        team.alice.spent().epsilon, rel=1e-3
    )


def test_without_a_grant_nobody_pays_once_there_are_grants(people):
    pay(people.carol, 0.1)
    people.lead.team.grant("alice", 1.0)
    for stranger in (people.carol, people.lead):
        with pytest.raises(LedgerError, match=r"has no grant.*hushfit ledger grant patients"):
            pay(stranger, 0.1)
    assert len(people.lead.entries) == 1


def test_only_administrators_administer(team):
    before = team.lead.account.history()
    for act in (
        lambda t: t.grant("alice", 2.0),
        lambda t: t.set_limit(9.0),
        lambda t: t.freeze(),
        lambda t: t.close(),
        lambda t: t.appoint("alice"),
        lambda t: t.transfer("bob", "alice", 1.0),
    ):
        with pytest.raises(
            LedgerError, match=r"'alice' is no administrator.*Ask one of them: lead"
        ):
            act(team.alice.team)
    assert team.lead.account.history() == before
    team.lead.team.appoint("alice")
    team.alice.team.dismiss("lead")
    with pytest.raises(LedgerError, match="'lead' is no administrator"):
        team.lead.team.freeze()


def test_an_account_always_has_an_administrator(path):
    team = Ledger.create(path, "patients", 2.0, DELTA).team
    with pytest.raises(LedgerError, match="is the last administrator"):
        team.dismiss(team.identity)
    with pytest.raises(LedgerError, match="'bob' is no administrator"):
        team.dismiss("bob")


def test_a_ceiling_can_change_and_what_was_spent_counts(team):
    pay(team.alice, 1.0)
    with pytest.raises(LedgerError, match=r"'alice' has spent epsilon=1 .* new ceiling of 0.5"):
        team.lead.team.grant("alice", 0.5)
    team.lead.team.grant("alice", 1.2)
    with pytest.raises(BudgetExceeded, match=r"ceiling of 1.2"):
        pay(team.alice, 1.0)
    team.lead.team.revoke("alice")
    with pytest.raises(LedgerError, match="revoked"):
        pay(team.alice, 0.1)
    team.lead.team.grant("alice", 1.2)  # the old sub-account goes on
    assert team.lead.team.grants[0].tally.epsilon == pytest.approx(1.0)


def test_what_was_paid_before_the_first_grant_counts(people):
    """A ceiling is about everything that a person sees, also what was seen before it."""
    pay(people.alice, 1.0)
    with pytest.raises(LedgerError, match=r"'alice' has spent epsilon=1 .* ceiling of 0.5"):
        people.lead.team.grant("alice", 0.5)
    people.lead.team.grant("alice", 1.2)
    with pytest.raises(BudgetExceeded, match=r"over the ceiling of 1.2"):
        pay(people.alice, 1.0)
    people.lead.team.grant("bob", 0.5)
    with pytest.raises(LedgerError, match="'alice' has spent"):
        people.lead.team.transfer("alice", "bob", 0.5)
    assert verify_ledger(people.path) == {"patients": []}


def test_what_was_paid_under_a_grant_that_others_hold_now_counts(team):
    """Handing over a grant and being given another one is no second ceiling."""
    pay(team.alice, 1.4)
    team.lead.team.transfer("alice", "carol")
    team.lead.team.grant("alice", 1.5)
    with pytest.raises(BudgetExceeded, match=r"'alice' .*over the ceiling of 1.5"):
        pay(team.alice, 0.8)
    team.lead.team.transfer("alice", "dave")
    with pytest.raises(LedgerError, match="'bob' has a grant"):
        team.lead.team.transfer("carol", "bob")
    team.lead.team.transfer("carol", "alice")  # her own charge counts once
    assert [g.tally.count for g in team.lead.team.grants if g.holder == "alice"] == [1]
    assert verify_ledger(team.path) == {"patients": []}


def test_part_of_a_ceiling_and_a_whole_grant_can_be_transferred(team):
    pay(team.alice, 1.0)
    with pytest.raises(LedgerError, match="has spent"):
        team.lead.team.transfer("alice", "bob", 1.0)
    with pytest.raises(LedgerError, match="is not less than the ceiling"):
        team.lead.team.transfer("bob", "alice", 1.5)
    with pytest.raises(LedgerError, match=r"ceiling of epsilon=2.25.* is above the total"):
        team.lead.team.transfer("bob", "alice", 0.75)
    team.lead.team.transfer("bob", "alice", 0.25)
    assert [g.budget.epsilon for g in team.lead.team.grants] == [1.75, 1.25]
    with pytest.raises(LedgerError, match="'bob' has a grant"):
        team.lead.team.transfer("alice", "bob")
    team.lead.team.transfer("alice", "carol")
    with pytest.raises(LedgerError, match="'alice' has no grant"):
        pay(team.alice, 0.1)
    pay(team.carol, 0.1)
    assert team.lead.team.grants[0].tally.count == 2  # alice's charge and carol's
    assert verify_ledger(team.path) == {"patients": []}


def test_grants_and_accounts_expire(people, path):
    people.lead.team.grant("alice", 1.0, until=TODAY)
    pay(people.alice, 0.1)
    people.lead.team.grant("alice", 1.0, until=PAST)
    with pytest.raises(LedgerError, match=f"expired after {PAST}"):
        pay(people.alice, 0.1)
    lead = issue_token("lead", FUTURE)
    old = Ledger.create(path, "old", 1.0, DELTA, until=PAST, token=lead)
    with pytest.raises(LedgerError, match=f"expired after {PAST}.*hushfit ledger renew"):
        pay(old, 0.1)
    with pytest.raises(InvalidArgument, match="until='soon' is not a day"):
        Ledger.create(path, "other", 1.0, DELTA, until="soon", token=lead)
    assert verify_ledger(path) == {"old": [], "patients": []}


def test_freezing_thawing_and_closing(team):
    team.lead.team.freeze("bob")
    with pytest.raises(LedgerError, match="the grant of 'bob' is frozen"):
        pay(team.bob, 0.1)
    pay(team.alice, 0.1)
    team.lead.team.freeze()
    with pytest.raises(LedgerError, match=r"is frozen.*hushfit ledger thaw"):
        pay(team.alice, 0.1)
    team.lead.team.thaw()
    team.lead.team.thaw("bob")
    receipt = pay(team.bob, 0.1)
    team.lead.team.close()
    with pytest.raises(LedgerError, match="closed for ever"):
        pay(team.bob, 0.1)
    with pytest.raises(LedgerError, match="closed for ever"):
        team.lead.team.thaw()
    team.lead.account.record_model(receipt, "ab" * 32)  # what was paid for may still be written
    assert verify_ledger(team.path) == {"patients": []}


def test_a_large_charge_waits_for_a_second_person(team):
    team.lead.team.set_limit(0.5)
    pay(team.alice, 0.5)
    for _ in range(2):  # asking again is the same request
        with pytest.raises(ApprovalNeeded, match=r"hushfit ledger approve patients 5"):
            pay(team.alice, 0.6)
    (request,) = team.lead.team.requests
    assert (request.user, request.state, request.number) == ("alice", "waiting", 5)
    assert len(team.lead.entries) == 1
    team.lead.team.appoint("alice")
    with pytest.raises(LedgerError, match="made by 'alice' and needs a second person"):
        team.alice.team.approve(5)
    team.lead.team.approve(5)
    with pytest.raises(LedgerError, match="it is approved"):
        team.lead.team.approve(5)
    with pytest.raises(ApprovalNeeded):  # another one than what was approved
        pay(team.alice, 0.7)
    with pytest.raises(ApprovalNeeded):
        pay(team.bob, 0.6)
    assert pay(team.alice, 0.6).number == 2
    with pytest.raises(ApprovalNeeded):  # an approval is for one charge
        pay(team.alice, 0.6)
    assert verify_ledger(team.path) == {"patients": []}
    declined = team.lead.team.requests[-1]
    team.lead.team.decline(declined.number)
    with pytest.raises(LedgerError, match=r"no request 99.*Waiting: "):
        team.lead.team.approve(99)


def test_an_approval_does_not_lift_ceilings_or_the_total(team):
    team.lead.team.set_limit(0.5)
    with pytest.raises(ApprovalNeeded):
        pay(team.alice, 1.4)
    with pytest.raises(ApprovalNeeded):
        pay(team.bob, 1.4)
    for request in team.lead.team.requests:
        team.lead.team.approve(request.number)
    pay(team.alice, 1.4)
    with pytest.raises(BudgetExceeded, match="over the ledger's 2"):
        pay(team.bob, 1.4)


def test_a_renewed_account_names_the_old_one(team):
    pay(team.alice, 1.0)
    with pytest.raises(LedgerError, match="'alice' is no administrator"):
        team.alice.renew("patients 2027", 3.0)
    new = team.lead.renew("patients 2027", 3.0, until=FUTURE)
    old = team.lead.account.history()
    assert new.team.now.renews == {"dataset": "patients", "head": old[-1].hash}
    assert old[-1].body["renewed_by"] == "patients 2027"
    assert (new.budget.epsilon, new.spent().epsilon, new.team.grants) == (3.0, 0.0, ())
    with pytest.raises(LedgerError, match="closed for ever"):
        pay(team.alice, 0.1)
    assert verify_ledger(team.path) == {"patients": [], "patients 2027": []}


def test_tokens_are_signed_expire_and_need_the_key(people, monkeypatch):
    good = issue_token("alice", FUTURE)
    assert person_of_token(good) == "alice"
    head, payload, code = good.split(".")
    other = issue_token("lead", FUTURE).split(".")[1]
    for forged in (f"{head}.{other}.{code}", f"{head}.{payload}.", "x", good + "0", ""):
        with pytest.raises(LedgerError, match="not signed with the ledger's key"):
            person_of_token(forged)
    with pytest.raises(LedgerError, match=f"token of 'alice' expired after {PAST}"):
        person_of_token(issue_token("alice", PAST))
    monkeypatch.setenv(TOKEN_VARIABLE, good)
    pay(Ledger(people.path), 0.1)
    charge = people.lead.account.history()[-1].body
    assert charge["user"] == "alice"
    assert charge["through"] == SqliteDatabase(people.path).payer(None)
    assert good not in repr(people.alice)
    assert good not in repr(people.alice.account)
    monkeypatch.delenv(KEY_VARIABLE)
    with pytest.raises(LedgerError, match=r"signed with the ledger's key, and .* names none"):
        person_of_token(good)


def test_only_an_administrator_acts_for_others(people, monkeypatch):
    """A role that pays and holds the key could otherwise record charges in the name of others."""
    me = people.lead.account.history()[0].body["through"]
    people.lead.team.dismiss(me)
    with pytest.raises(LedgerError, match="only administrators"):
        people.lead.team.grant("alice", 1.0)


def test_the_user_of_a_file_is_not_taken_from_the_environment(path, monkeypatch):
    own = SqliteDatabase(path).payer(None)
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody else")
    assert SqliteDatabase(path).payer(None) == own
    Ledger.create(path, "patients", 1.0, DELTA)
    assert Ledger(path).team.administrators == (own,)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_two_users_of_the_system_are_two_people(tmp_path):
    tmp_path.chmod(0o777)
    path = tmp_path / "ledger.db"
    Ledger.create(path, "patients", 2.0, DELTA).team.grant("nobody", 1.0)
    path.chmod(0o666)
    for parent in takewhile(lambda one: one != Path(gettempdir()), tmp_path.parents):
        parent.chmod(0o711)  # pytest makes folders for its own user alone

    def spend(tell):
        ledger = Ledger(path)
        os.setuid(65534)
        pay(ledger, 0.5)
        tell(ledger.team.identity)
        for act in (lambda: pay(ledger, 0.9), lambda: ledger.team.grant("nobody", 2.0)):
            try:
                act()
            except (BudgetExceeded, LedgerError) as error:
                tell(type(error).__name__)

    with forked(spend) as (_, heard):
        assert heard() == ["nobody", "BudgetExceeded", "LedgerError"]
    with pytest.raises(LedgerError, match="'root' has no grant"):
        pay(Ledger(path), 0.1)


RACE = """
import sys
from hushfit.errors import BudgetExceeded
from hushfit.privacy import GaussianCost, Ledger, gaussian_mu
path, token, times, epsilon = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
ledger, paid = Ledger(path, dataset="patients", token=token), 0
cost = GaussianCost(1 / gaussian_mu(epsilon, 1e-6))
sys.stdin.readline()
for _ in range(times):
    try:
        ledger.charge(cost, "fit", "replace-one")
        paid += 1
    except BudgetExceeded:
        pass
print(paid)
"""


def test_analysts_who_race_cannot_overspend(team):
    """Three processes, two of them alice's, ask for more than ceilings and total allow."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, team.path, issue_token(name, FUTURE), "6", "0.7"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("alice", "alice", "bob")
    ]
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    paid = [int(racer.communicate()[0]) for racer in racers]
    lead = team.lead
    assert sum(paid) == len(lead.entries) == sum(len(g.receipts) for g in lead.team.grants)
    assert lead.spent().epsilon <= 2.0
    assert all(grant.tally.epsilon <= 1.5 for grant in lead.team.grants)
    for name in ("alice", "bob"):  # everything was used up: nobody can pay once more
        with pytest.raises(BudgetExceeded):
            pay(getattr(team, name), 0.7)
    assert verify_ledger(team.path) == {"patients": []}


def forge(path, edit):
    """Rewrite entries with all hashes right, as somebody who can write to an unsealed file."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT number, body FROM hushfit_entries ORDER BY number"
        ).fetchall()
        chain = []
        for place, body in rows:
            line = _chain.canonical(edit(json.loads(body)))
            link = _chain.link_of(chain, line)
            chain.append(_chain.Entry(place, {}, link))
            connection.execute(
                "UPDATE hushfit_entries SET body = ?, hash = ? WHERE number = ?",
                (line, link, place),
            )
            connection.execute("UPDATE hushfit_seals SET seal = ? WHERE number = ?", (link, place))
        connection.commit()
    _disk_ledger._VERIFIED.clear()


def changed(kind, /, **values):
    return lambda body: {**body, **values} if body["kind"] == kind else body


def without(kind, name):
    def edit(body):
        return {k: v for k, v in body.items() if body["kind"] != kind or k != name}

    return edit


FORGERIES = {
    "a lower ceiling": (changed("grant", epsilon=0.2), "over the ceiling of 0.2"),
    "a grant by a stranger": (changed("grant", user="mallory"), "is no administrator"),
    "an approval by the payer": (changed("approve", user="root2"), "needs a second person"),
    "no approval": (without("charge", "request"), "should count against"),
    "another payer": (changed("charge", user="mallory"), "'mallory' has no grant"),
    "a grant that was expired": (changed("grant", until=PAST), "expired after"),
    "a frozen account": (changed("limit", kind="freeze"), "is frozen"),
}


@pytest.mark.parametrize(("edit", "shown"), FORGERIES.values(), ids=FORGERIES)
def test_verify_applies_the_rules_again(path, monkeypatch, edit, shown):
    monkeypatch.setattr(SqliteDatabase, "payer", lambda self, execute: person)
    person = "lead"
    ledger = Ledger.create(path, "patients", 2.0, DELTA)
    ledger.team.grant("root2", 1.0)
    ledger.team.set_limit(0.4)
    person = "root2"
    with pytest.raises(ApprovalNeeded):
        pay(ledger, 0.5)
    person = "lead"
    ledger.team.appoint("root2")
    ledger.team.approve(3)
    person = "root2"
    pay(ledger, 0.5)
    assert verify_ledger(path) == {"patients": []}
    forge(path, edit)
    assert shown in " ".join(verify_ledger(path)["patients"])


def test_a_clock_that_was_set_back_does_not_revive_a_grant(team, path, monkeypatch):
    """Whoever owns the machine of a file sets its clock; entries of others remember the day."""
    now, later = SqliteDatabase.now, timedelta(days=3)
    team.lead.team.grant("alice", 1.0, until=TODAY)
    with monkeypatch.context() as clock:
        clock.setattr(SqliteDatabase, "now", lambda self, execute: now(self, execute) + later)
        pay(team.bob, 0.1)
    with pytest.raises(LedgerError, match=f"expired after {TODAY}"):
        pay(team.alice, 0.1)
    with monkeypatch.context() as rules:  # as if the file had been written by other code
        rules.setattr(Team, "admission", lambda self, *charge: Admission(self.grants[0].number))
        pay(team.alice, 0.1)
    assert f"expired after {TODAY}" in " ".join(verify_ledger(path)["patients"])


@pytest.fixture
def signing(tmp_path):
    private, public = tmp_path / "sign.pem", tmp_path / "signer.pem"
    for line in (
        ["genpkey", "-algorithm", "ed25519", "-out", private],
        ["pkey", "-in", private, "-pubout", "-out", public],
    ):
        subprocess.run(["openssl", *line], check=True, capture_output=True)
    return private, public


def test_auditors_check_a_signed_export_without_the_ledger(team, tmp_path, signing):
    private, public = signing
    pay(team.alice, 0.5)
    text = export_text({"patients": team.lead.account.history()}, private)
    export = tmp_path / "export.jsonl"
    export.write_text(text)
    assert verify_export(export, public).sentences() == []
    assert verify_export(export).unsealed == ("patients",)
    export.write_text(text.replace('"alice"', '"bob"', 1))
    with pytest.raises(LedgerError, match="was not signed with the key"):
        verify_export(export, public)
    assert "was edited" in verify_export(export).sentences()[0]
    export.write_text("".join(text.splitlines(keepends=True)[:-1]))
    with pytest.raises(LedgerError, match="has no signature"):
        verify_export(export, public)
    with pytest.raises(InvalidArgument, match=r"not an Ed25519 private key.*openssl genpkey"):
        export_text({}, public)


def test_edited_entries_are_not_signed(team, path, tmp_path, signing, monkeypatch, capsys):
    """Auditors cannot check seals: whoever signs without checking them vouches for an edit."""
    pay(team.alice, 0.5)
    forge(path, changed("charge", label="another fit"))
    export = str(tmp_path / "export.jsonl")
    command = ["ledger", "export", str(path), "-o", export, "--sign", str(signing[0])]
    assert run(command) == 4
    assert "wrong seal" in capsys.readouterr().err
    monkeypatch.delenv(KEY_VARIABLE)
    assert run(command) == 4
    assert "seals of 'patients' were not checked" in capsys.readouterr().err
    assert not os.path.exists(export)


def test_the_command_line_does_the_same(path, tmp_path, signing, monkeypatch, capsys):
    assert all(key.parent == tmp_path for key in signing)
    monkeypatch.chdir(tmp_path)
    me = SqliteDatabase(path).payer(None)

    def done(line, code=0):
        assert run(line.split()) == code, capsys.readouterr()
        return capsys.readouterr()

    done("ledger init ledger.db --dataset patients --epsilon 3 --delta 1e-6")
    out = done("ledger grant patients --to alice --epsilon 2 --until 2027-01-01")
    assert "alice may spend epsilon=2 of 'patients' (entry 1)" in out.out
    out = done(f"ledger grant patients --to {me} --epsilon 2")
    assert "the ceilings add up to epsilon=4, the total is 3" in out.err
    done("ledger limit patients --epsilon 0.2")
    with pytest.raises(ApprovalNeeded):
        pay(Ledger("ledger.db"), 0.3)
    assert "needs a second person" in done("ledger approve patients 4", 4).err
    done("ledger appoint patients alice")
    with monkeypatch.context() as other:
        other.setattr(SqliteDatabase, "payer", lambda self, execute: "alice")
        assert "Request 4 of" in done("ledger approve patients 4").out
    pay(Ledger("ledger.db"), 0.3)
    done("ledger transfer patients --from alice --to root2")
    done("ledger freeze patients --of root2")
    done("ledger thaw patients --of root2")
    done("ledger revoke patients --from root2")
    shown = json.loads(done("ledger team patients --json").out)
    assert [g["state"] for g in shown["grants"]] == ["closed", "open"]
    assert shown["requests"][0]["state"] == "paid"
    assert "Grants" in done("ledger team patients").out
    done("ledger export ledger.db -o export.jsonl --sign sign.pem")
    done("ledger audit export.jsonl --signer signer.pem")
    done("ledger verify ledger.db --against export.jsonl --signer signer.pem")
    done("ledger limit patients", 2)
    done("ledger renew patients --as patients-2027 --epsilon 3")
    done("ledger freeze patients-2027 --json")
    assert "patients is closed" in done("ledger show ledger.db").out
    assert '"alice"' not in done("ledger team patients-2027 --json").out
    done("ledger close patients-2027 --yes")
    assert verify_ledger("ledger.db") == {"patients": [], "patients-2027": []}


@pytest.mark.parametrize("format", [1, 2])
def test_ledgers_of_formats_1_and_2_become_ledgers_of_a_team(path, monkeypatch, format):
    person = "lead"
    monkeypatch.setattr(SqliteDatabase, "payer", lambda self, execute: person)
    statements = old_statements(format, user="lead")
    change(path, *statements)
    assert Ledger(path).team.administrators == ("lead",)  # reading changes nothing
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version FROM hushfit_format").fetchall() == [(format,)]
    pay(Ledger(path), 0.2)
    Ledger(path).team.grant("alice", 0.5)
    with pytest.raises(LedgerError, match="'lead' has no grant"):
        pay(Ledger(path), 0.1)
    person = "alice"
    pay(Ledger(path), 0.4)
    assert Ledger(path).adaptive is (format == 2)
    assert verify_ledger(path) == {"patients": []}
    with closing(sqlite3.connect(path)) as connection:
        versions = connection.execute("SELECT version FROM hushfit_format").fetchall()
    assert versions == [(format,), (_chain.FORMAT,)]


def test_bad_names_and_ceilings_are_refused_and_nothing_changes(people):
    before = people.lead.account.history()
    team = people.lead.team
    for act, error, text in [
        (lambda: team.grant("", 1.0), InvalidArgument, "to='' is not the name of a person"),
        (lambda: team.grant("a\nb", 1.0), InvalidArgument, "is not the name"),
        (lambda: team.grant("x" * 201, 1.0), InvalidArgument, "201 characters"),
        (lambda: team.grant("alice", -1.0), InvalidArgument, "epsilon=-1 is not positive"),
        (lambda: team.grant("alice", 2.5), LedgerError, "above the total"),
        (lambda: team.grant("alice", 1.0, delta=1e-3), LedgerError, "above the total"),
        (lambda: team.revoke("alice"), LedgerError, "'alice' has no grant"),
        (lambda: team.set_limit(0.0), InvalidArgument, "not positive"),
        (lambda: team.approve(True), InvalidArgument, "request=True is not an integer"),
        (lambda: Ledger(1.0, DELTA).team, LedgerError, "only a ledger on disk has grants"),
        (lambda: Ledger(1.0, DELTA, token="x"), InvalidArgument, "a token names an account"),
    ]:
        with pytest.raises(error, match=text):
            act()
    assert people.lead.account.history() == before
