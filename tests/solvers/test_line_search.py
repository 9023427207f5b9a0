"""Private line search: decreases and their bounds, the gate, shared batches, privacy filters.

False alarms: checks on secure noise reject at level 1e-6 each, and there are eight of them.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr, logsumexp

from _support import (
    LOSSES,
    RELATIONS,
    SOURCES,
    curator_over,
    labels_for,
    problem_for,
    records_of,
    source_of,
    table,
    two_classes,
    without_noise,
)
from hushfit import PrivateLogisticRegression
from hushfit.data import SecureCoins
from hushfit.errors import BudgetExceeded, InvalidArgument, UndeclaredRelease
from hushfit.losses import Logistic
from hushfit.penalties import L1, SCAD, ScaledL2
from hushfit.privacy import (
    ApproximateCost,
    Budget,
    GatedCost,
    GaussianCost,
    PureCost,
    RdpFilter,
    Relation,
    SecureSampler,
    SeededSampler,
    calibrate,
    compose,
    delta_of,
    epsilon_of,
    rdp_curve,
)
from hushfit.privacy.costs._gated_cost import _Inner, _swap
from hushfit.release import (
    Backtracking,
    Choice,
    ClippedGradient,
    FreshGate,
    FullBatch,
    Gate,
    GatedBatch,
    GatedStep,
    GaussianRun,
    LossDrop,
    NoisyChoice,
    Plan,
    Planned,
    PoissonBatch,
    Priced,
    RenyiRun,
)
from hushfit.release.mechanism import Entropy
from hushfit.release.mechanisms import _gate as gate_module
from hushfit.solvers import DPBLS, ExactMinimiser, run, solver_from

LEVEL = 1e-6
over_relations = pytest.mark.parametrize("relation", RELATIONS, ids=str)


# Decrease of the losses


def drops_by_numpy(problem, X, y, points, bounds):
    """One record at a time in plain numpy."""
    Z = records_of(X, problem.fit_intercept)
    here, *there = (problem.loss.value(Z @ point.T, y) for point in points)
    return np.array(
        [
            np.clip(here - value, -bound, bound).sum()
            for value, bound in zip(there, bounds, strict=True)
        ]
    )


@pytest.mark.parametrize(("loss", "outputs"), LOSSES, ids=str)
@pytest.mark.parametrize("layout", SOURCES.values(), ids=SOURCES)
def test_drops_are_what_numpy_finds(loss, outputs, layout):
    X, y = table(), labels_for(loss, outputs, 60)
    problem = problem_for(X, loss, outputs)
    rng = np.random.default_rng(2)
    vectors, mixes = rng.normal(size=(3, *problem.shape)), rng.normal(size=(5, 3))
    bounds = np.array([0.3, 0.1, 5.0, 1e-3])
    query = LossDrop(problem, vectors, mixes, bounds)
    points = np.tensordot(mixes, vectors, axes=1)
    np.testing.assert_allclose(
        query(source_of(layout(X), y), None),
        drops_by_numpy(problem, X, y, points, bounds),
        rtol=1e-6,
        atol=1e-6,
    )
    some = np.array([3, 7, 50])
    np.testing.assert_allclose(
        query(source_of(layout(X), y), some),
        drops_by_numpy(problem, X[some], y[some], points, bounds),
        rtol=1e-6,
        atol=1e-6,
    )


def test_margins_that_overflow_count_for_nothing():
    X, y = table(), labels_for(Logistic(), 1, 60)
    problem = problem_for(X)
    vectors = np.full((2, *problem.shape), 1e308)
    answer = LossDrop(problem, vectors, np.array([[1e30, 0.0], [1e30, 1e30]]), np.array([0.5]))(
        source_of(X, y), None
    )
    assert np.isfinite(answer).all()


NOBODY = np.full(5, np.nan)


@pytest.mark.parametrize(("loss", "outputs"), LOSSES, ids=str)
@over_relations
def test_no_record_moves_a_drop_beyond_its_bound_and_some_reach_it(loss, outputs, relation):
    """Random and hill-climbed neighbours: each sum stays within its radius and exceeds half of
    it.
    """
    X, y = table(), labels_for(loss, outputs, 60)
    problem = problem_for(X, loss, outputs, relation)
    rng = np.random.default_rng(3)
    search = Backtracking(2.0 ** -np.arange(4.0), 60.0, 0.3, 0.1, 0.0)
    query = search.gate(
        problem, 0.5 * rng.normal(size=problem.shape), 40 * rng.normal(size=problem.shape).ravel()
    ).drop
    allowed = query.radii * (2 if relation is Relation.REPLACE_ONE else 1)

    def answer(x, label):
        rows, labels = X.copy(), y.copy()
        rows[0], labels[0] = x, label
        return query(source_of(rows, labels), None)

    most = np.zeros(query.size)
    directions = np.concatenate(
        [query.vectors.reshape(-1, problem.dimension)[:, :5], rng.normal(size=(60, 5))]
    )
    for x in np.concatenate([50 * directions, -50 * directions]):
        label, other = labels_for(loss, outputs, 2, int(rng.integers(1 << 30)))
        far = NOBODY if relation is Relation.ADD_REMOVE else -x
        moved = np.abs(answer(x, label) - answer(far, other))
        assert np.all(moved <= allowed)
        most = np.maximum(most, moved)
    assert most.max() > 0.5 * allowed.max()


@over_relations
def test_scores_of_gates_and_choices_move_by_one_unit(relation):
    X, y = table(), labels_for(Logistic(), 1, 60)
    problem = problem_for(X, relation=relation)
    rng = np.random.default_rng(4)
    search = Backtracking(2.0 ** -np.arange(6.0), 60.0, 0.2, 0.1, 0.0)
    w, g = rng.normal(size=6), 60 * rng.normal(size=6)
    for query in (search.gate(problem, w, g), search.choice(problem, w, g)):
        assert query.sensitivity(relation) == pytest.approx(
            2.0 if relation is Relation.REPLACE_ONE else 1.0, rel=1e-6
        )
        for _ in range(100):
            rows, labels = X.copy(), y.copy()
            rows[0], labels[0] = 30 * rng.normal(size=5), rng.choice([-1.0, 1.0])
            if relation is Relation.ADD_REMOVE:
                rows[0] = NOBODY
            moved = query.scores(source_of(rows, labels), None) - query.scores(
                source_of(X, y), None
            )
            assert np.abs(moved).max() <= query.sensitivity(relation)


# The condition on a step


def armijo(problem, X, y, w, g, step, sufficient):
    """Whether the mean objective decreases by the required share, in plain numpy."""
    Z = records_of(X)

    def objective(v):
        return problem.loss.value(Z @ v, y).mean() + problem.penalty.value(problem.columns(v))

    return objective(w) - objective(w - step * g) >= sufficient * step * (g @ g)


def without_divisor(search):
    """C11 as printed: the decrease is a sum over the batch, the predicted decrease a mean."""

    class Printed(Backtracking):
        def _drop(self, problem, w, g):
            drop, asked = super()._drop(problem, w, g)
            return drop, asked / self.expected_units

    return Printed(
        search.step_sizes,
        search.expected_units,
        search.objective_clip,
        search.sufficient,
        search.gradient_noise,
    )


def test_the_gate_asks_for_a_share_of_the_promised_fall():
    """C11: without noise the first step that meets Armijo's condition; as printed almost any."""
    X, y = two_classes(n=2000)
    problem, source = problem_for(X), source_of(*two_classes(n=2000))
    search = Backtracking(512.0 * 0.7 ** np.arange(20.0), 2000.0, 1e3, 0.6, 0.0)
    w = np.zeros(problem.shape)
    g = ClippedGradient(problem, w, 1.0)(source, None)
    passes = [armijo(problem, X, y, w, g / 2000, step, 0.6) for step in search.step_sizes]
    accepted = int(search.gate(problem, w, g)(source, None)[0])
    assert accepted == passes.index(True)
    printed = int(without_divisor(search).gate(problem, w, g)(source, None)[0])
    assert printed < accepted
    assert not passes[printed]


def test_noise_in_the_gradient_promises_no_fall():
    """Noise in the squared norm is subtracted, or no step along a noisy gradient could pass."""
    problem = problem_for(np.empty((100, 3)))
    noiseless = Backtracking(np.array([1.0]), 100.0, 1.0, 0.5, 0.0)
    noisy = replace(noiseless, gradient_noise=0.2)
    w, g = np.zeros(4), 100 * np.array([0.3, 0.2, -0.4, 0.1])
    assert noiseless.gate(problem, w, g).asked[0] == pytest.approx(100 * 0.5 * 0.3)
    assert noisy.gate(problem, w, g).asked[0] == pytest.approx(100 * 0.5 * (0.3 - 4 * 0.04))


@pytest.mark.parametrize("penalty", [ScaledL2(0.3), L1(0.2)], ids=repr)
def test_penalties_count_without_noise(penalty):
    """The decrease of the penalty is public and is added; candidates are the solver's next
    points.
    """
    problem = problem_for(np.empty((50, 3)), penalty=penalty)
    search = Backtracking(np.array([2.0, 1.0]), 50.0, 1.0, 0.0, 0.0)
    w, g = np.array([1.0, -0.5, 0.2, 0.7]), 50 * np.array([0.1, 0.2, -0.1, 0.3])
    points = search.candidates(problem, w, g)
    gained = [penalty.value(w[:3]) - penalty.value(point[:3]) for point in points]
    np.testing.assert_allclose(search.gate(problem, w, g).asked, -50 * np.array(gained))
    drop = search.gate(problem, w, g).drop
    np.testing.assert_allclose(
        np.tensordot(drop.mixes, drop.vectors, axes=1)[1:], points, atol=1e-12
    )


# The distribution of the noisy gate


def known_gate(relation, levels):
    """A gate whose scores are ``levels``: no record's loss changes, the thresholds set the
    scores.
    """
    problem = problem_for(np.empty((30, 2)), relation=relation, fit_intercept=False)
    count = len(levels)
    vectors, mixes = np.zeros((1, 2)), np.ones((1 + count, 1))
    query = Gate(LossDrop(problem, vectors, mixes, np.ones(count)), -np.asarray(levels))
    return query, source_of(np.ones((30, 2)), np.ones(30), fit_intercept=False)


def exact_law(noise, scale, levels):
    """Probabilities of the outcomes of a gate whose threshold has this scale, by quadrature."""
    ratio = 2.0 if noise == "laplace" else math.sqrt(2)
    z = (
        scale * np.linspace(-30, 30, 6001)
        if noise == "laplace"
        else scale * np.linspace(-9, 9, 6001)
    )
    log_density = -np.abs(z) / scale if noise == "laplace" else -0.5 * (z / scale) ** 2

    def log_tail(x):
        return (
            np.where(x >= 0, -x - math.log(2), np.log1p(-0.5 * np.exp(np.minimum(x, 0))))
            if noise == "laplace"
            else log_ndtr(-x)
        )

    x = (z[:, None] - np.asarray(levels)) / (ratio * scale)
    reached = np.column_stack([np.zeros(len(z)), np.cumsum(log_tail(-x), axis=1)])
    stop = np.column_stack([log_tail(x), np.zeros(len(z))])
    return np.exp(logsumexp(log_density[:, None] - logsumexp(log_density) + reached + stop, axis=0))


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@over_relations
def test_the_gate_has_its_law_and_half_the_noise_would_show(noise, relation):
    """Chi-square of 4000 secure answers against quadrature; half the noise is rejected."""
    levels = [-6.0, 2.0, -1.0, 4.0]
    query, source = known_gate(relation, levels)
    entropy = Entropy(relation, SecureSampler(), SecureCoins())
    multiplier = 1.5
    drawn = [
        int(gate_module.first_above(query, source, None, noise, multiplier, entropy)[0])
        for _ in range(4000)
    ]
    counts = np.bincount(drawn, minlength=5)
    scale = multiplier * (2.0 if relation is Relation.REPLACE_ONE else 1.0)
    assert stats.chisquare(counts, 4000 * exact_law(noise, scale, levels)).pvalue > LEVEL
    assert stats.chisquare(counts, 4000 * exact_law(noise, scale / 2, levels)).pvalue < LEVEL


def test_a_choice_has_its_law_and_half_the_noise_would_show():
    """Two candidates: the difference of two Laplace variables has a known tail."""
    problem = problem_for(np.empty((30, 2)), relation=Relation.ADD_REMOVE, fit_intercept=False)
    query = Choice(
        LossDrop(problem, np.zeros((1, 2)), np.ones((3, 1)), np.ones(2)), np.array([0.0, -2.0])
    )
    source = source_of(np.ones((30, 2)), np.ones(30), fit_intercept=False)
    entropy = Entropy(Relation.ADD_REMOVE, SecureSampler(), SecureCoins())
    wins = sum(NoisyChoice().answer(query, source, 3.0, entropy)[0] for _ in range(4000))

    def chance(scale):
        return 1 - 0.5 * math.exp(-2 / scale) * (1 + 1 / scale)

    assert stats.binomtest(int(wins), 4000, chance(3.0)).pvalue > LEVEL
    assert stats.binomtest(int(wins), 4000, chance(1.5)).pvalue < LEVEL
    assert NoisyChoice().cost(3.0, 2, 30).epsilon == pytest.approx(2 / 3)


def test_what_is_asked_beyond_all_rows_does_not_overflow():
    query, source = known_gate(Relation.ADD_REMOVE, [-1e300, np.nan, 1e300])
    entropy = Entropy(Relation.ADD_REMOVE, SeededSampler(0), SecureCoins())
    assert gate_module.first_above(query, source, None, "laplace", 1.0, entropy)[0] == 2


# One batch, a public divisor


@pytest.mark.parametrize("size", [0, 5, 50])
def test_nothing_is_divided_by_the_size_of_the_batch(size, monkeypatch):
    """T10, C12: the noise on the gradient is the same for every batch, and the empty batch has
    it too.
    """
    monkeypatch.setattr(gate_module, "poisson_units", lambda *_: np.arange(size))
    X, y = two_classes(n=200)
    problem = problem_for(X, relation=Relation.ADD_REMOVE)
    search = Backtracking(0.8 ** np.arange(5.0), 20.0, 1.0, 0.1, 0.0)
    query = GatedStep(ClippedGradient(problem, np.zeros(6), 1.0), search)
    plan = Plan((Planned("step", GatedStep, 300, sampling=GatedBatch(0.1, queries=5)),))
    curator = curator_over(source_of(X, y), plan, 2.0, Relation.ADD_REMOVE)
    answers = np.array([curator.release("step", query) for _ in range(300)])
    exact = query.gradient(source_of(X, y), np.arange(size)) if size else np.zeros(6)
    residual = ((answers[:, :-1] - exact) / 2.0).ravel()
    low, high = stats.chi2.ppf([LEVEL / 2, 1 - LEVEL / 2], residual.size)
    assert low < (residual**2).sum() < high
    assert set(answers[:, -1]) <= set(range(6))


def test_gradient_and_gate_look_at_one_batch(monkeypatch):
    drawn, seen = [], []
    whole = gate_module.poisson_units
    monkeypatch.setattr(
        gate_module, "poisson_units", lambda *a: drawn.append(whole(*a)) or drawn[-1]
    )
    monkeypatch.setattr(
        gate_module, "gaussian_answer", lambda q, s, rows, *a: seen.append(rows) or q(s, rows)
    )
    monkeypatch.setattr(
        gate_module, "first_above", lambda g, s, rows, *a: seen.append(rows) or g(s, rows)
    )
    X, y = two_classes(n=200)
    problem = problem_for(X)
    plan = Plan((Planned("step", GatedStep, 1, sampling=GatedBatch(0.3)),))
    search = Backtracking(np.array([1.0]), 60.0, 1.0, 0.1, 0.0)
    curator_over(source_of(X, y), plan, 1.0).release(
        "step", GatedStep(ClippedGradient(problem, np.zeros(6), 1.0), search)
    )
    assert len(drawn) == 1
    assert seen[0] is seen[1] is drawn[0]


def test_plans_price_what_they_do():
    """Together on one batch, separately on fresh ones, and gates alone on all rows."""
    problem = problem_for(np.empty((1000, 5)))

    def cost(solver):
        plan = solver.plan(problem)
        return plan.cost(plan.multipliers(1.0, 1000), 1000)

    same, fresh, whole = cost(DPBLS()), cost(DPBLS(batches="fresh")), cost(DPBLS("gd"))
    assert isinstance(same, GatedCost)
    assert same.count == 100
    assert math.isfinite(same.noise_multiplier)
    assert {type(part).__name__ for part in fresh.parts} == {"PoissonGaussianCost", "GatedCost"}
    assert {type(part).__name__ for part in whole.parts} == {"GaussianCost", "AboveThresholdCost"}
    assert same.gate.epsilon == pytest.approx(1 / 3 / same.noise_multiplier)


def test_gates_over_all_rows_are_not_priced_as_randomised_response():
    """Twenty of epsilon 0.2: 1.63 is proved; the worst pure mechanism would cost 3.83."""
    gate = FreshGate(rate=1.0, noise="laplace", queries=20).cost(2 / 0.2, 20, 1000)
    assert epsilon_of(PureCost(0.2, 20), 1e-6, Relation.REPLACE_ONE) == pytest.approx(
        3.83, abs=0.01
    )
    assert epsilon_of(gate, 1e-6, Relation.REPLACE_ONE) == pytest.approx(1.63, abs=0.01)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("batches", ["same", "fresh"])
@over_relations
def test_plans_fit_their_budget(noise, batches, relation):
    problem, budget = problem_for(np.empty((5000, 5)), relation=relation), Budget(0.8, 1e-7)
    plan = DPBLS(gate_noise=noise, batches=batches, steps=20, candidates=8).plan(problem)

    def at(strength):
        return plan.cost(plan.multipliers(strength, 5000), 5000)

    found = calibrate(at, budget, relation)
    assert delta_of(at(found), 0.8, relation) <= 1e-7 < delta_of(at(1.01 * found), 0.8, relation)


# Refusals


def test_queries_need_the_mechanism_made_for_them():
    for sampling in (FullBatch(), PoissonBatch(0.1)):
        for query in (GatedStep, Gate, Choice, Priced):
            with pytest.raises(InvalidArgument, match="has its own cost"):
                Planned("x", query, 1, sampling=sampling)
    for sampling in (GatedBatch(), FreshGate(), NoisyChoice(), GaussianRun(), RenyiRun(1e-6)):
        with pytest.raises(InvalidArgument, match="Plan only"):
            Planned("x", ClippedGradient, 1, sampling=sampling)


def test_more_candidates_than_paid_for_are_refused():
    X, y = two_classes()
    problem = problem_for(X)
    search = Backtracking(0.8 ** np.arange(7.0), 40.0, 1.0, 0.1, 0.0)
    step = GatedStep(ClippedGradient(problem, np.zeros(6), 1.0), search)
    gate = search.gate(problem, np.zeros(6), np.ones(6))
    for query, sampling in ((step, GatedBatch(0.1, queries=6)), (gate, FreshGate(0.1, queries=6))):
        plan = Plan((Planned("x", type(query), 1, sampling=sampling),))
        curator = curator_over(source_of(X, y), plan, 1.0)
        with pytest.raises(UndeclaredRelease, match="at most 6 candidates, not with 7"):
            curator.release("x", query)
        assert curator.transcript == []


@pytest.mark.parametrize(
    "settings",
    [
        {"variant": "newton"},
        {"batches": "both"},
        {"gate_noise": "uniform"},
        {"variant": "ac", "adaptive": False},
        {"variant": "gd", "rate": 0.5},
        {"rate": 1.5},
        {"steps": 0},
        {"clip": 0.0},
        {"shrink": 1.0},
        {"sufficient": 0.0},
        {"candidates": 1000},
        {"gate": 0.0},
        {"average_last": 2.0},
        {"first_step": -1.0},
    ],
    ids=str,
)
def test_senseless_settings_are_refused(settings):
    with pytest.raises(InvalidArgument):
        DPBLS(**settings)


def test_penalties_that_are_not_convex_are_refused():
    with pytest.raises(InvalidArgument, match="not convex"):
        DPBLS().plan(problem_for(np.empty((100, 4)), penalty=SCAD(0.1)))


# Runs under a filter


def run_with_known_prices(solver, problem, X, y, multiplier, relation):
    """Run and record the cost of every release."""
    plan = solver.plan(problem)
    curator = curator_over(source_of(X, y), plan, multiplier, relation)
    prices, release = [], curator.release

    def spying(name, query):
        prices.append(query.cost)
        return release(name, query)

    curator.release = spying
    result = run(solver, problem, curator)
    return result, curator, prices


@over_relations
def test_an_adaptive_run_stays_within_its_price(relation):
    """Each cost is that of the call, with the noise set by CHEB; together they pass a filter.

    Little of the budget is left.
    """
    X, y = two_classes(n=1000)
    problem = problem_for(X, relation=relation)
    solver = DPBLS(
        "ac", steps=20, rate=0.3, filter_delta=1e-5, first_step=1e5, candidates=8, gate=2.0
    )
    result, curator, prices = run_with_known_prices(solver, problem, X, y, 0.8, relation)
    total = solver.plan(problem).cost({"run": 0.8}, 1000)
    assert isinstance(total, ApproximateCost)
    assert (
        len({repr(price) for price in prices}) > 3
    )  # gradients, gates and steps, with noise that changed
    kept = curator._filters["run"]
    spent = rdp_curve(compose(prices), np.array(kept._orders), relation)
    assert np.any(spent <= kept.allowances)
    assert np.all(spent >= 0.8 * kept.allowances)
    assert np.isfinite(result.w).all()
    assert kept.epsilon == total.epsilon


def test_the_curator_refuses_the_release_that_would_overdraw():
    """A solver that does not check first is refused by the filter; nothing is computed."""
    X, y = two_classes()
    problem = problem_for(X)
    plan = Plan((Planned("run", Priced, 50, sampling=RenyiRun(1e-5)),))
    curator = curator_over(source_of(X, y), plan, 1.0)
    ask = Priced(ClippedGradient(problem, np.zeros(6), 0.5), FullBatch(), 3.0)
    while curator.affords("run", ask):
        curator.release("run", ask)
    made = len(curator.transcript)
    assert 0 < made < 50
    with pytest.raises(BudgetExceeded, match="Use more noise"):
        curator.release("run", ask)
    assert len(curator.transcript) == made
    assert curator.affords("run", replace(ask, noise_multiplier=300.0))
    fresh = RdpFilter(
        plan.parts[0].sampling._epsilon(1.0),
        1e-5,
        problem.relation,
        curator._filters["run"]._orders,
    )
    for _ in range(made):
        fresh.charge(GaussianCost(3.0))
    assert not fresh.affords(GaussianCost(3.0))


def test_replayed_releases_are_charged_to_the_filter_as_well():
    """An interrupted run that continues must not start with an empty filter."""
    X, y = two_classes()
    problem = problem_for(X)
    plan = Plan((Planned("run", Priced, 50, sampling=GaussianRun()),))
    ask = Priced(ClippedGradient(problem, np.zeros(6), 0.5), FullBatch(), 2.0)
    first = curator_over(source_of(X, y), plan, 1.0)
    for _ in range(3):
        first.release("run", ask)
    second = curator_over(source_of(X, y), plan, 1.0, replay=first.transcript)
    for _ in range(3):
        second.release("run", ask)
    # Four of them would be one whole Gaussian release, minus the reserve for rounding.
    assert not second.affords("run", ask)
    assert second.affords("run", replace(ask, noise_multiplier=2.01))


def test_a_run_inside_a_run_is_refused():
    X, y = two_classes()
    problem = problem_for(X)
    plan = Plan((Planned("run", Priced, 50, sampling=RenyiRun(1e-5)),))
    inner = Priced(ClippedGradient(problem, np.zeros(6), 0.5), FullBatch(), 1e-3)
    curator = curator_over(source_of(X, y), plan, 1.0)
    with pytest.raises(UndeclaredRelease, match="run inside a run"):
        curator.release("run", Priced(inner, GaussianRun(), 100.0))
    with pytest.raises(UndeclaredRelease, match="has its own cost"):
        curator.release("run", Priced(GatedStep(inner.query, None), FullBatch(), 100.0))
    assert curator.transcript == []


def test_a_priced_query_needs_noise():
    with pytest.raises(InvalidArgument, match="above 0"):
        Priced(ClippedGradient(problem_for(np.empty((10, 2))), np.zeros(3), 0.5), FullBatch(), 0.0)


def test_step_sizes_start_where_the_last_ones_were():
    """Every ten searches the largest candidate is 1.2 times the largest step taken, and never
    larger than before.
    """
    from hushfit.solvers.gradient import StepSizes

    sizes = StepSizes(16.0, shrink=0.5, candidates=5)
    for k in (4, 2, 3, 2, 3, 4, 5, 4, 3, 4):
        sizes = sizes.after(k)
    assert sizes.largest == pytest.approx(1.2 * 4.0)
    for _ in range(10):
        sizes = sizes.after(0)
    assert sizes.largest == pytest.approx(1.2 * 4.0)


# Models


@pytest.mark.parametrize(
    "solver", ["bls", DPBLS("gd"), DPBLS("ac"), DPBLS(batches="fresh")], ids=str
)
@pytest.mark.usefixtures("quiet_fits")
def test_a_model_learns(solver):
    X, y = two_classes(n=8000)
    model = PrivateLogisticRegression(
        epsilon=1.0, delta=1e-6, solver=solver, classes=[-1, 1], random_state=0
    ).fit(X, y)
    exact = PrivateLogisticRegression(
        epsilon=math.inf, delta=1e-6, classes=[-1, 1], random_state=0
    ).fit(X, y)
    assert model.score(X, y) > exact.score(X, y) - 0.03
    assert model.privacy_.epsilon == 1.0


@pytest.mark.parametrize("penalty", [ScaledL2(0.01), L1(0.01)], ids=repr)
def test_without_privacy_it_finds_the_minimum(penalty):
    X, y = two_classes()
    problem, Z = problem_for(X, penalty=penalty), records_of(X)
    solver = solver_from(DPBLS(steps=400, sufficient=0.3), problem, Budget(math.inf, 1e-6))

    def objective(w):
        return problem.loss.value(Z @ w, y).mean() + penalty.value(problem.columns(w))

    w = without_noise(solver, problem, X, y)
    least = without_noise(ExactMinimiser(), problem, X, y)
    assert objective(least) - 1e-7 <= objective(w) <= objective(least) + 2e-3


def test_a_gate_asks_one_number_of_each_candidate():
    """Comparing one sum with thousands of thresholds would measure it."""
    problem = problem_for(np.empty((50, 2)))
    vectors = np.stack([np.zeros(problem.shape), np.ones(problem.shape)])
    drop = LossDrop(problem, vectors, np.eye(2), np.array([0.5]))
    for kind in (Gate, Choice):
        with pytest.raises(InvalidArgument, match="Give one number for each"):
            kind(drop, np.linspace(20, -20, 4001))
    with pytest.raises(InvalidArgument, match="as many bounds"):
        LossDrop(problem, vectors[:, :1], np.eye(2), np.array([0.5]))


@pytest.mark.parametrize(
    ("mu", "epsilon", "gates", "rate", "at"),
    [
        (0.0101, 0.3907, 3, 0.634, 0.6694),
        (0.007588, 0.364, 2, 0.25, 0.07101),
        (0.5, 0.3907, 1, 0.1, 0.1),
    ],
)
def test_the_swap_profile_bounds_the_proofs_own_minimum(mu, epsilon, gates, rate, at):
    """Each split of the proof is an upper bound; the profile is never below the least of them."""
    inner = _Inner(mu, epsilon, gates)
    _, profile = _swap(inner, rate)
    c = math.expm1(at) * (1 - rate) / rate
    rest = np.exp(np.linspace(-12, 12, 40_001))
    splits = rate * (inner.profile(np.log(c + rest)) + rest * inner.profile(at - np.log(rest)))
    found = float(profile(np.array([at]))[0])
    assert found >= splits.min() * (1 - 1e-5)
    assert found <= splits.min() * (1 + 1e-3)


def test_an_adaptive_run_is_planned_by_itself():
    with pytest.raises(InvalidArgument, match="proved only as a whole plan"):
        Plan(
            (
                Planned("run", Priced, 3, sampling=GaussianRun()),
                Planned("gradient", ClippedGradient, 1),
            )
        )
