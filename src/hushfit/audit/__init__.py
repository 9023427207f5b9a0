"""Attack from outside: test guarantees by experiment, and check whatever can be checked without one."""

from hushfit.audit._auditor import Attack, Audit, Neighbours, OwnerAttack, audit, claim_of, estimator_mechanism
from hushfit.audit._bounds import Bound, Claim, Curve, Verdict, curve_p_value, lower_bound
from hushfit.audit._canaries import TARGETS, Canary, Target, attack_on, audit_solver, owner_attacks
from hushfit.audit._deterministic import Fuzzed, check_replay, check_sensitivity, check_side_channels, fuzz_sensitivity
from hushfit.audit._examples import example_queries
from hushfit.audit._laws import Release, log_density
from hushfit.audit._noise import Finding, check_release_noise, check_sampler, noise_findings
from hushfit.audit._one_run import OneRun, gradient_canaries, one_run, one_run_epsilon, one_run_p_value
from hushfit.audit._page import audit_page
from hushfit.audit._suite import FALSE_ALARMS, Explanation, explain, measured_for

__all__ = [
    "FALSE_ALARMS",
    "TARGETS",
    "Attack",
    "Audit",
    "Bound",
    "Canary",
    "Claim",
    "Curve",
    "Explanation",
    "Finding",
    "Fuzzed",
    "Neighbours",
    "OneRun",
    "OwnerAttack",
    "Release",
    "Target",
    "Verdict",
    "attack_on",
    "audit",
    "audit_page",
    "audit_solver",
    "check_release_noise",
    "check_replay",
    "check_sampler",
    "check_sensitivity",
    "check_side_channels",
    "claim_of",
    "curve_p_value",
    "estimator_mechanism",
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
]
