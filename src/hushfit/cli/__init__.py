"""The command line: ``hushfit schema``, ``fit``, ``predict``, ``evaluate``, ``report``, ``plan``
and ``ledger``.

plans/          Plans of ``hushfit plan``, one file for each kind
verbs/          One module for each verb of the command line
BY_TARGET       Names of models by the kind of target
NEEDS_APPROVAL  Kind of the error of a charge that waits for a second person
main            Entry point of the `hushfit` program
run             Run one command line
"""

from hushfit.cli._app import NEEDS_APPROVAL, main, run
from hushfit.cli._models import BY_TARGET

__all__ = ["BY_TARGET", "NEEDS_APPROVAL", "main", "run"]
