"""Scattering features and the default linear model on MNIST and Fashion-MNIST.

``python -m benchmarks.public_features`` fits every cell that is not in
``benchmarks/results/public_features.json`` yet, and writes the table into
``docs/public-features.md``. Features are computed once
and kept in ``out/public_features``. The images are read from the folder that the environment
variable HUSHFIT_DATA names, or from ``../shared/data``.
"""

import argparse
import json
import resource
import statistics
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._report import ROOT, markdown, write_between
from benchmarks.networks import DATA, FOLDERS
from hushfit import PrivateLogisticRegression, PublicFeatures
from hushfit.errors import InsecureNoiseWarning
from hushfit.features import ScatteringMap
from hushfit.torch import load_mnist

RESULTS = Path(__file__).with_name("results") / "public_features.json"
KEPT = Path("out") / "public_features"
PAGE = ROOT / "docs" / "public-features.md"
MARKS = ("<!-- public features: begin -->", "<!-- public features: end -->")
# Accuracies that others report at delta 1e-5 after tuning: Tramer and Boneh (2021), a linear model
# of scattering features; Papernot et al. (2020), a small network.
TUNED = {("mnist", 3.0): ".987; network .981", ("fashion", 3.0): ".897"}
EPSILONS = (3.0, 1.0, 0.5)
SEEDS = 3
DELTA, ADJACENCY = 1e-5, "add-remove"


def rows(data: str, split: str) -> tuple[Any, Any]:
    """Features and labels of a set; computed if they are not on disk."""
    images, labels = load_mnist(DATA / FOLDERS[data], split)  # pixels in [-1, 1]
    path = KEPT / f"{data}-{split}.npy"
    if not path.exists():
        step = PublicFeatures(ScatteringMap(images.shape[2:]), bounds=(-1, 1))
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, step.fit_transform(images.reshape(len(images), -1)))
    return np.load(path), labels


def fitted(data: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Accuracy and log-loss on the test images of one fit with no setting touched."""
    X, y = rows(data, "train")
    model = PrivateLogisticRegression(
        epsilon=epsilon, delta=DELTA, adjacency=ADJACENCY, classes=range(10), random_state=seed
    )
    start, used = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        model.fit(X, y)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - used
    del X
    held_out, labels = rows(data, "test")
    logs = model.predict_log_proba(held_out)
    return {
        "data": data,
        "epsilon": epsilon,
        "delta": DELTA,
        "adjacency": ADJACENCY,
        "rows": len(y),
        "columns": held_out.shape[1],
        "seed": seed,
        "steps": model.n_iter_,
        "accuracy": float((logs.argmax(axis=1) == labels).mean()),
        "log_loss": -float(logs[np.arange(len(labels)), labels].mean()),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),
        "peak_gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def stored() -> list[dict[str, Any]]:
    """Results so far."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else []


def summary(lines: list[dict[str, Any]]) -> str:
    """Mean accuracy and log-loss of each cell, with their spread over the seeds."""
    cells = []
    for data, epsilon in product(FOLDERS, EPSILONS):
        own = [one for one in lines if (one["data"], one["epsilon"]) == (data, epsilon)]
        if own:
            accuracies = [one["accuracy"] for one in own]
            spread = f"{statistics.stdev(accuracies):.4f}" if len(own) > 1 else "-"
            loss = statistics.mean(one["log_loss"] for one in own)
            mean = f"{statistics.mean(accuracies):.4f}"
            tuned = TUNED.get((data, epsilon), "-")
            cells.append([data, f"{epsilon:g}", mean, spread, f"{loss:.3f}", str(len(own)), tuned])
    head = ["set", "epsilon", "accuracy", "std", "log-loss", "draws", "literature, tuned"]
    return markdown(head, cells) if cells else "Not measured yet."


def main() -> None:
    """Fit what is missing, then print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.public_features", description=__doc__
    )
    parser.add_argument("--epsilon", type=float, nargs="*", default=EPSILONS)
    parser.add_argument("--data", choices=list(FOLDERS), nargs="*", default=list(FOLDERS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    given = parser.parse_args()
    keys = ("data", "epsilon", "seed")
    for seed, epsilon, data in product(range(given.seeds), given.epsilon, given.data):
        if any(tuple(one[key] for key in keys) == (data, epsilon, seed) for one in stored()):
            continue
        line = fitted(data, epsilon, seed)
        print(json.dumps(line), flush=True)
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps([*stored(), line], indent=1) + "\n")
    print(summary(stored()))
    write_between(PAGE, MARKS, [summary(stored())])


if __name__ == "__main__":
    main()
