"""What a planted bug is, and how it is put in place and taken out again."""

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
        Returns a context manager that puts the bug in place.
    caught_by : tuple of str
        Names of checks of the trimmed audit, each of which must raise an alarm.
    source : str, default=""
        Where the bug was found in the wild, if it was.
    """

    name: str
    where: str
    wrong: str
    patch: Callable[[], AbstractContextManager[Any]]
    caught_by: tuple[str, ...]
    source: str = ""


@contextmanager
def swapped(owner: Any, **attributes: Any) -> Iterator[None]:
    """Attributes of a class or module, exchanged for a while; what it did not have, it has not
    afterwards.
    """
    honest = {name: owner.__dict__[name] for name in attributes if name in owner.__dict__}
    for name, value in attributes.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name in attributes:
            setattr(owner, name, honest[name]) if name in honest else delattr(owner, name)


class Shadow:
    """A module with some of its functions exchanged, to be put where it is used."""

    def __init__(self, honest: Any, **own: Any) -> None:
        self._honest, self._own = honest, own

    def __getattr__(self, name: str) -> Any:
        return self._own[name] if name in self._own else getattr(self._honest, name)


@contextmanager
def together(*patches: AbstractContextManager[Any]) -> Iterator[None]:
    """Several patches that make one bug."""
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """The library with a bug in it; nothing that was computed with it, or without it, is kept on
    the other side.
    """
    _forget()
    try:
        with mutant.patch():
            yield
    finally:
        _forget()


def alarms_of(check: Check, seed: int = 0) -> list[Finding]:
    """What a check of the audit complains about."""
    return [finding for finding in check.run(seed) if not finding.passed]


def _forget() -> None:
    """Empty every cache of the library."""
    for name, module in list(sys.modules.items()):
        if name.startswith("hushfit"):
            for value in list(vars(module).values()):
                clear = getattr(value, "cache_clear", None)
                if callable(clear):
                    clear()
