"""Raw columns with private bounds against public ones, and with a private search against none, at
one total epsilon.

``python -m benchmarks.preprocessing [--sets adult bank] [--folds 3] [--draws 2]``. Goal: private
bounds lose at most .01 of accuracy to public ranges. The two clip differently (the private ones at
quantiles), so a third variant separates the effects of noise and of clipping: the same quantiles,
computed exactly from the rows.
"""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import StratifiedKFold

from benchmarks import sets
from benchmarks._report import markdown, publish
from hushfit import PrivateLogisticRegression
from hushfit.data.schema._schema import CategoricalColumn, Schema
from hushfit.datasets import load_adult
from hushfit.model_selection import PrivateSearchCV
from hushfit.preprocessing import (
    BoundedScaler,
    PrivatePipeline,
    PrivateQuantileScaler,
    SchemaEncoder,
)

EPSILON, DELTA, GOAL = 1.0, 1e-6, 0.01
# Folds that were not used to choose any default.
FOLDS_SEED = 7
# Prevents empty ranges.
EMPTY = np.array([[0.0], [1e-9]])

# As known without the file: documented ranges where there is documentation, else round numbers.
ADULT_RANGES = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 5_000),
    "hours-per-week": (1, 99),
}
BANK_RANGES = {
    "age": (18, 100),
    "balance": (-10_000, 110_000),
    "day": (1, 31),
    "duration": (0, 5_000),
    "campaign": (1, 63),
    "pdays": (-1, 900),
    "previous": (0, 300),
}


@dataclass(frozen=True, eq=False)
class Raw:
    """A raw table with the ranges of its numeric columns."""

    frame: pd.DataFrame
    y: np.ndarray
    ranges: dict[str, tuple[float, float]]

    @property
    def texts(self) -> list[str]:
        return [name for name in self.frame.columns if name not in self.ranges]

    def encoder(self) -> SchemaEncoder:
        """Encoder with every text that occurs, as if all of them were documented."""
        return SchemaEncoder(
            Schema(
                tuple(
                    CategoricalColumn(name, tuple(sorted(set(self.frame[name]))))
                    for name in self.texts
                )
            )
        )


def adult() -> Raw:
    table = load_adult()
    return Raw(table.to_frame().drop(columns="income"), table.y, ADULT_RANGES)


def bank() -> Raw:
    head, *cells = sets.cells_of(sets.lines_of(sets.folder() / "bank" / "bank-full.csv.xz"), ";")
    frame = pd.DataFrame(cells, columns=head).astype(dict.fromkeys(BANK_RANGES, float))
    return Raw(frame.drop(columns="y"), (frame["y"] == "yes").to_numpy().astype(int), BANK_RANGES)


RAW: dict[str, Callable[[], Raw]] = {"adult": adult, "bank": bank}


def pipeline(
    raw: Raw, numbers: Any, texts: SchemaEncoder, seed: int, epsilon: float = EPSILON
) -> PrivatePipeline:
    """Preprocessing of numbers and texts, then logistic regression, under one budget."""
    prepare = ColumnTransformer(
        [("numbers", numbers, list(raw.ranges)), ("texts", texts, raw.texts)]
    )
    model = PrivateLogisticRegression(classes=[0, 1])
    return PrivatePipeline(
        [("prepare", prepare), ("model", model)], epsilon=epsilon, delta=DELTA, random_state=seed
    )


def ways(raw: Raw) -> dict[str, Callable[[int], PrivatePipeline]]:
    """The compared variants."""
    public = BoundedScaler(list(raw.ranges.values()))
    # Not private, for reference: the same clipping as in the private scaler, without its noise and
    # its privacy cost.
    exact = BoundedScaler(
        list(
            zip(
                *raw.frame[list(raw.ranges)].quantile([0.005, 0.995]).to_numpy() + EMPTY,
                strict=True,
            )
        )
    )
    found = SchemaEncoder(discover=raw.texts)
    return {
        "public": lambda seed: pipeline(raw, public, raw.encoder(), seed),
        "exact quantiles (not private)": lambda seed: pipeline(raw, exact, raw.encoder(), seed),
        "private bounds": lambda seed: pipeline(raw, PrivateQuantileScaler(), raw.encoder(), seed),
        "private bounds and vocabularies": lambda seed: pipeline(
            raw, PrivateQuantileScaler(), found, seed
        ),
        "private ranks": lambda seed: pipeline(
            raw, PrivateQuantileScaler(output="rank"), raw.encoder(), seed
        ),
    }


@dataclass(frozen=True)
class Cell:
    """Mean accuracy of one variant on one set, and its difference to public bounds on the same
    folds.
    """

    set: str
    way: str
    accuracy: float
    loss: float
    error: float
    goal: float | None

    @property
    def verdict(self) -> str:
        return "-" if self.goal is None else "pass" if self.loss <= self.goal else "FAIL"

    def cells(self) -> list[str]:
        goal = "-" if self.goal is None else f"<= {self.goal:g}"
        return [
            self.set,
            self.way,
            f"{self.accuracy:.4f}",
            f"{self.loss:+.4f} ({self.error:.4f})",
            goal,
            self.verdict,
        ]


def measure(name: str, folds: int, draws: int) -> list[Cell]:
    """All variants on the same folds."""
    raw = RAW[name]()
    scores: dict[str, list[float]] = {}
    for fold, (fitted_on, tested_on) in enumerate(
        StratifiedKFold(folds, shuffle=True, random_state=FOLDS_SEED).split(raw.frame, raw.y)
    ):
        for way, build in ways(raw).items():
            for draw in range(draws):
                fitted = build(1000 * fold + draw).fit(raw.frame.iloc[fitted_on], raw.y[fitted_on])
                scores.setdefault(way, []).append(
                    fitted.score(raw.frame.iloc[tested_on], raw.y[tested_on])
                )
    public = np.array(scores["public"])
    return [
        Cell(
            name,
            way,
            mean(found),
            mean(public - found),
            float(np.std(public - found) / len(found) ** 0.5),
            GOAL if "bounds" in way else None,
        )
        for way, found in scores.items()
    ]


def run(names: list[str], folds: int, draws: int) -> list[Cell]:
    """Measure, print and store the table."""
    cells = []
    for name in names:
        if sets.missing(name):
            print(sets.missing(name))
            continue
        cells += measure(name, folds, draws)
    head = ["set", "ranges", "accuracy", "lost to public (s.e.)", "goal", "verdict"]
    title = (
        f"Raw columns, epsilon {EPSILON:g} in all, delta {DELTA:g}, replace-one, {folds} folds, "
        f"{draws} draws"
    )
    publish(
        "preprocessing",
        title,
        markdown(head, [cell.cells() for cell in cells]),
        [asdict(cell) for cell in cells],
    )
    return cells


def search(draws: int) -> None:
    """The weight of a penalty on Adult: fixed weights, and a private search over them."""
    X, y = load_adult(return_X_y=True)
    tested_on = np.arange(len(y)) % 4 == 0
    train, test = (X[~tested_on], y[~tested_on]), (X[tested_on], y[tested_on])
    alphas = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1]

    def alone(alpha: float | None, seed: int) -> float:
        penalty = {} if alpha is None else {"penalty": "l1", "alpha": alpha}
        return (
            PrivateLogisticRegression(EPSILON, DELTA, classes=[0, 1], random_state=seed, **penalty)
            .fit(*train)
            .score(*test)
        )

    def searched(trials: float, seed: int) -> float:
        model = PrivateLogisticRegression(penalty="l1", classes=[0, 1])
        found = PrivateSearchCV(model, {"alpha": alphas}, trials, EPSILON, DELTA, random_state=seed)
        return found.fit(*train).score(*test)

    rows = [
        ["no penalty, no search", *_mean_and_worst([alone(None, seed) for seed in range(draws)])]
    ]
    rows += [
        [
            f"L1 with alpha {alpha:g}, no search",
            *_mean_and_worst([alone(alpha, seed) for seed in range(draws)]),
        ]
        for alpha in alphas
    ]
    rows += [
        [
            f"search, {k:g} trials expected",
            *_mean_and_worst([searched(k, seed) for seed in range(draws)]),
        ]
        for k in (3, 10)
    ]
    publish(
        "search",
        f"Search on Adult, epsilon {EPSILON:g}, delta {DELTA:g}, replace-one, {draws} draws",
        markdown(["fit", "accuracy", "worst"], rows),
        rows,
    )


def _mean_and_worst(scores: list[float]) -> list[str]:
    return [f"{mean(scores):.4f}", f"{min(scores):.4f}"]


def main() -> int:
    """The number of missed goals decides the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.preprocessing", description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(RAW), choices=list(RAW))
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--draws", type=int, default=2)
    given = parser.parse_args()
    # The noise is seeded, so that tables are reproducible.
    warnings.simplefilter("ignore")
    missed = [cell for cell in run(given.sets, given.folds, given.draws) if cell.verdict == "FAIL"]
    search(given.draws * given.folds)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
