"""Names of a package that are imported when they are used."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def on_demand(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package whose modules are imported when one of their names is used.

    Commands that only read a schema then wait for no compiler.

    Parameters
    ----------
    package : str
    names : mapping of str to sequence of str
        Full names of modules, each with the names that the package takes from it.

    Returns
    -------
    callable
    """
    module_of = {name: module for module, own in names.items() for name in own}

    def __getattr__(name: str) -> Any:
        if name in module_of:
            return getattr(import_module(module_of[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return __getattr__
