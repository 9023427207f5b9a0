"""Penalties: functions of the coefficients that enter a fit through their value and their prox."""

from hushfit.penalties._folded import MCP, SCAD, LHalf, Lq
from hushfit.penalties._fused import FusedLasso, TotalVariation
from hushfit.penalties._groups import GroupLasso, SparseGroup
from hushfit.penalties._named import penalty_from_name
from hushfit.penalties._nuclear import Nuclear
from hushfit.penalties._penalty import FoldedConcave, Penalty, check_penalty
from hushfit.penalties._sets import Box, L1Ball, L2Ball
from hushfit.penalties._smooth import ScaledL2, Zero
from hushfit.penalties._sparse import L1, ElasticNet, Slope, WeightedL1

__all__ = [
    "L1",
    "MCP",
    "SCAD",
    "Box",
    "ElasticNet",
    "FoldedConcave",
    "FusedLasso",
    "GroupLasso",
    "L1Ball",
    "L2Ball",
    "LHalf",
    "Lq",
    "Nuclear",
    "Penalty",
    "ScaledL2",
    "Slope",
    "SparseGroup",
    "TotalVariation",
    "WeightedL1",
    "Zero",
    "check_penalty",
    "penalty_from_name",
]
