"""Stochastic gradient descent as PrivBR and its baselines share it."""

from collections.abc import Callable

import numpy as np

from hushfit._typing import Vector
from hushfit.solvers.base import Watch

_PERIODS = 4  # the step size falls linearly, as often as this


def descend(
    start: Vector,
    steps: int,
    first_step: float,
    average_last: float,
    gradient: Callable[[Vector], Vector],
    normalised: Callable[[Vector], Vector],
    watch: Watch | None,
) -> Vector:
    """The mean of the last iterates of descent along released gradients."""
    averaged = max(1, round(average_last * steps))
    theta, total = normalised(start), np.zeros(len(start))
    for t in range(steps):
        step = first_step * (1 - t * _PERIODS // steps / _PERIODS)
        theta = normalised(theta - step * gradient(theta))
        if t >= steps - averaged:
            total += theta
        if watch is not None:
            watch(t + 1)
    return np.asarray(total / averaged)
