"""Sums of a bounded number of each record and of its square, in one release. Proof:
docs/proofs/regression.md, part 1.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from hushfit._arrays import keep_read_only
from hushfit._typing import IntVector, Matrix, Vector
from hushfit.data import BoundedBlock, DataSource, RecordScaling, bounded_blocks
from hushfit.errors import InvalidArgument
from hushfit.kernels import counting
from hushfit.privacy import Relation, by_relation, require_records
from hushfit.problem import Problem
from hushfit.release.exact_sum import ExactSum, exact_total
from hushfit.release.query import refuse_batch, refuse_extreme

# Bound on the relative rounding error of the numbers that one record contributes.
_SLACK = 1e-9


class RowValue(Protocol):
    """A number of each record: a function of the record alone and of public numbers."""

    def __call__(self, block: BoundedBlock, y: Vector, problem: Problem) -> Vector:
        """The number of each record of a block, clipped to [-1, 1] by whoever asks; nan for the
        zero record, which then contributes nothing.
        """


@dataclass(frozen=True)
class Target:
    """The target of each record, mapped from [low, high] to [-1, 1]."""

    low: float = -1.0
    high: float = 1.0

    def __call__(self, block: BoundedBlock, y: Vector, problem: Problem) -> Vector:
        mapped = (y - (self.low + self.high) / 2) / ((self.high - self.low) / 2)
        return np.where(block.scale == 0.0, np.nan, mapped)


@dataclass(frozen=True)
class LogLength:
    r"""Logarithm of the squared length of the features, :math:`1 + 2 \log(|x|^2 / s) / L` for
    ``square`` s and ``log_range`` L: 1 at s, -1 at :math:`s e^{-L}`.
    """

    square: float
    log_range: float

    def __call__(self, block: BoundedBlock, y: Vector, problem: Problem) -> Vector:
        shortest = self.square * math.exp(-self.log_range)
        ratio = np.maximum(block.squares(), shortest) / self.square
        return np.asarray(1 + 2 * np.log(ratio) / self.log_range)


@dataclass(frozen=True, eq=False)
class Prediction:
    """What public weights predict, clipped to [-1, 1]."""

    w: Vector

    def __post_init__(self) -> None:
        keep_read_only(self, "w")

    def __call__(self, block: BoundedBlock, y: Vector, problem: Problem) -> Vector:
        return predictions(block, self.w, problem)


def predictions(block: BoundedBlock, w: Vector, problem: Problem) -> Vector:
    """Predictions of public weights, clipped to [-1, 1]; nan for the zero record."""
    full = w.copy() if problem.fit_intercept else np.append(w, 0.0)
    return np.asarray(np.clip(block.margins(full), -1.0, 1.0))


@dataclass(frozen=True, eq=False)
class MeanAndSquare:
    r"""Sums of :math:`v_i` and of :math:`\sqrt2 v_i^2` over the records, :math:`v_i` in [-1, 1].

    The factor makes the pair (1, -1) the worst one, at which the second sum does not change: the
    square costs nothing.

    Parameters
    ----------
    problem : Problem
    value : RowValue
        Which number: `Target`, `LogLength` or `Prediction`.
    """

    problem: Problem
    value: RowValue

    size: ClassVar[int] = 2
    doubled = None
    sampled: ClassVar[bool] = False
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = True
    made_for: ClassVar[str | None] = None
    scalings: ClassVar[tuple[RecordScaling, ...]] = (RecordScaling.BOUNDED,)

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return 2

    @cached_property
    def _sum(self) -> ExactSum:
        problem = self.problem
        return ExactSum(math.sqrt(2), problem.n_units, 2, problem.rows_per_unit)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return exact_total(self, source, units)

    def exact_sums(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)

        def of_block(block: BoundedBlock, grid: float) -> Vector:
            v = np.clip(self.value(block, source.y[block.place], self.problem), -1.0, 1.0)
            return rounded_totals(np.stack([v, math.sqrt(2) * v**2]), block.shares, grid)

        return self._sum.over(bounded_blocks(source), (2,), of_block)

    def moments(self, answer: Vector) -> tuple[float, float]:
        """Means of the number and of its square, from a released answer."""
        n = self.problem.n_units
        return float(answer[0]) / n, float(answer[1]) / (math.sqrt(2) * n)

    def radius(self) -> float:
        return math.sqrt(3) * (1 + _SLACK) + self._sum.rounding

    def sensitivity(self, relation: Relation) -> float:
        require_records(relation)
        moved = by_relation(relation, replace_one=2.0, add_remove=math.sqrt(3))
        answers = by_relation(relation, replace_one=2, add_remove=1)
        return moved * (1 + _SLACK) + answers * self._sum.rounding


@dataclass(frozen=True, eq=False)
class ResidualMoments:
    r"""Sums of the residuals :math:`r_i = t_i - p_i` of public weights, clipped to ``bound``, and
    of :math:`r_i \varphi_i`, with :math:`p_i` the prediction and
    :math:`\varphi_i = (p_i - m) / 2q`, both clipped to [-1, 1].

    Parameters
    ----------
    problem : Problem
    w : array of shape ``problem.shape``
    mean, spread : float
        The public m and q.
    bound : float
        Largest residual; public.
    """

    problem: Problem
    w: Vector
    mean: float
    spread: float
    bound: float = 1.0

    size: ClassVar[int] = 2
    doubled = None
    sampled: ClassVar[bool] = False
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = True
    made_for: ClassVar[str | None] = None
    scalings: ClassVar[tuple[RecordScaling, ...]] = (RecordScaling.BOUNDED,)

    def __post_init__(self) -> None:
        keep_read_only(self, "w")
        refuse_extreme("bound", self.bound)
        if self.w.shape != self.problem.shape or not self.spread > 0:
            raise InvalidArgument(
                f"w of shape {self.w.shape} and spread={self.spread:g} do not suit: give weights "
                f"of shape {self.problem.shape} and a positive number."
            )

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return 2

    @cached_property
    def _sum(self) -> ExactSum:
        return ExactSum(self.bound, self.problem.n_units, 2, self.problem.rows_per_unit)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return exact_total(self, source, units)

    def exact_sums(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)

        def of_block(block: BoundedBlock, grid: float) -> Vector:
            p = predictions(block, self.w, self.problem)
            slope = np.clip((p - self.mean) / (2 * self.spread), -1.0, 1.0)
            residual = np.clip(source.y[block.place] - p, -self.bound, self.bound)
            return rounded_totals(np.stack([residual, slope * residual]), block.shares, grid)

        return self._sum.over(bounded_blocks(source), (2,), of_block)

    def radius(self) -> float:
        return math.sqrt(2) * self.bound * (1 + _SLACK) + self._sum.rounding

    def sensitivity(self, relation: Relation) -> float:
        require_records(relation)
        # (1, 1) and (-1, -1), times the bound, are the furthest corners of the square.
        return self.radius() * by_relation(relation, replace_one=2, add_remove=1)


def rounded_totals(values: Matrix, shares: Vector, grid: float) -> Vector:
    """Weighted sums over the records (axis 1), every product rounded to a multiple of ``grid``;
    nan counts as zero.
    """
    totals = np.empty(len(values))
    counting.rounded_totals(values, shares, grid, totals)
    return totals
