"""``hushfit predict``: labels and probabilities for new rows, encoded as in training."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import click

from hushfit._typing import AnyArray
from hushfit.cli._files import TableOptions, table_options
from hushfit.cli._printing import at_terminal, json_option, print_json, reading_bar

_DIGITS, _SCORE_DIGITS = 6, 8


@click.command(
    "predict",
    short_help="Predict labels, numbers, counts or grades of new rows.",
    epilog="\b\nExamples:\n  hushfit predict model.json new.csv -o labels.csv\n"
    "  hushfit predict model.json new.csv --keep patient_nbr -o labels.csv\n"
    "  hushfit predict model.json new.parquet -o labels.parquet",
)
@click.argument("model_path", metavar="MODEL", type=click.Path(dir_okay=False))
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option(
    "-o",
    "--output",
    default="-",
    show_default=True,
    help="File (.csv, .tsv, .parquet or .arrow; text may be compressed, as in .csv.gz); - is "
    "standard output, as CSV.",
)
@table_options
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@click.option(
    "--raw", is_flag=True, help="Write labels unchanged, for programs rather than spreadsheets."
)
@click.option(
    "--decimal",
    type=click.Choice([".", ","]),
    default=".",
    show_default=True,
    help="Decimal mark of the numbers that are written. With a comma, semicolons divide the cells "
    "of CSV, as German or French spreadsheets expect.",
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
    overwrite: bool,
    raw: bool,
    decimal: str,
    keep: tuple[str, ...],
    as_json: bool,
    **written: Any,
) -> None:
    """Write one line for each row of TABLE, in its order: the most likely label and, where the
    model has them, probabilities; the predicted number or count, inside its public range; or the
    nearest grade with its position among them, from 0. A ranking model gives the query, the score
    and the place of each document in its list; grades are not needed.

    In text files a label that a spreadsheet would run as a formula, since it begins with = + - @
    and is no number, gets an apostrophe in front.
    """
    from hushfit.cli._files import refuse_to_overwrite
    from hushfit.cli._written_rows import RowForm, write_rows
    from hushfit.errors import InvalidArgument
    from hushfit.models import is_ranker

    if as_json and output == "-":
        raise InvalidArgument("--json needs -o FILE: the labels themselves are CSV.")
    form = RowForm.of(output, decimal, raw)
    if output != "-":
        refuse_to_overwrite(output, overwrite)
    if len(set(keep)) < len(keep):
        raise click.UsageError("--keep names a column twice. Name it once.")
    counted: list[int] = []
    ranked = is_ranker(model_path)
    predictions = _ranked if ranked else _predictions
    options, shown = TableOptions.of(written), at_terminal(as_json)
    names, batches = predictions(model_path, tables, options, keep, shown, counted, form)
    _refuse_two_of_a_name(names)
    write_rows(output, form, names, batches, partial(click.echo, nl=False))
    if output == "-":
        return
    if as_json:
        print_json({"predictions": output, "rows": sum(counted)})
    else:
        what = "documents ranked" if ranked else "rows predicted"
        click.echo(f"{sum(counted)} {what} in {output}")


def _ranked(
    model_path: str,
    tables: tuple[str, ...],
    options: TableOptions,
    keep: tuple[str, ...],
    shown: bool,
    counted: list[int],
    form: Any,
) -> tuple[list[str], Iterator[list[Any]]]:
    """The same with a ranking model, in one piece: places need whole lists."""
    from hushfit.cli._ranking import scored_documents
    from hushfit.cli._written_rows import rounded

    names, (*texts, scores, places) = scored_documents(model_path, tables, options, keep)
    counted.append(len(places))
    numbers = [rounded(scores, _SCORE_DIGITS), places]
    return names, iter([[*map(form.texts, texts), *map(_numbers, numbers)]])


def _predictions(
    model_path: str,
    tables: tuple[str, ...],
    options: TableOptions,
    keep: tuple[str, ...],
    shown: bool,
    counted: list[int],
    form: Any,
) -> tuple[list[str], Iterator[list[Any]]]:
    """Names of columns and, batch by batch, their cells; appends the number of rows of each batch
    to ``counted``.
    """
    from hushfit.report import scored_batches, table_model

    model = table_model(model_path)
    found = options.tables(tables, model.schema)
    read = {column.name for column in model.schema.columns} if model.schema else set()
    others = [name for name in keep if name not in read]

    def batches() -> Iterator[list[Any]]:
        with reading_bar([table.path for table in found], shown) as watch:
            for batch, predicted, probabilities in scored_batches(model, found, others, watch):
                counted.append(len(predicted))
                kept = [form.texts(batch.column(name)) for name in keep]
                yield [*kept, *_outcome(model, predicted, probabilities, form)]

    return [*keep, *_header(model)], batches()


def _refuse_two_of_a_name(header: list[str]) -> None:
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise click.UsageError(
            f"the output would have two columns {twice[0]!r}. Rename the column in the table, or "
            "do not --keep it."
        )


def _numbers(values: AnyArray) -> Any:
    import pyarrow as pa

    return pa.array(values)


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


def _outcome(model: Any, predicted: AnyArray, probabilities: Any, form: Any) -> list[Any]:
    """Columns that are written for a batch."""
    from hushfit.cli._written_rows import rounded

    if model.predicts_classes:
        labels = form.texts(predicted)
        if probabilities is None:
            return [labels]
        return [labels, *map(_numbers, rounded(probabilities, _DIGITS).T)]
    numbers = _numbers(rounded(predicted, _DIGITS))
    return [form.texts(model.labelled(predicted)), numbers] if _is_graded(model) else [numbers]
