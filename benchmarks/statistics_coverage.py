"""Coverage of the intervals of private statistics: ``python -m benchmarks.statistics_coverage``.

Every replication draws new rows from a known distribution, releases means, quantiles, shares and
differences of two groups, and looks whether the intervals of 95 % cover the true values. Delta
1e-6, replace-one. The rules were chosen on the designs of ``CHOSEN``; those of ``CHECKED`` were run
once they were fixed. Finished cells are kept in ``out/statistics.jsonl``, so that a run can be
stopped and continued; ``--write`` stores them in ``benchmarks/results/statistics.json`` and writes
the table of ``docs/statistics.md``.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks._report import ROOT, machine, markdown, write_between
from hushfit.data import as_source
from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema
from hushfit.privacy import Budget, Relation
from hushfit.release import Randomness, Terms
from hushfit.statistics import Description, survey_of
from hushfit.statistics._survey import Survey, answered

DELTA, LEVEL, REPLICATIONS, FIRST = 1e-6, 0.95, 1000, 10_000
SHARES = (0.1, 0.5, 0.9)
KEPT = ROOT / "out" / "statistics.jsonl"
RESULTS = Path(__file__).parent / "results" / "statistics.json"
PAGE = ROOT / "docs" / "statistics.md"
MARKS = "<!-- coverage: begin -->", "<!-- coverage: end -->"
SIZES, EPSILONS = (500, 2000, 10_000, 100_000), (0.05, 0.2, 1.0)
KINDS = ("mean", "quantiles", "share", "difference of means", "difference of shares")
# Share of the first of two groups, and how much more often it has the label.
FIRST_GROUP, ODDS = 0.3, 1.5
MISSING = 0.05


@dataclass(frozen=True)
class Design:
    """A column of numbers in a public range, and the share of a label."""

    column: NumericColumn
    draw: Callable[[np.random.Generator, int], Any]
    label: float


def two_peaks(rng: np.random.Generator, n: int) -> Any:
    """Mostly small numbers, and a tenth near the upper end."""
    return np.where(rng.random(n) < 0.1, rng.normal(9.0, 0.3, n), rng.exponential(0.7, n))


CHOSEN = {
    "normal, label 30 %": Design(
        NumericColumn("x", -4.0, 4.0), lambda rng, n: rng.normal(size=n), 0.3
    ),
    "skewed, label 2 %": Design(
        NumericColumn("x", 0.0, 20.0), lambda rng, n: rng.lognormal(size=n), 0.02
    ),
}
CHECKED = {
    "two peaks, label 10 %": Design(NumericColumn("x", 0.0, 10.0), two_peaks, 0.1),
    "counts, label 0.5 %": Design(
        NumericColumn("x", 0, 30, integer=True), lambda rng, n: rng.poisson(3.0, n), 0.005
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
    return {
        "mean": survey_of(schema, ["x"], quantiles=()),
        "quantiles": survey_of(schema, ["x"], quantiles=SHARES),
        "share": survey_of(schema, ["label"]),
        "difference of means": survey_of(schema, ["x"], "group", ()),
        "difference of shares": survey_of(schema, ["label"], "group"),
    }


def truth(design: Design) -> dict[str, dict[str, float]]:
    """The values that intervals should cover, by the names of the estimates: of clipped numbers,
    from a sample of ten million.
    """
    rng = np.random.default_rng(0)
    x = np.clip(design.draw(rng, 10_000_000), design.column.low, design.column.high)
    quantiles = dict(zip(SHARES, np.quantile(x, SHARES, method="inverted_cdf"), strict=True))
    return {
        "mean": {"mean": float(x.mean())},
        "quantiles": {
            "median" if q == 0.5 else f"quantile {q:g}": float(value)
            for q, value in quantiles.items()
        },
        "share": {"share of yes": design.label * (1 + (ODDS - 1) * FIRST_GROUP)},
        "difference of means": {"difference of means": 0.0},
        "difference of shares": {"difference of shares of yes": (ODDS - 1) * design.label},
    }


def rows(design: Design, n: int, rng: np.random.Generator) -> dict[str, Any]:
    """An encoded table with missing numbers, whose label is more frequent in the first group."""
    x = np.where(rng.random(n) < MISSING, np.nan, design.draw(rng, n))
    group = (rng.random(n) >= FIRST_GROUP).astype(float)
    yes = rng.random(n) < design.label * np.where(group == 0, ODDS, 1.0)
    return {"x": x, "label": np.where(yes, 0.0, 1.0), "group": group}


def measured(design: str, n: int, replications: int) -> list[dict[str, Any]]:
    """Coverage and width of every kind of statistic at every budget; None where it is refused."""
    own, relation = DESIGNS[design], Relation.REPLACE_ONE
    true, quotes, covered = truth(own), {}, {}
    for kind, survey in asked(own).items():
        for epsilon in EPSILONS:
            quote = survey.quote(n, Budget(epsilon, DELTA), relation)
            if n >= max(survey.least_units(quote, relation).values()):
                quotes[kind, epsilon] = survey, quote
                covered[kind, epsilon] = []
    for number in range(FIRST, FIRST + replications):
        table = rows(own, n, np.random.default_rng([number, n]))
        sources = {
            kind: as_source(survey.cells(table), np.zeros(n), fit_intercept=False)
            for kind, survey in asked(own).items()
        }
        for (kind, epsilon), (survey, quote) in quotes.items():
            terms = Terms(Budget(epsilon, DELTA), "coverage", Randomness.of(number), warn=False)
            answers = answered(survey, sources[kind], quote, relation, terms)
            covered[kind, epsilon].append(
                [
                    one.low <= true[kind][one.name] <= one.high
                    for one in Description(answers, SHARES, LEVEL).estimates
                    if one.name in true[kind]
                ]
            )
    return [
        {
            "cell": Cell(design, n, epsilon).name,
            "replications": replications,
            "coverage": {
                kind: float(np.mean(covered[kind, epsilon])) if (kind, epsilon) in covered else None
                for kind in KINDS
            },
        }
        for epsilon in EPSILONS
    ]


def kept() -> dict[str, Any]:
    if not KEPT.exists():
        return {}
    lines = [json.loads(line) for line in KEPT.read_text(encoding="utf-8").splitlines()]
    return {line["cell"]: line for line in lines}


def run(sizes: list[int], designs: list[str], replications: int) -> None:
    """Measure the cells that are not kept yet."""
    KEPT.parent.mkdir(exist_ok=True)
    for n in sizes:
        for design in designs:
            if Cell(design, n, EPSILONS[0]).name in kept():
                continue
            found = measured(design, n, replications)
            with KEPT.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(one) + "\n" for one in found)
            for one in found:
                print(one, flush=True)


def table(found: dict[str, Any]) -> str:
    """The table of the docs: a line for each size and budget, the range over the designs."""
    heads = ["n", "epsilon", *KINDS]
    lines = []
    for n in SIZES:
        for epsilon in EPSILONS:
            own = [
                found[Cell(design, n, epsilon).name]["coverage"]
                for design in DESIGNS
                if Cell(design, n, epsilon).name in found
            ]
            if own:
                lines.append([f"{n:,}", f"{epsilon:g}", *(_shown(own, kind) for kind in KINDS)])
    return markdown(heads, lines)


def _shown(own: list[dict[str, float | None]], kind: str) -> str:
    values = [one[kind] for one in own if one[kind] is not None]
    return "refused" if not values else " ".join(f"{value:.3f}" for value in values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=REPLICATIONS)
    parser.add_argument("--write", action="store_true", help="store results and write the docs")
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--designs", nargs="*", default=list(DESIGNS), choices=DESIGNS)
    given = parser.parse_args()
    if not given.write:
        run(given.sizes, given.designs, given.replications)
        return
    found = kept()
    n = REPLICATIONS
    band = [stats.binom.ppf(p, n, LEVEL) / n for p in (0.025, 0.975)]
    stored = {"machine": machine(), "level": LEVEL, "delta": DELTA, "band": band, "cells": found}
    RESULTS.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    write_between(PAGE, MARKS, [table(found)])


if __name__ == "__main__":
    main()
