"""Number of records of each class. Proof: docs/proofs/histogram.md."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushfit._typing import IntVector, Vector
from hushfit.data import DataSource, whole_shares
from hushfit.privacy import Relation, by_relation
from hushfit.problem import Problem
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
    for_labels: ClassVar[bool] = False
    made_for: ClassVar[str | None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return max(problem.outputs, 2)

    @property
    def size(self) -> int:
        return self.coordinates(self.problem)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)
        nothing, total = np.zeros(self.problem.n_features + 1), np.zeros(self.size)
        for block in source.blocks():
            labels = source.y[block.place]
            classes = (labels > 0) if self.problem.outputs == 1 else labels
            known = ~np.isnan(block.margins(nothing)) & (classes < self.size)
            shares, one = whole_shares(block.shares, source.n_units)
            weights = np.broadcast_to(shares, labels.shape)[known]
            places = classes[known].astype(np.int64)
            total += np.bincount(places, weights, minlength=self.size) / one
        return total

    def radius(self) -> float:
        return 1.0

    def sensitivity(self, relation: Relation) -> float:
        # A replaced record leaves one class and enters another.
        return by_relation(relation, replace_one=math.sqrt(2), add_remove=1.0)
