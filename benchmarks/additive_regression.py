"""Additive against linear models of numbers: R2 of ``PrivateLinearRegression`` on test folds.

    python -m benchmarks.additive_regression          # into results/additive_regression.json
    python -m benchmarks.additive_regression --page   # the table of docs/benchmarks.md

The rule was chosen on housing and bike, which `benchmarks.regression` has too. The other tables
predict one of their own columns, and were used for no choice. Replace-one, delta 1e-6.
"""

import argparse
import json
import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import mixed_sets, regression
from benchmarks._report import ROOT, machine, markdown, write_between
from hushfit import PrivateLinearRegression
from hushfit.errors import InsecureNoiseWarning
from hushfit.features import AdditiveFeatures

EPSILONS = (0.05, 0.1, 0.3, 1.0, 3.0)
RESULTS = ROOT / "benchmarks" / "results" / "additive_regression.json"
MARKS = ("<!-- additive regression: begin -->", "<!-- additive regression: end -->")
# Columns in [-1, 1] or [0, 1], numbers of the indicators and of the columns of whole numbers with
# their steps, and the target in [-1, 1].
Table = tuple[np.ndarray, list[int], np.ndarray]


def of_regression(name: str) -> Callable[[], Table]:
    """A table of `benchmarks.regression`: its numbers are those with negative values."""

    def made() -> Table:
        X, t = regression.SETS[name]()
        return X, np.flatnonzero(X.min(axis=0) >= 0).tolist(), t

    return made


def own_column(name: str, target: str) -> Callable[[], Table]:
    """A table whose number of that name is predicted from all other columns."""

    def made() -> Table:
        table = mixed_sets.load(name)
        j = table.names.index(target)
        X = np.delete(table.X, j, axis=1)
        steps = [column.steps for column in table.columns]
        del steps[j]
        X[:, [s != 1 for s in steps]] *= 2
        X[:, [s != 1 for s in steps]] -= 1
        return X, [k for k, s in enumerate(steps) if s == 1], 2 * table.numeric[:, j] - 1

    return made


CHOICE: dict[str, Callable[[], Table]] = {
    "housing": of_regression("housing"),
    "bike": of_regression("bike"),
}
CHECK: dict[str, Callable[[], Table]] = {
    "adult, age": own_column("adult", "age"),
    "credit, limit": own_column("credit", "LIMIT_BAL"),
    "bank, age": own_column("bank", "age"),
}
TABLES = CHOICE | CHECK


def score(table: Table, features: Any, epsilon: float, fold: int) -> tuple[float, int]:
    """R2 on one fold, and the largest number of intervals of a column."""
    X, binary, t = table
    train, test = list(regression.splits(len(t)))[fold]
    low = np.full(X.shape[1], -1.0)
    low[binary] = 0.0
    model = PrivateLinearRegression(
        epsilon=epsilon,
        delta=regression.DELTA,
        target_bounds=(-1, 1),
        feature_bounds=(low, 1.0),
        features=features,
        random_state=fold,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        model.fit(X[train], t[train])
    most = 0 if model.feature_map_ is None else max(model.feature_map_.intervals)
    return regression.r2(t[test], model.predict(X[test])), most


def run(names: list[str]) -> list[dict[str, Any]]:
    """Measure and store; cells that are stored already are kept."""
    rows = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    known = {(row["set"], row["epsilon"], row["fold"]) for row in rows}
    for name in names:
        table = TABLES[name]()
        additive = AdditiveFeatures(binary=table[1])
        for epsilon in EPSILONS:
            for fold in range(regression.FOLDS):
                if (name, epsilon, fold) in known:
                    continue
                linear, _ = score(table, "linear", epsilon, fold)
                found, most = score(table, additive, epsilon, fold)
                row = {"set": name, "epsilon": epsilon, "fold": fold, "linear": linear}
                rows.append(row | {"additive": found, "intervals": most})
            store(rows)
            print(name, epsilon, flush=True)
    return rows


def store(rows: list[dict[str, Any]]) -> None:
    """Write all results."""
    lines = ",\n".join(json.dumps(row) for row in rows)
    head = json.dumps({"delta": regression.DELTA, "machine": machine()})[1:-1]
    RESULTS.write_text(f'{{{head}, "rows": [\n{lines}\n]}}\n')


def page(rows: list[dict[str, Any]]) -> str:
    """The stored results as a table."""
    cells: dict[tuple[str, float], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        cells[row["set"], row["epsilon"]].append(row)
    lines = []
    for (name, epsilon), own in cells.items():
        gains = np.array([row["additive"] - row["linear"] for row in own])
        lines.append(
            [
                name,
                f"{epsilon:g}",
                str(own[0]["intervals"]),
                *(f"{np.mean([row[k] for row in own]):.3f}" for k in ("linear", "additive")),
                f"{gains.mean():+.3f} ± {gains.std(ddof=1) / np.sqrt(len(gains)):.3f}",
            ]
        )
    return markdown(["set", "epsilon", "intervals", "linear", "additive", "gain in R2"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.additive_regression", description=__doc__
    )
    parser.add_argument("--sets", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--page", action="store_true", help="write the page from stored results")
    given = parser.parse_args()
    if given.page:
        rows = json.loads(RESULTS.read_text())["rows"]
        write_between(ROOT / "docs" / "benchmarks.md", MARKS, [page(rows)])
        return
    print(page(run(given.sets)))


if __name__ == "__main__":
    main()
