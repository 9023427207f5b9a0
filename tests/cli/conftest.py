"""Fixtures of the tests of the command line, from ``conftest_cli``, which tests can import."""

from conftest_cli import folder, hushfit, model

__all__ = ["folder", "hushfit", "model"]
