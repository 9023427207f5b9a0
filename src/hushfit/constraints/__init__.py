"""Constraints between the two blocks of an ADMM splitting.

Constraint     The constraint :math:`A x + B z = c`
chain          Tie ``z`` to the differences of neighbouring coefficients, for the fused lasso
consensus      Tie the coefficients of several owners to common ones
copied_groups  Indices of the copies made by `group`
generalised    Tie ``z`` to any linear map of the coefficients, for the generalised lasso
graph          Tie ``z`` to the differences of coefficients along the edges of a graph, for the
               graph-guided fused lasso
group          Give every group its own copy of its coefficients, for group penalties whose groups
               overlap
identity       Tie ``z`` to ``x`` itself, for penalties on the coefficients
"""

from hushfit.constraints._constraint import Constraint
from hushfit.constraints._named import (
    chain,
    consensus,
    copied_groups,
    generalised,
    graph,
    group,
    identity,
)

__all__ = [
    "Constraint",
    "chain",
    "consensus",
    "copied_groups",
    "generalised",
    "graph",
    "group",
    "identity",
]
