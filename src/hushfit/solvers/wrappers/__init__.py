"""Solvers that wrap another solver and make a release before or after it.

Counted       A solver, and the counts of the classes if it does not release them itself
Graph         Pairs of columns, and whether their weights should be equal (+1) or opposite (-1)
PrivateGraph  A solver for constraints, preceded by a private estimate of the graph from the second
              moment of the records
PublicGraph   A solver for constraints, with a public graph
Recalibrated  A solver for two classes, followed by a private rescaling of its weights
Tempered      A solver for several classes, followed by a private choice of the length of its
              weights
released_class_shares  Frequencies of the classes by a released count
"""

from hushfit.solvers.wrappers._counted import Counted, released_class_shares
from hushfit.solvers.wrappers._private_graph import Graph, PrivateGraph, PublicGraph
from hushfit.solvers.wrappers._recalibrated import Recalibrated
from hushfit.solvers.wrappers._tempered import Tempered

__all__ = [
    "Counted",
    "Graph",
    "PrivateGraph",
    "PublicGraph",
    "Recalibrated",
    "Tempered",
    "released_class_shares",
]
