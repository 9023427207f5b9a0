"""Fixtures of the command line's tests; their makers are in ``conftest_cli``, where tests can
import them.
"""

from conftest_cli import folder, hushfit, model

__all__ = ["folder", "hushfit", "model"]
