"""Queries over lists of documents: bounds by fuzzing and hill climbing, gradients by finite
differences, batches and prices.
"""

import numpy as np
import pytest

from hushfit.audit.checks import (
    check_label_batch_price,
    check_list_batches,
    check_ndcg_grows,
    check_release_noise,
    list_examples,
    list_ratio,
    sampled_list_examples,
)
from hushfit.data.lists import Documents, RankedLists
from hushfit.errors import InvalidArgument, UnsupportedRelation
from hushfit.kernels import lists as kernels
from hushfit.privacy import Budget, PoissonGaussianCost, Relation, SeededSampler, epsilon_of
from hushfit.ranking_problem import ListwiseLoss, RankingProblem
from hushfit.release import (
    BayesRankGradient,
    ListGradient,
    ListStatistic,
    Plan,
    Planned,
    gradient_norms,
)

EXAMPLES = list_examples()


def lists_of(seed=0, m=36, d=4, longest=12):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, m)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    X = rng.normal(size=(starts[-1], d)) * rng.uniform(0.1, 10, d)
    return Documents(X, starts), rng.integers(0, 5, starts[-1]).astype(float)


def problem_of(documents, loss="listnet", relation=Relation.LABEL, hidden=0):
    loss = loss if isinstance(loss, ListwiseLoss) else ListwiseLoss(loss)
    public = documents if relation is Relation.LABEL else None
    return RankingProblem(
        loss, documents.n_lists, documents.n_features, relation, hidden, documents=public
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_neighbours_stay_within_the_sensitivity_and_reach_half_of_it(name):
    """The bound of all labels by eigenvalues, and that of one ball for mixtures, are not attained;
    a third of them is. Where most digits cancel, the bound is mostly one on rounding.
    """
    relation, example = EXAMPLES[name]
    ratio = list_ratio(relation, example, seed=1, starts=4, climbs=40)
    assert ratio <= 1 + 1e-9
    least = 1e-6 if "far away" in name else 0.3 if "BayesRank" in name else 0.5
    assert ratio > least


@pytest.mark.parametrize("target", ["all", "one-hot", "simplex"])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("hidden", [0, 5])
def test_random_grades_never_exceed_the_bound(target, depth, hidden):
    documents, _ = lists_of(1)
    problem = problem_of(documents, ListwiseLoss("bayesrank", depth, target), hidden=hidden)
    rng = np.random.default_rng(2)
    theta = rng.normal(size=problem.n_weights)
    norms = gradient_norms(problem, theta, np.arange(documents.n_lists))
    query = BayesRankGradient(problem, theta, norms.max())  # no list is scaled down
    for _ in range(15):
        y = rng.choice([0, 1, 4], size=len(documents.X)).astype(float)
        source = RankedLists(documents, y)
        for j in range(0, documents.n_lists, 3):
            assert np.linalg.norm(query(source, np.array([j]))) <= norms[j] + 1e-9 * norms.max()


@pytest.mark.parametrize("clip", [None, 0.1])
def test_one_relevant_document_against_another_attains_the_bound(clip):
    """Of the diameter; of two clipped lists, which are not quite opposite, most of it."""
    documents, y = lists_of(3)
    sizes = None if clip is None else documents.sizes(np.ones(4))
    query = ListStatistic(problem_of(documents), np.eye(4), 0.5, clip, sizes)
    j = int(np.argmax(documents.lengths))
    start, stop = documents.starts[j : j + 2]
    F = documents.features_of(j, centred=True)
    gaps = np.linalg.norm(F[:, None] - F[None], axis=2)
    pair = np.unravel_index(gaps.argmax(), gaps.shape)
    answers = []
    for relevant in pair:
        own = y.copy()
        own[start:stop] = 0
        own[start + relevant] = 3
        answers.append(query(RankedLists(documents, own), None))
    distance = np.linalg.norm(answers[0] - answers[1])
    share = distance / query.sensitivity(Relation.LABEL)
    assert share == pytest.approx(1.0, rel=1e-6) if clip is None else 0.8 < share <= 1


def loss_of(problem, F, y, theta):
    """The loss of one list, written out."""
    d, h = F.shape[1], problem.hidden
    if h:
        units = F @ theta[: d * h].reshape(d, h) + theta[d * h : (d + 1) * h]
        s = np.maximum(units, 0) @ theta[(d + 1) * h :]
    else:
        s = F @ theta
    gains, loss = 2.0**y - 1, problem.loss
    p = np.exp(s - s.max())
    p /= p.sum()
    if loss.name == "listnet":
        u = gains / gains.sum() if gains.sum() else np.full(len(y), 1 / len(y))
        return -u @ np.log(p)
    if loss.name == "listmle":
        order = np.argsort(-y, kind="stable")
        return sum(
            np.log(np.exp(s[order[i:]]).sum()) - s[order[i]]
            for i in range(len(y))
            if y[order[i]] > 0
        )
    if not gains.max():
        return 0.0
    best = np.sort(gains)[::-1]
    ideal = best[0] + (best[1] / np.log2(3) if loss.depth == 2 and len(y) > 1 else 0)
    u = {
        "all": gains / ideal,
        "simplex": gains / gains.sum(),
        "one-hot": np.eye(len(y))[gains.argmax()],
    }[loss.target]
    value = u @ p
    if loss.depth == 2:
        for first in range(len(y)):
            for second in range(len(y)):
                if first != second:
                    chance = p[first] * p[second] / (1 - p[first])
                    value += u[second] * chance / np.log2(3)
    return -value


LOSSES = [
    ListwiseLoss("listnet"),
    ListwiseLoss("listmle"),
    *(
        ListwiseLoss("bayesrank", depth, target)
        for depth in (1, 2)
        for target in ("all", "one-hot", "simplex")
    ),
]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("hidden", [0, 5])
def test_gradients_are_finite_differences(loss, hidden):
    documents, y = lists_of(4, m=6)
    documents = Documents(documents.X / 10, documents.starts)
    problem = problem_of(documents, loss, Relation.REPLACE_ONE, hidden)
    theta = np.random.default_rng(5).normal(size=problem.n_weights)
    query = ListGradient(problem, theta, 1e6)
    for j in range(6):
        F = documents.features_of(j, centred=hidden == 0)
        if hidden == 0 and len(F) > 1:
            F = F / np.sqrt((F**2).sum() / len(F))
        own = y[documents.starts[j] : documents.starts[j + 1]]
        answer = query(RankedLists(documents, y), np.array([j]))
        numeric = [
            (
                loss_of(problem, F, own, theta + 1e-6 * e)
                - loss_of(problem, F, own, theta - 1e-6 * e)
            )
            / 2e-6
            for e in np.eye(problem.n_weights)
        ]
        np.testing.assert_allclose(answer, numeric, atol=2e-5)


def test_slopes_of_utilities_add_up_to_zero():
    for depth in (1, 2):
        Q = np.empty((7, 7))
        kernels.utility_slopes(3 * np.random.default_rng(6).normal(size=7), depth, Q)
        np.testing.assert_allclose(Q.sum(axis=0), 0, atol=1e-14)


def test_no_score_is_too_large_for_bayes_rank():
    Q = np.empty((3, 3))
    kernels.utility_slopes(np.array([1e6, 0.0, -1e6]), 2, Q)
    assert np.isfinite(Q).all()


def test_descending_raises_expected_ndcg():
    assert check_ndcg_grows().passed


@pytest.mark.parametrize("name", list(sampled_list_examples()))
def test_a_list_adds_the_same_to_every_batch(name):
    assert check_list_batches(name).passed


def test_replaced_grades_cost_more_than_added_ones():
    assert check_label_batch_price().passed
    cost = PoissonGaussianCost(3.0, 0.02, 400)
    replaced = epsilon_of(cost, 1e-4, Relation.LABEL)
    assert replaced == epsilon_of(cost, 1e-4, Relation.REPLACE_ONE)
    # The same noise, in units of the radius instead of the diameter.
    assert replaced > epsilon_of(PoissonGaussianCost(6.0, 0.02, 400), 1e-4, Relation.ADD_REMOVE)


def test_the_order_of_lists_does_not_show_in_a_bit():
    documents, y = lists_of(7, m=30)
    lists = [slice(documents.starts[j], documents.starts[j + 1]) for j in range(30)]
    order = np.random.default_rng(8).permutation(30)
    rows = np.concatenate([np.arange(lists[j].start, lists[j].stop) for j in order])
    other = Documents(documents.X[rows], np.concatenate([[0], np.cumsum(documents.lengths[order])]))
    for make in (
        lambda p: ListGradient(p, np.ones(4), 0.3),
        lambda p: ListStatistic(p, np.eye(4), 2.0),
    ):
        answers = []
        for own, grades in ((documents, y), (other, y[rows])):
            labels = make.__code__.co_names[0] == "ListStatistic"
            relation = Relation.LABEL if labels else Relation.REPLACE_ONE
            answers.append(make(problem_of(own, relation=relation))(RankedLists(own, grades), None))
        np.testing.assert_array_equal(*answers)


@pytest.mark.parametrize(
    "name",
    [
        "grade statistic",
        "grade statistic of persons, clipped",
        "BayesRank, network",
        "list gradient in a metric (add-remove)",
        "list moment (replace-one)",
    ],
)
def test_noise_is_the_multiplier_times_the_sensitivity(name):
    """Half the noise would be a variance ratio of 1/4. Seeded: no false alarm."""
    relation, example = EXAMPLES[name]
    query, source = example.make(example.problem), example.source(example.lists)
    found = check_release_noise(query, source, 2.0, relation, SeededSampler(3), releases=200)
    assert all(finding.passed for finding in found), found


def test_other_documents_are_refused():
    documents, y = lists_of(9)
    query = ListStatistic(problem_of(documents), np.eye(4), 1.0)
    same = Documents(documents.X.copy(), documents.starts)
    with pytest.raises(InvalidArgument, match="other documents"):
        query(RankedLists(same, y), None)


def test_queries_with_public_documents_are_refused_where_these_are_private():
    plan = Plan((Planned("statistic", ListStatistic, 1),))
    with pytest.raises(UnsupportedRelation):
        plan.quote_for(40, Relation.REPLACE_ONE, Budget(1.0, 1e-5), 4)
    clipped = Plan((Planned("gradient", ListGradient, 1),))
    with pytest.raises(UnsupportedRelation):
        clipped.quote_for(40, Relation.LABEL, Budget(1.0, 1e-5), 4)
