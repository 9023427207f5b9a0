"""``hushfit report``: one HTML page about a model."""

from pathlib import Path
from typing import Any

import click

from hushfit.cli._files import FORMATS
from hushfit.cli._printing import at_terminal, json_option, print_json, reading_bar


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
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="Format of the table, if its name does not show it.",
)
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
    format_: str | None,
    output: str,
    ledger: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Write a self-contained HTML page about MODEL: the guarantee in words, what was assumed
    public, where the budget went, the coefficients with the standard error that the noise implies,
    and what epsilon means for one row, or for one person if persons are protected. It answers the
    points of NIST SP 800-226 (trust model, total budget, side channels, retention, audit evidence);
    --json prints them too.

    The page loads nothing from the network. It is post-processing: reading it costs no further
    privacy.
    """
    from hushfit.cli._evidence import evidence_of
    from hushfit.cli._files import refuse_to_overwrite, tables_for
    from hushfit.cli._networks import report_network
    from hushfit.cli._ranking import report_lists
    from hushfit.models import is_network, is_ranker, read_model, write_whole
    from hushfit.report import (
        evaluate_model,
        evaluator_points,
        points_dict,
        report_page,
        table_model,
    )

    refuse_to_overwrite(output, overwrite)
    points: dict[str, Any] = {}
    if is_ranker(model_path):
        report_lists(model_path, tables, format_, output)
    else:
        network = is_network(model_path)
        model, digest = (table_model(model_path), "") if network else read_model(model_path)
        scores = None
        if tables:
            found = tables_for(tables, format_, model.schema)
            with reading_bar([table.path for table in found], at_terminal(as_json)) as watch:
                scores = evaluate_model(model, found, watch=watch)
        if network:
            report_network(model_path, output, scores)
        else:
            evidence = evidence_of(model, ledger)
            write_whole(Path(output), report_page(model, digest, scores, evidence))
            points = {"nist_sp_800_226": points_dict(evaluator_points(model, evidence))}
    if as_json:
        print_json({"report": output, **points})
    else:
        click.echo(f"Report: {output}")
