"""Properties of every loss, over the list that all tests share. Add a loss to ``_support`` and it
inherits them.
"""

import inspect
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import xlogy

from _support import BINARY, COUNTS, REAL, SEVERAL, labels_for
from hushfit import losses
from hushfit.audit.checks._examples import example_queries
from hushfit.errors import InvalidArgument
from hushfit.kernels.codes import (
    CODES,
    HUBER_HINGE,
    LOGISTIC,
    POISSON,
    SATURATING_SQUARES,
    SOFTMAX,
    SQUARED,
)
from hushfit.losses import (
    HuberHinge,
    KernelLoss,
    Logistic,
    OneVsRest,
    Poisson,
    SaturatingSquares,
    Softmax,
    Squared,
)
from hushfit.penalties import Zero
from hushfit.privacy import Relation
from hushfit.problem import Problem

LOSSES = BINARY + REAL + COUNTS + SEVERAL

seeds = st.integers(0, 2**32 - 1)
over_losses = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def sample(loss, seed, spread, n=64):
    """Random margins of the given standard deviation and labels of the type that the loss takes."""
    rng = np.random.default_rng(seed)
    if loss in SEVERAL:
        return spread * rng.normal(size=(n, loss.n_classes)), rng.integers(
            loss.n_classes, size=n
        ).astype(float)
    return spread * rng.normal(size=n), labels_for(loss, 1, n, seed)


def lengths(array):
    """Euclidean norm per row; absolute values for a vector."""
    return np.abs(array) if array.ndim == 1 else np.linalg.norm(array, axis=1)


def inner(a, b):
    """Inner product per row."""
    return a * b if a.ndim == 1 else (a * b).sum(axis=1)


@over_losses
@settings(max_examples=25, deadline=None)
@given(seed=seeds, spread=st.floats(0.1, 5))
def test_slope_is_the_derivative(loss, seed, spread):
    """Central differences along a random direction; a smooth slope makes the error second order,
    a kink first.
    """
    t, y = sample(loss, seed, spread)
    direction, _ = sample(loss, seed + 1, 1.0)
    h = 1e-5
    measured = (loss.value(t + h * direction, y) - loss.value(t - h * direction, y)) / (2 * h)
    allowed = loss.smoothness * h * lengths(direction) ** 2 + 1e-8
    assert (np.abs(measured - inner(loss.slope(t, y), direction)) <= allowed).all()


@over_losses
@settings(max_examples=25, deadline=None)
@given(seed=seeds, spread=st.floats(0.1, 100))
def test_slope_and_its_change_stay_within_the_published_constants(loss, seed, spread):
    t, y = sample(loss, seed, spread)
    other = t + sample(loss, seed + 1, 1.0)[0]
    assert lengths(loss.slope(t, y)).max() <= loss.slope_bound * (1 + 1e-12)
    change = lengths(loss.slope(other, y) - loss.slope(t, y))
    assert (change <= loss.smoothness * lengths(other - t) * (1 + 1e-12) + 1e-12).all()


@over_losses
@settings(max_examples=25, deadline=None)
@given(seed=seeds, spread=st.floats(0.1, 20))
def test_loss_is_convex(loss, seed, spread):
    """The loss lies above its tangents."""
    t, y = sample(loss, seed, spread)
    other, _ = sample(loss, seed + 1, spread)
    tangent = loss.value(t, y) + inner(loss.slope(t, y), other - t)
    assert (loss.value(other, y) >= tangent - 1e-9).all()


def test_every_loss_is_in_the_list():
    listed = {type(loss).__name__ for loss in LOSSES}
    public = {name for name, kind in vars(losses).items() if inspect.isclass(kind)}
    # Two protocols, a tuple, and a loss without a bound: solvers/test_one_release.py.
    missing = public - listed - {"Loss", "CanonicalLoss", "KernelLoss", "LeastSquares"}
    assert not missing, (
        f"{sorted(missing)}: add an example to BINARY, REAL, COUNTS or SEVERAL in "
        "tests/_support.py."
    )
    unused = set(CODES) - {loss.kernel.code for loss in LOSSES}
    assert not unused, (
        f"No loss of tests/_support.py has the codes {sorted(unused)} of kernels/codes.py: add an "
        "example of the loss to a list there, or take the code away."
    )
    page = (Path(__file__).parents[2] / "docs" / "losses.md").read_text(encoding="utf-8")
    missing = {name for name in listed if f"`{name}(" not in page}
    assert not missing, f"{sorted(missing)}: add a row to the table of docs/losses.md."
    audited = {
        type(example.query.problem.loss).__name__
        for example in example_queries("replace-one").values()
    }
    missing = listed - audited
    assert not missing, (
        f"{sorted(missing)}: add a gradient to example_queries in audit/checks/_examples.py."
    )


@over_losses
def test_a_loss_has_as_many_outputs_as_it_declares(loss):
    t, y = sample(loss, 0, 1.0)
    assert loss.outputs == (1 if t.ndim == 1 else t.shape[1])
    assert loss.slope(t, y).shape == t.shape
    assert (
        Problem(loss, Zero(), 10, 3, Relation.REPLACE_ONE, outputs=loss.outputs).outputs
        == loss.outputs
    )
    with pytest.raises(InvalidArgument, match=f"has {loss.outputs} outputs"):
        Problem(loss, Zero(), 10, 3, Relation.REPLACE_ONE, outputs=loss.outputs + 1)


@over_losses
def test_no_hessian_has_a_higher_rank_than_declared(loss):
    """The cost of objective perturbation depends on the rank."""
    values = np.linalg.svd(hessians_of(loss, *sample(loss, 3, 1.0, n=5000)), compute_uv=False)
    ranks = (values > 1e-5).sum(axis=1)
    assert ranks.max() == loss.hessian_rank


@over_losses
def test_no_hessian_has_a_larger_trace_than_declared(loss):
    """Where a person has several rows, the cost of objective perturbation depends on the trace."""
    t, y = sample(loss, 3, 1.0, n=2000)
    t[:1], y[:1], _ = most_curved(loss)
    if isinstance(loss, Softmax):
        t[0] = 0.0  # where all classes are equally likely
    if loss in COUNTS:
        t[0] -= 1e-3  # differences must not reach beyond the largest rate
    traces = np.trace(hessians_of(loss, t, y), axis1=1, axis2=2)
    assert 0.99 * loss.hessian_trace < traces.max() <= loss.hessian_trace * (1 + 1e-6)
    assert loss.smoothness <= loss.hessian_trace <= loss.hessian_rank * loss.smoothness


def hessians_of(loss, t, y):
    """By differences of slopes along each margin."""
    h, K = 1e-4, loss.outputs
    moves = h * np.eye(K) if K > 1 else [h]
    differences = np.stack(
        [(loss.slope(t + move, y) - loss.slope(t - move, y)).reshape(len(t), K) for move in moves]
    )
    return np.moveaxis(differences, 1, 0) / (2 * h)


@over_losses
def test_slopes_of_one_record_have_one_sign_where_that_is_declared(loss):
    t, y = sample(loss, 4, 3.0, n=2000)
    other, _ = sample(loss, 5, 3.0, n=2000)
    opposed = (loss.slope(t, y) * loss.slope(other, y)).min() < 0
    if loss.one_sign:
        assert loss.outputs == 1
        assert not opposed


def steepest(loss):
    """A point where the slope is close to its bound."""
    if loss in BINARY:
        return np.array([-50.0]), np.array([1.0])
    if isinstance(loss, SaturatingSquares):
        return np.array([50.0]), np.array([-50.0])
    if loss in REAL + COUNTS:
        return np.array([50.0]), np.array([0.0])
    if isinstance(loss, Softmax):
        return 50 * np.eye(1, loss.n_classes, k=1), np.array([0.0])
    # One-vs-rest: wrong about the true class and about every other.
    return np.where(np.arange(loss.n_classes) == 0, -50.0, 50.0)[None, :], np.array([0.0])


STEP = 2e-7  # of differences of slopes


def most_curved(loss):
    """A point and a unit direction along which the second derivative attains the smoothness."""
    if isinstance(loss, Softmax):
        t = np.full((1, loss.n_classes), -50.0)
        t[0, :2] = 0.0
        direction = np.zeros_like(t)
        direction[0, :2] = np.sqrt(0.5), -np.sqrt(0.5)
        return t, np.array([0.0]), direction
    if loss in SEVERAL:
        t, y, _ = most_curved(loss.loss)
        signs = np.where(np.arange(loss.n_classes) == 0, 1.0, -1.0)
        return (signs * t)[None, :], np.array([0.0]), np.eye(1, loss.n_classes)
    if loss in COUNTS:  # just below the largest rate, beyond which there is no curvature
        return np.array([np.log(loss.most) - STEP]), np.array([0.0]), np.array([1.0])
    t = np.array([1.0]) if isinstance(loss, HuberHinge) else np.array([0.0])
    y = np.array([0.0]) if loss in REAL else np.array([1.0])
    return t, y, np.array([1.0])


@over_losses
def test_published_constants_are_attained(loss):
    """A constant that is too large would waste noise; one that is never approached is wrong."""
    t, y = steepest(loss)
    assert lengths(loss.slope(t, y))[0] == pytest.approx(loss.slope_bound, rel=1e-6)
    t, y, direction = most_curved(loss)
    h = STEP
    curvature = inner(
        loss.slope(t + h * direction, y) - loss.slope(t - h * direction, y), direction
    ) / (2 * h)
    assert curvature[0] == pytest.approx(loss.smoothness, rel=1e-6)


@over_losses
@pytest.mark.parametrize("size", [1e2, 1e4])
def test_far_margins_stay_finite(loss, size):
    """Warnings are errors here, so an overflow would fail too."""
    t, y = sample(loss, 0, 1.0)
    t = size * np.sign(t)
    assert np.isfinite(loss.value(t, y)).all()
    assert np.isfinite(loss.slope(t, y)).all()
    assert (loss.value(t, y) >= 0).all()


def test_far_logistic_margins_keep_their_value():
    value = Logistic().value(np.array([-1e4, 1e4, 40.0]), np.ones(3))
    np.testing.assert_allclose(value, [1e4, 0.0, np.exp(-40.0)], rtol=1e-12)


def test_huber_hinge_is_the_hinge_away_from_the_corner():
    t = np.array([-3.0, 0.5, 1.5, 4.0])
    np.testing.assert_allclose(
        HuberHinge(0.5).value(t, np.ones(4)), np.maximum(1 - t, 0.0), atol=1e-15
    )
    np.testing.assert_array_equal(HuberHinge(0.5).slope(t, np.ones(4)), [-1.0, -1.0, 0.0, 0.0])
    np.testing.assert_allclose(HuberHinge(0.5).value(np.ones(1), np.ones(1)), [0.5**2 / (4 * 0.5)])


def test_squared_loss_is_huber_s():
    value = Squared(2.0).value(np.array([1.0, 5.0]), np.zeros(2))
    np.testing.assert_allclose(value, [0.5, 2 * 5 - 2])


def test_poisson_is_half_the_deviance_up_to_its_bounds():
    t, y = np.array([-1.0, 0.5, 1.2]), np.array([0.0, 2.0, 5.0])
    value = Poisson(20.0).value(t, y)
    np.testing.assert_allclose(value, np.exp(t) - y * t + xlogy(y, y) - y, rtol=1e-14)
    np.testing.assert_allclose(Poisson(20.0).slope(t, y), np.exp(t) - y, rtol=1e-14)
    far = Poisson(20.0)
    np.testing.assert_array_equal(far.slope(np.array([9.0, 9.0]), np.array([0.0, 50.0])), [20, 0])
    np.testing.assert_array_equal(far.value(t, np.full(3, -4.0)), far.value(t, np.zeros(3)))


def test_softmax_of_two_classes_is_logistic_in_the_difference():
    t, y = sample(Softmax(2), 3, 4.0)
    signs = np.where(y == 1, 1.0, -1.0)
    np.testing.assert_allclose(
        Softmax(2).value(t, y), Logistic().value(t[:, 1] - t[:, 0], signs), atol=1e-12
    )


def test_softmax_ignores_a_common_shift_and_leaves_margins_alone():
    t, y = sample(Softmax(5), 4, 4.0)
    before = t.copy()
    np.testing.assert_allclose(Softmax(5).slope(t + 1e4, y), Softmax(5).slope(t, y), atol=1e-9)
    np.testing.assert_array_equal(t, before)


def test_one_vs_rest_is_its_binary_losses_side_by_side():
    loss = OneVsRest(Logistic(), 3)
    t, y = sample(loss, 5, 2.0)
    columns = [Logistic().value(t[:, k], np.where(y == k, 1.0, -1.0)) for k in range(3)]
    np.testing.assert_allclose(loss.value(t, y), np.sum(columns, axis=0))


@pytest.mark.parametrize(
    ("loss", "kernel"),
    [
        (Logistic(), KernelLoss(LOGISTIC, 0.0)),
        (HuberHinge(0.3), KernelLoss(HUBER_HINGE, 0.3)),
        (Squared(2.0), KernelLoss(SQUARED, 2.0)),
        (Poisson(7.0), KernelLoss(POISSON, 7.0)),
        (SaturatingSquares(2.0), KernelLoss(SATURATING_SQUARES, 2.0)),
        (Softmax(4), KernelLoss(SOFTMAX, 0.0)),
        (OneVsRest(HuberHinge(0.3), 4), KernelLoss(HUBER_HINGE, 0.3)),
    ],
    ids=repr,
)
def test_compiled_name(loss, kernel):
    assert loss.kernel == kernel


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HuberHinge(0.0), "bend=0.0"),
        (lambda: HuberHinge(float("nan")), "bend=nan"),
        (lambda: Squared(-1.0), "slope_bound=-1.0"),
        (lambda: Poisson(0.0), "most=0.0"),
        (lambda: Poisson(float("inf")), "most=inf"),
        (lambda: SaturatingSquares(0.0), "bound=0.0"),
        (lambda: SaturatingSquares(float("inf")), "bound=inf"),
        (lambda: Softmax(1), "n_classes=1"),
        (lambda: OneVsRest(Logistic(), 1), "n_classes=1"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(InvalidArgument, match=message):
        make()
