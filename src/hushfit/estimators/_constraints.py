"""The constraint of an argument: by name, as given, or made for the number of columns."""

from typing import Any

from hushfit.constraints import Constraint, chain, identity
from hushfit.errors import InvalidArgument

_BY_NAME = {"identity": identity, "chain": chain}


def constraint_of(given: Any, n_features: int) -> Constraint | None:
    """The constraint between the coefficients and what the penalty is a function of.

    Parameters
    ----------
    given : None, "identity", "chain", Constraint, or function
        A function gets the number of columns, for instance
        ``lambda d: graph([(0, 1), (1, 2)], d)``.
    n_features : int

    Returns
    -------
    Constraint or None
    """
    if given is None:
        return None
    if isinstance(given, str):
        if given not in _BY_NAME:
            names = " or ".join(map(repr, _BY_NAME))
            raise InvalidArgument(
                f"constraint={given!r} is not known. Use {names}, or an object of "
                "hushfit.constraints."
            )
        return _BY_NAME[given](n_features)
    made = given(n_features) if callable(given) else given
    if not isinstance(made, Constraint):
        raise InvalidArgument(
            f"constraint is of type {type(made).__name__}. Give an object of hushfit.constraints, "
            "such as graph(edges, d), or a function of the number of columns that makes one."
        )
    if made.A.shape[1] != n_features:
        raise InvalidArgument(
            f"the constraint is about {made.A.shape[1]} coefficients, and there are {n_features} "
            "columns. Make it for as many."
        )
    return made
