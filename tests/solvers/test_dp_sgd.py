"""DP-SGD, DP-Adam and DP-SVRG: the published recursions, and convergence without noise."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

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
from hushfit.losses import HuberHinge, Logistic, Softmax, Squared
from hushfit.penalties import (
    L1,
    MCP,
    SCAD,
    Box,
    ElasticNet,
    GroupLasso,
    L2Ball,
    ScaledL2,
    WeightedL1,
    Zero,
)
from hushfit.privacy import Budget, Relation
from hushfit.release import FullBatch, PoissonBatch
from hushfit.solvers import DPSGD, DPSVRG, DPAdam, run, solver_from

OPEN = Budget(math.inf, 1e-6)


def not_private(solver, problem, X, y):
    """Weights of the non-private fit, as a user gets it by epsilon=inf."""
    return without_noise(solver_from(solver, problem, OPEN), problem, X, y)


def least(problem, X, y):
    """Least objective by L-BFGS, with weights split into positive and negative parts for L1."""
    Z, loss, size = records_of(X, problem.fit_intercept), problem.loss, math.prod(problem.shape)
    penalty = problem.penalty

    def value(w):
        w = w.reshape(problem.shape)
        return float(loss.value(Z @ w.T, y).mean()) + penalty.value(problem.columns(w))

    def gradient(w):
        w = w.reshape(problem.shape)
        return (loss.slope(Z @ w.T, y).T @ Z / len(Z)).reshape(problem.shape)

    options = {"maxiter": 5000, "maxfun": 50000, "ftol": 1e-16, "gtol": 1e-10}
    penalised = np.broadcast_to(
        np.arange(problem.dimension) < problem.n_features, problem.shape
    ).ravel()
    if isinstance(penalty, L1):

        def split(v):
            w, slope = v[:size] - v[size:], penalty.alpha * penalised
            g = gradient(w).ravel()
            smooth = float(loss.value(Z @ w.reshape(problem.shape).T, y).mean())
            return smooth + slope @ (v[:size] + v[size:]), np.concatenate([g + slope, slope - g])

        found = minimize(
            split,
            np.zeros(2 * size),
            jac=True,
            bounds=[(0, None)] * (2 * size),
            method="L-BFGS-B",
            options=options,
        )
        return value, found.fun
    jac = lambda w: gradient(w).ravel() + penalty.alpha * penalised * w  # noqa: E731
    found = minimize(value, np.zeros(size), jac=jac, method="L-BFGS-B", options=options)
    return value, found.fun


TWINS = {
    "dp-sgd": DPSGD(steps=600, average_last=0.0),
    "dp-sgd, averaged": DPSGD(steps=1500, average_last=0.2),
    "dp-sgd, momentum": DPSGD(steps=600, momentum=0.5, average_last=0.0),
    "dp-adam": DPAdam(steps=1500, step_size=0.05, average_last=0.0),
    "dp-svrg": DPSVRG(epochs=30, inner_steps=20, average_last=0.0),
}
PROBLEMS = {
    "logistic, ridge": (two_classes(d=4), Logistic(), 1, ScaledL2(0.05)),
    "logistic, lasso": (two_classes(d=4), Logistic(), 1, L1(0.01)),
    "hinge, ridge": (two_classes(d=4), HuberHinge(), 1, ScaledL2(0.05)),
    "squared, ridge": (two_classes(d=4), Squared(slope_bound=5.0), 1, ScaledL2(0.05)),
    "softmax, ridge": (three_classes(d=4), Softmax(3), 3, ScaledL2(0.05)),
}


@pytest.mark.parametrize("solver", TWINS.values(), ids=TWINS)
@pytest.mark.parametrize("case", PROBLEMS.values(), ids=PROBLEMS)
def test_without_noise_the_minimum_is_found(solver, case):
    (X, y), loss, outputs, penalty = case
    problem = problem_for(X, loss, outputs, penalty=penalty)
    value, best = least(problem, X, y)
    w = not_private(solver, problem, X, y)
    assert best - 1e-7 <= value(w.ravel()) <= best + 1e-6


def test_a_given_clip_and_batch_are_kept_without_noise():
    problem = problem_for(np.empty((100, 3)))
    for make in (DPSGD, DPAdam, DPSVRG):
        given = make(clip=0.3, sampling=PoissonBatch(0.5), step_size=2.0)
        assert solver_from(given, problem, OPEN) == given
        assert solver_from(make(), problem, OPEN).sampling == FullBatch()
        assert solver_from(make(), problem, Budget(1.0, 1e-6)) == make()


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize("penalty", [Zero(), L1(0.02)], ids=repr)
def test_dp_sgd_is_its_recursion_on_the_released_sums(relation, penalty):
    """The divisor is the expected size of a batch, for every draw."""
    X, y = two_classes(300, 3)
    problem = problem_for(X, penalty=penalty, relation=relation)
    solver = DPSGD(
        steps=10, step_size=2.0, momentum=0.3, average_last=0.5, sampling=PoissonBatch(0.1)
    )
    curator = curator_over(source_of(X, y), solver.plan(problem), 0.4, relation)
    found = run(solver, problem, curator).w
    w, before, seen = np.zeros(4), np.zeros(4), []
    for released in curator.transcript:
        before, w = w, problem.prox(w + 0.3 * (w - before) - 2.0 * released.answer / 30, 2.0)
        seen.append(w)
    np.testing.assert_allclose(found, np.mean(seen[5:], axis=0), rtol=1e-12)


def test_dp_adam_is_its_recursion_with_the_noise_taken_off():
    X, y = two_classes(300, 3)
    problem = problem_for(X, penalty=L1(0.02))
    solver = DPAdam(
        steps=12,
        clip=0.4,
        step_size=0.1,
        decay=(0.8, 0.9),
        floor=0.05,
        average_last=0.0,
        sampling=PoissonBatch(0.2),
    )
    curator = curator_over(source_of(X, y), solver.plan(problem), 0.7)
    found = run(solver, problem, curator).w
    w, m, v = np.zeros(4), np.zeros(4), np.zeros(4)
    noise = 0.7 * 0.8 / 60  # noise multiplier, twice the clipping norm, expected rows
    for t, released in enumerate(curator.transcript, start=1):
        g = released.answer / 60
        m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g**2
        scale = np.sqrt(np.maximum(v / (1 - 0.9**t) - noise**2, 0)) + 0.02
        w = w - 0.1 * (m / (1 - 0.8**t)) / scale
        w[:3] = np.sign(w[:3]) * np.maximum(np.abs(w[:3]) - 0.1 * 0.02 / scale[:3], 0)
    np.testing.assert_allclose(found, w, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "penalty",
    [
        ScaledL2(0.3),
        L1(0.3),
        WeightedL1(np.array([0.1, 0.0, 2.0])),
        ElasticNet(0.4, 0.5),
        Box(-0.1, 0.3),
    ],
    ids=repr,
)
def test_separable_penalties_take_a_step_for_each_coordinate(penalty):
    rng = np.random.default_rng(0)
    v, steps = rng.normal(size=3), rng.uniform(0.1, 3, size=3)
    one_by_one = [penalty.prox(v, float(step))[j] for j, step in enumerate(steps)]
    np.testing.assert_allclose(penalty.prox(v, steps), one_by_one, rtol=1e-14)


@pytest.mark.parametrize(
    "penalty", [GroupLasso(0.1, ((0, 1), (2, 3))), L2Ball(1.0), SCAD(0.1), MCP(0.1)], ids=repr
)
def test_dp_adam_refuses_penalties_whose_prox_takes_one_step(penalty):
    """Some of them are separable: the reason given must be true of those as well."""
    with pytest.raises(InvalidArgument, match=r"takes one for all.*'dp-sgd'"):
        DPAdam().plan(problem_for(np.empty((50, 4)), penalty=penalty))


@pytest.mark.parametrize("penalty", [Zero(), L1(0.02), GroupLasso(0.02, ((0, 1), (2,)))], ids=repr)
def test_dp_svrg_without_noise_and_sampling_walks_like_gradient_descent(penalty):
    """Snapshot plus difference is the gradient itself, so an epoch is proximal gradient descent."""
    X, y = two_classes(200, 3)
    problem = problem_for(X, penalty=penalty)
    solver = DPSVRG(epochs=1, inner_steps=9, clip=1.0, step_size=3.0, sampling=FullBatch())
    runs = [
        i.w
        for i in solver.iterates(problem, curator_over(source_of(X, y), solver.plan(problem), 0.0))
    ]
    Z, w = records_of(X), np.zeros(4)
    for seen in runs:
        w = problem.prox(w - 3.0 * Logistic().slope(Z @ w, y) @ Z / 200, 3.0)
        np.testing.assert_allclose(seen, w, atol=1e-8)


def test_dp_svrg_asks_for_one_snapshot_an_epoch_and_no_difference_that_is_known():
    X, y = two_classes(200, 3)
    problem = problem_for(X)
    solver = DPSVRG(epochs=3, inner_steps=4)
    curator = curator_over(source_of(X, y), solver.plan(problem), 0.5)
    run(solver, problem, curator)
    assert [r.name for r in curator.transcript] == (["snapshot"] + ["difference"] * 3) * 3


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: DPSGD(momentum=1.0), "momentum"),
        (lambda: DPSGD(steps=0), "steps=0"),
        (lambda: DPSGD(average_last=2.0), "average_last"),
        (lambda: DPAdam(decay=(0.9, 1.0)), "pair of rates"),
        (lambda: DPAdam(decay=10**400), "pair of rates"),
        (lambda: DPAdam(decay=(0.9,)), "pair of rates"),
        (lambda: DPAdam(floor=0.0), "floor=0.0"),
        (lambda: DPSVRG(inner_steps=1), "leaves no difference"),
        (lambda: DPSVRG(snapshot_share=1.0), "snapshot_share"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, words):
    with pytest.raises(InvalidArgument, match=words):
        make()


@pytest.mark.parametrize("name", ["dp-sgd", "dp-adam", "dp-svrg"])
@pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")
def test_the_estimator_takes_the_name_and_learns(name):
    """Two classes that a line separates nine times of ten, 4000 rows, epsilon 1."""
    X, y = two_classes(4000, 4, sharpness=12.0)
    model = PrivateLogisticRegression(
        epsilon=1.0, delta=1e-6, solver=name, classes=(-1, 1), random_state=0
    ).fit(X, y)
    exact = PrivateLogisticRegression(
        epsilon=math.inf, delta=1e-6, solver="exact", classes=(-1, 1)
    ).fit(X, y)
    assert model.score(X, y) > exact.score(X, y) - 0.02
    assert Relation.parse(model.privacy_.relation) is Relation.REPLACE_ONE
