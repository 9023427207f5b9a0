"""Experiments of the source texts that no other benchmark repeats.

python -m benchmarks.seeds [--parts line-search sizes ...] [--draws 5] [--write]

line-search   Thesis, figures 5.1 and 5.2: settings of DP-BLSGD, and how often it evaluates
objectives    Thesis, figures 3.1 and 3.2: objective values of the algorithms of chapter 3
sizes         Paper 003, figures 5, 6, 9 and 10: error and mean squared error against n
coverage      Papers 000 and 002, figures 4 and 4.4: coverage of the relevant columns, xi_k
owners        Paper 001, figure 7: its two larger tables, simulated

All at **replace-one**. Finished draws are kept in ``out/seeds.jsonl``, so that a run can be stopped
and continued; ``--write`` stores means and standard errors in ``benchmarks/results/seeds.json`` and
writes the tables of ``docs/reproduction.md``.
"""

import argparse
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks import federated, sets
from benchmarks._kept import keep, kept, store
from benchmarks._report import ROOT, markdown
from benchmarks.papers import simulated_rows
from hushfit import PrivateLogisticRegression
from hushfit.datasets import load_adult
from hushfit.errors import InsecureNoiseWarning, WeakGuaranteeWarning
from hushfit.federated import fit_together
from hushfit.penalties import L1, LHalf, ScaledL2
from hushfit.solvers import DPBLS, DPSC, MPADMM, SSADMM
from hushfit.support_recovery import coverage, ranked

KEPT = ROOT / "out" / "seeds.jsonl"
RESULTS = Path(__file__).parent / "results" / "seeds.json"
PAGE = ROOT / "docs" / "reproduction.md"
MARKS = "<!-- seeds: begin -->", "<!-- seeds: end -->"


@dataclass(frozen=True)
class Part:
    """One group of experiments: a measurement for each line and column of its table."""

    title: str
    lines: dict[str, Any]
    columns: tuple[Any, ...]
    measure: Callable[[Any, Any, int], dict[str, float]]

    def cells(self) -> Iterator[tuple[str, str, Any]]:
        for line in self.lines:
            for column in self.columns:
                yield f"{self.title}: {line}: {column}", line, column


def fitted(split: Any, solver: Any, epsilon: float, seed: int, **more: Any) -> Any:
    """A seeded fit, without the warnings that belong to seeded fits."""
    settings = {"delta": 1e-8, "classes": [0, 1], **more}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        warnings.simplefilter("ignore", WeakGuaranteeWarning)
        return PrivateLogisticRegression(
            epsilon=epsilon, solver=solver, random_state=seed, **settings
        ).fit(split[0], split[1])


def loss_of(model: Any, X: Any, y: Any) -> float:
    p = np.clip(model.predict_proba(X)[:, 1], 1e-15, 1 - 1e-15)
    return float(-np.mean(np.where(y == 1, np.log(p), np.log1p(-p))))


# ---------------------------------------------------------------- thesis, chapter 5

BLS: dict[str, DPBLS] = {
    "default": DPBLS(),
    **{f"alpha {a:g}": DPBLS(sufficient=a) for a in (0.3, 0.5, 0.7, 0.9)},
    **{f"beta {b:g}": DPBLS(shrink=b) for b in (0.3, 0.5, 0.9)},
    "Gaussian gate": DPBLS(gate_noise="gaussian"),
    **{f"q {q:g}": DPBLS(rate=q) for q in (0.02, 0.05, 0.3)},
    "all rows": DPBLS("gd"),
    "budget raised after failures": DPBLS(adaptive=True),
    **{f"AC, zeta {z:g}": DPBLS("ac", clip_decrease=z) for z in (0.01, 0.05, 0.2)},
}


@cache
def adult() -> tuple[Any, Any, Any, Any]:
    train, test = load_adult(split="train"), load_adult(split="test")
    return train.X, train.y, test.X, test.y


def line_search(solver: DPBLS, epsilon: float, seed: int) -> dict[str, float]:
    X, y, X_test, y_test = adult()
    model = fitted((X, y), solver, epsilon, seed)
    return {"accuracy": model.score(X_test, y_test)}


# ---------------------------------------------------------------- thesis, chapter 3

CHAPTER_3 = (
    *("rsgd-ar", "nsgd", "objective-kifer", "outpert-gd", "dp-agd", "dp-sgd", "priv-gene"),
    "auto",
)
RIDGE = 1e-3


@cache
def bank() -> tuple[Any, Any]:
    return sets.load("bank")


def objective(solver: str, cell: tuple[str, float], seed: int) -> dict[str, float]:
    """The thesis' objective, ridge included, on the fitted rows, over that without privacy."""
    name, epsilon = cell
    X, y = adult()[:2] if name == "adult" else bank()
    model = fitted((X, y), solver, epsilon, seed, penalty=ScaledL2(RIDGE))
    return {"objective": _ridged(model, X, y) - _least(name)}


@cache
def _least(name: str) -> float:
    X, y = adult()[:2] if name == "adult" else bank()
    return _ridged(fitted((X, y), "exact", math.inf, 0, penalty=ScaledL2(RIDGE)), X, y)


def _ridged(model: Any, X: Any, y: Any) -> float:
    return loss_of(model, X, y) + RIDGE / 2 * float((model.coef_**2).sum())


# ---------------------------------------------------------------- paper 003

DPSC_PENALTIES = {"DPLL (L1)": L1(1e-3), "DPLH (L1/2)": LHalf(1e-3)}
SIZES = (5_000, 10_000, 20_000, 30_000)


def size(line: tuple[Any, Any], cell: tuple[str, int, float], seed: int) -> dict[str, float]:
    """Error and mean squared error of the probability, on test rows."""
    solver, penalty = line
    table, rows, epsilon = cell
    X, y, X_test, y_test = _sized(table, rows, seed)
    model = fitted((X, y), solver, epsilon, seed, delta=1e-6, penalty=penalty)
    p = model.predict_proba(X_test)[:, 1]
    return {"error": 1 - model.score(X_test, y_test), "mse": float(np.mean((p - y_test) ** 2))}


def _sized(table: str, rows: int, seed: int) -> tuple[Any, Any, Any, Any]:
    if table == "simulated":
        split = simulated_rows("threshold", rows, 1_000)(seed)
        return split.X, split.y, split.X_test, split.y_test
    X, y = sets.load("kddcup99")
    order = np.random.default_rng(seed).permutation(len(X))[: rows + 10_000]
    return X[order[:rows]], y[order[:rows]], X[order[rows:]], y[order[rows:]]


# ---------------------------------------------------------------- papers 000 and 002, chapter 4

SELECTORS = {
    "ssADMM": SSADMM(),
    "mpADMM, noise on x": MPADMM(),
    "mpADMM, published": MPADMM(form="published"),
    "DP-SGD": "dp-sgd",
    "auto": "auto",
}
FIRST = (20, 25, 30, 40)


def selection(solver: Any, epsilon: float, seed: int) -> dict[str, float]:
    split = simulated_rows("correlated", 36_000, 4_000)(seed)
    model = fitted((split.X, split.y), solver, epsilon, seed, penalty=L1(1e-3))
    order, relevant = ranked(model.coef_), np.flatnonzero(split.truth)
    return {f"xi_{k}": coverage(order, relevant, k) for k in FIRST}


# ---------------------------------------------------------------- paper 001

TABLES = {"Brazil": (38_000, 52), "US": (40_000, 57)}
TOGETHER = {
    name: (federated.PUBLISHED | federated.OURS)[name]
    for name in ("PP-ADMM, published", "IPP-ADMM, published", "M-ADMM, published", "PP-ADMM")
}


def owners(algorithm: Any, cell: tuple[str, float], seed: int) -> dict[str, float]:
    """Error of five owners on tables of the sizes of Brazil and US: correlated columns in [0, 1],
    half of the weights zero, balanced labels.
    """
    table, epsilon = cell
    rows, columns = TABLES[table]
    rng = np.random.default_rng(seed)
    X = expit(rng.standard_normal((rows, columns)) + rng.standard_normal((rows, 1)))
    w = np.where(rng.random(columns) < 0.5, 0.0, 4 * rng.standard_normal(columns))
    y = (rng.random(rows) < expit((X - 0.5) @ w)).astype(int)
    order = np.array_split(np.arange(int(0.8 * rows)), federated.OWNERS)
    parts = {name: (X[k], y[k]) for name, k in zip(federated.NAMES, order, strict=True)}
    test = slice(int(0.8 * rows), None)
    made = federated.without_warnings(
        lambda: fit_together(
            federated.estimator(epsilon, 1e-4),
            parts,
            federated.NETWORK,
            algorithm,
            random_state=seed,
        )
    )
    return {"error": float(np.mean([1 - m.score(X[test], y[test]) for m in made.models.values()]))}


SMALL, THESIS = (0.05, 0.2), (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
PARTS = {
    "line-search": Part("DP-BLSGD on Adult", BLS, (*SMALL, 0.4), line_search),
    "sizes": Part(
        "DPSC against the number of rows",
        {
            **{name: (DPSC(), penalty) for name, penalty in DPSC_PENALTIES.items()},
            "auto (L1)": ("auto", L1(1e-3)),
        },
        tuple(
            (table, rows, epsilon)
            for table in ("simulated", "kddcup99")
            for epsilon in (0.5, 1.5)
            for rows in SIZES
        ),
        size,
    ),
    "coverage": Part("Relevant columns", SELECTORS, (0.05, 0.1, 0.2, 0.4, 0.8), selection),
    "owners": Part(
        "Five owners",
        TOGETHER,
        tuple((table, epsilon) for table in TABLES for epsilon in (1.0, 2.0, 10.0)),
        owners,
    ),
    "objectives": Part(
        "Objectives of chapter 3",
        {name: name for name in CHAPTER_3},
        tuple((table, epsilon) for table in ("adult", "bank") for epsilon in THESIS),
        objective,
    ),
}


def run(names: Sequence[str], draws: int) -> None:
    """Draw by draw, so that every cell has about as many whenever the run is stopped."""
    for draw in range(draws):
        for name in names:
            part, done = PARTS[name], kept(KEPT)
            for cell, line, column in part.cells():
                if draw not in done.get(cell, {}):
                    keep(KEPT, cell, draw, part.measure(part.lines[line], column, draw))
            print(f"{name}: draw {draw + 1} of {draws}", flush=True)


def summary() -> dict[str, dict[str, Any]]:
    """Mean, standard error and number of draws of each measure of each cell."""
    found = {}
    for cell, outcomes in kept(KEPT).items():
        values = list(outcomes.values())
        found[cell] = {
            "draws": len(values),
            **{
                key: [
                    round(float(np.mean([v[key] for v in values])), 5),
                    round(float(np.std([v[key] for v in values]) / math.sqrt(len(values))), 5),
                ]
                for key in values[0]
            },
        }
    return found


def tables(found: dict[str, dict[str, Any]]) -> str:
    """One table for each part and measure, from stored cells."""
    texts = []
    for part in PARTS.values():
        cells = {cell: found[cell] for cell, _, _ in part.cells() if cell in found}
        if not cells:
            continue
        draws = {cell["draws"] for cell in cells.values()}
        head = f"**{part.title}** ({_span(draws)} draws; replace-one)"
        measures = [key for key in next(iter(cells.values())) if key != "draws"]
        for measure in measures:
            rows = [
                [line, *(_shown(found, part, line, column, measure) for column in part.columns)]
                for line in part.lines
            ]
            columns = [" ".join(map(str, np.atleast_1d(np.array(c, object)))) for c in part.columns]
            texts += [f"{head}: {measure}", markdown([measure, *columns], rows)]
    return "\n\n".join(texts)


def _span(draws: set[int]) -> str:
    return f"{min(draws)}" if len(draws) == 1 else f"{min(draws)} to {max(draws)}"


def _shown(found: dict[str, Any], part: Part, line: str, column: Any, measure: str) -> str:
    cell = found.get(f"{part.title}: {line}: {column}")
    return "" if cell is None else f"{cell[measure][0]:.4g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="store results and write the page")
    given = parser.parse_args()
    run(given.parts, given.draws)
    if given.write:
        found = summary()
        store(RESULTS, found, PAGE, MARKS, tables(found))


if __name__ == "__main__":
    main()
