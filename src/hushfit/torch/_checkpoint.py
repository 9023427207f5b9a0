"""Checkpoints of networks: an interrupted fit goes on where it stopped, on the same payment.

A file holds the state of the solver, which is a function of released answers and so public, and the
number of steps *claimed*: those that may have been drawn. Steps are claimed on disk before they are
drawn. A run that was killed goes on after the last claimed step: a step whose answer was lost is
not drawn again, and what the payment covers is never exceeded. Nobody sees an answer before the
file has it.

The first file is written before the payment, with a random token that becomes part of the payment's
label. A run that was killed between its payment and its first step finds the payment by it.
"""

import fcntl
import hashlib
import io
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.torch.solvers import State

_FORMAT = "hushfit-network-checkpoint-2"
# Steps claimed, and at most lost, at a time.
CLAIMED_AT_ONCE = 10


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Contents of a checkpoint.

    Parameters
    ----------
    fit : str
        Fingerprint of everything public that the fit depends on.
    token : str
        Names this run, and no other, in the label of its payment.
    payment : int or None
        Number of the receipt; None if there was no ledger, or nothing has been claimed yet.
    claimed : int
        Steps that have been drawn, or may have been.
    state : State
        After the last step that was stored.
    """

    fit: str
    token: str
    payment: int | None
    claimed: int
    state: State

    @classmethod
    def before_payment(cls, fit: str, weights: Vector) -> "Checkpoint":
        """The first checkpoint of a run."""
        return cls(fit, secrets.token_hex(8), None, 0, State(0, weights))

    def paid_as(self, label: str) -> str:
        """Label of the payment of this run."""
        return f"{label} (checkpoint {self.token})"

    def claiming(self, state: State, steps: int) -> "Checkpoint":
        """The same after more steps, with those that come next claimed, of ``steps`` in all."""
        return replace(self, claimed=min(state.step + CLAIMED_AT_ONCE, steps), state=state)

    def save(self, path: Path) -> None:
        """Replace the file as a whole, and wait until it is on disk."""
        head = {
            "format": _FORMAT,
            "fit": self.fit,
            "token": self.token,
            "payment": self.payment,
            "claimed": self.claimed,
            "step": self.state.step,
        }
        content = io.BytesIO()
        arrays: dict[str, Any] = {
            f"memory/{name}": values for name, values in self.state.memory.items()
        }
        np.savez(content, head=np.array(json.dumps(head)), w=self.state.w, **arrays)
        scratch = path.with_name(path.name + ".partial")
        with open(scratch, "wb") as file:
            file.write(content.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)

    @classmethod
    def load(cls, path: Path, fit: str) -> "Checkpoint":
        """Read a checkpoint of the same fit; refuses any other."""
        try:
            with np.load(path, allow_pickle=False) as stored:
                head: dict[str, Any] = json.loads(str(stored["head"]))
                memory = {
                    name.removeprefix("memory/"): stored[name]
                    for name in stored.files
                    if name.startswith("memory/")
                }
                state = State(int(head["step"]), stored["w"], memory)
                fit_and_token = str(head["fit"]), str(head["token"])
                found = cls(*fit_and_token, head["payment"], int(head["claimed"]), state)
            right = head["format"] == _FORMAT and found.claimed >= state.step >= 0
        except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
            raise InvalidArgument(
                f"{path} is not a checkpoint of a network ({type(error).__name__}). Delete it to "
                "start, and pay, again."
            ) from None
        if not right or found.fit != fit:
            raise InvalidArgument(
                f"{path} belongs to another fit: settings, module, number of records or budget "
                "differ. Nothing was charged. Use the settings of that fit, or another path."
            )
        return found


def checkpoint_path(checkpoint: Any) -> Path | None:
    """Where a checkpoint is; refuses what is no path of a file, before anything is paid."""
    if checkpoint is None:
        return None
    path = Path(checkpoint) if isinstance(checkpoint, str | os.PathLike) else None
    if path is None or not path.name or path.is_dir():
        raise InvalidArgument(
            f"checkpoint={checkpoint!r} is not the path of a file. Nothing was charged. Give one, "
            "such as 'run.npz'."
        )
    return path


def fingerprint(**public: Any) -> str:
    """A hash of public values that a fit depends on; arrays by their bytes."""
    digest = hashlib.sha256()
    for name, value in sorted(public.items()):
        raw = value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
        digest.update(name.encode() + b"\0" + hashlib.sha256(raw).digest())
    return digest.hexdigest()


@contextmanager
def only_user_of(path: Path) -> Iterator[None]:
    """Refuse a second process on the same checkpoint: both would draw the same steps."""
    try:
        handle = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InvalidArgument(
            f"The checkpoint {path} cannot be written ({error.strerror}). Nothing was charged. "
            "Choose another path."
        ) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidArgument(
                f"Another process is fitting with the checkpoint {path}. Wait for it, or use "
                "another path."
            ) from None
        yield
    finally:
        os.close(handle)


def made_of(counts: Mapping[str, int], claimed: int, steps: int) -> dict[str, int]:
    """Releases that so many claimed steps may have made, of the counts of a plan."""
    return {name: min(count, -(-count * claimed // steps)) for name, count in counts.items()}
