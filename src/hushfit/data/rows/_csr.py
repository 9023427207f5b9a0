"""Compressed sparse rows in their canonical form."""

from typing import Any

from hushfit.errors import InvalidArgument
from hushfit.kernels import rows as row_kernels


def canonical(X: Any) -> Any:
    """The same sparse rows with increasing indices, each once: a duplicate index would make its
    record too long.

    scipy remembers whether a matrix is in this form and can be wrong about it after an edit in
    place, so it is checked.
    """
    if row_kernels.is_canonical_csr(X.indices, X.indptr, X.shape[1]):
        return X
    tidy = type(X)((X.data.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
    tidy.has_canonical_format = tidy.has_sorted_indices = False
    tidy.sum_duplicates()
    if not row_kernels.is_canonical_csr(tidy.indices, tidy.indptr, tidy.shape[1]):
        raise InvalidArgument(
            "X is not a valid CSR matrix: it has an index outside its columns. Build it again."
        )
    return tidy
