"""Step sizes for the ADMM family, from public numbers."""

import math
from dataclasses import dataclass

from hushfit.problem import Problem

ASSUMED_LENGTH = 3.0  # of the weights; nothing about privacy rests on it
_COUPLING = 0.1  # eta * rho


@dataclass(frozen=True)
class AdmmSteps:
    """Primal step ``eta`` and penalty ``rho`` of linearised ADMM. What x really moves by is eta
    / (1 + eta rho).
    """

    eta: float
    rho: float

    @classmethod
    def for_noise(cls, noise: float, steps: int, problem: Problem) -> "AdmmSteps":
        """The rule: total time balances how far there is to go against the noise picked up on the
        way.

        ``noise`` is the deviation of each coordinate of the mean gradient.
        """
        shortest = 1 / problem.loss.smoothness
        tau = shortest if noise == 0 else min(shortest, _total_time(noise, steps, problem) / steps)
        eta = tau * (1 + _COUPLING)
        return cls(eta, _COUPLING / eta)


def _total_time(noise: float, steps: int, problem: Problem) -> float:
    quiet = ASSUMED_LENGTH * math.sqrt(steps) / noise
    coordinates = problem.dimension * problem.outputs
    return float(max(math.cbrt(2 * quiet**2), quiet / math.sqrt(coordinates)))
