"""``hushfit describe``: statistics of a table with intervals, paid for from the ledger."""

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from hushfit.cli._dry_run import option as dry_run_option
from hushfit.cli._dry_run import payer_of
from hushfit.cli._files import table_options
from hushfit.cli._paid_model import payment_options, print_payment
from hushfit.cli._printing import (
    at_terminal,
    json_option,
    print_guarantee,
    print_json,
    print_message,
    print_table,
    reading_bar,
)

# More than any description takes, as JSON or as a page.
_RESERVED_BYTES = 1 << 23


@click.command(
    "describe",
    short_help="Release means, quantiles and shares with intervals, paying first.",
    epilog="""\b
Examples:
  hushfit describe visits.csv --schema schema.toml --epsilon .2 \\
      --ledger ledger.db --dataset visits -o statistics.json --report statistics.html
  hushfit describe visits.csv --schema schema.toml --epsilon .2 --columns age,bmi --by sex
  hushfit describe visits.csv --schema schema.toml --epsilon .2 --columns age \\
      --quantiles .1,.5,.9""",
)
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option(
    "--schema",
    "schema_path",
    required=True,
    type=click.Path(dir_okay=False),
    help="Public description (TOML): ranges and labels.",
)
@click.option(
    "--epsilon", required=True, type=float, help="Privacy loss to spend on all statistics."
)
@click.option(
    "--delta",
    type=float,
    default=1e-6,
    show_default=True,
    help="Should be well below one over the number of rows, or of persons.",
)
@click.option(
    "--columns",
    metavar="A,B,...",
    help="Which columns.  [default: all numbers and labels of the schema]",
)
@click.option(
    "--by",
    metavar="COLUMN",
    help="A column of labels: statistics of each of its categories, and differences of two.",
)
@click.option(
    "--quantiles",
    metavar="Q,Q,...",
    default=".25,.5,.75",
    show_default=True,
    help="Shares of values below; none for means and shares alone, with less noise.",
)
@click.option(
    "--level", type=float, default=0.95, show_default=True, help="Confidence level of intervals."
)
@click.option(
    "--simultaneous", is_flag=True, help="All intervals together have the confidence level."
)
@click.option(
    "--complete",
    is_flag=True,
    help="It is public that no cell is missing: means have less noise.",
)
@click.option(
    "--accept-draft",
    is_flag=True,
    help="Use unconfirmed values of the schema; recorded in the guarantee.",
)
@payment_options
@table_options
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    help="Where to write the statistics: .json, with histograms and the guarantee, or one line for "
    "each as .csv, .tsv, .parquet or .arrow.",
)
@click.option(
    "--report",
    "page",
    type=click.Path(dir_okay=False),
    help="Where to write a page with histograms and intervals (HTML).",
)
@click.option("--overwrite", is_flag=True, help="Replace outputs that exist.")
@dry_run_option
@json_option
def command(**given: Any) -> None:
    """Print means, quantiles and shares of labels of TABLE, each with a confidence interval that
    covers sampling and noise.

    All of it is one release for one epsilon: the ledger is charged before a row is used. Numbers
    outside their range are clipped, missing cells are left out of their column. The guarantee
    protects one row, or one person if the schema names the column of their ids; every person then
    counts once.

    If noise would hide what is asked, nothing is spent, and the message says how many rows are
    needed.
    """
    from hushfit.cli._files import TableOptions, reserved_space
    from hushfit.cli._paid_model import ledger_of, note_account_of_rows, note_unit_of_schema
    from hushfit.data.schema import read_schema
    from hushfit.models import write_whole
    from hushfit.report import description_page

    outputs = [path for path in (given["output"], given["page"]) if path is not None]
    _refuse_outputs(given)
    file = read_schema(given["schema_path"])
    schema = replace(file.schema, file=TableOptions.of(given).form(file.schema))
    shares = _shares(given["quantiles"])
    survey = _survey(schema, given, shares)
    notes = _drafted(file, survey, given)
    note_unit_of_schema(given["schema_path"], schema, "as `person` in the schema")
    ledger = ledger_of(given)
    note_account_of_rows(ledger, schema.person)
    with ExitStack() as reserved:
        for path in outputs:
            reserved.enter_context(reserved_space(path, _RESERVED_BYTES))
        found = _described(schema, survey, shares, notes, ledger, given)
    _print(found, ledger, given)  # first: what was paid for is seen, whatever becomes of files
    if given["output"] is not None:
        _write(given["output"], found, ledger)
    if given["page"] is not None:
        title = f"Statistics of {', '.join(Path(path).name for path in given['tables'])}"
        write_whole(Path(given["page"]), description_page(found, title))
    if not given["as_json"]:
        for path in outputs:
            click.echo(f"Written: {path}")


def _refuse_outputs(given: dict[str, Any]) -> None:
    """Refuse files that exist, cannot be written, or promise another format."""
    from hushfit.cli._files import refuse_to_overwrite
    from hushfit.cli._written_rows import RowForm, holds_rows

    if (output := given["output"]) is not None:
        if holds_rows(output):
            RowForm.of(output)
            refuse_to_overwrite(output, given["overwrite"])
        else:
            refuse_to_overwrite(output, given["overwrite"], ".json", ".csv", ".parquet")
    if given["page"] is not None:
        refuse_to_overwrite(given["page"], given["overwrite"], ".html", ".htm")


def _write(output: str, found: Any, ledger: Any) -> None:
    """Write the statistics as rows or as JSON, by the ending of the file's name."""
    import pyarrow as pa

    from hushfit.cli._written_rows import RowForm, holds_rows, write_rows
    from hushfit.models import write_whole

    if not holds_rows(output):
        write_whole(Path(output), json.dumps(_plain(found, ledger), indent=2) + "\n")
        return
    form, columns = RowForm.of(output), found.table()
    cells = [
        form.texts(pa.array(column, pa.string())) if _are_texts(column) else pa.array(column)
        for column in columns.values()
    ]
    write_rows(output, form, list(columns), [cells], click.echo)


def _are_texts(cells: list[Any]) -> bool:
    return all(cell is None or isinstance(cell, str) for cell in cells)


def _shares(text: str) -> tuple[float, ...]:
    if text.strip() in ("", "none"):
        return ()
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise click.UsageError(
            f"--quantiles {text} is not a list of shares. Write, say, .1,.5,.9 or none."
        ) from None


def _survey(schema: Any, given: dict[str, Any], shares: tuple[float, ...]) -> Any:
    from hushfit.statistics import survey_of

    listed = given["columns"]
    names = None if listed is None else [name.strip() for name in listed.split(",")]
    return survey_of(schema, names, given["by"], shares, given["complete"])


def _drafted(file: Any, survey: Any, given: dict[str, Any]) -> tuple[str, ...]:
    """Notes about values of the schema that were drafted from the rows; refuses them unless they
    are accepted.
    """
    from hushfit.data.schema import UNIT
    from hushfit.errors import InvalidArgument

    used = {column.name for column in survey.columns} | {UNIT}
    drafted = [name for name in file.unconfirmed if name in used]
    if not drafted:
        return ()
    named = ", ".join(drafted)
    if not given["accept_draft"]:
        raise InvalidArgument(
            f"{given['schema_path']} has values that were drafted from the rows and not confirmed "
            f"({named}). Nothing was spent. Replace them by what is publicly known and delete "
            "`confirm = true`, or use --accept-draft, which the guarantee will state."
        )
    return (
        f"Ranges, labels or the unit of {named} were drafted from the rows: what they reveal is "
        "outside the guarantee.",
    )


def _described(
    schema: Any,
    survey: Any,
    shares: tuple[float, ...],
    notes: tuple[str, ...],
    ledger: Any,
    given: dict[str, Any],
) -> Any:
    from hushfit import Budget
    from hushfit.cli._paid_model import refuse_large_delta, units_in
    from hushfit.release import Randomness, Terms
    from hushfit.statistics import describe_columns
    from hushfit.unit import ROW

    budget, payer = Budget(given["epsilon"], given["delta"]), payer_of(ledger, given)
    terms = Terms(budget, "hushfit describe", Randomness.of(given["seed"]), payer, notes=notes)
    columns, persons = _read(schema, survey, given)
    n_rows = len(next(iter(columns.values())))
    refuse_large_delta(given["delta"], *units_in(n_rows, persons, ROW))
    shown = shares, given["level"], given["simultaneous"]
    return describe_columns(columns, survey, persons, given["adjacency"], terms, *shown)


def _read(schema: Any, survey: Any, given: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The columns that are asked about, each cell by itself, and whose rows they are."""
    import numpy as np

    from hushfit.cli._files import TableOptions
    from hushfit.data.rows import PersonIndex
    from hushfit.data.tables import table_batches

    tables = TableOptions.of(given).tables(given["tables"], schema)
    person = schema.person
    names = [column.name for column in survey.columns] + ([] if person is None else [person])
    paths, shown = [table.path for table in tables], at_terminal(given["as_json"])
    parts: dict[str, list[Any]] = {column.name: [] for column in survey.columns}
    index, codes = PersonIndex(), []
    with reading_bar(paths, shown, sized=person is None) as watch:
        for table in tables:
            for batch in table_batches(table, names, watch):
                for column in survey.columns:
                    parts[column.name].append(_values(batch.column(column.name), column))
                if person is not None:
                    codes.append(index.add(batch.column(person)))
    if not next(iter(parts.values())):
        parts = {name: [np.empty(0)] for name in parts}
    columns = {name: np.concatenate(own) for name, own in parts.items()}
    if person is None or not codes:
        return columns, None
    return columns, index.persons(codes, schema.privacy_unit, f"column {person!r}")


def _values(cells: Any, column: Any) -> Any:
    """Numbers, or codes of labels."""
    import numpy as np

    from hushfit.data.schema import NumericColumn
    from hushfit.data.tables import codes_of, numbers_of

    if isinstance(column, NumericColumn):
        return column.numbers(numbers_of(cells, column, column.decimal))
    return codes_of(cells, column).astype(np.float64)


def _print(found: Any, ledger: Any, given: dict[str, Any]) -> None:
    if given["as_json"]:
        print_json(_plain(found, ledger))
        return
    heads = ["column", "statistic", "group", "estimate", "interval", "noise"]
    lines = found.lines()
    if found.answers.survey.by is None:
        heads, lines = heads[:2] + heads[3:], [line[:2] + line[3:] for line in lines]
    print_table(found.heading, heads, lines)
    print_guarantee(found.guarantee)
    receipt = found.answers.receipt
    if receipt is not None:
        print_payment(receipt.number, ledger, ledger.spent())
    if any(one.statistic in ("quantile", "median") for one in found.estimates):
        print_message(
            "noise is one standard deviation: of a quantile as a share of the values, otherwise in "
            "the units of the estimate.",
            word="note",
        )
    if any(one.conservative for one in found.estimates):
        print_message(
            "intervals of quantiles, and all intervals where persons are protected, cover more "
            "often than stated.",
            word="note",
        )


def _plain(found: Any, ledger: Any) -> dict[str, Any]:
    """Plain values, with the payment."""
    receipt = found.answers.receipt
    paid = None if receipt is None else {"dataset": ledger.name, "number": receipt.number}
    plain: dict[str, Any] = {**found.to_dict(), "receipt": paid}
    return plain
