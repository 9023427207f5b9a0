"""What the singular values of a public matrix are at most, and whether the smallest is zero."""

import warnings
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import structural_rank
from scipy.sparse.linalg import MatrixRankWarning, splu

from hushfit._typing import Matrix

LinearMap: TypeAlias = Any

# With at most so many rows or columns the Gram matrix of the shorter side is made dense and its
# eigenvalues are computed.
_FEW = 500
# A sparse matrix with at most so many entries, zeros included, is made dense to find its rank.
_SMALL = 10**6
_STEPS = 100
# More than rounding can take away from a sum of squares of a million entries.
_MARGIN = 1 + 1e-10
# Pivots of AA' that are smaller, relative to the largest, count as zero.
_NO_PIVOT = 1e-12


def gram_bound(A: LinearMap) -> float:
    """An upper bound of the largest eigenvalue of A'A: exact but for rounding if A is dense or
    small.
    """
    if 0 in A.shape:
        return 0.0
    if not sparse.issparse(A) or min(A.shape) <= _FEW:
        gram = A @ A.T if A.shape[0] < A.shape[1] else A.T @ A
        return _MARGIN * max(float(np.linalg.eigvalsh(_dense(gram))[-1]), 0.0)
    return _MARGIN * min(_ratio_bound(abs(A)), float(sparse.linalg.norm(A.T @ A)))


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
        # Entries of v that die out stay positive, so that the next ratio means something.
        v = np.maximum(image / largest, 1e-9)
    return best


def has_full_row_rank(A: LinearMap) -> bool:
    """Whether the rows are linearly independent, with a margin for rounding."""
    rows, columns = A.shape
    if rows > columns:
        return False
    if not sparse.issparse(A) or rows * columns <= _SMALL:
        return bool(np.linalg.matrix_rank(_dense(A)) == rows)
    return bool(structural_rank(A) == rows) and _is_positive(A)


def _is_positive(A: LinearMap) -> bool:
    """Whether no pivot of AA' vanishes; rows are scaled to length 1 first, which changes no
    rank.
    """
    lengths = sparse.linalg.norm(A, axis=1)
    if not lengths.all():
        return False
    A = sparse.diags_array(1 / lengths) @ A
    with warnings.catch_warnings():
        warnings.simplefilter("error", MatrixRankWarning)
        try:
            pivots = np.abs(splu(sparse.csc_array(A @ A.T)).U.diagonal())
        except (RuntimeError, MatrixRankWarning):  # how SuperLU says "exactly singular"
            return False
    return bool(pivots.min() > _NO_PIVOT * pivots.max())


def _dense(matrix: LinearMap) -> Matrix:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)
