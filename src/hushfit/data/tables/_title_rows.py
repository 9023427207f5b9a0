"""Where the names of columns are in a file that begins with a title. For drafts: NOT private."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hushfit.data.schema import number_of


def header_among(rows: Sequence[Sequence[str]]) -> int | None:
    """Place of the row with the names of the columns, if titles are above it.

    Parameters
    ----------
    rows : sequence of sequences of str
        The first rows of a file, empty ones too.

    Returns
    -------
    int or None
        From 1; None if the names are in the first row, or no row looks like names.
    """
    width = _usual_width(rows)
    for place, row in enumerate(rows, 1):
        if not _is_title(row, width):
            return place if place > 1 and _has_names(row) else None
    return None


def _usual_width(rows: Sequence[Sequence[str]]) -> int:
    """The number of cells of most rows that have any."""
    widths = Counter(len(row) for row in rows if any(row))
    return max(widths, key=lambda width: (widths[width], width), default=0)


def _is_title(row: Sequence[str], width: int) -> bool:
    """Whether a row is no row of the table: it is shorter, or only its first cell, or few of its
    cells, are not empty.
    """
    filled = sum(map(bool, row))
    return len(row) < width or 2 * filled < width or (filled == 1 < width and bool(row[0]))


def _has_names(row: Sequence[str]) -> bool:
    """Whether its cells can be names: no numbers, each once."""
    names = sorted(cell for cell in row if cell)
    twice = any(one == next_ for one, next_ in pairwise(names))
    return bool(names) and not twice and not any(_is_number(name) for name in names)


def _is_number(cell: Any) -> bool:
    number = number_of(cell.replace(",", "."))
    return number == number  # not a NaN
