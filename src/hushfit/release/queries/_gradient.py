"""Sum of clipped gradients, in a public metric. Proof: docs/proofs/gradient.md."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from hushfit._arrays import keep_read_only
from hushfit._typing import IntVector, Matrix, Vector
from hushfit.data import Block, DataSource
from hushfit.errors import InvalidArgument
from hushfit.kernels.threads import parallel_map
from hushfit.losses import Loss
from hushfit.privacy import Relation, by_relation
from hushfit.problem import Problem
from hushfit.release.exact_sum import ExactSum
from hushfit.release.query import three_weight_arrays

# Bound on the relative rounding error of one record's contribution: a few hundred operations of
# relative error 2**-53 each.
ARITHMETIC_SLACK = 1e-9
_UNIT_ROUNDOFF = 2.0**-53


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

    @cached_property
    def norm(self) -> float:
        """Bound on its operator norm: its Frobenius norm."""
        return float(np.linalg.norm(self.A)) * (1 + ARITHMETIC_SLACK)

    @cached_property
    def error(self) -> float:
        """Bound on the rounding error of multiplying a unit vector by it in float64."""
        return 2 * len(self.A) * _UNIT_ROUNDOFF * self.norm


# Cached norms of the records in a metric, for the lifetime of metric and source.
_lengths: WeakKeyDictionary[Metric, WeakKeyDictionary[DataSource, Vector]] = WeakKeyDictionary()


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
    metric : Metric or None
        The identity when None.
    """

    problem: Problem
    w: Vector
    clip: float
    metric: Metric | None = None

    doubled = None
    sampled: ClassVar[bool] = True
    for_labels: ClassVar[bool] = False
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
        kernel, caps = self.loss.kernel, self._caps(source)
        w = np.ascontiguousarray(with_intercept(self.w, self.problem))

        def of_block(block: Block, grid: float) -> Vector:
            own_caps = caps if len(caps) == 1 else caps[block.place]
            return block.gradient_sum(w, own_caps, kernel.code, kernel.parameter, grid)

        total = self._sum.over(source.blocks(units), w.shape, of_block)
        total = total[..., : self.problem.dimension]
        return (total if self.metric is None else total @ self.metric.A).ravel()

    def _caps(self, source: DataSource) -> Vector:
        """Largest slope of each record. Records are unit vectors; in a metric each has its own
        norm.
        """
        if self.metric is None:
            return np.array([self.clip])
        lengths = _lengths_in(self.metric, source, self.problem)
        # The computed norm may be too small by its rounding error.
        return self.clip / (lengths + self.metric.error)

    def radius(self) -> float:
        problem, metric = self.problem, self.metric
        stretch, error = (1.0, 0.0) if metric is None else (metric.norm, metric.error)
        slack = max(ARITHMETIC_SLACK, 4 * problem.dimension * _UNIT_ROUNDOFF)
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


def _lengths_in(metric: Metric, source: DataSource, problem: Problem) -> Vector:
    of_sources = _lengths.setdefault(metric, WeakKeyDictionary())
    if source not in of_sources:
        A = (
            metric.A.copy() if problem.fit_intercept else np.pad(metric.A, (0, 1))
        )  # loops are compiled for writable arrays
        lengths = np.zeros(len(source.y))

        def measure(block: Block) -> None:
            lengths[block.place] = block.lengths(A)

        list(parallel_map(measure, source.blocks()))
        of_sources[source] = lengths
    return of_sources[source]
