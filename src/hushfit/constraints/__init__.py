"""Constraints: what ties the two blocks of an ADMM splitting together."""

from hushfit.constraints._constraint import Constraint, chain, identity

__all__ = ["Constraint", "chain", "identity"]
