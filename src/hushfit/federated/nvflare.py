"""NVIDIA FLARE carries the messages of a real run: the one door to it, imported by name since it
needs ``hushfit[federated]``.

It is transport only. Its jobs are two JSON files that name the two classes below, which every party
takes from its own installed library; one argument describes the run and is checked by `RunSpec`.
Words travel owner to owner in closed envelopes; the coordinator relays them and says which round it
is. When an owner is gone the job ends, and another one goes on from the last round that everybody
has answered.
"""

import fcntl
import io
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.fuel.flare_api.api_spec import (
    InternalError,
    NoConnection,
    NoReply,
    SessionClosed,
    SessionExpired,
)
from nvflare.fuel.flare_api.flare_api import Session, new_secure_session

from hushfit.errors import HushfitError, InvalidArgument
from hushfit.federated.deployment import (
    CLIENT_FILE,
    FINISHED,
    HELLO,
    LOST,
    OWNER_FILE,
    REFUSED,
    RUNNING,
    SENDER,
    SERVER_FILE,
    WORD,
    Clock,
    Identity,
    OwnerConfig,
    Participant,
    Progress,
    RunSpec,
    client_settings,
    why_not_without,
)
from hushfit.federated.deployment.kits import (
    CONDUCTOR,
    CONTROLLER,
    COORDINATOR,
    EXECUTOR,
    Invitation,
)

FEDERATION_FOLDER = "HUSHFIT_FEDERATION_FOLDER"
_COORDINATOR_SITE = "server"  # what the engine calls it in addresses
# What the engine's processes see of the environment they are started in: nothing that may be a
# secret.
_SEEN = re.compile(
    "PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|LC_.*|TZ|TMPDIR|XDG_CACHE_HOME|VIRTUAL_ENV|LD_LIBRARY_PATH|PYTHONPATH|"
    "HUSHFIT_LEDGER_KEY_FILE|NUMBA_.*|OMP_NUM_THREADS|OPENBLAS_NUM_THREADS|MKL_NUM_THREADS"
)
_SEEN_WITH_DATABASE = re.compile(
    "PG.*"
)  # how the client library of PostgreSQL finds its server and password
_OWNER_PROCESS = ("hushfit.federated.deployment._owner_processes", "site")
_COORDINATOR_PROCESS = ("nvflare.private.fed.app.server.server_train",)
_PREFIX = "hushfit."
_QUESTIONS = ("consider", "read", "open", "turn")
_TROUBLE = (InternalError, NoConnection, NoReply, SessionClosed, SessionExpired)
_BODY = "body"
_START_SECONDS, _END_SECONDS = 120.0, 20.0  # what the engine may take to begin and to end a job
_HEARTBEATS_SECONDS = 35.0  # the engine's owners send one every 10 s


class OwnerExecutor(Executor):  # type: ignore[misc]  # the engine has no types
    """The owner's side of a job. Data, schema, ledger and ceiling come from the file that the
    owner's own process named.

    Parameters
    ----------
    spec : str
        The run, as `RunSpec.packed` wrote it. It comes from the coordinator, and is not trusted.
    """

    def __init__(self, spec: str) -> None:
        super().__init__()
        self._spec = spec
        self._participant: Participant | None = None
        self._engine: Any = None

    def handle_event(self, event_type: str, fl_ctx: Any) -> None:
        if event_type == EventType.START_RUN:
            self._start(fl_ctx)
        elif event_type == EventType.END_RUN and self._participant is not None:
            self._participant.close()

    def _start(self, fl_ctx: Any) -> None:
        if OWNER_FILE not in os.environ:
            raise InvalidArgument(
                "this process does not know its owner's file. Start it with `hushfit owner run`."
            )
        config = OwnerConfig.load(os.environ[OWNER_FILE])
        if fl_ctx.get_identity_name() != config.name:
            raise InvalidArgument(
                f"the kit is of {fl_ctx.get_identity_name()}, but the owner's file of "
                f"{config.name}. Use the right kit."
            )
        self._engine = fl_ctx.get_engine()
        self._participant = Participant(config, self._spec, self._post)
        for topic in _QUESTIONS:
            self._engine.register_aux_message_handler(_PREFIX + topic, self._asked)
        for topic in (HELLO, WORD):
            self._engine.register_aux_message_handler(_PREFIX + topic, self._received)

    def _post(self, name: str, topic: str, message: bytes, seconds: float) -> bytes | None:
        """To a neighbour. The envelope is closed already; the engine's end-to-end mode closes it
        once more.
        """
        with self._engine.new_context() as context:
            letter = _letter(message)
            replies = self._engine.send_aux_request(
                [name], _PREFIX + topic, letter, seconds, context, secure=True
            )
            return _opened((replies or {}).get(name))

    def _asked(self, topic: str, request: Any, fl_ctx: Any) -> Any:
        assert self._participant is not None
        sender, question = request.get_header(SENDER), topic.removeprefix(_PREFIX)
        if sender != _COORDINATOR_SITE:
            self._participant.refuse_message(
                question, f"a question did not come from the coordinator, but from {sender!r}."
            )
            return make_reply(ReturnCode.BAD_REQUEST_DATA)
        body = _opened(request)
        try:
            parsed = json.loads(body) if body is not None and len(body) < 1 << 16 else None
        except (ValueError, RecursionError):
            parsed = None
        answer = self._participant.answer(question, parsed if isinstance(parsed, dict) else {})
        return _letter(json.dumps(answer).encode())

    def _received(self, topic: str, request: Any, fl_ctx: Any) -> Any:
        assert self._participant is not None
        return _letter(self._participant.received(topic.removeprefix(_PREFIX), _opened(request)))

    def execute(self, task_name: str, shareable: Any, fl_ctx: Any, abort_signal: Any) -> Any:
        """Tasks are no part of a run."""
        return make_reply(ReturnCode.TASK_UNKNOWN)


class CoordinatorController(Controller):  # type: ignore[misc]  # the engine has no types
    """The coordinator's side of a job: a clock. It writes the progress, and nothing else, into the
    federation's folder.

    Parameters
    ----------
    spec : str
        The run, as `RunSpec.packed` wrote it.
    """

    def __init__(self, spec: str) -> None:
        super().__init__()
        self._spec = RunSpec.unpacked(spec)
        self._pool = ThreadPoolExecutor(max(len(self._spec.active), 1))

    def start_controller(self, fl_ctx: Any) -> None:
        """Nothing to prepare."""

    def stop_controller(self, fl_ctx: Any) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def process_result_of_unknown_task(
        self, client: Any, task_name: str, client_task_id: str, result: Any, fl_ctx: Any
    ) -> None:
        """There are no tasks."""

    def control_flow(self, abort_signal: Any, fl_ctx: Any) -> None:
        engine = fl_ctx.get_engine()

        def one(
            name: str, topic: str, body: Mapping[str, Any], timeout: float
        ) -> dict[str, Any] | None:
            with engine.new_context() as context:
                letter = _letter(json.dumps(body).encode())
                replies = engine.send_aux_request([name], _PREFIX + topic, letter, timeout, context)
            answer = _opened((replies or {}).get(name))
            return None if answer is None else _object(answer)

        def ask(
            names: Sequence[str], topic: str, body: Mapping[str, Any], timeout: float
        ) -> dict[str, dict[str, Any] | None]:
            if abort_signal.triggered:
                raise _Aborted
            asked = {name: self._pool.submit(one, name, topic, body, timeout) for name in names}
            return {name: future.result() for name, future in asked.items()}

        folder = Path(os.environ[FEDERATION_FOLDER])
        with suppress(_Aborted):
            Clock(self._spec, ask, lambda progress: write_progress(folder, progress)).lead()


class _Aborted(Exception):
    """The engine ends the job."""


def _letter(body: bytes) -> Any:
    letter = Shareable()
    letter[_BODY] = body
    return letter


def _opened(letter: Any) -> bytes | None:
    """The bytes of a letter that arrived; None for none, for a failure, and for anything else."""
    if not isinstance(letter, Shareable) or letter.get_return_code(ReturnCode.OK) != ReturnCode.OK:
        return None
    body = letter.get(_BODY)
    return body if isinstance(body, bytes) else None


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        parsed = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def progress_path(folder: Path, run: str) -> Path:
    """Where the coordinator keeps a run's progress."""
    return folder / "runs" / f"{run}.json"


def write_progress(folder: Path, progress: Progress) -> None:
    """All of it or nothing: somebody may be reading."""
    path = progress_path(folder, progress.run)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(json.dumps({**progress.to_dict(), "at": time.time()}), encoding="utf-8")
    part.replace(path)


def read_progress(folder: Path, run: str) -> dict[str, Any] | None:
    """What `write_progress` wrote last, or None."""
    path = progress_path(folder, run)
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


# Processes of the engine.


def _spawn(
    module: Sequence[str],
    kit: Path,
    settings: str,
    more: Sequence[str],
    environment: Mapping[str, str],
    held: Sequence[int] = (),
) -> "subprocess.Popen[bytes]":
    (kit / "transfer").mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-u", "-m", *module, "-m", str(kit), "-s", settings, "--set"]
    with (kit / "process.txt").open("ab") as out:
        return subprocess.Popen(
            [*command, "secure_train=true", "config_folder=config", *more],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=kit,
            pass_fds=held,
        )


def seen_environment(also: Sequence[str] = (), database: bool = False) -> dict[str, str]:
    """What the engine's processes may see of this one's environment.

    Parameters
    ----------
    also : sequence of str
        Further names.
    database : bool, default=False
        Whether a ledger in PostgreSQL has to be reached.
    """
    seen = {
        name: value
        for name, value in os.environ.items()
        if _SEEN.fullmatch(name)
        or name in also
        or (database and _SEEN_WITH_DATABASE.fullmatch(name))
    }
    # No module is imported from the folder that a process runs in.
    return {**seen, "PYTHONSAFEPATH": "1", "NVFLARE_NO_UPDATE_CHECK": "1"}


def end_process(process: "subprocess.Popen[bytes]", seconds: float = 8.0) -> None:
    """Ask a process to end; insist if it does not."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(seconds)


@contextmanager
def kit_in_use(kit: Path) -> Iterator[int]:
    """Hold a kit; a second process with the same kit on this machine is refused.

    What it yields is handed to the engine's processes, which hold the kit too, should they outlive
    this one.
    """
    kit.mkdir(parents=True, exist_ok=True)
    file: IO[bytes] = (kit / "in-use.lock").open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise InvalidArgument(
            f"the kit {kit} is in use by another process. One process per kit: end the other one "
            "first."
        ) from None
    try:
        yield file.fileno()
    finally:
        file.close()


def start_owner(
    config: OwnerConfig, path: Path, held: Sequence[int] = ()
) -> "subprocess.Popen[bytes]":
    """The engine's process of an owner; it dials out and waits for runs.

    Parameters
    ----------
    config : OwnerConfig
    path : path
        Of the file that ``config`` was read from; job processes read it again.
    held : sequence of int
        What `kit_in_use` yielded.

    Returns
    -------
    Popen
    """
    Identity.read(config.name, config.kit / "startup")
    more = [f"uid={config.name}", f"org={config.name}"]
    environment = seen_environment(config.environment, database="://" in config.ledger)
    # An owner's engine tells the coordinator no more than the kind of an error.
    environment |= {OWNER_FILE: str(path.resolve()), "NVFLARE_SECURE_LOGGING": "1"}
    return _spawn(_OWNER_PROCESS, config.kit, "fed_client.json", more, environment, held)


def try_connection(config: OwnerConfig, timeout: float = 5.0) -> str | None:
    """Why an owner cannot reach its coordinator, in words; None if it can.

    The engine retries for ever without a message, so this looks first.
    """
    settings = json.loads((config.kit / "startup" / "fed_client.json").read_text(encoding="utf-8"))
    host, port = settings["servers"][0]["service"]["target"].rsplit(":", 1)
    startup = config.kit / "startup"
    context = ssl.create_default_context(cafile=str(startup / "rootCA.pem"))
    context.load_cert_chain(str(startup / "client.crt"), str(startup / "client.key"))
    context.set_alpn_protocols(["h2"])
    refused = (
        f"the coordinator at {host}:{port} refused the certificate of {config.name}. Ask for a new "
        "one: hushfit federate join."
    )
    try:
        plain = socket.create_connection((host, int(port)), timeout)
    except OSError as error:
        return (
            f"nobody answers at {host}:{port} ({error.strerror or type(error).__name__}). The "
            "coordinator may not be up yet."
        )
    try:
        with plain, context.wrap_socket(plain, server_hostname=host) as secured:
            secured.settimeout(timeout)
            secured.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
            return None if secured.recv(9) else refused  # a refused certificate shows only now
    except ssl.SSLCertVerificationError as error:
        return (
            f"the coordinator at {host}:{port} is not of this federation, or its certificate is "
            f"not valid ({error.verify_message})."
        )
    except OSError:
        return refused


def start_coordinator(folder: str | Path, timeout: float = 60.0) -> "subprocess.Popen[bytes]":
    """The engine's process of the coordinator; returns when it listens.

    Parameters
    ----------
    folder : path
        That `found` made.
    timeout : float, default=60

    Returns
    -------
    Popen
    """
    folder = Path(folder).resolve()
    invitation = Invitation.read(folder / "invitation.json")
    if _listens(invitation.host, invitation.port):
        raise InvalidArgument(
            f"{invitation.host}:{invitation.port} is taken by another process. End it, or found "
            "with another --port."
        )
    process = _spawn(
        _COORDINATOR_PROCESS,
        folder / COORDINATOR,
        "fed_server.json",
        [f"org={COORDINATOR}"],
        {**seen_environment(), FEDERATION_FOLDER: str(folder)},
    )
    until = time.monotonic() + timeout
    while not _listens(invitation.host, invitation.port):
        if process.poll() is not None or time.monotonic() > until:
            end_process(process)
            raise InvalidArgument(
                f"the coordinator did not start; {folder / COORDINATOR / 'process.txt'} says why."
            )
        time.sleep(0.2)
    return process


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), 1.0).close()
    except OSError:
        return False
    return True


@contextmanager
def conductor(folder: str | Path, timeout: float = 30.0) -> Iterator[Session]:
    """A session of the conductor, who may submit runs."""
    with redirect_stdout(io.StringIO()):  # it greets
        session = new_secure_session(
            CONDUCTOR, str(Path(folder).resolve() / "conductor"), timeout=timeout
        )
    try:
        yield session
    finally:
        session.close()


# Runs.


def write_job(folder: Path, spec: RunSpec) -> Path:
    """A run as a job of the engine: JSON that names classes of the installed library, and no
    code.
    """
    job = folder / "jobs" / f"{spec.run}-{spec.attempt}"
    (job / "app" / CLIENT_FILE).parent.mkdir(parents=True, exist_ok=True)
    sites = list(spec.active)
    meta = {
        "name": spec.run,
        "resource_spec": {},
        "deploy_map": {"app": ["server", *sites]},
        "min_clients": len(sites),
        "mandatory_clients": sites,
    }
    argument = {"spec": spec.packed()}
    server = {
        "format_version": 2,
        "workflows": [{"id": "clock", "path": CONTROLLER, "args": argument}],
        "components": [],
    }
    client = client_settings(EXECUTOR, spec.packed())
    for path, content in (
        (job / "meta.json", meta),
        (job / "app" / SERVER_FILE, server),
        (job / "app" / CLIENT_FILE, client),
    ):
        path.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return job


@dataclass(frozen=True)
class Patience:
    """When to give up.

    Parameters
    ----------
    on_lost : {"stop", "go-on"}, default="stop"
        What to do when an owner has been gone for too long: end the run, which can be resumed; or
        drop it, and let the rest go on.
    seconds : float, default=300
        How long is too long.
    attempts : int, default=10
        Jobs for one run.
    """

    on_lost: str = "stop"
    seconds: float = 300.0
    attempts: int = 10

    def __post_init__(self) -> None:
        if self.on_lost not in ("stop", "go-on") or not self.seconds > 0 or self.attempts < 1:
            raise InvalidArgument(
                f"{self} needs on_lost 'stop' or 'go-on', seconds above 0 and at least one attempt."
            )


class RunStopped(HushfitError):
    """A run ended before its time; the message says why. It can be resumed under its name unless
    an owner refused.
    """


def conduct(
    folder: str | Path,
    spec: RunSpec,
    patience: Patience | None = None,
    watch: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Lead a run to its end over a coordinator that is up, through as many jobs as it takes.

    Parameters
    ----------
    folder : path
        Of the federation.
    spec : RunSpec
    patience : Patience, optional
    watch : callable, optional
        Told in words what happens.

    Returns
    -------
    dict
        The progress at the end.

    Raises
    ------
    RunStopped
    """
    folder, patience, tell = (
        Path(folder).resolve(),
        patience or Patience(),
        watch or (lambda text: None),
    )
    gone: dict[str, float] = {}
    with _trouble_in_words(), conductor(folder) as session:
        for _ in range(patience.attempts):
            spec = _assembled(session, spec, gone, patience, tell)
            progress = _one_job(session, folder, spec, tell)
            if progress["state"] == FINISHED:
                return progress
            if progress["state"] == REFUSED:
                raise RunStopped(
                    "; ".join(f"{name} refused: {why}" for name, why in progress["reasons"].items())
                )
            tell(
                f"attempt {spec.attempt} ended after round {progress['rounds']}: "
                f"{', '.join(progress['lost']) or 'a process'} is gone"
            )
            gone = dict.fromkeys(progress["lost"], progress["at"])
            spec = replace(spec, attempt=spec.attempt + 1)
    raise RunStopped(
        f"run {spec.run} did not finish in {patience.attempts} attempts. Look after the owners, "
        "then resume it by its name."
    )


@contextmanager
def _trouble_in_words() -> Iterator[None]:
    """The engine's own complaints, as one of ours."""
    try:
        yield
    except _TROUBLE as error:
        raise RunStopped(
            f"the coordinator does not answer ({type(error).__name__}). Start it again, then "
            "resume the run."
        ) from error


def _assembled(
    session: Session,
    spec: RunSpec,
    gone: Mapping[str, float],
    patience: Patience,
    tell: Callable[[str], None],
) -> RunSpec:
    """Wait until every owner is connected, again if it was gone; who does not come is dropped if
    policy and algorithm allow it.
    """
    until, told = time.monotonic() + patience.seconds, False
    while missing := [name for name in spec.active if name not in connected(session, gone)]:
        if not told:
            tell(f"waiting for {', '.join(missing)}")
            told = True
        if time.monotonic() > until:
            spec = _without(spec, missing, patience, tell)
            continue
        time.sleep(0.5)
    return spec


def _without(
    spec: RunSpec, missing: Sequence[str], patience: Patience, tell: Callable[[str], None]
) -> RunSpec:
    for name in missing:
        why = "the policy is to stop" if patience.on_lost == "stop" else why_not_without(spec, name)
        if why is not None:
            raise RunStopped(
                f"{name} did not come within {patience.seconds:g} s, and {why}. Run {spec.run} has "
                "stopped; nothing is lost, and it goes "
                "on under its name when everybody is back."
            )
        tell(f"{name} did not come within {patience.seconds:g} s and is dropped; the rest go on")
        spec = replace(spec, dropped=(*spec.dropped, name))
    return spec


def connected(session: Session, since: Mapping[str, float] | None = None) -> list[str]:
    """Owners that the coordinator has heard from within the last heartbeats, and after a moment
    of their own.
    """
    recent = time.time() - _HEARTBEATS_SECONDS
    clients = {
        client.name: float(client.last_connect_time)
        for client in session.get_connected_client_list()
    }
    return [
        name for name, heard in clients.items() if heard > max(recent, (since or {}).get(name, 0.0))
    ]


def _one_job(
    session: Session, folder: Path, spec: RunSpec, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Submit one job and follow it to its end. One that stands still is ended: a process that is
    gone cannot report its end.
    """
    progress_path(folder, spec.run).unlink(missing_ok=True)
    job = session.submit_job(str(write_job(folder, spec)))
    tell(f"attempt {spec.attempt} submitted to {', '.join(spec.active)}")
    seen, moved, aborted = (None, -1), time.monotonic(), False
    copies = _Copies(folder / COORDINATOR / "log.txt")
    while True:
        progress, status = read_progress(folder, spec.run), str(session.get_job_status(job))
        if status.startswith("FINISHED"):
            return _closed(progress, spec, status, session.get_job_meta(job))
        state, rounds = (
            (progress["state"], progress["rounds"]) if progress is not None else (None, -1)
        )
        if (state, rounds) != seen:
            seen, moved = (state, rounds), time.monotonic()
            if progress is not None and state == RUNNING:
                tell(
                    f"round {rounds}"
                    + (f" (silent: {', '.join(progress['silent'])})" if progress["silent"] else "")
                )
        for name in copies.seen():
            tell(
                f"WARNING: a second process has connected as {name}: its kit is in use twice. Ask "
                f"{name}; end one of them"
            )
        limit = (
            _END_SECONDS
            if aborted or state not in (None, RUNNING)
            else _START_SECONDS + 2 * spec.turn_timeout
        )
        if time.monotonic() - moved > limit:
            if aborted:
                raise RunStopped(
                    f"the engine does not end its job for run {spec.run}. Start the coordinator "
                    "again, then resume the run."
                )
            session.abort_job(job)
            moved, aborted = time.monotonic(), True
        time.sleep(0.3)


class _Copies:
    """Watches the engine's log for owners that push each other out; the engine lets the newcomer
    in and says nothing.
    """

    _PATTERN = re.compile(r"is evicted for \S+ from endpoint ([a-z][a-z0-9-]*) for exceeding")

    def __init__(self, log: Path) -> None:
        self._log, self._place, self._told = (
            log,
            log.stat().st_size if log.exists() else 0,
            set[str](),
        )

    def seen(self) -> list[str]:
        """Names that have turned up since the last look, each once."""
        if not self._log.exists():
            return []
        with self._log.open("rb") as file:
            file.seek(self._place if self._log.stat().st_size >= self._place else 0)
            text = file.read()
            self._place = file.tell()
        found = sorted(set(self._PATTERN.findall(text.decode(errors="replace"))) - self._told)
        self._told |= set(found)
        return found


def _closed(
    progress: dict[str, Any] | None, spec: RunSpec, status: str, meta: Mapping[str, Any]
) -> dict[str, Any]:
    """How a job ended, from its own last word if it had one."""
    if progress is not None and progress["state"] != RUNNING:
        return progress
    if "COMPLETED" not in status and progress is None:
        raise RunStopped(
            f"run {spec.run} did not start ({status}): {_why_not_deployed(meta)}. Its fingerprint "
            f"is {spec.fingerprint}."
        )
    return {
        **(progress or Progress(spec.run, spec.attempt, list(spec.active)).to_dict()),
        "state": LOST,
        "at": time.time(),
    }


def _why_not_deployed(meta: Mapping[str, Any]) -> str:
    """What the owners answered when the job was deployed, without what could upset a terminal."""
    said = [str(detail) for detail in meta.get("job_deploy_detail") or []]
    refused = [
        detail.replace("NVFLARE_ERROR: ", "")
        for detail in said
        if not detail.rstrip().endswith("OK")
    ]
    shown = "; ".join(refused)[:2000] or "an owner's or the coordinator's policy refused the job"
    return "".join(letter if letter.isprintable() else " " for letter in shown).rstrip(". ")


__all__ = [
    "CoordinatorController",
    "OwnerExecutor",
    "Patience",
    "RunStopped",
    "conduct",
    "conductor",
    "connected",
    "end_process",
    "kit_in_use",
    "read_progress",
    "start_coordinator",
    "start_owner",
    "try_connection",
    "write_job",
]
