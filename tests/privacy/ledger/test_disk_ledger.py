"""The ledger on disk: no overspending, no lost payment, no unnoticed rewriting."""

import getpass
import hashlib
import json
import os
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager

import pytest
from sklearn.base import clone

from _ledgers import DELTA, pay, server
from hushfit import Ledger, PrivateLogisticRegression
from hushfit.errors import BudgetExceeded, InvalidArgument, LedgerError
from hushfit.privacy import (
    Budget,
    GaussianCost,
    PoissonGaussianCost,
    Relation,
    calibrate,
    compose,
)
from hushfit.privacy.accounting import FilteredTotal, _adaptive_total
from hushfit.privacy.ledger import _chain
from hushfit.privacy.ledger._chain import FORMAT
from hushfit.privacy.ledger._disk_ledger import DiskAccount, ledger_datasets
from hushfit.privacy.ledger._redact import redacted
from hushfit.privacy.ledger._sqlite import SqliteDatabase
from hushfit.privacy.ledger._verify import verify_ledger

__all__ = ["server"]


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "ledger.db")


@pytest.fixture
def ledger(path):
    return Ledger.create(path, "patients", 2.0, DELTA)


def change(path, *statements):
    """Tamper with the file outside the ledger."""
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def test_a_charge_outlives_its_process(ledger, path):
    pay(ledger)
    again = Ledger(path, dataset="patients")
    assert again.entries == ledger.entries
    assert again.spent().epsilon == pytest.approx(0.3)
    assert again.budget == ledger.budget
    assert again.relation is ledger.relation


def test_the_only_data_set_need_not_be_named(ledger, path):
    assert Ledger(path).name == "patients"
    Ledger.create(path, "staff", 1.0, DELTA, "add-remove")
    assert ledger_datasets(path) == ["patients", "staff"]
    with pytest.raises(LedgerError, match="It has: patients, staff"):
        Ledger(path)


def test_data_sets_do_not_share_their_budget(ledger, path):
    other = Ledger.create(path, "staff", 1.0, DELTA)
    pay(ledger, 1.5)
    assert other.spent().epsilon == 0
    pay(other, 0.9)
    assert Ledger(path, dataset="patients").spent().epsilon == pytest.approx(1.5)


def test_copies_clones_and_pickles_share_the_account(ledger):
    pay(clone(PrivateLogisticRegression(ledger=ledger)).ledger)
    pay(pickle.loads(pickle.dumps(ledger)))
    assert len(ledger.entries) == 2


def test_a_refusal_records_nothing(ledger, path):
    pay(ledger, 1.9)
    before = ledger.account.history()
    with pytest.raises(BudgetExceeded, match="over the ledger's 2"):
        pay(ledger, 1.9)
    assert Ledger(path).account.history() == before


def test_entries_tell_who_when_and_how(ledger):
    receipt = pay(ledger)
    ledger.account.record_model(receipt, "ab" * 32)
    opening, charge, model = ledger.account.history()
    assert [opening.kind, charge.kind, model.kind] == ["open", "charge", "model"]
    assert charge.body["user"] == getpass.getuser()
    assert charge.body["host"]
    assert charge.body["command"]
    assert charge.body["at"].endswith("+00:00")
    assert model.body["model"] == "ab" * 32
    assert ledger.account.hash_of(receipt) == charge.hash


def test_passwords_do_not_enter_the_record():
    assert (
        redacted("fit --ledger postgresql://me:secret@host/db")
        == "fit --ledger postgresql://***@host/db"
    )
    for secret in ("a/b", "a@b", "a b", "a:b", "'a'"):
        assert secret not in redacted(f"fit --ledger 'postgresql://me:{secret}@host/db' -o x")
        assert redacted(f"fit 'postgresql://me:{secret}@host/db' -o x").endswith("host/db' -o x")
    assert "secret" not in redacted(
        "fit --ledger 'postgresql://host/db?user=me&password=secret&sslmode=require'"
    )


def test_a_tighter_accountant_lowers_the_total(ledger, monkeypatch):
    receipt = pay(ledger, 1.0)
    exact = FilteredTotal.epsilon
    monkeypatch.setattr(FilteredTotal, "epsilon", property(lambda self: 0.5 * exact.fget(self)))
    assert ledger.spent().epsilon == pytest.approx(0.5 * receipt.total.epsilon)


def test_an_account_is_opened_once(ledger, path):
    with pytest.raises(LedgerError, match="already has a data set 'patients'"):
        Ledger.create(path, "patients", 100.0, DELTA)
    assert Ledger(path).budget.epsilon == 2.0


def test_a_path_and_a_budget_do_not_go_together(ledger, path):
    with pytest.raises(InvalidArgument, match="budget is fixed"):
        Ledger(path, 1e-5)
    with pytest.raises(InvalidArgument, match="names an account on disk"):
        Ledger(1.0, 1e-6, dataset="patients")
    with pytest.raises(LedgerError, match="there is no data set 'x'"):
        Ledger(path, dataset="x")


TAMPERINGS = {
    "edited cost": (
        "UPDATE hushfit_entries SET body = replace(body, 'first', 'other') WHERE number = 1"
    ),
    "edited budget": (
        "UPDATE hushfit_entries SET body = replace(body, '2.0', '9.0') WHERE number = 0"
    ),
    "removed in the middle": "DELETE FROM hushfit_entries WHERE number = 2",
    "removed at the end": "DELETE FROM hushfit_entries WHERE number = 3",
    "removed at the start": "DELETE FROM hushfit_entries WHERE number = 0",
    "all removed": "DELETE FROM hushfit_entries",
    "added": (
        "INSERT INTO hushfit_entries SELECT dataset, 4, body, hash FROM hushfit_entries WHERE "
        "number = 3"
    ),
    "account removed": "DELETE FROM hushfit_seals",
    "not JSON": "UPDATE hushfit_entries SET body = 'x' WHERE number = 3",
}


@pytest.mark.parametrize("statement", TAMPERINGS.values(), ids=TAMPERINGS)
def test_tampering_is_found_and_nothing_is_paid_into_it(ledger, path, statement):
    for label in ("first", "second", "third"):
        pay(ledger, 0.1, label)
    assert verify_ledger(path) == {"patients": []}
    change(path, statement)
    assert verify_ledger(path)["patients"]
    with pytest.raises(LedgerError):
        pay(Ledger(path, dataset="patients"), 0.1)


def test_payments_read_only_what_is_new(ledger, path, monkeypatch):
    """What was checked when the ledger was opened is not parsed again, whoever wrote since."""
    parsed = []
    monkeypatch.setattr(
        _chain, "_parsed", lambda line, own=_chain._parsed: parsed.append(line) or own(line)
    )
    for label in ("first", "second", "third"):
        pay(ledger, 0.1, label)
    assert len(parsed) == len(set(parsed))  # the opening entry, and each payment once
    assert [entry.label for entry in ledger.entries] == ["first", "second", "third"]


def test_an_old_entry_that_is_edited_during_a_run_still_counts_as_it_was(ledger, path):
    for label in ("first", "second"):
        pay(ledger, 0.5, label)
    assert len(ledger.entries) == 2  # so both are known to this process
    change(path, TAMPERINGS["edited cost"])
    assert pay(ledger, 0.1, "third").total == ledger.spent()
    assert [entry.label for entry in ledger.entries] == ["first", "second", "third"]
    assert "was edited" in verify_ledger(path)["patients"][0]


@pytest.mark.parametrize("name", ["removed at the end", "not JSON", "account removed", "added"])
def test_a_changed_end_is_found_without_opening_the_ledger_again(ledger, path, name):
    for label in ("first", "second", "third"):
        pay(ledger, 0.1, label)
    assert len(ledger.entries) == 3
    change(path, TAMPERINGS[name])
    with pytest.raises(LedgerError, match="does not verify"):
        pay(ledger, 0.1)


def test_a_total_that_is_too_small_for_its_costs_is_found(ledger, path, monkeypatch):
    """A total and every hash after it are rewritten: composing the costs again shows it."""
    monkeypatch.setattr(FilteredTotal, "epsilon", 0.1)
    pay(ledger, 1.5)
    monkeypatch.undo()
    (problem,) = verify_ledger(path)["patients"]
    assert "its costs give 1.5" in problem


def test_a_newer_format_is_refused(ledger, path):
    change(path, "UPDATE hushfit_format SET version = 99")
    for use in (lambda: Ledger(path), lambda: pay(ledger), lambda: verify_ledger(path)):
        with pytest.raises(LedgerError, match="format \\[99\\]"):
            use()


@pytest.mark.parametrize(
    "contents",
    [b"", b"not a database at all" * 99, os.urandom(5000)],
    ids=["empty", "text", "noise"],
)
def test_another_file_is_refused(tmp_path, contents):
    place = tmp_path / "ledger.db"
    place.write_bytes(contents)
    with pytest.raises(LedgerError, match="Nothing was"):
        Ledger(place)
    assert place.read_bytes() == contents


def test_a_damaged_file_is_refused(ledger, path):
    for _ in range(30):
        pay(ledger, 0.01)
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.seek(size // 3)
        file.write(os.urandom(size // 3))
    with pytest.raises(LedgerError):
        pay(ledger, 0.01)


def test_a_missing_file_or_folder_is_refused(tmp_path):
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger(tmp_path / "none.db")
    with pytest.raises(LedgerError, match="cannot be opened for writing"):
        Ledger.create(tmp_path / "nowhere" / "x.db", "a", 1.0, DELTA)
    assert not (tmp_path / "none.db").exists()


PAY = """
import os, resource, sys
from hushfit import Ledger
from hushfit.errors import HushfitError
from hushfit.privacy import GaussianCost
{before}
try:
    Ledger(sys.argv[1]).charge(GaussianCost(40.0), "fit", "replace-one")
except HushfitError as error:
    print(type(error).__name__, error)
else:
    print("paid")
"""


def in_child(path, before):
    done = subprocess.run(
        [sys.executable, "-c", PAY.format(before=before), path],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_read_only_place_is_refused():
    """Root may write anywhere, so the child drops its privileges first (after its imports)."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ledger.db")
        ledger = Ledger.create(path, "patients", 2.0, DELTA)
        os.chmod(path, 0o444)
        os.chmod(folder, 0o555)
        output = in_child(
            path, "Ledger(sys.argv[1]).spent(); os.setuid(65534) if os.getuid() == 0 else None"
        )
        os.chmod(folder, 0o755)
        os.chmod(path, 0o644)
        assert output.startswith("LedgerError")
        assert "Nothing was" in output
        assert len(ledger.entries) == 0


def test_a_full_disk_is_refused(ledger, path):
    """A limit on file sizes acts like a full disk: writing fails half way."""
    limit = os.path.getsize(path) + 100
    output = in_child(
        path, f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit // 2}, {limit // 2}))"
    )
    assert output.startswith("LedgerError")
    assert verify_ledger(path) == {"patients": []}
    assert len(ledger.entries) == 0


def charge_many(path, times, epsilon):
    paid = 0
    for _ in range(times):
        try:
            pay(Ledger(path), epsilon)
            paid += 1
        except BudgetExceeded:
            pass
    return paid


CHARGE_MANY = """
import sys
from hushfit.errors import BudgetExceeded
from hushfit.privacy import GaussianCost, Ledger, gaussian_mu
paid, cost = 0, GaussianCost(1 / gaussian_mu(float(sys.argv[3]), 1e-6))
for _ in range(int(sys.argv[2])):
    try:
        Ledger(sys.argv[1]).charge(cost, "fit", "replace-one")
        paid += 1
    except BudgetExceeded:
        pass
print(paid)
"""


def race(path, processes, times, epsilon):
    """Number of successful charges of each of several processes."""
    command = [sys.executable, "-c", CHARGE_MANY, path, str(times), str(epsilon)]
    children = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)
    ]
    return [int(child.communicate()[0]) for child in children]


def test_threads_never_overspend(ledger, path):
    counts = []
    threads = [
        threading.Thread(target=lambda: counts.append(charge_many(path, 5, 0.5))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == len(ledger.entries) < 30
    assert ledger.spent().epsilon <= 2.0
    assert verify_ledger(path) == {"patients": []}


def test_processes_never_overspend(ledger, path):
    counts = race(path, 4, 6, 0.5)
    assert sum(counts) == len(ledger.entries) < 24
    assert ledger.spent().epsilon <= 2.0
    with pytest.raises(BudgetExceeded):
        pay(ledger, 0.5)


CHARGE_FOR_EVER = """
import sys
from hushfit import Ledger
from hushfit.privacy import GaussianCost
ledger = Ledger(sys.argv[1])
print("ready", flush=True)
while True:
    print(ledger.charge(GaussianCost(500.0), "fit", "replace-one").number, flush=True)
"""


def test_what_was_paid_survives_a_kill_at_any_moment(ledger, path):
    """A receipt number that was printed is recorded, however the process ended."""
    generator = random.Random(0)
    for _ in range(6):
        child = subprocess.Popen(
            [sys.executable, "-c", CHARGE_FOR_EVER, path], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout.readline() == "ready\n"
        time.sleep(generator.uniform(0, 0.15))
        child.send_signal(signal.SIGKILL)
        acknowledged = [int(line) for line in child.stdout.read().split()]
        child.wait()
        child.stdout.close()
        assert verify_ledger(path) == {"patients": []}
        recorded = [entry.number for entry in Ledger(path).entries]
        assert recorded == list(range(1, len(recorded) + 1))
        assert set(acknowledged) <= set(recorded)
    assert len(ledger.entries) > 0


def test_a_team_shares_a_ledger_on_postgresql(server):
    url = server.url()
    with pytest.raises(LedgerError, match="no ledger on PostgreSQL"):
        Ledger(url, dataset="patients")
    ledger = Ledger.create(url, "patients", 2.0, DELTA)
    receipt = pay(ledger)
    ledger.account.record_model(receipt, "cd" * 32)
    assert Ledger(url).spent().epsilon == pytest.approx(0.3)
    assert [entry.kind for entry in ledger.account.history()] == ["open", "charge", "model"]
    assert verify_ledger(url) == {"patients": []}
    counts = race(url, 4, 4, 0.6)
    assert sum(counts) + 1 == len(ledger.entries) < 17
    assert ledger.spent().epsilon <= 2.0
    assert verify_ledger(url) == {"patients": []}


def test_an_unreachable_server_is_named_without_its_password(server):
    with pytest.raises(LedgerError, match="cannot be used") as refusal:
        Ledger("postgresql://me:secret@127.0.0.1:1/none", dataset="x")
    assert "secret" not in str(refusal.value)
    with pytest.raises(LedgerError, match="cannot be read"):
        Ledger("postgresql://host:port/db", dataset="x")


def test_tampering_on_postgresql_is_found(server):
    ledger = Ledger.create(server.url(), "staff", 2.0, DELTA)
    pay(ledger)
    server.sql("DELETE FROM hushfit_entries WHERE dataset = 'staff' AND number = 1")
    assert verify_ledger(server.url())["staff"]
    with pytest.raises(LedgerError, match="does not verify"):
        pay(ledger)


def test_a_second_name_of_the_file_is_refused(tmp_path):
    """Locks of the write-ahead log belong to a name: with two names, two processes could pay at
    once.
    """
    path = tmp_path / "ledger.db"
    ledger = Ledger.create(path, "patients", 1.0, 1e-6)
    os.link(path, tmp_path / "again.db")
    for name in ("ledger.db", "again.db"):
        with pytest.raises(LedgerError, match="second name"):
            Ledger(tmp_path / name, dataset="patients")
    with pytest.raises(LedgerError, match="second name"):
        ledger.charge(GaussianCost(10.0), "fit", "replace-one")


def test_a_handle_with_other_terms_cannot_pay(tmp_path):
    """Neither a stale handle of a ledger that was made again, nor a fabricated one."""
    path = tmp_path / "ledger.db"
    generous = Ledger.create(path, "patients", 10.0, 1e-6)
    for part in tmp_path.glob("ledger.db*"):
        part.unlink()
    Ledger.create(path, "patients", 0.5, 1e-6)
    made_up = Ledger.over(
        DiskAccount(str(path), "patients", Budget(50.0, 1e-6), Relation.REPLACE_ONE)
    )
    for ledger in (generous, made_up):
        with pytest.raises(LedgerError, match="other terms"):
            ledger.charge(GaussianCost(1.0), "fit", "replace-one")
    assert Ledger(path, dataset="patients").entries == ()


def old_statements(format, dataset="patients", epsilon=1.0, **origin):
    """Statements that make a ledger of an earlier version: one head for each account, no seals."""
    opening = {
        "kind": "open",
        "dataset": dataset,
        "epsilon": epsilon,
        "delta": DELTA,
        "relation": "replace-one",
        **origin,
    }
    if format == 2:
        opening["adaptive"] = True
    line = json.dumps(opening, sort_keys=True, separators=(",", ":"))
    link = hashlib.sha256(f"{'0' * 64}\n{line}".encode()).hexdigest()
    return [
        "CREATE TABLE hushfit_format (version INTEGER NOT NULL)",
        "CREATE TABLE hushfit_heads (dataset TEXT PRIMARY KEY, number INTEGER NOT NULL, hash TEXT "
        "NOT NULL)",
        "CREATE TABLE hushfit_entries (dataset TEXT NOT NULL, number INTEGER NOT NULL, body TEXT "
        "NOT NULL, "
        "hash TEXT NOT NULL, PRIMARY KEY (dataset, number))",
        f"INSERT INTO hushfit_format VALUES ({format})",
        f"INSERT INTO hushfit_entries VALUES ('{dataset}', 0, '{line}', '{link}')",
        f"INSERT INTO hushfit_heads VALUES ('{dataset}', 0, '{link}')",
    ]


def opened_without_filter(path, dataset="patients", epsilon=1.0):
    """An account of a version without a filter."""
    change(path, "PRAGMA journal_mode = WAL", *old_statements(1, dataset, epsilon))
    return Ledger(path, dataset=dataset)


@pytest.mark.parametrize(
    "statement", ["DELETE FROM hushfit_heads", "UPDATE hushfit_heads SET number = 1"]
)
def test_a_broken_account_of_an_older_ledger_stays_broken(path, statement):
    change(path, *old_statements(2), statement)
    staff = Ledger.create(path, "staff", 1.0, DELTA)  # upgrades the file
    pay(staff)
    found = verify_ledger(path)
    assert found["patients"]
    assert found["staff"] == []
    with pytest.raises(LedgerError, match="does not verify"):
        Ledger(path, dataset="patients")


def half_of(epsilon):
    """Two of these compose to epsilon if fixed beforehand, and to slightly more if adaptive."""
    strength = calibrate(
        lambda s: PoissonGaussianCost(1 / s, 0.02, 100), Budget(epsilon, DELTA), "replace-one"
    )
    return PoissonGaussianCost(1 / strength, 0.02, 50)


def test_an_account_from_before_the_filter_goes_on_as_it_was_opened(path):
    old, half = opened_without_filter(path), half_of(0.999)
    assert not old.adaptive
    assert "fixed before the first answer" in old.rule
    for _ in range(2):
        old.charge(half, "half", "replace-one")
    assert verify_ledger(path) == {"patients": []}
    # A new account in the same file has a filter, and an older hushfit refuses the file from then
    # on.
    new = Ledger.create(path, "visits", 1.0, DELTA)
    assert new.adaptive
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT version FROM hushfit_format").fetchall() == [
            (1,),
            (FORMAT,),
        ]
    connection.close()
    assert not Ledger(path, dataset="patients").adaptive
    new.charge(half, "half", "replace-one")
    with pytest.raises(BudgetExceeded, match="adaptive=False"):
        new.charge(half, "half", "replace-one")
    assert verify_ledger(path) == {"patients": [], "visits": []}


def test_the_rule_of_an_account_is_on_disk(path):
    half = half_of(0.999)
    Ledger.create(path, "fixed", 1.0, DELTA, adaptive=False)
    Ledger.create(path, "chosen", 1.0, DELTA)
    for _ in range(2):
        Ledger(path, dataset="fixed").charge(half, "half", "replace-one")
    # What is fixed beforehand is one charge where costs may be adaptive.
    Ledger(path, dataset="chosen").charge(compose([half, half]), "both halves", "replace-one")
    assert verify_ledger(path) == {"chosen": [], "fixed": []}


def test_a_rule_that_the_account_does_not_have_is_refused(path):
    Ledger.create(path, "fixed", 1.0, DELTA, adaptive=False)
    Ledger.create(path, "chosen", 1.0, DELTA)
    for dataset, rule in (("fixed", False), ("chosen", True)):
        assert Ledger(path, dataset=dataset).adaptive is rule
        assert Ledger(path, dataset=dataset, adaptive=rule).adaptive is rule
        with pytest.raises(
            InvalidArgument, match=f"adaptive={not rule} was given .* Ledger.create"
        ):
            Ledger(path, dataset=dataset, adaptive=not rule)
    with pytest.raises(InvalidArgument, match="neither True nor False"):
        Ledger(path, dataset="fixed", adaptive="no")


def test_nobody_waits_for_the_arithmetic_of_another(ledger, monkeypatch):
    """The Gaussian that dominates the new plan is computed before the ledger is locked."""
    found, original = _adaptive_total._mu_of_profile, SqliteDatabase.transaction
    inside = []

    @contextmanager
    def transaction(self, *, writing, creating=False):
        before = found.cache_info().misses
        with original(self, writing=writing, creating=creating) as execute:
            yield execute
        if writing:
            inside.append(found.cache_info().misses - before)

    monkeypatch.setattr(SqliteDatabase, "transaction", transaction)
    found.cache_clear()
    for noise in (41.0, 42.0):
        ledger.charge(PoissonGaussianCost(noise, 0.01, 50), "fit", "replace-one")
    assert inside == [0, 0]
    assert found.cache_info().misses > 0
