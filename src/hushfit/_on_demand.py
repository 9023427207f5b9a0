"""Names of a package that are imported when they are used."""

import ast
import inspect
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def on_demand(package: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package whose modules are imported when one of their names is used.

    Commands that only read a schema then wait for no compiler. The names are those that the package
    imports under ``if TYPE_CHECKING``, so that one list serves the type checker and the
    interpreter. It is read from the source of the package, which has to be installed.

    Parameters
    ----------
    package : str

    Returns
    -------
    callable
    """

    @cache
    def module_of_name() -> dict[str, str]:
        return imports_for_types(inspect.getsource(sys.modules[package]))

    def __getattr__(name: str) -> Any:
        # The interpreter asks for some names of its own, such as __path__ of what is no package.
        module = None if name.startswith("__") else module_of_name().get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(module), name)

    return __getattr__


def imports_for_types(source: str) -> dict[str, str]:
    """The module of each name that a source imports under ``if TYPE_CHECKING``.

    Parameters
    ----------
    source : str

    Returns
    -------
    dict of str to str
    """
    return {
        alias.name: str(node.module)
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
