"""NVIDIA FLARE as the transport of a real run; imported by name, since it needs
``hushfit[federated]``.

It is transport only. Its jobs are two JSON files that name the two classes below, which every party
loads from its own installed library; one argument describes the run and is checked by `RunSpec`.
Messages between owners are end-to-end encrypted; the coordinator relays them and announces the
round. If an owner is gone the job ends, and another one resumes from the last round that all have
answered.
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
_COORDINATOR_SITE = "server"  # its name in the engine's addresses
# Environment variables that the engine's processes can see: none that may be a secret.
_VISIBLE = re.compile(
    "PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|LC_.*|TZ|TMPDIR|XDG_CACHE_HOME|VIRTUAL_ENV|LD_LIBRARY_PATH|PYTHONPATH|HUSHFIT_LEDGER_KEY_FILE|NUMBA_.*|OMP_NUM_THREADS|OPENBLAS_NUM_THREADS|MKL_NUM_THREADS"
)
_VISIBLE_WITH_DATABASE = re.compile(
    "PG.*"
)  # server and password for the client library of PostgreSQL
_OWNER_PROCESS = ("hushfit.federated.deployment._owner_processes", "site")
_COORDINATOR_PROCESS = ("nvflare.private.fed.app.server.server_train",)
_PREFIX = "hushfit."
_TOPICS = ("consider", "read", "open", "turn")
_ENGINE_ERRORS = (InternalError, NoConnection, NoReply, SessionClosed, SessionExpired)
_BODY = "body"
_START_SECONDS, _END_SECONDS = 120.0, 20.0  # time limits of the engine to start and to end a job
_DETAIL_SECONDS = 5.0  # time limit of the engine to write down why a job did not start
_HEARTBEATS_SECONDS = 35.0  # the engine's owners send one every 10 s


class OwnerExecutor(Executor):  # type: ignore[misc]  # the engine has no types
    """The owner's part of a job. Data, schema, ledger and ceiling come from the owner's own file.

    Parameters
    ----------
    spec : str
        The run, as `RunSpec.packed` wrote it. It comes from the coordinator and is not trusted.
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
        for topic in _TOPICS:
            self._engine.register_aux_message_handler(_PREFIX + topic, self._handle_request)
        for topic in (HELLO, WORD):
            self._engine.register_aux_message_handler(_PREFIX + topic, self._received)

    def _post(self, name: str, topic: str, message: bytes, seconds: float) -> bytes | None:
        """Send a message to a neighbour. It is encrypted already; the engine's end-to-end mode
        encrypts it again.
        """
        with self._engine.new_context() as context:
            packet = _packet(message)
            replies = self._engine.send_aux_request(
                [name], _PREFIX + topic, packet, seconds, context, secure=True
            )
            return _opened((replies or {}).get(name))

    def _handle_request(self, topic: str, request: Any, fl_ctx: Any) -> Any:
        assert self._participant is not None
        sender, request_topic = request.get_header(SENDER), topic.removeprefix(_PREFIX)
        if sender != _COORDINATOR_SITE:
            self._participant.refuse_message(
                request_topic, f"a request did not come from the coordinator, but from {sender!r}."
            )
            return make_reply(ReturnCode.BAD_REQUEST_DATA)
        body = _opened(request)
        try:
            parsed = json.loads(body) if body is not None and len(body) < 1 << 16 else None
        except (ValueError, RecursionError):
            parsed = None
        answer = self._participant.answer(request_topic, parsed if isinstance(parsed, dict) else {})
        return _packet(json.dumps(answer).encode())

    def _received(self, topic: str, request: Any, fl_ctx: Any) -> Any:
        assert self._participant is not None
        return _packet(self._participant.received(topic.removeprefix(_PREFIX), _opened(request)))

    def execute(self, task_name: str, shareable: Any, fl_ctx: Any, abort_signal: Any) -> Any:
        """Refuse tasks: a run has none."""
        return make_reply(ReturnCode.TASK_UNKNOWN)


class CoordinatorController(Controller):  # type: ignore[misc]  # the engine has no types
    """The coordinator's part of a job: a clock. It writes the progress, and nothing else, to the
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
                packet = _packet(json.dumps(body).encode())
                replies = engine.send_aux_request([name], _PREFIX + topic, packet, timeout, context)
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
    """The engine has ended the job."""


def _packet(body: bytes) -> Any:
    packet = Shareable()
    packet[_BODY] = body
    return packet


def _opened(packet: Any) -> bytes | None:
    """The bytes of a received `Shareable`; None if there is none, or for a failure or anything
    else.
    """
    if not isinstance(packet, Shareable) or packet.get_return_code(ReturnCode.OK) != ReturnCode.OK:
        return None
    body = packet.get(_BODY)
    return body if isinstance(body, bytes) else None


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        parsed = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def progress_path(folder: Path, run: str) -> Path:
    """Path of a run's progress at the coordinator."""
    return folder / "runs" / f"{run}.json"


def write_progress(folder: Path, progress: Progress) -> None:
    """Write the progress atomically: it may be read at any time."""
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


def visible_environment(also: Sequence[str] = (), database: bool = False) -> dict[str, str]:
    """The environment variables that the engine's processes may see.

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
        if _VISIBLE.fullmatch(name)
        or name in also
        or (database and _VISIBLE_WITH_DATABASE.fullmatch(name))
    }
    # Import no module from the working directory.
    return {**seen, "PYTHONSAFEPATH": "1", "NVFLARE_NO_UPDATE_CHECK": "1"}


def end_process(process: "subprocess.Popen[bytes]", seconds: float = 8.0) -> None:
    """Terminate a process; kill it if it does not end."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(seconds)


@contextmanager
def kit_in_use(kit: Path) -> Iterator[int]:
    """Lock a kit; a second process with the same kit on this machine is refused.

    It yields a file descriptor, which is passed to the engine's processes: they hold the lock too,
    should they outlive this one.
    """
    kit.mkdir(parents=True, exist_ok=True)
    file: IO[bytes] = (kit / "in-use.lock").open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise InvalidArgument(
            f"the kit {kit} is in use by another process. One process per kit: stop the other one "
            "first."
        ) from None
    try:
        yield file.fileno()
    finally:
        file.close()


def start_owner(
    config: OwnerConfig, path: Path, held: Sequence[int] = ()
) -> "subprocess.Popen[bytes]":
    """Start the engine's process of an owner; it connects to the coordinator and waits for runs.

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
    environment = visible_environment(config.environment, database="://" in config.ledger)
    # An owner's engine reports only the type of an error to the coordinator.
    environment |= {OWNER_FILE: str(path.resolve()), "NVFLARE_SECURE_LOGGING": "1"}
    return _spawn(_OWNER_PROCESS, config.kit, "fed_client.json", more, environment, held)


def try_connection(config: OwnerConfig, timeout: float = 5.0) -> str | None:
    """Why an owner cannot reach its coordinator; None if it can.

    The engine retries for ever without a message, so this is checked first.
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
            f"no answer at {host}:{port} ({error.strerror or type(error).__name__}). The "
            "coordinator may not be up yet."
        )
    try:
        with plain, context.wrap_socket(plain, server_hostname=host) as secured:
            secured.settimeout(timeout)
            secured.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
            return None if secured.recv(9) else refused  # a certificate is refused only now
    except ssl.SSLCertVerificationError as error:
        return (
            f"the coordinator at {host}:{port} is not in this federation, or its certificate is "
            f"not valid ({error.verify_message})."
        )
    except OSError:
        return refused


def start_coordinator(folder: str | Path, timeout: float = 60.0) -> "subprocess.Popen[bytes]":
    """Start the engine's process of the coordinator; returns when it listens.

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
            f"{invitation.host}:{invitation.port} is used by another process. Stop it, or create "
            "the federation with another --port."
        )
    process = _spawn(
        _COORDINATOR_PROCESS,
        folder / COORDINATOR,
        "fed_server.json",
        [f"org={COORDINATOR}"],
        {**visible_environment(), FEDERATION_FOLDER: str(folder)},
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
    """A session of the conductor, which may submit runs."""
    with redirect_stdout(io.StringIO()):  # it prints a greeting
        session = new_secure_session(
            CONDUCTOR, str(Path(folder).resolve() / "conductor"), timeout=timeout
        )
    try:
        yield session
    finally:
        session.close()


# Runs.


def write_job(folder: Path, spec: RunSpec) -> Path:
    """Write a run as a job of the engine: JSON that names classes of the installed library, no
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
    """What to do if an owner is gone, and when.

    Parameters
    ----------
    on_lost : {"stop", "go-on"}, default="stop"
        If an owner has been gone for too long: stop the run, which can be resumed; or drop the
        owner and continue with the rest.
    seconds : float, default=300
        Time to wait for an owner.
    attempts : int, default=10
        Largest number of jobs for one run.
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
    """A run stopped early; the message says why. It can be resumed under its name unless an owner
    refused.
    """


def conduct(
    folder: str | Path,
    spec: RunSpec,
    patience: Patience | None = None,
    watch: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Run to the end with a coordinator that is up, through as many jobs as it takes.

    Parameters
    ----------
    folder : path
        Of the federation.
    spec : RunSpec
    patience : Patience, optional
    watch : callable, optional
        Called with a text on every event.

    Returns
    -------
    dict
        The progress at the end.

    Raises
    ------
    RunStopped
    """
    folder, patience, report = (
        Path(folder).resolve(),
        patience or Patience(),
        watch or (lambda text: None),
    )
    gone: dict[str, float] = {}
    with _engine_errors_translated(), conductor(folder) as session:
        for _ in range(patience.attempts):
            spec = _with_connected_owners(session, spec, gone, patience, report)
            progress = _one_job(session, folder, spec, report)
            if progress["state"] == FINISHED:
                return progress
            if progress["state"] == REFUSED:
                raise RunStopped(
                    "; ".join(f"{name} refused: {why}" for name, why in progress["reasons"].items())
                )
            report(
                f"attempt {spec.attempt} ended after round {progress['rounds']}: "
                f"{', '.join(progress['lost']) or 'a process'} is gone"
            )
            gone = dict.fromkeys(progress["lost"], progress["at"])
            spec = replace(spec, attempt=spec.attempt + 1)
    raise RunStopped(
        f"run {spec.run} did not finish in {patience.attempts} attempts. Check the owners, then "
        "resume it by its name."
    )


@contextmanager
def _engine_errors_translated() -> Iterator[None]:
    """Raise the engine's errors as `RunStopped`."""
    try:
        yield
    except _ENGINE_ERRORS as error:
        raise RunStopped(
            f"the coordinator does not answer ({type(error).__name__}). Start it again, then "
            "resume the run."
        ) from error


def _with_connected_owners(
    session: Session,
    spec: RunSpec,
    gone: Mapping[str, float],
    patience: Patience,
    report: Callable[[str], None],
) -> RunSpec:
    """Wait until every owner is connected, again if it was gone; one that does not connect is
    dropped if policy and algorithm allow it.
    """
    until, reported = time.monotonic() + patience.seconds, False
    while missing := [name for name in spec.active if name not in connected(session, gone)]:
        if not reported:
            report(f"waiting for {', '.join(missing)}")
            reported = True
        if time.monotonic() > until:
            spec = _dropping(spec, missing, patience, report)
            continue
        time.sleep(0.5)
    return spec


def _dropping(
    spec: RunSpec, missing: Sequence[str], patience: Patience, report: Callable[[str], None]
) -> RunSpec:
    for name in missing:
        why = "the policy is to stop" if patience.on_lost == "stop" else why_not_without(spec, name)
        if why is not None:
            raise RunStopped(
                f"{name} did not connect within {patience.seconds:g} s, and {why}. Run {spec.run} "
                "has stopped; nothing is lost, and it can be resumed under its name when all are "
                "back."
            )
        report(
            f"{name} did not connect within {patience.seconds:g} s and is dropped; the rest "
            "continue"
        )
        spec = replace(spec, dropped=(*spec.dropped, name))
    return spec


def connected(session: Session, since: Mapping[str, float] | None = None) -> list[str]:
    """Owners with a recent heartbeat at the coordinator, later than their time in ``since``."""
    recent = time.time() - _HEARTBEATS_SECONDS
    clients = {
        client.name: float(client.last_connect_time)
        for client in session.get_connected_client_list()
    }
    return [
        name
        for name, last_seen in clients.items()
        if last_seen > max(recent, (since or {}).get(name, 0.0))
    ]


def _one_job(
    session: Session, folder: Path, spec: RunSpec, report: Callable[[str], None]
) -> dict[str, Any]:
    """Submit one job and follow it to its end. A job without progress is aborted: a process that is
    gone cannot report its end.
    """
    progress_path(folder, spec.run).unlink(missing_ok=True)
    job = session.submit_job(str(write_job(folder, spec)))
    report(f"attempt {spec.attempt} submitted to {', '.join(spec.active)}")
    seen, last_change, aborted = (None, -1), time.monotonic(), False
    duplicates = _DuplicateOwners(folder / COORDINATOR / "log.txt")
    while True:
        progress, status = read_progress(folder, spec.run), str(session.get_job_status(job))
        if status.startswith("FINISHED"):
            return _final_progress(progress, spec, status, final_meta(session, job))
        state, rounds = (
            (progress["state"], progress["rounds"]) if progress is not None else (None, -1)
        )
        if (state, rounds) != seen:
            seen, last_change = (state, rounds), time.monotonic()
            if progress is not None and state == RUNNING:
                report(
                    f"round {rounds}"
                    + (f" (silent: {', '.join(progress['silent'])})" if progress["silent"] else "")
                )
        for name in duplicates.seen():
            report(
                f"WARNING: a second process has connected as {name}: its kit is in use twice. Ask "
                f"{name}; stop one of them"
            )
        limit = (
            _END_SECONDS
            if aborted or state not in (None, RUNNING)
            else _START_SECONDS + 2 * spec.turn_timeout
        )
        if time.monotonic() - last_change > limit:
            if aborted:
                raise RunStopped(
                    f"the engine does not end its job for run {spec.run}. Start the coordinator "
                    "again, then resume the run."
                )
            session.abort_job(job)
            last_change, aborted = time.monotonic(), True
        time.sleep(0.3)


def final_meta(session: Session, job: str) -> dict[str, Any]:
    """What the engine knows of a job that has ended, with the owners' answers to its deployment.

    For a job that did not start, the engine writes the status first and the answers afterwards.
    """
    until = time.monotonic() + _DETAIL_SECONDS
    while True:
        meta: dict[str, Any] = session.get_job_meta(job)
        started = "FAILED_TO_RUN" not in str(meta["status"])
        if started or meta.get("job_deploy_detail") or time.monotonic() > until:
            return meta
        time.sleep(0.1)


class _DuplicateOwners:
    """Finds owners in the engine's log that evict each other; the engine accepts the new one
    without a message.
    """

    _PATTERN = re.compile(r"is evicted for \S+ from endpoint ([a-z][a-z0-9-]*) for exceeding")

    def __init__(self, log: Path) -> None:
        self._log, self._place, self._reported = (
            log,
            log.stat().st_size if log.exists() else 0,
            set[str](),
        )

    def seen(self) -> list[str]:
        """Names found since the last call, each once."""
        if not self._log.exists():
            return []
        with self._log.open("rb") as file:
            file.seek(self._place if self._log.stat().st_size >= self._place else 0)
            text = file.read()
            self._place = file.tell()
        found = sorted(set(self._PATTERN.findall(text.decode(errors="replace"))) - self._reported)
        self._reported |= set(found)
        return found


def _final_progress(
    progress: dict[str, Any] | None, spec: RunSpec, status: str, meta: Mapping[str, Any]
) -> dict[str, Any]:
    """How a job ended, from its own last progress if there is one."""
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
    """Answers of the owners to the deployment of the job, without characters that are not
    printable.
    """
    details = [str(detail) for detail in meta.get("job_deploy_detail") or []]
    refused = [
        detail.replace("NVFLARE_ERROR: ", "")
        for detail in details
        if not detail.rstrip().endswith("OK")
    ]
    shown = "; ".join(refused)[:2000] or "an owner's or the coordinator's policy refused the job"
    return "".join(character if character.isprintable() else " " for character in shown).rstrip(
        ". "
    )


__all__ = [
    "CoordinatorController",
    "OwnerExecutor",
    "Patience",
    "RunStopped",
    "conduct",
    "conductor",
    "connected",
    "end_process",
    "final_meta",
    "kit_in_use",
    "read_progress",
    "start_coordinator",
    "start_owner",
    "try_connection",
    "write_job",
]
