"""Ledger files: two names, network disks, forks, kills and failing disks."""

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from _ledgers import DELTA, forked, killed_while_paying, pay
from hushfit import Ledger
from hushfit.errors import LedgerError
from hushfit.privacy.ledger import _sqlite, _transaction
from hushfit.privacy.ledger._mounts import Mount, mounts, parse_mounts, refuse_unsafe_place
from hushfit.privacy.ledger._verify import verify_ledger


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "ledger.db")


@pytest.fixture
def ledger(path):
    return Ledger.create(path, "patients", 2.0, DELTA)


# --- Two names for one file

LINES = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 254:0 /srv/ledger.db /data/the\040ledger.db rw,relatime - ext4 /dev/vda rw
31 22 0:44 / /net rw,relatime shared:7 master:2 - nfs4 server:/home rw
32 31 0:45 / /net/local rw - tmpfs tmpfs rw
33 22 0:46 / /over rw - nfs server:/x rw
34 22 0:47 / /over rw - ext4 /dev/vdb rw
"""


def test_mount_points_are_read_as_the_system_writes_them():
    found = parse_mounts(LINES)
    assert found[1] == Mount("/data/the ledger.db", "ext4")
    assert [mount.kind for mount in found] == ["ext4", "ext4", "nfs4", "tmpfs", "nfs", "ext4"]
    here = mounts()
    assert here is None or any(mount.point == "/" for mount in here)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("/data/the ledger.db", "Mount the folder that holds the ledger"),
        ("/net/team/ledger.db", r"network file system \(nfs4\)"),
        ("/net/local/ledger.db", None),
        ("/over/ledger.db", None),
        ("/srv/ledger.db", None),
        ("/network/ledger.db", None),
    ],
)
def test_places_where_locks_do_not_hold_are_refused(place, message):
    if message is None:
        refuse_unsafe_place(place, parse_mounts(LINES))
    else:
        with pytest.raises(LedgerError, match=message):
            refuse_unsafe_place(place, parse_mounts(LINES))


def test_a_file_that_is_a_mount_point_is_neither_read_nor_paid_into(ledger, path, monkeypatch):
    monkeypatch.setattr(_sqlite, "mounts", lambda: [Mount("/", "ext4"), Mount(path, "ext4")])
    for use in (lambda: Ledger(path), lambda: pay(ledger), lambda: verify_ledger(path)):
        with pytest.raises(LedgerError, match="itself a mount point"):
            use()
    with pytest.raises(LedgerError, match="itself a mount point"):
        Ledger.create(path, "staff", 1.0, DELTA)
    monkeypatch.undo()
    assert Ledger(path).entries == ()


def namespace():
    """Command that runs another one in its own mount namespace, or None where it is not allowed."""
    if shutil.which("unshare") is None:
        return None
    line = ["unshare", "-m" if os.getuid() == 0 else "-rm"]
    probe = subprocess.run(
        [*line, "mount", "--bind", "/tmp", "/tmp"], capture_output=True, check=False
    )
    return line if probe.returncode == 0 else None


# Pays a given number of times through one name; prints its receipts, then the error that stopped
# it.
PAY_THROUGH = """
import sys
from hushfit.errors import HushfitError
from hushfit.privacy import GaussianCost, Ledger
from hushfit.privacy.ledger import _sqlite
path, times, checked = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "checked"
if not checked:
    _sqlite.mounts = lambda: None
try:
    for _ in range(times):
        print(Ledger(path).charge(GaussianCost(900.0), "fit", "replace-one").number, flush=True)
except HushfitError as error:
    print(error)
"""

TWO_NAMES = """
set -e
mount --bind "$1" "$2"
"$3" -c "$4" "$1" "$5" "$6" > "$7/first" & one=$!
"$3" -c "$4" "$2" "$5" "$6" > "$7/second" & two=$!
wait $one && wait $two
"""


def paid_through_two_names(folder, times, checked):
    """Output of two processes that use a file and a mount of it, each in its own folder."""
    line = namespace()
    if line is None:
        pytest.skip("this system does not allow mount namespaces; the rule itself is tested above")
    names = [folder / "host" / "ledger.db", folder / "container" / "ledger.db"]
    for name in names:
        name.parent.mkdir()
    Ledger.create(names[0], "patients", 5.0, DELTA)
    names[1].touch()
    given = [
        *names,
        sys.executable,
        PAY_THROUGH,
        times,
        "checked" if checked else "unchecked",
        folder,
    ]
    subprocess.run([*line, "sh", "-c", TWO_NAMES, "sh", *map(str, given)], check=True)
    return [(folder / name).read_text().splitlines() for name in ("first", "second")]


def check_two_names(folder, times):
    first, second = paid_through_two_names(folder, times, checked=True)
    assert [int(number) for number in first] == list(range(1, times + 1))
    assert "itself a mount point" in second[0]
    assert len(Ledger(folder / "host" / "ledger.db").entries) == times
    assert os.listdir(folder / "container") == ["ledger.db"]


def test_of_two_names_in_a_namespace_only_the_first_pays(tmp_path):
    check_two_names(tmp_path, 20)


def check_locks_belong_to_the_file(folder, times):
    """Even without the check of mounts, every acknowledged payment would be recorded once."""
    outputs = paid_through_two_names(folder, times, checked=False)
    numbers = sorted(int(line) for lines in outputs for line in lines)
    assert numbers == list(range(1, 2 * times + 1))
    ledger = Ledger(folder / "host" / "ledger.db")
    assert [entry.number for entry in ledger.entries] == numbers
    assert verify_ledger(folder / "host" / "ledger.db") == {"patients": []}


def test_locks_belong_to_the_file_and_not_to_a_name(tmp_path):
    check_locks_belong_to_the_file(tmp_path, 20)


@pytest.mark.slow
def test_two_names_with_many_charges(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    check_two_names(tmp_path / "a", 200)
    check_locks_belong_to_the_file(tmp_path / "b", 200)
    print(
        "\ntwo names: 200 of 200 recorded, second name refused; unchecked 400 of 400 recorded once"
    )


# --- Every acknowledged payment is in the file itself


def journal_mode(path):
    with sqlite3.connect(path) as connection:
        ((mode,),) = connection.execute("PRAGMA journal_mode").fetchall()
    connection.close()
    return mode


def test_after_a_payment_nothing_is_in_a_side_file(ledger, path):
    pay(ledger)
    assert os.listdir(os.path.dirname(path)) == ["ledger.db"]
    assert journal_mode(path) == "delete"


def test_a_copy_of_the_file_alone_has_every_acknowledged_charge(ledger, path, tmp_path):
    """The process is killed right after the acknowledgement, and only the file itself is copied."""

    def work(send):
        send(pay(ledger, 0.01).number)
        os.kill(os.getpid(), 9)

    for k in range(1, 6):
        with forked(work) as (_, received):
            assert received() == [str(k)]
        copy = tmp_path / f"copy-{k}.db"
        shutil.copy(path, copy)
        assert len(Ledger(copy).entries) == k


def test_a_ledger_with_a_write_ahead_log_is_taken_over_with_its_log(ledger, path):
    """As earlier versions left it when killed: the last payment is in the log only."""
    pay(ledger)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    with forked(lambda send: left_in_the_log(path)) as (_, received):
        received()
    assert os.path.getsize(path + "-wal") > 0
    assert pay(Ledger(path)).number == 2
    assert journal_mode(path) == "delete"
    assert len(ledger.entries) == 2
    assert os.listdir(os.path.dirname(path)) == ["ledger.db"]


def left_in_the_log(path):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE leftover (x)")
    os.kill(os.getpid(), 9)


def test_a_file_exchanged_during_a_payment_is_noticed(ledger, path, tmp_path, monkeypatch):
    """A backup is restored during the payment: the charge would go to a file without a name."""
    backup = shutil.copy(path, tmp_path / "backup.db")

    def exchange():
        os.replace(shutil.copy(backup, tmp_path / "again.db"), path)

    def decide(entries):
        exchange()
        return receipt_for(ledger, entries)

    with pytest.raises(LedgerError, match="cannot be used"):
        inside_transaction(ledger, decide)
    original = _sqlite._SqliteConnection.execute

    def execute(self, sql, values):
        if sql.startswith("SELECT body, hash"):  # the last statement before the end
            exchange()
        return original(self, sql, values)

    monkeypatch.setattr(_sqlite._SqliteConnection, "execute", execute)
    with pytest.raises(LedgerError, match=r"exchanged.*not known"):
        pay(ledger)


def receipt_for(ledger, tally):
    from hushfit.privacy import Receipt, Relation, Spent
    from hushfit.privacy.costs._gaussian_cost import GaussianCost

    return Receipt(
        tally.count + 1, "fit", GaussianCost(900.0), Relation.REPLACE_ONE, Spent(1.0, DELTA)
    )


def test_a_trigger_that_throws_payments_away_is_refused(ledger, path):
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TRIGGER forget AFTER INSERT ON hushfit_entries BEGIN DELETE FROM "
            "hushfit_entries WHERE number > 0; END"
        )
    connection.close()
    for use in (lambda: pay(ledger), lambda: Ledger(path), lambda: verify_ledger(path)):
        with pytest.raises(LedgerError, match="triggers or views"):
            use()


# --- Forks


def fork_and_pay(location, dataset, forks):
    """Fork while another thread pays; parent and child pay on. Returns all receipt numbers."""
    stop, numbers, failures = threading.Event(), [], []

    def pay_meanwhile():
        ledger = Ledger(location, dataset=dataset)
        while not stop.is_set():
            try:
                numbers.append(pay(ledger, 0.0005).number)
            except Exception as error:
                failures.append(error)
                return

    ledger = Ledger(location, dataset=dataset)
    thread = threading.Thread(target=pay_meanwhile)
    thread.start()
    try:
        for _ in range(forks):
            with forked(lambda send: send(pay(ledger, 0.0005).number)) as (_, received):
                numbers.append(pay(ledger, 0.0005).number)
                (number,) = received()
                numbers.append(int(number))
    finally:
        stop.set()
        thread.join()
    assert failures == []
    return numbers


def check_forks(location, dataset, forks):
    numbers = fork_and_pay(location, dataset, forks)
    recorded = [entry.number for entry in Ledger(location, dataset=dataset).entries]
    assert sorted(numbers) == recorded
    assert len(recorded) >= 2 * forks
    assert verify_ledger(location)[dataset] == []
    return len(recorded)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_forks_beside_a_paying_thread_lose_nothing(ledger, path):
    check_forks(path, "patients", 8)


def fork_inside(ledger):
    """Fork while a payment is being decided; both sides continue.

    Returns the parent's receipt and the child's output.
    """
    outputs = []

    def decide(entries):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(writing, 1)
            return receipt_for(ledger, entries)  # continues as if it were the payer
        os.close(writing)
        os.waitpid(child, 0)
        with os.fdopen(reading) as lines:
            outputs.append(lines.read())
        return receipt_for(ledger, entries)

    process = os.getpid()
    try:
        receipt = inside_transaction(ledger, decide)
    except BaseException as error:
        if os.getpid() == process:
            raise
        os.write(1, f"{type(error).__name__}: {error}\n".encode())
    else:
        if os.getpid() == process:
            return receipt, outputs[0]
        os.write(1, b"paid twice\n")
    try:
        pay(Ledger(ledger.account.location, dataset=ledger.name))
    except LedgerError as error:
        os.write(1, f"then {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(0)


def inside_transaction(ledger, decide):
    """Call ``decide`` only at the second call of the account, which holds the lock."""
    seen = []

    def second(entries):
        seen.append(entries)
        return decide(entries) if len(seen) == 2 else receipt_for(ledger, entries)

    return ledger.account.append(second)


def test_a_child_forked_inside_a_payment_touches_nothing(ledger, path):
    for number in range(1, 6):
        receipt, output = fork_inside(ledger)
        assert receipt.number == number
        assert output.startswith("LedgerError: this process was forked in the middle")
        assert "then LedgerError: this process was forked" in output
        assert len(Ledger(path).entries) == number
    assert verify_ledger(path) == {"patients": []}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_two_hundred_and_seventy_six_forks(tmp_path):
    """138 next to a paying thread and 138 inside a payment."""
    beside, inside = (str(tmp_path / name) for name in ("beside.db", "inside.db"))
    Ledger.create(beside, "patients", 20.0, DELTA)
    recorded = check_forks(beside, "patients", 138)
    ledger = Ledger.create(inside, "patients", 2.0, DELTA)
    refused = sum("forked in the middle" in fork_inside(ledger)[1] for _ in range(138))
    assert refused == 138 == len(Ledger(inside).entries)
    assert verify_ledger(inside) == {"patients": []}
    print(f"\n276 forks: {recorded} and 138 payments recorded, each once; 138 children refused")


def test_a_fork_waits_for_payments_of_other_threads():
    """A connection that is open in another thread is never copied into a child."""
    inside, leave, seen = threading.Event(), threading.Event(), []

    class Slow:
        def begin(self):
            inside.set()
            leave.wait(10)

        def commit(self):
            seen.append("committed")

        def rollback(self): ...
        def close(self): ...

    def work():
        with _transaction.transaction(Slow):
            pass

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(10)
    threading.Timer(0.05, leave.set).start()
    with _transaction._PROCESS.lock:  # what a fork acquires first
        seen.append("forked")
    thread.join()
    assert seen == ["committed", "forked"]


# --- Kills and failing disks


def test_what_was_acknowledged_survives_kills(ledger, path):
    acknowledged, recorded = killed_while_paying(path, "patients", 12)
    assert 0 < acknowledged <= recorded <= acknowledged + 12


@pytest.mark.slow
def test_five_hundred_kills_of_sqlite(tmp_path):
    total_acknowledged, total_recorded = 0, 0
    for k in range(20):
        path = str(tmp_path / f"ledger-{k}.db")
        Ledger.create(path, "patients", 5.0, DELTA)
        acknowledged, recorded = killed_while_paying(path, "patients", 25, seed=k)
        total_acknowledged, total_recorded = (
            total_acknowledged + acknowledged,
            total_recorded + recorded,
        )
    print(
        f"\n500 kills, SQLite: {total_acknowledged} acknowledged, {total_recorded} recorded, 0 lost"
    )
    assert total_acknowledged <= total_recorded <= total_acknowledged + 500


PAY_ONCE = """
import sys
from hushfit import Ledger
from hushfit.errors import HushfitError
from hushfit.privacy import GaussianCost
try:
    print("paid", Ledger(sys.argv[1]).charge(GaussianCost(900.0), "fit", "replace-one").number)
except HushfitError as error:
    print(type(error).__name__, error)
"""


def pay_with_failing_disk(path, call, fault, when):
    """One payment during which the n-th system call of a kind on ledger or journal fails."""
    inject = f"inject={call}:error={fault}:when={when}"
    files = [option for name in (path, f"{path}-journal") for option in ("-P", name)]
    line = ["strace", "-f", "-qq", "-o", os.devnull, *files, "-e", f"trace={call}", "-e", inject]
    done = subprocess.run(
        [*line, sys.executable, "-c", PAY_ONCE, path], capture_output=True, text=True, check=False
    )
    return done.stdout


FAULTS = [
    (call, fault)
    for call in ("fdatasync", "pwrite64", "ftruncate", "pread64", "unlink")
    for fault in ("EIO", "ENOSPC")
]


def check_failing_disk(path, faults, moments):
    """After every fault an acknowledged payment is recorded, and the ledger remains usable."""
    ledger = Ledger.create(path, "patients", 5.0, DELTA)
    outcomes = {"paid": 0, "refused": 0}
    for call, fault in faults:
        for when in moments:
            before = len(ledger.entries)
            output = pay_with_failing_disk(path, call, fault, when)
            after = len(Ledger(path).entries)
            assert verify_ledger(path) == {"patients": []}
            if output.startswith("paid"):
                assert after == before + 1
                outcomes["paid"] += 1
            else:
                assert output.startswith("LedgerError"), output
                assert "Nothing was released" in output
                assert before <= after <= before + 1
                outcomes["refused"] += 1
    return outcomes


def needs_strace():
    if shutil.which("strace") is None:
        pytest.skip(
            "strace, which makes system calls fail, is not installed; a limit on file sizes does "
            "part of it elsewhere"
        )


def test_a_disk_that_fails_never_takes_an_acknowledged_payment(path):
    needs_strace()
    assert check_failing_disk(path, [("fdatasync", "EIO")], (1, 2))["refused"] > 0


@pytest.mark.slow
def test_a_disk_that_fails_at_any_moment(path):
    needs_strace()
    outcomes = check_failing_disk(path, FAULTS, range(1, 9))
    print(f"\n{len(FAULTS) * 8} disk faults: {outcomes}")
    assert outcomes["refused"] > 0


def test_the_page_on_ledgers_says_where_it_may_be():
    """What the code refuses is documented."""
    page = (Path(__file__).parents[3] / "docs" / "ledger.md").read_text(encoding="utf-8")
    assert "mount the folder" in page.lower()
    assert "network file system" in page.lower()
