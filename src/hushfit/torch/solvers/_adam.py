"""DP-Adam on networks: Adam (Kingma and Ba, 2015) on the noisy gradients of DP-SGD.

    each step:  g = (sum of clipped gradients over a Poisson batch + noise) / expected batch size
                m, v = running means of g and g^2, corrected for bias
                w <- w - learning rate m / (sqrt(v) + 1e-8)

With ``denoise`` the public variance of the noise is subtracted from v.
"""

from dataclasses import dataclass

import numpy as np

from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget
from hushfit.release import Door, Plan, Planned
from hushfit.torch._gradient import NetworkGradient
from hushfit.torch._network import Network
from hushfit.torch.solvers._settings import (
    DECAYS,
    batches,
    check_clip,
    check_numbers,
    check_shares,
    check_steps,
    factors,
    noise_per_step,
)
from hushfit.torch.solvers._sgd import GRADIENT
from hushfit.torch.solvers._state import State

# Smallest scale of a coordinate where noise is subtracted, in standard deviations of the noise.
_NOISE_FLOOR = 0.1


@dataclass(frozen=True)
class NetworkAdam:
    """Adam on noisy sums over Poisson batches.

    Parameters
    ----------
    steps : int, default=600
    rate : float, default=1/60
        Share of the records in an average batch; 1 takes all.
    clip : float, default=1.0
    normalise : bool, default=False
        Scale gradients to the clipping norm instead of clipping them.
    learning_rate : float, default=1e-3
    moments : (float, float), default=(0.9, 0.999)
        Decay rates of the running means of the gradient and of its square.
    denoise : bool, default=False
        Subtract the variance of the noise from the running mean of squares.
    decay : {"constant", "linear"}, default="constant"
    average_last : float, default=0.0

    Examples
    --------
    >>> from hushfit.torch import PrivateMLPClassifier
    >>> from hushfit.torch.solvers import NetworkAdam
    >>> PrivateMLPClassifier(solver=NetworkAdam(steps=300), classes=[0, 1]).solver.steps
    300
    """

    steps: int = 600
    rate: float = 1 / 60
    clip: float = 1.0
    normalise: bool = False
    learning_rate: float = 1e-3
    moments: tuple[float, float] = (0.9, 0.999)
    denoise: bool = False
    decay: str = "constant"
    average_last: float = 0.0

    def __post_init__(self) -> None:
        check_steps(self, self.steps)
        check_clip(self, self.clip)
        check_numbers(self, learning_rate=self.learning_rate, rate=self.rate)
        check_shares(self, rate=self.rate, average_last=self.average_last)
        if len(self.moments) != 2 or not all(0 <= rate < 1 for rate in self.moments):
            raise InvalidArgument("moments should be a pair of rates in [0, 1): (0.9, 0.999).")
        if self.decay not in DECAYS:
            raise InvalidArgument(f"decay={self.decay!r} is not known. Use one of {DECAYS}.")

    def for_budget(self, budget: Budget, network: Network) -> "NetworkAdam":
        return self

    def plan(self, network: Network) -> Plan:
        return Plan((Planned(GRADIENT, NetworkGradient, self.steps, sampling=batches(self.rate)),))

    def begin(self, network: Network, door: Door) -> State:
        zeros = np.zeros(network.size)
        return State(0, network.start, {"first": zeros, "second": zeros})

    def advance(self, network: Network, door: Door, state: State) -> State:
        query = NetworkGradient(network, state.w, self.clip, self.normalise)
        expected, t = self.rate * network.n_units, state.step + 1
        noise = noise_per_step(query, door.noise_multiplier(GRADIENT), expected)
        g = door.release(GRADIENT, query) / expected
        one, two = self.moments
        m = one * state.memory["first"] + (1 - one) * g
        v = two * state.memory["second"] + (1 - two) * g**2
        squares = v / (1 - two**t)
        if self.denoise:
            squares = np.maximum(squares - noise**2, (_NOISE_FLOOR * noise) ** 2)
        step = self.learning_rate * factors(self.decay, self.steps)[state.step]
        w = state.w - step * (m / (1 - one**t)) / (np.sqrt(squares) + 1e-8)
        return State(t, w, {"first": m, "second": v})
