"""Sum of residual gradients of records that keep their lengths, clipped in a public metric, with
the number of those that were clipped. Proof: docs/proofs/regression.md, part 4.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from hushfit._arrays import keep_read_only
from hushfit._typing import IntVector, Matrix, Vector
from hushfit.data import BoundedBlock, DataSource, RecordScaling, bounded_blocks
from hushfit.errors import InvalidArgument
from hushfit.kernels.threads import parallel_map
from hushfit.privacy import Relation, by_relation, require_records
from hushfit.problem import Problem
from hushfit.release.exact_sum import ExactSum, exact_total
from hushfit.release.queries._unpickled_once import unpickled_once
from hushfit.release.query import refuse_batch, refuse_extreme

# The number of clipped records is multiplied by this share of the clipping norm.
COUNT_WEIGHT = 0.25
_SLACK = 1e-9
_UNIT_ROUNDOFF = 2.0**-53
# Largest relative error of the factors of a metric.
_FACTORISATION = 1e-9


class Whitening(Protocol):
    """A public linear map of records, in which gradients are clipped and get noise."""

    @property
    def dimension(self) -> int:
        """Length of the records that it maps, the intercept's entry included."""

    @property
    def fit_intercept(self) -> bool:
        """Whether records have an entry for the intercept."""

    @property
    def norm(self) -> float:
        """Bound on its operator norm."""

    @property
    def error(self) -> float:
        """Bound on the rounding error of a computed length."""

    @property
    def image_error(self) -> float:
        """Bound on the rounding errors of mapping two vectors, one on each of two tables, whose
        norms are that of the longest record.
        """

    def lengths(self, block: BoundedBlock) -> Vector:
        """Norm of each mapped record."""

    def image(self, total: Vector) -> Vector:
        """A sum of records, mapped."""

    def weights(self, u: Vector) -> Vector:
        """Weights of records whose margins are those of ``u`` with mapped records."""


@unpickled_once
@dataclass(frozen=True, eq=False)
class MatrixWhitening:
    """Records are multiplied by a matrix: ``z A``.

    Parameters
    ----------
    A : array of shape (dimension, dimension)
    fit_intercept : bool
    """

    A: Matrix
    fit_intercept: bool = True

    def __post_init__(self) -> None:
        keep_read_only(self, "A")

    @cached_property
    def norm(self) -> float:
        with np.errstate(over="ignore"):  # refused then
            return float(np.linalg.norm(self.A)) * (1 + _SLACK)

    @property
    def dimension(self) -> int:
        return len(self.A)

    @cached_property
    def error(self) -> float:
        return self._root[1]

    @property
    def image_error(self) -> float:
        longest = math.sqrt(len(self.A) + 1)
        return 4 * len(self.A) * _UNIT_ROUNDOFF * self.norm * longest  # twice the 2 d u of two

    @cached_property
    def _root(self) -> tuple[Matrix, float]:
        """A matrix in whose image records are as long as in that of A, and the error of lengths.

        A triangle, with half of the products, if its factorisation is as good as it should be.
        """
        d, longest = len(self.A), math.sqrt(len(self.A) + 1)
        # The longest entry is about one: nothing underflows or overflows here.
        Q, R = np.linalg.qr(self.A.T / self.norm)
        lost = np.linalg.norm(self.A.T / self.norm - Q @ R)
        turned = np.linalg.norm(Q.T @ Q - np.eye(d))
        if not lost + turned < _FACTORISATION:
            return self.A, self.image_error
        rounding = 4 * (d + 2) ** 2 * _UNIT_ROUNDOFF
        return R.T * self.norm, (float(lost + turned) + rounding) * self.norm * longest

    @cached_property
    def _full(self) -> Matrix:
        # Kernels expect the intercept's entry, and are compiled for writable arrays.
        root = np.ascontiguousarray(self._root[0])
        return root.copy() if self.fit_intercept else np.pad(root, (0, 1))

    def lengths(self, block: BoundedBlock) -> Vector:
        return block.lengths(self._full)

    def image(self, total: Vector) -> Vector:
        return np.asarray(total @ self.A)

    def weights(self, u: Vector) -> Vector:
        return np.asarray(self.A @ u)


@unpickled_once
@dataclass(frozen=True, eq=False)
class ColumnWhitening:
    """Columns are centred and scaled, one by one: ``[(x - centre) * inverse, 1]``.

    Without an intercept nothing is centred and there is no last entry. Never forms a matrix.

    Parameters
    ----------
    inverse, centre : arrays of one entry for each column
    fit_intercept : bool
    """

    inverse: Vector
    centre: Vector
    fit_intercept: bool = True

    def __post_init__(self) -> None:
        keep_read_only(self, "inverse", "centre")
        if not self.fit_intercept and np.any(self.centre):
            raise InvalidArgument("Columns cannot be centred without an intercept.")

    @property
    def dimension(self) -> int:
        return len(self.inverse) + self.fit_intercept

    @property
    def constant(self) -> float:
        return RecordScaling.BOUNDED.constant(self.fit_intercept)

    @cached_property
    def norm(self) -> float:
        with np.errstate(over="ignore"):  # refused then
            squares = float(np.sum(self.inverse**2))
            if self.fit_intercept:
                shifts = float(np.sum((self.centre * self.inverse) ** 2))
                squares += (shifts + 1) / self.constant**2
        return math.sqrt(squares) * (1 + _SLACK)

    @cached_property
    def error(self) -> float:
        # Squares of lengths are sums of terms of at most (1 + |centre|)^2 inverse^2, added and
        # subtracted; with the entry of one, a length is off by no more than its square.
        terms = 1 + 3 * float(np.sum(((1 + np.abs(self.centre)) * self.inverse) ** 2))
        of_square = 16 * (len(self.inverse) + 2) * _UNIT_ROUNDOFF * terms
        return of_square if self.fit_intercept else math.sqrt(of_square)

    @property
    def image_error(self) -> float:
        # Four operations for each entry of two images.
        return 16 * _UNIT_ROUNDOFF * self.norm * math.sqrt(len(self.inverse) + 1)

    def lengths(self, block: BoundedBlock) -> Vector:
        lengths = block.centred_lengths(self.inverse.copy(), self.centre.copy())
        if self.fit_intercept:
            return lengths
        return np.sqrt(np.maximum(lengths**2 - 1.0, 0.0))

    def image(self, total: Vector) -> Vector:
        if not self.fit_intercept:
            return np.asarray(total * self.inverse)
        weight = total[-1] / self.constant
        return np.append((total[:-1] - self.centre * weight) * self.inverse, weight)

    def weights(self, u: Vector) -> Vector:
        if not self.fit_intercept:
            return np.asarray(u * self.inverse)
        scaled = u[:-1] * self.inverse
        return np.append(scaled, (u[-1] - float(self.centre @ scaled)) / self.constant)


# Cached inverse lengths of the records, for the lifetime of map and source.
_inverses: WeakKeyDictionary[Whitening, WeakKeyDictionary[DataSource, Vector]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class ResidualGradient:
    r"""Sum over the records of :math:`s_i z_i A`, with the slope :math:`s_i` of the loss at public
    weights, each clipped to norm ``clip``; and a quarter of ``clip`` times the number of those that
    were clipped.

    The slope of the squared loss is a residual and has no bound: clipping alone bounds what a
    record contributes. The number tells whether ``clip`` suits the residuals.

    Parameters
    ----------
    problem : Problem
    w : array of shape ``problem.shape``
        Where residuals are taken; public.
    clip : float
    whitening : Whitening
    """

    problem: Problem
    w: Vector
    clip: float
    whitening: Whitening

    doubled = None
    sampled: ClassVar[bool] = False
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = True
    made_for: ClassVar[str | None] = None
    scalings: ClassVar[tuple[RecordScaling, ...]] = (RecordScaling.BOUNDED,)

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return problem.dimension + 1

    def __post_init__(self) -> None:
        keep_read_only(self, "w")
        if self.w.shape != (self.problem.dimension,) or not np.isfinite(self.w).all():
            raise InvalidArgument(
                f"w has shape {self.w.shape} or a value that is not finite. Give "
                f"{self.problem.dimension} finite weights."
            )
        refuse_extreme("clip", self.clip)
        refuse_extreme("norm of the whitening", self.whitening.norm)
        with np.errstate(over="ignore"):
            refuse_extreme("1 + sum of |w|", 1 + float(np.abs(self.w).sum()))
        expected = self.problem.dimension, self.problem.fit_intercept
        if (self.whitening.dimension, self.whitening.fit_intercept) != expected:
            # Lengths would be those of other records than the ones whose sum is mapped.
            raise InvalidArgument(
                f"The whitening is for records of {self.whitening.dimension} entries with "
                f"fit_intercept={self.whitening.fit_intercept}, but those of the problem have "
                f"{expected[0]}, with fit_intercept={expected[1]}. Make it for these."
            )

    @property
    def size(self) -> int:
        return self.problem.dimension + 1

    @cached_property
    def slope_bound(self) -> float:
        """Public bound on a slope: that of the loss. The squared loss has none; there no residual
        of a target in [-1, 1] is larger, as the entries of records are in [-1, 1] too.
        """
        of_loss = self.problem.loss.slope_bound
        return of_loss if of_loss < math.inf else 2.0 + 1.01 * float(np.abs(self.w).sum())

    @cached_property
    def _sum(self) -> ExactSum:
        problem = self.problem
        bound = max(self.slope_bound, 1.0)
        return ExactSum(bound, problem.n_units, self.size, problem.rows_per_unit)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return self._answer(exact_total(self, source, units))

    def exact_sums(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)
        kernel = self.problem.loss.kernel
        w = self.w.copy() if self.problem.fit_intercept else np.append(self.w, 0.0)
        inverse, limits = _inverse_lengths(self.whitening, source), (self.clip, self.slope_bound)

        def of_block(block: BoundedBlock, grid: float) -> Vector:
            return block.counted_gradient_sum(
                w, inverse[block.place], limits, kernel.code, kernel.parameter, grid
            )

        return self._sum.over(bounded_blocks(source), (len(w) + 1,), of_block)

    def _answer(self, total: Vector) -> Vector:
        d = self.problem.dimension
        count = COUNT_WEIGHT * self.clip * total[-1]
        return np.append(self.whitening.image(total[:d]), count)

    def split(self, answer: Vector) -> tuple[Vector, float]:
        """Mean gradient, and the share of the records that were clipped, from a released answer."""
        n = self.problem.n_units
        return answer[:-1] / n, float(answer[-1]) / (COUNT_WEIGHT * self.clip * n)

    def _computed(self) -> float:
        """Bound on what rounding adds to the contribution of one record."""
        stretch = max(self.whitening.norm, COUNT_WEIGHT * self.clip)
        product = self.whitening.image_error * self._sum.bound * self.problem.n_units
        return self._sum.rounding * stretch + product

    def radius(self) -> float:
        return self._moved(1.0) + self._computed()

    def sensitivity(self, relation: Relation) -> float:
        require_records(relation)
        answers = by_relation(relation, replace_one=2.0, add_remove=1.0)
        return self._moved(answers) + answers * self._computed()

    def _moved(self, gradients: float) -> float:
        slack = max(_SLACK, 8 * self.problem.dimension * _UNIT_ROUNDOFF)
        return self.clip * math.hypot(gradients, COUNT_WEIGHT) * (1 + slack)


def _inverse_lengths(whitening: Whitening, source: DataSource) -> Vector:
    of_sources = _inverses.setdefault(whitening, WeakKeyDictionary())
    if source not in of_sources:
        # A computed length may be too small by its rounding error.
        of_sources[source] = 1 / (_per_record(source, whitening.lengths) + whitening.error)
    return of_sources[source]


def _per_record(source: DataSource, measure: Callable[[BoundedBlock], Vector]) -> Vector:
    found = source.row_vector()

    def fill(block: BoundedBlock) -> None:
        found[block.place] = measure(block)

    list(parallel_map(fill, bounded_blocks(source)))
    return found
