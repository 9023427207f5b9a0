"""What tests of the studio share: a server in a folder of its own, a browser, plain requests."""

import http.client
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from urllib.parse import urlencode, urlsplit

import pytest

from hushfit import Ledger
from hushfit.cli import run
from hushfit.data.schema import SchemaFile, read_schema, schema_to_toml
from hushfit.privacy.ledger import KEY_VARIABLE, issue_token

REMEDY = (
    "Browser tests need Chromium and its driver. On Debian or Ubuntu run `apt-get install chromium "
    "chromium-driver`; `make test` does so by itself where it is run by root."
)
UNTIL = "2030-01-01"
WAIT = float(os.environ.get("HUSHFIT_TEST_WAIT", "300"))


class Server:
    """``hushfit studio`` in a process of its own, with its fits in its process group."""

    def __init__(self, folder, *options):
        self.folder, self._options = folder, options
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hushfit", "studio", "--no-open", "--folder", str(self.folder)]
            + [*self._options],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        address = self.process.stdout.readline().split()[-1]
        parts = urlsplit(address)
        self.address, self.host = address, parts.netloc
        self.root, self.token = parts.path.rstrip("/"), parts.query.removeprefix("token=")
        self.origin = f"{parts.scheme}://{parts.netloc}"

    def url(self, path):
        return f"{self.origin}{self.root}/{path}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        """The server and what it runs, as when a machine loses power."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()

    def client(self, **headers):
        """A browser that has exchanged the token for a cookie, without the browser."""
        return Client(self, **headers)


class Client:
    """Plain requests with a session."""

    def __init__(self, server, **headers):
        self.server, self.headers = server, headers
        answer = self.ask("GET", f"/?token={server.token}", cookie=None)
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        page = self.ask("GET", "/budget").text
        self.csrf = page.partition('name="csrf" value="')[2].partition('"')[0]

    def ask(self, method, path, body=None, cookie="own", origin="own", **headers):
        connection = http.client.HTTPConnection(self.server.host, timeout=WAIT)
        sent = {**self.headers, **headers}
        if cookie == "own":
            sent["Cookie"] = self.cookie
        if origin == "own" and method == "POST":
            sent["Origin"] = self.server.origin
        elif origin not in ("own", None):
            sent["Origin"] = origin
        try:
            connection.request(method, f"{self.server.root}{path}", body, sent)
            answer = connection.getresponse()
            answer.text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        return answer

    def send(self, path, fields, **options):
        body = urlencode({"csrf": self.csrf, **fields})
        kind = "application/x-www-form-urlencoded"
        return self.ask("POST", path, body, **{"Content-Type": kind}, **options)

    def act(self, act, dataset="adult", **fields):
        """An act of an administrator."""
        return self.send("/budget/act", {"dataset": dataset, "act": act, **fields})

    def upload(self, name, contents):
        edge = "edge1234"
        frame = (
            f'--{edge}\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{self.csrf}\r\n'
            f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            "Content-Type: text/csv\r\n\r\n"
        )
        body = frame.encode() + contents + f"\r\n--{edge}--\r\n".encode()
        kind = f"multipart/form-data; boundary={edge}"
        return self.ask("POST", "/table/upload", body, **{"Content-Type": kind})

    def start_fit(self, key, **fields):
        """Confirm a fit of a form that has a key."""
        return self.send("/fit/start", {"key": key, **FIT, **fields})

    def ended(self, key):
        """The page of a fit when it has ended."""
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline:
            page = self.ask("GET", f"/fit/jobs/{key}/state")
            if page.status == 286:
                return page.text
            time.sleep(0.3)
        raise AssertionError(f"the fit has not ended: {page.text}")


FIT = {
    "table": "train.csv",
    "dataset": "adult",
    "model": "logistic",
    "epsilon": "0.5",
    "delta": "1e-6",
    "accept_draft": "1",
}
SCHEMA = """
[target]
name = "income"
kind = "categorical"
categories = ["<=50K", ">50K"]

[columns.age]
kind = "numeric"
low = 17
high = 90
confirm = true

[columns.sex]
kind = "categorical"
categories = ["Female", "Male"]
"""


def write_adult(folder, split="train", rows=2000):
    import pyarrow as pa
    import pyarrow.csv

    from hushfit.datasets import load_adult

    adult = load_adult(split=split)
    table = pa.table({**adult.columns, "income": adult.target}).slice(0, rows)
    pa.csv.write_csv(table, folder / f"{split}.csv")


def draft_adult(folder):
    """A table and its schema of all columns, drafted from the rows and confirmed."""
    write_adult(folder)
    schema = folder / "train.schema.toml"
    line = ["schema", str(folder / "train.csv"), "--target", "income", "-o", str(schema)]
    assert run(line) == 0
    drafted = read_schema(schema)
    schema.write_text(schema_to_toml(SchemaFile(drafted.schema, ()), {}), encoding="utf-8")


def prepare(folder, budget=2.0, token=None):
    """A folder with a table, its schema and an account."""
    write_adult(folder)
    (folder / "train.schema.toml").write_text(SCHEMA, encoding="utf-8")
    return Ledger.create(folder / "ledger.db", "adult", budget, 1e-6, token=token)


@contextmanager
def team_server(folder, elsewhere, budget=1.0):
    """A studio where people log in with tokens of the ledger; lead administers it, and alice and
    bob may spend 0.9 each.
    """
    key = elsewhere / "key"
    key.write_bytes(secrets.token_bytes(32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_VARIABLE, str(key))
        ledger = prepare(folder, budget, issue_token("lead", UNTIL))
        for name in ("alice", "bob"):
            ledger.team.grant(name, 0.9)
        with Server(folder, "--accounts", "--officer", "carol") as server:
            assert logged_in(server, "lead").act("assign", table="train.csv").status == 303
            yield server


def logged_in(server, name, until=UNTIL):
    """A session of a person; None if the login fails."""
    client = Client.__new__(Client)
    client.server, client.headers, client.csrf = server, {}, ""
    answer = client.send("/login", {"token": issue_token(name, until)}, cookie=None)
    if answer.status != 200:
        return None
    client.cookie = answer.headers["set-cookie"].partition(";")[0]
    page = client.ask("GET", "/budget").text
    client.csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
    return client


def make_browser(width=1200):
    """Headless Chromium."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    driver = shutil.which("chromedriver")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if driver is None or program is None:
        pytest.fail(REMEDY)
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu"):
        options.add_argument(f"--{argument}")
    options.add_argument(f"--window-size={width},1400")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(driver))
