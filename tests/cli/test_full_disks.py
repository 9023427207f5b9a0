"""Disks that are full, or cannot be written, before and after a fit was paid for: no model is lost,
and rows are written nowhere else.
"""

import os
import shutil
import subprocess
import sys

import pytest
from conftest_cli import FIT

from hushfit import Ledger, _write, load_model
from hushfit.cli import _files
from hushfit.data.tables import _files as tables
from hushfit.privacy.ledger._disk_ledger import DiskAccount

ACCOUNT = ("--ledger", "books/ledger.db", "--dataset", "people")


@pytest.fixture
def account(hushfit, folder):
    """A ledger in a separate folder, and another folder for models."""
    (folder / "books").mkdir()
    (folder / "out").mkdir()
    return Ledger.create(folder / "books" / "ledger.db", "people", 5.0, 1e-5)


def full(*given, **more):
    raise OSError(28, "No space left on device")


def test_a_fit_that_could_not_be_saved_is_not_paid_for(hushfit, account, monkeypatch):
    monkeypatch.setattr(_files.os, "urandom", full)  # reserving space fails
    result = hushfit(*FIT, *ACCOUNT, "-o", "out/model.json")
    assert result.code == 2
    assert "No space left on device" in result.err
    monkeypatch.undo()
    assert account.entries == ()


def test_room_for_the_model_is_kept_while_it_is_fitted(hushfit, account, folder, monkeypatch):
    sizes, honest = [], os.urandom

    def counted(size):
        sizes.append(size)
        return honest(size)

    monkeypatch.setattr(_files.os, "urandom", counted)
    assert hushfit(*FIT, *ACCOUNT, "-o", "out/model.json").code == 0
    assert max(sizes) >= os.path.getsize(folder / "out" / "model.json")


def test_a_model_whose_place_fills_up_after_payment_is_kept_beside_the_ledger(
    hushfit, account, folder, monkeypatch
):
    honest = _write.tempfile.mkstemp

    def mkstemp(*, dir, prefix, suffix):
        return (
            full()
            if os.path.basename(dir) == "out"
            else honest(dir=dir, prefix=prefix, suffix=suffix)
        )

    monkeypatch.setattr(_write.tempfile, "mkstemp", mkstemp)
    result = hushfit(*FIT, *ACCOUNT, "-o", "out/model.json")
    assert result.code == 2
    assert "No space left on device" in result.err
    (kept,) = (folder / "books").glob("model.json.*.rescued")
    assert f"saved as books/{kept.name}" in result.err
    assert load_model(kept).receipt.number == 1
    monkeypatch.undo()
    assert hushfit("ledger", "verify", folder / "books" / "ledger.db", "--model", kept).code == 0


def test_a_model_that_cannot_be_recorded_is_kept_too(hushfit, account, folder, monkeypatch):
    from hushfit.errors import LedgerError

    def record_model(self, receipt, digest):
        raise LedgerError("the disk is full.")

    monkeypatch.setattr(DiskAccount, "record_model", record_model)
    result = hushfit(*FIT, *ACCOUNT, "-o", "out/model.json")
    assert result.code == 4
    (kept,) = (folder / "out").iterdir()
    assert kept.name in result.err
    assert load_model(kept).receipt.number == 1


def test_if_no_place_takes_the_model_that_is_said(hushfit, account, folder, monkeypatch):
    monkeypatch.setattr(_write.tempfile, "mkstemp", full)
    result = hushfit(*FIT, *ACCOUNT, "-o", "out/model.json")
    assert result.code == 2
    assert "the model is lost; its payment stays" in result.err
    monkeypatch.undo()
    assert len(account.entries) == 1


# A separate disk for the output, smaller than a model; then a fit that writes to it.
SMALL_DISK = 'set -e; mount -t tmpfs -o size=40k tmpfs out; exec "$@"'
RUN = "import sys; from hushfit.cli import run; sys.exit(run(sys.argv[1:]))"


def test_a_full_disk_is_refused_before_payment(account, folder):
    line = ["unshare", "-m" if os.getuid() == 0 else "-rm"]
    allowed = (
        shutil.which("unshare")
        and subprocess.run([*line, "mount", "-t", "tmpfs", "tmpfs", "out"], check=False).returncode
        == 0
    )
    if not allowed:
        pytest.skip(
            "this system does not allow mount namespaces; the same is tested above without one"
        )
    fit = [sys.executable, "-c", RUN, *map(str, FIT), *ACCOUNT, "-o", "out/model.json"]
    done = subprocess.run(
        [*line, "sh", "-c", SMALL_DISK, "sh", *fit], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert account.entries == ()


@pytest.mark.parametrize("variable", ["TMPDIR", "TEMP", "TMP"])
@pytest.mark.parametrize("place", ["nowhere", "train.csv"])
def test_rows_go_nowhere_else_if_the_scratch_folder_cannot_be_used(
    hushfit, account, folder, monkeypatch, variable, place
):
    """Python alone would silently use another folder, perhaps on a disk that is not encrypted."""
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(folder / place))
    result = hushfit(*FIT, *ACCOUNT, "-o", "out/model.json")
    assert result.code == 2
    assert str(folder / place) in result.err
    assert "Set TMPDIR" in result.err
    assert account.entries == ()


def test_rows_go_where_the_scratch_folder_is(hushfit, account, folder, monkeypatch):
    used, honest = [], tables.tempfile.TemporaryFile

    def watched(*given, dir=None, **more):
        used.append(dir)
        return honest(*given, dir=dir, **more)

    (folder / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(folder / "scratch"))
    monkeypatch.setattr(tables.tempfile, "TemporaryFile", watched)
    assert hushfit(*FIT, *ACCOUNT, "-o", "out/model.json").code == 0
    assert str(folder / "scratch") in used
