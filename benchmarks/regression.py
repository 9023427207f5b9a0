"""Private linear regression against AdaSSP, boosted AdaSSP, TukeyEM and noisy gradient descent.

R2 on test folds, replace-one, delta 1e-6. The library's own column has no setting but the public
ranges. Each rival has its best setting for every cell, chosen on the test folds. Rules of the
library were chosen on ``SETS`` and checked on ``CHECK``. ``TAILS`` and ``COUNTS`` are for
`PrivateHuberRegressor` and `PrivatePoissonRegressor`. Results are stored in
``benchmarks/results/regression.json``; ``--own`` keeps what is stored of the rivals; ``--write``
makes the tables of ``docs/benchmarks.md``.
"""

import argparse
import csv
import json
import lzma
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse as scipy_sparse
from sklearn.linear_model import HuberRegressor, PoissonRegressor

from benchmarks import mixed_sets, sets
from benchmarks._regression_rivals import RIVALS, Rival
from benchmarks._report import ROOT, machine, markdown, write_between
from hushfit import PrivateHuberRegressor, PrivateLinearRegression, PrivatePoissonRegressor
from hushfit.privacy import Budget
from hushfit.solvers import units_needed

EPSILONS = (0.05, 0.1, 0.3, 1.0, 3.0)
DELTA = 1e-6
FOLDS = 5
RESULTS = Path(__file__).parent / "results" / "regression.json"
MARKS = "<!-- regression: begin -->", "<!-- regression: end -->"
GOALS = {
    "bike": (0.23, 0.45, 0.65, 0.70, 0.71),
    "housing": (0.48, 0.61, 0.645, 0.655, 0.655),
}
# Public ranges of the numeric columns, as the tables' descriptions give them.
HOUSING = {
    "longitude": (-125, -114),
    "latitude": (32, 42),
    "housing_median_age": (0, 52),
    "total_rooms": (0, 10_000),
    "total_bedrooms": (0, 2_000),
    "population": (0, 5_000),
    "households": (0, 2_000),
    "median_income": (0, 15),
}
BIKE = dict.fromkeys(("temp", "hum", "windspeed"), (0, 1))
BIKE_CATEGORIES = (
    *("season", "yr", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit"),
)
Table = tuple[Any, np.ndarray]


def _cells(path: Path) -> list[dict[str, str]]:
    with lzma.open(path, "rt") as file:
        return list(csv.DictReader(file))


def _mapped(cells: list[dict[str, str]], ranges: dict[str, Any]) -> list[np.ndarray]:
    """Numeric columns in [-1, 1]; a missing value is the middle of its range."""
    found = []
    for name, (low, high) in ranges.items():
        raw = [float(row[name]) if row[name] else (low + high) / 2 for row in cells]
        found.append(2 * (np.clip(raw, low, high) - low) / (high - low) - 1)
    return found


def _indicators(cells: list[dict[str, str]], names: tuple[str, ...]) -> list[np.ndarray]:
    columns = []
    for name in names:
        values = np.array([row[name] for row in cells])
        columns += [(values == one).astype(float) for one in np.unique(values)]
    return columns


def housing() -> Table:
    cells = _cells(sets.folder() / "housing" / "housing.csv.xz")
    X = np.column_stack([*_mapped(cells, HOUSING), *_indicators(cells, ("ocean_proximity",))])
    y = np.clip([float(row["median_house_value"]) for row in cells], 0, 500_001)
    return X, y / 250_000.5 - 1


def bike() -> Table:
    cells = _cells(sets.folder() / "bike" / "hour.csv.xz")
    X = np.column_stack([*_mapped(cells, BIKE), *_indicators(cells, BIKE_CATEGORIES)])
    return X, np.clip([float(row["cnt"]) for row in cells], 0, 1000) / 500 - 1


def simulated(n: int, d: int, seed: int = 0) -> Callable[[], Table]:
    """Normal columns, four in ten of them with a weight; R2 of the best weights is about .6."""

    def make() -> Table:
        rng = np.random.default_rng(seed)
        X = np.clip(rng.normal(0, 0.3, (n, d)), -1, 1)
        w = rng.normal(size=d) * (rng.random(d) < 0.4)
        signal = X @ w
        t = 0.25 * signal / signal.std() + rng.normal(0, 0.2, n)
        return X, np.clip(t, -1, 1)

    return make


def sparse_table(n: int, d: int, seed: int = 0) -> Table:
    """One entry in fifty, in [0, 1]; fifty columns with a weight."""
    rng = np.random.default_rng(seed)
    X = scipy_sparse.random(
        n, d, 0.02, random_state=seed, format="csr", data_rvs=lambda k: rng.random(k)
    )
    w = np.zeros(d)
    w[:50] = rng.normal(size=50)
    signal = X @ w
    return X, np.clip(0.25 * signal / signal.std() + rng.normal(0, 0.2, n), -1, 1)


def of_table(name: str, rows: int = 20_000) -> Callable[[], Table]:
    """The first number of a mixed table, from its other columns; a sample of the rows."""

    def make() -> Table:
        table = getattr(mixed_sets, name)()
        kept = np.random.default_rng(5).permutation(len(table.y))[:rows]
        X = table.X[kept, 1:]
        numbers = table.numeric.shape[1] - 1
        X[:, :numbers] = 2 * X[:, :numbers] - 1
        return X, 2 * table.numeric[kept, 0] - 1

    return make


def heavy_tails(n: int = 20_000, d: int = 20, seed: int = 0) -> tuple[Table, np.ndarray]:
    """Noise with Student's law of 1.5 degrees of freedom, and the targets without it."""
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(0, 0.3, (n, d)), -1, 1)
    signal = X @ rng.normal(size=d)
    clean = 0.15 * signal / signal.std()
    return (X, np.clip(clean + 0.05 * rng.standard_t(1.5, n), -1, 1)), clean


def wild_bike() -> tuple[Table, np.ndarray]:
    """One target in twenty is the largest one, whatever the hour."""
    X, t = bike()
    wild = np.random.default_rng(0).random(len(t)) < 0.05
    return (X, np.where(wild, 1.0, t)), t


SETS: dict[str, Callable[[], Table]] = {
    "bike": bike,
    "housing": housing,
    "simulated 10,000 x 50": simulated(10_000, 50),
    "simulated 1,000 x 10": simulated(1_000, 10),
}
CHECK: dict[str, Callable[[], Table]] = {
    "adult: age": of_table("adult"),
    "covtype: elevation": of_table("covtype"),
    "credit: limit": of_table("credit"),
    "bank: age": of_table("bank"),
}
CHECK_EPSILONS = (0.1, 1.0)
TAILS: dict[str, Callable[[], tuple[Table, np.ndarray]]] = {
    "heavy tails 20,000 x 20": heavy_tails,
    "bike, 5 % of the targets wild": wild_bike,
}
COUNTS = "bike counts"
OTHER_EPSILONS = (0.1, 0.3, 1.0, 3.0)
# Larger ones, without rivals: one split.
LARGE: dict[str, tuple[Callable[[], Table], tuple[float, ...]]] = {
    "simulated 1,000,000 x 20": (simulated(1_000_000, 20), (0.05, 0.3, 1.0)),
    "simulated 20,000 x 500": (simulated(20_000, 500), (0.3, 1.0, 3.0)),
    "simulated 20,000 x 2,000": (simulated(20_000, 2_000), (1.0, 3.0, 10.0)),
    "CSR 50,000 x 5,000": (lambda: sparse_table(50_000, 5_000), (1.0, 3.0, 10.0)),
}

ALL = (*SETS, *CHECK, *TAILS, COUNTS, *LARGE)


def r2(t: np.ndarray, predicted: np.ndarray) -> float:
    """R2 of predictions clipped to the range of targets."""
    residual = t - np.clip(predicted, -1, 1)
    return float(1 - residual @ residual / np.sum((t - t.mean()) ** 2))


def splits(n: int, folds: int = FOLDS) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    order = np.random.default_rng(0).permutation(n)
    for k in range(folds):
        test = order[k::folds]
        yield np.setdiff1d(order, test), test


Fit = Callable[[Any, np.ndarray, float, int], Callable[[Any], np.ndarray]]


def signed_bounds(X: Any) -> tuple[Any, float]:
    """Columns in [-1, 1] and indicators are as the estimators would map them themselves."""
    low = 0.0 if scipy_sparse.issparse(X) else np.where(X.min(axis=0) < 0, -1.0, 0.0)
    return low, 1.0


def own_fit(kind: type, X: Any, **settings: Any) -> Fit:
    """A fit of an estimator of the library with public ranges and nothing else."""
    bounds = signed_bounds(X)

    def fit(rows: Any, t: np.ndarray, epsilon: float, seed: int) -> Callable[[Any], np.ndarray]:
        model = kind(
            epsilon=epsilon, delta=DELTA, feature_bounds=bounds, random_state=seed, **settings
        )
        return model.fit(rows, t).predict

    return fit


def scores_of(
    fit: Fit,
    table: Table,
    epsilon: float,
    draws: int,
    folds: int = FOLDS,
    truth: np.ndarray | None = None,
    score: Callable[[np.ndarray, np.ndarray], float] | None = None,
) -> list[float]:
    """Scores on the test folds against ``truth``, by default the targets."""
    (X, t), found = table, []
    known, score = t if truth is None else truth, score or r2
    for draw in range(draws):
        for k, (train, test) in enumerate(splits(len(t), FOLDS)):
            if k < folds:
                predict = fit(X[train], t[train], epsilon, 1000 * draw + k)
                found.append(score(known[test], predict(X[test])))
    return found


def own_scores(X: Any, t: np.ndarray, epsilon: float, draws: int, folds: int) -> list[float]:
    fit = own_fit(PrivateLinearRegression, X, target_bounds=(-1, 1))
    return scores_of(fit, (X, t), epsilon, draws, folds)


def without_privacy(kind: Any, **settings: Any) -> Fit:
    return lambda X, t, epsilon, seed: kind(**settings).fit(X, t).predict


def run_tails(name: str, draws: int) -> dict[str, Any]:
    """Heavy tails: fitted with them, scored without them."""
    table, truth = TAILS[name]()
    X = table[0]
    known = scores_of(without_privacy(HuberRegressor, max_iter=1000), table, 0.0, 1, truth=truth)
    kinds = PrivateHuberRegressor, PrivateLinearRegression
    cells = {
        str(epsilon): {
            kind.__name__: scores_of(
                own_fit(kind, X, target_bounds=(-1, 1)), table, epsilon, draws, truth=truth
            )
            for kind in kinds
        }
        for epsilon in OTHER_EPSILONS
    }
    return _entry(X, cells, "scikit-learn's HuberRegressor", known)


def run_counts(draws: int) -> dict[str, Any]:
    """Counts of rented bicycles, by Poisson regression and by least squares."""
    X, t = bike()
    table = X, 500 * (t + 1)

    def count_r2(y: np.ndarray, predicted: np.ndarray) -> float:
        return r2(y / 500 - 1, predicted / 500 - 1)

    reference = without_privacy(PoissonRegressor, alpha=0.0, max_iter=1000)
    known = scores_of(reference, table, 0.0, 1, score=count_r2)
    fits = {
        "PrivatePoissonRegressor": own_fit(PrivatePoissonRegressor, X, max_count=1000),
        "PrivateLinearRegression": own_fit(PrivateLinearRegression, X, target_bounds=(0, 1000)),
    }
    cells = {
        str(epsilon): {
            name: scores_of(fit, table, epsilon, draws, score=count_r2)
            for name, fit in fits.items()
        }
        for epsilon in OTHER_EPSILONS
    }
    return _entry(X, cells, "scikit-learn's PoissonRegressor", known)


def _entry(X: Any, cells: dict[str, Any], reference: str, known: list[float]) -> dict[str, Any]:
    return {
        "rows": X.shape[0],
        "columns": X.shape[1],
        "reference": reference,
        "without privacy": float(np.mean(known)),
        "cells": cells,
    }


def rival_scores(
    rival: Rival, X: np.ndarray, t: np.ndarray, epsilon: float, draws: int
) -> list[float]:
    """Scores of the setting with the best mean over the test folds, with noise drawn anew."""
    Z = np.column_stack([X, np.ones(len(X))])

    def scores(setting: dict[str, Any], draw: int) -> list[float]:
        found = []
        for k, (train, test) in enumerate(splits(len(t))):
            rng = np.random.default_rng(1000 * draw + k)
            w = rival.fit(Z[train], t[train], epsilon, DELTA, rng, **setting)
            found.append(r2(t[test], Z[test] @ w))
        return found

    best = max(rival.settings, key=lambda setting: float(np.mean(scores(setting, 0))))
    return [score for draw in range(1, draws + 1) for score in scores(best, draw)]


def least_squares_score(X: np.ndarray, t: np.ndarray) -> float:
    Z, found = np.column_stack([X, np.ones(len(X))]), []
    for train, test in splits(len(t)):
        w = np.linalg.lstsq(Z[train], t[train], rcond=None)[0]
        found.append(r2(t[test], Z[test] @ w))
    return float(np.mean(found))


def run_set(name: str, draws: int, kept: dict[str, Any]) -> dict[str, Any]:
    """Scores of the library and its rivals; ``kept`` holds cells of rivals to keep."""
    known = {**SETS, **CHECK}
    rivals = RIVALS if name in known else ()
    X, t = (known[name] if name in known else LARGE[name][0])()
    cells: dict[str, Any] = {}
    for epsilon in epsilons_of(name):
        cell = {"hushfit": own_scores(X, t, epsilon, draws, FOLDS if name in known else 1)}
        stored = kept.get(str(epsilon), {})
        for rival in rivals:
            cell[rival.name] = stored.get(rival.name) or rival_scores(rival, X, t, epsilon, draws)
        cells[str(epsilon)] = cell
        print(name, epsilon, {k: round(float(np.mean(v)), 3) for k, v in cell.items()}, flush=True)
    if name in LARGE:
        return {"rows": X.shape[0], "columns": X.shape[1], "cells": cells}
    return _entry(X, cells, "least squares", [least_squares_score(X, t)])


def epsilons_of(name: str) -> tuple[float, ...]:
    if name in LARGE:
        return LARGE[name][1]
    return EPSILONS if name in SETS else CHECK_EPSILONS


def run(names: list[str], draws: int, keep_rivals: bool = False) -> dict[str, Any]:
    """Measure and store."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    stored = results.setdefault("sets", {})
    for name in names:
        if name in TAILS:
            entry = run_tails(name, draws)
        elif name == COUNTS:
            entry = run_counts(draws)
        else:
            kept = stored.get(name, {}).get("cells", {}) if keep_rivals else {}
            entry = run_set(name, draws, kept)
        stored[name] = entry
        results["machine"] = machine()
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    return results


def tables(results: dict[str, Any]) -> list[str]:
    """The stored results as Markdown."""
    parts = [f"Measured on {results['machine']}.", ""]
    for name in [name for name in ALL if name in results["sets"]]:
        entry = results["sets"][name]
        head = f"### {name}: {entry['rows']:,} rows, {entry['columns']:,} columns"
        parts += [head, ""]
        if "reference" in entry:
            known = f"{entry['without privacy']:.3f} ({entry['reference']})"
            parts += [f"Without privacy: {known}.", ""]
        methods = list(next(iter(entry["cells"].values())))
        rows = [
            [method, *(_cell(cell[method]) for cell in entry["cells"].values())]
            for method in methods
        ]
        if name in GOALS:
            rows.append(["goal", *(f"{goal:g}" for goal in GOALS[name])])
        heads = [_head(epsilon, entry) for epsilon in entry["cells"]]
        parts += [markdown(["R2 at epsilon", *heads], rows), ""]
    return parts


def _head(epsilon: str, entry: dict[str, Any]) -> str:
    """With a mark where the planner says, before payment, that the rows are too few."""
    train = entry["rows"] * (FOLDS - 1) // FOLDS
    needed = units_needed(Budget(float(epsilon), DELTA), entry["columns"] + 1)
    return epsilon if train >= needed else f"{epsilon} †"


def _cell(scores: list[float]) -> str:
    error = float(np.std(scores, ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else None
    mean = float(np.mean(scores))
    return f"{mean:.3f}" if error is None else f"{mean:.3f} ± {error:.3f}"


def missed(results: dict[str, Any]) -> list[str]:
    """Cells below their goal, or behind a rival."""
    found = []
    for name, entry in results["sets"].items():
        for k, (epsilon, cell) in enumerate(entry["cells"].items()):
            means = {method: float(np.mean(scores)) for method, scores in cell.items()}
            if "hushfit" not in means:
                continue
            own = means.pop("hushfit")
            if name in GOALS and round(own, 3) < GOALS[name][k]:
                found.append(f"{name} at {epsilon}: {own:.3f} < {GOALS[name][k]}")
            found += [
                f"{name} at {epsilon}: behind {method}"
                for method, mean in means.items()
                if mean > own
            ]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regression", description=__doc__)
    parser.add_argument("names", nargs="*", default=list(ALL))
    parser.add_argument("--draws", type=int, default=2, help="noise draws of each fold")
    parser.add_argument("--own", action="store_true", help="keep stored scores of rivals")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    warnings.simplefilter("ignore")
    results = (
        json.loads(RESULTS.read_text()) if given.write else run(given.names, given.draws, given.own)
    )
    if given.write:
        write_between(ROOT / "docs" / "benchmarks.md", MARKS, tables(results))
    lost = missed(results)
    print(f"{len(lost)} goals missed", *lost, sep="\n  ")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
