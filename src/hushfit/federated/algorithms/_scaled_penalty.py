"""A penalty times a factor, for owners whose loss has a weight other than one."""

from dataclasses import dataclass

from hushfit._typing import Vector
from hushfit.penalties import Penalty, ScaledL2


@dataclass(frozen=True)
class Scaled:
    """``factor`` times a penalty."""

    penalty: Penalty
    factor: float

    @property
    def convex(self) -> bool:
        return self.penalty.convex

    @property
    def separable(self) -> bool:
        return self.penalty.separable

    @property
    def ridge(self) -> float | None:
        return None  # `scaled` turns a ridge into a ridge

    def value(self, w: Vector) -> float:
        return self.factor * self.penalty.value(w)

    def prox(self, w: Vector, step: float) -> Vector:
        return self.penalty.prox(w, self.factor * step)


def scaled(penalty: Penalty, factor: float) -> Penalty:
    """The penalty times a positive factor, in the form that solvers know best."""
    if factor == 1:
        return penalty
    return Scaled(penalty, factor) if penalty.ridge is None else ScaledL2(factor * penalty.ridge)
