"""Graphs over the columns: public as given, private ones paid for, no others.

Everything random is seeded. The comparison of frequencies has a false-alarm rate below 1e-4 for an
unlucky seed.
"""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.covariance import GraphicalLasso

from _support import curator_over, problem_for, source_of, two_classes
from hushfit import PrivateGraphLogisticRegression
from hushfit.constraints import graph
from hushfit.errors import BudgetExceeded, InsecureNoiseWarning, InvalidArgument, PrivacyLeakWarning
from hushfit.penalties import L1
from hushfit.privacy import Budget, Ledger, Relation, SeededSampler, calibrate
from hushfit.release import FullBatch, Plan, Planned, SecondMoment
from hushfit.solvers import (
    DPSADMM,
    DPVRADMM,
    PrivateGraph,
    PublicGraph,
    WhitenedGradientDescent,
    run,
)
from hushfit.solvers.wrappers._private_graph import graph_of_moment

QUICK = DPSADMM(steps=30, sampling=FullBatch())


def moment_of_chain(d=6, link=0.3):
    """Unit variances, and partial correlations along a chain only; the constant is the last
    column.
    """
    precision = np.eye(d) - link * (np.eye(d, k=1) + np.eye(d, k=-1))
    covariance = np.linalg.inv(precision)
    deviations = np.sqrt(np.diag(covariance))
    mean = np.linspace(-1, 1, d)
    M = np.zeros((d + 1, d + 1))
    M[:d, :d] = covariance / np.outer(deviations, deviations) + np.outer(mean, mean)
    M[:d, d] = M[d, :d] = mean
    M[d, d] = 1.0
    return M


def edges_of(found):
    return {tuple(sorted(edge)) for edge in found.edges.tolist()}


def test_the_graph_of_partial_correlations_is_found_and_means_do_not_matter():
    found = graph_of_moment(moment_of_chain(), noise=0.0, has_constant=True)
    assert edges_of(found) == {(i, i + 1) for i in range(5)}
    assert (found.signs == 1).all()
    # Without centring, the means would correlate all columns.
    assert (
        len(graph_of_moment(moment_of_chain()[:-1, :-1], noise=0.0, has_constant=False).edges) > 5
    )


def test_opposite_columns_get_opposite_signs():
    M = np.array([[1.0, -0.8, 0.0], [-0.8, 1.0, 0.0], [0.0, 0.0, 1.0]])
    found = graph_of_moment(M, noise=0.0, has_constant=False)
    assert edges_of(found) == {(0, 1)}
    assert found.signs.tolist() == [-1.0]
    A = found.constraint(3).A.toarray()
    np.testing.assert_array_equal(A[0], [1.0, 1.0, 0.0])
    np.testing.assert_array_equal(A[1:], np.eye(3))


def test_noise_alone_makes_no_graph():
    """Independent columns, noise of standard deviation 0.05: no correlation reaches the
    threshold.
    """
    rng = np.random.default_rng(0)
    for noise in (1e-3, 0.05, 1.0):
        E = noise * rng.normal(size=(20, 20)) / math.sqrt(2)
        found = graph_of_moment(
            np.eye(20) + np.triu(E, 1) + np.triu(E, 1).T, noise, has_constant=False
        )
        assert len(found.edges) <= 5
    assert graph_of_moment(np.eye(20), 10.0, has_constant=False).constraint(20).A.shape == (20, 20)


def test_a_moment_that_noise_made_indefinite_still_has_a_graph():
    rng = np.random.default_rng(1)
    for _ in range(20):
        E = rng.normal(size=(8, 8))
        found = graph_of_moment(0.1 * np.eye(8) + E + E.T, 0.02, has_constant=True, alpha=0.3)
        assert found.edges.shape[1] == 2
        assert np.isfinite(found.signs).all()


# A graph computed from the rows as they are, which only this test does.
def graph_without_noise(X, threshold):
    S = X.T @ X / len(X)
    return abs(S[0, 1]) > threshold


def tables_at_the_threshold(n=200, threshold=0.125):
    """Second moment exactly at the threshold, and one row that lifts it over; rows have length 1
    or less.
    """
    X = np.tile(np.eye(2), (n // 2, 1))
    X[: n // 2] = 0.5
    other = X.copy()
    other[-1] = 0.5
    return X, other, threshold


def test_a_graph_without_noise_shows_a_single_row_and_ours_does_not():
    """Under epsilon = 0.5 frequencies may be (e^0.5 - 1)/(e^0.5 + 1) = 0.245 apart; 400 runs add
    four errors of 0.036.
    """
    X, other, threshold = tables_at_the_threshold()
    assert [graph_without_noise(rows, threshold) for rows in (X, other)] == [False, True]
    n, epsilon = len(X), 0.5
    problem = problem_for(X, fit_intercept=False)
    plan = Plan((Planned("second moment", SecondMoment, 1),))
    strength = calibrate(
        lambda mu: plan.cost(plan.multipliers(mu, n), n),
        Budget(epsilon, 1e-6),
        Relation.REPLACE_ONE,
    )
    multiplier = plan.multipliers(strength, n)["second moment"]
    query = SecondMoment(problem)
    shares = []
    for place, rows in enumerate((X, other)):
        source, hits = source_of(rows, np.ones(n), fit_intercept=False), 0
        for seed in range(400):
            curator = curator_over(
                source, plan, multiplier, sampler=SeededSampler(2 * seed + place)
            )
            M = query.matrix(curator.release("second moment", query)) / n
            hits += abs(M[0, 1]) > 2 * threshold  # records are scaled to length 1
        shares.append(hits / 400)
    assert abs(shares[0] - shares[1]) < 0.245 + 0.15


# Solvers ------------------------------------------------------------------------------------------


def test_the_private_graph_is_paid_for_out_of_the_budget():
    problem = problem_for(np.empty((500, 4)), penalty=L1(0.01))
    plan = PrivateGraph(DPVRADMM()).plan(problem)
    shares = plan.shares()
    assert shares["second moment"] == pytest.approx(0.1)
    assert shares["snapshot"] == pytest.approx(0.45)
    assert {part.name: part.count for part in plan.parts}["second moment"] == 1
    for share in (0.0, 1.0):
        with pytest.raises(InvalidArgument, match="must be paid for"):
            PrivateGraph(QUICK, share=share)


@pytest.mark.parametrize("noise", [0.0, 3.0])
def test_it_makes_exactly_the_releases_it_declared(noise):
    X, y = two_classes(d=4)
    problem = problem_for(X, penalty=L1(0.01))
    solver = PrivateGraph(QUICK)
    curator = curator_over(source_of(X, y), solver.plan(problem), noise)
    w = run(solver, problem, curator).w
    assert [released.name for released in curator.transcript] == ["second moment"] + [
        "gradient"
    ] * 30
    assert w.shape == problem.shape


def test_the_watched_graph_is_a_function_of_the_release():
    X, y = two_classes(d=4)
    X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    problem = problem_for(X, penalty=L1(0.01))
    seen = []
    solver = PrivateGraph(QUICK, watch=seen.append)
    curator = curator_over(source_of(X, y), solver.plan(problem), 0.5)
    run(solver, problem, curator)
    query = SecondMoment(problem)
    noise = 0.5 * query.sensitivity(Relation.REPLACE_ONE) / len(X)
    again = graph_of_moment(
        query.matrix(curator.transcript[0].answer) / len(X), noise, has_constant=True
    )
    np.testing.assert_array_equal(seen[0].edges, again.edges)
    assert (0, 1) in edges_of(seen[0])


class _AsksTheMoment:
    """A solver for constraints that has a release named as that of a private graph."""

    takes_constraint = True

    def plan(self, problem):
        return Plan((Planned("second moment", SecondMoment, 1),))


def test_graphs_need_a_solver_and_a_problem_that_take_them():
    problem = problem_for(np.empty((50, 4)), penalty=L1(0.01))
    with pytest.raises(InvalidArgument, match="full row rank"):
        PrivateGraph(DPVRADMM(strongly_convex=True, ridge=0.1)).plan(problem)
    for ignorant in (WhitenedGradientDescent(), PublicGraph(QUICK, [(0, 1)])):
        with pytest.raises(InvalidArgument, match="takes no constraint"):
            PrivateGraph(ignorant)
    with pytest.raises(InvalidArgument, match="releases a 'second moment' itself"):
        PrivateGraph(_AsksTheMoment()).plan(problem)
    with pytest.raises(InvalidArgument, match="not both"):
        PublicGraph(QUICK, [(1, 2)]).plan(replace(problem, constraint=graph(np.array([[0, 1]]), 4)))
    with pytest.raises(InvalidArgument, match="edges"):
        PublicGraph(QUICK, [(0, 9)]).plan(problem)


# The estimator ------------------------------------------------------------------------------------


def model(**settings):
    return PrivateGraphLogisticRegression(
        **{"classes": [-1, 1], "random_state": 0, "delta": 1e-6, **settings}
    )


@pytest.mark.usefixtures("quiet_fits")
def test_a_strong_public_graph_makes_neighbours_equal():
    X = two_classes(d=4)[0]
    y = np.where(
        X @ [1.0, 1.3, -1.0, -1.4] + np.random.default_rng(0).logistic(size=len(X)) > 0, 1, -1
    )
    wide = DPSADMM(steps=3000, clip=1.0, sampling=FullBatch())
    fitted = model(graph=[(0, 1), (2, 3)], epsilon=math.inf, alpha=0.03, admm=wide).fit(X, y)
    w = fitted.coef_[0]
    assert abs(w[0] - w[1]) < 1e-4
    assert abs(w[2] - w[3]) < 1e-4
    assert abs(w[0] - w[2]) > 0.1
    np.testing.assert_array_equal(fitted.graph_, [(0, 1), (2, 3)])


@pytest.mark.usefixtures("quiet_fits")
@pytest.mark.parametrize("admm", ["dp-sadmm", "dp-vradmm", QUICK], ids=str)
@pytest.mark.parametrize("graph", ["private", [(0, 1), (1, 2)]], ids=["private", "public"])
def test_it_fits_and_says_what_it_took_as_public(admm, graph):
    X, y = two_classes(400, 4)
    fitted = model(graph=graph, admm=admm, epsilon=2.0).fit(X, y)
    assert fitted.coef_.shape == (1, 4)
    assert fitted.predict_proba(X).shape == (400, 2)
    text = " ".join(str(fitted.privacy_).split())
    assert ("the graph over the columns, given by the caller" in text) == (graph != "private")
    assert ("SecondMoment" in text) == (graph == "private")
    assert fitted.privacy_.epsilon == 2.0
    assert len(fitted.graph_) == len(fitted.graph_signs_)


@pytest.mark.usefixtures("quiet_fits")
def test_more_than_two_classes_follow_the_graph_each():
    X, y = two_classes(300, 4)
    y = np.where(X[:, 0] > 0.5, 2, y)
    fitted = model(graph=[(0, 1)], admm=QUICK, classes=[-1, 1, 2]).fit(X, y)
    assert fitted.coef_.shape == (3, 4)


@pytest.mark.parametrize(
    "graph",
    ["glasso", "estimate", GraphicalLasso(), np.eye(4), None, [(0, 1, 2)], [0.5, 1.5]],
    ids=repr,
)
def test_a_graph_that_is_not_an_edge_list_is_refused(graph):
    X, y = two_classes(100, 4)
    ledger = Ledger(1.0, 1e-6)
    with pytest.raises(InvalidArgument, match="A graph estimated from the rows is a release"):
        model(graph=graph, ledger=ledger).fit(X, y)
    assert not ledger.entries


def test_a_private_graph_without_a_share_is_refused():
    X, y = two_classes(100, 4)
    with pytest.raises(InvalidArgument, match="must be paid for"):
        model(graph="private", graph_share=0.0).fit(X, y)
    with pytest.raises(InvalidArgument, match="takes no graph"):
        model(admm="proximal-gd").fit(X, y)


@pytest.mark.usefixtures("quiet_fits")
def test_graph_and_weights_are_charged_together():
    X, y = two_classes(300, 4)
    ledger = Ledger(1.0, 1e-6)
    model(graph="private", admm=QUICK, ledger=ledger).fit(X, y)
    with pytest.raises(BudgetExceeded):
        model(graph="private", admm=QUICK, ledger=ledger).fit(X, y)


@pytest.mark.usefixtures("quiet_fits")
def test_a_single_column_has_no_edges():
    X, y = two_classes(100, 1)
    assert model(graph="private", admm=QUICK).fit(X, y).graph_.shape == (0, 2)


def test_it_clones_and_prints_like_any_estimator():
    made = model(graph=[(0, 1)], alpha=0.2, admm=QUICK)
    copy = clone(made)
    assert copy.get_params() == made.get_params()
    assert "solver" not in made.get_params()
    assert "graph=[(0, 1)]" in repr(made)


def test_it_warns_like_any_estimator():
    X, y = two_classes(300, 4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model(graph=[(0, 1)], admm=QUICK, classes=None, delta=1e-6).fit(X, y)
    assert {w.category for w in caught} == {InsecureNoiseWarning, PrivacyLeakWarning}
