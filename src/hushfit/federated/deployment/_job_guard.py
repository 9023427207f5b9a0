"""What a job of the engine may be at an owner, and who is let in: looked at as bytes, before the
engine parses anything.

The engine reads a job's settings in several formats, some of which take in environment variables,
files and web pages, and it searches whole folders for settings of its own. So a job is taken apart
here first: an archive with the files of a run and no others, whose settings are, word for word,
what `client_settings` writes around the description of a run.
"""

import io
import json
import time
import zipfile
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from hushfit.errors import HushfitError, InvalidArgument
from hushfit.federated.deployment._owner_side import Events
from hushfit.federated.deployment._run_spec import OwnerConfig, RunRefused, RunSpec, told_to_others

CLIENT_FILE, SERVER_FILE = "config/config_fed_client.json", "config/config_fed_server.json"
_SIGNED = (".__nvfl_sig.json", ".__nvfl_submitter.crt")
_SIGNATURES = (*_SIGNED, *(f"config/{name}" for name in _SIGNED))
_FOLDERS = ("config/",)
_ALLOWED = {CLIENT_FILE, SERVER_FILE, *_SIGNATURES, *_FOLDERS}
_MOST_ARCHIVE, _MOST_FILE = 1 << 22, 1 << 21
_HOUR = 3600.0


def client_settings(executor: str, spec: str) -> dict[str, Any]:
    """The one content that an owner accepts as a job's settings: its own class, and the
    description of a run.
    """
    built = {"path": executor, "args": {"spec": spec}}
    return {
        "format_version": 2,
        "executors": [{"tasks": ["*"], "executor": built}],
        "components": [],
    }


def spec_in(archive: Any, executor: str) -> str:
    """The packed run in a job's archive; anything but a job of a run is refused, and nothing of
    it is quoted.
    """
    if not isinstance(archive, bytes) or len(archive) > _MOST_ARCHIVE:
        raise InvalidArgument("the job is not an archive of at most 4 MB. It was refused.")
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            content = _read(opened)
        settings = json.loads(content.decode("ascii"))
        spec = settings["executors"][0]["executor"]["args"]["spec"]
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError):
        raise InvalidArgument("the job's archive cannot be read. It was refused.") from None
    except InvalidArgument:
        raise
    except (ValueError, LookupError, TypeError, RecursionError):
        raise InvalidArgument(
            "the job's settings are not those of a run. It was refused."
        ) from None
    if not isinstance(spec, str) or settings != client_settings(executor, spec):
        raise InvalidArgument(
            "the job's settings hold more than the class and the description of a run. It was "
            "refused."
        )
    return spec


def _read(archive: zipfile.ZipFile) -> bytes:
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if len(set(names)) < len(names) or not set(names) <= _ALLOWED or CLIENT_FILE not in names:
        raise InvalidArgument(
            "the job has other files than a run's two JSON files and their signatures. It was "
            "refused."
        )
    if any(entry.file_size > _MOST_FILE for entry in entries):
        raise InvalidArgument("the job has a file of more than 2 MB. It was refused.")
    return archive.read(CLIENT_FILE)


class Door:
    """Decides which jobs reach the engine of one owner.

    Parameters
    ----------
    owner_file : path
        The owner.toml; read again for every job, so that a run can be approved without a restart.
    executor : str
        The class that a job may name.
    signed : callable
        Whether the archive of a job carries the signature of the federation's conductor.
    clock : callable, default=time.monotonic
    """

    def __init__(
        self,
        owner_file: Path,
        executor: str,
        signed: Callable[[bytes], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._owner_file, self._executor, self._signed, self._clock = (
            owner_file,
            executor,
            signed,
            clock,
        )
        self._events = Events(OwnerConfig.load(owner_file).state)
        self._let_in: deque[float] = deque()
        self._waiting: set[str] = set()

    def admit(self, job: Any, archive: Any, meta: Any) -> str | None:
        """Let a job in, or say why not in words for the coordinator; the owner's events say
        more.
        """
        try:
            _check_labels(job, meta)
            spec = RunSpec.unpacked(spec_in(archive, self._executor))
            if not self._signed(archive):
                raise InvalidArgument(
                    "the job is not signed by the conductor of this federation. It was refused."
                )
            config = OwnerConfig.load(self._owner_file)
            config.consider(spec)
            self._count(config.most_jobs_per_hour)
        except (HushfitError, OSError) as error:
            self._events.note("job refused", why=str(error))
            return told_to_others(error)
        self._waiting.add(job)
        return None

    def start(self, job: Any) -> bool:
        """Whether a job may start: only one that was let in, and once."""
        if not isinstance(job, str) or job not in self._waiting:
            self._events.note(
                "job refused",
                why="a job was to start that had not been let in, or had been started before.",
            )
            return False
        self._waiting.remove(job)
        return True

    def _count(self, most: int) -> None:
        now = self._clock()
        while self._let_in and self._let_in[0] <= now - _HOUR:
            self._let_in.popleft()
        if len(self._let_in) >= most:
            raise RunRefused(
                f"{most} jobs were let in within the last hour, which is most_jobs_per_hour. Wait, "
                "or raise it in owner.toml.",
                "it has let in as many jobs as it allows in an hour. Wait.",
            )
        self._let_in.append(now)


def _check_labels(job: Any, meta: Any) -> None:
    try:
        plain = isinstance(job, str) and str(UUID(job)) == job
    except ValueError:
        plain = False
    if not plain or not isinstance(meta, Mapping):
        raise InvalidArgument(
            "the job has no number or no description of the engine's kind. It was refused."
        )
