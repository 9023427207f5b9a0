"""What queries ask of a source of rows, and the sizes of its blocks."""

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np

from hushfit._typing import IntVector, Matrix, Vector
from hushfit.data.rows._persons import Persons
from hushfit.data.rows._public_rows import PublicRows
from hushfit.unit import PrivacyUnit

# Row index of a kernel call in which every row of the block takes part. A sampled batch that
# happens to be empty must not look like this: it has no blocks at all.
ALL_ROWS: IntVector = np.empty(0, dtype=np.int64)
# Both enter the rounding bound of docs/proofs/gradient.md. Blocks that must be copied are the
# smallest ones. The size depends on the number of rows and not on the number of threads, so that
# neither does any answer.
MOST_BLOCK_ROWS = 32_768
FEWEST_BLOCK_ROWS = 4_096
# Used rows of the largest block of persons' rows.
PERSON_BLOCK_ROWS = 2 * FEWEST_BLOCK_ROWS


class Block(Protocol):
    """Some records of a source. ``place`` picks the entries of a per-row vector that belong to
    them.

    Sums (``gradient_sum``, ``difference_sum``, ``drop_sum``) are over the rows of the units that
    the source was asked for, each row weighted by its share. ``second_moment``, ``lengths`` and
    ``margins`` are of all records of the block: only for queries over all rows.
    """

    @property
    def place(self) -> slice | IntVector: ...

    @property
    def shares(self) -> Vector:
        """Weight of each row, or one weight for all. Those of a person's rows add up to at most
        one.
        """

    def gradient_sum(
        self, w: Vector, caps: Vector, code: int, parameter: float, grid: float
    ) -> Vector:
        """Sum of the clipped gradients, each rounded to the grid."""

    def difference_sum(
        self,
        w: Vector,
        v: Vector,
        clip: float,
        bound: float,
        code: int,
        parameter: float,
        grid: float,
    ) -> Vector:
        """Sum of the differences between the clipped gradients at ``w`` and at ``v``, each
        clipped to ``bound`` and rounded.
        """

    def drop_sum(
        self,
        vectors: Vector,
        mixes: Matrix,
        bounds: Vector,
        code: int,
        parameter: float,
        grids: Vector,
    ) -> Vector:
        """Sums of the decreases of the loss from the first mixture of ``vectors`` to each other
        one, each clipped and rounded.
        """

    def second_moment(self, steps: float, factors: Vector | None = None) -> Matrix:
        """Weighted sum of outer products in units of ``steps**-2``: records are multiplied by the
        square roots of their shares, and their entries rounded to ``1 / steps``.

        With ``factors``, one for each record of the block, of the records multiplied by them too.
        """

    def lengths(self, A: Matrix) -> Vector:
        """Norm of ``A`` times each record."""

    def margins(self, w: Vector) -> Vector:
        """Inner product of each record with ``w``; nan for the zero record."""

    def records(self) -> Any:
        """The records themselves, with the intercept's entry last: an array or a CSR matrix."""


@runtime_checkable
class BoundedBlock(Block, Protocol):
    """Some records with bounded entries (`RecordScaling.BOUNDED`), for regression."""

    @property
    def scale(self) -> Vector:
        """1 for each record, 0 for the zero record."""

    def counted_gradient_sum(
        self,
        w: Vector,
        inverse: Vector,
        limits: tuple[float, float],
        code: int,
        parameter: float,
        grid: float,
    ) -> Vector:
        """`gradient_sum`, followed by the weight of the records that were clipped: their slopes to
        ``limits[0]`` times the inverse length of the record, or to ``limits[1]``.
        """

    def centred_lengths(self, inverse: Vector, centre: Vector) -> Vector:
        """Norm of each record after its features were moved by ``-centre`` and multiplied by
        ``inverse``, with a last entry of one; 0 for the zero record. Linear in the number of
        columns, and in that of the stored entries of sparse rows.
        """

    def squares(self) -> Vector:
        """Squared norm of the features of each record; nan for the zero record."""

    def moment_sums(self, factors: Vector, grids: Vector) -> Matrix:
        """Sums of the squares and of the entries of the features times ``factors``, each product
        rounded to its grid: two rows.
        """

    def score_sums(
        self,
        w: Vector,
        A: Matrix,
        code: int,
        parameter: float,
        factors: tuple[float, float],
        grid: float,
    ) -> Vector:
        """Sums of scores, of curvatures times ``factors[0]`` and of outer products of scores times
        ``factors[1]``, in the metric ``A``, each rounded to the grid: see ``kernels/scores.py``.
        """

    def row_scores(self, w: Vector, A: Matrix, code: int, parameter: float) -> Matrix:
        """Score of each row in the metric ``A``, times its share."""


class DataSource(Protocol):
    """Private rows and labels. Only the queries of ``hushfit.release`` read them.

    The number of units is public. If units are persons, the number of rows is not.
    """

    @property
    def n_units(self) -> int:
        """Number of privacy units: rows, or persons."""

    @property
    def privacy_unit(self) -> PrivacyUnit: ...

    @property
    def persons(self) -> Persons | None:
        """The person of each row; None where each row is its own unit."""

    @property
    def n_features(self) -> int: ...

    @property
    def y(self) -> Vector: ...

    @property
    def shares(self) -> Vector:
        """Weight of each row, or one weight for all. Those of a unit's rows add up to at most
        one.
        """

    def row_vector(self) -> Vector:
        """Zeros, one for each row, for queries to fill; where the rows are, in memory or not."""

    def blocks(self, units: IntVector | None = None) -> Iterator[Block]:
        """The records in blocks: all of them, or those of some units."""

    def public_rows(self) -> PublicRows:
        """The records without labels, for relations under which features are public."""


class SumsOverRows(Protocol):
    """What can be added up over the parts of a table; it travels to where they are."""

    def exact_sums(self, source: DataSource, units: IntVector | None) -> Vector:
        """The sums over the rows of one part."""


@runtime_checkable
class InParts(Protocol):
    """A source whose rows lie in several places, so that it has no blocks: only sums come together.

    Parts begin at multiples of the largest block of packed rows. So blocks are those of the same
    table in one place, and with them every bit of a sum and the bound on its rounding.
    """

    def added_up(self, sums: SumsOverRows) -> Vector:
        """Exact sums over all rows."""
