"""The protocol of a penalty, and checks of its parameters."""

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.errors import InvalidArgument

if TYPE_CHECKING:
    from hushfit.penalties._sparse import WeightedL1


class Penalty(Protocol):
    """A function g of the coefficients that enters a fit through its value and its prox.

    ``prox(v, step)`` is a minimiser over z of ``step * g(z) + ||z - v||^2 / 2``: the only one if g
    is convex, a global one in any case. An array of shape (outputs, features) holds the
    coefficients of several outputs, one in each row: every penalty acts on each row by itself and
    adds up the values, except `Nuclear`, which couples the rows.

    Attributes
    ----------
    convex : bool
        Whether g is convex. Algorithms whose proof needs convexity refuse other penalties.
    separable : bool
        Whether ``prox`` takes an array of steps, one for each coefficient, as well as one for all.
    ridge : float or None
        The weight a if g is exactly ``a ||z||^2 / 2``, so that a step with it is a linear solve; 0
        for no penalty, None for every other one.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.penalties import L1, Penalty
    >>> penalty: Penalty = L1(0.5)
    >>> penalty.value(np.array([3.0, -1.0])), penalty.convex
    (2.0, True)
    >>> penalty.prox(np.array([3.0, 0.2]), 1.0)
    array([2.5, 0. ])
    """

    @property
    def convex(self) -> bool: ...

    @property
    def separable(self) -> bool: ...

    @property
    def ridge(self) -> float | None: ...

    def value(self, z: Vector) -> float: ...

    def prox(self, v: Vector, step: float) -> Vector: ...


_MEMBERS = ("convex", "separable", "ridge", "value", "prox")


def check_penalty(penalty: object) -> None:
    """Refuse an object without all members of a penalty; the error lists the missing ones."""
    missing = [name for name in _MEMBERS if not hasattr(penalty, name)]
    if missing:
        raise InvalidArgument(
            f"penalty={penalty!r} is not a penalty: it does not declare {', '.join(missing)}. Use "
            "a name, an object of hushfit.penalties, or a class with all members of "
            "penalties.Penalty."
        )


@runtime_checkable
class FoldedConcave(Penalty, Protocol):
    """A non-convex penalty ``p(|z_1|) + p(|z_2|) + ...`` with p concave, so that every tangent of p
    lies above it.

    ``linearised(w, floor)`` is the convex upper bound that touches g near ``w``, up to a constant:
    the weighted lasso of one stage of local linear approximation. The slope of p at 0 may be
    infinite; ``floor`` keeps the weights finite.
    """

    def linearised(self, w: Vector, floor: float = 1e-2) -> "WeightedL1": ...


def as_rows(v: Vector) -> Matrix:
    """One row per output, C-contiguous as the compiled loops require."""
    return np.ascontiguousarray(np.atleast_2d(v), dtype=np.float64)


def check_alpha(alpha: float) -> None:
    """Refuse a negative or non-finite weight."""
    if not 0 <= alpha < float("inf"):
        raise InvalidArgument(f"alpha={alpha} is not a finite number >= 0. Use 0 for no penalty.")


def check_ratio(l1_ratio: float, other: str) -> None:
    """Refuse a mixture that is not between the lasso and the other penalty."""
    if not 0 <= l1_ratio <= 1:
        raise InvalidArgument(
            f"l1_ratio={l1_ratio} is outside [0, 1]. Use 1 for the lasso and 0 for {other}."
        )


def check_radius(radius: float) -> None:
    """Refuse an empty or unbounded ball."""
    if not 0 < radius < float("inf"):
        raise InvalidArgument(
            f"radius={radius} is not a finite number > 0. For no bound use the penalty Zero()."
        )


def check_floor(floor: float) -> None:
    """Refuse a floor with which a slope may be infinite."""
    if not 0 < floor < float("inf"):
        raise InvalidArgument(
            f"floor={floor} is not a finite number > 0. It is added to |w| where the slope may be "
            "infinite."
        )


def checked_weights(weights: Vector) -> Vector:
    """A read-only copy of the weights; refuse negative and non-finite ones."""
    try:
        kept = np.array(weights, dtype=np.float64)
    except OverflowError:
        raise InvalidArgument(
            "weights have a whole number beyond the largest float. Give smaller ones."
        ) from None
    if not (kept.ndim > 0 and np.isfinite(kept).all() and (kept >= 0).all()):
        raise InvalidArgument(
            f"weights={weights} are not an array of finite numbers >= 0. Give one for each "
            "coefficient."
        )
    kept.flags.writeable = False
    return kept


def check_fits(weights: Vector, z: Vector) -> None:
    """Refuse coefficients whose number differs from the weights': broadcasting would hide it."""
    if z.shape[-weights.ndim :] != weights.shape:
        raise InvalidArgument(
            f"There are weights for coefficients of shape {weights.shape}, but these have shape "
            f"{z.shape}. Give one weight for each coefficient."
        )
