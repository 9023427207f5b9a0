"""Solvers that wrap another solver and make a release before or after it.

Graph         Pairs of columns, and whether their weights should be equal (+1) or opposite (-1)
PrivateGraph  A solver for constraints, preceded by a private estimate of the graph from the second
              moment of the records
PublicGraph   A solver for constraints, with a public graph
Recalibrated  A solver that releases a second moment, followed by a private rescaling of its
              weights
"""

from hushfit.solvers.wrappers._private_graph import Graph, PrivateGraph, PublicGraph
from hushfit.solvers.wrappers._recalibrated import Recalibrated

__all__ = ["Graph", "PrivateGraph", "PublicGraph", "Recalibrated"]
