"""Killed and concurrent fits: never a model without its charge, never more than the budget."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest_cli import SCHEMA, make_rows, write_csv

from hushfit import Ledger, load_model
from hushfit.privacy.ledger._verify import verify_ledger

RUN = "import sys; from hushfit.cli import run; sys.exit(run(sys.argv[1:]))"


def command(epsilon, output):
    fit = [
        "fit",
        "train.csv",
        "--schema",
        "schema.toml",
        "--epsilon",
        epsilon,
        "--delta",
        1e-5,
        "--dataset",
        "people",
    ]
    return [sys.executable, "-c", RUN, *map(str, fit), "--ledger", "ledger.db", "-o", output]


def prepare(folder, epsilon):
    write_csv(folder / "train.csv", make_rows(400))
    (folder / "schema.toml").write_text(SCHEMA)
    return Ledger.create(folder / "ledger.db", "people", epsilon, 1e-5)


def check(folder):
    """Every model that exists is paid for and in the ledger, and the ledger verifies."""
    assert verify_ledger(folder / "ledger.db") == {"people": []}
    history = Ledger(folder / "ledger.db").account.history()
    charges = {entry.hash for entry in history if entry.kind == "charge"}
    recorded = {entry.body["model"] for entry in history if entry.kind == "model"}
    models = sorted(folder.glob("*.json"))
    for model in models:
        assert load_model(model).receipt.hash in charges
        assert json.loads(model.read_text())["hash"] in recorded
    return len(models), len(charges)


# Loads everything, fits once without a ledger, prints a line, then fits with the ledger: so kills
# hit the fit and not the imports.
REHEARSED = """
import sys, time
from hushfit.cli import run
arguments = sys.argv[1:]
place = arguments.index("--dataset")
for _ in range(2):  # the first time loads and compiles
    start = time.perf_counter()
    assert run([*arguments[:place], "-o", "rehearsal", "--overwrite", "--json"]) == 0
print("ready", time.perf_counter() - start, flush=True)
sys.exit(run(arguments))
"""


def kill_many(folder, kills):
    """Kill fits at random moments between their first and their last line."""
    ledger = prepare(folder, 1e4)
    generator = random.Random(7)
    ended = 0
    for k in range(kills):
        line = [sys.executable, "-c", REHEARSED, *command(0.1, f"killed-{k}.json")[3:]]
        child = subprocess.Popen(
            line, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        ready = next(line for line in child.stdout if line.startswith("ready"))
        time.sleep(float(ready.split()[1]) * generator.uniform(0, 1.5))
        child.send_signal(signal.SIGKILL)
        ended += child.wait() == 0
        child.stdout.close()
        (folder / "rehearsal").unlink(missing_ok=True)
        check(folder)
    models, charges = check(folder)
    print(f"\n{kills} kills, {ended} too late: {charges} charges, {models} models")
    assert ended < kills
    assert ended <= models <= charges == len(ledger.entries) <= kills


def race(folder, processes, fits):
    """Processes that fit as often as they can from one budget."""
    ledger = prepare(folder, 1.0)
    loop = (
        "import sys\nfrom hushfit.cli import run\n"
        "args = sys.argv[3:]\n"
        "codes = [run([*args, '-o', f'{sys.argv[1]}-{k}.json']) for k in range(int(sys.argv[2]))]\n"
        "assert set(codes) <= {0, 3}, codes\nopen(f'{sys.argv[1]}.codes', 'w').write(' "
        "'.join(map(str, codes)))"
    )
    arguments = command(0.3, "x")[3:-2]
    start = time.perf_counter()
    children = [
        subprocess.Popen(
            [sys.executable, "-c", loop, f"p{k}", str(fits), *arguments],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for k in range(processes)
    ]
    for child in children:
        _, result = child.communicate()
        assert child.returncode == 0, result
    seconds = time.perf_counter() - start
    codes = [
        int(code) for k in range(processes) for code in (folder / f"p{k}.codes").read_text().split()
    ]
    models, charges = check(folder)
    print(
        f"\n{processes} processes x {fits} fits: {charges} paid in {seconds:.1f} s, "
        f"{len(codes) / seconds:.1f} attempts a second"
    )
    assert len(codes) == processes * fits
    assert codes.count(0) == models == charges
    assert codes.count(3) == len(codes) - charges > 0
    assert ledger.spent().epsilon <= 1.0


def test_a_killed_fit_leaves_no_unpaid_model(tmp_path):
    kill_many(tmp_path, 4)


def test_racing_fits_never_overspend(tmp_path):
    race(tmp_path, 2, 5)


@pytest.mark.slow
def test_five_hundred_kills(tmp_path):
    kill_many(tmp_path, 500)


@pytest.mark.slow
def test_sixteen_processes_times_twenty_fits(tmp_path):
    race(tmp_path, 16, 20)


def test_a_crash_between_payment_and_model_leaves_the_charge(tmp_path):
    """The critical moment: the process is killed when the curator answers for the first time."""
    ledger = prepare(tmp_path, 1.0)
    die = (
        "import os, signal, sys\nfrom hushfit.release.curator import Curator\n"
        "Curator.release = lambda *given: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from hushfit.cli import run\nrun(sys.argv[1:])"
    )
    arguments = command(0.3, "model.json")[3:]
    done = subprocess.run(
        [sys.executable, "-c", die, *arguments], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert len(ledger.entries) == 1
    assert not Path(tmp_path / "model.json").exists()
    assert check(tmp_path) == (0, 1)
    leftovers = [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]
    assert leftovers == []
