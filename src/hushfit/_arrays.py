"""Read-only arrays, whose values stay valid, and symmetric matrices."""

from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_Scalar = TypeVar("_Scalar", bound=np.generic)


def read_only(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """A copy that cannot be changed, neither through itself nor through the array it came from."""
    kept = array.copy()
    kept.setflags(write=False)
    return kept


def keep_read_only(instance: Any, *names: str) -> None:
    """Replace array fields of a frozen instance by read-only copies."""
    for name in names:
        object.__setattr__(instance, name, read_only(getattr(instance, name)))


def symmetric(triangle: NDArray[np.float64], d: int) -> NDArray[np.float64]:
    """The symmetric matrix of an upper triangle, row by row."""
    return triangle[_places_in_triangle(d)]


@lru_cache(maxsize=16)
def _places_in_triangle(d: int) -> NDArray[np.intp]:
    """Where the entries of a symmetric matrix are in its upper triangle."""
    places = np.zeros((d, d), dtype=np.intp)
    row, column = np.triu_indices(d)
    places[row, column] = places[column, row] = np.arange(len(row))
    return read_only(places)
