"""Attacks on the studio: other sites, other users, names, uploads, guesses."""

import asyncio
import html
import http.client
import io
import json
import os
import secrets
import socket
import subprocess
import sys
import zipfile
from dataclasses import asdict
from itertools import takewhile
from pathlib import Path
from tempfile import gettempdir
from urllib.parse import urlencode

import pytest
import uvicorn
from _studio import FIT, WAIT, Server, prepare

from _ledgers import forked
from hushfit import Ledger
from hushfit.cli import run
from hushfit.data.schema import (
    CategoricalColumn,
    NumericColumn,
    Schema,
    SchemaFile,
    schema_to_toml,
)
from hushfit.errors import InvalidArgument
from hushfit.studio import Settings, _connections, _jobs, doorway
from hushfit.studio._assigned import Assigned
from hushfit.studio._schema_form import SchemaForm

EVIL = "http://evil.example"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("attacked")
    prepare(made)
    return made


@pytest.fixture(scope="module")
def server(folder):
    made = Server(folder, "--max-upload", "1000000")
    yield made
    made.kill()


@pytest.fixture(scope="module")
def client(server):
    return server.client()


@pytest.fixture
def unspent(folder):
    """Whatever a test does, nothing may be spent or recorded."""
    before = Ledger(folder / "ledger.db", dataset="adult").account.history()
    yield
    assert Ledger(folder / "ledger.db", dataset="adult").account.history() == before


ACTS = {
    "/fit/start": {"key": "0" * 32, **FIT},
    "/budget/open": {"dataset": "mine", "epsilon": "9", "delta": "1e-6"},
    "/budget/act": {"dataset": "adult", "act": "grant", "person": "mallory", "epsilon": "1"},
    "/table/draft": {"table": "train.csv", "target": "income", "again": "1"},
    "/table/save": {"table": "train.csv"},
}


@pytest.mark.parametrize("path", ACTS)
def test_requests_from_other_sites_do_nothing(client, folder, unspent, path):
    """Forged forms: a foreign origin, none, the sandboxed "null", or no form token."""
    schema = (folder / "train.schema.toml").read_text()
    for origin in (EVIL, None, "null", f"{client.server.origin}.evil.example"):
        assert client.send(path, ACTS[path], origin=origin).status == 403
    for token in ("", "guess", secrets.token_urlsafe(24)):
        answer = client.send(path, {**ACTS[path], "csrf": token})
        assert answer.status == 400
        assert "from an older session" in answer.text
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
        assert client.ask(method, path).status == 405
    assert client.ask("GET", path).status in (404, 405)
    assert (folder / "train.schema.toml").read_text() == schema


def test_other_sites_get_neither_answers_nor_frames(client):
    answer = client.ask("GET", "/budget", Origin=EVIL)
    headers = {name.lower(): value for name, value in answer.getheaders()}
    assert "access-control-allow-origin" not in headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


def test_a_name_that_somebody_points_here_is_refused(client):
    """DNS rebinding: the browser believes that evil.example is this machine."""
    root = client.server.root
    for host in (
        "evil.example",
        "evil.example:80",
        f"127.0.0.1.evil.example{client.server.host}",
        "127.0.0.1:1@evil.example",
        "127.0.0.1:port",
        "",
        # Names that would move the path of an address which is put together from them.
        f"127.0.0.1:1{root}/static/",
        f"127.0.0.1:1{root}/login?",
        f"127.0.0.1{root}/static/x#:1",
    ):
        for cookie in ("own", None):
            assert client.ask("GET", "/budget", cookie=cookie, Host=host).status == 421
    assert client.ask("GET", "/budget", Host=client.server.host).status == 200


def test_the_cookie_is_strict_and_of_one_path(client, server):
    answer = client.ask("GET", f"/?token={server.token}", cookie=None)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert f"path={server.root}".lower() in cookie
    assert len(server.root) > 10


def test_tokens_and_cookies_cannot_be_guessed(client, server, unspent):
    """256 bits each; wrong ones, parts of the right one and other types of values."""
    guesses = [secrets.token_urlsafe(32) for _ in range(30)]
    guesses += [
        "",
        server.token[:-1],
        server.token + "x",
        server.token.swapcase(),
        "%00",
        "token[]",
    ]
    for guess in guesses:
        assert client.ask("GET", f"/?token={guess}", cookie=None).status == 403
        answer = client.ask("GET", "/budget", cookie=None, Cookie=f"hushfit_studio={guess}")
        assert answer.status == 403
        assert "adult" not in answer.text
    connection = http.client.HTTPConnection(server.host)
    for path in ("/", "/table", "/budget", "/../table"):
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 403
    connection.close()


TRAVERSALS = (
    "../ledger.db",
    "..%2fledger.db",
    "%2e%2e%2fledger.db",
    "....//ledger.db",
    "..%5cledger.db",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "link.json",
    ".studio",
    "ledger.db%00.json",
)


def test_no_path_leads_out_of_the_folder(client, folder, tmp_path, unspent):
    secret = tmp_path / "secret.json"
    secret.write_text('{"format": "secret words"}')
    (folder / "models").mkdir(exist_ok=True)
    for place in (folder / "link.csv", folder / "models" / "link.json"):
        if not place.is_symlink():
            place.symlink_to(secret)
    for path in TRAVERSALS:
        for kind in ("json", "report", "card", "verify"):
            answer = client.ask("GET", f"/models/{path}/{kind}")
            assert answer.status in (400, 403, 404)
            assert "root:" not in answer.text
            assert "secret words" not in answer.text
        assert client.ask("GET", f"/static/{path}").status in (400, 404)
        answer = client.send("/table/draft", {"table": path, "target": "income"})
        assert answer.status == 400
        assert client.start_fit("1" * 32, table=path).status == 400
        assert client.start_fit("1" * 32, held_out=path).status == 400
        assert client.ask("GET", f"/fit/jobs/{path}").status in (400, 404)
    assert client.start_fit("../../x").status == 400
    assert "link.csv" not in client.ask("GET", "/table").text


def test_uploads_beyond_the_limit_are_cut_off(client, server, folder):
    """10 GB announced, and 10 GB that come without being announced."""
    announced = client.ask(
        "POST",
        "/table/upload",
        b"",
        **{"Content-Length": str(10 << 30), "Content-Type": "text/csv"},
    )
    assert announced.status == 413
    host, port = server.host.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as line:
        head = (
            f"POST {server.root}/table/upload HTTP/1.1\r\nHost: {server.host}\r\n"
            f"Origin: {server.origin}\r\nCookie: {client.cookie}\r\n"
            "Content-Type: multipart/form-data; boundary=edge\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        line.sendall(head.encode())
        start = b'--edge\r\nContent-Disposition: form-data; name="file"; filename="big.csv"\r\n\r\n'
        line.sendall(f"{len(start):x}\r\n".encode() + start + b"\r\n")
        piece, sent = b"x" * (1 << 16), 0
        try:
            while sent < 10 << 30:
                line.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                sent += len(piece)
        except OSError:  # the server has hung up
            pass
    assert sent < 64 << 20
    assert not (folder / "big.csv").exists()
    assert client.ask("GET", "/table").status == 200


MALFORMED = {
    "noise.csv": os.urandom(5000),
    "empty.csv": b"",
    "ragged.csv": b"a,b\n1,2\n3\n4,5,6\n",
    "quote.csv": b'a,b\n"1,2\n',
    "zeros.parquet": b"PAR1" + bytes(5000),
    "text.arrow": b"not arrow at all" * 100,
    "zip.xlsx": b"PK\x03\x04" + os.urandom(2000),
    "wide.csv": b",".join([b"c"] * 5000) + b"\n",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_tables_are_refused_with_a_reason(client, folder, name):
    assert client.upload(name, MALFORMED[name]).status == 303
    for answer in (
        client.ask("GET", f"/table?table={name}"),
        client.send("/table/draft", {"table": name, "target": "a"}),
    ):
        assert answer.status in (200, 400, 303)
        assert "Traceback" not in answer.text
    (folder / name).unlink()
    for made in folder.glob(f"{name.partition('.')[0]}.schema.toml"):
        made.unlink()
    assert client.ask("GET", "/table?table=train.csv").status == 200


def test_uploads_have_plain_names_and_replace_nothing(client, folder):
    before = (folder / "train.csv").read_bytes()
    assert "not replaced" in client.upload("train.csv", b"a,b\n1,2\n").text
    assert (folder / "train.csv").read_bytes() == before
    for name in (
        *("ledger.db", "model.json", ".hidden.csv", "x.html", "evil.py", "a\x7f.csv"),
        *("-o.csv", "--overwrite.csv"),  # options, to a command
    ):
        assert client.upload(name, b"a,b\n1,2\n").status == 400
    assert client.upload("../../outside.csv", b"a,b\n1,2\n").status == 303
    assert (folder / "outside.csv").is_file()  # folders in a name are left off
    (folder / "outside.csv").unlink()


def test_names_that_are_options_are_not_tables(client, folder, unspent):
    (folder / "--seed=1.csv").write_text("a,y\n1,0\n")
    assert "--seed" not in client.ask("GET", "/table").text
    assert client.start_fit("3" * 32, table="--seed=1.csv").status == 400
    assert client.start_fit("3" * 32, held_out="--seed=1.csv").status == 400
    (folder / "--seed=1.csv").unlink()


ODD_NAMES = ['a"b', "x]\ny = 1", "\u2028[target]", "target", "columns.x", "#", "\\u0041", "\x01"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_and_sources_do_not_write_into_the_schema(tmp_path, name):
    """A schema that is read and saved as a form has the same columns, each with its own source."""
    told = 'codebook"]\n[columns.evil]\nkind = "numeric" \x00\u2028# '
    columns = (NumericColumn(name, 0, 9), NumericColumn("plain", 0, 1))
    target = CategoricalColumn("y]", ("a", 'b"]'))
    path = tmp_path / "t.schema.toml"
    path.write_text(schema_to_toml(SchemaFile(Schema(columns, target), (name,))), encoding="utf-8")
    form = SchemaForm.read(path)
    fields = {}
    for place, column in enumerate(form.columns):
        stated = {"kind": column.kind, "labels": column.labels, "source": f"{place} {told}"}
        ends = {end: column.settings.get(end, "") for end in ("low", "high")}
        for key, value in {**stated, **ends, "use": 1, "confirmed": 1}.items():
            fields[f"c{place}.{key}"] = str(value)
    path.write_text(form.changed(fields), encoding="utf-8")
    again = SchemaForm.read(path)
    assert again.schema == form.schema
    assert again.file.unconfirmed == ()
    expected = 'codebook"] [columns.evil] kind = "numeric" #'
    assert [c.source for c in again.columns] == [f"{k} {expected}" for k in range(3)]


def test_marks_of_missing_values_can_be_named_in_the_form(tmp_path):
    """What the draft flags as an end that is often a mark can be corrected where it is flagged."""
    path = tmp_path / "t.schema.toml"
    schema = Schema((NumericColumn("age", 0, 999),), CategoricalColumn("y", ("a", "b")))
    path.write_text(schema_to_toml(SchemaFile(schema, ("age",))), encoding="utf-8")
    fields = {"c0.kind": "categorical", "c0.labels": "a\nb", "c0.confirmed": "1"}
    own = {"kind": "numeric", "low": "0", "high": "110", "markers": "999, ?", "use": "1"}
    text = SchemaForm.read(path).changed({**fields, **{f"c1.{k}": v for k, v in own.items()}})
    path.write_text(text, encoding="utf-8")
    form = SchemaForm.read(path)
    (column,) = form.schema.columns
    assert (column.high, column.missing_values, column.missing) == (110, (999, "?"), "indicator")
    assert form.columns[1].markers == "999, ?"


def test_html_in_names_is_text(client, folder, server):
    bad = "<script>alert(1)</script>"
    (folder / "evil.csv").write_text(
        f'"{bad}",y\n' + "".join(f"{k % 7},{k % 2}\n" for k in range(50))
    )
    assert client.send("/table/draft", {"table": "evil.csv", "target": "y"}).status == 303
    (folder / "models").mkdir(exist_ok=True)
    (folder / "models" / "<img src=x onerror=alert(1)>.json").write_text("{}")
    client.send("/budget/open", {"dataset": bad, "epsilon": "1", "delta": "1e-6"})
    client.send("/budget/act", {"dataset": bad, "act": "grant", "person": bad, "epsilon": "0.5"})
    for path in ("/table?table=evil.csv", "/fit?table=evil.csv", "/budget", "/models"):
        text = client.ask("GET", path).text
        assert bad not in text
        assert "<img src=x" not in text
    assert "&lt;script&gt;" in client.ask("GET", "/budget").text
    (folder / "evil.csv").unlink()
    (folder / "evil.schema.toml").unlink()


def test_files_that_unpack_to_much_more_are_read_elsewhere(client, server, folder):
    """A spreadsheet of 300 KB with 100 MB of cells: the server does not grow with it."""
    row = f'<row><c t="inlineStr"><is><t>{"x" * 1000}</t></is></c><c><v>1</v></c></row>'
    assert client.upload("bomb.xlsx", spreadsheet(row * 100_000)).status == 303

    def megabytes():
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) >> 10

    before = megabytes()
    assert client.ask("GET", "/table?table=bomb.xlsx").status in (200, 400)
    assert megabytes() < before + 50
    (folder / "bomb.xlsx").unlink()


def spreadsheet(rows):
    """An Excel file with these rows, as XML."""
    kinds = "http://schemas.openxmlformats.org/package/2006/content-types"
    related = "http://schemas.openxmlformats.org/package/2006/relationships"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    sheet = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{kinds}"><Default Extension="rels" ContentType='
        '"application/vnd.openxmlformats-package.relationships+xml"/><Override PartName='
        f'"/xl/workbook.xml" ContentType="{sheet}.sheet.main+xml"/><Override PartName='
        f'"/xl/sheet1.xml" ContentType="{sheet}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{related}"><Relationship Id="r1" Type='
        f'"{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets><sheet name="a" '
        'sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{related}"><Relationship Id="r1" '
        f'Type="{office}/worksheet" Target="sheet1.xml"/></Relationships>',
        "xl/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>',
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, f'<?xml version="1.0"?>{text}')
    return made.getvalue()


def test_a_cookie_from_elsewhere_is_not_taken_over(server):
    """Session fixation: whoever plants a cookie does not know the one that a login gives."""
    planted = "hushfit_studio=planted"
    answer = server.client().ask("GET", f"/?token={server.token}", cookie=None, Cookie=planted)
    assert "planted" not in answer.headers["set-cookie"]
    asked = server.client().ask("GET", "/budget", cookie=None, Cookie=planted)
    assert asked.status == 403


def test_idle_connections_are_closed_and_slow_answers_are_not(monkeypatch):
    """Slow-loris: a connection without a request, or with half of one, does not stay."""
    monkeypatch.setattr(_connections, "SECONDS", 0.2)

    async def slow(scope, receive, send):
        await asyncio.sleep(1.0)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"here"})

    async def heard(text):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(text.encode())
        try:
            return await asyncio.wait_for(reader.read(), WAIT)
        finally:
            writer.close()

    async def tried():
        nonlocal port
        config = uvicorn.Config(slow, log_level="critical")
        state = uvicorn.server.ServerState()
        made = await asyncio.get_running_loop().create_server(
            lambda: _connections.PatientProtocol(config, state, {}), "127.0.0.1", 0
        )
        port = made.sockets[0].getsockname()[1]
        async with made:
            return [
                await heard(text)
                for text in ("", "GET / HTTP/1.1\r\nHost:", "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            ]

    port = 0
    nothing, half, whole = asyncio.run(tried())
    assert (nothing, half) == (b"", b"")
    assert b"here" in whole


def test_a_ledger_that_is_replaced_or_damaged_is_told(client, folder):
    """Under a running server, which keeps none of its contents beyond a request."""
    place = folder / "ledger.db"
    kept = place.read_bytes()
    try:
        place.write_bytes(kept[:5000] + os.urandom(3000))
        answer = client.ask("GET", "/budget")
        assert answer.status == 400
        assert "ledger" in answer.text
        place.unlink()
        assert "no account yet" in client.ask("GET", "/budget").text
        assert client.start_fit("4" * 32).status == 400
    finally:
        place.write_bytes(kept)
    assert "adult" in client.ask("GET", "/budget").text


def test_the_password_of_a_database_is_in_no_command(folder):
    """Commands are shown on pages, and their arguments to all users of the machine."""
    for address in (
        "postgresql://svc:s%23cret@db:5432/ledger?sslmode=require",
        "postgresql://svc@db:5432/ledger?sslmode=require&password=s%23cret",
    ):
        settings = Settings(folder, ledger=address)
        assert settings.location == "postgresql://svc@db:5432/ledger?sslmode=require"
        assert settings.environment == {"PGPASSWORD": "s#cret"}
        assert settings.ledger_path() == address
    assert Settings(folder).environment == {}


def test_one_studio_runs_the_fits_of_a_folder(folder, server, tmp_path, unspent):
    """Another one would call the fits of this one stopped, and offer to pay for them again."""
    done = subprocess.run(
        [sys.executable, "-m", "hushfit", "studio", "--no-open", "--folder", str(folder)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "is still running in" in done.stderr
    # A fit that outlives its server goes on holding the lock.
    held = _jobs._lock_of(tmp_path / ".studio")
    fit = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[held]
    )
    os.close(held)
    with pytest.raises(InvalidArgument, match="a fit that one has started"):
        _jobs._lock_of(tmp_path / ".studio")
    fit.communicate(b"\n")
    os.close(_jobs._lock_of(tmp_path / ".studio"))


def test_sessions_are_apart(server, client, unspent):
    """Form tokens of one session are of no use in another."""
    other = server.client()
    assert other.cookie != client.cookie
    assert other.csrf != client.csrf
    assert other.send("/fit/start", {"csrf": client.csrf, "key": "2" * 32, **FIT}).status == 400


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_second_user_of_this_machine_gets_nothing(server, folder):
    """Neither from the port, nor from the list of processes, nor from files."""
    assert (folder / ".studio").stat().st_mode & 0o077 == 0
    door = doorway(Settings(folder), server.address)
    assert door.stat().st_mode & 0o077 == 0
    assert server.token in door.read_text()
    program = f"""
import http.client, os, pathlib, sys
token = sys.stdin.read().encode()
"x".encode("idna")  # loaded while Python's own folder can be read
os.setgid(65534); os.setuid(65534)
connection = http.client.HTTPConnection({server.host!r})
connection.request("GET", "{server.root}/budget")
print(connection.getresponse().status)
def read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b"closed"
seen = map(read, pathlib.Path("/proc").glob("[0-9]*/cmdline"))
print(any(token in line for line in seen))
print(read(pathlib.Path("/proc/{server.process.pid}/environ")).decode()[:6])
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        input=server.token,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["403", "False", "closed"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_may_look_without_the_list_of_fits(tmp_path):
    """An officer who can read the ledger, and not what belongs to who runs fits."""
    for parent in takewhile(lambda one: one != Path(gettempdir()), (tmp_path, *tmp_path.parents)):
        parent.chmod(0o711)  # pytest makes folders for its own user alone
    os.close(_jobs._lock_of(tmp_path / ".studio"))
    (tmp_path / ".studio" / "tables.json").write_text('{"t.csv": "adult"}')

    def look(tell):
        os.setuid(65534)
        tell(len(_jobs.Jobs(Settings(tmp_path, read_only=True)).all()))
        tell(Assigned(tmp_path).accounts())
        try:
            _jobs.Jobs(Settings(tmp_path))
        except InvalidArgument as error:
            tell("--read-only" in str(error))

    with forked(look) as (_, heard):
        assert heard() == ["0", "{}", "True"]


def test_read_only_pages_take_no_form_and_change_nothing(folder, unspent):
    """Beside another studio, whose running fits stay what they are."""
    job = _jobs.Job("e" * 32, "alice", "adult", "m.json", (("fit",),), _jobs.now(), "running")
    place = folder / ".studio" / "jobs" / f"{job.key}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(asdict(job)))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    server = Server(folder, "--read-only")
    try:
        officer = server.client()
        assert "running" in officer.ask("GET", "/fit").text
        assert officer.csrf == ""  # no form is shown
        assert "adult" in officer.ask("GET", "/budget").text
        for path, fields in ACTS.items():
            answer = officer.send(path, fields)
            assert answer.status == 403
            assert "You may look" in answer.text
        assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before
    finally:
        server.kill()
        place.unlink()


def test_other_machines_need_tls_and_accounts(folder, capsys, tmp_path):
    for given in ({}, {"accounts": True}, {"certificate": tmp_path, "key": tmp_path}):
        with pytest.raises(InvalidArgument, match="is not a loopback address"):
            Settings(folder, host="0.0.0.0", **given)
    for host in ("127.0.0.1", "127.0.0.7", "::1", "localhost"):
        assert Settings(folder, host=host).is_loopback
    assert run(["studio", "--folder", str(folder), "--host", "0.0.0.0", "--no-open"]) == 2
    assert "--tls-cert" in capsys.readouterr().err


def test_downloads_and_the_report_in_a_sandbox(client, folder):
    key = secrets.token_hex(16)
    client.start_fit(key, epsilon="0.2")
    assert "Done." in client.ended(key)
    name = f"adult-logistic-{key}.json"
    assert json.loads(client.ask("GET", f"/models/{name}/json").text)["format"] == "hushfit-model"
    assert client.ask("GET", f"/models/{name}/onnx").status == 200
    assert client.ask("GET", f"/models/{name}/card").text.startswith("---")
    report = client.ask("GET", f"/models/{name}/report")
    policy = report.headers["content-security-policy"]
    assert "sandbox allow-scripts" in policy
    assert "allow-same-origin" not in policy
    assert "It is as the ledger recorded it" in client.ask("GET", f"/models/{name}/verify").text
    model = folder / "models" / name
    model.write_text(model.read_text().replace('"epsilon": 0.2', '"epsilon": 0.1', 1))
    assert "It is as the ledger" not in client.ask("GET", f"/models/{name}/verify").text


def test_the_python_of_a_review_runs(client, folder, monkeypatch):
    asked = urlencode({**FIT, "epsilon": "0.1", "key": "c" * 32})
    page = client.ask("GET", f"/fit/review?{asked}").text

    program = html.unescape(
        page.partition('<pre id="python" tabindex="0">')[2].partition("</pre>")[0]
    )
    monkeypatch.chdir(folder)
    before = len(Ledger("ledger.db", dataset="adult").entries)
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        exec(program, {})
    assert "epsilon=0.1" in out.getvalue()
    assert len(Ledger("ledger.db", dataset="adult").entries) == before + 1


def test_particular_options_are_in_the_command_and_strange_ones_refused(client, unspent):
    asked = {**FIT, "key": "d" * 32, "intervals": "1", "features": "additive"}
    page = client.ask("GET", f"/fit/review?{urlencode({**asked, 'penalty': 'l1', 'alpha': '.1'})}")
    line = "--inference --features additive --penalty l1 --alpha .1"
    assert line in page.text
    assert "from hushfit.cli import run" in page.text  # the same in Python
    for field, value in (("features", "x"), ("penalty", "--seed"), ("alpha", "--seed=1")):
        assert client.ask("GET", f"/fit/review?{urlencode({**asked, field: value})}").status == 400


def test_a_fit_with_intervals(client):
    key = secrets.token_hex(16)
    client.start_fit(key, epsilon="1", intervals="1")
    assert "Done." in client.ended(key)
    report = client.ask("GET", f"/models/adult-logistic-{key}.json/report").text
    assert "standard error" in report


def test_a_form_that_cannot_be_saved_keeps_what_was_entered(client, folder):
    """Pages are not kept by the browser, so its button would lose every field."""
    path = folder / "train.schema.toml"
    before = path.read_text(encoding="utf-8")
    fields = {"table": "train.csv", "c0.kind": "categorical", "c0.labels": "<=50K\n>50K"}
    fields |= {"c1.kind": "numeric", "c1.low": "17", "c1.high": "-3", "c1.source": "the survey"}
    fields |= {"c1.use": "1", "c2.kind": "categorical", "c2.labels": "Female\nMale\n<b>"}
    answer = client.send("/table/save", fields)
    assert answer.status == 400
    assert "column &#39;age&#39; has the range [17.0, -3.0]" in answer.text
    for kept in ('value="-3"', 'value="the survey"', "Female\nMale\n&lt;b&gt;</textarea>"):
        assert kept in answer.text
    assert "<b>" not in answer.text.partition("Female")[2]
    assert [
        f'name="c{k}.use" type="checkbox" value="1" checked' in answer.text for k in (1, 2)
    ] == [
        True,
        False,
    ]
    assert path.read_text(encoding="utf-8") == before
