"""Packed rows in a memory-mapped file, page by page, and numbers of rows beside them.

A page holds some thousand rows: their numbers, their codes and their labels, each in one piece. The
file has no name and is removed with the process, or is a cache that its owner asked for. Pages that
a pass has left are given back, and the next ones are read ahead, so that resident memory does not
grow with the number of rows.
"""

import json
import mmap
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakSet

import numpy as np

from hushfit._typing import AnyArray, Vector
from hushfit.data.rows import FEWEST_BLOCK_ROWS, PackedLayout
from hushfit.data.tables._files import unnamed_file, write_all

# Blocks are pages, and stay small enough for the second-level cache.
PAGE_ROWS = 2 * FEWEST_BLOCK_ROWS
# Pages that are kept behind a pass, and read ahead of it.
_WINDOW = 16
# Bytes of pages, and of a vector, up to which nothing is given back.
_KEPT_PAGES, _KEPT_VECTOR = 1 << 26, 1 << 23
_ALIGNMENT = 64
_MAPPED_FROM = 1 << 20
_VERSION = 1
_HEADER = mmap.PAGESIZE


@dataclass(frozen=True, eq=False)
class PackedPart:
    """Some packed rows, and their labels: class numbers or numbers, NaN for none."""

    numbers: AnyArray
    codes: AnyArray
    labels: Vector

    @property
    def columns(self) -> tuple[AnyArray, AnyArray, Vector]:
        return self.numbers, self.codes, self.labels

    def __len__(self) -> int:
        return len(self.labels)


class PageFile:
    """Packed rows in pages of a memory-mapped file.

    Parameters
    ----------
    layout : PackedLayout
    file : binary file
        Unbuffered, open for reading and writing, and at its beginning.
    """

    def __init__(self, layout: PackedLayout, file: Any) -> None:
        self.layout = layout
        self.n_rows = 0
        self._file = file
        self._map: mmap.mmap | None = None
        self._n_pending = 0
        os.lseek(file.fileno(), _HEADER, os.SEEK_SET)

    @cached_property
    def _sections(self) -> list[tuple[np.dtype[Any], int]]:
        """Type and width of what a page has in it: numbers, codes, labels."""
        types = np.dtype(np.float32), self.layout.code_type, np.dtype(np.float64)
        widths = len(self.layout.number_at), len(self.layout.code_at), 1
        return list(zip(types, widths, strict=True))

    @cached_property
    def _starts(self) -> list[int]:
        """Where each section of a page starts, and where the next page does."""
        ends = [0]
        for kind, width in self._sections:
            size = PAGE_ROWS * width * kind.itemsize
            ends.append(ends[-1] + -(-size // _ALIGNMENT) * _ALIGNMENT)
        return [*ends[:-1], -(-ends[-1] // mmap.PAGESIZE) * mmap.PAGESIZE]

    def append(self, part: PackedPart) -> None:
        """Add rows at the end."""
        done = 0
        while done < len(part):
            count = min(len(part) - done, PAGE_ROWS - self._n_pending)
            pending = slice(self._n_pending, self._n_pending + count)
            for own, given in zip(self._page_parts, part.columns, strict=True):
                own[pending] = given[done : done + count]
            self._n_pending, done = pending.stop, done + count
            if self._n_pending == PAGE_ROWS:
                self._write_page()

    @cached_property
    def _page(self) -> bytearray:
        """The page that is being filled."""
        return bytearray(self._starts[-1])

    @property
    def _page_parts(self) -> tuple[AnyArray, ...]:
        return self._parts_in(self._page, 0).columns

    def _write_page(self) -> None:
        for own in self._page_parts:  # of rows of an earlier page
            own[self._n_pending :] = 0
        write_all(self._file, [self._page])
        self.n_rows += self._n_pending
        self._n_pending = 0

    def finish(self, key: str = "") -> None:
        """Write what is left, with a header by which a cache is known again, and map the file."""
        if self._n_pending:
            self._write_page()
        header = json.dumps({"version": _VERSION, "key": key, "rows": self.n_rows}).encode()
        os.pwrite(self._file.fileno(), header.ljust(_HEADER), 0)
        self._open()

    @classmethod
    def read(cls, layout: PackedLayout, file: Any, key: str) -> "PageFile | None":
        """The pages of a cache; None if it is not of this key, or not complete."""
        try:
            header = json.loads(os.pread(file.fileno(), _HEADER, 0))
            known = header["version"] == _VERSION and header["key"] == key
            n_rows = int(header["rows"])
        except (ValueError, KeyError, TypeError):
            return None
        pages = cls(layout, file)
        pages.n_rows = n_rows
        size = _HEADER + pages.n_pages * pages._starts[-1]
        if not known or os.fstat(file.fileno()).st_size != size:
            return None
        pages._open()
        return pages if pages._codes_are_known() else None

    def _codes_are_known(self) -> bool:
        """Whether all codes are below the number of features of their label: loops trust them."""
        most = np.array(self.layout.widths)[self.layout.code_at]
        return all(
            bool((self.part(start, min(start + PAGE_ROWS, self.n_rows)).codes < most).all())
            for start in range(0, self.n_rows, PAGE_ROWS)
        )

    @property
    def n_pages(self) -> int:
        return -(-self.n_rows // PAGE_ROWS)

    def _open(self) -> None:
        if self.n_rows:  # writable, since loops are compiled for writable arrays
            self._map = mmap.mmap(self._file.fileno(), 0)

    def part(self, start: int, stop: int) -> PackedPart:
        """Some rows, as they lie in the file or, across pages, as a copy; safe in several threads
        at once.
        """
        pages = range(start // PAGE_ROWS, -(-stop // PAGE_ROWS))
        return _joined([self._of_page(page, start, stop) for page in pages])

    def _of_page(self, page: int, start: int, stop: int) -> PackedPart:
        if self._map is None:
            raise ValueError("the rows were closed")
        first = page * PAGE_ROWS
        own = slice(max(start - first, 0), min(stop - first, PAGE_ROWS))
        whole = self._parts_in(self._map, _HEADER + page * self._starts[-1])
        return PackedPart(*(column[own] for column in whole.columns))

    def _parts_in(self, memory: Any, offset: int) -> PackedPart:
        """The rows of a page that begins at a place of some memory."""
        numbers, codes, labels = (
            np.ndarray((PAGE_ROWS, width), kind, memory, offset + at)
            for (kind, width), at in zip(self._sections, self._starts, strict=False)
        )
        return PackedPart(numbers, codes, labels.ravel())

    def pass_by(self, page: int) -> None:
        """Say that a pass has come to a page: earlier ones are given back, others read ahead."""
        if page % _WINDOW == 0 and self._map is not None and len(self._map) > _KEPT_PAGES:
            size = self._starts[-1]
            _move_window(self._map, _HEADER + page * size, _WINDOW * size)

    def close(self) -> None:
        self._map = None  # unmapped when the last block of it is gone
        self._file.close()


def _joined(parts: list[PackedPart]) -> PackedPart:
    if len(parts) == 1:
        return parts[0]
    columns = zip(*(part.columns for part in parts), strict=True)
    return PackedPart(*map(np.concatenate, columns))


def _move_window(mapped: mmap.mmap, here: int, size: int) -> None:
    """Give back what lies before a place of a mapped file, and read ahead what follows."""
    start, stop = max(here - 2 * size, 0), min(here + size, len(mapped))
    mapped.madvise(mmap.MADV_DONTNEED, start, here - start)
    mapped.madvise(mmap.MADV_WILLNEED, here, stop - here)


class RowVectors:
    """Vectors with an entry for each row, in files without a name where they are long."""

    def __init__(self) -> None:
        self._maps: WeakSet[mmap.mmap] = WeakSet()

    def new(self, n_rows: int) -> Vector:
        """Zeros, one for each row."""
        size = 8 * n_rows
        if size < _MAPPED_FROM:
            return np.zeros(n_rows)
        try:
            with unnamed_file() as file:
                os.posix_fallocate(file.fileno(), 0, size)  # a hole could not be filled later
                mapped = mmap.mmap(file.fileno(), size)
        except (OSError, AttributeError):  # no room, or no such call: it may be paid for already
            return np.zeros(n_rows)
        self._maps.add(mapped)
        return np.frombuffer(mapped)

    def pass_by(self, page: int) -> None:
        """Say that a pass has come to a page."""
        if page % _WINDOW == 0:
            for mapped in [mapped for mapped in self._maps if len(mapped) > _KEPT_VECTOR]:
                _move_window(mapped, 8 * PAGE_ROWS * page, 8 * PAGE_ROWS * _WINDOW)
