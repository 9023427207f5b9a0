"""Steps of linearised ADMM taken inside the boundary, for mpADMM. Proof: docs/proofs/admm.md."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushfit._typing import IntVector, Vector
from hushfit.data import AT_MOST_ONE, DataSource, RecordScaling
from hushfit.errors import InvalidArgument
from hushfit.privacy import Relation, by_relation
from hushfit.problem import Problem
from hushfit.release.queries._gradient import ARITHMETIC_SLACK, ClippedGradient
from hushfit.release.query import refuse_batch, three_weight_arrays


@dataclass(frozen=True, eq=False)
class AdmmState:
    """The three variables of ADMM with the constraint x = z; ``y`` is the dual."""

    x: Vector
    z: Vector
    y: Vector

    @classmethod
    def zero(cls, problem: Problem) -> "AdmmState":
        zero = np.zeros(problem.shape)
        return cls(zero, zero, zero)


def admm_step(
    problem: Problem, state: AdmmState, gradient: Vector, eta: float, rho: float
) -> AdmmState:
    """One step from a mean gradient at ``state.x``: gradient step, prox, dual step."""
    x = (-gradient - state.y + rho * state.z + state.x / eta) / (rho + 1 / eta)
    z = problem.prox(x + state.y / rho, 1 / rho)
    return AdmmState(x, z, state.y + rho * (x - z))


def primal_step(eta: float, rho: float) -> float:
    """Step size of x: the derivative of ``admm_step`` with respect to the gradient, up to sign."""
    return eta / (1 + eta * rho)


@dataclass(frozen=True, eq=False)
class AdmmStep:
    """All three variables after one step from a public state: the published form of mpADMM, with
    its sensitivity corrected.

    The answer is their difference from the result of the step with a zero gradient, which is
    public.

    Parameters
    ----------
    problem : Problem
        With a convex penalty, whose prox is then nonexpansive.
    state : AdmmState
        Public.
    eta, rho, clip : float
    """

    problem: Problem
    state: AdmmState
    eta: float
    rho: float
    clip: float

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
        _require_convex(self.problem)

    @property
    def size(self) -> int:
        return 3 * self.state.x.size

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)
        new = self._after(_mean_gradient(self.problem, self.state.x, self.clip, source))
        return (new - self._after(np.zeros(self.problem.shape))).ravel()

    def next_state(self, answer: Vector) -> AdmmState:
        """The state of a released answer."""
        moved = answer.reshape(3, *self.problem.shape)
        return AdmmState(*(moved + self._after(np.zeros(self.problem.shape))))

    def _after(self, gradient: Vector) -> Vector:
        new = admm_step(self.problem, self.state, gradient, self.eta, self.rho)
        return np.stack([new.x, new.z, new.y])

    def radius(self) -> float:
        # x changes by tau |dg|; per coordinate dz = r dx and dy = rho (1 - r) dx with r in [0, 1]:
        # the worst case is at an end of the range.
        moved = primal_step(self.eta, self.rho) * _gradient_radius(
            self.problem, self.state.x, self.clip
        )
        state = np.concatenate([self.state.x.ravel(), self.state.z.ravel(), self.state.y.ravel()])
        return moved * math.sqrt(1 + max(1.0, self.rho**2)) + _arithmetic(state, self.eta, self.rho)

    def sensitivity(self, relation: Relation) -> float:
        return self.radius() * by_relation(relation, replace_one=2, add_remove=1)


@dataclass(frozen=True, eq=False)
class AdmmRun:
    r"""Primal variable and previous dual after ``inner`` noiseless steps from a public state, in
    the metric of the iteration.

    In the metric M = [[1/tau, 1], [1, 1/rho]] a step is nonexpansive for eta <= 2/L, and one record
    changes it by at most sqrt(eta) times its share of the gradient. The answer is :math:`L^T (v -
    v_0)`, :math:`M = L L^T`, whose Euclidean length is an M-length; the public :math:`v_0` is the
    result of the steps with zero gradients.

    Parameters
    ----------
    problem : Problem
        With a convex penalty.
    x, dual : arrays of shape ``problem.shape``
        Public state: x and the dual of the step before.
    eta, rho, clip : float
    inner : int
    """

    problem: Problem
    x: Vector
    dual: Vector
    eta: float
    rho: float
    clip: float
    inner: int

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
        _require_convex(self.problem)
        if self.problem.outputs > 1 and self.clip < self.problem.loss.slope_bound:
            raise InvalidArgument(
                f"clip={self.clip:g} would clip vectors of slopes, which are then not the gradient "
                "of a convex loss, so several steps have no proof. With several outputs give "
                f"clip={self.problem.loss.slope_bound:.4g} or more, or use form='plus'."
            )
        largest = 2 / self.problem.loss.smoothness
        if not 0 < self.eta <= largest:
            raise InvalidArgument(
                f"eta={self.eta:g} is outside (0, {largest:g}], where a step is nonexpansive. Use "
                "a smaller step size."
            )

    @property
    def size(self) -> int:
        return 2 * self.x.size

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        refuse_batch(self, units)
        moved = self._after(
            lambda x: _mean_gradient(self.problem, x, self.clip, source)
        ) - self._after(np.zeros_like)
        (a, b), (_, c) = self._factor()
        return np.concatenate([(a * moved[0] + b * moved[1]).ravel(), (c * moved[1]).ravel()])

    def next_state(self, answer: Vector) -> tuple[Vector, Vector]:
        """x and the previous dual of a released answer."""
        (a, b), (_, c) = self._factor()
        first, second = answer.reshape(2, *self.x.shape)
        start = self._after(np.zeros_like)
        return start[0] + (first - b * second / c) / a, start[1] + second / c

    def _after(self, gradient: Callable[[Vector], Vector]) -> Vector:
        tau = primal_step(self.eta, self.rho)
        x, before = self.x, self.dual
        for _ in range(self.inner):
            dual = dual_step(self.problem, x, before, self.rho)
            x, before = x - tau * (gradient(x) + 2 * dual - before), dual
        return np.stack([x, before])

    def _factor(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Transpose of the Cholesky factor of M: upper triangular."""
        a = math.sqrt(1 / primal_step(self.eta, self.rho))
        b = 1 / a
        return (a, b), (0.0, math.sqrt(1 / self.rho - b**2))

    def radius(self) -> float:
        # Each inner step adds sqrt(eta) times one record's share; rounding of all records'
        # contributions adds a few grid steps.
        gradient = ClippedGradient(self.problem, self.x, self.clip)
        rounding = 2 * self.problem.rows_per_unit * gradient.grid * math.sqrt(self.x.size)
        share = gradient.radius() / self.problem.n_units * (1 + ARITHMETIC_SLACK) + rounding
        state = np.concatenate([self.x.ravel(), self.dual.ravel()])
        return self.inner * (math.sqrt(self.eta) * share + _arithmetic(state, self.eta, self.rho))

    def sensitivity(self, relation: Relation) -> float:
        return self.radius() * by_relation(relation, replace_one=2, add_remove=1)


def dual_step(problem: Problem, x: Vector, dual: Vector, rho: float) -> Vector:
    """The next dual: the residual of the prox at ``dual + rho x``."""
    moved = dual + rho * x
    return moved - rho * problem.prox(moved / rho, 1 / rho)


def _mean_gradient(problem: Problem, x: Vector, clip: float, source: DataSource) -> Vector:
    return ClippedGradient(problem, x, clip)(source, None).reshape(problem.shape) / problem.n_units


def _gradient_radius(problem: Problem, x: Vector, clip: float) -> float:
    return ClippedGradient(problem, x, clip).radius() / problem.n_units * (1 + ARITHMETIC_SLACK)


def _arithmetic(state: Vector, eta: float, rho: float) -> float:
    """Bound on the rounding error of a step, for a state of any size: about twenty operations on
    numbers of its size.
    """
    largest = max(eta, 1.0) * max(rho, 1 / rho, 1.0) * (1.0 + float(np.linalg.norm(state)))
    return 64 * 2.0**-53 * math.sqrt(state.size) * largest


def _require_convex(problem: Problem) -> None:
    if not problem.penalty.convex:
        raise InvalidArgument(
            f"{problem.penalty!r} is not convex, so its prox can increase the distance between "
            "neighbours, and this form has no proof. Use mp-admm in its default form, where the "
            "prox is post-processing, or another solver."
        )
