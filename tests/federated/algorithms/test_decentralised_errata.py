"""Claims of the errata of the source text: canaries, sensitivities, certificates, isolation of
rows. Tests 2, 8, 9 and 11 there; each fault is put back and must be detected.

False alarms: statistical checks have fixed seeds; with fresh ones each would reject at five
standard deviations, below 1e-6.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from _talks import held, model, seats, tables
from scipy.special import expit

from _support import curator_over, problem_for, records_of, source_of
from hushfit.data import SeededCoins
from hushfit.errors import NotCertified
from hushfit.federated import PPADMM, Network, Seat
from hushfit.losses import Logistic
from hushfit.privacy import Budget, Relation, SeededSampler
from hushfit.release import ClippedGradient, GaussianInside, PerturbedMinimiser, Plan, Planned
from hushfit.release.curator import Curator
from hushfit.release.mechanisms import certified_search
from hushfit.release.mechanisms.perturbed_minimiser import CertifiedMinimiser

# Test 2: canaries with known answers


def recovered_noise(query, X, y, released):
    """The noise inside the objective, from the optimality condition at a released minimiser (its
    output noise is tiny).
    """
    Z = records_of(X, fit_intercept=False)
    g = -(y * expit(-y * (Z @ released))) @ Z / len(y)
    return -(g + query.mu * released + (0.0 if query.linear is None else query.linear))


def separation(one, other):
    """mu of two normal samples: the distance of their means in standard deviations."""
    return abs(np.mean(one) - np.mean(other)) / math.sqrt((np.var(one) + np.var(other)) / 2)


def far_canary(runs, multiplier):
    """Two records whose gradients at a far point are opposite: they differ by as much as is
    accounted for.
    """
    n, lean = 5, 0.05
    high = math.sqrt(1 - lean**2)
    X = np.tile([0.0, 1.0], (n, 1))
    statistic = []
    for sign in (1.0, -1.0):
        rows = X.copy()
        rows[0] = [-lean, sign * high]
        problem = problem_for(rows, fit_intercept=False)
        query = PerturbedMinimiser(problem, 0.02, np.array([-8.0, 0.0]))
        noise = GaussianInside(query.kappa, query.rank, 1e-4)
        plan = Plan((Planned("primal step", PerturbedMinimiser, runs, sampling=noise),))
        curator = curator_over(
            source_of(rows, np.ones(n), False), plan, multiplier, seed=int(sign) + 5
        )
        neutral = X.copy()
        neutral[0] = [-lean, high]
        released = [curator.release("primal step", query) for _ in range(runs)]
        statistic.append([recovered_noise(query, neutral, np.ones(n), w)[1] for w in released])
    return separation(*statistic)


def test_the_strongest_canary_reaches_what_is_accounted_and_halved_noise_exceeds_it():
    """n = 5 and noise of one sensitivity: accounted 1.0, measured .967 by the errata; five standard
    deviations are .41 here.
    """
    runs = 300
    slack = 5 * math.sqrt(2 / runs)
    accounted = 1.0
    assert accounted - slack < far_canary(runs, 1.0) < accounted + slack
    assert far_canary(runs, 0.5) > accounted + slack


def flipped_pp_admm(runs, multiplier):
    """mu of a label flip at one of two owners over the transcript of PP-ADMM, T = 5, n = 4."""
    n, steps, network = 4, 5, Network.ring(["a", "b"])
    algorithm = PPADMM(steps=steps, eta=0.5, ridge=0.1, output_share=1e-4)
    rng = np.random.default_rng(0)
    X = {who: rng.normal(size=(n, 2)) for who in ("a", "b")}
    y = {who: np.array([1.0, -1.0, 1.0, -1.0]) for who in ("a", "b")}
    flipped = y["a"] * np.array([-1.0, 1.0, 1.0, 1.0])
    x = records_of(X["a"], False)[0]
    problem = problem_for(X["a"], fit_intercept=False)
    places = {
        who: Seat(
            who,
            network,
            problem,
            dict.fromkeys(("a", "b"), n),
            dict.fromkeys(("a", "b"), Budget(1.0, 1e-5)),
        )
        for who in X
    }
    found = []
    for number, labels in enumerate((y["a"], flipped)):
        totals = []
        sources = {"a": source_of(X["a"], labels, False), "b": source_of(X["b"], y["b"], False)}
        for run in range(runs):
            curators, queries = {}, []
            for place, who in enumerate(("a", "b")):
                sampler = SeededSampler(10_000 * number + 2 * run + place)
                plan = algorithm.plan(places[who])
                curators[who] = Curator(
                    sources[who],
                    plan,
                    {"primal step": multiplier},
                    Relation.REPLACE_ONE,
                    sampler,
                    SeededCoins(0),
                )
            release = curators["a"].release

            def spy(name, query, queries=queries, release=release):
                queries.append(query)
                return release(name, query)

            curators["a"].release = spy
            messages, _ = held(algorithm, {who: (places[who], None) for who in X}, curators)
            noises = [
                recovered_noise(query, X["a"], y["a"], sent["a"]) @ x
                for query, sent in zip(queries, messages, strict=True)
            ]
            totals.append(sum(noises))
        found.append(totals)
    return separation(*found)


@pytest.mark.slow
def test_a_label_flip_is_seen_as_clearly_as_predicted_over_a_whole_run():
    """sigma = .6: the gradients differ by x / n, so mu is sqrt(5) / (4 x .6) = .932, half of
    what is accounted.
    """
    runs, sigma, n = 150, 0.6, 4
    slack = 5 * math.sqrt(2 / runs)
    multiplier = sigma / (2 / n)
    assert flipped_pp_admm(runs, multiplier) == pytest.approx(0.932, abs=slack)
    assert math.sqrt(5) / multiplier == pytest.approx(1.863, abs=1e-3)  # what is accounted
    assert flipped_pp_admm(runs, multiplier / 2) > 0.932 + slack  # noise for half the sensitivity


# Test 8: sensitivities


def climbed(difference, rng, climbs=400):
    """The largest value that a random search over two records finds."""
    best, here = None, -1.0
    for _ in range(climbs):
        fresh = best is None or rng.random() < 0.2
        pair = (
            [(rng.normal(size=2), rng.choice([-1.0, 1.0])) for _ in range(2)]
            if fresh
            else [(x + 10 ** rng.uniform(-2, 0) * rng.normal(size=2), label) for x, label in best]
        )
        there = difference(*pair)
        if there > here:
            best, here = pair, there
    return here


def solved(Z, y, mu, linear):
    w = np.zeros(Z.shape[1])
    for _ in range(60):
        p = expit(-y * (Z @ w))
        g = -(y * p) @ Z / len(y) + mu * w + linear
        H = (Z * (p * (1 - p))[:, None]).T @ Z / len(y) + mu * np.eye(len(w))
        w = w - np.linalg.solve(H, g) * min(
            1.0, 3.0 / max(np.linalg.norm(np.linalg.solve(H, g)), 1e-300)
        )
    return w


@dataclass(frozen=True)
class Pair:
    """Neighbouring tables of unit records around common rows."""

    Z: np.ndarray
    y: np.ndarray

    def tables(self, one, other):
        for x, label in (one, other):
            Z, y = self.Z.copy(), self.y.copy()
            Z[0], y[0] = x / max(np.linalg.norm(x), 1.0), label
            yield Z, y


def mean_loss(Z, y, w, clip=math.inf):
    return float(np.minimum(np.logaddexp(0, -y * (Z @ w)), clip).mean())


def test_gradients_minimisers_and_qualities_move_no_further_than_proved():
    """(2), (8), (11) and (12) of the errata, by hill climbing over neighbours."""
    rng, n, mu, C = np.random.default_rng(0), 6, 0.3, 0.4
    pair = Pair(records_of(rng.normal(size=(n, 2)), False), rng.choice([-1.0, 1.0], n))
    linear, at = np.array([0.2, -0.1]), np.array([0.5, 1.5])

    def gradient(Z, y):
        return -(y * expit(-y * (Z @ at))) @ Z / n + mu * at + linear

    def norm(Z, y):
        return float(np.linalg.norm(gradient(Z, y)))

    def decrease(Z, y):  # (11)
        return mean_loss(Z, y, at, C) - mean_loss(Z, y, solved(Z, y, mu, linear), C)

    def objective(Z, y, w):
        return mean_loss(Z, y, w) + mu / 2 * w @ w + linear @ w

    def fall(Z, y):  # (12)
        return objective(Z, y, at) - objective(Z, y, solved(Z, y, mu, linear))

    def difference(f):
        return lambda one, other: float(
            np.linalg.norm(np.subtract(*(f(Z, y) for Z, y in pair.tables(one, other))))
        )

    public = float(np.linalg.norm(mu * at + linear))
    bounds = {
        gradient: 2 / n,
        norm: 2 / n,
        (lambda Z, y: solved(Z, y, mu, linear)): 2 / (n * mu),
        decrease: 2 * C / n + 2 / (n * mu),
        fall: (2 / n) * (1 + public) / mu,
    }
    for f, bound in bounds.items():
        assert 0 < climbed(difference(f), rng, 60) <= bound * (1 + 1e-9)


def test_the_published_sensitivity_of_the_quality_forgets_that_the_candidate_moves():
    """The counterexample: 8.6 times the published bound, and below the corrected one."""
    n, mu, C = 1000, 0.01, 0.05
    Z, y = np.ones((n, 1)), np.ones(n)
    linear = np.array([expit(-3.0) - mu * 3.0])
    other = y.copy()
    other[0] = -1.0
    here, there = solved(Z, y, mu, linear), solved(Z, other, mu, linear)
    assert (here[0], there[0]) == pytest.approx((3.000, 2.982), abs=5e-4)
    start = np.zeros(1)

    def quality(labels, w):
        return mean_loss(Z, labels, start, C) - mean_loss(Z, labels, w, C)

    moved = n * abs(quality(y, here) - quality(other, there))
    assert moved == pytest.approx(0.862, abs=0.005)
    assert moved > 2 * C  # the bound of the source text, even with its 1/n put back
    assert moved <= n * (2 * C / n + 2 / (n * mu))


# Test 9: nothing is released without a certificate


def certified_query():
    X, y = tables()["north"]
    problem = problem_for(X)
    return PerturbedMinimiser(problem, 0.01, 0.1 * np.ones(problem.shape)), X, 2.0 * y - 1


def gradient_at(query, X, y, w):
    """Norm of the gradient in more digits than the solver has."""
    Z, w, y = records_of(X).astype(np.longdouble), w.astype(np.longdouble), y.astype(np.longdouble)
    slope = -y / (1 + np.exp(y * (Z @ w)))
    return float(np.linalg.norm(slope @ Z / len(y) + query.mu * w + query.linear))


def test_a_solver_that_gives_up_releases_nothing(monkeypatch):
    query, X, y = certified_query()
    source = source_of(X, y)
    certified = CertifiedMinimiser(query, np.zeros(query.size), 0.0, 0.0)
    assert gradient_at(query, X, y, certified(source, None)) <= certified.gradient_norm
    # The fault: the result of one step, released without a certificate.
    g = (
        ClippedGradient(query.problem, np.zeros(query.size), 1.0)(source, None) / len(y)
        + query.linear
    )
    assert gradient_at(query, X, y, -g / (0.25 + query.mu)) > certified.gradient_norm

    monkeypatch.setattr(certified_search, "_MOST_STEPS", 1)
    algorithm = PPADMM(steps=3)
    seat, rows = seats()["north"]
    curator = curator_over(rows, algorithm.plan(seat), 1.0)
    with pytest.raises(NotCertified, match="nothing was released"):
        next(algorithm.converse(seat, curator))
    assert not curator.transcript


# Test 11: isolation


def test_changing_a_row_changes_no_other_record():
    X, y = tables()["north"]
    changed = X.copy()
    changed[0] = 1e6
    before, after = (model().prepare(rows, y) for rows in (X, changed))
    query = ClippedGradient(before.problem, np.ones(before.problem.shape), 1.0)
    for row in range(1, len(X)):
        at = np.array([row])
        np.testing.assert_array_equal(query(before.source, at), query(after.source, at))
    published = [
        rows / np.abs(rows).max(axis=0) for rows in (X, changed)
    ]  # the fault: scaled by the largest value seen
    assert not np.array_equal(published[0][1:], published[1][1:])


def test_the_loss_of_the_tests_is_the_loss_of_the_library():
    Z, y, w = (
        records_of(tables()["north"][0]),
        2.0 * tables()["north"][1] - 1,
        np.array([0.3, -1.0, 2.0, 0.5]),
    )
    assert mean_loss(Z, y, w) == pytest.approx(float(Logistic().value(Z @ w, y).mean()))
