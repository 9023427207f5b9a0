"""Scores of private rows: whoever is exchanged moves each release by its bound at most, in all
groups together.
"""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from hushfit.data.schema import CategoricalColumn, NumericColumn
from hushfit.errors import InsecureNoiseWarning
from hushfit.privacy import Budget, Relation
from hushfit.release import Randomness, Terms
from hushfit.report import DeclaredGroups, HeldOut, private_scores
from hushfit.report.scores import _private_scores
from hushfit.unit import PrivacyUnit

CLASSES, NUMBERS = CategoricalColumn("ill", ("no", "yes", "perhaps")), NumericColumn("days", 0, 30)
GROUPS = ("north", "south", "<other>")
PERSON = PrivacyUnit.person("mean", None, "id")
TERMS = Terms(Budget(1.0, 1e-5), "test", Randomness.of(0))
ROWS = 40


def row(generator, target):
    """Truth (missing now and then), prediction and group of one row; often an extreme one."""
    if target is CLASSES:
        truth, predicted = generator.integers(0, 3, 2).astype(float)
    else:
        truth, predicted = generator.choice([0.0, 30.0, generator.uniform(0, 30)], 2)
    return (math.nan if generator.random() < 0.2 else truth), predicted, generator.integers(0, 3)


def held(rows, target, by, persons=None):
    truth, predicted, codes = map(np.array, zip(*rows, strict=True))
    groups = DeclaredGroups(GROUPS, codes.astype(np.int64)) if by else None
    return HeldOut(target, truth, predicted, None, persons, "id", declared=groups)


@pytest.fixture
def exact(monkeypatch):
    """What private_scores would release, without noise, each over its bound."""

    def of(data, relation, unit=None):
        answers = []

        def signed(source, quote, relation, terms):
            def release(name, query):
                answers.append((query(source, None), query.sensitivity(relation)))
                return answers[-1][0]

            curator = SimpleNamespace(release=release)
            return SimpleNamespace(curator=curator, guarantee=None)

        with monkeypatch.context() as patched:
            patched.setattr(_private_scores, "Contract", SimpleNamespace(signed=signed))
            private_scores(data, TERMS, relation, unit)
        return answers

    return of


def largest_ratio(one, other):
    """How far the answers are apart, over their bounds."""
    assert len(one) == len(other)
    return max(
        float(np.linalg.norm(a - b)) / bound for (a, bound), (b, _) in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("by", [False, True], ids=["all rows", "by group"])
@pytest.mark.parametrize("target", [CLASSES, NUMBERS], ids=["classes", "numbers"])
def test_a_replaced_row_moves_no_release_beyond_its_bound(exact, target, by):
    generator, found = np.random.default_rng(0), []
    for _ in range(40):
        rows = [row(generator, target) for _ in range(ROWS)]
        before = exact(held(rows, target, by), "replace-one")
        rows[generator.integers(ROWS)] = row(generator, target)
        found.append(largest_ratio(before, exact(held(rows, target, by), "replace-one")))
    assert 0.9 < max(found) <= 1 + 1e-9


@pytest.mark.parametrize("by", [False, True], ids=["all rows", "by group"])
@pytest.mark.parametrize("target", [CLASSES, NUMBERS], ids=["classes", "numbers"])
def test_a_replaced_person_moves_no_release_beyond_its_bound(exact, target, by):
    generator, found = np.random.default_rng(1), []
    for _ in range(40):
        rows = [row(generator, target) for _ in range(ROWS)]
        ids = np.arange(ROWS)
        own, others = ([row(generator, target)] * generator.integers(1, 6) for _ in range(2))
        if generator.random() < 0.5:  # rows of one person that differ
            own = [row(generator, target) for _ in own]
        one, two = (
            held([*rows, *these], target, by, np.append(ids, [ROWS] * len(these)))
            for these in (own, others)
        )
        found.append(
            largest_ratio(exact(one, "replace-one", PERSON), exact(two, "replace-one", PERSON))
        )
    assert 0.5 < max(found) <= 1 + 1e-9


@pytest.mark.parametrize("target", [CLASSES, NUMBERS], ids=["classes", "numbers"])
def test_a_removed_row_moves_no_release_beyond_its_bound(exact, target):
    generator, found = np.random.default_rng(2), []
    for _ in range(40):
        rows = [row(generator, target) for _ in range(ROWS)]
        before = exact(held(rows, target, True), "add-remove")
        rows[3] = (math.nan, 0.0, 0)  # the zero record
        found.append(largest_ratio(before, exact(held(rows, target, True), "add-remove")))
    assert 0.9 < max(found) <= 1 + 1e-9


def test_scores_by_group_are_near_the_exact_ones():
    generator = np.random.default_rng(3)
    count = 20_000
    codes = generator.choice(3, count, p=[0.7, 0.2999, 0.0001])
    wrong = generator.random(count) < np.array([0.1, 0.3, 0.5])[codes]
    truth = generator.integers(0, 3, count).astype(float)
    predicted = np.where(wrong, (truth + 1) % 3, truth)
    groups = DeclaredGroups(GROUPS, codes)
    with pytest.warns(InsecureNoiseWarning):
        scores = private_scores(
            HeldOut(CLASSES, truth, predicted, declared=groups), TERMS, "replace-one"
        )
    north, south, rest = scores.by
    assert scores.accuracy == pytest.approx(1 - wrong.mean(), abs=5 * scores.noise)
    for group, share in ((north, 0.1), (south, 0.3)):
        assert group.accuracy == pytest.approx(1 - share, abs=0.02 + 5 * group.noise)
    assert rest.accuracy is None  # two rows
    assert scores.to_dict()["by"]["north"]["accuracy"] == north.accuracy
    numbers = np.clip(truth * 10 + np.where(wrong, 6.0, -1.0), 0, 30)
    with pytest.warns(InsecureNoiseWarning):
        scores = private_scores(
            HeldOut(NUMBERS, numbers, truth * 10, declared=groups), TERMS, "replace-one"
        )
    for code, group in enumerate(scores.by[:2]):
        own = codes == code
        low, high = group.rmse
        assert low <= math.sqrt(np.mean((numbers - truth * 10)[own] ** 2)) <= high
        assert group.units == pytest.approx(own.sum(), rel=0.05)
    assert scores.by[2].rmse is None
    assert sum(made.share for made in scores.guarantee.releases) == pytest.approx(1.0)
    assert Relation.parse("replace-one") is scores.guarantee.relation
