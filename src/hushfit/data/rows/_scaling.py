"""How records were scaled before queries see them: each to length one, all by one public length,
or with their lengths kept.

A sensitivity is proved for one scaling. A source and a query that state none are of length one, so
that a query without a proof for other records is never answered over them. For records shorter than
one the proof is docs/proofs/shorter_records.md.
"""

import math
from enum import Enum
from typing import Any, Protocol, runtime_checkable

import numpy as np

from hushfit._typing import Vector

# The square of the intercept's entry in a record with bounded entries.
_CONSTANT_SQUARE = 0.5


class RecordScaling(Enum):
    """What is known of every record without looking at it."""

    UNIT_LENGTH = "records of length one"
    """``[x, 1]`` divided by its length."""
    PUBLIC_LENGTH = "records of length at most one"
    """``[x, 1]`` divided by one public length, or by its own where that is larger."""
    BOUNDED = "records with entries in [-1, 1]"
    """``[x, sqrt(1/2)]`` with every entry of x in [-1, 1]; a record with another entry counts as
    the zero record.
    """

    def constant(self, fit_intercept: bool) -> float:
        """The entry of the intercept in a record, before a record is divided by its length."""
        if not fit_intercept:
            return 0.0
        return math.sqrt(_CONSTANT_SQUARE) if self is RecordScaling.BOUNDED else 1.0

    def limit(self, scale: Vector, length: float) -> None:
        """Reduce factors that make records unit vectors, in place, to those of this scaling."""
        if self is RecordScaling.PUBLIC_LENGTH:
            np.minimum(scale, 1.0 / length, out=scale)


AT_MOST_ONE = (RecordScaling.UNIT_LENGTH, RecordScaling.PUBLIC_LENGTH)
"""The scalings of queries whose proof needs no more than that no record is longer than one."""


@runtime_checkable
class Scaled(Protocol):
    """A source that states the scaling of its records, or a solver that needs one."""

    @property
    def scaling(self) -> RecordScaling: ...


@runtime_checkable
class ProvedForScalings(Protocol):
    """A query, or type of query, that states the scalings that its sensitivity is proved for."""

    @property
    def scalings(self) -> tuple[RecordScaling, ...]: ...


def scaling_of(stated: Any) -> RecordScaling:
    """The scaling of a source's records, or the one that a solver needs."""
    return stated.scaling if isinstance(stated, Scaled) else RecordScaling.UNIT_LENGTH


def proved_scalings(query: Any) -> tuple[RecordScaling, ...]:
    """The scalings that a query, or type of query, is proved for."""
    return query.scalings if isinstance(query, ProvedForScalings) else (RecordScaling.UNIT_LENGTH,)
