"""What every public feature map promises."""

from typing import Any, Protocol, runtime_checkable

from hushfit._typing import AnyArray, Matrix


@runtime_checkable
class FeatureMap(Protocol):
    """A public map from rows to rows: deterministic, each row by itself, learnt from no row.

    Since it is applied to each row by itself, neighbouring tables are mapped to neighbouring
    tables, and every guarantee about mapped rows holds for the rows themselves. It sees values
    after ``feature_bounds`` or a schema: numbers in [0, 1].
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

    def transform(self, X: AnyArray) -> Matrix:
        """Map the rows of an array, as a new C-ordered float64 array."""

    def transform_sparse(self, X: Any) -> Any:
        """Map the rows of a CSR matrix with increasing indices, as a new one."""
