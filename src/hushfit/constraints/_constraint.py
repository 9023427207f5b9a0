"""Linear constraints that tie the two blocks of an ADMM splitting together."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument

# A two-dimensional array or a scipy.sparse array: anything with .shape, .T and @.
LinearMap: TypeAlias = Any


@dataclass(frozen=True, eq=False)
class Constraint:
    r"""The constraint :math:`A x + B z = c`.

    Parameters
    ----------
    A, B : array or scipy.sparse array
        Matrices with as many rows as ``c`` has entries.
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
        if not self.A.shape[0] == self.B.shape[0] == len(self.c):
            raise InvalidArgument(
                f"A, B and c have {self.A.shape[0]}, {self.B.shape[0]} and {len(self.c)} rows. "
                "Give one row of each per equation."
            )

    def residual(self, x: Vector, z: Vector) -> Vector:
        """How far ``x`` and ``z`` are from satisfying the constraint: ``A x + B z - c``."""
        residual: Vector = self.A @ x + self.B @ z - self.c
        return residual


def identity(d: int) -> Constraint:
    """Tie ``z`` to ``x`` itself, for penalties on the coefficients.

    Parameters
    ----------
    d : int
        Number of coefficients, at least 1.

    Returns
    -------
    Constraint
        ``x - z = 0``.
    """
    _check_count("d", d, 1)
    return _split(sparse.eye_array(d, format="csr"))


def chain(d: int) -> Constraint:
    """Tie ``z`` to the differences of neighbouring coefficients, for the fused lasso.

    Parameters
    ----------
    d : int
        Number of coefficients, at least 2.

    Returns
    -------
    Constraint
        ``x[i + 1] - x[i] - z[i] = 0`` for every i below ``d - 1``.
    """
    _check_count("d", d, 2)
    return _split(sparse.diags_array([-np.ones(d - 1), np.ones(d - 1)], offsets=[0, 1], shape=(d - 1, d), format="csr"))


def _split(A: LinearMap) -> Constraint:
    """The constraint A x - z = 0."""
    rows = A.shape[0]
    return Constraint(A, -sparse.eye_array(rows, format="csr"), np.zeros(rows))


def _check_count(name: str, value: int, least: int) -> None:
    """Refuse sizes that leave no equation."""
    if value < least:
        raise InvalidArgument(f"{name}={value} leaves no equation. Give at least {least}.")
