"""One release of the label statistic: the right minimum, bounded objectives, and nothing of labels
but the release.
"""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize

from _support import counts, curator_over, records_of, source_of, three_classes, two_classes
from hushfit.data import as_source
from hushfit.errors import InvalidArgument, UnsupportedRelation
from hushfit.losses import HuberHinge, LeastSquares, Logistic, Poisson, Softmax
from hushfit.penalties import L1, SCAD, ElasticNet, ScaledL2, Zero
from hushfit.privacy import Budget, Relation
from hushfit.problem import Problem
from hushfit.release import LabelStatistic
from hushfit.solvers import OneRelease, run, solver_from
from hushfit.solvers._known_noise import LEAST_RIDGE, ridges, shares_by_block, signal_shares
from hushfit.solvers.perturbation._one_release import chosen_design

PENALTIES = [Zero(), ScaledL2(0.02), L1(0.01), ElasticNet(0.02, 0.5)]


def labelled(loss, penalty, data, relation=Relation.LABEL, intercept=True):
    return Problem(loss, penalty, *data[0].shape, relation, intercept, loss.outputs)


def fitted(problem, data, noise, seed=0, solver=None):
    """The weights, and the curator they came through."""
    solver = solver or OneRelease()
    source = source_of(*data, problem.fit_intercept)
    curator = curator_over(source, solver.plan(problem), noise, problem.relation, seed=seed)
    return run(solver, problem, curator).w, curator


def real_targets(n=300, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.clip(records_of(X) @ rng.normal(size=d + 1) + 0.1 * rng.normal(size=n), -1, 1)


DATA = {
    "logistic": (Logistic(), two_classes(300, 4)),
    "least squares": (LeastSquares(), real_targets()),
    "poisson": (Poisson(50.0), counts(300, 4)),
    "softmax": (Softmax(3), three_classes()),
}


@pytest.mark.parametrize(("loss", "data"), DATA.values(), ids=DATA)
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_without_noise_it_finds_the_minimum(loss, data, penalty):
    problem = labelled(loss, penalty, data)
    w, _ = fitted(problem, data, 0.0)
    Z, y = records_of(data[0]), data[1]

    def objective(flat):
        weights = flat.reshape(problem.shape)
        return loss.value(Z @ weights.T, y).mean() + penalty.value(problem.columns(weights))

    here = objective(w.ravel())
    found = minimize(objective, w.ravel(), method="Powell", options={"maxiter": 1})
    assert here <= found.fun + 1e-6


@pytest.mark.parametrize(("loss", "data"), DATA.values(), ids=DATA)
def test_with_much_noise_weights_stay_bounded_in_every_direction(loss, data):
    """A column that no row has, and noise a hundred times the signal."""
    X = np.column_stack([data[0], np.zeros(len(data[0]))])
    problem = labelled(loss, Zero(), (X, data[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        w, _ = fitted(problem, (X, data[1]), 500.0)
    assert np.isfinite(w).all()
    assert np.abs(w[..., -2]).max() < 0.5  # the empty column
    assert np.abs(records_of(X) @ w.T).max() < 50


def test_with_little_noise_it_is_near_the_minimum_without():
    data = two_classes(4000, 4)
    problem = labelled(Logistic(), Zero(), data)
    exact, _ = fitted(problem, data, 0.0)
    noisy, _ = fitted(problem, data, 4.0)
    Z = records_of(data[0])
    values = [Logistic().value(Z @ w, data[1]).mean() for w in (exact, noisy)]
    assert values[1] - values[0] < 2e-3


def test_the_release_is_all_that_labels_do():
    """Weights are a function of the answer and the features; the query before it does not depend
    on labels.
    """
    X, y = two_classes(200, 3)
    problem = labelled(Logistic(), L1(0.01), (X, y))
    w, first = fitted(problem, (X, y), 2.0)

    class NoLabels:
        n_units, privacy_unit = 200, problem.privacy_unit
        public_rows = source_of(X, np.zeros(200)).public_rows

        def __getattr__(self, name):
            raise AssertionError(name)

    plan = OneRelease().plan(problem)
    again = curator_over(NoLabels(), plan, 2.0, Relation.LABEL, replay=first.transcript)
    np.testing.assert_array_equal(run(OneRelease(), problem, again).w, w)
    _, other = fitted(problem, (X, -y), 2.0)
    mine, theirs = first.transcript[0].query, other.transcript[0].query
    assert mine.sensitivity("label") == theirs.sensitivity("label")
    for one in ("weights", "metric"):
        a, b = getattr(mine, one), getattr(theirs, one)
        assert (a is None) == (b is None)
        if one == "weights" and a is not None:
            np.testing.assert_array_equal(a, b)


def test_noise_is_that_of_the_quote():
    """The answer without metric differs from the exact statistic by noise of the stated size."""
    X, y = two_classes(300, 3)
    problem = labelled(Logistic(), Zero(), (X, y))
    source = source_of(X, y)
    public = source.public_rows()
    query = LabelStatistic(problem, public)
    exact = query(source, None)
    plan = OneRelease().plan(problem)
    moved = [
        curator_over(source, plan, 3.0, Relation.LABEL, seed=k).release("labels", query) - exact
        for k in range(200)
    ]
    # 800 values: the estimated deviation is off by 2.5 %, so 12 % is nearly five of these.
    assert abs(np.std(moved) / (3.0 * query.sensitivity("label")) - 1) < 0.12


def test_the_metric_is_chosen_from_features_and_noise_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6)) * np.array([5.0, 2.0, 1.0, 0.5, 0.2, 0.1])
    problem = labelled(Logistic(), Zero(), (X, np.ones(2000)))
    rows = as_source(X, np.ones(2000)).public_rows()
    quiet, loud = (chosen_design(problem, rows, noise, None) for noise in (1.0, 1e4))
    assert quiet.squares.min() < loud.squares.min()  # little noise leaves room for small directions
    assert quiet.squares.max() == loud.squares.max() == 1.0
    assert chosen_design(problem, rows, 0.0, None).metric is None


@pytest.mark.parametrize("estimate", [signal_shares, shares_by_block])
def test_the_ridge_shrinks_noise_and_keeps_signal(estimate):
    rng = np.random.default_rng(0)
    m, noise = np.full(400, 0.1), np.full(400, 1.0)
    nothing = ridges(m, 0.25, estimate(rng.normal(size=(1, 400)), m, noise))
    signal = ridges(m, 0.25, estimate(30 * rng.normal(size=(1, 400)), m, noise))
    assert np.median(nothing) > 10 * 0.25 * 0.1
    assert np.median(signal) < 0.01 * 0.25 * 0.1
    without = ridges(m, 0.25, estimate(np.ones((1, 400)), m, 0 * noise))
    assert (without == LEAST_RIDGE).all()


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_it_is_refused_where_features_are_private(relation):
    problem = labelled(Logistic(), Zero(), two_classes(50, 3), relation)
    with pytest.raises(UnsupportedRelation, match="features are public"):
        solver_from("one-release", problem, Budget(1.0, 1e-5)).plan(problem)


def test_doors_have_features_under_label_relations_only():
    X, y = two_classes(50, 3)
    from hushfit.solvers import ProximalGradient

    problem = labelled(Logistic(), Zero(), (X, y), Relation.REPLACE_ONE)
    plan = ProximalGradient(steps=2).plan(problem)
    door = curator_over(source_of(X, y), plan, 1.0)
    assert door.public_rows is None
    with pytest.raises(InvalidArgument, match="this door has none"):
        next(OneRelease().iterates(labelled(Logistic(), Zero(), (X, y)), door))


def test_what_it_does_not_cover_is_refused_with_the_reason():
    data = two_classes(50, 3)
    with pytest.raises(InvalidArgument, match="labels enter it in another way"):
        OneRelease().plan(labelled(HuberHinge(), Zero(), data))
    with pytest.raises(InvalidArgument, match="not convex"):
        OneRelease().plan(labelled(Logistic(), SCAD(0.1), data))
    with pytest.raises(InvalidArgument, match="outside"):
        OneRelease(power=2.0)
    with pytest.raises(InvalidArgument, match="ridge"):
        OneRelease(ridge=-1.0)


def test_auto_is_this_solver_where_features_are_public():
    problem = labelled(Logistic(), ScaledL2(0.1), two_classes(50, 3))
    for epsilon in (1.0, np.inf):
        assert solver_from("auto", problem, Budget(epsilon, 1e-5)) == OneRelease()
