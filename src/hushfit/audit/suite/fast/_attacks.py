"""Fast checks: attacks on whole algorithms, with few trials."""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from hushfit._typing import Vector
from hushfit.audit._bounds import Claim, Verdict
from hushfit.audit._curators import seeded_curator
from hushfit.audit.attacks import TARGETS, Attack, attack_on, audit, proved
from hushfit.audit.checks import Finding
from hushfit.audit.suite.fast._check import ATTACK_LEVEL, Check
from hushfit.privacy import Relation
from hushfit.release import Plan, Planned, Quote, TextColumns, Thresholded, Vocabulary

# Trials of each attack.
_TRIALS = 300


@cache
def target(name: str, relation: Relation) -> Attack:
    """An attack, cached with its quote: calibrating sampled batches is slower than most checks."""
    return attack_on(name, relation)


def attacks() -> Iterator[Check]:
    """One attack for each algorithm and relation with a proof."""
    for name in TARGETS:
        for relation in TARGETS[name].relations:
            if proved(name, relation):
                yield Check(
                    f"attack on {name} ({relation})", partial(_attack, name, relation), attacks=1
                )
    yield Check("attack on lists of texts", _attack_texts, attacks=1)


def attacked(
    mechanism: Any, claim: Claim, name: str, seed: int, trials: int = _TRIALS
) -> list[Finding]:
    """Whether the attack of a mechanism stays within its claim."""
    found = audit(mechanism, claim, trials, name=name, seed=seed, alarm=ATTACK_LEVEL)
    evidence = f"measured {found.measured:.2f} of {claim.epsilon:g}, p = {found.bound.p_value:.3g}"
    return [
        Finding(
            f"{name} ({claim.relation}): attack", found.verdict is not Verdict.VIOLATED, evidence
        )
    ]


def _attack(name: str, relation: Relation, seed: int) -> list[Finding]:
    attack = target(name, relation)
    return attacked(attack.white_box, attack.claim, name, seed)


def _attack_texts(seed: int) -> list[Finding]:
    """Two texts with about equal counts: does the list of names show which has one record more?"""
    texts = [("b",) * 300 + ("a",) * 300 + (odd,) for odd in ("a", "b")]
    plan = Plan((Planned("vocabulary", Vocabulary, 1, sampling=Thresholded(1e-6, 1)),))

    def mechanism(world: int, seed: int) -> Vector:
        source: Any = TextColumns((texts[world],))
        quote = Quote.at(plan, {"vocabulary": 1.0}, source.n_units)
        door = seeded_curator(source, quote, Relation.REPLACE_ONE, seed)
        answer = np.zeros(40)
        named = door.release("vocabulary", Vocabulary(1))[:40]
        answer[: len(named)] = named
        return answer

    return attacked(mechanism, Claim.gaussian(5.0, 1e-5), "lists of texts", seed)
