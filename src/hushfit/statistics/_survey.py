"""What is asked of a table: its columns, the one plan of all releases, and the release itself.
Proofs: docs/proofs/statistics.md.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.data import DataSource, Persons, as_source
from hushfit.data.schema import MISSING_VALUE, OTHER, CategoricalColumn, NumericColumn
from hushfit.errors import InvalidArgument, TooFewRows
from hushfit.losses import Logistic
from hushfit.penalties import Zero
from hushfit.privacy import Budget, Guarantee, Receipt, Relation, by_relation
from hushfit.problem import Problem
from hushfit.release import (
    MAX_BINS,
    MOST_GROUPS,
    ColumnHistogram,
    Contract,
    GroupMoments,
    Plan,
    Planned,
    Quote,
    Terms,
    Totals,
)
from hushfit.statistics._grid import BRANCHES, MOST_LEAVES, Distribution, Grid
from hushfit.statistics._intervals import Counted, Moments
from hushfit.unit import PrivacyUnit

MEANS, COUNTS = "means", "counts"
# Largest standard deviation of the noise, as a share of a column's range or of the records.
MOST_NOISE = 0.05
_NARROWEST, _WIDEST = 1e-100, 1e100
_PUBLIC = "the ranges and labels of the columns"
_COMPLETE = "that no cell is missing"


@dataclass(frozen=True)
class Histogram:
    """One histogram that is counted: the labels of a column, or its numbers at one width."""

    column: str
    bins: int
    width: int = 1


@dataclass(frozen=True)
class Survey:
    """The statistics that are asked for; public.

    Parameters
    ----------
    means, quantiles : tuple of NumericColumn
        Columns whose means, and whose quantiles, are asked for.
    labels : tuple of CategoricalColumn
        Columns whose shares of labels are asked for.
    by : CategoricalColumn, optional
        Everything is asked for each of its categories.
    complete : bool, default=False
        Whether it is public that no cell is missing.
    """

    means: tuple[NumericColumn, ...] = ()
    quantiles: tuple[NumericColumn, ...] = ()
    labels: tuple[CategoricalColumn, ...] = ()
    by: CategoricalColumn | None = None
    complete: bool = False

    def __post_init__(self) -> None:
        asked = [column.name for column in self._asked]
        if not asked:
            raise InvalidArgument("no column is asked about. Name at least one.")
        if self.by is not None and self.by.name in asked:
            raise InvalidArgument(
                f"by={self.by.name!r} is also among the columns. Leave it out of them."
            )
        if len(self.groups) > MOST_GROUPS:
            raise InvalidArgument(
                f"by={self.by.name!r} has {len(self.groups)} categories; at most "  # type: ignore[union-attr]
                f"{MOST_GROUPS} groups are compared. Choose a column with few."
            )
        for column in (*self.means, *self.quantiles):
            _require_width(column)
        for one in self.labels:
            _require_bins(one, len(labels_of(one)) * len(self.groups))

    @property
    def _asked(self) -> tuple[NumericColumn | CategoricalColumn, ...]:
        return (*self.means, *self.quantiles, *self.labels)

    @property
    def groups(self) -> tuple[str | None, ...]:
        """Names of the groups; one without a name if there is nothing to group by."""
        return (None,) if self.by is None else self.by.categories

    @property
    def columns(self) -> tuple[NumericColumn | CategoricalColumn, ...]:
        """All columns that are read, each once."""
        found = {column.name: column for column in self._asked}
        return (*found.values(), *(() if self.by is None else (self.by,)))

    @cached_property
    def grids(self) -> dict[str, Grid]:
        """The public grid of each column of quantiles: fewer bins for several groups."""
        most = MOST_LEAVES
        while most * len(self.groups) > MAX_BINS:
            most //= BRANCHES
        return {column.name: Grid(column, most) for column in self.quantiles}

    @cached_property
    def histograms(self) -> tuple[Histogram, ...]:
        """All histograms, in the order in which they are counted."""
        grids = [
            Histogram(name, bins, width)
            for name, grid in self.grids.items()
            for bins, width in zip(grid.tree.sizes, grid.tree.widths, strict=True)
        ]
        return (*grids, *(Histogram(one.name, len(labels_of(one))) for one in self.labels))

    def cells(self, table: Mapping[str, Vector]) -> Matrix:
        """The rows that are asked about: groups, numbers in [-1, 1], and bins of every histogram in
        every group. Each row by itself.

        Parameters
        ----------
        table : mapping of str to array
            Numbers, or codes of labels as `hushfit.data.schema` gives them with an indicator of
            missing ones; NaN where they are missing.

        Returns
        -------
        array of shape (n_rows, n_cells)
        """
        first = next(iter(table.values()))
        group = np.zeros(len(first)) if self.by is None else self._groups(table[self.by.name])
        return np.column_stack([group, *self._numbers(table), *self._bins(table, group)])

    def _groups(self, codes: Vector) -> Vector:
        return np.where(codes < len(self.groups), codes, np.nan)

    def _numbers(self, table: Mapping[str, Vector]) -> Iterator[Vector]:
        for column in self.means:
            # Clipped first: a division that overflows would warn, and so tell of a value.
            inside = np.clip(table[column.name], column.low, column.high)
            signed = np.clip(2 * (inside - column.low) / (column.high - column.low) - 1, -1.0, 1.0)
            yield np.nan_to_num(signed, nan=0.0) if self.complete else signed

    def _bins(self, table: Mapping[str, Vector], group: Vector) -> Iterator[Vector]:
        for one in self.histograms:
            values = table[one.column]
            code = self.grids[one.column].bins(values) if one.column in self.grids else values
            yield np.floor_divide(code, one.width) + group * one.bins

    def plan(self) -> Plan:
        """All releases: each mean and each histogram has the same share of the budget."""
        parts = (
            Planned(MEANS, GroupMoments, 1, len(self.means)),
            Planned(COUNTS, ColumnHistogram, 1, len(self.histograms)),
        )
        return Plan(tuple(part for part in parts if part.share))

    def quote(self, n_units: int, budget: Budget, relation: Relation) -> Quote:
        """Cost of everything, from public numbers; nothing is read or charged.

        Parameters
        ----------
        n_units : int
            Number of rows, or of persons.
        budget : Budget
        relation : Relation

        Returns
        -------
        Quote
        """
        numbers = 3 * len(self.means) * len(self.groups)
        counted = sum(one.bins for one in self.histograms) * len(self.groups)
        return self.plan().quote_for(n_units, relation, budget, numbers + counted)

    def noise(self, quote: Quote, relation: Relation) -> dict[str, float]:
        """Standard deviation of the noise of each kind of statistic, in records of a group: of a
        mean as a share of the range, of the share of a label, and of the share below a quantile.
        """
        found = {}
        if self.means:
            moved = by_relation(relation, replace_one=2.0, add_remove=math.sqrt(2))
            found["means"] = quote.multipliers[MEANS] * moved * math.sqrt(len(self.means)) / 2
        if self.histograms:
            each = by_relation(relation, replace_one=math.sqrt(2), add_remove=1.0)
            count = quote.multipliers[COUNTS] * each * math.sqrt(len(self.histograms))
            if self.labels:
                found["shares"] = count
            if self.quantiles:
                largest = max(float(grid.tree.variances(0.5).max()) for grid in self.grids.values())
                found["quantiles"] = count * math.sqrt(largest)
        return found

    def least_units(self, quote: Quote, relation: Relation) -> dict[str, int]:
        """Least number of units for each kind of statistic, if all groups were of one size."""
        groups = len(self.groups)
        return {
            kind: max(math.ceil(groups * noise / MOST_NOISE), 2)
            for kind, noise in self.noise(quote, relation).items()
        }

    def require_units(
        self, n_units: int, quote: Quote, relation: Relation, unit: PrivacyUnit
    ) -> None:
        """Refuse a table so small that noise would hide what is asked; from public numbers."""
        for kind, least in self.least_units(quote, relation).items():
            if n_units < least:
                each = "" if self.by is None else f" in {len(self.groups)} groups"
                raise TooFewRows(
                    f"{kind} of this table would be mostly noise: with {n_units} {unit.plural}"
                    f"{each} its standard deviation is above {MOST_NOISE:.0%} of the range. At "
                    f"least {least} {unit.plural} are needed. Nothing was spent. Ask for a larger "
                    "epsilon, or for fewer columns, quantiles or groups."
                )


@dataclass(frozen=True, eq=False)
class Answers:
    """Everything that was released about a table; public.

    Parameters
    ----------
    survey : Survey
    n_units : int
    guarantee : Guarantee
    receipt : Receipt or None
    totals : Totals or None
        Sums of numbers by group and column.
    counts : tuple of array
        Noisy counts of each histogram, groups in rows.
    count_noise : float
        Standard deviation of the noise in a count.
    """

    survey: Survey
    n_units: int
    guarantee: Guarantee
    receipt: Receipt | None
    totals: Totals | None
    counts: tuple[Matrix, ...]
    count_noise: float

    @property
    def whole(self) -> float | None:
        """The total weight of all records, if that is public and there is one group."""
        public = self.survey.by is None and self.guarantee.unit.total_weight_is_public
        return float(self.n_units) if public else None

    def moments(self, column: NumericColumn, group: int) -> Moments:
        """Sums of a column of means in a group."""
        totals = self.totals
        assert totals is not None
        at = group, self.survey.means.index(column)
        known, known_noise = float(totals.known[at]), totals.known_noise
        if self.survey.complete and self.whole is not None:
            known, known_noise = self.whole, 0.0
        noise = totals.sum_noise, totals.square_noise, known_noise
        return Moments(float(totals.sums[at]), float(totals.squares[at]), known, *noise)

    def distribution(self, column: NumericColumn, group: int) -> Distribution:
        """The distribution of a column of quantiles in a group."""
        levels = [counts[group] for counts in self._counts_of(column.name)]
        return Distribution.of(self.survey.grids[column.name], levels, self.count_noise)

    def counted(self, column: CategoricalColumn, group: int) -> dict[str, Counted]:
        """Counts of the labels of a column in a group, in which missing ones are no labels."""
        (counts,) = self._counts_of(column.name)
        own, of_all = counts[group], 0
        if self.whole is not None:
            # The sum of all counts is public: noise that contradicts it is taken out.
            of_all = len(own)
            own = own + (self.whole - own.sum()) / of_all
        labels = labels_of(column)[:-1]
        total, cells = float(own[: len(labels)].sum()), len(labels)
        return {
            label: Counted(float(count), total, cells, self.count_noise, of_all)
            for label, count in zip(labels, own, strict=False)
        }

    def _counts_of(self, name: str) -> Iterator[Matrix]:
        for one, counts in zip(self.survey.histograms, self.counts, strict=True):
            if one.column == name:
                yield counts


def _require_width(column: NumericColumn) -> None:
    if not _NARROWEST <= column.high - column.low <= _WIDEST:
        raise InvalidArgument(
            f"column {column.name!r} has the range [{column.low}, {column.high}], whose width "
            "floats do not divide by precisely. Give it in other units."
        )


def _require_bins(column: CategoricalColumn, bins: int) -> None:
    if bins > MAX_BINS:
        raise InvalidArgument(
            f"column {column.name!r} has {bins} counts; at most {MAX_BINS} are released. List "
            "fewer categories, or compare fewer groups."
        )


def labels_of(column: CategoricalColumn) -> tuple[str, ...]:
    """The labels that are counted: the categories, all others, and missing ones."""
    return (*column.categories, OTHER, MISSING_VALUE)


def with_missing(column: CategoricalColumn) -> CategoricalColumn:
    """The column with a code of its own for missing labels."""
    return replace(column, missing="indicator")


def released(
    survey: Survey, cells: Matrix, persons: Persons | None, relation: Relation, terms: Terms
) -> Answers:
    """Check, pay and release, in this order.

    Parameters
    ----------
    survey : Survey
    cells : array of shape (n_rows, n_cells)
        As `Survey.cells` gives them.
    persons : Persons or None
    relation : Relation
    terms : Terms

    Returns
    -------
    Answers
    """
    source = as_source(cells, np.zeros(len(cells)), fit_intercept=False, persons=persons)
    quote = survey.quote(source.n_units, terms.budget, relation)
    survey.require_units(source.n_units, quote, relation, source.privacy_unit)
    public = (_PUBLIC, *((_COMPLETE,) if survey.complete else ()))
    terms = replace(terms, public=(*terms.public, *public))
    return answered(survey, source, quote, relation, terms)


def answered(
    survey: Survey, source: DataSource, quote: Quote, relation: Relation, terms: Terms
) -> Answers:
    """Pay a quote, and release.

    Parameters
    ----------
    survey : Survey
    source : DataSource
        The rows that `Survey.cells` gives.
    quote : Quote
        Of this survey and of as many units.
    relation : Relation
    terms : Terms

    Returns
    -------
    Answers
    """
    n_units, unit = source.n_units, source.privacy_unit
    contract = Contract.signed(source, quote, relation, terms)
    totals: Totals | None = None
    counts: tuple[Matrix, ...] = ()
    noise = 0.0
    if survey.means:
        problem = Problem(
            Logistic(), Zero(), n_units, source.n_features, relation, False, privacy_unit=unit
        )
        by = None if survey.by is None else 0
        columns = tuple(range(1, 1 + len(survey.means)))
        moments = GroupMoments(problem, columns, by, len(survey.groups))
        answer = contract.curator.release(MEANS, moments)
        totals = moments.totals(answer, quote.multipliers[MEANS])
    if survey.histograms:
        query = _histograms(survey)
        noise = quote.multipliers[COUNTS] * query.sensitivity(relation)
        counts = tuple(
            part.reshape(len(survey.groups), -1)
            for part in query.by_column(contract.curator.release(COUNTS, query))
        )
    return Answers(survey, n_units, contract.guarantee, contract.receipt, totals, counts, noise)


def _histograms(survey: Survey) -> ColumnHistogram:
    """All histograms as one query: bins are numbered, so edges lie between whole numbers."""
    sizes: Sequence[int] = [one.bins * len(survey.groups) for one in survey.histograms]
    edges = tuple(np.arange(size - 1, dtype=np.float64) + 0.5 for size in sizes)
    start = 1 + len(survey.means)
    return ColumnHistogram(edges, tuple(range(start, start + len(sizes))))
