"""Which columns an additive model gets knots for, and how many: a rule of public numbers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hushfit.errors import InvalidArgument
from hushfit.features._additive_map import HAT_WEIGHT, LOW_MASS, AdditiveMap, knot_values
from hushfit.features._input_column import InputColumn

MOST_INTERVALS = 8


@dataclass(frozen=True)
class MapRule:
    """How many intervals numeric columns get, from public numbers: measured for one kind of fit.

    Parameters
    ----------
    ladder : sequence of (int, float)
        Numbers of intervals, each with the size of the data from which it is used, relative to
        p^1.5 for p numeric columns.
    size_per_output : float
        Intervals are halved while the size of the data is smaller than that for each output.
    low_centred : int
        Columns whose range starts at zero are centred near it up to so many intervals: there noise
        is large, and rows that are scaled to length one must be short.
    hat_weight : float
        Weight of the hat functions against the linear part of a column.
    bounded : bool
        Whether outputs must be in [-1, 1], as for records that keep their lengths.
    """

    ladder: tuple[tuple[int, float], ...]
    size_per_output: float
    low_centred: int
    hat_weight: float
    bounded: bool

    def intervals(self, size: float, numeric_columns: int) -> int:
        """Intervals per numeric column, before they are halved for the number of outputs.

        Parameters
        ----------
        size : float
            N = n mu / a: number of units, times the Gaussian parameter of the budget, over 2 for
            replace-one and 1 for add-remove.
        numeric_columns : int
            p, the columns with more than two possible values.

        Returns
        -------
        int
        """
        unit = numeric_columns**1.5
        return max(count for count, least in self.ladder if size >= least * unit)

    def map(self, columns: Sequence[InputColumn], intervals: int) -> AdditiveMap:
        """The map with so many intervals, or fewer for columns of few whole numbers.

        Parameters
        ----------
        columns : sequence of InputColumn
        intervals : int

        Returns
        -------
        AdditiveMap
        """
        counts = [
            min(intervals, column.steps or intervals) if column.is_numeric else 0
            for column in columns
        ]
        low = [column.from_zero and intervals <= self.low_centred for column in columns]
        tables = {
            (count, is_low): knot_values(count, LOW_MASS if is_low else 0.0, self.hat_weight)
            for count, is_low in set(zip(counts, low, strict=True))
            if count
        }
        fills = tuple(column.fill for column in columns)
        made = AdditiveMap(tuple(counts), tuple(low), fills, tables)
        return made.bounded() if self.bounded else made


# Rows of length one, and rows that keep their lengths: docs/algorithms/additive.md has the figures.
CLASSIFICATION = MapRule(
    ladder=((1, 0.0), (2, 2.5), (4, 6.0), (MOST_INTERVALS, 40.0)),
    size_per_output=0.0,
    low_centred=2,
    hat_weight=HAT_WEIGHT,
    bounded=False,
)
REGRESSION = MapRule(
    ladder=((MOST_INTERVALS, 0.0),),
    size_per_output=7.0,
    low_centred=0,
    hat_weight=0.25,
    bounded=True,
)


def additive_map(
    columns: Sequence[InputColumn],
    size: float,
    most_outputs: int,
    most_intervals: int = MOST_INTERVALS,
    rule: MapRule = CLASSIFICATION,
) -> AdditiveMap:
    """The map of the rule.

    Parameters
    ----------
    columns : sequence of InputColumn
    size : float
        N, as `MapRule.intervals` takes it.
    most_outputs : int
        The number of intervals is halved while there are more outputs.
    most_intervals : int, default=8
        A smaller one makes a smaller model; 1 gives straight lines.
    rule : MapRule, default=CLASSIFICATION

    Returns
    -------
    AdditiveMap
    """
    p = sum(column.is_numeric for column in columns)
    intervals = min(rule.intervals(size, p), most_intervals)
    made = rule.map(columns, intervals)
    while intervals > 1 and (
        made.n_outputs > most_outputs or size < rule.size_per_output * made.n_outputs
    ):
        intervals //= 2
        made = rule.map(columns, intervals)
    return made


@dataclass(frozen=True)
class AdditiveFeatures:
    """Settings of an additive model: what is public about columns, and shapes that are wanted.

    ``features="additive"`` is `AdditiveFeatures()`. A schema states the first three itself.

    Parameters
    ----------
    binary : sequence of str or int
        Columns with two possible values, such as indicators: they stay as they are.
    integer : sequence of str or int
        Columns of whole numbers: with few of them, fewer knots.
    missing : sequence of str or int
        Columns whose values may be missing: NaN becomes the middle of the range, and an indicator
        is added. Elsewhere a row with a missing value counts as the zero record.
    monotone : mapping of str or int to 1 or -1
        Columns with a rising or falling shape. The released shape is replaced by the nearest one
        that rises or falls: post-processing.
    smoothness : float, default=0
        Weight of the integrated squared second derivative of each shape, with ranges taken as
        [0, 1], against the mean squared change of it; about 1e-4 to 1e-2. Post-processing.
    most_intervals : int, default=8
        Upper limit on the intervals of a column. With 1, which ``features="centred"`` is, effects
        are straight lines: a linear model whose numeric columns are centred in their range and
        three times as long.

    Examples
    --------
    >>> from hushfit.features import AdditiveFeatures
    >>> from hushfit import PrivateLogisticRegression
    >>> PrivateLogisticRegression(
    ...     feature_bounds=([17, 0], [90, 1]),
    ...     features=AdditiveFeatures(binary=[1], monotone={0: 1}),
    ... ).quote(n_units=10_000, n_features=2, n_classes=2).plan.parts[0].name
    'second moment'
    """

    binary: tuple[str | int, ...] = ()
    integer: tuple[str | int, ...] = ()
    missing: tuple[str | int, ...] = ()
    monotone: Mapping[str | int, int] = field(default_factory=dict)
    smoothness: float = 0.0
    most_intervals: int = MOST_INTERVALS

    def __post_init__(self) -> None:
        for name in ("binary", "integer", "missing"):
            given = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, Sequence):
                raise InvalidArgument(f"{name}={given!r} should be a list of columns.")
            object.__setattr__(self, name, tuple(given))
        if not isinstance(self.monotone, Mapping) or any(
            way not in (1, -1) for way in self.monotone.values()
        ):
            raise InvalidArgument(
                f"monotone={self.monotone!r} should map columns to 1 (rising) or -1 (falling), "
                "such as {'age': 1}."
            )
        smoothness = float(self.smoothness)
        if not 0.0 <= smoothness < math.inf:
            raise InvalidArgument(
                f"smoothness={self.smoothness!r} should be a number from 0, such as 1e-3."
            )
        if self.most_intervals not in range(1, MOST_INTERVALS + 1):
            raise InvalidArgument(
                f"most_intervals={self.most_intervals!r} should be a number from 1 to "
                f"{MOST_INTERVALS}."
            )

    def columns(self, names: Sequence[str], low: Any, high: Any) -> list[InputColumn]:
        """The columns of an array with public ranges.

        Parameters
        ----------
        names : sequence of str
        low, high : sequence of float
            The range of each column.

        Returns
        -------
        list of InputColumn
        """
        binary, integer = self._places(self.binary, names), self._places(self.integer, names)
        missing = self._places(self.missing, names)
        return [
            InputColumn(
                name,
                1
                if j in binary
                else max(math.floor(high[j] - low[j]), 1)
                if j in integer
                else None,
                0.5 if j in missing else None,
                bool(low[j] == 0),
            )
            for j, name in enumerate(names)
        ]

    def directions(self, columns: Sequence[InputColumn]) -> dict[int, int]:
        """Direction of each monotone column, by its number.

        Parameters
        ----------
        columns : sequence of InputColumn

        Returns
        -------
        dict of int to int
        """
        names = [column.name for column in columns]
        return {
            place: way
            for column, way in self.monotone.items()
            for place in self._places([column], names)
        }

    @staticmethod
    def _places(given: Sequence[str | int], names: Sequence[str]) -> set[int]:
        return {column_place(column, names, "the additive features name") for column in given}


def column_place(column: str | int, names: Sequence[str], use: str) -> int:
    """The number of a column that is given by its name or number; ``use`` begins the error."""
    place = names.index(column) if column in names else column
    if isinstance(place, str) or not 0 <= int(place) < len(names):
        raise InvalidArgument(
            f"{use} the column {column!r}, which is not there. Use a name or a number below "
            f"{len(names)}."
        )
    return int(place)
