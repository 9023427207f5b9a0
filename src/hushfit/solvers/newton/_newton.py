"""Newton's method with two noises (after Ganesh, Haghifam, Steinke and Thakurta, 2023).

Gradients and curvature are both private.

    each step:  g = mean of clipped gradients + noise
                H = mean of c_i x_i x_i' + noise,  c_i the curvature at the margin of record i
                w <- argmin over z of  g . z + (z - w) H (z - w) / 2 + penalty(z),
                                       eigenvalues of H raised to a floor

``second_noise="direction"`` is the published form: H stays private, and the noise is added to (H +
floor I)^-1 g, proportional to |g|. docs/algorithms/newton.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.release import (
    CURVATURES,
    ClippedGradient,
    Door,
    GradientWithMoment,
    HessianSum,
    NewtonDirection,
    Plan,
    Planned,
)
from hushfit.solvers._metric_prox import MetricProx
from hushfit.solvers._setting_checks import check_settings
from hushfit.solvers.base import Iterate

_NOISES = ("curvature", "direction")
_TOGETHER, _GRADIENT, _DIRECTION = "gradient and curvature", "gradient", "direction"
_DEFAULT_CLIP = 0.5
_DEFAULT_DIRECTION_FLOOR = 0.03
# Without noise, the system must be solvable even in directions that no row has.
_MIN_FLOOR, _MIN_FLOOR_NONSMOOTH = 1e-9, 1e-4


@dataclass(frozen=True)
class DoubleNoiseNewton:
    r"""Newton steps from a private gradient and a private curvature.

    Parameters
    ----------
    steps : int, default=8
    clip : float or None
        Clipping norm of a record's gradient. None is 0.5, and no clipping when epsilon is infinite.
    curvature : {"hessian", "majorant"}, default="majorant"
        Second derivatives, or the curvatures of parabolas that lie above the loss, with which steps
        never overshoot.
    second_noise : {"curvature", "direction"}, default="curvature"
        Noise on the matrix, or, as published, on the resulting step.
    floor : float or None
        Eigenvalues of the curvature below it are raised to it; for ``second_noise="direction"`` it
        is added to all. None takes the largest eigenvalue of the noise in the matrix, and 0.03 for
        directions.
    curvature_share : float, default=0.3
        Share of the budget (of mu squared) for the second noise.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import DoubleNoiseNewton
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = DoubleNoiseNewton().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('gradient and curvature', 8)]
    """

    steps: int = 8
    clip: float | None = None
    curvature: str = "majorant"
    second_noise: str = "curvature"
    floor: float | None = None
    curvature_share: float = 0.3

    takes_constraint = False

    def __post_init__(self) -> None:
        check_settings(self, steps=self.steps, clip=self.clip, floor=self.floor)
        if self.curvature not in CURVATURES:
            raise InvalidArgument(
                f"curvature={self.curvature!r} is not known. Use 'hessian' or 'majorant'."
            )
        if self.second_noise not in _NOISES:
            raise InvalidArgument(
                f"second_noise={self.second_noise!r} is not known. Use 'curvature' or, as "
                "published, 'direction'."
            )
        if not 0 < self.curvature_share < 1:
            raise InvalidArgument(
                f"curvature_share={self.curvature_share!r} is outside (0, 1). Use 0.3."
            )

    def for_budget(self, budget: Budget, problem: Problem) -> "DoubleNoiseNewton":
        """The same without clipping if epsilon is infinite, unless a clipping norm was given."""
        return (
            self if budget.is_private else replace(self, clip=self.clip or problem.loss.slope_bound)
        )

    def plan(self, problem: Problem) -> Plan:
        if not problem.penalty.convex:
            raise InvalidArgument(
                f"A Newton step has no meaning with {problem.penalty!r}, which is not convex. Use "
                "'prox-newton'."
            )
        if self.second_noise == "direction" and problem.penalty.ridge is None:
            raise InvalidArgument(
                "second_noise='direction' does not release the curvature, which a step with "
                f"{problem.penalty!r} needs. Use 'curvature'."
            )
        if self.second_noise == "curvature":
            return Plan((Planned(_TOGETHER, GradientWithMoment, self.steps),))
        return Plan(
            (
                Planned(_GRADIENT, ClippedGradient, self.steps, 1 - self.curvature_share),
                Planned(_DIRECTION, NewtonDirection, self.steps, self.curvature_share),
            )
        )

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        step = _by_curvature if self.second_noise == "curvature" else _by_direction
        w = np.zeros(problem.shape)
        for t in range(1, self.steps + 1):
            w = step(self, problem, door, ClippedGradient(problem, w, self.clip or _DEFAULT_CLIP))
            yield Iterate(w, weight=float(t == self.steps))


class _Step(Protocol):
    """The next weights, from those at which the gradient is taken."""

    def __call__(
        self, solver: DoubleNoiseNewton, problem: Problem, door: Door, gradient: ClippedGradient
    ) -> Vector: ...


def _by_curvature(
    solver: DoubleNoiseNewton, problem: Problem, door: Door, gradient: ClippedGradient
) -> Vector:
    w = gradient.w
    query = GradientWithMoment(
        gradient, HessianSum(problem, w, solver.curvature), solver.curvature_share
    )
    total, curvature = query.split(door.release(_TOGETHER, query))
    g, noisy = total / problem.n_units, curvature / problem.n_units
    noise = query.moment_deviation(door.noise_multiplier(_TOGETHER)) / problem.n_units
    least = _MIN_FLOOR_NONSMOOTH if problem.penalty.ridge is None else _MIN_FLOOR
    # Noise has eigenvalues up to this size, so smaller ones of the sum carry no information.
    usual = max(noise * math.sqrt(2 * problem.dimension), least)
    H = at_least(noisy, usual if solver.floor is None else solver.floor)
    return MetricProx(problem, H)(
        w - np.linalg.solve(H, np.atleast_2d(g).T).T.reshape(w.shape), 1.0
    )


def _by_direction(
    solver: DoubleNoiseNewton, problem: Problem, door: Door, gradient: ClippedGradient
) -> Vector:
    w = gradient.w
    alpha = problem.penalty.ridge or 0.0  # `plan` refused penalties that are not a ridge
    target = door.release(_GRADIENT, gradient).reshape(problem.shape) / problem.n_units
    problem.columns(target)[...] += alpha * problem.columns(w)
    ridge = (solver.floor or _DEFAULT_DIRECTION_FLOOR) + alpha
    query = NewtonDirection(problem, w, target, ridge, solver.curvature)
    return w - door.release(_DIRECTION, query).reshape(w.shape)


def at_least(H: Matrix, floor: float) -> Matrix:
    """The symmetric matrix with eigenvalues below ``floor`` raised to it."""
    values, vectors = np.linalg.eigh(H)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)
