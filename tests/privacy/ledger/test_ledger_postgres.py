"""A ledger on PostgreSQL: server defaults, roles, and lost connections."""

import json
import os
import re
import select
import socket
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_disk_ledger import old_statements
from test_ledger_places import check_forks, fork_inside

from _ledgers import DELTA, forked, killed_while_paying, pay, server
from hushfit import Ledger
from hushfit.cli import run
from hushfit.errors import BudgetExceeded, LedgerError
from hushfit.privacy.ledger._chain import FORMAT, canonical, link_of
from hushfit.privacy.ledger._disk_ledger import DiskAccount
from hushfit.privacy.ledger._verify import verify, verify_ledger

__all__ = ["server"]

DOCUMENT = (Path(__file__).parents[3] / "docs" / "ledger.md").read_text(encoding="utf-8")
PRIVILEGES = re.findall(r"^GRANT (.+) TO analyst;", DOCUMENT, re.MULTILINE)
OF_OFFICERS = re.findall(r"^GRANT (.+) TO officer;", DOCUMENT, re.MULTILINE)


@pytest.fixture
def database(server):
    """Name of a fresh database."""
    name = f"d{time.monotonic_ns()}"
    server.sql(f"CREATE DATABASE {name}")
    return name


@pytest.fixture
def url(server, database):
    return server.url(database=database)


@pytest.mark.parametrize("level", ["read committed", "repeatable read", "serializable"])
def test_many_make_a_ledger_at_once_under_any_default(server, database, url, level):
    server.sql(f"ALTER DATABASE {database} SET default_transaction_isolation = '{level}'")
    children = 5

    def make(k, depth=0):
        if k == children:
            return
        with forked(lambda send: send(Ledger.create(url, f"data {k}", 2.0, DELTA).name)) as (
            _,
            received,
        ):
            make(k + 1)  # the next one starts while this one works
            assert received() == [f"data {k}"]

    make(0)
    assert server.sql("SELECT version FROM hushfit_format", database=database) == [(FORMAT,)]
    assert verify_ledger(url) == {f"data {k}": [] for k in range(children)}
    for k in range(children):
        assert pay(Ledger(url, dataset=f"data {k}")).number == 1


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_payments_race_under_any_default(server, database, url, level):
    server.sql(f"ALTER DATABASE {database} SET default_transaction_isolation = '{level}'")
    Ledger.create(url, "patients", 2.0, DELTA)

    def work(send):
        for _ in range(5):
            send(pay(Ledger(url), 0.01).number)

    with forked(work) as (_, first), forked(work) as (_, second):
        numbers = sorted(map(int, first() + second()))
    assert numbers == list(range(1, 11))
    assert verify_ledger(url) == {"patients": []}


def test_a_ledger_with_several_rows_of_format_is_not_lost(server, database, url):
    """As a race under repeatable read left it."""
    ledger = Ledger.create(url, "patients", 2.0, DELTA)
    server.sql("INSERT INTO hushfit_format VALUES (3), (2)", database=database)
    assert pay(ledger).number == 1
    assert verify_ledger(url) == {"patients": []}


def test_an_older_ledger_is_taken_over(server, database, url):
    server.sql(*old_statements(format=2), database=database)
    ledger = Ledger(url)
    assert verify_ledger(url) == {"patients": []}
    assert pay(ledger).number == 1
    assert verify_ledger(url) == {"patients": []}


@pytest.fixture
def payer(server, database, url):
    """A role that may only select and insert."""
    name = f"payer_{database}"
    Ledger.create(url, "patients", 2.0, DELTA)
    grants = [f"GRANT {privilege} TO {name}" for privilege in PRIVILEGES]
    server.sql(f"CREATE ROLE {name} LOGIN", *grants, database=database)
    yield name
    server.sql(f"DROP OWNED BY {name}", f"DROP ROLE {name}", database=database)


def test_a_role_that_may_only_insert_suffices(server, database, payer):
    import psycopg

    place = server.url(payer, database)
    ledger = Ledger(place)
    ledger.account.record_model(pay(ledger), "ab" * 32)
    assert Ledger.create(place, "staff", 1.0, DELTA).entries == ()
    assert verify_ledger(place) == {"patients": [], "staff": []}
    for statement in (
        "DELETE FROM hushfit_entries",
        "UPDATE hushfit_entries SET body = ''",
        "DELETE FROM hushfit_seals",
        "TRUNCATE hushfit_entries",
        "DROP TABLE hushfit_entries",
        "UPDATE hushfit_writers SET writer = 'hush'",
        "INSERT INTO hushfit_writers VALUES ('patients', 9, 'hush')",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            server.sql(statement, role=payer, database=database)


def test_who_paid_is_the_role_of_the_database(server, database, payer):
    ledger = Ledger(server.url(payer, database))
    pay(ledger)
    opening, charge = ledger.account.history()
    assert (opening.body["user"], charge.body["user"]) == ("hush", payer)


def test_roles_share_a_budget_by_grants(server, database, url, payer):
    lead, analyst = Ledger(url), Ledger(server.url(payer, database))
    lead.team.grant(payer, 0.5)
    pay(analyst, 0.4)
    with pytest.raises(BudgetExceeded, match=r"over the ceiling of 0\.5"):
        pay(analyst, 0.4)
    with pytest.raises(LedgerError, match="no administrator"):
        analyst.team.grant(payer, 2.0)
    assert verify_ledger(url) == {"patients": []}


def test_what_a_role_inserts_by_hand_carries_its_own_name(server, database, url, payer):
    """A forged grant, with hashes and seals all right, in the name of the administrator."""
    chain = Ledger(url).account.history()
    body = {"kind": "grant", "grantee": payer, "epsilon": 2.0, "delta": DELTA, "user": "hush"}
    line = canonical({**body, "at": "2026-01-01T00:00:00+00:00"})
    link = link_of(chain, line)
    server.sql(
        f"INSERT INTO hushfit_entries VALUES ('patients', 1, '{line}', '{link}')",
        f"INSERT INTO hushfit_seals VALUES ('patients', 1, '{link}')",
        "INSERT INTO hushfit_writers (dataset, number) VALUES ('patients', 1)",
        role=payer,
        database=database,
    )
    (problem,) = verify_ledger(url)["patients"]
    assert f"entry 1 names 'hush', and was written by '{payer}'" in problem
    with pytest.raises(LedgerError, match="does not verify"):
        pay(Ledger(server.url(payer, database)))


def test_an_officer_can_look_and_not_write(server, database, url, payer):
    officer = f"officer_{database}"
    server.sql(
        f"CREATE ROLE {officer} LOGIN",
        *(f"GRANT {privilege} TO {officer}" for privilege in OF_OFFICERS),
        database=database,
    )
    try:
        seen = Ledger(server.url(officer, database))
        assert seen.team.administrators == ("hush",)
        with pytest.raises(LedgerError, match="needs SELECT and INSERT"):
            pay(seen)
    finally:
        server.sql(f"DROP OWNED BY {officer}", f"DROP ROLE {officer}", database=database)


def test_a_role_without_privileges_is_told_which_it_needs(server, database, url):
    Ledger.create(url, "patients", 2.0, DELTA)
    server.sql("CREATE ROLE stranger LOGIN")
    try:
        with pytest.raises(LedgerError, match="needs SELECT and INSERT"):
            Ledger(server.url("stranger", database))
    finally:
        server.sql("DROP ROLE stranger")


REFUSED = {
    "no such database": {"database": "patients_of_st_mary"},
    "no such role": {"role": "dr_miller"},
    "no such server": {"host": "/tmp/no-such-folder-of-st-mary"},
}


@pytest.mark.parametrize("given", REFUSED.values(), ids=REFUSED)
def test_refusals_name_neither_server_nor_role(server, given, capsys):
    place = server.url(**given).replace("@", ":secret@")
    with pytest.raises(LedgerError, match="cannot be used") as refusal:
        Ledger(place, dataset="patients")
    (value,) = given.values()
    for detail in (value, str(server.folder), "hush@", "hush ", "secret", "postgres@"):
        assert detail not in str(refusal.value)
    # The local user sees the details.
    (note,) = refusal.value.__notes__
    assert value in note
    assert "secret" not in note
    assert run(["ledger", "show", place, "--json"]) == 4
    output = capsys.readouterr()
    assert value in output.err
    assert value not in json.loads(output.out)["error"]["message"]


def test_other_refusals_and_handles_name_no_server_either(server, url):
    Ledger.create(url, "patients", 2.0, DELTA)
    place = url.replace("@", ":secret@")
    ledger = Ledger(place)
    with pytest.raises(LedgerError) as missing:
        Ledger(place, dataset="staff")
    other = DiskAccount(place, "patients", ledger.budget, ledger.relation, adaptive=False)
    with pytest.raises(LedgerError, match="other terms") as terms:
        pay(Ledger.over(other))
    for text in (str(missing.value), str(terms.value), repr(ledger), repr(ledger.account)):
        assert "secret" not in text
        assert "postgresql://" not in text
        assert str(server.folder) not in text


@contextmanager
def cut_at_commit(server, before):
    """Relay that closes the connection at a commit: before the server gets it, or after it
    answered.
    """
    with tempfile.TemporaryDirectory(prefix="hushfit-relay-", dir="/tmp") as folder:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"{folder}/.s.PGSQL.5432")
        listener.listen()
        listener.settimeout(30)

        def relay():
            with (
                listener,
                listener.accept()[0] as client,
                socket.socket(socket.AF_UNIX) as upstream,
            ):
                upstream.connect(f"{server.folder}/.s.PGSQL.5432")
                while True:
                    ready, _, _ = select.select([client, upstream], [], [], 30)
                    if upstream in ready:
                        client.sendall(upstream.recv(1 << 16))
                    if client in ready:
                        data = client.recv(1 << 16)
                        if b"COMMIT\0" in data and before:
                            return
                        upstream.sendall(data)
                        if b"COMMIT\0" in data:
                            upstream.recv(1 << 16)
                            return

        thread = threading.Thread(target=relay)
        thread.start()
        yield folder
        thread.join()


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize(
    "before", [True, False], ids=["before the server has it", "before the client hears of it"]
)
def test_a_line_cut_at_commit_releases_nothing_and_says_what_is_not_known(
    server, database, url, before
):
    ledger = Ledger.create(url, "patients", 2.0, DELTA)
    with cut_at_commit(server, before) as folder:
        account = ledger.account
        cut = DiskAccount(
            server.url(database=database, host=folder), "patients", account.budget, account.relation
        )
        # Only the payment itself goes through the relay; earlier reads go directly.
        object.__setattr__(cut, "_try_out", account._try_out)
        with pytest.raises(
            LedgerError,
            match=r"Nothing was released, but whether the entry was recorded is not known",
        ):
            pay(Ledger.over(cut))
    # Recorded once if the server received it: nothing is retried automatically.
    assert len(ledger.entries) == (0 if before else 1)
    assert verify_ledger(url) == {"patients": []}
    assert pay(ledger).number == (1 if before else 2)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_forks_lose_nothing_and_children_inside_a_payment_touch_nothing(url):
    ledger = Ledger.create(url, "patients", 5.0, DELTA)
    check_forks(url, "patients", 4)
    before = len(ledger.entries)
    for number in range(1, 4):
        receipt, output = fork_inside(ledger)
        assert receipt.number == before + number
        assert "forked in the middle" in output
    assert verify_ledger(url) == {"patients": []}


def test_what_was_acknowledged_survives_kills(url):
    Ledger.create(url, "patients", 5.0, DELTA)
    acknowledged, recorded = killed_while_paying(url, "patients", 8)
    assert 0 < acknowledged <= recorded <= acknowledged + 8


@pytest.mark.slow
def test_five_hundred_kills_of_postgresql(server):
    """Paying processes are killed; in every 25th case the server crashes first."""
    total_acknowledged, total_recorded, crashes = 0, 0, []

    def meanwhile(k):
        if k % 25 == 24:
            server.stop()
            server.start()
            crashes.append(k)

    for k in range(20):
        name = f"killed{k}"
        server.sql(f"CREATE DATABASE {name}")
        Ledger.create(server.url(database=name), "patients", 5.0, DELTA)
        acknowledged, recorded = killed_while_paying(
            server.url(database=name), "patients", 25, k, meanwhile
        )
        total_acknowledged, total_recorded = (
            total_acknowledged + acknowledged,
            total_recorded + recorded,
        )
    print(
        f"\n500 kills, PostgreSQL, {len(crashes)} of them with a crash of the server: "
        f"{total_acknowledged} acknowledged, {total_recorded} recorded, 0 lost"
    )
    assert total_acknowledged <= total_recorded <= total_acknowledged + 500


def test_removed_accounts_do_not_verify(server, database, url, tmp_path, capsys):
    for name in ("patients", "staff"):
        pay(Ledger.create(url, name, 2.0, DELTA))
    assert run(["ledger", "export", url, "-o", str(tmp_path / "kept.jsonl")]) == 0
    remove = [
        f"DELETE FROM {table} WHERE dataset = 'staff'"
        for table in ("hushfit_entries", "hushfit_seals", "hushfit_writers")
    ]
    server.sql(*remove, database=database)
    assert verify(url).sentences() == []  # nothing inside can show it
    assert run(["ledger", "verify", url, "--against", str(tmp_path / "kept.jsonl")]) == 4
    assert "of 'staff'" in capsys.readouterr().err
    # A new account of that name does not hide it.
    Ledger.create(url, "staff", 2.0, DELTA)
    assert run(["ledger", "verify", url, "--against", str(tmp_path / "kept.jsonl")]) == 4
    server.sql("DELETE FROM hushfit_entries", "DELETE FROM hushfit_seals", database=database)
    assert run(["ledger", "verify", url]) == 4
    assert "no data set left" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["kept.jsonl"]
