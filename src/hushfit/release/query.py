"""A query: an exact answer about the rows, and a proved bound on how far one record can move it."""

import math
from typing import ClassVar, Protocol

from hushfit._typing import BoolVector, IntVector, Vector
from hushfit.data import DataSource
from hushfit.errors import InvalidArgument
from hushfit.privacy import Relation
from hushfit.problem import Problem


class Query(Protocol):
    """What the curator answers. The proof of each query is a page of docs/proofs."""

    sampled: ClassVar[bool]
    """Whether it answers over the given rows alone and its proof covers sampled batches. Poisson
    batches need a sensitivity under replace-one of twice its radius.
    """

    made_for: ClassVar[str | None]
    """The mechanism that alone may answer it, as one writes it; None if Gaussian noise on the
    answer is what is proved.
    """

    @staticmethod
    def coordinates(problem: Problem) -> int:
        """At least the numbers that are drawn for one answer; asked before there is a
        query, to set noise aside.
        """

    @property
    def problem(self) -> Problem | None:
        """What its bounds count on, the number of rows first of all; None if they hold for
        every table.
        """

    @property
    def size(self) -> int:
        """Number of coordinates of the answer."""

    @property
    def doubled(self) -> BoolVector | None:
        """Coordinates that stand for two equal ones, and so get half the variance; None when
        there are none.
        """

    def __call__(self, source: DataSource, rows: IntVector | None) -> Vector:
        """The exact answer over all records, or over those at ``rows``."""

    def radius(self) -> float:
        """Bound on what one record contributes, in the norm that counts doubled coordinates
        twice.
        """

    def sensitivity(self, relation: Relation) -> float:
        """Bound on the distance between the answers on neighbouring tables, in the same norm."""


def thrice_the_weights(problem: Problem) -> int:
    """Coordinates of queries that answer with up to three arrays of the shape of the weights."""
    return 3 * math.prod(problem.shape)


def refuse_batch(query: Query, rows: IntVector | None) -> None:
    """For queries whose proof covers all records only."""
    if rows is not None:
        raise InvalidArgument(
            f"{type(query).__name__} is answered over all rows, not over a sampled batch. Use "
            "FullBatch()."
        )
