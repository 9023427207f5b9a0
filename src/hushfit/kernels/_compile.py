"""Compilation of loops, with machine code cached on disk where possible."""

import gc
from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core import event


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Numba's ``njit`` with its machine code cached on disk, or without a cache where nothing can
    be written.

    A service may have write access neither to the package folder nor to a home folder, and numba
    refuses to define a cached function then. Nobody calls loops from C: without an entry for it
    they are compiled faster.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, no_cfunc_wrapper=True, **options)(function)
        except RuntimeError:  # there is no folder that this user may write to
            return njit(no_cfunc_wrapper=True, **options)(function)

    return decorate


def inlined(function: Callable[..., Any]) -> Any:
    """A part of compiled loops, which is written into each of them before types are inferred.

    A function of its own would be compiled on its own for each of its types and for each literal
    argument, with an entry for the interpreter.
    """
    return njit(inline="always", nogil=True, error_model="numpy")(function)


class _PausedCollector(event.Listener):
    """Pauses the garbage collector while a loop is compiled.

    The compiler makes so many objects that the collector would walk through those of all loaded
    libraries again and again: a sixth of the time of a first fit.
    """

    def __init__(self) -> None:
        self._depth, self._was_on = 0, False

    def on_start(self, event: event.Event) -> None:
        if self._depth == 0:
            self._was_on = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        self._depth -= 1
        if self._depth == 0 and self._was_on:
            gc.enable()


event.register("numba:compile", _PausedCollector())
