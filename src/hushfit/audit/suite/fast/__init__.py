"""The fast audit: attacks on every algorithm with few trials, and all checks that need no attack,
in about a minute.

Each entry has a name, a function of a seed, and a bound on its false-alarm rate; all together stay
below `FALSE_ALARMS`. `make test` runs the list on the library as it is, and the entries that should
detect a planted bug on the library with that bug. One file holds the checks of one subject.

ATTACK_LEVEL    False-alarm rate of one attack of the fast audit
Check           One entry of the fast audit
trimmed_checks  The whole fast audit, by name
"""

from hushfit.audit.suite.fast._check import ATTACK_LEVEL, Check
from hushfit.audit.suite.fast._trimmed import trimmed_checks

__all__ = ["ATTACK_LEVEL", "Check", "trimmed_checks"]
