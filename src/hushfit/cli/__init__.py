"""The command line: ``hushfit schema``, ``fit``, ``predict``, ``evaluate``, ``report``, ``plan`` and ``ledger``."""

from hushfit.cli._app import main, run

__all__ = ["main", "run"]
