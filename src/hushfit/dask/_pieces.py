"""Which rows of which files or partitions each part of a table has; nothing here reads a row.

Parts begin at multiples of the largest block of rows, wherever files and partitions end. So every
part has the blocks that the same rows have on one machine.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from hushfit.data import MOST_BLOCK_ROWS

# Blocks of the largest part, of about a million rows: a lost part is encoded again as a whole.
_MOST_BLOCKS = 32
# Parts for each worker, so that workers of different speed get shares of different size.
_PARTS_PER_WORKER = 3


@dataclass(frozen=True)
class Span:
    """Some rows of one file or partition.

    Parameters
    ----------
    place : int
        Number of the file or partition.
    rows : range
    """

    place: int
    rows: range


def parts_of(sizes: Sequence[int], workers: int) -> list[tuple[Span, ...]]:
    """The spans of each part of a table.

    Parameters
    ----------
    sizes : sequence of int
        Rows of each file or partition, at least two together.
    workers : int
        How many will share the parts.

    Returns
    -------
    list of tuple of Span
        Every part has at least two rows.
    """
    total = sum(sizes)
    blocks = -(-total // MOST_BLOCK_ROWS)
    each = MOST_BLOCK_ROWS * min(max(blocks // (_PARTS_PER_WORKER * workers), 1), _MOST_BLOCKS)
    starts = list(range(0, total, each))
    if len(starts) > 1 and total - starts[-1] < 2:
        starts.pop()
    ends = [*starts[1:], total]
    firsts = [0, *accumulate(sizes)]
    return [_spans(firsts, start, end) for start, end in zip(starts, ends, strict=True)]


def _spans(firsts: list[int], start: int, end: int) -> tuple[Span, ...]:
    """Rows of a table from ``start`` to ``end``, by file."""
    found = []
    place = bisect_right(firsts, start) - 1
    while start < end:
        stop = min(end, firsts[place + 1])
        if start < stop:
            found.append(Span(place, range(start - firsts[place], stop - firsts[place])))
        start, place = stop, place + 1
    return tuple(found)
