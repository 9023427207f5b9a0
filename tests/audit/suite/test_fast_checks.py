"""The fast audit: no alarm on the library as it is, and enough power that less noise would raise
one.

Together its checks raise a false alarm with probability below 1e-3 (`FALSE_ALARMS`); all but those
of the operating system's noise are seeded.
"""

import re
import warnings

import numpy as np
import pytest

from hushfit.audit import (
    ATTACK_LEVEL,
    FALSE_ALARMS,
    TARGETS,
    Claim,
    Verdict,
    attack_on,
    audit,
    trimmed_checks,
    worst_laws,
)
from hushfit.audit.attacks import RELATIONS, first_proved, proved
from hushfit.audit.checks._noise import LEVEL
from hushfit.audit.checks._prices import least_deltas
from hushfit.privacy import Relation, SeededSampler, delta_of
from hushfit.release import AnchoredBatch, FixedSizeBatch, FullBatch, PoissonBatch, SecretOrder
from hushfit.solvers import SOLVERS

CHECKS = trimmed_checks()


def _subject(name):
    """The algorithm of a check, so that checks of one algorithm run together and calibrate once;
    else the check's own name.
    """
    if name.startswith(("persons: rows of ", "persons: sensitivity of ")):
        return "persons: queries" + name[name.rindex(" ") :]
    for kind in ("attack on ", "replay of ", "noise of ", "price of "):
        bare = name.removeprefix(kind).rpartition(" (")[0] or name.removeprefix(kind)
        if name.startswith(kind) and bare in TARGETS:
            return bare
    return name


SUBJECTS = {
    subject: [name for name in CHECKS if _subject(name) == subject]
    for subject in dict.fromkeys(map(_subject, CHECKS))
    if not (subject.startswith("sensitivity of ") and subject.endswith(")"))  # below
}


# One algorithm of each kind is attacked every day; all of them by `make slow` and `make audit`.
DAILY = (
    "whitened-gd",
    "ss-admm",
    "dp-sgd",
    "bls",
    "objective",
    "rsgd-ar",
    "least-squares",
    "one-release",
    "one-release-ranking",
    "dp-sgd, person of 40 rows",
)
RARE = tuple(name for name in TARGETS if name not in DAILY)


@pytest.mark.parametrize(
    "subject",
    [pytest.param(name, marks=pytest.mark.slow) if name in RARE else name for name in SUBJECTS],
)
def test_no_alarm_without_a_bug(subject):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alarms = [
            finding
            for name in SUBJECTS[subject]
            for finding in CHECKS[name].run(0)
            if not finding.passed
        ]
    assert not alarms


# Queries whose bound covers tables that hill climbing does not find; for the others even a short
# search comes near it.
LOOSE = (
    "newton direction",
    "difference",
    "steps of ADMM",
    "minimiser",
    "minimiser, loosely solved",
    "perturbed minimiser",
    "variance-reduced gradient",
    "loss drops",
    "lengths",  # the far ends of a logarithm
)


@pytest.mark.parametrize(
    "name", [name for name in CHECKS if name.startswith("sensitivity of ") and name.endswith(")")]
)
def test_climbs_come_near_their_bound_and_never_over_it(name):
    found = CHECKS[name].run(0)
    assert all(finding.passed for finding in found), found
    query = name.removeprefix("sensitivity of ").rpartition(" (")[0]
    assert query in LOOSE or max(_reached(finding) for finding in found) > 0.6


def _reached(finding):
    """The share of the bound that a climb has come to, the first number of its evidence."""
    return float(re.search(r"\d[\d.e-]*", finding.evidence).group())


PRICED = [
    (FullBatch(), 0.8, 3, "replace-one"),
    (PoissonBatch(0.1), 0.7, 4, "replace-one"),
    (PoissonBatch(0.1), 0.7, 4, "add-remove"),
    (FixedSizeBatch(100), 0.7, 1, "replace-one"),
    (AnchoredBatch(0.2, 0.3), 1.0, 3, "add-remove"),
    (SecretOrder((0.5, 0.5), (1.0, 1.0)), 0.5, 2, "replace-one"),
]


@pytest.mark.parametrize(("mechanism", "multiplier", "count", "relation"), PRICED, ids=repr)
def test_laws_on_worst_tables_come_near_the_price(mechanism, multiplier, count, relation):
    """A lower bound far below the cost would not detect a cost that is too small."""
    epsilons, relation = np.array([0.1, 0.7]), Relation(relation)
    claimed = np.array(
        [
            delta_of(mechanism.cost(multiplier, count, 1000), epsilon, relation)
            for epsilon in epsilons
        ]
    )
    laws = worst_laws(mechanism, multiplier, count, relation, 1000)
    least = np.max(
        [least_deltas([one], epsilons) for law in laws for one in (law, law.swapped)], axis=0
    )
    assert (least <= claimed * (1 + 1e-3)).all()
    assert (least >= 0.9 * claimed).all()


def test_false_alarms_are_rare_in_all():
    attacks, tests = (
        sum(getattr(check, kind) for check in CHECKS.values()) for kind in ("attacks", "tests")
    )
    assert attacks * ATTACK_LEVEL + tests * LEVEL <= FALSE_ALARMS


def test_every_algorithm_is_attacked_replayed_and_priced():
    for name in SOLVERS:
        if name != "exact":
            for relation in RELATIONS:
                if proved(name, relation):
                    assert f"attack on {name} ({relation})" in CHECKS
                    assert f"price of {name} ({relation})" in CHECKS
            assert f"replay of {name}" in CHECKS


# Share of the claim that a few trials measure. For those listed it is less; too little noise shows
# in the noise of their runs or in the distribution of their choices.
LEAST = 0.25
WEAK = (
    "proximal-gd, fixed size",
    "objective-kifer",
    "dp-sadmm",
    "dp-sgd",
    "dp-sgd, person of 40 rows",
    "dp-adam",
    "dp-vradmm",
    "dp-vradmm, single noise",
    "dp-agd",
    "frank-wolfe",
    "priv-gene",
    "bls",
    "vocabulary",
    "privbr",
    "privbr, network",
    *(name for name in TARGETS if name.startswith(("listwise-sgd", "whitened-lists"))),
)


# Variants of an algorithm are attacked by `make slow`, the algorithm itself every day.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if "," in name else [])
        for name in TARGETS
        if name not in WEAK
    ],
)
def test_attacks_measure_a_quarter_of_the_claim_at_least(name):
    relation = first_proved(name)
    attack = attack_on(name, relation)
    assert audit(attack.white_box, attack.claim, 400).ratio >= LEAST


def test_outputs_without_any_spread_are_told_apart():
    """A list in the order of exact counts is the same in every run on one table, and differs on
    the other.
    """
    found = audit(
        lambda world, seed: np.array([1.0, float(world), 2.0]), Claim.gaussian(4.0, 1e-5), 200
    )
    assert found.verdict is Verdict.VIOLATED


original_gaussian, original_laplace = SeededSampler.gaussian, SeededSampler.laplace


@pytest.mark.parametrize("name", [name for name in TARGETS if f"noise of {name}" in CHECKS])
def test_half_the_noise_raises_an_alarm(name, monkeypatch):
    monkeypatch.setattr(
        SeededSampler, "gaussian", lambda self, k, size: original_gaussian(self, k, size) // 2
    )
    monkeypatch.setattr(
        SeededSampler, "laplace", lambda self, k, size: original_laplace(self, k, size) // 2
    )
    assert not all(finding.passed for finding in CHECKS[f"noise of {name}"].run(0))
