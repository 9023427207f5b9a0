"""Every public name is documented, with an example that runs."""

import doctest
import inspect
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

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS / "_ext"))

from public_names import PUBLIC, is_documented, needs_example, public_names  # noqa: E402

QUIET = (
    InsecureNoiseWarning,
    MissingBoundsWarning,
    PrivacyLeakWarning,
    TooLittleDataWarning,
    WeakGuaranteeWarning,
)
NAMES = sorted(public_names())
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def the(module, name):
    return getattr(import_module(module), name)


@pytest.mark.parametrize(("module", "name"), NAMES, ids=lambda part: part)
def test_a_public_name_has_a_sentence_and_an_example(module, name):
    thing = the(module, name)
    assert inspect.getdoc(thing), f"{module}.{name} has no docstring."
    if needs_example(thing):
        assert ">>>" in thing.__doc__, (
            f"{module}.{name} has no example. Give its docstring a section Examples that runs in "
            "milliseconds."
        )


@pytest.mark.parametrize(
    ("module", "name"),
    [(module, name) for module, name in NAMES if ">>>" in (the(module, name).__doc__ or "")],
    ids=lambda part: part,
)
def test_the_example_of_a_public_name_runs(module, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(
        inspect.getdoc(the(module, name)), {}, f"{module}.{name}", None, 0
    )
    report = []
    with warnings.catch_warnings(), np.printoptions(legacy=False):
        for category in QUIET:
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


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_module_has_a_page(module):
    page = DOCS / "reference" / "api" / f"{module.replace('.', '-')}.md"
    assert f".. public-names:: {module}\n" in page.read_text(encoding="utf-8")
    assert f"api/{page.stem}" in (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
