"""Audits of a ledger on disk: attacks by someone who can mount, copy, rewrite and fork, but has no
key."""

import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from hushfit.audit.checks._noise import Finding
from hushfit.errors import HushfitError
from hushfit.estimators import PrivateLogisticRegression
from hushfit.models import Model, PaidReceipt, model_problems, save_model
from hushfit.privacy import GaussianCost, Ledger, Receipt, Relation
from hushfit.privacy.ledger import KEY_VARIABLE, Anchor, DiskAccount, Mount, transaction, verify

_COST: Final = GaussianCost(16.0)
_DATASET: Final = "audit"


def check_disk_ledger() -> list[Finding]:
    """Check that a ledger on disk refuses second names and forked children, and detects forgeries.

    Returns
    -------
    list of Finding
    """
    attacks = (
        _second_name,
        _forked_payment,
        _rolled_back,
        _rewritten,
        _forged_model,
        _forged_guarantee,
        _above_the_ceiling,
        _ceiling_after_charges,
        _alone_above_the_limit,
    )
    found = []
    for attack in attacks:
        with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ):
            os.environ.pop(KEY_VARIABLE, None)
            found.append(attack(Path(folder)))
    return found


def _fresh(folder: Path) -> Ledger:
    return Ledger.create(folder / "ledger.db", _DATASET, 3.0, 1e-6)


def _account(ledger: Ledger) -> DiskAccount:
    account = ledger.account
    assert isinstance(account, DiskAccount)
    return account


def _charge(ledger: Ledger) -> Receipt:
    return ledger.charge(_COST, "charge", Relation.REPLACE_ONE)


def _second_name(folder: Path) -> Finding:
    """A container sees the file through its own mount: each name would have its own journal."""
    ledger = _fresh(folder)
    here = [Mount("/", "ext4"), Mount(str((folder / "ledger.db").resolve()), "ext4")]
    with patch("hushfit.privacy.ledger._sqlite.mounts", lambda: here):
        refused = _is_refused(lambda: _charge(ledger))
    return Finding("disk ledger: a file that is a mount point is refused", refused)


class _Watched:
    """A connection that reports which process uses it, and does nothing else."""

    def __init__(self, parent: int, line: int) -> None:
        self._parent, self._line = parent, line

    def execute(self, sql: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        self._report("execute")
        return []

    def begin(self) -> None:
        self._report("begin")

    def commit(self) -> None:
        self._report("commit")

    def rollback(self) -> None:
        self._report("rollback")

    def close(self) -> None:
        self._report("close")

    def _report(self, what: str) -> None:
        who = "parent" if os.getpid() == self._parent else "child"
        os.write(self._line, f"{who} {what}\n".encode())


def _forked_payment(folder: Path) -> Finding:
    """A process forks during a transaction, and both continue: the connection is the parent's."""
    process = os.getpid()
    reading, writing = os.pipe()

    def act() -> None:
        with transaction(lambda: _Watched(process, writing)) as execute:
            if child := _fork_without_warning():
                os.waitpid(child, 0)
            execute("INSERT", {})

    refused = _is_refused(act)
    if os.getpid() != process:
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as lines:
        calls = lines.read().splitlines()
    own = not refused and calls == [
        "parent begin",
        "parent execute",
        "parent commit",
        "parent close",
    ]
    return Finding("disk ledger: a forked child does not use the connection", own, ", ".join(calls))


def _fork_without_warning() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # other threads exist, but hold no lock that is needed here
        return os.fork()


def _rolled_back(folder: Path) -> Finding:
    """Someone restores yesterday's copy; a hash from today is known elsewhere."""
    ledger = _fresh(folder)
    _charge(ledger)
    shutil.copy(folder / "ledger.db", folder / "yesterday.db")
    receipt = _charge(ledger)
    today = Anchor(_account(ledger).hash_of(receipt), _DATASET, 2)
    before = verify(folder / "ledger.db", [today]).sentences()
    shutil.copy(folder / "yesterday.db", folder / "ledger.db")
    after = verify(folder / "ledger.db", [today]).sentences()
    return Finding(
        "disk ledger: an older copy is detected by a stored hash", not before and bool(after)
    )


def _rewritten(folder: Path) -> Finding:
    """Someone without the key rewrites all entries, with a larger budget and correct hashes."""
    (folder / "key").write_bytes(os.urandom(32))
    os.environ[KEY_VARIABLE] = str(folder / "key")
    _charge(_fresh(folder))
    before = verify(folder / "ledger.db").sentences()
    previous = "0" * 64
    with closing(sqlite3.connect(folder / "ledger.db", isolation_level=None)) as connection:
        for number, line in connection.execute(
            "SELECT number, body FROM hushfit_entries ORDER BY number"
        ).fetchall():
            body = json.loads(line)
            larger = json.dumps(
                body | ({"epsilon": 300.0} if number == 0 else {}),
                sort_keys=True,
                separators=(",", ":"),
            )
            previous = hashlib.sha256(f"{previous}\n{larger}".encode()).hexdigest()
            connection.execute(
                "UPDATE hushfit_entries SET body = ?, hash = ? WHERE number = ?",
                (larger, previous, number),
            )
            connection.execute(
                "UPDATE hushfit_seals SET seal = ? WHERE number = ?", (previous, number)
            )
    after = verify(folder / "ledger.db").sentences()
    return Finding(
        "disk ledger: entries written without the key are detected", not before and bool(after)
    )


def _forged_model(folder: Path) -> Finding:
    """Someone changes a coefficient, and the hash in the file with it."""
    _paid_model(folder)
    before = _model_problems(folder)
    _forge(folder, lambda contents: contents["coef"][0].__setitem__(0, 1e3))
    after = _model_problems(folder)
    return Finding("disk ledger: a changed model is detected", not before and bool(after))


def _forged_guarantee(folder: Path) -> Finding:
    """Someone with write access also records the changed model in the ledger; the paid cost
    stays."""
    ledger, receipt = _paid_model(folder)
    digest = _forge(folder, lambda contents: contents["guarantee"].update(epsilon=0.001))
    _account(ledger).record_model(receipt, digest)
    return Finding(
        "disk ledger: a guarantee that was not paid for is detected", bool(_model_problems(folder))
    )


def _paid_model(folder: Path) -> tuple[Ledger, Receipt]:
    ledger, X = _fresh(folder), np.eye(4)[np.arange(40) % 4]
    model = PrivateLogisticRegression(
        epsilon=1.0, delta=1e-6, classes=[0, 1], ledger=ledger, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, np.arange(40) % 2)
    (receipt,) = ledger.entries
    paid = PaidReceipt(_DATASET, receipt.number, _account(ledger).hash_of(receipt))
    _account(ledger).record_model(
        receipt, save_model(Model(model, receipt=paid), folder / "model.json")
    )
    return ledger, receipt


def _forge(folder: Path, edit: Callable[[dict[str, Any]], Any]) -> str:
    contents = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    del contents["hash"]
    edit(contents)
    canonical = json.dumps(contents, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    (folder / "model.json").write_text(json.dumps(contents | {"hash": digest}), encoding="utf-8")
    return digest


def _model_problems(folder: Path) -> list[str]:
    return model_problems(folder / "model.json", verify(folder / "ledger.db"))


def _above_the_ceiling(folder: Path) -> Finding:
    """An analyst with a ceiling asks for more, and one without a grant for anything."""
    ledger = _fresh(folder)
    ledger.team.grant(ledger.team.identity, 0.01)
    refused = _is_refused(lambda: _charge(ledger))
    ledger.team.transfer(ledger.team.identity, "somebody else")
    refused &= _is_refused(lambda: _charge(ledger))
    unspent = not ledger.entries
    title = "disk ledger: a charge above the ceiling of its payer is refused"
    return Finding(title, refused & unspent)


def _ceiling_after_charges(folder: Path) -> Finding:
    """A person pays, is granted hardly more than that, and pays again; then hands the grant over
    and has another one.
    """
    ledger = _fresh(folder)
    me = ledger.team.identity
    _charge(ledger)
    ceiling = 1.01 * ledger.spent().epsilon

    def pay_again() -> None:
        ledger.team.grant(me, ceiling)
        _charge(ledger)

    refused = _is_refused(pay_again)
    ledger.team.transfer(me, "somebody else")
    refused &= _is_refused(pay_again)
    title = "disk ledger: a ceiling counts all that its holder has paid"
    return Finding(title, refused & (len(ledger.entries) == 1))


def _alone_above_the_limit(folder: Path) -> Finding:
    """An administrator approves their own charge."""
    ledger = _fresh(folder)
    ledger.team.set_limit(0.01)
    refused = _is_refused(lambda: _charge(ledger))
    refused &= all(
        _is_refused(partial(ledger.team.approve, request.number))
        for request in ledger.team.requests
    )
    refused &= _is_refused(lambda: _charge(ledger))
    unspent = not ledger.entries
    return Finding("disk ledger: nobody approves their own charge", refused & unspent)


def _is_refused(act: Callable[[], object]) -> bool:
    try:
        act()
    except HushfitError:
        return True
    return False
