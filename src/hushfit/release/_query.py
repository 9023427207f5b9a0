"""A query: an exact answer about the rows, and a proved bound on how far one record can move it."""

from typing import ClassVar, Protocol

from hushfit._typing import BoolVector, IntVector, Vector
from hushfit.data import DataSource
from hushfit.errors import InvalidArgument
from hushfit.privacy import Relation


class Query(Protocol):
    """What the curator answers. The proof of each query is a page of docs/proofs."""

    sampled: ClassVar[bool]
    """Whether the proof covers sampled batches: its sensitivity under replace-one must be twice its radius."""

    @property
    def size(self) -> int:
        """Number of coordinates of the answer."""

    @property
    def doubled(self) -> BoolVector | None:
        """Coordinates that stand for two equal ones, and so get half the variance; None when there are none."""

    def __call__(self, source: DataSource, rows: IntVector | None) -> Vector:
        """The exact answer over all records, or over those at ``rows``."""

    def radius(self) -> float:
        """Bound on what one record contributes, in the norm that counts doubled coordinates twice."""

    def sensitivity(self, relation: Relation) -> float:
        """Bound on the distance between the answers on neighbouring tables, in the same norm."""


def refuse_batch(query: Query, rows: IntVector | None) -> None:
    """For queries whose proof covers all records only."""
    if rows is not None:
        raise InvalidArgument(f"{type(query).__name__} is answered over all rows, not over a sampled batch. Use FullBatch().")
