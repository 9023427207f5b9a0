"""What the theorems of the source texts promise."""

import math
from typing import Any

from hushfit.cli._printing import print_json, print_message, print_table
from hushfit.cli.plans._request import budgets_of, delta_of

THEOREMS = "distance", "steps", "ridge"


def plan_theorems(given: dict[str, Any], count: int, unit: Any) -> None:
    from hushfit.theory import ROWS, Setting, all_bounds

    delta = delta_of(given, count)
    chosen = {key: given[key] for key in THEOREMS if given[key] is not None}
    bounds = {
        epsilon: all_bounds(
            Setting(count, given["columns"], epsilon, delta, given["adjacency"], **chosen)
        )
        for epsilon in budgets_of(given["epsilon_range"])
    }
    if given["as_json"]:
        plans = [
            {"epsilon": e, "bounds": [b.to_dict() for b in all_]} for e, all_ in bounds.items()
        ]
        public = {unit.plural: count, "columns": given["columns"], "adjacency": given["adjacency"]}
        print_json({**public, "delta": delta, "plans": plans})
        return
    rows = [
        [
            f"{epsilon:g}",
            bound.algorithm,
            *(_shown(value, bound.quantity == ROWS) for value in both),
        ]
        for epsilon, all_ in bounds.items()
        for bound in all_
        for both in [(bound.value, bound.limit)]
    ]
    title = (
        f"Theorems for {count:,} {unit.plural} and {given['columns']:,} columns "
        f"({given['adjacency']}, delta={delta:.2g})"
    )
    heads = ["epsilon", "algorithm", "bound", "bound with any number of steps"]
    print_table(title, heads, rows)
    print_message(
        f"bounds on the excess objective; for pp-admm and ipp-admm, {ROWS} for an error of 0.1. "
        "The theorems hold for the worst table and are far from what is measured: docs/theory.md.",
        word="note",
    )


def _shown(value: float, counts: bool) -> str:
    if not math.isfinite(value):
        return "none"
    return f"{math.ceil(value):,}" if counts else f"{value:.3g}"
