"""Coverage and width of private confidence intervals: ``python -m benchmarks.coverage``.

Every replication draws new rows from a known model, fits it once and looks whether the intervals of
95 % cover the coefficients. Delta 1e-6, replace-one. Replications have numbers, from which their
seeds follow; small ones were looked at while the procedure was built, so the tables begin at
10,000. Results of finished replications are kept in ``out/coverage.jsonl``, so that a run can be
stopped and continued; ``--write`` stores them in ``benchmarks/results/coverage.json`` and writes
the table of ``docs/algorithms/inference.md``.
"""

import argparse
import math
import warnings
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import expit

from benchmarks._kept import chosen, keep, kept, store, with_stored
from benchmarks._many_fits import ManyFits
from benchmarks._report import ROOT, markdown
from hushfit.data import RecordScaling, as_source
from hushfit.estimators._inference import About, Inference, inference_of
from hushfit.losses import LeastSquares, Logistic, Loss, Poisson
from hushfit.penalties import Zero
from hushfit.privacy import Budget, Relation
from hushfit.problem import Problem
from hushfit.solvers.inference import ScoreSteps, least_units

DELTA, LEVEL, FIRST = 1e-6, 0.95, 10_000
ROUNDS, _MANY = (20, 100, 300), 300
_PLAIN = 3  # tables of which errors without privacy are the mean
KEPT = ROOT / "out" / "coverage.jsonl"
RESULTS = Path(__file__).parent / "results" / "coverage.json"
PAGE = ROOT / "docs" / "algorithms" / "inference.md"
FIGURE = ROOT / "docs" / "figures" / "coverage.svg"
MARKS = "<!-- coverage: begin -->", "<!-- coverage: end -->"
MOST_COUNT = 5
LOSSES: dict[str, Loss] = {
    "linear": LeastSquares(),
    "logistic": Logistic(),
    "counts": Poisson(float(MOST_COUNT)),
}
LINKS = {"linear": "identity", "logistic": "logit", "counts": "log"}
PATTERN = np.array([1.2, -0.8, 0.5, 0, 0, -0.4, 0, 0.3, 0, 0])
PREVALENCES = 0.05, 0.1, 0.3, 0.5
# Means that are stated before the fit, of designs in which they are not usual.
STATED = {"prevalence 5 %": 0.05}


@dataclass(frozen=True)
class Cell:
    """One model and one budget."""

    family: str
    n: int
    d: int
    epsilon: float
    design: str = "correlated"

    @property
    def name(self) -> str:
        return "/".join(str(part) for part in astuple(self))


def grid() -> list[Cell]:
    """The cells of the table, cheap ones first."""
    cells = [
        Cell(family, n, d, epsilon)
        for n, widths in ((2000, (3, 10)), (10_000, (3, 10, 30)), (100_000, (3, 10, 30)))
        for family in LOSSES
        for d in widths
        for epsilon in (0.3, 1.0, 3.0)
    ]
    special = [
        Cell("logistic", 10_000, d, epsilon, design)
        for design in ("rare columns", "even indicators", "prevalence 5 %", "misspecified")
        for d in (3, 10)
        for epsilon in (1.0, 3.0)
    ]
    special += [Cell("logistic", 20_000, 10, 1.0, "prevalence 5 %")]
    special += [Cell("linear", 10_000, 3, epsilon, "misspecified") for epsilon in (1.0, 3.0)]
    special += [Cell("counts", 10_000, 3, epsilon, "misspecified") for epsilon in (1.0, 3.0)]
    return cells[: 5 * 9] + special + cells[5 * 9 :]


def coefficients(cell: Cell) -> np.ndarray:
    """Intercept and coefficients of columns in [-1, 1]."""
    b = np.array([PATTERN[j % 10] * (1.0 if j < 10 else 0.3) for j in range(cell.d)])
    if cell.design == "rare columns":
        b[1::2] *= 0.5
    scale, intercept = {"linear": (0.25, 0.1), "logistic": (1.0, -0.5), "counts": (0.6, -0.1)}[
        cell.family
    ]
    if cell.design == "prevalence 5 %":
        intercept = -3.0
    return np.append(intercept, scale * b)


def columns(cell: Cell, n: int, rng: np.random.Generator) -> np.ndarray:
    """Features of n rows."""
    if cell.design == "rare columns":
        X = rng.uniform(-1, 1, (n, cell.d))
        for k, j in enumerate(range(1, cell.d, 2)):
            X[:, j] = np.where(rng.random(n) < PREVALENCES[k % 4], 1.0, -1.0)
        return X
    if cell.design == "even indicators":
        return np.where(rng.random((n, cell.d)) < 0.5, 1.0, -1.0)
    Z = rng.normal(size=(n, cell.d))
    for j in range(1, cell.d):
        Z[:, j] = 0.6 * Z[:, j - 1] + 0.8 * Z[:, j]
    return np.clip(Z, -3, 3) / 3


def targets(cell: Cell, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Responses of rows."""
    eta = coefficients(cell)[0] + X @ coefficients(cell)[1:]
    wrong = cell.design == "misspecified"
    if cell.family == "logistic":
        if wrong:
            eta = eta + 1.5 * (X[:, 0] ** 2 - 0.2) * (1 + X[:, 1])
        return np.where(rng.random(len(X)) < expit(eta), 1.0, -1.0)
    if cell.family == "linear":
        spread = np.full(len(X), 0.2)
        if wrong:
            eta, spread = eta + 0.3 * (X[:, 0] ** 2 - 0.2), 0.05 + 0.35 * np.abs(X[:, 0])
        return np.clip(eta + spread * rng.normal(size=len(X)), -1, 1)
    rate = np.exp(eta) * (rng.gamma(2, 0.5, len(X)) if wrong else 1.0)
    return np.minimum(rng.poisson(rate), MOST_COUNT).astype(float)


def problem_of(cell: Cell, n: int) -> Problem:
    scaling = RecordScaling.BOUNDED
    return Problem(LOSSES[cell.family], Zero(), n, cell.d, Relation.REPLACE_ONE, scaling=scaling)


@cache
def fits(cell: Cell, n: int, epsilon: float) -> ManyFits:
    solver = ScoreSteps(robust=cell.design == "misspecified")
    return ManyFits(problem_of(cell, n), solver, Budget(epsilon, DELTA))


def fitted(cell: Cell, X: np.ndarray, y: np.ndarray, epsilon: float, seed: int) -> Inference:
    source = as_source(X, y, scaled_labels=True, scaling=RecordScaling.BOUNDED)
    many = fits(cell, len(X), epsilon)
    names, link = [f"x{j}" for j in range(cell.d)], LINKS[cell.family]
    kind = "robust" if cell.design == "misspecified" else "model"
    about = About(names, kind, cell.name, link, np.zeros(cell.d))
    return inference_of(many.fit(source, seed), many.problem, in_units, about)


def in_units(w: np.ndarray) -> np.ndarray:
    """Weights of records, the intercept last, as an intercept and coefficients."""
    return np.append(w[-1] * math.sqrt(0.5), w[:-1])


@cache
def truth(cell: Cell) -> np.ndarray:
    """What the coefficients estimate: of a model that does not hold, what a large table gives."""
    if cell.design != "misspecified":
        return coefficients(cell)
    rng = np.random.default_rng(12345)
    X = columns(cell, 1_000_000, rng)
    return np.asarray(fitted(cell, X, targets(cell, X, rng), math.inf, 0).params)


@cache
def errors_without_privacy(cell: Cell) -> np.ndarray:
    """Mean standard errors of a few tables."""
    found = []
    for number in range(_PLAIN):
        rng = np.random.default_rng([number, cell.n, cell.d])
        X = columns(cell, cell.n, rng)
        found.append(fitted(cell, X, targets(cell, X, rng), math.inf, 0).bse)
    return np.mean(found, axis=0)


def replication(cell: Cell, number: int, goal: np.ndarray, plain: np.ndarray) -> dict | None:
    """One fit: which intervals cover, and how wide they are; None if there are none."""
    rng = np.random.default_rng([number, cell.n, cell.d, round(100 * cell.epsilon)])
    X = columns(cell, cell.n, rng)
    y = targets(cell, X, rng)
    found = fitted(cell, X, y, cell.epsilon, int(rng.integers(2**31)))
    if found.verdict == "none":
        return None
    ends, together = found.conf_int(LEVEL), found.conf_int(LEVEL, simultaneous=True)
    shown = ~found.hidden
    null = shown & (coefficients(cell) == 0)
    return {
        "covered": int(np.sum(shown & (ends[:, 0] <= goal) & (goal <= ends[:, 1]))),
        "shown": int(shown.sum()),
        "together": bool(np.all((together[:, 0] <= goal) & (goal <= together[:, 1]))),
        "width": float(np.median((found.bse / plain)[shown])),
        "conservative": found.verdict == "conservative",
        "null": int(null.sum()),
        "rejected": int(np.sum(found.pvalues[null] < 1 - LEVEL)),
    }


def refused(cell: Cell) -> int | None:
    """The number of rows that are needed, if these are too few."""
    budget, stated = Budget(cell.epsilon, DELTA), STATED.get(cell.design)
    needed = least_units(problem_of(cell, cell.n), budget, stated)
    return needed if needed > cell.n else None


def seconds(cell: Cell) -> float:
    """About how long a replication takes."""
    return 0.015 + 1e-8 * cell.n * (cell.d + 1) * (cell.d + 16)


def run(cells: list[Cell], replications: int) -> None:
    """Finish replications of each cell, keeping every one; in rounds, the shortest next, so that a
    run that is stopped has some of every cell.
    """
    done = kept(KEPT)
    rounds = {min(most, replications) for most in (*ROUNDS, replications)}
    jobs = [(cell, most) for cell in cells for most in rounds if refused(cell) is None]
    for cell, most in sorted(jobs, key=lambda job: seconds(job[0]) * job[1]):
        known = done.setdefault(cell.name, {})
        todo = [k for k in range(FIRST, FIRST + most) if k not in known]
        for number in todo:
            goal, plain = truth(cell), errors_without_privacy(cell)
            known[number] = replication(cell, number, goal, plain)
            keep(KEPT, cell.name, number, known[number])
        if todo:
            print(cell.name, most, flush=True)


def summaries() -> list[dict]:
    """One line for each cell that has replications, and for each that is refused."""
    done, lines = kept(KEPT), []
    for cell in grid():
        line = {"cell": astuple(cell), "needed": refused(cell)}
        outcomes = list(done.get(cell.name, {}).values())
        seen = [one for one in outcomes if one is not None]
        if line["needed"] is None and not seen:
            continue
        if seen:
            line |= summary(outcomes, seen, cell)
        lines.append(line)
    return lines


def summary(outcomes: list, seen: list[dict], cell: Cell) -> dict:
    """Shares over replications; ``seen`` are those with intervals."""
    nulls = sum(one["null"] for one in seen)
    shares = [one["covered"] / max(one["shown"], 1) for one in seen]
    sure = [share for share, one in zip(shares, seen, strict=True) if not one["conservative"]]
    return {
        "replications": len(outcomes),
        "none": 1 - sum(one["shown"] for one in seen) / ((cell.d + 1) * len(outcomes)),
        "conservative": float(np.mean([one["conservative"] for one in seen])),
        "coverage": sum(one["covered"] for one in seen) / sum(one["shown"] for one in seen),
        "error": float(np.std(shares) / math.sqrt(len(shares))),
        "coverage if good": float(np.mean(sure)) if sure else None,
        "together": float(np.mean([one["together"] for one in seen])),
        "width": float(np.median([one["width"] for one in seen])),
        "size": sum(one["rejected"] for one in seen) / nulls if nulls else None,
    }


def table(lines: list[dict]) -> str:
    """The results as a Markdown table."""
    head = ["model", "rows", "columns", "epsilon", "coverage", "conservative", "none"]
    head += ["all at once", "size of tests", "width / without privacy", "replications"]
    rows = []
    for line in lines:
        family, n, d, epsilon, design = line["cell"]
        model = family if design == "correlated" else f"{family}, {design}"
        first = [model, f"{n:,}", str(d), f"{epsilon:g}"]
        if line["needed"] is not None:
            rows.append([*first, f"refused: needs {line['needed']:,}", *6 * ("",)])
            continue
        size = "" if line["size"] is None else f"{line['size']:.3f}"
        worth = f"{line['conservative']:.0%}", f"{line['none']:.0%}"
        share = f"{line['coverage']:.3f} ± {line['error']:.3f}"
        shown = share, *worth, f"{line['together']:.3f}", size
        rows.append([*first, *shown, f"{line['width']:.2f}", str(line["replications"])])
    return markdown(head, rows)


def drawn(lines: list[dict], path: Path) -> None:
    """Coverage of every cell with two standard errors to each side."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "hushfit"  # the same numbers make the same file
    from matplotlib import pyplot as plt

    seen = [line for line in lines if line["needed"] is None]
    figure, axes = plt.subplots(figsize=(7.2, 0.17 * len(seen) + 1.2), layout="constrained")
    places = np.arange(len(seen))[::-1]
    axes.axvspan(0.93, 0.97, color="#e8f0ea")
    axes.axvline(LEVEL, color="black", linewidth=0.8)
    for place, line in zip(places, seen, strict=True):
        colour = "#2f6f4f" if line["replications"] >= _MANY else "#8a8a8a"
        axes.errorbar(line["coverage"], place, xerr=2 * line["error"], fmt="o", color=colour, ms=3)
    axes.set_yticks(places, [_named(line) for line in seen], fontsize=6)
    axes.set(xlabel="coverage of intervals of 95 %, two standard errors to each side")
    axes.set_xlim(0.85, 1.005)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _named(line: dict) -> str:
    family, n, d, epsilon, design = line["cell"]
    model = family if design == "correlated" else f"{family}, {design}"
    return f"{model}: {n:,} x {d}, epsilon {epsilon:g} ({line['replications']})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--most-rows", type=int, default=100_000)
    parser.add_argument("--only", nargs="*", help="parts of the names of cells")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--stored", action="store_true", help="only what has been kept")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = [cell for cell in chosen(grid(), given.only) if cell.n <= given.most_rows]
    if not given.stored:
        run(cells, given.replications)
    lines = with_stored(summaries(), RESULTS, [astuple(cell) for cell in grid()])
    print(table(lines))
    if given.write:
        store(RESULTS, lines, PAGE, MARKS, table(lines))
        drawn(lines, FIGURE)


if __name__ == "__main__":
    main()
