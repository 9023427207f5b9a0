"""Rows as the queries see them: records of length one, or with bounded entries, in blocks.

A record is ``scale * [x, unit]``. ``unit`` is 1 when the model has an intercept, so that the
intercept is inside the norm; ``scale`` makes the record a unit vector. A record that is empty, or
has a value that is not a finite number, counts as the zero record: it stays in its position,
contributes nothing, and changes no other record. So does one whose label is nan, except where
features are public (``keep_unlabelled``). Every map here is record by record.

With ``RecordScaling.PUBLIC_LENGTH`` a record shorter than the public ``length`` is divided by that
instead of its own, so that no record is longer than one. With ``RecordScaling.BOUNDED`` records
keep their lengths: ``scale`` is 1, or 0 for a record with an entry outside [-1, 1].
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from hushfit._arrays import keep_read_only
from hushfit._typing import AnyArray, IntVector, Matrix, Vector
from hushfit.data.rows._persons import WHOLE, Persons, places
from hushfit.data.rows._public_rows import PublicBlock, PublicRows
from hushfit.data.rows._scaling import RecordScaling
from hushfit.errors import InvalidArgument
from hushfit.features import FeatureMap, mapped_rows
from hushfit.kernels import counting as counting_kernels
from hushfit.kernels import difference as difference_kernels
from hushfit.kernels import gradient as gradient_kernels
from hushfit.kernels import line_search as search_kernels
from hushfit.kernels import rows as row_kernels
from hushfit.kernels import scores as score_kernels
from hushfit.kernels.threads import parallel_map
from hushfit.unit import ROW, PrivacyUnit

# Row index of a kernel call in which every row of the block takes part. A sampled batch that
# happens to be empty must not look like this: it has no blocks at all.
ALL_ROWS: IntVector = np.empty(0, dtype=np.int64)
# Both enter the rounding bound of docs/proofs/gradient.md. Blocks that must be copied are the
# smallest ones. The size depends on the number of rows and not on the number of threads, so that
# neither does any answer.
MOST_BLOCK_ROWS = 32_768
FEWEST_BLOCK_ROWS = 4_096
# Used rows of the largest block of persons' rows.
PERSON_BLOCK_ROWS = 2 * FEWEST_BLOCK_ROWS
# Entries of mapped rows that are kept in memory: 256 MB. More are mapped again whenever they are
# read, which takes longer than reading them.
_MOST_MAPPED_ENTRIES = 2**25
# Entries of an array in F order that is copied once: 1 GB.
_MOST_COPIED_ENTRIES = 2**27
# Rows whose products BLAS adds at once.
_TILE_ROWS = FEWEST_BLOCK_ROWS
# Time to add one product of two stored entries, over that of a product of two dense ones.
_SCATTERED_COST = 5.0
# Coefficients in the units of a column are divided by the width of its range.
_NARROWEST = 1e-290


class Block(Protocol):
    """Some records of a source. ``place`` picks the entries of a per-row vector that belong to
    them.

    Sums (``gradient_sum``, ``difference_sum``, ``drop_sum``) are over the rows of the units that
    the source was asked for, each row weighted by its share. ``second_moment``, ``lengths`` and
    ``margins`` are of all records of the block: only for queries over all rows.
    """

    @property
    def place(self) -> slice | IntVector: ...

    @property
    def shares(self) -> Vector:
        """Weight of each row, or one weight for all. Those of a person's rows add up to at most
        one.
        """

    def gradient_sum(
        self, w: Vector, caps: Vector, code: int, parameter: float, grid: float
    ) -> Vector:
        """Sum of the clipped gradients, each rounded to the grid."""

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
        """Sum of the differences between the clipped gradients at ``w`` and at ``v``, each
        clipped to ``bound`` and rounded.
        """

    def drop_sum(
        self,
        vectors: Vector,
        mixes: Matrix,
        bounds: Vector,
        code: int,
        parameter: float,
        grids: Vector,
    ) -> Vector:
        """Sums of the decreases of the loss from the first mixture of ``vectors`` to each other
        one, each clipped and rounded.
        """

    def second_moment(self, steps: float, factors: Vector | None = None) -> Matrix:
        """Weighted sum of outer products in units of ``steps**-2``: records are multiplied by the
        square roots of their shares, and their entries rounded to ``1 / steps``.

        With ``factors``, one for each record of the block, of the records multiplied by them too.
        """

    def lengths(self, A: Matrix) -> Vector:
        """Norm of ``A`` times each record."""

    def margins(self, w: Vector) -> Vector:
        """Inner product of each record with ``w``; nan for the zero record."""

    def records(self) -> Any:
        """The records themselves, with the intercept's entry last: an array or a CSR matrix."""


@runtime_checkable
class BoundedBlock(Block, Protocol):
    """Some records with bounded entries (`RecordScaling.BOUNDED`), for regression."""

    @property
    def scale(self) -> Vector:
        """1 for each record, 0 for the zero record."""

    def counted_gradient_sum(
        self,
        w: Vector,
        inverse: Vector,
        limits: tuple[float, float],
        code: int,
        parameter: float,
        grid: float,
    ) -> Vector:
        """`gradient_sum`, followed by the weight of the records that were clipped: their slopes to
        ``limits[0]`` times the inverse length of the record, or to ``limits[1]``.
        """

    def centred_lengths(self, inverse: Vector, centre: Vector) -> Vector:
        """Norm of each record after its features were moved by ``-centre`` and multiplied by
        ``inverse``, with a last entry of one; 0 for the zero record. Linear in the number of
        columns, and in that of the stored entries of sparse rows.
        """

    def squares(self) -> Vector:
        """Squared norm of the features of each record; nan for the zero record."""

    def moment_sums(self, factors: Vector, grids: Vector) -> Matrix:
        """Sums of the squares and of the entries of the features times ``factors``, each product
        rounded to its grid: two rows.
        """

    def score_sums(
        self,
        w: Vector,
        A: Matrix,
        code: int,
        parameter: float,
        factors: tuple[float, float],
        grid: float,
    ) -> Vector:
        """Sums of scores, of curvatures times ``factors[0]`` and of outer products of scores times
        ``factors[1]``, in the metric ``A``, each rounded to the grid: see ``kernels/scores.py``.
        """

    def row_scores(self, w: Vector, A: Matrix, code: int, parameter: float) -> Matrix:
        """Score of each row in the metric ``A``, times its share."""


class DataSource(Protocol):
    """Private rows and labels. Only the queries of ``hushfit.release`` read them.

    The number of units is public. If units are persons, the number of rows is not.
    """

    @property
    def n_units(self) -> int:
        """Number of privacy units: rows, or persons."""

    @property
    def privacy_unit(self) -> PrivacyUnit: ...

    @property
    def persons(self) -> Persons | None:
        """The person of each row; None where each row is its own unit."""

    @property
    def n_features(self) -> int: ...

    @property
    def y(self) -> Vector: ...

    @property
    def shares(self) -> Vector:
        """Weight of each row, or one weight for all. Those of a unit's rows add up to at most
        one.
        """

    def row_vector(self) -> Vector:
        """Zeros, one for each row, for queries to fill; where the rows are, in memory or not."""

    def blocks(self, units: IntVector | None = None) -> Iterator[Block]:
        """The records in blocks: all of them, or those of some units."""

    def public_rows(self) -> PublicRows:
        """The records without labels, for relations under which features are public."""


class SumsOverRows(Protocol):
    """What can be added up over the parts of a table; it travels to where they are."""

    def exact_sums(self, source: DataSource, units: IntVector | None) -> Vector:
        """The sums over the rows of one part."""


@runtime_checkable
class InParts(Protocol):
    """A source whose rows lie in several places, so that it has no blocks: only sums come together.

    Parts begin at multiples of the largest block of packed rows. So blocks are those of the same
    table in one place, and with them every bit of a sum and the bound on its rounding.
    """

    def added_up(self, sums: SumsOverRows) -> Vector:
        """Exact sums over all rows."""


@dataclass(frozen=True, eq=False)
class DenseBlock:
    """Records in a C-ordered array."""

    X: AnyArray
    rows: IntVector
    place: slice | IntVector
    y: Vector
    scale: Vector
    shares: Vector
    unit: float

    def gradient_sum(
        self, w: Vector, caps: Vector, code: int, parameter: float, grid: float
    ) -> Vector:
        kernel = gradient_kernels.scalar_dense if w.ndim == 1 else gradient_kernels.vector_dense
        total = np.empty(w.shape)
        kernel(
            self.X,
            self.rows,
            self.y,
            self.scale,
            self.shares,
            caps,
            self.unit,
            w,
            code,
            parameter,
            grid,
            total,
        )
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
        counting_kernels.counted_dense(
            self.X,
            self.y,
            self.scale,
            self.shares,
            inverse,
            *limits,
            self.unit,
            w,
            code,
            parameter,
            grid,
            total,
        )
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
        kernel = difference_kernels.scalar_dense if w.ndim == 1 else difference_kernels.vector_dense
        total = np.empty(w.shape)
        kernel(
            self.X,
            self.rows,
            self.y,
            self.scale,
            self.shares,
            self.unit,
            w,
            v,
            clip,
            bound,
            code,
            parameter,
            grid,
            total,
        )
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
        kernel = search_kernels.scalar_dense if vectors.ndim == 2 else search_kernels.vector_dense
        total = np.empty(len(bounds))
        kernel(
            self.X,
            self.rows,
            self.y,
            self.scale,
            self.shares,
            self.unit,
            vectors,
            mixes,
            bounds,
            code,
            parameter,
            grids,
            total,
        )
        return total

    def second_moment(self, steps: float, factors: Vector | None = None) -> Matrix:
        scale = self.scale * root_weights(self.shares, factors)

        def write(place: slice, records: Matrix) -> None:
            row_kernels.rounded_records_dense(
                self.X[place], scale[place], self.unit, steps, records
            )

        return _moment_by_tiles(len(self.X), self.X.shape[1] + 1, write)

    def lengths(self, A: Matrix) -> Vector:
        lengths = np.empty(len(self.X))
        row_kernels.lengths_dense(self.X, self.scale, self.unit, A, lengths)
        return lengths

    def centred_lengths(self, inverse: Vector, centre: Vector) -> Vector:
        lengths = np.empty(len(self.X))
        row_kernels.centred_lengths_dense(self.X, self.scale, inverse, centre, lengths)
        return lengths

    def squares(self) -> Vector:
        squares = np.empty(len(self.X))
        row_kernels.squares_dense(self.X, self.scale, squares)
        return squares

    def moment_sums(self, factors: Vector, grids: Vector) -> Matrix:
        totals = np.empty((2, self.X.shape[1]))
        counting_kernels.moments_dense(self.X, self.scale, self.shares, factors, grids, totals)
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
        rows = self.X, self.y, self.scale, self.shares, self.unit
        total = np.empty(score_kernels.size(A.shape[1]))
        score_kernels.scores_dense(*rows, w, A, code, parameter, *factors, grid, total)
        return total

    def row_scores(self, w: Vector, A: Matrix, code: int, parameter: float) -> Matrix:
        scores = np.empty((len(self.scale), A.shape[1]))
        rows = self.X, self.y, self.scale, self.shares, self.unit
        score_kernels.row_scores_dense(*rows, w, A, code, parameter, scores)
        return scores

    def margins(self, w: Vector) -> Vector:
        margins = np.empty(len(self.X))
        row_kernels.margins_dense(self.X, self.scale, self.unit, w, margins)
        return margins

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
class SparseBlock:
    """Records in compressed sparse rows; nothing is made dense."""

    data: AnyArray
    indices: AnyArray
    indptr: AnyArray
    rows: IntVector
    place: slice | IntVector
    y: Vector
    scale: Vector
    shares: Vector
    unit: float
    n_features: int

    @property
    def _matrix(self) -> tuple[AnyArray, AnyArray, AnyArray]:
        return self.data, self.indices, self.indptr

    def gradient_sum(
        self, w: Vector, caps: Vector, code: int, parameter: float, grid: float
    ) -> Vector:
        kernel = gradient_kernels.scalar_csr if w.ndim == 1 else gradient_kernels.vector_csr
        total = np.empty(w.shape)
        kernel(
            *self._matrix,
            self.rows,
            self.y,
            self.scale,
            self.shares,
            caps,
            self.unit,
            w,
            code,
            parameter,
            grid,
            total,
        )
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
        counting_kernels.counted_csr(
            *self._matrix,
            self.y,
            self.scale,
            self.shares,
            inverse,
            *limits,
            self.unit,
            w,
            code,
            parameter,
            grid,
            total,
        )
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
        kernel = difference_kernels.scalar_csr if w.ndim == 1 else difference_kernels.vector_csr
        total = np.empty(w.shape)
        kernel(
            *self._matrix,
            self.rows,
            self.y,
            self.scale,
            self.shares,
            self.unit,
            w,
            v,
            clip,
            bound,
            code,
            parameter,
            grid,
            total,
        )
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
        kernel = search_kernels.scalar_csr if vectors.ndim == 2 else search_kernels.vector_csr
        total = np.empty(len(bounds))
        kernel(
            *self._matrix,
            self.rows,
            self.y,
            self.scale,
            self.shares,
            self.unit,
            vectors,
            mixes,
            bounds,
            code,
            parameter,
            grids,
            total,
        )
        return total

    def second_moment(self, steps: float, factors: Vector | None = None) -> Matrix:
        n, width = len(self.scale), self.n_features + 1
        scale = self.scale * root_weights(self.shares, factors)
        stored = int(self.indptr[-1] - self.indptr[0]) / max(n, 1)
        scattered = n if stored * _SCATTERED_COST < width else 0
        total = np.zeros((width, width))
        # Both loops are called, if need be for no rows, so that what is compiled, and kept on disk,
        # does not depend on them.
        ends = self.indptr[: scattered + 1]
        row_kernels.second_moment_csr(
            self.data, self.indices, ends, scale[:scattered], self.unit, steps, total
        )

        def write(place: slice, records: Matrix) -> None:
            ends = self.indptr[place.start : place.stop + 1]
            row_kernels.rounded_records_csr(
                self.data, self.indices, ends, scale[place], self.unit, steps, records
            )

        if scattered:
            write(slice(0, 0), np.empty((0, width)))
            return total
        return _moment_by_tiles(n, width, write)

    def lengths(self, A: Matrix) -> Vector:
        lengths = np.empty(len(self.scale))
        stops = row_kernels.stops_of(A)
        row_kernels.lengths_csr(*self._matrix, self.scale, self.unit, A, stops, lengths)
        return lengths

    def centred_lengths(self, inverse: Vector, centre: Vector) -> Vector:
        lengths = np.empty(len(self.scale))
        row_kernels.centred_lengths_csr(*self._matrix, self.scale, inverse, centre, lengths)
        return lengths

    def squares(self) -> Vector:
        squares = np.empty(len(self.scale))
        row_kernels.squares_csr(*self._matrix, self.scale, squares)
        return squares

    def moment_sums(self, factors: Vector, grids: Vector) -> Matrix:
        totals = np.empty((2, self.n_features))
        counting_kernels.moments_csr(*self._matrix, self.scale, self.shares, factors, grids, totals)
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
        rows = *self._matrix, self.y, self.scale, self.shares, self.unit
        total = np.empty(score_kernels.size(A.shape[1]))
        score_kernels.scores_csr(*rows, w, A, code, parameter, *factors, grid, total)
        return total

    def row_scores(self, w: Vector, A: Matrix, code: int, parameter: float) -> Matrix:
        scores = np.empty((len(self.scale), A.shape[1]))
        rows = *self._matrix, self.y, self.scale, self.shares, self.unit
        score_kernels.row_scores_csr(*rows, w, A, code, parameter, scores)
        return scores

    def margins(self, w: Vector) -> Vector:
        margins = np.empty(len(self.scale))
        row_kernels.margins_csr(*self._matrix, self.scale, self.unit, w, margins)
        return margins

    def records(self) -> Any:
        from scipy.sparse import csr_matrix, hstack

        n, start = len(self.scale), self.indptr[0]
        counts = np.diff(self.indptr)
        with np.errstate(invalid="ignore", over="ignore"):
            values = self.data[start : self.indptr[-1]] * np.repeat(self.scale, counts)
        values[np.repeat(self.scale == 0.0, counts)] = 0.0
        parts = values, self.indices[start : self.indptr[-1]], self.indptr - start
        features = csr_matrix(parts, shape=(n, self.n_features))
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


@dataclass(frozen=True)
class FeatureBounds:
    """Public range of every column; values are clipped to it and mapped to [0, 1]."""

    low: Vector
    high: Vector

    def __post_init__(self) -> None:
        # Record lengths were computed with these bounds: with others they could exceed one.
        keep_read_only(self, "low", "high")

    @classmethod
    def parse(cls, bounds: Any, n_features: int) -> "FeatureBounds":
        """From ``(low, high)``, each a number or one number per column, or from one pair per
        column.

        Of two columns, a list of tuples has one pair per column, and a tuple of lists or arrays
        has the two ends. Other forms are refused if they could be read either way.
        """
        try:
            array = np.asarray(bounds, dtype=np.float64) if _is_rectangular(bounds) else None
            pair = bounds
            if array is not None and array.shape == (n_features, 2):
                pair = array.T if n_features != 2 or _is_of_columns(bounds, array) else bounds
            low, high = (
                np.broadcast_to(np.asarray(end, dtype=np.float64), n_features).copy()
                for end in pair
            )
        except InvalidArgument:
            raise
        except (TypeError, ValueError, OverflowError):
            raise InvalidArgument(
                "feature_bounds must be (low, high), each a number or one number for each of the "
                f"{n_features} columns; "
                f"got {bounds!r}."
            ) from None
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            j = int(np.flatnonzero(~(np.isfinite(low) & np.isfinite(high)))[0])
            raise InvalidArgument(
                f"feature_bounds of column {j} must be finite, not ({low[j]:g}, {high[j]:g}). "
                "Write down the range you know "
                "without looking at the rows."
            )
        if not np.isfinite(high - low).all():
            raise InvalidArgument(
                "feature_bounds are so far apart that their difference overflows. Give the range "
                "you expect."
            )
        wrong = np.flatnonzero(low >= high)
        if len(wrong):
            j = int(wrong[0])
            raise InvalidArgument(
                f"feature_bounds of column {j} are reversed or empty: low={low[j]:g}, "
                f"high={high[j]:g}. Give low < high."
            )
        narrow = np.flatnonzero(high - low < _NARROWEST)
        if len(narrow):
            j = int(narrow[0])
            raise InvalidArgument(
                f"feature_bounds of column {j} are {high[j] - low[j]:g} apart: coefficients of the "
                f"column would overflow. Give ranges of at least {_NARROWEST:g}."
            )
        return cls(low, high)

    @staticmethod
    def stored(bounds: Any, n_features: int) -> Any:
        """The same bounds in a form that lists of lists keep: the two ends, of two columns."""
        if n_features != 2 or not _is_rectangular(bounds) or np.ndim(bounds) < 2:
            return bounds
        found = FeatureBounds.parse(bounds, n_features)
        return found.low.tolist(), found.high.tolist()

    @property
    def origin(self) -> Vector:
        """What is mapped to 0."""
        return self.low

    @property
    def width(self) -> Vector:
        """What a step of one stands for."""
        return np.asarray(self.high - self.low)

    def apply(self, X: AnyArray) -> Matrix:
        """Clip and map to [0, 1], as a new float64 array."""
        floating = isinstance(X, np.ndarray) and X.dtype in (np.float32, np.float64)
        given = np.ascontiguousarray(X, None if floating else np.float64)
        mapped = np.empty(given.shape)
        row_kernels.clip_and_map(given, self.low, self.high, mapped)
        return mapped

    def apply_sparse(self, X: Any) -> Any:
        """The same for a CSR matrix, whose zeros must stay zeros; shares its indices."""
        if np.any(self.low != 0.0):
            j = int(np.flatnonzero(self.low)[0])
            raise InvalidArgument(
                f"feature_bounds of column {j} start at {self.low[j]:g}, but a sparse matrix needs "
                "ranges "
                "that start at 0, or its zeros would not stay zeros. Shift the column, or pass a "
                "dense array."
            )
        column_high = self.high[X.indices]
        values = np.clip(X.data, 0.0, column_high, dtype=np.float64) / column_high
        return type(X)((values, X.indices, X.indptr), shape=X.shape)

    def apply_any(self, X: Any) -> Any:
        """The same for an array or a CSR matrix."""
        return self.apply_sparse(X) if hasattr(X, "indptr") else self.apply(X)


@dataclass(frozen=True)
class SignedBounds:
    """Public range of every column; values are clipped to it and mapped into [-1, 1].

    A column in [0, 1], such as an indicator, stays as it is: around 1/2 it would be longer. So do
    the zeros of sparse rows, whose columns are divided by the larger end of their range.

    Parameters
    ----------
    low, high : arrays, one entry for each column
    sparse : bool
        Whether zeros must stay zeros.
    """

    low: Vector
    high: Vector
    sparse: bool = False

    def __post_init__(self) -> None:
        keep_read_only(self, "low", "high")

    @classmethod
    def parse(cls, bounds: Any, n_features: int, sparse: bool = False) -> "SignedBounds":
        """From what `FeatureBounds.parse` takes; zeros of sparse rows must be in the range."""
        found = FeatureBounds.parse(bounds, n_features)
        outside = np.flatnonzero((found.low > 0) | (found.high < 0))
        if sparse and len(outside):
            j = int(outside[0])
            raise InvalidArgument(
                f"feature_bounds of column {j} are ({found.low[j]:g}, {found.high[j]:g}), but the "
                "zeros of a sparse matrix are values. Give a range with 0 in it, or pass a dense "
                "array."
            )
        return cls(found.low, found.high, sparse)

    @cached_property
    def origin(self) -> Vector:
        """What is mapped to 0."""
        unshifted = ((self.low == 0.0) & (self.high == 1.0)) | self.sparse
        return np.where(unshifted, 0.0, self.low + (self.high - self.low) / 2)

    @cached_property
    def width(self) -> Vector:
        """What a step of one stands for."""
        widest: Vector = np.maximum(self.high - self.origin, self.origin - self.low)
        return widest

    def apply(self, X: Any, dtype: type[np.floating[Any]] | None = None) -> Any:
        """Clip and map into [-1, 1]: a new array or CSR matrix, entry by entry, of type ``dtype``
        (that of X if None).
        """
        dtype = X.dtype if dtype is None else dtype
        if hasattr(X, "indptr"):
            X = canonical(X)  # a value that is stored in parts is clipped as a whole
            ends = self.low[X.indices], self.high[X.indices]
            values = np.clip(X.data, *ends) / self.width[X.indices]
            kept = np.clip(values, -1.0, 1.0).astype(dtype)
            return type(X)((kept, X.indices, X.indptr), shape=X.shape)
        return self._mapped(X, dtype)

    def _mapped(self, X: AnyArray, dtype: Any) -> AnyArray:
        mapped, ends = np.empty(X.shape, dtype), (self.low.copy(), self.high.copy())

        def fill(place: slice) -> None:
            part = np.ascontiguousarray(X[place])
            row_kernels.signed_dense(part, *ends, self.origin, self.width, mapped[place])

        list(parallel_map(fill, places(len(X), FEWEST_BLOCK_ROWS)))
        return mapped


def _is_of_columns(bounds: Any, array: Matrix) -> bool:
    """Whether two pairs of numbers are those of two columns, and not the two ends of both."""
    if isinstance(bounds, list) and all(isinstance(part, tuple) for part in bounds):
        return True
    if isinstance(bounds, tuple) and not any(isinstance(part, tuple) for part in bounds):
        return False
    of_columns, of_ends = (bool(np.all(low < high)) for low, high in (array.T, array))
    if of_columns and of_ends and not np.array_equal(array, array.T):
        (a, b), (c, d) = array.tolist()
        raise InvalidArgument(
            f"feature_bounds={bounds!r} of two columns can be read in two ways. Give a list of "
            f"tuples for one range per column, [({a:g}, {b:g}), ({c:g}, {d:g})], or a tuple of "
            f"lists for the lowest and the highest values, ([{a:g}, {b:g}], [{c:g}, {d:g}])."
        )
    return of_columns


def _is_rectangular(bounds: Any) -> bool:
    return (
        isinstance(bounds, np.ndarray | list | tuple)
        and len({np.size(part) for part in bounds}) == 1
    )


@dataclass(frozen=True, eq=False)
class _InMemory:
    """Common properties of rows in memory, in any layout."""

    X: Any
    y: Vector
    fit_intercept: bool = True
    bounds: FeatureBounds | None = None
    scaled_labels: bool = False
    persons: Persons | None = None
    scaling: RecordScaling = RecordScaling.UNIT_LENGTH
    feature_map: FeatureMap | None = None
    length: float = 1.0
    keep_unlabelled: bool = False
    scale: Vector = field(init=False, repr=False)

    @cached_property
    def _n_rows(self) -> int:
        return int(self.X.shape[0])

    @cached_property  # read at every step
    def n_units(self) -> int:
        return self._n_rows if self.persons is None else self.persons.n_persons

    @property
    def privacy_unit(self) -> PrivacyUnit:
        return ROW if self.persons is None else self.persons.unit

    @cached_property
    def shares(self) -> Vector:
        return WHOLE if self.persons is None else self.persons.shares

    def _shares_at(self, place: slice | IntVector) -> Vector:
        return self.shares if self.persons is None else self.shares[place]

    @property
    def _large_block(self) -> int:
        """Rows of a block that need not be copied: a function of public numbers."""
        size = _block_rows(self.n_units)
        return size if self.persons is None else min(size, PERSON_BLOCK_ROWS)

    def _places(self, size: int) -> list[slice]:
        return places(self._n_rows, size) if self.persons is None else self.persons.places(size)

    def _rows_of(self, units: IntVector) -> IntVector:
        return units if self.persons is None else self.persons.rows_of(units)

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1]) if self.feature_map is None else self.feature_map.n_outputs

    @cached_property
    def unit(self) -> float:
        return self.scaling.constant(self.fit_intercept)

    def row_vector(self) -> Vector:
        return np.zeros(self._n_rows)

    def blocks(self, units: IntVector | None = None) -> Iterator[Block]:
        raise NotImplementedError

    def public_rows(self) -> PublicRows:
        unlabelled = replace(self, y=np.zeros(self._n_rows))
        factors = self.scale if self.scaled_labels else WHOLE

        def read() -> Iterator[PublicBlock]:
            return (PublicBlock(block.place, block.records()) for block in unlabelled.blocks())

        return PublicRows(read, self._n_rows, self.n_features, self.persons, factors)


@dataclass(frozen=True, eq=False)
class DenseRows(_InMemory):
    """Rows of a two-dimensional array, used in place: never copied as a whole.

    Parameters
    ----------
    X : array of shape (n_rows, n_features), float32 or float64, C- or F-ordered
    y : float64 array; +-1 for two classes, class numbers for more, any real for regression
    fit_intercept : bool
    bounds : FeatureBounds or None
        Applied to each block as it is read.
    scaled_labels : bool
        Whether labels shrink with their records, as regression needs: then a residual shrinks as a
        whole.
    persons : Persons or None
        Whose rows they are; None if every row is its own unit.
    scaling : RecordScaling
        With ``BOUNDED`` records keep their lengths, and X must be within [-1, 1] already.
    feature_map : FeatureMap or None
        Applied to each block as it is read, after the bounds.
    length : float
        With ``PUBLIC_LENGTH``, what records are divided by, unless they are longer.
    keep_unlabelled : bool
        Whether a record whose label is nan stays, and its label too, as relations need under which
        features are public.
    """

    X: AnyArray
    y: Vector
    fit_intercept: bool = True
    bounds: FeatureBounds | None = None
    scaled_labels: bool = False
    persons: Persons | None = None
    scaling: RecordScaling = RecordScaling.UNIT_LENGTH
    feature_map: FeatureMap | None = None
    length: float = 1.0
    keep_unlabelled: bool = False
    scale: Vector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        scale = np.empty(len(self.X))

        def fill(place: slice) -> None:
            X = self._packed(self.X[place])
            if self.scaling is RecordScaling.BOUNDED:
                row_kernels.bounded_scales_dense(X, scale[place])
            else:
                row_kernels.unit_scales_dense(X, self.unit, scale[place])
                self.scaling.limit(scale[place], self.length)

        list(parallel_map(fill, places(self._n_rows, self._block_rows)))
        _settle(self, scale)

    @cached_property
    def _as_it_lies(self) -> bool:
        return self.bounds is None and self.feature_map is None and self.X.flags.c_contiguous

    @cached_property
    def _block_rows(self) -> int:
        return self._large_block if self._as_it_lies else FEWEST_BLOCK_ROWS

    def _packed(self, X: AnyArray) -> AnyArray:
        bounded = np.ascontiguousarray(X) if self.bounds is None else self.bounds.apply(X)
        return bounded if self.feature_map is None else self.feature_map.transform(bounded)

    def blocks(self, units: IntVector | None = None) -> Iterator[DenseBlock]:
        if units is None:
            yield from self._views if self._as_it_lies else self._all_copied()
            return
        rows = self._rows_of(units)
        for place in places(len(rows), self._block_rows):
            yield self._in_place(rows[place]) if self._as_it_lies else self._copied(rows[place])

    @cached_property
    def _views(self) -> tuple[DenseBlock, ...]:
        """All blocks, where nothing is copied: fits read them many times."""
        return tuple(self._all_copied())

    def _all_copied(self) -> Iterator[DenseBlock]:
        return map(self._copied, self._places(self._block_rows))

    def _copied(self, place: slice | IntVector) -> DenseBlock:
        """Some rows, in the order and type that kernels read: a view where they lie so."""
        return DenseBlock(
            self._packed(self.X[place]),
            ALL_ROWS,
            place,
            self.y[place],
            self.scale[place],
            self._shares_at(place),
            self.unit,
        )

    def _in_place(self, rows: IntVector) -> DenseBlock:
        whole = slice(None)
        return DenseBlock(self.X, rows, whole, self.y, self.scale, self.shares, self.unit)


@dataclass(frozen=True, eq=False)
class SparseRows(_InMemory):
    """Rows of a scipy CSR matrix; see ``DenseRows``. A matrix with duplicate columns in a row is
    copied and summed first.
    """

    X: Any
    y: Vector
    fit_intercept: bool = True
    bounds: FeatureBounds | None = None
    scaled_labels: bool = False
    persons: Persons | None = None
    scaling: RecordScaling = RecordScaling.UNIT_LENGTH
    feature_map: FeatureMap | None = None
    length: float = 1.0
    keep_unlabelled: bool = False
    scale: Vector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", canonical(self.X))
        if self.bounds is not None:
            object.__setattr__(self, "X", self.bounds.apply_sparse(self.X))
        scale = np.empty(self._n_rows)

        def fill(place: slice) -> None:
            data, _, indptr = self._parts(place)
            if self.scaling is RecordScaling.BOUNDED:
                row_kernels.bounded_scales_csr(data, indptr, scale[place])
            else:
                row_kernels.unit_scales_csr(data, indptr, self.unit, scale[place])
                self.scaling.limit(scale[place], self.length)

        list(parallel_map(fill, places(self._n_rows, self._block_rows)))
        _settle(self, scale)

    @cached_property
    def _block_rows(self) -> int:
        return self._large_block if self.feature_map is None else FEWEST_BLOCK_ROWS

    def _parts(self, place: slice) -> tuple[AnyArray, AnyArray, AnyArray]:
        """The arrays of some rows: as they lie, or mapped."""
        X = self.X
        if self.feature_map is None:
            return X.data, X.indices, X.indptr[place.start : place.stop + 1]
        mapped = self.feature_map.transform_sparse(X[place])
        return mapped.data, mapped.indices, mapped.indptr

    def blocks(self, units: IntVector | None = None) -> Iterator[SparseBlock]:
        if units is None:
            for place in self._places(self._block_rows):
                yield self._block(place, self._parts(place))
            return
        rows = self._rows_of(units)
        for place in places(len(rows), self._block_rows):
            yield self._picked(rows[place])

    def _block(
        self, place: slice | IntVector, parts: tuple[AnyArray, AnyArray, AnyArray]
    ) -> SparseBlock:
        return SparseBlock(
            *parts,
            ALL_ROWS,
            place,
            self.y[place],
            self.scale[place],
            self._shares_at(place),
            self.unit,
            self.n_features,
        )

    def _picked(self, rows: IntVector) -> SparseBlock:
        if self.feature_map is not None:
            mapped = self.feature_map.transform_sparse(self.X[rows])
            return self._block(rows, (mapped.data, mapped.indices, mapped.indptr))
        X, whole = self.X, slice(None)
        return SparseBlock(
            X.data,
            X.indices,
            X.indptr,
            rows,
            whole,
            self.y,
            self.scale,
            self.shares,
            self.unit,
            self.n_features,
        )


def _settle(source: "DenseRows | SparseRows", scale: Vector) -> None:
    missing = np.isnan(source.y)
    if missing.any() and not source.keep_unlabelled:
        scale[missing] = 0.0
        object.__setattr__(source, "y", np.where(missing, 0.0, source.y))
    object.__setattr__(source, "scale", scale)
    if source.scaled_labels:
        object.__setattr__(source, "y", source.y * scale)


def canonical(X: Any) -> Any:
    """The same sparse rows with increasing indices, each once: a duplicate index would make its
    record too long.

    scipy remembers whether a matrix is in this form and can be wrong about it after an edit in
    place, so it is checked.
    """
    if row_kernels.is_canonical_csr(X.indices, X.indptr, X.shape[1]):
        return X
    tidy = type(X)((X.data.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
    tidy.has_canonical_format = tidy.has_sorted_indices = False
    tidy.sum_duplicates()
    if not row_kernels.is_canonical_csr(tidy.indices, tidy.indptr, tidy.shape[1]):
        raise InvalidArgument(
            "X is not a valid CSR matrix: it has an index outside its columns. Build it again."
        )
    return tidy


# Types of blocks that were found to be bounded: testing for a protocol takes longer than some
# queries need for a block.
_bounded_kinds: set[type] = set()


def bounded_blocks(source: DataSource) -> Iterator[BoundedBlock]:
    """All blocks of a source whose records have bounded entries."""
    for block in source.blocks():
        kind = type(block)
        if kind not in _bounded_kinds:
            if not isinstance(block, BoundedBlock):
                raise InvalidArgument(
                    f"{type(source).__name__} has no records that keep their lengths. Use an array "
                    "or a CSR matrix."
                )
            _bounded_kinds.add(kind)
        yield block  # type: ignore[misc]


def _block_rows(n_units: int) -> int:
    """Large blocks have less overhead; small tables need small ones to keep all cores busy."""
    return MOST_BLOCK_ROWS if n_units >= 8 * MOST_BLOCK_ROWS else 2 * FEWEST_BLOCK_ROWS


def _by_rows(X: AnyArray) -> AnyArray:
    """An array in C order: every pass over one in F order would copy it, block by block. Very large
    ones stay as they are.
    """
    if X.flags.c_contiguous or X.size > _MOST_COPIED_ENTRIES:
        return X
    copied = np.empty(X.shape, X.dtype)

    def copy(place: slice) -> None:
        copied[place] = X[place]

    list(parallel_map(copy, places(len(X), FEWEST_BLOCK_ROWS)))
    return copied


def as_source(
    X: Any,
    y: ArrayLike,
    *,
    fit_intercept: bool = True,
    bounds: FeatureBounds | None = None,
    scaled_labels: bool = False,
    persons: Persons | None = None,
    scaling: RecordScaling = RecordScaling.UNIT_LENGTH,
    feature_map: FeatureMap | None = None,
    length: float = 1.0,
    keep_unlabelled: bool = False,
) -> DenseRows | SparseRows:
    """The source for a validated dense array or CSR matrix, of what the feature map reads.

    An array in F order is copied once. Rows are mapped once if a row takes long to map or the
    mapped ones are few enough to be kept, else whenever they are read.
    """
    labels = np.ascontiguousarray(y, dtype=np.float64)
    if feature_map is not None and (
        feature_map.kept or X.shape[0] * feature_map.n_outputs <= _MOST_MAPPED_ENTRIES
    ):
        X = canonical(X) if hasattr(X, "indptr") else X
        X = mapped_rows(feature_map, X, None if bounds is None else bounds.apply_any)
        bounds = feature_map = None
    kind = SparseRows if hasattr(X, "indptr") else DenseRows
    if kind is DenseRows and bounds is None and feature_map is None:
        X = _by_rows(X)
    settings = scaled_labels, persons, scaling, feature_map, length, keep_unlabelled
    return kind(X, labels, fit_intercept, bounds, *settings)
