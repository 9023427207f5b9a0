"""Database transactions that only the process that began them commits or rolls back.

A connection must not be used on both sides of a fork: a child that rolls back or closes an
inherited connection would undo the parent's uncommitted payment. So a fork waits until no other
thread is in a transaction, and a child forked by the thread that is in one neither uses the
connection nor pays at all.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol, TypeAlias

from hushfit.errors import LedgerError

Execute: TypeAlias = Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]]

IN_DOUBT: Final = (
    "Nothing was released, but whether the entry was recorded is not known: check with `hushfit "
    "ledger history` before you try again"
)


class CommitFailed(Exception):
    """A commit was not confirmed: it may have succeeded or not. Its cause gives the reason."""


class Connection(Protocol):
    """Database connection that a transaction uses."""

    def execute(self, sql: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]: ...
    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...


class _Process:
    """Open connections of this process, and its fork lock."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.open: list[Connection] = []
        self.forked_inside = False

    def in_child(self) -> None:
        for connection in self.open:
            # Never garbage-collected, not even at exit: closing it would affect the parent's
            # transaction.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        self.forked_inside = self.forked_inside or bool(self.open)
        self.open = []
        self.lock.release()


_PROCESS: Final = _Process()
if sys.platform != "win32":  # which cannot fork
    os.register_at_fork(
        before=_PROCESS.lock.acquire,
        after_in_parent=_PROCESS.lock.release,
        after_in_child=_PROCESS.in_child,
    )


@contextmanager
def transaction(connect: Callable[[], Connection]) -> Iterator[Execute]:
    """Open a connection, begin, and commit at the end; any exception rolls everything back.

    Parameters
    ----------
    connect : callable
        Returns a `Connection`.

    Yields
    ------
    callable
        Runs a statement and returns its rows.
    """
    with _PROCESS.lock:
        if _PROCESS.forked_inside:
            raise _forked()
        process, connection = os.getpid(), connect()
        _PROCESS.open.append(connection)

        def execute(sql: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
            _refuse_in_child(process)
            return connection.execute(sql, values)

        try:
            connection.begin()
            yield execute
            _refuse_in_child(process)
            _commit(connection)
        except BaseException:
            if os.getpid() == process:
                with suppress(Exception):  # a connection that is gone has nothing left to undo
                    connection.rollback()
            raise
        finally:
            if os.getpid() == process:
                _PROCESS.open.remove(connection)
                connection.close()


def _refuse_in_child(process: int) -> None:
    if os.getpid() != process:
        raise _forked()


def _commit(connection: Connection) -> None:
    try:
        connection.commit()
    except Exception as error:
        raise CommitFailed from error


def _forked() -> LedgerError:
    return LedgerError(
        "this process was forked in the middle of its parent's payment, so it cannot use ledgers "
        "on disk. Nothing was spent or released here. Start processes before or after a payment, "
        "or spawn them."
    )
