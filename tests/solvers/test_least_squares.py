"""Private least squares and Poisson regression on records that keep their lengths."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from sklearn.linear_model import PoissonRegressor

from _support import RELATIONS, curator_over
from hushfit import PrivatePoissonRegressor
from hushfit.audit import source_for
from hushfit.data import RecordScaling, as_source
from hushfit.errors import InvalidArgument
from hushfit.losses import LeastSquares, Logistic, Poisson, SaturatingSquares
from hushfit.penalties import L1, Box, ElasticNet, GroupLasso, NonNegative, ScaledL2, Zero
from hushfit.privacy import Budget, Relation
from hushfit.problem import Problem
from hushfit.release import Randomness, unpaid_curator
from hushfit.solvers import (
    WhitenedLeastSquares,
    WhitenedPoisson,
    choose_solver,
    load_checkpoint,
    run,
    solver_from,
    units_needed,
)
from hushfit.solvers.regression import _least_squares
from hushfit.solvers.regression._metrics import ColumnCoordinates, SpectralCoordinates

CONSTANT = math.sqrt(0.5)


def problem_of(n, d, penalty=None, relation=Relation.REPLACE_ONE, fit_intercept=True, loss=None):
    return Problem(
        loss or SaturatingSquares(),
        penalty or Zero(),
        n,
        d,
        relation,
        fit_intercept,
        scaling=RecordScaling.BOUNDED,
    )


def linear(n=4000, d=5, noise=0.1, seed=0, spread=0.4):
    """Rows in [-1, 1] and targets that a linear model explains in part."""
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(0.1, spread, (n, d)), -1, 1)
    w = rng.normal(size=d)
    signal = X @ w
    signal = (signal - signal.mean()) / max(signal.std(), 1e-9)
    t = 0.25 * signal + noise * rng.normal(size=n) + 0.1
    return X, np.clip(t, -1, 1)


def fitted(X, t, epsilon, solver="auto", seed=0, delta=1e-6, **settings):
    """Weights with the intercept in units of the target."""
    problem = problem_of(X.shape[0], X.shape[1], **settings)
    budget = Budget(epsilon, delta)
    chosen = solver_from(solver, problem, budget)
    quote = chosen.plan(problem).quote(problem, budget)
    source = source_for(problem, X, t)
    curator = unpaid_curator(source, quote, problem.relation, Randomness.of(seed))
    w = run(chosen, problem, curator).w.copy()
    if problem.fit_intercept:
        w[-1] *= CONSTANT
    return w


def r2(X, t, w):
    predicted = np.clip(X @ w[: X.shape[1]] + w[X.shape[1] :].sum(), -1, 1)
    return 1 - np.sum((t - predicted) ** 2) / np.sum((t - t.mean()) ** 2)


def test_it_is_the_default_for_the_squared_loss_and_for_counts():
    budget = Budget(1.0, 1e-6)
    assert isinstance(choose_solver(problem_of(100, 3), budget), WhitenedLeastSquares)
    counts = problem_of(100, 3, loss=Poisson(5.0))
    assert isinstance(choose_solver(counts, budget), WhitenedPoisson)


@pytest.mark.parametrize("solver", [WhitenedLeastSquares(), WhitenedPoisson()], ids=repr)
def test_other_problems_are_refused_when_planning(solver):
    unit = Problem(Logistic(), Zero(), 100, 3, Relation.REPLACE_ONE)
    with pytest.raises(InvalidArgument, match=r"records that keep their lengths"):
        solver.plan(unit)
    with pytest.raises(InvalidArgument, match="Give a number"):
        type(solver)(weight="auto").plan(
            problem_of(
                100,
                3,
                GroupLasso(1.0, ((0, 1),)),
                loss=Poisson(5.0) if isinstance(solver, WhitenedPoisson) else None,
            )
        )


@pytest.mark.parametrize("settings", [{"steps": 0}, {"weight": "best"}])
@pytest.mark.parametrize("kind", [WhitenedLeastSquares, WhitenedPoisson])
def test_bad_settings_are_refused(kind, settings):
    with pytest.raises(InvalidArgument, match=str(next(iter(settings.values())))):
        kind(**settings)


PENALTIES = [
    Zero(),
    ScaledL2(0.01),
    L1(0.01),
    ElasticNet(0.01, 0.5),
    Box(0.0, math.inf),
    NonNegative(L1(0.01)),
    GroupLasso(0.01, ((0, 1), (2, 3))),
]


def penalised_objective(X, t, penalty):
    def objective(w):
        return 0.5 * np.mean((X @ w[:-1] + w[-1] - t) ** 2) + penalty.value(w[:-1])

    return objective


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_without_noise_it_finds_the_penalised_minimum(penalty):
    X, t = linear(800, 4)
    w = fitted(X, t, math.inf, penalty=penalty)
    objective = penalised_objective(X, t, penalty)
    found = objective(w)
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(200):
            moved = w + size * rng.normal(size=5)
            moved[:-1] = penalty.prox(moved[:-1], 1e-12)  # inside, where there is a set
            assert objective(moved) >= found - 1e-6


def test_without_noise_and_penalty_it_is_least_squares():
    X, t = linear(800, 4)
    best = np.linalg.lstsq(np.column_stack([X, np.ones(800)]), t, rcond=None)[0]
    assert fitted(X, t, math.inf) == pytest.approx(best, abs=1e-5)
    plain = np.linalg.lstsq(X, t, rcond=None)[0]
    assert fitted(X, t, math.inf, fit_intercept=False) == pytest.approx(plain, abs=1e-5)


def test_counts_without_noise_are_fitted_by_maximum_likelihood():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 3))
    y = np.minimum(rng.poisson(np.exp(X @ [0.6, -0.4, 0.0] + 0.2)), 12).astype(float)
    problem = problem_of(3000, 3, loss=Poisson(12.0))
    solver = WhitenedPoisson(steps=60)
    source = as_source(X, y, scaled_labels=True, scaling=RecordScaling.BOUNDED)
    w = run(solver, problem, curator_over(source, solver.plan(problem), 0.0)).w
    Z = np.column_stack([X, np.full(3000, CONSTANT)])

    def deviance(v):
        return np.mean(np.exp(Z @ v) - y * (Z @ v))

    assert deviance(w) <= minimize(deviance, np.zeros(4)).fun + 1e-5


@pytest.mark.filterwarnings("ignore::hushfit.errors.InsecureNoiseWarning")
@pytest.mark.parametrize("slope", [1.0, 3.0])
def test_rounds_taken_far_away_do_not_bias_counts(slope):
    """Curvature changes on the way: all rounds alike left a tenth of the smallest rate."""
    x = np.linspace(0, 1, 40_000)[:, None]
    y = np.random.default_rng(0).poisson(np.exp(slope * x[:, 0] - 0.5)).astype(float)
    likeliest = PoissonRegressor(alpha=0, tol=1e-8).fit(x, y)
    model = PrivatePoissonRegressor(
        epsilon=5.0, delta=1e-6, max_count=40, feature_bounds=(0, 1), random_state=0
    )
    found = model.fit(x, y)
    assert found.intercept_ == pytest.approx(likeliest.intercept_, abs=0.01)
    assert found.coef_ == pytest.approx(likeliest.coef_, abs=0.015)


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize("d", [4, 501])
def test_it_releases_exactly_what_it_declared(relation, d):
    X, t = linear(300, d)
    problem = problem_of(300, d, L1(0.01), relation)
    solver = WhitenedLeastSquares(steps=5)
    plan = solver.plan(problem)
    curator = curator_over(source_for(problem, X, t), plan, 3.0, relation)
    result = run(solver, problem, curator)
    made = [released.name for released in curator.transcript]
    assert made == [part.name for part in plan.parts for _ in range(part.count)]
    assert np.isfinite(result.w).all()
    assert sum(plan.shares().values()) == pytest.approx(1.0)


@pytest.mark.parametrize("d", [4, 501])
def test_dense_and_sparse_rows_give_the_same_weights(d):
    X, t = linear(400, d)
    X[np.abs(X) < 0.3] = 0.0
    dense, stored = (fitted(rows, t, 3.0) for rows in (X, sparse.csr_array(X)))
    assert dense == pytest.approx(stored, abs=1e-6)


def test_answers_replayed_from_a_checkpoint_give_the_same_weights(tmp_path):
    X, t = linear(300, 3)
    problem, solver = problem_of(300, 3), WhitenedLeastSquares(steps=4)
    plan, path = solver.plan(problem), tmp_path / "run.npz"
    source = source_for(problem, X, t)
    first = run(solver, problem, curator_over(source, plan, 2.0), checkpoint=path)
    again = curator_over(source, plan, 2.0, seed=9, replay=load_checkpoint(path))
    assert np.array_equal(run(solver, problem, again).w, first.w)


# Accuracy. Seeds are fixed, so that these tests never fail by chance.


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_a_usual_budget_comes_close_to_least_squares(relation):
    X, t = linear(6000, 8)
    best = r2(X, t, fitted(X, t, math.inf))
    assert r2(X, t, fitted(X, t, 1.0, relation=relation)) >= best - 0.03


@pytest.mark.parametrize("epsilon", [math.inf, 5.0])
def test_fits_take_into_account_that_predictions_are_clipped(epsilon):
    """Half of the targets are at the lower end, where the line would go on falling."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (6000, 2))
    t = np.clip(1.5 * X[:, 0] - 1 + 0.05 * rng.normal(size=6000), -1, 1)
    saturating, plain = (
        r2(X, t, fitted(X, t, epsilon, loss=loss)) for loss in (None, LeastSquares())
    )
    assert saturating > plain + 0.01
    assert saturating > 0.95


def test_without_a_budget_it_predicts_about_the_mean():
    X, t = linear(4000, 8)
    w = fitted(X, t, 0.02)
    assert -0.1 <= r2(X, t, w) <= 0.6


@pytest.mark.parametrize("weight", ["auto", "select"])
def test_alpha_is_chosen_from_the_releases(weight):
    rng = np.random.default_rng(1)
    X = np.clip(rng.normal(0, 0.4, (8000, 20)), -1, 1)
    t = np.clip(0.4 * X[:, 0] - 0.3 * X[:, 1] + 0.1 * rng.normal(size=8000), -1, 1)
    solver = WhitenedLeastSquares(weight=weight)
    w = fitted(X, t, 1.0, solver, penalty=L1(1.0))
    assert r2(X, t, w) >= r2(X, t, fitted(X, t, math.inf)) - 0.05
    assert {0, 1} <= set(np.flatnonzero(w[:-1]))
    if weight == "select":
        assert np.flatnonzero(w[:-1]).tolist() == [0, 1]


def test_many_clipped_gradients_make_wild_targets_harmless():
    """A tenth of the targets is at the upper end, whatever the record."""
    X, t = linear(6000, 4, noise=0.05)
    wild = t.copy()
    wild[:600] = 1.0
    plain = fitted(X, wild, 3.0)
    robust = fitted(X, wild, 3.0, WhitenedLeastSquares(clipped=0.177))
    assert r2(X[600:], t[600:], robust) > r2(X[600:], t[600:], plain) + 0.02


def test_correlated_columns_do_not_diverge_where_no_matrix_is_formed():
    rng = np.random.default_rng(0)
    common = rng.normal(0, 0.3, (3000, 1))
    X = np.clip(0.7 * rng.normal(0, 0.3, (3000, 520)) + 0.7 * common, -1, 1)
    signal = X[:, :10].sum(axis=1)
    t = np.clip(0.25 * signal / signal.std() + 0.1 * rng.normal(size=3000), -1, 1)
    for epsilon in (1.0, 10.0):
        assert r2(X, t, fitted(X, t, epsilon)) > 0.3


def test_five_thousand_sparse_columns_never_form_a_matrix(monkeypatch):
    X = sparse.random(2000, 5000, 0.005, random_state=0, format="csr")
    t = np.clip(np.asarray(X[:, :50].sum(axis=1)).ravel() - 0.1, -1, 1)
    monkeypatch.setattr(SpectralCoordinates, "of", None)
    monkeypatch.setattr(type(X), "toarray", None)
    assert np.isfinite(fitted(X, t, 1.0)).all()


# Settings of a fit: least squares, the robust form, and counts.
KINDS = {
    "least squares": WhitenedLeastSquares(),
    "heavy tails": WhitenedLeastSquares(clipped=0.177),
    "counts": WhitenedPoisson(),
}
HELD_OUT = 2000


def held_out_score(kind, n, d, noise, spread, common, epsilon, seed, warned=False):
    """R2 on rows of the same kind as those of the fit; None where the planner warns, unless it is
    asked for there.
    """
    counted = kind == "counts"
    problem = problem_of(n, d, loss=Poisson(10.0) if counted else None)
    budget = Budget(epsilon, 1e-6)
    if n < units_needed(budget, problem.dimension) and not warned:
        return None
    X, t = linear(n + HELD_OUT, d, noise, seed, spread)
    rng = np.random.default_rng(seed)
    shared = rng.normal(0, spread, (len(X), 1))
    X = np.clip(math.sqrt(1 - common) * X + math.sqrt(common) * shared, -1, 1)
    y = np.minimum(rng.poisson(np.exp(2 * t)), 10.0) if counted else t
    solver = solver_from(KINDS[kind], problem, budget)
    quote = solver.plan(problem).quote(problem, budget)
    source = as_source(X[:n], y[:n], scaled_labels=True, scaling=RecordScaling.BOUNDED)
    curator = unpaid_curator(source, quote, problem.relation, Randomness.of(seed))
    w = run(solver, problem, curator).w
    margins = X[n:] @ w[:-1] + CONSTANT * w[-1]
    predicted = np.exp(np.minimum(margins, math.log(10))) if counted else np.clip(margins, -1, 1)
    return 1 - np.mean((y[n:] - predicted) ** 2) / np.var(y[n:])


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(list(KINDS)),
    n=st.sampled_from([600, 2000]),
    d=st.sampled_from([1, 3, 12, 60]),
    noise=st.floats(0.0, 0.3),
    spread=st.floats(0.01, 1.0),
    common=st.floats(0.0, 1.0),
    log_epsilon=st.floats(-1, 3),
    seed=st.integers(0, 10),
)
def test_held_out_rows_are_never_much_worse_than_their_mean(kind, log_epsilon, **shape):
    """Wherever the planner does not warn: whatever shape, scale, correlation and budget."""
    score = held_out_score(kind, epsilon=math.exp(log_epsilon), **shape)
    assert score is None or score >= -0.1


def test_without_the_planner_held_out_rows_would_be_much_worse_than_their_mean():
    """So the sentence above can fail: far below what the planner asks for, it does."""
    shape = {"n": 300, "d": 60, "noise": 0.1, "spread": 0.3, "common": 0.5, "epsilon": 0.05}
    scores = [held_out_score("least squares", **shape, seed=s, warned=True) for s in range(4)]
    assert min(scores) < -0.1


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    n=st.sampled_from([300, 600, 2000, 6000]),
    d=st.sampled_from([1, 3, 12, 60, 501, 700]),
    noise=st.floats(0.0, 0.5),
    spread=st.floats(0.003, 1.0),
    common=st.floats(0.0, 1.0),
    log_epsilon=st.floats(-4, 4),
    seed=st.integers(0, 1000),
)
def test_no_shape_scale_or_budget_makes_it_diverge(kind, log_epsilon, **shape):
    score = held_out_score(kind, epsilon=math.exp(log_epsilon), **shape)
    assert score is None or score >= -0.1


@pytest.mark.parametrize(
    ("n", "d", "epsilon", "feasible"),
    [(800, 10, 0.05, False), (800, 10, 0.1, False), (800, 10, 1.0, True), (13_903, 60, 0.1, True)],
)
def test_tables_too_small_for_the_budget_are_told_from_public_numbers(n, d, epsilon, feasible):
    """1,000 x 10 at .05 and .1 of the benchmark, where one number does as well."""
    assert (n >= units_needed(Budget(epsilon, 1e-6), d + 1)) == feasible


def test_rounds_are_fewer_where_there_is_little_noise():
    few = _least_squares.rounds_for(Budget(3.0, 1e-6), problem_of(100_000, 20))
    many = _least_squares.rounds_for(Budget(0.1, 1e-6), problem_of(5_000, 20))
    assert 15 <= few < many == 60


def test_a_constant_target_and_empty_columns_are_fitted():
    X = np.column_stack([np.zeros((500, 2)), np.linspace(-1, 1, 500)])
    w = fitted(X, np.full(500, 0.4), 5.0)
    assert X @ w[:-1] + w[-1] == pytest.approx(np.full(500, 0.4), abs=0.1)


def test_more_columns_than_rows_are_fitted():
    X, t = linear(60, 100)
    assert np.isfinite(fitted(X, t, 5.0)).all()


def test_columns_are_shrunk_to_their_noise():
    problem = problem_of(1000, 600)
    squares = np.full(600, 0.2)
    means = np.random.default_rng(0).normal(0, 0.02, 600)
    found = ColumnCoordinates.of(squares, means, 0.01, problem)
    assert np.abs(found.means).max() < 0.5 * np.abs(means).max()
