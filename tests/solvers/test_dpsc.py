"""DPSC draws fresh noise in every iteration; the published form is shown to reveal the rows.

False alarms: statistical checks have fixed seeds; with fresh ones each would reject at five
standard deviations, below 1e-6.
"""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, kstest, laplace

from _support import (
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
from hushfit.errors import InvalidArgument
from hushfit.losses import Logistic
from hushfit.penalties import L1, MCP, SCAD, LHalf, ScaledL2, Zero
from hushfit.privacy import GaussianCost, ObjectiveCost, PureCost, Relation, compose, epsilon_of
from hushfit.release import LaplaceInside, PerturbedMinimiser, Plan, Planned
from hushfit.solvers import DPSC, ExactMinimiser, Iterate, run

C = 2.5


# The attack on noise that is drawn once


def mean_gradient(w, X, y):
    return (-y * expit(-y * (X @ w))) @ X / len(y)


def primal_step(X, y, linear, c):
    """Minimiser of the mean logistic loss + c/2 |w|^2 + linear . w, by Newton's method."""
    w = np.zeros(X.shape[1])
    for _ in range(30):
        weight = expit(X @ w) * expit(-(X @ w))
        H = (X * weight[:, None]).T @ X / len(y) + c * np.eye(len(w))
        w = w - np.linalg.solve(H, mean_gradient(w, X, y) + c * w + linear)
    return w


def published_dpsc(X, y, penalty, rounds, noise):
    """The published loop: one draw of noise for all iterations."""
    w, V, steps = np.zeros(X.shape[1]), np.zeros(X.shape[1]), []
    for _ in range(rounds):
        Z = penalty.prox(w - V / C, 1 / C)
        steps.append((Z, V))
        w = primal_step(X, y, noise - (C * Z + V), C)
        V = V + C * (Z - w)
        steps[-1] += (w,)
    return steps


def corrected_dpsc(X, y, penalty, rounds, multiplier, seed):
    """The library's transcript, in the same form."""
    problem = problem_for(X, penalty=penalty, fit_intercept=False)
    solver = DPSC(steps=rounds, c=C, output_share=0.5)
    curator = curator_over(
        source_of(X, y, fit_intercept=False), solver.plan(problem), multiplier, seed=seed
    )
    run(solver, problem, curator)
    w, V, steps = np.zeros(X.shape[1]), np.zeros(X.shape[1]), []
    for released in curator.transcript:
        Z = penalty.prox(w - V / C, 1 / C)
        w = released.answer
        steps.append((Z, V, w))
        V = V + C * (Z - w)
    return steps


def recovered_noise(steps, X, y):
    """The noise of each iteration, computed from the transcript, if these were the rows."""
    return np.array([-(mean_gradient(w, X, y) + C * w - C * Z - V) for Z, V, w in steps])


def canaries(n=2000, p=5, seed=0):
    """Two tables that differ in one record and its Hessian: a unit vector against zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X /= np.linalg.norm(X, axis=1)[:, None]
    y = rng.choice([-1.0, 1.0], size=n)
    X[0] = np.eye(p)[0]
    other = X.copy()
    other[0] = 0.0
    return (X, y), (other, y)


def attack_accuracy(transcript_over, trials=20):
    """Guess the table under which the noise of two iterations is closest to equal."""
    tables = canaries()
    right = 0
    for trial in range(trials):
        truth = trial % 2
        steps = transcript_over(*tables[truth], trial)
        gaps = [np.linalg.norm(np.subtract(*recovered_noise(steps, *table))) for table in tables]
        right += int(np.argmin(gaps)) == truth
    return right


def test_noise_drawn_once_gives_the_rows_away():
    def published(X, y, trial):
        rng = np.random.default_rng(trial)
        direction = rng.normal(size=5)
        noise = rng.gamma(5, C / 300) * direction / np.linalg.norm(direction)
        return published_dpsc(X, y, L1(1e-3), 2, noise)

    assert attack_accuracy(published) == 20


def test_noise_drawn_afresh_does_not():
    def corrected(X, y, trial):
        return corrected_dpsc(X, y, L1(1e-3), 2, 3.0, trial)

    assert binom.sf(attack_accuracy(corrected) - 1, 20, 0.5) > 1e-3


@pytest.mark.parametrize("reused", [False, True], ids=["fresh", "published"])
def test_every_round_has_noise_of_its_own(reused):
    """The noises recovered from the transcript differ and are normal with the scale paid for."""
    (X, y), _ = canaries(n=200)
    scale = 3.0 * 2 / len(y)
    if reused:
        steps = published_dpsc(X, y, L1(1e-3), 40, scale * np.random.default_rng(0).normal(size=5))
    else:
        steps = corrected_dpsc(X, y, L1(1e-3), 40, 3.0, 0)
    noise = recovered_noise(steps, X, y) / scale
    gaps = np.linalg.norm(noise[1:] - noise[:-1], axis=1)
    assert (gaps.min() > 0.1) == (not reused)
    if reused:
        assert gaps.max() < 1e-9
    else:
        # 200 squares of standard normals
        assert np.mean(noise**2) == pytest.approx(1.0, abs=5 * math.sqrt(2 / 200))


@pytest.mark.parametrize("penalty", [L1(0.01), SCAD(0.01), LHalf(0.01)], ids=repr)
def test_every_public_variable_is_a_function_of_the_transcript(penalty):
    """Queries recomputed from the released answers alone are equal bit for bit; so is the
    result.
    """
    X, y = two_classes()
    problem, solver = problem_for(X, penalty=penalty), DPSC(steps=4)
    curator = curator_over(source_of(X, y), solver.plan(problem), 3.0)
    asked = []
    answer = curator.release

    def listening(name, query):
        asked.append(query.linear)
        return answer(name, query)

    curator.release = listening
    result = run(solver, problem, curator).w
    w, V = np.zeros(problem.shape), np.zeros(problem.shape)
    for linear, released in zip(asked, curator.transcript, strict=True):
        Z = problem.prox(w - V / 0.1, 1 / 0.1)
        np.testing.assert_array_equal(linear, -(0.1 * Z + V))
        w = released.answer
        V = V + 0.1 * (Z - w)
    np.testing.assert_array_equal(result, problem.prox(w - V / 0.1, 1 / 0.1))


class _Keeping:
    """A faulty variant whose dual has the minimiser without noise, which was never released."""

    takes_constraint = False

    def __init__(self, source):
        self.source = source

    def plan(self, problem):
        return DPSC(steps=4).plan(problem)

    def iterates(self, problem, curator):
        w, V = np.zeros(problem.shape), np.zeros(problem.shape)
        for _ in range(4):
            Z = problem.prox(w - V / 0.1, 1 / 0.1)
            query = DPSC()._query(problem, -(0.1 * Z + V))
            w = curator.release("primal step", query).reshape(problem.shape)
            V = V + 0.1 * (Z - query(self.source, None).reshape(problem.shape))
            yield Iterate(problem.prox(w - V / 0.1, 1 / 0.1), weight=1.0)


def test_a_replay_over_other_rows_exposes_what_was_not_released():
    """With the same answers DPSC returns the same weights for all rows; a faulty variant does
    not.
    """
    X, y = two_classes()
    problem = problem_for(X, penalty=L1(0.01))
    tables = source_of(X, y), source_of(X, -y)
    for make, same in ((lambda source: DPSC(steps=4), True), (_Keeping, False)):
        plan = make(tables[0]).plan(problem)
        first = curator_over(tables[0], plan, 3.0)
        w = run(make(tables[0]), problem, first).w
        replay = curator_over(tables[1], plan, 3.0, seed=7, replay=first.transcript)
        assert np.array_equal(run(make(tables[1]), problem, replay).w, w) == same


@pytest.mark.parametrize("bug", [1.0, 0.5], ids=["right", "half the noise"])
def test_a_label_flip_is_seen_through_all_rounds_as_predicted(bug):
    """Four records, five iterations, noise 0.6: mu is sqrt(5) / (4 * 0.6) = 0.932.

    That is half of the 1.863 that is paid for. Flipping a label changes every gradient by x/n and
    no Hessian, so sums of the recovered noises are sufficient. 250 runs on each side: standard
    deviation sqrt(2/250) = 0.09.
    """
    X, y = np.ones((4, 1)), np.array([1.0, 1.0, -1.0, -1.0])
    rounds, sigma, runs = 5, 0.6, 250
    assert 2 * math.sqrt(rounds) / (4 * sigma) == pytest.approx(1.863, abs=1e-3)
    problem = problem_for(X, fit_intercept=False)
    solver = DPSC(steps=rounds, c=C, output_share=0.5)
    sums = []
    for place, labels in enumerate((y, np.append(-y[0], y[1:]))):
        source, found = source_of(X, labels, fit_intercept=False), []
        for seed in range(runs):
            curator = curator_over(
                source, solver.plan(problem), bug * sigma * 4 / 2, seed=2 * seed + place
            )
            run(solver, problem, curator)
            w, V, total = np.zeros(1), np.zeros(1), 0.0
            for released in curator.transcript:
                Z, w = w - V / C, released.answer  # no penalty: the prox is the identity
                total -= float((mean_gradient(w, X, y) + C * w - C * Z - V)[0])
                V = V + C * (Z - w)
            found.append(total)
        sums.append(np.array(found))
    measured = abs(sums[0].mean() - sums[1].mean()) / sums[0].std()
    predicted = math.sqrt(rounds) / (4 * sigma)
    assert predicted == pytest.approx(0.932, abs=1e-3)
    assert (abs(measured - predicted) <= 5 * math.sqrt(2 / runs)) == (bug == 1.0)


# Pure noise


def log_density(theta, x, mu, rate):
    """Laplace noise in a logistic objective on a line."""
    margins = np.multiply.outer(theta, x)
    gradient = -(expit(-margins) * x).sum(axis=1) / len(x) + mu * theta
    curvature = (expit(margins) * expit(-margins) * x**2).sum(axis=1) / len(x) + mu
    return -rate * np.abs(gradient) + np.log(curvature)


def largest_log_ratio(relation, paid):
    """Largest log density ratio over its cost, over random problems of a few records."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(200):
        n, mu, multiplier = (
            int(rng.choice([1, 2, 5])),
            10 ** rng.uniform(-2, 0.5),
            10 ** rng.uniform(-0.5, 1.5),
        )
        x = rng.uniform(-1, 1, n)
        x[0] = 1.0
        other = x.copy()
        other[0] = 0.0 if relation is Relation.ADD_REMOVE else rng.choice([-1.0, 0.0, 0.5])
        shift = (2 if relation is Relation.REPLACE_ONE else 1) / n
        theta = np.linspace(-60, 60, 6001) / mu
        ratio = np.abs(
            np.subtract(
                *(log_density(theta, rows, mu, 1 / (multiplier * shift)) for rows in (x, other))
            )
        )
        worst = max(worst, float(ratio.max()) / paid(multiplier, 0.25 / (n * mu)))
    return worst


def pure_price(multiplier, kappa):
    """The cost without that of the noise on the output."""
    noise = LaplaceInside(kappa)
    return noise.cost(multiplier, 1, 1).epsilon - 1 / noise.output_multiplier(multiplier)


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_no_density_ratio_exceeds_the_pure_price(relation):
    assert 0.5 < largest_log_ratio(relation, pure_price) <= 1 + 1e-9


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_a_pure_price_without_curvature_is_too_low(relation):
    assert largest_log_ratio(relation, lambda multiplier, kappa: 1 / multiplier) > 1.5


def test_pure_noise_is_laplace_of_the_scale_that_was_paid_for():
    """Lengths are L1 norms, at most the square root of the dimension times longer."""
    X, y = two_classes(n=50, d=3)
    query, Z, rounds = PerturbedMinimiser(problem_for(X), 0.2), records_of(X), 400
    plan = Plan(
        (Planned("w", PerturbedMinimiser, rounds, sampling=LaplaceInside(query.kappa, 1, 0.5)),)
    )
    curator = curator_over(source_of(X, y), plan, 3.0)
    found = np.array([curator.release("w", query) for _ in range(rounds)])
    noise = -np.array([mean_gradient(w, Z, y) + 0.2 * w for w in found])
    scale = 3.0 * math.sqrt(4) * 2 / 50
    assert kstest(noise.ravel() / scale, laplace.cdf).pvalue > 1e-6
    assert kstest(0.7 * noise.ravel() / scale, laplace.cdf).pvalue < 1e-6


def test_pure_rounds_cost_pure_epsilons():
    solver, problem = (
        DPSC(steps=7, c=0.2, noise="pure", output_share=0.1),
        problem_for(np.empty((100, 3))),
    )
    kappa = 0.25 / (100 * 0.2)
    expected = 1 / 5.0 + 1 / 45.0 + math.log1p(kappa)
    cost = solver.plan(problem).cost({"primal step": 5.0}, 100)
    assert isinstance(cost, PureCost)
    assert cost.count == 7
    assert cost.epsilon == pytest.approx(expected, rel=1e-8)
    assert solver.plan(problem).cost({"primal step": 0.0}, 100) == PureCost(math.inf, 7)


# The solver


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_it_makes_what_it_declared_and_pays_for_it(relation):
    X, y = two_classes()
    solver, problem = DPSC(steps=3), problem_for(X, penalty=MCP(0.01), relation=relation)
    plan = solver.plan(problem)
    curator = curator_over(source_of(X, y), plan, 3.0, relation)
    run(solver, problem, curator)
    assert Counter(released.name for released in curator.transcript) == {"primal step": 3}
    kappa = plan.parts[0].sampling.kappa
    assert kappa == pytest.approx(0.25 / (len(y) * 0.1))
    made = compose([ObjectiveCost(3.0, kappa, 1, 3), GaussianCost(3.0 * math.sqrt(99), 3)])
    assert plan.cost({"primal step": 3.0}, len(y)) == made


@pytest.mark.parametrize("noise", ["gaussian", "pure"])
@pytest.mark.parametrize("penalty", [ScaledL2(0.05), L1(0.02)], ids=repr)
def test_without_noise_it_finds_the_minimum(penalty, noise):
    X, y = two_classes(n=200, d=4)
    problem = problem_for(X, penalty=penalty)
    least = without_noise(ExactMinimiser(tolerance=1e-10), problem, X, y)
    for output in ("sparse", "dense"):
        solver = DPSC(steps=300, c=0.1, noise=noise, output=output)
        w = without_noise(solver, problem, X, y)
        np.testing.assert_allclose(w, least, atol=1e-6)


@pytest.mark.parametrize("layout", SOURCES.values(), ids=SOURCES)
def test_every_layout_gives_the_same_weights(layout):
    X, y = table(200, 4), labels_for(Logistic(), 1, 200)
    solver, problem = DPSC(steps=4), problem_for(X, penalty=L1(0.01))
    plain, other = (
        run(solver, problem, curator_over(source_of(rows, y), solver.plan(problem), 3.0)).w
        for rows in (X, layout(X))
    )
    np.testing.assert_allclose(other, plain, atol=1e-6)


def test_the_sparse_output_is_sparse_and_the_dense_one_is_not():
    X, y = two_classes(n=500, d=10)
    problem = problem_for(X, penalty=L1(0.05))
    sparse, dense = (
        run(solver, problem, curator_over(source_of(X, y), solver.plan(problem), 0.5)).w
        for solver in (DPSC(), DPSC(output="dense"))
    )
    assert (sparse[:-1] == 0).any()
    assert (dense != 0).all()


def test_bad_settings_are_refused():
    for settings in ({"steps": 0}, {"c": 0.0}, {"c": math.inf}):
        with pytest.raises(InvalidArgument, match="steps >= 1"):
            DPSC(**settings)
    for settings in ({"noise": "uniform"}, {"output": "w"}):
        with pytest.raises(InvalidArgument, match="'gaussian' or 'pure'"):
            DPSC(**settings)


@pytest.mark.usefixtures("quiet_fits")
@pytest.mark.parametrize("solver", ["dpsc", DPSC(noise="pure")], ids=["gaussian", "pure"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("penalty", [None, SCAD(1e-3)], ids=str)
def test_estimators_take_it(solver, adjacency, penalty):
    X, y = two_classes(n=1000)
    model = PrivateLogisticRegression(
        epsilon=4.0,
        delta=1e-5,
        adjacency=adjacency,
        penalty=penalty,
        solver=solver,
        classes=[-1, 1],
        random_state=0,
    ).fit(X, y)
    assert model.score(X, y) > 0.8
    assert 3.96 < epsilon_of(model.privacy_.cost, 1e-5, adjacency) <= 4.0


# The prox of the Z step, where 1/c is long


def smallest_on_a_grid(penalty, q, c):
    z = np.linspace(-6, 6, 120_001)
    # The penalty is separable: one coordinate at a time.
    each = np.array([penalty.value(np.array([value])) for value in z[::100]])
    coarse = z[::100][np.argmin(each + c / 2 * (z[::100] - q) ** 2)]
    fine = np.concatenate([np.linspace(coarse - 0.02, coarse + 0.02, 4001), [0.0, q]])
    return min(penalty.value(np.array([value])) + c / 2 * (value - q) ** 2 for value in fine)


@pytest.mark.parametrize("c", [0.1, 0.3, 2.0])
@pytest.mark.parametrize("penalty", [L1(0.3), LHalf(0.3), SCAD(0.3), MCP(0.3), Zero()], ids=repr)
def test_the_prox_is_a_global_minimum_at_every_c(penalty, c):
    rng = np.random.default_rng(0)
    for q in rng.uniform(-5, 5, 8):
        z = penalty.prox(np.array([q]), 1 / c)
        assert (
            penalty.value(z) + c / 2 * (z[0] - q) ** 2 <= smallest_on_a_grid(penalty, q, c) + 1e-9
        )


def published_scad(q, c, alpha=0.3, a=3.7):
    """The closed form for a > 1 + 1/c, which the published algorithm uses at any c."""
    if abs(q) <= alpha + alpha / c:
        return math.copysign(max(abs(q) - alpha / c, 0.0), q)
    return (
        math.copysign((c * (a - 1) * abs(q) - a * alpha) / (c * (a - 1) - 1), q)
        if abs(q) <= a * alpha
        else q
    )


@pytest.mark.parametrize(("c", "right"), [(2.0, True), (0.3, False)])
def test_the_published_prox_of_scad_is_wrong_at_small_c(c, right):
    penalty = SCAD(0.3)
    excess = max(
        penalty.value(np.array([z])) + c / 2 * (z - q) ** 2 - smallest_on_a_grid(penalty, q, c)
        for q in np.linspace(0.2, 1.6, 15)
        for z in [published_scad(q, c)]
    )
    assert (excess <= 1e-9) == right
