"""Preprocessing: sensitivity of counts, rare texts, and one guarantee for a pipeline.

False alarms: each check on noise rejects at 1e-6 and there are 5 of them.
"""

import itertools
import math
import pickle
import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse, stats
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    StandardScaler,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

from _support import ERROR_FOR_A_CELL, RELATIONS, SOURCES, curator_over, source_of, table
from hushfit import Ledger, PrivateLogisticRegression
from hushfit.data.schema._schema import CategoricalColumn, NumericColumn, Schema, encode
from hushfit.datasets import load_adult
from hushfit.errors import BudgetExceeded, InvalidArgument, LedgerError, UndeclaredRelease
from hushfit.preprocessing import (
    BoundedScaler,
    PrivatePipeline,
    PrivateQuantileScaler,
    SchemaEncoder,
    pipeline_guarantee,
)
from hushfit.preprocessing._parts import private_parts
from hushfit.preprocessing._pipeline_account import PipelineAccount
from hushfit.preprocessing._pipeline_guarantee import guarantee_of_account
from hushfit.preprocessing._quantiles import FIRST_EDGES, Spread
from hushfit.privacy import (
    Budget,
    GaussianCost,
    Relation,
    SecureSampler,
    ThresholdedGaussianCost,
    compose,
    cost_from_dict,
    delta_of,
    epsilon_of,
    filtered_epsilon,
    gaussian_mu,
    repeat,
    usable,
)
from hushfit.release import (
    ColumnHistogram,
    NoiseGrid,
    Plan,
    Planned,
    PoissonBatch,
    TextColumns,
    Thresholded,
    Vocabulary,
    vocabulary_of,
)
from hushfit.solvers import DPBLS, ProximalGradient

LEVEL = 1e-6
COLUMNS = 3
over_relations = pytest.mark.parametrize("relation", RELATIONS, ids=str)
over_layouts = pytest.mark.parametrize("layout", SOURCES.values(), ids=SOURCES)

EDGES = (np.array([-1.0, 0.0, 1.0]), np.array([0.0]), FIRST_EDGES)
MISSING_RECORD = np.full(COLUMNS, np.nan)
EXTREMES = [
    MISSING_RECORD,
    [np.inf, 0, -np.inf],
    [1e300, -1e-300, 0.0],
    [-0.0, 0.0, np.nan],
    [1.0, 1e-40, 2.0**60],
]


def histogram_of(X, edges=EDGES):
    return ColumnHistogram(edges)(source_of(X, np.zeros(X.shape[0]), fit_intercept=False), None)


def neighbours(relation, rng):
    """The same rows but for the first: another record, or one of missing values."""

    def record():
        extreme = rng.random() < 0.4
        return np.array(
            EXTREMES[rng.integers(len(EXTREMES))]
            if extreme
            else rng.normal(size=COLUMNS) * 10 ** rng.uniform(-3, 3)
        )

    X, other = table(5, COLUMNS), table(5, COLUMNS)
    X[0], other[0] = record(), record() if relation is Relation.REPLACE_ONE else MISSING_RECORD
    return X, other


# The histogram of all columns


@over_relations
def test_no_record_moves_the_histogram_further_than_it_says_and_some_as_far(relation):
    rng = np.random.default_rng(0)
    bound = ColumnHistogram(EDGES).sensitivity(relation)
    apart = [
        np.linalg.norm(np.subtract(*map(histogram_of, neighbours(relation, rng))))
        for _ in range(400)
    ]
    assert max(apart) == pytest.approx(bound, rel=1e-12)
    assert max(apart) > bound / 2


def test_one_record_adds_one_to_one_cell_of_each_column():
    rng = np.random.default_rng(1)
    for _ in range(100):
        X, without_first = neighbours(Relation.ADD_REMOVE, rng)
        added = histogram_of(X) - histogram_of(without_first)
        per_column = ColumnHistogram(EDGES).by_column(added)
        np.testing.assert_array_equal([cells.sum() for cells in per_column], ~np.isnan(X[0]))
        assert set(added) <= {0.0, 1.0}
        assert np.linalg.norm(added) <= ColumnHistogram(EDGES).radius()


@over_layouts
def test_every_source_gives_the_same_histogram(layout):
    X = table(9_000, COLUMNS)
    X[5] = np.nan
    np.testing.assert_array_equal(histogram_of(layout(X)), histogram_of(X))


def test_a_cell_holds_its_right_edge_and_zeros_have_a_cell_of_their_own():
    counts = histogram_of(
        np.array([[0.0], [1.0], [1.5], [-1.0], [np.nan], [-0.0], [1e-300]]), EDGES[:1]
    )
    np.testing.assert_array_equal(counts, [1, 2, 2, 1])
    zeros = histogram_of(np.array([[0.0], [-0.0], [5e-320], [-5e-320]]), (FIRST_EDGES,))
    assert zeros[np.searchsorted(FIRST_EDGES, 0.0)] == 2


@over_relations
def test_histogram_noise_is_the_multiplier_times_the_sensitivity(relation):
    X = np.full((50, 5), np.nan)
    query = ColumnHistogram((FIRST_EDGES,) * 5)
    plan = Plan((Planned("look", ColumnHistogram, 1),))
    curator = curator_over(
        source_of(X, np.zeros(50), False), plan, 3.0, relation, sampler=SecureSampler()
    )
    noise = curator.release("look", query)
    low, high = stats.chi2.ppf([LEVEL / 2, 1 - LEVEL / 2], noise.size)

    def right(values):
        return low <= (values**2).sum() / (3.0 * query.sensitivity(relation)) ** 2 <= high

    assert right(noise)
    assert not right(noise / 2)


def test_the_histogram_has_no_proof_for_batches_or_other_columns():
    with pytest.raises(InvalidArgument, match="proof covers all rows only"):
        Planned("look", ColumnHistogram, 1, sampling=PoissonBatch(0.5))
    with pytest.raises(InvalidArgument, match="over all rows"):
        ColumnHistogram(EDGES)(source_of(table(5, COLUMNS), np.zeros(5)), np.array([1]))
    with pytest.raises(InvalidArgument, match="3 columns and edges for 1"):
        histogram_of(table(5, COLUMNS), EDGES[:1])


# Distributions from counts


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.5, 0.9, 0.999, 1.0])
def test_exact_counts_give_quantiles_to_within_a_cell(share):
    values = np.random.default_rng(2).lognormal(3, 1, size=4000)
    edges = np.linspace(0, 400, 801)
    counts = histogram_of(values[:, None], (edges,))
    clipped = np.clip(values, 0, 400)
    assert Spread.of(edges, counts, 0.5).quantile(share) == pytest.approx(
        np.quantile(clipped, share), abs=1.5 + 0.1 * (share == 1)
    )


def test_counts_below_the_noise_say_nothing():
    assert Spread.of(FIRST_EDGES, np.full(len(FIRST_EDGES) + 1, 4.9), 5.0) is None
    counts = np.zeros(len(FIRST_EDGES) + 1)
    counts[150] = 100
    counts[20] = 4.9
    spread = Spread.of(FIRST_EDGES, counts, 5.0)
    assert [spread.quantile(0), spread.quantile(1)] == [FIRST_EDGES[149], FIRST_EDGES[150]]


# Scaling


def columns_of_all_sizes(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    u = rng.random((n, 5))
    zeros = np.where(u[:, 3] < 0.9, 0.0, 1000 * u[:, 4])
    return np.column_stack(
        [1900 + 100 * u[:, 0], -1e-6 * u[:, 1], 1e9 * np.exp(u[:, 2]), zeros, np.full(n, 7.0)]
    )


@pytest.mark.parametrize("epsilon", [math.inf, 1.0])
def test_private_bounds_are_near_the_quantiles_whatever_the_size_of_the_values(epsilon):
    """Within a fifth of their range; columns near 1900, negative, huge, or zero in nine of ten
    rows.
    """
    X = columns_of_all_sizes()
    scaler = PrivateQuantileScaler(epsilon=epsilon).fit(X)
    low, high = np.quantile(X[:, :4], scaler.quantiles, axis=0)
    np.testing.assert_array_less(np.abs(scaler.low_[:4] - low), 0.2 * (high - low))
    np.testing.assert_array_less(np.abs(scaler.high_[:4] - high), 0.2 * (high - low))
    assert scaler.seen_.all()
    # a constant is known to within a bin of the second histogram
    assert abs(scaler.low_[4] - 7) < 0.1
    assert abs(scaler.high_[4] - 7) < 0.1


def test_a_column_that_noise_hides_gets_a_default_range():
    with pytest.warns(UserWarning, match="delta"):
        scaler = PrivateQuantileScaler(epsilon=0.01, delta=0.1).fit(columns_of_all_sizes(30))
    np.testing.assert_array_equal(scaler.low_[~scaler.seen_], 0)
    np.testing.assert_array_equal(scaler.high_[~scaler.seen_], 1)
    assert not scaler.seen_.all()


@pytest.mark.parametrize("output", ["range", "rank"])
@pytest.mark.parametrize("missing", ["keep", "middle"])
def test_a_row_is_transformed_by_itself_alone(output, missing):
    """Replacing a record leaves every other transformed row unchanged, bit for bit, and drops
    none.
    """
    X = columns_of_all_sizes(500)
    scaler = PrivateQuantileScaler(
        output=output, missing=missing, epsilon=math.inf, max_row_norm=1.5
    ).fit(X)
    other = X.copy()
    other[0] = [np.nan, np.inf, -1e300, 1e300, 0]
    first, second = scaler.transform(X), scaler.transform(other)
    np.testing.assert_array_equal(first[1:], second[1:])
    assert first.shape == second.shape == X.shape
    assert np.isnan(second[0, 0]) == (missing == "keep")


SCALERS = [
    BoundedScaler((0, 10)),
    BoundedScaler((0, 10), max_row_norm=0.7, missing="middle"),
    PrivateQuantileScaler(epsilon=math.inf),
    PrivateQuantileScaler(epsilon=math.inf, output="rank", max_row_norm=1.0),
]


@pytest.mark.parametrize("scaler", SCALERS, ids=repr)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_no_row_is_longer_than_certified(scaler, layout):
    """For all rows to transform: they need not resemble those that were fitted."""
    rng = np.random.default_rng(4)
    fitted = clone(scaler).fit(layout(np.abs(columns_of_all_sizes(300))))
    extreme = rng.normal(size=(300, 5)) * 10.0 ** rng.uniform(-300, 300, size=(300, 5))
    extreme[0] = [np.inf, -np.inf, 0, 1e308, 7]
    extreme[1] = np.nan
    rows = fitted.transform(layout(extreme))
    rows = rows.toarray() if sparse.issparse(rows) else rows
    lengths = np.linalg.norm(rows[~np.isnan(rows).any(axis=1)], axis=1)
    assert len(lengths) >= 299
    assert lengths.max() <= fitted.row_norm_
    assert lengths.max() > 0.5 * fitted.row_norm_


def in_parts(times):
    """Two rows of one entry, 1, stored as ``times`` duplicates, which scipy sums."""
    return sparse.csr_array(
        (np.ones(2 * times), np.zeros(2 * times, dtype=int), np.array([0, times, 2 * times])),
        shape=(2, 1),
    )


@pytest.mark.parametrize(
    "scaler",
    [
        BoundedScaler((0, 1)),
        BoundedScaler((0, 1), max_row_norm=0.5),
        PrivateQuantileScaler(epsilon=math.inf, max_row_norm=0.5),
    ],
    ids=repr,
)
def test_an_entry_stored_in_parts_is_one_entry(scaler):
    """Duplicates clipped one by one would exceed the certified length, and count several times."""
    X = in_parts(5)
    fitted = clone(scaler).fit(X)
    whole = sparse.csr_array(X.toarray())
    np.testing.assert_array_equal(
        fitted.transform(X).toarray(), clone(scaler).fit(whole).transform(whole).toarray()
    )
    assert np.abs(fitted.transform(X).toarray()).max() <= fitted.row_norm_
    assert X.nnz == 10


def test_indicators_of_missing_values_are_declared_and_not_read_from_the_rows():
    """Also for rows without missing values, dense and sparse."""
    frame = pd.DataFrame({"age": [5.0, np.nan], "weight": [np.nan, 10.0]})
    scaler = BoundedScaler((0, 10), missing=["weight"]).fit(frame.fillna(1.0))
    np.testing.assert_array_equal(scaler.transform(frame), [[0.5, 0.5, 1.0], [0.5, 1.0, 0.0]])
    assert scaler.get_feature_names_out().tolist() == ["age", "weight", "weight=<missing>"]
    assert scaler.row_norm_ >= math.sqrt(3)
    rows = sparse.csr_matrix(frame.to_numpy())
    every = BoundedScaler((0, 10), missing="indicator").fit(rows)
    expected = [[0.5, 0.5, 0, 1], [0.5, 1, 1, 0]]
    np.testing.assert_array_equal(every.transform(rows).toarray(), expected)
    assert np.isnan(BoundedScaler((0, 10), missing="keep").fit_transform(frame)).sum() == 2
    with pytest.raises(InvalidArgument, match="'height', which is not there"):
        BoundedScaler((0, 10), missing=["height"]).fit(frame)


def test_public_ranges_cost_nothing_and_are_clipped_to():
    scaler = BoundedScaler([(0, 10), (-1, 1), (5, 6)]).fit(np.zeros((4, 3)))
    np.testing.assert_array_equal(
        scaler.transform([[5, 0, 9], [-3, np.nan, 5]]), [[0.5, 0.5, 1], [0, 0.5, 0]]
    )
    assert not hasattr(scaler, "privacy_")


def test_ranks_spread_a_long_tail_evenly():
    values = np.random.default_rng(5).lognormal(0, 3, size=(20_000, 1))
    ranks = PrivateQuantileScaler(epsilon=math.inf, output="rank").fit_transform(values)[:, 0]
    linear = PrivateQuantileScaler(epsilon=math.inf).fit_transform(values)[:, 0]
    assert stats.kstest(ranks, "uniform").statistic < 0.1
    assert stats.kstest(linear, "uniform").statistic > 0.7
    order = np.argsort(values[:, 0])
    assert (np.diff(ranks[order]) >= 0).all()


def test_the_scaler_pays_before_it_looks_and_only_what_it_says():
    X, ledger = columns_of_all_sizes(200), Ledger(1.0, 1e-3)
    scaler = PrivateQuantileScaler(epsilon=0.4, delta=1e-3, ledger=ledger).fit(X)
    assert ledger.total_cost == scaler.privacy_.cost
    assert 0.39 < ledger.spent().epsilon <= 0.4
    with pytest.raises(BudgetExceeded):
        PrivateQuantileScaler(epsilon=0.9, delta=1e-3, ledger=ledger).fit(X)
    assert len(ledger.entries) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"quantiles": (0.9, 0.1)},
        {"quantiles": 3},
        {"output": "log"},
        {"missing": "drop"},
        {"max_row_norm": 0},
        {"epsilon": 0},
    ],
)
def test_settings_that_mean_nothing_are_refused_before_anything_is_paid(wrong):
    ledger = Ledger(1.0, 1e-3)
    with pytest.raises(InvalidArgument):
        PrivateQuantileScaler(ledger=ledger).set_params(**wrong).fit(columns_of_all_sizes(50))
    assert ledger.entries == ()


@pytest.mark.usefixtures("quiet_fits")
@parametrize_with_checks(
    [BoundedScaler((-100, 100)), PrivateQuantileScaler(random_state=0)],
    expected_failed_checks=lambda estimator: ERROR_FOR_A_CELL,
)
def test_scikit_learn_finds_nothing_to_complain_about(estimator, check):
    check(estimator)


# Vocabularies


def hockey_stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def naming_law(counts, support, least, scale):
    """Exact distribution of the set of released texts: each text is released independently."""
    named = [ndtr((counts[text] - least) / scale) if counts.get(text) else 0.0 for text in support]
    return np.array(
        [
            math.prod(p if bit else 1 - p for p, bit in zip(named, bits, strict=True))
            for bits in _subsets(len(support))
        ]
    )


def _subsets(size):
    return list(itertools.product([0, 1], repeat=size))


TABLES = [
    ({"a": 5, "mine": 1}, {"a": 5, "yours": 1}),
    ({"a": 9, "b": 3}, {"a": 8, "b": 3, "yours": 1}),
    ({"a": 9, "b": 3}, {"a": 8, "b": 4}),
    ({"a": 9, "mine": 1}, {"a": 10}),
]


@pytest.mark.parametrize("tables", TABLES, ids=str)
@pytest.mark.parametrize("multiplier", [0.5, 2.0])
def test_the_law_of_the_named_texts_is_covered_by_its_cost(tables, multiplier):
    """All subsets; without the failure probability for rare texts the claim fails at large
    epsilon.
    """
    mechanism = Thresholded(0.01, 1)
    query = Vocabulary(1)
    scale = multiplier * query.sensitivity(Relation.REPLACE_ONE)
    support = sorted({*tables[0], *tables[1]})
    p, q = (naming_law(counts, support, mechanism.threshold(scale), scale) for counts in tables)
    cost = mechanism.cost(multiplier, 1, 10)
    for epsilon in (0.0, 0.2, 1.0, 3.0, 8.0, 20.0):
        claimed = delta_of(cost, epsilon, Relation.REPLACE_ONE)
        assert max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)) <= claimed + 1e-12
    if "mine" in tables[0] and "yours" in tables[1]:
        assert hockey_stick(p, q, 20.0) == pytest.approx(0.01, rel=1e-6)
        assert hockey_stick(p, q, 20.0) > delta_of(
            GaussianCost(multiplier), 20.0, Relation.REPLACE_ONE
        )


def test_a_lower_threshold_names_rare_texts_too_often():
    for columns in (1, 8):
        mechanism = Thresholded(1e-4, columns)
        rare = 1 - (1 - stats.norm.sf((mechanism.threshold(5.0) - 1) / 5.0)) ** columns
        assert 0.99e-4 <= rare <= 1e-4
        assert 1 - (1 - stats.norm.sf((mechanism.threshold(5.0) - 2) / 5.0)) ** columns > 1e-4


def test_texts_are_named_as_often_as_noise_of_the_promised_size_names_them():
    """One text of one record, one near the threshold: binomial counts over 2000 releases. Half
    the noise would be seen.
    """
    mechanism, releases = Thresholded(0.2, 1), 2000
    scale = 10 * Vocabulary(1).sensitivity(Relation.REPLACE_ONE)
    common = 27

    def agrees(multiplier):
        plan = Plan((Planned("v", Vocabulary, releases, sampling=mechanism),))
        source = TextColumns((("common",) * common + ("rare",),))
        curator = curator_over(source, plan, multiplier, sampler=SecureSampler())
        named = [vocabulary_of(curator.release("v", Vocabulary(1)))[0] for _ in range(releases)]
        chances = {
            text: ndtr((count - mechanism.threshold(scale)) / scale)
            for text, count in (("common", common), ("rare", 1))
        }
        tests = [
            stats.binomtest(sum(text in texts for texts in named), releases, p).pvalue
            for text, p in chances.items()
        ]
        return min(tests) > LEVEL

    assert agrees(10.0)
    assert not agrees(5.0)


@over_relations
def test_vocabulary_noise_is_on_the_grid_of_its_sensitivity(relation):
    grid = NoiseGrid.of(Vocabulary(4), 2.0, relation, 1000)
    assert grid.scale == pytest.approx(
        2.0 * math.sqrt(8 if relation is Relation.REPLACE_ONE else 4), rel=1e-5
    )


def test_a_vocabulary_is_released_as_planned_or_not_at_all():
    with pytest.raises(InvalidArgument, match="has its own cost"):
        Planned("v", Vocabulary, 1)
    with pytest.raises(InvalidArgument, match="Plan only Vocabulary"):
        Planned("v", ColumnHistogram, 1, sampling=Thresholded(1e-7, 1))
    curator = curator_over(
        TextColumns((("a", "b"),)),
        Plan((Planned("v", Vocabulary, 1, sampling=Thresholded(1e-7, 1)),)),
        1.0,
    )
    with pytest.raises(UndeclaredRelease, match="for 1 columns"):
        curator.release("v", Vocabulary(2))


def test_the_cost_of_a_vocabulary_composes_and_serialises():
    cost = ThresholdedGaussianCost(4.0, 1e-7)
    assert cost_from_dict(compose([cost, GaussianCost(3.0)]).to_dict()) == compose(
        [cost, GaussianCost(3.0)]
    )
    both, apart = repeat(cost, 2), compose([cost, cost])
    assert both == apart
    # Two Gaussians of noise multiplier 4, and twice the failure probability.
    left = epsilon_of(GaussianCost(4.0, 2), 1e-6 - 2e-7, "replace-one")
    assert epsilon_of(both, 1e-6, "replace-one") == pytest.approx(left, rel=2e-3)
    assert epsilon_of(both, 1.9e-7, "replace-one") == math.inf
    assert delta_of(ThresholdedGaussianCost(0.0, 1e-7), 1.0, "replace-one") == 1.0


SCHEMA = Schema((NumericColumn("age", 0, 100), CategoricalColumn("sex", ("Female", "Male"))))


def people(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    jobs = rng.choice(["clerk", "nurse", "smith"], size=n, p=[0.5, 0.4, 0.1]).astype(object)
    jobs[:3] = ["astronaut", None, np.nan]
    return pd.DataFrame(
        {"age": rng.integers(0, 100, n), "sex": rng.choice(["Female", "Male"], n), "job": jobs}
    )


def test_a_public_schema_is_encoded_as_it_stands_and_costs_nothing():
    encoder = SchemaEncoder(SCHEMA).fit(people())
    np.testing.assert_array_equal(encoder.transform(people()), encode(people(), SCHEMA)[0])
    assert encoder.privacy_ is None
    assert list(encoder.get_feature_names_out()) == SCHEMA.feature_names
    assert np.linalg.norm(encoder.transform(people()), axis=1).max() <= encoder.row_norm_


def test_common_texts_are_discovered_and_rare_ones_share_a_feature():
    ledger = Ledger(2.0, 1e-6)
    encoder = SchemaEncoder(SCHEMA, discover=["job"], epsilon=1.0, delta=1e-6, ledger=ledger).fit(
        people()
    )
    assert [c.categories for c in encoder.schema_.columns[2:]] == [("clerk", "nurse", "smith")]
    assert list(encoder.get_feature_names_out())[-1] == "job=<other>"
    assert encoder.transform(people())[0, -1] == 1
    assert ledger.total_cost == encoder.privacy_.cost
    assert 0.98 < ledger.spent().epsilon <= 1.0
    everything = SchemaEncoder(discover=["job"], epsilon=math.inf).fit(people())
    assert everything.schema_.columns[0].categories == ("astronaut", "clerk", "nurse", "smith")


def test_encoding_is_row_by_row_and_as_wide_as_what_was_released():
    encoder = SchemaEncoder(SCHEMA, discover=["job"], epsilon=1.0).fit(people())
    other = people()
    other.loc[0] = [1_000, "?", "pope"]
    first, second = encoder.transform(people()), encoder.transform(other)
    np.testing.assert_array_equal(first[1:], second[1:])


BIG = 2**53 + 1
COLUMNS_WITH_A_GAP = {
    "pandas": lambda values: pd.DataFrame({"id": values}),
    "nullable": lambda values: pd.DataFrame({"id": pd.array(values, dtype="Int64")}),
    "polars": lambda values: pl.DataFrame({"id": values}),
    "list": lambda values: {"id": values},
    "numpy": lambda values: {"id": np.array(values, dtype=float if None in values else np.int64)},
    "objects": lambda values: {
        "id": np.array([None if v is None else np.int64(v) for v in values], dtype=object)
    },
}


@pytest.mark.parametrize("made", COLUMNS_WITH_A_GAP.values(), ids=COLUMNS_WITH_A_GAP)
def test_a_gap_in_one_row_changes_no_text_of_another(made):
    """One missing value turns integers into floats, and changes those beyond 2**53."""
    full, gap = (made([first] + [BIG, -BIG, 7, BIG + 2] * 3) for first in (BIG, None))
    one, two = (
        SchemaEncoder(discover=["id"], epsilon=math.inf).fit(frame) for frame in (full, gap)
    )
    assert one.schema_ == two.schema_
    assert "7" in one.schema_.columns[0].categories
    np.testing.assert_array_equal(one.transform(full)[1:], two.transform(gap)[1:])
    assert two.transform(gap)[0, -1] == 1
    assert one.transform(full)[:, -1].sum() == 0


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"schema": {}},
        {"discover": "job"},
        {"discover": ["age", "age"]},
        {"schema": SCHEMA, "discover": ["sex"]},
    ],
    ids=str,
)
def test_an_encoder_without_a_clear_task_is_refused(settings):
    with pytest.raises(InvalidArgument):
        SchemaEncoder(**settings).fit(people(50))


def test_an_encoder_needs_names():
    with pytest.raises(InvalidArgument, match="no column names"):
        SchemaEncoder(SCHEMA).fit(np.zeros((3, 2)))


# Pipelines


def two_moons(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1, 100, 1e-3] + [0, 1900, 0]
    return X, (X[:, 0] + (X[:, 1] - 1900) / 100 > 0).astype(int)


def steps(**model):
    return [
        ("scale", PrivateQuantileScaler()),
        ("model", PrivateLogisticRegression(classes=[0, 1], **model)),
    ]


@pytest.mark.usefixtures("quiet_fits")
@pytest.mark.parametrize(
    "solver",
    ["auto", ProximalGradient(steps=20, step_size=1.0, sampling=PoissonBatch(0.1))],
    ids=["gaussian", "sampled"],
)
def test_a_pipeline_has_one_guarantee_that_covers_all_it_released(solver):
    X, y = two_moons()
    ledger = Ledger(1.0, 1e-5)
    pipeline = PrivatePipeline(
        steps(solver=solver), epsilon=1.0, delta=1e-5, ledger=ledger, random_state=1
    ).fit(X, y)
    parts = [part.privacy_ for _, part in pipeline.steps]
    guarantee = pipeline.guarantee_
    assert guarantee.cost == compose(part.cost for part in parts) == ledger.total_cost
    assert (guarantee.epsilon, guarantee.delta) == (1.0, 1e-5)
    assert 0.95 < epsilon_of(guarantee.cost, 1e-5, "replace-one") <= 1.0
    assert sum(part.epsilon for part in parts) > 1.1
    assert guarantee.releases[0].name == "scale: powers of two"
    assert pipeline.row_norm_ == pytest.approx(math.sqrt(3))
    # Seeds give .77 to .87 with batches; guessing gives .5.
    assert pipeline.score(X, y) > 0.7
    assert not guarantee.secure


@pytest.mark.usefixtures("quiet_fits")
def test_steps_of_a_fitted_pipeline_can_be_used_apart():
    X, y = two_moons()
    pipeline = PrivatePipeline(steps(), epsilon=1.0, delta=1e-5, random_state=1).fit(X, y)
    prepared = pipeline[:-1].transform(X)
    np.testing.assert_array_equal(pipeline[-1].predict(prepared), pipeline.predict(X))
    assert pipeline["scale"] is pipeline[0]


@pytest.mark.usefixtures("quiet_fits")
def test_a_refit_that_fails_half_way_leaves_no_promise():
    """The scaler is then fitted again at its own cost; the earlier guarantee would be too small."""
    X, y = two_moons()
    pipeline = PrivatePipeline(steps(), epsilon=0.1, delta=1e-5, random_state=1).fit(X, y)
    assert pipeline.guarantee_.epsilon == 0.1
    with pytest.raises(BudgetExceeded):
        pipeline.set_params(epsilon=5.0, ledger=Ledger(1.5, 1e-5)).fit(X, y)
    assert pipeline.named_steps["scale"].privacy_.epsilon > 0.1
    assert not hasattr(pipeline, "guarantee_")
    assert not hasattr(pipeline, "privacy_")


@pytest.mark.usefixtures("quiet_fits")
def test_a_plain_pipeline_with_a_shared_ledger_adds_up_to_the_same():
    X, y = two_moons()
    ledger = Ledger(2.0, 1e-5, adaptive=False)  # both steps are fixed beforehand
    terms = {"delta": 1e-5, "ledger": ledger, "random_state": 0}
    pipeline = Pipeline(
        [
            ("scale", PrivateQuantileScaler(epsilon=0.3, **terms)),
            ("model", PrivateLogisticRegression(epsilon=0.9, classes=[0, 1], **terms)),
        ]
    ).fit(X, y)
    guarantee = pipeline_guarantee(pipeline)
    assert guarantee.cost == ledger.total_cost
    assert guarantee.epsilon == pytest.approx(ledger.spent().epsilon, rel=1e-4)
    assert ledger.spent().epsilon <= guarantee.epsilon < 1.2
    assert pipeline_guarantee(pipeline, delta=1e-8).epsilon > guarantee.epsilon


@pytest.mark.usefixtures("quiet_fits")
def test_parts_inside_a_column_transformer_are_found_and_paid_for():
    frame = people()
    y = (frame["age"] > 50).to_numpy().astype(int)
    prepare = ColumnTransformer(
        [
            ("numbers", PrivateQuantileScaler(), ["age"]),
            ("texts", SchemaEncoder(discover=["job"]), ["job"]),
        ],
        remainder="drop",
    )
    model = PrivateLogisticRegression(classes=[0, 1])
    shares = {"prepare__numbers": 1, "prepare__texts": 1, "model": 6}
    pipeline = PrivatePipeline([("prepare", prepare), ("model", model)], delta=1e-5, shares=shares)
    assert pipeline.parts_ == list(shares)
    pipeline.fit(frame, y)
    assert [record.query for record in pipeline.guarantee_.releases[:3]] == [
        "ColumnHistogram",
        "ColumnHistogram",
        "Vocabulary",
    ]
    assert 0.99 < epsilon_of(pipeline.guarantee_.cost, 1e-5, "replace-one") <= 1.0
    assert pipeline.row_norm_ == pytest.approx(math.sqrt(2))
    assert pipeline.score(frame, y) > 0.9


@pytest.mark.parametrize(
    "leak",
    [
        StandardScaler(),
        ColumnTransformer([("one-hot", OneHotEncoder(), [0])]),
        ColumnTransformer([("first", BoundedScaler((-9, 9)), [0])], remainder=StandardScaler()),
        FeatureUnion([("scale", StandardScaler())]),
        # Declares that it need not be fitted, and stores all rows.
        FeatureUnion([("kept", GaussianProcessRegressor())]),
        type("Mine", (BoundedScaler,), {})((-9, 9)),
    ],
    ids=["scaler", "columns", "remainder", "union", "keeps the rows", "another type"],
)
def test_a_step_that_learns_without_paying_is_refused(leak):
    X, y = two_moons(100)
    ledger = Ledger(1.0, 1e-5)
    with pytest.raises(InvalidArgument, match="pays nothing"):
        PrivatePipeline(
            [("leak", leak), ("model", PrivateLogisticRegression(classes=[0, 1]))], ledger=ledger
        ).fit(X, y)
    assert ledger.entries == ()
    with pytest.raises(InvalidArgument, match="pays nothing"):
        pipeline_guarantee(Pipeline([("leak", leak)]))


def test_a_last_step_that_keeps_the_rows_is_refused():
    X, y = two_moons(100)
    ledger = Ledger(1.0, 1e-5)
    with pytest.raises(InvalidArgument, match="GaussianProcessRegressor"):
        PrivatePipeline(
            [("scale", PrivateQuantileScaler()), ("model", GaussianProcessRegressor())],
            ledger=ledger,
        ).fit(X, y)
    assert ledger.entries == ()


FREE = [
    BoundedScaler(),
    Normalizer(),
    Binarizer(),
    FunctionTransformer(),
    FeatureHasher(),
    HashingVectorizer(),
    AdditiveChi2Sampler(),
    "passthrough",
    None,
]


@pytest.mark.parametrize("part", FREE, ids=str)
def test_parts_that_keep_nothing_are_free(part):
    assert [name for name, _ in private_parts(Pipeline([("free", part), *steps()]))] == [
        "scale",
        "model",
    ]


# Choices that may not depend on the rows


def some_columns(columns, **settings):
    return ColumnTransformer([("some", BoundedScaler((0, 1)), columns)], **settings)


@pytest.mark.parametrize(
    "columns",
    [
        lambda X: [j for j in range(3) if X[:, j].max() > 0],
        make_column_selector(dtype_include=float),
    ],
    ids=["function", "selector"],
)
@pytest.mark.parametrize(
    "wrapped", [lambda p: p, lambda p: FeatureUnion([("u", p)]), lambda p: Pipeline([("p", p)])]
)
def test_columns_chosen_by_the_rows_are_refused_before_anything_is_paid(columns, wrapped):
    X, y = two_moons(100)
    ledger = Ledger(1.0, 1e-5)
    pipeline = [("prepare", wrapped(some_columns(columns))), *steps()]
    with pytest.raises(InvalidArgument, match="List their names"):
        PrivatePipeline(pipeline, ledger=ledger).fit(X, y)
    assert ledger.entries == ()
    with pytest.raises(InvalidArgument, match="List their names"):
        pipeline_guarantee(Pipeline(pipeline))


def at_the_density(layout):
    """Two neighbours, on either side of the density at which a column transformer returns sparse
    rows.
    """
    X = np.zeros((200, 10))
    X[:, :3] = 1.0
    other = X.copy()
    other[0, 0] = 0.0
    return layout(X), layout(other)


@pytest.mark.usefixtures("quiet_fits")
@pytest.mark.parametrize(
    "layout",
    [sparse.csr_array, lambda X: pd.DataFrame(X).astype(pd.SparseDtype(float, 0.0))],
    ids=["csr", "sparse frame"],
)
def test_the_zeros_of_all_rows_may_not_decide_the_layout(layout):
    ledger, y = Ledger(1.0, 1e-5), np.arange(200) % 2
    terms = {"delta": 1e-3, "random_state": 0}
    for X in at_the_density(layout):
        with pytest.raises(InvalidArgument, match="sparse_threshold=0"):
            PrivatePipeline(
                [("some", some_columns([0, 1, 2, 3, 4], remainder="drop")), *steps()],
                ledger=ledger,
                **terms,
            ).fit(X, y)
        dense = some_columns([0, 1, 2, 3, 4], sparse_threshold=0)
        fitted = PrivatePipeline([("some", dense), *steps()], **terms).fit(X, y)
        assert not fitted.named_steps["some"].sparse_output_
    assert ledger.entries == ()


@pytest.mark.parametrize(
    "part",
    [FeatureHasher(n_features=4, input_type="string"), FunctionTransformer(sparse.csr_array)],
    ids=str,
)
def test_parts_that_make_dense_rows_sparse_are_known(part):
    X, y = two_moons(100)
    with pytest.raises(InvalidArgument, match="sparse_threshold=0"):
        PrivatePipeline([("some", ColumnTransformer([("part", part, [0])])), *steps()]).fit(X, y)


@pytest.mark.usefixtures("quiet_fits")
def test_the_guarantee_of_a_plain_pipeline_tells_dense_rows_from_sparse_ones():
    X, _ = at_the_density(np.asarray)
    columns = ColumnTransformer(
        [("q", PrivateQuantileScaler(delta=1e-3), [0, 1]), ("b", BoundedScaler(), [2, 3])]
    )
    assert pipeline_guarantee(Pipeline([("c", clone(columns))]).fit(X)).epsilon == pytest.approx(
        0.3, rel=1e-3
    )
    with pytest.raises(InvalidArgument, match="sparse_threshold=0"):
        pipeline_guarantee(Pipeline([("c", clone(columns))]).fit(sparse.csr_array(X)))


# What a pipeline certifies and pays


@pytest.mark.usefixtures("quiet_fits")
def test_weights_lengthen_the_certified_rows():
    X, y = two_moons(200)
    weighted = some_columns([0, 1], transformer_weights={"some": -100.0})
    pipeline = PrivatePipeline([("c", weighted), steps()[1]], delta=1e-3).fit(X, y)
    longest = np.linalg.norm(
        pipeline.named_steps["c"].transform(np.full((2, 3), 1e9)), axis=1
    ).max()
    assert longest == pytest.approx(100 * math.sqrt(2))
    assert longest <= pipeline.row_norm_ <= 1.001 * longest


@pytest.mark.usefixtures("quiet_fits")
@pytest.mark.parametrize("kind", [PrivatePipeline, Pipeline])
def test_nothing_is_certified_of_rows_that_leave_a_nested_pipeline(kind):
    """It certifies rows that reach its last step, here before they are scaled by a hundred."""
    X, y = two_moons(200)
    inner = kind(
        [("scale", PrivateQuantileScaler()), ("longer", FunctionTransformer(lambda X: 100 * X))]
    )
    pipeline = PrivatePipeline([("inner", inner), steps()[1]], delta=1e-3).fit(X, y)
    assert pipeline.row_norm_ is None


def test_two_threads_cannot_both_spend_what_is_left():
    """The first is still deciding when the second arrives; each requests most of the budget."""
    account = PipelineAccount(Budget(1.0, 1e-6), Relation.REPLACE_ONE, None)
    arrived, results = threading.Event(), []

    def pay():
        try:
            results.append(
                Ledger.over(account).charge(GaussianCost(5.0), "second", Relation.REPLACE_ONE)
            )
        except BudgetExceeded as error:
            results.append(error)
        arrived.set()

    other = threading.Thread(target=pay)

    def decide(tally):
        other.start()
        # Without a lock the second is through by now.
        arrived.wait(0.3)
        assert tally.count == 0
        memory = PipelineAccount(account.budget, account.relation, None)
        return Ledger.over(memory).charge(GaussianCost(5.0), "first", Relation.REPLACE_ONE)

    account.append(decide)
    other.join()
    assert [entry.label for entry in account.entries()] == ["first"]
    assert isinstance(results[0], BudgetExceeded)


SOLVERS_OF_A_LAST_STEP = {
    "gaussian": "auto",
    "sampled": ProximalGradient(steps=20, step_size=1.0, sampling=PoissonBatch(0.1)),
    "gated": "bls",
}


@pytest.mark.usefixtures("quiet_fits")
@pytest.mark.parametrize("solver", SOLVERS_OF_A_LAST_STEP.values(), ids=SOLVERS_OF_A_LAST_STEP)
def test_every_payment_of_a_pipeline_is_a_plan_of_its_own(solver):
    """A vocabulary may change later steps, so a privacy filter composes; it costs about a per cent.

    Little of the budget is left over.
    """
    frame = people()
    model = PrivateLogisticRegression(classes=[0, 1], solver=solver)
    ledger = Ledger(1.0, 1e-5)
    pipeline = PrivatePipeline(
        [("texts", SchemaEncoder(discover=["job"])), ("model", model)], delta=1e-5, ledger=ledger
    )
    pipeline.fit(frame[["job"]], np.arange(len(frame)) % 2)
    costs = [entry.cost for entry in ledger.entries]
    counted = filtered_epsilon(costs, usable(ledger.budget)[0], "replace-one")
    assert len(costs) == 2
    assert 0.99 < counted <= 1 - 1e-5
    assert 0.97 < epsilon_of(compose(costs), 1e-5, "replace-one") < counted
    assert pipeline.guarantee_.epsilon == 1.0


@pytest.mark.usefixtures("quiet_fits")
def test_a_last_step_that_would_lose_too_much_of_delta_is_given_less():
    """A run under a Rényi filter may use nearly all its delta as failure probability, not if
    second.
    """
    frame, ledger = people(), Ledger(1.0, 1e-5)
    model = PrivateLogisticRegression(classes=[0, 1], solver=DPBLS(steps=3, adaptive=True))
    pipeline = PrivatePipeline(
        [("scale", PrivateQuantileScaler()), ("model", model)], delta=1e-5, ledger=ledger
    )
    pipeline.fit(frame[["age"]], np.arange(len(frame)) % 2)
    assert pipeline.named_steps["model"].delta < 0.05e-5
    assert 0.95 < ledger.spent().epsilon <= 1.0
    assert pipeline.guarantee_.cost == ledger.total_cost


def test_what_fits_only_if_all_was_fixed_beforehand_does_not_fit_a_pipeline():
    account = PipelineAccount(Budget(1.0, 1e-6), Relation.REPLACE_ONE, None)
    half = GaussianCost(math.sqrt(2) / gaussian_mu(0.999, 1e-6))
    Ledger.over(account).charge(half, "first", Relation.REPLACE_ONE)
    with pytest.raises(BudgetExceeded):
        Ledger.over(account).charge(half, "second", Relation.REPLACE_ONE)


@pytest.mark.usefixtures("quiet_fits")
def test_what_a_failed_pipeline_paid_stays_paid_and_cannot_be_added_to():
    """Its vocabulary is public although the last step failed, so later payments are adaptive."""
    frame = people()
    ledger = Ledger(1.0, 1e-5)
    model = PrivateLogisticRegression(classes=[0, 7], nonfinite="raise")
    pipeline = PrivatePipeline(
        [("texts", SchemaEncoder(discover=["job"])), ("model", model)], delta=1e-5, ledger=ledger
    )
    with pytest.raises(InvalidArgument):
        pipeline.fit(frame[["job"]], np.arange(len(frame)) % 2)
    paid = [entry.cost for entry in ledger.entries]
    assert pipeline.named_steps["texts"].schema_.columns
    assert len(paid) == 1
    second = GaussianCost(10.0)
    receipt = ledger.charge(second, "my own choice", "replace-one")
    assert receipt.total.epsilon == filtered_epsilon(
        [*paid, second], usable(ledger.budget)[0], "replace-one"
    )
    assert receipt.total.epsilon > epsilon_of(compose([*paid, second]), 1e-5, "replace-one")


@pytest.mark.usefixtures("quiet_fits")
def test_preparation_alone_fills_its_budget():
    """Several private parts and no private last step: together within the budget, by the filter."""
    frame = people()
    parts = [
        ("numbers", PrivateQuantileScaler(), ["age"]),
        ("texts", SchemaEncoder(discover=["job"]), ["job"]),
    ]
    ledger = Ledger(1.0, 1e-5)
    pipeline = PrivatePipeline(
        [("prepare", ColumnTransformer(parts))], delta=1e-5, ledger=ledger
    ).fit(frame)
    assert pipeline.guarantee_.epsilon == 1.0
    assert 0.95 < ledger.spent().epsilon <= 1.0


@pytest.mark.usefixtures("quiet_fits")
def test_no_guarantee_is_stated_over_the_budget():
    """Whatever the cause, the total of the releases is compared with the budget once more."""
    pipeline = PrivatePipeline(steps(), epsilon=1.0, delta=1e-4, random_state=0).fit(
        *two_moons(500)
    )
    paid = [part.privacy_.cost for _, part in pipeline.steps]
    account = PipelineAccount(Budget(2.0, 1e-4), Relation.REPLACE_ONE, None)
    for cost in paid:
        Ledger.over(account).charge(cost, "step", Relation.REPLACE_ONE)
    assert guarantee_of_account(pipeline, account).epsilon == 2.0
    account.budget = Budget(0.9, 1e-4)
    with pytest.raises(BudgetExceeded, match=r"over the pipeline's 0\.9"):
        guarantee_of_account(pipeline, account)


@pytest.mark.usefixtures("quiet_fits")
def test_steps_without_state_are_free_and_the_model_has_the_whole_budget():
    X, y = two_moons(500)
    free = [
        ("scale", BoundedScaler((-1e4, 1e4))),
        ("root", FunctionTransformer(np.sqrt)),
        ("unit", Normalizer()),
    ]
    model = PrivateLogisticRegression(classes=[0, 1])
    pipeline = PrivatePipeline(
        [*free, ("model", model)], epsilon=0.7, delta=1e-3, random_state=0
    ).fit(X, y)
    alone = clone(model).set_params(epsilon=0.7, delta=1e-3).fit(X, y)
    assert epsilon_of(pipeline.guarantee_.cost, 1e-3, "replace-one") == pytest.approx(0.7, rel=1e-4)
    assert [r.noise_multiplier for r in pipeline.guarantee_.releases] == [
        r.noise_multiplier for r in alone.privacy_.releases
    ]


@pytest.mark.usefixtures("quiet_fits")
def test_a_fitted_pipeline_can_be_stored_and_cloned_but_not_spent_twice():
    X, y = two_moons(500)
    pipeline = PrivatePipeline(steps(), delta=1e-4, random_state=0).fit(X, y)
    stored = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(stored.predict(X), pipeline.predict(X))
    with pytest.raises(LedgerError):
        stored.named_steps["model"].fit(X, y)
    with pytest.raises(BudgetExceeded):
        pipeline.named_steps["model"].fit(X, y)
    again = clone(pipeline).fit(X, y)
    np.testing.assert_array_equal(
        again.named_steps["model"].coef_, pipeline.named_steps["model"].coef_
    )


@pytest.mark.usefixtures("quiet_fits")
def test_the_account_of_the_data_set_has_the_last_word():
    X, y = two_moons(500)
    ledger = Ledger(0.5, 1e-4)
    with pytest.raises(BudgetExceeded, match=r"over the ledger's 0\.5"):
        PrivatePipeline(steps(), epsilon=1.0, delta=1e-4, ledger=ledger, random_state=0).fit(X, y)
    assert [entry.label for entry in ledger.entries] == ["PrivateQuantileScaler"]


@pytest.mark.usefixtures("quiet_fits")
def test_seeded_parts_have_different_noise():
    pipeline = PrivatePipeline(steps(), delta=1e-4, random_state=5).fit(*two_moons(500))
    seeds = {part.random_state for _, part in pipeline.steps}
    assert len(seeds) == 2
    assert None not in seeds


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shares": {"model": 1}}, "each of"),
        ({"shares": {"model": 1, "scale": -1}}, "positive"),
        ({"ledger": 3}, "is not a ledger"),
        ({"adjacency": "swap"}, "adjacency"),
    ],
)
def test_terms_of_a_pipeline_are_checked_before_anything_is_paid(settings, message):
    with pytest.raises(InvalidArgument, match=message):
        PrivatePipeline(steps(), **settings).fit(*two_moons(100))


def test_a_pipeline_that_spends_nothing_or_weighs_rows_is_refused():
    X, y = two_moons(100)
    with pytest.raises(InvalidArgument, match="nothing to divide"):
        PrivatePipeline([("scale", BoundedScaler())]).fit(X, y)
    with pytest.raises(InvalidArgument, match="sample_weight"):
        PrivatePipeline(steps()).fit(X, y, sample_weight=y)


@pytest.mark.usefixtures("quiet_fits")
def test_private_bounds_are_as_good_as_public_ones_on_adult():
    """Raw numeric columns of Adult, epsilon 1 in all: within .01 of a fit with known ranges."""
    adult = load_adult(split="train")
    X = np.column_stack(
        [
            adult.columns[name]
            for name in ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
        ]
    )
    rows, y = X.astype(float), adult.y
    fitted_on = np.arange(len(y)) % 5 > 0
    bounds = [(17, 90), (1, 16), (0, 99_999), (0, 5_000), (1, 99)]

    def accuracy(scaler, seed):
        model = PrivateLogisticRegression(classes=[0, 1])
        pipeline = PrivatePipeline([("scale", scaler), ("model", model)], random_state=seed).fit(
            rows[fitted_on], y[fitted_on]
        )
        return pipeline.score(rows[~fitted_on], y[~fitted_on])

    public = np.mean([accuracy(BoundedScaler(bounds), seed) for seed in range(3)])
    private = np.mean([accuracy(PrivateQuantileScaler(), seed) for seed in range(3)])
    assert public > 0.79
    assert private > public - 0.01
