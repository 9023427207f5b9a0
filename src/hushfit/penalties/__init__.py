r"""Penalties: functions of the coefficients that enter a fit through their value and their prox.

LHalf              The :math:`L_{1/2}` penalty :math:`g(z) = \alpha \sum_j |z_j|^{1/2}`
Lq                 The penalty :math:`g(z) = \alpha \sum_j |z_j|^q` for :math:`0 < q < 1`
MCP                Minimax concave penalty
SCAD               Smoothly clipped absolute deviation
FusedLasso         Fused lasso :math:`g(z) = \alpha (r \|z\|_1 + (1 - r) \sum_i |z_{i+1} - z_i|)`
TotalVariation     Total variation :math:`g(z) = \alpha \sum_i |z_{i+1} - z_i|`
GroupLasso         Group lasso :math:`g(z) = \alpha \sum_G \sqrt{|G|} \, \|z_G\|`
SparseGroup        Sparse group lasso :math:`g(z) = \alpha (r \|z\|_1 + (1 - r) \sum_G \sqrt{|G|} \,
                   \|z_G\|)`
penalty_from_name  Make the penalty of a given name
Nuclear            Nuclear norm :math:`g(Z) = \alpha \sum_i \sigma_i(Z)`
FoldedConcave      A non-convex penalty p(|z_1|) + p(|z_2|) + ... with p concave, so that every
                   tangent of p lies above it
Penalty            A function g of the coefficients that enters a fit through its value and its prox
check_penalty      Refuse an object without all members of a penalty
Box                Every coefficient is between ``low`` and ``high``
L1Ball             The l1 norm is at most ``radius``
L2Ball             The Euclidean norm is at most ``radius``
NonNegative        Another penalty, of coefficients that are at least 0
ScaledL2           Ridge penalty :math:`g(z) = \frac{\alpha}{2} \|z\|^2`
Zero               No penalty
ElasticNet         Mixture of lasso and ridge, :math:`g(z) = \alpha (r \|z\|_1 + \frac{1 - r}{2}
                   \|z\|^2)`, as in scikit-learn
L1                 Lasso penalty :math:`g(z) = \alpha \|z\|_1`
Slope              Ordered lasso :math:`g(z) = \sum_i \omega_i |z|_{(i)}`
WeightedL1         Lasso with a weight for each coefficient, :math:`g(z) = \sum_j \omega_j |z_j|`
"""

from hushfit.penalties._folded import MCP, SCAD, LHalf, Lq
from hushfit.penalties._fused import FusedLasso, TotalVariation
from hushfit.penalties._groups import GroupLasso, SparseGroup
from hushfit.penalties._named import penalty_from_name
from hushfit.penalties._nuclear import Nuclear
from hushfit.penalties._penalty import FoldedConcave, Penalty, check_penalty
from hushfit.penalties._sets import Box, L1Ball, L2Ball, NonNegative
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
    "NonNegative",
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
