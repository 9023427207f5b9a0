"""A default install is enough for everything that is no extra."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# Modules that need an extra, and are imported by name alone.
DOORS = {
    "hushfit.audit.networks",
    "hushfit.dask",
    "hushfit.data.design.formula",
    "hushfit.data.tables._excel",
    "hushfit.features._wavelets",
    "hushfit.federated.deployment._certificates",
    "hushfit.federated.deployment._envelope",
    "hushfit.federated.deployment._job_guard",
    "hushfit.federated.deployment._owner_processes",
    "hushfit.federated.deployment._owner_side",
    "hushfit.federated.deployment.kits",
    "hushfit.federated.nvflare",
    "hushfit.mlflow",
    "hushfit.models._onnx_scorer",
    "hushfit.models.onnx",
    "hushfit.privacy.ledger._postgres",
    "hushfit.studio",
    "hushfit.torch",
}


def name_of(requirement):
    return re.split(r"[ ;<>=!~\[(]", requirement)[0].lower().replace("_", "-")


def with_dependencies(requirements):
    """Names of the distributions that are required, and of those that they require."""
    found, waiting = set(), [name_of(line) for line in requirements]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            try:
                needed = requires(name) or []
            except PackageNotFoundError:  # a dependency of another system or Python
                continue
            waiting += [name_of(line) for line in needed if "extra ==" not in line]
    return found


BLOCKED = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


def run_by_default(script, folder):
    """Run a script in a fresh interpreter that finds no module of an extra."""
    allowed = with_dependencies(PROJECT["dependencies"]) | {"hushfit"}
    extras = {
        module
        for module, owners in packages_distributions().items()
        if not {owner.lower().replace("_", "-") for owner in owners} & allowed
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BLOCKED.format(blocked=extras) + script],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_only_the_named_modules_need_an_extra(tmp_path):
    script = """
import hushfit, importlib, pkgutil
missing = []
for module in pkgutil.walk_packages(hushfit.__path__, "hushfit.", onerror=lambda name: None):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError:
            missing.append(module.name)
print(missing)
"""
    assert {*eval(run_by_default(script, tmp_path))} == DOORS


def test_the_tests_of_other_versions_import_what_those_have():
    """``make lowest`` and ``make matrix`` have neither all extras nor all tools of developers."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    folders = re.search(r"^CORE := (.+)$", makefile, re.M)[1].replace("../", "").split()
    required = [*PROJECT["dependencies"], "hushfit"]
    required += re.findall(r"'(\w+)>=", re.search(r"^TESTERS := (.+)$", makefile, re.M)[1])
    for extra in re.search(r"--editable '\.\[(.+?)\]' \$\(TESTERS\)", makefile)[1].split(","):
        required += PROJECT["optional-dependencies"][extra]
    installed = with_dependencies(required)
    owners = packages_distributions()
    doors = DOORS - {"hushfit.data.design.formula", "hushfit.data.tables._excel"}
    wrong = [
        f"{path.relative_to(ROOT)}: {module}"
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        for module in imported(path)
        if module in doors
        or not installed & {name_of(owner) for owner in owners.get(module.split(".")[0], installed)}
    ]
    assert not wrong, "Import these inside the tests that need them, by pytest.importorskip."


def imported(path):
    """Modules that a file imports when it is imported itself."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


@pytest.mark.slow
def test_the_demo_runs(tmp_path):
    script = """
from pathlib import Path
from hushfit.cli._demo import demo
raise SystemExit(demo(Path("demo")))
"""
    run_by_default(script, tmp_path)
    assert "<html" in (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
