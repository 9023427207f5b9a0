"""Importing is cheap, and a fit loads only what it uses."""

import os
import subprocess
import sys

import pytest

import hushfit

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


def test_the_command_line_runs_as_a_module():
    said = subprocess.run([sys.executable, "-m", "hushfit", "--version"], capture_output=True, text=True, check=True)
    assert hushfit.__version__ in said.stdout
