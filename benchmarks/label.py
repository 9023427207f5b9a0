"""Label-private logistic regression against row-level ``auto`` at the same epsilon: how much is
gained where features are public.

``adjacency="label"`` protects labels alone; ``adjacency="replace-one"`` protects whole rows. Both
are fitted on the same folds, and the last column is the same model without privacy. Each fit is
stored when it is measured, so an interrupted run goes on where it stopped; delete the lines of
``out/label.jsonl`` that a change of the code makes obsolete.
"""

import argparse
import json
import statistics
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks import sets
from benchmarks._report import OUT, markdown, publish
from benchmarks.accuracy import (
    DELTA,
    EPSILONS,
    Score,
    Setup,
    mean_score,
    progress,
    reference_score,
    rows_of,
    scores,
    standard_error,
)
from hushfit import PrivateLogisticRegression
from hushfit.errors import InsecureNoiseWarning

TABLES = ("a9a", "bank", "covtype")
RELATIONS = ("label", "replace-one")
# A difference below two of its standard errors, over folds and paired, or below this is none.
ERRORS, NEGLIGIBLE = 2.0, 0.0005
RUNS = OUT / "label.jsonl"


@dataclass(frozen=True)
class Cell:
    """One set at one epsilon: the mean over folds under each relation, and the standard error of
    the paired difference in accuracy, AUC and log-loss.
    """

    set: str
    epsilon: float
    label: Score
    rows: Score
    reference: Score
    errors: Score

    @property
    def worse(self) -> list[str]:
        """Measures in which labels alone do worse than whole rows."""
        own, rows, errors = self.label, self.rows, self.errors
        lost = {
            "accuracy": (rows.accuracy - own.accuracy, errors.accuracy),
            "AUC": (rows.auc - own.auc, errors.auc),
            "log-loss": (own.log_loss - rows.log_loss, errors.log_loss),
        }
        return [
            measure
            for measure, (loss, error) in lost.items()
            if loss > max(ERRORS * error, NEGLIGIBLE)
        ]

    @property
    def verdict(self) -> str:
        return f"FAIL: {', '.join(self.worse)}" if self.worse else "pass"


def fitted_score(
    X: np.ndarray,
    y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    epsilon: float,
    adjacency: str,
    seed: int,
) -> Score:
    """Fit with reproducible noise and score on the test fold."""
    model = PrivateLogisticRegression(
        epsilon=epsilon,
        delta=DELTA,
        adjacency=adjacency,
        classes=sets.CLASSES,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        model.fit(X[train], y[train])
    return scores(model.decision_function(X[test]), model.predict_proba(X[test]), y[test])


def stored(key: str, measure: Callable[[], Score]) -> Score:
    """A score that was measured before, or is measured and stored now."""
    lines = RUNS.read_text().splitlines() if RUNS.exists() else []
    known = {run["key"]: run["score"] for run in map(json.loads, lines)}
    if key in known:
        return Score(**known[key])
    score = measure()
    OUT.mkdir(exist_ok=True)
    with RUNS.open("a") as file:
        file.write(json.dumps({"key": key, "score": asdict(score)}) + "\n")
    return score


def compare(name: str, setup: Setup) -> list[Cell]:
    """Every epsilon on every fold of one set."""
    X, y = sets.load(name)
    folds = [rows_of(X, fold, setup) for fold in range(setup.folds)]

    def fitted(relation: str, epsilon: float, fold: int, draw: int) -> Score:
        seed = _seed(setup, fold, EPSILONS.index(epsilon), draw)
        return stored(
            f"{name}, {relation}, {epsilon:g}, fold {fold} of {setup.folds}, draw {draw}, "
            f"seed {setup.seed}",
            lambda: fitted_score(X, y, *folds[fold], epsilon, relation, seed),
        )

    reference = mean_score(
        stored(
            f"{name}, without privacy, fold {number} of {setup.folds}, seed {setup.seed}",
            lambda fold=fold: reference_score(X, y, *fold),
        )
        for number, fold in enumerate(folds)
    )
    cells = []
    for k, epsilon in enumerate(setup.epsilons):
        found = {
            relation: [
                mean_score(fitted(relation, epsilon, fold, draw) for draw in range(setup.draws))
                for fold in range(setup.folds)
            ]
            for relation in RELATIONS
        }
        cells.append(
            Cell(
                name,
                epsilon,
                mean_score(found["label"]),
                mean_score(found["replace-one"]),
                reference,
                _errors(found["label"], found["replace-one"]),
            )
        )
        progress(k + 1, len(setup.epsilons), f"{name}: {cells[-1].verdict} at {epsilon:g}")
    return cells


def _seed(setup: Setup, *numbers: int) -> int:
    return int(np.random.SeedSequence((setup.seed, *numbers)).generate_state(1)[0])


def _errors(ours: list[Score], others: list[Score]) -> Score:
    def of(measure: str) -> float:
        return standard_error(
            [getattr(a, measure) - getattr(b, measure) for a, b in zip(ours, others, strict=True)]
        )

    return Score(of("accuracy"), of("auc"), of("log_loss"))


def table(cells: list[Cell]) -> str:
    """Accuracy, AUC and log-loss: of labels alone, of rows, and without privacy."""

    def three(score: Score) -> str:
        return f"{score.accuracy:.4f} / {score.auc:.4f} / {score.log_loss:.4f}"

    head = ["set", "epsilon", "label", "replace-one", "not private", "verdict"]
    return markdown(
        head,
        [
            [c.set, f"{c.epsilon:g}", three(c.label), three(c.rows), three(c.reference), c.verdict]
            for c in cells
        ],
    )


def run(names: list[str], setup: Setup) -> list[Cell]:
    """Compare, print and store the table."""
    present = []
    for name in names:
        reason = sets.missing(name)
        if reason:
            print(reason, file=sys.stderr)
        else:
            present.append(name)
    cells = [cell for name in present for cell in compare(name, setup)]
    title = (
        f"Labels alone against whole rows, accuracy / AUC / log-loss: {setup.folds} folds x "
        f"{setup.draws} noise draws, delta={DELTA:g}, solver=auto, seed={setup.seed}"
    )
    better = statistics.fmean([c.label.log_loss < c.rows.log_loss for c in cells] or [0])
    print(f"log-loss is lower with labels alone in {better:.0%} of the cells")
    publish("label", title, table(cells), [{**asdict(c), "verdict": c.verdict} for c in cells])
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.label", description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=sets.SETS, default=list(TABLES))
    parser.add_argument(
        "--epsilons", nargs="+", type=float, choices=EPSILONS, default=list(EPSILONS)
    )
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    run(given.sets, Setup(tuple(given.epsilons), given.folds, given.draws, given.seed))


if __name__ == "__main__":
    main()
