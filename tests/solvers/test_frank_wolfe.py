"""Private choice of a vertex: the exponential mechanism, exactly; Frank-Wolfe with it.

The cost is checked against exact probabilities. False alarms: the distribution of the choice is
tested at level 1e-6, with fixed seeds.
"""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

from _support import (
    RELATIONS,
    curator_over,
    problem_for,
    records_of,
    source_of,
    table,
    three_classes,
    two_classes,
    without_noise,
)
from hushfit import PrivateLogisticRegression
from hushfit.data import SecureCoins, SeededCoins
from hushfit.errors import InvalidArgument, UndeclaredRelease
from hushfit.kernels.choice import choose
from hushfit.losses import HuberHinge, Logistic, OneVsRest, Softmax, Squared
from hushfit.penalties import L1, L1Ball, ScaledL2
from hushfit.privacy import (
    Budget,
    GaussianCost,
    PureCost,
    Relation,
    compose,
    cost_from_dict,
    delta_of,
    epsilon_of,
    rdp_curve,
)
from hushfit.privacy.costs._bounded_range_cost import BoundedRangeCost, bounded_range_profile
from hushfit.release import (
    ClippedGradient,
    FullBatch,
    NoisyCorner,
    Plan,
    Planned,
    SecondMoment,
    SteepestCorner,
    corner,
)
from hushfit.release.mechanisms._corner import _grid, _Stream
from hushfit.solvers import ExactMinimiser, FrankWolfe, solver_from

OPEN = Budget(math.inf, 1e-6)


# The choice


def draws(gaps, bits, count, seed=0):
    stream = _Stream(SeededCoins(seed))
    return np.bincount(
        [stream.choice(-np.asarray(gaps), bits) for _ in range(count)], minlength=len(gaps)
    )


def fits(counts, probabilities):
    """Chi-square test at level 1e-6."""
    expected = counts.sum() * probabilities
    return stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts) - 1) > 1e-6


@pytest.mark.parametrize("bits", [0, 1, 10, 31])
def test_the_choice_has_the_law_of_the_exponential_mechanism(bits):
    gaps = np.rint(np.array([0.0, 0.3, 1.0, 1.7, 2.6]) * 2**bits).astype(np.int64)
    law = np.exp(-gaps / 2**bits)
    counts = draws(gaps, bits, 20_000)
    assert fits(counts, law / law.sum())
    twice = np.exp(-2 * gaps / 2**bits)  # half the noise
    assert not fits(counts, twice / twice.sum())


def test_hopeless_candidates_are_never_chosen_and_cost_no_time():
    counts = draws(np.array([0, 2**62, 2**40]), 10, 300)
    assert counts.tolist() == [300, 0, 0]


@pytest.mark.parametrize("size", [3, 5, 64])
def test_how_many_words_come_at_once_changes_nothing(size):
    """The same bits, passed in pieces: the same choices."""
    words = SeededCoins(3).words(4000).view(np.uint32)
    gaps = np.array([0, 500, 1000, 1500, 20])
    at = np.zeros(1, np.int64)
    whole = [choose(words, at, gaps, 10) for _ in range(100)]
    pieces, at, have, taken = [], np.zeros(1, np.int64), np.empty(0, np.uint32), 0
    while len(pieces) < 100:
        index = choose(have, at, gaps, 10)
        if index >= 0:
            pieces.append(index)
            continue
        have, at[0] = np.concatenate([have[at[0] // 32 :], words[taken : taken + size]]), at[0] % 32
        taken += size
    assert pieces == whole
    assert len(set(whole)) > 2


@dataclass
class _Counted:
    """Random source that counts the words requested."""

    asked: list = field(default_factory=list)

    def words(self, count):
        self.asked.append(count)
        return SecureCoins().words(count)


def test_no_word_is_used_for_two_choices():
    coins = _Counted()
    stream = _Stream(coins)
    for _ in range(50):
        stream.choice(np.zeros(1000, np.int64), 5)
    used = 64 * sum(coins.asked) - (32 * len(stream._words) - stream._at[0])
    assert used >= 50 * 10  # ten bits for one of 1000


# The cost


def loss_range_pairs(eta, count, seed=0):
    """Distributions of exponential mechanisms on neighbours: privacy losses in a range of eta."""
    rng = np.random.default_rng(seed)
    for trial in range(count):
        size = int(rng.integers(2, 6))
        u = rng.normal(size=size) * rng.choice([0.1, 1.0, 5.0])
        change = rng.uniform(0, eta, size) if trial % 2 else rng.choice([0.0, eta], size)
        log_p, log_q = u - logsumexp(u), u + change - logsumexp(u + change)
        yield log_p, log_q


@pytest.mark.parametrize("eta", [0.01, 0.5, 3.0, 20.0])
def test_the_profile_is_the_worst_of_all_bounded_ranges(eta):
    """Never exceeded, and reached by two outcomes whose losses are eta apart."""
    epsilons = np.linspace(-1.2 * eta, 1.2 * eta, 41)
    bound = bounded_range_profile(epsilons, eta)
    for log_p, log_q in loss_range_pairs(eta, 300):
        true = np.maximum(np.exp(log_p) - np.exp(epsilons[:, None] + log_q), 0).sum(axis=1)
        assert np.all(true <= bound + 1e-12)
    inside = epsilons[np.abs(epsilons) < eta]
    t = (eta + inside) / 2
    likely = -np.expm1(t - eta) / -math.expm1(-eta)
    np.testing.assert_allclose(
        bounded_range_profile(inside, eta), likely * -np.expm1(inside - t), rtol=1e-9, atol=1e-14
    )
    gamma = np.exp(epsilons)
    slopes = np.diff(bound) / np.diff(gamma)
    assert np.all(np.diff(slopes) >= -1e-9 - 4e-16 / np.diff(gamma)[:-1])
    assert np.all(np.diff(bound) <= 1e-15)


@pytest.mark.parametrize("eta", [0.1, 1.0, 4.0])
def test_the_curve_bounds_the_divergence_of_every_bounded_range(eta):
    orders = np.array([1.1, 2.0, 5.0, 30.0])
    bound = BoundedRangeCost(2 / eta).curve(orders, Relation.REPLACE_ONE)
    worst = np.zeros(4)
    for log_p, log_q in loss_range_pairs(eta, 300):
        true = [logsumexp(a * log_p + (1 - a) * log_q) / (a - 1) for a in orders]
        worst = np.maximum(worst, true)
    assert np.all(worst <= bound + 1e-12)
    assert not np.all(worst <= bound / 2)


def test_many_choices_cost_about_as_much_as_gaussian_noise_and_less_than_pure_ones():
    one = BoundedRangeCost(20.0, count=400)
    epsilon = epsilon_of(one, 1e-6, Relation.REPLACE_ONE)
    gaussian = epsilon_of(GaussianCost(20.0, 400), 1e-6, Relation.REPLACE_ONE)
    assert epsilon <= 1.08 * gaussian
    assert epsilon < 0.5 * epsilon_of(PureCost(0.1, 400), 1e-6, Relation.REPLACE_ONE)
    assert (
        epsilon_of(BoundedRangeCost(20.0), 1e-12, Relation.REPLACE_ONE) <= 0.103
    )  # 0.1, and a grid cell
    assert delta_of(compose([one, GaussianCost(30.0)]), epsilon, Relation.REPLACE_ONE) > 1e-6
    assert rdp_curve(one, np.array([3.0]), Relation.ADD_REMOVE)[0] == pytest.approx(
        400 * 3 * 0.1**2 / 8
    )


def test_the_cost_is_read_back_and_counts():
    cost = BoundedRangeCost(3.0, count=2)
    assert cost_from_dict(cost.to_dict()) == cost
    assert compose([BoundedRangeCost(3.0)] * 2) == cost
    assert BoundedRangeCost(0.0).reveals_all
    assert epsilon_of(BoundedRangeCost(0.0), 1e-6, Relation.REPLACE_ONE) == math.inf


# The query

KINDS = {
    "logistic": (Logistic(), 1, True),
    "logistic, no intercept": (Logistic(), 1, False),
    "hinge": (HuberHinge(), 1, True),
    "squared": (Squared(2.0), 1, True),
    "softmax": (Softmax(3), 3, True),
    "one-vs-rest": (OneVsRest(HuberHinge(), 3), 3, False),
}


def query_for(n, kind, relation, clip=0.4, columns=3, tilt=None):
    loss, outputs, fit_intercept = KINDS[kind]
    problem = problem_for(np.empty((n, columns)), loss, outputs, relation, fit_intercept)
    w = np.random.default_rng(1).normal(size=problem.shape)
    return SteepestCorner(problem, w, clip, tilt)


def half_range(query, X, y, other, label, steps=2.0**30):
    """Half the range of the changes of utility over all answers, in units of the gradient."""
    tables = [(X, y), (np.vstack([other[None], X[1:]]), np.append(label, y[1:]))]
    fit_intercept = query.problem.fit_intercept
    utilities = [
        list(query.utilities(query.sums(source_of(*rows, fit_intercept)), steps)) for rows in tables
    ]
    return sum(np.ptp((a - b).astype(float)) / 2 for a, b in zip(*utilities, strict=True)) / steps


def some_label(query, rng):
    if query.problem.outputs > 1:
        return float(rng.integers(query.problem.outputs))
    return rng.normal() * 3 if isinstance(query.problem.loss, Squared) else rng.choice([-1.0, 1.0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_no_neighbour_changes_utilities_further_than_promised(kind, relation):
    query = query_for(4, kind, relation)
    rng = np.random.default_rng(0)
    bound, worst = query.sensitivity(relation), 0.0
    for trial in range(400):
        X = table(4, 3, seed=trial)
        X[0] = rng.normal(size=3) * 10 ** rng.uniform(-1, 2)
        if trial % 2:
            X[0] *= rng.random(3) < 0.4
        y = np.array([some_label(query, rng) for _ in range(4)])
        other = (
            np.full(3, np.nan)
            if relation is Relation.ADD_REMOVE
            else -X[0] * (rng.random() < 0.7) + 0.01 * rng.normal(size=3)
        )
        worst = max(worst, half_range(query, X, y, other, some_label(query, rng)))
    assert worst <= bound
    assert worst > bound / 2  # so half the noise would be too little


def test_a_record_on_one_column_reaches_the_bound():
    problem = problem_for(np.empty((1, 2)), HuberHinge(), fit_intercept=False)
    query = SteepestCorner(problem, np.zeros(2), 1.0)
    reached = half_range(query, np.array([[1.0, 0.0]]), np.array([1.0]), np.array([1.0, 0.0]), -1.0)
    assert reached == pytest.approx(query.sensitivity(Relation.REPLACE_ONE), rel=1e-6)


def test_the_exact_answer_is_the_steepest_corner():
    X, y = two_classes(100, 4)
    problem = problem_for(X)
    query = SteepestCorner(problem, np.array([0.3, -1.0, 0.2, 0.0, 0.5]), 10.0)
    g = Logistic().slope(records_of(X) @ query.w, y) @ records_of(X)
    best = int(np.abs(g[:4]).argmax())
    answer = query(source_of(X, y), None)
    assert answer.tolist() == [-np.sign(g[best]) * (best + 1), -np.sign(g[4])]
    expected = np.zeros(5)
    expected[best], expected[4] = -np.sign(g[best]), -np.sign(g[4])
    np.testing.assert_array_equal(corner(query, answer), expected)


def test_a_tilt_counts_like_a_gradient():
    X, y = two_classes(100, 4)
    problem = problem_for(X, fit_intercept=False)
    tilt = np.array([0.0, 0.0, 1e6, 0.0])
    query = SteepestCorner(problem, np.zeros(4), 1.0, tilt)
    assert query(source_of(X, y, fit_intercept=False), None).tolist() == [-3.0]
    noisy = curator_over(
        source_of(X, y, fit_intercept=False),
        Plan((Planned("corner", SteepestCorner, 1, sampling=NoisyCorner()),)),
        1.0,
    ).release("corner", query)
    assert noisy.tolist() == [-3.0]


@given(multiplier=st.floats(1e-3, 1e6), n=st.integers(1, 10**7))
def test_rounding_is_paid_for(multiplier, n):
    """Half the range of the rounded utilities, in exponents, stays below one over the noise
    multiplier.
    """
    query = query_for(n, "softmax", Relation.REPLACE_ONE)
    bits, steps = _grid(query, multiplier, Relation.REPLACE_ONE, n)
    # A rounded utility is off by half a step, and by the error of a product below 2**51 before it.
    in_steps = query.sensitivity(Relation.REPLACE_ONE) * steps + query.size * (1 + 2 * 2.0**-2)
    assert in_steps / 2**bits <= 1 / multiplier
    assert n * query.clip * steps <= 2.0**51
    assert steps > 0


def test_a_release_is_the_exponential_mechanism_with_its_scale():
    """Three columns, known sums, 4000 releases: the declared scale fits, half of it does not."""
    X, y = np.vstack([np.eye(3)] * 4), np.array([1.0, 1, 1, 1, -1, 1, 1, -1, 1, -1, 1, 1])
    problem = problem_for(X, fit_intercept=False)
    query = SteepestCorner(problem, np.zeros(3), 0.5)
    plan = Plan((Planned("corner", SteepestCorner, 4000, sampling=NoisyCorner()),))
    curator = curator_over(source_of(X, y, fit_intercept=False), plan, 2.0, coins=SeededCoins(5))
    answers = np.array([curator.release("corner", query)[0] for _ in range(4000)])
    g = query.sums(source_of(X, y, fit_intercept=False))
    law = {
        sign * (j + 1): np.exp(-sign * g[j] / 2.0) for j in range(3) for sign in (1, -1)
    }  # 2 times the sensitivity 1
    counts = np.array([(answers == key).sum() for key in law])
    weights = np.array(list(law.values()))
    assert fits(counts, weights / weights.sum())
    assert not fits(counts, weights**2 / (weights**2).sum())


def true_delta(query, tables, multiplier, epsilon):
    """Exact hockey-stick divergence of one release on two tables, over all answers.

    For one output without intercept.
    """
    laws = []
    bits, steps = _grid(query, multiplier, query.problem.relation, query.problem.n_units)
    for X, y in tables:
        (u,) = query.utilities(query.sums(source_of(X, y, fit_intercept=False)), steps)
        laws.append(u / 2**bits - logsumexp(u / 2**bits))
    return float(np.maximum(np.exp(laws[0]) - np.exp(epsilon + laws[1]), 0).sum())


def test_the_price_holds_against_exact_probabilities_and_half_the_noise_breaks_it():
    problem = problem_for(np.empty((1, 2)), HuberHinge(), fit_intercept=False)
    query = SteepestCorner(problem, np.zeros(2), 1.0)
    tables = [(np.array([[1.0, 0.0]]), np.array([label])) for label in (1.0, -1.0)]
    for multiplier in (0.5, 2.0, 8.0):
        for epsilon in np.array([0.0, 0.3, 0.7]) * 2 / multiplier:
            claimed = delta_of(BoundedRangeCost(multiplier), float(epsilon), Relation.REPLACE_ONE)
            assert true_delta(query, tables, multiplier, epsilon) <= claimed + 1e-9
        far = 1.6 / multiplier
        claimed = delta_of(BoundedRangeCost(multiplier), far, Relation.REPLACE_ONE)
        assert (
            true_delta(query, tables, multiplier, far)
            <= claimed
            < true_delta(query, tables, multiplier / 2, far)
        )
        assert true_delta(query, tables, multiplier, 2 / multiplier) == 0.0


def test_corners_have_their_own_mechanism():
    with pytest.raises(InvalidArgument, match=r"Plan it with NoisyCorner"):
        Planned("corner", SteepestCorner, 1, sampling=FullBatch())
    with pytest.raises(InvalidArgument, match="Plan only SteepestCorner"):
        Planned("gradient", ClippedGradient, 1, sampling=NoisyCorner())
    X, y = two_classes(50, 3)
    curator = curator_over(
        source_of(X, y), Plan((Planned("corner", SteepestCorner, 1, sampling=NoisyCorner()),)), 1.0
    )
    with pytest.raises(UndeclaredRelease):
        curator.release("corner", SecondMoment(problem_for(X)))


@pytest.mark.parametrize("multiplier", [1e-20, 1e12], ids=["too small", "too large"])
def test_a_choice_that_cannot_be_made_exactly_is_refused(multiplier):
    X, y = two_classes(50, 3)
    curator = curator_over(
        source_of(X, y),
        Plan((Planned("corner", SteepestCorner, 1, sampling=NoisyCorner()),)),
        multiplier,
    )
    with pytest.raises(InvalidArgument, match="epsilon"):
        curator.release("corner", SteepestCorner(problem_for(X), np.zeros(4), 0.5))


# The solver


@pytest.mark.parametrize(
    ("data", "loss", "outputs", "penalty"),
    [
        (two_classes(d=4), Logistic(), 1, L1Ball(2.0)),
        (two_classes(d=4), HuberHinge(), 1, L1Ball(1.0)),
        (two_classes(d=4), Squared(), 1, L1Ball(0.5)),
        (three_classes(d=4), Softmax(3), 3, L1Ball(2.0)),
    ],
    ids=["logistic", "hinge", "squared", "softmax"],
)
def test_without_noise_the_minimum_over_the_ball_is_found(data, loss, outputs, penalty):
    """At the rate 2 L (2 radius)^2 / t of the theorem, finally to a few thousandths."""
    X, y = data
    problem, Z = problem_for(X, loss, outputs, penalty=penalty), records_of(X)

    def value(w):
        return float(loss.value(Z @ w.T, y).mean())

    solver = solver_from(FrankWolfe(), problem, OPEN)
    w = without_noise(solver, problem, X, y)
    assert penalty.value(problem.columns(w)) == 0.0
    best = without_noise(ExactMinimiser(), problem, X, y)
    assert value(best) - 1e-6 <= value(w) <= value(best) + 2e-3


def test_a_squared_penalty_enters_through_the_tilt():
    X, y = two_classes(d=4)
    problem, Z = problem_for(X, penalty=ScaledL2(0.1)), records_of(X)
    solver = solver_from(FrankWolfe(radius=3.0), problem, OPEN)
    w = without_noise(solver, problem, X, y)
    best = without_noise(ExactMinimiser(), problem, X, y)
    assert np.abs(best[:4]).sum() < 3.0
    values = [float(Logistic().value(Z @ v, y).mean()) + 0.05 * v[:4] @ v[:4] for v in (w, best)]
    assert values[0] <= values[1] + 2e-3


def test_each_step_adds_one_column_at_most():
    X, y = two_classes(300, 40)
    problem = problem_for(X)
    solver = FrankWolfe(steps=6, radius=5.0, intercept_radius=2.0)
    iterates = list(
        solver.iterates(problem, curator_over(source_of(X, y), solver.plan(problem), 3.0))
    )
    for t, iterate in enumerate(iterates, start=1):
        assert np.count_nonzero(iterate.w[:40]) <= t
        assert np.abs(iterate.w[:40]).sum() <= 5.0 + 1e-12
        assert abs(iterate.w[40]) <= 2.0 + 1e-12


def test_the_number_of_steps_follows_public_numbers():
    few, many = (problem_for(np.empty((n, 3))) for n in (10**4, 10**6))
    steps = [
        solver_from("frank-wolfe", problem, Budget(e, 1e-6)).steps
        for problem in (few, many)
        for e in (0.1, 4.0)
    ]
    assert steps == sorted(steps)
    assert steps[0] == 40
    assert steps[-1] == 500
    assert solver_from(FrankWolfe(steps=7), few, Budget(1.0, 1e-6)).steps == 7


def test_other_penalties_are_refused_with_the_remedy():
    with pytest.raises(InvalidArgument, match=r"L1Ball\(radius\), or use 'prox-newton'"):
        FrankWolfe().plan(problem_for(np.empty((50, 4)), penalty=L1(0.1)))
    for wrong in ({"steps": 0}, {"radius": -1.0}, {"intercept_radius": 0.0}, {"clip": 0.0}):
        with pytest.raises(InvalidArgument, match=next(iter(wrong))):
            FrankWolfe(**wrong)


@pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")
def test_few_of_many_columns_are_found():
    """5000 rows, 400 columns of which three matter: the case for the L1 geometry."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], size=(5000, 400)) * (rng.random((5000, 400)) < 0.02)
    y = np.where(X[:, 7] - X[:, 100] + X[:, 300] + 0.05 * rng.normal(size=5000) > 0, 1, -1)
    X[:, [7, 100, 300]] = np.where(
        rng.random((5000, 3)) < 0.7, X[:, [7, 100, 300]], 0
    ) + 0.5 * rng.normal(size=(5000, 3))
    y = np.where(X[:, 7] - X[:, 100] + X[:, 300] > 0, 1, -1)
    model = PrivateLogisticRegression(
        epsilon=2.0,
        delta=1e-6,
        solver="frank-wolfe",
        penalty=L1Ball(20.0),
        classes=(-1, 1),
        random_state=0,
    ).fit(X, y)
    strongest = np.argsort(-np.abs(model.coef_[0]))[:3]
    assert set(strongest) == {7, 100, 300}
