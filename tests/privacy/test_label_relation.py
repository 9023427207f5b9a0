"""Relations under which labels alone are private: refused wherever there is no proof for them."""

import json

import numpy as np
import pytest

from hushfit import Ledger, PrivateLogisticRegression
from hushfit.audit import example_queries
from hushfit.errors import InvalidArgument, LedgerError, UnsupportedRelation
from hushfit.losses import LeastSquares, Logistic
from hushfit.penalties import Zero
from hushfit.privacy import (
    LABEL_RELATIONS,
    RECORD_RELATIONS,
    AboveThresholdCost,
    Budget,
    FixedSizeGaussianCost,
    GatedCost,
    GaussianCost,
    Guarantee,
    PermutedGaussianCost,
    PoissonGaussianCost,
    PureCost,
    RdpFilter,
    Relation,
    by_relation,
    calibrate,
    compose,
    delta_of,
    epsilon_of,
    filtered_epsilon,
    labels_only,
    rdp_epsilon,
    replaces_one,
)
from hushfit.problem import Problem
from hushfit.release import FullBatch, Plan, Planned, SecondMoment
from hushfit.solvers import SOLVERS, solver_from
from hushfit.unit import ROW, PrivacyUnit

over_labels = pytest.mark.parametrize(
    "relation", [*LABEL_RELATIONS, *map(str, LABEL_RELATIONS)], ids=repr
)
UNPROVED = [
    PureCost(0.3, 2),
    FixedSizeGaussianCost(1.0, 0.1, 3),
    AboveThresholdCost("laplace", 2.0, 4.0, 3),
    GatedCost(1.0, 0.1, "laplace", 4.0, 8.0, 3),
    PermutedGaussianCost(2.0, (0.5, 0.5), (0.5, 1.0)),
]
UNITS = {Relation.LABEL: ROW, Relation.PERSON_LABEL: PrivacyUnit.person()}


@over_labels
def test_what_depends_on_records_refuses_labels(relation):
    assert labels_only(relation)
    for use in (
        lambda: by_relation(relation, replace_one=2, add_remove=1),
        lambda: replaces_one(relation),
    ):
        with pytest.raises(UnsupportedRelation, match="no proof under adjacency"):
            use()


@over_labels
@pytest.mark.parametrize("name", example_queries("replace-one") | example_queries("add-remove"))
def test_every_query_about_records_refuses_labels(name, relation):
    query = (example_queries("replace-one") | example_queries("add-remove"))[name].query
    assert not type(query).for_labels
    with pytest.raises(UnsupportedRelation, match="no proof"):
        query.sensitivity(relation)


@over_labels
def test_a_replaced_label_of_a_poisson_batch_costs_what_a_replaced_record_does(relation):
    cost = PoissonGaussianCost(1.0, 0.1, 3)
    assert epsilon_of(cost, 1e-5, relation) == epsilon_of(cost, 1e-5, "replace-one")
    assert epsilon_of(cost, 1e-5, relation) != epsilon_of(cost, 1e-5, "add-remove")


@over_labels
@pytest.mark.parametrize("cost", UNPROVED, ids=lambda cost: cost.kind)
def test_every_cost_without_a_proof_for_labels_is_refused(cost, relation):
    mixed = compose([GaussianCost(2.0), cost])
    for use in (
        lambda: epsilon_of(cost, 1e-5, relation),
        lambda: delta_of(mixed, 1.0, relation),
        lambda: rdp_epsilon(mixed, 1e-5, relation),
        lambda: filtered_epsilon([GaussianCost(9.0), mixed], Budget(50.0, 1e-5), relation),
        lambda: RdpFilter(50.0, 1e-5, relation).affords(mixed),
        lambda: calibrate(lambda mu: cost, Budget(1.0, 1e-5), relation),
        lambda: Ledger(5.0, 1e-5, relation).charge(mixed, "x", relation),
        lambda: Guarantee(1.0, 1e-6, relation, unit=UNITS[Relation(relation)], cost=mixed),
    ):
        with pytest.raises(UnsupportedRelation, match="no proof"):
            use()


def test_gaussian_cost_is_that_of_its_multiplier_under_every_relation():
    found = {epsilon_of(GaussianCost(3.0), 1e-5, relation) for relation in Relation}
    assert len(found) == 1


@over_labels
def test_no_ledger_mixes_labels_with_anything_else(relation):
    for other in Relation:
        ledger = Ledger(5.0, 1e-5, adjacency=str(relation))
        if other is Relation(relation):
            ledger.charge(GaussianCost(9.0), "x", other)
            continue
        with pytest.raises(LedgerError, match="do not compose"):
            ledger.charge(GaussianCost(9.0), "x", other)
        with pytest.raises(LedgerError, match="do not compose"):
            Ledger(5.0, 1e-5, adjacency=str(other)).charge(GaussianCost(9.0), "x", relation)


def test_a_ledger_on_disk_keeps_the_label_relation(tmp_path):
    Ledger.create(tmp_path / "l.db", "patients", 2.0, 1e-6, "label")
    again = Ledger(tmp_path / "l.db")
    assert again.relation is Relation.LABEL
    X, y = np.random.default_rng(0).normal(size=(50, 2)), np.tile([0, 1], 25)
    model = PrivateLogisticRegression(classes=[0, 1], ledger=again)
    with pytest.raises(LedgerError, match="do not compose"):
        model.fit(X, y)
    assert not again.entries
    model.set_params(adjacency="label").fit(X, y)
    assert len(again.entries) == 1


@pytest.mark.parametrize("relation", LABEL_RELATIONS)
def test_a_guarantee_says_first_and_in_capitals_that_features_are_not_protected(relation):
    guarantee = Guarantee(1.0, 1e-6, relation, unit=UNITS[relation], cost=GaussianCost(4.0))
    text = str(guarantee)
    assert text.startswith("FEATURES ARE NOT PROTECTED")
    assert "replacing" in text
    assert "label" in text
    html = guarantee._repr_html_()
    assert html.index("<strong>FEATURES ARE NOT PROTECTED") < html.index("Differentially private")
    assert Guarantee.from_json(guarantee.to_json()) == guarantee


@pytest.mark.parametrize("relation", RECORD_RELATIONS)
def test_other_guarantees_have_no_such_line(relation):
    guarantee = Guarantee(1.0, 1e-6, relation)
    assert "NOT PROTECTED" not in str(guarantee)
    assert "<strong>" not in guarantee._repr_html_()


def test_json_with_a_cost_that_labels_have_no_proof_for_is_refused():
    data = json.loads(Guarantee(1.0, 1e-6, "replace-one", cost=UNPROVED[0]).to_json())
    data["relation"] = "label"
    with pytest.raises(UnsupportedRelation, match="no proof"):
        Guarantee.from_json(json.dumps(data))


def test_units_must_suit_the_relation():
    person = PrivacyUnit.person()
    for wrong in (
        lambda: Guarantee(1.0, 1e-6, "label", unit=person),
        lambda: Guarantee(1.0, 1e-6, "person-label"),
        lambda: Problem(Logistic(), Zero(), 9, 2, "label", privacy_unit=person),
        lambda: Problem(Logistic(), Zero(), 9, 2, "person-label"),
    ):
        with pytest.raises(InvalidArgument, match="does not suit"):
            wrong()


@pytest.mark.parametrize("name", [name for name in SOLVERS if "release" not in name])
def test_every_other_solver_is_refused_before_anything_is_paid(name):
    problem = Problem(Logistic(), Zero(), 200, 3, Relation.LABEL)
    budget = Budget(np.inf if name == "exact" else 1.0, 1e-5)
    refusal = "no proof|records that keep their lengths"
    with pytest.raises(InvalidArgument, match=refusal):
        solver_from(name, problem, budget).plan(problem).quote(problem, budget)


@over_labels
def test_a_plan_about_records_has_no_quote_under_labels(relation):
    plan = Plan((Planned("moment", SecondMoment, 1, sampling=FullBatch()),))
    with pytest.raises(UnsupportedRelation, match="no proof"):
        plan.quote_for(100, relation, Budget(1.0, 1e-5), 10)


def test_a_loss_without_a_bound_needs_public_features():
    with pytest.raises(InvalidArgument, match="no bound on its slope"):
        Problem(LeastSquares(), Zero(), 9, 2, "replace-one")
