"""Bounds on the singular values of a public matrix, and a test of full row rank."""

import warnings
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from hushfit._typing import Matrix

LinearMap: TypeAlias = Any

# With at most so many rows or columns the eigenvalues of the dense Gram matrix of the shorter side
# are computed.
_FEW = 500
# A sparse matrix with at most so many entries, zeros included, is converted to dense to compute its
# rank.
_SMALL = 10**6
_STEPS = 100
# More than the relative rounding error of a sum of squares of a million entries.
_MARGIN = 1 + 1e-10
# Pivots of AA' that are smaller, relative to the largest, count as zero.
_NO_PIVOT = 1e-12


def gram_bound(A: LinearMap) -> float:
    """Upper bound on the largest eigenvalue of A'A: exact up to rounding if A is dense or small."""
    if 0 in A.shape:
        return 0.0
    if not sparse.issparse(A) or min(A.shape) <= _FEW:
        gram = A @ A.T if A.shape[0] < A.shape[1] else A.T @ A
        return _MARGIN * max(float(np.linalg.eigvalsh(_dense(gram))[-1]), 0.0)
    from scipy.sparse.linalg import norm  # here and below: plans need no factors

    return _MARGIN * min(_ratio_bound(abs(A)), float(norm(A.T @ A)))


def _ratio_bound(A: LinearMap) -> float:
    """Bound for a matrix without negative entries, by Collatz and Wielandt.

    For *any* positive v the largest eigenvalue of A'A is at most the largest ratio of an entry of
    A'A v to that of v. At v = 1 this is at most the product of the largest row sum and the largest
    column sum; power iteration improves v.
    """
    v, best = np.ones(A.shape[1]), np.inf
    for _ in range(_STEPS):
        image = A.T @ (A @ v)
        largest = float(image.max())
        if largest == 0.0:
            return 0.0
        best = min(best, float((image / v).max()))
        # Keep vanishing entries of v positive, so that the next ratio is defined.
        v = np.maximum(image / largest, 1e-9)
    return best


def has_full_row_rank(A: LinearMap) -> bool:
    """Whether the rows are linearly independent, with a margin for rounding."""
    rows, columns = A.shape
    if rows > columns:
        return False
    if not sparse.issparse(A) or rows * columns <= _SMALL:
        return bool(np.linalg.matrix_rank(_dense(A)) == rows)
    from scipy.sparse.csgraph import structural_rank

    return bool(structural_rank(A) == rows) and _is_positive(A)


def _is_positive(A: LinearMap) -> bool:
    """Whether no pivot of AA' vanishes; rows are first scaled to norm 1, which does not change the
    rank.
    """
    from scipy.sparse.linalg import MatrixRankWarning, norm, splu

    lengths = norm(A, axis=1)
    if not lengths.all():
        return False
    A = sparse.diags_array(1 / lengths) @ A
    with warnings.catch_warnings():
        warnings.simplefilter("error", MatrixRankWarning)
        try:
            pivots = np.abs(splu(sparse.csc_array(A @ A.T)).U.diagonal())
        except (RuntimeError, MatrixRankWarning):  # SuperLU found it exactly singular
            return False
    return bool(pivots.min() > _NO_PIVOT * pivots.max())


def _dense(matrix: LinearMap) -> Matrix:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)
