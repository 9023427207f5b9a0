"""``hushfit schema``: a first draft of the public description of a table, to be replaced by what is known."""

from pathlib import Path
from typing import Any

import click

from hushfit.cli._output import at_terminal, complain, json_option, print_json, print_table, reading_bar

_WARNING = (
    "This draft was made by reading the rows, so it is NOT private: an extreme value or a rare label in it may belong to one "
    "person. Replace every value by what is publicly known, and delete its `confirm = true` when you have."
)

_HEAD = f"""Public description of a table, for `hushfit fit`.

{_WARNING}
Numbers: low and high are the public range; values outside are clipped, missing ones become `fill` (low if there is none).
Labels: unlisted and missing ones share the category "<other>". Delete the columns that the model should not see.
unit: what one row stands for, such as "person". If someone may have several rows, the guarantee is for one row only."""


@click.command(
    "schema",
    short_help="Draft the public description of a table.",
    epilog="\b\nExample:\n  hushfit schema patients.csv --target readmitted -o schema.toml",
)
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option("--target", required=True, metavar="COLUMN", help="The column to predict.")
@click.option("--unit", default="row", show_default=True, help="What one row stands for, such as person.")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="Where to write the schema (TOML).")
@click.option("--format", "format_", type=click.Choice(["csv", "tsv", "parquet", "arrow"]), help="When the name does not tell.")
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@json_option
def command(
    tables: tuple[str, ...], target: str, unit: str, output: str, format_: str | None, overwrite: bool, as_json: bool
) -> None:
    """Draft a schema from TABLE (files, patterns, or - for standard input).

    The draft reads the rows: it is not private. Every drafted value is marked `confirm = true`; `fit` refuses marked values
    unless it is told --accept-draft, which is then recorded in the guarantee.
    """
    from hushfit.cli._draft import draft_schema
    from hushfit.cli._files import refuse_to_overwrite
    from hushfit.data._schema_file import schema_to_toml
    from hushfit.data.tables import find_tables
    from hushfit.models._file import write_whole

    refuse_to_overwrite(output, overwrite)
    found = find_tables(tables, format_)
    with reading_bar([table.path for table in found], at_terminal(as_json)) as watch:
        draft, remarks = draft_schema(found, target, unit, watch)
    write_whole(Path(output), schema_to_toml(draft, {"": _HEAD + _left_out(remarks), **remarks.kept}))
    _tell(draft, remarks, output, as_json)


def _left_out(remarks: Any) -> str:
    lines = [f"\nLeft out: {name} ({reason})." for name, reason in remarks.dropped.items()]
    return "\n" + "".join(lines) if lines else ""


def _tell(draft: Any, remarks: Any, output: str, as_json: bool) -> None:
    described = draft.schema.to_dict()
    if as_json:
        print_json({"schema": output, "private": False, "unconfirmed": draft.unconfirmed, "left_out": remarks.dropped, **described})
        return
    rows = [[name, column["kind"], _summary(column)] for name, column in described["columns"].items()]
    rows.append([f"{described['target']['name']} (target)", described["target"]["kind"], _summary(described["target"])])
    print_table(f"Draft of {output}", ["column", "kind", "drafted"], rows)
    for name, reason in remarks.dropped.items():
        complain(f"column {name!r} was left out: {reason}.", word="note")
    complain(_WARNING, word="warning")


def _summary(column: dict[str, Any]) -> str:
    if column["kind"] == "numeric":
        return f"{column['low']:g} to {column['high']:g}"
    shown = ", ".join(column["categories"][:4])
    more = len(column["categories"]) - 4
    return f"{shown}, and {more} more" if more > 0 else shown
