"""DP-SADMM: stochastic linearised ADMM with noisy gradients and a general constraint (Algorithm 2
of the paper).

    g = sum of clipped gradients at x over a batch, plus noise, over the expected batch size
    z <- argmin penalty(z) + rho/2 |A x + B z - c + u|^2
    x <- x - eta/gamma Q^-1 [g + rho A'(A x + B z - c + u)],   gamma = 1 + eta rho |A'A|
    u <- u + A x + B z - c

The paper writes beta for rho, y for z and lambda for u. What it got wrong, and what is guaranteed
here: docs/algorithms/dp-sadmm.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from hushfit._typing import Vector
from hushfit.constraints import Constraint, identity
from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.release import ClippedGradient, Door, FullBatch, Plan, Planned, PoissonBatch, Sampling
from hushfit.solvers._setting_checks import check_not_negative, check_settings
from hushfit.solvers.admm._admm_steps import AdmmSteps
from hushfit.solvers.admm._smoothing import smoothed
from hushfit.solvers.admm._ss_admm import USUAL_CLIP
from hushfit.solvers.base import Iterate

LinearMap: TypeAlias = Any
_MOST_DENSE_ENTRIES = 20_000
_SCHEDULES = ("constant", "sqrt", "strongly-convex")
USUAL_BATCH = PoissonBatch(0.1)


@dataclass(frozen=True, eq=False)
class State:
    """The variables of ADMM: weights ``x``, what the penalty sees ``z``, and the scaled dual
    ``u``; outputs are rows.
    """

    x: Vector
    z: Vector
    u: Vector


@dataclass(frozen=True, eq=False)
class Splitting:
    """Linearised ADMM on a public constraint, one step at a time. It never sees a row."""

    problem: Problem
    rho: float
    ridge: float = 0.0
    smoothing: float = 0.0

    @cached_property
    def constraint(self) -> Constraint:
        return constraint_of(self.problem)

    @property
    def ties_weights(self) -> bool:
        """Whether z is a copy of the weights themselves, so that it can serve as the answer."""
        return self.problem.constraint is None

    @cached_property
    def _maps(self) -> tuple[LinearMap, LinearMap, LinearMap, LinearMap]:
        """A, A', B and B', each ready to be multiplied from the left."""
        A, B = self.constraint.A, self.constraint.B
        return _ready(A), _ready(A.T), _ready(B), _ready(B.T)

    def start(self) -> State:
        shape, outputs = self.constraint.B.shape, self.problem.outputs
        return State(
            np.zeros(self.problem.shape),
            np.zeros((outputs, shape[1])),
            np.zeros((outputs, shape[0])),
        )

    def step(self, state: State, gradient: Vector, eta: float) -> State:
        """One round from a mean gradient at ``state.x``."""
        _, A_T, B, _ = self._maps
        c = self.constraint.c
        image = self._image(state.x)
        z = self._z_step(image - c + state.u)
        z_image = (B @ z.T).T
        pull = (A_T @ (image + z_image - c + state.u).T).T
        gamma = 1 + eta * self.rho * self.constraint.gram_bound
        x = state.x - eta / gamma * self._direction(state.x, gradient, pull)
        return State(x, z, state.u + self._image(x) + z_image - c)

    def aimed(self, state: State) -> Vector:
        """What the next z is the prox of, beside the intercepts; only where z ties the weights
        themselves.
        """
        aimed = state.x.copy()
        self.problem.columns(aimed)[...] += state.u.reshape(self.problem.columns(aimed).shape)
        return aimed

    def dual_start(self, x: Vector, gradient: Vector) -> Vector:
        """The dual that balances a (noisy!) gradient: - (A')^+ gradient / rho. It needs A of
        full row rank.
        """
        columns = np.atleast_2d(
            self.problem.columns(gradient) + self.ridge * self.problem.columns(x)
        )
        image = (self._maps[0] @ columns.T).T
        return np.asarray(-self._solve_gram(image) / self.rho)

    def _image(self, x: Vector) -> Vector:
        image: Vector = (self._maps[0] @ np.atleast_2d(self.problem.columns(x)).T).T
        return image

    def _z_step(self, v: Vector) -> Vector:
        b, penalty = self.constraint.z_weight, self.problem.penalty
        aims = -(self._maps[3] @ v.T).T / b
        # One call for all outputs: a penalty may tie them together.
        together = aims if self.problem.outputs > 1 else aims[0]
        return penalty.prox(together, 1 / (self.rho * b)).reshape(aims.shape)

    def _direction(self, x: Vector, gradient: Vector, pull: Vector) -> Vector:
        direction = gradient.copy()
        columns = self.problem.columns(direction)  # a view
        columns += self.rho * pull.reshape(columns.shape) + self.ridge * self.problem.columns(x)
        # The intercept is no neighbour of any column.
        columns[...] = smoothed(columns, self.smoothing)
        return direction

    def _solve_gram(self, images: Vector) -> Vector:
        gram = sparse.csc_array(self.constraint.A @ self.constraint.A.T)
        return np.asarray(splu(gram).solve(np.ascontiguousarray(images.T)).T)


def _ready(matrix: LinearMap) -> LinearMap:
    """Dense when small, where scipy's bookkeeping takes longer than the product; else CSR."""
    small = matrix.shape[0] * matrix.shape[1] <= _MOST_DENSE_ENTRIES
    if not sparse.issparse(matrix):
        return matrix
    return matrix.toarray() if small else sparse.csr_array(matrix)


def constraint_of(problem: Problem) -> Constraint:
    """The constraint of a problem; none means that the penalty sees the weights."""
    return identity(problem.n_features) if problem.constraint is None else problem.constraint


def check_problem(problem: Problem, eta: float | None, ridge: float, most: float) -> None:
    """Refuse, before anything is paid, what the convergence proofs do not cover."""
    if not problem.penalty.convex:
        raise InvalidArgument(
            f"{problem.penalty!r} is not convex, and stochastic ADMM has no proof of convergence "
            "for it. Use a convex "
            "penalty, or solver='ss-admm'."
        )
    constraint = constraint_of(problem)
    if constraint.A.shape[1] != problem.n_features:
        raise InvalidArgument(
            f"The constraint is on {constraint.A.shape[1]} weights but there are "
            f"{problem.n_features} columns. Give A one "
            "column for each; the intercept has none."
        )
    _ = constraint.z_weight  # refuses a B without a prox
    curvature = problem.loss.smoothness + ridge
    if eta is not None and eta * curvature > most:
        raise InvalidArgument(
            f"eta={eta:g} is outside the proved range: with a loss of smoothness {curvature:g} it "
            "may be at most "
            f"{most / curvature:g}. Give a smaller eta, or None."
        )


@dataclass(frozen=True)
class DPSADMM:
    r"""Stochastic ADMM on noisy gradients, for any public constraint :math:`A w + B z = c` and
    convex penalty of z.

    Without a constraint z is a copy of the weights, and the answer is the prox of the averaged
    aims: sparse where the penalty makes it so. With one the answer is the averaged weights.

    Parameters
    ----------
    steps : int, default=400
    clip : float or None
        Largest length of a record's gradient. None is 0.5, and no clipping when epsilon is
        infinite.
    eta, rho : float or None
        Primal step and ADMM penalty; None chooses both from the noise level.
    schedule : {"constant", "sqrt", "strongly-convex"}, default="constant"
        eta stays, shrinks with the square root of the step t, or is ``min(eta, 2 / (ridge t))``.
    ridge : float, default=0.0
        Weight of a public squared norm of the columns' weights, added to the objective without
        noise. "strongly-convex" needs it.
    smoothing : float, default=0.0
        Strength of Laplacian smoothing. Only for columns with a meaningful order, such as times or
        wave lengths: on others it does harm.
    average_last : float, default=0.25
        Part of the steps, from the end, that the average covers; later ones count more with
        "strongly-convex".
    hold_first : float, default=0.0
        Part of the steps, from the start, over which eta stays before "sqrt" or "strongly-convex"
        let it shrink. Held steps forget the start exponentially, shrinking ones at the rate 1/t;
        what they do is average out noise.
    sampling : Sampling or None
        Sampling saves time, not budget. None is ``PoissonBatch(0.1)``, and all rows when epsilon is
        infinite.
    """

    steps: int = 400
    clip: float | None = None
    eta: float | None = None
    rho: float | None = None
    schedule: str = "constant"
    ridge: float = 0.0
    smoothing: float = 0.0
    average_last: float = 0.25
    hold_first: float = 0.0
    sampling: Sampling | None = None

    takes_constraint = True

    def __post_init__(self) -> None:
        check_settings(self, steps=self.steps, clip=self.clip, eta=self.eta, rho=self.rho)
        check_not_negative(self, ridge=self.ridge, smoothing=self.smoothing)
        if self.schedule not in _SCHEDULES:
            raise InvalidArgument(
                f"schedule={self.schedule!r} is not known. Use one of "
                f"{', '.join(map(repr, _SCHEDULES))}."
            )
        if self.schedule == "strongly-convex" and self.ridge == 0:
            raise InvalidArgument(
                "schedule='strongly-convex' needs ridge > 0: the loss alone is not strongly convex."
            )
        if not 0 <= self.average_last <= 1:
            raise InvalidArgument(
                f"average_last={self.average_last!r} is outside [0, 1]. 0 takes the last step "
                "alone."
            )
        if not 0 <= self.hold_first <= 1:
            raise InvalidArgument(
                f"hold_first={self.hold_first!r} is outside [0, 1]. 0 lets eta shrink from the "
                "start."
            )

    def for_budget(self, budget: Budget, problem: Problem) -> "DPSADMM":
        """The same on all rows and without clipping if nothing is to be hidden, unless a clip or
        a sampling was given.
        """
        if budget.is_private:
            return self
        return replace(
            self, clip=self.clip or problem.loss.slope_bound, sampling=self.sampling or FullBatch()
        )

    @property
    def _clip(self) -> float:
        return USUAL_CLIP if self.clip is None else self.clip

    @property
    def _sampling(self) -> Sampling:
        return USUAL_BATCH if self.sampling is None else self.sampling

    def plan(self, problem: Problem) -> Plan:
        # Lemma 5 of the paper divides by 1 - eta g.
        check_problem(problem, self.eta, self.ridge, most=1.0)
        return Plan((Planned("gradient", ClippedGradient, self.steps, sampling=self._sampling),))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        expected_rows = self._sampling.expected_rows(problem.n_rows)
        eta, rho = self._eta_and_rho(problem, door)
        splitting = Splitting(problem, rho, self.ridge, self.smoothing)
        state = splitting.start()
        first_averaged = self.steps - max(1, round(self.average_last * self.steps))

        for t in range(self.steps):
            query = ClippedGradient(problem, state.x, self._clip)
            g = door.release("gradient", query).reshape(problem.shape) / expected_rows
            state = splitting.step(state, g, self._eta_at(t, eta))
            weight = (t + 1.0 if self.schedule == "strongly-convex" else 1.0) * (
                t >= first_averaged
            )
            yield Iterate(splitting.aimed(state) if splitting.ties_weights else state.x, weight)

    def finish(self, problem: Problem, door: Door, average: Vector) -> Vector:
        if problem.constraint is not None:
            return average
        return problem.prox(average, 1 / self._eta_and_rho(problem, door)[1])

    def _eta_and_rho(self, problem: Problem, door: Door) -> tuple[float, float]:
        sensitivity = ClippedGradient(problem, np.zeros(problem.shape), self._clip).sensitivity(
            problem.relation
        )
        noise = (
            door.noise_multiplier("gradient")
            * sensitivity
            / self._sampling.expected_rows(problem.n_rows)
        )
        return chosen_steps(
            problem,
            noise,
            self.steps,
            self.eta,
            self.rho,
            most=1 / (problem.loss.smoothness + self.ridge),
        )

    def _eta_at(self, t: int, eta: float) -> float:
        shrinking = max(t + 1 - round(self.hold_first * self.steps), 1)
        if self.schedule == "sqrt":
            return eta / math.sqrt(shrinking)
        return min(eta, 2 / (self.ridge * shrinking)) if self.schedule == "strongly-convex" else eta


def chosen_steps(
    problem: Problem, noise: float, steps: int, eta: float | None, rho: float | None, most: float
) -> tuple[float, float]:
    """What the user gave, or the rule of the ADMM family with its coupling measured against A."""
    by_rule = AdmmSteps.for_noise(noise, steps, problem)
    eta = min(by_rule.eta, most) if eta is None else eta
    coupling = by_rule.eta * by_rule.rho
    return eta, rho or coupling / (eta * max(constraint_of(problem).gram_bound, 1e-12))
