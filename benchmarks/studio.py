"""Load on the studio: readers of pages while fits wait in the queue.

``python -m benchmarks.studio [--readers 50] [--fits 16] [--seconds 900]`` prints latencies, errors,
how many fits ran at a time, and the largest memory of the server and of a fit. It stops when all
fits have ended, or after some seconds.
"""

import argparse
import http.client
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np

from hushfit import Ledger
from hushfit.cli._demo import write_adult

PAGES = ("table", "plan", "fit", "budget", "models")
SCHEMA = """
[target]
name = "income"
kind = "categorical"
categories = ["<=50K", ">50K"]
[columns.age]
kind = "numeric"
low = 17
high = 90
[columns.education]
kind = "categorical"
categories = ["Bachelors", "HS-grad", "Masters"]
"""


@dataclass
class Studio:
    """A studio in a folder, and a session with it."""

    folder: Path
    process: subprocess.Popen[str] = field(init=False)

    def __post_init__(self) -> None:
        line = [sys.executable, "-m", "hushfit", "studio", "--no-open", "--folder", self.folder]
        self.process = subprocess.Popen(
            line, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().split()[-1]
        parts = urlsplit(self.address)
        self.host, self.root = parts.netloc, parts.path.rstrip("/")
        self.cookie = self.ask(f"/?{parts.query}", "")[1].partition(";")[0]
        self.csrf = re.search('name="csrf" value="([^"]+)"', self.ask("/budget")[2])[1]

    def ask(
        self, path: str, cookie: str | None = None, fields: dict[str, str] | None = None
    ) -> tuple[int, str, str]:
        """Status, new cookie and text of a page."""
        connection = http.client.HTTPConnection(self.host, timeout=120)
        headers = {"Cookie": self.cookie if cookie is None else cookie}
        body, method = None, "GET"
        if fields is not None:
            body, method = urlencode({"csrf": self.csrf, **fields}), "POST"
            headers["Origin"] = f"http://{self.host}"
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            connection.request(method, f"{self.root}{path}", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers.get("set-cookie", ""), answer.read().decode()
        finally:
            connection.close()

    def memory(self) -> dict[str, int]:
        """Resident megabytes of the server and of the largest of its fits."""
        found = {"server": _megabytes(self.process.pid), "fit": 0, "fits at a time": 0}
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(path.read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            if parent == self.process.pid:
                found["fit"] = max(found["fit"], _megabytes(int(path.parent.name)))
                found["fits at a time"] += 1
        return found


def _megabytes(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) >> 10 for line in lines if line.startswith("VmRSS")), 0)


def measure(readers: int, fits: int, longest: float) -> dict[str, object]:
    """Put fits into the queue, read pages until all have ended, and summarise."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_adult("train", folder)
        (folder / "train.schema.toml").write_text(SCHEMA, encoding="utf-8")
        Ledger.create(folder / "ledger.db", "adult", 10.0, 1e-6)
        studio = Studio(folder)
        try:
            return _measured(studio, folder, readers, fits, longest)
        finally:
            os.killpg(studio.process.pid, signal.SIGKILL)
            studio.process.wait()


def _measured(
    studio: Studio, folder: Path, readers: int, fits: int, longest: float
) -> dict[str, object]:
    keys = [secrets.token_hex(16) for _ in range(fits)]
    choice = {"table": "train.csv", "dataset": "adult", "model": "logistic", "delta": "1e-6"}
    for key in keys:
        studio.ask("/fit/start", fields={**choice, "epsilon": "0.2", "key": key})
    seconds: list[float] = []
    errors: list[str] = []
    stop = threading.Event()

    def read(start: int) -> None:
        for turn in range(start, 1 << 30):
            if stop.is_set():
                return
            began = time.perf_counter()
            try:
                status, _, _ = studio.ask(f"/{PAGES[turn % len(PAGES)]}")
                if status != 200:
                    errors.append(str(status))
            except OSError as error:
                errors.append(type(error).__name__)
            seconds.append(time.perf_counter() - began)
            stop.wait(1.0)  # a person looks at a page

    threads = [threading.Thread(target=read, args=(k,)) for k in range(readers)]
    for thread in threads:
        thread.start()
    most = {"server": 0, "fit": 0, "fits at a time": 0}
    deadline, ended = time.monotonic() + longest, 0
    while ended < fits and time.monotonic() < deadline:
        time.sleep(0.5)
        most = {key: max(value, most[key]) for key, value in studio.memory().items()}
        ended = sum(studio.ask(f"/fit/jobs/{key}/state")[0] == 286 for key in keys)
    stop.set()
    for thread in threads:
        thread.join()
    paid = len(Ledger(folder / "ledger.db").entries)
    quantiles = dict(zip(("p50", "p95", "max"), np.quantile(seconds, [0.5, 0.95, 1]), strict=True))
    return {
        "readers": readers,
        "fits ended": f"{ended} of {fits}",
        "payments": paid,
        "pages": len(seconds),
        "errors": len(errors),
        **{f"page {name}, s": f"{value:.2f}" for name, value in quantiles.items()},
        **{f"most {name}" + ("" if "time" in name else ", MB"): v for name, v in most.items()},
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--fits", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=900)
    given = parser.parse_args()
    for name, value in measure(given.readers, given.fits, given.seconds).items():
        print(f"{name:24} {value}")


if __name__ == "__main__":
    main()
