"""``hushfit plan``: cost and expected accuracy of a fit, from public numbers alone."""

import math
from pathlib import Path
from typing import Any

import click

from hushfit.cli._models import BY_TARGET, MODELS
from hushfit.cli._options import refuse_ignored_options, written_options
from hushfit.cli._planned import with_stated
from hushfit.cli._printing import json_option, print_json, print_message, print_table

# Where no number of rows says what is small.
_USUAL_DELTA = 1e-6
# Options of each kind of plan.
_OF_EVERY_PLAN = (
    *("schema_path", "columns", "persons", "epsilon_range", "delta", "adjacency", "as_json"),
)
_OF_ROWS = (*_OF_EVERY_PLAN, "rows", "person_weight", "rows_per_person")
_OF_NUMBERS = (*_OF_ROWS, "model")
_OF_CLASSES = (*_OF_NUMBERS, "classes", "penalty", "solver", "target_loss", "svg")
_OF_INTERVALS = (*_OF_NUMBERS, "inference", "width", "spread", "expected_mean", "cov_type")
_THEOREMS = "distance", "steps", "ridge"
_OF_THEOREMS = (*_OF_ROWS, "theory", *_THEOREMS)
_OF_RANKING = (*_OF_EVERY_PLAN, "lists", "unit", "rows")


@click.command(
    "plan",
    short_help="Estimate cost and accuracy of a fit, before reading a row.",
    epilog="""\b
Examples:
  hushfit plan --rows 50000 --columns 100 --epsilon-range .05:4
  hushfit plan --schema schema.toml --rows 50000
  hushfit plan --schema schema.toml
  hushfit plan --persons 71000 --columns 100
  hushfit plan --rows 50000 --columns 100 --adjacency label
  hushfit plan --rows 50000 --columns 30 --model linear
  hushfit plan --rows 20000 --columns 10 --inference --width .2
  hushfit plan --rows 20000 --columns 10 --inference --expected-mean .05
  hushfit plan --rows 50000 --columns 100 --theory
  hushfit plan --lists 800 --columns 46 --unit labels""",
)
@click.option(
    "--schema",
    "schema_path",
    type=click.Path(dir_okay=False),
    help="Public description (TOML) that states columns, classes, the kind of target and whether "
    "persons are protected. Without --rows or --persons only the number that is needed is printed.",
)
@click.option("--rows", type=int, help="Number of rows, if single rows are protected.")
@click.option("--persons", type=int, help="Number of persons, if persons are protected.")
@click.option("--lists", type=int, help="Number of lists of documents, for a ranking model.")
@click.option(
    "--unit",
    type=click.Choice(["labels", "list", "person"]),
    help="For a ranking model: what is protected, as in its schema; person needs --persons, labels "
    "takes --lists or --persons.  [default: labels]",
)
@click.option(
    "--person-weight", type=click.Choice(["mean", "cap"]), help="As for fit; needs --persons."
)
@click.option("--rows-per-person", type=int, help="As for fit; needs --persons.")
@click.option(
    "--columns",
    type=int,
    help="Encoded columns; each category counts as one. Needed without --schema.",
)
@click.option("--classes", type=int, help="Number of classes to predict.  [default: 2]")
@click.option(
    "--epsilon-range",
    default=".05:4",
    show_default=True,
    metavar="LOW:HIGH",
    help="Range of budgets.",
)
@click.option(
    "--delta", type=float, help="Default: a tenth of one over the number of rows or persons."
)
@click.option(
    "--adjacency",
    type=click.Choice(["replace-one", "add-remove", "label", "person-label"]),
    help="As for fit. With label and person-label, FEATURES ARE NOT PROTECTED.  [default: "
    "replace-one]",
)
@click.option(
    "--model",
    type=click.Choice(MODELS),
    help="As for fit. For models of numbers, grades and counts only the noise is printed.  "
    "[default: logistic]",
)
@click.option(
    "--penalty",
    type=click.Choice(["none", "l1", "l2", "elasticnet"]),
    default="none",
    show_default=True,
)
@click.option(
    "--solver",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="Algorithm whose noise to print: auto, which is what fit uses, another name, or all, "
    "which takes longer.",
)
@click.option(
    "--target-loss", type=float, default=0.01, show_default=True, help="Accuracy that may be lost."
)
@click.option(
    "--inference",
    is_flag=True,
    help="Plan a fit with intervals: how wide they will be, and how many rows are needed.",
)
@click.option(
    "--width",
    type=float,
    help="With --inference: the width that intervals of 95 % should have, in log-odds, logarithms "
    "of rate ratios, or (linear) standard deviations of the residuals.  [default: 0.2]",
)
@click.option(
    "--spread",
    type=float,
    help="With --inference: standard deviation of the column asked about.  [default: 0.5, an "
    "indicator of half of the rows]",
)
@click.option(
    "--expected-mean",
    type=float,
    help="With --inference: mean response that you expect from what is public, the share of a "
    "class or the mean count. Rare classes take more rows.  [default: a class of 28 %, a fifth of "
    "the largest count]",
)
@click.option(
    "--theory",
    is_flag=True,
    help="What the theorems of the source texts promise at these numbers (docs/theory.md).",
)
@click.option(
    "--distance",
    type=float,
    help="With --theory: norm of the best weights.  [default: 10]",
)
@click.option("--steps", type=int, help="With --theory: number of releases.  [default: 500]")
@click.option(
    "--ridge",
    type=float,
    help="With --theory: weight of a ridge penalty, for the bounds that need one.  [default: none]",
)
@click.option(
    "--cov-type",
    type=click.Choice(["model", "robust"]),
    help="With --inference: as for fit.  [default: model]",
)
@click.option("--svg", type=click.Path(dir_okay=False), help="Also draw the plot into this file.")
@json_option
def command(**given: Any) -> None:
    """Print, for budgets between LOW and HIGH: the noise of --solver, the accuracy that the default
    algorithm is expected to lose against a fit without privacy, and the rows or persons needed to
    lose no more than --target-loss.

    Reads no data: with --schema, the schema alone. The rule and its uncertainty (nine cases in ten
    are within a factor of 2.7) are in docs/cli.md.

    For numbers, grades and counts (--model linear, poisson and others) there is no such rule. It
    prints the noise, and the number of rows or persons below which noise hides everything.

    With --inference it prints how wide intervals will be, and how many rows or persons a width
    takes.

    For a ranking model (--lists, or --unit with --persons) there is no such rule. It prints the
    noise in a weight, and the number of lists or persons below which a weight is more noise than
    signal.
    """
    from hushfit._write import write_whole
    from hushfit.forecast import forecast, rows_needed, warning_of_few

    if given["schema_path"] is not None:
        given = with_stated(given, written_options())
    elif given["columns"] is None:
        raise click.UsageError(
            "Give --columns, the number of encoded columns, or --schema FILE, which states it."
        )
    if given["lists"] is not None or given["unit"] is not None:
        refuse_ignored_options(_OF_RANKING, "a ranking model has lists, no rows")
        _plan_ranking(given)
        return
    given["adjacency"] = given["adjacency"] or "replace-one"
    count, unit = _units(given)
    _refuse_other_adjacency(given["adjacency"], unit)
    if given["model"] == "mlp":
        raise click.UsageError(
            "There is no plan for networks: their noise follows from batches and epochs. "
            "docs/networks.md has how to choose them. Leave --model out to plan a linear model."
        )
    if count is None:
        _plan_units(given, unit)
        return
    if given["theory"]:
        refuse_ignored_options(_OF_THEOREMS, "--theory goes with sizes and budgets alone")
        _plan_theory(given, count, unit)
        return
    if any(given[name] is not None for name in _THEOREMS):
        raise click.UsageError("--distance, --steps and --ridge are for --theory. Give it too.")
    if given["inference"]:
        refuse_ignored_options(_OF_INTERVALS, "--inference plans intervals of the usual fit")
        _plan_intervals(given, count, unit)
        return
    if any(given[name] is not None for name in ("width", "spread", "expected_mean", "cov_type")):
        raise click.UsageError(
            "--width, --spread, --expected-mean and --cov-type are for --inference. Give it too."
        )
    if given["model"] not in (None, *BY_TARGET["categorical"]):
        refuse_ignored_options(
            _OF_NUMBERS, f"--model {given['model']} is of numbers, for which only noise is known"
        )
        _plan_numbers(given, count, unit)
        return
    refuse_ignored_options(_OF_CLASSES, "the plan is of a model of classes")
    delta = given["delta"] if given["delta"] is not None else 0.1 / max(count, 2)
    penalty = None if given["penalty"] == "none" else given["penalty"]
    epsilons, classes = _grid(given["epsilon_range"]), given["classes"] or 2
    place = (count, given["columns"])
    solvers = _solvers(given)
    forecasts = [
        forecast(*place, epsilon, delta, given["adjacency"], penalty, unit, solvers, classes)
        for epsilon in epsilons
    ]
    needed = [
        rows_needed(given["target_loss"], place[1], epsilon, delta, given["adjacency"])
        for epsilon in epsilons
    ]
    if given["svg"]:
        from hushfit.report import plan_figure

        write_whole(Path(given["svg"]), plan_figure(forecasts, standalone=True))
    if given["as_json"]:
        lines = [
            {**f.to_dict(), f"{unit.plural}_needed": list(rows)}
            for f, rows in zip(forecasts, needed, strict=True)
        ]
        print_json(
            {
                unit.plural: count,
                "columns": place[1],
                "adjacency": given["adjacency"],
                "target_loss": given["target_loss"],
                "plans": lines,
            }
        )
        return
    sized = f"{count:,} {unit.plural}"
    few = warning_of_few(*place, epsilons[-1], delta, given["adjacency"], unit)
    shown = {**given, "sized": sized, "units": unit.plural, "few": few}
    _print_forecasts(forecasts, needed, shown, delta)


def _plan_theory(given: dict[str, Any], count: int, unit: Any) -> None:
    from hushfit.theory import ROWS, Setting, all_bounds

    delta = given["delta"] if given["delta"] is not None else 0.1 / max(count, 2)
    chosen = {key: given[key] for key in _THEOREMS if given[key] is not None}
    bounds = {
        epsilon: all_bounds(
            Setting(count, given["columns"], epsilon, delta, given["adjacency"], **chosen)
        )
        for epsilon in _grid(given["epsilon_range"])
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


def _plan_intervals(given: dict[str, Any], count: int, unit: Any) -> None:
    from hushfit.forecast import interval_forecast

    delta = given["delta"] if given["delta"] is not None else 0.1 / max(count, 2)
    model, wished = given["model"] or "logistic", given["width"] or 0.2
    spread = given["spread"] or 0.5
    plans = [
        interval_forecast(
            *(count, given["columns"], epsilon, delta, given["adjacency"], model, wished, spread),
            unit=unit,
            robust=given["cov_type"] == "robust",
            expected_mean=given["expected_mean"],
        )
        for epsilon in _grid(given["epsilon_range"])
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


def _plan_numbers(given: dict[str, Any], count: int, unit: Any) -> None:
    from hushfit.report import number_forecast

    delta = given["delta"] if given["delta"] is not None else 0.1 / max(count, 2)
    counts, place = given["model"] == "poisson", (count, given["columns"])
    plans = [
        number_forecast(*place, epsilon, delta, given["adjacency"], counts, unit)
        for epsilon in _grid(given["epsilon_range"])
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


def _units(given: dict[str, Any]) -> tuple[int | None, Any]:
    """How many units there are, and what they are; None if a schema is given and no number."""
    from hushfit.unit import ROW, PrivacyUnit

    rows, persons = given["rows"], given["persons"]
    if "protected" in given:
        return (persons if rows is None else rows), given["protected"]
    weights = given["person_weight"], given["rows_per_person"]
    if (rows is None) == (persons is None):
        raise click.UsageError("Give either --rows or --persons: what the guarantee protects.")
    if persons is not None:
        return persons, PrivacyUnit.person(weights[0] or "mean", weights[1])
    if weights != (None, None):
        raise click.UsageError("--person-weight and --rows-per-person need --persons.")
    return rows, ROW


def _plan_units(given: dict[str, Any], unit: Any) -> None:
    """How many rows or persons are needed, by a schema that does not state how many there are."""
    from hushfit.forecast import rows_needed

    number, special = f"--{unit.plural}", given["inference"] or given["theory"] or given["svg"]
    if special or given["solver"] != "auto" or given["model"] not in BY_TARGET["categorical"]:
        raise click.UsageError(
            f"{given['schema_path']} does not state how many {unit.plural} there are, and this "
            f"plan depends on it. Give {number}."
        )
    delta = _USUAL_DELTA if given["delta"] is None else given["delta"]
    chosen = given["target_loss"], given["columns"]
    needed = {
        epsilon: rows_needed(*chosen, epsilon, delta, given["adjacency"])
        for epsilon in _grid(given["epsilon_range"])
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


def _refuse_other_adjacency(adjacency: str, unit: Any) -> None:
    """Labels of rows with --rows, labels of persons with --persons."""
    wanted = "person-label" if unit.is_person else "label"
    if adjacency.endswith("label") and adjacency != wanted:
        raise click.UsageError(
            f"--adjacency {adjacency} is not for {unit.plural} as units of privacy. Use "
            f"--adjacency {wanted}, or give {'--rows' if unit.is_person else '--persons'}."
        )


def _plan_ranking(given: dict[str, Any]) -> None:
    from hushfit.report import ranking_forecast

    count, unit, plural = _ranking_units(given)
    delta = given["delta"] if given["delta"] is not None else 0.1 / max(count, 2)
    place = count, given["columns"]
    adjacency, per_person = given["adjacency"] or "replace-one", plural == "persons"
    plans = [
        ranking_forecast(*place, epsilon, delta, unit, adjacency, per_person)
        for epsilon in _grid(given["epsilon_range"])
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


def _grid(text: str) -> list[float]:
    """Seven budgets from low to high, in equal ratios."""
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not LOW:HIGH, such as .05:4.", param_hint="--epsilon-range"
        ) from None
    if not 0 < low <= high < math.inf:
        raise click.BadParameter(f"{text!r} needs 0 < LOW <= HIGH.", param_hint="--epsilon-range")
    steps = 1 if low == high else 7
    return [float(f"{low * (high / low) ** (k / max(steps - 1, 1)):.3g}") for k in range(steps)]


def _print_forecasts(
    forecasts: list[Any], needed: list[Any], given: dict[str, Any], delta: float
) -> None:
    # A logarithmic bar: full for a loss of one half, empty for a thousandth.
    rows = []
    for f, (expected, low, high) in zip(forecasts, needed, strict=True):
        filled = round(20 * min(max(math.log(max(f.loss, 1e-9) / 0.001) / math.log(500), 0.0), 1.0))
        rows.append(
            [
                f"{f.epsilon:g}",
                f"{100 * f.loss:.2f}",
                f"{100 * f.loss_low:.2f} to {100 * f.loss_high:.2f}",
            ]
            + ["#" * filled + "." * (20 - filled), f"{expected:,}", f"{low:,} to {high:,}"]
        )
    title = (
        f"Points of accuracy lost with {given['sized']} and {given['columns']:,} columns "
        f"({given['adjacency']}, "
    )
    columns = [
        "epsilon",
        "lost",
        "9 cases in 10",
        "(log scale)",
        f"{given['units']} to lose {100 * given['target_loss']:g}",
        "9 in 10",
    ]
    print_table(f"{title}delta={delta:.2g})", columns, rows)
    print_table(
        "Noise, as a multiple of the sensitivity",
        ["solver", "release", *(f"{f.epsilon:g}" for f in forecasts)],
        _noise(forecasts),
    )
    print_message(
        "estimates from a rule fitted to eight tables, no guarantees; the noise is exact.",
        word="note",
    )
    if given["few"]:
        print_message(given["few"], word="warning")
    if given["adjacency"].endswith("label"):
        print_message(
            "FEATURES ARE NOT PROTECTED under this relation. The rule was not fitted to it; on "
            "three tables the loss was 0.1 to 1.1 times what it says.",
            word="note",
        )
    if given["units"] == "persons" or given["classes"] not in (None, 2):
        print_message(
            "the rule was measured with one row per person and two classes; with several rows per "
            "person or more classes the loss may differ.",
            word="note",
        )


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
