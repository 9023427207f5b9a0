"""Compilation of loops, with machine code cached on disk where possible.

The compiler is loaded when a loop is first called: what plans, prices and reads schemas needs no
compiled code, and numba takes half a second to be imported.
"""

import gc
from collections.abc import Callable
from functools import cache, update_wrapper
from threading import RLock
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
_MAKING = RLock()  # two threads that made the same loop would compile it twice


class Later:
    """What numba makes of a function, made when it is first used.

    Parameters
    ----------
    make : function
        Of ``function``.
    function : function
    """

    def __init__(self, make: Callable[[Any], Any], function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self._make, self._made = make, None

    def _get(self) -> Any:
        with _MAKING:
            if self._made is None:
                _pause_collector()
                self._made = self._make(self.__wrapped__)
            return self._made

    def __call__(self, *args: Any) -> Any:
        return (self._made or self._get())(*args)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # questions of the interpreter, such as how to copy this
            raise AttributeError(name)
        return getattr(self._get(), name)


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Numba's ``njit`` with its machine code cached on disk, or without a cache where nothing can
    be written.

    A service may have write access neither to the package folder nor to a home folder, and numba
    refuses to define a cached function then. Nobody calls loops from C: without an entry for it
    they are compiled faster.
    """

    def make(function: Callable[..., Any]) -> Any:
        from numba import njit

        try:
            return njit(cache=True, no_cfunc_wrapper=True, **options)(function)
        except RuntimeError:  # there is no folder that this user may write to
            return njit(no_cfunc_wrapper=True, **options)(function)

    return lambda function: Later(make, function)


def inlined(function: _Function) -> _Function:
    """A part of compiled loops, which is written into each of them before types are inferred.

    A function of its own would be compiled on its own for each of its types and for each literal
    argument, with an entry for the interpreter.
    """

    def make(function: Callable[..., Any]) -> Any:
        from numba import njit

        return njit(inline="always", nogil=True, error_model="numpy")(function)

    part: Any = Later(make, function)
    return part  # type: ignore[no-any-return]


@cache
def _pause_collector() -> None:
    """Pause the garbage collector whenever a loop is compiled.

    The compiler makes so many objects that the collector would walk through those of all loaded
    libraries again and again: a sixth of the time of a first fit.
    """
    from numba.core import event

    class Pause(event.Listener):  # type: ignore[misc]
        """Numba compiles in one thread at a time, a loop inside another."""

        depth, was_on = 0, False

        def on_start(self, event: Any) -> None:
            if self.depth == 0:
                self.was_on = gc.isenabled()
                gc.disable()
            self.depth += 1

        def on_end(self, event: Any) -> None:
            self.depth -= 1
            if self.depth == 0 and self.was_on:
                gc.enable()

    event.register("numba:compile", Pause())
