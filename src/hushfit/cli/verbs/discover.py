"""``hushfit discover``: the frequent labels of columns, found privately and paid for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from hushfit.cli._dry_run import option as dry_run_option
from hushfit.cli._dry_run import payer_of
from hushfit.cli._files import table_options
from hushfit.cli._paid_model import payment_options
from hushfit.cli._printing import (
    at_terminal,
    json_option,
    print_guarantee,
    print_json,
    print_message,
    print_table,
    reading_bar,
)

# More than any schema with discovered labels takes.
_RESERVED_BYTES = 1 << 22


@click.command(
    "discover",
    short_help="Find the frequent labels of columns privately, paying first.",
    epilog="""\b
Examples:
  hushfit discover visits.csv --schema schema.toml --epsilon .2 --delta 1e-7 \\
      --ledger ledger.db --dataset visits -o found.toml
  hushfit discover visits.csv --schema schema.toml --column diagnosis \\
      --epsilon .2 --delta 1e-7 -o found.toml""",
)
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option(
    "--schema",
    "schema_path",
    required=True,
    type=click.Path(dir_okay=False),
    help="Public description (TOML).",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="COLUMN",
    help="A column of labels; may be repeated.  [default: the hashed columns of the schema]",
)
@click.option("--epsilon", required=True, type=float, help="Privacy loss to spend on the labels.")
@click.option(
    "--delta",
    required=True,
    type=float,
    help="Should be well below one over the number of rows, or of persons.",
)
@payment_options
@table_options
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False),
    help="Where to write the schema with the labels (TOML).",
)
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@dry_run_option
@json_option
def command(**given: Any) -> None:
    """Find the labels of columns whose vocabulary is not public, and write them into a schema.

    Labels that enough rows have are named, with noise in every count, and become the categories of
    their column; all others share <other>. At epsilon 0.3, delta 1e-6 and eight columns a label
    needs about 350 rows. This is a release: the ledger is charged before a row is used, and the
    guarantee protects one row, or one person if the schema names the column of their ids. The
    schema that is written may be published, as far as the rest of it may.

    A column without a frequent enough label stays as it was.
    """
    from hushfit.cli._files import TableOptions, refuse_to_overwrite, reserved_space
    from hushfit.cli._paid_model import ledger_of, note_account_of_rows
    from hushfit.data.schema import SchemaFile, read_schema, schema_to_toml
    from hushfit.models import write_whole

    refuse_to_overwrite(given["output"], given["overwrite"], ".toml")
    file = read_schema(given["schema_path"])
    schema = replace(file.schema, file=TableOptions.of(given).form(file.schema))
    names = _columns(schema, given["columns"])
    ledger = ledger_of(given)
    note_account_of_rows(ledger, schema.person)
    with reserved_space(given["output"], _RESERVED_BYTES):
        found, guarantee = _found(schema, names, ledger, given)
    made = _labelled(schema, found)
    unconfirmed = tuple(name for name in file.unconfirmed if name not in found)
    note = (
        f"Found privately: epsilon={guarantee.epsilon:g}, delta={guarantee.delta:g}, "
        f"{guarantee.relation}."
    )
    text = schema_to_toml(SchemaFile(made, unconfirmed), dict.fromkeys(found, note))
    write_whole(Path(given["output"]), text)
    _print(names, found, guarantee, given)


def _columns(schema: Any, given: tuple[str, ...]) -> list[str]:
    """The columns to look into: those given, or those that the schema hashes."""
    taken = {schema.person, None if schema.target is None else schema.target.name}
    for name in given:
        if name in taken:
            raise click.UsageError(
                f"--column {name} is the target or the column of ids. Name a column to learn from."
            )
    names = list(dict.fromkeys(given)) or [c.name for c in schema.columns if c.kind == "hashed"]
    if not names:
        raise click.UsageError(
            'the schema has no column of kind "hashed". Name one with --column, of labels that '
            "are not known."
        )
    return names


def _found(schema: Any, names: list[str], ledger: Any, given: dict[str, Any]) -> tuple[Any, Any]:
    """The frequent labels of each column that has some, and the guarantee."""
    from hushfit.cli._paid_model import refuse_large_delta, units_in
    from hushfit.data import persons_of
    from hushfit.errors import InvalidArgument
    from hushfit.preprocessing import SchemaEncoder
    from hushfit.unit import ROW

    cells, ids = _read(schema, names, given)
    unit, n_rows = schema.privacy_unit, len(cells[names[0]])
    persons = None if ids is None else persons_of(ids, n_rows, unit)
    refuse_large_delta(given["delta"], *units_in(n_rows, persons, ROW))
    encoder = SchemaEncoder(
        discover=names,
        epsilon=given["epsilon"],
        delta=given["delta"],
        adjacency=given["adjacency"],
        ledger=payer_of(ledger, given),
        random_state=given["seed"],
        person_weight=unit.weighting,
        rows_per_person=schema.rows_per_person,
    )
    try:
        fitted = encoder.fit(cells, groups=persons)
    except InvalidArgument as error:
        raise InvalidArgument(f"{error} {given['output']} was not written.") from None
    columns: Any = fitted.schema_.columns  # of discovered labels only
    found = {column.name: column.categories for column in columns}
    return found, fitted.privacy_


def _read(schema: Any, names: list[str], given: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The cells of some columns, and whose rows they are."""
    import numpy as np
    import pyarrow as pa

    from hushfit.cli._files import TableOptions
    from hushfit.data.schema import label_of
    from hushfit.data.tables import table_batches

    tables = TableOptions.of(given).tables(given["tables"], schema)
    wanted = [*names, *([] if schema.person is None else [schema.person])]
    shown = at_terminal(given["as_json"])
    paths = [table.path for table in tables]
    with reading_bar(paths, shown, sized=schema.person is None) as watch:
        batches = [batch for table in tables for batch in table_batches(table, wanted, watch)]
    cells = {}
    for name in names:
        gaps = _gaps(schema, name)
        texts = [label_of(cell) for batch in batches for cell in batch.column(name).to_pylist()]
        cells[name] = np.array([None if text in gaps else text for text in texts], dtype=object)
    if schema.person is None:
        return cells, None
    return cells, pa.chunked_array([batch.column(schema.person) for batch in batches])


def _marks(schema: Any, name: str) -> tuple[Any, ...]:
    """What stands for a missing label of a column."""
    listed = [c for c in schema.columns if c.name == name and c.kind != "date"]
    return tuple(listed[0].missing_values) if listed else ()


def _gaps(schema: Any, name: str) -> set[Any]:
    """Missing labels of a column, as they are compared: they are not counted."""
    from hushfit.data.schema import label_of

    return {label_of(mark) for mark in ("", *_marks(schema, name))}


def _labelled(schema: Any, found: dict[str, Any]) -> Any:
    """The schema with the labels that were found; a column without any stays as it was."""
    from hushfit.data.schema import CategoricalColumn

    made = {
        name: CategoricalColumn(name, labels, "indicator", _marks(schema, name))
        for name, labels in found.items()
    }
    kept = [made.pop(column.name, column) for column in schema.columns]
    return replace(schema, columns=(*kept, *made.values()))


def _print(names: list[str], found: Any, guarantee: Any, given: dict[str, Any]) -> None:
    if given["as_json"]:
        print_json(
            {
                "schema": given["output"],
                "labels": {name: list(found.get(name, ())) for name in names},
                "guarantee": guarantee.to_dict(),
            }
        )
        return
    rows = [
        [name, str(len(found.get(name, ()))), ", ".join(found.get(name, ())[:6])] for name in names
    ]
    print_table(f"Labels written to {given['output']}", ["column", "labels", "some"], rows)
    for name in names:
        if name not in found:
            print_message(
                f"no label of {name!r} is frequent enough to be named at this epsilon; the column "
                "stays as it was.",
                word="note",
            )
    print_guarantee(guarantee)
