"""One entry of the fast audit, and its share of the false alarms."""

from collections.abc import Callable
from dataclasses import dataclass

from hushfit.audit.checks import Finding
from hushfit.audit.suite._jobs import FALSE_ALARMS

ATTACKS_ALLOWED = 150
ATTACK_LEVEL = FALSE_ALARMS / 2 / ATTACKS_ALLOWED
"""False-alarm rate of each attack of the fast audit."""


@dataclass(frozen=True)
class Check:
    """One entry of the fast audit.

    Parameters
    ----------
    name : str
    run : callable
        Maps a seed to findings.
    attacks : int, default=0
        Number of its findings that are statistical tests at level `ATTACK_LEVEL`.
    tests : int, default=0
        Number of its findings that are statistical tests at level `LEVEL`.
    """

    name: str
    run: Callable[[int], list[Finding]]
    attacks: int = 0
    tests: int = 0
