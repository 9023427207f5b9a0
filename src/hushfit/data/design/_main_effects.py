"""The columns of a schema as those of an ordinary regression table: numbers in their own units,
labels against the first one.

A row with a label that the schema does not list, or without a date, has no place in such a table:
it counts as the zero record. So does one without a number, if the schema does not say what a
missing one becomes. The first label of a column is public, and so is every range.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from hushfit._typing import AnyArray, BoolVector, IntVector, Matrix, Vector
from hushfit.data.schema import (
    MISSING_VALUE,
    OTHER,
    TRANSFORMS,
    CategoricalColumn,
    DateColumn,
    HashedColumn,
    NumericColumn,
    Schema,
    encode,
)
from hushfit.errors import InvalidArgument


class Design(Protocol):
    """The columns of a regression table, computed of each row by itself; all of it is public."""

    @property
    def names(self) -> list[str]: ...

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """The public range of every column."""

    @property
    def formula(self) -> str | None:
        """The formula that says what the columns are, if there is one."""

    def rows(self, table: Any) -> Matrix:
        """The columns of the rows of a table; NaN where a label has no place among them."""

    def from_encoded(self, X: Any) -> Matrix:
        """The same of rows that the schema has encoded."""


@dataclass(frozen=True)
class _Kept:
    """An encoded feature that is a column, and its range in the units of the table."""

    place: int
    name: str
    low: float = 0.0
    high: float = 1.0
    is_number: bool = False


@dataclass(frozen=True)
class MainEffects:
    """All columns of a schema, each by itself.

    Parameters
    ----------
    schema : Schema
    encoded_by : Schema, optional
        By which rows are encoded, if it is `telling_gaps` of the schema.

    Examples
    --------
    >>> from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema
    >>> schema = Schema((NumericColumn("age", 0, 90), CategoricalColumn("ward", ("a", "b", "c"))))
    >>> design = MainEffects(schema)
    >>> design.names
    ['age', 'ward=b', 'ward=c']
    >>> design.rows({"age": [45, 95], "ward": ["c", "a"]}).tolist()
    [[45.0, 0.0, 1.0], [90.0, 0.0, 0.0]]
    """

    schema: Schema
    encoded_by: Schema | None = None
    formula: ClassVar[None] = None

    def __post_init__(self) -> None:
        if not self.kept:
            raise InvalidArgument(
                "the schema has no column with a number or a second label, so there is nothing to "
                "estimate. Add one."
            )

    @cached_property
    def kept(self) -> tuple[_Kept, ...]:
        """The encoded features that are columns."""
        found: list[_Kept] = []
        at = 0
        for column, encoded in self._columns:
            found += _columns_of(column, at)
            at += len(encoded.feature_names)
        return tuple(found)

    @property
    def tells_gaps(self) -> bool:
        """Whether rows without a number that the schema does not fill are left out."""
        return self._encoding == telling_gaps(self.schema)

    @property
    def _encoding(self) -> Schema:
        return self.schema if self.encoded_by is None else self.encoded_by

    @property
    def _columns(self) -> Iterator[tuple[Any, Any]]:
        """The columns of the schema, and as they are encoded."""
        return zip(self.schema.columns, self._encoding.columns, strict=True)

    @cached_property
    def left_out(self) -> BoolVector:
        """For each encoded feature, whether its rows count as the zero record."""
        return np.concatenate([_is_left_out(*pair) for pair in self._columns])

    @cached_property
    def places(self) -> IntVector:
        """For each encoded feature, its place among the columns; -1 if it has none."""
        places = np.full(len(self.left_out), -1)
        places[[one.place for one in self.kept]] = np.arange(len(self.kept))
        return places

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.kept]

    @property
    def bounds(self) -> list[tuple[float, float]]:
        return [(one.low, one.high) for one in self.kept]

    @cached_property
    def is_number(self) -> BoolVector:
        """Which columns are numbers, and not indicators."""
        return np.array([one.is_number for one in self.kept])

    def rows(self, table: Any) -> Matrix:
        return self.from_encoded(encode(table, self._encoding)[0])

    def from_encoded(self, X: Any) -> Matrix:
        """The columns of encoded rows.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_encoded)
            With entries in [0, 1].

        Returns
        -------
        array of shape (n, n_columns)
            In the units of the table; NaN where a label is not listed or a cell is missing: such a
            row counts as the zero record in a fit.
        """
        dense = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
        low, high = np.array(self.bounds).T
        columns = low + dense[:, [one.place for one in self.kept]] * (high - low)
        widths = [len(encoded.feature_names) for _, encoded in self._columns]
        owners = np.repeat(np.arange(len(widths)), widths)
        own = owners[[one.place for one in self.kept]]
        for feature in np.flatnonzero(self.left_out):
            columns[np.ix_(dense[:, feature] > 0, own == owners[feature])] = np.nan
        return np.asarray(columns, dtype=np.float64)


def telling_gaps(schema: Schema) -> Schema:
    """The schema by which rows are encoded for a fit with intervals: an indicator says where a
    number is missing, unless the schema says what becomes of it.

    A filled number would bias every coefficient.

    Parameters
    ----------
    schema : Schema

    Returns
    -------
    Schema

    Examples
    --------
    >>> from hushfit.data.design import MainEffects, telling_gaps
    >>> from hushfit.data.schema import NumericColumn, Schema
    >>> schema = Schema((NumericColumn("age", 0, 90), NumericColumn("beds", 0, 9, fill=2)))
    >>> telling_gaps(schema).feature_names
    ['age', 'age=<missing>', 'beds']
    >>> MainEffects(schema, telling_gaps(schema)).rows({"age": [30, None], "beds": [1, 2]}).tolist()
    [[30.0, 1.0], [nan, 2.0]]
    """
    return replace(schema, columns=tuple(map(_telling_gaps, schema.columns)))


def _telling_gaps(column: Any) -> Any:
    """The column, with an indicator if nothing is said about what a missing number becomes."""
    if isinstance(column, NumericColumn) and column.missing == "fill" and column.fill is None:
        return replace(column, missing="indicator")
    return column


def _columns_of(column: Any, at: int) -> Iterator[_Kept]:
    """The columns of one column of a schema, whose features begin at a place."""
    if isinstance(column, HashedColumn):
        raise InvalidArgument(
            f"column {column.name!r} is hashed: a coefficient of several labels together means "
            "nothing. List its categories in the schema, or drop it."
        )
    if isinstance(column, NumericColumn):
        ends: Vector = TRANSFORMS[column.transform](np.array([column.low, column.high], float))
        plain = column.transform == "none"
        name = column.name if plain else f"{column.transform}({column.name})"
        yield _Kept(at, name, float(ends[0]), float(ends[1]), is_number=True)
        yield from (_Kept(at + 1, name) for name in column.feature_names[1:])
        return
    if isinstance(column, CategoricalColumn):
        labels = enumerate(column.feature_names)
        rest = f"{column.name}={OTHER}"
        yield from (_Kept(at + k, name) for k, name in labels if k > 0 and name != rest)
        return
    start = 0
    for part, width in zip(column.parts, _part_widths(column), strict=True):
        if part == "since":
            first, last = column.ends
            name = f"{column.name} (days since {column.low})"
            yield _Kept(at + start, name, 0.0, float(last - first), is_number=True)
        else:
            for k in range(start + 1, start + width - 1):
                yield _Kept(at + k, column.feature_names[k])
        start += width


def _part_widths(column: DateColumn) -> list[int]:
    """Features of each part of a date, the indicator of missing ones among them."""
    widths = list(column.widths)
    return [widths.pop(0) + (widths.pop(0) if part == "since" else 0) for part in column.parts]


def _is_left_out(column: Any, encoded: Any) -> AnyArray:
    """Which encoded features of a column stand for a label that is not listed, for no date, or for
    a missing number that nothing is said about.
    """
    if isinstance(column, CategoricalColumn):
        return np.array([name == f"{column.name}={OTHER}" for name in column.feature_names])
    if isinstance(column, DateColumn):
        return np.array([name.endswith(f"={MISSING_VALUE}") for name in column.feature_names])
    stated = len(column.feature_names)
    return np.arange(len(encoded.feature_names)) >= stated
