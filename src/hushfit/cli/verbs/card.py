"""``hushfit card``: a model card in Markdown."""

from pathlib import Path

import click

from hushfit.cli._printing import at_terminal, json_option, print_json, reading_bar


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
@click.option(
    "--format",
    "format_",
    type=click.Choice(["csv", "tsv", "parquet", "arrow"]),
    help="Format of the table, if its name does not show it.",
)
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
    format_: str | None,
    ledger: str | None,
    output: str,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Write a card about MODEL in the form that model hubs show: what it predicts, its guarantee,
    the points of NIST SP 800-226, scores on held-out rows, limits and provenance. It is
    post-processing: it costs no further privacy.
    """
    from hushfit.cli._evidence import evidence_of, linear_model
    from hushfit.cli._files import refuse_to_overwrite
    from hushfit.data.tables import find_tables
    from hushfit.models import write_whole
    from hushfit.report import evaluate_model, model_card

    refuse_to_overwrite(output, overwrite)
    model, digest = linear_model(model_path, "card")
    scores = None
    if tables:
        found = find_tables(tables, format_)
        with reading_bar([table.path for table in found], at_terminal(as_json)) as watch:
            scores = evaluate_model(model, found, watch=watch)
    write_whole(Path(output), model_card(model, digest, scores, evidence_of(model, ledger)))
    if as_json:
        print_json({"card": output})
    else:
        click.echo(f"Card: {output}")
