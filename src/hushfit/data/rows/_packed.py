"""Packed rows: numbers in single precision and codes of labels, read as they are by the queries.

A number of a packed row is a float32, and this float32 is the value of the record for every query.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np

from hushfit._typing import AnyArray, IntVector, Matrix, Vector
from hushfit.data.rows._array_blocks import SparseBlock, root_weights
from hushfit.data.rows._persons import places
from hushfit.data.rows._protocols import ALL_ROWS
from hushfit.kernels import packed as kernels
from hushfit.kernels.rows import inverse_lengths, stops_of

# Rows that numpy treats at once: few enough for the second-level cache.
_TILE_ROWS = 1024


@dataclass(frozen=True)
class PackedLayout:
    """Which features the words of a packed row stand for.

    Parameters
    ----------
    widths : tuple of int
        Number of features of each word: 1 for a number, more for a label, of which the code says
        which feature is 1.
    """

    widths: tuple[int, ...]

    @cached_property
    def n_features(self) -> int:
        return sum(self.widths)

    @cached_property
    def number_at(self) -> IntVector:
        """Words that are numbers."""
        return np.flatnonzero(np.array(self.widths) == 1)

    @cached_property
    def code_at(self) -> IntVector:
        """Words that are labels."""
        return np.flatnonzero(np.array(self.widths) != 1)

    @cached_property
    def _starts(self) -> AnyArray:
        return np.concatenate([[0], np.cumsum(self.widths)[:-1]]).astype(np.int32)

    @cached_property
    def number_features(self) -> AnyArray:
        """The feature of each number."""
        return self._starts[self.number_at]

    @cached_property
    def code_starts(self) -> AnyArray:
        """The first feature of each label."""
        return self._starts[self.code_at]

    @cached_property
    def code_type(self) -> np.dtype[Any]:
        """The smallest unsigned integer that holds the codes of all labels."""
        return np.min_scalar_type(max(self.widths) - 1)

    @property
    def _words(self) -> tuple[AnyArray, IntVector, AnyArray]:
        """What kernels need to know: see ``kernels/packed.py``."""
        return self.runs, self.code_at, self.code_starts

    def blank(self, rows: int) -> tuple[AnyArray, AnyArray, IntVector]:
        """Values, features and row ends of some sparse rows, with what no row changes: the features
        of numbers and the ones of labels.
        """
        width = len(self.widths)
        indices = np.tile(self._starts, rows)
        return np.ones(rows * width, np.float32), indices, width * np.arange(rows + 1)

    def unpack(self, numbers: AnyArray, codes: AnyArray) -> tuple[AnyArray, AnyArray, IntVector]:
        """Values, features and row ends of packed rows as compressed sparse rows."""
        sparse = self.blank(len(numbers))
        kernels.unpack(numbers, codes, *self._words, *sparse)
        return sparse

    def in_words(self, numbers: AnyArray, codes: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Value and feature of each word of packed rows, followed by zeros up to a multiple of
        four words.
        """
        shape = len(numbers), -(-len(self.widths) // 4) * 4
        values, features = np.zeros(shape, np.float32), np.zeros(shape, np.uint32)
        for first, at, count in self.runs.tolist():
            values[:, at : at + count] = numbers[:, first : first + count]
        features[:, self.number_at] = self.number_features
        values[:, self.code_at] = 1.0
        features[:, self.code_at] = self.code_starts + codes
        return values, features

    def added_up(
        self, start: float, of_numbers: Iterable[Vector], of_labels: Iterable[Vector | float]
    ) -> Vector:
        """What words contribute to some rows, added to ``start`` in the order of the words."""
        numbers, labels = iter(of_numbers), iter(of_labels)
        total: Vector = np.asarray(start)
        for width in self.widths:
            total = total + next(numbers if width == 1 else labels)
        return total

    def unit_scales(self, numbers: AnyArray, unit: float) -> Vector:
        """Factors that make each record a unit vector."""
        scale = np.empty(len(numbers))
        for place in places(len(numbers), _TILE_ROWS):
            squares = np.square(numbers[place].T, dtype=np.float64, order="C")
            scale[place] = inverse_lengths(self.added_up(unit, squares, repeat(1.0)))
        return scale

    @cached_property
    def runs(self) -> AnyArray:
        """Numbers next to each other: the first one, its word, and how many there are."""
        breaks = np.flatnonzero(np.diff(self.number_at, prepend=-2) > 1)
        lengths = np.diff(breaks, append=len(self.number_at))
        return np.column_stack([breaks, self.number_at[breaks], lengths]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class PackedBlock:
    """Packed records; a few at a time are unpacked inside the loops, and none in memory.

    Parameters
    ----------
    layout : PackedLayout
    numbers : float32 array of shape (rows, numbers)
    codes : unsigned array of shape (rows, labels)
    place, y, scale, shares, unit
        As for `SparseBlock`.
    """

    layout: PackedLayout
    numbers: AnyArray
    codes: AnyArray
    place: slice | IntVector
    y: Vector
    scale: Vector
    shares: Vector
    unit: float

    def _rows(self, at_once: int) -> tuple[AnyArray, ...]:
        """The rows, and sparse ones to write some of them to."""
        return (self.numbers, self.codes, *self.layout._words, *self.layout.blank(at_once))

    @property
    def _labelled(self) -> tuple[AnyArray, ...]:
        return (*self._rows(kernels.CHUNK), self.y, self.scale, self.shares)

    def gradient_sum(
        self, w: Vector, caps: Vector, code: int, parameter: float, grid: float
    ) -> Vector:
        kernel = kernels.scalar_gradient if w.ndim == 1 else kernels.vector_gradient
        total = np.empty(w.shape)
        features = self.layout.number_features, self.layout.code_starts
        labelled = self.y, self.scale, self.shares, caps
        settings = self.unit, w, code, parameter, grid
        kernel(self.numbers, self.codes, *features, *labelled, *settings, total)
        return total

    def difference_sum(
        self,
        w: Vector,
        v: Vector,
        clip: float,
        bound: float,
        code: int,
        parameter: float,
        grid: float,
    ) -> Vector:
        total = np.empty(w.shape)
        settings = clip, bound, code, parameter, grid
        kernels.difference_sum(*self._labelled, self.unit, w, v, *settings, total)
        return total

    def drop_sum(
        self,
        vectors: Vector,
        mixes: Matrix,
        bounds: Vector,
        code: int,
        parameter: float,
        grids: Vector,
    ) -> Vector:
        total = np.empty(len(bounds))
        settings = mixes, bounds, code, parameter, grids
        kernels.drop_sum(*self._labelled, self.unit, vectors, *settings, total)
        return total

    def second_moment(self, steps: float, factors: Vector | None = None) -> Matrix:
        layout, size, numbers = self.layout, self.layout.n_features + 1, self.numbers.shape[1] + 1
        among, beside = np.zeros((numbers, numbers)), np.zeros((size, numbers))
        total = np.zeros((size, size))  # labels with labels, above the diagonal
        at = np.empty(self.codes.shape[1], np.uint64)
        # A power of two may be multiplied with first: no bit changes.
        scale = steps * (self.scale * root_weights(self.shares, factors))
        for place in places(len(scale), _TILE_ROWS):
            own = scale[place]
            records = np.empty((len(own), numbers))
            np.multiply(self.numbers[place], own[:, None], out=records[:, :-1])
            np.multiply(self.unit, own, out=records[:, -1])
            records[own == 0.0] = 0.0
            np.rint(records, out=records)
            among += records.T @ records
            labels = self.codes[place], layout.code_starts, np.rint(own), at
            kernels.add_label_products(records, *labels, beside, total)
        total += np.triu(total, 1).T
        at = np.append(layout.number_features, size - 1)
        total[:, at] += beside
        total[at] += beside.T
        total[np.ix_(at, at)] += among
        return total

    def lengths(self, A: Matrix) -> Vector:
        found, image, stops = np.empty(len(self.scale)), np.empty(len(A)), stops_of(A)
        for place in places(len(found), _TILE_ROWS):
            words = self.layout.in_words(self.numbers[place], self.codes[place])
            kernels.lengths(*words, self.scale[place], self.unit, A, stops, image, found[place])
        return found

    def margins(self, w: Vector) -> Vector:
        layout, found = self.layout, np.empty(len(self.scale))
        of_numbers = w[layout.number_features, None]
        for place in places(len(found), _TILE_ROWS):
            products = np.multiply(self.numbers[place].T, of_numbers, order="C")
            labels = w[(layout.code_starts + self.codes[place]).T]
            found[place] = layout.added_up(self.unit * w[-1], products, labels)
        return np.where(self.scale == 0.0, np.nan, self.scale * found)

    @cached_property
    def unpacked(self) -> SparseBlock:
        """The same records in compressed sparse rows."""
        return SparseBlock(
            ALL_ROWS,
            self.place,
            self.y,
            self.scale,
            self.shares,
            self.unit,
            self.layout.n_features,
            self.layout.unpack(self.numbers, self.codes),
        )

    def counted_gradient_sum(
        self,
        w: Vector,
        inverse: Vector,
        limits: tuple[float, float],
        code: int,
        parameter: float,
        grid: float,
    ) -> Vector:
        return self.unpacked.counted_gradient_sum(w, inverse, limits, code, parameter, grid)

    def centred_lengths(self, inverse: Vector, centre: Vector) -> Vector:
        return self.unpacked.centred_lengths(inverse, centre)

    def squares(self) -> Vector:
        return self.unpacked.squares()

    def moment_sums(self, factors: Vector, grids: Vector) -> Matrix:
        return self.unpacked.moment_sums(factors, grids)

    def score_sums(
        self,
        w: Vector,
        A: Matrix,
        code: int,
        parameter: float,
        factors: tuple[float, float],
        grid: float,
    ) -> Vector:
        return self.unpacked.score_sums(w, A, code, parameter, factors, grid)

    def row_scores(self, w: Vector, A: Matrix, code: int, parameter: float) -> Matrix:
        return self.unpacked.row_scores(w, A, code, parameter)

    def records(self) -> Any:
        return self.unpacked.records()
