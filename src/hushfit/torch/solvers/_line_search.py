"""DP-BLSGD, DP-BLSGD-AC and CHEB on networks (chapter 5 of the thesis).

    each step:  B = secret Poisson batch;
                g = clipped gradients over B + noise, divided by the expected size of B
                k = first eta_k = eta_0 beta^k whose loss over the SAME batch decreases enough, by
                    an above-threshold test (the gate)
                w = w - eta_k (g + weight_decay w);  no k: the smallest step
                every ten steps:  eta_0 = min(1.2 * largest recent step, eta_0)

Gradient and gate share a batch and have one cost. All candidates are evaluated, whatever the gate
says. With ``adaptive`` the noise is chosen during the run under a Rényi filter: after a failed
search a second gradient is released, and its angle to the first decides whether the gradient or the
gate gets more budget (CHEB); with ``"ac"`` the clipping norms shrink as well.
docs/algorithms/networks.md says how the searches compare.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget, usable
from hushfit.release import Door, FreshGate, GatedBatch, Plan, Planned, Priced, RenyiRun
from hushfit.solvers.gradient import GradientAngles, SearchNoise, StepSizes, angle_between
from hushfit.torch._gate import NetworkGate, NetworkGatedStep, NetworkSearch
from hushfit.torch._gradient import NetworkGradient
from hushfit.torch._network import Network
from hushfit.torch.solvers._settings import (
    batches,
    check_clip,
    check_numbers,
    check_shares,
    check_steps,
    noise_per_step,
)
from hushfit.torch.solvers._state import State

_VARIANTS = ("sgd", "cheb", "ac")
_STEP, _RUN = "step", "run"
# Releases of an adaptive run, and its steps, at the most for each expected step.
_RELEASES_PER_STEP, _MOST_STEPS = 3, 2
_MAX_CHECKS = 2
_DELTA_SHARE_OF_FILTER = 0.99
# Bracket of the search for the least noise, and relative error of its result.
_BRACKET, _TOLERANCE = 1.1, 1e-4


@dataclass(frozen=True)
class NetworkBLS:
    """Gradient descent with a private backtracking line search.

    Parameters
    ----------
    variant : {"sgd", "cheb", "ac"}, default="sgd"
        With noise fixed beforehand; with noise chosen during the run; and with clipping norms that
        shrink when a search fails, too.
    expected_steps : int, default=300
        Number of steps; of an adaptive run the expected one, among which the budget is divided.
    rate : float, default=1/60
    clip : float, default=1.0
        Clipping norm of a record's gradient.
    objective_clip : float, default=1.0
        Bound on the decrease of a record's loss that counts in a search.
    first_step : float, default=2.0
        Largest step size.
    shrink : float, default=0.5
        Factor from one candidate to the next.
    candidates : int, default=8
    sufficient : float, default=0.1
        Share of the predicted decrease that a step must reach (Armijo's constant).
    gate_noise : {"laplace", "gaussian"}, default="laplace"
    gate : float, default=1/3
        Epsilon of a search times the noise multiplier of its gradient.
    weight_decay : float, default=0.0
    increase : float, default=0.3
        Relative increase, after a failed search, of the budget of the part that failed.
    clip_decrease : float, default=0.05
        Relative decrease of both clipping norms of ``"ac"`` then.
    average_last : float, default=0.2
        Share of the iterates, from the end, whose mean is the result, where noise is fixed.
    filter_delta : float or None
        Delta of the filter of an adaptive run. None takes nearly all of the budget's.

    Examples
    --------
    >>> from hushfit.torch import PrivateMLPClassifier
    >>> from hushfit.torch.solvers import NetworkBLS
    >>> PrivateMLPClassifier(solver=NetworkBLS(expected_steps=150), classes=[0, 1]).solver.steps
    150
    """

    variant: str = "sgd"
    expected_steps: int = 300
    rate: float = 1 / 60
    clip: float = 1.0
    objective_clip: float = 1.0
    first_step: float = 2.0
    shrink: float = 0.5
    candidates: int = 8
    sufficient: float = 0.1
    gate_noise: str = "laplace"
    gate: float = 1 / 3
    weight_decay: float = 0.0
    increase: float = 0.3
    clip_decrease: float = 0.05
    average_last: float = 0.2
    filter_delta: float | None = None

    normalise: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.variant not in _VARIANTS:
            raise InvalidArgument(f"variant={self.variant!r} is not known. Use one of {_VARIANTS}.")
        check_steps(self, self.expected_steps)
        check_clip(self, self.clip)
        check_numbers(
            self,
            rate=self.rate,
            objective_clip=self.objective_clip,
            first_step=self.first_step,
            increase=self.increase,
            filter_delta=self.filter_delta,
        )
        check_shares(
            self,
            rate=self.rate,
            shrink=self.shrink,
            sufficient=self.sufficient,
            clip_decrease=self.clip_decrease,
            average_last=self.average_last,
        )
        if self.weight_decay < 0 or 1 in (self.shrink, self.clip_decrease, self.filter_delta):
            raise InvalidArgument(
                f"{self} needs weight_decay >= 0, and shrink, clip_decrease and filter_delta below "
                "1."
            )
        # These refuse a wrong noise, gate or number of candidates.
        self._together, self._gate_alone  # noqa: B018

    @property
    def _adapts(self) -> bool:
        return self.variant != "sgd"

    @property
    def steps(self) -> int:
        """Number of steps; of an adaptive run the largest one."""
        return self.expected_steps * (_MOST_STEPS if self._adapts else 1)

    @property
    def _together(self) -> GatedBatch:
        return GatedBatch(
            self.rate, self.gate_noise, self.gate, self.candidates, answers=NetworkGatedStep
        )

    @property
    def _gate_alone(self) -> FreshGate:
        return FreshGate(self.rate, self.gate_noise, self.candidates, answers=NetworkGate)

    def for_budget(self, budget: Budget, network: Network) -> "NetworkBLS":
        if not self._adapts or self.filter_delta is not None or not budget.is_private:
            return self
        return replace(self, filter_delta=_DELTA_SHARE_OF_FILTER * usable(budget)[0].delta)

    def plan(self, network: Network) -> Plan:
        if not self._adapts:
            return Plan((Planned(_STEP, NetworkGatedStep, self.steps, sampling=self._together),))
        delta = self.filter_delta or min(1e-6, 0.01 / network.n_units)
        count = _RELEASES_PER_STEP * self.expected_steps
        return Plan((Planned(_RUN, Priced, count, sampling=RenyiRun(delta)),))

    def begin(self, network: Network, door: Door) -> State:
        sizes = StepSizes(self.first_step, self.shrink, self.candidates)
        noise, angles = self._first_noise(network, door), GradientAngles()
        return _stored(0, network.start, sizes, noise, angles)

    def _first_noise(self, network: Network, door: Door) -> SearchNoise:
        if not self._adapts:
            return SearchNoise(
                door.noise_multiplier(_STEP), self.gate, self.clip, self.objective_clip
            )
        multiplier = self._affordable(network, door.noise_multiplier(_RUN))
        return SearchNoise(multiplier, self.gate, self.clip, self.objective_clip)

    def _affordable(self, network: Network, run: float) -> float:
        """Noise multiplier at which the filter of an adaptive run affords the expected steps."""
        if run == 0:
            return 1.0  # without privacy no noise is drawn, and any number will do
        [part] = self.plan(network).parts
        assert isinstance(part.sampling, RenyiRun)
        left = part.sampling.filter(run, network.relation)
        steps, n_units = self.expected_steps, network.n_units
        # Renyi curves are looser, or tighter, than what the first multiplier is computed from.
        return _least(
            lambda multiplier: left.affords(self._together.cost(multiplier, steps, n_units)),
            self._together.multiplier(1 / run, steps, n_units),
        )

    def advance(self, network: Network, door: Door, state: State) -> State:
        sizes, noise, angles = _read(self, state)
        search = self._search(network, sizes.sizes, noise)
        query = NetworkGatedStep(NetworkGradient(network, state.w, noise.clip), search)
        if self._adapts:
            step = Priced(query, replace(self._together, gate=noise.gate), noise.multiplier)
            if not door.affords(_RUN, step):
                return replace(state, step=self.steps)
            answer = door.release(_RUN, step)
        else:
            answer = door.release(_STEP, query)
        g, k = answer[:-1], int(answer[-1])
        if self._adapts and k == self.candidates:
            g, k, noise = self._check(network, door, state.w, g, search, noise, angles)
        chosen = float(sizes.sizes[min(k, self.candidates - 1)])
        w = state.w - chosen * search.direction(state.w, g)
        after = angles.after(g) if self._adapts else angles
        return _stored(state.step + 1, w, sizes.after(k), noise, after)

    def _search(self, network: Network, sizes: Vector, noise: SearchNoise) -> NetworkSearch:
        units = self.rate * network.n_units
        gradient = NetworkGradient(network, network.start, noise.clip)
        return NetworkSearch(
            sizes,
            units,
            noise.objective_clip,
            self.sufficient,
            noise_per_step(gradient, noise.multiplier, units),
            self.weight_decay,
        )

    def _check(
        self,
        network: Network,
        door: Door,
        w: Vector,
        g: Vector,
        search: NetworkSearch,
        noise: SearchNoise,
        angles: GradientAngles,
    ) -> tuple[Vector, int, SearchNoise]:
        """CHEB: while searches fail, release a second gradient on a fresh batch, raise the budget
        of gradient or gate, and search again, as far as the filter allows.
        """
        k, gradient, lowered = self.candidates, NetworkGradient(network, w, noise.clip), False
        for checks in range(1, _MAX_CHECKS + 1):
            again = Priced(gradient, batches(self.rate), noise.multiplier)
            if not door.affords(_RUN, again):
                break
            second = door.release(_RUN, again)
            angle = angle_between(g, second)
            if angle > angles.most:
                noise = noise.for_gradient(self.increase)
                if self.variant == "ac" and not lowered:
                    noise, lowered = noise.lower(self.clip_decrease), True
            elif angle < angles.least:
                noise = noise.for_gate(self.increase)
            g = (checks * g + second) / (checks + 1)
            better = replace(search, gradient_noise=search.gradient_noise / math.sqrt(checks + 1))
            together = replace(self._together, gate=noise.gate)
            threshold = together.gate_multipliers(noise.multiplier)[0]
            gate = Priced(better.gate(network, w, g), self._gate_alone, threshold)
            if not door.affords(_RUN, gate):
                break
            k = int(door.release(_RUN, gate)[0])
            if k < self.candidates:
                break
        return g, k, noise


def _least(enough: Callable[[float], bool], near: float) -> float:
    """Smallest number that is enough, found from one nearby; every larger one is enough."""
    high = near
    while not enough(high):
        high *= _BRACKET
    low = high / _BRACKET
    while enough(low):
        low, high = low / _BRACKET, low
    while high / low > 1 + _TOLERANCE:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _stored(
    step: int, w: Vector, sizes: StepSizes, noise: SearchNoise, angles: GradientAngles
) -> State:
    memory = {
        "largest": np.array([sizes.largest]),
        "taken": np.array(sizes.taken),
        "noise": np.array([noise.multiplier, noise.gate, noise.clip, noise.objective_clip]),
        "angle": np.array([angles.mean]),
    }
    return State(step, w, memory if angles.last is None else {**memory, "last": angles.last})


def _read(solver: NetworkBLS, state: State) -> tuple[StepSizes, SearchNoise, GradientAngles]:
    memory = state.memory
    sizes = StepSizes(
        float(memory["largest"][0]),
        solver.shrink,
        solver.candidates,
        tuple(memory["taken"].tolist()),
    )
    noise = SearchNoise(*memory["noise"].tolist())
    return sizes, noise, GradientAngles(float(memory["angle"][0]), memory.get("last"))
