"""What a penalty is, to the rest of the library."""

from typing import Protocol

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument


class Penalty(Protocol):
    """A function g of the coefficients that enters a fit through its value and its prox.

    ``prox(v, step)`` is the minimiser over z of ``step * g(z) + ||z - v||^2 / 2``.
    """

    def value(self, z: Vector) -> float: ...

    def prox(self, v: Vector, step: float) -> Vector: ...


def check_alpha(alpha: float) -> None:
    """Refuse a negative or non-finite weight."""
    if not 0 <= alpha < float("inf"):
        raise InvalidArgument(f"alpha={alpha} is not a finite number >= 0. Use 0 for no penalty.")


def check_radius(radius: float) -> None:
    """Refuse an empty or unbounded ball."""
    if not 0 < radius < float("inf"):
        raise InvalidArgument(f"radius={radius} is not a finite number > 0. For no bound use the penalty Zero().")
