"""Planted bugs, and how they are applied and removed."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from hushfit.audit import Check, Finding


@dataclass(frozen=True)
class Mutant:
    """A plausible privacy bug.

    Parameters
    ----------
    name : str
    where : str
        The module that is patched.
    wrong : str
        What is wrong, in one sentence.
    patch : callable
        Returns a context manager that applies the bug.
    caught_by : tuple of str
        Names of checks of the fast audit, each of which must raise an alarm.
    source : str, default=""
        Publication or code in which the bug was found, if any.
    """

    name: str
    where: str
    wrong: str
    patch: Callable[[], AbstractContextManager[Any]]
    caught_by: tuple[str, ...]
    source: str = ""


@contextmanager
def swapped(owner: Any, **attributes: Any) -> Iterator[None]:
    """Replace attributes of a class or module temporarily; new ones are removed afterwards."""
    original = {name: owner.__dict__[name] for name in attributes if name in owner.__dict__}
    for name, value in attributes.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name in attributes:
            setattr(owner, name, original[name]) if name in original else delattr(owner, name)


class Shadow:
    """A module with some of its functions replaced, to be substituted where it is used."""

    def __init__(self, original: Any, **own: Any) -> None:
        self._original, self._own = original, own

    def __getattr__(self, name: str) -> Any:
        return self._own[name] if name in self._own else getattr(self._original, name)


@contextmanager
def together(*patches: AbstractContextManager[Any]) -> Iterator[None]:
    """Several patches that make one bug."""
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """The library with a bug in it; caches are cleared before and after."""
    _clear_caches()
    try:
        with mutant.patch():
            yield
    finally:
        _clear_caches()


def alarms_of(check: Check, seed: int = 0) -> list[Finding]:
    """Failed findings of a check of the audit."""
    return [finding for finding in check.run(seed) if not finding.passed]


def _clear_caches() -> None:
    """Empty every cache of the library."""
    for name, module in list(sys.modules.items()):
        if name.startswith("hushfit"):
            for value in list(vars(module).values()):
                clear = getattr(value, "cache_clear", None)
                if callable(clear):
                    clear()
