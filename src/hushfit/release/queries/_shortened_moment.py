"""Second moments of records that were shortened to a public length. Proof:
docs/proofs/regression.md, parts 2 and 3.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from hushfit._arrays import read_only, symmetric
from hushfit._typing import BoolVector, IntVector, Matrix, Vector
from hushfit.data import BoundedBlock, DataSource, RecordScaling, bounded_blocks
from hushfit.errors import InvalidArgument
from hushfit.kernels.threads import parallel_total
from hushfit.privacy import Relation, by_relation, require_records
from hushfit.problem import Problem
from hushfit.release.exact_sum import ExactSum, exact_total
from hushfit.release.query import refuse_batch, refuse_extreme

_EXACT_BITS = 52
# Sums stay below 2**53 steps as long as rounding does not double the square of a length.
_MOST_ROUNDING = 0.4
_SLACK = 1e-9
# Largest ratio of the squared distance of (a^2, a/2) and (b^2, b/2) to a^2 + b^2 for |a|, |b| <= 1,
# rounded up.
_PAIR_RATIO = 1.275


@dataclass(frozen=True, eq=False)
class ShortenedMoment:
    r"""Upper triangle of :math:`\sum_i z_i z_i^T`, records with bounded entries and the intercept's
    entry, each shortened to a square of at most ``square``.

    Parameters
    ----------
    problem : Problem
    square : float
        Public bound on the squared length of a record, the intercept's entry included.
    """

    problem: Problem
    square: float

    sampled: ClassVar[bool] = False
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = True
    made_for: ClassVar[str | None] = None
    scalings: ClassVar[tuple[RecordScaling, ...]] = (RecordScaling.BOUNDED,)

    def __post_init__(self) -> None:
        refuse_extreme("square", self.square)

    @staticmethod
    def coordinates(problem: Problem) -> int:
        # The relative rounding hardly depends on the length: refused here, before any charge.
        entries = problem.dimension * problem.rows_per_unit
        coarsest = 2.0 ** (25 - math.log2(max(problem.n_units, 2)) / 2)
        if 0.5 * math.sqrt(entries) > _MOST_ROUNDING * coarsest:
            raise InvalidArgument(
                f"{problem.n_units} {problem.privacy_unit.plural} with {problem.n_features} "
                f"columns and up to {problem.rows_per_unit} rows each are too many for exact "
                "sums. Give a smaller rows_per_person, or fewer columns."
            )
        return problem.dimension * (problem.dimension + 1) // 2

    @cached_property
    def size(self) -> int:
        return self.coordinates(self.problem)

    @cached_property
    def doubled(self) -> BoolVector:
        row, column = np.triu_indices(self.problem.dimension)
        off_diagonal: BoolVector = row != column
        return read_only(off_diagonal)  # it determines where the noise variance is halved

    @property
    def steps(self) -> float:
        """Entries are rounded to multiples of 1/steps, so that all sums are exact integers."""
        most = max(self.problem.n_units, 2) * self.square
        return 2.0 ** ((_EXACT_BITS - math.ceil(math.log2(most))) // 2)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return self._answer(exact_total(self, source, units))

    def exact_sums(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)
        d, constant = self.problem.dimension, self.problem.constant

        def of_block(block: BoundedBlock) -> Matrix:
            factors = shortening(block, self.square, constant**2)
            return block.second_moment(self.steps, factors)[:d, :d]

        total = parallel_total(of_block, bounded_blocks(source), (d, d))
        return total[np.triu_indices(d)]

    def _answer(self, total: Vector) -> Vector:
        return total / self.steps**2

    def matrix(self, answer: Vector) -> Matrix:
        """The symmetric matrix of a released answer."""
        d = self.problem.dimension
        return symmetric(answer, d)

    @property
    def rounding(self) -> float:
        """Bound on what rounding adds to the length of a record, or of a person's rows taken as
        one vector.
        """
        entries = self.problem.dimension * self.problem.rows_per_unit
        return 0.5 * math.sqrt(entries) / self.steps

    def radius(self) -> float:
        return (math.sqrt(self.square) * (1 + _SLACK) + self.rounding) ** 2

    def sensitivity(self, relation: Relation) -> float:
        require_records(relation)
        # |aa' - bb'|^2 = |a|^4 + |b|^4 - 2 (a.b)^2
        return self.radius() * by_relation(relation, replace_one=math.sqrt(2), add_remove=1.0)


@dataclass(frozen=True, eq=False)
class ColumnMoments:
    r"""Sums of :math:`x_i \circ x_i` and of :math:`x_i / 2` over the records, each shortened to a
    square of at most ``square``: as many numbers as twice the columns, where a matrix of second
    moments would be too large.

    Parameters
    ----------
    problem : Problem
    square : float
        Public bound on the squared length of the features of a record.
    """

    problem: Problem
    square: float

    doubled = None
    sampled: ClassVar[bool] = False
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = True
    made_for: ClassVar[str | None] = None
    scalings: ClassVar[tuple[RecordScaling, ...]] = (RecordScaling.BOUNDED,)

    def __post_init__(self) -> None:
        refuse_extreme("square", self.square)

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return 2 * problem.n_features

    @property
    def size(self) -> int:
        return 2 * self.problem.n_features

    @cached_property
    def _sum(self) -> ExactSum:
        problem = self.problem
        return ExactSum(1.0, problem.n_units, self.size, problem.rows_per_unit)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return self._answer(exact_total(self, source, units))

    def exact_sums(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)

        def of_block(block: BoundedBlock, grid: float) -> Vector:
            factors = shortening(block, self.square, 0.0)
            # Half of an entry is rounded to the grid if the entry is rounded to twice the grid.
            return block.moment_sums(factors, np.array([grid, 2 * grid]))

        return self._sum.over(bounded_blocks(source), (2, self.problem.n_features), of_block)

    def _answer(self, totals: Vector) -> Vector:
        return np.concatenate([totals[0], totals[1] / 2])

    def moments(self, answer: Vector) -> tuple[Vector, Vector]:
        """Means of the squares and of the entries of each column, from a released answer."""
        squares, halves = np.split(answer / self.problem.n_units, 2)
        return squares, 2 * halves

    def radius(self) -> float:
        return math.sqrt(1.25 * self.square) * (1 + _SLACK) + self._sum.rounding

    def sensitivity(self, relation: Relation) -> float:
        require_records(relation)
        moved = by_relation(relation, replace_one=2 * _PAIR_RATIO, add_remove=1.25)
        answers = by_relation(relation, replace_one=2, add_remove=1)
        return math.sqrt(moved * self.square) * (1 + _SLACK) + answers * self._sum.rounding


def shortening(block: BoundedBlock, square: float, constant_square: float) -> Vector:
    """Factors that shorten each record, with an entry of that square besides its features, to a
    square of at most ``square``; 0 for the zero record.
    """
    squares = np.nan_to_num(block.squares(), nan=np.inf) + constant_square
    # Never above one, and without a quotient that overflows: its warning would tell of a record.
    return np.sqrt(square / np.maximum(squares, square))
