"""Do error bands of shape functions cover? Simulated tables with known shapes.

    python -m benchmarks.additive_bands          # into benchmarks/results/additive_bands.json
    python -m benchmarks.additive_bands --page   # the table of docs/algorithms/additive.md

A band is the released shape plus and minus 1.96 standard deviations. Their square is the sum of two
parts: the variance of the shape over replays of the fit with fresh noise on its released answers
(`hushfit.models`, no row is read), and the square of the shape times a relative error of its
scale, which replays do not show. Bands should cover 95 % of the points of a grid where rows are
seen, on average over columns and tables. Covered should be, first, the shapes of the same model
fitted to the same rows without noise; then the true effects, for which sampling error and the
width of the intervals count too. Replace-one, delta 1e-6.
"""

import argparse
import json
import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks._report import ROOT, machine, markdown, write_between
from hushfit import Budget, PrivateLogisticRegression
from hushfit.data import as_source
from hushfit.errors import InsecureNoiseWarning
from hushfit.estimators import private_fit
from hushfit.features import AdditiveMap, centred
from hushfit.models._standard_errors import replayed_weights
from hushfit.release import Randomness, Terms

RESULTS = ROOT / "benchmarks" / "results" / "additive_bands.json"
MARKS = ("<!-- bands: begin -->", "<!-- bands: end -->")
SCALE_ERRORS = (0.0, 0.07, 0.12, 0.18)
REPLICATIONS = 200
GRID = np.linspace(0.0, 1.0, 33)
WIDTH = 1.96


@dataclass(frozen=True)
class Cell:
    """A simulated table, and a budget."""

    rows: int
    columns: int
    epsilon: float
    skewed: bool = False

    @property
    def name(self) -> str:
        kind = "skewed" if self.skewed else "even"
        return f"{self.rows:,} x {self.columns}, {kind}, epsilon {self.epsilon:g}"


CELLS = (
    Cell(2_000, 2, 1.0),
    Cell(2_000, 2, 4.0),
    Cell(6_000, 3, 1.0, skewed=True),
)
EFFECTS = (
    lambda v: 1.5 * np.sin(2 * np.pi * v),
    lambda v: 3.0 * (v - 0.5),
    lambda v: 4.0 * (v - 0.5) ** 2,
    np.zeros_like,
)


def effect(column: int, v: np.ndarray) -> np.ndarray:
    """The true effect of a column on the log-odds."""
    return np.asarray(EFFECTS[column % len(EFFECTS)](v))


def table(cell: Cell, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows in [0, 1] and labels."""
    X = rng.random((cell.rows, cell.columns)) ** (2.0 if cell.skewed else 1.0)
    score = sum(effect(j, X[:, j]) for j in range(cell.columns)) - 0.3
    return X, (rng.random(cell.rows) < 1 / (1 + np.exp(-score))).astype(int)


def replication(cell: Cell, seed: int) -> dict[str, Any]:
    """Of one table: shares of the grid that bands cover, for every scale error."""
    X, y = table(cell, np.random.default_rng(seed))
    model = PrivateLogisticRegression(
        epsilon=cell.epsilon,
        delta=1e-6,
        classes=[0, 1],
        feature_bounds=(0, 1),
        features="additive",
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        prepared = model.prepare(X, y)
        terms = Terms(Budget(cell.epsilon, 1e-6), "simulation", Randomness.of(seed))
        fit = private_fit(prepared.source, prepared.problem, "auto", terms)
        model.accept(fit.result, fit.guarantee, prepared, fit.transcript)
    found, length = model.feature_map_, model.row_profile_.length
    assert isinstance(found, AdditiveMap)
    replays = replayed_weights(fit, prepared.problem)
    assert replays is not None
    exact = without_noise(X, y, found)
    covered = {error: [] for error in SCALE_ERRORS}
    true = {error: [] for error in SCALE_ERRORS}
    ratios = []
    for j, span in enumerate(found.spans):
        masses = model.row_profile_.masses.get(j)
        at = GRID * span.intervals
        hats = np.maximum(0.0, 1 - np.abs(at[:, None] - np.arange(span.intervals + 1)))
        seen = hats @ (np.ones(span.intervals + 1) if masses is None else masses.seen) > 0.999

        def drawn(w: np.ndarray, span: Any = span, masses: Any = masses, hats: Any = hats) -> Any:
            return hats @ centred(found.table(span) @ w[span.shape], masses) / (length or 1.0)

        shape, wanted = drawn(fit.result.w), drawn(exact)
        deviation = np.std([drawn(w) for w in replays], axis=0, ddof=1)
        truth = effect(j, GRID)
        truth = truth - float(np.mean(effect(j, X[:, j])))
        ratios += (np.abs(shape - wanted) / deviation)[seen].tolist()
        for error in SCALE_ERRORS:
            half = WIDTH * np.sqrt(deviation**2 + (error * shape) ** 2)
            covered[error] += (np.abs(shape - wanted) <= half)[seen].tolist()
            true[error] += (np.abs(shape - truth) <= half)[seen].tolist()
    return {
        "cell": asdict(cell),
        "seed": seed,
        "intervals": max(found.intervals),
        "same model": {str(e): float(np.mean(c)) for e, c in covered.items() if c},
        "truth": {str(e): float(np.mean(c)) for e, c in true.items() if c},
        "error over deviation": float(np.sqrt(np.mean(np.square(ratios)))) if ratios else None,
    }


def without_noise(X: np.ndarray, y: np.ndarray, feature_map: AdditiveMap) -> np.ndarray:
    """Weights of the same model without noise."""
    source = as_source(X, np.where(y == 1, 1.0, -1.0), feature_map=feature_map)
    records = np.concatenate([block.records() for block in source.blocks()])
    model = LogisticRegression(C=np.inf, fit_intercept=False, solver="newton-cholesky")
    return np.asarray(model.fit(records, y).coef_[0])


def run() -> None:
    """Add what is missing, a few replications of every cell at a time."""
    rows = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    known = {(Cell(**row["cell"]), row["seed"]) for row in rows}
    for start in range(0, REPLICATIONS, 20):
        for cell in CELLS:
            for seed in range(start, start + 20):
                if (cell, seed) not in known:
                    rows.append(replication(cell, seed))
            lines = ",\n".join(json.dumps(row) for row in rows)
            RESULTS.write_text(f'{{"machine": {json.dumps(machine())}, "rows": [\n{lines}\n]}}\n')
        print(page(rows), flush=True)


def page(rows: list[dict[str, Any]]) -> str:
    """Mean coverage of each cell."""
    lines = []
    for cell in CELLS:
        own = [row for row in rows if Cell(**row["cell"]) == cell]
        if not own:
            continue
        means = [
            " ".join(
                f"{np.mean([row[target][str(e)] for row in own if row[target]]):.2f}"
                for e in SCALE_ERRORS
            )
            for target in ("same model", "truth")
        ]
        lines.append([cell.name, str(len(own)), *means])
    return markdown(["table", "drawn", "same model: 0, 7, 12, 18 %", "truth"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.additive_bands", description=__doc__
    )
    parser.add_argument("--page", action="store_true", help="write the page from stored results")
    if parser.parse_args().page:
        rows = json.loads(RESULTS.read_text())["rows"]
        write_between(ROOT / "docs" / "algorithms" / "additive.md", MARKS, [page(rows)])
        return
    run()


if __name__ == "__main__":
    main()
