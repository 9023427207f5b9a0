"""Properties of every penalty, over one list. Add one to ``PENALTIES`` and it inherits them."""

import inspect
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from hushfit import penalties
from hushfit.errors import InvalidArgument, UnknownName
from hushfit.losses import Logistic
from hushfit.penalties import (
    L1,
    MCP,
    SCAD,
    Box,
    ElasticNet,
    FoldedConcave,
    FusedLasso,
    GroupLasso,
    L1Ball,
    L2Ball,
    LHalf,
    Lq,
    NonNegative,
    Nuclear,
    ScaledL2,
    Slope,
    SparseGroup,
    TotalVariation,
    WeightedL1,
    Zero,
    check_penalty,
    penalty_from_name,
)
from hushfit.privacy import Relation
from hushfit.problem import Problem

SETS = [Box(-0.5, 1.0), Box(0.0, math.inf), L2Ball(1.5), L1Ball(1.5)]
CONVEX = [
    Zero(),
    L1(alpha=0.3),
    WeightedL1(np.array([0.5, 0.0, 2.0, 0.1])),
    ScaledL2(alpha=0.7),
    ElasticNet(alpha=0.5, l1_ratio=0.4),
    GroupLasso(alpha=0.4, groups=((0, 2), (3,))),
    GroupLasso(alpha=0.4, groups=()),
    SparseGroup(alpha=0.4, groups=((3, 1), (0,)), l1_ratio=0.3),
    Nuclear(alpha=0.6),
    TotalVariation(alpha=0.5),
    FusedLasso(alpha=0.5, l1_ratio=0.3),
    Slope(np.array([1.0, 0.5, 0.2, 0.1])),
    Slope(np.array([0.7, 0.7, 0.0, 0.0])),
    NonNegative(L1(alpha=0.3)),
    NonNegative(ElasticNet(alpha=0.5, l1_ratio=0.4)),
    *SETS,
]
# Parameters such that the steps of the tests lie on both sides of the step from which the prox is
# discontinuous.
FOLDED = [
    LHalf(alpha=0.4),
    LHalf(alpha=0.0),
    Lq(alpha=0.4, q=0.5),
    Lq(alpha=0.3, q=2 / 3),
    Lq(alpha=0.5, q=0.1),
    Lq(alpha=0.5, q=0.97),
    SCAD(alpha=0.5),
    SCAD(alpha=0.8, a=2.1),
    MCP(alpha=0.5),
    MCP(alpha=0.8, gamma=0.5),
]
PENALTIES = [*CONVEX, *FOLDED]

vectors = arrays(np.float64, 4, elements=st.floats(-10, 10))
steps = st.floats(0.01, 10)
over_penalties = pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
over_convex = pytest.mark.parametrize("penalty", CONVEX, ids=repr)
over_folded = pytest.mark.parametrize("penalty", FOLDED, ids=repr)


@over_convex
@settings(max_examples=30, deadline=None)
@given(v=vectors, other=vectors, step=steps)
def test_prox_minimises_its_objective(penalty, v, other, step):
    """1-strong convexity: other points exceed the minimum by half the squared distance."""

    def objective(z):
        return step * penalty.value(z) + 0.5 * np.sum((z - v) ** 2)

    z = penalty.prox(v, step)
    assert np.isfinite(objective(z))
    # A random point is rarely inside a set; its own prox always is.
    for candidate in (other, penalty.prox(other, step)):
        assert objective(candidate) - objective(z) >= 0.5 * np.sum((candidate - z) ** 2) - 1e-9


@over_convex
@settings(max_examples=30, deadline=None)
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
    assert not np.shares_memory(z, v)
    z += 1.0
    np.testing.assert_array_equal(v, before)


@over_convex
@settings(max_examples=30, deadline=None)
@given(a=vectors, b=vectors, share=st.floats(0, 1))
def test_penalty_is_convex(penalty, a, b, share):
    between = penalty.value(share * a + (1 - share) * b)
    ends = [weight * penalty.value(z) for weight, z in ((share, a), (1 - share, b)) if weight > 0]
    assert between <= sum(ends) + 1e-9


@over_penalties
def test_penalty_says_whether_it_is_convex(penalty):
    assert penalty.convex is (penalty in CONVEX)
    assert isinstance(penalty, FoldedConcave) is not penalty.convex


def test_every_penalty_is_in_the_list():
    listed = {type(penalty).__name__ for penalty in PENALTIES}
    public = {name for name, kind in vars(penalties).items() if inspect.isclass(kind)}
    missing = public - listed - {"Penalty", "FoldedConcave"}
    assert not missing, (
        f"{sorted(missing)}: add an example to CONVEX or FOLDED in "
        "tests/contracts/test_penalties.py."
    )
    page = (Path(__file__).parents[2] / "docs" / "penalties.md").read_text(encoding="utf-8")
    missing = {name for name in listed if not re.search(rf"`{name}\b", page)}
    assert not missing, f"{sorted(missing)}: add a row to the list of docs/penalties.md."


@over_penalties
def test_a_separable_penalty_takes_a_step_for_each_coefficient(penalty):
    if not penalty.separable:
        return
    rng = np.random.default_rng(0)
    v, own = rng.normal(size=4), rng.uniform(0.1, 3, size=4)
    one_by_one = [penalty.prox(v, float(step))[j] for j, step in enumerate(own)]
    np.testing.assert_allclose(penalty.prox(v, own), one_by_one, rtol=1e-14)


@over_penalties
def test_a_penalty_declares_a_ridge_exactly_if_it_is_one(penalty):
    """Solvers use ``ridge`` in linear solves instead of the prox: it must be the whole penalty."""
    points = np.random.default_rng(0).normal(size=(20, 4)) * np.array([0.1, 1.0, 10.0, 3.0])
    values, halves = np.array([penalty.value(z) for z in points]), 0.5 * (points**2).sum(axis=1)
    if penalty.ridge is not None:
        np.testing.assert_allclose(values, penalty.ridge * halves, rtol=1e-12)
    elif np.isfinite(values).all() and values.any():  # a penalty of weight zero is zero
        assert not np.allclose(values, values[0] / halves[0] * halves, rtol=1e-12), (
            f"{penalty!r} is a multiple of ||z||^2 / 2: declare its weight as ridge."
        )


@pytest.mark.parametrize("member", ["convex", "separable", "ridge", "value", "prox"])
def test_what_does_not_declare_a_member_is_no_penalty(member):
    members = {
        name: getattr(L1, name) for name in ("convex", "separable", "ridge", "value", "prox")
    }
    del members[member]
    partial = type("Partial", (), members)()
    with pytest.raises(InvalidArgument, match=f"does not declare {member}"):
        check_penalty(partial)
    with pytest.raises(InvalidArgument, match=f"does not declare {member}"):
        Problem(Logistic(), partial, 10, 4, Relation.REPLACE_ONE)


@pytest.mark.parametrize("penalty", [penalty for penalty in FOLDED if penalty.alpha > 0], ids=repr)
def test_folded_penalty_is_not_convex(penalty):
    """Halfway between 0 and a large value it costs more than half."""
    assert penalty.value(np.array([2.0])) > 0.5 * penalty.value(np.array([4.0])) + 1e-3


GRID = np.linspace(-6, 6, 4801)


@over_folded
@pytest.mark.parametrize("step", [0.01, 0.3, 1.0, 1.1, 2.7, 3.0, 4.69, 4.71, 10.0])
def test_folded_prox_is_the_global_minimiser(penalty, step):
    """No point of a fine grid, nor zero nor v itself, has a smaller objective, for any step."""
    cost = np.array([penalty.value(np.array([z])) for z in GRID])
    for v in np.linspace(-5.9, 5.9, 60):
        z = penalty.prox(np.array([v]), step)
        candidates = step * cost + 0.5 * (GRID - v) ** 2
        itself = step * penalty.value(np.array([v]))
        assert (
            step * penalty.value(z) + 0.5 * (z[0] - v) ** 2 <= min(candidates.min(), itself) + 1e-9
        )


@over_folded
@settings(max_examples=30, deadline=None)
@given(v=vectors, other=vectors, step=steps)
def test_folded_prox_beats_any_rival(penalty, v, other, step):
    def objective(z):
        return step * penalty.value(z) + 0.5 * np.sum((z - v) ** 2)

    z = penalty.prox(v, step)
    for candidate in (other, v, 0 * v, penalty.prox(other, step), 1.001 * z, 0.999 * z):
        assert objective(z) <= objective(candidate) + 1e-9


@over_penalties
def test_several_outputs_are_penalised_one_by_one(penalty):
    rows = np.random.default_rng(0).normal(scale=1.5, size=(3, 4))
    together = penalty.prox(rows, 0.8)
    if isinstance(penalty, Nuclear):
        assert not np.allclose(together, [penalty.prox(row, 0.8) for row in rows])
    else:
        np.testing.assert_allclose(together, [penalty.prox(row, 0.8) for row in rows], atol=1e-14)
        values = [penalty.value(row) for row in together]
        assert penalty.value(together) == pytest.approx(sum(values), abs=1e-14)
        assert penalty.value(10 + rows) == pytest.approx(
            sum(penalty.value(10 + row) for row in rows)
        )


@over_penalties
def test_prox_does_not_depend_on_the_layout(penalty):
    rows = np.random.default_rng(1).normal(size=(3, 4))
    wide = np.repeat(rows, 2, axis=1)
    for layout in (np.asfortranarray(rows), wide[:, ::2]):
        np.testing.assert_allclose(penalty.prox(layout, 0.8), penalty.prox(rows, 0.8), atol=1e-14)


@pytest.mark.parametrize("penalty", SETS, ids=repr)
@settings(max_examples=30, deadline=None)
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
        [
            {"type": "ineq", "fun": lambda z, s=s, r=r: 1.5 - s * z[0] - r * z[1]}
            for s in (-1, 1)
            for r in (-1, 1)
        ],
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
    assert penalty.value(np.array([1.0, 1.0])) == (
        0.0 if isinstance(penalty, Box | L2Ball) else math.inf
    )
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


matrices = arrays(np.float64, (3, 4), elements=st.floats(-10, 10))


@settings(max_examples=30, deadline=None)
@given(v=matrices, other=matrices, step=steps)
def test_nuclear_prox_minimises_over_matrices(v, other, step):
    penalty = Nuclear(0.6)
    z = penalty.prox(v, step)

    def objective(Z):
        return step * penalty.value(Z) + 0.5 * np.sum((Z - v) ** 2)

    for candidate in (other, v, penalty.prox(other, step)):
        assert objective(candidate) - objective(z) >= 0.5 * np.sum((candidate - z) ** 2) - 1e-8


def test_nuclear_norm_lowers_the_rank_and_is_the_norm_of_a_vector():
    rng = np.random.default_rng(0)
    low = rng.normal(size=(5, 2)) @ rng.normal(size=(2, 8)) + 0.01 * rng.normal(size=(5, 8))
    assert np.linalg.matrix_rank(Nuclear(0.2).prox(low, 1.0)) == 2
    v = np.array([3.0, 4.0])
    assert Nuclear(2.0).value(v) == pytest.approx(10.0)
    np.testing.assert_allclose(Nuclear(2.0).prox(v, 1.0), 0.6 * v)


magnitudes = st.floats(1e-8, 1e8)


@settings(max_examples=100, deadline=None)
@given(size=magnitudes, weight=magnitudes)
def test_the_solver_for_powers_finds_half_thresholding(size, weight):
    v = np.array([size, -size])
    # If zero and the other minimum tie, either is valid.
    if abs(size / (1.5 * weight ** (2 / 3)) - 1) > 1e-9:
        np.testing.assert_allclose(
            Lq(weight, 0.5).prox(v, 1.0), LHalf(weight).prox(v, 1.0), rtol=1e-11
        )


@settings(max_examples=100, deadline=None)
@given(share=st.floats(1 + 1e-9, 1e3), weight=st.floats(1e-4, 1e4))
def test_the_solver_for_powers_finds_the_closed_form_for_two_thirds(share, weight):
    """The cube root y of the minimiser solves y^4 - v y + 2t/3 = 0, a quartic with a formula."""
    v = share * 2 * (2 / 3 * weight) ** 0.75
    angle = np.arccosh(27 * v**2 / 16 * (2 * weight) ** -1.5)
    a = 2 / np.sqrt(3) * (2 * weight) ** 0.25 * np.sqrt(np.cosh(angle / 3))
    y = (a + np.sqrt(2 * v / a - a**2)) / 2
    assert y**4 - v * y + 2 * weight / 3 == pytest.approx(0.0, abs=1e-7 * v * y)
    np.testing.assert_allclose(Lq(weight, 2 / 3).prox(np.array([v]), 1.0), y**3, rtol=1e-8)
    # Just below the threshold it is zero.
    assert Lq(weight, 2 / 3).prox(np.array([v / share * (1 - 1e-9)]), 1.0) == 0.0


@settings(max_examples=100, deadline=None)
@given(q=st.floats(0.01, 0.99), size=magnitudes, weight=magnitudes)
def test_power_prox_is_zero_or_stationary_and_above_the_jump(q, size, weight):
    (z,) = Lq(weight, q).prox(np.array([size]), 1.0)
    if z != 0:
        assert z + weight * q * z ** (q - 1) == pytest.approx(size, rel=1e-12)
        assert z >= (2 * weight * (1 - q)) ** (1 / (2 - q)) * (1 - 1e-12)


def test_half_thresholding_jumps_from_zero_to_two_thirds():
    """At |v| = (3/2) t^(2/3)."""
    threshold = 1.5 * (0.7 * 2.0) ** (2 / 3)
    z = LHalf(0.7).prox(threshold * np.array([-1.0, -1 - 1e-12, 1 + 1e-12]), 2.0)
    np.testing.assert_allclose(z, threshold * np.array([0.0, -2 / 3, 2 / 3]), atol=1e-6)


@pytest.mark.parametrize("penalty", [LHalf(0.3), Lq(0.3, 0.4), SCAD(0.3), MCP(0.3)], ids=repr)
def test_folded_prox_lets_large_values_and_nan_through(penalty):
    z = penalty.prox(np.array([1e300, -1e12, np.nan]), 0.5)
    np.testing.assert_allclose(z, [1e300, -1e12, np.nan], rtol=1e-9)


def textbook_scad(v, alpha, a, c):
    """For min P(z) + (c/2)(z - v)^2, valid if a > 1 + 1/c."""
    if v <= alpha + alpha / c:
        return max(v - alpha / c, 0.0)
    return (c * (a - 1) * v - a * alpha) / (c * (a - 1) - 1) if v <= a * alpha else v


def textbook_mcp(v, alpha, gamma, c):
    """For min P(z) + (c/2)(z - v)^2, valid if gamma c > 1."""
    return max(v - alpha / c, 0.0) / (1 - 1 / (gamma * c)) if v <= gamma * alpha else v


@pytest.mark.parametrize("c", [0.4, 1.0, 7.0])
def test_scad_and_mcp_follow_the_textbook_where_it_holds(c):
    for v in np.linspace(0, 4, 101):
        assert SCAD(0.5, 3.7).prox(np.array([v]), 1 / c) == pytest.approx(
            textbook_scad(v, 0.5, 3.7, c)
        )
        assert MCP(0.5, 3.0).prox(np.array([v]), 1 / c) == pytest.approx(
            textbook_mcp(v, 0.5, 3.0, c)
        )


@pytest.mark.parametrize(
    ("penalty", "formula", "v"),
    [
        (SCAD(0.5, 3.7), lambda v: textbook_scad(v, 0.5, 3.7, 0.25), 2.4),
        (MCP(0.5), lambda v: textbook_mcp(v, 0.5, 3.0, 0.25), 1.6),
    ],
    ids=["scad", "mcp"],
)
def test_the_textbook_formula_is_wrong_for_long_steps(penalty, formula, v):
    """Outside its conditions, at step 4 (c = 0.25), it is not the minimiser."""

    def objective(z):
        return 4.0 * penalty.value(z) + 0.5 * (z[0] - v) ** 2

    assert objective(np.array([formula(v)])) > objective(penalty.prox(np.array([v]), 4.0)) + 0.01


def test_mcp_is_a_hard_threshold_for_long_steps():
    threshold = 0.5 * np.sqrt(3.0 * 10.0)
    v = threshold * np.array([-1.01, -1.0, 0.99, 1.01])
    np.testing.assert_array_equal(MCP(0.5, 3.0).prox(v, 10.0), v * [1, 0, 0, 1])


@pytest.mark.parametrize(("step", "jump"), [(3.0, 0.5 * 7.7 / 2), (10.0, 0.5 * np.sqrt(47.0))])
def test_scad_soft_thresholds_and_then_jumps_for_long_steps(step, jump):
    v = jump * np.array([-1.001, 0.999, 1.001])
    soft = np.sign(v) * np.maximum(np.abs(v) - 0.5 * step, 0.0)
    np.testing.assert_allclose(SCAD(0.5, 3.7).prox(v, step), [v[0], soft[1], v[2]])


@pytest.mark.parametrize("penalty", [SCAD(0.5, 3.7), MCP(0.5, 3.0)], ids=repr)
def test_scad_and_mcp_are_flat_beyond_their_range(penalty):
    """Their limits: the area under the slope, (a + 1) alpha^2 / 2 and gamma alpha^2 / 2."""
    top = (4.7 if isinstance(penalty, SCAD) else 3.0) * 0.25 / 2
    assert penalty.value(np.array([1.86])) == pytest.approx(top)
    assert penalty.value(np.array([-50.0])) == pytest.approx(top)
    assert penalty.value(np.array([1.4])) < top


@over_folded
@settings(max_examples=30, deadline=None)
@given(w=vectors, z=vectors, floor=st.floats(1e-4, 1.0))
def test_linearised_penalty_lies_above_and_touches(penalty, w, z, floor):
    """p is concave: its tangent at |w| (shifted by the floor where the slope may be infinite)
    bounds it everywhere.
    """
    shift = floor if isinstance(penalty, LHalf | Lq) else 0.0
    tangent = penalty.linearised(w, floor)
    there = np.abs(w) + shift
    bound = penalty.value(there) + tangent.value(z) - tangent.value(there)
    assert penalty.value(z) <= bound + 1e-9
    assert tangent.convex
    h = 1e-7
    slopes = [(penalty.value(np.array([t + h])) - penalty.value(np.array([t]))) / h for t in there]
    np.testing.assert_allclose(tangent.weights, slopes, atol=1e-5 * (1 + np.max(slopes) / floor))


def test_linearised_weights_are_capped_at_zero():
    """Half: alpha / (2 sqrt(|w| + 1/100)), so at most 5 alpha."""
    np.testing.assert_allclose(LHalf(0.2).linearised(np.array([0.0, 0.24])).weights, [1.0, 0.2])
    np.testing.assert_allclose(Lq(0.2, 0.5).linearised(np.array([0.0, -0.24])).weights, [1.0, 0.2])
    np.testing.assert_allclose(
        SCAD(0.2, 3.0).linearised(np.array([0.0, 0.1, 0.4, 1.0])).weights, [0.2, 0.2, 0.1, 0.0]
    )
    np.testing.assert_allclose(
        MCP(0.2, 3.0).linearised(np.array([0.0, 0.3, -0.9])).weights, [0.2, 0.1, 0.0]
    )
    assert MCP(0.2).linearised(np.zeros((2, 3))).weights.shape == (2, 3)


def assert_fused(v, z, weight):
    """Optimality conditions: the cumulative sum of v - z ends at 0, is bounded by the weight, and
    equals it, with the right sign, at jumps.
    """
    dual, jumps = np.cumsum(v - z), np.diff(z)
    tolerance = 1e-9 * (weight + np.abs(v).sum())
    assert abs(dual[-1]) <= tolerance
    assert np.abs(dual[:-1]).max(initial=0.0) <= weight + tolerance
    np.testing.assert_allclose(
        dual[:-1][jumps != 0], -weight * np.sign(jumps[jumps != 0]), atol=tolerance
    )


SIGNALS = {
    "one": np.array([3.0]),
    "two": np.array([3.0, 1.0]),
    "equal": np.full(50, 2.5),
    "ramp": np.arange(3000.0),
    "zigzag": np.tile([1.0, -1.0], 1000),
    "steps": np.repeat(np.random.default_rng(0).normal(size=20), 100),
    "noise": np.random.default_rng(1).normal(size=100_000),
    "walk": np.cumsum(np.random.default_rng(2).normal(size=100_000)),
    # Direct methods that restart after each constant piece take quadratic time here.
    "parabola": np.linspace(-1, 1, 20_000) ** 2,
}


@pytest.mark.parametrize("weight", [1e-6, 0.3, 5.0, 1e6])
@pytest.mark.parametrize("name", SIGNALS)
def test_fused_prox_is_optimal_for_long_signals(name, weight):
    v = SIGNALS[name]
    z = TotalVariation(weight).prox(v, 1.0)
    assert_fused(v, z, weight)
    if weight == 1e6 and name not in ("walk", "ramp"):
        np.testing.assert_allclose(z, v.mean(), atol=1e-9)


@settings(max_examples=100, deadline=None)
@given(
    v=st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=30).map(np.array),
    weight=st.integers(0, 6),
)
def test_fused_prox_is_optimal_with_ties(v, weight):
    assert_fused(v, TotalVariation(0.5).prox(v, float(weight)), 0.5 * weight)


def test_fused_lasso_has_its_parts_at_the_ends():
    v = np.random.default_rng(0).normal(size=50)
    np.testing.assert_array_equal(FusedLasso(0.3, 1.0).prox(v, 0.5), L1(0.3).prox(v, 0.5))
    np.testing.assert_array_equal(
        FusedLasso(0.3, 0.0).prox(v, 0.5), TotalVariation(0.3).prox(v, 0.5)
    )


def test_sparse_group_has_its_parts_at_the_ends():
    v, groups = np.random.default_rng(0).normal(size=6), ((0, 5), (1, 2))
    np.testing.assert_array_equal(SparseGroup(0.3, groups, 1.0).prox(v, 0.5), L1(0.3).prox(v, 0.5))
    np.testing.assert_array_equal(
        SparseGroup(0.3, groups, 0.0).prox(v, 0.5), GroupLasso(0.3, groups).prox(v, 0.5)
    )


def test_sparse_group_drops_groups_and_members():
    z = SparseGroup(1.0, ((0, 1), (2, 3)), 0.5).prox(np.array([5.0, 0.4, 0.8, -0.8, 0.7]), 1.0)
    assert z[0] > 0
    np.testing.assert_allclose(z[1:], [0.0, 0.0, 0.0, 0.2])


def test_slope_with_equal_weights_is_the_lasso_and_with_falling_ones_makes_clusters():
    v = np.random.default_rng(0).normal(size=30)
    np.testing.assert_allclose(
        Slope(np.full(30, 0.4)).prox(v, 0.7), L1(0.4).prox(v, 0.7), atol=1e-15
    )
    z = Slope(np.array([2.0, 1.0, 0.0])).prox(np.array([-3.0, 3.2, 0.5]), 1.0)
    np.testing.assert_allclose(z, [-1.6, 1.6, 0.5])
    assert Slope(np.array([2.0, 1.0, 0.0])).value(np.array([1.0, -5.0, 3.0])) == 13.0


@pytest.mark.parametrize("d", [1, 2, 1000])
def test_slope_prox_is_optimal_for_long_vectors(d):
    """v - z is a subgradient: its sorted partial sums are at most those of the weights, and its
    inner product with z is the value at z.
    """
    rng = np.random.default_rng(d)
    v, weights = 3 * rng.normal(size=d), -np.sort(-rng.random(d))
    z = Slope(weights).prox(v, 1.0)
    rest = v - z
    assert (np.cumsum(-np.sort(-np.abs(rest))) <= np.cumsum(weights) + 1e-9).all()
    assert rest @ z == pytest.approx(Slope(weights).value(z), abs=1e-9)


@pytest.mark.parametrize("make", [WeightedL1, Slope])
def test_weights_are_kept_from_later_changes(make):
    weights = np.array([2.0, 1.0])
    penalty = make(weights)
    weights[0] = 0.0
    assert penalty.weights.tolist() == [2.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        penalty.weights[0] = 0.0


@pytest.mark.parametrize(
    "penalty", [WeightedL1(np.ones(3)), WeightedL1(np.ones((2, 3))), Slope(np.ones(3))], ids=repr
)
@pytest.mark.parametrize("shape", [(1,), (4,), (2, 1), (3, 2)])
def test_weights_must_match_the_coefficients(penalty, shape):
    with pytest.raises(InvalidArgument, match="one weight for each coefficient"):
        penalty.prox(np.ones(shape), 1.0)
    with pytest.raises(InvalidArgument, match="one weight for each coefficient"):
        penalty.value(np.ones(shape))


@pytest.mark.parametrize("floor", [0.0, -1.0, math.inf])
@pytest.mark.parametrize("penalty", [LHalf(0.1), Lq(0.1, 0.3)], ids=repr)
def test_a_floor_that_bounds_nothing_is_refused(penalty, floor):
    with pytest.raises(InvalidArgument, match=f"floor={floor}"):
        penalty.linearised(np.ones(2), floor)


def test_penalties_by_name():
    assert penalty_from_name(None, 0.1, 0.5) == Zero()
    assert penalty_from_name("l1", 0.1, 0.5) == L1(0.1)
    assert penalty_from_name("l2", 0.1, 0.5) == ScaledL2(0.1)
    assert penalty_from_name("elasticnet", 0.1, 0.5) == ElasticNet(0.1, 0.5)
    assert penalty_from_name("l1/2", 0.1, 0.5) == LHalf(0.1)
    assert penalty_from_name("scad", 0.1, 0.5) == SCAD(0.1, 3.7)
    assert penalty_from_name("mcp", 0.1, 0.5) == MCP(0.1, 3.0)
    with pytest.raises(
        UnknownName, match=r"penalty='l3'.*None, 'l1', 'l2', 'elasticnet', 'l1/2', 'scad', 'mcp'"
    ):
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
        (lambda: SparseGroup(1.0, ((0, 1),), -0.1), "l1_ratio=-0.1.*group lasso"),
        (lambda: SparseGroup(1.0, ((0, 0),), 0.5), "disjoint"),
        (lambda: FusedLasso(1.0, 2.0), "l1_ratio=2.0.*total variation"),
        (lambda: TotalVariation(-1.0), "alpha=-1.0"),
        (lambda: Nuclear(math.inf), "alpha=inf"),
        (lambda: LHalf(-1.0), "alpha=-1.0"),
        (lambda: Lq(1.0, 0.0), "q=0.0"),
        (lambda: Lq(1.0, 1.0), "q=1.0.*use L1"),
        (lambda: SCAD(1.0, 2.0), "a=2.0"),
        (lambda: MCP(1.0, 0.0), "gamma=0.0"),
        (lambda: WeightedL1(np.array([1.0, -1.0])), "weights="),
        (lambda: WeightedL1(np.array([1.0, np.inf])), "weights="),
        (lambda: Slope(np.array([1.0, 2.0])), "never increases"),
        (lambda: Slope(np.ones((2, 2))), "never increases"),
        (lambda: Box(1.0, 0.0), "empty"),
        (lambda: L2Ball(0.0), "radius=0.0"),
        (lambda: L1Ball(math.inf), "radius=inf"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(InvalidArgument, match=message):
        make()
