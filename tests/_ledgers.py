"""What tests of ledgers on disk share: small payments, a PostgreSQL server of our own, and
processes that are killed."""

import os
import random
import select
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from hushfit import Ledger
from hushfit.privacy import GaussianCost, gaussian_mu
from hushfit.privacy.ledger._verify import verify_ledger

DELTA = 1e-6


def gaussian_of(epsilon):
    return GaussianCost(1 / gaussian_mu(epsilon, DELTA))


def pay(ledger, epsilon=0.3, label="fit"):
    return ledger.charge(gaussian_of(epsilon), label, "replace-one")


def find_server():
    places = [Path(p) / "initdb" for p in os.environ["PATH"].split(":")]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return next((p.parent for p in places if p.exists() and (p.parent / "pg_ctl").exists()), None)


class Server:
    """A PostgreSQL server of our own on a Unix socket."""

    def __init__(self, programs):
        self._programs = programs
        self.folder = Path(
            tempfile.mkdtemp(prefix="hushfit-pg-", dir="/tmp")
        )  # a socket needs a short path
        self._as_owner = []
        if os.getuid() == 0:  # PostgreSQL refuses to run as root
            shutil.chown(self.folder, "postgres")
            self._as_owner = ["runuser", "-u", "postgres", "--"]
        self.folder.chmod(0o755)
        self._call("initdb", "-A", "trust", "-U", "hush")
        self.start()

    def start(self):
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off"
        self._call("pg_ctl", "-w", "-l", self.folder / "log", "-o", options, "start")

    def stop(self):
        """As in a crash: nothing is finished, everything is recovered from the log at the next
        start."""
        self._call("pg_ctl", "-m", "immediate", "stop")

    def remove(self):
        subprocess.run(
            self._line("pg_ctl", "-m", "immediate", "stop"), capture_output=True, check=False
        )
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, role="hush", database="postgres", host=None):
        return f"postgresql://{role}@/{database}?host={host or self.folder}"

    def sql(self, *statements, role="hush", database="postgres"):
        """Run statements, each by itself; returns the rows of the last one."""
        import psycopg

        place = f"host={self.folder} user={role} dbname={database}"
        with psycopg.connect(place, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def _line(self, program, *arguments):
        return [*self._as_owner, self._programs / program, "-D", self.folder / "data", *arguments]

    def _call(self, program, *arguments):
        subprocess.run(self._line(program, *arguments), check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed (hushfit[teams])")
    pytest.importorskip("psycopg", reason="psycopg is not installed (hushfit[teams])")
    programs = find_server()
    if programs is None:
        pytest.skip("no PostgreSQL server programs are installed")
    made = Server(programs)
    try:
        yield made
    finally:
        made.remove()


@contextmanager
def forked(work):
    """A child of this process that does some work and tells lines; yields its id and a way to hear
    it out."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            work(lambda line: os.write(writing, f"{line}\n".encode()))
            code = 0
        finally:
            os._exit(code)
    os.close(writing)

    def heard():
        with os.fdopen(os.dup(reading)) as lines:
            return lines.read().splitlines()

    heard.pipe = reading
    try:
        yield child, heard
    finally:
        os.close(reading)
        os.waitpid(child, 0)


def charge_for_ever(location, dataset):
    def work(tell):
        ledger = Ledger(location, dataset=dataset)
        tell("ready")
        while True:
            tell(pay(ledger, 0.001).number)

    return work


def killed_while_paying(location, dataset, kills, seed=0, meanwhile=None):
    """Kill processes that pay, each at a random moment; returns how many payments were acknowledged
    and recorded.

    Whoever has been told a receipt number can rely on it, however the process ended.
    """
    generator, acknowledged = random.Random(seed), 0
    started = time.perf_counter()
    acknowledged += pay(Ledger(location, dataset=dataset), 0.001).number
    usual = time.perf_counter() - started  # so that kills hit payments on a slow machine too
    for k in range(kills):
        with forked(charge_for_ever(location, dataset)) as (child, heard):
            select.select([heard.pipe], [], [])
            time.sleep(generator.uniform(0.0, 3 * usual))
            if meanwhile is not None:
                meanwhile(k)
            os.kill(child, signal.SIGKILL)
            told = [int(line) for line in heard()[1:]]
        recorded = [entry.number for entry in Ledger(location, dataset=dataset).entries]
        assert recorded == list(range(1, len(recorded) + 1))
        assert set(told) <= set(recorded)
        acknowledged += len(told)
    assert verify_ledger(location)[dataset] == []
    return acknowledged, len(recorded)
