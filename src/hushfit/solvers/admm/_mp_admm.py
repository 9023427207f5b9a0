"""mpADMM: ADMM that perturbs the model after each step, in three forms.

After Rényi Differentially Private ADMM, Algorithm 2. ``"plus"`` adds noise to x alone; z and y are
functions of it. It is equivalent to full-batch gradient perturbation, and the form to use.
``"published"`` adds noise to x, z and y separately, as printed, with the factor eta that the
printed sensitivity omits. ``"multi-step"`` takes several noiseless steps between releases and adds
noise to x and the dual together in the metric of the iteration.

Errata of the paper, and what is guaranteed here: docs/algorithms/mp-admm.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.release import (
    AdmmRun,
    AdmmState,
    AdmmStep,
    ClippedGradient,
    Door,
    Plan,
    Planned,
    Query,
    admm_step,
    dual_step,
)
from hushfit.solvers.admm._admm_steps import AdmmSteps
from hushfit.solvers.admm._ss_admm import DEFAULT_CLIP, check_step
from hushfit.solvers.base import Iterate

_FORMS = ("plus", "published", "multi-step")


@dataclass(frozen=True)
class MPADMM:
    """Model-perturbing ADMM.

    Parameters
    ----------
    steps : int, default=500
        Number of releases.
    form : {"plus", "published", "multi-step"}, default="plus"
    inner : int, default=5
        Noiseless steps between releases of the multi-step form.
    clip : float or None
        Clipping norm of a record's gradient. None is 0.5, and no clipping when epsilon is infinite.
    eta, rho : float or None
        Primal step size and ADMM penalty; None chooses both from the noise level.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import MPADMM
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = MPADMM().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('model', 500)]
    """

    steps: int = 500
    form: str = "plus"
    inner: int = 5
    clip: float | None = None
    eta: float | None = None
    rho: float | None = None

    takes_constraint = False

    def __post_init__(self) -> None:
        if self.form not in _FORMS:
            raise InvalidArgument(
                f"form={self.form!r} is not known. Use one of {', '.join(map(repr, _FORMS))}."
            )
        given = [value for value in (self.clip, self.eta, self.rho) if value is not None]
        if self.steps < 1 or self.inner < 1 or not all(value > 0 for value in given):
            raise InvalidArgument(
                f"{self} needs steps >= 1, inner >= 1 and positive clip, eta and rho."
            )

    def for_budget(self, budget: Budget, problem: Problem) -> "MPADMM":
        """The same; without privacy, no clipping and a short prox step, unless given."""
        if budget.is_private:
            return self
        # Long prox steps 1/rho reduce noise; without noise a discontinuous prox cycles with them.
        rho = self.rho or (None if problem.penalty.convex else problem.loss.smoothness)
        return replace(self, clip=self.clip or problem.loss.slope_bound, rho=rho)

    @property
    def _clip(self) -> float:
        return DEFAULT_CLIP if self.clip is None else self.clip

    def plan(self, problem: Problem) -> Plan:
        if problem.constraint is not None:
            raise InvalidArgument(
                "MPADMM takes no constraint: z is a copy of the weights. Use solver='dp-sadmm'."
            )
        check_step(self.eta, problem)
        # Refuses here, before any charge, what the query would refuse.
        query = self._example(problem)
        return Plan((Planned("model", type(query), self.steps),))

    def _example(self, problem: Problem) -> Query:
        zero = np.zeros(problem.shape)
        eta = self.eta or 1 / problem.loss.smoothness
        if self.form == "published":
            return AdmmStep(problem, AdmmState.zero(problem), eta, self.rho or 1.0, self._clip)
        if self.form == "multi-step":
            return AdmmRun(problem, zero, zero, eta, self.rho or 1.0, self._clip, self.inner)
        return ClippedGradient(problem, zero, self._clip)

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        chosen = self._chosen_steps(problem, door)
        eta, rho = self.eta or chosen.eta, self.rho or chosen.rho
        iterate = {
            "plus": self._plus,
            "published": self._published,
            "multi-step": self._multi_step,
        }[self.form]
        for k, z in enumerate(iterate(problem, door, eta, rho)):
            yield Iterate(z, weight=float(k == self.steps - 1))

    def _plus(self, problem: Problem, door: Door, eta: float, rho: float) -> Iterator[Vector]:
        state = AdmmState.zero(problem)
        for _ in range(self.steps):
            g = door.release("model", ClippedGradient(problem, state.x, self._clip)).reshape(
                problem.shape
            )
            state = admm_step(problem, state, g / problem.n_units, eta, rho)
            yield state.z

    def _published(self, problem: Problem, door: Door, eta: float, rho: float) -> Iterator[Vector]:
        state = AdmmState.zero(problem)
        for _ in range(self.steps):
            query = AdmmStep(problem, state, eta, rho, self._clip)
            state = query.next_state(door.release("model", query))
            yield state.z

    def _multi_step(self, problem: Problem, door: Door, eta: float, rho: float) -> Iterator[Vector]:
        x = dual = np.zeros(problem.shape)
        for _ in range(self.steps):
            query = AdmmRun(problem, x, dual, eta, rho, self._clip, self.inner)
            x, dual = query.next_state(door.release("model", query))
            following = dual_step(problem, x, dual, rho)
            yield x + (dual - following) / rho

    def _chosen_steps(self, problem: Problem, door: Door) -> AdmmSteps:
        query = ClippedGradient(problem, np.zeros(problem.shape), self._clip)
        noise = (
            door.noise_multiplier("model") * query.sensitivity(problem.relation) / problem.n_units
        )
        return AdmmSteps.for_noise(
            noise, self.steps * (self.inner if self.form == "multi-step" else 1), problem
        )
