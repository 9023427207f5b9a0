"""Moments by group, and histograms of some columns: what they answer, and that bounds are tight."""

import math

import numpy as np
import pytest

from _support import RELATIONS, problem_for, source_of
from hushfit.data import as_source
from hushfit.data.rows import Persons
from hushfit.errors import InvalidArgument
from hushfit.privacy import Relation
from hushfit.release import KNOWN_WEIGHT, ColumnHistogram, GroupMoments
from hushfit.release.queries import SQUARE_WEIGHT, _group_moments
from hushfit.unit import PrivacyUnit

over_relations = pytest.mark.parametrize("relation", RELATIONS, ids=str)
NOWHERE = np.full(3, np.nan)


def moments(n, columns=(0, 1), by=2, groups=3, relation=Relation.REPLACE_ONE):
    problem = problem_for(np.empty((n, 3)), relation=relation)
    return GroupMoments(problem, columns, by, groups)


def rows_with_gaps(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[:, 2] = rng.integers(-1, 4, n)  # the groups -1 and 3 are none
    X[rng.random((n, 3)) < 0.2] = np.nan
    return X


def test_sums_are_those_of_plain_arrays():
    X = rows_with_gaps(500)
    query = moments(500)
    found = query.totals(query(source_of(X, np.zeros(500)), None), 1.0)
    for group in range(3):
        for column in range(2):
            v = np.clip(X[X[:, 2] == group, column], -1, 1)
            v = v[~np.isnan(v)]
            assert found.sums[group, column] == pytest.approx(v.sum(), abs=1e-8)
            assert found.squares[group, column] == pytest.approx((v**2).sum(), abs=1e-8)
            assert found.known[group, column] == pytest.approx(len(v), abs=1e-8)
    assert found.square_noise == 2 * found.sum_noise
    assert found.known_noise == pytest.approx(found.sum_noise / math.sqrt(0.75))


def test_persons_count_once():
    X = rows_with_gaps(400)
    codes = np.random.default_rng(1).integers(0, 50, 400)
    codes[:50] = np.arange(50)
    unit = PrivacyUnit.person("mean", 1000)
    source = as_source(X, np.zeros(400), fit_intercept=False, persons=Persons(codes, 50, unit))
    problem = problem_for(np.empty((50, 3)))
    query = GroupMoments(type(problem)(**{**vars(problem), "privacy_unit": unit}), (0,))
    found = query.totals(query(source, None), 1.0)
    share = 1 / np.bincount(codes)[codes]
    known = ~np.isnan(X[:, 0])
    total = (share * np.clip(X[:, 0], -1, 1))[known].sum()
    assert found.known[0, 0] == pytest.approx(share[known].sum(), abs=1e-8)
    assert found.sums[0, 0] == pytest.approx(total, abs=1e-8)


def apart(query, one, other):
    X = rows_with_gaps(4)
    answers = []
    for row in (one, other):
        X[0] = row
        answers.append(query(source_of(X, np.zeros(4)), None))
    return float(np.linalg.norm(answers[0] - answers[1]))


@over_relations
def test_the_worst_pairs_attain_the_bound(relation):
    query = moments(4, relation=relation)
    bound = query.sensitivity(relation)
    worst = (
        [([1, 1, 0], [-1, -1, 0]), ([1, -1, 0], [1, 1, 2]), ([1, -1, 1], [-1, -1, 0])]
        if relation is Relation.REPLACE_ONE
        else [([1, 1, 0], NOWHERE), ([-1, 1, 2], NOWHERE), ([1, 1, 1], [1, 1, 3])]
    )
    for one, other in worst:
        assert bound * (1 - 1e-6) <= apart(query, one, other) <= bound
    exact = 2.0 if relation is Relation.REPLACE_ONE else math.sqrt(2)
    assert bound == pytest.approx(exact * math.sqrt(2), rel=1e-6)


@pytest.mark.parametrize(("weight", "value"), [("SQUARE_WEIGHT", 0.6), ("KNOWN_WEIGHT", 0.95)])
def test_heavier_squares_or_counts_would_cost_more(weight, value, monkeypatch):
    """Beyond b^2 + c^2 = 1 rows of two groups are further apart than 1 and -1 of one group."""
    query = moments(4)
    assert apart(query, [1, -1, 0], [1, 1, 2]) <= query.sensitivity(Relation.REPLACE_ONE)
    monkeypatch.setattr(_group_moments, weight, value)
    assert apart(query, [1, -1, 0], [1, 1, 2]) > query.sensitivity(Relation.REPLACE_ONE)


def test_no_pair_of_a_lattice_is_further_apart():
    """The plain formula of the proof, for all pairs of a fine lattice of numbers."""
    v = np.linspace(-1, 1, 401)
    one, other = np.meshgrid(v, v)
    b, c = SQUARE_WEIGHT, KNOWN_WEIGHT
    same = (one - other) ** 2 + b**2 * (one**2 - other**2) ** 2
    across = one**2 + b**2 * one**4 + c**2 + other**2 + b**2 * other**4 + c**2
    assert same.max() == pytest.approx(4.0)
    assert across.max() == pytest.approx(4.0)


@over_relations
def test_histograms_of_some_columns_count_those_alone(relation):
    X = rows_with_gaps(300)
    edges = np.array([-0.5, 0.5])
    some = ColumnHistogram((edges, edges), (2, 0))
    whole = ColumnHistogram((edges,) * 3)
    source = source_of(X, np.zeros(300))
    counted, every = some(source, None), whole.by_column(whole(source, None))
    np.testing.assert_array_equal(counted, np.concatenate([every[2], every[0]]))
    assert some.sensitivity(relation) < whole.sensitivity(relation)
    with pytest.raises(InvalidArgument, match="2 columns and edges for 1"):
        ColumnHistogram((edges,), (0, 1))(source, None)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"columns": ()}, "names none"),
        ({"columns": (0, 0)}, "one twice"),
        ({"columns": (0, 2)}, "one twice"),
        ({"groups": 0}, "groups=0"),
        ({"groups": 65}, "at most 64"),
        ({"by": None}, "groups=3"),
    ],
)
def test_other_questions_are_refused(asked, said):
    with pytest.raises(InvalidArgument, match=said):
        moments(4, **asked)


def test_a_column_that_is_not_there_is_refused():
    query = moments(4, columns=(7,))
    with pytest.raises(InvalidArgument, match="none with the number 7"):
        query(source_of(rows_with_gaps(4), np.zeros(4)), None)
