"""Fast checks: queries over lists of documents."""

from collections.abc import Iterator
from functools import partial

from hushfit.audit._bounds import Claim
from hushfit.audit._curators import seeded_curator
from hushfit.audit.checks import (
    Finding,
    check_label_batch_price,
    check_list_batches,
    check_list_sensitivity,
    check_ndcg_grows,
    check_release_noise,
    list_examples,
    opposite_grades,
    sampled_list_examples,
)
from hushfit.audit.suite.fast._attacks import attacked
from hushfit.audit.suite.fast._check import Check
from hushfit.privacy import Budget, Relation, SecureSampler
from hushfit.release import ListStatistic, Plan, Planned


def rankings() -> Iterator[Check]:
    """Sensitivities, prices, noise and an attack for queries over lists."""
    for name in list_examples():
        yield Check(f"sensitivity of {name}", partial(_list_sensitivity, name))
    for name in sampled_list_examples():
        yield Check(f"batches of {name}", partial(_list_batches, name))
    yield Check("price of sampled grades", lambda seed: [check_label_batch_price()])
    yield Check("noise on grade statistic", _grade_noise, tests=3)
    yield Check("attack on grade statistic", _attack_grades, attacks=1)
    yield Check("direction of BayesRank", lambda seed: [check_ndcg_grows(seed)])


def _grade_noise(seed: int) -> list[Finding]:
    query, (source, _) = opposite_grades(seed)
    return check_release_noise(query, source, 1.7, Relation.LABEL, SecureSampler(), releases=150)


def _attack_grades(seed: int) -> list[Finding]:
    """One relevant document of a list or another: does the released statistic show which?"""
    query, sources = opposite_grades(seed)
    plan, budget = Plan((Planned("statistic", ListStatistic, 1),)), Budget(2.0, 1e-5)
    quote = plan.quote_for(sources[0].n_units, Relation.LABEL, budget, query.size)

    apart = query(sources[0], None) - query(sources[1], None)

    def mechanism(world: int, seed: int) -> float:
        door = seeded_curator(sources[world], quote, Relation.LABEL, seed)
        return float(door.release("statistic", query) @ apart)

    claim = Claim.gaussian(budget.epsilon, budget.delta, Relation.LABEL)
    return attacked(mechanism, claim, "grade statistic", seed, trials=1200)


def _list_sensitivity(name: str, seed: int) -> list[Finding]:
    return [check_list_sensitivity(name, seed)]


def _list_batches(name: str, seed: int) -> list[Finding]:
    return [check_list_batches(name, seed)]
