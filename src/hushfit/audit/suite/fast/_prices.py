"""Fast checks: what is charged covers what is released."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from hushfit.audit.attacks import TARGETS, proved
from hushfit.audit.checks import Finding, check_mechanism_price, check_quote, check_search_price
from hushfit.audit.suite.fast._attacks import target
from hushfit.audit.suite.fast._check import Check
from hushfit.privacy import Relation
from hushfit.privacy.accounting import stopping_rule
from hushfit.release import (
    AnchoredBatch,
    FreshGate,
    GatedBatch,
    GaussianInside,
    GaussianRun,
    LaplaceInside,
    NoisyChoice,
    NoisyCorner,
    PersonCurvature,
    PoissonBatch,
    RenyiRun,
    RestartedGate,
    SecretOrder,
    Thresholded,
)


def prices() -> Iterator[Check]:
    """Prices of plans, mechanisms and searches."""
    for name in TARGETS:
        for relation in TARGETS[name].relations:
            if proved(name, relation):
                yield Check(f"price of {name} ({relation})", partial(_price, name, relation))
    for name in _mechanisms():
        yield Check(f"price of {name}", partial(_mechanism_price, name))
    for rule in ("geometric", "logarithmic", "poisson"):
        yield Check(f"price of a {rule} search", partial(_search_price, rule))


def _price(name: str, relation: Relation, seed: int) -> list[Finding]:
    attack = target(name, relation)
    return check_quote(attack.quote, attack.budget, attack.problem.n_units, relation, name)


def _mechanisms() -> dict[str, tuple[Any, float, int, Relation]]:
    """Mechanism, noise multiplier, number of answers and relation, at settings where curvature,
    sampling or rare events matter most.
    """
    replacing, removing = Relation.REPLACE_ONE, Relation.ADD_REMOVE
    return {
        "steep objectives": (GaussianInside(1.0), 2.0, 2, removing),
        "steep objectives, pure": (LaplaceInside(1.0), 2.0, 2, removing),
        "steep objectives of persons": (
            GaussianInside(3.0, person=PersonCurvature(3.0, 2)),
            60.0,
            1,
            removing,
        ),
        "steep objectives of persons, pure": (
            LaplaceInside(3.0, person=PersonCurvature(3.0, 2)),
            60.0,
            1,
            removing,
        ),
        "gates over all rows": (FreshGate(1.0, queries=6), 1.5, 2, replacing),
        "gates, gaussian": (FreshGate(0.2, "gaussian", queries=4), 1.0, 3, removing),
        "gates with their gradient": (GatedBatch(0.1, gate=2.0, queries=6), 0.7, 2, removing),
        "gates with their gradient, replacing": (
            GatedBatch(0.1, gate=2.0, queries=6),
            0.7,
            2,
            replacing,
        ),
        "gates that restart": (RestartedGate(3), 4.0, 60, replacing),
        "choices": (NoisyChoice(), 2.0, 3, replacing),
        "corners": (NoisyCorner(), 2.0, 3, replacing),
        "vocabularies": (Thresholded(0.01, 3), 1.0, 1, replacing),
        "small Poisson batches": (PoissonBatch(0.02), 0.7, 20, replacing),
        "small Poisson batches, removing": (PoissonBatch(0.02), 0.7, 20, removing),
        "anchored batches": (AnchoredBatch(0.1, 0.1), 1.0, 5, removing),
        "a secret order": (SecretOrder((0.5, 0.3, 0.2), (0.4, 0.7, 1.0)), 0.5, 1, replacing),
        "adaptive runs": (GaussianRun(), 1.0, 100, replacing),
        "adaptive runs, Renyi": (RenyiRun(1e-5), 1.0, 100, replacing),
    }


def _mechanism_price(name: str, seed: int) -> list[Finding]:
    mechanism, noise_multiplier, count, relation = _mechanisms()[name]
    return [check_mechanism_price(mechanism, noise_multiplier, count, 1000, relation, name)]


def _search_price(rule: str, seed: int) -> list[Finding]:
    return [
        check_search_price(stopping_rule(rule, 8.0), mu, Relation.REPLACE_ONE)
        for mu in (0.25, 1.0, 3.0)
    ]
