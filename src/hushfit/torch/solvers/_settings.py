"""Settings that all solvers of networks share."""

import math

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.release import FullBatch, PoissonBatch, Sampling
from hushfit.torch._gradient import CLIP_REMEDY, NetworkGradient, is_norm
from hushfit.torch._network import Network

DECAYS = ("constant", "linear")
# Networks with fewer weights than this are small: noise moves their weights less, and they take
# fewer steps at a small epsilon.
FEW_WEIGHTS = 100_000
# The noise of a whole run moves the weights of a small network, and of others, by so many times
# their first norm; an update without noise by no more than the last number, for each unit of a
# normalised gradient.
_SMALL_WALK, _WALK, _LONGEST = 3.0, 4.5, 2.0


def check_numbers(solver: object, **positive: float | None) -> None:
    """Refuse numbers that should be positive (or None) and are not."""
    for name, value in positive.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (number and 0 < value < math.inf):
            raise InvalidArgument(
                f"{name}={value!r} of {type(solver).__name__} should be positive. Give a finite "
                "number above 0."
            )


def check_clip(solver: object, clip: float) -> None:
    """Refuse a clipping norm that no gradient query takes, before anything is paid."""
    if isinstance(clip, bool) or not isinstance(clip, int | float) or not is_norm(clip):
        raise InvalidArgument(
            f"clip={clip!r} of {type(solver).__name__} is not a norm. {CLIP_REMEDY}"
        )


def check_shares(solver: object, **shares: float) -> None:
    """Refuse numbers that should lie in [0, 1] and do not."""
    for name, value in shares.items():
        if not 0 <= value <= 1:
            raise InvalidArgument(
                f"{name}={value!r} of {type(solver).__name__} should lie between 0 and 1."
            )


def check_steps(solver: object, steps: object) -> None:
    """Refuse a number of steps that is not a whole number of at least one."""
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
        raise InvalidArgument(
            f"steps={steps!r} of {type(solver).__name__} is not a number of steps. Give an int of "
            "1 or more."
        )


def check_start(solver: object, network: Network) -> None:
    """Refuse first weights that are all zero where the learning rate follows their norm."""
    if not network.start.any():
        raise InvalidArgument(
            f"All weights of the module are zero, and the learning rate of {type(solver).__name__} "
            "is chosen by their norm. Leave the weights as torch draws them, or give learning_rate."
        )


def batches(rate: float) -> Sampling:
    """Poisson batches, or all records for a rate of one."""
    return FullBatch() if rate == 1 else PoissonBatch(rate)


def factors(decay: str, steps: int) -> Vector:
    """Factor of the learning rate at each step."""
    if decay == "constant":
        return np.ones(steps)
    return np.asarray(1 - np.arange(steps) / steps)


def noise_per_step(query: NetworkGradient, multiplier: float, expected_units: float) -> float:
    """Standard deviation of the noise on a coordinate of the mean gradient."""
    return multiplier * query.sensitivity(query.problem.relation) / expected_units


def noise_walk_rate(network: Network, noise: float, momentum: float, scales: Vector) -> float:
    r"""Learning rate at which the noise of a run moves the weights by 4.5 times their first norm;
    by three times those of a small network.

    With momentum m, each noise vector moves the weights by :math:`\eta f_t / (1 - m)` in the end,
    so a run moves them by :math:`\eta \sigma \sqrt{d \sum f_t^2} / (1 - m)`.
    """
    first = float(np.linalg.norm(network.start))
    walk = noise * math.sqrt(network.size * float(scales @ scales))
    allowed = _SMALL_WALK if network.size < FEW_WEIGHTS else _WALK
    return (1 - momentum) * first * min(_LONGEST, allowed / max(walk, 1e-300))
