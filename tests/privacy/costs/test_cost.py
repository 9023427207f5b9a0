"""Costs as values: composition, validation, JSON."""

import json
import math
import random
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushfit import privacy
from hushfit.errors import InvalidArgument, UnsupportedRelation
from hushfit.privacy import (
    RECORD_RELATIONS,
    RENYI_ORDERS,
    AboveThresholdCost,
    ApproximateCost,
    BoundedRangeCost,
    Budget,
    ClassicObjectiveCost,
    ComposedCost,
    Cost,
    FixedSizeGaussianCost,
    GatedCost,
    GaussianCost,
    MixtureGaussianCost,
    ObjectiveCost,
    PermutedGaussianCost,
    PersonObjectiveCost,
    PoissonGaussianCost,
    PureCost,
    RdpCost,
    Relation,
    ThresholdedGaussianCost,
    compose,
    cost_from_dict,
    epsilon_of,
    rdp_epsilon,
    repeat,
)
from hushfit.privacy.costs._release_cost import ReleaseCost

# Every kind of cost. Add new ones here: the tests apply to all of them.
COSTS = [
    GaussianCost(3.0),
    PoissonGaussianCost(1.5, 0.02),
    FixedSizeGaussianCost(1.5, 0.02),
    PureCost(0.1),
    RdpCost.from_curve(lambda a: a / 50, "curve"),
    ObjectiveCost(4.0, 0.1),
    PersonObjectiveCost(4.0, 0.1, 0.1, 1, 7),
    MixtureGaussianCost(2.0, 0.1, 0.05),
    ApproximateCost(0.2, 1e-8),
    BoundedRangeCost(9.0),
    ClassicObjectiveCost(8.0, 0.05),
    ThresholdedGaussianCost(4.0, 1e-9),
    PermutedGaussianCost(3.0, (0.5, 0.5), (1.0, 0.7)),
    AboveThresholdCost("laplace", 8.0, 16.0, 5),
    GatedCost(3.0, 0.1, "laplace", 8.0, 16.0, 5),
]
over_costs = pytest.mark.parametrize("cost", COSTS, ids=lambda cost: cost.kind)

multipliers = st.one_of(st.floats(0, 1e6), st.just(math.inf))
rates = st.floats(0, 1, exclude_min=True)
counts = st.integers(1, 10**9)
tables = st.lists(
    st.tuples(st.floats(1.01, 100), st.one_of(st.floats(0, 9), st.just(math.inf))),
    min_size=1,
    max_size=4,
)


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


def test_every_kind_is_in_the_list():
    missing = set(Cost.kinds) - {cost.kind for cost in COSTS} - {"composed"}
    assert not missing, (
        f"{sorted(missing)}: add an example to COSTS in tests/privacy/costs/test_cost.py."
    )
    unknown = [kind.__name__ for kind in map(type, COSTS) if kind.__name__ not in privacy.__all__]
    assert not unknown, (
        f"{unknown}: import it in privacy/__init__.py, or ledgers that hold one cannot be read."
    )


@over_costs
def test_many_at_once_is_one_many_times(cost):
    assert compose([cost] * 7) == repeat(cost, 7) == compose([repeat(cost, 3), repeat(cost, 4)])


@over_costs
def test_every_kind_reads_back_what_it_wrote(cost):
    for written in (cost, repeat(cost, 3), compose([cost, GaussianCost(7.0)])):
        assert cost_from_dict(json.loads(json.dumps(written.to_dict(), allow_nan=False))) == written


@over_costs
def test_no_kind_reads_what_another_wrote_or_what_was_edited(cost):
    data = cost.to_dict()
    with pytest.raises(InvalidArgument):
        cost_from_dict({**data, "count": 0})
    with pytest.raises(InvalidArgument):
        cost_from_dict({name: value for name, value in data.items() if name != "count"})
    with pytest.raises(InvalidArgument):
        cost_from_dict({**data, "more": 1.0})


def proved_under(cost, relation):
    try:
        cost.curve(np.array([2.0]), relation)
        cost.gaussian_mu(relation)
        return not cost.paired or cost.directions(relation) is not None
    except UnsupportedRelation:
        return False


@over_costs
@pytest.mark.parametrize("relation", list(RECORD_RELATIONS), ids=str)
def test_what_a_kind_declares_agrees_with_its_price(cost, relation):
    """For every accountant that its declarations lead to, more releases cost more.

    A relation without a proof is refused everywhere.
    """
    if not proved_under(cost, relation):
        with pytest.raises(UnsupportedRelation):
            epsilon_of(cost, 1e-6, relation)
        return
    orders = np.array([1.5, 2.0, 8.0])
    curve = cost.curve(orders, relation)
    assert (curve >= 0).all()
    assert all(low <= high + 1e-12 for low, high in pairwise(curve))
    assert 0 <= cost.lost < 1
    once, twice = epsilon_of(cost, 1e-6, relation), epsilon_of(repeat(cost, 2), 1e-6, relation)
    assert 0 < once <= twice <= 2 * rdp_epsilon(cost, 1e-7, relation) + 1e-9


@dataclass(frozen=True)
class Tailored(ReleaseCost, kind="tailored"):
    """A kind that only this test knows: it declares a Renyi curve and nothing else."""

    rho: float
    count: int = 1

    @property
    def reveals_all(self):
        return False

    def curve(self, orders, relation):
        return self.rho * orders


del Cost.kinds["tailored"]  # other tests do not need it


def test_a_new_kind_needs_no_change_elsewhere(monkeypatch):
    monkeypatch.setitem(Cost.kinds, "tailored", Tailored)
    cost, gaussian = Tailored(0.02, 5), RdpCost.from_curve(lambda a: 0.02 * a, count=5)
    assert cost_from_dict(json.loads(json.dumps(cost.to_dict()))) == cost
    assert compose([GaussianCost(9.0), cost]) == compose([cost, GaussianCost(9.0)])
    for relation in RECORD_RELATIONS:
        assert epsilon_of(cost, 1e-6, relation) == epsilon_of(gaussian, 1e-6, relation)
        both = (compose([part, GaussianCost(9.0)]) for part in (cost, gaussian))
        assert len({epsilon_of(one, 1e-6, relation) for one in both}) == 1


@given(st.lists(costs, max_size=5))
def test_composition_ignores_order_and_nesting(parts):
    shuffled = random.Random(0).sample(parts, len(parts))
    assert compose(parts) == compose(shuffled) == compose([compose(parts[:2]), compose(parts[2:])])


def test_composition_counts_equal_parts_and_keeps_others():
    total = compose(
        [GaussianCost(2.0), PureCost(0.1), ComposedCost((GaussianCost(2.0, 3), GaussianCost(5.0)))]
    )
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
    with pytest.raises(InvalidArgument, match=r"'swap'.*'replace-one', 'add-remove'"):
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
