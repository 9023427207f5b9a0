"""Sums of the numbers, squares and counts of columns, by group, in one release. Proof:
docs/proofs/statistics.md.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from hushfit._typing import AnyArray, IntVector, Matrix, Vector
from hushfit.data import Block, DataSource
from hushfit.errors import InvalidArgument
from hushfit.privacy import Relation, by_relation, require_records
from hushfit.problem import Problem
from hushfit.release.exact_sum import ExactSum
from hushfit.release.queries._column_histogram import cells_of_block
from hushfit.release.query import refuse_batch

# Factors of squares and of counts: their squares add up to one, as the proof needs.
SQUARE_WEIGHT = 0.5
KNOWN_WEIGHT = math.sqrt(0.75)
MOST_GROUPS = 64
"""Largest number of groups, for which a plan reserves noise before they are known."""
# Bound on the relative rounding error of the numbers that one record contributes.
_SLACK = 1e-9


class Totals(NamedTuple):
    """Sums over the records of each group (rows) and column, with the standard deviations of their
    noise.
    """

    sums: Matrix
    squares: Matrix
    known: Matrix
    sum_noise: float
    square_noise: float
    known_noise: float


@dataclass(frozen=True, eq=False)
class GroupMoments:
    r"""For each group and column, sums of :math:`v_i`, :math:`v_i^2 / 2` and
    :math:`\sqrt{3/4}` over the records of the group whose number v is known.

    Numbers are clipped to [-1, 1]. A cell that is missing (NaN) adds nothing to the sums of its
    column, and a record without a group adds nothing at all. Under replace-one squares, counts and
    groups ride for nothing: the sensitivity is that of the sums alone.

    Parameters
    ----------
    problem : Problem
    columns : tuple of int
        Which columns of the rows hold the numbers.
    by : int, optional
        The column of the groups: a record is in the group of the nearest whole number.
    groups : int, default=1
        Number of groups, from 0; one without ``by``.
    """

    problem: Problem
    columns: tuple[int, ...]
    by: int | None = None
    groups: int = 1

    doubled = None
    sampled: ClassVar[bool] = False
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        asked = self.columns if self.by is None else (*self.columns, self.by)
        if not self.columns or len(set(asked)) < len(asked):
            raise InvalidArgument(
                f"columns={self.columns} by {self.by} names none, or one twice. Give each once."
            )
        if not 1 <= self.groups <= (1 if self.by is None else MOST_GROUPS):
            raise InvalidArgument(
                f"groups={self.groups} does not suit by={self.by}. Give the column of the groups "
                f"and their number, at most {MOST_GROUPS}, or neither."
            )

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return 3 * problem.n_features * MOST_GROUPS

    @property
    def size(self) -> int:
        return 3 * self.groups * len(self.columns)

    @property
    def _shape(self) -> tuple[int, int, int]:
        return 3, self.groups, len(self.columns)

    @cached_property
    def _sum(self) -> ExactSum:
        return ExactSum(1.0, self.problem.n_units, self.size, self.problem.rows_per_unit)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)
        wanted = max(self.columns if self.by is None else (*self.columns, self.by))
        if source.n_features <= wanted:
            raise InvalidArgument(
                f"There are {source.n_features} columns and none with the number {wanted}. Name "
                "columns of the rows."
            )
        return self._sum.over(source.blocks(), (self.size,), self._of_block)

    def _of_block(self, block: Block, grid: float) -> Vector:
        cells: AnyArray = cells_of_block(block)
        total = np.zeros(self._shape)
        steps = np.broadcast_to(block.shares / grid, len(cells))
        group = np.zeros(len(cells)) if self.by is None else np.rint(cells[:, self.by])
        # A comparison with NaN is false: a record without a group is in none.
        grouped = (group >= 0) & (group < self.groups)
        for at, column in enumerate(self.columns):
            used = grouped & ~np.isnan(cells[:, column])
            v = np.clip(cells[used, column].astype(np.float64), -1.0, 1.0)
            place = group[used].astype(np.int64)
            for part, number in enumerate((v, SQUARE_WEIGHT * v**2, KNOWN_WEIGHT)):
                rounded = np.rint(number * steps[used])
                total[part, :, at] = np.bincount(place, rounded, self.groups) * grid
        return total.ravel()

    def totals(self, answer: Vector, multiplier: float) -> Totals:
        """The parts of a released answer, and their noise."""
        sums, squares, known = answer.reshape(self._shape)
        deviation = multiplier * self.sensitivity(self.problem.relation)
        return Totals(
            sums,
            squares / SQUARE_WEIGHT,
            known / KNOWN_WEIGHT,
            deviation,
            deviation / SQUARE_WEIGHT,
            deviation / KNOWN_WEIGHT,
        )

    def radius(self) -> float:
        longest = math.sqrt(2 * len(self.columns))
        return longest * (1 + _SLACK) + self._sum.rounding

    def sensitivity(self, relation: Relation) -> float:
        require_records(relation)
        # In each column the numbers 1 and -1 of one group, or any two of different groups.
        moved = by_relation(relation, replace_one=2.0, add_remove=math.sqrt(2))
        answers = by_relation(relation, replace_one=2, add_remove=1)
        columns = math.sqrt(len(self.columns))
        return moved * columns * (1 + _SLACK) + answers * self._sum.rounding
