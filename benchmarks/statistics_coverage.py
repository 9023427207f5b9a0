"""Coverage of the intervals of private statistics: ``python -m benchmarks.statistics_coverage``.

Every replication draws new rows from a known distribution, releases means, quantiles, shares and
differences of two groups, and looks whether the intervals of 95 % cover the true values. Delta
1e-6, replace-one. The rules were chosen on the designs of ``CHOSEN``; those of ``CHECKED`` were run
when they were fixed.

Numbers come from discrete distributions, so that rows are drawn as counts of their values, and the
exact answers of the queries follow from these: a table of 100,000 rows costs no more than one of
500. Noise is drawn with the standard deviation that the quote states. The tests run the same, row
by row, through the curator (tests/statistics/test_coverage.py). Finished cells are kept in
``out/statistics.jsonl``, so that a run can be stopped and continued; ``--write`` stores them in
``benchmarks/results/statistics.json`` and writes the table of ``docs/statistics.md``.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks._report import ROOT, machine, markdown, write_between
from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema
from hushfit.losses import Logistic
from hushfit.penalties import Zero
from hushfit.privacy import Budget, GaussianCost, Guarantee, Relation
from hushfit.problem import Problem
from hushfit.release import GroupMoments, Quote
from hushfit.statistics import Answers, Description, Survey, survey_of
from hushfit.statistics._survey import COUNTS, MEANS

DELTA, LEVEL, REPLICATIONS, SEED = 1e-6, 0.95, 1000, 20_261_118
SHARES = (0.1, 0.5, 0.9)
RELATION = Relation.REPLACE_ONE
KEPT = ROOT / "out" / "statistics.jsonl"
RESULTS = Path(__file__).parent / "results" / "statistics.json"
PAGE = ROOT / "docs" / "statistics.md"
MARKS = "<!-- coverage: begin -->", "<!-- coverage: end -->"
SIZES, EPSILONS = (500, 2000, 10_000, 100_000), (0.05, 0.2, 1.0)
KINDS = ("mean", "quantiles", "share", "difference of means", "difference of shares")
# Share of the first of two groups, and how much more often it has the label.
FIRST_GROUP, ODDS = 0.3, 1.5
MISSING = 0.05
_MIDDLES = (np.arange(4000) + 0.5) / 4000


@dataclass(frozen=True, eq=False)
class Design:
    """A column of numbers in a public range, its distribution, and the share of a label."""

    column: NumericColumn
    values: Any
    chances: Any
    label: float

    @cached_property
    def clipped(self) -> Any:
        return np.clip(self.values, self.column.low, self.column.high)

    @property
    def mean(self) -> float:
        return float(self.chances @ self.clipped)

    def quantile(self, share: float) -> float:
        order = np.argsort(self.clipped)
        below = np.cumsum(self.chances[order])
        return float(self.clipped[order[np.searchsorted(below, share - 1e-12)]])


def continuous(column: NumericColumn, values: Any, label: float) -> Design:
    """Equally likely values."""
    return Design(column, values, np.full(len(values), 1 / len(values)), label)


def two_peaks() -> Any:
    """Mostly small numbers, and a tenth near the upper end."""
    small = stats.expon.ppf(_MIDDLES[:3600] / 0.9, scale=0.7)
    return np.concatenate([small, stats.norm.ppf((np.arange(400) + 0.5) / 400, 9.0, 0.3)])


CHOSEN = {
    "normal, label 30 %": continuous(NumericColumn("x", -4.0, 4.0), stats.norm.ppf(_MIDDLES), 0.3),
    "skewed, label 2 %": continuous(
        NumericColumn("x", 0.0, 20.0), stats.lognorm.ppf(_MIDDLES, 1.0), 0.02
    ),
}
CHECKED = {
    "two peaks, label 10 %": continuous(NumericColumn("x", 0.0, 10.0), two_peaks(), 0.1),
    "counts, label 0.5 %": Design(
        NumericColumn("x", 0, 30, integer=True),
        np.arange(40.0),
        stats.poisson.pmf(np.arange(40), 3.0) / stats.poisson.cdf(39, 3.0),
        0.005,
    ),
}
DESIGNS = CHOSEN | CHECKED


@dataclass(frozen=True)
class Cell:
    """One design and one budget."""

    design: str
    n: int
    epsilon: float

    @property
    def name(self) -> str:
        return "/".join(map(str, astuple(self)))


def asked(design: Design) -> dict[str, Survey]:
    """What is released for each kind of statistic, by itself."""
    labels = CategoricalColumn("label", ("yes", "no"))
    schema = Schema((design.column, labels, CategoricalColumn("group", ("a", "b"))))
    numbers = survey_of(schema, ["x"], quantiles=SHARES)
    return {
        "mean": survey_of(schema, ["x"], quantiles=()),
        "quantiles": Survey(quantiles=numbers.quantiles),
        "share": survey_of(schema, ["label"]),
        "difference of means": survey_of(schema, ["x"], "group", ()),
        "difference of shares": survey_of(schema, ["label"], "group"),
    }


def truth(design: Design) -> dict[str, dict[str, float]]:
    """The values that intervals should cover, by the names of the estimates."""
    return {
        "mean": {"mean": design.mean},
        "quantiles": {
            "median" if q == 0.5 else f"quantile {q:g}": design.quantile(q) for q in SHARES
        },
        "share": {"share of yes": design.label * (1 + (ODDS - 1) * FIRST_GROUP)},
        "difference of means": {"difference of means": 0.0},
        "difference of shares": {"difference of shares of yes": (ODDS - 1) * design.label},
    }


class Table:
    """Counts of values and labels in two groups of a table of n rows."""

    def __init__(self, design: Design, n: int, rng: np.random.Generator) -> None:
        first = int(rng.binomial(n, FIRST_GROUP))
        self.design, self.sizes, self._rng = design, np.array([first, n - first]), rng

    @cached_property
    def values(self) -> Any:
        """Counts of the values, without missing ones, groups in rows."""
        known = self._rng.binomial(self.sizes, 1 - MISSING)
        return np.array([self._rng.multinomial(size, self.design.chances) for size in known])

    @cached_property
    def yes(self) -> Any:
        """How many have the label, by group."""
        return self._rng.binomial(self.sizes, self.design.label * np.array([ODDS, 1.0]))

    def moments(self, groups: int) -> Any:
        """Exact sums of numbers in [-1, 1], their squares and how many are known, by group."""
        design = self.design
        low, high = design.column.low, design.column.high
        v = 2 * (design.clipped - low) / (high - low) - 1
        counts = self.values if groups == 2 else self.values.sum(axis=0, keepdims=True)
        return np.stack([counts @ v, counts @ v**2, counts.sum(axis=1)])[:, :, None]

    def histogram(self, survey: Survey, which: int) -> Any:
        """Exact counts of one histogram, groups in rows."""
        one = survey.histograms[which]
        if one.column == "x":
            bins = survey.grids["x"].bins(self.design.values).astype(int) // one.width
            return np.bincount(bins, self.values.sum(axis=0), one.bins)[None]
        counts = np.stack([self.yes, self.sizes - self.yes, 0 * self.yes, 0 * self.yes], axis=1)
        return counts if survey.by is not None else counts.sum(axis=0, keepdims=True)


def simulated(
    survey: Survey, table: Table, quote: Quote, n: int, rng: np.random.Generator
) -> Answers:
    """What the curator would release: exact answers and noise of the stated size."""
    totals, counts, noise = None, (), 0.0
    groups = len(survey.groups)
    if survey.means:
        problem = Problem(Logistic(), Zero(), n, 2, RELATION, False)
        query = GroupMoments(problem, (1,), None if survey.by is None else 0, groups)
        exact = query.totals(np.zeros(query.size), quote.multipliers[MEANS])
        sums, squares, known = table.moments(groups)
        drawn = rng.normal(size=(3, groups, 1))
        totals = exact._replace(
            sums=sums + exact.sum_noise * drawn[0],
            squares=squares + exact.square_noise * drawn[1],
            known=known + exact.known_noise * drawn[2],
        )
    if survey.histograms:
        noise = quote.multipliers[COUNTS] * (2 * len(survey.histograms)) ** 0.5
        exact_counts = [table.histogram(survey, k) for k in range(len(survey.histograms))]
        counts = tuple(one + noise * rng.normal(size=one.shape) for one in exact_counts)
    return Answers(survey, n, _PROMISE, None, totals, counts, noise)


_PROMISE = Guarantee(1.0, DELTA, RELATION, cost=GaussianCost(1.0))


def measured(cell: Cell, replications: int) -> dict[str, Any]:
    """Coverage of every kind of statistic; None where it is refused."""
    design = DESIGNS[cell.design]
    true, coverage = truth(design), dict[str, float | None]()
    for number, (kind, survey) in enumerate(asked(design).items()):
        quote = survey.quote(cell.n, Budget(cell.epsilon, DELTA), RELATION)
        coverage[kind] = None
        if cell.n < max(survey.least_units(quote, RELATION).values()):
            continue
        rng = np.random.default_rng([SEED, number, cell.n, int(1000 * cell.epsilon)])
        covered = []
        for _ in range(replications):
            answers = simulated(survey, Table(design, cell.n, rng), quote, cell.n, rng)
            covered += [
                one.low <= true[kind][one.name] <= one.high
                for one in Description(answers, SHARES, LEVEL).estimates
                if one.name in true[kind]
            ]
        coverage[kind] = float(np.mean(covered))
    return {"cell": cell.name, "replications": replications, "coverage": coverage}


def kept() -> dict[str, Any]:
    if not KEPT.exists():
        return {}
    lines = [json.loads(line) for line in KEPT.read_text(encoding="utf-8").splitlines()]
    return {line["cell"]: line for line in lines}


def run(sizes: Sequence[int], designs: Sequence[str], replications: int) -> None:
    """Measure the cells that are not kept yet."""
    KEPT.parent.mkdir(exist_ok=True)
    for cell in (Cell(design, n, e) for n in sizes for e in EPSILONS for design in designs):
        if cell.name in kept():
            continue
        found = measured(cell, replications)
        with KEPT.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
        print(found, flush=True)


def table(found: dict[str, Any]) -> str:
    """The table of the docs: for each size and budget the coverage in the four designs."""
    lines = []
    for n in SIZES:
        for epsilon in EPSILONS:
            names = [Cell(design, n, epsilon).name for design in DESIGNS]
            own = [found[name]["coverage"] for name in names if name in found]
            if own:
                lines.append([f"{n:,}", f"{epsilon:g}", *(_shown(own, kind) for kind in KINDS)])
    return markdown(["n", "epsilon", *KINDS], lines)


def _shown(own: Sequence[dict[str, float | None]], kind: str) -> str:
    values = [one[kind] for one in own]
    return " ".join("-" if value is None else f"{value:.3f}".lstrip("0") for value in values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=REPLICATIONS)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--designs", nargs="*", default=list(DESIGNS), choices=DESIGNS)
    parser.add_argument("--write", action="store_true", help="store results and write the docs")
    given = parser.parse_args()
    if not given.write:
        run(given.sizes, given.designs, given.replications)
        return
    found = kept()
    stored = {"machine": machine(), "level": LEVEL, "delta": DELTA, "cells": found}
    RESULTS.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    write_between(PAGE, MARKS, [table(found)])


if __name__ == "__main__":
    main()
