"""``hushfit schema``: draft the public description of a table, or compare one with the rows."""

from pathlib import Path
from typing import Any

import click

from hushfit.cli._files import TableOptions, table_options
from hushfit.cli._options import as_written
from hushfit.cli._printing import (
    at_terminal,
    json_option,
    print_json,
    print_message,
    print_table,
    print_wrapped,
    reading_bar,
)

_WARNING = (
    "This draft was made by reading the rows, so it is NOT private: an extreme value or a rare "
    "label in it may belong to one "
    "person. Replace every value by what is publicly known, and delete its `confirm = true` when "
    "you have."
)

_HEAD = f"""Public description of a table, for `hushfit fit`.

{_WARNING}
Numbers: low and high are the public range; values outside are clipped, missing ones become `fill` (low if there is none).
Labels: unlisted ones share the category "<other>", and so do missing ones without missing = "indicator". Delete the columns that the model should not see.
The guarantee protects one row, or all rows of one person if `person` names the column of their ids."""  # noqa: E501

_NO_PERSON = """If persons have several rows, name the column of their ids, for instance
person = "patient_nbr"
Otherwise the guarantee is weaker for a person, the more rows the weaker."""

_PERSON = """Rows with the same id are one person's, and are protected together; the number of persons is public, the number of rows is not.
This column was proposed because its values repeat and there are many of them. Delete `confirm = true` if they are persons;
name another column, or delete the line to protect single rows, if they are not. Rows of a person with k rows weigh 1/k each,
and the first 1000 are used; see `person_weight` and `rows_per_person` in docs/cli.md."""  # noqa: E501

_LISTS_HEAD = (
    "Public description of lists of documents, for `hushfit fit`.\n\n"
    "This draft was made by reading the rows, so it is NOT private. Replace every value by what is "
    "publicly known, and delete `confirm = true` when you have.\n"
    "Documents of one query must be in adjacent rows."
)

_SHOWN_LABELS = 4
_SHOWN_COLUMNS = 60

# Options that say how a draft is made, and where it is written.
_OF_DRAFTS = ("target", "target_kind", "query", "output", "overwrite", "decimal")

_CHECK_WARNING = (
    "These are exact counts of the rows, so they are NOT private: they are for the owner of the "
    "data alone. Do not publish them, and "
    "do not copy ranges or labels from the rows into the schema because of them."
)


@click.command(
    "schema",
    short_help="Draft the public description of a table.",
    epilog="""\b
Examples:
  hushfit schema patients.csv --target readmitted -o schema.toml
  hushfit schema stays.csv --target days --target-kind numeric -o stays.toml
  hushfit schema ranks.csv --target grade --query query -o ranks.toml
  hushfit schema MSLR/train.txt -o ranks.toml
  hushfit schema --check patients.csv schema.toml
  hushfit schema --check visits.csv schema.toml --person patient_nbr""",
)
@click.argument("tables", nargs=-1, required=True, metavar="TABLE... [SCHEMA]")
@click.option("--target", metavar="COLUMN", help="The column to predict.")
@click.option(
    "--target-kind",
    type=click.Choice(["categorical", "numeric", "count", "ordinal"]),
    help="What the target is: classes, numbers, counts, or ordered grades.  [default: as it looks]",
)
@click.option(
    "--query",
    metavar="COLUMN",
    help="For ranking: the column that groups documents into lists; the target is their grade.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Compare TABLE with SCHEMA, the last file given. NOT private: for the owner of the data.",
)
@click.option(
    "--person",
    metavar="COLUMN",
    help="With --check: the column of ids, as for fit. Overrides the schema.",
)
@click.option(
    "--columns",
    is_flag=True,
    help="Only list the columns of TABLE. Nothing is drafted or written.",
)
@click.option("--unit", hidden=True)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), help="Where to write the schema (TOML)."
)
@table_options
@click.option(
    "--decimal",
    type=click.Choice([".", ","]),
    help="Decimal mark of the numbers.  [default: seen by the draft, and written into the schema]",
)
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@json_option
def command(
    tables: tuple[str, ...],
    check: bool,
    person: str | None,
    columns: bool,
    unit: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Draft a schema from TABLE (files, patterns, - for standard input, or a table of a database).

    The draft reads the rows: it is not private. Every drafted value is marked `confirm = true`;
    `fit` refuses marked values without --accept-draft, which is then recorded in the guarantee.

    With --check nothing is written. It counts, column by column, the cells that are no number, lie
    outside the range or have an unlisted label, and lists the classes and categories that no row
    has: what a fit would be paid for and could not use. `fit` cannot check this without a privacy
    cost, so check before you pay. With a column of ids it also counts persons, their rows and
    missing ids. The counts are exact and NOT private.

    A column whose values repeat, and are many, is proposed as the column of ids of persons; one
    with another value in each row, and free text, is left out. Texts among numbers make labels,
    dates become the time since the first one, month and weekday, more than 50 labels are hashed,
    and marks such as ? are missing values. Encoding, delimiter and decimal mark are seen, said and
    written into the schema.

    The target may be classes, numbers with a public range, counts with a public cap, or ordered
    grades. The draft takes what it looks like; --target-kind decides otherwise.

    With --query the draft is of lists of documents, for a ranking model: the numeric columns are
    features. LETOR (SVMlight) text, with lines such as `2 qid:10 1:0.5`, needs neither --target nor
    --query.
    """
    _refuse_unit(unit)
    options = TableOptions.of(given)
    draft = {name: given[name] for name in _OF_DRAFTS}
    if columns:
        _refuse_drafting(draft, "--columns", "needs TABLE alone: it only lists names")
        if check or person is not None:
            raise click.UsageError("--columns goes without --check and --person. Leave them out.")
        _list_columns(tables, options, as_json)
    elif check:
        _refuse_drafting(draft, "--check", "needs TABLE... and SCHEMA alone: it writes nothing")
        _check(tables, person, options, as_json)
    elif person is not None:
        raise click.UsageError(
            "--person is for --check. A draft proposes a column of ids by itself; change `person` "
            "in its file."
        )
    else:
        _draft(tables, options, as_json, **draft)


def _refuse_drafting(draft: dict[str, Any], verb: str, needs: str) -> None:
    """Refuse options of drafts where none is made."""
    if given := [as_written(name) for name, value in draft.items() if value]:
        raise click.UsageError(f"{verb} {needs}. Leave out {', '.join(given)}.")


def _list_columns(tables: tuple[str, ...], options: TableOptions, as_json: bool) -> None:
    from dataclasses import replace

    from hushfit.data.tables import sniffed_form, table_batches
    from hushfit.errors import InvalidArgument

    found = options.tables(tables)[0]
    try:
        seen = replace(found, form=sniffed_form(found))
        first = next(iter(table_batches(seen)), None)
    except OSError as error:
        raise InvalidArgument(f"{tables[0]} cannot be read ({error.strerror}).") from None
    names = [] if first is None else list(first.schema.names)
    if as_json:
        print_json({"columns": names})
    else:
        click.echo("\n".join(names))


def _refuse_unit(unit: str | None) -> None:
    from hushfit.errors import InvalidArgument

    if unit not in (None, "row"):
        raise InvalidArgument(
            f"--unit {unit} would only be a label: hushfit protects one row, and does not check "
            f"whether a {unit} has several. If so, the guarantee is weaker. Leave --unit out, and "
            f"name the column that identifies a {unit} in the schema: person = ..."
        )


def _draft(
    tables: tuple[str, ...],
    options: TableOptions,
    as_json: bool,
    target: str | None,
    target_kind: str | None,
    query: str | None,
    output: str | None,
    overwrite: bool,
    decimal: str | None,
) -> None:
    from dataclasses import replace

    from hushfit._write import write_whole
    from hushfit.cli._draft import draft_schema
    from hushfit.cli._files import refuse_to_overwrite
    from hushfit.data.lists import is_letor
    from hushfit.data.schema import UNIT, schema_to_toml
    from hushfit.data.tables import sniffed_form

    letor = options.format is None and all(map(is_letor, tables))
    if output is None or (target is None and not letor):
        raise click.UsageError("A draft needs --target COLUMN and -o FILE.")
    refuse_to_overwrite(output, overwrite, ".toml")
    if letor or query is not None:
        if target_kind is not None or decimal is not None:
            raise click.UsageError(
                "--target-kind and --decimal are not for lists of documents, whose grades and "
                "features are plain numbers. Leave them out."
            )
        _draft_lists(tables, options, as_json, target, query, output, letor)
        return
    found = options.tables(tables)
    seen = sniffed_form(found[0])
    found = [replace(table, form=seen) for table in found]
    with reading_bar([table.path for table in found], at_terminal(as_json)) as watch:
        draft, remarks = draft_schema(found, str(target), watch, target_kind, decimal)
    draft = replace(draft, schema=replace(draft.schema, file=seen))
    _say_form(seen)
    head = _HEAD + _left_out(remarks)
    notes = {"": head, UNIT: _NO_PERSON if draft.schema.person is None else _PERSON}
    write_whole(Path(output), schema_to_toml(draft, {**notes, **remarks.kept}))
    _print_draft(draft, remarks, output, as_json)


def _say_form(form: Any) -> None:
    """Say how the file is written, where that is not the usual way."""
    if form.to_dict():
        stated = ", ".join(
            f"the header in row {value}" if name == "header" else f"{name} {value!r}"
            for name, value in form.to_dict().items()
        )
        print_message(f"the file is read with {stated}, which the schema states.", word="note")


def _draft_lists(
    tables: tuple[str, ...],
    options: TableOptions,
    as_json: bool,
    target: str | None,
    query: str | None,
    output: str,
    letor: bool,
) -> None:
    from dataclasses import asdict

    from hushfit._write import write_whole
    from hushfit.cli._draft import DraftNotes
    from hushfit.cli._draft_lists import draft_letor, draft_lists, lists_to_toml
    from hushfit.data.tables import find_paths

    notes = DraftNotes()
    if letor:
        options.refuse("LETOR text has but one form")
        if (target, query) != (None, None):
            print_message(
                "LETOR text has its grades and queries in fixed places: --target and --query are "
                "not used.",
                word="note",
            )
        schema = draft_letor(find_paths(tables))
    else:
        found = options.tables(tables)
        with reading_bar([table.path for table in found], at_terminal(as_json)) as watch:
            schema, notes = draft_lists(found, str(target), str(query), watch)
    write_whole(Path(output), lists_to_toml(schema, _LISTS_HEAD + _left_out(notes)))
    if as_json:
        described = {**asdict(schema), "unconfirmed": True}
        print_json({"schema": output, "private": False, "left_out": notes.dropped, **described})
        return
    rows = [
        [f"{schema.target} (grade)", f"0 to {schema.max_grade:g}"],
        [f"{schema.query} (query)", "documents of one query are one list"],
    ]
    rows += [[name, "a number"] for name in schema.columns]
    rows += [] if schema.columns else [[f"1 to {schema.n_features}", "features, numbers"]]
    print_table(f"Draft of {output}", ["column", "drafted"], rows)
    for name, reason in notes.dropped.items():
        print_message(f"column {name!r} was left out: {reason}.", word="note")
    print_message(
        "the draft has unit 'labels': grades are protected, DOCUMENTS AND THEIR FEATURES ARE "
        "PUBLIC. Use unit 'list' or 'person' if they are not.",
        word="note",
    )
    print_message(_WARNING, word="warning")


def _check_lists(
    tables: list[str], path: str, schema: Any, options: TableOptions, as_json: bool
) -> None:
    from hushfit.cli._draft_lists import compare_lists
    from hushfit.cli._ranking import documents_in

    found = compare_lists(documents_in(tables, schema, options), schema)
    if as_json:
        print_json({"schema": path, "private": False, "warning": _CHECK_WARNING, **found.to_dict()})
        return
    cells = [str(found.documents), str(found.lists), str(found.longest)]
    columns = ["documents", "lists", "longest list"]
    print_table(f"NOT PRIVATE: the lists against {path}", columns, [cells])
    _print_remarks({"lists": list(found.remarks) or ["nothing odd"]})
    print_message(_CHECK_WARNING, word="warning")


def _check(
    given_files: tuple[str, ...], person: str | None, options: TableOptions, as_json: bool
) -> None:
    from dataclasses import replace

    from hushfit.cli._compare import compare
    from hushfit.data.lists import RankingSchema
    from hushfit.data.tables import read_schema

    if len(given_files) < 2:
        raise click.UsageError("--check needs TABLE... and SCHEMA, the last file given.")
    *tables, path = given_files
    lists = RankingSchema.read(path)
    if lists is not None:
        _check_lists(
            tables,
            path,
            lists if person is None else replace(lists, person=person),
            options,
            as_json,
        )
        return
    schema = read_schema(path).schema
    if person is not None:
        schema = replace(schema, person=person)
    found = options.tables(tables, schema)
    with reading_bar([table.path for table in found], at_terminal(as_json)) as watch:
        columns, persons = compare(found, schema, watch)
    if as_json:
        print_json(
            {
                "schema": path,
                "private": False,
                "warning": _CHECK_WARNING,
                "columns": [c.to_dict() for c in columns],
                "persons": None if persons is None else persons.to_dict(),
            }
        )
        return
    cells = [
        [c.name, str(c.rows), str(c.missing), "see below" if c.remarks else "matches the schema"]
        for c in columns
    ]
    print_table(f"NOT PRIVATE: the rows against {path}", ["column", "rows", "missing", ""], cells)
    _print_remarks({c.name: c.remarks for c in columns})
    if persons is not None:
        _print_persons(persons)
    print_message(_CHECK_WARNING, word="warning")


def _print_remarks(remarks: dict[str, list[str]]) -> None:
    """Remarks in full, below the table: they may be longer than a line of it."""
    for name, texts in remarks.items():
        for text in texts:
            print_wrapped(f"{name}: {text}.")
    if any(remarks.values()):
        click.echo()


def _print_persons(persons: Any) -> None:
    columns = ["persons", "missing ids", "rows each: median", "90%", "99%", "most"]
    quantiles = (persons.median, persons.ninety, persons.ninety_nine, persons.most)
    numbers = map(str, (persons.persons, persons.missing, *quantiles))
    print_table(f"NOT PRIVATE: persons, by column {persons.column}", columns, [[*numbers]])
    _print_remarks({persons.column: persons.remarks or ["nothing odd"]})


def _left_out(remarks: Any) -> str:
    lines = [f"\nLeft out: {name} ({reason})." for name, reason in remarks.dropped.items()]
    return "\n" + "".join(lines) if lines else ""


def _print_draft(draft: Any, remarks: Any, output: str, as_json: bool) -> None:
    described = draft.schema.to_dict()
    if as_json:
        print_json(
            {
                "schema": output,
                "private": False,
                "unconfirmed": draft.unconfirmed,
                "left_out": remarks.dropped,
                **described,
            }
        )
        return
    target = draft.schema.target
    columns = draft.schema.columns
    rows = [[column.name, column.kind, _brief(column)] for column in columns[:_SHOWN_COLUMNS]]
    if len(columns) > len(rows):
        rows.append([f"... {len(columns) - len(rows)} more", "", f"in {output}"])
    rows.append([f"{target.name} (target)", target.kind, _brief(target)])
    if draft.schema.person is not None:
        rows.append([f"{draft.schema.person} (person)", "id", "proposed: its values repeat"])
    print_table(f"Draft of {output}", ["column", "kind", "drafted"], rows)
    for name, reason in remarks.dropped.items():
        print_message(f"column {name!r} was left out: {reason}.", word="note")
    count = len(draft.schema.feature_names)
    print_message(
        f"the columns are encoded as {count} features: `hushfit plan --schema {output}` says what "
        "can be learnt.",
        word="note",
    )
    print_message(_WARNING, word="warning")


def _brief(column: Any) -> str:
    """What is stated about a column, in one line of a table."""
    if column.kind != "categorical":
        return str(column.stated)
    shown = column.categories[:_SHOWN_LABELS]
    more = len(column.categories) - len(shown)
    rest = [f"and {more} more"] if more else []
    missing = ["or missing"] if column.missing == "indicator" else []
    positive = f"; positive: {column.positive}" if column.positive is not None else ""
    return ", ".join([*shown, *rest, *missing]) + positive
