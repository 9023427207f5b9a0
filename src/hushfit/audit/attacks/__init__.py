"""Attacks on whole algorithms, and what they prove about epsilon.

Attack               A solver, settled, with its price, on two neighbouring tables
Audit                What an audit found
Neighbours           Two tables that differ in one row
OwnerAttack          One owner among others, all of whom are the attacker
audit                Attack a mechanism: can its outputs on two neighbouring tables be told apart
                     better than it claims?
claim_of             What a quote promises, as a claim to test
estimator_mechanism  A mechanism from an estimator
BLACK                The attacker who sees the fitted model only
Canary               How a pair of tables is made
RELATIONS            All adjacency relations
ROWS                 Rows of the tables that are attacked
TARGETS              What is attacked for every algorithm, by name
Target               An algorithm to attack
USUAL_BUDGET         The budget at which algorithms are attacked
WHITE                The attacker who sees every release
attack_on            The strongest attack that is known on an algorithm
audit_solver         Audit an algorithm of the library with its own canary
owner_attacks        Attacks on one owner of a federated run, by all the others
proved               Whether an algorithm has a guarantee under the relation at all
OneRun               What one run proved
gradient_canaries    One fit with a canary for every coordinate
one_run              Audit a mechanism by one run
one_run_epsilon      Largest epsilon that the guesses reject at the level
one_run_p_value      Largest probability, under (epsilon, delta), of at least so many right guesses
SEARCHES             Private searches that are attacked, by name
SearchAttack         A search on two tables that differ in one row, priced once and then run as
                     `PrivateSearchCV` runs
search_attacks       Attacks on private model selection, by name
"""

from hushfit.audit.attacks._auditor import (
    Attack,
    Audit,
    Neighbours,
    OwnerAttack,
    audit,
    claim_of,
    estimator_mechanism,
)
from hushfit.audit.attacks._canaries import (
    BLACK,
    RELATIONS,
    ROWS,
    TARGETS,
    USUAL_BUDGET,
    WHITE,
    Canary,
    Target,
    attack_on,
    audit_solver,
    owner_attacks,
    proved,
)
from hushfit.audit.attacks._one_run import (
    OneRun,
    gradient_canaries,
    one_run,
    one_run_epsilon,
    one_run_p_value,
)
from hushfit.audit.attacks._search import SEARCHES, SearchAttack, search_attacks

__all__ = [
    "BLACK",
    "RELATIONS",
    "ROWS",
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
    "gradient_canaries",
    "one_run",
    "one_run_epsilon",
    "one_run_p_value",
    "owner_attacks",
    "proved",
    "search_attacks",
]
