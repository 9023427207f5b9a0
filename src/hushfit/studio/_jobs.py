"""Fits, one after the other, each a command line in a process of its own.

A job is a file before it is anything else: its name is the key that the form was given, so a form
that is sent twice is one job. What became of a job whose server was killed is told by its outputs
and by the ledger, whose entries hold the command.
"""

import contextlib
import json
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from hushfit._write import write_whole
from hushfit.errors import HushfitError, InvalidArgument
from hushfit.privacy import Ledger
from hushfit.privacy.ledger import TOKEN_VARIABLE
from hushfit.studio._settings import Settings

QUEUED, RUNNING, DONE, REFUSED, STOPPED = "queued", "running", "done", "refused", "stopped"
_KEY: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Job:
    """A fit that was confirmed.

    Parameters
    ----------
    key : str
        Key of the form that confirmed it.
    person : str
        Who confirmed it.
    dataset : str
        Account that pays.
    model : str
        Name of the model file.
    steps : tuple of tuple of str
        Arguments of ``hushfit``, one command after the other.
    at : str
        When it was confirmed.
    state : {"queued", "running", "done", "refused", "stopped"}
    step : int
        How many commands have ended.
    message : str
        What the last command said, if it failed.
    """

    key: str
    person: str
    dataset: str
    model: str
    steps: tuple[tuple[str, ...], ...]
    at: str
    state: str = QUEUED
    step: int = 0
    message: str = ""

    @property
    def ended(self) -> bool:
        """Whether nothing more happens."""
        return self.state in (DONE, REFUSED, STOPPED)


class Jobs:
    """The queue of a studio: one process at a time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._folder = settings.folder / ".studio" / "jobs"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.parent.chmod(0o700)
        self._waiting: queue.Queue[tuple[str, str | None] | None] = queue.Queue()
        self._lock = threading.Lock()
        for job in self.all():
            if not job.ended:
                self._write(replace(job, state=STOPPED))
        self._worker = threading.Thread(target=self._work, daemon=True)
        self._worker.start()

    def all(self) -> list[Job]:
        """Every job, the newest first."""
        found = [self._read(path) for path in self._folder.glob("*.json")]
        return sorted(found, key=lambda job: job.at, reverse=True)

    def get(self, key: str) -> Job:
        """The job of a key."""
        path = self._path(key)
        if not path.is_file():
            raise InvalidArgument(f"there is no fit {key!r}. Look at the list of fits.")
        return self._read(path)

    def has(self, key: str) -> bool:
        """Whether a form with this key was confirmed."""
        return self._path(key).is_file()

    def add(self, job: Job, token: str | None = None) -> Job:
        """Put a job into the queue; one that is there already is left as it is."""
        path = self._path(job.key)
        with self._lock:
            if path.exists():
                return self._read(path)
            self._write(job)
        self._waiting.put((job.key, token))
        return job

    def ahead(self, job: Job) -> int:
        """How many jobs will run before this one ends."""
        return sum(not other.ended and other.at < job.at for other in self.all())

    def close(self) -> None:
        """Let the running job end by itself, and start no other."""
        self._waiting.put(None)

    def payment(self, job: Job) -> int | None:
        """Number of the payment of a job, if the ledger has one."""
        try:
            account = Ledger(self._settings.ledger_path(), dataset=job.dataset).team.account
        except HushfitError:
            return None
        charges = (entry.body for entry in account.history() if entry.kind == "charge")
        return next((int(b["receipt"]) for b in charges if job.key in str(b["command"])), None)

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise InvalidArgument(f"{key!r} is not the key of a fit. Go back and review it again.")
        return self._folder / f"{key}.json"

    def _read(self, path: Path) -> Job:
        stored = json.loads(path.read_text(encoding="utf-8"))
        return Job(**{**stored, "steps": tuple(map(tuple, stored["steps"]))})

    def _write(self, job: Job) -> None:
        write_whole(self._path(job.key), json.dumps(asdict(job), indent=1))

    def _work(self) -> None:
        for key, token in iter(self._waiting.get, None):
            self._run(self.get(key), token)

    def _run(self, job: Job, token: str | None) -> None:
        job = replace(job, state=RUNNING)
        self._write(job)
        for number, step in enumerate(job.steps):
            code, output = run_hushfit(step, self._settings.folder, token)
            if code != 0:
                self._write(replace(job, state=REFUSED, message=message_in(output)))
                return
            job = replace(job, step=number + 1)
            self._write(job)
        self._write(replace(job, state=DONE))


def now() -> str:
    """Current time, for the order of jobs."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def run_hushfit(
    arguments: Sequence[str], folder: Path, token: str | None = None
) -> tuple[int, str]:
    """Run one command line with ``--json``; its exit code and what it printed."""
    own = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
    done = subprocess.run(
        [sys.executable, "-m", "hushfit", *arguments, "--json"],
        cwd=folder,
        env=own if token is None else {**own, TOKEN_VARIABLE: token},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def message_in(output: str) -> str:
    """The sentence in which a command said why it failed."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return str(json.loads(output)["error"]["message"])
    return "The command ended without a message; it may have been killed, or be out of memory."
