"""The plan of a model of classes: noise, expected loss of accuracy, and rows needed."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from hushfit.cli._printing import print_json, print_message, print_table
from hushfit.cli.plans._request import budgets_of, delta_of


def plan_classes(given: dict[str, Any], count: int, unit: Any) -> None:
    """Print, or draw, the plan of a model of classes."""
    from hushfit.forecast import forecast, rows_needed, warning_of_few

    delta = delta_of(given, count)
    penalty = None if given["penalty"] == "none" else given["penalty"]
    epsilons, classes = budgets_of(given["epsilon_range"]), given["classes"] or 2
    columns, adjacency = given["columns"], given["adjacency"]
    solvers = _solvers(given)
    forecasts = [
        forecast(count, columns, epsilon, delta, adjacency, penalty, unit, solvers, classes)
        for epsilon in epsilons
    ]
    needed = [
        rows_needed(given["target_loss"], columns, epsilon, delta, adjacency)
        for epsilon in epsilons
    ]
    if given["svg"]:
        _draw(Path(given["svg"]), forecasts)
    if given["as_json"]:
        lines = [
            {**f.to_dict(), f"{unit.plural}_needed": list(rows)}
            for f, rows in zip(forecasts, needed, strict=True)
        ]
        public = {unit.plural: count, "columns": columns, "adjacency": adjacency}
        print_json({**public, "target_loss": given["target_loss"], "plans": lines})
        return
    print_table(
        f"Points of accuracy lost with {count:,} {unit.plural} and {columns:,} columns "
        f"({adjacency}, delta={delta:.2g})",
        [
            "epsilon",
            "lost",
            "9 cases in 10",
            "(log scale)",
            f"{unit.plural} to lose {100 * given['target_loss']:g}",
            "9 in 10",
        ],
        [_line(f, rows) for f, rows in zip(forecasts, needed, strict=True)],
    )
    print_table(
        "Noise, as a multiple of the sensitivity",
        ["solver", "release", *(f"{f.epsilon:g}" for f in forecasts)],
        _noise(forecasts),
    )
    print_message(
        "estimates from a rule fitted to eight tables, no guarantees; the noise is exact.",
        word="note",
    )
    few = warning_of_few(count, columns, epsilons[-1], delta, adjacency, unit)
    if few:
        print_message(few, word="warning")
    _print_where_the_rule_was_not_measured(given, unit)


def _draw(path: Path, forecasts: Sequence[Any]) -> None:
    from hushfit._write import write_whole
    from hushfit.report import plan_figure

    write_whole(path, plan_figure(forecasts, standalone=True))


def _line(f: Any, needed: tuple[int, int, int]) -> list[str]:
    # A logarithmic bar: full for a loss of one half, empty for a thousandth.
    share = math.log(max(f.loss, 1e-9) / 0.001) / math.log(500)
    filled = round(20 * min(max(share, 0.0), 1.0))
    expected, low, high = needed
    return [
        f"{f.epsilon:g}",
        f"{100 * f.loss:.2f}",
        f"{100 * f.loss_low:.2f} to {100 * f.loss_high:.2f}",
        "#" * filled + "." * (20 - filled),
        f"{expected:,}",
        f"{low:,} to {high:,}",
    ]


def _print_where_the_rule_was_not_measured(given: dict[str, Any], unit: Any) -> None:
    if given["adjacency"].endswith("label"):
        print_message(
            "FEATURES ARE NOT PROTECTED under this relation. The rule was not fitted to it; on "
            "three tables the loss was 0.1 to 1.1 times what it says.",
            word="note",
        )
    if unit.is_person or given["classes"] not in (None, 2):
        print_message(
            "the rule was measured with one row per person and two classes; with several rows per "
            "person or more classes the loss may differ.",
            word="note",
        )


def _solvers(given: dict[str, Any]) -> list[str]:
    """Names of the algorithms that were asked for, each calibrated only if it was."""
    from hushfit.forecast import named_solvers

    known = named_solvers(given["adjacency"])
    if given["solver"] == "all":
        return known
    if given["solver"] not in ("auto", *known):
        raise click.UsageError(
            f"--solver {given['solver']} is not known under --adjacency {given['adjacency']}. Use "
            f"all, auto, or one of {', '.join(known)}."
        )
    return [given["solver"]]


def _noise(forecasts: list[Any]) -> list[list[str]]:
    lines = []
    for k, first in enumerate(forecasts[0].noise):
        if first.refused:
            lines.append([first.solver, f"not here: {first.refused}", *("" for _ in forecasts)])
        for j, (name, count, _) in enumerate(first.releases):
            cells = [
                f"{f.noise[k].releases[j][2]:.3g}" if f.noise[k].releases else "" for f in forecasts
            ]
            lines.append([first.solver, f"{count} x {name}", *cells])
    return lines
