"""What every public feature map promises."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from hushfit._typing import AnyArray


@runtime_checkable
class FeatureMap(Protocol):
    """A public map from rows to rows: deterministic, each row by itself, learnt from no row.

    Since it is applied to each row by itself, neighbouring tables are mapped to neighbouring
    tables, and every guarantee about mapped rows holds for the rows themselves. It sees values
    after ``feature_bounds`` or a schema: numbers in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.features import FeatureMap, ScatteringMap
    >>> images: FeatureMap = ScatteringMap((28, 28))
    >>> images.n_inputs, images.n_outputs
    (784, 3969)
    """

    @property
    def n_inputs(self) -> int:
        """Columns of a row."""

    @property
    def n_outputs(self) -> int:
        """Columns of a mapped row."""

    @property
    def row_norm(self) -> float:
        """Certified bound on the norm of a mapped row; infinity if there is none.

        Classifiers scale mapped rows to length one and do not rely on it.
        """

    @property
    def rotated(self) -> bool:
        """Whether single outputs mean nothing by themselves, only several together."""

    @property
    def kept(self) -> bool:
        """Whether a row takes long to map, so that mapped rows are computed once and kept in
        memory; other maps are applied whenever a block of rows is read.
        """

    @property
    def reads_text(self) -> bool:
        """Whether columns are texts; numbers otherwise. Mapped rows of texts are kept."""

    def leaves_sparse(self, sparse: bool) -> bool:
        """Whether mapped rows are sparse, given whether rows are."""

    def transform(self, X: AnyArray) -> Any:
        """Map the rows of an array, as a new C-ordered array of floats, or a CSR matrix if it
        leaves dense rows sparse.
        """

    def transform_sparse(self, X: Any) -> Any:
        """Map the rows of a CSR matrix with increasing indices, as a new one, or as an array if it
        leaves sparse rows dense.
        """

    def output_names(self, names: Sequence[str]) -> list[str]:
        """Names of the outputs, given those of the inputs."""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, as in a model file; refused by maps that are code."""
