"""A relation given by name acts like the enum member everywhere."""

import ast
import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import hushfit
from hushfit import PrivateLogisticRegression
from hushfit.audit.checks._examples import example_queries
from hushfit.data import SeededCoins, as_source
from hushfit.errors import InvalidArgument, UnsupportedRelation
from hushfit.losses import Logistic
from hushfit.penalties import Zero
from hushfit.privacy import (
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
    SeededSampler,
    by_relation,
    calibrate,
    delta_of,
    dominating_mu,
    epsilon_of,
    filtered_epsilon,
    rdp_curve,
    rdp_delta,
    rdp_epsilon,
    replaces_one,
)
from hushfit.privacy.accounting._interpret import profile_of
from hushfit.privacy.accounting._normal_form import normal_form
from hushfit.privacy.costs._mixture_cost import MixtureGaussianCost
from hushfit.problem import Problem
from hushfit.release import Entropy
from hushfit.release.curator import Curator
from hushfit.solvers import ProximalGradient, run

RELATIONS = list(RECORD_RELATIONS)
COSTS = [
    GaussianCost(2.0),
    PureCost(0.3, 2),
    PoissonGaussianCost(1.0, 0.1, 3),
    FixedSizeGaussianCost(1.0, 0.1, 3),
    MixtureGaussianCost(1.0, 0.1, 0.2, 2),
    AboveThresholdCost("laplace", 2.0, 4.0, 3),
    GatedCost(1.0, 0.1, "laplace", 4.0, 8.0, 3),
    PermutedGaussianCost(2.0, (0.5, 0.5), (0.5, 1.0)),
]
READINGS = {
    "rdp_curve": lambda cost, relation: rdp_curve(cost, np.array([2.0, 8.0]), relation).tolist(),
    "rdp_epsilon": lambda cost, relation: rdp_epsilon(cost, 1e-5, relation),
    "rdp_delta": lambda cost, relation: rdp_delta(cost, 1.0, relation),
    "epsilon_of": lambda cost, relation: epsilon_of(cost, 1e-5, relation),
    "delta_of": lambda cost, relation: delta_of(cost, 1.0, relation),
    "profile_of": lambda cost, relation: profile_of(cost, np.array([0.5, 1.0]), relation).tolist(),
    "normal_form": normal_form,
    "dominating_mu": lambda cost, relation: dominating_mu(cost, 1e-6, relation),
    "filtered_epsilon": lambda cost, relation: filtered_epsilon(
        [cost, cost], Budget(50.0, 1e-5), relation
    ),
    "RdpFilter": lambda cost, relation: RdpFilter(50.0, 1e-5, relation).affords(cost),
}
NAMES_OF_NOTHING = ["replace_one", "REPLACE-ONE", "", "both", None, 2]


def answer_or_refusal(reading, cost, relation):
    try:
        return reading(cost, relation)
    except UnsupportedRelation as refused:
        return str(refused)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: type(cost).__name__)
def test_a_price_by_name_is_the_price(cost, reading, relation):
    by_member = answer_or_refusal(READINGS[reading], cost, relation)
    assert answer_or_refusal(READINGS[reading], cost, relation.value) == by_member


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", example_queries("replace-one") | example_queries("add-remove"))
def test_a_sensitivity_by_name_is_the_sensitivity(name, relation):
    query = (example_queries("replace-one") | example_queries("add-remove"))[name].query
    by_member = answer_or_refusal(
        lambda query, relation: query.sensitivity(relation), query, relation
    )
    assert (
        answer_or_refusal(
            lambda query, relation: query.sensitivity(relation), query, relation.value
        )
        == by_member
    )


@pytest.mark.parametrize("wrong", NAMES_OF_NOTHING, ids=repr)
def test_what_is_no_relation_is_refused_by_its_name(wrong):
    query = example_queries("replace-one")["gradient, logistic"].query
    cost = PoissonGaussianCost(1.0, 0.1)
    entries = [
        lambda: by_relation(wrong, replace_one=2, add_remove=1),
        lambda: replaces_one(wrong),
        lambda: query.sensitivity(wrong),
        lambda: Problem(Logistic(), Zero(), 10, 2, wrong),
        lambda: Entropy(wrong, SeededSampler(0), SeededCoins(0)),
        lambda: calibrate(lambda strength: GaussianCost(1 / strength), Budget(1.0, 1e-5), wrong),
        lambda: Guarantee(1.0, 1e-6, wrong),
        *(lambda reading=reading: reading(cost, wrong) for reading in READINGS.values()),
    ]
    for entry in entries:
        with pytest.raises(InvalidArgument, match="relation") as refused:
            entry()
        assert repr(wrong) in str(refused.value)


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_problem_by_name_draws_the_same_noise(relation):
    rng = np.random.default_rng(0)
    source = as_source(rng.normal(size=(40, 3)), rng.choice([-1.0, 1.0], 40))
    found = []
    for given in (relation, relation.value):
        problem, solver = Problem(Logistic(), Zero(), 40, 3, given), ProximalGradient(steps=3)
        quote = solver.plan(problem).quote(problem, Budget(1.0, 1e-5))
        curator = Curator(
            source, quote.plan, quote.multipliers, given, SeededSampler(1), SeededCoins(2)
        )
        found.append(
            (quote.multipliers, run(solver, problem, curator).w.tolist(), curator.relation)
        )
    assert found[0] == found[1]


def restored_with_names(guarantee):
    """Guarantee restored by a format without enumerations: the relation is plain text."""
    empty = object.__new__(Guarantee)
    empty.__setstate__({**vars(guarantee), "relation": guarantee.relation.value})
    return empty


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "restored",
    [restored_with_names, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))],
    ids=["by name", "copied", "pickled"],
)
def test_a_guarantee_that_was_stored_elsewhere_prints_as_before(relation, restored):
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.tile([0, 1], 15)
    model = PrivateLogisticRegression(
        adjacency=relation.value, solver="proximal-gd", classes=[0, 1], delta=1e-3
    ).fit(X, y)
    again = restored(model.privacy_)
    assert again == model.privacy_
    assert again.relation is relation
    assert str(again) == str(model.privacy_)


def test_only_one_place_tells_relations_apart():
    """A direct comparison elsewhere could take a name for the other relation."""
    root = Path(hushfit.__file__).parent
    members = {"REPLACE_ONE", "ADD_REMOVE"}
    offenders = []
    for path in root.rglob("*.py"):
        if path.name == "_relation.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            compared = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
            compared += [node.value] if isinstance(node, ast.MatchValue) else []
            if any(isinstance(side, ast.Attribute) and side.attr in members for side in compared):
                offenders.append(f"{path.relative_to(root)}:{node.lineno}")
    assert offenders == []
