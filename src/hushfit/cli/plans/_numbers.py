"""The plan of a model of numbers, grades or counts."""

from typing import Any

from hushfit.cli._printing import print_json, print_message, print_table
from hushfit.cli.plans._request import budgets_of, delta_of


def plan_numbers(given: dict[str, Any], count: int, unit: Any) -> None:
    from hushfit.report import number_forecast

    delta = delta_of(given, count)
    counts, place = given["model"] == "poisson", (count, given["columns"])
    plans = [
        number_forecast(*place, epsilon, delta, given["adjacency"], counts, unit)
        for epsilon in budgets_of(given["epsilon_range"])
    ]
    if given["as_json"]:
        lines = [plan.to_dict() for plan in plans]
        public = {unit.plural: count, "columns": place[1], "model": given["model"]}
        print_json({**public, "plans": lines})
        return
    rows = [[f"{unit.plural} at least", *(f"{plan.units_needed:,}" for plan in plans)]]
    for k, (name, _, _) in enumerate(plans[0].releases):
        made = [plan.releases[k] for plan in plans]
        rows.append([name, *(f"{_times(n)}{noise:.3g}" for _, n, noise in made)])
    title = (
        f"Noise of --model {given['model']} with {count:,} {unit.plural} and {place[1]:,} columns, "
        f"as a multiple of the sensitivity ({given['adjacency']}, delta={delta:.2g})"
    )
    print_table(title, ["release", *(f"{plan.epsilon:g}" for plan in plans)], rows)
    print_message(
        f"with fewer {unit.plural} than that, noise hides even the mean target. There is no "
        "forecast of R2 or deviance: they depend on the target, which public numbers do not "
        "describe. The noise is exact.",
        word="note",
    )


def _times(count: int) -> str:
    return "" if count == 1 else f"{count} x "
