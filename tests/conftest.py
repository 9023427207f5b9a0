"""Settings for all tests."""

import os
import warnings

# Before anything imports scipy: scikit-learn skips some estimator checks without it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import pytest
from hypothesis import settings

from hushfit.errors import (
    InsecureNoiseWarning,
    MissingBoundsWarning,
    PrivacyLeakWarning,
    TooLittleDataWarning,
    WeakGuaranteeWarning,
)

# Run times are not informative on a busy machine.
settings.register_profile(
    "unhurried", parent=settings.get_profile(settings.get_current_profile_name()), deadline=None
)
settings.load_profile("unhurried")


QUIET = (
    InsecureNoiseWarning,
    MissingBoundsWarning,
    PrivacyLeakWarning,
    TooLittleDataWarning,
    WeakGuaranteeWarning,
)


@pytest.fixture
def quiet_fits():
    """Ignore the warnings that small, seeded fits raise."""
    with warnings.catch_warnings():
        for category in QUIET:
            warnings.simplefilter("ignore", category)
        yield
