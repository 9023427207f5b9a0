"""Every public name is documented, with an example that runs."""

import doctest
import inspect
import re
import sys
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from hushfit.errors import (
    InsecureNoiseWarning,
    MissingBoundsWarning,
    PrivacyLeakWarning,
    TooLittleDataWarning,
    WeakGuaranteeWarning,
)

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "_ext"))

from public_names import PUBLIC, is_documented, public_names  # noqa: E402

QUIET = (
    InsecureNoiseWarning,
    MissingBoundsWarning,
    PrivacyLeakWarning,
    TooLittleDataWarning,
    WeakGuaranteeWarning,
)
# Packages behind these warn about themselves.
FOREIGN = {"hushfit.dask", "hushfit.mlflow", "hushfit.torch"}
NAMES = sorted(public_names())
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def the(module, name):
    return getattr(import_module(module), name)


@pytest.mark.parametrize(("module", "name"), NAMES, ids=lambda part: part)
def test_a_public_name_has_a_sentence_and_an_example(module, name):
    thing = the(module, name)
    assert inspect.getdoc(thing), f"{module}.{name} has no docstring."
    assert ">>>" in thing.__doc__, (
        f"{module}.{name} has no example. Give its docstring a section Examples that runs in "
        "milliseconds."
    )
    assert "+SKIP" not in thing.__doc__, f"{module}.{name}: an example must run."


@pytest.mark.parametrize(("module", "name"), NAMES, ids=lambda part: part)
def test_the_example_of_a_public_name_runs(module, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(
        inspect.getdoc(the(module, name)), {}, f"{module}.{name}", None, 0
    )
    report = []
    with warnings.catch_warnings(), np.printoptions(legacy=False):
        for category in (Warning,) if module in FOREIGN else QUIET:
            warnings.simplefilter("ignore", category)
        doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.append)
    assert not report, "".join(report)


def test_what_a_user_imports_from_hushfit_is_public():
    hushfit = import_module("hushfit")
    assert {*hushfit.__all__} - {"__version__"} == {*PUBLIC["hushfit"].split()}


@pytest.mark.parametrize("module", PUBLIC)
def test_every_export_of_a_public_module_has_a_sentence(module):
    home = import_module(module)
    exported = getattr(home, "__all__", PUBLIC[module].split())
    assert {*PUBLIC[module].split()} <= {*exported}
    bare = [
        name
        for name in exported
        if is_documented(getattr(home, name)) and not inspect.getdoc(getattr(home, name))
    ]
    assert not bare, f"{module}: write a docstring for {bare}."


IMPORT = re.compile(r"^from (hushfit[\w.]*) import (\([^)]*\)|.*)", re.M)
SHOWN = [
    ROOT / "README.md",
    *(path for path in DOCS.rglob("*.md") if "gallery" not in path.parts),
    *(ROOT / "examples" / "gallery").glob("*.py"),
]


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: path.stem)
def test_what_a_page_imports_is_in_the_reference(path):
    """By its name: some modules pass on names of another one."""
    public = {name for _, name in NAMES} | {module.rpartition(".")[2] for module in PUBLIC}
    missing = [
        f"{module}.{name}"
        for module, names in IMPORT.findall(path.read_text(encoding="utf-8"))
        for name in re.findall(r"\w+", re.sub(r"#.*| as \w+", "", names))
        if name not in public and is_documented(getattr(import_module(module), name))
    ]
    assert not missing, f"Add {missing} to docs/_ext/public_names.py."


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_module_has_a_page(module):
    page = DOCS / "reference" / "api" / f"{module.replace('.', '-')}.md"
    assert f".. public-names:: {module}\n" in page.read_text(encoding="utf-8")
    assert f"api/{page.stem}" in (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
