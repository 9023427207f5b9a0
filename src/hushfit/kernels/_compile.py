"""Compilation of loops, with machine code cached on disk where possible."""

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Numba's ``njit`` with its machine code cached on disk, or without a cache where nothing can
    be written.

    A service may have write access neither to the package folder nor to a home folder, and numba
    refuses to define a cached function then.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:  # there is no folder that this user may write to
            return njit(**options)(function)

    return decorate
