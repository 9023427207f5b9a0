"""The classic theorem of objective perturbation: noise, conditions, and exact densities."""

import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from _support import (
    RELATIONS,
    problem_for,
    records_of,
    two_classes,
    without_noise,
)
from hushfit import PrivateLogisticRegression
from hushfit.errors import InfeasibleBudget, InvalidArgument
from hushfit.losses import HuberHinge, Logistic, OneVsRest, Softmax, Squared
from hushfit.penalties import L1, MCP, GroupLasso, ScaledL2, Zero
from hushfit.privacy import (
    Budget,
    Relation,
    calibrate,
    compose,
    cost_from_dict,
    delta_of,
    epsilon_of,
    gaussian_delta,
)
from hushfit.privacy.costs._classic_objective_cost import (
    ClassicObjectiveCost,
    classic_delta,
    classic_epsilon,
    classic_multiplier,
)
from hushfit.release import ClassicInside, ClippedGradient, Planned
from hushfit.solvers import ClassicObjective, ExactMinimiser, solver_from

OPEN = Budget(math.inf, 1e-6)
REPLACE_ONE = Relation.REPLACE_ONE


def test_the_formula_is_the_published_one():
    """sqrt(8 log(2/delta) + 4 epsilon) / epsilon: 10.08 at (1, 1e-5); a Gaussian release needs
    3.73.
    """
    assert classic_multiplier(1.0, 1e-5) == pytest.approx(10.0821, abs=1e-4)
    for epsilon, delta in ((0.1, 1e-6), (1.0, 1e-5), (4.0, 1e-8)):
        m = classic_multiplier(epsilon, delta)
        assert classic_epsilon(m, delta) == pytest.approx(epsilon, rel=1e-12)
        assert classic_delta(m, np.array([epsilon]))[0] == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-5), (4.0, 1e-8)])
def test_a_cost_says_what_the_theorem_says(epsilon, delta, relation):
    cost = ClassicObjectiveCost(classic_multiplier(epsilon, delta), 0.3 * epsilon)
    assert 0.98 * epsilon <= epsilon_of(cost, delta, relation) <= 1.001 * epsilon
    assert delta_of(cost, epsilon, relation) == pytest.approx(delta, rel=0.05)
    assert cost_from_dict(cost.to_dict()) == cost
    assert epsilon_of(compose([cost, cost]), 3 * delta, relation) > epsilon


def test_below_twice_kappa_the_theorem_is_silent():
    cost = ClassicObjectiveCost(classic_multiplier(0.1, 1e-6), 0.5)
    assert epsilon_of(cost, 1e-6, REPLACE_ONE) == pytest.approx(1.0, rel=1e-2)
    assert delta_of(cost, 0.5, REPLACE_ONE) > 0.1


def test_the_profile_is_a_profile():
    """Convex in e^epsilon, falling, between (1 - e^epsilon)+ and 1, and never above the theorem."""
    for m, kappa in ((0.5, 0.0), (3.0, 0.2), (50.0, 0.001)):
        cost = ClassicObjectiveCost(m, kappa)
        pair = cost.directions(REPLACE_ONE).remove
        epsilons = np.linspace(pair.low, pair.high, 4001)
        bound = pair.profile(epsilons)
        assert np.all(bound <= 1 + 1e-15)
        assert np.all(bound >= np.maximum(-np.expm1(epsilons), 0.0) - 1e-15)
        slopes = np.diff(bound) / np.diff(np.exp(epsilons))
        assert np.all(
            np.diff(slopes) >= -1e-6 * np.abs(slopes[1:]) - 2e-15 / np.diff(np.exp(epsilons))[:-1]
        )
        assert np.all(np.diff(bound) <= 1e-15)
        above = epsilons >= 2 * kappa
        assert np.all(bound[above] <= classic_delta(m, epsilons[above]) + 1e-12)


# Against exact densities, in one dimension


def log_density(theta, x, targets, bend, mu, sigma):
    """Log density of the minimiser: Huber slopes of margin minus target; logistic loss for bend
    None.
    """
    margins = np.multiply.outer(theta, x) - targets
    slope, curvature = (
        (-expit(-margins), expit(margins) * expit(-margins))
        if bend is None
        else (np.clip(margins / bend, -1, 1), (np.abs(margins) < bend) / bend)
    )
    gradient = (slope * x).sum(axis=1) / len(x) + mu * theta
    return norm.logpdf(gradient, scale=sigma) + np.log((curvature * x**2).sum(axis=1) / len(x) + mu)


def exact_delta(tables, bend, mu, sigma, epsilon):
    theta = np.linspace(-1, 1, 40_001) * 2 * (12 * sigma + 2) / mu
    log_p, log_q = (log_density(theta, x, targets, bend, mu, sigma) for x, targets in tables)
    return float(
        np.maximum(np.exp(log_p) - np.exp(epsilon + log_q), 0).sum() * (theta[1] - theta[0])
    )


def tables_1d(count, seed=0):
    rng = np.random.default_rng(seed)
    for trial in range(count):
        n = int(rng.integers(1, 4))
        x = rng.uniform(-1, 1, n)
        x[0] = rng.choice([-1.0, 1.0])
        other, target = x.copy(), np.zeros(n)
        other[0] = rng.choice([-x[0], 0.0, 0.5 * x[0]])
        bend = None if trial % 2 else float(rng.choice([0.3, 1.0]))
        target[0] = 0.0 if bend is None else rng.choice([0.0, 200.0])
        yield n, [(x, target), (other, -target)], bend


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-2), (2.0, 1e-3)])
def test_the_theorem_holds_against_exact_densities(epsilon, delta):
    """mu at the theorem's limit and its noise, replace-one, logistic and huberised: never above
    delta.
    """
    for n, tables, bend in tables_1d(40):
        smoothness = 0.25 if bend is None else 1 / bend
        mu = 2 * smoothness / (n * epsilon)
        sigma = classic_multiplier(epsilon, delta) * 2 / n
        assert exact_delta(tables, bend, mu, sigma, epsilon) <= delta


def test_a_quarter_of_the_noise_would_break_it():
    """The theorem is loose by more than two: half the noise still satisfies it, a quarter does
    not.
    """
    epsilon, delta = 2.0, 1e-3
    tables = [(np.ones(1), np.full(1, target)) for target in (200.0, -200.0)]
    mu, m = 2 / epsilon, classic_multiplier(epsilon, delta)
    found = {
        share: exact_delta(tables, 1.0, mu, share * m * 2, epsilon) for share in (1.0, 0.5, 0.25)
    }
    assert found[1.0] < found[0.5] < delta < found[0.25]
    assert found[0.25] == pytest.approx(gaussian_delta(epsilon, 4 / m), rel=1e-3)


def test_without_the_condition_on_mu_it_breaks():
    """Noise by the theorem, but a tenth of the curvature: the determinant costs over epsilon /
    2.
    """
    epsilon, delta, n = 0.5, 1e-2, 1
    sigma = classic_multiplier(epsilon, delta) * 2 / n
    tables = [(np.ones(1), np.zeros(1)), (np.zeros(1), np.zeros(1))]
    enough, little = 2 / (0.02 * n * epsilon), 0.02 * 2 / (0.02 * n * epsilon)
    assert exact_delta(tables, 0.02, enough, sigma, epsilon) <= delta
    assert exact_delta(tables, 0.02, little / 20, sigma, epsilon) > delta


# The solver


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_noise_is_the_classic_one(epsilon, relation):
    """Never below the formula, and above it only by the cost of the noise on the output."""
    problem = problem_for(np.empty((20_000, 5)), relation=relation)
    budget = Budget(epsilon, 1e-6)
    plan = solver_from("objective-kifer", problem, budget).plan(problem)
    strength = calibrate(lambda s: plan.cost(plan.multipliers(s, 20_000), 20_000), budget, relation)
    m = plan.multipliers(strength, 20_000)["minimiser"]
    assert classic_multiplier(epsilon, 1e-6) <= m <= 1.1 * classic_multiplier(epsilon, 1e-6)


def test_it_needs_more_noise_than_the_sharp_theorem():
    problem, budget = problem_for(np.empty((20_000, 5))), Budget(1.0, 1e-6)
    found = {}
    for name in ("objective", "objective-kifer"):
        plan = solver_from(name, problem, budget).plan(problem)
        strength = calibrate(
            lambda s, plan=plan: plan.cost(plan.multipliers(s, 20_000), 20_000), budget, REPLACE_ONE
        )
        found[name] = plan.multipliers(strength, 20_000)["minimiser"]
    assert 2.2 < found["objective-kifer"] / found["objective"] < 2.8


def test_a_mu_below_the_condition_is_refused():
    problem = problem_for(np.empty((1000, 4)))
    with pytest.raises(InvalidArgument, match=r"below 0.0005.*'objective'"):
        solver_from(ClassicObjective(mu=4e-4), problem, Budget(1.0, 1e-6))
    assert solver_from(ClassicObjective(mu=6e-4), problem, Budget(1.0, 1e-6)).mu == 6e-4
    # A solver without `for_budget` cannot bypass it: the plan does not fit the budget.
    plan = ClassicObjective(mu=1e-4).plan(problem)
    with pytest.raises(InfeasibleBudget):
        calibrate(
            lambda s: plan.cost(plan.multipliers(s, 1000), 1000), Budget(1.0, 1e-6), REPLACE_ONE
        )


def test_problems_beyond_the_theorem_are_refused():
    for loss in (Softmax(3), OneVsRest(Logistic(), 3)):
        with pytest.raises(InvalidArgument, match=r"one output, not 3.*'objective'"):
            ClassicObjective().plan(problem_for(np.empty((50, 4)), loss, 3))
    with pytest.raises(InvalidArgument, match="not convex"):
        ClassicObjective().plan(problem_for(np.empty((50, 4)), penalty=MCP(0.1, 3.0)))
    with pytest.raises(InvalidArgument, match="rank one"):
        ClassicInside(0.1, rank=2)
    with pytest.raises(InvalidArgument, match="Plan only PerturbedMinimiser"):
        Planned("gradient", ClippedGradient, 1, sampling=ClassicInside(0.1))


CASES = {
    "logistic": (Logistic(), Zero()),
    "logistic, ridge": (Logistic(), ScaledL2(0.01)),
    "logistic, lasso": (Logistic(), L1(0.01)),
    "logistic, groups": (Logistic(), GroupLasso(0.01, ((0, 1), (2, 3)))),
    "hinge, ridge": (HuberHinge(), ScaledL2(0.01)),
    "squared, ridge": (Squared(), ScaledL2(0.01)),
}


@pytest.mark.parametrize(("loss", "penalty"), CASES.values(), ids=CASES)
def test_without_noise_the_minimum_is_found(loss, penalty):
    X, y = two_classes(n=400, d=4)
    problem, Z = problem_for(X, loss, penalty=penalty), records_of(X)
    solver = solver_from("objective-kifer", problem, OPEN)

    def value(w, mu):
        return float(loss.value(Z @ w, y).mean()) + penalty.value(w[:4]) + mu / 2 * w @ w

    w = without_noise(solver, problem, X, y)
    best = without_noise(ExactMinimiser(), problem, X, y)
    assert value(w, solver.mu) <= value(best, solver.mu) + 1e-9
    assert value(w, 0.0) <= value(best, 0.0) + 0.5 * solver.mu * best @ best + 1e-9


@pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")
def test_the_estimator_takes_the_name_and_learns():
    X, y = two_classes(4000, 4, sharpness=12.0)
    model = PrivateLogisticRegression(
        epsilon=1.0, delta=1e-6, solver="objective-kifer", classes=(-1, 1), random_state=0
    ).fit(X, y)
    exact = PrivateLogisticRegression(
        epsilon=math.inf, delta=1e-6, solver="exact", classes=(-1, 1)
    ).fit(X, y)
    assert model.score(X, y) > exact.score(X, y) - 0.05
