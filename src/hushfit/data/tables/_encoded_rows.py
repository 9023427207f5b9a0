"""Rows of a table on disk in a compact form, decoded block by block while the queries read them.

A row becomes one number in single precision or one code for each column, in a memory-mapped file
(see `hushfit.data.tables._page_file`). The float32 is the value of the record for every query.
Queries read packed rows as they are; rows that go through a feature map or a design are unpacked
block by block. So memory holds a few blocks, for tables of any length.
"""

import mmap
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
    WHOLE,
    PackedBlock,
    PackedLayout,
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
    MORE_MEMORY,
    Table,
    Watch,
    scratch_folder,
    table_batches,
    unnamed_file,
)
from hushfit.data.tables._page_cache import PageCache
from hushfit.data.tables._page_file import PAGE_ROWS, PackedPart, PageFile, RowVectors
from hushfit.errors import InvalidArgument, OutOfMemory, TooFewRows
from hushfit.features import AdditiveMap
from hushfit.kernels import rows as row_kernels
from hushfit.kernels.threads import parallel_map
from hushfit.unit import ROW, PrivacyUnit

# What a fit may need beside the rows, with loops that have to be compiled.
_FIT_BYTES = 1 << 26


@dataclass(frozen=True)
class RowCodec:
    """Packs rows of a table, and unpacks them into sparse features.

    Parameters
    ----------
    schema : Schema
    """

    schema: Schema

    @cached_property
    def layout(self) -> PackedLayout:
        """The words of a packed row."""
        return PackedLayout(
            tuple(width for column in self.schema.columns for width in column.widths)
        )

    @property
    def n_features(self) -> int:
        return self.layout.n_features

    def pack(self, batch: Any) -> tuple[AnyArray, AnyArray]:
        """Numbers and codes of a record batch; those of a row depend on its own cells and the
        schema only.
        """
        layout, columns = self.layout, self.schema.columns
        numbers = np.empty((batch.num_rows, len(layout.number_at)), np.float32)
        codes = np.empty((batch.num_rows, len(layout.code_at)), layout.code_type)
        words = (word for column in columns for word in words_of(batch.column(column.name), column))
        targets = {word: numbers[:, k] for k, word in enumerate(layout.number_at.tolist())}
        targets |= {word: codes[:, k] for k, word in enumerate(layout.code_at.tolist())}
        for at, word in enumerate(words):
            targets[at][:] = word
        return numbers, codes

    def unpack(self, numbers: AnyArray, codes: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Sparse rows: one entry for each word."""
        return self.layout.unpack(numbers, codes)

    def matrix(self, batch: Any) -> Any:
        """The features of a record batch as a CSR matrix."""
        parts = self.unpack(*self.pack(batch))
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

    def _fetched(self) -> PackedBlock | SparseBlock:
        return self.table.fetched(self.start, self.stop, self.place)

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
        self,
        w: Vector,
        inverse: Vector,
        limits: tuple[float, float],
        code: int,
        parameter: float,
        grid: float,
    ) -> Vector:
        return self._fetched().counted_gradient_sum(w, inverse, limits, code, parameter, grid)

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
    """The rows of one or more tables as a source: packed once, and read as they are.

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

    Examples
    --------
    >>> from pathlib import Path
    >>> from hushfit import PrivateLogisticRegression
    >>> from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema
    >>> from hushfit.data.tables import CodedRows, find_tables
    >>> _ = Path("visits.csv").write_text("age,ill\\n" + "40,no\\n70,yes\\n" * 500)
    >>> schema = Schema((NumericColumn("age", 0, 110),), CategoricalColumn("ill", ("no", "yes")))
    >>> model = PrivateLogisticRegression(epsilon=1.0, delta=1e-5)
    >>> with CodedRows.from_tables(find_tables(["visits.csv"]), schema) as rows:
    ...     model.fit(rows).classes_
    array(['no', 'yes'], dtype='<U3')
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
        self.scaling, self.length = RecordScaling.UNIT_LENGTH, 1.0
        self.label_factors: Vector = WHOLE
        self.keep_unlabelled = keep_unlabelled
        self.persons: Persons | None = None
        self._n_rows = 0
        self._vectors = RowVectors()
        self.n_features = self.codec.n_features
        self.feature_map: AdditiveMap | None = None
        self.design: MainEffects | None = None
        self.y: Vector = np.empty(0)
        self.scale: Vector = np.empty(0)
        self._pages = PageFile(self.codec.layout, unnamed_file())

    @classmethod
    def from_tables(
        cls,
        tables: Sequence[Table],
        schema: Schema,
        fit_intercept: bool = True,
        watch: Watch | None = None,
        keep_unlabelled: bool = False,
        cache: str | None = None,
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
        cache : str, optional
            Folder in which the packed rows are kept, readable by their owner alone, and looked for
            the next time that the same files are read with the same schema.

        Returns
        -------
        CodedRows

        Raises
        ------
        TooFewRows
            If there are fewer than two rows.
        InvalidArgument
            If a table lacks a column, or all ids are equal or missing.
        OutOfMemory
            If what the process may use is too little for a fit.
        """
        kept = None if cache is None else PageCache.of(cache, tables, schema)
        rows = cls(schema, fit_intercept, keep_unlabelled)
        try:
            rows._take(tables, watch, kept)
            _refuse_little_memory()
        except BaseException as error:
            rows.close()
            if _is_lack_of_memory(error):
                raise OutOfMemory(
                    "There is not enough memory for a fit of these rows. Nothing was spent. "
                    f"{MORE_MEMORY}."
                ) from None
            if isinstance(error, OSError):
                raise InvalidArgument(
                    f"the encoded rows cannot be stored in {scratch_folder()} ({error.strerror}). "
                    "Nothing was spent. Free some space, or set TMPDIR to a folder with more."
                ) from None
            raise
        return rows

    def _take(self, tables: Sequence[Table], watch: Watch | None, cache: PageCache | None) -> None:
        """Read tables, or find them packed."""
        layout = self.codec.layout
        if cache is None:
            self._fill(tables, watch)
        elif (pages := cache.opened(layout)) is not None:
            self._replace_pages(pages)
            if watch is not None:
                watch(sum(os.path.getsize(table.path) for table in tables))
        else:
            self._replace_pages(PageFile(layout, cache.new_file()))
            try:
                self._fill(tables, watch, cache.key)
                cache.keep()
            finally:
                cache.discard()
        self._settle()

    def _replace_pages(self, pages: PageFile) -> None:
        self._pages.close()
        self._pages = pages

    def _fill(self, tables: Sequence[Table], watch: Watch | None, key: str = "") -> None:
        schema = self.codec.schema
        columns: tuple[Column | Target, ...] = (*schema.columns, self.target)
        names = [column.name for column in columns]
        names += [] if schema.person is None else [schema.person]
        numbers = [column.name for column in columns if reads_plain_numbers(column)]
        labels = [column.name for column in columns if isinstance(column, _LISTED)]
        index, persons = PersonIndex(), []

        def packed(batch: Any) -> tuple[PackedPart, Any]:
            labels = target_values(batch.column(self.target.name), self.target)
            ids = None if schema.person is None else batch.column(schema.person)
            return PackedPart(*self.codec.pack(batch), labels), ids

        for table in tables:
            kinds = {"numbers": numbers, "labels": labels}
            for part, ids in table_batches(table, names, watch, each=packed, **kinds):
                if ids is not None:
                    persons.append(index.add(ids))
                self._pages.append(part)
        self._pages.finish(key)
        if schema.person is not None and self._pages.n_rows >= 2:  # fewer are refused in a moment
            ids = f"column {schema.person!r}"
            self.persons = index.persons(persons, schema.privacy_unit, ids)

    def _settle(self) -> None:
        """Labels and scales of the packed rows."""
        self._n_rows = self._pages.n_rows
        if self._n_rows < 2:
            # With persons the number of rows is private.
            found = self._n_rows if self.codec.schema.person is None else "fewer than 2"
            raise TooFewRows(
                f"the tables have {found} rows; a fit needs at least 2. Check that these are the "
                "files."
            )
        self.y = self._vector(self._labels)
        self._measure_all()

    def _labels(self, place: slice) -> Vector:
        """Labels as queries read them; NaN for none, if such rows are kept."""
        labels = self._pages.part(place.start, place.stop).labels
        if not self.keep_unlabelled:  # the label of a zero record is never used
            labels = np.nan_to_num(labels, nan=0.0)
        return labels * 2.0 - 1.0 if len(self.classes) == 2 else labels

    def _vector(self, of_rows: Callable[[slice], Vector]) -> Vector:
        """A vector with an entry for each row, computed page by page."""
        found = self.row_vector()

        def fill(page: int) -> None:
            self._pass_by(page)
            place = slice(page * PAGE_ROWS, min((page + 1) * PAGE_ROWS, self._n_rows))
            found[place] = of_rows(place)

        list(parallel_map(fill, range(self._pages.n_pages)))
        return found

    def row_vector(self) -> Vector:
        return self._vectors.new(self._n_rows)

    def _pass_by(self, page: int) -> None:
        self._pages.pass_by(page)
        self._vectors.pass_by(page)

    @property
    def schema(self) -> Schema:
        """What is public about the table."""
        return self.codec.schema

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

    def divided_by(self, length: float) -> "CodedRows":
        """The same rows, divided by one public length unless they are longer.

        Parameters
        ----------
        length : float

        Returns
        -------
        CodedRows
            Shares the packed rows with this one.
        """
        other = copy(self)
        other.scaling, other.length = RecordScaling.PUBLIC_LENGTH, length
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
        if scaled_labels:
            other.label_factors = other.scale

        def own(place: slice) -> Vector:
            labels = mapped(self.y[place])
            return labels * other.scale[place] if scaled_labels else labels

        other.y = other._vector(own)
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

    @property
    def _is_packed(self) -> bool:
        """Whether queries read the packed rows as they are."""
        return self.design is None and self.feature_map is None

    def fetched(self, start: int, stop: int, place: slice | IntVector) -> PackedBlock | SparseBlock:
        """Some rows between two as a block; safe in several threads at once."""
        numbers, codes = self._packed(start, stop)
        if not isinstance(place, slice):
            numbers, codes = numbers[place - start], codes[place - start]
        y, scale, shares = self.y[place], self.scale[place], self.shares_at(place)
        if self._is_packed:
            layout = self.codec.layout
            return PackedBlock(layout, numbers, codes, place, y, scale, shares, self.unit)
        beside = ALL_ROWS, place, y, scale, shares, self.unit, self.n_features
        return SparseBlock(*beside, self.unpack(numbers, codes))

    def _packed(self, start: int, stop: int) -> tuple[AnyArray, AnyArray]:
        part = self._pages.part(start, stop)
        numbers = part.numbers
        if self._is_packed and self.scaling is RecordScaling.BOUNDED:
            centred = self.centred[self.codec.layout.number_features]
            numbers = np.where(centred, 2 * numbers - 1, numbers)
        return numbers, part.codes

    def unpack(self, numbers: AnyArray, codes: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Packed rows as sparse features."""
        data, indices, indptr = self.codec.unpack(numbers, codes)
        if self.design is not None:
            places = self.design.places[indices]
            kept = places >= 0
            ends = np.cumsum(kept.reshape(len(numbers), -1).sum(axis=1))
            data, indices = data[kept], places[kept].astype(indices.dtype)
            indptr = np.concatenate([[0], ends]).astype(indptr.dtype)
            data = np.where(self.centred[indices], 2 * data - 1, data)
        parts = data, indices, indptr
        return parts if self.feature_map is None else self.feature_map.expanded(*parts)

    def _measure_all(self) -> None:
        self.scale = self._vector(self._scales)

    def _scales(self, place: slice) -> Vector:
        """Factors that scale some records to unit vectors, or leave them as they are, or make them
        zero.
        """
        numbers, codes = self._packed(place.start, place.stop)
        scale = self._own_scales(numbers, codes)
        if not self.keep_unlabelled:
            scale[np.isnan(self._pages.part(place.start, place.stop).labels)] = 0.0
        if self.design is not None:
            scale *= ~self._has_no_place(numbers, codes, self.design)
        return scale

    def _own_scales(self, numbers: AnyArray, codes: AnyArray) -> Vector:
        """Factors by the values of the records."""
        if self._is_packed and self.scaling is not RecordScaling.BOUNDED:
            scale = self.codec.layout.unit_scales(numbers, self.unit)
            self.scaling.limit(scale, self.length)
            return scale
        data, _, indptr = self.unpack(numbers, codes)
        scale = np.empty(len(numbers))
        if self.scaling is RecordScaling.BOUNDED:
            row_kernels.bounded_scales_csr(data, indptr, scale)
        else:
            row_kernels.unit_scales_csr(data, indptr, self.unit, scale)
            self.scaling.limit(scale, self.length)
        return scale

    def _has_no_place(self, numbers: AnyArray, codes: AnyArray, design: MainEffects) -> BoolVector:
        """Whether a row has a label that is not in the design."""
        data, features, _ = self.codec.unpack(numbers, codes)
        odd = design.left_out[features] & (data != 0)
        return np.asarray(odd.reshape(len(numbers), -1).any(axis=1))

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
            self._pass_by(start // PAGE_ROWS)
            if chosen is None:
                yield CodedBlock(self, start, stop, slice(start, stop))
                continue
            own = chosen[np.searchsorted(chosen, start) : np.searchsorted(chosen, stop)]
            if len(own):
                yield CodedBlock(self, start, stop, own)

    def _places(self) -> list[slice]:
        if self.persons is None:
            return places(self._n_rows, PAGE_ROWS)
        return self.persons.places(PAGE_ROWS)

    def public_rows(self) -> PublicRows:
        if not self.keep_unlabelled:
            raise InvalidArgument(
                "these rows were packed without those whose label is not among the classes, so "
                "which features are there depends on labels. Pack them with keep_unlabelled=True."
            )
        unlabelled = copy(self)
        unlabelled.y = np.zeros(self._n_rows)

        def read() -> Iterator[PublicBlock]:
            for place in places(unlabelled._n_rows, PAGE_ROWS):
                block = CodedBlock(unlabelled, place.start, place.stop, place)
                yield PublicBlock(place, block.records())

        return PublicRows(read, self._n_rows, self.n_features, self.persons, self.label_factors)

    def close(self) -> None:
        """Drop the rows."""
        self._pages.close()

    def __enter__(self) -> "CodedRows":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _is_lack_of_memory(error: BaseException) -> bool:
    """Also where a library returns although memory ran out, which the interpreter reports as an
    error of the system caused by it.
    """
    cause = error.__cause__ if isinstance(error, SystemError) else error
    return isinstance(cause, MemoryError)


def _refuse_little_memory() -> None:
    """Raise an error where a limit leaves too little for a fit, before it is paid for."""
    try:
        mmap.mmap(-1, _FIT_BYTES, flags=mmap.MAP_PRIVATE).close()
    except OSError:
        raise MemoryError from None


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


# Labels that the schema lists: few different ones in the cells of a column.
_LISTED = CategoricalColumn, OrdinalTarget


def reads_plain_numbers(column: Column | Target) -> bool:
    """Whether cells that are plain numbers may be read as floats, each by itself."""
    numeric = column.numbers if isinstance(column, CountTarget) else column
    return isinstance(numeric, NumericColumn) and numeric.decimal == "."


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
    if pa.types.is_dictionary(cells.type) and len(cells.dictionary) > len(cells):
        cells = cells.dictionary_decode()  # of a whole column: most of it is not in these rows
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
