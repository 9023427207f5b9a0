"""Single statistics of arrays, by the names that users of numpy and scipy know."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypedDict, Unpack

import numpy as np

from hushfit.data import Persons, persons_of
from hushfit.data.schema import CategoricalColumn, NumericColumn, cells_of
from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget
from hushfit.release import Randomness, Terms
from hushfit.statistics._describe import describe_columns, table_columns
from hushfit.statistics._description import (
    MEAN_DIFFERENCE,
    SHARE_DIFFERENCE,
    Description,
    Estimate,
    require_shares,
)
from hushfit.statistics._survey import Survey, with_missing
from hushfit.unit import PrivacyUnit

_X, _BY = "x", "by"


class Settings(TypedDict, total=False):
    """The settings that all single statistics share.

    Attributes
    ----------
    delta : float, default=1e-6
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
    level : float, default=0.95
        Confidence level of each interval.
    simultaneous : bool, default=False
        Whether all intervals of the call together cover with probability ``level``.
    complete : bool, default=False
        Whether it is public that no cell is missing.
    groups : array, optional
        Ids of persons, one for each row: the unit of privacy is then one person, who counts once.
    person_weight, rows_per_person
        As for `PrivateLogisticRegression`.
    ledger : Ledger, optional
        Charged before the rows are used.
    random_state : None or int, default=None
        None is the only secure setting.
    """

    delta: float
    adjacency: str
    level: float
    simultaneous: bool
    complete: bool
    groups: Any
    person_weight: str
    rows_per_person: int | None
    ledger: Any
    random_state: Any


@dataclass(frozen=True, eq=False)
class _Call:
    """The settings of one call, with their defaults."""

    epsilon: float
    delta: float = 1e-6
    adjacency: str = "replace-one"
    level: float = 0.95
    simultaneous: bool = False
    complete: bool = False
    groups: Any = None
    person_weight: str = "mean"
    rows_per_person: int | None = None
    ledger: Any = None
    random_state: Any = None

    def run(
        self, label: str, survey: Survey, table: dict[str, Any], shares: tuple[float, ...] = ()
    ) -> Description:
        """Check, pay and release."""
        require_shares(shares)
        terms = Terms(
            Budget(self.epsilon, self.delta),
            label,
            Randomness.of(self.random_state),
            self.ledger,
        )
        survey = replace(survey, complete=self.complete)
        columns = table_columns(table, survey)
        persons = self._persons(len(columns[_X]))
        shown = shares, self.level, self.simultaneous
        return describe_columns(columns, survey, persons, self.adjacency, terms, *shown)

    def _persons(self, n_rows: int) -> Persons | None:
        """The persons of the rows; None if each row is its own unit."""
        if self.groups is not None:
            name = getattr(self.groups, "name", None)
            column = name if isinstance(name, str) and name else None
            unit = PrivacyUnit.person(self.person_weight, self.rows_per_person, column)
            return persons_of(self.groups, n_rows, unit)
        if (self.person_weight, self.rows_per_person) != ("mean", None):
            raise InvalidArgument(
                "person_weight and rows_per_person are for persons, but no groups were given. Give "
                "groups=, or leave them out."
            )
        return None


def mean(
    x: Any, bounds: tuple[float, float], epsilon: float, **settings: Unpack[Settings]
) -> Estimate:
    """Mean of numbers with a public range.

    Parameters
    ----------
    x : array of shape (n_rows,)
        Numbers; others are clipped to the range, and missing ones are left out.
    bounds : (float, float)
        Public range, known without looking at the rows.
    epsilon : float
    **settings
        See `Settings`.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> from hushfit.statistics import mean
    >>> found = mean([20.0, 60.0] * 500, (0, 100), epsilon=float("inf"))
    >>> round(found.value, 6), found.low < 40 < found.high
    (40.0, True)
    """
    column = _numbers(x, bounds)
    return _Call(epsilon, **settings).run("mean", Survey((column,)), {_X: x}).estimates[0]


def proportion(
    x: Any, epsilon: float, success: Any = 1, failure: Any = 0, **settings: Unpack[Settings]
) -> Estimate:
    """Share of one of two labels.

    Parameters
    ----------
    x : array of shape (n_rows,)
        Labels or truth values. Labels other than the two count as neither success nor missing.
    epsilon : float
    success, failure : label, default=1 and 0
        Public.
    **settings
        See `Settings`.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> from hushfit.statistics import proportion
    >>> round(proportion([1, 0, 0, 0] * 500, epsilon=float("inf")).value, 6)
    0.25
    """
    column = _labels(_X, (success, failure))
    survey = Survey(labels=(column,))
    return _Call(epsilon, **settings).run("proportion", survey, {_X: x}).estimates[0]


def counts(
    x: Any, categories: Sequence[Any], epsilon: float, **settings: Unpack[Settings]
) -> tuple[Estimate, ...]:
    """Shares of the labels of a public list, and of all others together.

    Parameters
    ----------
    x : array of shape (n_rows,)
    categories : sequence of labels
        Public.
    epsilon : float
    **settings
        See `Settings`.

    Returns
    -------
    tuple of Estimate
        One for each category and one for ``<other>``; ``known`` times ``value`` is the estimated
        number of records.

    Examples
    --------
    >>> from hushfit.statistics import counts
    >>> found = counts(["a", "b", "a"] * 400, ["a", "b"], epsilon=float("inf"))
    >>> [round(one.value) for one in found]
    [1, 0, 0]
    """
    survey = Survey(labels=(_labels(_X, categories),))
    return _Call(epsilon, **settings).run("counts", survey, {_X: x}).estimates


def histogram(
    x: Any,
    bins: int,
    bounds: tuple[float, float],
    epsilon: float,
    **settings: Unpack[Settings],
) -> tuple[Estimate, ...]:
    """Shares of bins of equal width.

    Parameters
    ----------
    x : array of shape (n_rows,)
    bins : int
    bounds : (float, float)
        Public range; numbers outside are in the first or the last bin.
    epsilon : float
    **settings
        See `Settings`.

    Returns
    -------
    tuple of Estimate
        One for each bin, the lowest first; ``of`` has its ends. A bin includes its left end, and
        the last one both.

    Examples
    --------
    >>> from hushfit.statistics import histogram
    >>> bars = histogram([1.0, 1.0, 7.0] * 400, 2, (0, 10), epsilon=float("inf"))
    >>> [round(bar.value) for bar in bars]
    [1, 0]
    """
    column = _numbers(x, bounds)
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
        raise InvalidArgument(f"bins={bins!r} is not a number of bins. Give an int of 1 or more.")
    edges = np.linspace(column.low, column.high, int(bins) + 1)
    values = np.clip(column.numbers(cells_of({_X: x}, _X)), column.low, column.high)
    places = np.searchsorted(edges[1:-1], values, side="right").astype(np.float64)
    survey = Survey(labels=(_labels(_X, range(int(bins))),))
    table = {_X: np.where(np.isnan(values), np.nan, places)}
    found = _Call(epsilon, **settings).run("histogram", survey, table).estimates
    ends = [f"{a:g} to {b:g}" for a, b in pairwise(edges)]
    return tuple(replace(one, of=end) for one, end in zip(found, ends, strict=False))


def quantile(
    x: Any,
    q: float | Sequence[float],
    bounds: tuple[float, float],
    epsilon: float,
    **settings: Unpack[Settings],
) -> Any:
    """Quantiles of numbers with a public range.

    Parameters
    ----------
    x : array of shape (n_rows,)
    q : float or sequence of float
        Shares of values below. Several cost no more than one.
    bounds : (float, float)
        Public range. Intervals have ends on a grid of 512 bins of it.
    epsilon : float
    **settings
        See `Settings`.

    Returns
    -------
    Estimate, or tuple of Estimate
        One for each of ``q``.

    Examples
    --------
    >>> from hushfit.statistics import quantile
    >>> ages = [float(age) for age in range(100)] * 20
    >>> low, high = quantile(ages, (0.1, 0.9), (0, 100), epsilon=float("inf"))
    >>> low.value < high.value
    True
    """
    column = _numbers(x, bounds)
    shares = (q,) if isinstance(q, int | float) else tuple(q)
    survey = Survey(quantiles=(column,))
    found = _Call(epsilon, **settings).run("quantile", survey, {_X: x}, shares).estimates
    return found[0] if isinstance(q, int | float) else found


def median(
    x: Any, bounds: tuple[float, float], epsilon: float, **settings: Unpack[Settings]
) -> Estimate:
    """Median of numbers with a public range: `quantile` with ``q=0.5``.

    Parameters
    ----------
    x : array of shape (n_rows,)
    bounds : (float, float)
    epsilon : float
    **settings
        See `Settings`.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> from hushfit.statistics import median
    >>> found = median([20.0, 50.0, 60.0] * 400, (0, 100), epsilon=float("inf"))
    >>> found.low <= found.value <= found.high
    True
    """
    found: Estimate = quantile(x, 0.5, bounds, epsilon, **settings)
    return found


def mean_difference(
    x: Any,
    by: Any,
    labels: tuple[Any, Any],
    bounds: tuple[float, float],
    epsilon: float,
    **settings: Unpack[Settings],
) -> Estimate:
    """Difference of the means of two groups, whose members are private.

    Parameters
    ----------
    x : array of shape (n_rows,)
    by : array of shape (n_rows,)
        The group of each row. Rows of other groups are left out.
    labels : (label, label)
        The two groups; the difference is that of the first minus the second. Public.
    bounds : (float, float)
    epsilon : float
    **settings
        See `Settings`.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> from hushfit.statistics import mean_difference
    >>> doses, groups = [3.0, 5.0] * 500, ["old", "new"] * 500
    >>> found = mean_difference(doses, groups, ("new", "old"), (0, 10), epsilon=float("inf"))
    >>> round(found.value, 6)
    2.0
    """
    survey = Survey((_numbers(x, bounds),), by=_labels(_BY, labels))
    found = _Call(epsilon, **settings).run("mean_difference", survey, {_X: x, _BY: by})
    return _only(found, MEAN_DIFFERENCE)


def proportion_difference(
    x: Any,
    by: Any,
    labels: tuple[Any, Any],
    epsilon: float,
    success: Any = 1,
    failure: Any = 0,
    **settings: Unpack[Settings],
) -> Estimate:
    """Difference of the shares of one of two labels between two groups.

    Parameters
    ----------
    x : array of shape (n_rows,)
    by : array of shape (n_rows,)
    labels : (label, label)
        The two groups; the difference is that of the first minus the second. Public.
    epsilon : float
    success, failure : label, default=1 and 0
    **settings
        See `Settings`.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> from hushfit.statistics import proportion_difference
    >>> well, groups = [1, 0, 1, 1] * 300, ["new", "old", "new", "old"] * 300
    >>> found = proportion_difference(well, groups, ("new", "old"), epsilon=float("inf"))
    >>> round(found.value, 6)
    0.5
    """
    survey = Survey(labels=(_labels(_X, (success, failure)),), by=_labels(_BY, labels))
    found = _Call(epsilon, **settings).run("proportion_difference", survey, {_X: x, _BY: by})
    return _only(found, SHARE_DIFFERENCE)


def _only(found: Description, statistic: str) -> Estimate:
    """The first estimate of a kind."""
    return next(one for one in found.estimates if one.statistic == statistic)


def _numbers(x: Any, bounds: Any) -> NumericColumn:
    """The column of numbers, refused without bounds or if it holds texts."""
    kind = getattr(getattr(x, "dtype", None), "kind", "f")
    if kind in "USMm" or str(getattr(x, "dtype", "")) in ("category", "string", "str"):
        raise InvalidArgument(
            f"x is an array of type {x.dtype}, which has no mean and no quantiles. Give numbers, "
            "or use counts() for labels. Nothing was spent."
        )
    try:
        low, high = (float(end) for end in bounds)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"bounds={bounds!r} is not a pair of numbers. Give the public range (low, high) that "
            "you know without looking at the rows; values outside are clipped to it."
        ) from None
    return NumericColumn(_X, low, high)


def _labels(name: str, categories: Iterable[Any]) -> CategoricalColumn:
    if isinstance(categories, str):
        raise InvalidArgument(f"categories={categories!r} is one text. Give a list of labels.")
    plain = [one.item() if isinstance(one, np.generic) else one for one in categories]
    return with_missing(CategoricalColumn(name, tuple(plain)))
