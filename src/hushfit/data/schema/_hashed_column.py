"""A label with too many values to list: a public hash sends each to one of a few features."""

import hashlib
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushfit._typing import AnyArray, IntVector, Matrix
from hushfit.data.schema._cells import MISSING_VALUE, label_of, listed
from hushfit.data.schema._checks import refuse_nameless, settle_markers
from hushfit.errors import InvalidArgument
from hushfit.features import InputColumn

_MOST_COLUMNS = 4096


@dataclass(frozen=True)
class HashedColumn:
    """A label whose vocabulary is long or unknown; its encoding is one of ``columns`` indicators.

    Labels with the same hash share an indicator. The hash is public and fixed, so nothing is learnt
    from the rows and nothing is spent.

    Parameters
    ----------
    name : str
        Name of the column in the table.
    columns : int, default=64
        Number of indicators. Missing values have one more.
    missing_values : sequence of str or number, default=()
        Labels that stand for a missing value, such as "?". Empty cells always do.

    Examples
    --------
    >>> from hushfit.data.schema import HashedColumn
    >>> import numpy as np
    >>> HashedColumn("icd", columns=4).codes(np.array(["250.01", "V57", ""])).tolist()
    [3, 2, 4]
    """

    name: str
    columns: int = 64
    missing_values: tuple[str | float, ...] = ()
    kind: ClassVar[str] = "hashed"

    def __post_init__(self) -> None:
        refuse_nameless(self.name)
        settle_markers(self)
        whole = isinstance(self.columns, int) and not isinstance(self.columns, bool)
        if not whole or not 2 <= self.columns <= _MOST_COLUMNS:
            raise InvalidArgument(
                f"column {self.name!r} has columns={self.columns!r}. Give the number of features, "
                f"from 2 to {_MOST_COLUMNS}."
            )

    @property
    def feature_names(self) -> list[str]:
        """One feature per hash, then the one for missing values."""
        return [f"{self.name}#{k}" for k in range(self.columns)] + [f"{self.name}={MISSING_VALUE}"]

    @property
    def widths(self) -> tuple[int, ...]:
        """Features of each word: one word says which of the features is 1."""
        return (self.columns + 1,)

    @property
    def inputs(self) -> list[InputColumn]:
        """Its features as an additive model sees them."""
        return [InputColumn(name, 1) for name in self.feature_names]

    @property
    def stated(self) -> str:
        """What the schema states about it, in words."""
        return f"any label, hashed to {self.columns} features"

    def codes(self, values: AnyArray) -> IntVector:
        """The feature of each value.

        Parameters
        ----------
        values : array of shape (n,)
            Labels; compared as those of categories are.

        Returns
        -------
        codes : int array of shape (n,)
            ``columns`` for missing values.
        """
        missing = {label_of(marker) for marker in ("", None, *self.missing_values)}
        labels = map(label_of, listed(values))
        return np.array(
            [self.columns if label in missing else self._hash(str(label)) for label in labels],
            dtype=np.int64,
        )

    def _hash(self, label: str) -> int:
        digest = hashlib.blake2b(label.encode("utf-8", "replace"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.columns

    def words(self, values: AnyArray) -> list[AnyArray]:
        """The encoded column as one word of a packed row.

        Parameters
        ----------
        values : array of shape (n,)

        Returns
        -------
        list of one array of shape (n,)
            `codes`.
        """
        return [self.codes(values)]

    def encode(self, values: AnyArray) -> Matrix:
        """One row of indicators per value: a single 1, the rest 0.

        Parameters
        ----------
        values : array of shape (n,)

        Returns
        -------
        X : array of shape (n, columns + 1)
        """
        return np.eye(self.columns + 1)[self.codes(values)]
