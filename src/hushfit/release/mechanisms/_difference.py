"""Differences of gradients from a snapshot, and the published variance-reduced gradient. Proof:
docs/proofs/difference.md.
"""

import math
from dataclasses import dataclass
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from hushfit._arrays import keep_read_only
from hushfit._typing import IntVector, Vector
from hushfit.data import AT_MOST_ONE, Block, Coins, DataSource, RecordScaling, poisson_units
from hushfit.errors import InvalidArgument
from hushfit.privacy import Cost, Relation, by_relation, replaces_one
from hushfit.privacy.costs import MixtureGaussianCost, mixture_refused
from hushfit.problem import Problem
from hushfit.release.exact_sum import ExactSum
from hushfit.release.mechanism import Entropy, gaussian_answer
from hushfit.release.mechanisms._batches import Sampling
from hushfit.release.queries import ARITHMETIC_SLACK, ClippedGradient, with_intercept
from hushfit.release.query import Query, three_weight_arrays

# Relative to the clipping norm. A bound may go to zero as the weights converge; the grid of the
# sums need not.
_MIN_RELATIVE_BOUND = 2.0**-40
# Smallest bound, which keeps the grid well within the range of floating point.
_MIN_BOUND = 2.0**-800
_UNIT_ROUNDOFF = 2.0**-53


def difference_bound(problem: Problem, w: Vector, snapshot: Vector, clip: float) -> float:
    """Bound on the distance between one record's clipped gradients at two public points.

    Parameters
    ----------
    problem : Problem
    w, snapshot : arrays of shape ``problem.shape``
    clip : float
        Clipping norm of a gradient.

    Returns
    -------
    float
        The smaller of the bounds by clipping and by the smoothness of the loss. The privacy
        guarantee does not depend on it.
    """
    by_clip = clip if problem.loss.one_sign else 2 * clip
    by_smoothness = problem.loss.smoothness * float(np.linalg.norm(w - snapshot))
    return min(by_clip, (1 + ARITHMETIC_SLACK) * by_smoothness)


@dataclass(frozen=True, eq=False)
class GradientDifference:
    r"""Sum over the records of their clipped gradient at ``w`` minus that at ``snapshot``, the
    difference clipped once more.

    Near the snapshot differences are short, so their sum needs little noise.

    Parameters
    ----------
    problem : Problem
    w, snapshot : arrays of shape ``problem.shape``
        Public.
    clip : float
        Clipping norm of each of the two gradients.
    bound : float
        Clipping norm of their difference; it may depend on earlier releases. See
        `difference_bound`.
    """

    problem: Problem
    w: Vector
    snapshot: Vector
    clip: float
    bound: float

    doubled = None
    sampled: ClassVar[bool] = True
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return three_weight_arrays(problem)

    @property
    def size(self) -> int:
        return self.w.size

    @property
    def _sum(self) -> ExactSum:
        return ExactSum(
            max(self.bound, _MIN_RELATIVE_BOUND * self.clip, _MIN_BOUND),
            self.problem.n_units,
            self.size,
            self.problem.rows_per_unit,
        )

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        w, v = (
            np.ascontiguousarray(with_intercept(point, self.problem))
            for point in (self.w, self.snapshot)
        )

        def of_block(block: Block, grid: float) -> Vector:
            return block.difference_sum(
                w, v, self.clip, self.bound, *self.problem.loss.kernel, grid
            )

        total = self._sum.over(source.blocks(units), w.shape, of_block)
        return total[..., : self.problem.dimension].ravel()

    def radius(self) -> float:
        return self.bound * (1 + ARITHMETIC_SLACK) + self._sum.rounding

    def sensitivity(self, relation: Relation) -> float:
        # Replace-one removes one difference and adds another; add-remove only removes one.
        return self.radius() * by_relation(relation, replace_one=2, add_remove=1)


@dataclass(frozen=True)
class AnchoredBatch(Sampling):
    """Every record in the full gradient, and each independently with probability ``rate`` in a
    batch as well.

    There is no privacy amplification by sampling here: no record is ever left out. It answers
    `VarianceReducedGradient`.

    Parameters
    ----------
    rate : float
        Probability that a record is in the batch.
    ratio : float
        Sensitivity of the answer to a record outside the batch, over that to one inside; see
        `anchored_batch`.
    """

    rate: float = 0.1
    ratio: float = 1.0

    @property
    def answers(self) -> type[Query]:
        return VarianceReducedGradient

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1 or not 0 < self.ratio <= 1:
            raise InvalidArgument(f"{self!r} needs a rate and a ratio in (0, 1].")

    def units(self, n_units: int, coins: Coins) -> IntVector:
        return poisson_units(n_units, self.rate, coins)

    def expected_units(self, n_units: int) -> float:
        return self.rate * n_units

    def multiplier(self, strength: float, count: int, n_units: int) -> float:
        # By the central limit theorem the mean sensitivity to a record determines the composition.
        mean = self.rate + (1 - self.rate) * self.ratio
        return 1 / math.sqrt(math.log1p(strength**2 / (mean**2 * count)))

    def cost(self, noise_multiplier: float, count: int, n_units: int) -> Cost:
        return MixtureGaussianCost(noise_multiplier, self.rate, self.ratio, count)

    def objection(self, query: "VarianceReducedGradient", relation: Relation) -> str | None:
        own = anchored_batch(query.problem, query.rate)
        return None if self == own else f"with {self!r}, which is not the batch of this query"

    def answer(
        self,
        query: Query,
        source: DataSource,
        noise_multiplier: float,
        entropy: Entropy,
    ) -> Vector:
        """Noise on a grid that is fine even for the effect of a record outside the batch."""
        units = self.units(source.n_units, entropy.coins)
        return gaussian_answer(query, source, units, noise_multiplier, entropy, self.ratio)

    def __str__(self) -> str:
        return f"all rows, and each with probability {self.rate:g} once more"


def anchored_batch(problem: Problem, rate: float) -> AnchoredBatch:
    """The batch of a `VarianceReducedGradient`, with the ratio from its proof for the loss."""
    return AnchoredBatch(rate, rate if problem.loss.one_sign else rate / (2 - rate))


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A public point whose full clipped gradient is cached inside the boundary, so that it is
    computed once.
    """

    w: Vector
    clip: float

    def __post_init__(self) -> None:
        keep_read_only(self, "w")  # the cached gradient must belong to this point


# Cached full gradients at snapshots. They are private: nothing outside this file reads them.
_anchors: WeakKeyDictionary[Snapshot, WeakKeyDictionary[DataSource, tuple[Problem, Vector]]] = (
    WeakKeyDictionary()
)


@dataclass(frozen=True, eq=False)
class VarianceReducedGradient:
    r"""The published gradient of DP-VRADMM: :math:`\sum_{i \in B} (g_i(w) - g_i(\tilde w)) + q
    \sum_i g_i(\tilde w)`.

    Parameters
    ----------
    problem : Problem
    w : array of shape ``problem.shape``
    snapshot : Snapshot
        Where the full gradient is taken, and the clipping norm of a record's gradient at either
        point.
    rate : float
        Sampling rate of the `AnchoredBatch` that answers it.
    """

    problem: Problem
    w: Vector
    snapshot: Snapshot
    rate: float

    doubled = None
    # Plain sampled batches would count a record outside the batch as absent, which it is not.
    sampled: ClassVar[bool] = False
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = "anchored_batch(problem, rate)"

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return three_weight_arrays(problem)

    @property
    def size(self) -> int:
        return self.w.size

    @property
    def _full(self) -> ClippedGradient:
        return ClippedGradient(self.problem, self.snapshot.w, self.snapshot.clip)

    @property
    def _difference(self) -> GradientDifference:
        clip = self.snapshot.clip
        return GradientDifference(self.problem, self.w, self.snapshot.w, clip, 2 * clip)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        of_sources = _anchors.setdefault(self.snapshot, WeakKeyDictionary())
        if source not in of_sources or of_sources[source][0] is not self.problem:
            of_sources[source] = (self.problem, self._full(source, None))
        return self._difference(source, units) + self.rate * of_sources[source][1]

    def radius(self) -> float:
        difference = self._difference
        rounding = difference.radius() - difference.bound
        # In the batch a record contributes with slope s - (1 - q) s': at most the larger of the two
        # if they have the same sign.
        longest = 1.0 if self.problem.loss.one_sign else 2 - self.rate
        outside = anchored_batch(self.problem, self.rate).ratio
        return longest * self._full.radius() + rounding + self._summation_error / outside

    @property
    def _summation_error(self) -> float:
        """Rounding error of the product and of the sum, vectors with the norm of n gradients, on
        both tables.
        """
        return 4 * _UNIT_ROUNDOFF * self.problem.n_units * self._full.radius()

    def sensitivity(self, relation: Relation) -> float:
        if replaces_one(relation):
            raise mixture_refused()
        return self.radius()
