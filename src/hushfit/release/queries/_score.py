"""Sum over the records of a number between 0 and 1, such as whether a prediction was right.
Proof: docs/proofs/random_stopping.md.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushfit._typing import IntVector, Vector
from hushfit.data import DataSource, whole_shares
from hushfit.privacy import Relation, require_records
from hushfit.problem import Problem
from hushfit.release.query import refuse_batch


@dataclass(frozen=True)
class TotalScore:
    """Sum of the scores of all records, which the source carries as its labels.

    A score must be a function of its own record and public numbers. Outside [0, 1] it is clipped;
    one that is not a number is 0.
    """

    size: ClassVar[int] = 1
    doubled = None
    sampled: ClassVar[bool] = False
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = None
    problem: ClassVar[None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return 1

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)
        scores = np.clip(np.nan_to_num(source.y, nan=0.0), 0.0, 1.0)
        shares, one = whole_shares(source.shares, source.n_units)
        # Rounded down: a person's scores must not add up to more than one.
        return np.array([np.floor(shares * scores).sum() / one])

    def radius(self) -> float:
        return 1.0

    def sensitivity(self, relation: Relation) -> float:
        require_records(relation)
        # A replaced score changes within [0, 1], a removed one becomes 0.
        return 1.0
