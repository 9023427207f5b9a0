"""Audits of persons: tables of persons, and that each check fails on the error it is made for. That
they pass on the library as it is: test_fast_checks.py.
"""

import numpy as np
import pytest

from hushfit import PrivateLogisticRegression
from hushfit.audit import check_paid, check_sealed, check_side_channels
from hushfit.audit.checks import (
    PersonTable,
    check_batches,
    check_person_sensitivity,
    check_rows_of_persons,
    check_shares,
    example_queries,
    fuzz_person_sensitivity,
)
from hushfit.data import Persons
from hushfit.privacy import RECORD_RELATIONS, Budget, Relation
from hushfit.release import ClippedGradient, FullBatch, PoissonBatch
from hushfit.unit import PrivacyUnit

UNIT = PrivacyUnit.person(rows_per_person=7)
RELATIONS = list(RECORD_RELATIONS)


def failed(findings):
    return [finding.check for finding in findings if not finding.passed]


def example_of(name, relation=Relation.REPLACE_ONE, unit=UNIT):
    return example_queries(relation, 0, unit)[name]


def test_a_table_of_persons_has_as_many_as_the_example_has_rows():
    table = PersonTable.of(example_of("gradient, logistic"), UNIT)
    source = table.source(True)
    assert source.n_units == 12 < len(source.y)
    assert source.privacy_unit == UNIT
    longer = table.replaced(3, np.ones((9, 3)), np.ones(9)).source(True, sparse=True)
    assert longer.n_units == 12
    np.testing.assert_array_equal(longer.shares[:9], [1 / 7] * 7 + [0, 0])


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize("name", ["gradient, softmax", "second moment", "margin histogram"])
def test_climbs_over_persons_attain_their_bound(name, relation):
    example = example_of(name, relation)
    found = fuzz_person_sensitivity(example, relation, UNIT, starts=4, climbs=30)
    assert 0.65 < found.ratio <= 1 + 1e-9


@pytest.mark.parametrize("name", ["gradient, softmax", "second moment", "run in batches"])
def test_a_sensitivity_that_is_too_small_for_a_person_is_found(name, monkeypatch):
    example = example_of(name)
    kind = type(example.query)
    original = kind.sensitivity
    monkeypatch.setattr(kind, "sensitivity", lambda self, relation: 0.5 * original(self, relation))
    found = check_person_sensitivity(name, example, Relation.REPLACE_ONE, UNIT, climbs=30)
    assert not found.passed


def test_an_answer_that_counts_rows_is_found(monkeypatch):
    original = ClippedGradient.__call__
    monkeypatch.setattr(
        ClippedGradient,
        "__call__",
        lambda self, source, units: original(self, source, units) + len(source.y),
    )
    example = example_of("gradient, logistic")
    broken = failed(check_rows_of_persons("g", example, Relation.REPLACE_ONE, UNIT))
    assert "g: the answer does not depend on how many null records a person has" in broken
    assert "g: the answer does not depend on the order of persons' rows" not in broken


def test_weights_that_heed_other_persons_are_found(monkeypatch):
    monkeypatch.setattr(
        Persons, "shares", property(lambda self: np.full(len(self.codes), 1 / len(self.codes)))
    )
    assert "weights of persons: nobody's depend on others' rows" in failed(check_shares(UNIT))


def test_a_total_below_the_number_of_persons_is_no_error_with_a_cap():
    assert not failed(check_shares(PrivacyUnit.person("cap", 3)))


@pytest.mark.parametrize("mechanism", [PoissonBatch(0.4), FullBatch()], ids=repr)
def test_persons_that_are_torn_apart_are_found(mechanism, monkeypatch):
    example = example_of("gradient, logistic")
    source = PersonTable.of(example, UNIT).source(True)
    check = f"{type(mechanism).__name__}: the rows of a unit are read together"
    found = check_batches(mechanism, example.query, source, Relation.REPLACE_ONE, draws=40)
    assert check not in failed(found)
    monkeypatch.setattr(type(source), "_rows_of", lambda self, units: units)
    found = check_batches(PoissonBatch(0.4), example.query, source, Relation.REPLACE_ONE, draws=40)
    assert "PoissonBatch: the rows of a unit are read together" in failed(found)


# Fits


def tables():
    """Person "b" has two rows, or five."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.tile([0, 1], 15)
    ids = np.array([f"{k:02}" for k in range(28)] + ["b", "b"])
    more = np.concatenate([X, rng.normal(size=(3, 2))]), np.append(y, [0, 0, 1])
    return [(X, y, ids), (*more, np.append(ids, ["b"] * 3))]


class CountingRows(PrivateLogisticRegression):
    def fit(self, X, y, groups=None):
        super().fit(X, y, groups)
        self.rows_ = np.zeros(len(X))
        return self


@pytest.mark.parametrize(("kind", "wrong"), [(PrivateLogisticRegression, 0), (CountingRows, 1)])
def test_a_fit_that_tells_the_number_of_rows_is_found(kind, wrong):
    def make(ledger=None):
        return kind(
            epsilon=1.0, classes=[0, 1], solver="proximal-gd", random_state=0, ledger=ledger
        )

    assert bool(failed(check_side_channels(make, tables()))) == wrong
    assert bool(failed(check_sealed(make, tables()))) == wrong
    budget = Budget(1.0, make().delta)
    X, y, ids = tables()[1]
    assert not failed(check_paid(make, X, y, budget, Relation.REPLACE_ONE, groups=ids))
