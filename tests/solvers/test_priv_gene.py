"""PrivGene: children of chosen parents, of which only indices are released."""

import math

import numpy as np
import pytest

from _support import (
    RELATIONS,
    curator_over,
    problem_for,
    records_of,
    source_of,
    three_classes,
    two_classes,
    without_noise,
)
from hushfit import PrivateLogisticRegression
from hushfit.errors import InvalidArgument
from hushfit.losses import Softmax
from hushfit.penalties import L1, ScaledL2
from hushfit.privacy import Budget, PureCost
from hushfit.release import choice_between
from hushfit.solvers import ExactMinimiser, PrivGene, run, solver_from


def points_of(problem, count=6, seed=0):
    return np.random.default_rng(seed).standard_normal((count, *problem.shape))


@pytest.mark.parametrize("penalty", [ScaledL2(0.3), L1(0.2)], ids=repr)
def test_without_noise_the_child_with_the_least_objective_is_chosen(penalty):
    X, y = two_classes(n=300)
    problem, Z = problem_for(X, penalty=penalty), records_of(X)
    w, points = np.full(problem.shape, 0.2), points_of(problem)
    objective = [
        problem.loss.value(Z @ point, y).mean() + penalty.value(problem.columns(point))
        for point in points
    ]
    chosen = choice_between(problem, w, points, 1e6)(source_of(X, y), None)
    assert chosen[0] == np.argmin(objective)


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_no_record_moves_a_score_by_more_than_one_unit(relation):
    """Distances bound the decreases: far children are clipped, near ones have a smaller bound."""
    X, y = two_classes(n=40)
    problem = problem_for(X, relation=relation)
    w = np.zeros(problem.shape)
    points = points_of(problem) * np.array([1e-3, 0.1, 1, 5, 50, 1e4]).reshape(-1, 1)
    query = choice_between(problem, w, points, 0.7)
    rng = np.random.default_rng(1)
    most = 0.0
    scores = query.scores(source_of(X, y), None)
    for _ in range(200):
        other, labels = X.copy(), y.copy()
        other[0], labels[0] = rng.standard_normal(X.shape[1]), rng.choice([-1.0, 1.0])
        if rng.random() < 0.5:  # along a child
            other[0] = points[rng.integers(len(points)), : X.shape[1]]
        moved = query.scores(source_of(other, labels), None) - scores
        most = max(most, float(np.abs(moved).max()))
    replaced = 2 * query.radius()
    assert 0.5 * replaced < most <= replaced


def test_children_are_the_parents_and_crossings_with_one_coordinate_moved():
    solver = PrivGene(children=40, mutation=3.0)
    parents = np.stack([np.zeros(9), np.ones(9)])
    children = solver._children(np.random.default_rng(0), parents, 3.0)
    np.testing.assert_array_equal(children[:2], parents)
    moved = ~np.isin(children[2:], [0.0, 1.0])
    assert (moved.sum(axis=1) == 1).all()
    assert set(np.unique(children[2:][moved])) <= {3.0, -3.0, 4.0, -2.0}
    # Both parents come first in some crossings, and some crossings have parts of both.
    rest = np.where(moved, np.nan, children[2:])
    assert {0.0, 1.0} == set(rest[:, 0][~np.isnan(rest[:, 0])])
    assert any(len(np.unique(row[~np.isnan(row)])) == 2 for row in rest)


def test_two_choices_are_paid_for_in_each_generation():
    problem = problem_for(np.empty((1000, 5)))
    plan = PrivGene(generations=7).plan(problem)
    assert plan.cost({"selection": 4.0}, 1000) == PureCost(0.5, 14)


def test_the_seed_is_public_and_alone_decides_the_children():
    X, y = two_classes(n=200)
    problem = problem_for(X)

    def fitted(seed):
        solver = PrivGene(generations=5, children=10, seed=seed)
        return without_noise(solver, problem, X, y)

    np.testing.assert_array_equal(fitted(3), fitted(3))
    assert not np.array_equal(fitted(3), fitted(4))


@pytest.mark.parametrize("penalty", [ScaledL2(0.05), L1(0.01)], ids=repr)
def test_without_privacy_many_generations_come_close_to_the_minimum(penalty):
    X, y = two_classes(n=300, d=3)
    problem, Z = problem_for(X, penalty=penalty), records_of(X)

    def objective(solver):
        w = without_noise(solver, problem, X, y)
        return problem.loss.value(Z @ w, y).mean() + penalty.value(problem.columns(w))

    search = PrivGene(generations=150, children=24, mutation=3.0, last_mutation=0.01)
    search = solver_from(search, problem, Budget(math.inf, 1e-6))
    least = objective(ExactMinimiser())
    assert least - 1e-7 <= objective(search) <= least + 2e-3


def test_generations_grow_with_the_rows_and_the_budget_within_limits():
    few, many = (problem_for(np.empty((n, 5))) for n in (500, 50_000))
    generations = [
        solver_from("priv-gene", problem, Budget(epsilon, 1e-6)).generations
        for problem, epsilon in [(few, 1.0), (many, 1.0), (many, 3.0), (many, 50.0)]
    ]
    assert generations[0] == 8
    assert generations[0] < generations[1] < generations[2] < generations[3] == 100
    given = PrivGene(generations=3)
    assert solver_from(given, many, Budget(1.0, 1e-6)).generations == 3


@pytest.mark.parametrize(
    "wrong",
    [{"children": 2}, {"children": 257}, {"generations": 0}, {"mutation": -1.0}],
    ids=str,
)
def test_settings_are_checked(wrong):
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        PrivGene(**wrong)


def test_several_classes_are_searched_too():
    X, y = three_classes(n=300)
    problem = problem_for(X, Softmax(3), 3)
    solver = PrivGene(generations=40, children=16)
    result = run(solver, problem, curator_over(source_of(X, y), solver.plan(problem), 0.0))
    assert result.w.shape == problem.shape
    losses = problem.loss.value(records_of(X) @ result.w.T, y).mean()
    assert losses < 0.9 * math.log(3)


@pytest.mark.usefixtures("quiet_fits")
def test_a_model_learns():
    X, y = two_classes(n=4000)
    model = PrivateLogisticRegression(
        epsilon=4.0, delta=1e-6, solver="priv-gene", classes=[-1, 1], random_state=0
    ).fit(X, y)
    assert model.score(X, y) > 0.7
