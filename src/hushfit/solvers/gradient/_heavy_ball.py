"""Heavy-ball descent for tables with too many columns for a second moment.

A mean record costs d noisy numbers where a second moment costs d squared. It gives a metric of rank
one that shortens the direction that all records share; everything else stays as it is, and sparse
rows stay sparse. Number of steps and step size follow from the budget: without curvature, the noise
in the margin of a record has the standard deviation

    step size * steps * clipping norm * a / ((1 - momentum) * mu * n)

whatever the number of columns and classes (a is 2 for replace-one, 1 for add-remove), and the rule
fixes it at 0.7. What each part of it gains is in docs/algorithms/auto.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget, gaussian_mu
from hushfit.problem import Problem
from hushfit.release import ClippedGradient, Door, Plan, Planned, RankOneMetric, RecordSum
from hushfit.solvers._whitening import relation_factor
from hushfit.solvers.base import Iterate

MEAN, _GRADIENT = "mean record", "gradient"
_LEAST_STEPS, _MOST_STEPS, _DEFAULT_STEPS = 60, 200, 100
_SIGNAL_PER_STEP = 80.0  # mu n / a that one step is made for
_MARGIN_NOISE = 0.7
# Squared length of the mean record that is always assumed, and that which is left of it.
_LEAST_MEAN, _LEFT_OF_MEAN = 0.05, 0.1
# Of the step size beyond which heavy-ball descent diverges on a quadratic function.
_STABLE_SHARE = 0.8
# Share of the records' squared length in one direction that is supposed to be left at most.
_LARGEST_EIGENVALUE = 0.2


@dataclass(frozen=True)
class HeavyBall:
    """Clipped gradient descent with momentum in a metric from a private mean record; the default
    for many columns.

    With a penalty there is no metric, and steps are followed by the penalty's prox.

    Parameters
    ----------
    steps : int or None
        None chooses 60 to 200 from the budget, 100 if there is none to choose from.
    clip : float, default=0.5
        Clipping norm of a record's gradient in the metric, in units of a record's length.
    momentum : float, default=0.9
    mean_share : float, default=0.01
        Share of the budget (of mu squared) for the mean record.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import HeavyBall
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = HeavyBall().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('gradient', 100)]
    """

    steps: int | None = None
    clip: float = 0.5
    momentum: float = 0.9
    mean_share: float = 0.01

    takes_constraint = False

    def __post_init__(self) -> None:
        if (
            not (self.steps is None or self.steps >= 1)
            or not self.clip > 0
            or not 0 <= self.momentum < 1
            or not 0 < self.mean_share < 1
        ):
            raise InvalidArgument(
                f"{self} needs steps >= 1 or None, clip > 0, 0 <= momentum < 1 and "
                "0 < mean_share < 1."
            )

    def for_budget(self, budget: Budget, problem: Problem) -> "HeavyBall":
        """The same with a number of steps, unless given."""
        if self.steps is not None or not budget.is_private:
            return self
        signal = gaussian_mu(budget.epsilon, budget.delta) * problem.n_units
        wanted = signal / (_SIGNAL_PER_STEP * relation_factor(problem))
        return replace(self, steps=round(min(max(wanted, _LEAST_STEPS), _MOST_STEPS)))

    @property
    def _steps(self) -> int:
        return self.steps or _DEFAULT_STEPS

    def plan(self, problem: Problem) -> Plan:
        mean_share = 0.0 if _is_penalised(problem) else self.mean_share
        gradients = Planned(_GRADIENT, ClippedGradient, self._steps, 1 - mean_share)
        if _is_penalised(problem):
            return Plan((gradients,))
        return Plan((Planned(MEAN, RecordSum, 1, mean_share), gradients))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        metric = None if _is_penalised(problem) else _metric(problem, door)
        step = self._step_size(problem, door)

        def image(u: Vector) -> Vector:
            return u if metric is None else metric.image(u)

        u = previous = np.zeros(problem.shape)
        for t in range(self._steps):
            query = ClippedGradient(problem, image(u), self.clip, metric)
            g = door.release(_GRADIENT, query).reshape(problem.shape) / problem.n_units
            ahead = u + self.momentum * (u - previous)
            previous, u = u, problem.prox(ahead - step * g, step)
            yield Iterate(image(u), weight=float(t == self._steps - 1))

    def _step_size(self, problem: Problem, door: Door) -> float:
        stable = 2 * (1 + self.momentum) / (problem.loss.smoothness * _LARGEST_EIGENVALUE)
        multiplier = door.noise_multiplier(_GRADIENT)
        if multiplier == 0:
            return _STABLE_SHARE * stable
        signal = math.sqrt(self._steps) / multiplier * problem.n_units / relation_factor(problem)
        noisy = _MARGIN_NOISE * (1 - self.momentum) * signal / (self._steps * self.clip)
        return min(noisy, _STABLE_SHARE * stable)


def _is_penalised(problem: Problem) -> bool:
    return problem.penalty.ridge != 0


def _metric(problem: Problem, door: Door) -> RankOneMetric:
    """The metric in which the mean record is short and other directions as long as records were."""
    query = RecordSum(problem)
    mean = door.release(MEAN, query) / problem.n_units
    noise = door.noise_multiplier(MEAN) * query.sensitivity(problem.relation) / problem.n_units
    square = float(mean @ mean)
    shared = min(max(square - problem.dimension * noise**2, _LEAST_MEAN), 1.0)
    factor = math.sqrt(_LEFT_OF_MEAN / max(shared, _LEFT_OF_MEAN))
    scale = math.sqrt(max(1 - shared + factor**2 * shared, _LEFT_OF_MEAN))
    direction = mean if square > 0 else np.ones(problem.dimension)
    return RankOneMetric(direction, factor, scale)
