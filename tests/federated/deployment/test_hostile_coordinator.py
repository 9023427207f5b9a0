"""A coordinator under an attacker's control, over live mutual TLS: it can send an owner anything,
and gets and spends nothing.

The attacker has the coordinator's and the conductor's keys, so its jobs are signed as genuine ones
are; it lacks the owner's consent.
"""

import base64
import copy
import io
import json
import re
import stat
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from _deployed import a_run, approve_on_disk, children_of, found, furnish
from cryptography.hazmat.primitives import serialization
from nvflare.lighter.utils import sign_folders

from hushfit.federated import nvflare as engine
from hushfit.federated.deployment import kits as _kits
from hushfit.federated.deployment._job_guard import CLIENT_FILE, SERVER_FILE, client_settings

pytestmark = pytest.mark.filterwarnings(
    "ignore::hushfit.errors.InsecureNoiseWarning",
    "ignore::hushfit.errors.WeakGuaranteeWarning",
    "ignore::DeprecationWarning",
)

SECRET = "aws-secret-91c3d7"
MOST_SECONDS = 900
META = {
    "name": "x",
    "submitter_name": _kits.CONDUCTOR,
    "submitter_org": "coordinator",
    "submitter_role": "lead",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The attacker's server, the owner north with one approved run, and a web server that records
    requests.
    """
    folder = tmp_path_factory.mktemp("hostile")
    invitation = found(folder, owners=["north", "east"])
    config = furnish(folder / "north", "north")
    (folder / "north" / "secret.txt").write_text(SECRET)
    approve_on_disk(folder / "north", a_run("agreed"))
    calls, web = [], None

    class Noted(BaseHTTPRequestHandler):
        def do_GET(self):
            calls.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"a = 1")

        def log_message(self, *args):
            pass

    inbox = folder / "inbox"
    inbox.mkdir()
    kit = folder / "fed" / "coordinator"
    (kit / "transfer").mkdir()
    command = [
        sys.executable,
        str(Path(__file__).with_name("_hostile_server.py")),
        str(inbox),
        "-m",
        str(kit),
        "-s",
        "fed_server.json",
    ]
    settings = ["--set", "secure_train=true", "config_folder=config", "org=coordinator"]
    with (folder / "server.txt").open("wb") as out:
        server = subprocess.Popen(
            [*command, *settings],
            cwd=kit,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    watchdog = threading.Timer(MOST_SECONDS, server.kill)  # then every test fails
    watchdog.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        owner = engine.start_owner(config, folder / "north" / "owner.toml")
    web = HTTPServer(("127.0.0.1", 0), Noted)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    here = SimpleNamespace(
        folder=folder,
        inbox=inbox,
        config=config,
        owner=owner,
        invitation=invitation,
        calls=calls,
        port=web.server_port,
        count=0,
    )
    try:
        wait_for_owner(here)
        yield here
    finally:
        watchdog.cancel()
        web.shutdown()
        web.server_close()
        for process in (owner, server):
            children = children_of(process)
            engine.end_process(process, 5.0)
            for child in children:
                if child.is_running():
                    child.kill()


def ask(place, **message):
    """Send one message from the attacker's server; returns the reply."""
    place.count += 1
    message = {"to": "north", **message}
    if isinstance(message.get("body"), bytes):
        message["body64"] = base64.b64encode(message.pop("body")).decode()
    path = place.inbox / f"{place.count:06}.ask"
    part = path.with_suffix(".new")
    part.write_text(json.dumps(message))
    part.rename(path)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if path.with_suffix(".reply").exists():
            return json.loads(path.with_suffix(".reply").read_text())
        time.sleep(0.005)
    raise AssertionError("the attacker's server does not answer")


def admin(place, topic, body="", **more):
    return ask(place, kind="admin", channel="admin", topic=topic, body=body, **more)


def wait_for_owner(place):
    until = time.monotonic() + 120
    while time.monotonic() < until:
        assert place.owner.poll() is None, "the owner's process ended"
        if admin(place, "nothing", timeout=2.0)["code"] == "ok":
            return
        time.sleep(0.3)
    raise AssertionError("the owner did not connect")


def signed(place, files, signer="conductor"):
    """An archive of files, signed as by the engine."""
    startup = (
        place.folder / ("fed/conductor" if signer == "conductor" else f"{signer}/kit") / "startup"
    )
    key = serialization.load_pem_private_key((startup / "client.key").read_bytes(), None)
    with tempfile.TemporaryDirectory() as home:
        for name, content in files.items():
            path = Path(home) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        sign_folders(home, key, str(startup / "client.crt"))
        return archived(
            {
                str(path.relative_to(home)): path.read_bytes()
                for path in sorted(Path(home).rglob("*"))
                if path.is_file()
            }
        )


def archived(files, change=lambda info: None):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            change(info)
            archive.writestr(info, content)
    return made.getvalue()


def files_of(spec_text, **changed):
    """The files of a genuine job around a description of a run."""
    client = {**client_settings(_kits.EXECUTOR, spec_text), **changed}
    server = {"format_version": 2, "workflows": [], "components": []}
    return {CLIENT_FILE: json.dumps(client).encode(), SERVER_FILE: json.dumps(server).encode()}


def deploy(place, archive, job=None, meta=None):
    job = str(uuid.uuid4()) if job is None else job
    meta = {"job_id": job, **META} if meta is None else meta
    return admin(
        place, "train.deploy", archive, headers={"job_id": job, "job_meta": meta, "app_name": "app"}
    )


def let_in(reply):
    return (
        reply["code"] == "ok"
        and isinstance(reply["payload"], dict)
        and reply["payload"]["headers"].get("_rtnCode") == "_ok"
    )


def books(place):
    return [entry.label for entry in place.config.open_ledger().entries]


def assert_refused(place, what, reply):
    assert not let_in(reply), what
    reply_text = json.dumps(reply)
    for leak in (SECRET, "PRIVATE KEY", str(place.folder), "os.system", "total 4"):
        assert leak not in reply_text, (what, leak)


def hocon(place, encoding="utf-16-le"):
    """The description of a run whose algorithm is an environment variable, as in the attack."""
    head, tail = ('{"format": "hushfit-run-2", "algorithm": "', '"}')
    coded = [base64.b64encode(part.encode(encoding)).decode() for part in (head, tail)]
    spec = f'"{coded[0]}"${{AWS_SECRET_ACCESS_KEY}}"{coded[1]}"'
    return (
        f'format_version = 2\nexecutors = [{{tasks = ["*"], executor = {{path = '
        f'"{_kits.EXECUTOR}", args = {{spec = {spec}}}}}}}]\ncomponents = []\n'
    )


def config_formats(place):
    """Settings in every other format and name that the engine reads, next to genuine ones and in
    their place.
    """
    contents = {
        "env": hocon(place),
        "env8": hocon(place, "utf-8"),
        "include file": f'include file("{place.folder}/north/secret.txt")\n',
        "include url": f'include url("http://127.0.0.1:{place.port}/called")\n',
        "yaml env": "format_version: 2\nexecutors: ${oc.env:AWS_SECRET_ACCESS_KEY}\n",
    }
    genuine = files_of(a_run("agreed").packed())
    for ending in (
        ".conf",
        ".yml",
        ".yaml",
        ".json.default",
        ".conf.default",
        ".yml.default",
        ".yaml.default",
    ):
        for what, content in contents.items():
            extra = {f"config/config_fed_client{ending}": content.encode()}
            yield f"{ending}, {what}", signed(place, {SERVER_FILE: genuine[SERVER_FILE], **extra})
            yield f"{ending}, {what}, beside", signed(place, {**genuine, **extra})


def other_files(place):
    """Files that the engine would look for in the folder of any job."""
    genuine = files_of(a_run("agreed").packed())
    names = [
        "resources.json",
        "fed_client.json",
        "comm_config.json",
        "log_config.json",
        "privacy.json",
        "authorization.json",
    ]
    names += [
        "job_resources.json",
        "application.conf",
        "config_train.json",
        "environment.json",
        "study_registry.json",
        "x.py",
    ]
    for name in names:
        for folder in ("", "config/", "custom/", "local/", "startup/"):
            yield (
                f"{folder}{name}",
                signed(place, {**genuine, folder + name: b'{"class_allow_list": ["*"]}'}),
            )
    for name in (
        "../escaped.json",
        "/absolute.json",
        "config/../../up.json",
        "config\\..\\x.json",
        "CONFIG/config_fed_client.json",
    ):
        yield name, archived({**genuine, name: b"{}"})
    yield "a link", archived({**genuine, "config/link": b"/etc/passwd"}, _as_link)
    twice = io.BytesIO()
    with zipfile.ZipFile(twice, "w") as archive:
        archive.writestr(CLIENT_FILE, b"{}")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr(CLIENT_FILE, genuine[CLIENT_FILE])
    yield "a name twice", twice.getvalue()


def _as_link(info):
    if info.filename.endswith("link"):
        info.external_attr = (stat.S_IFLNK | 0o777) << 16


def content_of(archive):
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            return {name: opened.read(name) for name in opened.namelist()}
    except Exception as error:  # any error that a damaged archive raises
        return type(error)


def broken_archives(place):
    good = signed(place, files_of(a_run("agreed").packed()))
    yield "empty", b""
    yield "text", b"not an archive"
    yield "oversized", b"\0" * (5 << 20)
    yield "a bomb", archived({CLIENT_FILE: b" " * (40 << 20)})
    yield "many bombs", archived({f"config/{i}.json": b" " * (1 << 20) for i in range(40)})
    for place_ in range(0, len(good), max(1, len(good) // 25)):
        yield f"cut at {place_}", good[:place_]
        flipped = good[:place_] + bytes([good[place_] ^ 0x55]) + good[place_ + 1 :]
        if content_of(flipped) != content_of(good):  # some bytes of an archive mean nothing
            yield f"flipped at {place_}", flipped


def settings_of_other_classes(place):
    spec = a_run("agreed").packed()
    classes = [
        "subprocess.Popen",
        "os.system",
        "builtins.eval",
        "nvflare.app_common.executors.client_api_executor.ClientAPIExecutor",
    ]
    classes += [
        "hushfit.federated.nvflare.CoordinatorController",
        f"{_kits.EXECUTOR}.x",
        "hushfit.federated.nvflare.os.system",
        "",
        None,
        3,
    ]
    for path in classes:
        yield (
            f"class {path}",
            signed(
                place,
                files_of(
                    spec,
                    executors=[
                        {"tasks": ["*"], "executor": {"path": path, "args": {"spec": spec}}}
                    ],
                ),
            ),
        )
    built = {"path": _kits.EXECUTOR, "args": {"spec": spec}}
    one = {"tasks": ["*"], "executor": built}
    odd = {
        "a component": {"components": [{"id": "x", "path": "os.system", "args": {}}]},
        "two executors": {"executors": [one, one]},
        "no executors": {"executors": []},
        "other tasks": {"executors": [{"tasks": ["train"], "executor": built}]},
        "more arguments": {
            "executors": [
                {
                    "tasks": ["*"],
                    "executor": {**built, "args": {"spec": spec, "data": "/etc/passwd"}},
                }
            ]
        },
        "no arguments": {"executors": [{"tasks": ["*"], "executor": {"path": _kits.EXECUTOR}}]},
        "a name in place of a path": {
            "executors": [
                {"tasks": ["*"], "executor": {"name": "OwnerExecutor", "args": {"spec": spec}}}
            ]
        },
        "a reference": {
            "executors": [
                {
                    "tasks": ["*"],
                    "executor": {"path": _kits.EXECUTOR, "args": {"spec": "{WORKSPACE}"}},
                }
            ]
        },
        "a list": {
            "executors": [
                {"tasks": ["*"], "executor": {"path": _kits.EXECUTOR, "args": {"spec": [spec]}}}
            ]
        },
        "filters": {"task_data_filters": [{"tasks": ["*"], "filters": [{"path": "os.system"}]}]},
        "another format": {"format_version": 3},
        "variables": {"WORKSPACE": "x"},
    }
    for what, change in odd.items():
        yield what, signed(place, files_of(spec, **change))
    text = json.dumps(client_settings(_kits.EXECUTOR, spec))
    for encoding in ("utf-16", "utf-32", "utf-8-sig", "utf-7"):
        coded = text.replace("{", "\u0000{") if encoding == "utf-7" else text
        yield (
            f"settings in {encoding}",
            signed(place, {**files_of(spec), CLIENT_FILE: coded.encode(encoding)}),
        )
    yield "deep settings", signed(place, {**files_of(spec), CLIENT_FILE: b"[" * 100_000})


def descriptions(place):
    """Descriptions of runs that were not approved, in any form."""
    good = a_run("agreed").to_dict()
    changes = [
        {"run": "other"},
        {"run": "x" * 300},
        {"run": "../../etc"},
        {"settings": {"steps": 5}},
        {"settings": {"steps": 10**400}},
        {"settings": {"threshold": 10**400}},
        {"turn_timeout": 10**400},
        {"turn_timeout": "inf"},
        {"attempt": 10**400},
        {"attempt": True},
        {"units": {}},
        {"units": 3},
        {"budgets": {}},
        {"dropped": ["north"]},
        {"dropped": "north"},
        {"algorithm": "shared"},
        {"algorithm": SECRET},
        {"algorithm": "os.system"},
        {"network": {"names": [], "edges": []}},
        {"terms": {}},
        {"terms": SECRET},
        {"format": "hushfit-run-1"},
        {"fingerprint": "0" * 64},
        {"more": 1},
        {"settings": {"steps": float("nan")}},
    ]
    for change in changes:
        yield str(change)[:60], base64.b64encode(json.dumps({**good, **change}).encode()).decode()
    for epsilon in (0.5, 1.01, 1.5, 4, 1e6, "inf", -1, "nan", 10**400, None):
        asked = copy.deepcopy(good)
        asked["budgets"]["north"][0] = epsilon
        yield f"epsilon {str(epsilon)[:10]}", base64.b64encode(json.dumps(asked).encode()).decode()
    text = json.dumps(good)
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"):
        yield f"in {encoding}", base64.b64encode(text.encode(encoding)).decode()
    yield "oversized", base64.b64encode(b" " * (1 << 20)).decode()
    yield "no base64", "***"
    yield "url-safe", base64.urlsafe_b64encode(b"\xff\xfe" * 40).decode()
    yield "deep", base64.b64encode(b"[" * 50_000).decode()
    yield (
        "deep terms",
        base64.b64encode(
            text.replace('"model": {', '"deep": ' + "[" * 900 + "]" * 900 + ', "model": {').encode()
        ).decode(),
    )


@pytest.mark.parametrize(
    "every", [pytest.param(4, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)]
)
def test_hostile_jobs_are_refused_and_nothing_is_told_or_spent(place, every):
    jobs = [
        *config_formats(place),
        *other_files(place),
        *broken_archives(place),
        *settings_of_other_classes(place),
    ]
    jobs += [(f"run {what}", signed(place, files_of(spec))) for what, spec in descriptions(place)]
    assert len(jobs) >= 240
    for what, archive in jobs[::every]:
        assert_refused(place, what, deploy(place, archive))
    print(f"\n{len(jobs[::every])} hostile jobs refused")
    assert place.calls == []
    assert books(place) == []
    assert not list(place.config.kit.glob("*-*-*"))  # no folder of a job was made
    assert sorted(path.name for path in place.config.state.iterdir()) == ["events.jsonl"]
    assert SECRET not in owners_environment(place)


def owners_environment(place):
    """The owner's process and its children."""
    processes = [place.owner.pid, *(child.pid for child in children_of(place.owner))]
    return " ".join(Path(f"/proc/{pid}/environ").read_text(errors="replace") for pid in processes)


def test_genuine_files_with_wrong_papers_are_refused(place):
    files = files_of(a_run("agreed").packed())
    good = signed(place, files)
    other = signed(place, files_of(a_run("agreed", attempt=2).packed()))
    papers = {
        "not signed": archived(files),
        "signed by an owner": signed(place, files, signer="east"),
        "signature of another attempt": _with_signatures(good, other),
    }
    for what, archive in papers.items():
        assert_refused(place, what, deploy(place, archive))
    for job in (
        "../up",
        "a b",
        "numpy",
        "",
        str(uuid.uuid4()).upper(),
        "x" * 300,
        "startup",
        "local",
        ".",
    ):
        assert_refused(place, f"job {job}", deploy(place, good, job=job))
    for meta in ({}, [], "text", 3):
        reply = deploy(place, good, meta=meta)
        assert_refused(place, f"meta {meta!r}", reply)
    for job in (str(uuid.uuid4()), "startup", "../north"):
        headers = {"job_id": job, "job_meta": {"job_id": job}}
        assert_refused(
            place, f"start of {job}", admin(place, "train.start_job", {}, headers=headers)
        )
    assert books(place) == []


def _with_signatures(archive, others):
    with zipfile.ZipFile(io.BytesIO(archive)) as one, zipfile.ZipFile(io.BytesIO(others)) as two:
        return archived(
            {name: (two if ".__nvfl" in name else one).read(name) for name in one.namelist()}
        )


SHELL = [
    "cat startup/client.key",
    "cat ../secret.txt",
    "ls -l .",
    "tail local/resources.json",
    "head ../owner.toml",
    "grep -r name ..",
    "pwd",
]
COMMANDS = [
    "sys.info",
    "sys.report_env",
    "sys.report_version",
    "resource_manager.report_resources",
    "train.get_scopes",
    "train.check_status",
]
COMMANDS += [
    "train.shutdown",
    "train.restart",
    "train.delete_run",
    "train.abort_task",
    "info.collector",
    "train.start",
    "train.set_job_id",
]
LOGGING = ["sys.configure_site_log", "train.configure_job_log"]
DIAGNOSIS = [
    "peers",
    "cells",
    "route",
    "start_route",
    "stop",
    "stop_cell",
    "url_use",
    "conns",
    "speed",
    "echo",
    "stress",
    "change_root",
]
DIAGNOSIS += [
    "bulk_test",
    "bulk_item",
    "msg_stats",
    "list_pools",
    "show_pool",
    "comm_config",
    "config_vars",
    "process_info",
]


def test_commands_that_no_run_needs_are_not_answered(place):
    """In the engine the server decides whether a command needs permission; this one never requires
    it, or names any user.
    """
    logging = json.dumps(
        {
            "version": 1,
            "handlers": {
                "x": {"class": "logging.FileHandler", "filename": str(place.folder / "written")}
            },
        }
    )
    asked = [("sys.shell", line) for line in SHELL] + [
        (topic, str(uuid.uuid4())) for topic in COMMANDS
    ]
    asked += [(topic, logging) for topic in LOGGING]
    ways = [
        {},
        {
            "require_authz": "true",
            "admin_command": "shell_commands",
            "user_role": "project_admin",
            "user_name": "x",
            "user_org": "north",
        },
    ]
    for topic, body in asked:
        for headers in ways:
            reply = admin(place, topic, body, headers={**headers, "job_id": str(uuid.uuid4())})
            assert_refused(place, topic, reply)
            assert "invalid_request" in json.dumps(reply) or "uthoriz" in json.dumps(reply), (
                topic,
                reply,
            )
    for topic in DIAGNOSIS:
        reply = ask(place, kind="raw", channel="_net_manager", topic=topic, body="x", timeout=3.0)
        assert_refused(place, topic, reply)
        assert reply["code"] != "ok", (topic, reply)
    print(
        f"\n{len(asked) * len(ways)} commands and {len(DIAGNOSIS)} questions of diagnosis refused"
    )
    assert place.owner.poll() is None
    assert not (place.folder / "written").exists()


def test_an_agreed_run_still_starts_once(place):
    """After all that the owner still runs what it approved, with nothing of its environment in the
    worker.
    """
    job, archive = str(uuid.uuid4()), signed(place, files_of(a_run("agreed").packed()))
    meta = {"job_id": job, **META}
    assert let_in(deploy(place, archive, job, meta))
    reserved = admin(place, "scheduler.check_resource", {}, headers={"job_id": job})["payload"][
        "body"
    ]
    token = re.search(r"[0-9a-f]{8}-[0-9a-f-]{27}", reserved).group()
    start = {"headers": {"job_id": job, "job_meta": meta, "_resource_reserve_token": token}}
    assert "Start the client app" in json.dumps(admin(place, "train.start_job", {}, **start))
    until = time.monotonic() + 60
    while not (
        workers := [child for child in children_of(place.owner) if "worker" in child.cmdline()]
    ):
        assert time.monotonic() < until, "no worker was started"
        time.sleep(0.1)
    assert "hushfit.federated.deployment._owner_processes" in workers[0].cmdline()
    assert SECRET not in owners_environment(place)
    assert_refused(place, "a second start", admin(place, "train.start_job", {}, **start))
    admin(place, "train.abort", headers={"job_id": job})
    assert_refused(place, "an old job again", admin(place, "train.start_job", {}, **start))
    assert books(place) == []  # there was no greeting, so nothing was paid
    assert (place.config.state / "events.jsonl").stat().st_size < 1 << 20
