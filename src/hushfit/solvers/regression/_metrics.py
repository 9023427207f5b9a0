"""Whitened coordinates from private moments: post-processing of one release."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.problem import Problem
from hushfit.release import ColumnWhitening, MatrixWhitening, Whitening
from hushfit.solvers._metric_prox import MetricProx

_BULK_ROUNDS = 20
# Eigenvalues are raised to this share of the largest one of the noise.
_FLOOR_PER_EDGE = 0.1
_LEAST_EIGENVALUE = 1e-7
# Variances of columns are raised to this share of their mean, and to this many standard deviations
# of their noise.
_LEAST_VARIANCE, _VARIANCE_ERRORS = 0.05, 1.0
_PROX_STEPS = 500
_DIFFERENCE = 1e-6


class Coordinates(Protocol):
    """Coordinates u in which the second moment of the records is about the identity."""

    @property
    def whitening(self) -> Whitening:
        """The map of records to these coordinates."""

    @property
    def information(self) -> Vector:
        """Estimated second moment in each coordinate, at most one: below where it was floored."""

    @property
    def eigenvalues(self) -> Vector:
        """Second moment in each coordinate before whitening."""

    def metric_error(self, uncertainty: Vector) -> Vector:
        """Variance that the noise of the metric adds to each coordinate of a gradient, given the
        variance of the weights in every coordinate.
        """

    @property
    def correlated(self) -> bool:
        """Whether coordinates are correlated, which steps have to find out by themselves."""

    def constant(self, level: float) -> Vector:
        """Coordinates of weights that predict the same number everywhere."""

    def penalised(self, w: Vector, alpha: float, start: Vector | None = None) -> Vector:
        """Minimiser of the quadratic around ``w`` plus ``alpha`` times the penalty, found from
        ``start``.
        """

    def slope_at_zero(self, w: Vector) -> Vector:
        """Gradient of the quadratic around ``w`` where all columns have no weight and the
        intercept has its best.
        """

    def slope_noise(self, noise: Vector) -> Vector:
        """Standard deviation of that gradient, for weights with these variances in coordinates."""

    def response(self, w: Vector, found: Vector, alpha: float) -> Vector:
        """Derivative of each coordinate of the penalised weights ``found`` by the same coordinate
        of ``w``; for separable penalties.
        """

    def square(self, w: Vector) -> Vector:
        """Squared coordinates of a difference of weights, times their information."""


@dataclass(frozen=True, eq=False)
class SpectralCoordinates:
    """Eigenvectors of a released second moment, corrected for its noise.

    Noise of deviation s off the diagonal moves eigenvalues by up to ``edge = 2 s sqrt(d)``. Those
    that stand out by more are brought back by the formula for spikes; the others are taken to be
    equal.
    """

    problem: Problem
    vectors: Matrix
    estimated: Vector
    eigenvalues: Vector
    noise: float

    correlated = False

    @classmethod
    def of(cls, M: Matrix, noise: float, problem: Problem) -> "SpectralCoordinates":
        released, vectors = np.linalg.eigh(M)
        d = len(released)
        edge, bulk = 2 * noise * np.sqrt(d), 0.0
        for _ in range(_BULK_ROUNDS):
            hidden = released <= bulk + edge
            bulk = max(float(released[hidden].mean()) if hidden.any() else 0.0, 0.0)
        bulk = max(bulk, noise * np.sqrt(2 / d), _LEAST_EIGENVALUE)
        excess = np.sqrt(np.maximum((released - bulk) ** 2 - edge**2, 0.0))
        estimated = np.where(released > bulk + edge, bulk + excess, bulk)
        floored = np.maximum(estimated, _FLOOR_PER_EDGE * edge)
        return cls(problem, vectors, estimated, floored, noise)

    @property
    def whitening(self) -> Whitening:
        return MatrixWhitening(self.vectors / np.sqrt(self.eigenvalues), self.problem.fit_intercept)

    @property
    def information(self) -> Vector:
        return np.asarray(self.estimated / self.eigenvalues)

    def metric_error(self, uncertainty: Vector) -> Vector:
        inverse = 1 / self.eigenvalues
        return np.asarray(self.noise**2 * inverse * float(uncertainty @ inverse))

    def constant(self, level: float) -> Vector:
        if not self.problem.fit_intercept:
            return np.zeros(len(self.eigenvalues))
        weight = level / self.problem.constant
        return np.asarray(np.sqrt(self.eigenvalues) * self.vectors[-1] * weight)

    @cached_property
    def curvature(self) -> Matrix:
        """The estimated second moment."""
        return np.asarray((self.vectors * self.estimated) @ self.vectors.T)

    def penalised(self, w: Vector, alpha: float, start: Vector | None = None) -> Vector:
        return MetricProx(self.problem, self.curvature)(w, alpha, start)

    def slope_at_zero(self, w: Vector) -> Vector:
        H, d = self.curvature, self.problem.n_features
        slope = H[:d, :d] @ w[:d]
        if self.problem.fit_intercept:
            slope = slope - H[:d, d] * (float(H[d, :d] @ w[:d]) / H[d, d])
        return np.asarray(slope)

    def slope_noise(self, noise: Vector) -> Vector:
        rows = self.vectors[: self.problem.n_features]
        return np.sqrt(rows**2 @ (self.estimated**2 / self.eigenvalues * noise))

    def response(self, w: Vector, found: Vector, alpha: float) -> Vector:
        # At the fixed point of a proximal step, w' = prox(w' - H (w' - w) / L).
        H, L = self.curvature, float(self.estimated.max())
        before = found - H @ (found - w) / L
        slopes = np.ones(len(w))
        d = self.problem.n_features
        slopes[:d] = prox_slopes(self.problem, before[:d], alpha / L)
        scaled = slopes[:, None] * H / L
        jacobian = np.linalg.lstsq(np.diag(1 - slopes) + scaled, scaled, rcond=None)[0]
        return np.asarray(
            np.einsum("kj,kl,lj->j", self.vectors, jacobian, self.vectors, optimize=True)
        )

    def square(self, w: Vector) -> Vector:
        return np.asarray((w @ self.vectors) ** 2 * self.estimated)


@dataclass(frozen=True, eq=False)
class ColumnCoordinates:
    """Columns centred and scaled one by one, for too many columns for a matrix."""

    problem: Problem
    means: Vector
    variances: Vector

    correlated = True

    @classmethod
    def of(
        cls, squares: Vector, means: Vector, noise: float, problem: Problem
    ) -> "ColumnCoordinates":
        """From released means of squares and of entries; ``noise`` is the deviation of the former,
        half of that of the latter.
        """
        # Means are shrunk as far as their noise suggests.
        spread = max(float(np.mean(means**2)) - 4 * noise**2, 0.0)
        total = spread + 4 * noise**2
        kept = spread / total if problem.fit_intercept and total > 0 else 0.0
        centres = kept * means
        variances = squares - centres**2
        floor = max(_LEAST_VARIANCE * float(variances.mean()), _VARIANCE_ERRORS * noise, 1e-4)
        return cls(problem, centres, np.maximum(variances, floor))

    @property
    def whitening(self) -> Whitening:
        return ColumnWhitening(1 / np.sqrt(self.variances), self.means, self.problem.fit_intercept)

    @property
    def information(self) -> Vector:
        return np.ones(self.problem.dimension)

    @property
    def eigenvalues(self) -> Vector:
        return np.append(self.variances, np.ones(int(self.problem.fit_intercept)))

    def metric_error(self, uncertainty: Vector) -> Vector:
        return np.zeros_like(uncertainty)

    def constant(self, level: float) -> Vector:
        found = np.zeros(self.problem.dimension)
        if self.problem.fit_intercept:
            found[-1] = level
        return found

    def penalised(self, w: Vector, alpha: float, start: Vector | None = None) -> Vector:
        problem, columns = self.problem, self.problem.columns(w)
        if problem.penalty.separable:
            kept = problem.penalty.prox(columns, alpha / self.variances)  # type: ignore[arg-type]
        else:
            kept, largest = columns, float(self.variances.max())
            for _ in range(_PROX_STEPS):
                descended = kept - (kept - columns) * self.variances / largest
                kept = problem.penalty.prox(descended, alpha / largest)
        if not problem.fit_intercept:
            return kept
        # The mean prediction stays: the intercept makes up for what columns lose.
        lost = float(self.means @ (columns - kept))
        return np.append(kept, w[-1] + lost / problem.constant)

    def slope_at_zero(self, w: Vector) -> Vector:
        return np.asarray(self.variances * self.problem.columns(w))

    def slope_noise(self, noise: Vector) -> Vector:
        return np.sqrt(self.variances * noise[: self.problem.n_features])

    def response(self, w: Vector, found: Vector, alpha: float) -> Vector:
        columns = self.problem.columns(w)
        slopes = prox_slopes(self.problem, columns, alpha / self.variances)
        return np.append(slopes, np.ones(int(self.problem.fit_intercept)))

    def square(self, w: Vector) -> Vector:
        columns = self.problem.columns(w)
        squares = columns**2 * self.variances
        if not self.problem.fit_intercept:
            return np.asarray(squares)
        level = w[-1] * self.problem.constant + float(self.means @ columns)
        return np.append(squares, level**2)


def prox_slopes(problem: Problem, v: Vector, step: Any) -> Vector:
    """Derivative of a separable prox at each entry."""
    width = _DIFFERENCE * (1 + np.abs(v))
    rise = problem.penalty.prox(v + width, step) - problem.penalty.prox(v - width, step)
    return np.clip(rise / (2 * width), 0.0, 1.0)
