"""Constraints: what ties the two blocks of an ADMM splitting together."""

from hushfit.constraints._constraint import Constraint
from hushfit.constraints._named import chain, consensus, copied_groups, generalised, graph, group, identity

__all__ = ["Constraint", "chain", "consensus", "copied_groups", "generalised", "graph", "group", "identity"]
