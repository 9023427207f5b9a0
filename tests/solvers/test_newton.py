"""Newton with two noises: curvatures, their sensitivity, and convergence."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from _support import (
    RELATIONS,
    SOURCES,
    curator_over,
    problem_for,
    records_of,
    source_of,
    table,
    three_classes,
    two_classes,
    without_noise,
)
from hushfit import PrivateLogisticRegression
from hushfit.errors import InvalidArgument
from hushfit.losses import HuberHinge, Logistic, OneVsRest, Softmax, Squared
from hushfit.penalties import L1, MCP, GroupLasso, ScaledL2, Zero
from hushfit.privacy import Budget, Relation, SecureSampler
from hushfit.release import FullBatch, HessianSum, NewtonDirection, Plan, Planned, PoissonBatch
from hushfit.release.queries._hessian import curvatures
from hushfit.solvers import DoubleNoiseNewton, ExactMinimiser, solver_from

OPEN = Budget(math.inf, 1e-6)
SCALAR = [Logistic(), HuberHinge(), HuberHinge(bend=0.1), Squared(0.7)]
numbers = st.floats(-20, 20)


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
@given(t=numbers, y=st.sampled_from([-1.0, 1.0]))
def test_the_hessian_is_the_derivative_of_the_slope(loss, t, y):
    step = 1e-6
    ends = loss.slope(np.array([t - step, t + step]), np.full(2, y))
    found = curvatures(loss, np.array([t]), np.array([y]), "hessian")[0]
    by_difference = (ends[1] - ends[0]) / (2 * step)
    corner = isinstance(loss, HuberHinge | Squared) and 0 < by_difference < loss.smoothness * (
        1 - 1e-4
    )  # on both sides of a kink
    assert corner or found == pytest.approx(by_difference, abs=1e-4)


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
@given(t=numbers, s=numbers, y=st.sampled_from([-1.0, 1.0]))
def test_a_majorant_lies_above_the_loss_everywhere(loss, t, s, y):
    at, label = np.array([t]), np.array([y])
    c = curvatures(loss, at, label, "majorant")[0]
    parabola = (
        loss.value(at, label)[0] + loss.slope(at, label)[0] * (s - t) + 0.5 * c * (s - t) ** 2
    )
    assert parabola >= loss.value(np.array([s]), label)[0] - 1e-9
    assert 0 <= c <= loss.smoothness * (1 + 1e-12)


@settings(max_examples=50)
@given(t=st.lists(numbers, min_size=3, max_size=3))
def test_one_number_bounds_the_curvature_of_all_classes(t):
    t = np.array([t])
    p = np.exp(t[0] - t.max())
    p /= p.sum()
    largest = np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[-1]
    found = curvatures(Softmax(3), t, np.zeros(1), "hessian")[0]
    assert largest - 1e-12 <= found <= Softmax(3).smoothness
    assert curvatures(Softmax(3), t, np.zeros(1), "majorant")[0] == 0.5


@pytest.mark.parametrize("layout", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_sum_is_the_weighted_sum_of_outer_products(layout, fit_intercept):
    X, y = table(50, 3), two_classes(50, 3)[1]
    problem = problem_for(X, fit_intercept=fit_intercept)
    w = np.random.default_rng(0).normal(size=problem.shape)
    query = HessianSum(problem, w)
    Z = records_of(X, fit_intercept)
    expected = (Z.T * curvatures(Logistic(), Z @ w, y, "hessian")) @ Z
    found = query.matrix(query(source_of(layout(X), y, fit_intercept), None))
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["hessian", "majorant"])
def test_several_outputs_share_one_matrix(kind):
    X, y = three_classes(60, 3)
    for loss in (Softmax(3), OneVsRest(Logistic(), 3), OneVsRest(HuberHinge(), 3)):
        problem = problem_for(X, loss, 3)
        w = np.random.default_rng(0).normal(size=problem.shape)
        Z = records_of(X)
        weights = curvatures(loss, Z @ w.T, y, kind)
        assert weights.shape == (60,)
        query = HessianSum(problem, w, kind)
        np.testing.assert_allclose(
            query.matrix(query(source_of(X, y), None)), (Z.T * weights) @ Z, atol=1e-5
        )


def test_margins_beyond_floating_point_count_for_nothing_rather_than_for_everything():
    X, y = three_classes(20, 3)
    problem = problem_for(X, Softmax(3), 3)
    query = HessianSum(problem, np.full(problem.shape, 1e308))
    with np.errstate(all="ignore"):
        assert np.isfinite(query(source_of(X, y), None)).all()


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_noise_on_the_curvature_is_the_multiplier_times_the_sensitivity(relation):
    """4060 diagonal values: half or twice the standard deviation is 40 standard errors off."""
    problem = problem_for(np.empty((50, 28)), relation=relation)
    query = HessianSum(problem, np.zeros(29))
    plan = Plan((Planned("only", HessianSum, 140),))
    zero_records = source_of(np.full((50, 28), np.nan), np.ones(50))
    curator = curator_over(zero_records, plan, 2.0, relation, sampler=SecureSampler())
    on_diagonal = np.equal(*np.triu_indices(29))
    noise = np.array([curator.release("only", query)[on_diagonal] for _ in range(140)])
    deviation = 2.0 * query.sensitivity(relation)
    assert query.sensitivity(relation) == pytest.approx(
        0.25 * (math.sqrt(2) if relation is Relation.REPLACE_ONE else 1), rel=1e-5
    )
    assert 0.9 < noise.std() / deviation < 1.1


# Directions


def direction(X, y, target, ridge, relation=Relation.REPLACE_ONE):
    problem = problem_for(X, fit_intercept=False, relation=relation)
    query = NewtonDirection(problem, np.zeros(X.shape[1]), target, ridge)
    return query, query(source_of(X, y, fit_intercept=False), None)


def test_the_direction_solves_the_regularised_system():
    X, y = two_classes(80, 4)
    target = np.array([1.0, -2.0, 0.3, 0.0])
    _, found = direction(X, y, target, 0.01)
    Z = records_of(X, fit_intercept=False)
    np.testing.assert_allclose((0.25 * Z.T @ Z / 80 + 0.01 * np.eye(4)) @ found, target, atol=1e-5)


@pytest.mark.parametrize("ridge", [1e-3, 0.1, 0.25])
def test_no_neighbour_turns_a_direction_further_than_promised(ridge):
    rng = np.random.default_rng(0)
    for _ in range(150):
        n = int(rng.integers(1, 5))
        X, target = rng.normal(size=(n, 3)), rng.normal(size=3)
        other = X.copy()
        other[0] = target if rng.random() < 0.3 else rng.normal(size=3)
        if rng.random() < 0.3:
            other[0] = np.nan  # the zero record
        query, found = direction(X, np.ones(n), target, ridge)
        moved = np.linalg.norm(found - direction(other, np.ones(n), target, ridge)[1])
        assert moved <= query.sensitivity(Relation.REPLACE_ONE)


def test_the_bound_on_directions_is_reached():
    """One record along the target against the zero record, or one across it."""
    target, y = np.array([2.0, 0.0]), np.ones(1)
    query, along = direction(np.array([[1.0, 0.0]]), y, target, 0.2)
    for other in ([np.nan, np.nan], [0.0, 1.0]):
        moved = np.linalg.norm(along - direction(np.array([other]), y, target, 0.2)[1])
        assert (
            0.999 * query.sensitivity(Relation.REPLACE_ONE)
            <= moved
            <= query.sensitivity(Relation.REPLACE_ONE)
        )


def test_directions_need_a_ridge():
    problem = problem_for(np.empty((50, 4)))
    for ridge in (0.0, -1.0, 1e-16, math.nan):
        with pytest.raises(InvalidArgument, match="must be finite and at least"):
            NewtonDirection(problem, np.zeros(5), np.ones(5), ridge)


@pytest.mark.parametrize("query", [HessianSum, NewtonDirection])
def test_curvature_has_no_proof_for_batches(query):
    Planned("curvature", query, 1, sampling=FullBatch())
    with pytest.raises(InvalidArgument, match="all rows only"):
        Planned("curvature", query, 1, sampling=PoissonBatch(0.1))


# The solver

CASES = {
    "logistic, ridge": (two_classes(d=4), Logistic(), 1, ScaledL2(0.01)),
    "logistic": (two_classes(d=4), Logistic(), 1, Zero()),
    "logistic, lasso": (two_classes(d=4), Logistic(), 1, L1(0.01)),
    "logistic, groups": (two_classes(d=4), Logistic(), 1, GroupLasso(0.01, ((0, 1), (2, 3)))),
    "hinge, ridge": (two_classes(d=4), HuberHinge(), 1, ScaledL2(0.01)),
    "squared, ridge": (two_classes(d=4), Squared(), 1, ScaledL2(0.01)),
    "softmax, ridge": (three_classes(d=4), Softmax(3), 3, ScaledL2(0.01)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_without_noise_the_minimum_is_found(case):
    (X, y), loss, outputs, penalty = case
    problem = problem_for(X, loss, outputs, penalty=penalty)
    Z = records_of(X)

    def value(w):
        return float(loss.value(Z @ w.T, y).mean()) + penalty.value(problem.columns(w))

    weights = []
    for solver in (DoubleNoiseNewton(steps=80), ExactMinimiser()):
        settled = solver_from(solver, problem, OPEN)
        weights.append(without_noise(settled, problem, X, y))
    assert value(weights[0]) <= value(weights[1]) + 1e-6


def test_second_derivatives_converge_in_a_few_steps():
    """Quadratically: six steps from zero reach what eighty of the majorant do."""
    X, y = two_classes(d=4)
    problem = problem_for(X, penalty=ScaledL2(0.01))
    few, many = (
        DoubleNoiseNewton(steps=6, curvature="hessian", clip=1.0),
        DoubleNoiseNewton(steps=80, clip=1.0),
    )
    w, other = (without_noise(s, problem, X, y) for s in (few, many))
    np.testing.assert_allclose(w, other, atol=1e-4)


def test_the_published_form_converges_too():
    """A ridge makes it a damped method: slower, with the same minimum."""
    X, y = two_classes(d=4)
    problem = problem_for(X, penalty=ScaledL2(0.01))
    published = DoubleNoiseNewton(steps=60, second_noise="direction", clip=1.0)
    ours = replace(published, second_noise="curvature")
    w, other = (without_noise(s, problem, X, y) for s in (published, ours))
    np.testing.assert_allclose(w, other, atol=1e-3)


@pytest.mark.parametrize(
    ("solver", "penalty", "words"),
    [
        (DoubleNoiseNewton(), MCP(0.1, 3.0), "not convex.*'prox-newton'"),
        (
            DoubleNoiseNewton(second_noise="direction"),
            L1(0.1),
            "does not release the curvature.*'curvature'",
        ),
    ],
)
def test_penalties_without_a_newton_step_are_refused(solver, penalty, words):
    with pytest.raises(InvalidArgument, match=words):
        solver.plan(problem_for(np.empty((50, 4)), penalty=penalty))


@pytest.mark.parametrize(
    "wrong",
    [
        {"curvature": "secant"},
        {"second_noise": "none"},
        {"curvature_share": 1.0},
        {"floor": -1.0},
        {"steps": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        DoubleNoiseNewton(**wrong)


@pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")
@pytest.mark.parametrize("solver", ["newton", DoubleNoiseNewton(second_noise="direction")])
def test_the_estimator_takes_it_and_learns(solver):
    X, y = two_classes(4000, 4, sharpness=12.0)
    model = PrivateLogisticRegression(
        epsilon=1.0, delta=1e-6, solver=solver, classes=(-1, 1), random_state=0
    ).fit(X, y)
    exact = PrivateLogisticRegression(
        epsilon=math.inf, delta=1e-6, solver="exact", classes=(-1, 1)
    ).fit(X, y)
    assert model.score(X, y) > exact.score(X, y) - 0.03


def test_a_target_of_another_shape_is_refused():
    """Noise drawn for one entry and added to two would cancel in their difference."""
    problem = problem_for(np.empty((50, 1)), fit_intercept=False)
    with pytest.raises(InvalidArgument, match="shape of the weights"):
        NewtonDirection(problem, np.zeros(1), np.array([[1.0], [2.0]]), 0.05)
    with pytest.raises(InvalidArgument, match="above the smoothness"):
        NewtonDirection(problem, np.zeros(1), np.ones(1), 3.0)
