"""Rows of a table on disk in a compact form, decoded block by block while the queries read them.

A row becomes one float or one feature number for each column, in an unnamed temporary file that is
removed with the process, however it ends. Blocks are read and unpacked into sparse rows when a
query reads them, so a pass reads the codes only and memory holds a few blocks, for tables of any
length.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_matrix

from hushfit._typing import AnyArray, BoolVector, IntVector, Matrix, Vector
from hushfit.data.design import MainEffects
from hushfit.data.rows import (
    ALL_ROWS,
    FEWEST_BLOCK_ROWS,
    WHOLE,
    PersonIndex,
    Persons,
    PublicBlock,
    PublicRows,
    RecordScaling,
    SparseBlock,
    places,
)
from hushfit.data.schema import (
    CategoricalColumn,
    Column,
    CountTarget,
    DateColumn,
    NumericColumn,
    OrdinalTarget,
    Schema,
    Target,
    listed,
    numbers_in,
)
from hushfit.data.tables._files import (
    Table,
    Watch,
    scratch_folder,
    table_batches,
    unnamed_file,
    write_all,
)
from hushfit.errors import InvalidArgument, TooFewRows
from hushfit.features import AdditiveMap
from hushfit.kernels import rows as row_kernels
from hushfit.kernels.threads import parallel_map
from hushfit.unit import ROW, PrivacyUnit

# Blocks are unpacked when a query reads them, so they stay small.
_BLOCK_ROWS = 2 * FEWEST_BLOCK_ROWS


@dataclass(frozen=True)
class RowCodec:
    """Packs rows of a table, and unpacks them into sparse features.

    Parameters
    ----------
    schema : Schema
    """

    schema: Schema

    @property
    def width(self) -> int:
        """Words of a packed row: those of each column, and whether its label is one of the public
        ones.
        """
        return len(self._starts) + 1

    @cached_property
    def n_features(self) -> int:
        return len(self.schema.feature_names)

    @cached_property
    def _widths(self) -> AnyArray:
        """Features of each word of a packed row."""
        return np.array([width for column in self.schema.columns for width in column.widths])

    @cached_property
    def _starts(self) -> AnyArray:
        """Feature of each word of a packed row; of a label, the first one."""
        return np.concatenate([[0], np.cumsum(self._widths)[:-1]]).astype(np.int32)

    @cached_property
    def _is_number(self) -> BoolVector:
        return np.asarray(self._widths == 1)

    def pack(self, batch: Any, known: AnyArray) -> AnyArray:
        """Pack a record batch into rows of 32-bit words; a row depends on its own cells and the
        schema only.
        """
        packed = np.empty((batch.num_rows, self.width), dtype=np.int32)
        packed[:, -1] = known
        columns = self.schema.columns
        words = (word for column in columns for word in words_of(batch.column(column.name), column))
        for at, word in enumerate(words):
            packed[:, at] = (
                np.asarray(word, dtype=np.float32).view(np.int32)
                if self._is_number[at]
                else self._starts[at] + word
            )
        return packed

    def unpack(self, packed: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Sparse rows: one entry for each word."""
        words, width = packed[:, :-1], self.width - 1
        data = np.where(self._is_number, words.view(np.float32), np.float32(1))
        indices = np.where(self._is_number, self._starts, words)
        return (
            data.ravel(),
            indices.ravel(),
            np.arange(0, len(packed) * width + 1, width, dtype=np.int64),
        )

    def matrix(self, batch: Any) -> Any:
        """The features of a record batch as a CSR matrix."""
        parts = self.unpack(self.pack(batch, np.ones(batch.num_rows)))
        return csr_matrix(parts, shape=(batch.num_rows, self.n_features))


@dataclass(frozen=True, eq=False)
class CodedBlock:
    """Rows of a table that are loaded when a query reads them, and dropped afterwards."""

    table: "CodedRows"
    start: int
    stop: int
    place: slice | IntVector

    @property
    def scale(self) -> Vector:
        return self.table.scale[self.place]

    def _fetched(self) -> SparseBlock:
        packed = self.table.fetch(self.start, self.stop)
        if not isinstance(self.place, slice):
            packed = packed[self.place - self.start]
        table, place = self.table, self.place
        return SparseBlock(
            *table.unpack(packed),
            ALL_ROWS,
            place,
            table.y[place],
            table.scale[place],
            table.shares_at(place),
            table.unit,
            table.n_features,
        )

    def gradient_sum(
        self, w: Vector, caps: Vector, code: int, parameter: float, grid: float
    ) -> Vector:
        return self._fetched().gradient_sum(w, caps, code, parameter, grid)

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
        return self._fetched().difference_sum(w, v, clip, bound, code, parameter, grid)

    def drop_sum(
        self,
        vectors: Vector,
        mixes: Matrix,
        bounds: Vector,
        code: int,
        parameter: float,
        grids: Vector,
    ) -> Vector:
        return self._fetched().drop_sum(vectors, mixes, bounds, code, parameter, grids)

    def second_moment(self, steps: float, factors: Vector | None = None) -> Matrix:
        return self._fetched().second_moment(steps, factors)

    def counted_gradient_sum(
        self, w: Vector, caps: Vector, code: int, parameter: float, grid: float
    ) -> Vector:
        return self._fetched().counted_gradient_sum(w, caps, code, parameter, grid)

    def lengths(self, A: Matrix) -> Vector:
        return self._fetched().lengths(A)

    def centred_lengths(self, inverse: Vector, centre: Vector) -> Vector:
        return self._fetched().centred_lengths(inverse, centre)

    def squares(self) -> Vector:
        return self._fetched().squares()

    def moment_sums(self, factors: Vector, grids: Vector) -> Matrix:
        return self._fetched().moment_sums(factors, grids)

    def score_sums(
        self,
        w: Vector,
        A: Matrix,
        code: int,
        parameter: float,
        factors: tuple[float, float],
        grid: float,
    ) -> Vector:
        return self._fetched().score_sums(w, A, code, parameter, factors, grid)

    def row_scores(self, w: Vector, A: Matrix, code: int, parameter: float) -> Matrix:
        return self._fetched().row_scores(w, A, code, parameter)

    def margins(self, w: Vector) -> Vector:
        return self._fetched().margins(w)

    def records(self) -> Any:
        return self._fetched().records()

    @property
    def shares(self) -> Vector:
        return self.table.shares_at(self.place)


class CodedRows:
    """The rows of one or more tables as a source: packed once, unpacked at each pass.

    A row whose label is not among the public classes, or whose target is no number, counts as the
    zero record: it stays in its position and adds nothing. Where features are public such a row
    must not be left out, because leaving it out would reveal its label: with ``keep_unlabelled``
    its features stay, and its label is NaN.

    Labels of two classes are -1 and 1, of more their numbers. Other targets are numbers in their
    public range: `for_regression` maps them.

    Parameters
    ----------
    schema : Schema
        Must have a target.
    fit_intercept : bool, default=True
    keep_unlabelled : bool, default=False
        Whether records stay whatever their label is, as relations need under which features are
        public.
    """

    def __init__(
        self, schema: Schema, fit_intercept: bool = True, keep_unlabelled: bool = False
    ) -> None:
        target = schema.target
        if target is None or (isinstance(target, CategoricalColumn) and len(target.categories) < 2):
            raise InvalidArgument(
                "the schema needs a [target]: a categorical one with at least two categories, "
                "numbers with their range, counts with their cap, or grades. Add it."
            )
        self.codec = RowCodec(schema)
        self.target: Target = target
        self.fit_intercept = fit_intercept
        self.scaling = RecordScaling.UNIT_LENGTH
        self.label_factors: Vector = WHOLE
        self.keep_unlabelled = keep_unlabelled
        self.persons: Persons | None = None
        self._n_rows = 0
        self.n_features = self.codec.n_features
        self.feature_map: AdditiveMap | None = None
        self.design: MainEffects | None = None
        self.y: Vector = np.empty(0)
        self.scale: Vector = np.empty(0)
        self._file = unnamed_file()

    @classmethod
    def from_tables(
        cls,
        tables: Sequence[Table],
        schema: Schema,
        fit_intercept: bool = True,
        watch: Watch | None = None,
        keep_unlabelled: bool = False,
    ) -> "CodedRows":
        """Read and pack tables.

        Parameters
        ----------
        tables : sequence of Table
        schema : Schema
            If it names a column of ids, rows with the same id, in any of the tables, are one
            person's. Ids are counted in the same pass; the different ones are held in memory.
        fit_intercept : bool, default=True
        watch : callable, optional
            Called with the number of bytes read since the last call.
        keep_unlabelled : bool, default=False

        Returns
        -------
        CodedRows

        Raises
        ------
        TooFewRows
            If there are fewer than two rows.
        InvalidArgument
            If a table lacks a column, or all ids are equal or missing.
        """
        rows = cls(schema, fit_intercept, keep_unlabelled)
        try:
            rows._fill(tables, watch)
        except OSError as error:
            rows.close()
            raise InvalidArgument(
                f"the encoded rows cannot be stored in {scratch_folder()} ({error.strerror}). "
                "Nothing was spent. Free some space, or set TMPDIR to a folder with more."
            ) from None
        except BaseException:
            rows.close()
            raise
        return rows

    def _fill(self, tables: Sequence[Table], watch: Watch | None) -> None:
        schema = self.codec.schema
        names = [column.name for column in (*schema.columns, self.target)]
        names += [] if schema.person is None else [schema.person]
        labels: list[AnyArray] = []
        index, persons = PersonIndex(), []
        for table in tables:
            for batch in table_batches(table, names, watch):
                if schema.person is not None:
                    persons.append(index.add(batch.column(schema.person)))
                label = target_values(batch.column(self.target.name), self.target)
                labels.append(label)
                kept = np.logical_or(~np.isnan(label), self.keep_unlabelled)
                write_all(self._file, [self.codec.pack(batch, kept).tobytes()])
        self._n_rows = sum(map(len, labels))
        if self._n_rows < 2:
            # With persons the number of rows is private.
            found = self._n_rows if schema.person is None else "fewer than 2"
            raise TooFewRows(
                f"the tables have {found} rows; a fit needs at least 2. Check that these are the "
                "files."
            )
        if schema.person is not None:
            ids = f"column {schema.person!r}"
            self.persons = index.persons(persons, schema.privacy_unit, ids)
        self.y = np.empty(self._n_rows)
        np.concatenate(labels, out=self.y)
        if not self.keep_unlabelled:  # the label of a zero record is never used
            np.nan_to_num(self.y, copy=False, nan=0.0)
        if len(self.classes) == 2:
            self.y *= 2.0
            self.y -= 1.0
        self._measure_all()

    @property
    def classes(self) -> tuple[str, ...]:
        """The public classes; none if the target is no label."""
        return self.target.categories if isinstance(self.target, CategoricalColumn) else ()

    @property
    def unit(self) -> float:
        """The intercept's entry of a record."""
        return self.scaling.constant(self.fit_intercept)

    def mapped(self, feature_map: AdditiveMap) -> "CodedRows":
        """The same rows, mapped by a public feature map whenever they are unpacked.

        Parameters
        ----------
        feature_map : AdditiveMap
            Of the encoded features.

        Returns
        -------
        CodedRows
            Shares the packed rows with this one.
        """
        other = copy(self)
        other.feature_map, other.n_features = feature_map, feature_map.n_outputs
        other._measure_all()
        return other

    def for_design(self, design: MainEffects) -> "CodedRows":
        """The same rows as those of a regression table; they keep their lengths.

        Parameters
        ----------
        design : MainEffects
            Rows with a label that has no place in it count as the zero record.

        Returns
        -------
        CodedRows
            Shares the packed rows with this one.
        """
        other = copy(self)
        other.design, other.n_features = design, len(design.kept)
        other.scaling = RecordScaling.BOUNDED
        other._measure_all()
        return other

    @property
    def ranges(self) -> tuple[Vector, Vector]:
        """Lowest and highest value of every feature: in the units of the table for a design, else
        0 and 1.
        """
        if self.design is None:
            return np.zeros(self.n_features), np.ones(self.n_features)
        low, high = np.array(self.design.bounds).T
        return low, high

    def for_regression(
        self, scaling: RecordScaling, mapped: Callable[[Vector], Vector], scaled_labels: bool
    ) -> "CodedRows":
        """The same rows with mapped targets, for regression.

        Parameters
        ----------
        scaling : RecordScaling
            With ``BOUNDED`` records keep their lengths, and numbers that go through no feature map
            are mapped from [0, 1] to [-1, 1].
        mapped : callable
            The public map of targets.
        scaled_labels : bool
            Whether targets shrink with their records.

        Returns
        -------
        CodedRows
            Shares the packed rows with this one.
        """
        other = copy(self)
        other.scaling = scaling
        other._measure_all()
        other.y = mapped(self.y)
        if scaled_labels:
            other.label_factors = other.scale
            other.y = other.y * other.scale
        return other

    @property
    def centred(self) -> BoolVector:
        """Encoded features that are mapped from [0, 1] to [-1, 1]: the numbers, in records that
        keep their lengths. A feature map reads them as they are.
        """
        if self.design is not None:
            return self.design.is_number
        numbers = np.array([column.is_numeric for column in self.codec.schema.inputs])
        return numbers & (self.scaling is RecordScaling.BOUNDED and self.feature_map is None)

    def unpack(self, packed: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Packed rows as sparse features."""
        data, indices, indptr = self.codec.unpack(packed)
        if self.design is not None:
            places = self.design.places[indices]
            kept = places >= 0
            ends = np.cumsum(kept.reshape(len(packed), -1).sum(axis=1))
            data, indices = data[kept], places[kept].astype(indices.dtype)
            indptr = np.concatenate([[0], ends]).astype(indptr.dtype)
        if self.scaling is RecordScaling.BOUNDED and self.feature_map is None:
            data = np.where(self.centred[indices], 2 * data - 1, data)
        parts = data, indices, indptr
        return parts if self.feature_map is None else self.feature_map.expanded(*parts)

    def _measure_all(self) -> None:
        self.scale = np.empty(self._n_rows)
        list(parallel_map(self._measure, range(0, self._n_rows, _BLOCK_ROWS)))

    def _measure(self, start: int) -> None:
        """Factors that scale the records of one block to unit vectors, or leave them as they are,
        or make them zero.
        """
        packed = self.fetch(start, min(start + _BLOCK_ROWS, self._n_rows))
        data, _, indptr = self.unpack(packed)
        scale = self.scale[start : start + len(packed)]
        if self.scaling is RecordScaling.BOUNDED:
            row_kernels.bounded_scales_csr(data, indptr, scale)
        else:
            row_kernels.unit_scales_csr(data, indptr, self.unit, scale)
        scale *= packed[:, -1]
        if self.design is not None:
            scale *= ~self._has_no_place(packed, self.design)

    def _has_no_place(self, packed: AnyArray, design: MainEffects) -> BoolVector:
        """Whether a row has a label that is not in the design."""
        data, features, _ = self.codec.unpack(packed)
        odd = design.left_out[features] & (data != 0)
        return np.asarray(odd.reshape(len(packed), -1).any(axis=1))

    def fetch(self, start: int, stop: int) -> AnyArray:
        """Packed rows from the file; safe in several threads at once."""
        size = 4 * self.codec.width
        raw = os.pread(self._file.fileno(), (stop - start) * size, start * size)
        return np.frombuffer(raw, dtype=np.int32).reshape(-1, self.codec.width)

    @property
    def n_units(self) -> int:
        return self._n_rows if self.persons is None else self.persons.n_persons

    @property
    def privacy_unit(self) -> PrivacyUnit:
        return ROW if self.persons is None else self.persons.unit

    @property
    def shares(self) -> Vector:
        return WHOLE if self.persons is None else self.persons.shares

    def shares_at(self, place: slice | IntVector) -> Vector:
        """Weights of some rows, or one weight for all."""
        return WHOLE if self.persons is None else self.persons.shares[place]

    def blocks(self, units: IntVector | None = None) -> Iterator[CodedBlock]:
        chosen = None
        if units is not None:
            chosen = np.sort(units if self.persons is None else self.persons.rows_of(units))
        for place in self._places():
            start, stop = place.start, place.stop
            if chosen is None:
                yield CodedBlock(self, start, stop, slice(start, stop))
                continue
            own = chosen[np.searchsorted(chosen, start) : np.searchsorted(chosen, stop)]
            if len(own):
                yield CodedBlock(self, start, stop, own)

    def _places(self) -> list[slice]:
        if self.persons is None:
            return places(self._n_rows, _BLOCK_ROWS)
        return self.persons.places(_BLOCK_ROWS)

    def public_rows(self) -> PublicRows:
        if not self.keep_unlabelled:
            raise InvalidArgument(
                "these rows were packed without those whose label is not among the classes, so "
                "which features are there depends on labels. Pack them with keep_unlabelled=True."
            )
        unlabelled = copy(self)
        unlabelled.y = np.zeros(self._n_rows)

        def read() -> Iterator[PublicBlock]:
            for start in range(0, unlabelled._n_rows, _BLOCK_ROWS):
                place = slice(start, min(start + _BLOCK_ROWS, unlabelled._n_rows))
                block = CodedBlock(unlabelled, place.start, place.stop, place)
                yield PublicBlock(place, block.records())

        return PublicRows(read, self._n_rows, self.n_features, self.persons, self.label_factors)

    def close(self) -> None:
        """Drop the rows."""
        self._file.close()

    def __enter__(self) -> "CodedRows":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def target_values(cells: Any, target: Target) -> Vector:
    """Class numbers, positions of grades, or numbers clipped to the public range; NaN for what is
    missing, unlisted or no number.
    """
    if isinstance(target, CategoricalColumn | OrdinalTarget):
        labels = target.labels if isinstance(target, OrdinalTarget) else target
        codes = codes_of(cells, labels)
        return np.where(codes < len(labels.categories), codes, np.nan)
    numeric = target.numbers if isinstance(target, CountTarget) else target
    read = numeric.numbers(numbers_of(cells, numeric, numeric.decimal))
    return np.clip(read, target.low, target.high)


def words_of(cells: Any, column: Column) -> list[AnyArray]:
    """The words of a column in packed rows, computed for the distinct cells of the batch."""
    if isinstance(column, NumericColumn):
        return column.words(numbers_of(cells, column, column.decimal))
    distinct, place = _distinct(cells, column)
    return [word[place] for word in column.words(_and_missing(distinct))]


def codes_of(cells: Any, column: CategoricalColumn) -> IntVector:
    """Position of each cell in the vocabulary."""
    codes: IntVector = words_of(cells, column)[0]
    return codes


def days_of(cells: Any, column: DateColumn) -> Vector:
    """Cells as numbers of days, NaN for what is no date."""
    distinct, place = _distinct(cells, column)
    return column.days(_and_missing(distinct))[place]


def numbers_of(cells: Any, column: Column, decimal: str = ".") -> Vector:
    """Cells as floats, NaN for what is missing or unreadable."""
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if pa.types.is_temporal(cells.type) or pa.types.is_nested(cells.type):
        raise _unfit(
            cells, column, "a number", 'Store it as a number, or make it kind = "date" or "hashed"'
        )
    if pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type):
        if decimal != ".":
            return _each_read(cells, column, decimal)
        cells = pc.utf8_trim_whitespace(cells)
        cells = pc.if_else(pc.equal(cells, ""), pa.scalar(None, cells.type), cells)
    try:
        numbers = pc.cast(cells, pa.float64()).to_numpy(zero_copy_only=False)
        return np.asarray(numbers, dtype=np.float64)
    except pa.ArrowException:
        # Some cell is not a plain number: read the distinct ones as Python does. Both readers agree
        # wherever both can read.
        return _each_read(cells, column, decimal)


def _each_read(cells: Any, column: Column, decimal: str) -> Vector:
    """Cells as floats, each distinct one read as Python does."""
    distinct, place = _distinct(cells, column)
    return np.append(numbers_in(distinct, decimal), np.nan)[place]


def _and_missing(distinct: AnyArray) -> AnyArray:
    """Some cells followed by a missing one, which the place -1 picks."""
    cells = np.empty(len(distinct) + 1, dtype=object)
    cells[:-1], cells[-1] = distinct, None
    return cells


def _distinct(cells: Any, column: Column) -> tuple[AnyArray, IntVector]:
    """The distinct cells, and for each cell its position among them; -1 for a missing one."""
    try:
        coded = cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode()
    except pa.ArrowNotImplementedError:
        raise _unfit(
            cells, column, "a label", "Store it as text or numbers, or drop the column"
        ) from None
    values = coded.dictionary
    distinct = np.empty(len(values), dtype=object)
    # Dates through numpy: as Python objects those with nanoseconds would need pandas.
    distinct[:] = (
        listed(values.to_numpy(zero_copy_only=False))
        if _is_date(values.type)
        else values.to_pylist()
    )
    return distinct, np.asarray(
        coded.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64
    )


def _is_date(kind: Any) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_duration(kind))


def _unfit(cells: Any, column: Column, wanted: str, remedy: str) -> InvalidArgument:
    return InvalidArgument(
        f"column {column.name!r} is of type {cells.type}, the schema says it is {wanted}. {remedy}."
    )
