"""Privacy budgets, and what has been spent."""

import math
from dataclasses import dataclass

from hushfit.errors import InvalidArgument
from hushfit.privacy import _check


@dataclass(frozen=True)
class Budget:
    """An (epsilon, delta) target.

    Parameters
    ----------
    epsilon : float
        Positive; ``math.inf`` means no privacy at all.
    delta : float
        Strictly between 0 and 1; in practice well below one over the number of rows.

    Raises
    ------
    InvalidArgument
        If a value is outside its range.

    Examples
    --------
    >>> from hushfit import Budget
    >>> Budget(epsilon=1.0, delta=1e-6).is_private
    True
    >>> Budget(float("inf"), 1e-6).is_private
    False
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        epsilon = _check.number(self.epsilon, "epsilon")
        if epsilon <= 0:
            raise InvalidArgument(
                f"epsilon={epsilon:g} is not positive. Give a positive number, for instance 1.0."
            )
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", _check.probability(self.delta, "delta"))

    @property
    def is_private(self) -> bool:
        """Whether epsilon is finite."""
        return math.isfinite(self.epsilon)


@dataclass(frozen=True)
class Spent:
    """Privacy loss that a ledger has recorded so far: like a `Budget`, but zero is possible.

    Parameters
    ----------
    epsilon : float
        Total privacy loss of everything recorded, composed (not summed).
    delta : float
        The delta at which epsilon is stated.

    Examples
    --------
    >>> from hushfit import Ledger
    >>> Ledger(epsilon=1.0, delta=1e-6).spent()
    Spent(epsilon=0.0, delta=1e-06)
    """

    epsilon: float
    delta: float
