"""Linear constraints between the two blocks of an ADMM splitting."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from hushfit._typing import Vector
from hushfit.constraints._spectrum import gram_bound, has_full_row_rank
from hushfit.errors import InvalidArgument

# A two-dimensional array or a scipy.sparse array: anything with .shape, .T and @.
LinearMap: TypeAlias = Any

_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Constraint:
    r"""The constraint :math:`A x + B z = c`. It is public: nothing in it may come from private rows
    except by a release that was charged for.

    Parameters
    ----------
    A, B : array or scipy.sparse array
        Matrices with as many rows as ``c`` has entries. Sparse ones are stored as CSR arrays, dense
        ones unchanged.
    c : array
        Right-hand side.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.constraints import chain
    >>> chain(3).residual(np.array([1.0, 3.0, 6.0]), np.zeros(2))
    array([2., 3.])
    """

    A: LinearMap
    B: LinearMap
    c: Vector

    def __post_init__(self) -> None:
        object.__setattr__(self, "A", _as_map("A", self.A))
        object.__setattr__(self, "B", _as_map("B", self.B))
        object.__setattr__(self, "c", np.asarray(self.c, dtype=np.float64))
        if self.c.ndim != 1:
            raise InvalidArgument(
                f"c has shape {self.c.shape}. Give a vector with one entry per equation."
            )
        if not self.A.shape[0] == self.B.shape[0] == len(self.c):
            raise InvalidArgument(
                f"A, B and c have {self.A.shape[0]}, {self.B.shape[0]} and {len(self.c)} rows. "
                "Give one row of each per equation."
            )

    def residual(self, x: Vector, z: Vector) -> Vector:
        """Residual of the constraint: ``A x + B z - c``."""
        residual: Vector = self.A @ x + self.B @ z - self.c
        return residual

    @cached_property
    def gram_bound(self) -> float:
        """Upper bound on the largest eigenvalue of A'A, for step sizes.

        It is that eigenvalue up to rounding if A is dense or has at most 500 rows or columns. For
        larger sparse matrices it is close to the eigenvalue for the absolute values of the entries,
        which is the same for graphs without odd cycles (chains, trees, grids) and for entries of
        one sign.
        """
        return gram_bound(self.A)

    @cached_property
    def has_full_row_rank(self) -> bool:
        """Whether the rows of A are linearly independent, with a margin for floating point."""
        return has_full_row_rank(self.A)

    @cached_property
    def z_weight(self) -> float:
        """The b for which B'B is b times the identity.

        With it the z-step of ADMM is a prox: of all ``z``, ``penalty.prox(-B'(A x - c + u) / b, 1 /
        (rho b))`` minimises ``penalty(z) + rho / 2 * ||A x + B z - c + u||^2``. It is 1 where ``z``
        is ``A x``.

        Raises
        ------
        InvalidArgument
            If B'B is not a positive multiple of the identity.
        """
        gram = sparse.csr_array(self.B.T @ self.B)
        weight = float(gram.diagonal().max(initial=0.0))
        excess = abs(gram - weight * sparse.eye_array(gram.shape[0], format="csr")).max()
        if not (weight > 0 and excess <= _ROUNDING * weight):
            raise InvalidArgument(
                f"B of shape {self.B.shape} has columns that are not orthogonal and of equal "
                "norm, so the z-step is not a prox. Make z a copy of the penalised variable, for "
                "instance with hushfit.constraints.generalised."
            )
        return weight


def _as_map(name: str, matrix: LinearMap) -> LinearMap:
    """A CSR array or a dense array of floats; refuse anything but a finite matrix."""
    kept: LinearMap = sparse.csr_array(matrix) if sparse.issparse(matrix) else np.asarray(matrix)
    if kept.ndim != 2:
        raise InvalidArgument(
            f"{name} has shape {kept.shape}. Give a matrix with one row per equation."
        )
    kept = kept.astype(np.float64, copy=False)
    if not np.isfinite(kept.data if sparse.issparse(kept) else kept).all():
        raise InvalidArgument(f"{name} has entries that are NaN or infinite. Give finite numbers.")
    return kept
