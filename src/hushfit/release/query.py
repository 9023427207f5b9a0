"""A query: an exact answer about the rows, and its proved sensitivity."""

import math
from typing import Any, ClassVar, Protocol

from hushfit._typing import BoolVector, IntVector, Vector
from hushfit.data import DataSource, RecordScaling, proved_scalings
from hushfit.errors import InvalidArgument, UnsupportedRelation
from hushfit.privacy import Relation, labels_only, no_proof_for_labels
from hushfit.problem import Problem
from hushfit.unit import PrivacyUnit

_LEAST, _MOST = 1e-100, 1e100
_KEPT = "Use solver='least-squares' where records keep their lengths, and only there."
# What to do where a query has no proof for the scaling of the records.
_REMEDIES = {
    RecordScaling.UNIT_LENGTH: _KEPT,
    RecordScaling.PUBLIC_LENGTH: "Use scaling='unit', or solver='auto'.",
    RecordScaling.BOUNDED: _KEPT,
}


class Assumed(Protocol):
    """What bounds assume about the table; the curator compares it with the rows it holds."""

    @property
    def n_units(self) -> int: ...

    @property
    def privacy_unit(self) -> PrivacyUnit: ...


class Query(Protocol):
    """A function of the rows with a proved sensitivity, answered by the curator. Its proof is a
    page of docs/proofs.

    It is proved for records of length one unless it states its ``scalings``
    (`hushfit.data.RecordScaling`); `hushfit.data.AT_MOST_ONE` if no record need be as long.
    """

    sampled: ClassVar[bool]
    """Whether it answers over the given rows alone and its proof covers sampled batches. Poisson
    batches need a sensitivity under replace-one of twice its radius.
    """

    for_labels: ClassVar[bool]
    """Whether its proof is for the relations under which labels alone are private. It then has
    none for the others, where features are private too; without it, none for those.
    """

    in_parts: ClassVar[bool]
    """Whether its answer depends on the rows through exact sums alone (`exact_total`), which add up
    over the parts of a table that lies in several places.
    """

    made_for: ClassVar[str | None]
    """The only mechanism that may answer it, as written in code; None if the proof is for Gaussian
    noise on the answer.
    """

    @staticmethod
    def coordinates(problem: Any) -> int:
        """Upper bound on the noise values drawn for one answer; called before there is a query, to
        compute the reserve for discrete noise.
        """

    @property
    def problem(self) -> Assumed | None:
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


def require_relation(kind: type[Query], relation: Relation | str) -> None:
    """Refuse a type of query whose proof is for another kind of relation."""
    if kind.for_labels is labels_only(relation):
        return
    if not kind.for_labels:
        raise no_proof_for_labels(relation)
    raise UnsupportedRelation(
        f"{kind.__name__} takes features as public, so it has no proof under "
        f"{str(Relation.parse(relation))!r}. Use adjacency='label' if features may be known to "
        "everybody, or another solver."
    )


def require_scaling(kind: type[Query], scaling: RecordScaling) -> None:
    """Refuse a type of query whose proof is for records that were scaled in another way."""
    own = proved_scalings(kind)
    if scaling not in own:
        proved = " and ".join(one.value for one in own)
        raise InvalidArgument(
            f"{kind.__name__} is proved for {proved}, but these are {scaling.value}. "
            f"{_REMEDIES[scaling]}"
        )


def refuse_extreme(name: str, value: float) -> None:
    """Refuse a public number that bounds are in proportion to, if its square, or its product with
    numbers of usual size, would leave the range in which floats are precise.

    A bound that underflows to zero bounds nothing, and one infinite entry of an answer shows
    through any noise.
    """
    if not _LEAST <= value <= _MOST:
        raise InvalidArgument(
            f"{name}={value:g} is outside [{_LEAST:g}, {_MOST:g}], where floats are precise enough "
            "for its bounds. Give a number of usual size."
        )


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
