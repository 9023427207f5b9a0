"""DP-Adam: Adam (Kingma and Ba, 2015) on the noisy gradients of DP-SGD, with a proximal step.

    each step:  g = (sum of clipped gradients over a Poisson batch + noise) / expected batch size
                m, v = running means of g and g^2, corrected for bias
                w <- prox of each coordinate
                     (w - step m / (sqrt(max(v - noise variance, 0)) + floor))

Noise alone makes v large and equal in all coordinates; its variance is public, so it is subtracted.
docs/algorithms/dp-sgd.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.release import ClippedGradient, Door, FullBatch, Plan, Planned, Sampling
from hushfit.solvers._setting_checks import check_settings
from hushfit.solvers.base import Iterate
from hushfit.solvers.gradient._dp_sgd import DEFAULT_BATCH, DEFAULT_CLIP, run_noise

_NAME = "gradient"
# Measured as for DP-SGD; the step length of Adam does not depend on the length of the gradient.
_STEP_PER_INVERSE_NOISE, _MIN_STEP, _MAX_STEP = 5e-4, 0.03, 0.3


@dataclass(frozen=True)
class DPAdam:
    """Adam on noisy sums over Poisson batches.

    Parameters
    ----------
    steps : int, default=300
    clip : float or None
        Clipping norm of a record's gradient. None is 0.5, and no clipping when epsilon is infinite.
    step_size : float or None
        None chooses one between 0.03 and 0.3 from the noise level.
    decay : (float, float), default=(0.9, 0.99)
        Decay rates of the running means of the gradient and of its square.
    floor : float, default=0.01
        Minimum scale by which a coordinate's gradient is divided, in units of the clipping norm;
        also used when noise hides the scale.
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
    >>> from hushfit.solvers import DPAdam
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = DPAdam().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('gradient', 300)]
    """

    steps: int = 300
    clip: float | None = None
    step_size: float | None = None
    decay: tuple[float, float] = (0.9, 0.99)
    floor: float = 0.01
    average_last: float = 0.5
    sampling: Sampling | None = None

    takes_constraint = False

    def __post_init__(self) -> None:
        check_settings(
            self, steps=self.steps, clip=self.clip, step_size=self.step_size, floor=self.floor
        )
        pair = isinstance(self.decay, tuple) and len(self.decay) == 2
        if not pair or not all(0 <= rate < 1 for rate in self.decay):
            raise InvalidArgument("decay should be a pair of rates in [0, 1), such as (0.9, 0.99).")
        if not 0 <= self.average_last <= 1:
            raise InvalidArgument(f"average_last={self.average_last} is not a share in [0, 1].")

    def for_budget(self, budget: Budget, problem: Problem) -> "DPAdam":
        """The same; without privacy, on all rows and without clipping, unless given."""
        if budget.is_private:
            return self
        return replace(
            self, clip=self.clip or problem.loss.slope_bound, sampling=self.sampling or FullBatch()
        )

    def plan(self, problem: Problem) -> Plan:
        if not problem.penalty.separable:
            raise InvalidArgument(
                "DPAdam has a separate step size for each coordinate, and the prox of "
                f"{problem.penalty!r} takes one for all. Use 'dp-sgd'."
            )
        return Plan(
            (Planned(_NAME, ClippedGradient, self.steps, sampling=self.sampling or DEFAULT_BATCH),)
        )

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        clip, sampling = self.clip or DEFAULT_CLIP, self.sampling or DEFAULT_BATCH
        expected_units = sampling.expected_units(problem.n_units)
        averaged = max(1, round(self.average_last * self.steps))
        first, second = self.decay
        w, m, v = np.zeros(problem.shape), np.zeros(problem.shape), np.zeros(problem.shape)
        step = self.step_size or self._default_step_size(
            ClippedGradient(problem, w, clip), door, expected_units
        )

        for t in range(1, self.steps + 1):
            query = ClippedGradient(problem, w, clip)
            g = door.release(_NAME, query).reshape(problem.shape) / expected_units
            noise = (
                door.noise_multiplier(_NAME) * query.sensitivity(problem.relation) / expected_units
            )
            m = first * m + (1 - first) * g
            v = second * v + (1 - second) * g**2
            scale = np.sqrt(np.maximum(v / (1 - second**t) - noise**2, 0.0)) + self.floor * clip
            w = _prox_along(problem, w - step * m / (1 - first**t) / scale, step / scale)
            yield Iterate(w, weight=float(t > self.steps - averaged))

    def _default_step_size(
        self, query: ClippedGradient, door: Door, expected_units: float
    ) -> float:
        noise = run_noise(query, door.noise_multiplier(_NAME), expected_units, self.steps)
        return float(np.clip(_STEP_PER_INVERSE_NOISE / max(noise, 1e-12), _MIN_STEP, _MAX_STEP))


def _prox_along(problem: Problem, w: Vector, steps: Vector) -> Vector:
    """Proximal step of a separable penalty with a step size per weight, intercepts unchanged."""
    moved = w.copy()
    # `plan` refused penalties whose prox takes no array of step sizes.
    moved[..., : problem.n_features] = problem.penalty.prox(
        problem.columns(w),
        problem.columns(steps),  # type: ignore[arg-type]
    )
    return moved
