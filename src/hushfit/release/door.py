"""The interface between solvers and rows: declared queries in, noisy answers out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hushfit._typing import Vector
from hushfit.data import PublicRows
from hushfit.privacy import Relation
from hushfit.release.mechanisms import Priced
from hushfit.release.query import Query


@dataclass(frozen=True, eq=False)
class Released:
    """One noisy answer: public from the moment it exists.

    ``query`` is None for an answer that was read from a checkpoint or journal.
    """

    name: str
    answer: Vector
    query: Query | None = None


class Door(Protocol):
    """Interface through which solvers release queries. A curator implements it, and so does an
    object that replays or sums the answers of curators.

    Every answer has passed a privacy mechanism, so a solver is post-processing.
    """

    @property
    def relation(self) -> Relation:
        """The adjacency relation of the guarantee."""

    @property
    def transcript(self) -> Sequence[Released]:
        """All answers so far, oldest first."""

    @property
    def public_rows(self) -> PublicRows | None:
        """The features of all rows, without labels, where the relation takes them as public; None
        under every other relation.
        """

    def noise_multiplier(self, name: str) -> float:
        """Noise multiplier (noise scale over sensitivity) of releases under this name; public."""

    def affords(self, name: str, query: Priced) -> bool:
        """Whether an adaptive run has budget left for this release; public."""

    def release(self, name: str, query: Query) -> Vector:
        """The noisy answer to a declared query."""
