"""What labels contribute to a fit whose features are public. Proof: docs/proofs/label.md."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hushfit._arrays import keep_read_only
from hushfit._typing import IntVector, Matrix, Vector
from hushfit.data import DataSource, PublicBlock, PublicRows, RecordScaling
from hushfit.errors import InvalidArgument
from hushfit.losses import CanonicalLoss
from hushfit.privacy import Relation, require_labels
from hushfit.problem import Problem
from hushfit.release.exact_sum import ExactSum
from hushfit.release.queries._gradient import ARITHMETIC_SLACK, Metric
from hushfit.release.query import refuse_batch, three_weight_arrays

# The grid needs a positive bound even if every record is zero.
_LEAST_LENGTH = 1e-100


@dataclass(frozen=True, eq=False)
class LabelStatistic:
    r"""Sum over the rows of :math:`A x_i v_i s(y_i)`, features :math:`x_i` and weights
    :math:`v_i` public: all that labels contribute to a fit with a `CanonicalLoss`.

    The statistic :math:`s` is taken less its centre, which changes the sum by a public amount:
    `centre`. Only ``source.y`` is read; features come from ``rows``, which the bounds were computed
    from, so that bound and answer cannot speak of different features.

    Parameters
    ----------
    problem : Problem
        Under a relation with public features and with a `CanonicalLoss`.
    rows : PublicRows
    weights : array of length ``rows.n_rows``, optional
        Public weights, at least 0, that no label was looked at for. None is one for every row.
    metric : Metric or None
        The identity when None.
    """

    problem: Problem
    rows: PublicRows
    weights: Vector | None = None
    metric: Metric | None = None

    doubled = None
    sampled: ClassVar[bool] = False
    for_labels: ClassVar[bool] = True
    in_parts: ClassVar[bool] = False
    made_for: ClassVar[str | None] = None
    scalings: ClassVar[tuple[RecordScaling, ...]] = tuple(RecordScaling)  # lengths are public

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return three_weight_arrays(problem)

    def __post_init__(self) -> None:
        canonical(self.problem)
        require_labels(self.problem.relation, self.problem.privacy_unit)
        rows = self.rows
        if (rows.n_units, rows.n_features) != (self.problem.n_units, self.problem.n_features):
            raise InvalidArgument(
                f"The public rows are of {rows.n_units} units and {rows.n_features} columns, the "
                f"problem of {self.problem.n_units} and {self.problem.n_features}. Use the rows "
                "of this problem."
            )
        if self.weights is not None:
            good = np.isfinite(self.weights).all() and (self.weights >= 0).all()
            if self.weights.shape != (rows.n_rows,) or not good:
                raise InvalidArgument(
                    f"weights have shape {self.weights.shape} or a value that is not a finite "
                    f"number >= 0. Give one weight for each of the {rows.n_rows} rows."
                )
            keep_read_only(self, "weights")

    @property
    def size(self) -> int:
        return int(np.prod(self.problem.shape))

    @property
    def loss(self) -> CanonicalLoss:
        return canonical(self.problem)

    @cached_property
    def row_weights(self) -> Vector:
        """What the record times the statistic of its label is multiplied by: the row's share of
        its unit, its weight, and the factor that labels shrink by with their records.
        """
        own = 1.0 if self.weights is None else self.weights
        found: Vector = self.rows.shares * own * self.rows.label_factors
        found.setflags(write=False)
        return found

    @cached_property
    def lengths(self) -> Vector:
        """Upper bounds on the norm of each record in the metric, times its weight."""
        if self.metric is None:
            return self._plain_lengths
        # The error is that of a vector of length one.
        error = self.metric.error * np.maximum(self.rows.lengths(), 1.0)
        return np.asarray((self.rows.lengths(self.metric.A) + error) * self.row_weights)

    @cached_property
    def _plain_lengths(self) -> Vector:
        return np.asarray(self.rows.lengths() * self.row_weights)

    @cached_property
    def _sum(self) -> ExactSum:
        problem = self.problem
        longest = max(self._longest_unit(self._plain_lengths), _LEAST_LENGTH)
        bound = longest * self.loss.label_diameter
        return ExactSum(bound, problem.n_units, self.size, problem.rows_per_unit)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)
        if len(source.y) != self.rows.n_rows:
            raise InvalidArgument(
                f"There are labels of {len(source.y)} rows, but features of {self.rows.n_rows}. "
                "Use the public rows of this curator."
            )
        statistics = self._deviations(source.y) * self.row_weights[:, None]
        shape = self.problem.outputs, self.problem.dimension

        def of_block(block: PublicBlock, grid: float) -> Vector:
            return np.stack(
                [
                    rounded_sum(block.records, column, grid)[: shape[1]]
                    for column in statistics[block.place].T
                ]
            )

        total = self._sum.over(self.rows.blocks(), shape, of_block)
        image = total if self.metric is None else total @ self.metric.A
        return np.asarray(image.ravel())

    def _deviations(self, y: Vector) -> Matrix:
        """Statistics of the labels less their centre, one row for each label."""
        factors = np.broadcast_to(self.rows.label_factors, y.shape)
        # Labels that shrink with their records were multiplied by these factors already.
        shrunk = np.divide(y, factors, out=np.full(y.shape, np.nan), where=factors > 0)
        return self.loss.label_deviation(shrunk).reshape(len(y), self.problem.outputs)

    def centre(self) -> Vector:
        """The public sum that the statistic was taken less of, without the metric; of the shape of
        the weights.
        """
        d = self.problem.dimension
        one = self.rows.weighted_sum(self.row_weights, d) * self.loss.label_centre
        return np.broadcast_to(one, self.problem.shape)

    def radius(self) -> float:
        return self._bound(1.0)

    def sensitivity(self, relation: Relation) -> float:
        # Neighbours have the same features, so records cancel where labels agree.
        require_labels(relation, self.problem.privacy_unit)
        return self._bound(2.0)

    def _bound(self, answers: float) -> float:
        """Bound on what a unit's labels move the answer by, with errors of so many products."""
        metric, problem = self.metric, self.problem
        slack = max(ARITHMETIC_SLACK, 4 * (problem.dimension + problem.rows_per_unit) * 2.0**-53)
        moved = self.loss.label_diameter * self._longest_unit(self.lengths) * (1 + slack)
        if metric is None:
            return moved + self._sum.rounding
        product = metric.error * self._sum.bound * problem.n_units
        return moved + self._sum.rounding * metric.norm + answers * product

    def _longest_unit(self, lengths: Vector) -> float:
        """Largest sum of the lengths of a unit's rows."""
        return float(np.bincount(self.rows.units, lengths, minlength=self.rows.n_units).max())


def canonical(problem: Problem) -> CanonicalLoss:
    """The loss of a problem, refused if labels do not enter it linearly."""
    loss = problem.loss
    if not isinstance(loss, CanonicalLoss):
        raise InvalidArgument(
            f"{loss!r} is not covered where features are public: labels enter it in another way "
            "than through a sum of label times features. Use a logistic, softmax, Poisson or "
            "least-squares loss, or adjacency='replace-one'."
        )
    return loss


def rounded_sum(records: Any, weights: Vector, grid: float) -> Vector:
    """Sum of records times weights, every product rounded to a multiple of ``grid``; exact in any
    order as long as the grid of `ExactSum` was made for it.
    """
    if isinstance(records, np.ndarray):
        return np.asarray(np.rint(records * (weights[:, None] / grid)).sum(axis=0) * grid)
    steps = np.rint(records.data * np.repeat(weights / grid, np.diff(records.indptr)))
    counted = np.bincount(records.indices, steps, minlength=records.shape[1])
    return np.asarray(counted * grid, dtype=np.float64)
