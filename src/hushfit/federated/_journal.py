"""An owner's journal of a run on its own disk, so that a run resumes after a crash and no noise is
drawn twice.

A journal holds releases and received messages. Both are public, so the file holds nothing private.
A release is on disk before it is used: if the rest of its turn fails, whoever sees the failure has
learnt something about it, and a second draw would reveal more. A message is on disk before it is
sent. Replaying the journal gives the same messages. Proof: docs/proofs/federated.md.
"""

import base64
import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.release import Released

_FORMAT = "hushfit-journal-3"


@dataclass(frozen=True, eq=False)
class Turn:
    """One round of one owner: messages received before it, releases in it, and the message sent."""

    received: Mapping[str, Vector]
    released: tuple[Released, ...]
    sent: Vector | None


@dataclass(frozen=True)
class Standing:
    """Position of a journal in its run.

    Parameters
    ----------
    turns : int
        Rounds that its owner has answered.
    last_received : mapping from name to int
        The last round of which a neighbour's message is in the journal.
    """

    turns: int = 0
    last_received: Mapping[str, int] = field(default_factory=dict)

    def last_received_from(self, name: str) -> int:
        """The last round in which a message of a neighbour was received; -1 if none."""
        return self.last_received.get(name, -1)


@dataclass(eq=False)
class Journal:
    """The turns of a run, in memory and, with a path, in an append-only file.

    While it is open no other process can open it: two of them would draw different noise for the
    same query. It also records the state of its owner's payment: an owner that has paid, but whose
    journal has no record of it, must have lost the journal of what it sent.
    """

    run: str
    path: Path | None = None
    turns: list[Turn] = field(default_factory=list)
    pending: list[Released] = field(default_factory=list)
    token: str | None = None
    receipt: int | None = None
    lock: IO[bytes] | None = field(default=None, repr=False)

    @classmethod
    def open(
        cls, run: str, folder: str | os.PathLike[str] | None, terms: Mapping[str, Any]
    ) -> "Journal":
        """The journal of a run on given terms: a file in the folder, read if it exists; in memory
        without a folder.
        """
        if folder is None:
            return cls(run)
        path = _path(run, folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _locked(path.with_suffix(".lock"), run)
        try:
            lines = list(_lines(path)) if path.exists() else []
            header = {"format": _FORMAT, "run": run, "terms": terms}
            if not lines:
                _append(path, header)
            elif {name: lines[0].get(name) for name in ("format", "run")} != {
                "format": _FORMAT,
                "run": run,
            }:
                raise InvalidArgument(
                    f"{path.name} is not the journal of run {run}. Move it away, and start a new "
                    "run."
                )
            elif lines[0] != header:
                raise InvalidArgument(
                    f"Run {run} was started with other settings or another budget. Start a run "
                    "with a new name."
                )
            journal = cls(run, path, lock=lock)
            for line in lines[1:]:
                journal._read_line(line)
        except (KeyError, TypeError, AttributeError) as error:
            lock.close()
            raise _edited(path) from error
        except BaseException:
            lock.close()
            raise
        return journal

    def _read_line(self, line: Mapping[str, Any]) -> None:
        if "paying" in line:
            self.token = line["paying"]
        elif "receipt" in line:
            self.receipt = line["receipt"]
        elif "release" in line:
            name, answer = line["release"]
            self.pending.append(Released(name, unpacked(answer)))
        else:
            self._close_turn(*_turn(line))

    def _close_turn(self, received: Mapping[str, Vector], sent: Vector | None) -> Turn:
        self.turns.append(Turn(received, tuple(self.pending), sent))
        self.pending.clear()
        return self.turns[-1]

    @property
    def standing(self) -> Standing:
        """Its position."""
        return _standing([turn.received for turn in self.turns])

    @property
    def releases(self) -> list[Released]:
        """All releases, those of the unfinished turn included."""
        return [released for turn in self.turns for released in turn.released] + self.pending

    def note_paying(self) -> str:
        """Record that a payment is about to be made; nothing has been released yet. The token
        distinguishes it from the payment of any other journal.
        """
        token = secrets.token_hex(8)
        self._write({"paying": token})
        self.token = token
        return token

    def note_receipt(self, number: int) -> None:
        """Record that the payment was made; turns may follow."""
        self._write({"receipt": number})
        self.receipt = number

    def close(self) -> None:
        """Let another process open it."""
        if self.lock is not None:
            self.lock.close()

    def note_release(self, released: Released) -> None:
        """Record a release of the current turn; it is on disk before this returns."""
        self._write({"release": [released.name, packed(released.answer)]})
        self.pending.append(released)

    def note_turn(self, received: Mapping[str, Vector], sent: Vector | None) -> None:
        """Record the messages of the turn whose releases were recorded; on disk before this
        returns.
        """
        messages = {name: packed(vector) for name, vector in received.items()}
        self._write({"heard": messages, "said": None if sent is None else packed(sent)})
        self._close_turn(received, sent)

    def _write(self, line: Mapping[str, Any]) -> None:
        if self.path is not None:
            _append(self.path, line)


def standing_on_disk(run: str, folder: str | os.PathLike[str]) -> Standing:
    """Position of the journal of a run in a folder, whether or not a process has it open; nothing
    is written.
    """
    path = _path(run, folder)
    lines = list(_parsed(path, _whole(path.read_bytes()))) if path.exists() else []
    return _standing([line["heard"] for line in lines if "heard" in line])


def _path(run: str, folder: str | os.PathLike[str]) -> Path:
    return Path(folder) / f"{run}.journal"


def _standing(received: Sequence[Mapping[str, Any]]) -> Standing:
    # What was received before a turn was sent in the round before it.
    last = {name: place - 1 for place, inbox in enumerate(received) for name in inbox}
    return Standing(len(received), last)


def _locked(path: Path, run: str) -> IO[bytes]:
    """A file locked by this process until it closes it or ends."""
    file = path.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise InvalidArgument(
            f"Another process on this machine has the journal of run {run} open: the owner is "
            "running already. Stop it first."
        ) from None
    return file


def _append(path: Path, line: Mapping[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Complete lines only: a last line that a crash cut short was never used, and is removed."""
    content = path.read_bytes()
    whole = _whole(content)
    if len(whole) < len(content):
        with path.open("r+b") as file:
            file.truncate(len(whole))
            os.fsync(file.fileno())
    yield from _parsed(path, whole)


def _whole(content: bytes) -> bytes:
    return content[: content.rfind(b"\n") + 1]


def _parsed(path: Path, lines: bytes) -> Iterator[dict[str, Any]]:
    try:
        for line in lines.splitlines():
            parsed = json.loads(line)
            if not isinstance(parsed, dict):
                raise ValueError
            yield parsed
    except (ValueError, RecursionError):
        raise _edited(path) from None


def _edited(path: Path) -> InvalidArgument:
    return InvalidArgument(
        f"{path.name} has a line that no owner has written: it was edited. Start a new run."
    )


def _turn(line: Mapping[str, Any]) -> tuple[dict[str, Vector], Vector | None]:
    received = {name: unpacked(text) for name, text in line["heard"].items()}
    return received, None if line["said"] is None else unpacked(line["said"])


def digest_of(releases: Sequence[Released]) -> str:
    """SHA-256 of releases, in their order."""
    lines = [[released.name, packed(released.answer)] for released in releases]
    return hashlib.sha256(json.dumps(lines).encode()).hexdigest()


def packed(vector: Vector) -> str:
    """A vector as text, bit for bit."""
    return base64.b64encode(np.ascontiguousarray(vector, dtype="<f8").tobytes()).decode("ascii")


def unpacked(text: str) -> Vector:
    """The inverse of `packed`."""
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f8").astype(np.float64)
