"""Documents in lists, without grades: public where grades alone are private."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hushfit._arrays import keep_read_only
from hushfit._typing import AnyArray, IntVector, Matrix, Vector
from hushfit.kernels import lists as kernels
from hushfit.kernels.threads import parallel_map

# Documents that are centred and multiplied at a time: a few megabytes.
_CHUNK_DOCUMENTS = 8_192
# Bound on the relative rounding error of a diameter, and of what a list contributes to a sum.
DIAMETER_SLACK = 1e-9
_UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True, eq=False)
class Documents:
    """The features of documents in lists, used in place: never copied as a whole.

    Parameters
    ----------
    X : C-ordered array of shape (n_documents, n_features), float32 or float64
    starts : int array of shape (n_lists + 1,)
        Where each list starts, and where the last one ends.
    """

    X: AnyArray
    starts: IntVector

    def __post_init__(self) -> None:
        keep_read_only(self, "starts")  # sensitivities depend on it

    @property
    def n_lists(self) -> int:
        return len(self.starts) - 1

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @cached_property
    def lengths(self) -> IntVector:
        """Number of documents of each list."""
        return np.diff(self.starts)

    def evenly_spaced(self, documents: int) -> IntVector:
        """Numbers of evenly spaced lists with about so many documents: all if there are no more."""
        every = max(1, len(self.X) // documents)
        return np.arange(every // 2, self.n_lists, every)

    def subset(self, lists: IntVector) -> "Documents":
        """Some of the lists; the same object if they are all."""
        if len(lists) == self.n_lists:
            return self
        rows = np.concatenate([np.arange(self.starts[j], self.starts[j + 1]) for j in lists])
        starts = np.concatenate([[0], np.cumsum(self.lengths[lists])])
        return Documents(np.ascontiguousarray(self.X[rows]), starts)

    def features_of(self, j: int, *, centred: bool) -> Matrix:
        """The documents of one list, as floats."""
        if centred:
            return self._centred(j, j + 1)
        return np.array(self.X[self.starts[j] : self.starts[j + 1]], dtype=np.float64)

    def differ_in(self, j: int) -> bool:
        """Whether the documents of a list differ in some column."""
        own = self.X[self.starts[j] : self.starts[j + 1]]
        return bool((own != own[:1]).any())

    def within_moment(self, weights: Vector) -> Matrix:
        """Weighted sum over lists of the covariance of their documents."""

        def of_chunk(chunk: tuple[int, int]) -> Matrix:
            first, last = chunk
            F = self._centred(first, last)
            roots = np.sqrt(weights[first:last] / self.lengths[first:last])
            F *= np.repeat(roots, self.lengths[first:last])[:, None]
            return F.T @ F

        total: Matrix = sum(
            parallel_map(of_chunk, self._chunks()), np.zeros((self.n_features, self.n_features))
        )
        return total

    def variances_along(self, B: Matrix) -> Matrix:
        """Variance of the documents of each list (rows) along the columns of ``B``."""
        found = np.empty((self.n_lists, B.shape[1]))

        def of_chunk(chunk: tuple[int, int]) -> None:
            first, last = chunk
            squares = (self._centred(first, last) @ B) ** 2
            ends = self.starts[first:last] - self.starts[first]
            sums = np.add.reduceat(squares, ends)
            found[first:last] = sums / self.lengths[first:last, None]

        list(parallel_map(of_chunk, self._chunks()))
        return found

    def sizes(self, unit: Vector) -> Vector:
        """Root mean square length of the centred documents of each list, columns multiplied by
        ``unit``.
        """
        found = np.empty(self.n_lists)

        def of_chunk(chunk: tuple[int, int]) -> None:
            kernels.list_sizes(self.X, self.starts, *chunk, np.ascontiguousarray(unit), found)

        list(parallel_map(of_chunk, self._chunks()))
        return found

    def diameters(self, B: Matrix) -> Vector:
        """For each list, a bound on the distance between any two of its documents, and between a
        document and their mean, after multiplication by ``B``.
        """
        found, rows = np.empty(self.n_lists), np.linalg.norm(B, axis=1)

        def of_chunk(chunk: tuple[int, int]) -> None:
            first, last = chunk
            F = self._centred(first, last)
            images, sizes = F @ B, np.abs(F) @ rows
            ends = self.starts[first : last + 1] - self.starts[first]
            for j in range(first, last):
                own = slice(ends[j - first], ends[j - first + 1])
                # Products may cancel, and their rounding errors do not: those of both answers and
                # of the two images here.
                operations = 4 * (self.n_features + int(self.lengths[j]) + 4)
                error = operations * _UNIT_ROUNDOFF * float(sizes[own].max())
                found[j] = _diameter(images[own]) + error

        with np.errstate(over="ignore", invalid="ignore"):
            list(parallel_map(of_chunk, self._chunks()))
        # What is too large for floats is infinitely large, and its list gets no weight.
        return np.where(np.isnan(found), np.inf, found) * (1 + DIAMETER_SLACK)

    def log_partition(self, theta: Vector, weights: Vector) -> tuple[float, Vector]:
        """Weighted sum over lists of the log-partition of their scores, relative to the score of
        the mean document, and its gradient.
        """
        weights = np.ascontiguousarray(weights)

        def of_chunk(chunk: tuple[int, int]) -> tuple[float, Vector]:
            gradient = np.empty(self.n_features)
            value = kernels.log_partition(self.X, self.starts, *chunk, weights, theta, gradient)
            return value, gradient

        value, gradient = 0.0, np.zeros(self.n_features)
        for part, slope in parallel_map(of_chunk, self._chunks()):
            value, gradient = value + part, gradient + slope
        return value, gradient

    def _centred(self, first: int, last: int) -> Matrix:
        rows = int(self.starts[last] - self.starts[first])
        F: Matrix = np.empty((rows, self.n_features))
        kernels.centred_lists(self.X, self.starts, first, last, F)
        return F

    def _chunks(self) -> Iterator[tuple[int, int]]:
        """Ranges of lists with some thousand documents each."""
        first = 0
        while first < self.n_lists:
            end = self.starts[first] + _CHUNK_DOCUMENTS
            last = max(first + 1, int(np.searchsorted(self.starts, end, side="right")) - 1)
            yield first, last
            first = last


def _diameter(F: Matrix) -> float:
    largest = float(np.abs(F).max())
    if not 1e-100 < largest < 1e100 and 0.0 < largest < np.inf:  # squares would not be floats
        return largest * _diameter(F / largest)
    squares = np.einsum("ij,ij->i", F, F)
    gram = F @ F.T
    pairs = (squares[:, None] + squares) - 2 * gram
    return float(np.sqrt(max(pairs.max(), squares.max())))
