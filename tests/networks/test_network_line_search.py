"""Private line search on networks: one batch, one cost, bounded decreases."""

import itertools
import math

import numpy as np
import pytest
import torch
from _networks import CLASSES, curator, network, records, source

from hushfit.errors import InvalidArgument, UndeclaredRelease
from hushfit.privacy import Budget, GatedCost, Relation, epsilon_of
from hushfit.release import GatedBatch, GatedStep, Planned, PoissonBatch
from hushfit.torch import (
    NetworkGate,
    NetworkGatedStep,
    NetworkGradient,
    NetworkLossDrop,
    NetworkSearch,
    PrivateMLPClassifier,
    quote_of,
)
from hushfit.torch.solvers import NetworkBLS, run_network

SIZES = np.array([2.0, 0.5, 0.1])


def drop_of(net, bound=0.4, seed=2):
    direction = np.random.default_rng(seed).normal(size=net.size)
    return NetworkLossDrop(net, net.start, direction, SIZES, bound)


@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_a_record_moves_every_decrease_by_its_clip_at_most(name):
    net = network(name, n_units=40, relation="add-remove")
    X, y = records(net, 40, size=5.0)
    drop = drop_of(net)
    whole = drop(source(net, X, y), None)
    moved = np.array([whole - drop(source(net, X, y), np.delete(np.arange(40), k)) for k in (0, 9)])
    assert (np.abs(moved) <= drop.radii).all()
    assert np.abs(moved).max() >= 0.4 * (1 - 1e-9)  # half the bound would be exceeded
    gate = NetworkGate(drop, np.zeros(3))
    assert gate.radius() < 1 + 1e-9
    assert gate.sensitivity(Relation.REPLACE_ONE) == 2 * gate.radius()


def test_decreases_are_those_of_the_losses():
    net = network("mlp")
    X, y = records(net, 40)
    drop = drop_of(net, bound=1e6)
    expected = []
    for step in [0.0, *SIZES]:
        net.model.load(net.start - step * drop.direction)
        with torch.no_grad():
            expected.append(float(net.model.losses(torch.tensor(X), torch.tensor(y)).sum()))
    np.testing.assert_allclose(
        drop(source(net, X, y), None), expected[0] - np.array(expected[1:]), rtol=1e-4
    )


def test_losses_that_overflow_count_as_their_bound_and_nan_as_nothing():
    net = network("mlp")
    X, y = records(net, 4)
    X[0] = 3e38
    drop = drop_of(net)
    others = drop(source(net, X[1:], y[1:]), None)
    moved = drop(source(net, X, y), None) - others
    assert (np.abs(moved) <= drop.radii).all()


def test_gradient_and_gate_of_one_batch_have_one_cost():
    """The thesis amplified both by sampling, each by itself; together they cost more."""
    net = network("mlp", n_units=1000, relation="add-remove")
    solver = NetworkBLS(expected_steps=500, rate=0.01, gate=0.5, candidates=8)
    [part] = solver.plan(net).parts
    assert part.query is NetworkGatedStep
    cost = part.sampling.cost(1.0, 500, 1000)
    assert isinstance(cost, GatedCost)
    together = epsilon_of(cost, 1e-6, Relation.ADD_REMOVE)
    gradient = epsilon_of(PoissonBatch(0.01).cost(1.0, 500, 1000), 1e-6, Relation.ADD_REMOVE)
    assert together > 1.1 * gradient
    # The same cost as the linear step of the same settings.
    assert cost == GatedBatch(0.01, gate=0.5, queries=8).cost(1.0, 500, 1000)


def test_a_gate_of_networks_is_planned_with_its_own_mechanism_only():
    with pytest.raises(InvalidArgument, match="GatedStep alone"):
        Planned("step", NetworkGatedStep, 1, sampling=GatedBatch(0.1))
    with pytest.raises(InvalidArgument, match="Plan it with GatedBatch"):
        Planned("step", NetworkGatedStep, 1, sampling=PoissonBatch(0.1))
    with pytest.raises(InvalidArgument, match="NetworkGatedStep alone"):
        Planned("step", GatedStep, 1, sampling=GatedBatch(0.1, answers=NetworkGatedStep))


def test_more_candidates_than_paid_for_are_refused():
    net = network("mlp")
    X, y = records(net, 40)
    solver = NetworkBLS(expected_steps=2, rate=1.0, candidates=2)
    door = curator(net, solver, source(net, X, y), multiplier=1.0)
    search = NetworkSearch(SIZES, 40.0, 1.0, 0.1, 0.0)
    with pytest.raises(UndeclaredRelease, match="at most 2 candidates"):
        door.release("step", NetworkGatedStep(NetworkGradient(net, net.start, 1.0), search))
    with pytest.raises(InvalidArgument, match="one number for each"):
        NetworkGate(drop_of(net), np.zeros(2))


def test_without_noise_every_step_decreases_the_objective():
    net = network("mlp", n_units=40)
    X, y = records(net, 40)
    solver = NetworkBLS(
        expected_steps=6, rate=1.0, clip=1e6, objective_clip=1e6, weight_decay=0.01, average_last=0
    )
    door = curator(net, solver, source(net, X, y))
    states = []
    run_network(solver, net, door, seen=states.append)

    def objective(w):
        net.model.load(w)
        with torch.no_grad():
            loss = float(net.model.losses(torch.tensor(X), torch.tensor(y)).mean())
        return loss + 0.005 * float(w @ w)

    values = [objective(net.start), *(objective(state.w) for state in states)]
    assert all(after < before for before, after in itertools.pairwise(values))


def test_every_candidate_is_evaluated_whatever_the_gate_says(monkeypatch):
    net = network("mlp", n_units=40)
    X, y = records(net, 40)
    loads = []
    monkeypatch.setattr(type(net.model), "load", lambda self, w: loads.append(1))
    gate = NetworkGate(drop_of(net), np.full(3, -math.inf))
    assert gate(source(net, X, y), None) == [0.0]
    assert len(loads) == 1 + len(SIZES)


@pytest.mark.parametrize("variant", ["sgd", "cheb", "ac"])
@pytest.mark.filterwarnings("ignore::hushfit.errors.WeakGuaranteeWarning")
def test_fits_with_a_line_search_pay_what_they_declare(variant):
    rng = np.random.default_rng(0)
    y = rng.integers(0, CLASSES, 300)
    X = (rng.normal(size=(300, 6)) + 2 * np.eye(CLASSES, 6)[y]).astype(np.float32)
    solver = NetworkBLS(variant, expected_steps=8, rate=0.5, candidates=4)
    model = PrivateMLPClassifier(
        (4,), epsilon=3.0, delta=1e-4, classes=range(CLASSES), solver=solver
    ).fit(X, y)
    assert model.privacy_.epsilon == 3.0
    kind = "NetworkGatedStep" if variant == "sgd" else "Priced"
    assert kind in str(model.privacy_)
    spent = epsilon_of(model.privacy_.cost, 1e-4, Relation.REPLACE_ONE)
    assert 2.5 < spent <= 3.0


def test_a_failed_check_releases_a_second_gradient_and_a_gate_of_its_own():
    """With steps so long that none passes, CHEB looks again on fresh batches."""
    net = network("mlp", n_units=200)
    X, y = records(net, 200)
    solver = NetworkBLS("ac", expected_steps=2, rate=0.5, first_step=1e4, shrink=0.99, candidates=3)
    door = curator(net, solver, source(net, X, y))
    run_network(solver, net, door)
    asked = [type(one.query.query).__name__ for one in door.transcript]
    assert asked[:3] == ["NetworkGatedStep", "NetworkGradient", "NetworkGate"]
    assert len(asked) <= 6


def test_settings_that_do_not_fit_are_refused():
    for wrong in (
        {"variant": "gd"},
        {"expected_steps": 0},
        {"shrink": 1.0},
        {"gate_noise": "uniform"},
        {"candidates": 0},
        {"weight_decay": -1.0},
        {"rate": 1.5},
    ):
        with pytest.raises(InvalidArgument):
            NetworkBLS(**wrong)
    model = PrivateMLPClassifier((4,), classes=[0, 1], solver="bls-ac", checkpoint="somewhere")
    with pytest.raises(InvalidArgument, match="chooses its noise during the run"):
        model.fit(np.zeros((300, 3)), np.arange(300) % 2)


@pytest.mark.parametrize("steps", [20, 100])
def test_the_filter_of_an_adaptive_run_affords_its_expected_steps(steps):
    """Small batches and little noise: Renyi curves are loose there, and no step would be made."""
    net, budget = network("linear", n_units=60_000, relation="add-remove"), Budget(3.0, 1e-5)
    solver = NetworkBLS("cheb", steps, 1 / 200).for_budget(budget, net)
    run = quote_of(solver, net, budget).multipliers["run"]
    [part] = solver.plan(net).parts
    left = part.sampling.filter(run, net.relation)
    multiplier = solver._affordable(net, run)
    assert left.affords(solver._together.cost(multiplier, steps, net.n_units))
