"""Certificates of minimisers hold in extended precision, also for sets and stages."""

import math

import numpy as np
import pytest

from _support import labels_for, problem_for, records_of, source_of
from hushfit.losses import HuberHinge, Logistic, Squared
from hushfit.penalties import L1, MCP, SCAD, Box, L1Ball, L2Ball, LHalf, Zero
from hushfit.release import PerturbedMinimiser
from hushfit.release.mechanisms import certified_search
from hushfit.release.mechanisms import perturbed_minimiser as minimiser

LONG = np.longdouble
COLUMNS = 6
AT = np.linspace(-0.2, 0.2, COLUMNS)
PENALTIES = [
    Zero(),
    L1(0.01),
    Box(0.0, math.inf),
    Box(-1e-3, 1e-3),
    Box(2.0, 3.0),
    L2Ball(0.5),
    L2Ball(1e3),
    L1Ball(0.3),
    SCAD(0.05).linearised(AT),
    MCP(0.05).linearised(AT),
    LHalf(0.1).linearised(AT),
]
LOSSES = [Logistic(), HuberHinge(), Squared(1.0), Squared(1e4)]


def slopes(loss, t, y):
    """The derivative of the loss, in long double."""
    if isinstance(loss, Logistic):
        return -y / (1 + np.exp(np.clip(y * t, -1e4, 1e4)))
    if isinstance(loss, HuberHinge):
        return -y * np.clip((1 + LONG(loss.bend) - y * t) / (2 * LONG(loss.bend)), 0, 1)
    return np.clip(t - y, -LONG(loss.slope_bound), LONG(loss.slope_bound))


def length(v):
    return np.sqrt((v * v).sum())


def distance_bound(problem, X, y, mu, shift, w):
    """Bound on mu times the distance from ``w`` to the minimiser, by a proximal step from there."""
    Z, w = records_of(X).astype(LONG), w.astype(LONG)
    Z /= np.sqrt((Z * Z).sum(axis=1))[:, None]
    gradient = (
        (slopes(problem.loss, Z @ w, y)[:, None] * Z).sum(axis=0) / len(X) + LONG(mu) * w + shift
    )
    smoothness = LONG(problem.loss.smoothness) + LONG(mu)
    target = w - gradient / smoothness
    target[:-1] = problem.penalty.prox(target[:-1], 1 / smoothness)
    return float(smoothness * length(w - target) * (1 + LONG(mu) / smoothness))


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: repr(p)[:30])
def test_the_certified_ball_holds_the_minimiser(penalty):
    rng, worst = np.random.default_rng(0), 0.0
    for loss in LOSSES:
        for relative_mu, scale in ((1e-3, 1e-4), (0.03, 1.0), (10.0, 1e3)):
            n = int(rng.choice([1, 2, 20]))
            X, y = (
                10 ** rng.uniform(-3, 3) * rng.normal(size=(n, COLUMNS)),
                labels_for(loss, 1, n, int(rng.integers(99))),
            )
            problem, mu = problem_for(X, loss, penalty=penalty), relative_mu * loss.smoothness
            noise, linear = scale * rng.normal(size=(2, *problem.shape))
            certified = minimiser.CertifiedMinimiser(
                PerturbedMinimiser(problem, mu, linear, 1e-12), noise, scale, 0.0
            )
            w = certified(source_of(X, y), None)
            found = distance_bound(problem, X, y, mu, noise.astype(LONG) + linear, w)
            worst = max(worst, found / certified.gradient_norm)
    assert worst <= 1


def test_the_least_curvature_is_solved_well_within_the_steps_allowed(monkeypatch):
    """A failure to find a minimiser would reveal something about the rows.

    At the smallest mu, the worst of 91 tables found by hill climbing took a fifth of the steps.
    """
    steps = []
    original = minimiser.minimise

    def counted(problem, gradient, *rest):
        steps.append(0)

        def counted_gradient(w):
            steps[-1] += 1
            return gradient(w)

        return original(problem, counted_gradient, *rest)

    monkeypatch.setattr(minimiser, "minimise", counted)
    rng = np.random.default_rng(3)
    for loss in (Logistic(), HuberHinge()):
        X, y = 10 * rng.normal(size=(2, 2)), rng.choice([-1.0, 1.0], 2)
        query = PerturbedMinimiser(
            problem_for(X, loss), 1.0001 * minimiser._SMALLEST_MU * loss.smoothness
        )
        minimiser.CertifiedMinimiser(query, 1e-3 * rng.normal(size=3), 1e-3, 0.0)(
            source_of(X, y), None
        )
    assert len(steps) == 2
    assert max(steps) < certified_search._MOST_STEPS / 4
