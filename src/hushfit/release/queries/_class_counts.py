"""Number of records of each class. Proof: docs/proofs/histogram.md."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushfit._typing import IntVector, Vector
from hushfit.data import AT_MOST_ONE, Block, DataSource, RecordScaling, whole_shares
from hushfit.kernels.threads import parallel_total
from hushfit.privacy import Relation, by_relation
from hushfit.problem import Problem
from hushfit.release.exact_sum import exact_total
from hushfit.release.query import refuse_batch


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """Number of records of each class, in the order of the classes. The zero record is in none.

    Parameters
    ----------
    problem : Problem
        With labels -1 and 1, or 0, 1, ... for several outputs.
    """

    problem: Problem

    doubled = None
    sampled: ClassVar[bool] = False
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = True
    made_for: ClassVar[str | None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return max(problem.outputs, 2)

    @property
    def size(self) -> int:
        return self.coordinates(self.problem)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return exact_total(self, source, units)

    def exact_sums(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)
        nothing = np.zeros(self.problem.n_features + 1)

        def of_block(block: Block) -> Vector:
            labels = source.y[block.place]
            classes = (labels > 0) if self.problem.outputs == 1 else labels
            known = ~np.isnan(block.margins(nothing)) & (classes < self.size)
            shares, one = whole_shares(block.shares, source.n_units)
            weights = np.broadcast_to(shares, labels.shape)[known]
            places = classes[known].astype(np.int64)
            return np.bincount(places, weights, minlength=self.size) / one

        return parallel_total(of_block, source.blocks(), (self.size,))

    def radius(self) -> float:
        return 1.0

    def sensitivity(self, relation: Relation) -> float:
        # A replaced record leaves one class and enters another.
        return by_relation(relation, replace_one=math.sqrt(2), add_remove=1.0)
