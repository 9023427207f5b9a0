"""Public ranges of columns: values are clipped to them and mapped, each by itself."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hushfit._arrays import keep_read_only
from hushfit._typing import AnyArray, Matrix, Vector
from hushfit.data.rows._csr import canonical
from hushfit.data.rows._persons import places
from hushfit.data.rows._protocols import FEWEST_BLOCK_ROWS
from hushfit.errors import InvalidArgument
from hushfit.kernels import rows as row_kernels
from hushfit.kernels.threads import parallel_map

# Coefficients in the units of a column are divided by the width of its range.
_NARROWEST = 1e-290


@dataclass(frozen=True)
class FeatureBounds:
    """Public range of every column; values are clipped to it and mapped to [0, 1]."""

    low: Vector
    high: Vector

    def __post_init__(self) -> None:
        # Record lengths were computed with these bounds: with others they could exceed one.
        keep_read_only(self, "low", "high")

    @classmethod
    def parse(cls, bounds: Any, n_features: int) -> "FeatureBounds":
        """From ``(low, high)``, each a number or one number per column, or from one pair per
        column.

        Of two columns, a list of tuples has one pair per column, and a tuple of lists or arrays
        has the two ends. Other forms are refused if they could be read either way.
        """
        try:
            array = np.asarray(bounds, dtype=np.float64) if _is_rectangular(bounds) else None
            pair = bounds
            if array is not None and array.shape == (n_features, 2):
                pair = array.T if n_features != 2 or _is_of_columns(bounds, array) else bounds
            low, high = (
                np.broadcast_to(np.asarray(end, dtype=np.float64), n_features).copy()
                for end in pair
            )
        except InvalidArgument:
            raise
        except (TypeError, ValueError, OverflowError):
            raise InvalidArgument(
                "feature_bounds must be (low, high), each a number or one number for each of the "
                f"{n_features} columns; "
                f"got {bounds!r}."
            ) from None
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            j = int(np.flatnonzero(~(np.isfinite(low) & np.isfinite(high)))[0])
            raise InvalidArgument(
                f"feature_bounds of column {j} must be finite, not ({low[j]:g}, {high[j]:g}). "
                "Write down the range you know "
                "without looking at the rows."
            )
        if not np.isfinite(high - low).all():
            raise InvalidArgument(
                "feature_bounds are so far apart that their difference overflows. Give the range "
                "you expect."
            )
        wrong = np.flatnonzero(low >= high)
        if len(wrong):
            j = int(wrong[0])
            raise InvalidArgument(
                f"feature_bounds of column {j} are reversed or empty: low={low[j]:g}, "
                f"high={high[j]:g}. Give low < high."
            )
        narrow = np.flatnonzero(high - low < _NARROWEST)
        if len(narrow):
            j = int(narrow[0])
            raise InvalidArgument(
                f"feature_bounds of column {j} are {high[j] - low[j]:g} apart: coefficients of the "
                f"column would overflow. Give ranges of at least {_NARROWEST:g}."
            )
        return cls(low, high)

    @staticmethod
    def stored(bounds: Any, n_features: int) -> Any:
        """The same bounds in a form that lists of lists keep: the two ends, of two columns."""
        if n_features != 2 or not _is_rectangular(bounds) or np.ndim(bounds) < 2:
            return bounds
        found = FeatureBounds.parse(bounds, n_features)
        return found.low.tolist(), found.high.tolist()

    @property
    def origin(self) -> Vector:
        """What is mapped to 0."""
        return self.low

    @property
    def width(self) -> Vector:
        """What a step of one stands for."""
        return np.asarray(self.high - self.low)

    def apply(self, X: AnyArray) -> Matrix:
        """Clip and map to [0, 1], as a new float64 array."""
        floating = isinstance(X, np.ndarray) and X.dtype in (np.float32, np.float64)
        given = np.ascontiguousarray(X, None if floating else np.float64)
        mapped = np.empty(given.shape)
        row_kernels.clip_and_map(given, self.low, self.high, mapped)
        return mapped

    def apply_sparse(self, X: Any) -> Any:
        """The same for a CSR matrix, whose zeros must stay zeros; shares its indices."""
        if np.any(self.low != 0.0):
            j = int(np.flatnonzero(self.low)[0])
            raise InvalidArgument(
                f"feature_bounds of column {j} start at {self.low[j]:g}, but a sparse matrix needs "
                "ranges "
                "that start at 0, or its zeros would not stay zeros. Shift the column, or pass a "
                "dense array."
            )
        column_high = self.high[X.indices]
        values = np.clip(X.data, 0.0, column_high, dtype=np.float64) / column_high
        return type(X)((values, X.indices, X.indptr), shape=X.shape)

    def apply_any(self, X: Any) -> Any:
        """The same for an array or a CSR matrix."""
        return self.apply_sparse(X) if hasattr(X, "indptr") else self.apply(X)


@dataclass(frozen=True)
class SignedBounds:
    """Public range of every column; values are clipped to it and mapped into [-1, 1].

    A column in [0, 1], such as an indicator, stays as it is: around 1/2 it would be longer. So do
    the zeros of sparse rows, whose columns are divided by the larger end of their range.

    Parameters
    ----------
    low, high : arrays, one entry for each column
    sparse : bool
        Whether zeros must stay zeros.
    """

    low: Vector
    high: Vector
    sparse: bool = False

    def __post_init__(self) -> None:
        keep_read_only(self, "low", "high")

    @classmethod
    def parse(cls, bounds: Any, n_features: int, sparse: bool = False) -> "SignedBounds":
        """From what `FeatureBounds.parse` takes; zeros of sparse rows must be in the range."""
        found = FeatureBounds.parse(bounds, n_features)
        outside = np.flatnonzero((found.low > 0) | (found.high < 0))
        if sparse and len(outside):
            j = int(outside[0])
            raise InvalidArgument(
                f"feature_bounds of column {j} are ({found.low[j]:g}, {found.high[j]:g}), but the "
                "zeros of a sparse matrix are values. Give a range with 0 in it, or pass a dense "
                "array."
            )
        return cls(found.low, found.high, sparse)

    @cached_property
    def origin(self) -> Vector:
        """What is mapped to 0."""
        unshifted = ((self.low == 0.0) & (self.high == 1.0)) | self.sparse
        return np.where(unshifted, 0.0, self.low + (self.high - self.low) / 2)

    @cached_property
    def width(self) -> Vector:
        """What a step of one stands for."""
        widest: Vector = np.maximum(self.high - self.origin, self.origin - self.low)
        return widest

    def apply(self, X: Any, dtype: type[np.floating[Any]] | None = None) -> Any:
        """Clip and map into [-1, 1]: a new array or CSR matrix, entry by entry, of type ``dtype``
        (that of X if None).
        """
        dtype = X.dtype if dtype is None else dtype
        if hasattr(X, "indptr"):
            X = canonical(X)  # a value that is stored in parts is clipped as a whole
            ends = self.low[X.indices], self.high[X.indices]
            values = np.clip(X.data, *ends) / self.width[X.indices]
            kept = np.clip(values, -1.0, 1.0).astype(dtype)
            return type(X)((kept, X.indices, X.indptr), shape=X.shape)
        return self._mapped(X, dtype)

    def _mapped(self, X: AnyArray, dtype: Any) -> AnyArray:
        mapped, ends = np.empty(X.shape, dtype), (self.low.copy(), self.high.copy())

        def fill(place: slice) -> None:
            part = np.ascontiguousarray(X[place])
            row_kernels.signed_dense(part, *ends, self.origin, self.width, mapped[place])

        list(parallel_map(fill, places(len(X), FEWEST_BLOCK_ROWS)))
        return mapped


def _is_of_columns(bounds: Any, array: Matrix) -> bool:
    """Whether two pairs of numbers are those of two columns, and not the two ends of both."""
    if isinstance(bounds, list) and all(isinstance(part, tuple) for part in bounds):
        return True
    if isinstance(bounds, tuple) and not any(isinstance(part, tuple) for part in bounds):
        return False
    of_columns, of_ends = (bool(np.all(low < high)) for low, high in (array.T, array))
    if of_columns and of_ends and not np.array_equal(array, array.T):
        (a, b), (c, d) = array.tolist()
        raise InvalidArgument(
            f"feature_bounds={bounds!r} of two columns can be read in two ways. Give a list of "
            f"tuples for one range per column, [({a:g}, {b:g}), ({c:g}, {d:g})], or a tuple of "
            f"lists for the lowest and the highest values, ([{a:g}, {b:g}], [{c:g}, {d:g}])."
        )
    return of_columns


def _is_rectangular(bounds: Any) -> bool:
    return (
        isinstance(bounds, np.ndarray | list | tuple)
        and len({np.size(part) for part in bounds}) == 1
    )
