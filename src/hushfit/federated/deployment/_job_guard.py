"""Which jobs an owner's engine accepts, checked as bytes before the engine parses anything.

The engine reads a job's settings in several formats, some of which include environment variables,
files and web pages, and it searches whole folders for its settings. So a job is checked here first:
it must be an archive with the files of a run and no others, whose settings are exactly what
`client_settings` writes for the description of a run.
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
from hushfit.federated.deployment._owner_config import OwnerConfig
from hushfit.federated.deployment._owner_side import Events
from hushfit.federated.deployment._refusal import RunRefused, told_to_others
from hushfit.federated.deployment._run_spec import RunSpec

CLIENT_FILE, SERVER_FILE = "config/config_fed_client.json", "config/config_fed_server.json"
_SIGNED = (".__nvfl_sig.json", ".__nvfl_submitter.crt")
_SIGNATURES = (*_SIGNED, *(f"config/{name}" for name in _SIGNED))
_FOLDERS = ("config/",)
_ALLOWED = {CLIENT_FILE, SERVER_FILE, *_SIGNATURES, *_FOLDERS}
_MAX_ARCHIVE, _MAX_FILE = 1 << 22, 1 << 21
_HOUR = 3600.0


def client_settings(executor: str, spec: str) -> dict[str, Any]:
    """The only job settings that an owner accepts: its own class and the description of a run."""
    built = {"path": executor, "args": {"spec": spec}}
    return {
        "format_version": 2,
        "executors": [{"tasks": ["*"], "executor": built}],
        "components": [],
    }


def spec_in(archive: Any, executor: str) -> str:
    """The packed run in a job's archive; anything else is refused, and none of it is quoted."""
    if not isinstance(archive, bytes) or len(archive) > _MAX_ARCHIVE:
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
    if any(entry.file_size > _MAX_FILE for entry in entries):
        raise InvalidArgument("the job has a file of more than 2 MB. It was refused.")
    return archive.read(CLIENT_FILE)


class Door:
    """Decides which jobs the engine of an owner accepts.

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
        self._accepted: deque[float] = deque()
        self._waiting: set[str] = set()

    def admit(self, job: Any, archive: Any, meta: Any) -> str | None:
        """Accept a job, or return the reason why not for the coordinator; the owner's events have
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
        """Whether a job may start: only one that was accepted, and once."""
        if not isinstance(job, str) or job not in self._waiting:
            self._events.note(
                "job refused",
                why="a job was to start that had not been accepted, or had been started before.",
            )
            return False
        self._waiting.remove(job)
        return True

    def _count(self, most: int) -> None:
        now = self._clock()
        while self._accepted and self._accepted[0] <= now - _HOUR:
            self._accepted.popleft()
        if len(self._accepted) >= most:
            raise RunRefused(
                f"{most} jobs were accepted within the last hour, which is most_jobs_per_hour. "
                "Wait, or raise it in owner.toml.",
                "it has accepted as many jobs as it allows in an hour. Wait.",
            )
        self._accepted.append(now)


def _check_labels(job: Any, meta: Any) -> None:
    try:
        plain = isinstance(job, str) and str(UUID(job)) == job
    except ValueError:
        plain = False
    if not plain or not isinstance(meta, Mapping):
        raise InvalidArgument(
            "the job has no id or no description in the engine's format. It was refused."
        )
