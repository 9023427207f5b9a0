"""Penalties: functions of the coefficients that enter a fit through their value and their prox."""

from hushfit.penalties._named import penalty_from_name
from hushfit.penalties._penalty import Penalty
from hushfit.penalties._sets import Box, L1Ball, L2Ball
from hushfit.penalties._smooth import ScaledL2, Zero
from hushfit.penalties._sparse import L1, ElasticNet, GroupLasso

__all__ = [
    "L1",
    "Box",
    "ElasticNet",
    "GroupLasso",
    "L1Ball",
    "L2Ball",
    "Penalty",
    "ScaledL2",
    "Zero",
    "penalty_from_name",
]
