"""Proximal steps in the metric of a private second moment: for penalties that have corners.

The second moment times the smoothness of the loss bounds the curvature everywhere, so it can stand in for the Hessian. The
objective keeps its meaning (unlike whitening the variables, which would turn the penalty); only the steps change.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Vector
from hushfit.penalties import FoldedConcave
from hushfit.problem import Problem
from hushfit.release import ClippedGradient, Curator, Plan, Planned, SecondMoment
from hushfit.solvers._metric_prox import MetricProx
from hushfit.solvers._run import Iterate
from hushfit.solvers._whitening import relation_factor, release_spectrum

_SMALLEST_EIGENVALUE = 1e-4


@dataclass(frozen=True)
class ProxNewton:
    """Variable-metric proximal gradient descent; the default for L1 and other penalties that select.

    Parameters
    ----------
    steps : int, default=20
    clip : float, default=0.5
        Largest length of a record's gradient.
    moment_share : float, default=0.1
        Part of the budget (of mu squared) for the second moment.
    """

    steps: int = 20
    clip: float = 0.5
    moment_share: float = 0.1

    def plan(self, problem: Problem) -> Plan:
        return Plan(
            (
                Planned("second moment", SecondMoment, 1, self.moment_share),
                Planned("gradient", ClippedGradient, self.steps, 1 - self.moment_share),
            )
        )

    def iterates(self, problem: Problem, curator: Curator) -> Iterator[Iterate]:
        spectrum = release_spectrum(problem, curator, "second moment", _SMALLEST_EIGENVALUE)
        H = problem.loss.smoothness * spectrum.power(1.0)
        inverse_H = spectrum.power(-1.0) / problem.loss.smoothness
        prox = MetricProx(problem, H)
        rate = self._rate(problem, curator)
        first_averaged = self.steps // 2
        w = np.zeros(problem.shape)
        target_sum = np.zeros(problem.shape)

        for t in range(self.steps):
            g = curator.release("gradient", ClippedGradient(problem, w, self.clip)).reshape(problem.shape)
            target = w - rate * (g / problem.n_rows) @ inverse_H
            if isinstance(problem.penalty, FoldedConcave):
                prox = MetricProx(_tangent(problem, problem.penalty, w), H)
            w = prox(target, rate)
            # The average of the targets, before the prox, is what the prox may still make sparse.
            target_sum += target if t >= first_averaged else 0.0
            last = t == self.steps - 1
            mean = target_sum / (self.steps - first_averaged)
            yield Iterate(prox(mean, rate) if last else w, weight=float(last))

    def finish(self, problem: Problem, curator: Curator, average: Vector) -> Vector:
        return average

    def _rate(self, problem: Problem, curator: Curator) -> float:
        per_step = curator.noise_multiplier("gradient") * relation_factor(problem) / problem.n_rows
        nu = math.sqrt(problem.dimension * problem.outputs) * per_step / math.sqrt(self.steps)
        return float(np.clip(0.006 / max(nu, 1e-12), 0.05, 0.8))


def _tangent(problem: Problem, penalty: FoldedConcave, w: Vector) -> Problem:
    """The problem with a non-convex penalty replaced by its tangent at the current weights, a weighted L1 that lies above it."""
    return replace(problem, penalty=penalty.linearised(problem.columns(w)))
