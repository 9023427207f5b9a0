"""Sufficient statistics: two releases, least squares exactly, other losses through their
expansion at zero.
"""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from _support import (
    curator_over,
    problem_for,
    records_of,
    source_of,
    three_classes,
    two_classes,
    without_noise,
)
from hushfit import PrivateElasticNet, PrivateLogisticRegression
from hushfit.errors import InvalidArgument, MissingBoundsWarning
from hushfit.losses import HuberHinge, Logistic, OneVsRest, Softmax, Squared
from hushfit.penalties import L1, MCP, GroupLasso, ScaledL2
from hushfit.privacy import Budget
from hushfit.solvers import SufficientStatistics, run, solver_from
from hushfit.solvers.newton._newton import at_least
from hushfit.solvers.perturbation._sufficient_statistics import curvature_at_zero, slope_at_zero

OPEN = Budget(math.inf, 1e-6)


def not_private(problem, X, y):
    return without_noise(solver_from("ssp", problem, OPEN), problem, X, y)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_noise_it_is_least_squares(fit_intercept):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.uniform(-0.9, 0.9, size=300)
    problem = problem_for(X, Squared(), fit_intercept=fit_intercept)
    expected = np.linalg.lstsq(records_of(X, fit_intercept), y, rcond=None)[0]
    np.testing.assert_allclose(not_private(problem, X, y), expected, atol=1e-5)


@pytest.mark.parametrize(
    "penalty", [ScaledL2(0.05), L1(0.01), GroupLasso(0.02, ((0, 1), (2, 3)))], ids=repr
)
def test_without_noise_penalised_least_squares_is_a_fixed_point_of_its_proximal_step(penalty):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.uniform(-0.9, 0.9, size=300)
    problem, Z = problem_for(X, Squared(), penalty=penalty), records_of(X)
    w = not_private(problem, X, y)
    moved = problem.prox(w - Z.T @ (Z @ w - y) / 300, 1.0)
    np.testing.assert_allclose(moved, w, atol=1e-5)


@pytest.mark.parametrize(
    ("data", "loss", "outputs"),
    [
        (two_classes(d=3), Logistic(), 1),
        (three_classes(d=3), Softmax(3), 3),
        (three_classes(d=3), OneVsRest(Logistic(), 3), 3),
    ],
    ids=["logistic", "softmax", "one-vs-rest"],
)
def test_other_losses_get_their_second_order_expansion_at_zero(data, loss, outputs):
    """The quadratic is rebuilt from the loss by finite differences, and minimised by scipy."""
    X, y = data
    problem, Z = problem_for(X, loss, outputs, penalty=ScaledL2(0.02)), records_of(X)
    size = math.prod(problem.shape)

    def mean_loss(w):
        return float(loss.value(Z @ w.reshape(problem.shape).T, y).mean())

    h, eye = 1e-3, np.eye(size)
    g = np.array([(mean_loss(h * e) - mean_loss(-h * e)) / (2 * h) for e in eye])
    H = np.array(
        [
            [
                (mean_loss(h * (a + b)) - mean_loss(h * a) - mean_loss(h * b) + mean_loss(0 * a))
                / h**2
                for a in eye
            ]
            for b in eye
        ]
    )
    penalised = np.broadcast_to(
        np.arange(problem.dimension) < problem.n_features, problem.shape
    ).ravel()
    found = minimize(
        lambda w: g @ w + w @ H @ w / 2 + 0.01 * np.sum((penalised * w) ** 2), np.zeros(size)
    ).x
    w = not_private(problem, X, y)
    # Softmax is invariant to a vector that all classes share; the quadratic has no curvature there,
    # and scipy may add one.
    shared = found.reshape(problem.shape).mean(axis=0) if isinstance(loss, Softmax) else 0.0
    np.testing.assert_allclose(w, found.reshape(problem.shape) - shared, atol=2e-2)


def test_the_hinge_becomes_least_squares_on_the_labels():
    X, y = two_classes(d=3)
    expected = np.linalg.lstsq(records_of(X), y, rcond=None)[0]
    np.testing.assert_allclose(not_private(problem_for(X, HuberHinge()), X, y), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("loss", "slope", "curvature"),
    [
        (Logistic(), 0.5, 0.25),
        (Squared(), 1.0, 1.0),
        (HuberHinge(), 1.0, 1.0),
        (Softmax(3), math.sqrt(2 / 3), 1 / 3),
        (OneVsRest(Logistic(), 4), 1.0, 0.25),
    ],
    ids=str,
)
def test_slopes_at_zero_are_what_is_hidden(loss, slope, curvature):
    """Half the noise for the logistic loss: at zero no slope exceeds a half."""
    assert slope_at_zero(loss) == pytest.approx(slope)
    assert curvature_at_zero(loss) == pytest.approx(curvature)


def test_eigenvalues_are_raised_to_the_floor_and_no_further():
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    raised = at_least(Q @ np.diag([-1.0, 0.1, 0.5, 2.0]) @ Q.T, 0.3)
    np.testing.assert_allclose(raised, Q @ np.diag([0.3, 0.3, 0.5, 2.0]) @ Q.T, atol=1e-12)


def test_one_release_is_made():
    X, y = two_classes(200, 3)
    problem = problem_for(X)
    solver = SufficientStatistics()
    curator = curator_over(source_of(X, y), solver.plan(problem), 0.5)
    run(solver, problem, curator)
    assert [released.name for released in curator.transcript] == ["moments"]


def test_what_it_cannot_do_is_refused():
    with pytest.raises(InvalidArgument, match=r"not convex.*'prox-newton'"):
        SufficientStatistics().plan(problem_for(np.empty((50, 4)), penalty=MCP(0.1, 3.0)))
    for wrong in ({"moment_share": 0.0}, {"floor": -1.0}):
        with pytest.raises(InvalidArgument, match=next(iter(wrong))):
            SufficientStatistics(**wrong)


@pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")
def test_estimators_take_the_name_and_learn():
    X, y = two_classes(4000, 4, sharpness=12.0)
    model = PrivateLogisticRegression(
        epsilon=1.0, delta=1e-6, solver="ssp", classes=(-1, 1), random_state=0
    ).fit(X, y)
    exact = PrivateLogisticRegression(
        epsilon=math.inf, delta=1e-6, solver="exact", classes=(-1, 1)
    ).fit(X, y)
    assert model.score(X, y) > exact.score(X, y) - 0.02
    target = X @ np.array([1.0, -0.5, 0.0, 2.0]) + 0.1 * y
    regression = PrivateElasticNet(
        alpha=1e-4, epsilon=2.0, target_bounds=(-6, 6), solver="ssp", random_state=0
    )
    with pytest.warns(MissingBoundsWarning, match="unit length"):  # these rows have it already
        regression.fit(X, target)
    assert regression.score(X, target) > 0.9
