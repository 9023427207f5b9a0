"""Blocks of records in arrays and in compressed sparse rows, which are not made dense."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hushfit._typing import AnyArray, IntVector, Matrix, Vector
from hushfit.data.rows._persons import places
from hushfit.data.rows._protocols import FEWEST_BLOCK_ROWS
from hushfit.kernels import counting as counting_kernels
from hushfit.kernels import difference as difference_kernels
from hushfit.kernels import gradient as gradient_kernels
from hushfit.kernels import line_search as search_kernels
from hushfit.kernels import rows as row_kernels
from hushfit.kernels import scores as score_kernels

# Rows whose products BLAS adds at once.
_TILE_ROWS = FEWEST_BLOCK_ROWS
# Time to add one product of two stored entries, over that of a product of two dense ones.
_SCATTERED_COST = 5.0

# The fields of `_ArrayBlock` after the first.
BlockFields = tuple[slice | IntVector, Vector, Vector, Vector, float, int]


@dataclass(frozen=True)
class _Loops:
    """The compiled loops over rows of one layout.

    Parameters
    ----------
    gradient, difference, drops : pairs of functions
        For one output, and for several.
    counted, moments, margins, centred_lengths, squares, scores, row_scores : function
    """

    gradient: tuple[Any, Any]
    difference: tuple[Any, Any]
    drops: tuple[Any, Any]
    counted: Any
    moments: Any
    margins: Any
    centred_lengths: Any
    squares: Any
    scores: Any
    row_scores: Any


@dataclass(frozen=True, eq=False)
class _ArrayBlock:
    """What blocks have in common whose rows lie in arrays, in any layout.

    Parameters
    ----------
    rows : int array
        Which rows the sums are over; `ALL_ROWS` for all of them.
    place : slice or int array
    y, scale, shares : arrays
        Of each row; shares may have one entry for all.
    unit : float
        The entry of the intercept.
    n_features : int
    matrix : tuple of arrays
        The features, as the loops of the layout take them.
    """

    loops: ClassVar[_Loops]

    rows: IntVector
    place: slice | IntVector
    y: Vector
    scale: Vector
    shares: Vector
    unit: float
    n_features: int
    matrix: tuple[AnyArray, ...]

    def gradient_sum(
        self, w: Vector, caps: Vector, code: int, parameter: float, grid: float
    ) -> Vector:
        total = np.empty(w.shape)
        rows = *self.matrix, self.rows, self.y, self.scale, self.shares
        self.loops.gradient[w.ndim - 1](*rows, caps, self.unit, w, code, parameter, grid, total)
        return total

    def counted_gradient_sum(
        self,
        w: Vector,
        inverse: Vector,
        limits: tuple[float, float],
        code: int,
        parameter: float,
        grid: float,
    ) -> Vector:
        total = np.empty(len(w) + 1)
        rows = *self.matrix, self.y, self.scale, self.shares, inverse
        self.loops.counted(*rows, *limits, self.unit, w, code, parameter, grid, total)
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
        rows = *self.matrix, self.rows, self.y, self.scale, self.shares, self.unit
        self.loops.difference[w.ndim - 1](*rows, w, v, clip, bound, code, parameter, grid, total)
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
        rows = *self.matrix, self.rows, self.y, self.scale, self.shares, self.unit
        settings = mixes, bounds, code, parameter, grids
        self.loops.drops[vectors.ndim - 2](*rows, vectors, *settings, total)
        return total

    def centred_lengths(self, inverse: Vector, centre: Vector) -> Vector:
        lengths = np.empty(len(self.scale))
        self.loops.centred_lengths(*self.matrix, self.scale, inverse, centre, lengths)
        return lengths

    def squares(self) -> Vector:
        squares = np.empty(len(self.scale))
        self.loops.squares(*self.matrix, self.scale, squares)
        return squares

    def moment_sums(self, factors: Vector, grids: Vector) -> Matrix:
        totals = np.empty((2, self.n_features))
        self.loops.moments(*self.matrix, self.scale, self.shares, factors, grids, totals)
        return totals

    def score_sums(
        self,
        w: Vector,
        A: Matrix,
        code: int,
        parameter: float,
        factors: tuple[float, float],
        grid: float,
    ) -> Vector:
        rows = *self.matrix, self.y, self.scale, self.shares, self.unit
        total = np.empty(score_kernels.size(A.shape[1]))
        self.loops.scores(*rows, w, A, code, parameter, *factors, grid, total)
        return total

    def row_scores(self, w: Vector, A: Matrix, code: int, parameter: float) -> Matrix:
        scores = np.empty((len(self.scale), A.shape[1]))
        rows = *self.matrix, self.y, self.scale, self.shares, self.unit
        self.loops.row_scores(*rows, w, A, code, parameter, scores)
        return scores

    def margins(self, w: Vector) -> Vector:
        margins = np.empty(len(self.scale))
        self.loops.margins(*self.matrix, self.scale, self.unit, w, margins)
        return margins


@dataclass(frozen=True, eq=False)
class DenseBlock(_ArrayBlock):
    """Records in a C-ordered array."""

    loops = _Loops(
        gradient=(gradient_kernels.scalar_dense, gradient_kernels.vector_dense),
        difference=(difference_kernels.scalar_dense, difference_kernels.vector_dense),
        drops=(search_kernels.scalar_dense, search_kernels.vector_dense),
        counted=counting_kernels.counted_dense,
        moments=counting_kernels.moments_dense,
        margins=row_kernels.margins_dense,
        centred_lengths=row_kernels.centred_lengths_dense,
        squares=row_kernels.squares_dense,
        scores=score_kernels.scores_dense,
        row_scores=score_kernels.row_scores_dense,
    )

    @property
    def X(self) -> AnyArray:
        return self.matrix[0]

    def second_moment(self, steps: float, factors: Vector | None = None) -> Matrix:
        scale = self.scale * root_weights(self.shares, factors)

        def write(place: slice, records: Matrix) -> None:
            row_kernels.rounded_records_dense(
                self.X[place], scale[place], self.unit, steps, records
            )

        return _moment_by_tiles(len(self.X), self.n_features + 1, write)

    def lengths(self, A: Matrix) -> Vector:
        lengths = np.empty(len(self.X))
        row_kernels.lengths_dense(self.X, self.scale, self.unit, A, lengths)
        return lengths

    def records(self) -> Matrix:
        return np.concatenate([records for _, records in self._records()])

    def _records(self) -> Iterator[tuple[slice, Matrix]]:
        """The records themselves, a few thousand at a time."""
        for place in places(len(self.X), FEWEST_BLOCK_ROWS):
            X, scale = self.X[place], self.scale[place]
            records = np.empty((X.shape[0], X.shape[1] + 1))
            with np.errstate(invalid="ignore", over="ignore"):
                np.multiply(X, scale[:, None], out=records[:, :-1])
            np.multiply(scale, self.unit, out=records[:, -1])
            records[scale == 0.0] = 0.0
            yield place, records


@dataclass(frozen=True, eq=False)
class SparseBlock(_ArrayBlock):
    """Records in compressed sparse rows; nothing is made dense."""

    loops = _Loops(
        gradient=(gradient_kernels.scalar_csr, gradient_kernels.vector_csr),
        difference=(difference_kernels.scalar_csr, difference_kernels.vector_csr),
        drops=(search_kernels.scalar_csr, search_kernels.vector_csr),
        counted=counting_kernels.counted_csr,
        moments=counting_kernels.moments_csr,
        margins=row_kernels.margins_csr,
        centred_lengths=row_kernels.centred_lengths_csr,
        squares=row_kernels.squares_csr,
        scores=score_kernels.scores_csr,
        row_scores=score_kernels.row_scores_csr,
    )

    def second_moment(self, steps: float, factors: Vector | None = None) -> Matrix:
        data, indices, indptr = self.matrix
        n, width = len(self.scale), self.n_features + 1
        scale = self.scale * root_weights(self.shares, factors)
        stored = int(indptr[-1] - indptr[0]) / max(n, 1)
        scattered = n if stored * _SCATTERED_COST < width else 0
        total = np.zeros((width, width))
        # Both loops are called, if need be for no rows, so that what is compiled, and kept on disk,
        # does not depend on them.
        some = data, indices, indptr[: scattered + 1], scale[:scattered]
        row_kernels.second_moment_csr(*some, self.unit, steps, total)

        def write(place: slice, records: Matrix) -> None:
            some = data, indices, indptr[place.start : place.stop + 1], scale[place]
            row_kernels.rounded_records_csr(*some, self.unit, steps, records)

        if scattered:
            write(slice(0, 0), np.empty((0, width)))
            return total
        return _moment_by_tiles(n, width, write)

    def lengths(self, A: Matrix) -> Vector:
        lengths = np.empty(len(self.scale))
        stops = row_kernels.stops_of(A)
        row_kernels.lengths_csr(*self.matrix, self.scale, self.unit, A, stops, lengths)
        return lengths

    def records(self) -> Any:
        from scipy.sparse import csr_matrix, hstack

        data, indices, indptr = self.matrix
        stored, counts = slice(indptr[0], indptr[-1]), np.diff(indptr)
        with np.errstate(invalid="ignore", over="ignore"):
            values = data[stored] * np.repeat(self.scale, counts)
        values[np.repeat(self.scale == 0.0, counts)] = 0.0
        parts = values, indices[stored], indptr - indptr[0]
        features = csr_matrix(parts, shape=(len(self.scale), self.n_features))
        return hstack([features, csr_matrix(self.scale[:, None] * self.unit)], format="csr")


def _moment_by_tiles(n: int, width: int, write: Callable[[slice, Matrix], None]) -> Matrix:
    """Sum of the outer products of records that ``write`` gives in whole numbers: BLAS adds them
    exactly, in any order.
    """
    moment: Matrix = np.zeros((width, width))
    tile = np.empty((min(n, _TILE_ROWS), width))
    for place in places(n, _TILE_ROWS):
        records = tile[: place.stop - place.start]
        write(place, records)
        moment += records.T @ records  # one triangle, by dsyrk
    return moment


def root_weights(shares: Vector, factors: Vector | None) -> Vector:
    """What a record is multiplied by before its outer product is taken."""
    roots: Vector = np.sqrt(shares)
    return roots if factors is None else roots * factors
