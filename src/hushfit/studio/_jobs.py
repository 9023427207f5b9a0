"""Fits, one after the other, each a command line in a process of its own.

A job is a file before it is anything else: its name is the key that the form was given, so a form
that is sent twice is one job. What became of a job whose server was killed is told by its outputs
and by the ledger, whose entries hold the command.

One studio at a time runs the fits of a folder. It holds a lock, which its fits inherit: a fit that
outlives its server still counts as running, and no page says that nothing was spent.
"""

import contextlib
import fcntl
import json
import os
import queue
import re
import resource
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from hushfit._write import write_whole
from hushfit.cli import NEEDS_APPROVAL
from hushfit.errors import HushfitError, InvalidArgument
from hushfit.privacy import Ledger
from hushfit.privacy.ledger import TOKEN_VARIABLE
from hushfit.studio._settings import Settings

QUEUED, RUNNING, DONE, REFUSED, STOPPED = "queued", "running", "done", "refused", "stopped"
WAITING = "waiting"
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
    state : {"queued", "running", "done", "refused", "waiting", "stopped"}
        Waiting for the approval of a second person; everything else is what the word says.
    step : int
        How many commands have ended.
    message : str
        What the last command said, if it failed.
    choice : mapping of str to str
        Fields of the form, to review the same fit again.
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
    choice: Mapping[str, str] = field(default_factory=dict)

    @property
    def short(self) -> str:
        """Its name with the beginning of its key."""
        return f"{self.model.partition(self.key)[0]}{self.key[:8]}…"

    @property
    def ended(self) -> bool:
        """Whether nothing more happens."""
        return self.state not in (QUEUED, RUNNING)


class Jobs:
    """The queue of a studio: one process at a time.

    A studio that is only looked at runs nothing and writes nothing.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._folder = settings.folder / ".studio" / "jobs"
        self._waiting: queue.Queue[tuple[str, str | None] | None] = queue.Queue()
        self._lock = threading.Lock()
        if settings.read_only:
            return
        self._held = _lock_of(self._folder.parent)
        for job in self.all():
            if not job.ended:
                self._write(replace(job, state=STOPPED))
        self._worker = threading.Thread(target=self._work, daemon=True)
        self._worker.start()

    def all(self) -> list[Job]:
        """Every job, the newest first; none for somebody who may not see them."""
        if not os.access(self._folder, os.R_OK | os.X_OK):
            return []
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
            with contextlib.suppress(HushfitError, OSError):  # a full disk does not end the queue
                self._run(self.get(key), token)

    def _run(self, job: Job, token: str | None) -> None:
        job = replace(job, state=RUNNING)
        self._write(job)
        for number, step in enumerate(job.steps):
            code, output = run_hushfit(step, self._settings, token, self._held)
            if code != 0:
                waits = kind_in(output) == NEEDS_APPROVAL
                state = WAITING if waits else REFUSED
                self._write(replace(job, state=state, message=message_in(output)))
                return
            job = replace(job, step=number + 1)
            self._write(job)
        self._write(replace(job, state=DONE))


def now() -> str:
    """Current time, for the order of jobs."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _lock_of(folder: Path) -> int:
    """The lock of a folder's fits, held until this process and those that it started have ended."""
    try:
        (folder / "jobs").mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InvalidArgument(
            f"{folder} cannot be used ({error.strerror}). Start the studio as its owner, in "
            "another --folder, or with --read-only."
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise InvalidArgument(
            f"a studio, or a fit that one has started, is still running in {folder.parent}. Use "
            "it, or end it first. To look, start this one with --read-only."
        ) from None
    return handle


def run_hushfit(
    arguments: Sequence[str],
    settings: Settings,
    token: str | None = None,
    held: int | None = None,
    most_memory: int | None = None,
) -> tuple[int, str]:
    """Run one command line with ``--json``; its exit code and what it printed.

    Parameters
    ----------
    arguments : sequence of str
    settings : Settings
        Where it runs.
    token : str, optional
        Of the person who pays.
    held : int, optional
        Lock that it inherits.
    most_memory : int, optional
        Bytes after which it is refused more.

    Returns
    -------
    code : int
    output : str
    """
    own = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
    shown = {} if token is None else {TOKEN_VARIABLE: token}
    with subprocess.Popen(
        [sys.executable, "-m", "hushfit", *arguments, "--json"],
        cwd=settings.folder,
        env={**own, **settings.environment, **shown},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        pass_fds=() if held is None else (held,),
    ) as process:
        if most_memory is not None and sys.platform == "linux":
            # It has not even started Python yet. Files that are mapped do not count.
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (most_memory, most_memory))
        output, _ = process.communicate()
    return process.returncode, output


def kind_in(output: str) -> str:
    """The kind of error with which a command ended."""
    return _error_in(output).get("kind", "")


def message_in(output: str) -> str:
    """The sentence in which a command said why it failed."""
    return _error_in(output).get("message") or (
        "The command ended without a message; it may have been killed, or be out of memory."
    )


def _error_in(output: str) -> dict[str, str]:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return {name: str(value) for name, value in json.loads(output)["error"].items()}
    return {}
