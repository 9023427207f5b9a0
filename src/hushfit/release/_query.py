"""A query: an exact answer about the rows, and a proved bound on how far one record can move it."""

from typing import Protocol

from hushfit._typing import BoolVector, IntVector, Vector
from hushfit.data import DataSource
from hushfit.privacy import Relation


class Query(Protocol):
    """What the curator answers. The proof of each query is a page of docs/proofs."""

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
