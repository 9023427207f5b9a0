"""Additive models against linear ones, DP-EBM, and additive models and boosted trees without
privacy.

    python -m benchmarks.additive --jobs linear additive     # into benchmarks/results/additive.json
    python -m benchmarks.additive --export FOLDER            # tables for benchmarks/ebm_fit.py
    python -m benchmarks.additive --merge FILE...            # add the results of ebm_fit.py
    python -m benchmarks.additive --page                     # tables of docs/benchmarks.md

DP-EBM (``interpret``) is no dependency: run ``benchmarks/ebm_fit.py`` with an environment of its
own. It adds and removes rows, so it is compared with additive models under add-remove.
"""

import argparse
import itertools
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.preprocessing import SplineTransformer, StandardScaler

from benchmarks import mixed_sets
from benchmarks._report import ROOT, machine, markdown, write_between
from benchmarks.mixed_sets import Mixed
from hushfit import Budget, PrivateLogisticRegression, Relation
from hushfit.errors import InsecureNoiseWarning
from hushfit.estimators import data_size
from hushfit.features import additive_map

DELTA = 1e-6
EPSILONS = (0.05, 0.1, 0.4, 1.0, 3.0)
FOLDS = 5
RESULTS = ROOT / "benchmarks" / "results" / "additive.json"
MARKS = ("<!-- additive: begin -->", "<!-- additive: end -->")
MEASURES = ("auc", "accuracy", "log_loss")


@dataclass(frozen=True)
class Row:
    """Scores of one method on one fold; without an epsilon it is not private."""

    set: str
    method: str
    epsilon: float | None
    fold: int
    auc: float
    accuracy: float
    log_loss: float
    seconds: float


def folds(rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows of each fold, always the same."""
    parts = np.array_split(np.random.default_rng(0).permutation(rows), FOLDS)
    return [
        (np.sort(np.concatenate([q for k, q in enumerate(parts) if k != f])), np.sort(parts[f]))
        for f in range(FOLDS)
    ]


def private(features: str, adjacency: str) -> Callable[..., np.ndarray]:
    """Probabilities of a private model on the test rows."""

    def fitted(table: Mixed, train: np.ndarray, test: np.ndarray, epsilon: float, seed: int):
        settings: Any = features
        if features != "linear":
            # The map that the estimator makes from a schema or bounds; rows are in [0, 1] already.
            size = data_size(len(train), Budget(epsilon, DELTA), Relation.parse(adjacency))
            settings = additive_map(table.columns, size, 999, 8 if features == "additive" else 1)
        X = csr_array(table.X)
        model = PrivateLogisticRegression(
            epsilon=epsilon,
            delta=DELTA,
            adjacency=adjacency,
            classes=[0, 1],
            features=settings,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureNoiseWarning)
            model.fit(X[train], table.y[train])
        return model.predict_proba(X[test])[:, 1]

    return fitted


def splines(table: Mixed, train: np.ndarray, test: np.ndarray, *_: Any) -> np.ndarray:
    """An additive model without privacy: cubic splines with ten quantile knots each."""
    count = table.numeric.shape[1]
    labels = StandardScaler(with_std=False).fit_transform(table.X[:, count:])
    knots = SplineTransformer(n_knots=10, knots="quantile", extrapolation="linear")
    X = np.hstack([knots.fit(table.numeric[train]).transform(table.numeric), labels])
    model = LogisticRegression(C=10.0, max_iter=1000).fit(X[train], table.y[train])
    return model.predict_proba(X[test])[:, 1]


def trees(table: Mixed, train: np.ndarray, test: np.ndarray, *_: Any) -> np.ndarray:
    """Boosted trees without privacy."""
    model = HistGradientBoostingClassifier(max_iter=300, early_stopping=True, random_state=0)
    model.fit(table.X[train], table.y[train])
    return model.predict_proba(table.X[test])[:, 1]


METHODS: dict[str, Callable[..., np.ndarray]] = {
    "linear": private("linear", "replace-one"),
    "additive": private("additive", "replace-one"),
    "centred": private("centred", "replace-one"),
    "additive, add-remove": private("additive", "add-remove"),
    "splines": splines,
    "trees": trees,
}
NOT_PRIVATE = ("splines", "trees")


def scored(y: np.ndarray, p: np.ndarray) -> dict[str, float]:
    """The three measures."""
    p = np.clip(p, 1e-12, 1 - 1e-12)
    return {
        "auc": float(roc_auc_score(y, p)),
        "accuracy": float(np.mean((p > 0.5) == y)),
        "log_loss": float(log_loss(y, p)),
    }


def measure(name: str, method: str, epsilon: float | None, fold: int) -> Row:
    """One method on one fold of a set."""
    table = mixed_sets.load(name)
    train, test = folds(len(table.y))[fold]
    seed = 1000 * fold + (EPSILONS.index(epsilon) if epsilon in EPSILONS else len(EPSILONS))
    start = time.perf_counter()
    p = METHODS[method](table, train, test, epsilon, seed)
    seconds = time.perf_counter() - start
    return Row(name, method, epsilon, fold, **scored(table.y[test], p), seconds=seconds)


def stored() -> list[dict[str, Any]]:
    """Results so far."""
    return json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []


def _key(row: dict[str, Any]) -> tuple[str, str, float | None, int]:
    return row["set"], row["method"], row["epsilon"], row["fold"]


def store(rows: list[dict[str, Any]]) -> None:
    """Add results, replacing those of the same fit."""
    kept = {_key(row): row for row in [*stored(), *rows]}
    ordered = [kept[key] for key in sorted(kept, key=str)]
    RESULTS.parent.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(row) for row in ordered)
    head = json.dumps({"delta": DELTA, "machine": machine()})[1:-1]
    RESULTS.write_text(f'{{{head}, "rows": [\n{lines}\n]}}\n')


def export(folder: Path, names: Iterable[str]) -> None:
    """Tables and folds as npz files, for another environment."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        table = mixed_sets.load(name)
        tests = {f"test{f}": test for f, (_, test) in enumerate(folds(len(table.y)))}
        np.savez_compressed(
            folder / f"{name}.npz",
            numeric=table.numeric,
            codes=table.codes,
            levels=np.array(table.levels),
            y=table.y,
            **tests,
        )


def _cells(rows: list[dict[str, Any]]) -> dict[tuple[str, str, float | None], dict[int, Any]]:
    cells: dict[tuple[str, str, float | None], dict[int, Any]] = defaultdict(dict)
    for row in rows:
        cells[row["set"], row["method"], row["epsilon"]][row["fold"]] = row
    return cells


def difference(ours: dict[int, Any], others: dict[int, Any], measure: str) -> tuple[float, float]:
    """Mean over common folds of a paired difference, and its standard error."""
    common = sorted(set(ours) & set(others))
    found = np.array([ours[f][measure] - others[f][measure] for f in common])
    error = float(found.std(ddof=1) / np.sqrt(len(found))) if len(found) > 1 else float("nan")
    return float(found.mean()), error


def _shown(change: tuple[float, float]) -> str:
    """A difference in 1e-4, with its standard error if there is one."""
    mean, error = change
    return f"{1e4 * mean:+.0f}" + ("" if np.isnan(error) else f" ± {1e4 * error:.0f}")


def _gains(cells: Any, names: Iterable[str], methods: tuple[str, str]) -> str:
    """One method against another: AUC of both, and paired changes of all measures."""
    lines = []
    for name in names:
        for epsilon in EPSILONS:
            before, after = ((name, method, epsilon) for method in methods)
            if before not in cells or after not in cells:
                continue
            changes = [_shown(difference(cells[after], cells[before], m)) for m in MEASURES]
            common = sorted(set(cells[before]) & set(cells[after]))
            scores = [
                f"{np.mean([cells[key][fold]['auc'] for fold in common]):.4f}"
                for key in (before, after)
            ]
            lines.append([name, f"{epsilon:g}", str(len(common)), *scores, *changes])
    return markdown(["set", "epsilon", "folds", *methods, "AUC", "accuracy", "log-loss"], lines)


def _rivals(cells: Any, mean: Any) -> str:
    """Additive models under add-remove against DP-EBM: its default, and the best of its settings by
    AUC on the test rows.
    """
    lines = []
    for name in mixed_sets.CHOICE:
        for epsilon in EPSILONS:
            ours = name, "additive, add-remove", epsilon
            rivals = [
                key
                for key in cells
                if key[0] == name and key[2] == epsilon and key[1].startswith("DP-EBM")
            ]
            if ours not in cells or not rivals:
                continue
            best = max(rivals, key=lambda key: mean[key]["auc"])
            leads = [
                _shown(difference(cells[ours], cells[key], measure))
                for key in ((name, "DP-EBM", epsilon), best)
                for measure in MEASURES
            ]
            settings = best[1].removeprefix("DP-EBM").lstrip(", ") or "default"
            lines.append([name, f"{epsilon:g}", f"{mean[ours]['auc']:.4f}", *leads, settings])
    head = ["AUC", "accuracy", "log-loss"]
    return markdown(["set", "epsilon", "additive", *head, *head, "best settings"], lines)


def _without_privacy(mean: Any) -> str:
    lines = []
    for name in mixed_sets.CHOICE:
        if all((name, m, None) in mean for m in NOT_PRIVATE):
            cells = [mean[name, m, None] for m in NOT_PRIVATE]
            lines.append([name, *(" / ".join(f"{c[m]:.4f}" for m in MEASURES) for c in cells)])
    return markdown(["set", "additive (cubic splines)", "boosted trees"], lines)


def tables(rows: list[dict[str, Any]]) -> list[str]:
    """The tables of the page."""
    cells = _cells(rows)
    mean = {
        key: {m: float(np.mean([r[m] for r in own.values()])) for m in MEASURES}
        for key, own in cells.items()
    }
    both = ("linear", "additive")
    return [
        "**Additive against linear.** AUC of both, and changes in 1e-4, paired over folds, with\n"
        "standard errors where there are several (log-loss: negative is better).\n",
        _gains(cells, mixed_sets.CHOICE, both),
        "\nOn tables that were used for one or two choices (all but bike) or for none:\n",
        _gains(cells, mixed_sets.CHECK, both),
        "\n**Centred against linear.**\n",
        _gains(cells, mixed_sets.CHOICE + mixed_sets.CHECK, ("linear", "centred")),
        "\n**Lead over DP-EBM**, in 1e-4: over its default settings, then over the best of four\n"
        "settings, picked by AUC on the test rows. Add-remove.\n",
        _rivals(cells, mean),
        "\n**Without privacy**, AUC / accuracy / log-loss, on the first fold.\n",
        _without_privacy(mean),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.additive", description=__doc__)
    parser.add_argument("--jobs", nargs="+", choices=METHODS, default=[])
    parser.add_argument("--sets", nargs="+", choices=mixed_sets.SETS, default=mixed_sets.CHOICE)
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--folds", nargs="+", type=int, default=range(FOLDS))
    parser.add_argument("--missing", action="store_true", help="only fits that are not stored")
    parser.add_argument("--export", type=Path)
    parser.add_argument("--merge", nargs="+", type=Path, default=[])
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if given.export:
        export(given.export, given.sets)
    known = {_key(row) for row in stored()} if given.missing else set()
    for fold, name, method in itertools.product(given.folds, given.sets, given.jobs):
        epsilons = [None] if method in NOT_PRIVATE else given.epsilons
        wanted = [e for e in epsilons if (name, method, e, fold) not in known]
        store([asdict(measure(name, method, epsilon, fold)) for epsilon in wanted])
        print(f"{name}: {method}, fold {fold}", flush=True)
    for path in given.merge:
        store([json.loads(line) for line in path.read_text().splitlines()])
    if given.page:
        write_between(ROOT / "docs" / "benchmarks.md", MARKS, tables(stored()))


if __name__ == "__main__":
    main()
