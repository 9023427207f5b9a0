"""What is published holds all its files, and the files that state a version or a bound agree."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from jinja2 import StrictUndefined, Template

import hushfit

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOLDERS = ("src", "tests", "docs", "benchmarks", "examples", "packaging", "paper", ".github")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The source archive and the wheel."""
    folder = tmp_path_factory.mktemp("dist")
    return [
        Path(*builder(str(ROOT)).build(directory=str(folder), versions=["standard"]))
        for builder in (SdistBuilder, WheelBuilder)
    ]


def source_files():
    """Files of the source tree, without what tools leave behind."""
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            parts = path.relative_to(ROOT).parts
            made = path.suffix in {".pyc", ".nbi", ".nbc"} or "_build" in parts
            hidden = {"__pycache__", ".hypothesis"} & {*parts} or parts[:2] == ("docs", "gallery")
            if path.is_file() and not made and not hidden:
                yield path.relative_to(ROOT).as_posix()


def test_the_source_archive_holds_every_file(built):
    with tarfile.open(built[0]) as archive:
        held = {name.split("/", 1)[-1] for name in archive.getnames()}
    assert not {*source_files()} - held
    assert {"CHANGELOG.md", "LICENSE", "Makefile", "SECURITY.md", "CITATION.cff"} <= held


def test_the_wheel_holds_the_package_alone_with_its_data(built):
    with zipfile.ZipFile(built[1]) as archive:
        held = archive.namelist()
    assert {name.split("/")[0] for name in held} == {
        "hushfit",
        f"hushfit-{hushfit.__version__}.dist-info",
    }
    package = {name.removeprefix("src/") for name in source_files() if name.startswith("src/")}
    assert package <= {*held}


def test_the_archives_pass_the_checks_of_the_index(built):
    for tool in (["twine", "check", "--strict"], ["check_wheel_contents"]):
        paths = [str(path) for path in (built if tool[0] == "twine" else built[1:])]
        done = subprocess.run(
            [sys.executable, "-m", *tool, *paths], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_no_two_test_files_share_a_name():
    """The folders of tests are no packages, so pytest would refuse to collect both."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted({*names})


def test_one_version_everywhere():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    recipe = (ROOT / "packaging/conda/meta.yaml").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.M)[1] == hushfit.__version__
    assert re.search(r'set version = "(.+)"', recipe)[1] == hushfit.__version__
    assert re.search(r"^## ([\d.]+)", changes, re.M)[1] == hushfit.__version__


def test_the_recipe_has_the_bounds_of_the_project():
    """Rendered and parsed as conda-build does."""
    text = (ROOT / "packaging/conda/meta.yaml").read_text(encoding="utf-8")
    recipe = yaml.safe_load(Template(text, undefined=StrictUndefined).render(PYTHON="python"))
    bounds = {line.replace(" ", "") for line in recipe["requirements"]["run"]}
    assert bounds == {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}
    assert recipe["build"]["entry_points"] == [
        f"{name} = {function}" for name, function in PROJECT["scripts"].items()
    ]
    assert (ROOT / recipe["about"]["license_file"]).is_file()


def test_every_development_dependency_is_locked():
    lock = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    locked = {re.split(r"[=\[ ]", line)[0].lower() for line in lock.splitlines()}
    extras = PROJECT["optional-dependencies"]
    wanted = {
        re.split(r"[=<>\[]", requirement)[0].lower()
        for requirement in [*PROJECT["dependencies"], *extras["dev"], *extras["docs"]]
    }
    assert not wanted - locked - {"hushfit"}, "Run make lock."
    assert "://" not in lock
