"""How many rows or persons are needed, where a schema does not state how many there are."""

from typing import Any

import click

from hushfit.cli._models import BY_TARGET
from hushfit.cli._printing import print_json, print_message, print_table
from hushfit.cli.plans._request import budgets_of, delta_of


def plan_units_needed(given: dict[str, Any], unit: Any) -> None:
    """How many rows or persons are needed, by a schema that does not state how many there are."""
    from hushfit.forecast import rows_needed

    number, special = f"--{unit.plural}", given["inference"] or given["theory"] or given["svg"]
    if special or given["solver"] != "auto" or given["model"] not in BY_TARGET["categorical"]:
        raise click.UsageError(
            f"{given['schema_path']} does not state how many {unit.plural} there are, and this "
            f"plan depends on it. Give {number}."
        )
    delta = delta_of(given, None)
    chosen = given["target_loss"], given["columns"]
    needed = {
        epsilon: rows_needed(*chosen, epsilon, delta, given["adjacency"])
        for epsilon in budgets_of(given["epsilon_range"])
    }
    if given["as_json"]:
        plans = [{"epsilon": e, f"{unit.plural}_needed": list(n)} for e, n in needed.items()]
        public = {"columns": given["columns"], "adjacency": given["adjacency"], "delta": delta}
        print_json({**public, "target_loss": given["target_loss"], "plans": plans})
        return
    rows = [
        [f"{epsilon:g}", f"{expected:,}", f"{low:,} to {high:,}"]
        for epsilon, (expected, low, high) in needed.items()
    ]
    title = (
        f"{unit.plural.capitalize()} to lose {100 * given['target_loss']:g} points of accuracy "
        f"with {given['columns']:,} columns ({given['adjacency']}, delta={delta:.2g})"
    )
    print_table(title, ["epsilon", unit.plural, "9 cases in 10"], rows)
    print_message(
        f"estimates from a rule fitted to eight tables, no guarantees. With {number} the plan has "
        "what your number of them loses, and the noise.",
        word="note",
    )
