"""Sum of outer products of the records. Proof: docs/proofs/second_moment.md."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from hushfit._arrays import read_only
from hushfit._typing import BoolVector, IntVector, Matrix, Vector
from hushfit.data import DataSource
from hushfit.privacy import Relation, by_relation
from hushfit.problem import Problem
from hushfit.release.query import refuse_batch

_EXACT_BITS = 52


@dataclass(frozen=True, eq=False)
class SecondMoment:
    r"""Upper triangle of :math:`\sum_i x_i x_i^T`, records of length one.

    An off-diagonal entry represents two equal ones, so it has half the noise variance of a diagonal
    one. Then the noise is spherical in the Frobenius norm, in which a record has norm one and two
    records are at most :math:`\sqrt 2` apart.
    """

    problem: Problem

    sampled: ClassVar[bool] = False
    made_for: ClassVar[str | None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return problem.dimension * (problem.dimension + 1) // 2

    @property
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
        return 2.0 ** ((_EXACT_BITS - math.ceil(math.log2(max(self.problem.n_rows, 2)))) // 2)

    def __call__(self, source: DataSource, rows: IntVector | None) -> Vector:
        refuse_batch(self, rows)
        d = self.problem.dimension
        total = np.zeros((d, d))
        for block in source.blocks():
            total += block.second_moment(self.steps)[:d, :d]
        return total[np.triu_indices(d)] / self.steps**2

    def matrix(self, answer: Vector) -> Matrix:
        """The symmetric matrix of a released answer."""
        d = self.problem.dimension
        M = np.zeros((d, d))
        M[np.triu_indices(d)] = answer
        return M + np.triu(M, 1).T

    def radius(self) -> float:
        # The norm of a rounded record exceeds one by at most half a step in every coordinate; the
        # norm of its outer product is the square of its norm.
        scaling = max(1e-12, 4 * self.problem.dimension * 2.0**-53)
        return (1.0 + scaling + 0.5 * math.sqrt(self.problem.dimension) / self.steps) ** 2

    def sensitivity(self, relation: Relation) -> float:
        # |aa' - bb'|^2 = |a|^4 + |b|^4 - 2 (a.b)^2
        return self.radius() * by_relation(relation, replace_one=math.sqrt(2), add_remove=1.0)
