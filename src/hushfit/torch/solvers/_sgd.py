"""DP-SGD on networks (Abadi et al., 2016), with clipped or normalised gradients.

    each step:  g = (sum of clipped gradients over a Poisson batch + noise) / expected batch size
                v <- momentum v + g + weight_decay w;   w <- w - learning rate v

Normalised gradients, linear decay and a learning rate from the noise make the rule that needs no
tuning (`auto`); docs/algorithms/networks.md has its measurements.
"""

from dataclasses import dataclass, replace

import numpy as np

from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget, discretisation_loss, usable
from hushfit.release import Door, Plan, Planned
from hushfit.release.plan import DRAWN_LOG2_VARIANCE
from hushfit.torch._gradient import NetworkGradient
from hushfit.torch._network import Network
from hushfit.torch.solvers._settings import (
    DECAYS,
    FEW_WEIGHTS,
    batches,
    check_clip,
    check_numbers,
    check_shares,
    check_start,
    check_steps,
    factors,
    noise_per_step,
    noise_walk_rate,
)
from hushfit.torch.solvers._state import State

GRADIENT = "gradient"


@dataclass(frozen=True)
class NetworkSGD:
    """Stochastic gradient descent on noisy sums over Poisson batches.

    Parameters
    ----------
    steps : int, default=600
    rate : float, default=1/60
        Share of the records in an average batch; 1 takes all. Batches of any size are accumulated
        from physical ones.
    clip : float, default=1.0
    normalise : bool, default=False
        Scale gradients to the clipping norm instead of clipping them.
    learning_rate : float or None
        None: the noise of the whole run moves the weights by 4.5 times their first norm, or by
        three times it for networks below 100,000 weights.
    momentum : float, default=0.0
    decay : {"constant", "linear"}, default="constant"
        How the learning rate changes; linearly, to zero.
    weight_decay : float, default=0.0
    average_last : float, default=0.0
        Share of the iterates, from the end, whose mean is the result; 0 means the last one.

    Examples
    --------
    >>> from torch import nn
    >>> from hushfit.torch import PrivateNeuralClassifier
    >>> from hushfit.torch.solvers import NetworkSGD
    >>> solver = NetworkSGD(steps=300, rate=0.01, learning_rate=0.5, momentum=0.9)
    >>> model = PrivateNeuralClassifier(nn.Linear(4, 2), solver=solver, classes=[0, 1])
    >>> model.quote(n_units=10_000, shape=4).plan.parts[0].count
    300
    """

    steps: int = 600
    rate: float = 1 / 60
    clip: float = 1.0
    normalise: bool = False
    learning_rate: float | None = None
    momentum: float = 0.0
    decay: str = "constant"
    weight_decay: float = 0.0
    average_last: float = 0.0

    def __post_init__(self) -> None:
        check_steps(self, self.steps)
        check_clip(self, self.clip)
        check_numbers(self, learning_rate=self.learning_rate, rate=self.rate)
        check_shares(self, rate=self.rate, average_last=self.average_last, momentum=self.momentum)
        if self.momentum == 1 or self.weight_decay < 0:
            raise InvalidArgument(f"{self} needs momentum < 1 and weight_decay >= 0.")
        if self.decay not in DECAYS:
            raise InvalidArgument(f"decay={self.decay!r} is not known. Use one of {DECAYS}.")

    def for_budget(self, budget: Budget, network: Network) -> "NetworkSGD":
        return self

    def plan(self, network: Network) -> Plan:
        if self.learning_rate is None:
            check_start(self, network)
        return Plan((Planned(GRADIENT, NetworkGradient, self.steps, sampling=batches(self.rate)),))

    def begin(self, network: Network, door: Door) -> State:
        return State(0, network.start, {"velocity": np.zeros(network.size)})

    def advance(self, network: Network, door: Door, state: State) -> State:
        query = NetworkGradient(network, state.w, self.clip, self.normalise)
        expected = self.rate * network.n_units
        scales = factors(self.decay, self.steps)
        rate = self.learning_rate or noise_walk_rate(
            network,
            noise_per_step(query, door.noise_multiplier(GRADIENT), expected),
            self.momentum,
            scales,
        )
        g = door.release(GRADIENT, query) / expected
        velocity = self.momentum * state.memory["velocity"] + g + self.weight_decay * state.w
        w = state.w - rate * scales[state.step] * velocity
        return State(state.step + 1, w, {"velocity": velocity})


def auto(budget: Budget, network: Network) -> NetworkSGD:
    """The rule that needs no tuning, for a network and a budget.

    Parameters
    ----------
    budget : Budget
    network : Network

    Returns
    -------
    NetworkSGD
    """
    small = network.size < FEW_WEIGHTS and budget.epsilon <= 1
    steps = min(300 if small else 600, _most_steps(budget, network))
    # As many epochs for fewer steps, and no tiny batches.
    rate = min(1.0, max(_EPOCHS / steps, _LEAST_BATCH / network.n_units))
    rule = NetworkSGD(steps, rate, normalise=True, momentum=0.9, decay="linear")
    return rule if budget.is_private else replace(rule, learning_rate=_rate_without_noise(network))


_LEAST_BATCH = 256
_EPOCHS = 20


def _most_steps(budget: Budget, network: Network) -> int:
    """Steps whose noise the reserve for discrete noise covers; large networks are limited by it."""
    reserve = usable(budget)[1]
    per_step = discretisation_loss(network.size, DRAWN_LOG2_VARIANCE)
    return int(max(1.0, min(1e9, reserve / per_step)))


def _rate_without_noise(network: Network) -> float:
    return 1e-3 * max(float(np.linalg.norm(network.start)), 0.1)
