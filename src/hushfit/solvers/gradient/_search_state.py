"""What a line search remembers from step to step: step sizes, noise and angles. All of it is a
function of released answers.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Vector


@dataclass(frozen=True, eq=False)
class StepSizes:
    """Candidate step sizes and recent choices, which set the largest candidate every ten steps."""

    largest: float
    shrink: float
    candidates: int
    taken: tuple[float, ...] = ()

    period = 10
    slack = 1.2

    @property
    def sizes(self) -> Vector:
        return np.asarray(self.largest * self.shrink ** np.arange(self.candidates))

    def after(self, k: int) -> "StepSizes":
        taken = (*self.taken, float(self.sizes[min(k, self.candidates - 1)]))
        if len(taken) < self.period:
            return replace(self, taken=taken)
        return replace(self, largest=min(self.slack * max(taken), self.largest), taken=())


@dataclass(frozen=True)
class SearchNoise:
    """Noise and clipping norms of the next release of an adaptive run."""

    multiplier: float
    gate: float
    clip: float
    objective_clip: float

    def for_gradient(self, increase: float) -> "SearchNoise":
        """More budget for the gradient alone: ``gate`` is relative to its noise multiplier."""
        factor = math.sqrt(1 + increase)
        return replace(self, multiplier=self.multiplier / factor, gate=self.gate / factor)

    def for_gate(self, increase: float) -> "SearchNoise":
        return replace(self, gate=self.gate * (1 + increase))

    def lower(self, decrease: float) -> "SearchNoise":
        return replace(
            self,
            clip=(1 - decrease) * self.clip,
            objective_clip=(1 - decrease) * self.objective_clip,
        )


@dataclass(frozen=True, eq=False)
class GradientAngles:
    """Moving average of the angles between gradients of consecutive steps."""

    mean: float = math.pi / 2
    last: Vector | None = None

    memory = 0.8

    @property
    def most(self) -> float:
        """Angle above which the gradient is mostly noise."""
        return min(1.1 * self.mean, math.pi / 2)

    @property
    def least(self) -> float:
        """Angle below which failed searches are not due to the gradient."""
        return 0.5 * self.mean

    def after(self, g: Vector) -> "GradientAngles":
        if self.last is None:
            return GradientAngles(self.mean, g)
        return GradientAngles(
            self.memory * self.mean + (1 - self.memory) * angle_between(g, self.last), g
        )


def angle_between(one: Vector, other: Vector) -> float:
    """Angle between two vectors; a right one if either is zero."""
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return (
        math.acos(min(1.0, max(-1.0, float(one @ other) / lengths))) if lengths > 0 else math.pi / 2
    )
