"""Attacks on whole algorithms, and the lower bounds on epsilon they give.

Attack               A configured solver with its quoted cost, on two neighbouring tables
Audit                Result of an audit
Neighbours           Two tables that differ in one row
OwnerAttack          Attack on one owner by all the others
audit                Attack a mechanism by distinguishing its outputs on two neighbouring tables
claim_of             The guarantee of a quote, as a claim to test
estimator_mechanism  A mechanism from an estimator
BLACK                View of an attacker who sees only the fitted model
Canary               How a pair of neighbouring tables is made
RANKING_TARGETS      The attacked algorithm of each ranking solver
RELATIONS            Relations under which whole records are private
ROWS                 Number of rows of the attacked tables
ROW_LEVEL_TARGETS    Attacks on a person that are repeated against fits that protect rows
TARGETS              All attacked algorithms, by name
Target               An algorithm to attack
USUAL_BUDGET         The budget at which algorithms are attacked
WHITE                View of an attacker who sees every release
attack_on            The strongest known attack on an algorithm
audit_solver         Audit an algorithm of the library with its own canary
owner_attacks        Attacks on one owner of a federated run, by all the others
row_level_attack     The attack on a person, against a fit that protects single rows
first_proved         The first relation under which an algorithm is attacked and has a guarantee
proved               Whether an algorithm has a guarantee under the adjacency relation
OneRun               Result of an audit with one run
gradient_canaries    One fit with a canary for every coordinate
one_run              Audit a mechanism with one run
one_run_epsilon      Largest epsilon that the guesses reject at the level
one_run_p_value      Largest probability, under (epsilon, delta), of so many right guesses or more
SEARCHES             Attacked private searches, by name
SearchAttack         A private search on two tables that differ in one row
search_attacks       Attacks on private model selection, by name
"""

from hushfit.audit.attacks._algorithms import (
    BLACK,
    RELATIONS,
    USUAL_BUDGET,
    WHITE,
    attack_on,
    audit_solver,
    first_proved,
    owner_attacks,
    proved,
    row_level_attack,
)
from hushfit.audit.attacks._auditor import (
    Attack,
    Audit,
    Neighbours,
    OwnerAttack,
    audit,
    claim_of,
    estimator_mechanism,
)
from hushfit.audit.attacks._canaries import ROWS, Canary
from hushfit.audit.attacks._one_run import (
    OneRun,
    gradient_canaries,
    one_run,
    one_run_epsilon,
    one_run_p_value,
)
from hushfit.audit.attacks._search import SEARCHES, SearchAttack, search_attacks
from hushfit.audit.attacks._targets import RANKING_TARGETS, ROW_LEVEL_TARGETS, TARGETS, Target

__all__ = [
    "BLACK",
    "RANKING_TARGETS",
    "RELATIONS",
    "ROWS",
    "ROW_LEVEL_TARGETS",
    "SEARCHES",
    "TARGETS",
    "USUAL_BUDGET",
    "WHITE",
    "Attack",
    "Audit",
    "Canary",
    "Neighbours",
    "OneRun",
    "OwnerAttack",
    "SearchAttack",
    "Target",
    "attack_on",
    "audit",
    "audit_solver",
    "claim_of",
    "estimator_mechanism",
    "first_proved",
    "gradient_canaries",
    "one_run",
    "one_run_epsilon",
    "one_run_p_value",
    "owner_attacks",
    "proved",
    "row_level_attack",
    "search_attacks",
]
