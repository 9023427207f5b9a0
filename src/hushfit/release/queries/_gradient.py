"""Sum of clipped gradients, in a public metric. Proof: docs/proofs/gradient.md."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from hushfit._arrays import keep_read_only
from hushfit._typing import IntVector, Matrix, Vector
from hushfit.data import AT_MOST_ONE, Block, DataSource, RecordScaling
from hushfit.errors import InvalidArgument
from hushfit.kernels.threads import parallel_map
from hushfit.losses import Loss
from hushfit.privacy import Relation, by_relation
from hushfit.problem import Problem
from hushfit.release.exact_sum import ExactSum, exact_total
from hushfit.release.queries._unpickled_once import unpickled_once
from hushfit.release.query import refuse_extreme, three_weight_arrays

# Bound on the relative rounding error of one record's contribution: a few hundred operations of
# relative error 2**-53 each.
ARITHMETIC_SLACK = 1e-9
UNIT_ROUNDOFF = 2.0**-53


@unpickled_once
@dataclass(frozen=True, eq=False)
class Metric:
    """A public symmetric matrix (preconditioner): gradients are clipped and get noise after
    multiplication by it.
    """

    A: Matrix

    def __post_init__(self) -> None:
        # Its norm and the norms of records in it are computed once, and sensitivities depend on
        # them.
        keep_read_only(self, "A")
        if self.A.any():  # nothing is too long in a metric of zeros
            refuse_extreme("norm of the metric", self.norm)

    @cached_property
    def norm(self) -> float:
        """Bound on its operator norm: its Frobenius norm."""
        with np.errstate(over="ignore"):  # refused then
            return float(np.linalg.norm(self.A)) * (1 + ARITHMETIC_SLACK)

    @cached_property
    def error(self) -> float:
        """Bound on the rounding error of multiplying a unit vector by it in float64."""
        return 2 * len(self.A) * UNIT_ROUNDOFF * self.norm

    def image(self, w: Vector) -> Vector:
        """The metric times a vector, or times each row of an array."""
        return np.asarray(w @ self.A)

    def lengths(self, block: Block, intercept: bool) -> Vector:
        """Norm of the image of each record of a block."""
        # loops are compiled for writable arrays
        return block.lengths(self.A.copy() if intercept else np.pad(self.A, (0, 1)))


@unpickled_once
@dataclass(frozen=True, eq=False)
class RankOneMetric:
    r"""The metric :math:`(I - (1 - \kappa) v v^T) / r` with a public unit vector v: a direction is
    shortened. It is never a matrix in memory, and sparse rows stay sparse.

    Parameters
    ----------
    direction : array
        The v, which is scaled to length one.
    factor : float
        The :math:`\kappa`, above 0 and at most 1: what lengths along v are multiplied by.
    scale : float
        The r, above 0.
    """

    direction: Vector
    factor: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        # Squares of the entries themselves may underflow, and a direction that is longer than one
        # is no metric.
        largest = float(np.abs(self.direction).max(initial=0.0))
        direction = self.direction / (largest if 0 < largest < math.inf else 1.0)
        length = float(np.linalg.norm(direction))
        if not (0 < length < math.inf and 0 < self.factor <= 1 and 0 < self.scale < math.inf):
            raise InvalidArgument(
                f"A metric needs a direction, a factor in (0, 1] and a positive scale, not a "
                f"vector of length {length:g}, {self.factor!r} and {self.scale!r}."
            )
        refuse_extreme("scale", self.scale)
        object.__setattr__(self, "direction", direction / length)
        keep_read_only(self, "direction")

    @property
    def norm(self) -> float:
        """Bound on its operator norm."""
        return (1 + ARITHMETIC_SLACK) / self.scale

    @property
    def error(self) -> float:
        """Bound on the rounding error of the length of a unit vector multiplied by it, and of the
        product itself.
        """
        return 16 * (len(self.direction) + 16) * UNIT_ROUNDOFF / (self.factor * self.scale)

    def image(self, w: Vector) -> Vector:
        """The metric times a vector, or times each row of an array."""
        along = (w @ self.direction)[..., None] * self.direction
        return np.asarray((w - (1 - self.factor) * along) / self.scale)

    def lengths(self, block: Block, intercept: bool) -> Vector:
        """Norm of the image of each record; 0 for the zero record."""
        v = self.direction.copy() if intercept else np.append(self.direction, 0.0)
        along = np.nan_to_num(block.margins(v), nan=0.0)
        # Records are unit vectors; a margin beyond one is a rounding error.
        squares = 1 - (1 - self.factor**2) * np.minimum(along * along, 1.0)
        return np.asarray(np.sqrt(squares) / self.scale)


# Cached largest slopes of the records in a metric, for the lifetime of metric and source.
_caps: WeakKeyDictionary[
    "Metric | RankOneMetric", WeakKeyDictionary[DataSource, dict[float, Vector]]
] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class ClippedGradient:
    r"""Sum over the records of :math:`A g_i`, each clipped to norm ``clip``.

    The gradient of a record is slope times record, so its norm is the product of two numbers and no
    array of per-record gradients is ever stored. A capped slope is again the gradient of a convex
    loss.

    Parameters
    ----------
    problem : Problem
    w : array of shape ``problem.shape``
        Where the gradient is taken; public.
    clip : float
    metric : Metric, RankOneMetric or None
        The identity when None.
    """

    problem: Problem
    w: Vector
    clip: float
    metric: Metric | RankOneMetric | None = None

    doubled = None
    sampled: ClassVar[bool] = True
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = True
    made_for: ClassVar[str | None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return three_weight_arrays(problem)

    def __post_init__(self) -> None:
        if self.w.shape != self.problem.shape:
            raise InvalidArgument(
                f"w has shape {self.w.shape}, but the weights of the problem have "
                f"{self.problem.shape}."
            )

    @property
    def size(self) -> int:
        return self.w.size

    @property
    def loss(self) -> Loss:
        return self.problem.loss

    @cached_property
    def _sum(self) -> ExactSum:
        problem = self.problem
        return ExactSum(self.loss.slope_bound, problem.n_units, self.size, problem.rows_per_unit)

    @property
    def grid(self) -> float:
        """Step to which contributions are rounded."""
        return self._sum.grid

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return self._answer(exact_total(self, source, units))

    def exact_sums(self, source: DataSource, units: IntVector | None) -> Vector:
        kernel, caps = self.loss.kernel, self._caps(source)
        w = np.ascontiguousarray(with_intercept(self.w, self.problem))

        def of_block(block: Block, grid: float) -> Vector:
            own_caps = caps if len(caps) == 1 else caps[block.place]
            return block.gradient_sum(w, own_caps, kernel.code, kernel.parameter, grid)

        return self._sum.over(source.blocks(units), w.shape, of_block)

    def _answer(self, total: Vector) -> Vector:
        total = total[..., : self.problem.dimension]
        return (total if self.metric is None else self.metric.image(total)).ravel()

    def _caps(self, source: DataSource) -> Vector:
        """Largest slope of each record. Records are unit vectors; in a metric each has its own
        norm.
        """
        if self.metric is None:
            return np.array([self.clip])
        of_sources = _caps.setdefault(self.metric, WeakKeyDictionary())
        of_clips = of_sources.setdefault(source, {})
        if self.clip not in of_clips:
            of_clips.clear()  # one clipping norm at a time: every step of a run uses the same
            of_clips[self.clip] = self._caps_in(self.metric, source)
        return of_clips[self.clip]

    def _caps_in(self, metric: Metric | RankOneMetric, source: DataSource) -> Vector:
        caps = source.row_vector()

        def measure(block: Block) -> None:
            lengths = metric.lengths(block, self.problem.fit_intercept)
            # The computed norm may be too small by its rounding error.
            caps[block.place] = self.clip / (lengths + metric.error)

        list(parallel_map(measure, source.blocks()))
        return caps

    def radius(self) -> float:
        return self._radius

    @cached_property  # asked for several times in each release of a small batch
    def _radius(self) -> float:
        problem, metric = self.problem, self.metric
        stretch, error = (1.0, 0.0) if metric is None else (metric.norm, metric.error)
        slack = max(ARITHMETIC_SLACK, 4 * problem.dimension * UNIT_ROUNDOFF)
        product = error * problem.loss.slope_bound * problem.n_units
        return self.clip * (1 + slack) + self._sum.rounding * stretch + product

    def sensitivity(self, relation: Relation) -> float:
        # Replace-one removes one contribution and adds another; add-remove only removes one.
        return self.radius() * by_relation(relation, replace_one=2, add_remove=1)


def with_intercept(w: Vector, problem: Problem) -> Vector:
    """The weights with an entry for the intercept, which kernels expect; zero for a model without
    one.
    """
    if problem.fit_intercept:
        return w
    return np.concatenate([w, np.zeros((*w.shape[:-1], 1))], axis=-1)
