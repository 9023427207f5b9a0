"""DP-SVRG: proximal stochastic variance-reduced gradient with two noises.

After Johnson and Zhang (2013) and Xiao and Zhang (2014).

    each epoch:  p = full clipped gradient at the snapshot + noise
    each step:   d = sum over a Poisson batch of clipped differences to the snapshot + noise
                 proportional to their bound
                 w <- prox(w - step (p + d))
                 snapshot = mean w of the epoch

Differences shrink as the iterates converge, and their noise with them. docs/algorithms/dp-svrg.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.release import (
    ClippedGradient,
    Door,
    FullBatch,
    GradientDifference,
    Plan,
    Planned,
    PoissonBatch,
    Sampling,
    difference_bound,
)
from hushfit.solvers._setting_checks import check_settings
from hushfit.solvers.base import Iterate
from hushfit.solvers.gradient._dp_sgd import DEFAULT_CLIP, default_step_size, run_noise

_DEFAULT_BATCH = PoissonBatch(0.1)


@dataclass(frozen=True)
class DPSVRG:
    """Variance-reduced stochastic proximal gradient descent.

    Parameters
    ----------
    epochs : int, default=20
    inner_steps : int, default=15
        Steps in an epoch, at least 2; the first is at the snapshot itself and needs no difference.
    clip : float or None
        Clipping norm of a record's gradient. None is 0.5, and no clipping when epsilon is infinite.
    step_size : float or None
        None chooses one from the noise level, as `DPSGD` does.
    snapshot_share : float, default=0.7
        Share of the budget (of mu squared) for the snapshot gradients.
    average_last : float, default=0.3
        Share of the epochs, from the end, that the average covers; 0 takes the last one alone.
    sampling : Sampling or None
        Sampling of the differences. None is ``PoissonBatch(0.1)``, and all rows when epsilon is
        infinite.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import DPSVRG
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = DPSVRG().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('snapshot', 20), ('difference', 280)]
    """

    epochs: int = 20
    inner_steps: int = 15
    clip: float | None = None
    step_size: float | None = None
    snapshot_share: float = 0.7
    average_last: float = 0.3
    sampling: Sampling | None = None

    takes_constraint = False

    def __post_init__(self) -> None:
        check_settings(self, epochs=self.epochs, clip=self.clip, step_size=self.step_size)
        if self.inner_steps < 2:
            raise InvalidArgument(
                f"inner_steps={self.inner_steps!r} leaves no difference to take. Give at least 2."
            )
        if not 0 < self.snapshot_share < 1 or not 0 <= self.average_last <= 1:
            raise InvalidArgument(
                f"{self} needs 0 < snapshot_share < 1 and 0 <= average_last <= 1."
            )

    def for_budget(self, budget: Budget, problem: Problem) -> "DPSVRG":
        """The same; without privacy, on all rows, without clipping and with steps that converge.

        Settings that were given stay.
        """
        if budget.is_private:
            return self
        clip, step = (
            self.clip or problem.loss.slope_bound,
            self.step_size or 1 / problem.loss.smoothness,
        )
        return replace(self, clip=clip, step_size=step, sampling=self.sampling or FullBatch())

    def plan(self, problem: Problem) -> Plan:
        differences = self.epochs * (self.inner_steps - 1)
        return Plan(
            (
                Planned("snapshot", ClippedGradient, self.epochs, self.snapshot_share),
                Planned(
                    "difference",
                    GradientDifference,
                    differences,
                    1 - self.snapshot_share,
                    self.sampling or _DEFAULT_BATCH,
                ),
            )
        )

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        clip, sampling = self.clip or DEFAULT_CLIP, self.sampling or _DEFAULT_BATCH
        expected_units = sampling.expected_units(problem.n_units)
        averaged = max(1, round(self.average_last * self.epochs))
        snapshot = np.zeros(problem.shape)
        multiplier = door.noise_multiplier("snapshot")
        noise = run_noise(
            ClippedGradient(problem, snapshot, clip), multiplier, problem.n_units, self.epochs
        )
        step = self.step_size or default_step_size(problem, noise)

        for epoch in range(self.epochs):
            full = door.release("snapshot", ClippedGradient(problem, snapshot, clip))
            p = full.reshape(problem.shape) / problem.n_units
            w = problem.prox(snapshot - step * p, step)
            total, weight = w.copy(), float(epoch >= self.epochs - averaged)
            yield Iterate(w, weight)
            for _ in range(self.inner_steps - 1):
                bound = difference_bound(problem, w, snapshot, clip)
                d = door.release(
                    "difference", GradientDifference(problem, w, snapshot, clip, bound)
                )
                w = problem.prox(w - step * (p + d.reshape(problem.shape) / expected_units), step)
                total += w
                yield Iterate(w, weight)
            snapshot = total / self.inner_steps
