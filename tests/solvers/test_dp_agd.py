"""DP-AGD: a failed search spends more on the gradient, within a Gaussian filter."""

import math

import numpy as np
import pytest

from _support import (
    RELATIONS,
    curator_over,
    problem_for,
    records_of,
    source_of,
    two_classes,
    without_noise,
)
from hushfit import PrivateLogisticRegression
from hushfit.errors import InvalidArgument
from hushfit.penalties import L1, SCAD, ScaledL2
from hushfit.privacy import Budget, GaussianCost, PureCost, calibrate, gaussian_mu
from hushfit.privacy.accounting._filter import gaussian_mu_of_pure
from hushfit.release import Choice, ClippedGradient
from hushfit.solvers import DPAGD, ExactMinimiser, run, solver_from


def asked_by(solver, problem, X, y, multiplier):
    """Door that records all queries of a run with their answers."""
    plan = solver.plan(problem)
    curator = curator_over(source_of(X, y), plan, multiplier, problem.relation)
    asked, release = [], curator.release

    def spying(name, query):
        answer = release(name, query)
        asked.append((query, answer))
        return answer

    curator.release = spying
    return run(solver, problem, curator), asked


def square(cost):
    mu = cost.mu if isinstance(cost, GaussianCost) else gaussian_mu_of_pure(cost.epsilon)
    return mu * mu


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize("multiplier", [0.3, 3.0])
def test_the_squares_of_all_releases_add_up_to_the_price(relation, multiplier):
    X, y = two_classes(n=1000)
    problem, solver = problem_for(X, relation=relation), DPAGD(steps=20)
    _, asked = asked_by(solver, problem, X, y, multiplier)
    costs = [query.cost for query, _ in asked]
    assert {type(cost) for cost in costs} == {GaussianCost, PureCost}
    total = sum(map(square, costs))
    assert total <= 1 / multiplier**2
    assert total >= 0.8 / multiplier**2
    assert solver.plan(problem).cost({"run": multiplier}, 1000) == GaussianCost(multiplier)


def test_a_choice_of_no_step_buys_a_better_gradient():
    """After a zero the gradient is released again; later ones have the budget of both."""
    X, y = two_classes(n=300)
    problem, solver = problem_for(X), DPAGD(steps=15, increase=0.5, first_length=200.0)
    _, asked = asked_by(solver, problem, X, y, 0.5)
    zeros = [
        i
        for i, (query, answer) in enumerate(asked)
        if isinstance(query.query, Choice) and answer[0] == 0
    ]
    raised = [i for i in zeros if i + 1 < len(asked)]
    assert raised
    for i in raised:
        (before, _), (after, _) = (
            next(pair for pair in asked[:i][::-1] if isinstance(pair[0].query, ClippedGradient)),
            asked[i + 1],
        )
        assert isinstance(after.query, ClippedGradient)
        np.testing.assert_array_equal(after.query.w, before.query.w)
    gradients = [query for query, _ in asked if isinstance(query.query, ClippedGradient)]
    first, last = square(gradients[0].cost), max(square(query.cost) for query in gradients)
    assert last > first


def test_prices_rise_by_what_was_bought():
    """First gradient mu, top-up mu sqrt(increase), next gradient mu sqrt(1 + increase)."""
    X, y = two_classes(n=300)
    problem, solver = problem_for(X), DPAGD(steps=15, increase=0.5, first_length=200.0)
    _, asked = asked_by(solver, problem, X, y, 0.5)
    squares = [square(query.cost) for query, _ in asked if isinstance(query.query, ClippedGradient)]
    known = {0: squares[0]}
    allowed = {squares[0] * 1.5**k * part for k in range(30) for part in (1.0, 0.5)}
    for value in squares:
        assert any(value == pytest.approx(other, rel=1e-9) for other in allowed)
    assert known[0] == pytest.approx((1 - 0.2) / (0.25 * 15))


def test_calibration_is_the_closed_form():
    problem = problem_for(np.empty((1000, 5)))
    plan = DPAGD().plan(problem)
    strength = calibrate(
        lambda mu: plan.cost(plan.multipliers(mu, 1000), 1000), Budget(0.7, 1e-6), problem.relation
    )
    assert strength == pytest.approx(gaussian_mu(0.7, 1e-6), rel=1e-8)


@pytest.mark.parametrize("penalty", [ScaledL2(0.01), L1(0.01)], ids=repr)
def test_without_privacy_it_comes_close_to_the_minimum(penalty):
    X, y = two_classes()
    problem, Z = problem_for(X, penalty=penalty), records_of(X)
    solver = solver_from(DPAGD(steps=150), problem, Budget(math.inf, 1e-6))

    def objective(w):
        return problem.loss.value(Z @ w, y).mean() + penalty.value(problem.columns(w))

    w = without_noise(solver, problem, X, y)
    least = without_noise(ExactMinimiser(), problem, X, y)
    assert objective(least) - 1e-7 <= objective(w) <= objective(least) + 2e-3


@pytest.mark.usefixtures("quiet_fits")
def test_a_model_learns():
    X, y = two_classes(n=8000)
    model = PrivateLogisticRegression(
        epsilon=1.0, delta=1e-6, solver="dp-agd", classes=[-1, 1], random_state=0
    ).fit(X, y)
    exact = PrivateLogisticRegression(
        epsilon=math.inf, delta=1e-6, classes=[-1, 1], random_state=0
    ).fit(X, y)
    assert model.score(X, y) > exact.score(X, y) - 0.03


@pytest.mark.parametrize(
    "settings",
    [
        {"steps": 0},
        {"clip": -1.0},
        {"candidates": 1},
        {"choice_share": 1.0},
        {"increase": 0.0},
        {"first_length": math.inf},
    ],
    ids=str,
)
def test_senseless_settings_are_refused(settings):
    with pytest.raises(InvalidArgument):
        DPAGD(**settings)


def test_penalties_that_are_not_convex_are_refused():
    with pytest.raises(InvalidArgument, match="not convex"):
        DPAGD().plan(problem_for(np.empty((100, 4)), penalty=SCAD(0.1)))
