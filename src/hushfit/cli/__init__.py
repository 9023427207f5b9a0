"""The command line: ``hushfit schema``, ``fit``, ``predict``, ``evaluate``, ``report``, ``plan``
and ``ledger``.

verbs/  One module for each verb of the command line
main    Entry point of the `hushfit` program
run     Run one command line
"""

from hushfit.cli._app import main, run

__all__ = ["main", "run"]
