"""Contracts that every penalty keeps, over one list. Add a penalty to ``PENALTIES`` and it inherits them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from hushfit.errors import InvalidArgument, UnknownName
from hushfit.penalties import L1, Box, ElasticNet, GroupLasso, L1Ball, L2Ball, ScaledL2, Zero, penalty_from_name

SETS = [Box(-0.5, 1.0), Box(0.0, math.inf), L2Ball(1.5), L1Ball(1.5)]
PENALTIES = [
    Zero(),
    L1(alpha=0.3),
    ScaledL2(alpha=0.7),
    ElasticNet(alpha=0.5, l1_ratio=0.4),
    GroupLasso(alpha=0.4, groups=((0, 2), (3,))),
    *SETS,
]

vectors = arrays(np.float64, 4, elements=st.floats(-10, 10))
steps = st.floats(0.01, 10)
over_penalties = pytest.mark.parametrize("penalty", PENALTIES, ids=repr)


@over_penalties
@settings(max_examples=50, deadline=None)
@given(v=vectors, other=vectors, step=steps)
def test_prox_minimises_its_objective(penalty, v, other, step):
    """The prox objective is 1-strongly convex: its minimiser wins by half the distance squared."""

    def objective(z):
        return step * penalty.value(z) + 0.5 * np.sum((z - v) ** 2)

    z = penalty.prox(v, step)
    assert np.isfinite(objective(z))
    # A random rival is rarely inside a set; its own prox always is.
    for rival in (other, penalty.prox(other, step)):
        assert objective(rival) - objective(z) >= 0.5 * np.sum((rival - z) ** 2) - 1e-9


@over_penalties
@settings(max_examples=50, deadline=None)
@given(v=vectors, other=vectors, step=steps)
def test_prox_brings_no_two_points_further_apart(penalty, v, other, step):
    before, after = v - other, penalty.prox(v, step) - penalty.prox(other, step)
    assert after @ after <= before @ after + 1e-9


@over_penalties
@pytest.mark.parametrize("size", [0.01, 1.0], ids=["inside", "outside"])
def test_prox_leaves_its_argument_alone(penalty, size):
    v = size * np.array([3.0, 2.0, 0.1, 5.0])
    before = v.copy()
    z = penalty.prox(v, 1.0)
    z += 1.0
    np.testing.assert_array_equal(v, before)


@over_penalties
@settings(max_examples=50, deadline=None)
@given(a=vectors, b=vectors, share=st.floats(0, 1))
def test_penalty_is_convex(penalty, a, b, share):
    between = penalty.value(share * a + (1 - share) * b)
    ends = [weight * penalty.value(z) for weight, z in ((share, a), (1 - share, b)) if weight > 0]
    assert between <= sum(ends) + 1e-9


@pytest.mark.parametrize("penalty", SETS, ids=repr)
@settings(max_examples=50, deadline=None)
@given(v=vectors, step=steps)
def test_projection_lands_inside_and_keeps_what_is_inside(penalty, v, step):
    z = penalty.prox(v, step)
    assert penalty.value(z) == 0.0
    np.testing.assert_allclose(penalty.prox(z, step), z, atol=1e-12)


NEAREST = {
    "box": (Box(-0.5, 1.0), []),
    "l2": (L2Ball(1.5), [{"type": "ineq", "fun": lambda z: 1.5**2 - z @ z}]),
    # The l1 ball in two dimensions is four half planes.
    "l1": (
        L1Ball(1.5),
        [{"type": "ineq", "fun": lambda z, s=s, r=r: 1.5 - s * z[0] - r * z[1]} for s in (-1, 1) for r in (-1, 1)],
    ),
}


@pytest.mark.parametrize("name", NEAREST)
def test_projection_is_the_nearest_feasible_point(name):
    """Against scipy's general constrained minimiser."""
    penalty, constraints = NEAREST[name]
    bounds = [(-0.5, 1.0)] * 2 if name == "box" else None
    for v in np.random.default_rng(0).normal(scale=2.0, size=(20, 2)):
        found = minimize(
            lambda z, v=v: np.sum((z - v) ** 2),
            np.zeros(2),
            method="SLSQP",
            bounds=bounds,
            constraints=constraints,
            options={"ftol": 1e-14},
        )
        np.testing.assert_allclose(penalty.prox(v, 1.0), found.x, atol=1e-6)


@pytest.mark.parametrize("penalty", [Box(-0.5, 1.0), L2Ball(1.5), L1Ball(1.5)], ids=repr)
def test_outside_costs_infinity(penalty):
    assert penalty.value(np.array([1.0, 1.0])) == (0.0 if isinstance(penalty, Box | L2Ball) else math.inf)
    assert penalty.value(np.array([0.0, 1.51])) == math.inf


@pytest.mark.parametrize("d", [1, 3, 200])
def test_l1_projection_touches_the_sphere(d):
    v = np.random.default_rng(d).normal(size=d) * 10
    assert np.abs(L1Ball(0.7).prox(v, 1.0)).sum() == pytest.approx(0.7)


def test_group_lasso_drops_whole_groups_and_spares_the_rest():
    penalty = GroupLasso(alpha=1.0, groups=((0, 1), (2,)))
    z = penalty.prox(np.array([1.0, 0.9, 3.0, 0.01]), 1.0)
    np.testing.assert_allclose(z, [0.0, 0.0, 2.0, 0.01])
    assert penalty.value(np.array([3.0, 4.0, -2.0, 9.0])) == pytest.approx(np.sqrt(2) * 5 + 2)


def test_elastic_net_has_its_parts_at_the_ends():
    v = np.array([2.0, -0.1, 0.5])
    np.testing.assert_allclose(ElasticNet(0.3, 1.0).prox(v, 0.5), L1(0.3).prox(v, 0.5))
    np.testing.assert_allclose(ElasticNet(0.3, 0.0).prox(v, 0.5), ScaledL2(0.3).prox(v, 0.5))


def test_elastic_net_minimises_what_scikit_learn_minimises():
    from sklearn.linear_model import ElasticNet as Reference

    v = np.array([2.0, -0.1, 0.5])
    # With X = sqrt(n) I its data term is ||w - v||^2 / 2.
    fitted = Reference(alpha=0.3, l1_ratio=0.6, fit_intercept=False, tol=1e-12).fit(
        np.sqrt(3) * np.eye(3), np.sqrt(3) * v
    )
    np.testing.assert_allclose(ElasticNet(0.3, 0.6).prox(v, 1.0), fitted.coef_, atol=1e-8)


def test_penalties_by_name():
    assert penalty_from_name(None, 0.1, 0.5) == Zero()
    assert penalty_from_name("l1", 0.1, 0.5) == L1(0.1)
    assert penalty_from_name("l2", 0.1, 0.5) == ScaledL2(0.1)
    assert penalty_from_name("elasticnet", 0.1, 0.5) == ElasticNet(0.1, 0.5)
    with pytest.raises(UnknownName, match=r"penalty='l3'.*None, 'l1', 'l2', 'elasticnet'"):
        penalty_from_name("l3", 0.1, 0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: L1(-0.1), "alpha=-0.1"),
        (lambda: ScaledL2(math.nan), "alpha=nan"),
        (lambda: ElasticNet(1.0, 1.5), "l1_ratio=1.5"),
        (lambda: GroupLasso(1.0, ((0, 1), (1,))), "disjoint"),
        (lambda: GroupLasso(1.0, ((0,), ())), "non-empty"),
        (lambda: GroupLasso(1.0, ((-1,),)), "indices >= 0"),
        (lambda: Box(1.0, 0.0), "empty"),
        (lambda: L2Ball(0.0), "radius=0.0"),
        (lambda: L1Ball(math.inf), "radius=inf"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(InvalidArgument, match=message):
        make()
