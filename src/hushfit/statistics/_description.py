"""The result of a description: estimates with intervals, their tables, and the guarantee."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from hushfit.data.schema import CategoricalColumn, NumericColumn
from hushfit.errors import InvalidArgument
from hushfit.privacy import Guarantee
from hushfit.statistics._grid import Bars
from hushfit.statistics._intervals import Interval, difference, mean_interval, share_interval
from hushfit.statistics._survey import Answers

MEAN, SHARE, QUANTILE, MEDIAN = "mean", "share", "quantile", "median"
MEAN_DIFFERENCE, SHARE_DIFFERENCE = "difference of means", "difference of shares"


@dataclass(frozen=True)
class Estimate:
    """A statistic with its confidence interval; public.

    Parameters
    ----------
    column : str
    statistic : str
        "mean", "share", "quantile", "median", "difference of means" or "difference of shares".
    value, low, high : float
        The estimate and the ends of its interval, in the units of the column. The interval covers
        sampling and noise.
    level : float
        Confidence level of this interval.
    sampling_error, noise_error : float
        Standard errors by sampling and by noise alone. For quantiles they are those of the share of
        values below.
    known : float
        Estimated number of records that have the value; for a difference, in both groups.
    of : str or float, optional
        The label of a share, or the share of values below a quantile.
    group : str, optional
        The group, or both of a difference.
    conservative : bool, default=False
        Whether the interval covers more often than its level says: quantiles, and all sampling
        errors where persons are the unit.
    guarantee : Guarantee
        Of everything that was released with it.

    Examples
    --------
    >>> from hushfit.statistics import mean
    >>> found = mean([20.0, 60.0] * 500, (0, 100), epsilon=float("inf"))
    >>> found.name, found.level, found.noise_error
    ('mean', 0.95, 0.0)
    """

    column: str
    statistic: str
    value: float
    low: float
    high: float
    level: float
    sampling_error: float
    noise_error: float
    known: float
    of: str | float | None = None
    group: str | None = None
    conservative: bool = False
    guarantee: Guarantee | None = field(default=None, repr=False, compare=False)

    @property
    def standard_error(self) -> float:
        """Standard error by sampling and noise together."""
        return float((self.sampling_error**2 + self.noise_error**2) ** 0.5)

    @property
    def name(self) -> str:
        """The statistic in words, such as "share of 'yes'"."""
        if self.of is None:
            return self.statistic
        return (
            f"{self.statistic} {self.of:g}"
            if isinstance(self.of, float)
            else (f"{self.statistic} of {self.of}")
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, without the guarantee."""
        plain = asdict(replace(self, guarantee=None))
        del plain["guarantee"]
        return plain


@dataclass(frozen=True, eq=False)
class Description:
    """All statistics of one release; public. Everything here is post-processing: intervals of
    another level cost nothing.

    Parameters
    ----------
    answers : Answers
        What was released.
    shares : tuple of float
        The quantiles that are shown, as shares of values below.
    level : float, default=0.95
    simultaneous : bool, default=False
        Whether all intervals together cover with probability ``level`` (Bonferroni).

    Examples
    --------
    >>> from hushfit.data.schema import NumericColumn, Schema
    >>> from hushfit.statistics import describe
    >>> schema = Schema((NumericColumn("age", 0, 100),))
    >>> found = describe({"age": [20.0, 60.0] * 500}, schema, epsilon=float("inf"))
    >>> [one.name for one in found.estimates][:2]
    ['mean', 'quantile 0.25']
    """

    answers: Answers
    shares: tuple[float, ...]
    level: float = 0.95
    simultaneous: bool = False

    def __post_init__(self) -> None:
        require_level(self.level)
        require_shares(self.shares)

    def at(self, level: float | None = None, simultaneous: bool | None = None) -> "Description":
        """The same statistics with intervals of another level; nothing is released.

        Parameters
        ----------
        level : float, optional
        simultaneous : bool, optional

        Returns
        -------
        Description
        """
        return replace(
            self,
            level=self.level if level is None else level,
            simultaneous=self.simultaneous if simultaneous is None else simultaneous,
        )

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the whole release."""
        return self.answers.guarantee

    @property
    def units(self) -> int:
        """Number of rows, or of persons."""
        return self.answers.n_units

    @cached_property
    def estimates(self) -> tuple[Estimate, ...]:
        """Every statistic, column by column."""
        plain = tuple(self._estimates(self.level))
        if not self.simultaneous:
            return plain
        return tuple(self._estimates(1 - (1 - self.level) / len(plain)))

    def _estimates(self, level: float) -> Iterator[Estimate]:
        survey = self.answers.survey
        for column in survey.columns:
            if isinstance(column, NumericColumn):
                if column in survey.means:
                    yield from self._means(column, level)
                if column.name in survey.grids:
                    yield from self._quantiles(column, level)
            elif column in survey.labels:
                yield from self._shares(column, level)

    def _made(self, column: str, statistic: str, found: Interval, **more: Any) -> Estimate:
        more.setdefault("conservative", self.guarantee.unit.is_person)
        value, low, high, sampling, noise = found
        return Estimate(
            column,
            statistic,
            value,
            low,
            high,
            sampling_error=sampling,
            noise_error=noise,
            guarantee=self.guarantee,
            **more,
        )

    def _means(self, column: NumericColumn, level: float) -> Iterator[Estimate]:
        groups = self.answers.survey.groups
        sums = [self.answers.moments(column, at) for at in range(len(groups))]
        found = [mean_interval(one, level) for one in sums]
        middle, half = (column.low + column.high) / 2, (column.high - column.low) / 2
        for group, own, one in zip(groups, sums, found, strict=True):
            inside = one.within(-1.0, 1.0).moved(middle, half)
            more = {"level": level, "known": own.known, "group": group}
            yield self._made(column.name, MEAN, inside, **more)
        if len(groups) == 2:
            apart = difference(*found).within(-2.0, 2.0).moved(0.0, half)
            more = {"level": level, "known": sums[0].known + sums[1].known, "group": self._pair}
            yield self._made(column.name, MEAN_DIFFERENCE, apart, **more)

    def _shares(self, column: CategoricalColumn, level: float) -> Iterator[Estimate]:
        groups = self.answers.survey.groups
        counted = [self.answers.counted(column, at) for at in range(len(groups))]
        found = [
            {label: share_interval(one, level) for label, one in own.items()} for own in counted
        ]
        for label in counted[0]:
            for group, own, one in zip(groups, counted, found, strict=True):
                more = {"level": level, "known": own[label].total, "group": group, "of": label}
                yield self._made(column.name, SHARE, one[label].within(0.0, 1.0), **more)
            if len(groups) == 2:
                apart = difference(found[0][label], found[1][label]).within(-1.0, 1.0)
                known = counted[0][label].total + counted[1][label].total
                more = {"level": level, "known": known, "group": self._pair, "of": label}
                yield self._made(column.name, SHARE_DIFFERENCE, apart, **more)

    def _quantiles(self, column: NumericColumn, level: float) -> Iterator[Estimate]:
        groups = self.answers.survey.groups
        spread = [self.answers.distribution(column, at) for at in range(len(groups))]
        for share in self.shares:
            named = (MEDIAN, None) if share == 0.5 else (QUANTILE, share)
            for group, own in zip(groups, spread, strict=True):
                more = {"level": level, "known": own.known, "group": group, "of": named[1]}
                found = own.quantile(share, level)
                yield self._made(column.name, named[0], found, conservative=True, **more)

    @property
    def _pair(self) -> str:
        """Both groups of a difference."""
        first, second = self.answers.survey.groups
        return f"{first} - {second}"

    def histograms(self) -> dict[tuple[str, str | None], Bars]:
        """A coarse histogram of every column of numbers with quantiles, by column and group.

        Returns
        -------
        dict of (str, str or None) to Bars
        """
        survey = self.answers.survey
        return {
            (column.name, group): self.answers.distribution(column, at).bars()
            for column in survey.quantiles
            for at, group in enumerate(survey.groups)
        }

    def table(self) -> dict[str, list[Any]]:
        """The estimates as columns of equal length, for instance for ``pandas.DataFrame``.

        Returns
        -------
        dict of str to list
        """
        rows = [
            {"column": one.column, "statistic": one.name, **_shown(one)} for one in self.estimates
        ]
        return {key: [row[key] for row in rows] for key in rows[0]}

    def lines(self) -> list[list[str]]:
        """The estimates as texts: column, statistic, group, value, interval and noise.

        Returns
        -------
        list of list of str
        """
        return [
            [
                one.column,
                one.name,
                one.group or "",
                number_text(one.value),
                f"{number_text(one.low)} to {number_text(one.high)}",
                error_text(one.noise_error),
            ]
            for one in self.estimates
        ]

    @property
    def heading(self) -> str:
        """What the table shows, in a line."""
        kind = "simultaneous intervals" if self.simultaneous else "intervals"
        unit = self.guarantee.unit.plural
        return f"{self.units} {unit}; {kind} of {self.level:.0%} cover sampling and noise"

    def summary(self) -> str:
        """The estimates as a table, and the guarantee.

        Returns
        -------
        str
        """
        heads = ["column", "statistic", "group", "estimate", "interval", "noise"]
        rows = [heads, *self.lines()]
        widths = [max(len(row[k]) for row in rows) for k in range(len(heads))]
        text = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join([self.heading, "", *text, "", str(self.guarantee)])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values.

        Returns
        -------
        dict
        """
        bars = [
            {
                "column": column,
                "group": group,
                "edges": drawn.edges.tolist(),
                "shares": drawn.shares.tolist(),
                "noise": drawn.noise.tolist(),
            }
            for (column, group), drawn in self.histograms().items()
        ]
        return {
            "units": self.units,
            "level": self.level,
            "simultaneous": self.simultaneous,
            "estimates": [one.to_dict() for one in self.estimates],
            "histograms": bars,
            "guarantee": self.guarantee.to_dict(),
        }


def number_text(value: float) -> str:
    """A number with four digits, large ones without an exponent."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"


def error_text(value: float) -> str:
    """An error with two digits, large ones without an exponent."""
    return f"{value:,.0f}" if 100 <= value < 1e15 else f"{value:.2g}"


def _shown(one: Estimate) -> dict[str, Any]:
    names = ("group", "value", "low", "high", "sampling_error", "noise_error", "known")
    return {name: getattr(one, name) for name in names}


def require_level(level: float) -> None:
    """Refuse what is no confidence level."""
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise InvalidArgument(f"level={level!r} is not between 0 and 1. Give, say, 0.95.")


def require_shares(shares: tuple[float, ...]) -> None:
    """Refuse quantiles that are not inside (0, 1)."""
    for share in shares:
        if not isinstance(share, int | float) or not 0 < share < 1:
            raise InvalidArgument(
                f"quantile {share!r} is not between 0 and 1. Give shares of values below, such as "
                "0.5 for the median."
            )
