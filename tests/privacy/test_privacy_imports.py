"""Import time: accounting must not import what takes long, convolutions included."""

import subprocess
import sys

CLOSED_FORMS = """
import sys
from hushfit.privacy import Budget, GaussianCost, Ledger, PureCost, calibrate, compose, epsilon_of
strength = calibrate(lambda s: compose([GaussianCost(1 / s, 50), PureCost(0.01)]), Budget(1.0, 1e-6), "replace-one")
Ledger(1.0, 1e-6).charge(GaussianCost(1 / strength, 50), "fit", "replace-one")
slow_to_import = ("dp_accounting", "scipy.stats", "scipy.optimize", "pandas", "sklearn", "opendp")
heavy = [name for name in slow_to_import if name in sys.modules]
assert not heavy, heavy
"""  # noqa: E501

CONVOLUTION = """
import sys
from hushfit.privacy import PoissonGaussianCost, epsilon_of
epsilon_of(PoissonGaussianCost(1.0, 0.01, 10), 1e-6, "add-remove")
slow_to_import = ("dp_accounting", "scipy.signal", "scipy.stats", "pandas", "sklearn", "opendp")
heavy = [name for name in slow_to_import if name in sys.modules]
assert not heavy, heavy
"""


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )


def test_closed_forms_import_nothing_slow():
    done = run(CLOSED_FORMS)
    assert done.returncode == 0, done.stderr


def test_convolutions_import_nothing_slow():
    done = run(CONVOLUTION)
    assert done.returncode == 0, done.stderr
