"""PrivateRanker: conventions of rankers, what is refused before payment, and guarantees."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer

from hushfit import Ledger, PrivateRanker
from hushfit.errors import BudgetExceeded, InvalidArgument, LedgerError
from hushfit.estimators import mean_ndcg
from hushfit.privacy import Relation
from hushfit.ranking_problem import ListwiseLoss
from hushfit.solvers.ranking import ListwiseSGD, OneReleaseRanking, PrivBR, WhitenedLists

pytestmark = pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")


def lists(seed=0, m=120, d=4, longest=9):
    """Lists in which the first column tells the grade."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest + 1, m)
    X = rng.random((sizes.sum(), d))
    noisy = X[:, 0] + 0.2 * rng.normal(size=len(X))
    y = (noisy > 0.6).astype(float) + (noisy > 0.85)
    return X, y, np.repeat(np.arange(m), sizes), sizes


def ranker(**settings):
    return PrivateRanker(**{"epsilon": 5.0, "delta": 1e-3, "random_state": 0, **settings})


def arrow_table(table):
    """The same table as Arrow has it."""
    import pyarrow as pa

    return pa.Table.from_pandas(table, preserve_index=False)


SETTINGS = {
    "labels": {},
    "labels, network": {"scorer": "mlp", "hidden": 16},
    "labels, BayesRank": {"loss": "bayesrank", "solver": PrivBR(steps=60)},
    "labels, BayesRank, network": {
        "loss": ListwiseLoss("bayesrank", 2, "all"),
        "solver": PrivBR(steps=40, learning_rate=0.5),
        "scorer": "mlp",
        "hidden": 8,
    },
    "list": {"unit": "list"},
    "list, add-remove": {"unit": "list", "adjacency": "add-remove"},
    "list, ListMLE": {"unit": "list", "loss": "listmle"},
    "list, BayesRank": {"unit": "list", "loss": "bayesrank"},
    "list, network": {
        "unit": "list",
        "scorer": "mlp",
        "hidden": 8,
        "solver": ListwiseSGD(steps=60, batch=20, learning_rate=0.5),
    },
    "person": {"unit": "person"},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_every_way_learns_the_order_and_says_what_it_protects(settings):
    X, y, qid, sizes = lists()
    persons = np.arange(len(sizes)) // 2 if settings.get("unit") == "person" else None
    model = ranker(**settings, max_grade=2).fit(X, y, qid=qid, persons=persons)
    Xt, yt, qt, _ = lists(1)
    by_chance = np.mean([_chance(seed, Xt, yt, qt) for seed in range(5)])
    best = ranker(epsilon=np.inf, max_grade=2).fit(X, y, qid=qid).score(Xt, yt, qt)
    assert model.score(Xt, yt, qt) > by_chance + 0.3 * (best - by_chance)
    text = str(model.privacy_)
    if model.unit == "labels":
        assert "FEATURES ARE NOT PROTECTED" in text
        assert model.privacy_.relation is Relation.LABEL
        assert "all labels of one list" in text
    else:
        assert f"one {model.unit}" in text
        assert "NOT PROTECTED" not in text


def _chance(seed, X, y, qid):
    starts = np.flatnonzero(np.r_[True, qid[1:] != qid[:-1], True])
    return mean_ndcg(np.random.default_rng(seed).random(len(y)), y, starts, (10,))[0]


def test_qid_and_group_are_two_ways_to_say_the_same():
    X, y, qid, sizes = lists()
    one = ranker().fit(X, y, qid=qid)
    other = ranker().fit(X, y, group=sizes)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert one.score(X, y, qid) == other.score(X, y, group=sizes)
    texts = np.array([f"query {q}" for q in qid])
    np.testing.assert_array_equal(one.coef_, ranker().fit(X, y, qid=texts).coef_)


def test_frames_and_sparse_matrices_are_arrays():
    X, y, qid, _ = lists()
    expected = ranker().fit(X, y, qid).coef_
    frame = pd.DataFrame(X, columns=list("abcd"))
    np.testing.assert_array_equal(ranker().fit(frame, pd.Series(y), pd.Series(qid)).coef_, expected)
    np.testing.assert_array_equal(ranker().fit(csr_matrix(X), y, qid).coef_, expected)


def test_rank_lists_the_documents_best_first():
    X, y, qid, sizes = lists()
    model = ranker().fit(X, y, qid)
    scores, orders = model.predict(X), model.rank(X, qid)
    assert [len(order) for order in orders] == list(sizes)
    assert sorted(np.concatenate(orders)) == list(range(len(X)))
    assert all((np.diff(scores[order]) <= 0).all() for order in orders)
    assert len(model.rank(X)) == 1


def test_a_public_feature_map_is_applied_document_by_document():
    X, y, qid, _ = lists()

    def squares(X):
        return np.hstack([X, X**2])

    model = ranker(scorer=squares).fit(X, y, qid)
    assert model.coef_.shape == (8,)
    same = ranker(scorer=FunctionTransformer(squares)).fit(X, y, qid)
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    with pytest.raises(InvalidArgument, match="one row for each document"):
        ranker(scorer=lambda X: X[:3]).fit(X, y, qid)


def test_scores_do_not_depend_on_shifts_of_a_list_or_the_scale_of_a_column():
    X, y, qid, sizes = lists()
    shifted = X * [1.0, 10.0, 0.1, 1.0] + np.repeat(np.arange(len(sizes)), sizes)[:, None]
    model, other = ranker().fit(X, y, qid), ranker().fit(shifted, y, qid)
    np.testing.assert_allclose(other.coef_ * [1.0, 10.0, 0.1, 1.0], model.coef_, rtol=1e-3)


def test_predicting_lists_that_were_not_seen_needs_no_query():
    X, y, qid, _ = lists()
    assert ranker().fit(X, y, qid).predict(X[:1]).shape == (1,)


def test_labels_of_persons_with_several_lists_are_protected_together():
    X, y, qid, sizes = lists()
    model = ranker().fit(X, y, qid, persons=np.arange(len(sizes)) // 3)
    assert model.privacy_.relation is Relation.PERSON_LABEL
    assert "1/k" in str(model.privacy_)


@pytest.mark.parametrize("layout", [pd.DataFrame, arrow_table])
def test_columns_are_named_instead_of_given(layout):
    X, y, qid, sizes = lists()
    whose = np.arange(len(sizes)) // 3
    features = pd.DataFrame(X, columns=list("abcd"))
    queries, judges = [f"q{k:03d}" for k in qid], np.repeat(whose, sizes)
    table = features.assign(grade=y, query=queries, judge=judges)
    given = ranker().fit(X, y, qid, persons=pd.Series(whose, name="judge"))
    named = ranker().fit(layout(table), "grade", qid="query", persons="judge")
    np.testing.assert_array_equal(named.weights_, given.weights_)
    assert named.privacy_ == given.privacy_
    for frame in (table, features):
        np.testing.assert_array_equal(named.predict(layout(frame)), given.predict(X))
    held_out = layout(table)
    assert named.score(held_out, "grade", qid="query") == given.score(X, y, qid)
    for one, other in zip(named.rank(held_out, qid="query"), given.rank(X, qid), strict=True):
        np.testing.assert_array_equal(one, other)


def test_names_of_no_column_are_refused_before_payment():
    X, y, qid, _ = lists()
    table = pd.DataFrame(X, columns=list("abcd")).assign(query=qid, judge=np.arange(len(y)))
    for wrong, why in (
        ({"qid": "list"}, "qid='list' names a column, but X has none"),
        ({"qid": "query", "persons": "owner"}, "persons='owner' names a column"),
        ({"qid": "query", "persons": "judge"}, "documents of one list name different persons"),
    ):
        ledger = Ledger(9.0, 1e-2)
        with pytest.raises(InvalidArgument, match=why):
            ranker(ledger=ledger).fit(table, y, **wrong)
        assert ledger.entries == ()
    with pytest.raises(InvalidArgument, match="y='grade' names a column"):
        ranker().fit(X, "grade", qid=qid)


def test_degenerate_lists_are_fitted_all_the_same():
    X, y, qid, _sizes = lists()
    for unit in ("labels", "list"):
        model = ranker(unit=unit).fit(X, np.zeros(len(y)), qid)  # nothing is relevant
        assert np.isfinite(model.coef_).all()
        assert model.score(X, np.zeros(len(y)), qid) == 0.0
        constant = X.copy()
        constant[:, 1] = 3.0
        assert np.isfinite(ranker(unit=unit).fit(constant, y, qid).coef_).all()
    single = ranker(unit="list").fit(X, y, group=np.ones(len(X), int))  # nothing to rank, but paid
    assert np.isfinite(single.coef_).all()


def test_values_that_are_not_finite_are_refused_where_public_and_zero_where_private():
    X, y, qid, _ = lists()
    X[3, 1], X[7, 0] = np.nan, np.inf
    with pytest.raises(InvalidArgument, match="NaN or infinity"):
        ranker().fit(X, y, qid)
    model = ranker(unit="list").fit(X, y, qid)
    assert np.isfinite(model.predict(X)).all()


def bad_input():
    X, y, qid, sizes = lists()
    frame = pd.DataFrame(X, columns=["a", "b", "grade", "c"])
    apart = np.where(np.arange(len(qid)) == len(qid) - 1, qid[0], qid)
    return {
        "grades in texts": ((X, y.astype(str), qid), {}, "array of texts"),
        "complex grades": ((X, y + 1j, qid), {}, "complex numbers"),
        "query in two places": ((X, y, apart), {}, "are apart"),
        "missing query": ((X, y, np.where(qid == 3, np.nan, qid)), {}, "qid has missing"),
        "no query": ((X, y), {}, "either qid"),
        "both": ((X, y, qid, sizes), {}, "either qid"),
        "sizes that do not add up": ((X, y, None, sizes[:-1]), {}, "add up to"),
        "an empty list": ((X, y, None, [len(X), 0]), {}, "at least 1"),
        "ids given as sizes": ((X, y, None, np.full(len(X), 0.5)), {}, "whole numbers"),
        "short qid": ((X, y, qid[:-1]), {}, "qid should have one id for each document"),
        "short y": ((X, y[:-1], qid), {}, "y should have one grade for each document"),
        "long lists": ((X, y, qid), {"max_list_length": 3}, "max_list_length=3"),
        "grades among the columns": ((frame, pd.Series(y, name="grade"), qid), {}, "publish"),
        "query among the columns": ((frame, y, pd.Series(qid, name="c")), {}, "the query"),
        "equal documents": ((np.ones_like(X), y, qid), {}, "no order can be learnt"),
        "unknown unit": ((X, y, qid), {"unit": "row"}, "unit='row'"),
        "unknown loss": ((X, y, qid), {"loss": "hinge"}, "loss='hinge'"),
        "unknown scorer": ((X, y, qid), {"scorer": "forest"}, "scorer='forest'"),
        "scorer of no kind": ((X, y, qid), {"scorer": 3}, "scorer=3"),
        "unknown solver": ((X, y, qid), {"solver": "sgd"}, "solver='sgd'"),
        "no solver": ((X, y, qid), {"solver": object()}, "neither a name nor"),
        "person without ids": ((X, y, qid), {"unit": "person"}, "needs persons"),
        "ids without persons": ((X, y, qid, None, sizes), {"unit": "list"}, "unit='person'"),
        "one id per document": ((X, y, qid, None, qid), {"unit": "person"}, "one id for each list"),
        "ListMLE with public documents": ((X, y, qid), {"loss": "listmle"}, "loss='listmle'"),
        "largest grade": ((X, y, qid), {"max_grade": 0}, "max_grade=0"),
        "labels as a relation": ((X, y, qid), {"unit": "list", "adjacency": "label"}, "unit="),
        "private documents": (
            (X, y, qid),
            {"unit": "list", "solver": "one-release"},
            "features are public",
        ),
        "network in a metric": (
            (X, y, qid),
            {"unit": "list", "scorer": "mlp", "solver": WhitenedLists()},
            "no second moment",
        ),
        "PrivBR without NDCG": ((X, y, qid), {"solver": "privbr"}, "loss='bayesrank'"),
        "one release of NDCG": (
            (X, y, qid),
            {"loss": "bayesrank", "solver": "one-release"},
            "One release suffices",
        ),
        "wrong seed": ((X, y, qid), {"random_state": "one"}, "random_state"),
    }


@pytest.mark.parametrize("case", bad_input())
def test_bad_input_is_refused_and_nothing_is_spent(case):
    given, settings, message = bad_input()[case]
    ledger = Ledger(10.0, 1e-2)
    with pytest.raises(InvalidArgument, match=message) as refusal:
        ranker(**settings, ledger=ledger).fit(*given)
    assert not ledger.entries
    # How many documents there are is private where whole lists are protected.
    assert str(len(given[0])) not in str(refusal.value)


def test_a_ledger_is_charged_once_and_does_not_mix_relations():
    X, y, qid, _ = lists()
    ledger = Ledger(1.1, 2e-3, "label")
    ranker(epsilon=1.0, ledger=ledger).fit(X, y, qid)
    assert len(ledger.entries) == 1
    with pytest.raises(BudgetExceeded):
        ranker(epsilon=1.0, ledger=ledger).fit(X, y, qid)
    with pytest.raises(LedgerError, match="label"):
        ranker(epsilon=0.1, unit="list", ledger=ledger).fit(X, y, qid)
    assert len(ledger.entries) == 1


def test_a_quote_is_the_cost_of_the_fit():
    X, y, qid, sizes = lists()
    for settings in ({}, {"unit": "list"}, {"loss": "bayesrank"}, {"scorer": "mlp", "hidden": 8}):
        model = ranker(**settings).fit(X, y, qid)
        assert model.quote(len(sizes), 4).cost == model.privacy_.cost


def test_an_estimator_is_cloned_with_its_settings():
    model = ranker(unit="list", solver=OneReleaseRanking(ridge=0.1))
    assert clone(model).get_params() == model.get_params()


def test_settings_of_solvers_are_checked():
    for make in (
        lambda: OneReleaseRanking(ridge=0.0),
        lambda: PrivBR(steps=0),
        lambda: PrivBR(quantile=0.0),
        lambda: ListwiseSGD(clip=-1.0),
        lambda: ListwiseSGD(average_last=2.0),
        lambda: WhitenedLists(moment_share=1.0),
        lambda: ListwiseLoss("bayesrank", 3),
        lambda: ListwiseLoss("bayesrank", 1, "some"),
    ):
        with pytest.raises(InvalidArgument):
            make()


def test_without_noise_the_minimum_is_found():
    """Gradient of the objective at the returned weights, by its definition."""
    X, y, qid, sizes = lists(m=60)
    model = ranker(epsilon=np.inf, solver=OneReleaseRanking(ridge=1e-4)).fit(X, y, qid)
    total, starts = np.zeros(4), np.concatenate([[0], np.cumsum(sizes)])
    for start, stop in itertools.pairwise(starts):
        F = X[start:stop] - X[start:stop].mean(axis=0)
        gains = 2.0 ** y[start:stop] - 1
        u = gains / gains.sum() if gains.sum() else np.full(len(F), 1 / len(F))
        p = np.exp(F @ model.coef_)
        total += F.T @ (p / p.sum() - u)
    assert np.linalg.norm(total) < 0.1  # the ridge; at zero weights it is
    assert np.linalg.norm(sum(_at_zero(X, y, starts))) > 3


def _at_zero(X, y, starts):
    for start, stop in itertools.pairwise(starts):
        gains = 2.0 ** y[start:stop] - 1
        if gains.sum():
            yield (X[start:stop] - X[start:stop].mean(axis=0)).T @ (gains / gains.sum())


def test_measures_agree_with_lists_computed_by_hand_and_with_another_library():
    """Grades 0, 2, 1 ranked in this order: DCG = 3/log2(3) + 1/log2(4), ideal 3 + 1/log2(3)."""
    ir_measures = pytest.importorskip("ir_measures", reason="it is installed with hushfit[dev]")
    grades = np.array([0.0, 2.0, 1.0, 0.0, 0.0, 1.0])
    scores, starts = np.array([3.0, 2.0, 1.0, 1.0, 2.0, 5.0]), np.array([0, 3, 5, 6])
    first = (3 / np.log2(3) + 1 / 2) / (3 + 1 / np.log2(3))
    by_hand = [0 + 0 + 1, 3 / np.log2(3) / (3 + 1 / np.log2(3)) + 0 + 1, first + 0 + 1]
    found = mean_ndcg(scores, grades, starts, (1, 2, 10))
    np.testing.assert_allclose(found, np.array(by_hand) / 3)  # the second list counts as 0
    qid, ids = ["a", "a", "a", "b", "b", "c"], list("123456")
    qrels = [
        ir_measures.Qrel(q, i, int(g)) for q, i, g in zip(qid, ids, 2**grades - 1, strict=True)
    ]
    run = [ir_measures.ScoredDoc(q, i, s) for q, i, s in zip(qid, ids, scores, strict=True)]
    measures = [ir_measures.nDCG @ k for k in (1, 2, 10)]
    other = ir_measures.calc_aggregate(measures, qrels, run)
    np.testing.assert_allclose(found, [other[measure] for measure in measures], atol=1e-5)
