"""The whole audit, its fast selection, and the page about it.

audit_page              Write a page about an audit
ATTACK_LEVEL            False-alarm rate of one attack of the fast selection
Check                   One entry of the trimmed audit
trimmed_checks          The whole trimmed audit, by name
Explanation             What was audited for a model's algorithm
FALSE_ALARMS            False-alarm rate of the whole audit
alarm_level             False-alarm rate of each attack, such that all together keep theirs
attack_jobs             Every attack that the library has a guarantee for
deterministic_findings  Sensitivities of every query, replay of every algorithm, side channels of
                        the estimators, exact small cases
explain                 Tell what was checked about the algorithm that made a model
markdown_tables         Claimed and measured epsilon, one table for each relation
measured_for            Those of one algorithm and its variants
noise_findings_of_all   Both samplers and the reference, and the noise that the boundary adds to
                        answers
run_attack              One attack, as plain values
"""

from hushfit.audit.suite._audit_page import audit_page
from hushfit.audit.suite._fast_checks import ATTACK_LEVEL, Check, trimmed_checks
from hushfit.audit.suite._suite import (
    FALSE_ALARMS,
    Explanation,
    alarm_level,
    attack_jobs,
    deterministic_findings,
    explain,
    markdown_tables,
    measured_for,
    noise_findings_of_all,
    run_attack,
)

__all__ = [
    "ATTACK_LEVEL",
    "FALSE_ALARMS",
    "Check",
    "Explanation",
    "alarm_level",
    "attack_jobs",
    "audit_page",
    "deterministic_findings",
    "explain",
    "markdown_tables",
    "measured_for",
    "noise_findings_of_all",
    "run_attack",
    "trimmed_checks",
]
