"""Sum over the records of a number between 0 and 1, such as whether a prediction was right.
Proof: docs/proofs/random_stopping.md.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushfit._typing import IntVector, Vector
from hushfit.data import DataSource
from hushfit.privacy import Relation
from hushfit.problem import Problem
from hushfit.release.query import refuse_batch

# Scores are rounded to multiples of this, so that sums of up to 2**32 of them are exact in any
# order.
STEPS = 2.0**20


@dataclass(frozen=True)
class TotalScore:
    """Sum of the scores of all records, which the source carries as its labels.

    A score must be a function of its own record and public numbers. Outside [0, 1] it is clipped;
    one that is not a number is 0.
    """

    size: ClassVar[int] = 1
    doubled = None
    sampled: ClassVar[bool] = False
    made_for: ClassVar[str | None] = None
    problem: ClassVar[None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return 1

    def __call__(self, source: DataSource, rows: IntVector | None) -> Vector:
        refuse_batch(self, rows)
        scores = np.clip(np.nan_to_num(source.y, nan=0.0), 0.0, 1.0)
        return np.array([np.rint(scores * STEPS).sum() / STEPS])

    def radius(self) -> float:
        return 1.0

    def sensitivity(self, relation: Relation) -> float:
        # A replaced score changes within [0, 1], a removed one becomes 0.
        return 1.0
