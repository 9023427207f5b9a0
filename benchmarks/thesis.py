"""The thesis' experiments: every solver of the library on Adult, Bank and KDD Cup 99, logistic
regression and huberised SVM.

python -m benchmarks.thesis [--sets a9a bank kddcup99] [--epsilons .05 .2 .8] [--folds 2] [--solvers
auto dp-agd] [--ridge .001] [--full] [--time] [--docs]

Delta is 1e-8 (KDD: 1e-12), as there. The thesis' ridge of 0.001 is so strong on unit rows that
nearly every method, the non-private one included, predicts the majority on bank; so there is none
unless ``--ridge`` gives it. One table for each adjacency relation. Settings are the defaults:
nothing was tuned on these rows. Without a ridge, results are stored in
``benchmarks/results/thesis.json`` in place of older ones of the same cell; ``--docs`` makes the
tables and figures of docs/benchmarks-texts.md from that file. ``--time`` fits each solver to
growing parts of KDD Cup 99, and scikit-learn's L-BFGS for comparison, and prints how run time
grows.
"""

import argparse
import json
import math
import statistics
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from benchmarks import sets
from benchmarks._report import ROOT, markdown, publish, write_between
from benchmarks.accuracy import progress, unit_rows
from hushfit import PrivateLinearSVC, PrivateLogisticRegression
from hushfit.errors import InsecureNoiseWarning, InvalidArgument, UnsupportedRelation
from hushfit.penalties import L1Ball
from hushfit.solvers import SOLVERS

DELTAS = {"kddcup99": 1e-12}
USUAL_DELTA = 1e-8
EPSILONS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
MODELS = {"logistic": PrivateLogisticRegression, "SVM": PrivateLinearSVC}
RELATIONS = ("replace-one", "add-remove")
# Names in the thesis, in the order of its figures; all other solvers follow.
FIRST = {
    "auto": "auto",
    "rsgd-ar": "RSGD-AR",
    "nsgd": "NSGD",
    "objective-kifer": "OBJPERT",
    "outpert-gd": "OUTPERT-GD",
    "dp-agd": "DP-AGD",
    "dp-sgd": "SGD-MA",
    "bls": "DP-BLSGD",
}
REFERENCES = ("without privacy", "majority")
SIZES = (50_000, 100_000, 150_000, 200_000, 250_000, 494_021)
# Radius of the ball for Frank-Wolfe, which has no ridge: large enough for the others' weights.
RADIUS = 20.0
RESULTS = Path(__file__).parent / "results" / "thesis.json"
PAGE = ROOT / "docs" / "benchmarks-texts.md"


@dataclass(frozen=True)
class Row:
    """One solver at one epsilon, over folds; what older results do not have is None."""

    set: str
    model: str
    relation: str
    epsilon: float | None
    solver: str
    accuracy: float
    error: float | None
    objective: float | None
    folds: int
    measured: str

    @property
    def cell(self) -> tuple[Any, ...]:
        return self.set, self.model, self.relation, self.epsilon, self.solver


def solver_names() -> list[str]:
    """Every private solver, the thesis' own first."""
    return [*FIRST, *(name for name in SOLVERS if name not in FIRST and name != "exact")]


def estimator(
    model: str,
    solver: str,
    epsilon: float,
    delta: float,
    relation: str,
    ridge: float,
    seed: int | None = 0,
) -> Any:
    penalty: dict[str, Any] = {"penalty": "l2", "alpha": ridge} if ridge else {}
    if solver == "frank-wolfe":
        penalty = {"penalty": L1Ball(RADIUS)}
    return MODELS[model](
        epsilon=epsilon,
        delta=delta,
        adjacency=relation,
        solver=solver,
        classes=sets.CLASSES,
        random_state=seed,
        **penalty,
    )


def objective(model: str, margins: np.ndarray, w: np.ndarray, ridge: float) -> float:
    """Mean loss of signed margins and the ridge: (3.10) and (3.11) of the thesis."""
    if model == "logistic":
        losses = np.logaddexp(0, -margins)
    else:
        h = 0.5
        losses = np.where(
            margins > 1 + h,
            0.0,
            np.where(margins < 1 - h, 1 - margins, (1 + h - margins) ** 2 / (4 * h)),
        )
    return float(losses.mean()) + ridge / 2 * float(w @ w)


def score(
    fitted: Any, model: str, ridge: float, X: np.ndarray, y: np.ndarray
) -> tuple[float, float]:
    """Accuracy and objective on held-out rows."""
    w = np.append(fitted.coef_[0], fitted.intercept_)
    margins = np.where(y == 1, 1.0, -1.0) * (unit_rows(X) @ w)
    return float((margins > 0).mean()), objective(model, margins, fitted.coef_[0], ridge)


def reference(
    label: str, model: str, ridge: float, split: tuple[np.ndarray, ...]
) -> tuple[float, float]:
    X, y, X_test, y_test = split
    if label == "majority":
        return float(np.mean(y_test == (y.mean() > 0.5))), math.nan
    fitted = estimator(model, "auto", math.inf, USUAL_DELTA, "replace-one", ridge, None).fit(X, y)
    return score(fitted, model, ridge, X_test, y_test)


def compare(
    names: Sequence[str],
    epsilons: Sequence[float],
    folds: int,
    relations: Sequence[str],
    ridge: float,
    solvers: Sequence[str],
) -> Iterator[Row]:
    """All rows of all tables; a solver without a proof for a relation or a loss is left out."""
    done, total = 0, len(names) * len(MODELS) * (1 + len(relations) * len(epsilons) * len(solvers))
    for name in names:
        X, y = sets.load(name)
        splits = list(KFold(5, shuffle=True, random_state=0).split(X))[:folds]
        for model in MODELS:
            for label in REFERENCES:
                found = [
                    reference(label, model, ridge, (X[a], y[a], X[b], y[b])) for a, b in splits
                ]
                yield summary(name, model, "none", None, label, found)
            done += 1
            for relation in relations:
                for epsilon in epsilons:
                    for solver in solvers:
                        done += 1
                        delta = DELTAS.get(name, USUAL_DELTA)
                        try:
                            found = []
                            for k, (a, b) in enumerate(splits):
                                fitted = estimator(
                                    model, solver, epsilon, delta, relation, ridge, k
                                ).fit(X[a], y[a])
                                found.append(score(fitted, model, ridge, X[b], y[b]))
                        except (InvalidArgument, UnsupportedRelation):
                            continue
                        yield summary(name, model, relation, epsilon, solver, found)
                        progress(done, total, f"{name} {model} {relation} {epsilon:g} {solver}")


def summary(
    name: str,
    model: str,
    relation: str,
    epsilon: float | None,
    solver: str,
    found: list[tuple[float, float]],
) -> Row:
    accuracies = [accuracy for accuracy, _ in found]
    objective = statistics.fmean(o for _, o in found)
    return Row(
        name,
        model,
        relation,
        epsilon,
        solver,
        round(statistics.fmean(accuracies), 5),
        round(statistics.stdev(accuracies) / math.sqrt(len(found)), 5) if len(found) > 1 else None,
        None if math.isnan(objective) else round(objective, 5),
        len(found),
        datetime.now(UTC).strftime("%Y-%m-%d"),
    )


def stored() -> list[Row]:
    """All results without a ridge that were measured and kept."""
    return [Row(**row) for row in json.loads(RESULTS.read_text())] if RESULTS.exists() else []


def store(rows: Sequence[Row]) -> None:
    """Keep results, in place of older ones of the same cells."""
    merged = {row.cell: row for row in [*stored(), *rows]}
    lines = (json.dumps(asdict(row)) for row in merged.values())
    RESULTS.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def table(rows: Sequence[Row], relation: str, model: str, name: str) -> str:
    """Accuracy on one set: a line for each solver, a column for each epsilon, the best in bold."""
    mine = [row for row in rows if (row.set, row.model) == (name, model)]
    # Rounded, so that what is printed alike is marked alike.
    of_relation = [row for row in mine if row.relation == relation]
    cells = {(row.solver, row.epsilon): round(row.accuracy, 4) for row in of_relation}
    epsilons = sorted({epsilon for _, epsilon in cells})
    best = {e: max(value for (_, own), value in cells.items() if own == e) for e in epsilons}

    def shown(solver: str, epsilon: float) -> str:
        value = cells.get((solver, epsilon))
        if value is None:
            return "-"
        return f"**{value:.4f}**" if value == best[epsilon] else f"{value:.4f}"

    body = [
        [_label(solver), *(shown(solver, epsilon) for epsilon in epsilons)]
        for solver in solver_names()
        if any((solver, epsilon) in cells for epsilon in epsilons)
    ]
    known = {row.solver: row.accuracy for row in mine}
    body += [[label, *[f"{known[label]:.4f}"] * len(epsilons)] for label in REFERENCES]
    return markdown([f"{name}, {model}", *(f"{epsilon:g}" for epsilon in epsilons)], body)


def _label(solver: str) -> str:
    known = FIRST.get(solver, solver)
    return known if known == solver else f"{known} (`{solver}`)"


def tables(rows: Sequence[Row], relation: str) -> str:
    """One table for each model and set."""
    names = dict.fromkeys(row.set for row in rows)
    return "\n\n".join(table(rows, relation, model, name) for model in MODELS for name in names)


def write_page() -> None:
    """Tables and figures of all stored results, into docs/benchmarks-texts.md."""
    rows = stored()
    for relation in RELATIONS:
        dates = sorted({row.measured for row in rows if row.relation == relation})
        folds = {row.folds for row in rows if row.relation == relation}
        head = (
            f"**Accuracy, {relation}, delta {USUAL_DELTA:g} (KDD {DELTAS['kddcup99']:g}), no "
            f"ridge, {' to '.join(map(str, sorted({min(folds), max(folds)})))} folds**, measured "
            f"{' to '.join(dict.fromkeys((dates[0], dates[-1])))}"
        )
        figure = f"![accuracy against epsilon, {relation}](figures/thesis-{relation}.svg)"
        marks = f"<!-- thesis, {relation}: begin -->", f"<!-- thesis, {relation}: end -->"
        write_between(PAGE, marks, [f"{head}\n\n{tables(rows, relation)}\n\n{figure}\n"])
        draw(rows, relation)


def draw(rows: Sequence[Row], relation: str) -> None:
    """Accuracy against epsilon: the thesis' solvers in colour, the others in grey."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "hushfit"  # the same numbers make the same file
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row.set for row in rows))
    figure, axes = plt.subplots(
        len(MODELS), len(names), figsize=(3.4 * len(names), 5.2), squeeze=False, sharex=True
    )
    for place, (model, name) in enumerate((m, n) for m in MODELS for n in names):
        axis = axes.flat[place]
        here = [row for row in rows if (row.set, row.model) == (name, model)]
        for k, solver in enumerate(solver_names()):
            line = sorted(
                (r.epsilon, r.accuracy)
                for r in here
                if r.relation == relation and r.solver == solver
            )
            if line:
                known = solver in FIRST
                style = (
                    {"color": f"C{k}", "linewidth": 2.2 if solver == "auto" else 1.3}
                    if known
                    else {"color": ".8", "linewidth": 0.8}
                )
                axis.plot(
                    *zip(*line, strict=True),
                    label=FIRST.get(solver),
                    zorder=2 if known else 1,
                    **style,
                )
        for label, dashes in zip(REFERENCES, ("--", ":"), strict=True):
            value = next((r.accuracy for r in here if r.solver == label), math.nan)
            axis.axhline(value, color="black", linestyle=dashes, linewidth=0.8)
        shown = [r for r in here if r.relation == relation]
        high = max(r.accuracy for r in here)
        # The range covers most results at the smallest epsilon; much lower ones are cut off.
        least = min(r.epsilon for r in shown)
        low = float(np.quantile([r.accuracy for r in shown if r.epsilon == least], 0.25))
        axis.set(
            xscale="log",
            title=f"{name}, {model}",
            ylim=(low - 0.1 * (high - low), high + 0.05 * (high - low)),
        )
        ticks = sorted({r.epsilon for r in shown})
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_xticks([], minor=True)
    for axis in axes[-1]:
        axis.set_xlabel("epsilon")
    for axis in axes[:, 0]:
        axis.set_ylabel("accuracy")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(ROOT / "docs" / "figures" / f"thesis-{relation}.svg", metadata={"Date": None})
    plt.close(figure)


def timings(sizes: Sequence[int], solvers: Sequence[str]) -> list[list[str]]:
    """Seconds of one fit for each number of rows, and the slope of log seconds against log rows."""
    lines = sets.kddcup99_lines()
    X, y = sets.connections(lines)
    order = np.random.default_rng(0).permutation(len(y))
    body = []
    for solver in ("sklearn lbfgs", *solvers):
        seconds = []
        for size in sizes:
            rows = order[:size]
            fit = (
                lbfgs(unit_rows(X[rows]), y[rows])
                if solver == "sklearn lbfgs"
                else private(solver, X[rows], y[rows])
            )
            if math.isnan(fit):
                break
            seconds.append(fit)
            progress(
                len(body) * len(sizes) + len(seconds),
                (len(solvers) + 1) * len(sizes),
                f"{solver}, {size} rows: {fit:.2f} s",
            )
        if len(seconds) == len(sizes):
            slope = (
                float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
                if len(sizes) > 1
                else math.nan
            )
            body.append([solver, *(f"{value:.2f}" for value in seconds), f"{slope:.2f}"])
    return body


def lbfgs(X: np.ndarray, y: np.ndarray) -> float:
    """Seconds of the non-private fit on the same unit rows."""
    model = LogisticRegression(C=1e4, fit_intercept=False, max_iter=1000)
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def private(solver: str, X: np.ndarray, y: np.ndarray) -> float:
    """Seconds of the second of two secure fits, as the first one compiles; NaN if the solver
    refuses the problem.
    """
    model = estimator("logistic", solver, 1.0, DELTAS["kddcup99"], "replace-one", 0.0, None)
    try:
        model.fit(X[:2000], y[:2000])
        start = time.perf_counter()
        model.fit(X, y)
    except InvalidArgument:
        return math.nan
    return time.perf_counter() - start


def run(
    requested: Sequence[str],
    epsilons: Sequence[float],
    folds: int,
    relations: Sequence[str] = RELATIONS,
    ridge: float = 0.0,
    docs: bool = False,
    solvers: Sequence[str] | None = None,
) -> list[Row]:
    """Compare, print and store the tables; with ``docs`` also write the page."""
    reasons = {name: sets.missing(name) for name in requested}
    for reason in filter(None, reasons.values()):
        print(reason, file=sys.stderr)
    names = [name for name in requested if not reasons[name]] or ["adult"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        rows = list(compare(names, epsilons, folds, relations, ridge, solvers or solver_names()))
    if not ridge:
        store(rows)
    for relation in relations:
        title = (
            f"Ridge {ridge:g}, **{relation}**, delta {USUAL_DELTA:g} (KDD "
            f"{DELTAS['kddcup99']:g}), {folds} folds, accuracy"
        )
        mine = [asdict(row) for row in rows if row.relation == relation]
        publish(f"thesis-{relation}", title, tables(rows, relation), mine)
    if docs:
        write_page()
    return rows


def run_timings(sizes: Sequence[int] = SIZES) -> None:
    """Print seconds against rows, if KDD Cup 99 is available."""
    reason = sets.missing("kddcup99")
    if reason:
        print(reason, file=sys.stderr)
        return
    body = timings(sizes, solver_names())
    head = ["solver", *(f"{size:,}" for size in sizes), "slope"]
    publish(
        "thesis-time",
        "Seconds of a fit on the first rows of KDD Cup 99 (117 weights), secure noise",
        markdown(head, body),
        body,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.thesis", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--sets", nargs="+", choices=sets.SETS, default=["a9a", "bank", "kddcup99"])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.05, 0.2, 0.8])
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--relations", nargs="+", choices=RELATIONS, default=RELATIONS)
    parser.add_argument("--solvers", nargs="+", choices=solver_names(), help="all, if left out")
    parser.add_argument("--ridge", type=float, default=0.0, help="the thesis has .001")
    parser.add_argument(
        "--full", action="store_true", help="all epsilons of the thesis, five folds"
    )
    parser.add_argument("--time", action="store_true", help="only the running times")
    parser.add_argument(
        "--docs", action="store_true", help="write tables and figures of the documentation again"
    )
    given = parser.parse_args()
    if given.time:
        run_timings()
    elif given.full:
        run(given.sets, EPSILONS, 5, given.relations, given.ridge, given.docs, given.solvers)
    else:
        run(
            given.sets,
            given.epsilons,
            given.folds,
            given.relations,
            given.ridge,
            given.docs,
            given.solvers,
        )


if __name__ == "__main__":
    main()
