"""A date with a public range: how long after its beginning, and where in the year and week."""

import math
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, ClassVar

import numpy as np

from hushfit._typing import AnyArray, IntVector, Matrix, Vector
from hushfit.data.schema._cells import MISSING_VALUE, label_of, listed
from hushfit.data.schema._checks import refuse_nameless
from hushfit.errors import InvalidArgument
from hushfit.features import InputColumn

PARTS = ("since", "year", "month", "weekday")
_MONTHS = tuple(f"{k:02d}" for k in range(1, 13))
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MOST_YEARS = 200
# What the share of the range becomes where the date is missing.
_MIDDLE = 0.5
_UNIX_DAY = date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class DateColumn:
    """A date with a public range.

    ``since`` is one feature in [0, 1], the share of the range that has passed; ``year``, ``month``
    and ``weekday`` have one indicator for each. Each part has one more for missing dates.

    Parameters
    ----------
    name : str
        Name of the column in the table.
    low, high : str or date
        Public range, as 2015-01-01. Dates outside are moved to its ends, for ``since`` and
        ``year``.
    parts : sequence of {"since", "year", "month", "weekday"}, default=("since", "month", "weekday")
    format : str, optional
        How cells are written, such as "%d/%m/%Y". ISO dates (2015-01-31, perhaps with a time) are
        always read.

    Examples
    --------
    >>> from hushfit.data.schema import DateColumn, encode
    >>> import numpy as np
    >>> admitted = DateColumn("admitted", "2020-01-01", "2020-12-31", parts=("since",))
    >>> admitted.encode(np.array(["2020-12-31", "2019-05-05", ""])).tolist()
    [[1.0, 0.0], [0.0, 0.0], [0.5, 1.0]]
    """

    name: str
    low: str
    high: str
    parts: tuple[str, ...] = ("since", "month", "weekday")
    format: str | None = None
    kind: ClassVar[str] = "date"

    def __post_init__(self) -> None:
        refuse_nameless(self.name)
        for end in ("low", "high"):
            object.__setattr__(self, end, _end(getattr(self, end), f"{end} of {self.name!r}"))
        if not self.low < self.high:
            raise InvalidArgument(
                f"column {self.name!r} has the range {self.low} to {self.high}. Give low < high."
            )
        given = self.parts
        listed_ones = isinstance(given, list | tuple) and len(given) > 0
        if not listed_ones or len(set(given)) < len(given) or not set(given) <= set(PARTS):
            raise InvalidArgument(
                f"column {self.name!r} has parts={given!r}. Choose some of {', '.join(PARTS)}, "
                "each once."
            )
        object.__setattr__(self, "parts", tuple(given))
        if "year" in given and len(self._years) > _MOST_YEARS:
            raise InvalidArgument(
                f"column {self.name!r} has a range of {len(self._years)} years, each of which "
                f"would be a feature. Leave 'year' out of parts, or give at most {_MOST_YEARS}."
            )
        if self.format is not None and (not isinstance(self.format, str) or "%" not in self.format):
            raise InvalidArgument(
                f"column {self.name!r} has format={self.format!r}. Write, for instance, '%d/%m/%Y'."
            )

    @property
    def ends(self) -> tuple[int, int]:
        """The range, as numbers of days."""
        return date.fromisoformat(self.low).toordinal(), date.fromisoformat(self.high).toordinal()

    @property
    def _years(self) -> range:
        return range(int(self.low[:4]), int(self.high[:4]) + 1)

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, part by part."""
        return [name for part in self.parts for name in self._names(part)]

    def _names(self, part: str) -> list[str]:
        if part == "since":
            return [self.name, f"{self.name}={MISSING_VALUE}"]
        labels = {"year": map(str, self._years), "month": _MONTHS, "weekday": _WEEKDAYS}[part]
        return [f"{self.name} {part}={label}" for label in (*labels, MISSING_VALUE)]

    @property
    def widths(self) -> tuple[int, ...]:
        """Features of each word: a number and its indicator, or one of several indicators."""
        found: list[int] = []
        for part in self.parts:
            found += [1, 1] if part == "since" else [len(self._names(part))]
        return tuple(found)

    @property
    def inputs(self) -> list[InputColumn]:
        """Its features as an additive model sees them."""
        low, high = self.ends
        return [
            InputColumn(name, high - low if name == self.name else 1) for name in self.feature_names
        ]

    @property
    def stated(self) -> str:
        """What the schema states about it, in words."""
        return f"dates from {self.low} to {self.high}: {', '.join(self.parts)}"

    def days(self, values: AnyArray) -> Vector:
        """Number of the day of each date, from the year 1; NaN for what is no date.

        Parameters
        ----------
        values : array of shape (n,)
            Dates, moments, or texts.

        Returns
        -------
        array of shape (n,)
        """
        return np.array([self._day(cell) for cell in listed(values)], dtype=np.float64)

    def _day(self, cell: Any) -> float:
        text = label_of(cell)
        if text is None:
            return math.nan
        try:
            return float(date.fromisoformat(text[:10]).toordinal())
        except ValueError:
            pass
        try:
            return float(datetime.strptime(text, str(self.format)).toordinal())
        except ValueError:
            return math.nan

    def words(self, values: AnyArray) -> list[AnyArray]:
        """The encoded column as words of a packed row.

        Parameters
        ----------
        values : array of shape (n,)

        Returns
        -------
        list of arrays of shape (n,)
        """
        days = self.days(values)
        missing, (low, high) = np.isnan(days), self.ends
        days = np.where(missing, low, days)
        found: list[AnyArray] = []
        for part in self.parts:
            if part == "since":
                share = (np.clip(days, low, high) - low) / (high - low)
                found += [np.where(missing, _MIDDLE, share), missing.astype(np.float64)]
            else:
                gap = len(self._names(part)) - 1
                found.append(np.where(missing, gap, self._places(part, days.astype(np.int64))))
        return found

    def _places(self, part: str, days: IntVector) -> IntVector:
        """Place of each day among the labels of a part of the calendar."""
        if part == "weekday":
            return (days - 1) % 7  # day 1 was a Monday
        moments = (days - _UNIX_DAY).astype("datetime64[D]")
        if part == "month":
            return moments.astype("datetime64[M]").astype(np.int64) % 12
        years = moments.astype("datetime64[Y]").astype(np.int64) + 1970
        return np.asarray(np.clip(years, self._years[0], self._years[-1]) - self._years[0])

    def encode(self, values: AnyArray) -> Matrix:
        """Every entry is in [0, 1].

        Parameters
        ----------
        values : array of shape (n,)

        Returns
        -------
        X : array of shape (n, n_features)
        """
        words = zip(self.words(values), self.widths, strict=True)
        return np.column_stack(
            [word if width == 1 else np.eye(width)[word] for word, width in words]
        )

    def original(self, shares: Vector) -> list[str]:
        """The dates of some shares of the range.

        Parameters
        ----------
        shares : array of numbers in [0, 1]

        Returns
        -------
        list of str
        """
        low, high = self.ends
        return [date.fromordinal(round(low + x * (high - low))).isoformat() for x in shares]


def _end(value: Any, what: str) -> str:
    """An end of the range as an ISO date: files have texts or dates."""
    if isinstance(value, datetime):
        value = value.date()
    if isinstance(value, date):
        return value.isoformat()
    try:
        return date.fromisoformat(value).isoformat()
    except (TypeError, ValueError):
        raise InvalidArgument(f"{what} is {value!r}. Write a date such as 2015-01-31.") from None
