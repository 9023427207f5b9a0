"""Experiments of the source texts that no other benchmark repeats.

python -m benchmarks.seeds [--parts line-search sizes ...] [--draws 5] [--write]

line-search   Thesis, figures 5.1 and 5.2: settings of DP-BLSGD, and how often it evaluates
objectives    Thesis, figures 3.1 and 3.2: objective values of the algorithms of chapter 3
sizes         Paper 003, figures 5, 6, 9 and 10: error and mean squared error against n
coverage      Papers 000 and 002, figures 4 and 4.4: coverage of the relevant columns, xi_k
owners        Paper 001, figure 7: its two larger tables, simulated

All at **replace-one**. Finished draws are kept in ``benchmarks/results/seeds.jsonl``, so that a run
can be stopped and continued; ``--write`` makes the tables of ``docs/reproduction.md`` from them.
After a change of a solver delete the lines that it concerns.
"""

import argparse
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks import federated, sets
from benchmarks._kept import counted, keep, kept
from benchmarks._report import ROOT, machine, markdown, write_between
from benchmarks.papers import Split, simulated_rows
from hushfit import PrivateLogisticRegression
from hushfit.datasets import load_adult
from hushfit.errors import InsecureNoiseWarning, WeakGuaranteeWarning
from hushfit.federated import fit_together
from hushfit.penalties import L1, LHalf, ScaledL2
from hushfit.solvers import DPBLS, DPSC, MPADMM, SSADMM
from hushfit.support_recovery import coverage, ranked

KEPT = Path(__file__).parent / "results" / "seeds.jsonl"
PAGE = ROOT / "docs" / "reproduction.md"
MARKS = "<!-- seeds: begin -->", "<!-- seeds: end -->"


@dataclass(frozen=True)
class Part:
    """One group of experiments: a measurement of each method in each case, a tuple of settings."""

    title: str
    methods: dict[str, Any]
    settings: tuple[str, ...]
    cases: tuple[tuple[Any, ...], ...]
    measure: Callable[[Any, tuple[Any, ...], int], dict[str, float]]

    def cell(self, method: str, case: tuple[Any, ...]) -> str:
        return f"{self.title}: {method}: {', '.join(map(str, case))}"


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


def line_search(solver: DPBLS, case: tuple[float], seed: int) -> dict[str, float]:
    X, y, X_test, y_test = adult()
    model = fitted((X, y), solver, case[0], seed)
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


def objective(solver: str, case: tuple[str, float], seed: int) -> dict[str, float]:
    """The thesis' objective, ridge included, on the fitted rows, over that without privacy."""
    name, epsilon = case
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

SPARSE = {
    "DPLL (L1)": (DPSC(), L1(1e-3)),
    "DPLH (L1/2)": (DPSC(), LHalf(1e-3)),
    "auto (L1)": ("auto", L1(1e-3)),
}
# The paper's own numbers of rows.
SIZES = {
    "simulated": (5_000, 10_000, 15_000, 20_000, 25_000, 30_000),
    "kddcup99": (10_000, 20_000, 30_000, 40_000, 50_000, 60_000),
}


def size(method: tuple[Any, Any], case: tuple[str, float, int], seed: int) -> dict[str, float]:
    """Error and mean squared error of the probability, on test rows."""
    solver, penalty = method
    table, epsilon, rows = case
    X, y, X_test, y_test = _sized(table, rows, seed)
    model = fitted((X, y), solver, epsilon, seed, delta=1e-6, penalty=penalty)
    p = model.predict_proba(X_test)[:, 1]
    return {"error": 1 - model.score(X_test, y_test), "mse": float(np.mean((p - y_test) ** 2))}


@lru_cache(maxsize=1)
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


def selection(solver: Any, case: tuple[float], seed: int) -> dict[str, float]:
    split = _correlated(seed)
    model = fitted((split.X, split.y), solver, case[0], seed, penalty=L1(1e-3))
    order, relevant = ranked(model.coef_), np.flatnonzero(split.truth)
    return {f"xi_{k}": coverage(order, relevant, k) for k in FIRST}


@lru_cache(maxsize=1)
def _correlated(seed: int) -> Split:
    return simulated_rows("correlated", 36_000, 4_000)(seed)


# ---------------------------------------------------------------- paper 001

PAPER_001 = ("PP-ADMM", "IPP-ADMM", "DVP", "M-ADMM", "R-ADMM")
TABLES = {"Brazil": (38_000, 52), "US": (40_000, 57)}
# The paper's five algorithms at its settings, and two at ours.
TOGETHER = {
    **{f"{name}, published": federated.PUBLISHED[f"{name}, published"] for name in PAPER_001},
    **{name: federated.OURS[name] for name in ("PP-ADMM", "IPP-ADMM")},
}


def owners(algorithm: Any, case: tuple[str, float], seed: int) -> dict[str, float]:
    """Error of five owners on tables of the sizes of Brazil and US: correlated columns in [0, 1],
    half of the weights zero, balanced labels.
    """
    table, epsilon = case
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


THESIS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
PARTS = {
    "line-search": Part(
        "DP-BLSGD on Adult", BLS, ("epsilon",), ((0.05,), (0.2,), (0.4,)), line_search
    ),
    "sizes": Part(
        "DPSC against the number of rows",
        SPARSE,
        ("table", "epsilon", "rows"),
        tuple(
            (table, epsilon, rows)
            for table, sizes in SIZES.items()
            for epsilon in (0.5, 1.5)
            for rows in sizes
        ),
        size,
    ),
    "coverage": Part(
        "Relevant columns",
        SELECTORS,
        ("epsilon",),
        ((0.05,), (0.1,), (0.2,), (0.4,), (0.8,)),
        selection,
    ),
    "owners": Part(
        "Five owners",
        TOGETHER,
        ("table", "epsilon"),
        tuple(product(TABLES, federated.EPSILONS)),
        owners,
    ),
    "objectives": Part(
        "Objectives of chapter 3",
        {name: name for name in CHAPTER_3},
        ("table", "epsilon"),
        tuple(product(("adult", "bank"), THESIS)),
        objective,
    ),
}


def run(names: Sequence[str], draws: int, minutes: float) -> None:
    """Draw by draw, so that every cell has about as many whenever the run is stopped."""
    stop = time.monotonic() + 60 * minutes
    for draw in range(draws):
        for part in (PARTS[name] for name in names):
            done = kept(KEPT)
            for case, method in product(part.cases, part.methods):
                cell = part.cell(method, case)
                if draw in done.get(cell, {}):
                    continue
                if time.monotonic() > stop:
                    return
                keep(KEPT, cell, draw, part.measure(part.methods[method], case, draw))
            print(f"{part.title}: draw {draw + 1} of {draws}", flush=True)


Found = Mapping[str, Mapping[int, Mapping[str, float]]]


def tables(found: Found) -> str:
    """One table for each part and measure, from the draws that were kept."""
    return "\n\n".join(
        text for part in PARTS.values() if _measured(part, found) for text in tables_of(part, found)
    )


def _measured(part: Part, found: Found) -> list[tuple[Any, ...]]:
    """The cases in which every method has been drawn."""
    return [case for case in part.cases if all(part.cell(m, case) in found for m in part.methods)]


def tables_of(part: Part, found: Found) -> Iterator[str]:
    """A line for each method; where a case has several settings, a line for each case instead."""
    cases = _measured(part, found)
    draws = {len(found[part.cell(m, case)]) for case, m in product(cases, part.methods)}
    for measure in next(iter(found[part.cell(next(iter(part.methods)), cases[0])].values())):
        means = {
            (case, m): _mean_and_error(found[part.cell(m, case)].values(), measure)
            for case, m in product(cases, part.methods)
        }
        shown = {key: f"{mean:.4g}" for key, (mean, _) in means.items()}
        errors = [error for _, error in means.values() if not math.isnan(error)]
        spread = f", standard errors up to {max(errors):.2g}" if errors else ""
        yield f"**{part.title}: {measure}** ({counted(draws)}{spread}; replace-one)"
        if len(part.settings) == 1:
            head = [f"{measure} at {part.settings[0]}", *(str(case[0]) for case in cases)]
            body = [[m, *(shown[case, m] for case in cases)] for m in part.methods]
        else:
            head = [*part.settings, *part.methods]
            body = [[*map(str, case), *(shown[case, m] for m in part.methods)] for case in cases]
        yield markdown(head, body)


def _mean_and_error(outcomes: Iterable[Mapping[str, float]], measure: str) -> tuple[float, float]:
    """Mean over draws and its standard error, NaN of one draw."""
    values = [outcome[measure] for outcome in outcomes]
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
    return float(np.mean(values)), spread / math.sqrt(len(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so many")
    parser.add_argument("--write", action="store_true", help="write the page")
    given = parser.parse_args()
    run(given.parts, given.draws, given.minutes)
    if given.write:
        write_between(PAGE, MARKS, [f"{machine()}\n", tables(kept(KEPT))])


if __name__ == "__main__":
    main()
