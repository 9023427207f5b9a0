"""Canaries: for every algorithm, two neighbouring tables on which its accounted epsilon is
attained, or nearly.

The rows around the canary are zero records, so that nothing hides it and only noise and the canary
change the weights. The loss is the squared loss with a bounded slope, and labels are so large that
the canary's gradient has its largest norm for all weights. What else an algorithm needs is stated
in `_targets.py`; docs/audit.md has the table.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.audit.attacks._auditor import Neighbours
from hushfit.audit.attacks._list_canaries import ListCanary
from hushfit.audit.attacks._preparation import VocabularyQuery
from hushfit.data import DataSource, Persons, RecordScaling, as_source
from hushfit.losses import Squared
from hushfit.penalties import Zero
from hushfit.privacy import Budget, Relation, replaces_one
from hushfit.problem import Problem
from hushfit.release import TextColumns, Vocabulary
from hushfit.unit import ROW, PrivacyUnit

# A label so large that the slope of the loss is at its bound for all weights that occur.
FAR = 1e4
ROWS = 8


@dataclass(frozen=True)
class Canary:
    """How a pair of neighbouring tables is made.

    Parameters
    ----------
    columns : int, default=2
    cosine : float, default=1.0
        Between the two records, under replace-one: 1 for one record with opposite labels; less
        where a second moment is also released, which does not depend on labels.
    label : float, default=FAR
        Smaller where slopes must change with the weights.
    other_label : float or None
        Label of the second record, if it is not the opposite one.
    crowd : bool, default=False
        Whether the other rows are copies of the second record instead of zero records: the worst
        case for batches of fixed size.
    pushing : int, default=0
        Number of other rows equal to the first record: a choice is then nearly decided, and its
        least likely outcome is the most informative.
    person_rows : int, default=1
        Above 1, the canary is a person with so many copies of the record; all others have one row.
    """

    columns: int = 2
    cosine: float = 1.0
    label: float = FAR
    other_label: float | None = None
    crowd: bool = False
    pushing: int = 0
    person_rows: int = 1
    rows: ClassVar[int] = ROWS

    @property
    def unit(self) -> PrivacyUnit:
        return PrivacyUnit.person() if self.person_rows > 1 else ROW

    def records(self, relation: Relation) -> tuple[Matrix, Vector]:
        """The two records and their labels; the second is the null record under add-remove."""
        X, y = (
            np.zeros((2, self.columns)),
            np.array([-self.label, self.label if self.other_label is None else self.other_label]),
        )
        X[0, 0] = 1.0
        if replaces_one(relation):
            X[1, 0] = self.cosine
            X[1, 1:2] = math.sqrt(1 - self.cosine**2)
        return X, y

    def neighbours(self, relation: Relation, row: int = 0, rows: int = ROWS) -> Neighbours:
        """The two tables."""
        records, labels = self.records(relation)
        others_like_second = replaces_one(relation) and self.crowd
        tables = []
        for record, label in zip(records, labels, strict=True):
            X = np.tile(records[1] if others_like_second else np.zeros(self.columns), (rows, 1))
            y = np.full(rows, labels[1])
            if self.pushing:
                X[-self.pushing :], y[-self.pushing :] = records[0], labels[0]
            X[row], y[row] = record, label
            tables.append(_rows_of(X, y, row, self.person_rows, self.unit))
        return Neighbours(tables[0], tables[1], row, self.words(relation))

    def words(self, relation: Relation) -> str:
        """Description of how the tables differ."""
        alone = replace(self, person_rows=1)
        if self.person_rows > 1:
            return f"a person with {self.person_rows} rows, all alike: {alone.words(relation)}"
        near = "" if self.label == FAR else f", label {self.label:g}"
        if replaces_one(relation) and self.other_label is not None:
            near += f" against {-self.other_label:g}"
        if not replaces_one(relation):
            return (
                f"a unit record against none{near}; other rows "
                f"empty{f' but for {self.pushing} like it' if self.pushing else ''}"
            )
        apart = (
            "opposite labels on one record"
            if self.cosine == 1
            else f"opposite labels, records at cosine {self.cosine:g}"
        )
        others = (
            "all like the second"
            if self.crowd
            else f"empty but for {self.pushing} like the first"
            if self.pushing
            else "empty"
        )
        return f"{apart}{near}; other rows {others}"


def _rows_of(X: Matrix, y: Vector, row: int, copies: int, unit: PrivacyUnit) -> DataSource:
    """A table; with persons as units, one row is repeated as the rows of one person."""
    if not unit.is_person:
        return as_source(X, y, fit_intercept=False)
    owner = np.append(np.arange(len(X)), np.full(copies - 1, row))
    persons = Persons(owner, len(X), unit)
    return as_source(X[owner], y[owner], fit_intercept=False, persons=persons)


@dataclass(frozen=True)
class ClassCanary:
    """One of two classes against the other on a unit record; other rows empty."""

    columns: int = 2
    rows: ClassVar[int] = ROWS
    unit: ClassVar[PrivacyUnit] = ROW

    def neighbours(self, relation: Relation, row: int = 0) -> Neighbours:
        """The two tables; under add-remove the second has no record there."""
        X, y = np.zeros((2, ROWS, self.columns)), np.zeros((2, ROWS))
        X[0, row, 0] = 1.0
        if replaces_one(relation):
            X[1, row, 0], y[1, row] = 1.0, 1.0
        else:
            X[1, row] = np.nan
        tables = [as_source(X[k], y[k], fit_intercept=False) for k in range(2)]
        other = "the other class" if replaces_one(relation) else "no record"
        words = f"a unit record of one class against {other}; other rows empty"
        return Neighbours(tables[0], tables[1], row, words)


@dataclass(frozen=True)
class CellCanary:
    """Values that lie in different bins of every column, for histograms of columns.

    Parameters
    ----------
    columns : int, default=2
    rows : int, default=64
        The other rows alternate between the two values, so that the first histogram finds both.
    """

    columns: int = 2
    rows: int = 64
    unit: ClassVar[PrivacyUnit] = ROW

    def neighbours(self, relation: Relation, row: int = 0) -> Neighbours:
        """The two tables; under add-remove the second record has no values."""
        X = np.tile(np.resize([1.0, -1.0], self.rows)[:, None], (1, self.columns))
        tables = []
        for value in (1.0, -1.0 if replaces_one(relation) else np.nan):
            X[row] = value
            tables.append(as_source(X.copy(), np.zeros(self.rows), fit_intercept=False))
        other = "opposite values" if replaces_one(relation) else "values or none"
        return Neighbours(tables[0], tables[1], row, f"{other} in each of {self.columns} columns")


@dataclass(frozen=True)
class LabelCanary:
    """Opposite ends of the range of labels on one unit record; other rows empty.

    Parameters
    ----------
    columns : int, default=2
    person_rows : int, default=1
        Above 1, the canary is a person with so many copies of the record; all others have one row.
    """

    columns: int = 2
    person_rows: int = 1
    rows: ClassVar[int] = ROWS

    @property
    def unit(self) -> PrivacyUnit:
        return PrivacyUnit.person() if self.person_rows > 1 else ROW

    def neighbours(self, relation: Relation, row: int = 0) -> Neighbours:
        """The two tables, with the same features."""
        X = np.zeros((ROWS, self.columns))
        X[row, 0] = 1.0
        tables = []
        for label in (-FAR, FAR):  # both are clipped to the range
            y = np.zeros(ROWS)
            y[row] = label
            tables.append(_rows_of(X, y, row, self.person_rows, self.unit))
        whose = f"a person with {self.person_rows} rows, all alike: " * self.unit.is_person
        words = f"{whose}opposite labels on one public record; other rows empty"
        return Neighbours(tables[0], tables[1], row, words)


@dataclass(frozen=True)
class BoundedCanary:
    """Opposite targets on one record that keeps its length; other rows have no features.

    Parameters
    ----------
    low, high : float
        The two targets.
    intercept : bool, default=False
        Whether the model has one; then the record is the longest one.
    """

    low: float = -1.0
    high: float = 1.0
    columns: int = 2
    rows: int = ROWS
    intercept: bool = False
    unit: ClassVar[PrivacyUnit] = ROW

    def neighbours(self, relation: Relation, row: int = 0) -> Neighbours:
        """The two tables; under add-remove the second has the null record."""
        tables = []
        for target in (self.low, self.high):
            X, y = np.zeros((self.rows, self.columns)), np.zeros(self.rows)
            X[row, : self.columns if self.intercept else 1], y[row] = 1.0, target
            if not replaces_one(relation) and target == self.low:
                X[row] = np.nan
            tables.append(
                as_source(
                    X,
                    y,
                    fit_intercept=self.intercept,
                    scaled_labels=True,
                    scaling=RecordScaling.BOUNDED,
                )
            )
        words = "opposite targets on" if replaces_one(relation) else "a target on, or none of,"
        return Neighbours(tables[1], tables[0], row, f"{words} one record; other rows empty")


@dataclass(frozen=True)
class TextCanary:
    """Texts with counts at the threshold, in so many columns that one bit of each count reveals
    most of it.

    Parameters
    ----------
    columns : int, default=40
    common : int, default=30
        Number of rows with the first text on the first table; as many have the second text on the
        second.
    """

    columns: int = 40
    common: int = 30
    unit: ClassVar[PrivacyUnit] = ROW

    @property
    def rows(self) -> int:
        return 2 * self.common

    def at_threshold(
        self, solver: VocabularyQuery, budget: Budget, relation: Relation
    ) -> "TextCanary":
        """The same with counts on both sides of the threshold that follows from the budget."""
        problem = Problem(
            Squared(1.0), Zero(), self.rows, self.columns, relation, fit_intercept=False
        )
        settled = solver.for_budget(budget, problem)
        multiplier = settled.plan(problem).quote(problem, budget).multipliers["vocabulary"]
        least = settled.mechanism(problem).threshold(
            multiplier * Vocabulary(self.columns).sensitivity(relation)
        )
        return replace(self, common=round(least + 0.5))

    def neighbours(self, relation: Relation, row: int = 0) -> Neighbours:
        """The two tables; under add-remove the second record has no texts."""
        column: list[str | None] = ["first"] * self.common + ["second"] * (self.common - 1) + [None]
        tables = []
        for text in ("first", "second" if replaces_one(relation) else None):
            column[row] = text
            tables.append(TextColumns((tuple(column),) * self.columns))
        other = "another text" if replaces_one(relation) else "none"
        return Neighbours(
            tables[0],
            tables[1],
            row,
            f"a text against {other} in each of {self.columns} columns, counts at the threshold",
        )


AnyCanary: TypeAlias = (
    Canary | BoundedCanary | CellCanary | ClassCanary | LabelCanary | ListCanary | TextCanary
)
