"""Gradient descent in the metric of a private second moment.

Tables of one-hot and ranged columns are badly conditioned: plain gradient descent spends its budget on a few directions.
A tenth of the budget buys the second moment of the records; in the metric of its inverse root the loss is nearly round and
sixty clipped steps suffice. All settings follow from public numbers and from the release itself.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.errors import InvalidArgument
from hushfit.problem import Problem
from hushfit.release import ClippedGradient, Curator, Metric, Plan, Planned, SecondMoment
from hushfit.solvers._metric_prox import is_smooth
from hushfit.solvers._run import Iterate
from hushfit.solvers._whitening import relation_factor, release_spectrum

_USUAL_COLUMNS = 125  # the rule was measured on tables of about so many


@dataclass(frozen=True)
class Settings:
    """How to walk, given ``nu``: the noise of a whole run against the size of a whitened record."""

    clip: float
    momentum: float
    first_step: float
    largest_step: float

    @classmethod
    def for_noise(cls, nu: float, dimension: float, steps: int) -> "Settings":
        """The rule: with less noise clip later, step further, and gather momentum."""
        quiet = 0.02 / max(nu, 1e-12)
        looseness = float(np.clip(0.25 * quiet**0.75, 0.25, 4.0))
        return cls(
            clip=looseness * math.sqrt(dimension),
            momentum=float(np.clip(0.7 * (quiet - 1), 0.0, 0.7)),
            first_step=0.015 / (math.sqrt(steps) * max(nu, 1e-12) ** 2) / looseness,
            largest_step=4.0 / looseness,
        )

    def for_columns(self, columns: int) -> "Settings":
        """With many columns, shorter steps while noise limits them: its length grows with their root, the signal's hardly."""
        return replace(self, first_step=self.first_step * min(1.0, math.sqrt(_USUAL_COLUMNS / columns)))

    def stretched(self, factor: float) -> "Settings":
        """The same with longer steps: several outputs share a record's slope, so each sees less of it."""
        return replace(self, first_step=factor * self.first_step, largest_step=factor * self.largest_step)

    def step(self, t: int, steps: int) -> float:
        return min(self.first_step, self.largest_step * (1 - t / steps))


@dataclass(frozen=True)
class WhitenedGradientDescent:
    """Clipped gradient steps in the metric of a private second moment; the default for smooth problems.

    Parameters
    ----------
    steps : int, default=60
    moment_share : float, default=0.1
        Part of the budget (of mu squared) for the second moment.
    """

    steps: int = 60
    moment_share: float = 0.1

    def plan(self, problem: Problem) -> Plan:
        if not is_smooth(problem):
            raise InvalidArgument(
                f"WhitenedGradientDescent takes a squared penalty or none, not {problem.penalty!r}. Use solver='prox-newton'."
            )
        return Plan(
            (
                Planned("second moment", SecondMoment, 1, self.moment_share),
                Planned("gradient", ClippedGradient, self.steps, 1 - self.moment_share),
            )
        )

    def iterates(self, problem: Problem, curator: Curator) -> Iterator[Iterate]:
        spectrum = release_spectrum(problem, curator, "second moment")
        metric = Metric(spectrum.power(-0.5))
        settings = self._settings(problem, curator, spectrum.effective_dimension)
        shrink = _Shrinkage.of(problem, metric.A)
        u = np.zeros(problem.shape)
        velocity = np.zeros(problem.shape)

        for t in range(self.steps):
            w = (u + settings.momentum * velocity) @ metric.A
            query = ClippedGradient(problem, w, settings.clip, metric)
            g = curator.release("gradient", query).reshape(problem.shape) / problem.n_rows
            step = settings.step(t, self.steps)
            before, u = u, shrink(u + settings.momentum * velocity - step * g, step)
            velocity = u - before
            yield Iterate(u @ metric.A, weight=t + 1)

    def finish(self, problem: Problem, curator: Curator, average: Vector) -> Vector:
        return average

    def _settings(self, problem: Problem, curator: Curator, dimension: float) -> Settings:
        per_step = curator.noise_multiplier("gradient") * relation_factor(problem) / problem.n_rows
        nu = dimension * per_step / math.sqrt(self.steps)
        settings = Settings.for_noise(nu, dimension, self.steps).for_columns(problem.dimension)
        return settings if problem.outputs == 1 else settings.stretched(2.0)


@dataclass(frozen=True, eq=False)
class _Shrinkage:
    """Proximal step of a squared penalty on the weights, seen from whitened space, where it is an ellipsoid.

    An explicit step would blow up along directions that whitening stretches; the implicit one never does.
    """

    vectors: Matrix
    curvatures: Vector

    @classmethod
    def of(cls, problem: Problem, A: Matrix) -> "_Shrinkage":
        alpha = getattr(problem.penalty, "alpha", 0.0)
        if alpha == 0.0:
            return cls(np.eye(len(A)), np.zeros(len(A)))
        penalised = A[:, : problem.n_features]
        curvatures, vectors = np.linalg.eigh(penalised @ penalised.T)
        return cls(vectors, alpha * np.maximum(curvatures, 0.0))

    def __call__(self, u: Vector, step: float) -> Vector:
        return (u @ self.vectors / (1 + step * self.curvatures)) @ self.vectors.T
