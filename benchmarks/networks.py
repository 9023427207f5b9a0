"""Networks: speed of clipped gradients, and accuracy on MNIST and Fashion-MNIST.

``python -m benchmarks.networks speed`` measures ratios side by side in one run;
``python -m benchmarks.networks accuracy --data mnist --network cnn --solver auto --epsilon 3``
fits networks and adds a line to ``benchmarks/results/networks.json``. The images are read from the
folder that the environment variable HUSHFIT_DATA names, or from ``../shared/data``.
"""

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks._report import OUT, Measurement, markdown
from benchmarks.network_modules import NETWORKS
from hushfit.data import SecureCoins
from hushfit.errors import InsecureNoiseWarning
from hushfit.privacy.noise import AheadSampler, SecureSampler
from hushfit.release import Randomness, unpaid_curator
from hushfit.release.plan import Quote
from hushfit.torch import (
    ArrayRecords,
    Network,
    NetworkGradient,
    NetworkRows,
    PrivateNeuralClassifier,
    RecordShape,
    WrittenOut,
    load_mnist,
)
from hushfit.torch._engines import VMAP_ROWS
from hushfit.torch.solvers import (
    NETWORK_SOLVERS,
    NetworkAdam,
    NetworkBLS,
    NetworkSGD,
)

RESULTS = Path(__file__).with_name("results") / "networks.json"
DATA = Path(os.environ.get("HUSHFIT_DATA", Path(__file__).parents[2] / "shared" / "data"))
FOLDERS = {"mnist": "mnist", "fashion": "fashion-mnist"}
DELTA = 1e-5
REPEATS = 15
STEPS = 8  # whose noise is measured
OPACUS_VENV = OUT / "opacus-venv"  # made by benchmarks.speed


# The thesis' settings, at honest accounting: rate 1/200, clip 3, 300 steps.
SOLVERS: dict[str, Any] = {
    "auto": "auto",
    "thesis-sgd": NetworkSGD(300, 1 / 200, 3.0, learning_rate=0.2),
    "thesis-adam": NetworkAdam(300, 1 / 200, 3.0),
    "bls": NetworkBLS(expected_steps=300, rate=1 / 200, clip=3.0, objective_clip=3.0),
    "bls-cheb": NetworkBLS("cheb", 300, 1 / 200, 3.0, 3.0),
    "bls-ac": NetworkBLS("ac", 300, 1 / 200, 3.0, 3.0),
}


def made(name: str, seed: int = 0) -> nn.Module:
    """A network with weights from a public seed."""
    torch.manual_seed(seed)
    return NETWORKS[name]()


def side_by_side(
    clock: Callable[[], float], work: dict[str, Callable[[], float | None]]
) -> dict[str, float]:
    """Median seconds of each, measured in turn: by a clock, or as the work itself says."""
    taken: dict[str, list[float]] = {name: [] for name in work}
    for function in work.values():
        function()
    for _ in range(REPEATS):
        for name, function in work.items():
            start = clock()
            told = function()
            taken[name].append(clock() - start if told is None else told)
    return {name: statistics.median(times) for name, times in taken.items()}


def plain_gradient(module: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    """The gradient of the summed loss, as torch computes it."""
    module.zero_grad()
    nn.functional.cross_entropy(module(x), y, reduction="sum").backward()


class Opacus:
    """Opacus in its own interpreter, asked for one pass at a time."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("opacus_network.py")
        self.process = subprocess.Popen(
            [OPACUS_VENV / "bin" / "python", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, network: str, mode: str) -> float:
        """Seconds of the processor for one sum of clipped gradients."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(network, mode, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())


def extra_memory(work: Callable[[], Any]) -> float:
    """Megabytes that a piece of work needs at its peak, by the system's count of this process."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")

    def read(name: str) -> int:
        return int(
            next(x for x in status.read_text().splitlines() if x.startswith(name)).split()[1]
        )

    ctypes.CDLL(None).malloc_trim(0)  # freed memory would be used again, and not be seen
    Path("/proc/self/clear_refs").write_text("5")
    before = read("VmRSS")
    work()
    return (read("VmHWM") - before) / 1024


def speed(batch: int = 320) -> list[dict[str, Any]]:
    """Clipped gradient sums against plain gradients, Opacus and gradients written out; noise."""
    torch.set_num_threads(1)  # as fits do
    rng, lines = np.random.default_rng(0), []
    installed = any(OPACUS_VENV.glob("lib/*/site-packages/opacus"))
    opacus = Opacus() if installed else None
    X = rng.normal(size=(batch, 1, 28, 28)).astype(np.float32)
    y = rng.integers(0, 10, batch)
    for name in ("mlp", "thesis-cnn", "cnn"):
        module, record = made(name), RecordShape((1, 28, 28), classes=10)
        net = Network.of(
            module, nn.CrossEntropyLoss(), record, batch, "add-remove", physical_batch=batch
        )
        rows = NetworkRows(ArrayRecords(X, y), record)
        query, x = NetworkGradient(net, net.start, 1.0), torch.from_numpy(X)
        target, written = torch.from_numpy(y), WrittenOut(net.model)

        def one_by_one(written: Any = written, x: Any = x, target: Any = target) -> float:
            start = time.process_time()
            for _, parts in written.parts(x[:VMAP_ROWS], target[:VMAP_ROWS]):
                sum(part.squared_norms() for part in parts)
            return (time.process_time() - start) * batch / VMAP_ROWS  # all chunks are alike

        def clipped(query: Any = query, rows: Any = rows) -> None:
            query(rows, None)

        def summed(query: Any = query, x: Any = x, target: Any = target) -> None:
            sums = torch.empty(query.size)
            shares = torch.ones(len(x), dtype=torch.float64)
            for _, parts in query.problem.engine.parts(x, target):
                weighted = query._clipped(parts, shares)
                weighted.write_rounded(query.problem.model.views(sums), query.clip)

        def plain(module: Any = module, x: Any = x, target: Any = target) -> None:
            plain_gradient(module, x, target)

        work = {
            "plain": plain,
            "summed": summed,
            "clipped": clipped,
            "written_out": one_by_one,
        }
        if opacus is not None:
            work["opacus_ghost"] = lambda name=name: opacus.seconds(name, "ghost")
        # Seconds of the processor: the machine has other work to do.
        times = side_by_side(time.process_time, work)
        memory = {"plain_mb": extra_memory(plain), "clipped_mb": extra_memory(clipped)}
        steps = noise_times(net, rows)
        lines.append({"kind": "speed", "network": name, "batch": batch, **times, **steps, **memory})
        print(json.dumps(lines[-1]))
    return lines


def measurements(lines: list[dict[str, Any]]) -> list[Measurement]:
    """Ratios, with the goals of those that have one."""
    found = []
    for line in lines:
        name, goal = line["network"], 1.3 if line["network"] == "mlp" else 2.5
        note = f"batch {line['batch']}, {1e3 * line['summed']:.1f} ms of the processor"
        ratio = line["summed"] / line["plain"]
        found.append(Measurement(f"{name}: clipped gradient / plain", ratio, goal, note=note))
        note = "with weights set, records read and checked, and a sum in float64"
        ratio = line["clipped"] / line["plain"]
        found.append(Measurement(f"{name}: whole query / plain", ratio, note=note))
        if "opacus_ghost" in line:
            ratio = line["summed"] / line["opacus_ghost"]
            found.append(Measurement(f"{name}: clipped gradient / Opacus ghost", ratio, 0.5))
        ratio = line["summed"] / line["written_out"]
        goal = 1 / 20 if name == "mlp" else None
        found.append(Measurement(f"{name}: clipped gradient / written out", ratio, goal))
        ratio = line["step_with_noise_ahead"] / line["step_without_noise"]
        note = "the busier of two threads; processor time"
        found.append(Measurement(f"{name}: step with exact noise / without", ratio, 1.3, note=note))
        found.append(Measurement(f"{name}: extra memory", line["clipped_mb"], unit="MB"))
    return found


def run() -> list[Measurement]:
    """The speed of networks, for ``make bench``."""
    return measurements(speed())


def noise_times(net: Network, rows: NetworkRows) -> dict[str, float]:
    """Seconds of the processor for a step without noise, with exact noise, and with noise drawn
    ahead: of the busier of its two threads, which is what a step takes on two free cores.

    Steps follow one another as in a fit: no noise is drawn while something else is measured.
    """
    solver, taken = NetworkSGD(1000, 1.0, learning_rate=1e-9), {}
    for name, sampler, multiplier in (
        ("step_without_noise", SecureSampler(), 0.0),
        ("step_with_noise", SecureSampler(), 1.0),
        ("step_with_noise_ahead", AheadSampler(SecureSampler()), 1.0),
    ):
        quote = Quote(solver.plan(net), {"gradient": multiplier}, None)
        randomness = Randomness(sampler, SecureCoins())
        door = unpaid_curator(rows, quote, net.relation, randomness, remember=False)
        state = solver.advance(net, door, solver.begin(net, door))
        own, all_threads = time.thread_time(), time.process_time()
        for _ in range(STEPS):
            state = solver.advance(net, door, state)
        own, all_threads = time.thread_time() - own, time.process_time() - all_threads
        taken[name] = max(own, all_threads - own) / STEPS
    return taken


def accuracy(
    data: str, network: str, solver: str, epsilon: float, seed: int, rows: int, quick_noise: bool
) -> dict[str, Any]:
    """Test accuracy of one fit."""
    X, y = load_mnist(DATA / FOLDERS[data])
    held_out = load_mnist(DATA / FOLDERS[data], "test")
    chosen = SOLVERS.get(solver, solver)
    model = PrivateNeuralClassifier(
        made(network, seed),
        epsilon=epsilon,
        delta=DELTA,
        adjacency="add-remove",
        classes=range(10),
        solver=chosen,
        random_state=seed if quick_noise else None,
        verbose=1,
    )
    start, used = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        model.fit(X[:rows], y[:rows])
    return {
        "kind": "accuracy",
        "data": data,
        "network": network,
        "solver": solver,
        "epsilon": epsilon,
        "delta": DELTA,
        "adjacency": "add-remove",
        "rows": min(rows, len(X)),
        "seed": seed,
        "steps": model.n_iter_,
        "accuracy": float(model.score(*held_out)),
        "seconds": round(time.perf_counter() - start, 1),
        "cpu_seconds": round(time.process_time() - used, 1),
    }


def store(line: dict[str, Any]) -> None:
    """Add a result to the stored ones, in place of one of the same setting."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    keys = ("kind", "data", "network", "solver", "epsilon", "rows", "seed", "batch")
    kept = [one for one in known if any(one.get(key) != line.get(key) for key in keys)]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps([*kept, line], indent=1) + "\n")


def main() -> None:
    """Run one of the two parts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.networks", description=__doc__)
    parser.add_argument("part", choices=["speed", "accuracy"])
    parser.add_argument("--data", choices=list(FOLDERS), default="mnist")
    parser.add_argument("--network", choices=list(NETWORKS), default="cnn")
    parser.add_argument("--solver", choices=[*SOLVERS, *NETWORK_SOLVERS], default="auto")
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument(
        "--quick-noise", action="store_true", help="seeded noise, which is faster and insecure"
    )
    given = parser.parse_args()
    if given.part == "speed":
        lines = speed()
        for line in lines:
            store(line)
        rows = [one.cells() for one in measurements(lines)]
        print(markdown(["measured", "value", "goal", "verdict", "how"], rows))
        return
    for seed in range(given.seeds):
        line = accuracy(
            given.data,
            given.network,
            given.solver,
            given.epsilon,
            seed,
            given.rows,
            given.quick_noise,
        )
        print(json.dumps(line))
        store(line)


if __name__ == "__main__":
    main()
