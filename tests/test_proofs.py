"""Proofs and code name each other: every query, mechanism, price and protocol has a page, and pages
name what exists.

A page of docs/proofs ends with two sections. *In the code* has a line for each module, with names
and, where a proof rests on it, the value of a constant; *Tests* names the tests that would fail if
the page were wrong. Rename one of them, and a test here says which page to mend.
"""

import ast
import dataclasses
import inspect
import pkgutil
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import hushfit
from hushfit.federated import ALGORITHMS
from hushfit.model_selection import PrivateSearchCV
from hushfit.preprocessing import PrivatePipeline, PrivateQuantileScaler, SchemaEncoder
from hushfit.privacy.accounting import _random_stopping as stopping

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    page.name: page.read_text(encoding="utf-8")
    for page in sorted((ROOT / "docs" / "proofs").glob("*.md"))
    if page.name != "index.md"
}
CODE, TESTS = "\n## In the code\n", "\n## Tests\n"
CITED = re.compile(r"docs/proofs/(?:(\w+)|\{([\w,]+)\})\.md")


def number(text):
    base, _, power = text.partition("**")
    return float(base) ** float(power or 1)


def code_lines(page):
    """(module, name or None, value or None) for everything that a page says is in the code."""
    section = PAGES[page].split(CODE)[1].split(TESTS)[0]
    # An item may go on in the next lines.
    for line in re.sub(r"\n +", " ", section).strip().splitlines():
        module, _, names = re.fullmatch(r"- `([\w.]+)`(: (.*))?", line).groups()
        yield module, None, None
        for name, value in re.findall(r"`([\w.]+)`(?: = ([-\w.*]+))?", names or ""):
            yield module, name, value


def resolved(module, name):
    """The object that a name of a module stands for; a field of a dataclass for a field without
    a default.
    """
    found = import_module(module)
    for part in (name or "").split(".") if name else ():
        fields = (
            {field.name: field for field in dataclasses.fields(found)}
            if dataclasses.is_dataclass(found)
            else {}
        )
        if not hasattr(found, part) and part not in fields:
            raise AssertionError(
                f"{module} has no {name}. Was it renamed? Then rename it on the page too."
            )
        found = getattr(found, part) if hasattr(found, part) else fields[part]
    return found


@cache
def names_in(path):
    """Names of the tests in a file."""
    if not (ROOT / path).is_file():
        raise AssertionError(
            f"{path} does not exist. Was it renamed? Then rename it on the page too."
        )
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def require_test(node_id):
    path, _, name = node_id.partition("::")
    if name not in names_in(path):
        raise AssertionError(
            f"{path} has no test {name}. Was it renamed? Then rename it on the page too."
        )


def pages_cited(text):
    return {
        f"{name}.md"
        for one, several in CITED.findall(text or "")
        for name in (one or several).split(",")
    }


def kinds_in(package):
    """Classes that are defined in a package, by their module."""
    for info in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
        module = import_module(info.name)
        for kind in vars(module).values():
            if (
                inspect.isclass(kind)
                and kind.__module__ == module.__name__
                and not getattr(kind, "_is_protocol", False)
            ):
                yield kind


def is_released(kind):
    """A query has a sensitivity; a mechanism has a price and an answer."""
    return not kind.__name__.startswith("_") and (
        hasattr(kind, "sensitivity") or (hasattr(kind, "cost") and hasattr(kind, "answer"))
    )


PROVED = [
    *(kind for kind in kinds_in("hushfit.release") if is_released(kind)),
    *(
        kind
        for kind in kinds_in("hushfit.privacy")
        if re.search(r"(Cost|Filter|Odometer|Sampler)$", kind.__name__)
    ),
    *(
        kind
        for kind in vars(stopping).values()
        if inspect.isclass(kind) and issubclass(kind, stopping.StoppingRule)
    ),
    *(kind if inspect.isclass(kind) else type(kind) for kind in ALGORITHMS.values()),
    PrivateQuantileScaler,
    SchemaEncoder,
    PrivatePipeline,
    PrivateSearchCV,
]


def test_there_is_much_to_prove():
    names = {kind.__name__ for kind in PROVED}
    assert {
        "ClippedGradient",
        "Vocabulary",
        "NoisyCorner",
        "GatedCost",
        "PureCost",
        "SecureSampler",
        "PPADMM",
        "Geometric",
    } <= names
    assert len(PROVED) > 60


@pytest.mark.parametrize("kind", PROVED, ids=lambda kind: kind.__name__)
def test_whatever_needs_a_proof_cites_a_page_that_names_it(kind):
    pages = pages_cited(import_module(kind.__module__).__doc__)
    assert pages, (
        f"{kind.__module__} says in its first lines on no page where {kind.__name__} is proved. "
        "Cite docs/proofs/<page>.md."
    )
    assert pages <= set(PAGES), (
        f"{kind.__module__} cites {sorted(pages - set(PAGES))}, which do not exist."
    )
    named = {
        resolved(module, name)
        for page in pages
        for module, name, _ in code_lines(page)
        if name
        and "." not in name
        and name[0].isupper()
        and inspect.isclass(resolved(module, name))
    }
    assert kind in named, (
        f"None of {sorted(pages)} names {kind.__name__} under 'In the code'. Name it where it is "
        "proved."
    )


@pytest.mark.parametrize("page", PAGES)
def test_a_page_states_assumes_proves_and_closes_with_code_and_tests(page):
    text = PAGES[page]
    assert text.count(CODE) == text.count(TESTS) == 1, (
        f"{page} should close with '## In the code' and '## Tests', once each."
    )
    assert text.index(CODE) < text.index(TESTS)
    assert "\n## " not in text.split(TESTS)[1], f"{page}: nothing should come after '## Tests'."
    for what, words in {
        "statement": r"[Ss]tatement|Theorem",
        "assumptions": r"Assumption",
        "proof": r"[Pp]roof",
    }.items():
        assert re.search(words, text.split(CODE)[0]), f"{page} has no {what}."


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_in_the_code_exists_with_the_value_it_prints(page):
    lines = list(code_lines(page))
    assert any(name for _, name, _ in lines)
    for module, name, value in lines:
        found = resolved(module, name)
        if value:
            assert float(found) == number(value), (
                f"{page} prints {name} = {value}, and {module} has {found!r}."
            )


@pytest.mark.parametrize("page", PAGES)
def test_the_tests_that_a_page_names_exist(page):
    nodes = re.findall(r"`(tests/[\w/]+\.py::\w+)`", PAGES[page])
    assert re.findall(r"`(tests/[\w/]+\.py::\w+)`", PAGES[page].split(TESTS)[1]), (
        f"{page} names no test."
    )
    for node_id in nodes:
        require_test(node_id)
    loose = re.findall(r"`(test_\w+)[^`]*`", PAGES[page])
    assert not loose, f"{page} names {loose} without their file. Write tests/<file>.py::<name>."


def test_every_page_that_the_code_cites_exists_and_every_page_is_cited():
    cited = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for page in pages_cited(path.read_text(encoding="utf-8")):
            cited.setdefault(page, path.name)
    missing = {page: where for page, where in cited.items() if page not in PAGES}
    assert not missing, f"The code cites pages that do not exist: {missing}."
    assert set(cited) == set(PAGES), f"No module cites {sorted(set(PAGES) - set(cited))}."
    index = (ROOT / "docs" / "proofs" / "index.md").read_text(encoding="utf-8")
    assert not [page for page in PAGES if f"({page})" not in index], (
        "docs/proofs/index.md should list every proof."
    )


def test_a_renamed_name_is_told():
    assert resolved("hushfit.release.queries._gradient", "ClippedGradient.clip").name == "clip"
    with pytest.raises(
        AssertionError, match=r"hushfit\.release has no ClippedSlope\. Was it renamed"
    ):
        resolved("hushfit.release", "ClippedSlope")
    with pytest.raises(AssertionError, match="has no test test_of_old"):
        require_test("tests/test_proofs.py::test_of_old")
    with pytest.raises(AssertionError, match="does not exist"):
        require_test("tests/test_of_old.py::test_of_old")
    assert [number(text) for text in ("1e-9", "2**-40", "20000")] == [1e-9, 2.0**-40, 20000.0]
    assert hushfit.__doc__
