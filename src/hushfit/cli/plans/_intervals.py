"""The plan of a fit with intervals."""

from typing import Any

from hushfit.cli._printing import print_json, print_message, print_table
from hushfit.cli.plans._request import budgets_of, delta_of


def plan_intervals(given: dict[str, Any], count: int, unit: Any) -> None:
    from hushfit.forecast import interval_forecast

    delta = delta_of(given, count)
    model, wished = given["model"] or "logistic", given["width"] or 0.2
    spread = given["spread"] or 0.5
    plans = [
        interval_forecast(
            *(count, given["columns"], epsilon, delta, given["adjacency"], model, wished, spread),
            unit=unit,
            robust=given["cov_type"] == "robust",
            expected_mean=given["expected_mean"],
        )
        for epsilon in budgets_of(given["epsilon_range"])
    ]
    if given["as_json"]:
        public = {unit.plural: count, "columns": given["columns"], "model": model}
        lines = [plan.to_dict() for plan in plans]
        print_json({**public, "width": wished, "spread": spread, "plans": lines})
        return
    rows = [
        [f"{p.epsilon:g}", f"{p.units_needed:,}", f"{p.units_for_width:,}"]
        + ([f"{p.width:.3g}", f"{p.over_plain:.2f}"] if p.width is not None else ["refused", ""])
        for p in plans
    ]
    title = (
        f"Intervals of --model {model} with {count:,} {unit.plural} and {given['columns']:,} "
        f"columns ({given['adjacency']}, delta={delta:.2g})"
    )
    heads = ["epsilon", f"{unit.plural} at least", f"{unit.plural} for width {wished:g}"]
    heads += [f"width with {count:,}", "over that without privacy"]
    print_table(title, heads, rows)
    print_message(
        f"for a column of standard deviation {spread:g} that is not correlated with others, and "
        f"{_assumed(given['expected_mean'])} Rows with unusual features weigh less, which changes "
        "what is estimated if the model is wrong; fit --even-weights avoids that at a price in "
        "noise that is not known before.",
        word="note",
    )


def _assumed(mean: float | None) -> str:
    """What the forecast assumes about the response, and what 'at least' means."""
    if mean is None:
        return (
            "a usual response (a class of 28 %, a mean of a fifth of the largest count, residuals "
            "of a tenth of the range). Correlated columns and rarer responses (--expected-mean) "
            "give wider intervals; 'at least' is exact: with fewer a fit is refused before "
            "anything is spent."
        )
    return (
        f"a mean response of {mean:g}. Correlated columns give wider intervals; 'at least' is "
        f"exact for fit --expected-mean {mean:g}: with fewer it is refused before anything is "
        "spent. A fit without that option may be paid for, and be conservative or hidden by noise."
    )
