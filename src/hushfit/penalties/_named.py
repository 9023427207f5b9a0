"""Penalties by name, as estimators accept them."""

from collections.abc import Callable

from hushfit.errors import UnknownName
from hushfit.penalties._folded import MCP, SCAD, LHalf
from hushfit.penalties._fused import FusedLasso, TotalVariation
from hushfit.penalties._nuclear import Nuclear
from hushfit.penalties._penalty import Penalty
from hushfit.penalties._sets import NonNegative
from hushfit.penalties._smooth import ScaledL2, Zero
from hushfit.penalties._sparse import L1, ElasticNet

_BY_NAME: dict[str | None, Callable[[float, float], Penalty]] = {
    None: lambda alpha, l1_ratio: Zero(),
    "l1": lambda alpha, l1_ratio: L1(alpha),
    "l2": lambda alpha, l1_ratio: ScaledL2(alpha),
    "elasticnet": lambda alpha, l1_ratio: ElasticNet(alpha, l1_ratio),
    "l1/2": lambda alpha, l1_ratio: LHalf(alpha),
    "scad": lambda alpha, l1_ratio: SCAD(alpha),
    "mcp": lambda alpha, l1_ratio: MCP(alpha),
    "fused": lambda alpha, l1_ratio: FusedLasso(alpha, l1_ratio),
    "total-variation": lambda alpha, l1_ratio: TotalVariation(alpha),
    "nuclear": lambda alpha, l1_ratio: Nuclear(alpha),
    "nonnegative": lambda alpha, l1_ratio: NonNegative(L1(alpha)),
}


def penalty_from_name(name: str | None, alpha: float, l1_ratio: float) -> Penalty:
    """Make the penalty of a given name.

    Parameters
    ----------
    name : {None, "l1", "l2", "elasticnet", "l1/2", "scad", "mcp", "fused", "total-variation", \
            "nuclear", "nonnegative"}
        None is no penalty. "l1/2", "scad" and "mcp" are not convex. There are names for penalties
        that alpha (and `l1_ratio`) determine; SCAD and MCP get their usual second parameter, a =
        3.7 and gamma = 3. "fused" and "total-variation" are about neighbouring columns, "nuclear"
        about the matrix of several classes, and "nonnegative" is the lasso with coefficients of at
        least 0. For the others pass an object.
    alpha : float
        Weight of the penalty.
    l1_ratio : float
        Share of the lasso in ``"elasticnet"`` and ``"fused"``; the others ignore it.

    Returns
    -------
    Penalty
        An object of ``hushfit.penalties``.

    Raises
    ------
    UnknownName
        If there is no such name.

    Examples
    --------
    >>> from hushfit.penalties import penalty_from_name
    >>> penalty_from_name('elasticnet', 0.01, 0.5)
    ElasticNet(alpha=0.01, l1_ratio=0.5)
    """
    if name not in _BY_NAME:
        names = ", ".join(repr(known) for known in _BY_NAME)
        raise UnknownName(
            f"penalty={name!r} is not known. Use one of {names}, or an object of hushfit.penalties."
        )
    return _BY_NAME[name](alpha, l1_ratio)
