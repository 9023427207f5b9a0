"""Delimited text in blocks of whole rows, each parsed by itself.

Columns of numbers are parsed as numbers, block by block. A block in which some cell of such a
column is no plain number has that column parsed as text, and each cell is read on its own; both
readers agree wherever both can read. So a cell decides how fast others are read, never as what.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from hushfit._typing import IntVector

_BLOCK_BYTES = 1 << 21
# Each column of each block takes its time, so blocks of long rows are larger.
_WIDE_BLOCK_BYTES = 1 << 23
_LONG_ROW = 2000
_SAMPLE_BYTES = 1 << 16
_QUOTE, _FEED, _RETURN = b'"\n\r'
LONGEST_ROW = 1 << 23
_NO_NUMBER = re.compile(r"In CSV column #(\d+): .*CSV conversion error to double", re.DOTALL)
_RAGGED = re.compile(r"CSV parse error: (?:Row #(\d+): )?Expected (\d+) columns, got (\d+)")


class TooLong(ValueError):
    """A row is longer than any block."""


class Ragged(ValueError):
    """A row has too many or too few cells; ``row`` is counted from 1 in its block, if known."""

    def __init__(self, row: str | None, expected: str, actual: str) -> None:
        super().__init__("ragged")
        self.row, self.expected, self.actual = row, expected, actual


def row_blocks(stream: Any, delimiter: str) -> Iterator[bytes]:
    """The text of a stream in blocks that end where a row does.

    Parameters
    ----------
    stream : binary file
        At the beginning of a row.
    delimiter : str

    Yields
    ------
    bytes
    """
    rest, size = b"", _BLOCK_BYTES
    while piece := bytes(stream.read(size)):
        rest += piece
        end = _last_end(rest, delimiter)
        if end:
            sample = min(end, _SAMPLE_BYTES)
            is_wide = sample > _LONG_ROW * rest.count(b"\n", 0, sample)
            size = _WIDE_BLOCK_BYTES if is_wide else _BLOCK_BYTES
            yield rest[:end]
            rest = rest[end:]
        elif len(rest) > LONGEST_ROW:
            raise TooLong
    if rest:
        yield rest


def _last_end(text: bytes, delimiter: str) -> int:
    """Where the last whole row of a text that begins with a row ends. A carriage return at the very
    end may be the first half of a line break.
    """
    for start, stop in _unquoted(text, delimiter):
        last_return = text.rfind(b"\r", start, min(stop, len(text) - 1))
        end = max(text.rfind(b"\n", start, stop), last_return) + 1
        if end:
            return end
    return 0


def _unquoted(text: bytes, delimiter: str) -> Iterator[tuple[int, int]]:
    """What lies between quoted cells, from the last part to the first.

    A quotation mark opens a cell at its beginning, and after the mark that has closed the cell:
    then the cell goes on. Elsewhere outside a quoted cell it is a letter like others.
    """
    if b'"' not in text:
        yield 0, len(text)
        return
    letters = np.frombuffer(text, np.uint8)
    marks = np.flatnonzero(letters == _QUOTE)
    before = letters[marks - 1]
    first = (before == ord(delimiter)) | (before == _FEED) | (before == _RETURN)
    first |= marks == 0
    opened, closed = marks[0::2], marks[1::2]
    again = np.append(False, opened[1:] == closed[: len(opened) - 1] + 1)
    if not (first[0::2] | again).all():
        opened, closed = _paired(marks.tolist(), first.tolist())
    starts = np.append(0, closed + 1)
    stops = np.append(opened, len(text))[: len(starts)]
    for k in reversed(range(len(starts))):
        yield int(starts[k]), int(stops[k])


def _paired(marks: list[int], first: list[bool]) -> tuple[IntVector, IntVector]:
    """The marks that open a quoted cell, and those that close one, where some do neither."""
    opened, closed, start, quoted = [], [], 0, False
    for mark, is_first in zip(marks, first, strict=True):
        if quoted:
            closed.append(mark)
            start, quoted = mark + 1, False
        elif is_first or mark == start:
            opened.append(mark)
            quoted = True
    return np.array(opened, np.int64), np.array(closed, np.int64)


@dataclass
class BlockParser:
    """Parses blocks of rows; safe in several threads at once.

    Parameters
    ----------
    names : sequence of str
        All columns of the text.
    wanted : sequence of str
        The columns to keep.
    numbers : set of str
        Those of them to parse as numbers where that is possible.
    delimiter : str
    labels : set of str, default=set()
        Those of them to give as positions among the distinct texts of a block.
    """

    names: Sequence[str]
    wanted: Sequence[str]
    numbers: set[str]
    delimiter: str
    labels: set[str] = field(default_factory=set)
    # Columns that had cells which are no plain numbers: not tried again, to save time.
    _texts: set[str] = field(default_factory=set)

    def __call__(self, block: bytes) -> Any:
        """The rows of a block as a record batch."""
        while True:
            try:
                return self._parsed(block, self.numbers - self._texts)
            except pa.ArrowInvalid as error:
                if (found := _RAGGED.match(str(error))) is not None:
                    raise Ragged(*found.groups()) from None
                if "empty csv" in str(error).lower():  # blank lines only
                    return pa.RecordBatch.from_pydict(
                        {name: pa.array([], pa.string()) for name in self.wanted}
                    )
                found = _NO_NUMBER.match(str(error))
                if found is None:
                    raise
                self._texts.add(self.names[int(found[1])])

    def _parsed(self, block: bytes, numbers: set[str]) -> Any:
        kinds = dict.fromkeys(self.wanted, pa.string())
        kinds |= dict.fromkeys(self.labels, pa.dictionary(pa.int32(), pa.string()))
        kinds |= dict.fromkeys(numbers, pa.float64())
        read = pa.csv.read_csv(
            pa.py_buffer(block),
            pa.csv.ReadOptions(
                column_names=self.names, block_size=len(block) + 1, use_threads=False
            ),
            pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            pa.csv.ConvertOptions(
                include_columns=self.wanted,
                column_types=kinds,
                strings_can_be_null=False,
                null_values=[""],
            ),
            # The default pool reserves far more than it uses, which counts where memory is limited.
            pa.system_memory_pool(),
        )
        return read.combine_chunks().to_batches()[0]
