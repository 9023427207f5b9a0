"""A query: an exact answer about the rows, and its proved sensitivity."""

import math
from typing import ClassVar, Protocol

from hushfit._typing import BoolVector, IntVector, Vector
from hushfit.data import DataSource
from hushfit.errors import InvalidArgument
from hushfit.privacy import Relation
from hushfit.problem import Problem


class Query(Protocol):
    """A function of the rows with a proved sensitivity, answered by the curator. Its proof is a
    page of docs/proofs.
    """

    sampled: ClassVar[bool]
    """Whether it answers over the given rows alone and its proof covers sampled batches. Poisson
    batches need a sensitivity under replace-one of twice its radius.
    """

    made_for: ClassVar[str | None]
    """The only mechanism that may answer it, as written in code; None if the proof is for Gaussian
    noise on the answer.
    """

    @staticmethod
    def coordinates(problem: Problem) -> int:
        """Upper bound on the noise values drawn for one answer; called before there is a query, to
        compute the reserve for discrete noise.
        """

    @property
    def problem(self) -> Problem | None:
        """The problem that its bounds assume, above all its number of rows; None if they hold for
        every table.
        """

    @property
    def size(self) -> int:
        """Number of coordinates of the answer."""

    @property
    def doubled(self) -> BoolVector | None:
        """Coordinates that represent two equal ones, and so get half the variance; None if there
        are none.
        """

    def __call__(self, source: DataSource, units: IntVector | None) -> Vector:
        """The exact answer over all records, or over those at ``rows``."""

    def radius(self) -> float:
        """Bound on the contribution of one record, in the norm that counts doubled coordinates
        twice.
        """

    def sensitivity(self, relation: Relation) -> float:
        """Bound on the distance between the answers on neighbouring tables, in the same norm."""


def three_weight_arrays(problem: Problem) -> int:
    """Coordinates of queries that answer with up to three arrays of the shape of the weights."""
    return 3 * math.prod(problem.shape)


def refuse_batch(query: Query, units: IntVector | None) -> None:
    """For queries whose proof covers all records only."""
    if units is not None:
        raise InvalidArgument(
            f"{type(query).__name__} is answered over all rows, not over a sampled batch. Use "
            "FullBatch()."
        )
