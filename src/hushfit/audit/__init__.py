"""Attack from outside: test guarantees by experiment, and check whatever can be checked without one."""

from hushfit.audit._auditor import Attack, Audit, Neighbours, OwnerAttack, audit, claim_of, estimator_mechanism
from hushfit.audit._boundary import (
    check_batch_sensitivity,
    check_batches,
    check_ledger,
    check_paid,
    check_refusals,
    check_sealed,
)
from hushfit.audit._bounds import Bound, Claim, Curve, Verdict, curve_p_value, lower_bound
from hushfit.audit._canaries import TARGETS, Canary, Target, attack_on, audit_solver, owner_attacks
from hushfit.audit._deterministic import Fuzzed, check_replay, check_sensitivity, check_side_channels, fuzz_sensitivity
from hushfit.audit._exact import ExactCase, ExactLaws, check_exact, exact_cases, exact_findings
from hushfit.audit._examples import example_queries
from hushfit.audit._laws import Release, log_density
from hushfit.audit._noise import Finding, check_release_noise, check_sampler, noise_findings
from hushfit.audit._one_run import OneRun, gradient_canaries, one_run, one_run_epsilon, one_run_p_value
from hushfit.audit._page import audit_page
from hushfit.audit._prices import (
    Laws,
    check_choices,
    check_mechanism_price,
    check_price,
    check_quote,
    check_search_price,
    worst_laws,
)
from hushfit.audit._runs import check_certificate, check_conversation, check_run_noise
from hushfit.audit._search import SEARCHES, SearchAttack, search_attacks
from hushfit.audit._suite import FALSE_ALARMS, Explanation, explain, measured_for
from hushfit.audit._trimmed import ATTACK_LEVEL, Check, trimmed_checks

__all__ = [
    "ATTACK_LEVEL",
    "FALSE_ALARMS",
    "SEARCHES",
    "TARGETS",
    "Attack",
    "Audit",
    "Bound",
    "Canary",
    "Check",
    "Claim",
    "Curve",
    "ExactCase",
    "ExactLaws",
    "Explanation",
    "Finding",
    "Fuzzed",
    "Laws",
    "Neighbours",
    "OneRun",
    "OwnerAttack",
    "Release",
    "SearchAttack",
    "Target",
    "Verdict",
    "attack_on",
    "audit",
    "audit_page",
    "audit_solver",
    "check_batch_sensitivity",
    "check_batches",
    "check_certificate",
    "check_choices",
    "check_conversation",
    "check_exact",
    "check_ledger",
    "check_mechanism_price",
    "check_paid",
    "check_price",
    "check_quote",
    "check_refusals",
    "check_release_noise",
    "check_replay",
    "check_run_noise",
    "check_sampler",
    "check_sealed",
    "check_search_price",
    "check_sensitivity",
    "check_side_channels",
    "claim_of",
    "curve_p_value",
    "estimator_mechanism",
    "exact_cases",
    "exact_findings",
    "example_queries",
    "explain",
    "fuzz_sensitivity",
    "gradient_canaries",
    "log_density",
    "lower_bound",
    "measured_for",
    "noise_findings",
    "one_run",
    "one_run_epsilon",
    "one_run_p_value",
    "owner_attacks",
    "search_attacks",
    "trimmed_checks",
    "worst_laws",
]
