"""Counts: without noise the true coefficients are found, and with noise they are near."""

import math

import numpy as np
import pytest

from _support import curator_over, problem_for, records_of, source_of
from hushfit.losses import Poisson
from hushfit.privacy import Budget
from hushfit.solvers import ExactMinimiser, ProximalGradient, run, solver_from

TRUE = np.array([1.5, -1.0, 0.5, 0.8])
MOST = 15.0


def simulated(n, seed=0):
    """Rows and counts whose log-rate is linear in the unit records; no rate is above 8."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, len(TRUE) - 1))
    return X, rng.poisson(np.exp(records_of(X) @ TRUE)).astype(float)


def fitted(solver, n, budget, seed=0):
    X, y = simulated(n)
    problem = problem_for(X, Poisson(MOST))
    settled = solver_from(solver, problem, budget)
    plan = settled.plan(problem)
    noise = plan.quote(problem, budget).multipliers if budget.is_private else {"gradient": 0.0}
    curator = curator_over(source_of(X, y), plan, next(iter(noise.values())), seed=seed)
    return run(settled, problem, curator).w


def standard_errors(n):
    """Of the maximum likelihood, from Fisher's information at the truth."""
    Z = records_of(simulated(n)[0])
    return np.sqrt(np.diag(np.linalg.inv(Z.T @ (np.exp(Z @ TRUE)[:, None] * Z))))


@pytest.mark.parametrize(
    "solver",
    [ExactMinimiser(), ProximalGradient(steps=300, clip=MOST, momentum=0.0, step_size=0.3)],
    ids=["exact", "proximal-gd"],
)
def test_without_noise_the_true_coefficients_are_found(solver):
    """Within five standard errors each: four coefficients, false alarm below 3e-6."""
    w = fitted(solver, 5000, Budget(math.inf, 1e-6))
    assert (np.abs(w - TRUE) <= 5 * standard_errors(5000)).all()


def test_at_epsilon_one_the_coefficients_are_near():
    """Much nearer than no fit at all, for each of several seeds of the noise."""
    solver = ProximalGradient(steps=60, clip=6.0, momentum=0.0, step_size=0.3)
    for seed in range(3):
        w = fitted(solver, 20_000, Budget(1.0, 1e-6), seed)
        assert np.linalg.norm(w - TRUE) <= 0.25 * np.linalg.norm(TRUE)
