"""The whole audit, its fast selection, and the audit page.

fast/                   The fast selection, one file for each subject
audit_page              Write an HTML page about an audit
Explanation             What was audited for a model's algorithm
FALSE_ALARMS            False-alarm rate of the whole audit
alarm_level             False-alarm rate of each attack, given that of all together
attack_jobs             All attacks on algorithms with a guarantee
deterministic_findings  Sensitivities of every query, replay of every algorithm, side channels of
                        the estimators, exact small cases
explain                 State what was checked about the algorithm of a model
is_wrong                Whether an attack found what it should not
markdown_tables         Claimed and measured epsilon, one table for each adjacency relation
merged                  Stored results with those of some attacks replaced
persons_table           Claimed and measured epsilon of attacks on a person
measured_for            Stored results of one algorithm and its variants
noise_findings_of_all   Checks of all samplers, and of the noise that curators add to answers
run_attack              Run one attack; return plain values
"""

from hushfit.audit.suite._audit_page import audit_page
from hushfit.audit.suite._explanation import Explanation, explain
from hushfit.audit.suite._findings import deterministic_findings, noise_findings_of_all
from hushfit.audit.suite._jobs import FALSE_ALARMS, alarm_level, attack_jobs, run_attack
from hushfit.audit.suite._results import (
    is_wrong,
    markdown_tables,
    measured_for,
    merged,
    persons_table,
)
from hushfit.audit.suite.fast import ATTACK_LEVEL, Check, trimmed_checks

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
    "is_wrong",
    "markdown_tables",
    "measured_for",
    "merged",
    "noise_findings_of_all",
    "persons_table",
    "run_attack",
    "trimmed_checks",
]
