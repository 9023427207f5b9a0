"""The plan of a ranking model."""

from typing import Any

import click

from hushfit.cli._printing import print_json, print_message, print_table
from hushfit.cli.plans._request import budgets_of, delta_of


def plan_ranking(given: dict[str, Any]) -> None:
    from hushfit.report import ranking_forecast

    count, unit, plural = _ranking_units(given)
    delta = delta_of(given, count)
    place = count, given["columns"]
    adjacency, per_person = given["adjacency"] or "replace-one", plural == "persons"
    plans = [
        ranking_forecast(*place, epsilon, delta, unit, adjacency, per_person)
        for epsilon in budgets_of(given["epsilon_range"])
    ]
    if given["as_json"]:
        lines = [plan.to_dict() for plan in plans]
        print_json({plural: count, "columns": place[1], "unit": unit, "plans": lines})
        return
    rows = [
        [f"{p.epsilon:g}", f"{p.noise:.3g}", f"{p.units_needed:,}"]
        + [", ".join(f"{n} x {name}: {noise:.3g}" for name, n, noise in p.releases)]
        for p in plans
    ]
    title = (
        f"Noise of a ranking model with {count:,} {plural} and {place[1]:,} columns (unit {unit}, "
        f"{plans[0].relation}, delta={delta:.2g})"
    )
    columns = ["epsilon", "noise in a weight", f"{plural} for 1", "releases: noise / sensitivity"]
    print_table(title, columns, rows)
    print_message(
        "the noise in a weight is a multiple of a typical weight: above 1 it is more noise than "
        f"signal. '{plural} for 1' is the least number for a useful model if documents differ "
        "equally in all columns; correlated columns need fewer.",
        word="note",
    )
    print_message(
        "there is no forecast of NDCG: it depends on the documents, which public numbers do not "
        "describe. The releases and their noise are exact.",
        word="note",
    )


def _ranking_units(given: dict[str, Any]) -> tuple[int, str, str]:
    """How many lists or persons there are, the unit, and the word for it."""
    lists, persons, unit = given["lists"], given["persons"], given["unit"] or "labels"
    if given["rows"] is not None:
        raise click.UsageError("A ranking model has lists, no rows. Give --lists or --persons.")
    if (lists is None) == (persons is None):
        raise click.UsageError("Give either --lists or --persons: what the guarantee protects.")
    if (unit == "person" and persons is None) or (unit == "list" and lists is None):
        raise click.UsageError(f"--unit {unit} needs --{unit}s.")
    relation = given["adjacency"]
    own = "person-label" if persons is not None else "label"
    if relation is not None and relation.endswith("label") is not (unit == "labels"):
        raise click.UsageError(
            f"--adjacency {relation} does not suit --unit {unit}. Leave --adjacency out"
            + (", or use replace-one or add-remove." if unit != "labels" else ".")
        )
    if unit == "labels" and relation not in (None, own):
        raise click.UsageError(f"--adjacency {relation} is not for these units. Use {own}.")
    return (lists, unit, "lists") if persons is None else (persons, unit, "persons")
