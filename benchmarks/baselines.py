"""DP-SGD of hushfit against DP-SGD of other libraries, at the same add-remove guarantee:
``python -m benchmarks.baselines [--quick]``.

Logistic regression on the two UCI parts of Adult. Opacus and jax-privacy are in separate venvs
under ``out/``; a missing one is skipped with a message. All use the same float32 rows and the same
number of epochs with Poisson batches of the same expected size. Times are of training alone, for
the second fit in a process; noise calibration and compilation by jax are printed next to them.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._report import OUT, ROOT, Measurement, plain, publish, speed_table
from benchmarks.speed import OPACUS_PYTHON
from hushfit.data import SecureCoins, SeededCoins, as_source
from hushfit.datasets import load_adult
from hushfit.losses import Logistic
from hushfit.penalties import Zero
from hushfit.privacy import Budget, Relation, SecureSampler, SeededSampler, calibrate, usable
from hushfit.problem import Problem
from hushfit.release import PoissonBatch
from hushfit.release.curator import Curator
from hushfit.solvers import DPSGD, run

EPSILON, DELTA = 1.0, 1e-6
JAX_PYTHON = OUT / "jax-venv" / "bin" / "python"
ARRAYS = OUT / "opacus-arrays.npz"
# Batch, epochs, learning rate of the other libraries: the best that benchmarks.speed finds.
SETTINGS = [(256, 2, 4.0), (512, 5, 4.0)]
GOAL = 1 / 30
# A fit takes a few hundredths of a second, so that a single pause of the machine would dominate
# its time.
FITS_IN_A_TURN = 5


@dataclass(frozen=True)
class Trained:
    """One fit: seconds of training per epoch, processor seconds per epoch, seconds before training,
    and accuracy on the test part.
    """

    per_epoch: float
    worked: float
    before: float
    accuracy: float


Fit = Callable[[int, int, float, int], Trained]


def elsewhere(python: Path, script: str) -> Fit:
    """Fits by another library, in its own interpreter; one thread is the fastest for batches
    this small.
    """

    def fit(batch: int, epochs: int, lr: float, seed: int) -> Trained:
        command = [
            python,
            ROOT / "benchmarks" / script,
            ARRAYS,
            "--epsilon",
            EPSILON,
            "--delta",
            DELTA,
        ]
        # The first fit of a process includes the setup of its library; only the second one counts.
        command += ["--tries", json.dumps([[batch, 1, lr, seed], [batch, epochs, lr, seed]])]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [str(c) for c in command],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        record = json.loads(done.stdout.splitlines()[-1])
        before = record["noise_search"] + record.get("compiling", 0.0)
        return Trained(
            record["training"] / epochs, record["processor"] / epochs, before, record["accuracy"]
        )

    return fit


def here(secure: bool) -> Fit:
    """Fits by hushfit with its default step size, and with secure or seeded noise and batches."""
    stored = np.load(ARRAYS)
    X, y, X_test, y_test = (stored[name] for name in ("X_train", "y_train", "X_test", "y_test"))
    source = as_source(X.astype(np.float32), np.where(y == 1, 1.0, -1.0))
    problem = Problem(Logistic(), Zero(), *X.shape, Relation.ADD_REMOVE)

    def once(batch: int, epochs: int, seed: int) -> Trained:
        start, n = time.perf_counter(), problem.n_units
        solver = DPSGD(steps=round(epochs * n / batch), sampling=PoissonBatch(batch / n))
        plan, budget = solver.plan(problem), usable(Budget(EPSILON, DELTA))[0]
        strength = calibrate(
            lambda mu: plan.cost(plan.multipliers(mu, n), n), budget, problem.relation
        )
        sampler, coins = (
            (SecureSampler(), SecureCoins()) if secure else (SeededSampler(seed), SeededCoins(seed))
        )
        curator = Curator(
            source, plan, plan.multipliers(strength, n), problem.relation, sampler, coins
        )
        ready, worked = time.perf_counter(), time.process_time()
        w = run(solver, problem, curator).w
        done, worked = time.perf_counter(), time.process_time() - worked
        accuracy = float(np.mean((X_test @ w[:-1] + w[-1] > 0) == (y_test == 1)))
        return Trained((done - ready) / epochs, worked / epochs, ready - start, accuracy)

    def fit(batch: int, epochs: int, lr: float, seed: int) -> Trained:
        with threadpool_limits(1):  # as for the others
            fits = [once(batch, epochs, seed) for _ in range(FITS_IN_A_TURN)]
        return sorted(fits, key=lambda fit: fit.per_epoch)[FITS_IN_A_TURN // 2]

    return fit


def libraries() -> dict[str, Fit]:
    """The installed libraries."""
    found: dict[str, Fit] = {
        "hushfit, ordinary noise": here(secure=False),
        "hushfit, secure noise": here(secure=True),
    }
    for name, python, script in (
        ("Opacus", OPACUS_PYTHON, "opacus_fit.py"),
        ("jax-privacy", JAX_PYTHON, "jax_fit.py"),
    ):
        if python.exists():
            found[name] = elsewhere(python, script)
        else:
            print(
                f"{name} skipped: no venv at {python.relative_to(ROOT)}",
                file=sys.stderr,
                flush=True,
            )
    return found


def measure(
    fits: dict[str, Fit], setting: tuple[int, int, float], rounds: int
) -> list[Measurement]:
    """All libraries alternately, several times, so that a busy machine slows all of them alike."""
    batch, epochs, lr = setting
    for name in ("hushfit, ordinary noise", "hushfit, secure noise"):
        fits[name](batch, 1, lr, 0)  # loads compiled code
    turns = [
        {name: fit(batch, epochs, lr, seed) for name, fit in fits.items()} for seed in range(rounds)
    ]
    middle = {name: statistics.median(turn[name].per_epoch for turn in turns) for name in fits}
    found = []
    for name in fits:
        accuracy = statistics.fmean(turn[name].accuracy for turn in turns)
        before = statistics.median(turn[name].before for turn in turns)
        note = (
            f"batch {batch}, {epochs} epochs: accuracy {accuracy:.4f}, {before:.2f} s before "
            "training"
        )
        found.append(Measurement(f"{name}: epoch", 1e3 * middle[name], unit="ms", note=note))
    for library in [name for name in fits if not name.startswith("hushfit")]:
        for ours in ("ordinary", "secure"):
            # Opacus and jax-privacy use ordinary random generators, so the goal is for ordinary
            # noise.
            goal = GOAL if library == "Opacus" and ours == "ordinary" else None
            ratio = middle[f"hushfit, {ours} noise"] / middle[library]
            # On a busy machine, waiting affects short and long fits differently; processor time is
            # not affected.
            work = statistics.median(
                turn[f"hushfit, {ours} noise"].worked / turn[library].worked for turn in turns
            )
            note = f"batch {batch}; {work:.4f} in processor time"
            found.append(
                Measurement(f"DP-SGD epoch, {ours} noise / {library}", ratio, goal, note=note)
            )
    return found


def run_all(quick: bool) -> list[Measurement]:
    """Measure and publish the whole table."""
    OUT.mkdir(exist_ok=True)
    (X, y), (X_test, y_test) = (
        load_adult(split=part, return_X_y=True) for part in ("train", "test")
    )
    np.savez(ARRAYS, X_train=X, y_train=y, X_test=X_test, y_test=y_test)
    fits = libraries()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            line
            for setting in SETTINGS[: 1 if quick else None]
            for line in measure(fits, setting, 2 if quick else 5)
        ]
    publish(
        "baselines",
        "DP-SGD here and elsewhere (add-remove, Adult)",
        speed_table(found),
        plain(found),
    )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.baselines", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one setting, twice")
    return 1 if any(line.verdict == "FAIL" for line in run_all(parser.parse_args().quick)) else 0


if __name__ == "__main__":
    sys.exit(main())
