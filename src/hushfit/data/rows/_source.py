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

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hushfit._typing import AnyArray, IntVector, Vector
from hushfit.data.rows._array_blocks import BlockFields, DenseBlock, SparseBlock
from hushfit.data.rows._bounds import FeatureBounds
from hushfit.data.rows._csr import canonical
from hushfit.data.rows._persons import WHOLE, Persons, places
from hushfit.data.rows._protocols import (
    ALL_ROWS,
    FEWEST_BLOCK_ROWS,
    MOST_BLOCK_ROWS,
    PERSON_BLOCK_ROWS,
    Block,
    BoundedBlock,
    DataSource,
)
from hushfit.data.rows._public_rows import PublicBlock, PublicRows
from hushfit.data.rows._scaling import RecordScaling
from hushfit.errors import InvalidArgument
from hushfit.features import FeatureMap, mapped_rows
from hushfit.kernels import rows as row_kernels
from hushfit.kernels.threads import parallel_map
from hushfit.unit import ROW, PrivacyUnit

# Entries of mapped rows that are kept in memory: 256 MB. More are mapped again whenever they are
# read, which takes longer than reading them.
_MOST_MAPPED_ENTRIES = 2**25
# Entries of an array in F order that is copied once: 1 GB.
_MOST_COPIED_ENTRIES = 2**27


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

    def _fields_at(self, place: slice | IntVector) -> BlockFields:
        """What a block of some rows holds beside their features."""
        y, scale = self.y[place], self.scale[place]
        shares = self.shares if self.persons is None else self.shares[place]
        return place, y, scale, shares, self.unit, self.n_features

    @cached_property  # read for every batch
    def _fields(self) -> BlockFields:
        """The same of all rows, for batches that are read in place."""
        return slice(None), self.y, self.scale, self.shares, self.unit, self.n_features

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
        return DenseBlock(ALL_ROWS, *self._fields_at(place), (self._packed(self.X[place]),))

    def _in_place(self, rows: IntVector) -> DenseBlock:
        return DenseBlock(rows, *self._fields, (self.X,))


@dataclass(frozen=True, eq=False)
class SparseRows(_InMemory):
    """Rows of a scipy CSR matrix; see ``DenseRows``. A matrix with duplicate columns in a row is
    copied and summed first.
    """

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
                yield SparseBlock(ALL_ROWS, *self._fields_at(place), self._parts(place))
            return
        rows = self._rows_of(units)
        for place in places(len(rows), self._block_rows):
            yield self._picked(rows[place])

    def _picked(self, rows: IntVector) -> SparseBlock:
        if self.feature_map is not None:
            mapped = self.feature_map.transform_sparse(self.X[rows])
            parts = mapped.data, mapped.indices, mapped.indptr
            return SparseBlock(ALL_ROWS, *self._fields_at(rows), parts)
        X = self.X
        return SparseBlock(rows, *self._fields, (X.data, X.indices, X.indptr))


def _settle(source: "DenseRows | SparseRows", scale: Vector) -> None:
    missing = np.isnan(source.y)
    if missing.any() and not source.keep_unlabelled:
        scale[missing] = 0.0
        object.__setattr__(source, "y", np.where(missing, 0.0, source.y))
    object.__setattr__(source, "scale", scale)
    if source.scaled_labels:
        object.__setattr__(source, "y", source.y * scale)


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
