"""The exact minimiser, for fits without privacy (epsilon = inf): the baseline of all others."""

import warnings
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.errors import InvalidArgument, NotConvergedWarning
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.release import ClippedGradient, Door, Plan, Planned, SecondMoment
from hushfit.solvers._metric_prox import MetricProx, extrapolated
from hushfit.solvers.base import Iterate

_MAX_PRECONDITIONED_COLUMNS = 600
# The system must be solvable even in directions that no row has: well conditioned for non-smooth
# penalties, only up to rounding for smooth ones.
_RIDGE, _RIDGE_NONSMOOTH = 1e-6, 1e-4
_MEMORY = 30
# A line search stops when the slope has fallen to this share of its first value, on either side of
# the minimum.
_SLOPE_RATIO = 0.5
_MAX_TRIALS = 30
# Decrease of the objective below which slopes are dominated by rounding.
_ROUNDING = 1e-12

_Slope = Callable[[Vector], Vector]


@dataclass(frozen=True)
class ExactMinimiser:
    """Exact minimiser, preconditioned by the second moment; without privacy only.

    Limited-memory BFGS, or accelerated proximal descent for non-smooth penalties. It refuses to run
    with noise, because its stopping time depends on the rows. It warns if it stops before
    convergence.

    Parameters
    ----------
    most_steps : int, default=5000
        Maximum number of gradients.
    tolerance : float, default=1e-8
        Stop when no weight would change by more than this, relative to the largest one, or when the
        objective would decrease by less than a hundredth of its square: weights may diverge where
        the rows are separable.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit import PrivateLogisticRegression
    >>> model = PrivateLogisticRegression(float("inf"), solver="exact", classes=[0, 1])
    >>> X, y = np.array([[0.2], [0.8]] * 20), np.array([0, 1] * 20)
    >>> model.fit(X, y).score(X, y)
    1.0
    """

    most_steps: int = 5_000
    tolerance: float = 1e-8

    takes_constraint = False

    def for_budget(self, budget: Budget, problem: Problem) -> "ExactMinimiser":
        """The same if epsilon is infinite; refused otherwise."""
        if budget.is_private:
            raise InvalidArgument(
                "solver='exact' stops at a time that depends on the rows, so it needs "
                f"epsilon=inf, not {budget.epsilon:g}. Use 'auto'."
            )
        return self

    def plan(self, problem: Problem) -> Plan:
        return Plan(
            (
                Planned("second moment", SecondMoment, 1),
                Planned("gradient", ClippedGradient, self.most_steps),
            )
        )

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        if door.noise_multiplier("gradient") > 0:
            raise InvalidArgument(
                "ExactMinimiser stops at a time that depends on the rows, so it needs "
                "epsilon=inf. Use another solver."
            )
        smooth = problem.penalty.ridge is not None
        H = _curvature(problem, door, _RIDGE if smooth else _RIDGE_NONSMOOTH)

        def slope(w: Vector) -> Vector:
            query = ClippedGradient(problem, w, problem.loss.slope_bound)  # nothing is clipped
            return door.release("gradient", query).reshape(problem.shape) / problem.n_units

        yield from (self._quasi_newton if smooth else self._proximal)(problem, slope, H)

    def _quasi_newton(self, problem: Problem, loss_slope: _Slope, H: Matrix) -> Iterator[Iterate]:
        """Limited-memory BFGS. The loss is convex, so line searches need slopes and no values."""
        ridge = np.zeros(problem.dimension)
        ridge[: problem.n_features] = problem.penalty.ridge or 0.0

        def slope(w: Vector) -> Vector:
            return loss_slope(w) + ridge * w

        memory = _Memory(np.asarray(np.linalg.inv(H + np.diag(ridge)), dtype=np.float64))
        w, left = np.zeros(problem.shape), self.most_steps
        g, left = slope(w), left - 1
        while not self._settled(w, step := memory.step(g), decrease := -float(np.sum(g * step))):
            search, last = _LineSearch(), (w, g)
            for _ in range(min(left, _MAX_TRIALS)):
                w = last[0] + search.length * step
                g, left = slope(w), left - 1
                yield Iterate(w, weight=0.0)
                along = float(np.sum(g * step)) / decrease
                if abs(along) <= _SLOPE_RATIO:
                    break
                search.refine(along)
            memory.learn(w - last[0], g - last[1])
            # The second condition holds when rounding hides what is left to gain.
            if left == 0 or not abs(along) < 1:
                if decrease > _ROUNDING:
                    _warn(self, problem)
                break
        yield Iterate(w)

    def _settled(self, w: Vector, step: Vector, decrease: float) -> bool:
        return decrease <= 1e-2 * self.tolerance**2 or bool(
            np.abs(step).max() <= self.tolerance * (1 + np.abs(w).max())
        )

    def _proximal(self, problem: Problem, slope: _Slope, H: Matrix) -> Iterator[Iterate]:
        inverse_H, prox = np.linalg.inv(H), MetricProx(problem, H)
        w = ahead = np.zeros(problem.shape)
        momentum = 1.0
        for _ in range(self.most_steps):
            target = ahead - slope(ahead) @ inverse_H
            previous, w = w, prox(target, 1.0)
            moved = w - previous
            if np.abs(moved).max() <= self.tolerance * (1 + np.abs(w).max()):
                break
            ahead, momentum = extrapolated(w, moved, (ahead - w) @ H, momentum)
            yield Iterate(w, weight=0.0)
        else:
            _warn(self, problem)
        yield Iterate(w)


@dataclass
class _LineSearch:
    """Brackets the minimum of a convex function along a line by the sign of its slope.

    Slopes are divided by the descent at the start, so they begin at -1.
    """

    length: float = 1.0
    low: tuple[float, float] = (0.0, -1.0)
    high: tuple[float, float] | None = None

    def refine(self, slope: float) -> None:
        """Take in the slope at ``length`` and choose the next length."""
        if slope < 0:
            self.low = (self.length, slope)
        else:
            self.high = (self.length, slope)
        if self.high is None:
            self.length *= 2
            return
        (a, slope_a), (b, slope_b) = self.low, self.high
        # Where the chord of the slopes is zero, but not too close to either end of the bracket.
        share = slope_a / (slope_a - slope_b)
        self.length = a + (b - a) * min(max(share, 0.1), 0.9)


@dataclass(frozen=True, eq=False)
class _Memory:
    """Limited memory of BFGS: recent steps and gradient changes (Nocedal, 1980).

    ``inverse`` is the inverse Hessian before any step.
    """

    inverse: Matrix
    pairs: deque[tuple[Vector, Vector, float]] = field(
        default_factory=lambda: deque(maxlen=_MEMORY)
    )

    def learn(self, moved: Vector, gradient_change: Vector) -> None:
        if (product := float(np.sum(moved * gradient_change))) > 0:
            self.pairs.append((moved, gradient_change, product))

    def step(self, g: Vector) -> Vector:
        """The quasi-Newton step at a point with gradient ``g``."""
        q, weights = g, []
        for moved, gradient_change, product in reversed(self.pairs):
            weights.append(float(np.sum(moved * q)) / product)
            q = q - weights[-1] * gradient_change
        r = q @ self.inverse
        for (moved, gradient_change, product), weight in zip(
            self.pairs, reversed(weights), strict=True
        ):
            r = r + (weight - float(np.sum(gradient_change * r)) / product) * moved
        return -r


def _curvature(problem: Problem, door: Door, ridge: float) -> Matrix:
    """A bound on the Hessian: the second moment, or for many columns the identity."""
    d = problem.dimension
    if d > _MAX_PRECONDITIONED_COLUMNS:
        return problem.loss.smoothness * np.eye(d)
    query = SecondMoment(problem)
    M = query.matrix(door.release("second moment", query)) / problem.n_units
    return problem.loss.smoothness * (M + ridge * np.eye(d))


def _warn(solver: ExactMinimiser, problem: Problem) -> None:
    warnings.warn(
        f"{solver!r} stopped before convergence. Raise most_steps, or give a penalty: with "
        f"{problem.penalty!r} the minimum may be flat or not exist.",
        NotConvergedWarning,
        stacklevel=2,
    )
