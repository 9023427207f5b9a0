"""The additive map: every numeric column becomes a few columns, piecewise linear in it.

A linear model on them is an additive model: a sum of one piecewise linear function per column. The
map is public, learns nothing and costs no budget. The rule that chooses the number of knots, and
how it was found, is in docs/algorithms/additive.md.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hushfit._arrays import read_only
from hushfit._typing import AnyArray, IntVector, Matrix, Vector
from hushfit.errors import InvalidArgument
from hushfit.kernels import splines

MAX_INTERVALS = 64
HAT_WEIGHT = 2.0
# Amounts, counts and other numbers whose range starts at zero crowd there. Their rows are short if
# features are centred as if this share of them were at the low end; long rows lose what they say
# when they are scaled to length one.
LOW_MASS = 0.5
# Largest value of a bounded output: rounding between two knots must not lead beyond one.
_WITHIN = 1.0 - 2.0**-40


def hat_means(intervals: int, low_mass: float = 0.0) -> Vector:
    """Mean of each hat function if a share of the rows lies at the low end of the range, and the
    rest evenly over it.
    """
    means = np.full(intervals + 1, (1.0 - low_mass) / intervals)
    means[[0, -1]] /= 2
    means[0] += low_mass
    return means


def knot_values(intervals: int, low_mass: float = 0.0, hat_weight: float = HAT_WEIGHT) -> Matrix:
    """Values of the columns of one variable at its knots.

    The features are the variable and its hat functions, all centred at public means:
    ``[v - m, w (h_0 - m_0), ..., w (h_K - m_K)]``. They span K dimensions only. K columns with
    the same lengths and inner products are their coordinates along the eigenvectors of their
    second moment.

    Parameters
    ----------
    intervals : int
        K, at least 1.
    low_mass : float, default=0
        Means are those of rows of which this share lies at the low end, and the rest evenly.
    hat_weight : float, default=2
        w, the weight of the hat functions against the linear part.

    Returns
    -------
    array of shape (intervals + 1, intervals)
        Linear between knots; positive at the last one.
    """
    means = hat_means(intervals, low_mass)
    at_knots = np.column_stack(
        [
            np.linspace(0.0, 1.0, intervals + 1) - (1.0 - low_mass) / 2,
            hat_weight * (np.eye(intervals + 1) - means),
        ]
    )
    # Means of the products of two hat functions: first over the range, then with the low end.
    overlaps = np.diag(np.full(intervals + 1, 4.0)) + np.eye(intervals + 1, k=1)
    overlaps += np.eye(intervals + 1, k=-1)
    overlaps[[0, -1], [0, -1]] = 2.0
    overlaps *= (1.0 - low_mass) / (6 * intervals)
    overlaps[0, 0] += low_mass
    _, vectors = np.linalg.eigh(at_knots.T @ overlaps @ at_knots)
    values: Matrix = at_knots @ vectors[:, ::-1][:, :intervals]
    return values * np.where(values[-1] < 0, -1.0, 1.0)


@dataclass(frozen=True)
class Span:
    """The outputs of one input column: where they are, and what they are.

    Parameters
    ----------
    start : int
        The first one.
    intervals : int
        How many are piecewise linear functions of the value; 0 if the value is passed on.
    low : bool
        Whether it is centred as if half of the rows lay at the low end of the range.
    has_indicator : bool
        Whether the last output is 1 for a missing value.
    """

    start: int
    intervals: int
    low: bool
    has_indicator: bool

    @property
    def shape(self) -> slice:
        """The outputs that are functions of the value."""
        return slice(self.start, self.start + max(self.intervals, 1))

    @property
    def width(self) -> int:
        return max(self.intervals, 1) + self.has_indicator


@dataclass(frozen=True, eq=False)
class AdditiveMap:
    """Every numeric column as a few piecewise linear columns: a public feature map.

    Parameters
    ----------
    intervals : sequence of int
        For each column, the number of intervals between its knots, which lie at equal distances in
        [0, 1]; 0 passes the column on as it is.
    low : sequence of bool, optional
        For each column, whether it is centred as if half of the rows lay at the low end of the
        range, as suits amounts and counts. Empty if none is.
    tables : mapping of (int, bool) to array of shape (K + 1, K), optional
        For each number of intervals and way of centring, the values of the columns at the knots;
        computed where missing.
    fills : sequence of float or None, optional
        For each column, what a missing value becomes; a column with a fill also gets an indicator
        of missing values. None: a row with a missing value there counts as the zero record. Empty
        if no column has one.

    Examples
    --------
    >>> import numpy as np
    >>> AdditiveMap((1, 0)).transform(np.array([[0.0, 1.0], [0.5, 0.0], [1.0, 1.0]])).tolist()
    [[-1.5, 1.0], [0.0, 0.0], [1.5, 1.0]]
    """

    intervals: tuple[int, ...]
    low: tuple[bool, ...] = ()
    fills: tuple[float | None, ...] = ()
    tables: Mapping[tuple[int, bool], Matrix] = field(default_factory=dict)

    kind: ClassVar[str] = "additive"
    kept: ClassVar[bool] = False
    reads_text: ClassVar[bool] = False

    def __post_init__(self) -> None:
        counts = tuple(int(count) for count in self.intervals)
        if not counts or not all(0 <= count <= MAX_INTERVALS for count in counts):
            raise InvalidArgument(
                f"intervals should be numbers from 0 to {MAX_INTERVALS}, one for each column; got "
                f"{self.intervals!r}."
            )
        fills = tuple(self.fills) or (None,) * len(counts)
        if len(fills) != len(counts) or not all(f is None or 0 <= f <= 1 for f in fills):
            raise InvalidArgument(
                "fills should be numbers in [0, 1] or None, one for each of the "
                f"{len(counts)} columns; got {self.fills!r}."
            )
        low = tuple(map(bool, self.low)) or (False,) * len(counts)
        if len(low) != len(counts):
            raise InvalidArgument(
                f"low should be one truth value for each of the {len(counts)} columns; got "
                f"{self.low!r}."
            )
        needed = sorted({key for key in zip(counts, low, strict=True) if key[0]})
        tables = {
            key: read_only(
                _table(self.tables[key], key[0])
                if key in self.tables
                else knot_values(key[0], LOW_MASS if key[1] else 0.0)
            )
            for key in needed
        }
        object.__setattr__(self, "intervals", counts)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "fills", fills)
        object.__setattr__(self, "tables", tables)

    @property
    def n_inputs(self) -> int:
        return len(self.intervals)

    @property
    def rotated(self) -> bool:
        return max(self.intervals) > 1

    @cached_property
    def n_outputs(self) -> int:
        return sum(span.width for span in self.spans)

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """The outputs of each input column."""
        spans, start = [], 0
        for count, low, fill in zip(self.intervals, self.low, self.fills, strict=True):
            spans.append(Span(start, count, low, fill is not None))
            start += spans[-1].width
        return tuple(spans)

    @cached_property
    def row_norm(self) -> float:
        """Bound on the norm of a mapped row of values in [0, 1]."""
        squares = [
            (float((self.table(span) ** 2).sum(axis=1).max()) if span.intervals else 1.0)
            + span.has_indicator
            for span in self.spans
        ]
        return math.sqrt(sum(squares))

    def bounded(self) -> "AdditiveMap":
        """The same with outputs in [-1, 1]: those of a column are divided by the largest value.

        Returns
        -------
        AdditiveMap
        """
        tables = {
            key: table * (_WITHIN / float(np.abs(table).max()))
            for key, table in self.tables.items()
        }
        return replace(self, tables=tables)

    def leaves_sparse(self, sparse: bool) -> bool:
        return sparse

    def table(self, span: Span) -> Matrix:
        """Values at the knots of the outputs of one column."""
        return self.tables[span.intervals, span.low]

    def transform(self, X: AnyArray) -> Matrix:
        """Map the rows of an array with values in [0, 1].

        Parameters
        ----------
        X : array of shape (n, n_inputs)

        Returns
        -------
        array of shape (n, n_outputs)
        """
        mapped = np.empty((len(X), self.n_outputs))
        splines.expand_dense(np.asarray(X), *self._arrays, mapped.reshape(-1))
        return mapped

    def transform_sparse(self, X: Any) -> Any:
        """Map the rows of a CSR matrix with increasing indices and values in [0, 1].

        Parameters
        ----------
        X : CSR matrix of shape (n, n_inputs)

        Returns
        -------
        CSR matrix of shape (n, n_outputs)
        """
        parts = self.expanded(X.data, X.indices, X.indptr)
        return type(X)(parts, shape=(X.shape[0], self.n_outputs))

    def expanded(
        self, data: AnyArray, indices: AnyArray, indptr: AnyArray
    ) -> tuple[Vector, IntVector, IntVector]:
        """The same for the three arrays of a CSR matrix, or of some of its rows."""
        ends = np.zeros(len(indptr), dtype=np.int64)
        splines.expanded_ends(indices, indptr, self._is_full, self._full_width, ends)
        values, places = np.empty(ends[-1]), np.empty(ends[-1], dtype=np.int64)
        full = np.flatnonzero(self._is_full)
        splines.expand_csr(data, indices, indptr, full, *self._arrays, ends, values, places)
        return values, places, ends

    @cached_property
    def _arrays(self) -> tuple[IntVector, IntVector, Vector, IntVector, Vector]:
        """Intervals, starts, fills, offsets and tables, as compiled code reads them."""
        places, flat, size = {(0, False): 0, (0, True): 0}, [np.zeros(1)], 1
        for key, table in self.tables.items():
            places[key] = size
            flat.append(np.ravel(table))
            size += table.size
        return (
            np.array(self.intervals, dtype=np.int64),
            np.array([span.start for span in self.spans], dtype=np.int64),
            np.array([np.nan if fill is None else fill for fill in self.fills]),
            np.array([places[span.intervals, span.low] for span in self.spans], dtype=np.int64),
            np.concatenate(flat),
        )

    @cached_property
    def _is_full(self) -> AnyArray:
        """Columns in which a zero is mapped to other numbers than zeros, or may be missing."""
        return np.array([span.intervals > 0 or span.has_indicator for span in self.spans])

    @cached_property
    def _full_width(self) -> int:
        return sum(span.width for span, full in zip(self.spans, self._is_full, strict=True) if full)

    def output_names(self, names: Sequence[str]) -> list[str]:
        """Names of the outputs, given those of the inputs.

        Parameters
        ----------
        names : sequence of str

        Returns
        -------
        list of str
            A numeric column gives ``age[1]``, ``age[2]``, ..., and perhaps ``age=<missing>``.
        """
        made = []
        for name, span in zip(names, self.spans, strict=True):
            made += (
                [f"{name}[{k + 1}]" for k in range(span.intervals)] if span.intervals else [name]
            )
            made += [f"{name}=<missing>"] if span.has_indicator else []
        return made

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, as in a model file."""
        return {
            "kind": self.kind,
            "intervals": list(self.intervals),
            "low": list(self.low),
            "fills": list(self.fills),
            "tables": [
                {"intervals": count, "low": low, "values": table.tolist()}
                for (count, low), table in self.tables.items()
            ],
        }

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> "AdditiveMap":
        """Read what `to_dict` writes.

        Parameters
        ----------
        described : mapping

        Returns
        -------
        AdditiveMap
        """
        if set(described) != {"kind", "intervals", "low", "fills", "tables"}:
            raise InvalidArgument(
                "the feature map has missing or unknown fields. Use what was written, unedited."
            )
        if described["kind"] != cls.kind:
            raise InvalidArgument(
                f"the feature map has kind={described['kind']!r}, not {cls.kind!r}."
            )
        counts, low = described["intervals"], described["low"]
        if not all(type(count) is int for count in counts) or not all(
            type(value) is bool for value in low
        ):
            raise InvalidArgument("the feature map has a number or truth value of another type.")
        tables = {
            (table["intervals"], table["low"]): np.array(table["values"], dtype=np.float64)
            for table in described["tables"]
        }
        if set(tables) != {key for key in zip(counts, low, strict=True) if key[0]}:
            raise InvalidArgument("the tables of the feature map do not suit its intervals.")
        return cls(tuple(counts), tuple(low), tuple(described["fills"]), tables)


def _table(values: Any, intervals: int) -> Matrix:
    """Values at the knots, checked."""
    table = np.asarray(values, dtype=np.float64)
    if table.shape != (intervals + 1, intervals) or not np.isfinite(table).all():
        raise InvalidArgument(
            f"the table for {intervals} intervals should be {intervals + 1} x {intervals} finite "
            f"numbers, and has the shape {table.shape}."
        )
    return table
