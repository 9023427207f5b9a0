"""Proximal steps in the metric of a private second moment, for non-smooth penalties.

The second moment bounds the shape of the curvature everywhere, so it can replace the Hessian. The
objective does not change (unlike whitening the variables, which would rotate the penalty); only the
steps do. Noise and clipping are isotropic in the same metric, and step sizes depend on the noise as
in whitened gradient descent.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.penalties import FoldedConcave
from hushfit.problem import Problem
from hushfit.release import ClippedGradient, Door, Metric, Plan, Planned, SecondMoment
from hushfit.solvers._metric_prox import MetricProx
from hushfit.solvers._whitening import Spectrum, relation_factor, release_spectrum
from hushfit.solvers.base import Iterate
from hushfit.solvers.newton._whitened import penalty_strength

# A clipping norm that is active weakens the loss against the penalty, so it is larger than without
# a penalty as soon as the noise allows it. Fitted on a9a, bank and simulated rows. Both ends, 1 and
# 2, were checked on mushrooms, w8a, covtype and kddcup99. The smallest norm was fitted on adult,
# bank and covtype.
_REFERENCE_NOISE = 0.04
_MAX_CLIP_FACTOR = 2.0
_TYPICAL_WEIGHT = 10.0
_REFERENCE_COLUMNS = 125  # with many more, first steps are shorter


@dataclass(frozen=True)
class ProxNewton:
    """Variable-metric proximal gradient descent; the default for L1 and other sparse penalties.

    Parameters
    ----------
    steps : int, default=60
    clip : float or None
        Clipping norm of a record's gradient in the metric, in units of the typical length of a
        record. None chooses it from the noise level.
    moment_share : float, default=0.1
        Share of the budget (of mu squared) for the second moment.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import ProxNewton
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = ProxNewton().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('second moment', 1), ('gradient', 60)]
    """

    steps: int = 60
    clip: float | None = None
    moment_share: float = 0.1

    takes_constraint = False

    def __post_init__(self) -> None:
        if (
            self.steps < 1
            or not (self.clip is None or self.clip > 0)
            or not 0 < self.moment_share < 1
        ):
            raise InvalidArgument(
                f"{self} needs steps >= 1, a positive clip or None, and 0 < moment_share < 1."
            )

    def plan(self, problem: Problem) -> Plan:
        return Plan(
            (
                Planned("second moment", SecondMoment, 1, self.moment_share),
                Planned("gradient", ClippedGradient, self.steps, 1 - self.moment_share),
            )
        )

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        spectrum = release_spectrum(problem, door, "second moment")
        metric, H = Metric(spectrum.power(-0.5)), spectrum.power(1.0)
        rule = self._step_rule(problem, door, spectrum)
        prox = MetricProx(problem, H)
        weight, total_weight = spectrum.mean_weight, problem.n_units * spectrum.mean_weight
        w = previous = np.zeros(problem.shape)
        target_sum, step_sum, weights = (
            np.zeros(problem.shape),
            0.0,
            self.steps * (self.steps + 1) / 2,
        )

        for t in range(self.steps):
            ahead = w + rule.momentum * (w - previous)
            query = ClippedGradient(problem, ahead, rule.clip, metric)
            g = door.release("gradient", query).reshape(problem.shape) / total_weight
            step = rule.step(t, self.steps)
            target = ahead - step * g @ metric.A
            if isinstance(problem.penalty, FoldedConcave):
                prox = MetricProx(_tangent(problem, problem.penalty, w), H)
            previous, w = w, prox(target, step / weight)
            # Targets are averaged before the prox, so that the prox can still make the result
            # sparse.
            target_sum, step_sum = target_sum + (t + 1) * target, step_sum + (t + 1) * step
            last = t == self.steps - 1
            if last:
                w = prox(target_sum / weights, step_sum / (weight * weights))
            yield Iterate(w, weight=float(last))

    def _step_rule(self, problem: Problem, door: Door, spectrum: Spectrum) -> "_StepRule":
        """The rule: with less noise, a larger clipping norm, longer steps and more momentum."""
        noise = (
            door.noise_multiplier("gradient")
            * relation_factor(problem)
            / (problem.n_units * spectrum.mean_weight)
            / math.sqrt(self.steps)
        )
        dimension = spectrum.effective_dimension
        nu = max(dimension * noise, 1e-12)
        relative_noise = max(math.sqrt(problem.dimension * problem.outputs) * noise, 1e-12)
        clip_factor = float(np.clip(_REFERENCE_NOISE / relative_noise, 1.0, _MAX_CLIP_FACTOR))
        by_noise = clip_factor * float(np.clip(0.25 * (0.02 / nu) ** 0.75, 0.25, 4.0))
        clip = self.clip or max(by_noise, _least_clip_factor(nu, problem))
        columns = min(1.0, math.sqrt(_REFERENCE_COLUMNS / problem.dimension))
        # Several outputs share a record's slope, so each gets less of it.
        stretch = (1.0 if problem.outputs == 1 else 2.0) / clip
        return _StepRule(
            clip=clip * math.sqrt(dimension),
            momentum=float(np.clip(0.7 * (0.02 / nu - 1), 0.0, 0.7)),
            first_step=stretch * columns * 0.015 / (math.sqrt(self.steps) * nu**2),
            largest_step=stretch / problem.loss.smoothness,
        )


@dataclass(frozen=True)
class _StepRule:
    """Clipping norm, momentum and step sizes, given the noise."""

    clip: float
    momentum: float
    first_step: float
    largest_step: float

    def step(self, t: int, steps: int) -> float:
        return min(self.first_step, self.largest_step * (1 - t / steps))


def _least_clip_factor(nu: float, problem: Problem) -> float:
    """Smallest clipping norm, in units of the typical length of a record: as for smooth penalties,
    but smaller at large noise, since a sparse model has less of it.
    """
    least = max(np.clip(0.025 / nu, 0.5, 0.7), min(0.015 / nu, 1.0))
    return float(least * penalty_strength(_equivalent_ridge(problem), problem.dimension))


def _equivalent_ridge(problem: Problem) -> float:
    """Weight of the squared penalty that is as large as the penalty at weights of typical size."""
    typical = np.full(problem.columns(np.zeros(problem.shape)).shape, _TYPICAL_WEIGHT)
    value = 2 * problem.penalty.value(typical) / float((typical**2).sum())
    return value if math.isfinite(value) else 0.0


def _tangent(problem: Problem, penalty: FoldedConcave, w: Vector) -> Problem:
    """The problem with a non-convex penalty replaced by its tangent at the current weights.

    The tangent is a weighted L1 that lies above the penalty.
    """
    return replace(problem, penalty=penalty.linearised(problem.columns(w)))
