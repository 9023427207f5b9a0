"""Importing is cheap, and a fit loads only what it uses."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

import hushfit
from hushfit._on_demand import imports_for_types

SRC = Path(hushfit.__file__).parents[1]
MODULES = {
    ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(Path(hushfit.__file__).parent.rglob("*.py"))
}


@cache
def tree_of(path):
    """The syntax tree of a module."""
    return ast.parse(path.read_text(encoding="utf-8"))


HEAVY = ["numpy", "scipy", "sklearn", "numba", "pandas", "polars", "opendp", "dp_accounting"]


def loaded_after(script, names):
    """Which of the modules are loaded once a script has run in a fresh interpreter."""
    report = f"\nimport sys\nprint([name for name in {names!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script + report],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return eval(done.stdout)


def test_importing_the_library_loads_nothing_heavy():
    assert loaded_after("import hushfit; hushfit.__version__; dir(hushfit)", HEAVY) == []


FITS = """
import numpy as np
from hushfit import Ledger, PrivateLinearSVC, PrivateLogisticRegression
rng = np.random.default_rng(0)
X, y = rng.normal(size=(200, 3)), np.tile([0, 1], 100)
for Estimator in (PrivateLinearSVC, PrivateLogisticRegression):
    for settings in ({}, {"penalty": "l1"}, {"solver": "proximal-gd"}):
        Estimator(classes=[0, 1], ledger=Ledger(2.0, 1e-6), **settings).fit(X, y).privacy_.to_json()
"""


def test_gaussian_fits_need_neither_accountant_nor_opendp():
    assert loaded_after(FITS, ["dp_accounting", "opendp"]) == []


def test_every_public_name_is_listed_and_there():
    for name in hushfit.__all__:
        assert name in dir(hushfit)
        assert getattr(hushfit, name) is not None


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'magic'"):
        hushfit.magic  # noqa: B018


PACKAGES = sorted(
    module
    for module, path in MODULES.items()
    if path.name == "__init__.py" and "= on_demand(" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("package", PACKAGES)
def test_names_imported_on_demand_are_those_of_the_package(package):
    module = import_module(package)
    on_demand = imports_for_types(MODULES[package].read_text(encoding="utf-8"))
    assert on_demand.keys() <= {*module.__all__}
    for name, home in on_demand.items():
        assert getattr(module, name) is getattr(import_module(home), name)
    assert not hasattr(module, "magic")


def test_only_imports_for_types_are_made_on_demand():
    source = (
        "from a import A\nif TYPE_CHECKING:\n    from b import B, C\nelse:\n    from d import D\n"
    )
    assert imports_for_types(source) == {"B": "b", "C": "b"}


def test_the_command_line_runs_as_a_module():
    said = subprocess.run(
        [sys.executable, "-m", "hushfit", "--version"], capture_output=True, text=True, check=True
    )
    assert hushfit.__version__ in said.stdout


def imported_when_loaded(tree):
    """Import statements that run with the module: not those of functions, nor those for types."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.stmt | ast.ExceptHandler) and not is_left_out(node):
            yield from imported_when_loaded(node)


def is_left_out(statement):
    """Whether a statement does not run with the module: a function, or imports for types."""
    return isinstance(statement, ast.FunctionDef) or (
        isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"
    )


def modules_named(nodes):
    """Modules of the library that import statements name; a name in a package stands for it."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def private_imports(module, path):
    """Private modules of packages that the module is not in."""
    for name in modules_named(ast.walk(tree_of(path))):
        package, _, rest = name.partition("._")
        if name in MODULES and rest and not f"{module}.".startswith(f"{package}."):
            yield name


def test_no_module_imports_a_private_module_of_another_package():
    found = {
        module: seen
        for module, path in MODULES.items()
        if (seen := [*private_imports(module, path)])
    }
    assert not found, (
        f"Let the package export the name in its __init__.py, and import it from there: {found}"
    )


def test_a_private_import_is_found(tmp_path):
    file = tmp_path / "_mine.py"
    file.write_text("from hushfit.losses._loss import Loss\nfrom hushfit._typing import Vector\n")
    assert list(private_imports("hushfit.audit._mine", file)) == ["hushfit.losses._loss"]
    assert list(private_imports("hushfit.losses._mine", file)) == []


def cycle_in(graph):
    """Modules that import each other in a circle, if there are any."""
    left = {module: set(needed) & set(graph) for module, needed in graph.items()}
    while free := [module for module, needed in left.items() if not needed & set(left)]:
        for module in free:
            del left[module]
    return sorted(left)


def test_no_modules_import_each_other_when_they_are_loaded():
    needed = {
        module: {*modules_named(imported_when_loaded(tree_of(path)))}
        for module, path in MODULES.items()
    }
    assert cycle_in(needed) == []
    assert cycle_in({"a": {"b"}, "b": {"a"}, "c": set()}) == ["a", "b"]


def test_a_package_says_a_line_about_everything_in_it():
    for module, path in MODULES.items():
        if path.name != "__init__.py" or module == "hushfit":
            continue
        tree = tree_of(path)
        said = {line.split()[0] for line in (ast.get_docstring(tree) or "").split("\n") if line}
        folders = {
            f"{home.name}/" for home in path.parent.iterdir() if (home / "__init__.py").is_file()
        }
        names = {
            alias.name
            for node in tree.body
            if isinstance(node, ast.ImportFrom) and node.module.rpartition(".")[0] == module
            if MODULES[node.module].name != "__init__.py"  # a folder lists its own
            for alias in node.names
        }
        missing = sorted((folders | names) - said)
        assert not missing, (
            f"{module} exports {missing}. Say in the docstring of its __init__.py, in a line each, "
            "what they are."
        )


ROOT = Path(__file__).parents[1]


def folders_of(line):
    """Folders and modules of the library that a cell of the page names."""
    return [name.strip("/").removesuffix(".py") for name in re.findall(r"`(.+?)`", line)]


def test_the_table_of_folders_has_the_layers_of_the_linter():
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = [re.findall(r"hushfit\.(\w+)", layer) for layer in linter["contracts"][0]["layers"]]
    height = {name: k for k, layer in enumerate(layers) for name in layer}
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.split("| folder | what it is |")[1].split("\n\n")[0].splitlines()[2:]
    rows = [folders_of(line.split("|")[1]) for line in table]
    named = {name for row in rows for name in row}
    assert {name for name in height if not name.startswith("_")} - named == {"errors"}
    heights = [{height[name] for name in row} for row in rows]
    assert all(max(above) < min(below) for above, below in pairwise(heights))
