"""The private ADMM family and its baselines at equal budget: L1-penalised logistic regression, and
feature selection.

python -m benchmarks.sparse [--sets a9a bank] [--epsilons .1 .4 1.6] [--folds 2] [--draws 1]
"""

import argparse
import statistics
import sys
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import KFold

from benchmarks import sets
from benchmarks._report import markdown, publish
from benchmarks.accuracy import ADJACENCY, DELTA, progress, unit_rows
from hushfit import PrivateFeatureSelector, PrivateLogisticRegression
from hushfit.datasets import make_sparse_classification
from hushfit.errors import InsecureNoiseWarning
from hushfit.penalties import L1
from hushfit.release import PoissonBatch
from hushfit.solvers import (
    DPSADMM,
    DPSC,
    DPVRADMM,
    MPADMM,
    SSADMM,
    ObjectivePerturbation,
    ProximalGradient,
)
from hushfit.support_recovery import coverage

ALPHA = 1e-4
SOLVERS = {
    "auto (prox-newton)": "auto",
    "proximal gradient": ProximalGradient(),
    "ssADMM, all rows": SSADMM(),
    "ssADMM, Poisson batches": SSADMM(sampling=PoissonBatch(0.05)),
    "mpADMM, noise on x": MPADMM(),
    "mpADMM, noise on x, z, y": MPADMM(form="published"),
    "DP-SADMM": DPSADMM(),
    "DP-VRADMM": DPVRADMM(),
    "objective perturbation": ObjectivePerturbation(),
    "DPSC": DPSC(),
}
# The first gradient already identifies many columns; a few steps identify most.
SELECTORS = {
    "default": None,
    "one plain gradient": ProximalGradient(steps=1, clip=0.5, momentum=0.0),
    "ssADMM, clip .25": SSADMM(clip=0.25),
    "auto": "auto",
}
SELECTED_TABLES = 20
TOP = (20, 25, 30, 40)


@dataclass(frozen=True)
class Row:
    """One solver on one set at one epsilon, over folds and draws."""

    set: str
    epsilon: float
    solver: str
    accuracy: float
    objective: float
    zeros: float


def fit_once(
    X: np.ndarray, y: np.ndarray, split: tuple, epsilon: float, solver: object, seed: int
) -> tuple[float, float, float]:
    """Accuracy and objective on the test fold, and the share of zero coefficients."""
    train, test = split
    model = PrivateLogisticRegression(
        epsilon=epsilon,
        delta=DELTA,
        adjacency=ADJACENCY,
        penalty="l1",
        alpha=ALPHA,
        solver=solver,
        classes=sets.CLASSES,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        model.fit(X[train], y[train])
    margins = unit_rows(X[test]) @ np.append(model.coef_[0], model.intercept_)
    signed = np.where(y[test] == 1, 1.0, -1.0) * margins
    loss = float(np.logaddexp(0, -signed).mean()) + L1(ALPHA).value(model.coef_[0])
    return float((signed > 0).mean()), loss, float((model.coef_ == 0).mean())


def compare(names: list[str], epsilons: list[float], folds: int, draws: int) -> list[Row]:
    rows, total = [], len(names) * len(epsilons) * len(SOLVERS)
    for name in names:
        X, y = sets.load(name)
        splits = list(KFold(5, shuffle=True, random_state=0).split(X))[:folds]
        for epsilon in epsilons:
            for label, solver in SOLVERS.items():
                found = [
                    fit_once(X, y, s, epsilon, solver, 10 * k + d)
                    for k, s in enumerate(splits)
                    for d in range(draws)
                ]
                rows.append(
                    Row(
                        name,
                        epsilon,
                        label,
                        *(statistics.fmean(column) for column in zip(*found, strict=True)),
                    )
                )
                progress(len(rows), total, f"{name}, epsilon {epsilon:g}, {label}")
    return rows


def shuffled(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The papers' simulation with its columns in random order, so that ties in a ranking are
    neutral: rows, labels, support.
    """
    S = make_sparse_classification(random_state=seed)
    order = np.random.default_rng(seed).permutation(S.X.shape[1])
    return np.ascontiguousarray(S.X[:, order]), S.y, np.flatnonzero(S.coef[order])


def coverages(seed: int, epsilon: float, solver: object) -> list[float]:
    """Coverage of the informative columns among the first k of one private ranking."""
    X, y, support = shuffled(seed)
    selector = PrivateFeatureSelector(
        20,
        epsilon=epsilon,
        delta=DELTA,
        adjacency=ADJACENCY,
        solver=solver,
        classes=np.unique(y),
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        selector.fit(X, y)
    return [coverage(selector.ranking_, support, k) for k in TOP]


def select(epsilons: list[float], tables: int) -> list[list[str]]:
    """Mean coverage over tables, and the standard error of the first column."""
    rows = []
    for epsilon in epsilons:
        for label, solver in SELECTORS.items():
            found = np.array([coverages(seed, epsilon, solver) for seed in range(tables)])
            error = found[:, 0].std(ddof=1) / np.sqrt(tables)
            rows.append(
                [
                    f"{epsilon:g}",
                    label,
                    *(f"{value:.3f}" for value in found.mean(axis=0)),
                    f"{error:.3f}",
                ]
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sparse", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--sets", nargs="+", choices=sets.SETS, default=["a9a", "bank"])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 0.4, 1.6])
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--draws", type=int, default=1)
    given = parser.parse_args()
    run(given.sets, given.epsilons, given.folds, given.draws)


def run(requested: list[str], epsilons: list[float], folds: int, draws: int) -> None:
    """Compare, print and store both tables."""
    reasons = {name: sets.missing(name) for name in requested}
    for reason in filter(None, reasons.values()):
        print(reason, file=sys.stderr)
    names = [name for name in requested if not reasons[name]] or ["adult"]
    rows = compare(names, epsilons, folds, draws)
    head = ["set", "epsilon", "solver", "accuracy", "objective", "zeros"]
    body = [
        [
            r.set,
            f"{r.epsilon:g}",
            r.solver,
            f"{r.accuracy:.4f}",
            f"{r.objective:.4f}",
            f"{r.zeros:.2f}",
        ]
        for r in rows
    ]
    title = (
        f"L1 (alpha={ALPHA:g}) at equal budget: {folds} folds x {draws} draws, delta={DELTA:g}, "
        f"{ADJACENCY}"
    )
    publish("sparse", title, markdown(head, body), [vars(r) for r in rows])
    chosen = select([0.05, 0.1, 0.2, 0.4], SELECTED_TABLES)
    titles = ["epsilon", "ranked by", *(f"xi_{k}" for k in TOP), "s.e. of xi_20"]
    publish(
        "selection",
        f"Choice of columns, correlated design, {SELECTED_TABLES} tables, delta={DELTA:g}, "
        f"{ADJACENCY}",
        markdown(titles, chosen),
        chosen,
    )


if __name__ == "__main__":
    main()
