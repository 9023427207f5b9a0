"""Several units together: exact where it can be, and never below the truth."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from hushfit.errors import InvalidArgument, UnsupportedRelation
from hushfit.privacy import (
    RECORD_RELATIONS,
    ApproximateCost,
    FixedSizeGaussianCost,
    GaussianCost,
    MixtureGaussianCost,
    ObjectiveCost,
    PoissonGaussianCost,
    PureCost,
    Relation,
    ThresholdedGaussianCost,
    compose,
    delta_of,
    epsilon_of,
    gaussian_delta,
)
from hushfit.privacy.accounting import group_cost, group_delta, group_epsilon
from hushfit.privacy.accounting._group import _equal_steps_delta, _lines

DELTA = 1e-6
SAMPLED = PoissonGaussianCost(2.0, 0.05, 40)
COSTS = {
    "gaussian": GaussianCost(4.0, 3),
    "pure": PureCost(0.1, 4),
    "both": compose([GaussianCost(5.0), PureCost(0.05, 2)]),
    "poisson": SAMPLED,
    "fixed size": FixedSizeGaussianCost(3.0, 0.02, 30),
    "approximate": ApproximateCost(0.3, 1e-12),
    "thresholded": ThresholdedGaussianCost(6.0, 1e-12),
    "objective": ObjectiveCost(8.0, 0.01, count=2),
}


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
def test_one_unit_is_the_cost_itself(cost):
    assert group_epsilon(cost, 1, DELTA, "replace-one") == epsilon_of(cost, DELTA, "replace-one")
    assert group_delta(cost, 1, 0.7, "replace-one") == delta_of(cost, 0.7, "replace-one")
    assert group_cost(cost, 1, 1e-9, "replace-one") == cost


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
def test_more_units_are_protected_less(cost):
    found = [group_epsilon(cost, k, DELTA, "replace-one") for k in (1, 2, 3, 5)]
    assert all(a < b for a, b in pairwise(found)), found
    lost = [group_delta(cost, k, found[2], "replace-one") for k in (1, 2, 3, 5)]
    assert all(a <= b for a, b in pairwise(lost)), lost
    assert lost[-1] > lost[0]
    assert lost[2] <= DELTA * (1 + 1e-6)


@settings(max_examples=50)
@given(st.floats(0.05, 3), st.integers(1, 30), st.integers(1, 40), st.floats(0.1, 50))
def test_gaussian_releases_have_the_closed_form(mu, count, size, epsilon):
    total = size * mu * math.sqrt(count)
    cost = GaussianCost(1 / mu, count)
    assert group_delta(cost, size, epsilon, "add-remove") == pytest.approx(
        gaussian_delta(epsilon, total), rel=1e-9
    )
    assert group_cost(cost, size, 1e-9, "add-remove").mu == pytest.approx(size * mu)


def test_pure_releases_count_as_often_as_there_are_units():
    assert group_cost(PureCost(0.2, 3), 4, 1e-9, "replace-one") == PureCost(0.8, 3)
    # Three of them composed, each four times as large: at delta 1e-12 nearly the plain sum.
    assert group_epsilon(PureCost(0.2, 3), 4, 1e-12, "replace-one") == pytest.approx(2.4, rel=1e-6)


@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("name", ["poisson", "thresholded", "objective", "approximate"])
def test_never_worse_than_the_group_inequality(name, size):
    cost, relation = COSTS[name], Relation.REPLACE_ONE
    step = np.array([0.05, 0.4, 0.9, 2.0])
    for epsilon in (size * step).tolist():
        by_inequality = _equal_steps_delta(cost, size, epsilon, relation)
        plain = delta_of(cost, epsilon / size, relation) * (
            math.expm1(epsilon) / math.expm1(epsilon / size)
        )
        assert by_inequality == pytest.approx(min(1.0, plain))
        assert group_delta(cost, size, epsilon, relation) <= by_inequality


def test_chains_of_unequal_steps_nearly_reach_the_gaussian_truth():
    """From the profile of one unit alone, without knowing that it is Gaussian."""
    epsilon = 5.0
    slopes, offsets = _lines(GaussianCost(4.0), 5, Relation.REPLACE_ONE)
    place = np.searchsorted(slopes, epsilon)
    exact = gaussian_delta(float(slopes[place]), 5 / 4)
    equal = _equal_steps_delta(GaussianCost(4.0), 5, float(slopes[place]), Relation.REPLACE_ONE)
    assert exact <= offsets[place] <= 1.1 * exact
    assert offsets[place] < 0.5 * equal


def swapped_rows(x, mean, rate, size):
    """Density of one noisy sum over a Poisson batch that each of ``size`` equal rows may join."""
    joined = np.arange(size + 1)
    return norm.pdf(x[:, None] - joined * mean) @ binom.pmf(joined, size, rate)


def exact_delta_of_two(cost, size, epsilon, relation):
    """Delta of two releases for ``size`` rows that all move the sum the same way, by quadrature.

    The loss of two releases is the sum of two independent ones.
    """
    half = cost.mu / 2
    reach = size * cost.mu + 9
    x, step = np.linspace(-reach, reach, 1201, retstep=True)
    if relation is Relation.REPLACE_ONE:
        p, q = (swapped_rows(x, sign * half, cost.rate, size) for sign in (1, -1))
    else:
        p, q = swapped_rows(x, cost.mu, cost.rate, size), norm.pdf(x)
    p2, q2 = np.multiply.outer(p, p), np.multiply.outer(q, q)
    return float(np.maximum(p2 - math.exp(epsilon) * q2, 0).sum() * step * step)


@pytest.mark.parametrize(
    ("relation", "size"), [(Relation.REPLACE_ONE, 2), (Relation.ADD_REMOVE, 4)]
)
def test_sampled_plans_are_covered(relation, size):
    """The true delta of rows that move the sum as far as they may, against what is stated."""
    cost = PoissonGaussianCost(1.0, 0.2, 2)
    converted = group_cost(cost, size, 1e-8, relation)
    for epsilon in (0.5, 2.0, 4.0):
        stated = group_delta(cost, size, epsilon, relation)
        true = exact_delta_of_two(cost, size, epsilon, relation)
        assert true > 0
        assert true <= stated
        assert true <= delta_of(converted, epsilon, relation)
    # and not by chance: one unit fewer would not cover it
    assert exact_delta_of_two(cost, size, 1.0, relation) > group_delta(
        cost, size - 1, 1.0, relation
    )


def test_without_sampling_where_that_is_better():
    """A large rate: k mu without sampling beats any chain."""
    cost = PoissonGaussianCost(1.0, 0.9, 1)
    assert group_epsilon(cost, 3, DELTA, "replace-one") <= epsilon_of(
        GaussianCost(1 / 3), DELTA, "replace-one"
    )
    assert group_cost(cost, 3, 1e-9, "replace-one") == GaussianCost(1 / 3)


@pytest.mark.parametrize(
    ("name", "size"), [("poisson", 5), ("fixed size", 2), ("thresholded", 5), ("objective", 2)]
)
def test_a_cost_for_groups_dominates_the_group(name, size):
    """Its profile is not below what chains of statements about one unit prove, but for the grid of
    the latter, nor much above for plans of many small steps.
    """
    converted = group_cost(COSTS[name], size, 1e-8, "replace-one")
    assert converted.lost == 1e-8
    for epsilon in (0.1, 0.5, 1.5):
        proved = group_delta(COSTS[name], size, epsilon, "replace-one")
        assert delta_of(converted, epsilon, "replace-one") >= 0.995 * proved
    if name in ("poisson", "fixed size"):
        alone = group_epsilon(COSTS[name], size, DELTA, "replace-one")
        assert epsilon_of(converted, DELTA, "replace-one") <= 1.03 * alone


def test_a_cost_without_a_gaussian_bound_keeps_epsilon_and_delta_alone():
    cost = compose([ThresholdedGaussianCost(4.0, 1e-7), PoissonGaussianCost(3.0, 0.1)])
    converted = group_cost(cost, 3, 1e-8, "replace-one")
    assert converted == ApproximateCost(math.inf, 1e-8)  # it fails more often than it may


def test_costs_that_reveal_all_reveal_all():
    for cost in (GaussianCost(0.0), PureCost(math.inf), PoissonGaussianCost(0.0, 0.1)):
        assert group_epsilon(cost, 3, DELTA, "replace-one") == math.inf
        assert group_delta(cost, 3, 1.0, "replace-one") == 1.0
    assert group_epsilon(compose([]), 3, DELTA, "replace-one") == 0


def test_a_failure_probability_that_grows_too_large_promises_nothing():
    assert group_epsilon(ApproximateCost(1.0, 1e-7), 20, DELTA, "replace-one") == math.inf
    assert group_delta(ApproximateCost(1.0, 1e-7), 20, 1.0, "replace-one") == pytest.approx(1, 0.3)


def test_relations_without_a_proof_are_refused():
    with pytest.raises(UnsupportedRelation):
        group_epsilon(FixedSizeGaussianCost(3.0, 0.02, 30), 2, DELTA, "add-remove")
    with pytest.raises(UnsupportedRelation):
        group_epsilon(MixtureGaussianCost(3.0, 0.1, 0.5), 2, DELTA, "replace-one")


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "2"])
def test_a_size_is_a_whole_number(size):
    with pytest.raises(InvalidArgument, match="size"):
        group_epsilon(GaussianCost(1.0), size, DELTA, "replace-one")


def test_the_quadrature_knows_the_gaussian_case():
    """At rate 1 the exact law is a Gaussian mechanism with k mu."""
    cost = PoissonGaussianCost(2.0, 1.0, 2)
    for relation in RECORD_RELATIONS:
        found = exact_delta_of_two(cost, 3, 1.0, relation)
        assert found == pytest.approx(gaussian_delta(1.0, math.sqrt(2) * 3 / 2), rel=1e-4)
