"""Derivative of the loss along a line of weights. Proof: docs/proofs/line_derivative.md."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushfit._typing import IntVector, Matrix, Vector
from hushfit.data import AT_MOST_ONE, Block, DataSource, RecordScaling, whole_shares
from hushfit.errors import InvalidArgument
from hushfit.kernels.codes import LOGISTIC, SOFTMAX
from hushfit.kernels.line_derivative import line_derivative
from hushfit.losses import Loss
from hushfit.privacy import Relation, by_relation
from hushfit.problem import Problem
from hushfit.release.exact_sum import exact_total
from hushfit.release.queries._gradient import with_intercept
from hushfit.release.query import refuse_batch


@dataclass(frozen=True, eq=False)
class LineDerivative:
    r"""Sum over the records of minus the derivative of the loss at ``w + s * direction`` in s, at
    s = 0: each record's part clipped and divided by its bound.

    It shows whether weights are too long or too short for their probabilities. The zero record
    contributes nothing.

    Parameters
    ----------
    problem : Problem
        With a logistic or multinomial logistic loss, or one of them against the rest.
    w, direction : arrays of shape ``problem.shape``
        Public.
    bound : float
        Derivatives are clipped to ``[-bound, bound]``.
    """

    problem: Problem
    w: Vector
    direction: Vector
    bound: float

    size: ClassVar[int] = 1
    doubled = None
    sampled: ClassVar[bool] = False
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = True
    made_for: ClassVar[str | None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return 1

    @staticmethod
    def takes(loss: Loss) -> bool:
        """Whether the loss is one whose derivative it computes."""
        return loss.kernel.code in (LOGISTIC, SOFTMAX)

    def __post_init__(self) -> None:
        if not self.takes(self.problem.loss) or not self.bound > 0:
            raise InvalidArgument(
                f"LineDerivative needs a logistic loss and a positive bound, not "
                f"{self.problem.loss!r} and {self.bound!r}."
            )

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return exact_total(self, source, units)

    def exact_sums(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)
        code, total = self.problem.loss.kernel.code, np.zeros(1)
        for block in source.blocks():
            t, d = self._margins(block, self.w), self._margins(block, self.direction)
            parts = np.empty(len(t))
            line_derivative(code, t, d, source.y[block.place], self.bound, parts)
            shares, one = whole_shares(block.shares, source.n_units)
            # Rounded towards zero: what a person's rows add up to must not exceed one.
            total += np.trunc(np.broadcast_to(shares, len(t)) * parts).sum() / one
        return total

    def _margins(self, block: Block, w: Vector) -> Matrix:
        outputs = np.atleast_2d(with_intercept(w, self.problem))
        return np.column_stack([block.margins(np.ascontiguousarray(own)) for own in outputs])

    def radius(self) -> float:
        return 1.0

    def sensitivity(self, relation: Relation) -> float:
        # A replaced record changes the sum from one end of [-1, 1] to the other at most.
        return by_relation(relation, replace_one=2.0, add_remove=1.0)
