"""Histogram of the signed margins of the records. Proof: docs/proofs/histogram.md."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushfit._typing import IntVector, Vector
from hushfit.data import AT_MOST_ONE, Block, DataSource, RecordScaling, whole_shares
from hushfit.errors import InvalidArgument
from hushfit.kernels.threads import parallel_total
from hushfit.privacy import Relation, by_relation
from hushfit.problem import Problem
from hushfit.release.exact_sum import exact_total
from hushfit.release.query import refuse_batch

MAX_BINS = 1024
"""Largest number of bins of one histogram, for which a plan reserves noise before the edges are
known.
"""


def check_bins(bins: int) -> None:
    """Refuse a histogram that draws more noise than its plan reserves."""
    if bins > MAX_BINS:
        raise InvalidArgument(
            f"A histogram of {bins} bins is too fine: plans allow {MAX_BINS}. Give fewer edges."
        )


@dataclass(frozen=True, eq=False)
class MarginHistogram:
    """Histogram of the signed margin ``y * (w . x)``, for two classes. The zero record is in no
    bin.

    Parameters
    ----------
    problem : Problem
    w : array of shape ``problem.shape``
        Public weights.
    edges : increasing array
        Public inner edges of the bins; the first and the last bin are unbounded.
    """

    problem: Problem
    w: Vector
    edges: Vector

    doubled = None
    sampled: ClassVar[bool] = False
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = True
    made_for: ClassVar[str | None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return MAX_BINS

    def __post_init__(self) -> None:
        check_bins(len(self.edges) + 1)

    @property
    def size(self) -> int:
        return len(self.edges) + 1

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return exact_total(self, source, units)

    def exact_sums(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)
        w = self.w if self.problem.fit_intercept else np.append(self.w, 0.0)

        def of_block(block: Block) -> Vector:
            signed = source.y[block.place] * block.margins(w)
            shares, one = whole_shares(block.shares, source.n_units)
            known = ~np.isnan(signed)
            bins = np.searchsorted(self.edges, signed[known])
            weights = np.broadcast_to(shares, signed.shape)[known]
            return np.bincount(bins, weights, minlength=self.size) / one

        return parallel_total(of_block, source.blocks(), (self.size,))

    def radius(self) -> float:
        return 1.0

    def sensitivity(self, relation: Relation) -> float:
        # A replaced record leaves one bin and enters another.
        return by_relation(relation, replace_one=math.sqrt(2), add_remove=1.0)
