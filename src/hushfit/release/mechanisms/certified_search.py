"""The search for a minimiser. Its steps need no proof: it ends with a point whose gradient is short
enough for the certificate, or with an error. Proof: docs/proofs/objective.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self
from weakref import WeakKeyDictionary

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.data import DataSource
from hushfit.errors import NotCertified
from hushfit.problem import Problem
from hushfit.release.queries import SecondMoment

_MOST_STEPS = 100_000
_MOST_INNER_STEPS = 300
# Relative to the step that is solved for: near the minimiser steps are short, and so are errors.
_INNER_TOLERANCE = 1e-5
# Cached second moments of each source, for the lifetime of the source; they never leave this
# module.
_moments: WeakKeyDictionary[DataSource, Matrix] = WeakKeyDictionary()


def _moment_of(source: DataSource, problem: Problem) -> Matrix:
    """An upper bound on the mean of the records' outer products."""
    if source not in _moments:
        query = SecondMoment(problem)
        # Entries are rounded; the largest possible loss, 2 r + r^2 for a unit, is added back.
        rounded_away = 4 * query.rounding
        mean = query.matrix(query(source, None)) / problem.n_units
        _moments[source] = mean + rounded_away * np.eye(problem.dimension)
    return _moments[source]


@dataclass(frozen=True, eq=False)
class PlainSteps:
    """Proximal steps in the ordinary metric, for many columns."""

    problem: Problem
    largest: float

    def step(self, at: Vector, g: Vector) -> Vector:
        return self.problem.prox(at - g / self.largest, 1 / self.largest)

    def image(self, v: Vector) -> Vector:
        return v


@dataclass(frozen=True, eq=False)
class MetricSteps:
    """Steps in the metric of a bound ``H`` on the Hessian of the smooth part. It affects the speed
    of convergence, not the minimiser.
    """

    problem: Problem
    H: Matrix

    @classmethod
    def of(cls, problem: Problem, mu: float, source: DataSource) -> Self:
        curvature = problem.loss.smoothness * _moment_of(source, problem)
        return cls(problem, curvature + mu * np.eye(problem.dimension))

    def step(self, at: Vector, g: Vector) -> Vector:
        """Minimiser of ``g . z + (z - at) H (z - at) / 2 + penalty(z)``."""
        return (
            self._accelerated(at, g) if self.problem.penalty.ridge is None else self._solved(at, g)
        )

    def image(self, v: Vector) -> Vector:
        return v @ self.H

    def _solved(self, at: Vector, g: Vector) -> Vector:
        curvature, inverse = self._curved
        return at - (g + at * curvature) @ inverse

    @cached_property
    def _curved(self) -> tuple[Vector, Matrix]:
        """Curvature of a squared penalty, and the inverse of ``H`` plus it."""
        curvature = np.zeros(self.problem.dimension)
        curvature[: self.problem.n_features] = self.problem.penalty.ridge or 0.0
        return curvature, np.asarray(np.linalg.inv(self.H + np.diag(curvature)), dtype=np.float64)

    @cached_property
    def _largest(self) -> float:
        return float(np.linalg.eigvalsh(self.H)[-1])

    def _accelerated(self, at: Vector, g: Vector) -> Vector:
        z = ahead = at
        momentum = 1.0
        for _ in range(_MOST_INNER_STEPS):
            slope = g + (ahead - at) @ self.H
            before, z = z, self.problem.prox(ahead - slope / self._largest, 1 / self._largest)
            moved = z - before
            if np.abs(moved).max() <= _INNER_TOLERANCE * np.abs(z - at).max():
                break
            ahead, momentum = _extrapolated(z, moved, ahead - z, momentum)
        return z


def minimise(
    problem: Problem,
    gradient: Callable[[Vector], Vector],
    steps: PlainSteps | MetricSteps,
    smoothness: float,
    tolerance: float,
) -> Vector:
    """Accelerated descent until the length of a proximal step proves that it ends near the
    minimiser.
    """
    w = ahead = problem.prox(np.zeros(problem.shape), 1.0)
    momentum = 1.0
    for _ in range(_MOST_STEPS):
        g = gradient(ahead)
        candidate = problem.prox(ahead - g / smoothness, 1 / smoothness)
        if smoothness * float(np.linalg.norm(ahead - candidate)) <= tolerance:
            return candidate
        before, w = w, steps.step(ahead, g)
        ahead, momentum = _extrapolated(w, w - before, steps.image(ahead - w), momentum)
    raise NotCertified(
        f"No minimiser was certified in {_MOST_STEPS} steps, so nothing was released; the budget "
        "is spent. Raise mu or tolerance."
    )


def _extrapolated(
    z: Vector, moved: Vector, overshoot: Vector, momentum: float
) -> tuple[Vector, float]:
    """Nesterov's next point and momentum, which restarts when the last one pointed uphill."""
    if np.sum(overshoot * moved) > 0:
        momentum = 1.0
    following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
    return z + (momentum - 1) / following * moved, following
