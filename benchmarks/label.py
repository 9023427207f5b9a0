"""Label-private logistic regression against row-level ``auto`` at the same epsilon: how much is
gained where features are public.

``adjacency="label"`` protects labels alone; ``adjacency="replace-one"`` protects whole rows. Both
are fitted on the same folds, and the last column is the same model without privacy.
"""

import argparse
import statistics
import sys
import warnings
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks import sets
from benchmarks._report import markdown, publish
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
# A difference below two of its standard errors, over folds and paired, is none.
ERRORS = 2.0


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
        found = {
            "accuracy": own.accuracy < rows.accuracy - ERRORS * errors.accuracy,
            "AUC": own.auc < rows.auc - ERRORS * errors.auc,
            "log-loss": own.log_loss > rows.log_loss + ERRORS * errors.log_loss,
        }
        return [measure for measure, is_worse in found.items() if is_worse]

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


def compare(name: str, setup: Setup) -> list[Cell]:
    """Every epsilon on every fold of one set."""
    X, y = sets.load(name)
    folds = [rows_of(X, fold, setup) for fold in range(setup.folds)]
    reference = mean_score(reference_score(X, y, *fold) for fold in folds)
    cells = []
    for k, epsilon in enumerate(setup.epsilons):
        found = {
            relation: [
                mean_score(
                    fitted_score(X, y, *fold, epsilon, relation, _seed(setup, number, k, draw))
                    for draw in range(setup.draws)
                )
                for number, fold in enumerate(folds)
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
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    run(given.sets, Setup(tuple(given.epsilons), given.folds, given.draws, given.seed))


if __name__ == "__main__":
    main()
