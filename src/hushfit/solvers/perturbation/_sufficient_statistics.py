"""Sufficient statistics perturbation (Vu and Slavkovic, 2009).

Regularised as its noise demands (AdaSSP: Wang, 2018).

    M, g = mean of x_i x_i' and mean gradient at zero, with noise that hides both together
    w = argmin of  g . w + c w M w / 2 + penalty(w),
                   eigenvalues of M that noise hides raised to a floor

For least squares -g is the mean of y_i x_i, c is one and w is the private least-squares solution.
For other losses the quadratic is their expansion at zero: docs/algorithms/ssp.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.errors import InvalidArgument
from hushfit.losses import HuberHinge, Loss, OneVsRest, Softmax
from hushfit.problem import Problem
from hushfit.release import ClippedGradient, Door, GradientWithMoment, Plan, Planned, SecondMoment
from hushfit.solvers._metric_prox import MetricProx
from hushfit.solvers._setting_checks import check_settings
from hushfit.solvers.base import Iterate
from hushfit.solvers.newton import at_least

_NAME = "moments"
# Eigenvalues below this share of the largest one of the noise carry no information; measured.
_FLOOR_PER_EDGE = 0.7
_MIN_FLOOR, _MIN_FLOOR_NONSMOOTH = 1e-12, 1e-4


@dataclass(frozen=True)
class SufficientStatistics:
    """A noisy second moment and a noisy gradient at zero: one release, then post-processing.

    Exact for least squares. A classifier gets the minimiser of its loss's quadratic expansion at
    zero, which ranks well and has uncalibrated probabilities.

    Parameters
    ----------
    moment_share : float, default=0.5
        Share of the budget (of mu squared) for the second moment.
    floor : float or None
        Eigenvalues of the second moment below it are raised to it. None takes 0.7 of the largest
        eigenvalue of the noise.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import SufficientStatistics
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = SufficientStatistics().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('moments', 1)]
    """

    moment_share: float = 0.5
    floor: float | None = None

    takes_constraint = False

    def __post_init__(self) -> None:
        check_settings(self, floor=self.floor)
        if not 0 < self.moment_share < 1:
            raise InvalidArgument(f"moment_share={self.moment_share!r} is outside (0, 1). Use 0.5.")

    def plan(self, problem: Problem) -> Plan:
        if not problem.penalty.convex:
            raise InvalidArgument(
                f"{problem.penalty!r} is not convex, and the quadratic may have many minima with "
                "it. Use 'prox-newton'."
            )
        return Plan((Planned(_NAME, GradientWithMoment, 1),))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        gradient = ClippedGradient(problem, np.zeros(problem.shape), slope_at_zero(problem.loss))
        query = GradientWithMoment(gradient, SecondMoment(problem), self.moment_share)
        total, moment = query.split(door.release(_NAME, query))
        noise = query.moment_deviation(door.noise_multiplier(_NAME)) / problem.n_units
        H = curvature_at_zero(problem.loss) * self._raised(problem, moment / problem.n_units, noise)
        g = total / problem.n_units
        target: Vector = (
            -np.linalg.solve(H, np.atleast_2d(g).T).T.reshape(problem.shape).astype(np.float64)
        )
        yield Iterate(MetricProx(problem, H)(target, 1.0))

    def _raised(self, problem: Problem, M: Matrix, noise: float) -> Matrix:
        least = _MIN_FLOOR_NONSMOOTH if problem.penalty.ridge is None else _MIN_FLOOR
        usual = max(_FLOOR_PER_EDGE * noise * math.sqrt(2 * problem.dimension), least)
        return at_least(M, usual if self.floor is None else self.floor)


def slope_at_zero(loss: Loss) -> float:
    """Largest norm of a record's slope at zero weights: half of the bound for the logistic loss."""
    labels = np.arange(loss.outputs) if loss.outputs > 1 else np.array([-1.0, 1.0])
    margins = np.zeros((len(labels), len(labels))) if loss.outputs > 1 else np.zeros(2)
    slopes = loss.slope(margins, labels.astype(np.float64))
    return float(np.linalg.norm(np.atleast_2d(slopes.T), axis=0).max())


def curvature_at_zero(loss: Loss) -> float:
    """Curvature of the quadratic approximation of the loss at zero."""
    match loss:
        case OneVsRest():
            return curvature_at_zero(loss.loss)
        case Softmax():
            # Gradients of all classes sum to zero, and on that subspace the Hessian is this.
            return 1 / loss.n_classes
        case HuberHinge():
            return 1.0  # flat at zero: least squares on the labels instead
        case _:
            return loss.smoothness
