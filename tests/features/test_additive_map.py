"""The additive map is the one that it is defined to be, row by row, in every layout."""

import itertools
import json
import math

import numpy as np
import pytest
from scipy import sparse

from hushfit.data import RecordScaling, as_source
from hushfit.data.rows import _source
from hushfit.errors import InvalidArgument
from hushfit.features import (
    CLASSIFICATION,
    REGRESSION,
    AdditiveFeatures,
    AdditiveMap,
    FeatureMap,
    InputColumn,
    KnotMasses,
    additive_map,
    centred,
    hat_means,
    knot_values,
    monotone,
    smoothed,
    weights_of,
)

MIXED = AdditiveMap(
    (4, 0, 2, 1, 0, 8),
    (False, False, True, True, False, False),
    (None, None, 0.5, None, 0.0, None),
)


def rows(n=40, seed=0):
    """Values in [0, 1], many of them zero, some missing where the map takes that."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 6)) * (rng.random((n, 6)) < 0.7)
    X[:, [1, 4]] = np.rint(X[:, [1, 4]])
    X[rng.random(n) < 0.2, 2] = np.nan
    X[rng.random(n) < 0.2, 4] = np.nan
    return X


def features(v, intervals, low_mass):
    """The linear part and the hat functions, centred, as the page defines them."""
    hats = np.maximum(0.0, 1 - np.abs(v[:, None] * intervals - np.arange(intervals + 1)))
    means = hat_means(intervals, low_mass)
    return np.column_stack([v - (1 - low_mass) / 2, 2 * (hats - means)])


@pytest.mark.parametrize("low", [False, True])
@pytest.mark.parametrize("intervals", [1, 2, 3, 4, 8])
def test_columns_have_the_lengths_and_inner_products_of_centred_hat_functions(intervals, low):
    v = np.linspace(0, 1, 67)
    made = AdditiveMap((intervals,), (low,)).transform(v[:, None])
    wanted = features(v, intervals, 0.5 if low else 0.0)
    assert made.shape == (67, intervals)
    np.testing.assert_allclose(made @ made.T, wanted @ wanted.T, atol=1e-12)
    assert (knot_values(intervals, 0.5 if low else 0.0)[-1] > 0).all()


def test_hat_means_are_the_means_of_the_hat_functions():
    v = (np.arange(100_000) + 0.5) / 100_000
    hats = np.maximum(0.0, 1 - np.abs(v[:, None] * 4 - np.arange(5)))
    np.testing.assert_allclose(hat_means(4), hats.mean(axis=0), atol=1e-9)
    half_at_zero = (hats.mean(axis=0) + np.eye(5)[0]) / 2
    np.testing.assert_allclose(hat_means(4, 0.5), half_at_zero, atol=1e-9)


def test_dense_and_sparse_rows_are_mapped_alike():
    X = rows()
    dense = MIXED.transform(X)
    mapped = MIXED.transform_sparse(sparse.csr_array(X))
    assert mapped.has_canonical_format
    np.testing.assert_array_equal(mapped.toarray(), dense)
    assert dense.shape[1] == MIXED.n_outputs == len(MIXED.output_names("abcdef"))


def test_missing_values_get_the_fill_and_an_indicator():
    X = np.array([[0.2, 1, np.nan, 0, np.nan, 0.3], [0.2, 1, 0.5, 0, 0.0, 0.3]])
    missing, filled = MIXED.transform(X)
    marks = [span.start + span.width - 1 for span in MIXED.spans if span.has_indicator]
    assert (missing[marks] == 1).all()
    assert (filled[marks] == 0).all()
    np.testing.assert_array_equal(np.delete(missing, marks), np.delete(filled, marks))


def test_a_missing_value_without_a_fill_makes_the_zero_record():
    X = rows()
    X[3, 0] = np.nan
    source = as_source(X, np.ones(len(X)), feature_map=MIXED)
    records = np.concatenate([block.records() for block in source.blocks()])
    assert (records[3] == 0).all()
    np.testing.assert_allclose(np.linalg.norm(np.delete(records, 3, axis=0), axis=1), 1)


def records(table, feature_map=MIXED, **settings):
    """The records of mapped rows, as queries see them."""
    source = as_source(table, np.ones(table.shape[0]), feature_map=feature_map, **settings)
    assert source.n_features == feature_map.n_outputs
    blocks = [block.records() for block in source.blocks()]
    return np.concatenate([b.toarray() if sparse.issparse(b) else b for b in blocks])


LAYOUTS = pytest.mark.parametrize(
    "layout", [np.asarray, np.asfortranarray, sparse.csr_array], ids=str
)


@LAYOUTS
def test_replacing_a_row_changes_its_own_record_only_and_no_record_is_longer_than_one(layout):
    X, other = rows(), rows(seed=1)
    changed = X.copy()
    changed[7] = other[7]
    before, after = records(layout(X)), records(layout(changed))
    assert np.flatnonzero(np.any(before != after, axis=1)).tolist() == [7]
    assert (np.linalg.norm(after, axis=1) <= 1 + 1e-12).all()


@LAYOUTS
@pytest.mark.parametrize("scaling", RecordScaling)
def test_rows_that_are_mapped_once_are_those_mapped_whenever_they_are_read(
    layout, scaling, monkeypatch
):
    X, given = layout(rows()), {"feature_map": MIXED.bounded(), "scaling": scaling}
    once = records(X, **given)
    monkeypatch.setattr(_source, "_MOST_MAPPED_ENTRIES", 0)
    np.testing.assert_array_equal(records(X, **given), once)


def test_an_entry_that_is_stored_in_parts_is_mapped_as_a_whole():
    parts = sparse.csr_array(([0.2, 0.3, 1.0], [0, 0, 1], [0, 3]), shape=(1, 6))
    assert not parts.has_canonical_format
    whole = sparse.csr_array(([0.5, 1.0], [0, 1], [0, 2]), shape=(1, 6))
    np.testing.assert_array_equal(records(parts), records(whole))


@pytest.mark.parametrize("low", [False, True])
@pytest.mark.parametrize("intervals", [1, 2, 3, 5, 8, 64])
def test_bounded_outputs_stay_within_one_between_all_knots(intervals, low):
    """A record with a larger entry would count as the zero record."""
    v = np.linspace(0, 1, 100_003)[:, None]
    made = AdditiveMap((intervals,), (low,)).bounded()
    largest = np.abs(made.transform(v)).max()
    assert 1 - 1e-9 < largest <= 1
    assert (records(v, made, scaling=RecordScaling.BOUNDED)[:, -1] > 0).all()
    np.testing.assert_allclose(np.abs(made.bounded().transform(v)).max(), largest)


def test_the_row_norm_is_an_upper_bound_and_attained_up_to_little():
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=6)))
    norms = np.linalg.norm(MIXED.transform(np.vstack([corners, np.nan_to_num(rows(400))])), axis=1)
    assert norms.max() <= MIXED.row_norm
    assert norms.max() ** 2 >= MIXED.row_norm**2 - 2.0001  # no value is missing here


def test_a_map_is_read_back_exactly():
    text = json.dumps(MIXED.to_dict())
    again = AdditiveMap.from_dict(json.loads(text))
    np.testing.assert_array_equal(again.transform(rows()), MIXED.transform(rows()))
    assert isinstance(again, FeatureMap)


DAMAGES = {
    "kind": lambda d: d.update(kind="other"),
    "field": lambda d: d.pop("low"),
    "too many intervals": lambda d: d.update(intervals=[99] * 6),
    "a number as text": lambda d: d.update(intervals=["4", 0, 2, 1, 0, 8]),
    "a table is missing": lambda d: d["tables"].pop(),
    "a table of another shape": lambda d: d["tables"][0].update(values=[[1.0]]),
    "a fill outside": lambda d: d.update(fills=[2.0] + [None] * 5),
    "too few fills": lambda d: d.update(fills=[None]),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_map_is_refused(damage):
    described = MIXED.to_dict()
    damage(described)
    with pytest.raises(InvalidArgument):
        AdditiveMap.from_dict(described)


@pytest.mark.parametrize(
    ("size", "intervals"), [(67, 1), (68, 2), (161, 2), (163, 4), (1079, 4), (1081, 8)]
)
def test_the_number_of_intervals_follows_the_size_of_the_data(size, intervals):
    assert CLASSIFICATION.intervals(size, 9) == intervals
    assert CLASSIFICATION.intervals(math.inf, 9) == 8


@pytest.mark.parametrize(
    ("size", "intervals"), [(83, 1), (84, 2), (111, 2), (112, 4), (167, 4), (168, 8), (math.inf, 8)]
)
def test_in_regression_all_outputs_count(size, intervals):
    """Eight indicators and two numbers: 12, 16 and 24 outputs, with 7 units of size for each."""
    columns = [InputColumn("a"), InputColumn("b")] + [InputColumn(f"i{k}", 1) for k in range(8)]
    made = additive_map(columns, size, 999, rule=REGRESSION)
    assert made.intervals == (intervals, intervals) + (0,) * 8


def test_straight_lines_of_a_regression_are_columns_in_their_signed_range():
    v = np.linspace(0, 1, 11)[:, None]
    made = REGRESSION.map([InputColumn("a", from_zero=True)], 1)
    np.testing.assert_allclose(made.transform(v), 2 * v - 1, atol=1e-11)


def test_whole_numbers_two_values_and_wide_tables_get_fewer_intervals():
    columns = [
        InputColumn("age", 73),
        InputColumn("children", 3),
        InputColumn("sex", 1),
        InputColumn("income", from_zero=True),
    ]
    made = additive_map(columns, math.inf, 999)
    assert made.intervals == (8, 3, 0, 8)
    assert made.low == (False, False, False, False)
    assert additive_map(columns, 15.0, 999).low == (False, False, False, True)
    assert additive_map(columns, math.inf, 12).intervals == (4, 3, 0, 4)
    assert additive_map(columns, math.inf, 999, most_intervals=1).intervals == (1, 1, 0, 1)
    # Three numeric columns of four: the column of two values is not counted.
    assert additive_map(columns, 13.1, 999).intervals == (2, 2, 0, 2)
    assert additive_map(columns, 12.9, 999).intervals == (1, 1, 0, 1)


def test_settings_name_columns_by_name_or_number():
    settings = AdditiveFeatures(binary=["b"], integer=[2], missing=["c"], monotone={"a": -1})
    columns = settings.columns(["a", "b", "c"], [0, 0, 1], [1, 1, 6])
    assert [c.steps for c in columns] == [None, 1, 5]
    assert [c.fill for c in columns] == [None, None, 0.5]
    assert [c.from_zero for c in columns] == [True, True, False]
    assert settings.directions(columns) == {0: -1}


@pytest.mark.parametrize(
    "wrong",
    [
        {"monotone": {0: 2}},
        {"monotone": {"age": "increasing"}},
        {"monotone": ["age"]},
        {"smoothness": -1},
        {"smoothness": math.nan},
        {"binary": "age"},
        {"most_intervals": 0},
    ],
    ids=str,
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(InvalidArgument):
        AdditiveFeatures(**wrong)


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(InvalidArgument, match="'height'"):
        AdditiveFeatures(binary=["height"]).columns(["a"], [0], [1])


@pytest.mark.parametrize("low", [0.0, 0.5])
def test_masses_are_found_from_means(low):
    rng = np.random.default_rng(3)
    v, table = rng.beta(1, 3, 500), knot_values(4, low)
    hats = np.maximum(0.0, 1 - np.abs(v[:, None] * 4 - np.arange(5)))
    found = KnotMasses.of((hats @ table).mean(axis=0), 1e-9, table)
    np.testing.assert_allclose(found.masses, hats.mean(axis=0), atol=1e-12)
    assert abs(found.weights @ centred(np.arange(5.0) ** 2, found)) < 1e-9


def test_the_noise_of_masses_is_that_of_the_means():
    """False-alarm rate: each ratio of 4,000 draws lies within 10 % but for 5 standard errors."""
    rng, table = np.random.default_rng(0), knot_values(8)
    draws = [KnotMasses.of(rng.normal(size=8), 1.0, table) for _ in range(4000)]
    spread = np.std([draw.masses for draw in draws], axis=0)
    np.testing.assert_allclose(spread, draws[0].noise, rtol=0.06)
    assert not KnotMasses.of(np.zeros(8), 10.0, table).seen.any()


@pytest.mark.parametrize("way", [1, -1])
def test_the_monotone_function_is_the_nearest_one(way):
    rng = np.random.default_rng(1)
    values, weights = rng.normal(size=7), rng.random(7) + 0.1
    best = monotone(values, way, weights)
    assert (way * np.diff(best) >= 0).all()

    def distance(f):
        return float(weights @ (f - values) ** 2)

    for _ in range(300):
        other = way * np.sort(way * (best + rng.normal(size=7) * rng.choice([0.01, 0.3])))
        assert distance(other) >= distance(best) - 1e-12


def test_smoothing_keeps_straight_lines_and_flattens_others():
    weights, line = hat_means(8), np.linspace(-2, 3, 9)
    np.testing.assert_allclose(smoothed(line, 10.0, weights), line, atol=1e-9)
    bent = np.abs(line)
    bends = [(np.diff(smoothed(bent, s, weights), 2) ** 2).sum() for s in (0, 1e-4, 1e-2, 1)]
    assert bends == sorted(bends, reverse=True)
    np.testing.assert_array_equal(smoothed(bent, 0.0, weights), bent)


@pytest.mark.parametrize("low", [0.0, 0.5])
def test_weights_of_values_give_these_values(low):
    table, values = knot_values(5, low), np.array([3.0, -1, 2, 0, 1, 7])
    weights, constant = weights_of(values, table)
    np.testing.assert_allclose(table @ weights + constant, values, atol=1e-10)
