"""Checks of the queries over lists of documents: sensitivities by hill climbing over grades and
lists, batches, the price of replaced grades, and the direction of BayesRank.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtr

from hushfit._typing import IntVector, Matrix, Vector
from hushfit.audit.checks._noise import Finding
from hushfit.data import Persons
from hushfit.data.lists import Documents, RankedLists
from hushfit.kernels.lists import list_scores, utility_slopes
from hushfit.privacy import PoissonGaussianCost, Relation, delta_of, exchanges, labels_only
from hushfit.ranking_problem import ListwiseLoss, RankingProblem
from hushfit.release import (
    BayesRankGradient,
    ListGradient,
    ListSecondMoment,
    ListStatistic,
    Metric,
    gradient_norms,
)
from hushfit.unit import LIST, PrivacyUnit

_COLUMNS, _HIDDEN, _GRADES = 3, 4, 5
_LENGTHS = (6, 1, 4, 9, 5, 3)
_ROUNDING = 1e-9

List = tuple[Matrix, Vector]


@dataclass(frozen=True, eq=False)
class ListExample:
    """A query over lists, and the lists around those that are replaced.

    ``replaced`` are the numbers of the lists of one unit.
    """

    make: Callable[[RankingProblem], Any]
    problem: RankingProblem
    lists: list[List]
    replaced: tuple[int, ...]
    persons: IntVector | None = None

    def source(self, lists: list[List]) -> RankedLists:
        """Lists as a source; with public documents, the documents of the problem."""
        public = self.problem.documents
        documents = _documents(lists) if public is None else public
        owners = None
        if self.persons is not None:
            n_persons = int(self.persons.max()) + 1
            owners = Persons(self.persons, n_persons, self.problem.privacy_unit)
        return RankedLists(documents, np.concatenate([y for _, y in lists]), owners)


def _documents(lists: list[List]) -> Documents:
    lengths = [len(y) for _, y in lists]
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Documents(np.concatenate([X for X, _ in lists]), starts)


@dataclass(frozen=True, eq=False)
class _Public:
    """Lists, and random public values for queries over them."""

    lists: list[List]
    A: Matrix
    theta: Vector
    weights: Vector  # of a network

    @classmethod
    def of(cls, seed: int) -> "_Public":
        rng = np.random.default_rng(seed)
        lists = [_random_list(rng, n) for n in _LENGTHS]
        A, theta = rng.normal(size=(_COLUMNS, _COLUMNS)), rng.normal(size=_COLUMNS)
        return cls(lists, A, theta, rng.normal(size=(_COLUMNS + 2) * _HIDDEN))


_Examples = dict[str, tuple[Relation, ListExample]]
_LISTNET, _BAYESRANK = ListwiseLoss("listnet"), ListwiseLoss("bayesrank")
# Whose list each is, where persons are the privacy units.
_PERSONS = np.array([0, 1, 0, 1, 2, 2])


def list_examples(seed: int = 0) -> dict[str, tuple[Relation, ListExample]]:
    """Every query over lists, with its relation, at random public values.

    Parameters
    ----------
    seed : int, default=0

    Returns
    -------
    dict of str to (Relation, ListExample)
    """
    public = _Public.of(seed)
    found = _grade_statistics(public) | _bayes_ranks(public) | _bayes_ranks_of_networks(public)
    for relation in (Relation.REPLACE_ONE, Relation.ADD_REMOVE):
        found |= _list_gradients(public, relation)
    return found


def _example(
    make: Callable[[RankingProblem], Any],
    loss: ListwiseLoss,
    relation: Relation,
    lists: list[List],
    hidden: int = 0,
    persons: IntVector | None = None,
) -> tuple[Relation, ListExample]:
    documents = _documents(lists) if labels_only(relation) else None
    if persons is None:
        problem = RankingProblem(loss, len(lists), _COLUMNS, relation, hidden, LIST, documents)
        return relation, ListExample(make, problem, lists, (0,))
    unit, n_persons = PrivacyUnit.person("mean", 2, record="list"), int(persons.max()) + 1
    shares = None if documents is None else Persons(persons, n_persons, unit).shares
    problem = RankingProblem(loss, n_persons, _COLUMNS, relation, hidden, unit, documents, shares)
    replaced = tuple(map(int, np.flatnonzero(persons == 0)))
    return relation, ListExample(make, problem, lists, replaced, persons)


def _grade_statistics(public: _Public) -> _Examples:
    exact = partial(_statistic, public.A)
    clipped = partial(_clipped_statistic, public.A)
    found = {}
    for name, relation, persons in (
        ("grade statistic", Relation.LABEL, None),
        ("grade statistic of persons", Relation.PERSON_LABEL, _PERSONS),
    ):
        for suffix, make in (("", exact), (", clipped", clipped)):
            found[name + suffix] = _example(make, _LISTNET, relation, public.lists, persons=persons)
    return found


def _bayes_ranks(public: _Public) -> _Examples:
    at_theta = partial(_bayes_rank_at, public.theta)
    return {
        f"BayesRank, {target}, top {depth}": _example(
            at_theta, ListwiseLoss("bayesrank", depth, target), Relation.LABEL, public.lists
        )
        for target in ("all", "one-hot", "simplex")
        for depth in (1, 2)
    }


def _bayes_ranks_of_networks(public: _Public) -> _Examples:
    """Networks, and what rounding decides: scores of which most digits cancel, and a hidden unit
    close to zero.
    """
    lists, theta, weights = public.lists, public.theta, public.weights
    steep = np.repeat([5.0, 0.05], [(_COLUMNS + 1) * _HIDDEN, _HIDDEN]) * weights
    far = [(_with_one_far(X, theta), y) for X, y in lists]
    at_zero = _weights_with_unit_at_zero(lists[0][0], weights)
    cases = {
        "network": (partial(_bayes_rank_at, weights), _HIDDEN, lists),
        "network of large weights": (partial(_bayes_rank_at, steep), _HIDDEN, lists),
        "one document far away": (partial(_bayes_rank_at_its_bound, theta), 0, far),
        "hidden unit at zero": (partial(_bayes_rank_at_its_bound, at_zero), _HIDDEN, lists),
    }
    return {
        f"BayesRank, {name}": _example(make, _BAYESRANK, Relation.LABEL, some, hidden)
        for name, (make, hidden, some) in cases.items()
    }


def _list_gradients(public: _Public, relation: Relation) -> _Examples:
    metric = Metric(public.A @ public.A.T / 4 + np.eye(_COLUMNS))

    def at(w: Vector, metric: Metric | None = None) -> Callable[[RankingProblem], ListGradient]:
        return lambda problem: ListGradient(problem, w, 0.3, metric)

    def example(
        make: Callable[[RankingProblem], Any], loss: ListwiseLoss = _LISTNET, **settings: Any
    ) -> tuple[Relation, ListExample]:
        return _example(make, loss, relation, public.lists, **settings)

    linear = at(public.theta)
    losses = (_LISTNET, ListwiseLoss("listmle"), _BAYESRANK)
    found = {f"list gradient, {loss.name} ({relation})": example(linear, loss) for loss in losses}
    network = at(public.weights)
    return found | {
        f"list gradient in a metric ({relation})": example(at(public.theta, metric)),
        f"list gradient of a network ({relation})": example(network, hidden=_HIDDEN),
        f"list gradient of persons ({relation})": example(linear, persons=_PERSONS),
        f"list moment ({relation})": example(ListSecondMoment),
    }


def _statistic(B: Matrix, problem: RankingProblem) -> ListStatistic:
    return ListStatistic(problem, B, 1.5)


def _clipped_statistic(B: Matrix, problem: RankingProblem) -> ListStatistic:
    sizes = problem.public_documents.sizes(np.ones(_COLUMNS))
    return ListStatistic(problem, B, 1.5, 0.4, sizes)


def _bayes_rank_at(weights: Vector, problem: RankingProblem) -> BayesRankGradient:
    return BayesRankGradient(problem, weights, 0.2)


def _bayes_rank_at_its_bound(weights: Vector, problem: RankingProblem) -> BayesRankGradient:
    """With the bound of the list that is replaced."""
    own = float(gradient_norms(problem, weights, np.zeros(1, dtype=np.int64))[0])
    return BayesRankGradient(problem, weights, own or 1.0)


def _with_one_far(X: Matrix, theta: Vector) -> Matrix:
    """A list whose last document is at the bottom, and so far away that the gradients of the
    others seem as short as can be if they are computed from inner products.
    """
    if len(X) == 1:
        return X
    lists = [X.copy() for _ in range(120)]
    for far, size in zip(lists, np.logspace(7.5, 10.5, len(lists)), strict=True):
        far[-1] *= -size * np.sign(X[-1] @ theta) / np.linalg.norm(X[-1])
    return max(lists, key=partial(_share_that_cancels, theta))


def _share_that_cancels(theta: Vector, X: Matrix) -> float:
    F, Q = X - X.mean(axis=0), np.empty((len(X), len(X)))
    utility_slopes(F @ theta, 1, Q)
    seeming = max(float(np.diag(Q @ (F @ F.T) @ Q.T).max()), 0.0)
    true = float(np.linalg.norm(Q @ F, axis=1).max())
    return true / (math.sqrt(seeming) + 1e-11 * float(np.linalg.norm(F, axis=1).max()))


def _weights_with_unit_at_zero(X: Matrix, weights: Vector) -> Vector:
    """Weights of a network with a hidden unit of large weight that is active on one document
    alone, and there so close to zero that another order of summation finds it inactive.
    """
    d, last = X.shape[1], (X.shape[1] + 1) * _HIDDEN
    units, scores = np.empty((len(X), _HIDDEN)), np.empty(len(X))
    found: Vector = weights.copy()
    for h, stretch in itertools.product(range(_HIDDEN), range(8)):
        found = (1 + stretch / 10) * weights
        found[last:] = 0.01 * weights[last:]
        found[last + h] = 100.0
        into = X @ found[: d * _HIDDEN].reshape(d, _HIDDEN)
        top = int(np.argmax(into[:, h]))
        for step in range(-8, 9):
            found[last - _HIDDEN + h] = -into[top, h] + step * np.spacing(into[top, h])
            list_scores(X, found, _HIDDEN, units, scores)
            if units[top, h] > 0 >= into[top, h] + found[last - _HIDDEN + h]:
                return found
    return found


def _random_list(rng: np.random.Generator, length: int) -> List:
    X = 10 ** rng.uniform(-1, 1) * rng.normal(size=(length, _COLUMNS))
    return X, rng.integers(_GRADES, size=length).astype(np.float64)


def _grades(rng: np.random.Generator, length: int) -> Vector:
    """Extreme grades of a list: none relevant, one, some or all."""
    grades = np.zeros(length)
    match rng.integers(4):
        case 0:
            grades[rng.integers(length)] = _GRADES - 1
        case 1:
            grades[rng.random(length) < 0.5] = _GRADES - 1
        case 2:
            grades = rng.integers(_GRADES, size=length).astype(np.float64)
    return grades


def _other(rng: np.random.Generator, old: List, public: bool) -> List:
    """Another list: other grades, and other documents where these are private."""
    X, y = old
    if public:
        changed = y.copy()
        changed[rng.integers(len(y))] = rng.integers(_GRADES)
        return X, changed if rng.random() < 0.7 else _grades(rng, len(y))
    if rng.random() < 0.3:
        X = _random_list(rng, int(rng.integers(1, 9)))[0]
        return X, _grades(rng, len(X))
    return X + rng.choice([0.03, 0.3, 3.0]) * rng.normal(size=X.shape), _grades(rng, len(y))


def list_ratio(
    relation: Relation, example: ListExample, seed: int = 0, starts: int = 6, climbs: int = 60
) -> float:
    """The largest distance between answers on neighbours that a search found, over the
    sensitivity.

    Parameters
    ----------
    relation : Relation
    example : ListExample
    seed, starts, climbs : int

    Returns
    -------
    float
        Above 1, the proof or the code is wrong.
    """
    rng, query = np.random.default_rng(seed), example.make(example.problem)
    public, bound = labels_only(relation), query.sensitivity(relation)
    weight = np.ones(query.size) if query.doubled is None else np.where(query.doubled, 2.0, 1.0)

    def answer(own: list[List]) -> Vector:
        lists = list(example.lists)
        for place, one in zip(example.replaced, own, strict=True):
            lists[place] = one
        return np.asarray(query(example.source(lists), None))

    def ratio(pair: list[list[List]]) -> float:
        other = pair[1]
        if not exchanges(relation):  # the null list: equal documents contribute nothing
            other = [(np.zeros((1, _COLUMNS)), np.zeros(1)) for _ in example.replaced]
        gap = answer(pair[0]) - answer(other)
        return math.sqrt(float(weight @ gap**2)) / float(bound)

    worst = 0.0
    for _ in range(starts):
        pair = [
            [_other(rng, example.lists[place], public) for place in example.replaced]
            for _ in range(2)
        ]
        found = ratio(pair)
        for _ in range(climbs):
            proposal = [[_other(rng, one, public) for one in side] for side in pair]
            keep = rng.integers(3)  # move one side, the other, or both
            proposal = [
                pair[0] if keep == 0 else proposal[0],
                pair[1] if keep == 1 else proposal[1],
            ]
            value = ratio(proposal)
            if value > found:
                pair, found = proposal, value
        worst = max(worst, found)
    return worst


def check_list_sensitivity(name: str, seed: int = 0) -> Finding:
    """Check the sensitivity of a query over lists, by `list_ratio`.

    Parameters
    ----------
    name : str
        Of `list_examples`.
    seed : int, default=0

    Returns
    -------
    Finding
    """
    relation, example = list_examples(seed)[name]
    ratio = list_ratio(relation, example, seed)
    return Finding(
        f"sensitivity of {name}",
        ratio <= 1 + _ROUNDING,
        f"neighbours reach {ratio:.4f} of the sensitivity",
    )


def check_list_batches(name: str, seed: int = 0) -> Finding:
    """Check that a list adds the same to every batch, whatever else is in it.

    Parameters
    ----------
    name : str
        Of `list_examples`, a query that may be sampled.
    seed : int, default=0

    Returns
    -------
    Finding
    """
    relation, example = list_examples(seed)[name]
    query = example.make(example.problem)
    source, rng = example.source(example.lists), np.random.default_rng(seed)
    alone = [query(source, np.array([unit])) for unit in range(source.n_units)]
    worst = 0.0
    for _ in range(8):
        batch = np.flatnonzero(rng.random(source.n_units) < 0.5)
        total = sum((alone[unit] for unit in batch), np.zeros(query.size))
        gap = float(np.linalg.norm(query(source, batch) - total))
        worst = max(worst, gap / query.sensitivity(relation))
    return Finding(
        f"batches of {name}",
        worst <= _ROUNDING,
        f"a batch differs from the sum of its lists by {worst:.2g} of the sensitivity",
    )


def check_label_batch_price() -> Finding:
    """Check that a sampled release is priced for replaced grades, which move a list between two
    opposite contributions.

    Returns
    -------
    Finding
    """
    rate, multiplier, epsilon = 0.1, 0.8, 0.5
    _, example = list_examples()["BayesRank, simplex, top 1"]
    query = example.make(example.problem)
    x = np.linspace(-12, 12, 200_001)
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    half = query.radius() / (multiplier * query.sensitivity(Relation.LABEL))
    shift = np.exp(half * x - half**2 / 2), np.exp(-half * x - half**2 / 2)
    one, other = (density * (1 - rate + rate * ratio) for ratio in shift)
    step = x[1] - x[0]
    true = float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum() * step)
    claimed = delta_of(PoissonGaussianCost(multiplier, rate), epsilon, Relation.LABEL)
    return Finding(
        "price of sampled grades",
        claimed >= true * (1 - 1e-3) and claimed <= float(ndtr(0.0)),
        f"claimed delta {claimed:.5g}, of the worst pair {true:.5g}",
    )


def opposite_grades(seed: int = 0) -> tuple[Any, tuple[RankedLists, RankedLists]]:
    """A clipped grade statistic, and two tables of grades of one list that move it furthest among
    those with one relevant document.

    Parameters
    ----------
    seed : int, default=0

    Returns
    -------
    query : ListStatistic
    tables : pair of RankedLists
    """
    _, example = list_examples(seed)["grade statistic, clipped"]
    query = example.make(example.problem)
    sources = []
    for relevant in range(_LENGTHS[0]):
        lists = list(example.lists)
        X, y = lists[0]
        lists[0] = X, np.where(np.arange(len(y)) == relevant, 4.0, 0.0)
        sources.append(example.source(lists))
    answers = np.array([query(source, None) for source in sources])
    gaps = np.linalg.norm(answers[:, None] - answers[None], axis=2)
    first, second = np.unravel_index(gaps.argmax(), gaps.shape)
    return query, (sources[int(first)], sources[int(second)])


def check_ndcg_grows(seed: int = 0) -> Finding:
    """Check that a small step against the released gradient raises the expected NDCG.

    Parameters
    ----------
    seed : int, default=0

    Returns
    -------
    Finding
    """
    _, example = list_examples(seed)["BayesRank, all, top 1"]
    query = example.make(example.problem)
    source = example.source(example.lists)
    direction = query(source, None)
    before = _expected_utility(example.lists, query.weights)
    after = _expected_utility(example.lists, query.weights - 1e-4 * direction)
    return Finding(
        "direction of BayesRank", after > before, f"expected NDCG {before:.6f}, then {after:.6f}"
    )


def _expected_utility(lists: list[List], theta: Vector) -> float:
    total = 0.0
    for X, y in lists:
        scores, gains = (X - X.mean(axis=0)) @ theta, 2.0**y - 1
        p = np.exp(scores - scores.max())
        total += float(p @ gains / p.sum() / gains.max()) if gains.max() > 0 else 0.0
    return total


def sampled_list_examples() -> Iterator[str]:
    """Names of the examples whose queries may be sampled."""
    for name, (_, example) in list_examples().items():
        if example.make(example.problem).sampled:
            yield name
