"""DP-BLSGD, DP-BLGD, DP-BLSGD-AC: private backtracking line search (chapter 5 of the thesis).

    each step:  B = secret Poisson batch;
                g = clipped gradients over B + noise, divided by the expected size of B
                k = first eta_k = eta_0 beta^k whose loss over the SAME batch decreases enough, by
                    an above-threshold test (the gate)
                w = prox(w - eta_k g);  no k: the smallest step
                every ten steps:  eta_0 = min(1.2 * largest recent step, eta_0)

Gradient and gate are paid for together (``batches="same"``), or use separate batches (``"fresh"``).
With ``adaptive=True`` the noise is chosen during the run, under a Rényi filter: after a failed
search a second gradient is released, and its angle to the first decides whether the gradient or the
gate gets more budget (CHEB). Errata of the thesis, and what is guaranteed here:
docs/algorithms/bls.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget, usable
from hushfit.problem import Problem
from hushfit.release import (
    Backtracking,
    ClippedGradient,
    Door,
    FreshGate,
    FullBatch,
    Gate,
    GatedBatch,
    GatedStep,
    Plan,
    Planned,
    PoissonBatch,
    Priced,
    RenyiRun,
)
from hushfit.solvers._whitening import relation_factor
from hushfit.solvers.base import Iterate
from hushfit.solvers.gradient._search_state import (
    GradientAngles,
    SearchNoise,
    StepSizes,
    angle_between,
)

_VARIANTS = ("sgd", "gd", "ac")
_BATCHES = ("same", "fresh")
DEFAULT_RATE = 0.1
# Maximum number of releases of an adaptive run, per expected step.
_RELEASES_PER_STEP = 3
# Maximum number of second gradients after one failed search.
_MAX_CHECKS = 2
# Share of delta for the filter; the rest is left to other parts of a plan.
_DELTA_SHARE_OF_FILTER = 0.99


@dataclass(frozen=True)
class DPBLS:
    r"""Gradient descent with a private backtracking line search: an above-threshold test per step.

    Parameters
    ----------
    variant : {"sgd", "gd", "ac"}, default="sgd"
        On Poisson batches; on all rows; on Poisson batches with clipping norms that shrink when a
        search fails, which needs ``adaptive``.
    steps : int, default=100
        In an adaptive run: the expected number, among which the budget is divided.
    rate : float or None
        Share of rows in a batch. None is 0.1, and 1 for ``"gd"``.
    clip : float, default=0.5
        Clipping norm of a record's gradient.
    objective_clip : float, default=1.0
        Bound on the decrease of a record's loss that counts in a search.
    first_step : float or None
        Largest step size. None chooses it from the noise level.
    shrink : float, default=0.8
        Factor from one candidate step size to the next.
    candidates : int, default=20
    sufficient : float, default=0.1
        Share of the predicted decrease that a step must reach (Armijo's constant).
    gate_noise : {"laplace", "gaussian"}, default="laplace"
    gate : float, default=1/3
        Epsilon of a search times the noise multiplier of its gradient; 1/3 is a tenth of the
        budget.
    batches : {"same", "fresh"}, default="same"
        Whether a search uses the batch of its gradient or a separate one.
    adaptive : bool or None
        Choose the noise during the run. None is True for ``"ac"`` alone.
    increase : float, default=0.3
        Relative increase, after a failed search, of the budget of the part that failed.
    clip_decrease : float, default=0.05
        Relative decrease of both clipping norms of ``"ac"`` then.
    average_last : float, default=0.2
        Share of the iterates, from the end, whose mean is the result; 0 means the last one. The
        length of an adaptive run is not known in advance: there the k-th iterate has the weight k.
    filter_delta : float or None
        Delta of the filter of an adaptive run. None takes nearly all of the budget's.

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import ScaledL2
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import DPBLS
    >>> problem = Problem(Logistic(), ScaledL2(1e-3), 10_000, 5, Relation.REPLACE_ONE)
    >>> plan = DPBLS().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('step', 100)]
    """

    variant: str = "sgd"
    steps: int = 100
    rate: float | None = None
    clip: float = 0.5
    objective_clip: float = 1.0
    first_step: float | None = None
    shrink: float = 0.8
    candidates: int = 20
    sufficient: float = 0.1
    gate_noise: str = "laplace"
    gate: float = 1 / 3
    batches: str = "same"
    adaptive: bool | None = None
    increase: float = 0.3
    clip_decrease: float = 0.05
    average_last: float = 0.2
    filter_delta: float | None = None

    takes_constraint = False

    def __post_init__(self) -> None:
        if self.variant not in _VARIANTS:
            raise InvalidArgument(
                f"variant={self.variant!r} is not known. Use 'sgd', 'gd' or 'ac'."
            )
        if self.batches not in _BATCHES:
            raise InvalidArgument(f"batches={self.batches!r} is not known. Use 'same' or 'fresh'.")
        if self.variant == "ac" and self.adaptive is False:
            raise InvalidArgument(
                "variant='ac' lowers its clipping norms when it raises its budget, so it needs "
                "adaptive=True or None."
            )
        if self.variant == "gd" and self.rate not in (None, 1.0):
            raise InvalidArgument(
                f"variant='gd' takes all rows, so rate={self.rate!r} has no meaning. Use "
                "variant='sgd'."
            )
        positive = {
            "steps": self.steps,
            "clip": self.clip,
            "objective_clip": self.objective_clip,
            "candidates": self.candidates,
        }
        for name, value in (
            positive | ({} if self.first_step is None else {"first_step": self.first_step})
        ).items():
            if not 0 < value < math.inf:
                raise InvalidArgument(f"{name}={value!r} must be above 0.")
        for name, value in {
            "shrink": self.shrink,
            "sufficient": self.sufficient,
            "clip_decrease": self.clip_decrease,
        }.items():
            if not 0 < value < 1:
                raise InvalidArgument(f"{name}={value!r} must lie between 0 and 1.")
        if self.filter_delta is not None and not 0 < self.filter_delta < 1:
            raise InvalidArgument(
                f"filter_delta={self.filter_delta!r} must lie between 0 and 1. None takes it from "
                "the budget."
            )
        if self.increase <= 0 or not 0 <= self.average_last <= 1:
            raise InvalidArgument(f"{self} needs increase > 0 and 0 <= average_last <= 1.")
        # These refuse a wrong rate, noise, gate or number of candidates.
        self._together, self._gate_alone  # noqa: B018

    def for_budget(self, budget: Budget, problem: Problem) -> "DPBLS":
        """The same with the delta of its filter; all rows and no clipping without privacy."""
        if not budget.is_private:
            unclipped = problem.loss.slope_bound
            return replace(
                self, variant="gd", rate=None, adaptive=False, clip=unclipped, objective_clip=1e6
            )
        if not self._adapts or self.filter_delta is not None:
            return self
        return replace(self, filter_delta=_DELTA_SHARE_OF_FILTER * usable(budget)[0].delta)

    @property
    def _adapts(self) -> bool:
        return self.variant == "ac" if self.adaptive is None else self.adaptive

    @property
    def _rate(self) -> float:
        return (1.0 if self.variant == "gd" else DEFAULT_RATE) if self.rate is None else self.rate

    @property
    def _together(self) -> GatedBatch:
        return GatedBatch(self._rate, self.gate_noise, self.gate, self.candidates)

    @property
    def _gradient_alone(self) -> FullBatch | PoissonBatch:
        return FullBatch() if self._rate == 1 else PoissonBatch(self._rate)

    @property
    def _gate_alone(self) -> FreshGate:
        return FreshGate(self._rate, self.gate_noise, self.candidates)

    def plan(self, problem: Problem) -> Plan:
        if not problem.penalty.convex:
            raise InvalidArgument(
                f"{problem.penalty!r} is not convex, and a line search may stop anywhere. Use "
                "'proximal-gd'."
            )
        if self._adapts:
            delta = (
                min(1e-6, 0.01 / problem.n_units)
                if self.filter_delta is None
                else self.filter_delta
            )
            return Plan(
                (Planned("run", Priced, _RELEASES_PER_STEP * self.steps, sampling=RenyiRun(delta)),)
            )
        if self.batches == "same":
            return Plan((Planned("step", GatedStep, self.steps, sampling=self._together),))
        share = self.gate**2
        return Plan(
            (
                Planned("gradient", ClippedGradient, self.steps, 1.0, self._gradient_alone),
                Planned("gate", Gate, self.steps, share, self._gate_alone),
            )
        )

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        yield from self._adaptive(problem, door) if self._adapts else self._fixed(problem, door)

    # Noise fixed beforehand

    def _fixed(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        name = "step" if self.batches == "same" else "gradient"
        multiplier = door.noise_multiplier(name)
        backtrack = StepSizes(self._largest_step(problem, multiplier), self.shrink, self.candidates)
        averaged = max(1, round(self.average_last * self.steps))
        w = np.zeros(problem.shape)
        for t in range(self.steps):
            search = self._search(
                problem, backtrack.sizes, multiplier, self.clip, self.objective_clip
            )
            g, k = self._gradient_and_step(problem, door, w, search)
            w = search.candidates(problem, w, g)[min(k, self.candidates - 1)]
            backtrack = backtrack.after(k)
            yield Iterate(w, weight=float(t >= self.steps - averaged))

    def _gradient_and_step(
        self, problem: Problem, door: Door, w: Vector, search: Backtracking
    ) -> tuple[Vector, int]:
        """A noisy gradient and the number of the first acceptable step along it."""
        gradient = ClippedGradient(problem, w, self.clip)
        if self.batches == "same":
            answer = door.release("step", GatedStep(gradient, search))
            return answer[:-1], int(answer[-1])
        g = door.release("gradient", gradient)
        return g, int(door.release("gate", search.gate(problem, w, g))[0])

    def _search(
        self, problem: Problem, sizes: Vector, multiplier: float, clip: float, objective_clip: float
    ) -> Backtracking:
        units = self._rate * problem.n_units
        noise = multiplier * relation_factor(problem) * clip / units
        return Backtracking(sizes, units, objective_clip, self.sufficient, noise)

    def _largest_step(self, problem: Problem, multiplier: float) -> float:
        """``first_step``, or a size from the noise of the run; at least 1 / (2 smoothness)."""
        if self.first_step is not None:
            return self.first_step
        per_step = multiplier * relation_factor(problem) / (self._rate * problem.n_units)
        nu = math.sqrt(problem.dimension * problem.outputs) * per_step / math.sqrt(self.steps)
        return float(np.clip(0.7 / max(nu, 1e-12), 2, 64)) / problem.loss.smoothness / 4

    # Noise chosen during the run

    def _adaptive(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        noise = self._first_noise(problem, door)
        backtrack = StepSizes(
            self._largest_step(problem, noise.multiplier), self.shrink, self.candidates
        )
        angles = GradientAngles()
        w, done = np.zeros(problem.shape), 0
        while True:
            search = self._search(
                problem, backtrack.sizes, noise.multiplier, noise.clip, noise.objective_clip
            )
            query = GatedStep(ClippedGradient(problem, w, noise.clip), search)
            batch = replace(self._together, gate=noise.gate)
            step = Priced(query, batch, noise.multiplier)
            if not door.affords("run", step):
                break
            answer = door.release("run", step)
            g, k = answer[:-1], int(answer[-1])
            if k == self.candidates:
                g, k, noise = self._check(problem, door, w, g, search, noise, angles)
            w = search.candidates(problem, w, g)[min(k, self.candidates - 1)]
            backtrack, angles, done = backtrack.after(k), angles.after(g), done + 1
            yield Iterate(w, weight=float(done))
        if done == 0:
            yield Iterate(w)

    def _first_noise(self, problem: Problem, door: Door) -> SearchNoise:
        run = door.noise_multiplier("run")
        # Without privacy any number will do: no noise is drawn.
        multiplier = (
            self._together.multiplier(1 / run, self.steps, problem.n_units) if run > 0 else 1.0
        )
        return SearchNoise(multiplier, self.gate, self.clip, self.objective_clip)

    def _check(
        self,
        problem: Problem,
        door: Door,
        w: Vector,
        g: Vector,
        search: Backtracking,
        noise: SearchNoise,
        angles: GradientAngles,
    ) -> tuple[Vector, int, SearchNoise]:
        """CHEB: while searches fail, release a second gradient, raise a budget, and search again.

        The budget raised is that of the gradient or of the gate, whichever seems at fault. All on
        fresh batches, and all as far as the filter allows.
        """
        k, gradient = self.candidates, ClippedGradient(problem, w, noise.clip)
        lowered = False
        for checks in range(1, _MAX_CHECKS + 1):
            again = Priced(gradient, self._gradient_alone, noise.multiplier)
            if not door.affords("run", again):
                break
            second = door.release("run", again)
            angle = angle_between(g, second)
            if angle > angles.most:
                noise = noise.for_gradient(self.increase)
                if self.variant == "ac" and not lowered:
                    noise, lowered = noise.lower(self.clip_decrease), True
            elif angle < angles.least:
                noise = noise.for_gate(self.increase)
            g = (checks * g + second) / (checks + 1)
            better = replace(search, gradient_noise=search.gradient_noise / math.sqrt(checks + 1))
            threshold = replace(self._together, gate=noise.gate).gate_multipliers(noise.multiplier)[
                0
            ]
            gate = Priced(better.gate(problem, w, g), self._gate_alone, threshold)
            if not door.affords("run", gate):
                break
            k = int(door.release("run", gate)[0])
            if k < self.candidates:
                break
        return g, k, noise
