"""``hushfit predict``: labels and probabilities for new rows, encoded as in training."""

import csv
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from hushfit.cli._files import FORMATS
from hushfit.cli._printing import at_terminal, json_option, print_json, reading_bar

# What spreadsheets read as the start of a formula, unless the whole cell is a number.
_FORMULA = re.compile(r"\s*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@click.command(
    "predict",
    short_help="Predict labels, numbers, counts or grades of new rows.",
    epilog="\b\nExamples:\n  hushfit predict model.json new.csv -o labels.csv\n"
    "  hushfit predict model.json new.csv --keep patient_nbr -o labels.csv",
)
@click.argument("model_path", metavar="MODEL", type=click.Path(dir_okay=False))
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option(
    "-o", "--output", default="-", show_default=True, help="CSV file; - is standard output."
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="Format of the table, if its name does not show it.",
)
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@click.option(
    "--raw", is_flag=True, help="Write labels unchanged, for programs rather than spreadsheets."
)
@click.option(
    "--keep",
    multiple=True,
    metavar="COLUMN",
    help="Copy this column of TABLE to the output, before the predictions; may be repeated.",
)
@json_option
def command(
    model_path: str,
    tables: tuple[str, ...],
    output: str,
    format_: str | None,
    overwrite: bool,
    raw: bool,
    keep: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write one line for each row of TABLE, in its order: the most likely label and, where the
    model has them, probabilities; the predicted number or count, inside its public range; or the
    nearest grade with its position among them, from 0. A ranking model gives the query, the score
    and the place of each document in its list; grades are not needed.

    A label that a spreadsheet would run as a formula, since it begins with = + - @ and is no
    number, gets an apostrophe in front.
    """
    from hushfit.cli._files import refuse_to_overwrite
    from hushfit.errors import InvalidArgument
    from hushfit.models import is_ranker, write_whole

    if as_json and output == "-":
        raise InvalidArgument("--json needs -o FILE: the labels themselves are CSV.")
    if output != "-":
        refuse_to_overwrite(output, overwrite)
    if len(set(keep)) < len(keep):
        raise click.UsageError("--keep names a column twice. Name it once.")
    counted: list[int] = []
    safe = str if raw else without_formula
    ranked = is_ranker(model_path)
    lines = _ranked if ranked else _predictions
    pieces = lines(model_path, tables, format_, keep, at_terminal(as_json), counted, safe)
    if output == "-":
        for piece in pieces:
            click.echo(piece, nl=False)
        return
    write_whole(Path(output), pieces)
    if as_json:
        print_json({"predictions": output, "rows": sum(counted)})
    else:
        what = "documents ranked" if ranked else "rows predicted"
        click.echo(f"{sum(counted)} {what} in {output}")


def without_formula(label: Any) -> str:
    """A label as a cell that no spreadsheet runs: with an apostrophe in front if it looks like a
    formula; numbers unchanged.
    """
    text = str(label)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def _ranked(
    model_path: str,
    tables: tuple[str, ...],
    format_: str | None,
    keep: tuple[str, ...],
    shown: bool,
    counted: list[int],
    safe: Callable[[Any], str],
) -> Iterator[str]:
    """The same with a ranking model, in one piece: places need whole lists."""
    from hushfit.cli._ranking import scored_documents

    header, *lines = scored_documents(model_path, tables, format_, keep, safe)
    _refuse_two_of_a_name(header)
    counted.append(len(lines))
    yield _as_csv([header, *lines])


def _predictions(
    model_path: str,
    tables: tuple[str, ...],
    format_: str | None,
    keep: tuple[str, ...],
    shown: bool,
    counted: list[int],
    safe: Callable[[Any], str],
) -> Iterator[str]:
    """Lines of CSV, batch by batch; appends the number of rows of each batch to ``counted``."""
    from hushfit.cli._files import tables_for
    from hushfit.report import scored_batches, table_model

    model = table_model(model_path)
    header = [*keep, *_header(model)]
    _refuse_two_of_a_name(header)
    found = tables_for(tables, format_, model.schema)
    read = {column.name for column in model.schema.columns} if model.schema else set()
    others = [name for name in keep if name not in read]
    with reading_bar([table.path for table in found], shown) as watch:
        yield _as_csv([header])
        for batch, predicted, probabilities in scored_batches(model, found, others, watch):
            counted.append(len(predicted))
            kept = [[safe(cell) for cell in _cells(batch.column(name))] for name in keep]
            lines = _lines(model, predicted, probabilities, safe)
            yield _as_csv([[*own, *line] for *own, line in zip(*kept, lines, strict=True)])


def _cells(column: Any) -> list[Any]:
    """Cells of a column as they are written; missing ones are empty."""
    return ["" if cell is None else cell for cell in column.to_pylist()]


def _refuse_two_of_a_name(header: list[str]) -> None:
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise click.UsageError(
            f"the output would have two columns {twice[0]!r}. Rename the column in the table, or "
            "do not --keep it."
        )


def _as_csv(rows: list[list[str]]) -> str:
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()


def _header(model: Any) -> list[str]:
    if _is_graded(model):
        return ["prediction", "position"]
    probabilities = (
        [f"p({label})" for label in model.classes]
        if hasattr(model.estimator, "predict_proba")
        else []
    )
    return ["prediction", *probabilities]


def _is_graded(model: Any) -> bool:
    return bool(model.schema.target is not None and model.schema.target.kind == "ordinal")


def _lines(
    model: Any, predicted: Any, probabilities: Any, safe: Callable[[Any], str]
) -> list[list[str]]:
    """What is written for each row of a batch."""
    if model.predicts_classes:
        labels = [[safe(label)] for label in predicted]
        if probabilities is None:
            return labels
        return [
            [*label, *(f"{p:.6g}" for p in row)]
            for label, row in zip(labels, probabilities, strict=True)
        ]
    numbers = [f"{number:.6g}" for number in predicted]
    if not _is_graded(model):
        return [[number] for number in numbers]
    grades = [safe(grade) for grade in model.labelled(predicted)]
    return [[grade, number] for grade, number in zip(grades, numbers, strict=True)]
