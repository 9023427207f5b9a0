"""``hushfit plan``: cost and expected accuracy of a fit, from public numbers alone."""

from collections.abc import Callable
from typing import Any

import click

from hushfit.cli._models import BY_TARGET, MODELS
from hushfit.cli._options import refuse_ignored_options, written_options
from hushfit.cli._planned import with_stated
from hushfit.cli._printing import json_option
from hushfit.cli.plans import (
    THEOREMS,
    plan_classes,
    plan_intervals,
    plan_numbers,
    plan_ranking,
    plan_theorems,
    plan_units_needed,
)

# Options of each kind of plan.
_OF_EVERY_PLAN = (
    *("schema_path", "columns", "persons", "epsilon_range", "delta", "adjacency", "as_json"),
)
_OF_ROWS = (*_OF_EVERY_PLAN, "rows", "person_weight", "rows_per_person")
_OF_NUMBERS = (*_OF_ROWS, "model")
_OF_CLASSES = (*_OF_NUMBERS, "classes", "penalty", "solver", "target_loss", "svg")
_OF_INTERVALS = (*_OF_NUMBERS, "inference", "width", "spread", "expected_mean", "cov_type")
_OF_THEOREMS = (*_OF_ROWS, "theory", *THEOREMS)
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
    if given["schema_path"] is not None:
        given = with_stated(given, written_options())
    elif given["columns"] is None:
        raise click.UsageError(
            "Give --columns, the number of encoded columns, or --schema FILE, which states it."
        )
    if given["lists"] is not None or given["unit"] is not None:
        refuse_ignored_options(_OF_RANKING, "a ranking model has lists, no rows")
        plan_ranking(given)
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
        plan_units_needed(given, unit)
    else:
        _plan_of_rows(given)(given, count, unit)


def _plan_of_rows(given: dict[str, Any]) -> Callable[[dict[str, Any], int, Any], None]:
    """The plan that was asked for; refuses options that it would ignore."""
    if given["theory"]:
        refuse_ignored_options(_OF_THEOREMS, "--theory goes with sizes and budgets alone")
        return plan_theorems
    if any(given[name] is not None for name in THEOREMS):
        raise click.UsageError("--distance, --steps and --ridge are for --theory. Give it too.")
    if given["inference"]:
        refuse_ignored_options(_OF_INTERVALS, "--inference plans intervals of the usual fit")
        return plan_intervals
    if any(given[name] is not None for name in ("width", "spread", "expected_mean", "cov_type")):
        raise click.UsageError(
            "--width, --spread, --expected-mean and --cov-type are for --inference. Give it too."
        )
    if given["model"] not in (None, *BY_TARGET["categorical"]):
        refuse_ignored_options(
            _OF_NUMBERS, f"--model {given['model']} is of numbers, for which only noise is known"
        )
        return plan_numbers
    refuse_ignored_options(_OF_CLASSES, "the plan is of a model of classes")
    return plan_classes


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


def _refuse_other_adjacency(adjacency: str, unit: Any) -> None:
    """Labels of rows with --rows, labels of persons with --persons."""
    wanted = "person-label" if unit.is_person else "label"
    if adjacency.endswith("label") and adjacency != wanted:
        raise click.UsageError(
            f"--adjacency {adjacency} is not for {unit.plural} as units of privacy. Use "
            f"--adjacency {wanted}, or give {'--rows' if unit.is_person else '--persons'}."
        )
