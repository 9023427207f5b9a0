"""Hessian of the loss at public weights, and Newton directions. Proof: docs/proofs/hessian.md."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy
from scipy.special import expit, softmax

from hushfit._typing import BoolVector, IntVector, Matrix, Vector
from hushfit.data import AT_MOST_ONE, Block, DataSource, RecordScaling
from hushfit.errors import InvalidArgument
from hushfit.kernels.threads import parallel_total
from hushfit.losses import (
    HuberHinge,
    Logistic,
    Loss,
    OneVsRest,
    Poisson,
    SaturatingSquares,
    Softmax,
    Squared,
)
from hushfit.privacy import Relation, require_records
from hushfit.problem import Problem
from hushfit.release.exact_sum import exact_total
from hushfit.release.queries._second_moment import SecondMoment
from hushfit.release.query import refuse_batch, three_weight_arrays

CURVATURES = ("hessian", "majorant")
_UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True, eq=False)
class HessianSum:
    r"""Upper triangle of :math:`\sum_i c_i x_i x_i^T`, with :math:`c_i` the curvature of the loss
    at the margin of record i.

    With several outputs :math:`c_i` is a bound on the largest eigenvalue of the record's curvature,
    so that one matrix is enough for all of them. An off-diagonal entry represents two equal ones,
    as in `SecondMoment`.

    Parameters
    ----------
    problem : Problem
    w : array of shape ``problem.shape``
        Where the curvature is taken; public.
    curvature : {"hessian", "majorant"}, default="hessian"
        The second derivative, or the curvature of a parabola that touches the loss at the margin
        and lies above it everywhere.
    """

    problem: Problem
    w: Vector
    curvature: str = "hessian"

    sampled: ClassVar[bool] = False
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = True
    made_for: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        if self.curvature not in CURVATURES:
            raise InvalidArgument(
                f"curvature={self.curvature!r} is not known. Use 'hessian' or 'majorant'."
            )

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return SecondMoment.coordinates(problem)

    @property
    def _moment(self) -> SecondMoment:
        return SecondMoment(self.problem)

    @property
    def size(self) -> int:
        return self._moment.size

    @property
    def doubled(self) -> BoolVector:
        return self._moment.doubled

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        return self._answer(exact_total(self, source, units))

    def exact_sums(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)
        d, steps, smoothness = (
            self.problem.dimension,
            self._moment.steps,
            self.problem.loss.smoothness,
        )

        def of_block(block: Block) -> Matrix:
            weights = (
                curvatures(
                    self.problem.loss, self._margins(block), source.y[block.place], self.curvature
                )
                / smoothness
            )
            # A record times the square root of its weight has norm at most one, so sums stay exact
            # as for the second moment.
            factors = np.sqrt(np.clip(np.nan_to_num(weights, nan=0.0), 0.0, 1.0))
            return block.second_moment(steps, factors)[:d, :d]

        total = parallel_total(of_block, source.blocks(), (d, d))
        return total[np.triu_indices(d)]

    def _answer(self, total: Vector) -> Vector:
        return self.problem.loss.smoothness * total / self._moment.steps**2

    def _margins(self, block: Block) -> Vector:
        w = (
            self.w
            if self.problem.fit_intercept
            else np.concatenate([self.w, np.zeros((*self.w.shape[:-1], 1))], axis=-1)
        )
        if w.ndim == 1:
            return np.nan_to_num(block.margins(w), nan=0.0)
        return np.nan_to_num(np.column_stack([block.margins(output) for output in w]), nan=0.0)

    def matrix(self, answer: Vector) -> Matrix:
        """The symmetric matrix of a released answer."""
        return self._moment.matrix(answer)

    def radius(self) -> float:
        return self.problem.loss.smoothness * self._moment.radius() + self._rounding

    def sensitivity(self, relation: Relation) -> float:
        return self.problem.loss.smoothness * self._moment.sensitivity(relation) + self._rounding

    @property
    def _rounding(self) -> float:
        """Rounding error of the exact sums times the smoothness, once on either table."""
        return (
            2
            * _UNIT_ROUNDOFF
            * self.problem.dimension
            * self.problem.n_units
            * self.problem.loss.smoothness
        )


@dataclass(frozen=True, eq=False)
class NewtonDirection:
    r"""The solution d of :math:`(H + \lambda I) d = g`, with H the mean of the records' curvatures
    and g public.

    Parameters
    ----------
    problem : Problem
    w : array of shape ``problem.shape``
        Where the curvature is taken; public.
    target : array of shape ``problem.shape``
        The public g, for instance a noisy gradient.
    ridge : float
        The :math:`\lambda`, above 0: the smaller, the more noise.
    curvature : {"hessian", "majorant"}, default="hessian"
    """

    problem: Problem
    w: Vector
    target: Vector
    ridge: float
    curvature: str = "hessian"

    doubled = None
    sampled: ClassVar[bool] = False
    scalings: ClassVar[tuple[RecordScaling, ...]] = AT_MOST_ONE
    for_labels: ClassVar[bool] = False
    in_parts: ClassVar[bool] = True
    made_for: ClassVar[str | None] = None

    @staticmethod
    def coordinates(problem: Problem) -> int:
        return three_weight_arrays(problem)

    def __post_init__(self) -> None:
        if not self.w.shape == self.target.shape == self.problem.shape:
            raise InvalidArgument(
                f"w {self.w.shape} and target {self.target.shape} must have the shape of the "
                f"weights, {self.problem.shape}."
            )
        if self.ridge > self.problem.loss.smoothness:
            raise InvalidArgument(
                f"ridge={self.ridge:g} is above the smoothness {self.problem.loss.smoothness:g}: "
                "the direction would be the target, and the proof of its rounding does not cover "
                "it. Use a smaller ridge."
            )
        # Below it the error of the solver could be as large as the answer.
        least = 2 * self._backward_error
        if not least <= self.ridge < math.inf:
            raise InvalidArgument(
                f"ridge={self.ridge:g} must be finite and at least {least:.2g}, or one record "
                "could turn the direction anywhere."
            )

    @property
    def size(self) -> int:
        return self.w.size

    @property
    def _hessian(self) -> HessianSum:
        return HessianSum(self.problem, self.w, self.curvature)

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        H = self._hessian.matrix(self._hessian(source, units)) / self.problem.n_units
        factor = scipy.linalg.cho_factor(H + self.ridge * np.eye(len(H)), lower=True)
        solved: Vector = scipy.linalg.cho_solve(factor, np.atleast_2d(self.target).T).T
        # The exact solution has at most this norm; clipping the entries bounds the computed one.
        largest = float(np.linalg.norm(self.target)) / self.ridge
        return np.clip(solved, -largest, largest).ravel()

    def radius(self) -> float:
        share = self._hessian.radius() / self.problem.n_units
        moved = share / (self.ridge * (self.ridge + share))
        return float(np.linalg.norm(self.target)) * (moved + 2 * self._solver_error)

    @property
    def _backward_error(self) -> float:
        """Bound on the change of the matrix that would make the computed solution exact."""
        return (
            16
            * (self.problem.dimension + 1) ** 2
            * _UNIT_ROUNDOFF
            * (self._hessian.radius() + self.ridge)
        )

    @property
    def _solver_error(self) -> float:
        """Bound on the error of the computed solution over the norm of the target."""
        return 2 * self._backward_error / self.ridge**2

    def sensitivity(self, relation: Relation) -> float:
        require_records(relation)
        # Every record makes the inverse smaller, so replacing a record changes it by no more than
        # removing one.
        return self.radius()


def curvatures(loss: Loss, margins: Vector, y: Vector, kind: str) -> Vector:
    """Curvature of each record's loss at its margins: a number between 0 and the smoothness."""
    if isinstance(loss, OneVsRest):
        signs = np.where(y.astype(np.int64)[:, None] == np.arange(loss.n_classes), 1.0, -1.0)
        found: Vector = _curvature(loss.loss, margins, signs, kind).max(axis=1)
        return found
    return _curvature(loss, margins, y, kind)


def _curvature(loss: Loss, t: Vector, y: Vector, kind: str) -> Vector:
    match loss:
        case Logistic() if kind == "hessian":
            return np.asarray(expit(t) * expit(-t))
        case Logistic():
            # tanh(t/2) / (2t), by its series where t is so small that the quotient loses digits.
            safe = np.where(np.abs(t) < 1e-3, 1.0, t)
            return np.where(np.abs(t) < 1e-3, 0.25 - t * t / 48, np.tanh(safe / 2) / (2 * safe))
        case HuberHinge() if kind == "hessian":
            return np.where(np.abs(1 - y * t) <= loss.bend, loss.smoothness, 0.0)
        case Squared() if kind == "hessian":
            return np.where(np.abs(t - y) <= loss.slope_bound, 1.0, 0.0)
        case Squared():
            return loss.slope_bound / np.maximum(np.abs(t - y), loss.slope_bound)
        case SaturatingSquares() if kind == "hessian":
            return np.where(np.abs(t) <= loss.bound, 1.0, 0.0)
        case Poisson() if kind == "hessian":
            top = math.log(loss.most)
            return np.where(t <= top, np.exp(np.minimum(t, top)), 0.0)
        case Softmax() if kind == "hessian":
            p = softmax(t, axis=1)
            # A row of diag(p) - pp' has absolute sum 2 p_k (1 - p_k), and no eigenvalue exceeds the
            # largest of them.
            return np.asarray((2 * p * (1 - p)).max(axis=1))
        case _:
            return np.full(
                len(t) if t.ndim == 1 or isinstance(loss, Softmax) else t.shape, loss.smoothness
            )
