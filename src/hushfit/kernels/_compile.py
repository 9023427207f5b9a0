"""Compilation of loops, with what was compiled kept on disk where there is a place for it."""

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Numba's ``njit`` that keeps its machine code for the next process, or compiles anew where
    nothing can be written.

    A service may own neither the folder of the package nor a home, and numba refuses to define a
    cached function there.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:  # there is no folder that this user may write to
            return njit(**options)(function)

    return decorate
