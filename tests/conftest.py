"""Settings for all tests."""

import os
import warnings

# Before anything imports scipy: scikit-learn's contract has checks that are skipped without it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import pytest
from hypothesis import settings

from hushfit.errors import InsecureNoiseWarning, PrivacyLeakWarning, WeakGuaranteeWarning

# Time tells nothing on a busy machine.
settings.register_profile(
    "unhurried", parent=settings.get_profile(settings.get_current_profile_name()), deadline=None
)
settings.load_profile("unhurried")


@pytest.fixture
def quiet_fits():
    """Let small, seeded fits pass without the warnings that they deserve."""
    with warnings.catch_warnings():
        for category in (InsecureNoiseWarning, PrivacyLeakWarning, WeakGuaranteeWarning):
            warnings.simplefilter("ignore", category)
        yield
