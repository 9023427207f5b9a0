"""``hushfit predict``: labels and probabilities for new rows, encoded as in training."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from hushfit._typing import AnyArray
from hushfit.cli._files import TableOptions, table_options
from hushfit.cli._printing import at_terminal, json_option, print_json, reading_bar

# What spreadsheets read as the start of a formula, unless the whole cell is a number.
_FORMULA = re.compile(r"\s*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")
_STRUCTURAL = '[",\r\n]'
_DIGITS, _SCORE_DIGITS = 6, 8
_SMALLEST_ROUNDED, _LARGEST_ROUNDED = 1e-14, 1e16
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
@table_options
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
    overwrite: bool,
    raw: bool,
    keep: tuple[str, ...],
    as_json: bool,
    **written: Any,
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
    options, shown = TableOptions.of(written), at_terminal(as_json)
    pieces = lines(model_path, tables, options, keep, shown, counted, safe)
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
    options: TableOptions,
    keep: tuple[str, ...],
    shown: bool,
    counted: list[int],
    safe: Callable[[Any], str],
) -> Iterator[str]:
    """The same with a ranking model, in one piece: places need whole lists."""
    from hushfit.cli._ranking import scored_documents

    header, (*texts, scores, places) = scored_documents(model_path, tables, options, keep)
    _refuse_two_of_a_name(header)
    counted.append(len(places))
    yield _header_line(header)
    numbers = [rounded(scores, _SCORE_DIGITS), places]
    yield _as_csv([*(_texts(cells, safe) for cells in texts), *map(_numbers, numbers)])


def _predictions(
    model_path: str,
    tables: tuple[str, ...],
    options: TableOptions,
    keep: tuple[str, ...],
    shown: bool,
    counted: list[int],
    safe: Callable[[Any], str],
) -> Iterator[str]:
    """Lines of CSV, batch by batch; appends the number of rows of each batch to ``counted``."""
    from hushfit.report import scored_batches, table_model

    model = table_model(model_path)
    header = [*keep, *_header(model)]
    _refuse_two_of_a_name(header)
    found = options.tables(tables, model.schema)
    read = {column.name for column in model.schema.columns} if model.schema else set()
    others = [name for name in keep if name not in read]
    with reading_bar([table.path for table in found], shown) as watch:
        yield _header_line(header)
        for batch, predicted, probabilities in scored_batches(model, found, others, watch):
            counted.append(len(predicted))
            kept = [_texts(batch.column(name), safe) for name in keep]
            yield _as_csv([*kept, *_outcome(model, predicted, probabilities, safe)])


def _refuse_two_of_a_name(header: list[str]) -> None:
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise click.UsageError(
            f"the output would have two columns {twice[0]!r}. Rename the column in the table, or "
            "do not --keep it."
        )


def _header_line(names: Iterable[str]) -> str:
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n").writerow(names)
    return file.getvalue()


def _as_csv(columns: Sequence[Any]) -> str:
    """Rows of CSV, with quotation marks around the cells that need them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = [
        _quoted(column) if pa.types.is_string(column.type) else column.cast(pa.string())
        for column in columns
    ]
    lines = pc.binary_join_element_wise(*cells, ",").to_pylist()
    return "".join(f"{line}\n" for line in lines)


def _quoted(texts: Any) -> Any:
    import pyarrow.compute as pc

    marked = pc.match_substring_regex(texts, _STRUCTURAL)
    if not pc.any(marked).as_py():
        return texts
    inside = pc.replace_substring(texts, '"', '""')
    return pc.if_else(marked, pc.binary_join_element_wise('"', inside, '"', ""), texts)


def _numbers(values: AnyArray) -> Any:
    import pyarrow as pa

    return pa.array(values)


def _texts(cells: Any, safe: Callable[[Any], str]) -> Any:
    """Cells as safe texts, missing ones empty. Each different cell is made safe once."""
    import pyarrow as pa

    found = cells if isinstance(cells, pa.Array | pa.ChunkedArray) else pa.array(cells)
    found = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    coded = found if pa.types.is_dictionary(found.type) else found.dictionary_encode()
    texts = ["" if cell is None else safe(cell) for cell in coded.dictionary.to_pylist()]
    return pa.array([*texts, ""]).take(coded.indices.fill_null(len(texts)))


def rounded(values: AnyArray, digits: int) -> AnyArray:
    """Numbers rounded to so many significant digits: the shortest text of each has no more.

    Those that no power of ten scales exactly stay as they are.
    """
    size = np.abs(values)
    usual = (size > _SMALLEST_ROUNDED) & (size < _LARGEST_ROUNDED)
    power = np.floor(np.log10(np.where(usual, size, 1.0))) + 1 - digits
    up, down = 10.0 ** np.maximum(-power, 0), 10.0 ** np.maximum(power, 0)
    return np.where(usual, np.round(values * up / down) * down / up, values)


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


def _outcome(
    model: Any, predicted: AnyArray, probabilities: Any, safe: Callable[[Any], str]
) -> list[Any]:
    """Columns that are written for a batch."""
    if model.predicts_classes:
        labels = _texts(predicted, safe)
        if probabilities is None:
            return [labels]
        return [labels, *map(_numbers, rounded(probabilities, _DIGITS).T)]
    numbers = _numbers(rounded(predicted, _DIGITS))
    return [_texts(model.labelled(predicted), safe), numbers] if _is_graded(model) else [numbers]
