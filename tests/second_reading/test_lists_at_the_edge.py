"""Lists of documents where floating point decides: the bounds of ranking queries hold for odd
magnitudes, cancelled sums and hidden units at zero, and no grade shows as something that is no
number.
"""

import itertools
import math

import numpy as np
import pytest

from hushfit import Ledger, PrivateRanker
from hushfit.data import Persons
from hushfit.data.lists import Documents, RankedLists
from hushfit.errors import InvalidArgument, LedgerError
from hushfit.privacy import GaussianCost, Relation
from hushfit.ranking_problem import ListwiseLoss, RankingProblem
from hushfit.release import (
    BayesRankGradient,
    ListGradient,
    ListSecondMoment,
    ListStatistic,
    Metric,
    gradient_norms,
)
from hushfit.unit import LIST, ROW, PrivacyUnit

NO_VIOLATION = 1 + 1e-12


def lists_of(*parts):
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return Documents(np.ascontiguousarray(np.concatenate(parts)), starts)


def problem_of(documents, loss="listnet", hidden=0, relation=Relation.LABEL):
    loss = loss if isinstance(loss, ListwiseLoss) else ListwiseLoss(loss)
    public = documents if relation == Relation.LABEL else None
    return RankingProblem(
        loss, documents.n_lists, documents.n_features, relation, hidden, documents=public
    )


def length(v, doubled=None):
    """Norm of a vector of any magnitude; infinite if an entry is not a number."""
    largest = float(np.abs(v).max())
    if not math.isfinite(largest):
        return math.inf
    weight = 1.0 if doubled is None else np.where(doubled, 2.0, 1.0)
    return largest and largest * math.sqrt(float(np.sum(weight * (v / largest) ** 2)))


def single_grades(n):
    """No document of the first list relevant, or one of them."""
    yield np.zeros(n)
    for i in range(n):
        yield np.where(np.arange(n) == i, 4.0, 0.0)


def longest_move(query, documents):
    n, rest = int(documents.lengths[0]), len(documents.X) - int(documents.lengths[0])
    answers = [
        query(RankedLists(documents, np.concatenate([own, np.ones(rest)])), None)
        for own in single_grades(n)
    ]
    return max(length(one - other) for one, other in itertools.combinations(answers, 2))


def bayes_ratio(X, theta, hidden=0):
    """What a list contributes at its own bound, over the radius."""
    documents = lists_of(X)
    problem = problem_of(documents, "bayesrank", hidden)
    bound = float(gradient_norms(problem, theta, np.zeros(1, dtype=np.int64))[0])
    if bound == 0:
        return 0.0
    query = BayesRankGradient(problem, theta, bound)
    answers = [query(RankedLists(documents, y), None) for y in single_grades(len(X))]
    return max(map(length, answers)) / query.radius()


def test_units_at_zero_are_active_in_the_bound_if_they_are_in_the_gradient():
    """Before: 8,911 times the radius."""
    rng = np.random.default_rng(0)
    d, h = 6, 3
    for _ in range(150):
        X, inner = rng.normal(size=(4, d)), rng.normal(size=(d, h))
        thresholds = -(X @ inner)[rng.integers(4)]
        theta = np.concatenate([inner.ravel(), thresholds, rng.normal(size=h)])
        assert bayes_ratio(X, theta, h) <= NO_VIOLATION


@pytest.mark.parametrize("size", [1e6, 1e8, 1e9, 1e10])
def test_documents_that_hardly_differ_next_to_one_far_away_have_a_bound(size):
    """Before: 109 times the radius."""
    rng = np.random.default_rng(1)
    for _ in range(25):
        X, theta = rng.normal(size=(4, 4)), rng.normal(size=4)
        X[3] *= size
        assert bayes_ratio(X, -np.sign(X[3] @ theta) * theta) <= NO_VIOLATION


@pytest.mark.parametrize("offset", [1e6, 1e8, 1e9])
def test_documents_far_from_the_origin_have_a_bound_in_a_network(offset):
    """Before: 425 times the radius."""
    rng, d, h = np.random.default_rng(2), 4, 3
    for _ in range(25):
        layers = rng.normal(size=d * h) / offset, rng.normal(size=h), 1e-6 * rng.normal(size=h)
        X = offset + rng.normal(size=(4, d))
        assert bayes_ratio(X, np.concatenate(layers), h) <= NO_VIOLATION


@pytest.mark.parametrize("size", [1e9, 1e12, 1e15])
def test_large_weights_have_the_same_scores_in_bound_and_gradient(size):
    """Before: 1.38 times the radius."""
    rng = np.random.default_rng(3)
    for _ in range(30):
        theta = size * rng.normal(size=20)
        X = rng.normal(size=(5, 20))
        X -= np.outer(X @ theta, theta) / (theta @ theta)  # scores differ by rounding alone
        assert bayes_ratio(X, theta) <= NO_VIOLATION


@pytest.mark.parametrize("size", [1e155, 1e200, 1e300, 1.7e308])
@pytest.mark.parametrize("clip", [None, 0.25])
def test_documents_too_large_for_floats_do_not_tell_whether_one_is_relevant(size, clip):
    """Before: nan with a relevant document, a number without."""
    rng = np.random.default_rng(4)
    large = np.clip(size * rng.uniform(-1, 1, size=(3, 3)), -1.7e308, 1.7e308)
    documents = lists_of(large, rng.normal(size=(3, 3)))
    sizes = None if clip is None else documents.sizes(np.ones(3))
    query = ListStatistic(problem_of(documents), np.eye(3), 1.0, clip, sizes)
    assert longest_move(query, documents) <= NO_VIOLATION * query.sensitivity(Relation.LABEL)


@pytest.mark.parametrize("size", [1e-150, 1e-160, 1e-163, 1e-200])
@pytest.mark.parametrize("clip", [None, 0.25])
def test_squares_that_vanish_do_not_hide_a_length(size, clip):
    """Before: 977 sensitivities without clipping, and 18.9 with it."""
    X = size * np.random.default_rng(5).normal(size=(4, 30))
    for scale in (size, size / 100):
        sizes = None if clip is None else np.full(1, size)
        own = None if clip is None else clip * scale
        query = ListStatistic(problem_of(lists_of(X)), np.eye(30), scale, own, sizes)
        moved = longest_move(query, query.problem.documents)
        assert moved <= NO_VIOLATION * query.sensitivity(Relation.LABEL)
        assert moved > 0.1 * query.sensitivity(Relation.LABEL)


def test_a_metric_that_leaves_out_what_documents_differ_in_has_a_bound():
    """Products cancel, and errors of rounding remain. Before: 2.9 sensitivities."""
    rng, worst = np.random.default_rng(6), 0.0
    for _ in range(60):
        V = np.linalg.qr(rng.normal(size=(8, 8)))[0]
        X = 1e-3 * rng.normal(size=(4, 8)) + 1e16 * rng.normal(size=(4, 2)) @ V[:, 6:].T
        query = ListStatistic(problem_of(lists_of(X)), V[:, :3], 1.0)
        moved = longest_move(query, query.problem.documents)
        worst = max(worst, moved / query.sensitivity(Relation.LABEL))
    assert worst <= NO_VIOLATION


@pytest.mark.parametrize("clip", [1e-100, 1e-158, 1e-165, 1e-200])
def test_tiny_gradients_are_clipped(clip):
    """Before: 104 times the radius."""
    X = np.random.default_rng(7).normal(size=(3, 50))
    problem = problem_of(lists_of(X), relation=Relation.REPLACE_ONE)
    for stretch in (1, 10, 100):
        metric = Metric(np.eye(50) * max(clip, 1e-100) * stretch)  # smaller ones are refused
        query = ListGradient(problem, np.zeros(50), clip, metric)
        answer = query(RankedLists(lists_of(X), np.array([4.0, 0, 0])), None)
        assert 0.3 * clip < length(answer) <= NO_VIOLATION * query.radius()


@pytest.mark.slow
def test_rounding_of_many_documents_does_not_lengthen_a_moment():
    """Sixteen million documents. Before: 3.7e-9 too long, where 1.1e-9 are allowed."""
    n = 16_000_000
    for factor in (1.0, 1.4):
        X = np.full((n, 2), factor * math.sqrt(2.1e-16), np.float32)
        X[n // 2 :] *= -1
        X[:2] = [[1, 1], [-1, -1]]
        documents = lists_of(X)
        query = ListSecondMoment(problem_of(documents, relation=Relation.REPLACE_ONE))
        answer = query(RankedLists(documents, np.zeros(n)), None)
        assert length(answer, query.doubled) <= query.radius()


def odd_list(rng, n, d):
    X = rng.normal(size=(n, d))
    match rng.integers(7):
        case 0:
            X *= 10.0 ** rng.uniform(-200, 200)
        case 1:
            X *= 10.0 ** rng.uniform(-12, 12, size=(n, 1))
        case 2:
            X += 10.0 ** rng.uniform(0, 12)
        case 3:
            X = X[rng.integers(0, n, n)]
        case 4:
            X *= 10.0 ** rng.uniform(-15, 15, size=d)
        case 5:
            X = rng.choice([0, -0.0, 1.0, 1e-300, 5e-324, 1e300, -1e300, 1e160], size=(n, d))
        case 6:
            X[rng.random((n, d)) < 0.3] = rng.choice([np.nan, np.inf, -np.inf])
    return X


def odd_grades(rng, n):
    grades = np.zeros(n)
    match rng.integers(4):
        case 0:
            grades[rng.integers(n)] = 4
        case 1:
            grades[rng.random(n) < 0.5] = 4
        case 2:
            grades = rng.choice([0.0, 5e-324, 1e-17, 1e-8, 4.0], n)
    return grades


def odd_query(rng, lists, relation, unit, n_units, shares):
    """A query over odd lists at random public values; None if their bound is no number."""
    d, public = lists[0].shape[1], relation in (Relation.LABEL, Relation.PERSON_LABEL)
    documents, hidden = lists_of(*lists) if public else None, int(rng.choice([0, 3]))
    scale = 10.0 ** rng.uniform(-3, 3)

    def problem(loss, hidden=0):
        return RankingProblem(loss, n_units, d, relation, hidden, unit, documents, shares)

    listnet = problem(ListwiseLoss("listnet"))
    if not public:
        loss = ListwiseLoss(str(rng.choice(["listnet", "listmle", "bayesrank"])))
        own = problem(loss, hidden)
        theta = 10.0 ** rng.uniform(-3, 8) * rng.normal(size=own.n_weights)
        return rng.choice([ListGradient(own, theta, scale), ListSecondMoment(listnet)])
    if rng.random() < 0.5:
        B = rng.normal(size=(d, d)) * 10.0 ** rng.uniform(-4, 4, size=d)
        clips = (None, None), (scale, np.abs(rng.normal(size=len(lists))))
        return ListStatistic(listnet, B, scale, *clips[rng.integers(2)])
    target = str(rng.choice(["all", "one-hot", "simplex"]))
    own = problem(ListwiseLoss("bayesrank", int(rng.integers(1, 3)), target), hidden)
    theta = 10.0 ** rng.uniform(-3, 8) * rng.normal(size=own.n_weights)
    norms = gradient_norms(own, theta, np.arange(len(lists)))
    usable = norms[(norms > 0) & (norms < 1e250)]
    return BayesRankGradient(own, theta, float(rng.choice(usable))) if len(usable) else None


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("seed", range(3))
def test_odd_lists_and_grades_never_exceed_a_bound(relation, seed):
    rng = np.random.default_rng([seed, list(Relation).index(relation)])
    public = relation in (Relation.LABEL, Relation.PERSON_LABEL)
    for _ in range(60):
        d, m = int(rng.integers(1, 5)), int(rng.integers(2, 6))
        lists = [odd_list(rng, int(rng.integers(1, 7)), d) for _ in range(m)]
        unit, persons, own = LIST, None, [0]
        if relation == Relation.PERSON_LABEL or (not public and rng.random() < 0.4):
            unit = PrivacyUnit.person("mean", int(rng.integers(1, 4)), record="list")
            codes = np.unique(rng.integers(0, m, m), return_inverse=True)[1]
            persons = Persons(codes, int(codes.max()) + 1, unit)
            own = list(np.flatnonzero(codes == 0))
        n_units = m if persons is None else persons.n_persons
        shares = persons.shares if public and persons is not None else None
        query = odd_query(rng, lists, relation, unit, n_units, shares)
        if query is None:
            continue
        grades = [odd_grades(rng, len(X)) for X in lists]

        def answer(lists, grades, query=query, persons=persons):
            documents = query.problem.documents if public else lists_of(*lists)
            return query(RankedLists(documents, np.concatenate(grades), persons), None)

        here = answer(lists, grades)
        for _ in range(4):
            others, marks = list(lists), list(grades)
            for j in own:
                if relation == Relation.ADD_REMOVE:
                    others[j], marks[j] = np.zeros((1, d)), np.zeros(1)
                elif relation == Relation.REPLACE_ONE:
                    others[j] = odd_list(rng, int(rng.integers(1, 7)), d)
                    marks[j] = odd_grades(rng, len(others[j]))
                else:
                    marks[j] = odd_grades(rng, len(lists[j]))
            moved = length(here - answer(others, marks), query.doubled)
            assert moved <= NO_VIOLATION * query.sensitivity(relation), query


@pytest.mark.parametrize("loss", ["listnet", "bayesrank"])
@pytest.mark.parametrize("value", [1e101, 1e155, 1e308])
def test_huge_public_documents_are_refused_before_anything_is_paid(loss, value):
    """Before: paid for, and then an error of a linear algebra routine."""
    X = np.random.default_rng(8).normal(size=(12, 2))
    X[0, 0] = value
    ledger = Ledger(10.0, 1e-3, adjacency="label")
    model = PrivateRanker(loss=loss, delta=1e-3, ledger=ledger, random_state=0)
    with pytest.raises(InvalidArgument, match="Nothing was charged"):
        model.fit(X, np.ones(12), group=[6, 6])
    undefined = PrivateRanker(loss=loss, scorer=np.log, ledger=ledger, random_state=0)
    with pytest.raises(InvalidArgument, match="Nothing was charged"), np.errstate(invalid="ignore"):
        undefined.fit(-np.abs(X), np.ones(12), group=[6, 6])
    assert not ledger.entries


@pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")
@pytest.mark.parametrize("settings", [{}, {"loss": "bayesrank"}, {"scorer": "mlp", "hidden": 4}])
def test_grades_show_in_nothing_but_the_release(settings):
    """Grades of equal documents are exchanged: what is released is the same, and so must be the
    model and its guarantee, but for the rounding of sums in another order.
    """
    rng = np.random.default_rng(9)
    half = rng.normal(size=(20, 3))
    X = np.stack([half, half], axis=1).reshape(40, 3)  # every document twice, in one list
    y = rng.integers(0, 5, 40).astype(float)
    models = [
        PrivateRanker(delta=1e-3, random_state=1, **settings).fit(X, grades, group=[10] * 4)
        for grades in (y, y.reshape(20, 2)[:, ::-1].ravel())
    ]
    np.testing.assert_allclose(models[0].weights_, models[1].weights_, rtol=1e-6)
    assert models[0].privacy_ == models[1].privacy_
    assert models[0].n_iter_ == models[1].n_iter_


def test_charges_for_rows_and_for_lists_are_not_mixed_where_records_vanish():
    """A document that vanishes while its list stays is no removal of the list."""
    cost = GaussianCost(10.0)
    for first, second in ((ROW, LIST), (LIST, ROW)):
        ledger = Ledger(10.0, 1e-3, adjacency="add-remove")
        ledger.charge(cost, "one", "add-remove", first)
        ledger.charge(cost, "the same", "add-remove", first)
        with pytest.raises(LedgerError, match="separate accounts"):
            ledger.charge(cost, "other", "add-remove", second)
        assert len(ledger.entries) == 2
    replaced = Ledger(10.0, 1e-3)
    for unit in (ROW, LIST):  # a replaced document is a way of replacing its list
        replaced.charge(cost, "either", "replace-one", unit)


@pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")
def test_an_account_of_persons_compares_the_columns_of_list_owners():
    """Before: persons by two columns were taken for the same ones."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 3, 40)
    ledger = Ledger(10.0, 1e-2, unit="person")
    settings = {"unit": "person", "epsilon": 0.5, "delta": 1e-3, "ledger": ledger}
    model = PrivateRanker(random_state=0, **settings)
    judges = pandas.Series(np.arange(8) // 2, name="judge")
    model.fit(X, y, group=[5] * 8, persons=judges)
    assert model.privacy_.unit.column == "judge"
    with pytest.raises(LedgerError, match="column 'clinic'"):
        model.fit(X, y, group=[5] * 8, persons=judges.rename("clinic"))
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("size", [1e60, 1e80, 1e98])  # larger metrics are refused
@pytest.mark.parametrize("clip", [1e-195, 1e-170, 1e-3])
def test_factors_that_are_hardly_numbers_do_not_stretch_a_gradient(size, clip):
    rng = np.random.default_rng(11)
    problem = problem_of(lists_of(np.ones((2, 3))), relation=Relation.ADD_REMOVE)
    for stretch in 10.0 ** rng.uniform(-1, 1, 10):
        query = ListGradient(problem, np.zeros(3), clip, Metric(np.eye(3) * size * stretch))
        documents = lists_of(rng.normal(size=(2, 3)), np.zeros((1, 3)))
        answer = query(RankedLists(documents, np.array([4.0, 0, 0])), None)
        assert length(answer) <= NO_VIOLATION * query.radius()
