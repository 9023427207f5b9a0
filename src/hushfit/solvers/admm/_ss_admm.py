"""ssADMM: stochastic ADMM with noisy gradients (Renyi Differentially Private ADMM, Algorithm 1).

    g = mean of clipped gradients at x + noise
    x <- (-g - y + rho z + x / eta) / (rho + 1 / eta)
    z <- prox(x + y / rho, 1 / rho)
    y <- y + rho (x - z)

What the paper got wrong, and what is guaranteed here: docs/algorithms/ss-admm.md.
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

# Shorter than most gradients at the start: what clipping loses there, less noise makes up for.
USUAL_CLIP = 0.5
_OUTPUTS = ("z", "x", "average")
_SCHEDULES = ("constant", "sqrt", "epoch")


def check_step(eta: float | None, problem: Problem) -> None:
    """Refuse, before anything is paid, steps that are not known to converge."""
    largest = 2 / problem.loss.smoothness
    if eta is not None and eta > largest:
        raise InvalidArgument(
            f"eta={eta:g} is outside the proved range: with a loss of smoothness "
            f"{problem.loss.smoothness:g} longer steps than "
            f"{largest:g} drive the weights apart. Give a smaller eta, or None."
        )


@dataclass(frozen=True)
class SSADMM:
    """Stochastic ADMM on noisy gradients, for any penalty with a prox.

    Parameters
    ----------
    steps : int, default=500
    clip : float or None
        Largest length of a record's gradient; ignored with ``tighten``. None is 0.5, and no
        clipping when epsilon is infinite.
    eta, rho : float or None
        Primal step and ADMM penalty; None chooses both from the noise level.
    schedule : {"constant", "sqrt", "epoch"}, default="constant"
        eta stays, shrinks with the square root of the step, or with the number of (expected) passes
        over the rows.
    output : {"z", "x", "average"}, default="z"
        ``z`` is sparse. ``x`` carries the raw noise of the last step. ``average`` is the prox of
        the mean, over the second half, of what the prox was applied to. All three are functions of
        the releases and cost the same.
    tighten : bool, default=False
        Use the sensitivity that the logistic gradient has at the public point instead of a clip.
    sampling : Sampling, default=FullBatch()
        Sampling saves time, not budget.
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
        """The same with what needs no care if nothing is to be hidden, where it was not given:
        no clipping, no long prox.
        """
        if budget.is_private:
            return self
        # Long steps 1/rho quieten noise; without any they make a prox that jumps go round in
        # circles.
        rho = self.rho or (None if problem.penalty.convex else problem.loss.smoothness)
        return replace(self, clip=self.clip or problem.loss.slope_bound, rho=rho)

    def plan(self, problem: Problem) -> Plan:
        if problem.constraint is not None:
            raise InvalidArgument(
                "SSADMM ties z to the weights themselves. Use solver='dp-sadmm' for other "
                "constraints."
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
        expected_rows = self.sampling.expected_rows(problem.n_rows)
        first = self._first_steps(problem, door, expected_rows)
        state = AdmmState.zero(problem)
        second_half = self.steps // 2
        aimed = np.zeros(problem.shape)

        for k in range(self.steps):
            g = (
                door.release("gradient", self._query(problem, state.x)).reshape(problem.shape)
                / expected_rows
            )
            before = state
            state = admm_step(
                problem,
                before,
                g,
                first.eta / self._slowdown(k, expected_rows / problem.n_rows),
                first.rho,
            )
            if k >= second_half:
                aimed += state.x + before.y / first.rho
            last = k == self.steps - 1
            yield Iterate(
                self._chosen(problem, state, aimed / (self.steps - second_half), first.rho),
                weight=float(last),
            )

    def _query(self, problem: Problem, x: Vector) -> ClippedGradient | LogisticGradient:
        if not self.tighten:
            return ClippedGradient(problem, x, USUAL_CLIP if self.clip is None else self.clip)
        return LogisticGradient(problem, x, pairwise=not isinstance(self.sampling, PoissonBatch))

    def _first_steps(self, problem: Problem, door: Door, expected_rows: float) -> AdmmSteps:
        query = self._query(problem, np.zeros(problem.shape))
        noise = (
            door.noise_multiplier("gradient") * query.sensitivity(problem.relation) / expected_rows
        )
        chosen = AdmmSteps.for_noise(noise, self.steps, problem)
        return AdmmSteps(self.eta or chosen.eta, self.rho or chosen.rho)

    def _slowdown(self, k: int, rate: float) -> float:
        if self.schedule == "sqrt":
            return float(np.sqrt(k + 1))
        return 1.0 + int(k * rate) if self.schedule == "epoch" else 1.0

    def _chosen(self, problem: Problem, state: AdmmState, aimed: Vector, rho: float) -> Vector:
        if self.output == "average":
            return problem.prox(aimed, 1 / rho)
        return state.z if self.output == "z" else state.x
