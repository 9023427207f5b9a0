"""Memory that does not suffice, before and after a fit was paid for: what can be known before costs
nothing, and no message has a number of rows.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest_cli import FIT

from hushfit import Ledger
from hushfit.data.rows import PackedBlock
from hushfit.data.tables import CodedRows, _encoded_rows, _text_blocks
from hushfit.kernels.threads import parallel_map

ACCOUNT = ("--ledger", "l.db", "--dataset", "d", "-o", "m.json")


@pytest.fixture
def account(hushfit, folder):
    return Ledger.create(folder / "l.db", "d", 5.0, 1e-4)


def full(*given, **more):
    raise MemoryError("Unable to allocate an array with shape (4711, 3)")


def full_but_returned(*given, **more):
    raise SystemError("a result with an exception set (4711, 3)") from MemoryError()


def broken(*given, **more):
    raise SystemError("bad argument to an internal function (4711, 3)")


# Where memory ends: what is replaced, exit code and words of the message.
BEFORE = {
    "reading": (_text_blocks.pa.csv, "read_csv", full, 2, "memory does not suffice"),
    "packing": (CodedRows, "_settle", full, 1, "Nothing was spent"),
    "a library": (CodedRows, "_settle", full_but_returned, 1, "Nothing was spent"),
    "fitting": (_encoded_rows, "_FIT_BYTES", 1 << 60, 1, "Nothing was spent"),
}


@pytest.mark.parametrize("place", BEFORE)
def test_what_is_known_before_payment_costs_nothing(hushfit, account, monkeypatch, place):
    owner, name, value, code, words = BEFORE[place]
    monkeypatch.setattr(owner, name, value)
    result = hushfit(*FIT, *ACCOUNT)
    assert result.code == code
    assert words in result.err
    assert "HUSHFIT_THREADS=1" in result.err
    assert "4711" not in result.err
    assert account.entries == ()
    assert not os.path.exists("m.json")


def test_another_error_of_a_library_is_no_lack_of_memory(hushfit, account, monkeypatch):
    monkeypatch.setattr(CodedRows, "_settle", broken)
    result = hushfit(*FIT, *ACCOUNT)
    assert result.code == 1
    assert "Unexpected SystemError" in result.err
    assert "memory" not in result.err
    assert "4711" not in result.err
    assert account.entries == ()


def test_a_fit_that_runs_out_of_memory_has_one_charge_and_tells_nothing(
    hushfit, account, monkeypatch
):
    monkeypatch.setattr(PackedBlock, "gradient_sum", full)
    result = hushfit(*FIT, *ACCOUNT, "--json")
    assert (result.code, result.json["error"]["kind"]) == (1, "out of memory")
    message = result.json["error"]["message"]
    assert "What was paid for is spent" in message
    assert "4711" not in message
    assert len(account.entries) == 1
    assert not os.path.exists("m.json")


def test_a_thread_that_cannot_start_is_a_lack_of_memory(monkeypatch):
    def stopped(*given):
        raise RuntimeError("can't start new thread")

    monkeypatch.setenv("HUSHFIT_THREADS", "2")
    monkeypatch.setattr(ThreadPoolExecutor, "submit", stopped)
    with pytest.raises(MemoryError):
        list(parallel_map(abs, [1, 2, 3]))


LIMITED = """
import resource
from hushfit.data.tables import CodedRows, find_tables
from hushfit.data.schema import read_schema
from hushfit.errors import OutOfMemory
import hushfit.data.tables._encoded_rows as encoded
schema = read_schema("schema.toml").schema
CodedRows.from_tables(find_tables(["train.csv"]), schema).close()
used = next(int(x.split()[1]) << 10 for x in open("/proc/self/status") if x.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (used + encoded._FIT_BYTES // 2,) * 2)
try:
    CodedRows.from_tables(find_tables(["train.csv"]), schema)
except OutOfMemory as error:
    print(error)
"""


def test_a_limit_is_seen(hushfit, folder):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], cwd=folder, capture_output=True, text=True, check=True
    )
    assert "Nothing was spent" in done.stdout
