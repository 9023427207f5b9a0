"""DP-SGD (Abadi et al., 2016): noisy gradients of Poisson batches, with a prox for the penalty.

    each step:  g = (sum of clipped gradients over a Poisson batch + noise) / expected batch size
                w <- prox(w + momentum (w - last w) - step g)

The answer is the mean of the last iterates. docs/algorithms/dp-sgd.md says when to use it: sampling
saves time, not budget.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.release import ClippedGradient, Door, FullBatch, Plan, Planned, PoissonBatch, Sampling
from hushfit.solvers._setting_checks import check_settings
from hushfit.solvers.base import Iterate

_NAME = "gradient"
DEFAULT_CLIP = 0.5
DEFAULT_BATCH = PoissonBatch(0.02)
# Measured on tables with unit rows: step size against the noise of a whole run, and its range.
_STEP_PER_INVERSE_NOISE, _MIN_STEP, _MAX_STEP = 0.07, 1.0, 16.0


@dataclass(frozen=True)
class DPSGD:
    r"""Stochastic proximal gradient descent on noisy sums over Poisson batches.

    Parameters
    ----------
    steps : int, default=300
    clip : float or None
        Clipping norm of a record's gradient. None is 0.5, and no clipping when epsilon is infinite.
    step_size : float or None
        None chooses one from the noise level: between 1 and 16 for the logistic loss, proportional
        to 1 / smoothness for others.
    momentum : float, default=0.0
        Heavy-ball momentum.
    average_last : float, default=0.5
        Share of the iterates, from the end, whose mean is the result; 0 means the last one.
    sampling : Sampling or None
        None is ``PoissonBatch(0.02)``, and all rows when epsilon is infinite.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import DPSGD
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = DPSGD().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('gradient', 300)]
    """

    steps: int = 300
    clip: float | None = None
    step_size: float | None = None
    momentum: float = 0.0
    average_last: float = 0.5
    sampling: Sampling | None = None

    takes_constraint = False

    def __post_init__(self) -> None:
        check_settings(self, steps=self.steps, clip=self.clip, step_size=self.step_size)
        if not 0 <= self.momentum < 1 or not 0 <= self.average_last <= 1:
            raise InvalidArgument(f"{self} needs 0 <= momentum < 1 and 0 <= average_last <= 1.")

    def for_budget(self, budget: Budget, problem: Problem) -> "DPSGD":
        """The same; without privacy, on all rows, without clipping and with steps that converge.

        Settings that were given stay.
        """
        if budget.is_private:
            return self
        clip, step = (
            self.clip or problem.loss.slope_bound,
            self.step_size or (1 - self.momentum) / problem.loss.smoothness,
        )
        return replace(self, clip=clip, step_size=step, sampling=self.sampling or FullBatch())

    def plan(self, problem: Problem) -> Plan:
        return Plan(
            (Planned(_NAME, ClippedGradient, self.steps, sampling=self.sampling or DEFAULT_BATCH),)
        )

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        clip, sampling = self.clip or DEFAULT_CLIP, self.sampling or DEFAULT_BATCH
        expected_units = sampling.expected_units(problem.n_units)
        averaged = max(1, round(self.average_last * self.steps))
        w = previous = np.zeros(problem.shape)
        noise = run_noise(
            ClippedGradient(problem, w, clip),
            door.noise_multiplier(_NAME),
            expected_units,
            self.steps,
        )
        step = self.step_size or (1 - self.momentum) * default_step_size(problem, noise)

        for t in range(self.steps):
            g = (
                door.release(_NAME, ClippedGradient(problem, w, clip)).reshape(w.shape)
                / expected_units
            )
            ahead = w + self.momentum * (w - previous) if self.momentum else w
            previous, w = w, problem.prox(ahead - step * g, step)
            yield Iterate(w, weight=float(t >= self.steps - averaged))


def default_step_size(problem: Problem, noise: float) -> float:
    """Step size from the noise of a whole run, in units of the curvature of the loss."""
    return (
        0.25
        / problem.loss.smoothness
        * float(np.clip(_STEP_PER_INVERSE_NOISE / max(noise, 1e-12), _MIN_STEP, _MAX_STEP))
    )


def run_noise(
    query: ClippedGradient, multiplier: float, expected_units: float, steps: int
) -> float:
    """Norm of the noise in the mean of all gradients of a run; public."""
    per_step = multiplier * query.sensitivity(query.problem.relation) / expected_units
    return per_step * math.sqrt(query.size / steps)
