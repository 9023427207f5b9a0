"""``hushfit card``: a model card in Markdown."""

from pathlib import Path
from typing import Any

import click

from hushfit.cli._files import TableOptions, table_options
from hushfit.cli._printing import json_option, print_json


@click.command(
    "card",
    short_help="Write a model card (Markdown with a YAML head).",
    epilog="\b\nExample:\n  hushfit card model.json --held-out test.csv -o card.md",
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
@click.option("--ledger", metavar="PATH|URL", help="The ledger that paid, for the total.")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False),
    help="Where to write the card (Markdown).",
)
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@json_option
def command(
    model_path: str,
    tables: tuple[str, ...],
    ledger: str | None,
    output: str,
    overwrite: bool,
    as_json: bool,
    **written: Any,
) -> None:
    """Write a card about MODEL in the form that model hubs show: what it predicts, its guarantee,
    the points of NIST SP 800-226, scores on held-out rows, limits and provenance. MODEL may be of
    classes, numbers or rankings, or a network. It is post-processing: it costs no further privacy.
    """
    from hushfit.cli._evidence import subject_of
    from hushfit.cli._files import refuse_to_overwrite
    from hushfit.models import write_whole

    refuse_to_overwrite(output, overwrite, ".md")
    subject = subject_of(model_path, tables, TableOptions.of(written), ledger, as_json)
    write_whole(Path(output), subject.written_card())
    if as_json:
        print_json({"card": output})
    else:
        click.echo(f"Card: {output}")
