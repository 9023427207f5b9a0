"""Noisy proximal gradient descent with momentum, for any number of columns and convex penalty."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hushfit.errors import InvalidArgument
from hushfit.problem import Problem
from hushfit.release import ClippedGradient, Door, FullBatch, Plan, Planned, Sampling
from hushfit.solvers._whitening import relation_factor
from hushfit.solvers.base import Iterate


@dataclass(frozen=True)
class ProximalGradient:
    r"""Proximal gradient descent with clipped gradients and momentum.

    Parameters
    ----------
    steps : int, default=40
    clip : float, default=0.5
        Clipping norm of a record's gradient. Records have length one, so this bounds the slope of
        the loss.
    momentum : float, default=0.9
        Heavy-ball momentum. 0 gives plain proximal gradient descent.
    step_size : float or None
        None chooses :math:`0.1 \min(\max(0.7/\nu, 8), 128)` from the noise level
        :math:`\nu = a \sqrt d / (\mu n)`, a rule that was measured for losses like the logistic
        one.
    accelerated : bool, default=False
        Nesterov's momentum :math:`(t-1)/(t+2)` instead of the constant one, with step size 1 /
        smoothness unless given.
    average_last : float, default=0.0
        Share of the iterates, from the end, whose mean is the result; 0 means the last one.
    sampling : Sampling, default=FullBatch()
        Sampling saves time, not budget.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import ProximalGradient
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = ProximalGradient().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('gradient', 40)]
    """

    steps: int = 40
    clip: float = 0.5
    momentum: float = 0.9
    step_size: float | None = None
    accelerated: bool = False
    average_last: float = 0.0
    sampling: Sampling = FullBatch()

    takes_constraint = False

    def __post_init__(self) -> None:
        if (
            self.steps < 1
            or self.clip <= 0
            or not 0 <= self.momentum < 1
            or not 0 <= self.average_last <= 1
        ):
            raise InvalidArgument(
                f"{self} needs steps >= 1, clip > 0, 0 <= momentum < 1 and 0 <= average_last <= 1."
            )

    def plan(self, problem: Problem) -> Plan:
        return Plan((Planned("gradient", ClippedGradient, self.steps, sampling=self.sampling),))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        step = self._step_size(problem, door)
        expected_units = self.sampling.expected_units(problem.n_units)
        averaged = max(1, round(self.average_last * self.steps))
        w = previous = np.zeros(problem.shape)

        for t in range(self.steps):
            momentum = t / (t + 3) if self.accelerated else self.momentum
            ahead = w + momentum * (w - previous)
            at = ahead if self.accelerated else w
            g = door.release("gradient", ClippedGradient(problem, at, self.clip)) / expected_units
            previous, w = w, problem.prox(ahead - step * g.reshape(problem.shape), step)
            yield Iterate(w, weight=float(t >= self.steps - averaged))

    def _step_size(self, problem: Problem, door: Door) -> float:
        if self.step_size is not None:
            return self.step_size
        if self.accelerated:
            return 1 / problem.loss.smoothness
        per_step = door.noise_multiplier("gradient") * relation_factor(problem) / problem.n_units
        nu = math.sqrt(problem.dimension * problem.outputs) * per_step / math.sqrt(self.steps)
        return 0.1 * float(np.clip(0.7 / max(nu, 1e-12), 8, 128))
