"""Many columns, several classes and penalties: the parts of ``solver="auto"`` beyond two classes on
a narrow table.

False alarms: the check of the noise rejects at level 1e-6 for each of six combinations.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

from _support import RELATIONS, curator_over, problem_for, source_of, three_classes, two_classes
from hushfit import PrivateLogisticRegression
from hushfit.errors import InsecureNoiseWarning, InvalidArgument
from hushfit.losses import HuberHinge, Logistic, OneVsRest, Softmax
from hushfit.penalties import L1, ScaledL2, Zero
from hushfit.privacy import Budget
from hushfit.release import (
    ClassCounts,
    ClippedGradient,
    LineDerivative,
    Plan,
    Planned,
    RankOneMetric,
    RecordSum,
)
from hushfit.solvers import HeavyBall, Recalibrated, Tempered, WhitenedGradientDescent, run
from hushfit.solvers._whitening import MarginMoments, Spectrum, margin_moments
from hushfit.solvers.newton._prox_newton import _equivalent_ridge, _least_clip_factor
from hushfit.solvers.newton._whitened import Settings, least_clip_factor
from hushfit.solvers.wrappers import _recalibrated as recalibrated
from hushfit.solvers.wrappers import _tempered as tempered
from hushfit.solvers.wrappers._counted import shrunk_counts

# Releases

KINDS = {
    "derivatives": (
        LineDerivative,
        lambda p: LineDerivative(p, np.ones(p.shape), -np.ones(p.shape), 2.0),
    ),
    "counts": (ClassCounts, ClassCounts),
    "records": (RecordSum, RecordSum),
}


@pytest.mark.parametrize(("kind", "build"), KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_noise_on_derivatives_counts_and_records_is_the_multiplier_times_the_sensitivity(
    kind, build, relation
):
    """Of zero records, so that answers are noise alone."""
    rows = np.full((30, 4), np.nan)
    problem = problem_for(rows, Softmax(3), 3, relation)
    query, count = build(problem), 400
    plan = Plan((Planned("it", kind, count),))
    curator = curator_over(source_of(rows, np.zeros(30)), plan, 5.0, relation)
    drawn = np.concatenate([curator.release("it", query) for _ in range(count)])
    scaled = drawn / (5.0 * query.sensitivity(relation))
    low, high = stats.chi2(len(scaled)).ppf([5e-7, 1 - 5e-7])
    assert low <= float((scaled**2).sum()) <= high


@given(st.integers(2, 40), st.floats(0.05, 1.0), st.floats(0.1, 3.0), st.integers(0, 10_000))
def test_lengths_in_a_metric_of_rank_one_are_within_the_error_claimed(d, factor, scale, seed):
    rng = np.random.default_rng(seed)
    X, metric = rng.normal(size=(20, d)), RankOneMetric(rng.normal(size=d + 1), factor, scale)
    X[:5] = 1e6 * metric.direction[:-1] / max(abs(metric.direction[-1]), 1e-3)  # along it
    (block,) = source_of(X, np.ones(20)).blocks()
    exact = np.linalg.norm(metric.image(np.asarray(block.records())), axis=1)
    np.testing.assert_allclose(
        metric.lengths(block, True), exact, rtol=0, atol=2 * metric.error + 1e-12
    )


# Many columns


def wide_rows(n=400, d=600, density=0.02, seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.random(n, d, density, format="csr", random_state=rng)
    X.data[:] = 1.0
    return X, np.where(X @ rng.normal(size=d) > 0, 1.0, -1.0)


@pytest.mark.parametrize(
    ("epsilon", "n", "steps"), [(0.1, 1000, 60), (1.0, 60_000, 89), (3.0, 10**6, 200)]
)
def test_steps_follow_from_rows_and_budget(epsilon, n, steps):
    problem = replace(problem_for(np.empty((2, 3000))), n_units=n)
    assert HeavyBall().for_budget(Budget(epsilon, 1e-6), problem).steps == steps
    assert HeavyBall(steps=7).for_budget(Budget(epsilon, 1e-6), problem).steps == 7


def test_the_noise_of_a_margin_is_as_the_rule_says():
    """Without rows the weights are noise, of 0.7 in the margin of a unit record at the end."""
    X = np.full((5000, 40), np.nan)
    problem = problem_for(X)
    solver = HeavyBall(steps=80)
    found = []
    for seed in range(12):
        curator = curator_over(source_of(X, np.ones(5000)), solver.plan(problem), 60.0, seed=seed)
        found.append(run(solver, problem, curator).w)
    spread = float(np.std(np.array(found)))
    # The end of the run has had no time to gather momentum.
    assert 0.5 * 0.7 <= spread <= 1.2 * 0.7


@pytest.mark.parametrize("penalty", [Zero(), ScaledL2(1e-3), L1(1e-3)], ids=repr)
def test_sparse_rows_give_what_dense_ones_give(penalty):
    X, y = wide_rows()
    problem = problem_for(X, penalty=penalty)
    solver = HeavyBall(steps=8)
    one, other = (
        run(solver, problem, curator_over(source_of(rows, y), solver.plan(problem), 0.3)).w
        for rows in (X, X.toarray())
    )
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def test_no_matrix_of_columns_by_columns_is_made(monkeypatch):
    """20,000 columns: a metric as a matrix would take 3 GB."""
    X, y = wide_rows(n=300, d=20_000, density=0.001)

    def refuse(*arguments, **named):
        raise AssertionError("a dense matrix was made")

    monkeypatch.setattr(np, "eye", refuse)
    monkeypatch.setattr(np, "outer", refuse)
    monkeypatch.setattr(sparse.csr_matrix, "toarray", refuse)
    model = PrivateLogisticRegression(
        epsilon=3.0, classes=[-1, 1], solver=Recalibrated(HeavyBall(steps=3))
    )
    assert model.fit(X, y).coef_.shape == (1, 20_000)


def test_without_a_penalty_the_mean_record_is_released_first_and_shortened():
    X, y = two_classes(d=5)
    problem, solver = problem_for(X + 3), HeavyBall(steps=2)
    curator = curator_over(source_of(X + 3, y), solver.plan(problem), 0.0)
    run(solver, problem, curator)
    mean, *gradients = curator.transcript
    assert isinstance(mean.query, RecordSum)
    metric = gradients[0].query.metric
    direction = mean.answer / np.linalg.norm(mean.answer)
    np.testing.assert_allclose(metric.direction, direction)
    length = float(np.linalg.norm(mean.answer)) / problem.n_units
    assert metric.factor == pytest.approx(math.sqrt(0.1) / length)
    # Records keep their mean squared length.
    assert metric.scale**2 == pytest.approx(1 - length**2 + 0.1)
    penalised = replace(problem, penalty=L1(0.1))
    assert [part.query for part in solver.plan(penalised).parts] == [ClippedGradient]


@pytest.mark.parametrize(
    "wrong", [{"steps": 0}, {"clip": 0.0}, {"momentum": 1.0}, {"mean_share": 0.0}], ids=str
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(InvalidArgument, match="needs steps >= 1"):
        HeavyBall(**wrong)


# Calibration


def test_bins_that_are_noise_on_both_sides_are_left_out():
    counts = np.array([40.0, -30, 500, 900, 2000, 800, -20, 10])
    seen = recalibrated._visible_bins(counts, noise=20.0)
    np.testing.assert_array_equal(seen, [False, False, True, True, True, True, False, False])
    assert not recalibrated._visible_bins(np.zeros(8), noise=20.0).any()


@pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
def test_a_wide_histogram_finds_the_factor(factor):
    """Weights of the right direction and any length get the length that their labels show."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    problem = problem_for(X)
    w = np.array([3.0, -2.0, 1.0, 0.5])
    records = np.column_stack([X, np.ones(len(X))])
    records /= np.linalg.norm(records, axis=1, keepdims=True)
    y = np.where(rng.random(len(X)) < 1 / (1 + np.exp(-records @ w)), 1.0, -1.0)
    solver = Recalibrated(_Given(factor * w))
    curator = curator_over(source_of(X, y), solver.plan(problem), 0.01)
    np.testing.assert_allclose(run(solver, problem, curator).w, w, rtol=0.12)


@pytest.mark.parametrize(("epsilon", "most"), [(0.1, 0.1), (0.2, 0.06)])
def test_two_classes_are_close_to_their_frequencies_where_noise_hides_the_rows(epsilon, most):
    """Weak effects: with the usual prior alone the log-loss was .24 and .12 above theirs."""
    rng = np.random.default_rng(3)
    X = rng.random((2000, 13))
    score = 0.5 * (X - 0.5) @ rng.normal(size=13) - 0.85
    y = (rng.random(2000) < 1 / (1 + np.exp(-score))).astype(int)
    losses = []
    for seed in range(6):
        model = PrivateLogisticRegression(epsilon=epsilon, classes=[0, 1], random_state=seed)
        with pytest.warns(InsecureNoiseWarning):
            model.fit(X, y)
        losses.append(-float(model.predict_log_proba(X)[np.arange(2000), y].mean()))
    frequencies = -float(np.log(np.bincount(y) / 2000)[y].mean())
    assert np.mean(losses) <= frequencies + most


@pytest.mark.parametrize(
    ("noise", "share"), [(0.0, 0.0), (0.015, 0.0), (0.0225, 0.5), (0.03, 1.0), (9.0, 1.0)]
)
def test_margins_may_mean_nothing_where_noise_is_large(noise, share):
    """The prior changes gradually, and not at all on tables that show what margins mean."""
    assert recalibrated._hidden_share(noise) == pytest.approx(share)


@pytest.mark.parametrize("prior_mean", [-1.0, 0.0, 0.5])
@pytest.mark.parametrize("noise", [1e-6, 30.0, 1e6])
def test_a_factor_that_noise_hides_is_smaller_and_one_that_counts_show_is_the_same(
    noise, prior_mean
):
    """Counts of margins with the factor one, nearly exact and as good as unknown."""
    edges = np.array([-1.6, -0.8, -0.3, 0.0, 0.3, 0.8, 1.6])
    counts = 1000.0 * np.array([20, 50, 60, 60, 80, 160, 200, 300])
    usual, hidden = (
        recalibrated._factor(counts, edges, noise, prior_mean, hidden=share) for share in (0.0, 1.0)
    )
    if noise == 1e6:
        assert hidden < 0.8 * usual
    else:
        assert hidden == pytest.approx(usual, rel=0.05)


class _Given:
    """A solver that returns given weights, and asks for one gradient."""

    takes_constraint = False

    def __init__(self, w):
        self.w = w

    def plan(self, problem):
        return Plan((Planned("gradient", ClippedGradient, 1),))

    def iterates(self, problem, door):
        from hushfit.solvers import Iterate

        door.release("gradient", ClippedGradient(problem, self.w, 0.5))
        yield Iterate(self.w)


@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_the_temperature_is_found(factor, relation):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    problem = problem_for(X, Softmax(3), 3, relation)
    w = 3 * rng.normal(size=(3, 4))
    records = np.column_stack([X, np.ones(len(X))])
    records /= np.linalg.norm(records, axis=1, keepdims=True)
    y = np.argmax(records @ w.T + rng.gumbel(size=(len(X), 3)), axis=1).astype(float)
    solver = Tempered(_Given(factor * w))
    found = run(
        solver, problem, curator_over(source_of(X, y), solver.plan(problem), 0.01, relation)
    ).w
    # What all classes have in common does not show in probabilities, and is left out.
    np.testing.assert_allclose(found, w - w.mean(axis=0), rtol=0.15)


def test_a_model_of_noise_says_no_more_than_the_frequencies_of_the_classes():
    """Labels have nothing to do with the rows, and the weights are long."""
    rng = np.random.default_rng(1)
    X = rng.random((4000, 20))
    y = rng.choice(3, p=[0.6, 0.3, 0.1], size=4000).astype(float)
    losses = []
    for seed in range(3):
        model = PrivateLogisticRegression(epsilon=0.3, classes=[0, 1, 2], random_state=seed)
        with pytest.warns(InsecureNoiseWarning):
            model.fit(X, y)
        log_proba = model.predict_log_proba(X)
        losses.append(-float(log_proba[np.arange(4000), y.astype(int)].mean()))
    frequencies = -float(np.log(np.bincount(y.astype(int)) / 4000)[y.astype(int)].mean())
    assert np.mean(losses) <= frequencies + 0.1


@pytest.mark.parametrize(
    ("loss", "outputs"), [(Logistic(), 1), (OneVsRest(HuberHinge(), 3), 3)], ids=repr
)
def test_a_temperature_is_for_the_probabilities_of_several_classes(loss, outputs):
    with pytest.raises(InvalidArgument, match="more than two classes"):
        Tempered(WhitenedGradientDescent()).plan(problem_for(np.empty((20, 3)), loss, outputs))


def line_of_three(mean, log_odds=(1.0, 0.5, -1.5)):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    level = np.array([0.0, 0.0, 0.5, 2.0])
    margins = MarginMoments(np.array(mean), root @ root.T + np.outer(mean, mean), level)
    line = tempered._Line.of(rng.normal(size=(3, 4)), np.array(log_odds), margins)
    return line, tempered._Expectations(line, margins, Softmax(3))


@pytest.mark.parametrize("known", [0.1, 5.0, 500.0])
def test_the_less_is_known_the_smaller_margins_are_supposed_to_be(known):
    _, expectations = line_of_three([0.0, 0.0, 0.0])
    beliefs = tempered._Beliefs(expectations, known)
    more = tempered._Beliefs(expectations, 2 * known)
    assert tempered._LOGS[0] <= beliefs.best <= more.best
    assert beliefs.bound(0.0) <= more.bound(0.0)


def test_noisy_counts_are_drawn_together():
    counts = np.array([900.0, 100.0, -40.0])
    np.testing.assert_allclose(shrunk_counts(counts, 1e-9)[:2], counts[:2])
    assert (shrunk_counts(counts, 1e-9) > 0).all()
    np.testing.assert_allclose(shrunk_counts(counts, 1e5), counts.mean(), rtol=1e-3)
    between = shrunk_counts(counts, 200.0)
    assert counts.mean() < between[0] < counts[0]


@pytest.mark.parametrize("mean", [[0.0, 0.0, 0.0], [2.0, 1.0, -3.0], [-2.0, 0.0, 2.0]], ids=str)
def test_the_line_goes_through_the_weights_and_ends_at_the_prior(mean):
    """Where the weights' mean margins contain the frequencies twice, half of them is enough."""
    line, _ = line_of_three(mean)
    assert line.reached == (2.0 if mean[0] == 2.0 else 1.0)
    np.testing.assert_allclose(line.at(0.0), line.weights)
    np.testing.assert_allclose(line.at(-30.0), line.prior, atol=1e-9)
    np.testing.assert_allclose(line.prior[:, -1] / 2.0, line.log_odds)
    np.testing.assert_allclose(line.prior[:, -2] / 0.5, line.log_odds)
    for s in (-3.0, -1.0, 0.5):
        apart = (line.at(s + 1e-6) - line.at(s - 1e-6)) / 2e-6
        np.testing.assert_allclose(line.derivative(s), apart, atol=1e-6)


def test_the_alignment_of_a_point_makes_the_log_loss_smallest_there():
    """Of normal margins: their mean log-sum, less what labels that agree as much with the margins
    and have the counted frequencies take off it.
    """
    line, expectations = line_of_three([1.0, 0.5, -1.5])
    frequencies = np.exp(line.log_odds) / np.exp(line.log_odds).sum()
    steps = np.linspace(-2.5, 0.5, 301)

    def log_loss(s, alignment):
        factor, rest = line.factors(s)
        t = factor * expectations._draws + rest * line.log_odds
        mean = float(np.log(np.exp(t).sum(axis=1)).mean())
        return mean - factor * alignment - rest * float(frequencies @ line.log_odds)

    for s in (-1.5, -0.5):
        alignment = float(np.interp(s, tempered._LOGS, expectations.alignments))
        best = steps[np.argmin([log_loss(other, alignment) for other in steps])]
        assert best == pytest.approx(s, abs=0.03)


def test_points_spread_like_normals():
    points = tempered._normal_points(128, 3)
    np.testing.assert_allclose(points.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(points.T @ points / 256, np.eye(3), atol=0.1)


@pytest.mark.parametrize("solver", [WhitenedGradientDescent(steps=2), HeavyBall(steps=2)], ids=str)
def test_moments_of_margins_are_read_from_releases(solver):
    X, y = three_classes(d=6)
    problem = problem_for(X, Softmax(3), 3)
    curator = curator_over(source_of(X, y), solver.plan(problem), 0.0)
    w = run(solver, problem, curator).w
    records = np.column_stack([X, np.ones(len(X))])
    records /= np.linalg.norm(records, axis=1, keepdims=True)
    margins = records @ w.T
    found = margin_moments(w, problem, curator)
    assert (records @ found.level).mean() == pytest.approx(1.0, abs=0.05)
    if isinstance(solver, WhitenedGradientDescent):
        np.testing.assert_allclose(found.second, margins.T @ margins / len(X), rtol=1e-4, atol=1e-6)
        weighted = margins.T @ (records @ found.level) / len(X)
        np.testing.assert_allclose(found.mean, weighted, rtol=1e-3, atol=1e-6)
    else:
        np.testing.assert_allclose(found.mean, margins.mean(axis=0), rtol=1e-6)
    without = replace(problem, fit_intercept=False)
    other = margin_moments(w[:, :-1], without, curator_without_releases(without))
    assert not other.level.any()
    assert not other.mean.any()


NUMBERS = np.random.default_rng(0).random((3000, 12))
LABELS = np.eye(40)[np.random.default_rng(0).integers(0, 40, (3000, 4)) % [3, 7, 20, 40]].sum(1)


@pytest.mark.parametrize(
    ("X", "most"), [(NUMBERS, 0.05), (np.minimum(LABELS, 1.0), 0.07)], ids=["numbers", "labels"]
)
def test_the_margin_of_the_level_is_about_one_for_every_record(X, most):
    """The intercept's entry varies by 11 % with the lengths of rows of numbers, and the entry along
    the main direction by 10 % on indicators.
    """
    problem = problem_for(X, Softmax(3), 3)
    solver = WhitenedGradientDescent(steps=2)
    curator = curator_over(source_of(X, np.arange(3000.0) % 3), solver.plan(problem), 0.0)
    run(solver, problem, curator)
    records = np.column_stack([X, np.ones(len(X))])
    records /= np.linalg.norm(records, axis=1, keepdims=True)
    ones = records @ margin_moments(np.zeros((3, X.shape[1] + 1)), problem, curator).level
    assert ones.mean() == pytest.approx(1.0, abs=0.02)
    assert ones.std() < most


def test_the_last_point_is_nearer_to_the_frequencies_by_what_is_not_known():
    _, expectations = line_of_three([0.0, 0.0, 0.0])
    little, much = (tempered._Beliefs(expectations, known) for known in (5.0, 500.0))
    assert little.cautious < little.best
    known = much.after(-1.0, 0.0, 1e-6)
    assert known.cautious == pytest.approx(known.best, abs=0.01)


def curator_without_releases(problem):
    X, y = three_classes(d=6)
    return curator_over(source_of(X, y, fit_intercept=False), HeavyBall().plan(problem), 0.0)


def test_moments_that_noise_hides_are_those_of_equal_eigenvalues():
    """With noise above everything, margins are as large as weights of a random direction make."""
    X, y = three_classes(d=6)
    problem, solver = problem_for(X, Softmax(3), 3), WhitenedGradientDescent(steps=1)
    w = np.random.default_rng(0).normal(size=problem.shape)
    spreads = []
    for seed in range(5):
        curator = curator_over(source_of(X, y), solver.plan(problem), 1e5, seed=seed)
        run(solver, problem, curator)
        spreads.append(margin_moments(w, problem, curator).spread)
    isotropic = float(np.sqrt((w**2).sum() / problem.dimension))
    np.testing.assert_allclose(spreads, isotropic, rtol=0.9)


# Penalties


def test_a_larger_clipping_norm_leaves_the_noise_of_a_step_as_it_is():
    settings = Settings.for_noise(0.03, 10.0, 60)
    loose = settings.with_clip_of_at_least(3 * settings.clip)
    assert loose.clip == pytest.approx(3 * settings.clip)
    assert loose.clip * loose.first_step == pytest.approx(settings.clip * settings.first_step)
    assert loose.clip * loose.largest_step == pytest.approx(settings.clip * settings.largest_step)
    assert settings.with_clip_of_at_least(settings.clip / 2) == settings


@pytest.mark.parametrize(
    ("nu", "ridge", "least"),
    [(0.1, 1.0, 0.5), (0.022, 1.0, 1.0), (0.011, 1.0, 1.0), (0.001, 1.0, 2.0), (0.001, 0.0, 0.0)],
)
def test_with_a_penalty_slopes_are_clipped_less(nu, ridge, least):
    assert least_clip_factor(nu, ridge, 100) == pytest.approx(least)


def test_a_weak_penalty_hardly_changes_the_clipping_norm():
    factors = [least_clip_factor(0.02, ridge, 100) for ridge in (0.0, 1e-8, 1e-6, 1e-4)]
    assert factors == sorted(factors)
    assert factors[1] < 0.02


def test_the_strength_of_a_penalty_is_that_of_a_squared_one():
    ridge = problem_for(np.empty((20, 5)), penalty=ScaledL2(0.3))
    assert _equivalent_ridge(ridge) == pytest.approx(0.3)
    assert _equivalent_ridge(replace(ridge, penalty=L1(0.3))) == pytest.approx(0.06)
    assert _equivalent_ridge(replace(ridge, penalty=Zero())) == 0.0


@pytest.mark.parametrize(("nu", "least"), [(0.1, 0.5), (0.03, 0.7), (0.02, 0.75), (0.001, 1.0)])
def test_sparse_penalties_have_a_floor_of_their_own(nu, least):
    problem = problem_for(np.empty((20, 100)), penalty=L1(0.1))
    assert _least_clip_factor(nu, problem) == pytest.approx(least)
    assert _least_clip_factor(nu, replace(problem, penalty=L1(1e-12))) < 0.01


def test_a_penalty_reduces_the_dimension_that_noise_has():
    values = np.array([0.001, 0.01, 0.1, 0.889])
    spectrum = Spectrum(np.eye(4), values, values, 0.0, 0.0)
    assert spectrum.penalised_dimension(0.0) == pytest.approx(4.0)
    # Mean second derivative 0.15: a penalty of 0.015 halves the direction of eigenvalue 0.1.
    expected = (values / (values + 0.1)).sum()
    assert spectrum.penalised_dimension(0.015) == pytest.approx(expected)
