"""Step sizes for the ADMM family, from public numbers."""

import math
from dataclasses import dataclass

from hushfit.problem import Problem

ASSUMED_NORM = 3.0  # assumed norm of the weights; privacy does not depend on it
_COUPLING = 0.1  # eta * rho


@dataclass(frozen=True)
class AdmmSteps:
    """Primal step size ``eta`` and penalty ``rho`` of linearised ADMM.

    The effective step size of x is eta / (1 + eta rho).
    """

    eta: float
    rho: float

    @classmethod
    def for_noise(cls, noise: float, steps: int, problem: Problem) -> "AdmmSteps":
        """The rule: the sum of step sizes balances distance to the minimum against noise.

        ``noise`` is the standard deviation of each coordinate of the mean gradient.
        """
        largest = 1 / problem.loss.smoothness
        tau = largest if noise == 0 else min(largest, _total_time(noise, steps, problem) / steps)
        eta = tau * (1 + _COUPLING)
        return cls(eta, _COUPLING / eta)


def _total_time(noise: float, steps: int, problem: Problem) -> float:
    inverse_noise = ASSUMED_NORM * math.sqrt(steps) / noise
    coordinates = problem.dimension * problem.outputs
    return float(max(math.cbrt(2 * inverse_noise**2), inverse_noise / math.sqrt(coordinates)))
