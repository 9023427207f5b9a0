"""A service user without write access: loops are compiled again in every process, and fits work."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hushfit

# Everything a fit needs, small enough to be compiled quickly; the last line prints where machine
# code is cached.
FIT = """
import numpy as np
from hushfit import PrivateLogisticRegression
from hushfit.kernels.gradient import _scalar_dense
X = np.random.default_rng(0).normal(size=(40, 2))
y = np.tile([0, 1], 20)
model = PrivateLogisticRegression(solver="proximal-gd", classes=[0, 1], delta=1e-3).fit(X, y)
assert np.isfinite(model.coef_).all()
print("kept in", _scalar_dense.stats.cache_path)
"""
# May read everything, as the interpreter may be in a private folder, and write nothing.
AS_NOBODY = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--inh-caps=-all,+dac_read_search",
]
AS_NOBODY += ["--ambient-caps=-all,+dac_read_search"]


def copied_package(folder):
    """The package without compiled files, as an installation of another user."""
    source = Path(hushfit.__file__).parent
    shutil.copytree(source, folder / "hushfit", ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "hushfit"


def fitted_in(folder, environment, prefix=()):
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        **environment,
    }
    return subprocess.run(
        [*prefix, sys.executable, "-c", FIT],
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_a_fit_works_where_nothing_can_be_kept(tmp_path):
    """Files block the paths of the folders to be made, which stops even the superuser."""
    kernels = copied_package(tmp_path) / "kernels"
    (kernels / "__pycache__").write_text("")
    done = fitted_in(tmp_path, {"HOME": "/dev/null"})
    assert done.returncode == 0, done.stderr
    assert "kept in None" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None,
    reason="only the superuser can become nobody",
)
def test_nobody_can_fit(tmp_path):
    """Another user's package, read-only, and no home folder."""
    package = copied_package(tmp_path)
    for folder in tmp_path.parents[:2]:
        folder.chmod(0o755)
    for path in (tmp_path, package, *package.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    done = fitted_in(tmp_path, {}, AS_NOBODY)
    assert done.returncode == 0, done.stderr
    assert "kept in None" in done.stdout
