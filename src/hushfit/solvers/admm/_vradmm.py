"""DP-VRADMM: variance-reduced stochastic ADMM (Algorithm 1 of the paper), two kinds of release.

    each epoch:  p = full gradient at the snapshot, plus noise
                 (strongly convex: x = snapshot, u = -(A')^+ p / rho, from the *noisy* p)
    each step:   d = sum over a Poisson batch of clipped differences to the snapshot, plus noise
                 proportional to their bound
                 z, x, u as in DP-SADMM, with the gradient p + d
                 snapshot = mean x of the epoch

The two kinds of release have separate noise. ``noise="single"`` is the published form: exact p, one
noise on p + d at every step, accounted for as such. Errata of the paper, and what is guaranteed
here: docs/algorithms/dp-vradmm.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument, UnsupportedRelation
from hushfit.privacy import Budget, replaces_one
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
    Snapshot,
    VarianceReducedGradient,
    anchored_batch,
    difference_bound,
)
from hushfit.solvers._setting_checks import check_not_negative, check_settings
from hushfit.solvers.admm._sadmm import (
    DEFAULT_BATCH,
    Splitting,
    State,
    check_problem,
    chosen_steps,
    constraint_of,
)
from hushfit.solvers.admm._ss_admm import DEFAULT_CLIP
from hushfit.solvers.base import Iterate

_NOISES = ("two", "single")


@dataclass(frozen=True)
class DPVRADMM:
    """Variance-reduced stochastic ADMM, for any public constraint and convex penalty.

    Parameters
    ----------
    epochs : int, default=10
    inner_steps : int, default=50
        Steps in an epoch, at least 2.
    clip : float or None
        Clipping norm of a record's gradient. None is 0.5, and no clipping when epsilon is infinite.
    eta, rho : float or None
        Primal step size and ADMM penalty; None chooses both from the noise level.
    strongly_convex : bool, default=False
        Restart each epoch at the snapshot, with the dual that balances the noisy gradient, and
        return the last snapshot. It needs ridge > 0 and a constraint of full row rank.
    ridge : float, default=0.0
        Weight of a public squared norm of the columns' weights, added to the objective without
        noise.
    smoothing : float, default=0.0
        Strength of Laplacian smoothing; only for columns with a meaningful order.
    noise : {"two", "single"}, default="two"
        Separate noise on the snapshot gradients and on the differences, or, as published, one noise
        on their sum. The published form is proved under add-remove only, with Poisson batches, and
        needs more noise.
    snapshot_share : float, default=0.5
        Share of the budget (of mu squared) for the snapshot gradients, with two noises.
    average_last : float, default=0.3
        Share of the epochs, from the end, that the average covers; with ``strongly_convex`` it is
        always the last one.
    sampling : Sampling or None
        Sampling of the differences. None is ``PoissonBatch(0.1)``, and, with two noises, all rows
        when epsilon is infinite.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import DPVRADMM
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = DPVRADMM().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('snapshot', 10), ('difference', 499)]
    """

    epochs: int = 10
    inner_steps: int = 50
    clip: float | None = None
    eta: float | None = None
    rho: float | None = None
    strongly_convex: bool = False
    ridge: float = 0.0
    smoothing: float = 0.0
    noise: str = "two"
    snapshot_share: float = 0.5
    average_last: float = 0.3
    sampling: Sampling | None = None

    takes_constraint = True

    def __post_init__(self) -> None:
        check_settings(self, epochs=self.epochs, clip=self.clip, eta=self.eta, rho=self.rho)
        check_not_negative(self, ridge=self.ridge, smoothing=self.smoothing)
        if self.inner_steps < 2:
            raise InvalidArgument(
                f"inner_steps={self.inner_steps!r} leaves no difference to take. Give at least 2."
            )
        if self.noise not in _NOISES:
            raise InvalidArgument(
                f"noise={self.noise!r} is not known. Use 'two' or, as published, 'single'."
            )
        if not 0 < self.snapshot_share < 1:
            raise InvalidArgument(
                f"snapshot_share={self.snapshot_share!r} is outside (0, 1). Use 0.5."
            )
        if not 0 <= self.average_last <= 1:
            raise InvalidArgument(
                f"average_last={self.average_last!r} is outside [0, 1]. 0 takes the last epoch "
                "alone."
            )
        if self.strongly_convex and self.ridge == 0:
            raise InvalidArgument(
                "strongly_convex=True needs ridge > 0: the loss alone is not strongly convex."
            )

    def for_budget(self, budget: Budget, problem: Problem) -> "DPVRADMM":
        """The same; without privacy, on all rows and without clipping, unless given."""
        if budget.is_private:
            return self
        # A single noise has a proof, and code, for Poisson batches only.
        batch = FullBatch() if self.noise == "two" else DEFAULT_BATCH
        return replace(
            self, clip=self.clip or problem.loss.slope_bound, sampling=self.sampling or batch
        )

    @property
    def clip_used(self) -> float:
        """``clip``, or the default."""
        return DEFAULT_CLIP if self.clip is None else self.clip

    @property
    def sampling_used(self) -> Sampling:
        """``sampling``, or the default."""
        return DEFAULT_BATCH if self.sampling is None else self.sampling

    def plan(self, problem: Problem) -> Plan:
        # Lemma 4 of the paper: eta g <= 1/2.
        check_problem(problem, self.eta, self.ridge, most=0.5)
        if self.strongly_convex and not constraint_of(problem).has_full_row_rank:
            raise InvalidArgument(
                "strongly_convex=True needs a constraint of full row rank, but A of shape "
                f"{constraint_of(problem).A.shape} has linearly dependent rows, as every "
                "[edges; identity] has. Use strongly_convex=False."
            )
        return self._estimator().plan(problem, self)

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        estimator = self._estimator()
        eta, rho = self._eta_and_rho(problem, door)
        splitting = Splitting(problem, rho, self.ridge, self.smoothing)
        state = splitting.start()
        snapshot = state.x
        averaged = 1 if self.strongly_convex else max(1, round(self.average_last * self.epochs))

        for s in range(self.epochs):
            gradient_at = estimator.epoch(problem, door, self, snapshot)
            total = np.zeros(problem.shape)
            if self.strongly_convex:
                state = State(snapshot, state.z, state.u)
            for t in range(self.inner_steps):
                g = gradient_at(state.x)
                if self.strongly_convex and t == 0:
                    # At the snapshot the gradient is p alone, and noisy: an exact one here would be
                    # a release without noise.
                    state = State(state.x, state.z, splitting.dual_start(state.x, g))
                state = splitting.step(state, g, eta)
                total += state.x
                weight = float(s >= self.epochs - averaged)
                yield Iterate(
                    splitting.prox_input(state) if splitting.ties_weights else state.x, weight
                )
            snapshot = total / self.inner_steps

    def finish(self, problem: Problem, door: Door, average: Vector) -> Vector:
        if problem.constraint is not None:
            return average
        return problem.prox(average, 1 / self._eta_and_rho(problem, door)[1])

    def _estimator(self) -> "_Estimator":
        return _TwoNoises() if self.noise == "two" else _SingleNoise()

    def _eta_and_rho(self, problem: Problem, door: Door) -> tuple[float, float]:
        noise = self._estimator().noise_of_a_step(problem, door, self)
        steps = self.epochs * self.inner_steps
        most = 0.5 / (problem.loss.smoothness + self.ridge)
        return chosen_steps(problem, noise, steps, self.eta, self.rho, most)


class _GradientAt(Protocol):
    """A noisy mean gradient at a public point of the epoch."""

    def __call__(self, x: Vector) -> Vector: ...


class _Estimator(Protocol):
    """How gradients are released: the plan, the queries of one epoch, and the noise."""

    def plan(self, problem: Problem, solver: DPVRADMM) -> Plan: ...
    def epoch(
        self, problem: Problem, door: Door, solver: DPVRADMM, snapshot: Vector
    ) -> _GradientAt: ...
    def noise_of_a_step(self, problem: Problem, door: Door, solver: DPVRADMM) -> float: ...


@dataclass(frozen=True)
class _TwoNoises:
    """A noisy full gradient for each epoch, and a noisy difference to it for each step."""

    def plan(self, problem: Problem, solver: DPVRADMM) -> Plan:
        # The first step of a run, and of every epoch that restarts, is at the snapshot: its
        # difference is known to be 0.
        known = solver.epochs if solver.strongly_convex else 1
        differences = solver.epochs * solver.inner_steps - known
        share = solver.snapshot_share
        return Plan(
            (
                Planned("snapshot", ClippedGradient, solver.epochs, share),
                Planned(
                    "difference", GradientDifference, differences, 1 - share, solver.sampling_used
                ),
            )
        )

    def epoch(
        self, problem: Problem, door: Door, solver: DPVRADMM, snapshot: Vector
    ) -> _GradientAt:
        full = door.release("snapshot", ClippedGradient(problem, snapshot, solver.clip_used))
        p = full.reshape(problem.shape) / problem.n_units
        expected_units = solver.sampling_used.expected_units(problem.n_units)

        def gradient_at(x: Vector) -> Vector:
            if x is snapshot:
                return p
            bound = difference_bound(problem, x, snapshot, solver.clip_used)
            query = GradientDifference(problem, x, snapshot, solver.clip_used, bound)
            return p + door.release("difference", query).reshape(problem.shape) / expected_units

        return gradient_at

    def noise_of_a_step(self, problem: Problem, door: Door, solver: DPVRADMM) -> float:
        # The noise of the snapshot is the same for all steps of an epoch, so it averages out less.
        sensitivity = ClippedGradient(
            problem, np.zeros(problem.shape), solver.clip_used
        ).sensitivity(problem.relation)
        common = door.noise_multiplier("snapshot") * sensitivity / problem.n_units
        return float(common * np.sqrt(solver.inner_steps))


@dataclass(frozen=True)
class _SingleNoise:
    """The published estimator: exact full gradient plus exact difference, plus one noise."""

    def plan(self, problem: Problem, solver: DPVRADMM) -> Plan:
        if replaces_one(problem.relation):
            raise UnsupportedRelation(
                "noise='single' is proved under 'add-remove' only: under 'replace-one' no "
                "dominating pair is known for a full gradient and a batch under one noise. Use "
                "adjacency='add-remove', or noise='two'."
            )
        batch = anchored_batch(problem, _rate(solver))
        return Plan(
            (
                Planned(
                    "gradient",
                    VarianceReducedGradient,
                    solver.epochs * solver.inner_steps,
                    sampling=batch,
                ),
            )
        )

    def epoch(
        self, problem: Problem, door: Door, solver: DPVRADMM, snapshot: Vector
    ) -> _GradientAt:
        anchor, rate = Snapshot(snapshot, solver.clip_used), _rate(solver)

        def gradient_at(x: Vector) -> Vector:
            query = VarianceReducedGradient(problem, x, anchor, rate)
            return door.release("gradient", query).reshape(problem.shape) / (rate * problem.n_units)

        return gradient_at

    def noise_of_a_step(self, problem: Problem, door: Door, solver: DPVRADMM) -> float:
        zero = np.zeros(problem.shape)
        query = VarianceReducedGradient(
            problem, zero, Snapshot(zero, solver.clip_used), _rate(solver)
        )
        return (
            door.noise_multiplier("gradient") * query.radius() / (_rate(solver) * problem.n_units)
        )


def _rate(solver: DPVRADMM) -> float:
    sampling = solver.sampling_used
    if not isinstance(sampling, PoissonBatch):
        raise InvalidArgument(
            f"noise='single' is proved for Poisson batches, not for {sampling}. Use PoissonBatch."
        )
    return sampling.rate
