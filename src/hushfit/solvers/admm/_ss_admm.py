"""ssADMM: stochastic ADMM with noisy gradients (Rényi Differentially Private ADMM, Algorithm 1).

    g = mean of clipped gradients at x + noise
    x <- (-g - y + rho z + x / eta) / (rho + 1 / eta)
    z <- prox(x + y / rho, 1 / rho)
    y <- y + rho (x - z)

Errata of the paper, and what is guaranteed here: docs/algorithms/ss-admm.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.losses import Logistic
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.release import (
    AdmmState,
    ClippedGradient,
    Door,
    FullBatch,
    LogisticGradient,
    Plan,
    Planned,
    PoissonBatch,
    Sampling,
    admm_step,
)
from hushfit.solvers.admm._admm_steps import AdmmSteps
from hushfit.solvers.base import Iterate

# Below the norm of most gradients at the start: lower noise compensates for clipping there.
DEFAULT_CLIP = 0.5
_OUTPUTS = ("z", "x", "average")
_SCHEDULES = ("constant", "sqrt", "epoch")


def check_step(eta: float | None, problem: Problem) -> None:
    """Refuse, before any charge, step sizes without a proof of convergence."""
    largest = 2 / problem.loss.smoothness
    if eta is not None and eta > largest:
        raise InvalidArgument(
            f"eta={eta:g} is outside the proved range: with a loss of smoothness "
            f"{problem.loss.smoothness:g} the iteration diverges beyond {largest:g}. Give a "
            "smaller eta, or None."
        )


@dataclass(frozen=True)
class SSADMM:
    """Stochastic ADMM on noisy gradients, for any penalty with a prox.

    Parameters
    ----------
    steps : int, default=500
    clip : float or None
        Clipping norm of a record's gradient; ignored with ``tighten``. None is 0.5, and no
        clipping when epsilon is infinite.
    eta, rho : float or None
        Primal step size and ADMM penalty; None chooses both from the noise level.
    schedule : {"constant", "sqrt", "epoch"}, default="constant"
        eta is constant, divided by the square root of the step, or by the number of (expected)
        epochs.
    output : {"z", "x", "average"}, default="z"
        ``z`` is sparse. ``x`` has the full noise of the last step. ``average`` is the prox of the
        mean prox input over the second half. All three are functions of the releases and cost the
        same.
    tighten : bool, default=False
        Use the sensitivity of the logistic gradient at the public point instead of clipping.
    sampling : Sampling, default=FullBatch()
        Sampling saves time, not budget.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import SSADMM
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = SSADMM().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('gradient', 500)]
    """

    steps: int = 500
    clip: float | None = None
    eta: float | None = None
    rho: float | None = None
    schedule: str = "constant"
    output: str = "z"
    tighten: bool = False
    sampling: Sampling = FullBatch()

    takes_constraint = False

    def __post_init__(self) -> None:
        for name, value, known in (
            ("output", self.output, _OUTPUTS),
            ("schedule", self.schedule, _SCHEDULES),
        ):
            if value not in known:
                raise InvalidArgument(
                    f"{name}={value!r} is not known. Use one of {', '.join(map(repr, known))}."
                )
        given = [value for value in (self.clip, self.eta, self.rho) if value is not None]
        if self.steps < 1 or not all(value > 0 for value in given):
            raise InvalidArgument(f"{self} needs steps >= 1 and positive clip, eta and rho.")

    def for_budget(self, budget: Budget, problem: Problem) -> "SSADMM":
        """The same; without privacy, no clipping and a short prox step, unless given."""
        if budget.is_private:
            return self
        # Long prox steps 1/rho reduce noise; without noise a discontinuous prox cycles with them.
        rho = self.rho or (None if problem.penalty.convex else problem.loss.smoothness)
        return replace(self, clip=self.clip or problem.loss.slope_bound, rho=rho)

    def plan(self, problem: Problem) -> Plan:
        if problem.constraint is not None:
            raise InvalidArgument(
                "SSADMM takes no constraint: z is a copy of the weights. Use solver='dp-sadmm'."
            )
        if self.tighten and not isinstance(problem.loss, Logistic):
            raise InvalidArgument(
                f"tighten=True is proved for the logistic loss, not for {problem.loss!r}. Leave it "
                "off."
            )
        if self.schedule == "constant":
            check_step(self.eta, problem)
        query = LogisticGradient if self.tighten else ClippedGradient
        return Plan((Planned("gradient", query, self.steps, sampling=self.sampling),))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        expected_units = self.sampling.expected_units(problem.n_units)
        first = self._first_steps(problem, door, expected_units)
        state = AdmmState.zero(problem)
        second_half = self.steps // 2
        prox_inputs = np.zeros(problem.shape)

        for k in range(self.steps):
            g = (
                door.release("gradient", self._query(problem, state.x)).reshape(problem.shape)
                / expected_units
            )
            before = state
            state = admm_step(
                problem,
                before,
                g,
                first.eta / self._step_divisor(k, expected_units / problem.n_units),
                first.rho,
            )
            if k >= second_half:
                prox_inputs += state.x + before.y / first.rho
            last = k == self.steps - 1
            yield Iterate(
                self._chosen(problem, state, prox_inputs / (self.steps - second_half), first.rho),
                weight=float(last),
            )

    def _query(self, problem: Problem, x: Vector) -> ClippedGradient | LogisticGradient:
        if not self.tighten:
            return ClippedGradient(problem, x, DEFAULT_CLIP if self.clip is None else self.clip)
        return LogisticGradient(problem, x, pairwise=not isinstance(self.sampling, PoissonBatch))

    def _first_steps(self, problem: Problem, door: Door, expected_units: float) -> AdmmSteps:
        query = self._query(problem, np.zeros(problem.shape))
        noise = (
            door.noise_multiplier("gradient") * query.sensitivity(problem.relation) / expected_units
        )
        chosen = AdmmSteps.for_noise(noise, self.steps, problem)
        return AdmmSteps(self.eta or chosen.eta, self.rho or chosen.rho)

    def _step_divisor(self, k: int, rate: float) -> float:
        if self.schedule == "sqrt":
            return float(np.sqrt(k + 1))
        return 1.0 + int(k * rate) if self.schedule == "epoch" else 1.0

    def _chosen(
        self, problem: Problem, state: AdmmState, prox_inputs: Vector, rho: float
    ) -> Vector:
        if self.output == "average":
            return problem.prox(prox_inputs, 1 / rho)
        return state.z if self.output == "z" else state.x
