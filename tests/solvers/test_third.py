"""What a quadratic approximation of the loss leaves out, from its mean and covariance of images."""

import numpy as np
import pytest
from scipy.special import expit

from hushfit.losses import Logistic, Poisson
from hushfit.release import Moments, score_family
from hushfit.solvers.inference._covariance import Look, covariance, pooled
from hushfit.solvers.inference._third import Third

CONSTANT = np.sqrt(0.5)
LOGISTIC = score_family(Logistic()).means
IMAGES = np.array([[0.9, 0.2, 0.1], [0.0, 1.1, -0.3], [0.2, 0.0, 0.7]])
THETA, STEP = np.array([0.8, -0.5, -2.0]), np.array([0.3, 0.2, -0.4])


def normal_records(n, seed=0):
    """Records with a constant last entry, as images."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0.3, 0.5, (n, 2)) @ np.array([[1.0, 0.5], [0.0, 0.8]])
    return np.column_stack([x, np.full(n, CONSTANT)]) @ IMAGES.T


def test_the_third_derivative_is_that_of_images_that_are_normal_by_curvature():
    t = normal_records(400_000)
    third = Third.of(t.T @ t, IMAGES, THETA, CONSTANT, LOGISTIC)
    square = np.outer(STEP, STEP) + np.diag([0.1, 0.0, 0.2])
    slopes = -np.tanh(t @ THETA / 2)  # of the curvature p (1 - p), over it
    wanted = (slopes * np.einsum("ni,ij,nj->n", t, square, t)) @ t
    np.testing.assert_allclose(third.along(square), wanted, rtol=0.02)
    np.testing.assert_allclose(
        third.change(STEP), (t.T * (slopes * (t @ STEP))) @ t, rtol=0.02, atol=200
    )


def test_the_change_of_the_curvature_along_a_step_is_the_derivative_of_its_square():
    t = normal_records(1000)
    third = Third.of(t.T @ t, IMAGES, THETA, CONSTANT, score_family(Poisson(20.0)).means)
    np.testing.assert_allclose(third.along(np.outer(STEP, STEP)), third.change(STEP) @ STEP)


def look_at(t, y, theta, noise=1e-6):
    """What a look from the weights ``theta`` of images sees, with hardly any noise."""
    p = expit(t @ theta)
    moments = Moments(
        (p - y) @ t,
        (t.T * (p * (1 - p))) @ t,
        (t.T * (p - y) ** 2) @ t,
        *(noise, noise, noise),
    )
    return Look(IMAGES, IMAGES.T @ theta, moments, 1.0)


@pytest.mark.parametrize("far", [0.5, -0.5])
def test_a_long_last_step_ends_near_the_best_weights_and_knows_the_curvature_there(far):
    """A quadratic approximation alone is off by more than three times as much."""
    t = normal_records(50_000)
    y = (np.random.default_rng(1).random(len(t)) < expit(t @ THETA)).astype(float)
    best = THETA.copy()
    for _ in range(8):
        p = expit(t @ best)
        best = best - np.linalg.solve((t.T * (p * (1 - p))) @ t, (p - y) @ t)
    look = look_at(t, y, best + far * STEP)
    plain, found = (covariance(look, "robust", 1.0, CONSTANT, m) for m in (None, LOGISTIC))
    apart = [np.linalg.norm(IMAGES.T @ best - one.w) for one in (plain, found)]
    assert apart[1] < apart[0] / 3
    there = covariance(look_at(t, y, best), "robust", 1.0, CONSTANT, LOGISTIC).sampling
    apart = [np.linalg.norm(one.sampling - there) for one in (plain, found)]
    assert apart[1] < apart[0]


def test_looks_on_both_sides_of_the_best_weights_leave_no_less_out():
    """Their scores average to zero at weights that are not the best: a mean probability is not the
    probability of the mean.
    """
    t = normal_records(50_000)
    y = expit(t @ THETA)
    look = pooled([look_at(t, y, THETA + side * 1.5 * STEP) for side in (1, -1)])
    plain, found = (covariance(look, "robust", 1.0, CONSTANT, m) for m in (None, LOGISTIC))
    apart = [np.linalg.norm(IMAGES.T @ THETA - one.w) for one in (plain, found)]
    assert apart[1] < apart[0] / 3
