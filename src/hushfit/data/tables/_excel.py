"""Spreadsheets, read with calamine (``pip install hushfit[excel]``).

A cell becomes a text by itself, as in a CSV file: a reader that guesses the types of columns would
let one person's cell decide how all others are read.
"""

import datetime
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from python_calamine import CalamineError, CalamineWorkbook

from hushfit.errors import InvalidArgument

UNREADABLE: tuple[type[Exception], ...] = (CalamineError,)


def sheet_rows(path: str, sheet: str | None, header: int | None = None) -> list[list[Any]]:
    """The cells of one sheet, without empty rows around them, or from one of its rows on, as the
    sheet numbers them.

    Raises
    ------
    InvalidArgument
        If there are several sheets and none was named, or there is none of that name.
    """
    with CalamineWorkbook.from_path(path) as book:
        names = book.sheet_names
        if sheet is None and len(names) != 1:
            listed = ", ".join(map(repr, names))
            raise InvalidArgument(
                f"{path} has {len(names)} sheets: {listed}. Name the one with the rows, as in "
                f"'{path}?sheet={names[0] if names else 'NAME'}'."
            )
        if sheet is not None and sheet not in names:
            raise InvalidArgument(
                f"{path} has no sheet {sheet!r}. It has {', '.join(map(repr, names))}."
            )
        found = book.get_sheet_by_name(sheet or names[0])
        rows = list(found.to_python())
        if header is None or found.start is None:
            return rows
        empty: list[list[Any]] = [[] for _ in range(found.start[0])]
        return [*empty, *rows][header - 1 :]


def text_batches(
    rows: list[list[Any]], places: list[int], names: list[str], size: int
) -> Iterator[Any]:
    """Record batches of texts, of some columns."""
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        texts = [pa.array([cell_text(row[j]) for row in part], pa.string()) for j in places]
        yield pa.record_batch(texts, names=names)


def cell_text(cell: Any) -> str:
    """A cell as a CSV file would hold it."""
    if isinstance(cell, bool):
        return str(cell)
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return cell.date().isoformat()
    return "" if cell is None else str(cell)
