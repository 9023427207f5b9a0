"""``hushfit report``: one HTML page about a model."""

from pathlib import Path
from typing import Any

import click

from hushfit.cli._files import TableOptions, table_options
from hushfit.cli._printing import json_option, print_json


@click.command(
    "report",
    short_help="Write one page about a model: guarantee, budget, coefficients.",
    epilog="\b\nExample:\n  hushfit report model.json --held-out test.csv -o report.html",
)
@click.argument("model_path", metavar="MODEL", type=click.Path(dir_okay=False))
@click.option(
    "--held-out",
    "tables",
    multiple=True,
    metavar="TABLE",
    help="Rows that were not used for training.",
)
@table_options
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False),
    help="Where to write the page (HTML).",
)
@click.option(
    "--ledger",
    metavar="PATH|URL",
    help="The ledger that paid: the page then states the total of the model's data set.",
)
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@json_option
def command(
    model_path: str,
    tables: tuple[str, ...],
    output: str,
    ledger: str | None,
    overwrite: bool,
    as_json: bool,
    **written: Any,
) -> None:
    """Write a self-contained HTML page about MODEL: the guarantee in words, what was assumed
    public, where the budget went, the coefficients with the standard error that the noise implies,
    and what epsilon means for one row, or for one person if persons are protected. It answers the
    points of NIST SP 800-226 (trust model, total budget, side channels, retention, audit evidence);
    --json prints them too.

    The page loads nothing from the network. It is post-processing: reading it costs no further
    privacy.
    """
    from hushfit.cli._evidence import subject_of
    from hushfit.cli._files import refuse_to_overwrite
    from hushfit.models import write_whole

    refuse_to_overwrite(output, overwrite, ".html", ".htm")
    subject = subject_of(model_path, tables, TableOptions.of(written), ledger, as_json)
    write_whole(Path(output), subject.written_page())
    if as_json:
        print_json({"report": output, **subject.points})
    else:
        click.echo(f"Report: {output}")
