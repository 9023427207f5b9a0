"""Accuracy of private fits, per data set and epsilon, against the non-private fit on the same rows
and folds.

With ``--rivals``: ``solver="auto"`` against baselines that are tuned on the test folds.
"""

import argparse
import statistics
import sys
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import KFold

from benchmarks import _rivals, sets
from benchmarks._report import markdown, publish
from hushfit import PrivateLogisticRegression
from hushfit.errors import InsecureNoiseWarning
from hushfit.solvers import Solver

DELTA = 1e-8
EPSILONS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
ADJACENCY = "replace-one"

# The accuracy to reach on ADULT in LIBSVM's encoding.
ADULT_GOALS = dict(zip(EPSILONS, (0.827, 0.836, 0.842, 0.845, 0.8465, 0.848), strict=True))

# Elsewhere the goal is a distance from the non-private fit, in accuracy and in AUC: what the
# reference implementation of the rule behind solver="auto" lost (three folds, two noise draws),
# plus SLACK or two standard errors, whichever is more. The reference figures for bank belong to
# another encoding, so bank is only reported.
SLACK = 0.003
REFERENCE = {
    "mushrooms": (
        (1.0000, (0.9031, 0.9105, 0.9505, 0.9696, 0.9793, 0.9927)),
        (1.0000, (0.9622, 0.9789, 0.9879, 0.9935, 0.9980, 0.9982)),
    ),
    "w8a": (
        (0.9856, (0.9700, 0.9710, 0.9725, 0.9745, 0.9779, 0.9814)),
        (0.9662, (0.7491, 0.7756, 0.8348, 0.8786, 0.9210, 0.9382)),
    ),
    "covtype": (
        (0.7875, (0.7472, 0.7798, 0.7886, 0.7895, 0.7887, 0.7885)),
        (0.8424, (0.8091, 0.8299, 0.8375, 0.8394, 0.8399, 0.8408)),
    ),
    "kddcup99": (
        (0.9981, (0.9868, 0.9869, 0.9892, 0.9911, 0.9942, 0.9962)),
        (0.9996, (0.9959, 0.9959, 0.9979, 0.9991, 0.9994, 0.9994)),
    ),
}


@dataclass(frozen=True)
class Score:
    """One model on one test fold."""

    accuracy: float
    auc: float
    log_loss: float


@dataclass(frozen=True)
class FoldScores:
    """All models of one fold: the mean over noise draws per epsilon, the non-private one, and
    the majority class.
    """

    private: dict[float, Score]
    reference: Score
    majority: float


@dataclass(frozen=True)
class Cell:
    """One set at one epsilon, over all folds."""

    set: str
    epsilon: float
    accuracy: float
    error: float
    auc: float
    log_loss: float
    reference: float
    reference_auc: float
    reference_log_loss: float
    majority: float
    goal: float | None
    auc_goal: float | None

    @property
    def verdict(self) -> str:
        missed = [
            goal
            for goal, value in ((self.goal, self.accuracy), (self.auc_goal, self.auc))
            if goal and value < goal
        ]
        return "FAIL" if missed else "-" if self.goal is None else "pass"


@dataclass(frozen=True)
class Setup:
    """What to run."""

    epsilons: tuple[float, ...] = EPSILONS
    folds: int = 5
    draws: int = 3
    seed: int = 0
    solver: str | Solver = "auto"


def unit_rows(X: np.ndarray) -> np.ndarray:
    """Rows [x, 1] scaled to unit norm, as in the private fit."""
    rows = np.column_stack([X, np.ones(len(X))])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def scores(decision: np.ndarray, probability: np.ndarray, y: np.ndarray) -> Score:
    accuracy = float(np.mean((decision > 0) == (y == 1)))
    return Score(
        accuracy,
        float(roc_auc_score(y, decision)),
        float(log_loss(y, probability, labels=sets.CLASSES)),
    )


def private_score(
    X: np.ndarray,
    y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    epsilon: float,
    setup: Setup,
    noise: tuple[int, ...],
) -> Score:
    """Fit with reproducible noise and score on the test fold."""
    seed = int(np.random.SeedSequence(noise).generate_state(1)[0])
    model = PrivateLogisticRegression(
        epsilon=epsilon,
        delta=DELTA,
        adjacency=ADJACENCY,
        solver=setup.solver,
        classes=sets.CLASSES,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        model.fit(X[train], y[train])
    return scores(model.decision_function(X[test]), model.predict_proba(X[test]), y[test])


def reference_score(X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> Score:
    """Unpenalised logistic regression by L-BFGS, at most 400 iterations."""
    rows = unit_rows(X)
    model = LogisticRegression(C=np.inf, fit_intercept=False, max_iter=400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows[train], y[train])
    return scores(model.decision_function(rows[test]), model.predict_proba(rows[test]), y[test])


def mean_score(several: Iterable[Score]) -> Score:
    columns = zip(*((s.accuracy, s.auc, s.log_loss) for s in several), strict=True)
    return Score(*(statistics.fmean(column) for column in columns))


def rows_of(X: np.ndarray, fold: int, setup: Setup) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows of a fold."""
    train, test = list(KFold(setup.folds, shuffle=True, random_state=setup.seed).split(X))[fold]
    return train, test


def score_fold(name: str, fold: int, setup: Setup) -> FoldScores:
    """Every epsilon and draw on one fold of one set."""
    X, y = sets.load(name)
    train, test = rows_of(X, fold, setup)
    private = {
        epsilon: mean_score(
            private_score(X, y, train, test, epsilon, setup, (setup.seed, fold, k, draw))
            for draw in range(setup.draws)
        )
        for k, epsilon in enumerate(setup.epsilons)
    }
    share = float(y[test].mean())
    return FoldScores(private, reference_score(X, y, train, test), max(share, 1 - share))


def goal_for(
    name: str, measure: int, epsilon: float, reference: float, error: float
) -> float | None:
    """The accuracy (measure 0) or AUC (1) to reach, or None if there is no goal."""
    if epsilon not in EPSILONS or name not in (*REFERENCE, "a9a"):
        return None
    if name == "a9a":
        return ADULT_GOALS[epsilon] if measure == 0 else None
    best, reached = REFERENCE[name][measure]
    return reference - (best - reached[EPSILONS.index(epsilon)]) - max(SLACK, 2 * error)


def standard_error(values: list[float]) -> float:
    return statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


def summarise(name: str, folds: list[FoldScores], setup: Setup) -> Iterator[Cell]:
    """One cell per epsilon. A goal for a difference allows for the standard error of it."""
    reference = mean_score(f.reference for f in folds)
    majority = statistics.fmean(f.majority for f in folds)
    for epsilon in setup.epsilons:
        private = mean_score(f.private[epsilon] for f in folds)
        error = standard_error([f.private[epsilon].accuracy for f in folds])
        gap_error = standard_error(
            [f.reference.accuracy - f.private[epsilon].accuracy for f in folds]
        )
        auc_error = standard_error([f.reference.auc - f.private[epsilon].auc for f in folds])
        yield Cell(
            set=name,
            epsilon=epsilon,
            accuracy=private.accuracy,
            error=error,
            auc=private.auc,
            log_loss=private.log_loss,
            reference=reference.accuracy,
            reference_auc=reference.auc,
            reference_log_loss=reference.log_loss,
            majority=majority,
            goal=goal_for(name, 0, epsilon, reference.accuracy, gap_error),
            auc_goal=goal_for(name, 1, epsilon, reference.auc, auc_error),
        )


HEAD = [
    "set",
    "epsilon",
    "accuracy",
    "s.e.",
    "goal",
    "AUC",
    "goal",
    "verdict",
    "log-loss",
    "non-private",
    "majority",
]


def table(cells: list[Cell]) -> str:
    """The non-private column has accuracy, AUC and log-loss."""
    return markdown(HEAD, [row(cell) for cell in cells])


def row(c: Cell) -> list[str]:
    goals = ["-" if goal is None else f"{goal:.4f}" for goal in (c.goal, c.auc_goal)]
    return [
        *(
            c.set,
            f"{c.epsilon:g}",
            f"{c.accuracy:.4f}",
            f"{c.error:.4f}",
            goals[0],
            f"{c.auc:.4f}",
            goals[1],
            c.verdict,
        ),
        *(
            f"{c.log_loss:.3f}",
            f"{c.reference:.4f} / {c.reference_auc:.4f} / {c.reference_log_loss:.3f}",
            f"{c.majority:.4f}",
        ),
    ]


def progress(done: int, total: int, what: str) -> None:
    """One line that overwrites itself on a terminal."""
    end = "\r" if sys.stderr.isatty() and done < total else "\n"
    print(f"[{done}/{total}] {what}".ljust(60), end=end, file=sys.stderr, flush=True)


def score_all(names: list[str], setup: Setup, jobs: int) -> dict[str, list[FoldScores]]:
    """Every fold of every set, in several processes if ``jobs`` exceeds one."""
    tasks = [(name, fold) for name in names for fold in range(setup.folds)]
    found: dict[tuple[str, int], FoldScores] = {}
    if jobs == 1:
        for task in tasks:
            found[task] = score_fold(*task, setup)
            progress(len(found), len(tasks), f"{task[0]}, fold {task[1] + 1}")
    else:
        with ProcessPoolExecutor(jobs) as pool:
            running: dict[Future[FoldScores], tuple[str, int]] = {
                pool.submit(score_fold, *t, setup): t for t in tasks
            }
            for future in as_completed(running):
                task = running[future]
                found[task] = future.result()
                progress(len(found), len(tasks), f"{task[0]}, fold {task[1] + 1}")
    return {name: [found[name, fold] for fold in range(setup.folds)] for name in names}


def run(names: list[str], setup: Setup, jobs: int = 1) -> list[Cell]:
    """Score, print and store the table."""
    reasons = {name: sets.missing(name) for name in names}
    for reason in filter(None, reasons.values()):
        print(reason, file=sys.stderr)
    present = [name for name in names if not reasons[name]] or ["adult"]
    cells = [
        cell
        for name, folds in score_all(present, setup, jobs).items()
        for cell in summarise(name, folds, setup)
    ]
    title = (
        f"Accuracy: {setup.folds} folds x {setup.draws} noise draws, delta={DELTA:g}, {ADJACENCY}, "
        f"solver={setup.solver}, seed={setup.seed}"
    )
    data = {"setup": asdict(setup), "cells": [{**asdict(c), "verdict": c.verdict} for c in cells]}
    publish("accuracy", title, table(cells), data)
    return cells


def against_rivals(name: str, k: int, setup: Setup, scored_folds: int) -> list[_rivals.Duel]:
    """One set at the k-th epsilon: ``auto`` and every baseline on the same folds, each draw with
    its own seed.
    """
    X, y = sets.load(name)
    epsilon = setup.epsilons[k]

    def score(solver: str | Solver, fold: int, draw: int) -> _rivals.Scores:
        train, test = rows_of(X, fold, setup)
        found = private_score(
            X, y, train, test, epsilon, replace(setup, solver=solver), (setup.seed, fold, k, draw)
        )
        return {"accuracy": found.accuracy, "AUC": found.auc}

    fits = [(fold, draw) for fold in range(scored_folds) for draw in range(setup.draws)]
    training_rows = len(X) - len(X) // setup.folds
    rivals = _rivals.tuned(training_rows, X.shape[1] + 1, epsilon, DELTA)
    return _rivals.compare(name, epsilon, fits, score, rivals)


def run_rivals(names: list[str], setup: Setup, scored_folds: int) -> list[_rivals.Duel]:
    """Compare, print and store the table."""
    found: list[_rivals.Duel] = []
    present = [name for name in names if not sets.missing(name)]
    tasks = [(name, k) for name in present for k in range(len(setup.epsilons))]
    title = (
        f"auto against the best of {len(_rivals.GRADIENT_SETTINGS) + len(_rivals.CURVATURES)} "
        f"baselines tuned on the test folds: {scored_folds} of "
        f"{setup.folds} folds x {setup.draws} noise draws, delta={DELTA:g}, {ADJACENCY}, allowance "
        f"{_rivals.ALLOWANCE:g}"
    )
    for done, (name, k) in enumerate(tasks, start=1):
        found += against_rivals(name, k, setup, scored_folds)
        lost = [duel for duel in found if duel.verdict == "FAIL"]
        progress(done, len(tasks), f"{name} at {setup.epsilons[k]:g}; {len(lost)} lost so far")
    publish(
        "rivals",
        title,
        _rivals.table(found),
        [{**asdict(duel), "verdict": duel.verdict} for duel in found],
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=sets.SETS, default=list(sets.SETS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--rivals",
        type=int,
        metavar="FOLDS",
        help="compare with tuned baselines instead, on this many of the folds",
    )
    given = parser.parse_args()
    setup = Setup(tuple(given.epsilons), given.folds, given.draws, given.seed, given.solver)
    if given.rivals:
        run_rivals(given.sets, setup, min(given.rivals, given.folds))
    else:
        run(given.sets, setup, given.jobs)


if __name__ == "__main__":
    main()
