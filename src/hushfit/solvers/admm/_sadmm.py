"""DP-SADMM: stochastic linearised ADMM with noisy gradients (Algorithm 2 of the paper).

    g = sum of clipped gradients at x over a batch, plus noise, over the expected batch size
    z <- argmin penalty(z) + rho/2 |A x + B z - c + u|^2
    x <- x - eta/gamma Q^-1 [g + rho A'(A x + B z - c + u)],   gamma = 1 + eta rho |A'A|
    u <- u + A x + B z - c

The paper writes beta for rho, y for z and lambda for u. Its errata, and what is guaranteed here:
docs/algorithms/dp-sadmm.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from hushfit._typing import Vector
from hushfit.constraints import Constraint, identity
from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget
from hushfit.problem import Problem
from hushfit.release import ClippedGradient, Door, FullBatch, Plan, Planned, PoissonBatch, Sampling
from hushfit.solvers._setting_checks import check_not_negative, check_settings
from hushfit.solvers.admm._admm_steps import AdmmSteps
from hushfit.solvers.admm._smoothing import smoothed
from hushfit.solvers.admm._ss_admm import DEFAULT_CLIP
from hushfit.solvers.base import Iterate

LinearMap: TypeAlias = Any
_MAX_DENSE_ENTRIES = 20_000
_SCHEDULES = ("constant", "sqrt", "strongly-convex")
DEFAULT_BATCH = PoissonBatch(0.1)


@dataclass(frozen=True, eq=False)
class State:
    """The variables of ADMM: weights ``x``, split variable ``z`` and scaled dual ``u``.

    The penalty is on ``z``. Outputs are rows.
    """

    x: Vector
    z: Vector
    u: Vector


@dataclass(frozen=True, eq=False)
class Splitting:
    """Linearised ADMM on a public constraint, one step at a time. It never reads a row."""

    problem: Problem
    rho: float
    ridge: float = 0.0
    smoothing: float = 0.0

    @cached_property
    def constraint(self) -> Constraint:
        return constraint_of(self.problem)

    @property
    def ties_weights(self) -> bool:
        """Whether z is a copy of the weights, so that it can be the result."""
        return self.problem.constraint is None

    @cached_property
    def _maps(self) -> tuple[LinearMap, LinearMap, LinearMap, LinearMap]:
        """A, A', B and B', each in a format that multiplies fast from the left."""
        A, B = self.constraint.A, self.constraint.B
        return _fast_format(A), _fast_format(A.T), _fast_format(B), _fast_format(B.T)

    def start(self) -> State:
        shape, outputs = self.constraint.B.shape, self.problem.outputs
        return State(
            np.zeros(self.problem.shape),
            np.zeros((outputs, shape[1])),
            np.zeros((outputs, shape[0])),
        )

    def step(self, state: State, gradient: Vector, eta: float) -> State:
        """One iteration from a mean gradient at ``state.x``."""
        _, A_T, B, _ = self._maps
        c = self.constraint.c
        image = self._image(state.x)
        z = self._z_step(image - c + state.u)
        z_image = (B @ z.T).T
        constraint_gradient = (A_T @ (image + z_image - c + state.u).T).T
        gamma = 1 + eta * self.rho * self.constraint.gram_bound
        x = state.x - eta / gamma * self._direction(state.x, gradient, constraint_gradient)
        return State(x, z, state.u + self._image(x) + z_image - c)

    def prox_input(self, state: State) -> Vector:
        """The input of the next prox, with unchanged intercepts; only without a constraint."""
        prox_input = state.x.copy()
        self.problem.columns(prox_input)[...] += state.u.reshape(
            self.problem.columns(prox_input).shape
        )
        return prox_input

    def dual_start(self, x: Vector, gradient: Vector) -> Vector:
        """The dual that balances a (noisy!) gradient: - (A')^+ gradient / rho.

        A needs full row rank.
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
        prox_inputs = -(self._maps[3] @ v.T).T / b
        # One call for all outputs: a penalty may couple them.
        together = prox_inputs if self.problem.outputs > 1 else prox_inputs[0]
        return penalty.prox(together, 1 / (self.rho * b)).reshape(prox_inputs.shape)

    def _direction(self, x: Vector, gradient: Vector, constraint_gradient: Vector) -> Vector:
        direction = gradient.copy()
        columns = self.problem.columns(direction)  # a view
        columns += self.rho * constraint_gradient.reshape(
            columns.shape
        ) + self.ridge * self.problem.columns(x)
        # The intercept is not a neighbour of any column.
        columns[...] = smoothed(columns, self.smoothing)
        return direction

    def _solve_gram(self, images: Vector) -> Vector:
        from scipy.sparse.linalg import splu  # here: plans need no factors

        gram = sparse.csc_array(self.constraint.A @ self.constraint.A.T)
        return np.asarray(splu(gram).solve(np.ascontiguousarray(images.T)).T)


def _fast_format(matrix: LinearMap) -> LinearMap:
    """Dense if small, where scipy's overhead exceeds the product; else CSR."""
    small = matrix.shape[0] * matrix.shape[1] <= _MAX_DENSE_ENTRIES
    if not sparse.issparse(matrix):
        return matrix
    return matrix.toarray() if small else sparse.csr_array(matrix)


def constraint_of(problem: Problem) -> Constraint:
    """The constraint of a problem; without one, the penalty is on the weights."""
    return identity(problem.n_features) if problem.constraint is None else problem.constraint


def check_problem(problem: Problem, eta: float | None, ridge: float, most: float) -> None:
    """Refuse, before any charge, what the convergence proofs do not cover."""
    if not problem.penalty.convex:
        raise InvalidArgument(
            f"{problem.penalty!r} is not convex, and stochastic ADMM has no proof of convergence "
            "for it. Use a convex penalty, or solver='ss-admm'."
        )
    constraint = constraint_of(problem)
    if constraint.A.shape[1] != problem.n_features:
        raise InvalidArgument(
            f"The constraint is on {constraint.A.shape[1]} weights but there are "
            f"{problem.n_features} columns. Give A one column for each; the intercept has none."
        )
    _ = constraint.z_weight  # refuses a B without a prox
    curvature = problem.loss.smoothness + ridge
    if eta is not None and eta * curvature > most:
        raise InvalidArgument(
            f"eta={eta:g} is outside the proved range: with a loss of smoothness {curvature:g} it "
            f"may be at most {most / curvature:g}. Give a smaller eta, or None."
        )


@dataclass(frozen=True)
class DPSADMM:
    r"""Stochastic ADMM on noisy gradients, for a public constraint :math:`A w + B z = c`.

    For any convex penalty of z. Without a constraint z is a copy of the weights, and the result is
    the prox of the averaged prox inputs: sparse if the penalty is. With one the result is the
    averaged weights.

    Parameters
    ----------
    steps : int, default=400
    clip : float or None
        Clipping norm of a record's gradient. None is 0.5, and no clipping when epsilon is infinite.
    eta, rho : float or None
        Primal step size and ADMM penalty; None chooses both from the noise level.
    schedule : {"constant", "sqrt", "strongly-convex"}, default="constant"
        eta is constant, divided by the square root of the step t, or ``min(eta, 2 / (ridge t))``.
    ridge : float, default=0.0
        Weight of a public squared norm of the columns' weights, added to the objective without
        noise. "strongly-convex" needs it.
    smoothing : float, default=0.0
        Strength of Laplacian smoothing. Only for columns with a meaningful order, such as times or
        wavelengths: on others it does harm.
    average_last : float, default=0.25
        Share of the steps, from the end, that the average covers; later ones have larger weights
        with "strongly-convex".
    hold_first : float, default=0.0
        Share of the steps, from the start, with constant eta before "sqrt" or "strongly-convex"
        decrease it. Constant steps forget the start exponentially, decreasing ones at the rate 1/t;
        these average out noise.
    sampling : Sampling or None
        Sampling saves time, not budget. None is ``PoissonBatch(0.1)``, and all rows when epsilon is
        infinite.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import DPSADMM
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = DPSADMM().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('gradient', 400)]
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
                f"hold_first={self.hold_first!r} is outside [0, 1]. 0 decreases eta from the start."
            )

    def for_budget(self, budget: Budget, problem: Problem) -> "DPSADMM":
        """The same; without privacy, on all rows and without clipping, unless given."""
        if budget.is_private:
            return self
        return replace(
            self, clip=self.clip or problem.loss.slope_bound, sampling=self.sampling or FullBatch()
        )

    @property
    def _clip(self) -> float:
        return DEFAULT_CLIP if self.clip is None else self.clip

    @property
    def _sampling(self) -> Sampling:
        return DEFAULT_BATCH if self.sampling is None else self.sampling

    def plan(self, problem: Problem) -> Plan:
        # Lemma 5 of the paper divides by 1 - eta g.
        check_problem(problem, self.eta, self.ridge, most=1.0)
        return Plan((Planned("gradient", ClippedGradient, self.steps, sampling=self._sampling),))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        expected_units = self._sampling.expected_units(problem.n_units)
        eta, rho = self._eta_and_rho(problem, door)
        splitting = Splitting(problem, rho, self.ridge, self.smoothing)
        state = splitting.start()
        first_averaged = self.steps - max(1, round(self.average_last * self.steps))

        for t in range(self.steps):
            query = ClippedGradient(problem, state.x, self._clip)
            g = door.release("gradient", query).reshape(problem.shape) / expected_units
            state = splitting.step(state, g, self._eta_at(t, eta))
            weight = (t + 1.0 if self.schedule == "strongly-convex" else 1.0) * (
                t >= first_averaged
            )
            yield Iterate(
                splitting.prox_input(state) if splitting.ties_weights else state.x, weight
            )

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
            / self._sampling.expected_units(problem.n_units)
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
    """eta and rho as given, or by the rule of the ADMM family, scaled by the norm of A."""
    by_rule = AdmmSteps.for_noise(noise, steps, problem)
    eta = min(by_rule.eta, most) if eta is None else eta
    coupling = by_rule.eta * by_rule.rho
    return eta, rho or coupling / (eta * max(constraint_of(problem).gram_bound, 1e-12))
