"""Sum of outer products of the records. Proof: docs/proofs/second_moment.md."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from hushfit._arrays import read_only, symmetric
from hushfit._typing import BoolVector, IntVector, Matrix, Vector
from hushfit.data import AT_MOST_ONE, Block, DataSource, RecordScaling
from hushfit.errors import InvalidArgument
from hushfit.kernels.threads import parallel_total
from hushfit.privacy import Relation, by_relation
from hushfit.problem import Problem
from hushfit.release.exact_sum import exact_total
from hushfit.release.query import refuse_batch

_EXACT_BITS = 52
# Sums stay below 2**53 steps as long as rounding does not double the square of a length.
_MOST_ROUNDING = 0.4


@dataclass(frozen=True, eq=False)
class SecondMoment:
    r"""Upper triangle of :math:`\sum_i x_i x_i^T`, records of length one.

    An off-diagonal entry represents two equal ones, so it has half the noise variance of a diagonal
    one. Then the noise is spherical in the Frobenius norm, in which a record has norm one and two
    records are at most :math:`\sqrt 2` apart.
    """

    problem: Problem

    sampled: ClassVar[bool] = False
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = True
    made_for: ClassVar[str | None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        if not SecondMoment(problem).is_exact:  # refused here, before anything is charged
            raise InvalidArgument(
                f"rows_per_person={problem.rows_per_unit} is too large for exact sums over "
                f"{problem.n_units} persons and {problem.n_features} columns. Give a smaller one."
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
        """Entries of a record are rounded to multiples of 1/steps, so that all products and sums
        are exact integers.
        """
        return 2.0 ** ((_EXACT_BITS - math.ceil(math.log2(max(self.problem.n_units, 2)))) // 2)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return self._answer(exact_total(self, source, units))

    def exact_sums(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)
        d = self.problem.dimension

        def of_block(block: Block) -> Matrix:
            return block.second_moment(self.steps)[:d, :d]

        total = parallel_total(of_block, source.blocks(), (d, d))
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

    @property
    def is_exact(self) -> bool:
        """Whether all sums are exact integers; public."""
        return self.rounding <= _MOST_ROUNDING

    def radius(self) -> float:
        # A person's rows, each times the square root of its weight, form a matrix of Frobenius norm
        # one; rounding changes each entry by at most half a step. The norm of the sum of outer
        # products is at most the square of that norm.
        scaling = max(1e-12, 4 * self.problem.dimension * 2.0**-53)
        return (1.0 + scaling + self.rounding) ** 2

    def sensitivity(self, relation: Relation) -> float:
        # |aa' - bb'|^2 = |a|^4 + |b|^4 - 2 (a.b)^2
        return self.radius() * by_relation(relation, replace_one=math.sqrt(2), add_remove=1.0)
