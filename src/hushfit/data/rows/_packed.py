"""Packed rows: numbers in single precision and codes of labels, read as they are by the queries.

A number of a packed row is a float32, and this float32 is the value of the record for every query.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hushfit._typing import AnyArray, IntVector, Matrix, Vector
from hushfit.data.rows._array_blocks import SparseBlock, root_weights
from hushfit.data.rows._protocols import ALL_ROWS
from hushfit.kernels import packed as kernels
from hushfit.kernels.rows import stops_of


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

    def unit_scales(self, numbers: AnyArray, unit: float) -> Vector:
        """Factors that make each record a unit vector."""
        scale = np.empty(len(numbers))
        kernels.unit_scales(numbers, self.runs, len(self.widths), unit, scale)
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
        size, numbers = self.layout.n_features + 1, self.numbers.shape[1] + 1
        among, beside = np.zeros((numbers, numbers)), np.zeros((size, numbers))
        total = np.zeros((size, size))  # labels with labels, above the diagonal
        rows = self.numbers, self.codes, self.layout.code_starts
        scale = self.scale * root_weights(self.shares, factors)
        kernels.second_moment(*rows, scale, self.unit, steps, among, beside, total)
        total += np.triu(total, 1).T
        at = np.append(self.layout.number_features, size - 1)
        total[:, at] += beside
        total[at] += beside.T
        total[np.ix_(at, at)] += among
        return total

    def lengths(self, A: Matrix) -> Vector:
        found = np.empty(len(self.scale))
        kernels.lengths(*self._rows(1), self.scale, self.unit, A, stops_of(A), found)
        return found

    def margins(self, w: Vector) -> Vector:
        found = np.empty(len(self.scale))
        kernels.margins(*self._rows(1), self.scale, self.unit, w, found)
        return found

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
