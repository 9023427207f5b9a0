"""Costs as values: composition, validation, JSON."""

import json
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushfit.errors import InvalidArgument
from hushfit.privacy import (
    RENYI_ORDERS,
    Budget,
    ComposedCost,
    FixedSizeGaussianCost,
    GaussianCost,
    PoissonGaussianCost,
    PureCost,
    RdpCost,
    Relation,
    compose,
    cost_from_dict,
    repeat,
)

COSTS = [
    GaussianCost(3.0),
    PoissonGaussianCost(1.5, 0.02),
    FixedSizeGaussianCost(1.5, 0.02),
    PureCost(0.1),
    RdpCost.from_curve(lambda a: a / 50, "curve"),
]

multipliers = st.one_of(st.floats(0, 1e6), st.just(math.inf))
rates = st.floats(0, 1, exclude_min=True)
counts = st.integers(1, 10**9)
tables = st.lists(st.tuples(st.floats(1.01, 100), st.one_of(st.floats(0, 9), st.just(math.inf))), min_size=1, max_size=4)


def rdp_of(table, count, label):
    orders = dict(sorted(table))
    return RdpCost(tuple(orders), tuple(orders.values()), count, label)


simple = st.one_of(
    st.builds(GaussianCost, multipliers, counts),
    st.builds(PoissonGaussianCost, multipliers, rates, counts),
    st.builds(FixedSizeGaussianCost, multipliers, rates, counts),
    st.builds(PureCost, multipliers, counts),
    st.builds(rdp_of, tables, counts, st.text(max_size=5)),
)
costs = st.one_of(simple, st.lists(simple, max_size=4).map(compose))


@pytest.mark.parametrize("cost", COSTS, ids=lambda c: type(c).__name__)
def test_many_at_once_is_one_many_times(cost):
    assert compose([cost] * 7) == repeat(cost, 7) == compose([repeat(cost, 3), repeat(cost, 4)])


@given(st.lists(costs, max_size=5))
def test_composition_ignores_order_and_nesting(parts):
    shuffled = random.Random(0).sample(parts, len(parts))
    assert compose(parts) == compose(shuffled) == compose([compose(parts[:2]), compose(parts[2:])])


def test_composition_counts_equal_parts_and_keeps_others():
    total = compose([GaussianCost(2.0), PureCost(0.1), ComposedCost((GaussianCost(2.0, 3), GaussianCost(5.0)))])
    assert total == ComposedCost((GaussianCost(2.0, 4), GaussianCost(5.0), PureCost(0.1)))
    assert compose([]) == ComposedCost(())


@given(costs)
def test_json_round_trip_is_exact(cost):
    text = json.dumps(cost.to_dict(), allow_nan=False)
    assert cost_from_dict(json.loads(text)) == cost


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "laplace", "epsilon": 1.0},
        {"kind": ["gaussian"], "noise_multiplier": 1.0, "count": 1},
        {"noise_multiplier": 1.0},
        {"kind": "gaussian", "noise_multiplier": 1.0},
        {"kind": "gaussian", "noise_multiplier": 1.0, "count": 1, "extra": 0},
        {"kind": "gaussian", "noise_multiplier": "big", "count": 1},
        {"kind": "gaussian", "noise_multiplier": 1.0, "count": 1.5},
        {"kind": "rdp", "orders": 2, "values": [1.0], "count": 1, "label": ""},
        {"kind": "rdp", "orders": [2.0], "values": [1.0], "count": 1, "label": 7},
        {"kind": "composed", "parts": [{"kind": "composed", "parts": []}]},
        {"kind": "composed", "parts": {}},
        [1, 2],
    ],
)
def test_reading_is_strict(data):
    with pytest.raises(InvalidArgument):
        cost_from_dict(data)


@pytest.mark.parametrize(
    "make",
    [
        lambda: GaussianCost(-1.0),
        lambda: GaussianCost(math.nan),
        lambda: GaussianCost("2"),
        lambda: GaussianCost(1.0, 0),
        lambda: GaussianCost(1.0, 2.0),
        lambda: GaussianCost(1.0, True),
        lambda: PoissonGaussianCost(1.0, 0.0),
        lambda: FixedSizeGaussianCost(1.0, 1.1),
        lambda: PureCost(-0.1),
        lambda: RdpCost((), ()),
        lambda: RdpCost((1.0, 2.0), (0.1, 0.2)),
        lambda: RdpCost((3.0, 2.0), (0.1, 0.2)),
        lambda: RdpCost((2.0, math.inf), (0.1, 0.2)),
        lambda: RdpCost((2.0, 3.0), (0.1,)),
        lambda: RdpCost((2.0,), (-0.1,)),
        lambda: ComposedCost((3.0,)),
        lambda: compose([3.0]),
        lambda: repeat(GaussianCost(1.0), 0),
        lambda: Budget(0.0, 1e-6),
        lambda: Budget(math.nan, 1e-6),
        lambda: Budget(1.0, 0.0),
        lambda: Budget(1.0, 1.0),
        lambda: Relation.parse("swap"),
        lambda: Relation.parse(None),
    ],
)
def test_bad_values_are_refused(make):
    with pytest.raises(InvalidArgument):
        make()


def test_messages_name_the_value_and_the_remedy():
    with pytest.raises(InvalidArgument, match=r"'swap'.*'replace-one' or 'add-remove'"):
        Relation.parse("swap")
    with pytest.raises(InvalidArgument, match=r"epsilon=-2 .*positive"):
        Budget(-2, 1e-6)
    with pytest.raises(InvalidArgument, match=r"delta=1.5 .*below 1/n"):
        Budget(1, 1.5)


def test_numpy_numbers_are_numbers():
    cost = GaussianCost(np.float64(2.0), np.int64(3))
    assert cost == GaussianCost(2.0, 3)
    assert type(cost.noise_multiplier) is float
    assert type(cost.count) is int
    assert Budget(math.inf, 1e-6).is_private is False


def test_curves_are_tabulated_on_the_documented_orders():
    cost = RdpCost.from_curve(lambda a: 2 * a, "line", count=3)
    assert cost.orders == RENYI_ORDERS
    assert cost.values == tuple(2 * a for a in RENYI_ORDERS)
    assert cost.count == 3
    assert RENYI_ORDERS[0] == pytest.approx(1 + 1 / 64)
    assert RENYI_ORDERS[-1] == 8192
