"""Canaries for ranking: two sets of lists on which the accounted epsilon of a ranking solver is
attained, or nearly.

The attacked list has two documents, of which the first or the second is relevant: what it
contributes then points to opposite sides, at full length. All other lists have one document, and
no document can be ranked above another there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hushfit._typing import Vector
from hushfit.audit.attacks._auditor import Neighbours
from hushfit.data import Persons
from hushfit.data.lists import Documents, RankedLists
from hushfit.privacy import Relation, exchanges, labels_only
from hushfit.ranking_problem import ListwiseLoss, RankingProblem
from hushfit.release import Door, Plan
from hushfit.solvers import Iterate
from hushfit.solvers.ranking import RankingSolver
from hushfit.unit import LIST, PrivacyUnit

UNITS = 8


@dataclass(frozen=True)
class RankingRun:
    """A ranking solver in the form of a solver for tables, so that it is attacked and replayed in
    the same way.

    Parameters
    ----------
    solver : RankingSolver
    """

    solver: RankingSolver

    takes_constraint = False

    def plan(self, problem: Any) -> Plan:
        return self.solver.plan(problem)

    def iterates(self, problem: Any, door: Door) -> Iterator[Iterate]:
        yield Iterate(self.solver.solve(problem, door))


@dataclass(frozen=True)
class ListCanary:
    """A list of two documents, the first or the second of them relevant; other lists have one.

    Parameters
    ----------
    loss : {"listnet", "listmle", "bayesrank"}
    hidden : int, default=0
        Hidden units of the scorer.
    person_lists : int, default=1
        Above 1, the canary is a person with so many copies of the list; all others have one list.
    """

    loss: str = "listnet"
    hidden: int = 0
    person_lists: int = 1
    columns: ClassVar[int] = 2
    rows: ClassVar[int] = UNITS

    @property
    def unit(self) -> PrivacyUnit:
        return PrivacyUnit.person(record="list") if self.person_lists > 1 else LIST

    def neighbours(self, relation: Relation, row: int = 0) -> Neighbours:
        """The two sets of lists; with public documents, both have the same."""
        owners = self._owners(row)
        own = owners.codes == row if owners is not None else np.arange(UNITS) == row
        documents = _documents(np.where(own, 2, 1), self.columns)
        empty = documents if exchanges(relation) else _documents(np.ones(len(own), int), 2)
        tables = [
            RankedLists(documents, _relevant(documents, 0), owners),
            RankedLists(empty, _relevant(empty, 1), owners),
        ]
        return Neighbours(tables[0], tables[1], row, self.words(relation))

    def _owners(self, row: int) -> Persons | None:
        if self.person_lists == 1:
            return None
        codes = np.append(np.arange(UNITS), np.full(self.person_lists - 1, row))
        return Persons(codes, UNITS, self.unit)

    def problem(self, relation: Relation, neighbours: Neighbours) -> RankingProblem:
        """The ranking problem of these lists."""
        lists: Any = neighbours.first
        public = labels_only(relation)
        return RankingProblem(
            ListwiseLoss(self.loss),
            UNITS,
            self.columns,
            relation,
            self.hidden,
            self.unit,
            lists.documents if public else None,
            lists.shares if public and self.unit.is_person else None,
        )

    def words(self, relation: Relation) -> str:
        """Description of how the lists differ."""
        whose = f"a person with {self.person_lists} lists, all alike: " * (self.person_lists > 1)
        other = (
            "the first or the second of two documents relevant"
            if exchanges(relation)
            else "a list of two documents against one without a choice"
        )
        return f"{whose}{other}; other lists have one document"


def _documents(lengths: Any, columns: int) -> Documents:
    """Lists of one or two documents, which differ in the first column."""
    X = np.zeros((int(lengths.sum()), columns))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    X[starts[:-1][lengths == 2], 0] = 1.0
    return Documents(X, starts)


def _relevant(documents: Documents, place: int) -> Vector:
    """Grades with one relevant document in each list of several, in this place."""
    grades = np.zeros(len(documents.X))
    grades[documents.starts[:-1][documents.lengths > 1] + place] = 1.0
    return grades
