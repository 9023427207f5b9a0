"""Coverage of private intervals on real tables: ``python -m benchmarks.coverage_tables``.

The population is a whole table, a sample is drawn from it with replacement, and errors are robust,
since no model holds exactly there. Two targets are looked at: the ordinary coefficient of the whole
table, and in the first replications that of the table with the weights of the fit, by which unusual
rows count less.

Cells with persons are simulated: several rows each, with an effect of their own; errors are
clustered. Delta 1e-6, replace-one. Results are kept in ``out/coverage_tables.jsonl`` so that a run
can be stopped and continued; ``--write`` stores them in
``benchmarks/results/coverage_tables.json`` and writes the table of docs/algorithms/inference.md.
"""

import argparse
import math
import warnings
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import expit

from benchmarks import sets
from benchmarks._kept import chosen, keep, kept, store, with_stored
from benchmarks._many_fits import ManyFits
from benchmarks._report import ROOT, markdown
from benchmarks.coverage import DELTA, LEVEL, LINKS, LOSSES, PAGE, in_units
from hushfit.data import RecordScaling, as_source, persons_of
from hushfit.datasets import load_adult
from hushfit.estimators._inference import About, Inference, inference_of
from hushfit.penalties import Zero
from hushfit.privacy import Budget, Relation
from hushfit.problem import Problem
from hushfit.solvers.inference import ScoreSteps, least_units
from hushfit.unit import PrivacyUnit

KEPT = ROOT / "out" / "coverage_tables.jsonl"
RESULTS = Path(__file__).parent / "results" / "coverage_tables.json"
MARKS = "<!-- coverage of tables: begin -->", "<!-- coverage of tables: end -->"
FIRST, ROUNDS = 10_000, (20, 60, *range(200, 1000, 100))
_WEIGHTED = 50  # replications whose own weighted coefficients are computed too
CONSTANT = math.sqrt(0.5)  # the entry of the intercept in a record
PERSON_WEIGHTS = np.array([0.1, 0.3, -0.2, 0.1])


@dataclass(frozen=True)
class Cell:
    """A population, a sample size and a budget."""

    population: str
    n: int
    epsilon: float
    even_weights: bool = False

    @property
    def name(self) -> str:
        return "/".join(map(str, astuple(self)))

    @property
    def family(self) -> str:
        return "logistic" if self.population in ("Adult: income", "covtype: class 2") else "linear"


@dataclass(frozen=True, eq=False)
class Rows:
    """Columns in [-1, 1], responses, and perhaps whose row each is."""

    X: np.ndarray
    y: np.ndarray
    ids: np.ndarray | None = None


def adult_columns() -> tuple[np.ndarray, dict]:
    found = load_adult()
    columns = found.columns
    numbers = [("age", 17, 90), ("education-num", 1, 16)]
    parts = [
        2 * (np.clip(np.asarray(columns[name], float), low, high) - low) / (high - low) - 1
        for name, low, high in numbers
    ]
    married = np.char.startswith(np.asarray(columns["marital-status"], str), "Married-civ")
    parts += [np.asarray(columns["sex"]) == "Male", married]
    return np.column_stack(parts).astype(float), {"columns": columns, "y": found.y}


def income() -> Rows:
    X, other = adult_columns()
    hours = np.clip(np.asarray(other["columns"]["hours-per-week"], float), 1, 99)
    return Rows(np.column_stack([X, (hours - 50) / 49]), np.where(other["y"] > 0, 1.0, -1.0))


def hours() -> Rows:
    X, other = adult_columns()
    worked = np.clip(np.asarray(other["columns"]["hours-per-week"], float), 1, 99)
    return Rows(X, (worked - 50) / 49)


def cover() -> Rows:
    X, y = sets.covtype()
    return Rows(2 * X[:, [0, 2, 3, 5, 7, 9]] - 1, np.where(y > 0, 1.0, -1.0))


def sent() -> Rows:
    """Logarithm of the bytes sent, by login, connections to the host and their kind."""
    cells = sets.cells_of(sets.sampled(sets.kddcup99_lines()), ",")
    logged_in, count, same_service, host_count = (
        cells[:, j].astype(float) for j in (11, 22, 28, 31)
    )
    X = np.column_stack([logged_in, count / 511, same_service, host_count / 255])
    sent_bytes = np.log1p(np.clip(cells[:, 4].astype(float), 0, 1e6))
    return Rows(2 * X - 1, 2 * sent_bytes / math.log1p(1e6) - 1)


POPULATIONS: dict[str, Callable[[], Rows]] = {
    "Adult: income": income,
    "Adult: hours": hours,
    "covtype: class 2": cover,
    "kddcup99: bytes sent": sent,
}
NEEDED = {"covtype: class 2": "covtype", "kddcup99: bytes sent": "kddcup99"}
COLUMNS = {"Adult: income": 5, "Adult: hours": 4, "covtype: class 2": 6, "kddcup99: bytes sent": 4}
PERSONS = "simulated: persons"


@cache
def population(name: str) -> Rows:
    return POPULATIONS[name]()


def persons_rows(n: int, rng: np.random.Generator) -> Rows:
    """Rows of n persons, one to five each, with an effect and a column of their own."""
    counts = rng.integers(1, 6, n)
    ids = np.repeat(np.arange(n), counts)
    own, effect = rng.uniform(-1, 1, n), rng.normal(0, 0.15, n)
    X = np.column_stack([own[ids], rng.uniform(-1, 1, (len(ids), 2))])
    mean = PERSON_WEIGHTS[0] + X @ PERSON_WEIGHTS[1:]
    y = mean + effect[ids] + 0.15 * rng.normal(size=len(ids))
    return Rows(X, np.clip(y, -1, 1), ids)


def sample(cell: Cell, rng: np.random.Generator) -> Rows:
    if cell.population == PERSONS:
        return persons_rows(cell.n, rng)
    whole = population(cell.population)
    chosen = rng.integers(len(whole.X), size=cell.n)
    return Rows(whole.X[chosen], whole.y[chosen])


@cache
def fits(cell: Cell, problem: Problem, epsilon: float) -> ManyFits:
    solver = ScoreSteps(robust=True, even_weights=cell.even_weights)
    return ManyFits(problem, solver, Budget(epsilon, DELTA))


def fitted(cell: Cell, rows: Rows, epsilon: float, seed: int) -> tuple[Inference, np.ndarray]:
    """The inference of a fit, and the metric of its last look."""
    unit = PrivacyUnit.person("mean", None)
    persons = None if rows.ids is None else persons_of(rows.ids, len(rows.X), unit)
    scaling = RecordScaling.BOUNDED
    source = as_source(rows.X, rows.y, scaled_labels=True, scaling=scaling, persons=persons)
    problem = problem_of(cell, rows.X.shape[1], source.n_units, source.privacy_unit)
    fit = fits(cell, problem, epsilon).fit(source, seed)
    names = [f"x{j}" for j in range(rows.X.shape[1])]
    about = About(names, "robust", cell.name, LINKS[cell.family], np.zeros(len(names)))
    found = inference_of(fit, problem, in_units, about)
    return found, fit.transcript[-1].query.A


def weighted(cell: Cell, rows: Rows, metric: np.ndarray) -> np.ndarray:
    """The coefficients of rows that weigh what they do in a fit, by Newton's method."""
    Z = np.column_stack([rows.X, np.full(len(rows.X), CONSTANT)])
    a = np.minimum(1.0, 1 / np.sum((Z @ metric) ** 2, axis=1))
    w = np.zeros(Z.shape[1])
    for _ in range(8):
        mean = Z @ w
        bend, goal = np.ones(len(Z)), rows.y
        if cell.family == "logistic":
            mean, goal = expit(mean), rows.y > 0
            bend = mean * (1 - mean)
        w = w - np.linalg.solve((Z.T * (a * bend)) @ Z, Z.T @ (a * (mean - goal)))
    return in_units(w)


def problem_of(cell: Cell, d: int, n_units: int, unit: PrivacyUnit | None = None) -> Problem:
    more = {} if unit is None else {"privacy_unit": unit}
    return Problem(
        LOSSES[cell.family],
        Zero(),
        n_units,
        d,
        Relation.REPLACE_ONE,
        scaling=RecordScaling.BOUNDED,
        **more,
    )


@cache
def truth(cell: Cell) -> np.ndarray:
    if cell.population == PERSONS:
        return PERSON_WEIGHTS
    return np.asarray(fitted(cell, population(cell.population), math.inf, 0)[0].params)


@cache
def errors_without_privacy(cell: Cell) -> np.ndarray:
    """Mean standard errors of a few samples."""
    found = [fitted(cell, sample(cell, np.random.default_rng(k)), math.inf, 0)[0] for k in range(3)]
    return np.mean([one.bse for one in found], axis=0)


def grid() -> list[Cell]:
    names = [*POPULATIONS, PERSONS]
    sizes = {PERSONS: (4000, 10_000)}
    cells = [
        Cell(name, n, epsilon)
        for name in names
        for n in sizes.get(name, (5000, 20_000))
        for epsilon in (0.3, 1.0, 3.0)
    ]
    even = [
        Cell(name, 20_000, epsilon, even_weights=True)
        for name in ("Adult: hours", "kddcup99: bytes sent")
        for epsilon in (1.0, 3.0)
    ]
    return cells + even


def refused(cell: Cell) -> int | None:
    d = COLUMNS.get(cell.population, 3)
    needed = least_units(problem_of(cell, d, cell.n), Budget(cell.epsilon, DELTA))
    return needed if needed > cell.n else None


def replication(cell: Cell, number: int) -> dict | None:
    rng = np.random.default_rng([number, cell.n, round(100 * cell.epsilon)])
    found, metric = fitted(cell, sample(cell, rng), cell.epsilon, int(rng.integers(2**31)))
    if found.verdict == "none":
        return None
    goal, plain = truth(cell), errors_without_privacy(cell)
    real, shown = cell.population != PERSONS, ~found.hidden
    ends, together = found.conf_int(LEVEL), found.conf_int(LEVEL, simultaneous=True)
    outcome = {
        "ordinary": ((ends[:, 0] <= goal) & (goal <= ends[:, 1]))[shown].astype(int).tolist(),
        "together": bool(np.all((together[:, 0] <= goal) & (goal <= together[:, 1]))),
        "width": float(np.median((found.bse / plain)[shown])),
    }
    if number - FIRST < _WEIGHTED:
        own = weighted(cell, population(cell.population), metric) if real else goal
        held = (ends[:, 0] <= own) & (own <= ends[:, 1])
        outcome["covered"] = held[shown].astype(int).tolist()
    return outcome


def run(cells: list[Cell], replications: int) -> None:
    done = kept(KEPT)
    for most in sorted({min(most, replications) for most in (*ROUNDS, replications)}):
        for cell in cells:
            known = done.setdefault(cell.name, {})
            if refused(cell) is not None:
                continue
            for number in range(FIRST, FIRST + most):
                if number not in known:
                    known[number] = replication(cell, number)
                    keep(KEPT, cell.name, number, known[number])


def summaries() -> list[dict]:
    done, lines = kept(KEPT), []
    for cell in grid():
        line = {"cell": astuple(cell), "needed": refused(cell)}
        outcomes = list(done.get(cell.name, {}).values())
        seen = [one for one in outcomes if one is not None]
        if seen:
            line |= {
                "replications": len(outcomes),
                "none": 1 - len(seen) / len(outcomes),
                "coverage": _share(seen, "covered"),
                "ordinary": _share(seen, "ordinary"),
                "error": _error(seen, "ordinary"),
                "together": float(np.mean([one["together"] for one in seen])),
                "width": float(np.median([one["width"] for one in seen])),
            }
        if seen or line["needed"] is not None:
            lines.append(line)
    return lines


def _share(seen: list[dict], kind: str) -> float:
    return float(np.mean(np.concatenate([one.get(kind, []) for one in seen])))


def _error(seen: list[dict], kind: str) -> float:
    shares = [np.mean(one[kind]) for one in seen]
    return float(np.std(shares) / math.sqrt(len(shares)))


def _within(line: dict) -> str:
    return f" ± {line['error']:.3f}" if "error" in line else ""


def table(lines: list[dict]) -> str:
    head = ["population", "rows or persons", "epsilon", "coverage", "of the weighted coefficient"]
    head += ["all at once", "width / without privacy", "replications"]
    rows = []
    for line in lines:
        name, n, epsilon, even = line["cell"]
        first = [f"{name}, even weights" if even else name, f"{n:,}", f"{epsilon:g}"]
        if line["needed"] is not None:
            rows.append([*first, f"refused: needs {line['needed']:,}", "", "", "", ""])
            continue
        note = f" ({line['none']:.0%} none)" if line["none"] else ""
        shown = [
            f"{line['ordinary']:.3f}{_within(line)}{note}",
            f"{line['coverage']:.3f}",
            f"{line['together']:.3f}",
        ]
        rows.append([*first, *shown, f"{line['width']:.2f}", str(line["replications"])])
    return markdown(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--only", nargs="*", help="parts of the names of cells")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--stored", action="store_true", help="only what has been kept")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    missing = {name: sets.missing(stored) for name, stored in NEEDED.items()}
    for text in filter(None, missing.values()):
        print(text)
    cells = [cell for cell in chosen(grid(), given.only) if not missing.get(cell.population)]
    if not given.stored:
        run(cells, given.replications)
    lines = with_stored(summaries(), RESULTS, [astuple(cell) for cell in grid()])
    print(table(lines))
    if given.write:
        store(RESULTS, lines, PAGE, MARKS, table(lines))


if __name__ == "__main__":
    main()
