"""Sum of the records. Proof: docs/proofs/gradient.md."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from hushfit._typing import IntVector, Vector
from hushfit.data import AT_MOST_ONE, Block, DataSource, RecordScaling
from hushfit.kernels.codes import ONE
from hushfit.privacy import Relation, by_relation
from hushfit.problem import Problem
from hushfit.release.exact_sum import ExactSum, exact_total
from hushfit.release.queries._gradient import ARITHMETIC_SLACK, UNIT_ROUNDOFF

_ALL_OF_IT = np.ones(1)  # caps of the slopes, which are one


@dataclass(frozen=True, eq=False)
class RecordSum:
    """Sum of the records, each of length one: the gradient of a loss whose slope is one.

    Parameters
    ----------
    problem : Problem
    """

    problem: Problem

    doubled = None
    sampled: ClassVar[bool] = True
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = True
    made_for: ClassVar[str | None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return problem.dimension

    @property
    def size(self) -> int:
        return self.problem.dimension

    @cached_property
    def _sum(self) -> ExactSum:
        return ExactSum(1.0, self.problem.n_units, self.size, self.problem.rows_per_unit)

    @property
    def grid(self) -> float:
        """Step to which contributions are rounded."""
        return self._sum.grid

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return exact_total(self, source, units)

    def exact_sums(self, source: DataSource, units: IntVector | None) -> Vector:
        w = np.zeros(self.problem.n_features + 1)

        def of_block(block: Block, grid: float) -> Vector:
            return block.gradient_sum(w, _ALL_OF_IT, ONE, 0.0, grid)

        return self._sum.over(source.blocks(units), w.shape, of_block)[: self.size]

    def radius(self) -> float:
        slack = max(ARITHMETIC_SLACK, 4 * self.problem.dimension * UNIT_ROUNDOFF)
        return 1.0 + slack + self._sum.rounding

    def sensitivity(self, relation: Relation) -> float:
        return self.radius() * by_relation(relation, replace_one=2, add_remove=1)
