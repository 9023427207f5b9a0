"""Certified minimisers of objectives that are public: no row, no budget and no step is private."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy

from hushfit._typing import Matrix, Vector
from hushfit.errors import NotConvergedWarning
from hushfit.problem import Problem
from hushfit.solvers._metric_prox import MetricProx, extrapolated

_MOST_NEWTON_COLUMNS = 1500
_MOST_NEWTON_STEPS, _MOST_STEPS = 100, 5000
_SETTLED, _SETTLED_NONSMOOTH = 1e-18, 1e-9
# Decreases below are lost in the rounding of the value: full Newton steps are taken from there on.
_LEAST_SHOWN = 1e-13
_SUFFICIENT_DECREASE = 0.1
_SHORTEST_STEP = 1e-8
# A minimum is certified if the objective is known to be at most this far above its least value.
MOST_GAP = 1e-6


class SmoothPart(Protocol):
    """A public convex function of the weights."""

    def value(self, w: Vector) -> float: ...

    def slope(self, w: Vector) -> Vector:
        """Its gradient, of the shape of the weights."""

    def hessian(self, w: Vector) -> Matrix:
        """Its second derivative, for one output."""

    def majorant(self) -> Matrix:
        """A matrix that its second derivative never exceeds, for the weights of each output."""


@dataclass(frozen=True, eq=False)
class PublicMinimiser:
    r"""Minimises :math:`f(w) + \frac12 (w - c) Q (w - c) + g(w)` with a positive definite Q, so
    that there is one minimum and its distance is known from a gradient.

    Parameters
    ----------
    problem : Problem
        With the penalty g.
    smooth : SmoothPart
        The convex f.
    Q : symmetric positive matrix of the records' dimension
        The same for each output.
    centre : array of the shape of the weights
        The c that Q shrinks the weights towards.
    """

    problem: Problem
    smooth: SmoothPart
    Q: Matrix
    centre: Vector

    def __call__(self, start: Vector | None = None) -> Vector:
        """The minimum; ``start`` is where to look first."""
        first = self.centre if start is None else start
        if self.problem.penalty.ridge is None:
            w, slope = self._proximal(first)
        elif self.problem.outputs == 1 and self.problem.dimension <= _MOST_NEWTON_COLUMNS:
            w = self._newton(first)
            slope = self.slope(w)
        else:
            w = self._quasi_newton(first)
            slope = self.slope(w)
        self._certify(slope)
        return w

    @cached_property
    def _quadratic(self) -> Matrix:
        """Q, and the penalty where it is a quadratic one."""
        ridge = np.zeros(self.problem.dimension)
        ridge[: self.problem.n_features] = self.problem.penalty.ridge or 0.0
        return np.asarray(self.Q + np.diag(ridge))

    def value(self, w: Vector) -> float:
        """The objective without a penalty that is not quadratic."""
        moved = w - self.centre
        ridge = 0.5 * (self.problem.penalty.ridge or 0.0) * np.sum(self.problem.columns(w) ** 2)
        return self.smooth.value(w) + 0.5 * float(np.sum(moved @ self.Q * moved)) + float(ridge)

    def slope(self, w: Vector) -> Vector:
        """Its gradient."""
        slope = self.smooth.slope(w) + (w - self.centre) @ self.Q
        columns = self.problem.columns(slope)
        columns += (self.problem.penalty.ridge or 0.0) * self.problem.columns(w)
        return slope

    def _newton(self, start: Vector) -> Vector:
        w, value, last = start, self.value(start), math.inf
        for _ in range(_MOST_NEWTON_STEPS):
            g = self.slope(w)
            step = -np.linalg.solve(self.smooth.hessian(w) + self._quadratic, g)
            decrease = -float(g @ step)
            if decrease <= _LEAST_SHOWN * (1 + abs(value)):
                w = w + step
                if decrease <= _SETTLED or decrease > last / 2:  # or nothing but rounding is left
                    break
                last = decrease
                continue
            length = 1.0
            while (
                trial := self.value(w + length * step)
            ) > value - _SUFFICIENT_DECREASE * length * decrease and length > _SHORTEST_STEP:
                length /= 2
            w, value = w + length * step, trial
            if length <= _SHORTEST_STEP:
                break
        return np.asarray(w)

    def _quasi_newton(self, first: Vector) -> Vector:
        """L-BFGS in coordinates in which the largest possible second derivative is the identity."""
        root = np.linalg.cholesky(self.smooth.majorant() + self._quadratic)
        shape = self.problem.shape

        def weights(u: Vector) -> Vector:
            return np.asarray(np.linalg.solve(root.T, u.reshape(-1, len(root)).T).T).reshape(shape)

        def value_and_slope(u: Vector) -> tuple[float, Vector]:
            w = weights(u)
            g = np.linalg.solve(root, np.atleast_2d(self.slope(w)).T).T
            return self.value(w), g.ravel()

        start = (np.atleast_2d(first) @ root).ravel()
        options = {"maxiter": _MOST_STEPS, "maxfun": 2 * _MOST_STEPS, "ftol": 0.0, "gtol": 1e-10}
        found = scipy.optimize.minimize(
            value_and_slope, start, jac=True, method="L-BFGS-B", options=options
        )
        return weights(found.x)

    def _proximal(self, start: Vector) -> tuple[Vector, Vector]:
        """Accelerated proximal descent; also a subgradient of the objective at the result."""
        H = self.smooth.majorant() + self.Q
        solve, prox = _solver_of(H), MetricProx(self.problem, H)
        w = ahead = start
        momentum, subgradient = 1.0, np.full(self.problem.shape, np.inf)
        for _ in range(_MOST_STEPS):
            g = self.slope(ahead)
            previous, w = w, prox(ahead - solve(g), 1.0)
            subgradient = (ahead - w) @ H + self.slope(w) - g
            if self._gap(subgradient) <= _SETTLED_NONSMOOTH:
                break
            ahead, momentum = extrapolated(w, w - previous, (ahead - w) @ H, momentum)
        return w, subgradient

    def _gap(self, slope: Vector) -> float:
        """Bound on what the objective is above its minimum: it is at least Q-strongly convex."""
        rows = np.atleast_2d(slope)
        return 0.5 * float(np.sum(rows * _solver_of(self._quadratic)(rows)))

    def _certify(self, slope: Vector) -> None:
        if not (gap := self._gap(slope)) <= MOST_GAP:
            warnings.warn(
                f"The public minimisation stopped {gap:.1g} above the minimum, more than "
                f"{MOST_GAP:g}. The guarantee is not affected; give a penalty with a larger alpha.",
                NotConvergedWarning,
                stacklevel=2,
            )


def _solver_of(H: Matrix) -> Callable[[Vector], Vector]:
    def solve(g: Vector) -> Vector:
        return np.asarray(np.linalg.solve(H, np.atleast_2d(g).T).T).reshape(g.shape)

    return solve
