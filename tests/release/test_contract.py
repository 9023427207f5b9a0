"""Guarantee, charge, open: in this order, in one place, for every caller that needs answers about
rows.
"""

import ast
from pathlib import Path

import numpy as np
import pytest

import hushfit
from _support import source_of, two_classes
from hushfit import (
    PrivateElasticNet,
    PrivateFeatureSelector,
    PrivateGraphLogisticRegression,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
)
from hushfit.errors import BudgetExceeded, InvalidArgument
from hushfit.losses import Logistic
from hushfit.penalties import Zero
from hushfit.preprocessing import PrivateQuantileScaler, SchemaEncoder
from hushfit.privacy import Budget, Ledger, Relation
from hushfit.problem import Problem
from hushfit.release import ClippedGradient, Contract, Plan, Planned, Randomness, Terms
from hushfit.unit import ROW

PLAN = Plan((Planned("gradient", ClippedGradient, 2),))
BUDGET = Budget(1.0, 1e-5)
SRC = Path(hushfit.__file__).parent


def quoted(n=50, d=3):
    problem = Problem(Logistic(), Zero(), n, d, Relation.REPLACE_ONE)
    return problem, PLAN.quote(problem, BUDGET)


class Unreadable:
    """Rows of which only the number, the unit and whether they lie in parts may be read."""

    n_units = 50
    privacy_unit = ROW
    added_up = None  # not in parts

    def __getattr__(self, name):
        raise AssertionError(f"the rows were read: {name}")


def test_nothing_but_the_number_of_rows_is_read_before_the_payment():
    problem, quote = quoted()
    ledger = Ledger(2.0, 1e-5)
    terms = Terms(BUDGET, "test", Randomness.of(None), ledger)
    contract = Contract.signed(Unreadable(), quote, problem.relation, terms)
    assert contract.receipt == ledger.entries[0]
    assert contract.receipt.cost == quote.cost == contract.guarantee.cost
    assert contract.guarantee.secure
    assert contract.guarantee.public == ("the number of rows, 50",)


def test_a_refused_payment_opens_nothing(monkeypatch):
    problem, quote = quoted()
    terms = Terms(BUDGET, "test", Randomness.of(None), Ledger(0.1, 1e-5))
    opened = []
    monkeypatch.setattr("hushfit.release.contract.Curator", lambda *a: opened.append(a))
    with pytest.raises(BudgetExceeded):
        Contract.signed(Unreadable(), quote, problem.relation, terms)
    assert opened == []


@pytest.mark.parametrize("ledger", [3.0, "ledger.db", object()])
def test_terms_refuse_what_keeps_no_account(ledger):
    with pytest.raises(InvalidArgument, match="is not a ledger"):
        Terms(BUDGET, "test", Randomness.of(None), ledger)


@pytest.mark.parametrize("state", [-1, 1.5, "seed", True])
def test_randomness_refuses_what_is_no_seed(state):
    with pytest.raises(InvalidArgument, match="random_state="):
        Randomness.of(state)


def test_the_transcript_keeps_questions_with_their_answers():
    X, y = two_classes(50, 3)
    problem, quote = quoted()
    contract = Contract.signed(
        source_of(X, y), quote, problem.relation, Terms(BUDGET, "test", Randomness.of(None))
    )
    query = ClippedGradient(problem, np.zeros(4), 1.0)
    answer = contract.curator.release("gradient", query)
    (released,) = contract.curator.transcript
    assert released.query is query
    assert released.answer is answer


def calls(name):
    """Files of the library that call a function or class of this name."""
    found = set()
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Name) and called.id == name:
                found.add(path.relative_to(SRC).as_posix())
    return found


def test_only_the_contract_constructs_a_curator():
    assert calls("Curator") == {"release/contract.py"}


def test_only_audits_open_rows_without_paying():
    users = calls("unpaid_curator") - {"release/contract.py"}
    assert users
    assert all(path.startswith("audit/") for path in users), users


QUOTED = [
    PrivateLogisticRegression(epsilon=2.0, delta=1e-4, classes=[-1, 1]),
    PrivateLogisticRegression(delta=1e-4, classes=[-1, 1], penalty="l1", adjacency="add-remove"),
    PrivateLinearSVC(delta=1e-4, classes=[-1, 1], solver="dp-sgd"),
    PrivateGraphLogisticRegression(graph=[(0, 1)], delta=1e-4, classes=[-1, 1]),
    PrivateLasso(delta=1e-4, target_bounds=(-1, 1)),
    PrivateElasticNet(delta=1e-4, target_bounds=(-1, 1)),
    PrivateFeatureSelector(2, delta=1e-4, classes=[-1, 1]),
    PrivateQuantileScaler(delta=1e-4),
]


@pytest.mark.usefixtures("quiet_fits")
@pytest.mark.parametrize("estimator", QUOTED, ids=lambda e: type(e).__name__)
def test_a_quote_is_what_the_fit_then_pays(estimator):
    """The cost depends on the public shape alone."""
    X, y = two_classes(300, 4)
    ledger = Ledger(20.0, 1e-3, str(estimator.adjacency))
    estimator = estimator.set_params(ledger=ledger, random_state=0)
    quote = estimator.quote(300, 4)
    assert ledger.entries == ()
    assert quote.cost == estimator.fit(X, y).privacy_.cost == ledger.entries[0].cost
    assert all(part.name in str(quote) for part in quote.plan.parts)


def test_a_quote_of_unknown_classes_asks_for_their_number():
    model = PrivateLogisticRegression()
    with pytest.raises(InvalidArgument, match="n_classes"):
        model.quote(1000, 5)
    assert (
        model.quote(1000, 5, n_classes=3).cost
        == PrivateLogisticRegression(classes=[0, 1, 2]).quote(1000, 5).cost
    )


def test_a_schema_without_vocabularies_costs_nothing():
    from hushfit.data.schema._schema import NumericColumn, Schema

    schema = Schema((NumericColumn("age", 0, 100),))
    assert SchemaEncoder(schema).quote(100, 1).plan.parts == ()
