"""How well a schema matches the rows of a table, by exact counts. Not private, and marked so in
every output.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from hushfit._typing import BoolVector, IntVector, Vector
from hushfit.data.rows import PersonIndex
from hushfit.data.schema import (
    CategoricalColumn,
    Column,
    CountTarget,
    DateColumn,
    NumericColumn,
    OrdinalTarget,
    Schema,
    Target,
    label_of,
    number_of,
)
from hushfit.data.tables import Table, codes_of, days_of, numbers_of, table_batches
from hushfit.unit import PrivacyUnit


@dataclass(frozen=True)
class ColumnCounts:
    """Counts of the cells of one column that do not match the schema.

    Parameters
    ----------
    name : str
    rows, missing : int
    unreadable : int
        Cells that are no number, or no date; they count as missing.
    outside : int
        Numbers or dates outside the range; they are clipped to it.
    unlisted : int
        Cells with a label that is not among the categories.
    unused : tuple of str
        Categories that no row has.
    kind : str
        Kind of the column.
    """

    name: str
    rows: int = 0
    missing: int = 0
    unreadable: int = 0
    outside: int = 0
    unlisted: int = 0
    unused: tuple[str, ...] = ()
    kind: str = "numeric"

    @property
    def remarks(self) -> list[str]:
        """What may be wrong, as text."""
        texts = ["every cell is missing"] if self.rows and self.missing == self.rows else []
        for count, what in (
            (
                self.unreadable,
                f"are no {'date' if self.kind == 'date' else 'number'} and count as missing",
            ),
            (self.outside, "lie outside the range"),
            (self.unlisted, "have a label that is not listed"),
        ):
            texts += [f"{count} of {self.rows} cells {what}"] if count else []
        return texts + ([f"no row has {', '.join(map(repr, self.unused))}"] if self.unused else [])

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "remarks": self.remarks}


@dataclass(frozen=True)
class PersonCounts:
    """How the rows of a table are spread over persons.

    Parameters
    ----------
    column : str
    rows, missing, persons : int
        A row whose id is missing is a person.
    median, ninety, ninety_nine, most : int
        Rows per person: the median, what 90 and 99 percent of persons do not exceed, the maximum.
    unused : int
        Rows that a fit would not use, since their person has more than it may use.
    bound : int
        The most rows of a person that are used.
    """

    column: str
    rows: int
    missing: int
    persons: int
    median: int
    ninety: int
    ninety_nine: int
    most: int
    unused: int
    bound: int

    @classmethod
    def of(
        cls, codes: IntVector, n_persons: int, missing: int, unit: PrivacyUnit
    ) -> "PersonCounts":
        """Count the rows of each person."""
        counts = np.bincount(codes, minlength=max(n_persons, 1))
        levels = [0.5, 0.9, 0.99, 1.0]
        median, ninety, ninety_nine, most = (
            int(count) for count in np.quantile(counts, levels, method="inverted_cdf")
        )
        bound = unit.rows_per_person
        unused = int(np.maximum(counts - bound, 0).sum())
        place = str(unit.column), len(codes), missing, n_persons
        return cls(*place, median, ninety, ninety_nine, most, unused, bound)

    @property
    def remarks(self) -> list[str]:
        """What may be wrong, as text."""
        texts = []
        if self.missing == self.rows:
            texts.append("no row has an id: a fit is refused")
        elif self.missing:
            texts.append(f"{self.missing} of {self.rows} rows have no id: each is its own person")
        if self.persons < 2:
            texts.append("there are fewer than two persons: a fit is refused")
        elif self.persons == self.rows:
            texts.append("every person has one row: the fit is that of single rows")
        if self.unused:
            texts.append(f"{self.unused} rows are beyond the first {self.bound} of their persons")
        if self.persons > 20 and self.most > max(20, self.rows // 10):
            texts.append(
                f"one id has {self.most} of {self.rows} rows: is it a mark for missing ids? Then "
                "leave those cells empty"
            )
        return texts

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "remarks": self.remarks}


@dataclass
class _Tally:
    """Counts of one column so far."""

    column: Column | Target
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("rows", "missing", "unreadable", "outside", "unlisted"), 0
        )
    )
    seen: set[int] = field(default_factory=set)

    def add(self, cells: Any) -> None:
        missing = _missing(cells, self.column)
        self._add(rows=len(cells), missing=int(missing.sum()))
        labels = self._labels
        if labels is not None:
            codes: IntVector = codes_of(cells, labels)
            self._add(unlisted=int(((codes == len(labels.categories)) & ~missing).sum()))
            self.seen.update(np.unique(codes).tolist())
            return
        match self.column:
            case NumericColumn():
                self._count_numbers(cells, self.column, missing)
            case CountTarget():
                self._count_numbers(cells, self.column.numbers, missing)
            case DateColumn():
                self._count(days_of(cells, self.column), *self.column.ends, missing)

    def _count_numbers(self, cells: Any, column: NumericColumn, missing: BoolVector) -> None:
        numbers = column.numbers(numbers_of(cells, column, column.decimal))
        self._count(numbers, column.low, column.high, missing)

    def _count(self, numbers: Vector, low: float, high: float, missing: BoolVector) -> None:
        outside = (numbers < low) | (numbers > high)
        unreadable = np.isnan(numbers) & ~missing
        self._add(unreadable=int(unreadable.sum()), outside=int(outside.sum()))

    @property
    def _labels(self) -> CategoricalColumn | None:
        """The labels or grades; None for numbers."""
        if isinstance(self.column, OrdinalTarget):
            return self.column.labels
        return self.column if isinstance(self.column, CategoricalColumn) else None

    def _add(self, **found: int) -> None:
        for name, count in found.items():
            self.counts[name] += count

    def result(self) -> ColumnCounts:
        categories = () if self._labels is None else self._labels.categories
        unused = tuple(category for k, category in enumerate(categories) if k not in self.seen)
        return ColumnCounts(self.column.name, **self.counts, unused=unused, kind=self.column.kind)


def _missing(cells: Any, column: Column | Target) -> BoolVector:
    """Which cells are null, NaN, blank, or one of the marks of missing values."""
    own = DateColumn | CountTarget | OrdinalTarget
    marks = () if isinstance(column, own) else column.missing_values
    gaps = {label_of(mark) for mark in (None, "", *marks)}
    if str(cells.type) in ("float", "double", "halffloat"):
        numbers = np.asarray(cells.to_numpy(zero_copy_only=False), dtype=np.float64)
        return np.isnan(numbers) | np.isin(numbers, [number_of(mark) for mark in marks])
    return np.array([label_of(cell) in gaps for cell in cells.to_pylist()], dtype=bool)


def compare(
    tables: Sequence[Table], schema: Schema, watch: Any = None
) -> tuple[list[ColumnCounts], PersonCounts | None]:
    """Count, for the target and every column, the cells that a fit could not use, and the rows of
    persons.

    Parameters
    ----------
    tables : sequence of Table
    schema : Schema
    watch : callable, optional
        Called with the number of bytes read since the last call.

    Returns
    -------
    columns : list of ColumnCounts
        The target's first, if there is one.
    persons : PersonCounts or None
        None if the schema names no column of ids.
    """
    columns = [*([schema.target] if schema.target is not None else []), *schema.columns]
    tallies = [_Tally(column) for column in columns]
    names = [column.name for column in columns] + ([schema.person] if schema.person else [])
    index, codes = PersonIndex(), [np.empty(0, np.int64)]
    for table in tables:
        for batch in table_batches(table, names, watch):
            for tally in tallies:
                tally.add(batch.column(tally.column.name))
            if schema.person:
                codes.append(index.add(batch.column(schema.person)))
    found = [tally.result() for tally in tallies]
    if not schema.person:
        return found, None
    missing = sum(int((some < 0).sum()) for some in codes)
    return found, PersonCounts.of(*index.numbered(codes), missing, schema.privacy_unit)
