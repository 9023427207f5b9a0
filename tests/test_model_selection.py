"""The best of a random number of trials: its cost against exact distributions, and a search.

False alarms: each statistical check rejects at 1e-6 and there are 6 of them.
"""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import integrate, stats
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import Pipeline

from _support import RELATIONS, curator_over, source_of
from hushfit import Ledger, PrivateLogisticRegression
from hushfit.audit.checks.boundary import recorded_boundary
from hushfit.data import SeededCoins, persons_of
from hushfit.errors import (
    BudgetExceeded,
    InvalidArgument,
    PrivacyLeakWarning,
    TooFewRows,
    UndeclaredRelease,
    UnknownName,
)
from hushfit.model_selection import (
    HeldApart,
    PrivateSearchCV,
    TrialAccount,
    Trials,
    _trials,
    best_of,
    listed,
    scorer_from,
    split,
    uniform_below,
)
from hushfit.preprocessing import BoundedScaler, PrivatePipeline, PrivateQuantileScaler
from hushfit.privacy import (
    RENYI_ORDERS,
    ApproximateCost,
    Budget,
    GaussianCost,
    PureCost,
    RdpCost,
    Relation,
    SecureSampler,
    ThresholdedGaussianCost,
    compose,
    delta_of,
    epsilon_of,
    rdp_curve,
)
from hushfit.privacy.accounting._random_stopping import (
    Geometric,
    Logarithmic,
    TruncatedPoisson,
    best_of_many,
    dearest,
    stopping_rule,
)
from hushfit.release import Plan, Planned, TotalScore
from hushfit.unit import AccountUnit, PrivacyUnit

LEVEL = 1e-6
REPLACE = Relation.REPLACE_ONE
RULES = [
    Geometric(4.0),
    Geometric(30.0),
    Logarithmic(5.0),
    TruncatedPoisson(6.0),
    TruncatedPoisson(1.5),
]
over_rules = pytest.mark.parametrize("rule", RULES, ids=repr)
ORDERS = np.array(RENYI_ORDERS)


def law(rule, most=1500):
    """P(K = 1), P(K = 2), ..."""
    return np.array([float(p) for p in itertools.islice(rule.probabilities(), most)])


# The number of trials


@over_rules
def test_the_law_of_the_number_of_trials_has_its_mean_and_slope(rule):
    """The slope of the generating function, by its definition: the sum of k P(k) q^(k-1)."""
    p = law(rule)
    k = np.arange(1, len(p) + 1)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert p @ k == pytest.approx(rule.mean, rel=1e-9)
    for q in (0.0, 0.3, 0.9, 1.0):
        assert math.exp(rule.log_slope(np.array([q]))[0]) == pytest.approx(
            p @ (k * q ** (k - 1.0)), rel=1e-9
        )


@over_rules
def test_numbers_of_trials_are_drawn_from_their_law(rule):
    coins = SeededCoins(1)
    drawn = np.bincount([rule.draw(coins.words) for _ in range(3000)])[1:]
    p = law(rule)
    cells = max(np.searchsorted(np.cumsum(p), 0.98), 1)
    observed = np.append(drawn[:cells], drawn[cells:].sum())
    expected = 3000 * np.append(p[:cells], 1 - p[:cells].sum())
    assert stats.chisquare(observed, expected).pvalue > LEVEL


@over_rules
def test_a_draw_is_the_inverse_of_the_law_to_the_last_bit_that_matters(rule):
    below = int(float(law(rule)[0]) * 2**64 * (1 - 1e-12))

    def words(value):
        return lambda count: np.array([value] + [0] * (count - 1), dtype=np.uint64)

    assert rule.draw(words(0)) == 1
    assert rule.draw(words(below)) == 1
    assert rule.draw(words(int(below * (1 + 1e-11)))) == 2
    assert rule.draw(words(2**64 - 1)) > rule.mean


# The cost of the best of them


def renyi(p, q, order):
    """Divergence of two distributions on finitely many outcomes."""
    with np.errstate(divide="ignore"):
        terms = order * np.log(p) + (1 - order) * np.log(q)
    top = terms.max()
    return (top + math.log(np.exp(terms - top).sum())) / (order - 1)


def best_law(rule, p):
    """Exact distribution of the best of K independent outcomes, in increasing order of score."""
    number = law(rule)
    k = np.arange(1, len(number) + 1)
    up_to = np.concatenate([[0.0], np.cumsum(p)])
    up_to[-1] = 1.0
    return np.diff([number @ x**k for x in up_to])


def worst_curve(p, q):
    values = [max(renyi(p, q, order), renyi(q, p, order), 0.0) for order in ORDERS]
    return RdpCost(RENYI_ORDERS, tuple(values))


def discrete_pairs():
    rng = np.random.default_rng(3)
    for size in (2, 3, 6):
        for spread in (0.1, 1.0):
            p = rng.dirichlet(np.ones(size)) + 1e-3
            q = p * np.exp(spread * rng.uniform(-1, 1, size))
            yield p / p.sum(), q / q.sum()
    # A good outcome that one record makes more likely: the case that selection amplifies.
    yield np.array([0.99, 0.01]), np.array([0.97, 0.03])


@over_rules
def test_the_exact_divergence_of_the_best_is_covered_and_that_of_one_trial_is_not(rule):
    """Best of K over a few outcomes, enumerated; the cost of one trial is exceeded for every
    rule.
    """
    naive_fails = 0
    for p, q in discrete_pairs():
        one = worst_curve(p, q)
        claimed = rdp_curve(best_of_many(one, rule, REPLACE), ORDERS, REPLACE)
        best_p, best_q = best_law(rule, p), best_law(rule, q)
        for order, bound, single in zip(ORDERS[::7], claimed[::7], one.values[::7], strict=True):
            exact = max(renyi(best_p, best_q, order), renyi(best_q, best_p, order))
            assert exact <= bound + 1e-9
            naive_fails += exact > single * 1.01 + 1e-9
    assert naive_fails > 0


def gaussian_best(rule, mu, at):
    """Density of the best of K scores N(mu, 1): one trial's, reweighed."""
    return stats.norm.pdf(at, mu) * np.exp(rule.log_slope(stats.norm.cdf(at, mu)))


@over_rules
@pytest.mark.parametrize("mu", [0.1, 0.8])
def test_gaussian_trials_by_quadrature(rule, mu):
    """Scores N(mu, 1) against N(0, 1): the bound holds at all orders, the cost of one trial does
    not.
    """
    x = np.linspace(-9, 9 + mu, 40_001)
    p, q = gaussian_best(rule, mu, x), gaussian_best(rule, 0.0, x)
    assert integrate.trapezoid(p, x) == pytest.approx(1, abs=1e-8)
    claimed = rdp_curve(best_of_many(GaussianCost(1 / mu), rule, REPLACE), ORDERS, REPLACE)
    exceeded = 0
    for order in (1.5, 2.0, 4.0, 8.0):
        bound = float(np.interp(order, ORDERS, claimed))
        for first, second in ((p, q), (q, p)):
            moment = integrate.trapezoid(
                np.exp(order * np.log(first) + (1 - order) * np.log(second)), x
            )
            exact = math.log(moment) / (order - 1)
            assert exact <= bound
            exceeded += exact > order * mu**2 / 2 * 1.01
    assert exceeded > 0


@over_rules
def test_no_order_of_the_outcomes_breaks_the_bound(rule):
    """Scores need not follow the likelihood: hill climbing over all orders of 20 outcomes."""
    rng, mu, at = np.random.default_rng(8), 0.5, 40
    cells = np.concatenate([[-np.inf], np.linspace(-3, 3.5, 19), [np.inf]])
    p, q = np.diff(stats.norm.cdf(cells, mu)), np.diff(stats.norm.cdf(cells))
    bound = best_of_many(GaussianCost(1 / mu), rule, REPLACE).values[at]

    def apart(order):
        return renyi(best_law(rule, p[order]), best_law(rule, q[order]), ORDERS[at])

    best = np.argsort(p / q)
    worst = apart(best)
    for _ in range(60):
        order = best.copy()
        i, j = rng.integers(20, size=2)
        order[[i, j]] = order[[j, i]]
        if apart(order) > worst:
            best, worst = order, apart(order)
    assert 0.5 * bound < worst <= bound


@over_rules
def test_the_stated_epsilon_covers_the_exact_delta_and_that_of_one_trial_does_not(rule):
    mu, delta = 0.5, 1e-6
    x = np.linspace(-9, 9 + mu, 200_001)
    p, q = gaussian_best(rule, mu, x), gaussian_best(rule, 0.0, x)

    def exact(epsilon):
        return max(
            integrate.trapezoid(np.maximum(a - math.exp(epsilon) * b, 0), x)
            for a, b in ((p, q), (q, p))
        )

    assert (
        exact(epsilon_of(best_of_many(GaussianCost(1 / mu), rule, REPLACE), delta, REPLACE))
        <= delta
    )
    assert exact(epsilon_of(GaussianCost(1 / mu), delta, REPLACE)) > delta


@pytest.mark.parametrize(
    ("rule", "shape"),
    [(Geometric(10.0), 1), (Logarithmic(10.0), 0)],
    ids=["geometric", "logarithmic"],
)
@pytest.mark.parametrize("mu", [0.05, 0.2, 1.0])
def test_the_bound_is_no_worse_than_the_published_one(rule, shape, mu):
    """Papernot and Steinke (2022), Theorem 2, minimised over its free order; the generic form
    from the curve alone as well.
    """
    curve = ORDERS * mu**2 / 2
    growth = np.min((1 - 1 / ORDERS) * curve + math.log(1 / rule.stop) / ORDERS)
    published = curve + math.log(rule.mean) / (ORDERS - 1) + (1 + shape) * growth
    table = RdpCost(RENYI_ORDERS, tuple(curve.tolist()))
    ours, generic = (
        np.array(best_of_many(one, rule, REPLACE).values) for one in (GaussianCost(1 / mu), table)
    )
    assert (ours <= generic * (1 + 1e-9)).all()
    assert (generic <= published * (1 + 0.01)).all()
    assert ours[50] < 0.95 * published[50]


def test_more_trials_cost_more_and_a_single_one_costs_what_it_does_alone():
    one = GaussianCost(5.0)
    at = [
        epsilon_of(best_of_many(one, Geometric(mean), REPLACE), 1e-6, REPLACE)
        for mean in (1.0001, 2, 5, 20, 100)
    ]
    assert at == sorted(at)
    assert at[0] == pytest.approx(
        epsilon_of(RdpCost.from_curve(lambda a: a * 0.02), 1e-6, REPLACE), rel=0.01
    )


def test_a_pure_trial_is_about_three_times_as_dear_however_many_there_are():
    """Known for a geometric number of pure trials: 3 epsilon, approached at high orders."""
    cost = best_of_many(PureCost(0.1), Geometric(300.0), REPLACE)
    assert 0.25 < cost.values[-1] < 0.32


LOST = 0.004


@over_rules
def test_a_promise_that_one_trial_may_lose_any_of_them_may(rule):
    """With probability ``LOST`` a trial reveals its table and wins.

    Enumerated; without the growth of the failure probability the claim is wrong.
    """
    for p, q in discrete_pairs():
        one = compose([worst_curve(p, q), ApproximateCost(0.0, LOST)])
        claimed = best_of_many(one, rule, REPLACE)
        best_p, best_q = (
            best_law(rule, np.append((1 - LOST) * kind, revealed))
            for kind, revealed in ((p, [LOST, 0]), (q, [0, LOST]))
        )
        for epsilon in (0.0, 0.3, 1.0, 3.0, 12.0):
            exact = max(
                np.maximum(a - math.exp(epsilon) * b, 0).sum()
                for a, b in ((best_p, best_q), (best_q, best_p))
            )
            assert exact <= delta_of(claimed, epsilon, REPLACE) + 1e-12
        kept, failing = claimed.parts
        # The curve holds given that no trial failed: the number of trials then has another
        # distribution.
        number = law(rule)
        tilted = number * (1 - LOST) ** np.arange(1, len(number) + 1)
        given = [
            np.diff([tilted @ x ** np.arange(1, len(number) + 1) for x in ends]) / tilted.sum()
            for ends in map(up_to, (p, q))
        ]
        assert all(
            renyi(*given, order) <= bound + 1e-9
            for order, bound in zip(ORDERS[::9], kept.values[::9], strict=True)
        )
        assert failing == ApproximateCost(0.0, rule.mean * LOST)
        # Distinguished with certainty, far more often than by one trial.
        assert exact > max(delta_of(kept, epsilon, REPLACE), 1.2 * LOST)


def up_to(p):
    return np.minimum(np.concatenate([[0.0], np.cumsum(p)]), 1.0)


@pytest.mark.parametrize(
    "one",
    [ApproximateCost(0.5, 1e-3), ThresholdedGaussianCost(3.0, 1e-3)],
    ids=["approximate", "thresholded"],
)
def test_every_lossy_trial_is_charged_for_what_it_may_lose(one):
    """At an epsilon that no curve reaches, only the probability that some trial fails remains."""
    top = dearest([GaussianCost(9.0), one, PureCost(0.1)], REPLACE)
    assert delta_of(top, 50.0, REPLACE) >= 1e-3
    assert delta_of(best_of_many(top, Geometric(10.0), REPLACE), 50.0, REPLACE) >= 10 * 1e-3 * (
        1 - 1e-9
    )
    with pytest.raises(InvalidArgument, match="gives no privacy"):
        best_of_many(ApproximateCost(0.5, 0.2), Geometric(10.0), REPLACE)


@pytest.mark.parametrize("mean", [1.0, 0.5, 301, math.nan, math.inf])
def test_a_mean_must_leave_room_for_chance(mean):
    with pytest.raises(InvalidArgument, match="expected trials"):
        stopping_rule("geometric", mean)


def test_unknown_laws_are_refused():
    with pytest.raises(UnknownName, match="'poisson'"):
        stopping_rule("fixed", 10)


# The score of a trial


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_no_score_moves_the_total_by_more_than_one(relation):
    rng = np.random.default_rng(0)
    query, apart = TotalScore(), []
    for score in [0.0, 1.0, 7.0, -3.0, np.nan, np.inf, -np.inf, *rng.random(50)]:
        scores = rng.random(20)
        other = scores.copy()
        other[0], scores[0] = score, 1.0 if relation is Relation.REPLACE_ONE else 0.0
        one, two = (query(source_of(np.zeros((20, 1)), s), None)[0] for s in (scores, other))
        apart.append(abs(one - two))
    assert max(apart) == query.sensitivity(relation) == 1


def test_score_noise_is_the_multiplier():
    plan = Plan((Planned("score", TotalScore, 1000),))
    curator = curator_over(
        source_of(np.zeros((5, 1)), np.zeros(5)), plan, 4.0, sampler=SecureSampler()
    )
    noise = np.array([curator.release("score", TotalScore())[0] for _ in range(1000)])
    low, high = stats.chi2.ppf([LEVEL / 2, 1 - LEVEL / 2], 1000)
    assert low <= (noise**2).sum() / 16 <= high
    assert not low <= (noise**2).sum() / 64 <= high


def test_scores_are_of_each_row_alone():
    class Model:
        classes_ = np.array(["a", "b"])

        def predict(self, X):
            return np.array(["a", "b", "b"])

        def predict_proba(self, X):
            return np.array([[0.8, 0.2], [0.5, 0.5], [0.1, 0.9]])

    y = np.array(["a", "a", "b"])
    np.testing.assert_array_equal(scorer_from("accuracy")(Model(), None, y), [1, 0, 1])
    np.testing.assert_allclose(scorer_from("brier")(Model(), None, y), [0.96, 0.75, 0.99])
    np.testing.assert_array_equal(
        scorer_from(lambda model, X, y: y == "b")(Model(), None, y), [0, 0, 1]
    )
    with pytest.raises(InvalidArgument, match="roc_auc"):
        scorer_from("roc_auc")


@pytest.mark.parametrize("label", ["c", "", "B", None, math.nan, 7], ids=repr)
def test_a_label_outside_the_classes_scores_nothing_and_raises_nothing(label):
    class Model:
        classes_ = np.array(["a", "b"])

        def predict_proba(self, X):
            return np.array([[0.8, 0.2], [0.5, 0.5]])

    y = np.array(["a", label], dtype=object)
    np.testing.assert_allclose(scorer_from("brier")(Model(), None, y), [0.96, 0.0])


@pytest.mark.parametrize("odd", ["c", None, math.nan, 10**400, {}, ["a", "b"]], ids=repr)
@pytest.mark.parametrize("scoring", ["accuracy", "brier"])
def test_an_odd_label_changes_the_score_of_its_own_row_alone(scoring, odd):
    """numpy would make texts of all numbers in a list if one label is a text."""

    class Model:
        classes_ = np.array([0, 1])

        def predict(self, X):
            return np.array([0, 1, 1, 0])

        def predict_proba(self, X):
            return np.array([[0.8, 0.2], [0.5, 0.5], [0.1, 0.9], [0.7, 0.3]])

    scores = scorer_from(scoring)
    ordinary = scores(Model(), None, np.array([0, 1, 1, 0]))
    found = scores(Model(), None, np.array([0, odd, 1, 0], dtype=object))
    assert found[1] == 0 < ordinary[1]
    np.testing.assert_array_equal(np.delete(found, 1), np.delete(ordinary, 1))


# The search


def rows(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    margin = X @ [2.0, -1.0, 0.5, 0.0]
    return X, (margin > rng.normal(size=n)).astype(int)


MODEL = PrivateLogisticRegression(penalty="l2", solver="proximal-gd", classes=[0, 1])
GRID = {"alpha": [1e-4, 1e-2, 10.0]}


def search(**settings):
    return PrivateSearchCV(
        clone(MODEL), GRID, **{"expected_trials": 3, "delta": 1e-4, "random_state": 0, **settings}
    )


@pytest.mark.usefixtures("quiet_fits")
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize("stopping", ["geometric", "logarithmic", "poisson"])
def test_a_search_has_one_guarantee_within_its_budget(stopping, relation):
    X, y = rows()
    ledger = Ledger(2.0, 1e-4, adjacency=str(relation))
    found = search(stopping=stopping, adjacency=str(relation), ledger=ledger).fit(X, y)
    assert ledger.total_cost == found.guarantee_.cost
    assert [entry.label for entry in ledger.entries] == ["PrivateSearchCV"]
    assert 0.98 < epsilon_of(found.guarantee_.cost, 1e-4, relation) <= 1.0
    assert found.best_estimator_.privacy_ is found.guarantee_ is found.privacy_
    assert found.best_params_ == found.candidates_[found.best_index_]
    assert found.best_estimator_.alpha == found.best_params_["alpha"]
    assert found.best_estimator_.ledger is None
    assert "the classes, given by the caller" in found.guarantee_.public
    assert is_classifier(found)
    assert found.predict_proba(X).shape == (600, 2)
    np.testing.assert_array_equal(found.predict(X), found.best_estimator_.predict(X))


@pytest.mark.usefixtures("quiet_fits")
def test_a_search_that_is_refused_promises_nothing_new():
    """What was found before, and its guarantee, stay together."""
    X, y = rows()
    found = search(epsilon=5.0).fit(X, y)
    before, model = found.guarantee_, found.best_estimator_
    with pytest.raises(BudgetExceeded):
        found.set_params(epsilon=0.1, candidates={"alpha": [1.0]}, ledger=Ledger(0.01, 1e-4)).fit(
            X, y
        )
    assert found.guarantee_ is found.privacy_ is before
    assert found.best_estimator_ is model
    assert found.best_params_ == found.candidates_[found.best_index_]


@pytest.mark.usefixtures("quiet_fits")
def test_a_little_more_strength_is_over_the_budget():
    X, y = rows()
    trials, budget = (
        Trials(MODEL, listed(GRID, 0, SeededCoins(0)), 1e-4, REPLACE),
        Budget(1.0, 1e-4),
    )
    for rule in RULES:
        settled = trials.settled(budget, rule, X, y)
        stronger = 1.01 * settled.strength
        assert delta_of(settled.cost, 1.0, REPLACE) <= 1e-4
        assert (
            delta_of(
                best_of_many(trials.one(stronger, trials.prices(stronger, X, y)), rule, REPLACE),
                1.0,
                REPLACE,
            )
            > 1e-4
        )


@pytest.mark.usefixtures("quiet_fits")
@pytest.mark.parametrize("solver", ["proximal-gd", "auto", "ss-admm", "objective"])
def test_a_trial_pays_what_it_was_priced_at(solver):
    """A quote makes no release, and the trial that runs pays the same."""
    X, y = rows(200)
    trials = Trials(clone(MODEL).set_params(solver=solver, alpha=0.1), [{}], 1e-4, REPLACE)
    price = trials.price(0, 0.3, X, y)
    account = TrialAccount(REPLACE, 1e-4, price)
    model = trials.candidate(0, 0.3, 5, account).fit(X, y)
    assert account.costs == [price] == [model.privacy_.cost]
    # Equal to the curve that the search accounts with, at every order.
    assert (
        rdp_curve(price, ORDERS, REPLACE)
        <= rdp_curve(trials.one(0.3, (price,)), ORDERS, REPLACE) * (1 + 1e-12)
    ).all()


@pytest.mark.parametrize("again", [True, False], ids=["twice", "another price"])
def test_a_trial_pays_once_and_what_it_was_priced_at(again):
    account = TrialAccount(REPLACE, 1e-4, GaussianCost(3.0))
    ledger = Ledger.over(account)
    if again:
        ledger.charge(GaussianCost(3.0), "fit", REPLACE)
    with pytest.raises(UndeclaredRelease, match="Nothing was released"):
        ledger.charge(GaussianCost(3.0 if again else 4.0), "fit", REPLACE)
    assert account.costs == [GaussianCost(3.0)] * again


class MayFail(BaseEstimator):
    """Learns nothing, and pays for a release whose failure probability is nearly all of its
    delta.
    """

    def __init__(
        self, epsilon=1.0, delta=1e-6, adjacency="replace-one", ledger=None, random_state=None
    ):
        self.epsilon, self.delta, self.adjacency, self.ledger, self.random_state = (
            epsilon,
            delta,
            adjacency,
            ledger,
            random_state,
        )

    def quote(self, n_units, n_features):
        return SimpleNamespace(cost=ApproximateCost(self.epsilon, 0.9 * self.delta))

    def fit(self, X, y):
        self.ledger.charge(self.quote(*X.shape).cost, "may fail", self.adjacency)
        return self


def test_a_search_over_trials_that_may_fail_pays_for_all_that_may():
    """Failure probabilities of trials add up, so each trial gets a small delta."""
    X, y = rows(20)
    rule, budget = Geometric(8.0), Budget(1.0, 1e-3)
    settled = Trials(MayFail(), [{}], 1e-3, REPLACE).settled(budget, rule, X, y)
    (price,) = settled.prices
    assert 0 < rule.mean * price.delta <= 0.5e-3
    assert delta_of(settled.cost, 50.0, REPLACE) >= rule.mean * price.delta * (1 - 1e-9)
    assert 0.9e-3 < delta_of(settled.cost, 1.0, REPLACE) <= 1e-3
    assert settled.fitted(0, X, y, 1).delta == settled.trials.delta < 1e-3


def test_the_dearest_of_several_costs_dominates_all():
    assert dearest(
        [GaussianCost(2.0), GaussianCost(3.0, 2), GaussianCost(1.5)], REPLACE
    ) == GaussianCost(1.5)
    mixed = [GaussianCost(2.0), PureCost(0.4)]
    top = rdp_curve(dearest(mixed, REPLACE), ORDERS, REPLACE)
    np.testing.assert_allclose(
        top, np.max([rdp_curve(cost, ORDERS, REPLACE) for cost in mixed], axis=0)
    )


@pytest.mark.usefixtures("quiet_fits")
def test_nothing_tells_how_many_trials_there_were(monkeypatch):
    """Two searches that differ in the number of trials leave the same attributes, of the same
    sizes.
    """
    X, y = rows(100)

    def traces(count):
        monkeypatch.setattr(Geometric, "draw", lambda self, words: count)
        found = search(delta=1e-3).fit(X, y)
        assert not hasattr(found, "cv_results_")
        return {
            name: len(value) if hasattr(value, "__len__") else type(value)
            for name, value in vars(found).items()
        }

    assert traces(1) == traces(9)


@pytest.mark.usefixtures("quiet_fits")
def test_nothing_printed_tells_how_many_trials_there_were(capfd):
    X, y = rows(100)
    talking = Pipeline(
        [("scale", BoundedScaler((-5, 5))), ("model", clone(MODEL).set_params(verbose=1))],
        verbose=True,
    )
    settings = {"expected_trials": 4, "delta": 1e-3, "random_state": 0}
    PrivateSearchCV(talking, {"model__alpha": [1e-2], "model__verbose": [2]}, **settings).fit(X, y)
    PrivateSearchCV(talking["model"], GRID, **settings).fit(X, y)
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("quiet_fits")
def test_parts_given_as_candidates_keep_nothing_of_the_trials():
    """A search with many trials fits both models many times; the objects of the caller are never
    fitted.
    """
    X, y = rows(100)
    models = [clone(MODEL), clone(MODEL).set_params(alpha=1.0)]
    pipeline = Pipeline([("scale", BoundedScaler((-5, 5))), ("model", MODEL)])
    found = PrivateSearchCV(
        pipeline,
        {"model": models},
        expected_trials=9,
        stopping="poisson",
        delta=1e-3,
        random_state=0,
    ).fit(X, y)
    assert all(
        setting["model"] is model for setting, model in zip(found.candidates_, models, strict=True)
    )
    assert not any(hasattr(model, "coef_") or model.ledger is not None for model in models)


def hits_of_ones(model, X, y):
    return (model.predict(X[y == 1]) == 1).astype(float)


@pytest.mark.usefixtures("quiet_fits")
@pytest.mark.parametrize(
    "scoring",
    [
        hits_of_ones,
        lambda model, X, y: 0.5,
        lambda model, X, y: np.ones((len(y), 1)),
        lambda model, X, y: [],
    ],
    ids=["some rows", "a mean", "a column", "nothing"],
)
def test_a_score_is_needed_for_every_record(scoring):
    with pytest.raises(InvalidArgument, match="each held-out row, in their order, and did not"):
        search(delta=1e-3, scoring=scoring).fit(*rows(100))


@pytest.mark.usefixtures("quiet_fits")
@pytest.mark.usefixtures("quiet_fits")
@pytest.mark.parametrize("odd", ["text", None, [1], 10**400], ids=repr)
@pytest.mark.parametrize("scoring", ["accuracy", "brier"])
def test_one_odd_label_in_a_list_moves_the_scores_by_one_at_most(scoring, odd, monkeypatch):
    """A search over models that do not depend on the rows, with the label of each row in turn."""
    X, y = rows(40)
    released, totals = _trials.released_score, []

    def noted(scores, *terms):
        totals.append(scores.sum())
        return released(scores, *terms)

    monkeypatch.setattr(_trials, "released_score", noted)

    def total_of(labels):
        del totals[:]
        with recorded_boundary(seal=True):
            search(delta=1e-3, scoring=scoring).fit(X, labels)
        return np.array(totals)

    ordinary = total_of(y.tolist())
    moves = [
        np.abs(total_of([*y[:row].tolist(), odd, *y[row + 1 :].tolist()]) - ordinary).max()
        for row in range(10)
    ]
    assert 0 < max(moves) <= 1 + 1e-12


def test_labels_in_two_columns_are_refused_before_payment():
    X, y = rows(100)
    ledger = Ledger(5.0, 1e-3)
    with pytest.raises(InvalidArgument, match="in one dimension"):
        search(delta=1e-3, ledger=ledger).fit(X, np.column_stack([y, y]))
    assert ledger.entries == ()


@pytest.mark.usefixtures("quiet_fits")
def test_a_search_finds_the_better_settings():
    """With many trials and little noise it takes the penalty that does not shrink all weights."""
    X, y = rows(2000)
    found = search(expected_trials=20, stopping="poisson", epsilon=20.0, ledger=None).fit(X, y)
    assert found.best_params_["alpha"] < 1
    assert abs(found.best_score_ - found.best_estimator_.score(X, y)) < 0.06
    assert found.score(X, y) > 0.8


@pytest.mark.usefixtures("quiet_fits")
def test_without_privacy_the_search_says_so():
    found = search(epsilon=math.inf).fit(*rows(100))
    assert found.guarantee_.nonprivate


@pytest.mark.usefixtures("quiet_fits")
def test_a_search_is_refused_before_it_pays_or_by_the_one_who_would():
    X, y = rows(100)
    ledger = Ledger(0.5, 1e-3)
    with pytest.raises(BudgetExceeded):
        search(delta=1e-3, ledger=ledger).fit(X, y)
    for wrong in (
        {"holdout": 0.0},
        {"stopping": "never"},
        {"scoring": "f1"},
        {"candidates": []},
        {"candidates": 3},
        {"ledger": 1},
    ):
        with pytest.raises(InvalidArgument):
            search(ledger=ledger).set_params(**wrong).fit(X, y)
    with pytest.raises(TooFewRows):
        search(ledger=ledger).fit(X[:2], y[:2])
    with pytest.raises(ValueError, match="gamma"):
        search(ledger=ledger).set_params(candidates={"gamma": [1]}).fit(X, y)
    assert ledger.entries == ()


@pytest.mark.usefixtures("quiet_fits")
def test_a_pipeline_with_one_paying_part_can_be_searched_and_with_two_it_cannot():
    X, y = rows(200)
    free = Pipeline([("scale", BoundedScaler((-5, 5))), ("model", MODEL)])
    settings = {"expected_trials": 2, "delta": 1e-3, "random_state": 1}
    found = PrivateSearchCV(free, {"model__alpha": [1e-3, 1e-1]}, **settings).fit(X, y)
    assert found.best_estimator_.named_steps["model"].privacy_ is found.guarantee_
    assert found.n_features_in_ == 4
    twice = Pipeline([("scale", PrivateQuantileScaler()), ("model", MODEL)])
    with pytest.raises(InvalidArgument, match="2 parts that spend"):
        PrivateSearchCV(twice, {"model__alpha": [1.0]}).fit(X, y)
    with pytest.raises(InvalidArgument, match="PrivatePipeline divides"):
        PrivateSearchCV(PrivatePipeline(twice.steps), {"model__alpha": [1.0]}).fit(X, y)


TWICE = PrivatePipeline([("scale", PrivateQuantileScaler()), ("model", MODEL)])
FREE = Pipeline([("scale", BoundedScaler((-5, 5))), ("model", MODEL)])
BY_ROWS = ColumnTransformer([("some", BoundedScaler((-5, 5)), make_column_selector())])


@pytest.mark.usefixtures("quiet_fits")
@pytest.mark.parametrize(
    ("estimator", "candidates", "message"),
    [
        (Pipeline([("inner", TWICE)]), {"inner__model__alpha": [1.0]}, "PrivatePipeline divides"),
        (FREE, {"model": [MODEL, TWICE]}, "PrivatePipeline divides"),
        (FREE, {"scale": [BoundedScaler((-5, 5)), PrivateQuantileScaler()]}, "2 parts that spend"),
        (FREE, {"scale": ["passthrough", BY_ROWS]}, "chosen by a function"),
    ],
    ids=["nested", "nested candidate", "second payer", "columns by rows"],
)
def test_a_trial_that_would_pay_twice_or_decide_by_the_rows_is_refused_before_anything_is_paid(
    estimator, candidates, message
):
    ledger = Ledger(2.0, 1e-3)
    with pytest.raises(InvalidArgument, match=message):
        PrivateSearchCV(estimator, candidates, delta=1e-3, ledger=ledger).fit(*rows(100))
    assert ledger.entries == ()


def test_candidates_are_a_grid_several_grids_or_draws():
    coins = SeededCoins(0)
    assert listed({"a": [1, 2], "b": 3}, 5, coins) == [{"a": 1, "b": 3}, {"a": 2, "b": 3}]
    assert listed([{"a": [1]}, {"b": [2]}], 5, coins) == [{"a": 1}, {"b": 2}]
    drawn = listed({"a": loguniform(1, 10), "b": [7]}, 5, coins)
    assert len(drawn) == 5
    assert all(1 <= setting["a"] <= 10 and setting["b"] == 7 for setting in drawn)


def test_rows_are_split_by_coins_alone_and_each_serves_once():
    fitted_on, scored_on = split(100, 0.3, SeededCoins(1))
    assert len(scored_on) == 30
    np.testing.assert_array_equal(np.sort([*fitted_on, *scored_on]), np.arange(100))
    assert (split(100, 0.3, SeededCoins(2))[1] != scored_on).any()


def test_candidates_are_equally_likely():
    coins = SeededCoins(5)
    counts = np.bincount([uniform_below(3, coins) for _ in range(3000)], minlength=3)
    assert stats.chisquare(counts).pvalue > LEVEL


def test_of_equal_scores_the_first_wins():
    class T:
        def __init__(self, score):
            self.score = score

    made = [T(0.5), T(0.7), T(0.7), T(0.1)]
    feed = iter(made)
    assert best_of(lambda: next(feed), 4) is made[1]


def test_the_search_warns_of_classes_read_from_the_labels_before_it_pays():
    ledger = Ledger(2.0, 1e-4)
    with pytest.warns(PrivacyLeakWarning, match="classes=None"), pytest.raises(BudgetExceeded):
        search(ledger=ledger, epsilon=5.0, random_state=None).set_params(
            estimator__classes=None
        ).fit(*rows())
    assert ledger.entries == ()


def test_the_search_warns_once_of_a_weak_guarantee_and_of_seeds():
    with pytest.warns(UserWarning, match="reproducible|above 1/n") as caught:
        search(delta=0.05, expected_trials=5).fit(*rows(60))
    assert len(caught) == 2


# Persons


def visits(persons=120, most=5, seed=0):
    """Rows of persons, labels, and ids; the last column has the number of the person."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(np.repeat(np.arange(persons), rng.integers(1, most + 1, persons)))
    X = np.column_stack([rng.normal(size=(len(ids), 2)), ids / persons])
    return X, (X[:, 0] > 0.3 * rng.normal(size=len(ids))).astype(int), ids


@pytest.mark.parametrize("seed", range(5))
def test_a_person_is_held_out_with_all_rows_or_with_none(seed):
    _, _, ids = visits(seed=seed)
    persons = persons_of(ids, len(ids), PrivacyUnit.person("mean", 3))
    parts = [HeldApart.of(units, persons) for units in split(120, 0.3, SeededCoins(seed))]
    assert [part.persons.n_persons for part in parts] == [84, 36]
    assert not set(ids[parts[0].rows]) & set(ids[parts[1].rows])
    used = np.sort(np.concatenate([part.rows for part in parts]))
    np.testing.assert_array_equal(used, np.flatnonzero(persons.shares))
    for part in parts:
        assert sorted(set(part.persons.codes)) == list(range(part.persons.n_persons))
        assert part.persons.unit == persons.unit
        # The same rows are together, with the same weights.
        np.testing.assert_array_equal(part.persons.shares, persons.shares[part.rows])
        pairs = set(zip(part.persons.codes, ids[part.rows], strict=True))
        assert len(pairs) == part.persons.n_persons


@pytest.mark.usefixtures("quiet_fits")
def test_a_search_fits_and_scores_different_persons(monkeypatch):
    X, y, ids = visits()
    seen = []

    def watched(model, table, labels, persons):
        seen.append(("fit", set(table[:, -1]), persons.n_persons))
        return fitted_with(model, table, labels, persons)

    def scoring(model, table, labels):
        seen.append(("score", set(table[:, -1]), None))
        return model.predict(table) == labels

    fitted_with = _trials.fitted_with
    monkeypatch.setattr(_trials, "fitted_with", watched)
    found = search(epsilon=5.0, scoring=scoring).fit(X, y, groups=ids)
    fits, scores = ([part for part in seen if part[0] == kind] for kind in ("fit", "score"))
    assert len(fits) == len(scores) >= 1
    for (_, fitted, n_persons), (_, scored, _) in zip(fits, scores, strict=True):
        assert len(fitted) == n_persons == 96
        assert len(scored) == 24
        assert not fitted & scored
    assert found.privacy_.unit == found.best_estimator_.privacy_.unit == PrivacyUnit.person()
    assert found.privacy_.public[0] == "the number of persons, 120"
    assert "fitted on some persons and scored on the others, 0.2 of all" in " ".join(
        found.privacy_.notes
    )


@pytest.mark.usefixtures("quiet_fits")
@pytest.mark.parametrize("weight", [("mean", None), ("cap", 4)], ids=str)
def test_a_score_is_the_mean_over_persons_of_their_weighted_scores(weight):
    X, y, ids = visits()
    held = []

    def scoring(model, table, labels):
        held.append(table[:, -1])
        return table[:, -1] < 0.5

    found = search(epsilon=math.inf, scoring=scoring)
    found.estimator.set_params(person_weight=weight[0], rows_per_person=weight[1])
    found.fit(X, y, groups=ids)
    persons, counts = np.unique(held[0], return_counts=True)
    one = np.ones(len(persons)) if weight[0] == "mean" else counts / np.maximum(counts, 4)
    assert found.best_score_ == pytest.approx(
        np.sum(one * (persons < 0.5)) / len(persons), rel=1e-9
    )


@pytest.mark.usefixtures("quiet_fits")
def test_nothing_public_about_a_search_depends_on_the_number_of_rows():
    X, y, ids = visits()
    texts = [
        search(epsilon=5.0)
        .fit(np.repeat(X, k, axis=0), np.repeat(y, k), groups=np.repeat(ids, k))
        .privacy_.to_json()
        for k in (1, 3)
    ]
    assert texts[0] == texts[1]


@pytest.mark.usefixtures("quiet_fits")
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("piped", [False, True], ids=["model", "pipeline"])
def test_a_search_over_a_frame_leaves_the_column_of_ids_out(frame, piped):
    X, y, ids = visits()
    table = frame({"a": X[:, 0], "patient_id": ids, "b": X[:, 1]})
    ledger = Ledger(6.0, 1e-3, unit=AccountUnit("person", "patient_id"))
    found = search(epsilon=5.0, ledger=ledger)
    if piped:
        steps = [("scale", BoundedScaler((-3, 3))), ("model", clone(MODEL))]
        found.set_params(estimator=Pipeline(steps), candidates={"model__alpha": [1e-4, 1e-2]})
    found.fit(table, y, groups="patient_id")
    assert found.privacy_.unit.column == "patient_id"
    assert ledger.total_cost == found.privacy_.cost
    assert found.n_features_in_ == 2
    np.testing.assert_array_equal(found.predict(table), found.predict(table[["a", "b"]]))
    assert found.score(table, y) == found.score(table[["a", "b"]], y)


@pytest.mark.usefixtures("quiet_fits")
@pytest.mark.parametrize(
    ("groups", "settings", "message"),
    [
        (
            lambda ids: ids,
            {"candidates": {"rows_per_person": [None, 3]}},
            "would protect one person .* set person_weight and rows_per_person on the estimator",
        ),
        (lambda ids: ids[:-1], {}, "one id for each row"),
        (lambda ids: np.zeros(len(ids)), {}, "All ids"),
        (lambda ids: ids % 3, {"holdout": 0.9}, "holdout=0.9 of 3 persons leaves too few"),
        (lambda ids: None, {"candidates": {"rows_per_person": [3]}}, "no groups were given"),
        (lambda ids: ids, {"scoring": lambda model, X, y: y[:-1]}, None),
    ],
    ids=["other weights", "length", "all equal", "few", "no ids", "scores of some"],
)
def test_a_search_of_persons_is_refused_before_it_pays(groups, settings, message):
    X, y, ids = visits()
    ledger = Ledger(5.0, 1e-3)
    with pytest.raises((InvalidArgument, TooFewRows), match=message) as refused:
        search(ledger=ledger).set_params(**settings).fit(X, y, groups=groups(ids))
    if message is None:
        # Known only after a trial; the number of held-out rows is private.
        assert not any(character.isdigit() and character != "0" for character in str(refused.value))
    else:
        assert ledger.entries == ()
