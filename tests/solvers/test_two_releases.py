"""Two releases of the label statistic: weights of rows, the noise of both together, and nothing of
labels but the releases.
"""

import numpy as np
import pytest
from scipy.optimize import minimize

from _support import curator_over, records_of, source_of, three_classes, two_classes
from hushfit.errors import InvalidArgument, UnsupportedRelation
from hushfit.losses import LeastSquares, Logistic, Softmax
from hushfit.penalties import ScaledL2, Zero
from hushfit.privacy import Budget, Relation
from hushfit.problem import Problem
from hushfit.solvers import OneRelease, TwoReleases, choose_solver, run
from hushfit.solvers.perturbation._one_release import chosen_design
from hushfit.solvers.perturbation._two_releases import boundary_weights


def labelled(data, loss=None, penalty=None, relation=Relation.LABEL):
    loss = loss or Logistic()
    return Problem(loss, penalty or Zero(), *data[0].shape, relation, True, loss.outputs)


def fitted(data, noise, seed=0, replay=(), source=None):
    problem, solver = labelled(data), TwoReleases()
    source = source or source_of(*data, True)
    plan = solver.plan(problem)
    curator = curator_over(source, plan, noise, problem.relation, seed=seed, replay=replay)
    return run(solver, problem, curator).w, curator


def minimum(Z, y, weights):
    def objective(w):
        return float(weights @ Logistic().value(Z @ w, y)) / len(y)

    return minimize(objective, np.zeros(Z.shape[1]), method="BFGS", options={"gtol": 1e-9}).x


def test_without_noise_it_finds_the_minimum_with_rows_near_the_boundary_weighted():
    data = two_classes(400, 3)
    w, _ = fitted(data, 0.0)
    Z, y = records_of(data[0]), data[1]
    likely = minimum(Z, y, np.ones(len(y)))
    weights = 0.3 + 0.7 / np.cosh(Z @ likely) ** 2
    np.testing.assert_allclose(w, minimum(Z, y, weights), rtol=2e-3, atol=2e-3)


def test_weights_are_one_on_the_boundary_and_everywhere_at_power_zero():
    margins = np.array([-1e300, -2.0, 0.0, 2.0, np.inf])
    weights = boundary_weights(margins)
    assert weights[2] == 1.0
    assert weights[1] == weights[3] == pytest.approx(1 / np.cosh(2.0) ** 2)
    assert (weights[[0, 4]] < 1e-200).all()
    np.testing.assert_array_equal(boundary_weights(margins, 0.0), np.ones(5))


def test_much_noise_leaves_the_rows_their_weights():
    """Far rows are needed then; little noise affords steep weights, where many rows are near."""
    X, y = two_classes(3000, 4)
    data = X, np.where(np.random.default_rng(0).random(3000) < 0.2, -y, y)
    queries = [fitted(data, noise)[1].transcript[1].query for noise in (1.0, 2000.0)]
    quiet, loud = (np.ones(3000) if q.weights is None else q.weights for q in queries)
    assert loud.min() > 0.9 * loud.max()
    assert quiet.min() < 0.5 * quiet.max()


def test_steep_weights_need_rows_near_the_boundary():
    """Only their answers can improve: where there are few, all rows keep their weights."""
    data = two_classes(3000, 4)
    problem, rows = labelled(data), source_of(*data, True).public_rows()
    design = chosen_design(problem, rows, 30.0, None)
    signs = np.where(np.arange(3000) % 2, 1.0, -1.0)
    few = np.where(np.arange(3000) % 20, 6.0 * signs, 0.1)
    weights = [
        TwoReleases()._affordable(problem, rows, design, margins, 30.0)
        for margins in (1.2 * signs * np.linspace(0, 1, 3000), few)
    ]
    assert weights[0].min() < 0.5
    np.testing.assert_array_equal(weights[1], np.ones(3000))


def test_both_releases_have_the_noise_of_one_with_the_whole_budget():
    """The shares of the budget are the weights of the releases in the sum."""
    problem = labelled(two_classes(3000, 4))
    budget = Budget(1.0, 1e-6)
    one = OneRelease().plan(problem).quote(problem, budget).multipliers["labels"]
    two = TwoReleases().plan(problem).quote(problem, budget).multipliers
    together = np.hypot(0.3 * two["labels"], 0.7 * two["labels near the boundary"])
    assert together == pytest.approx(one, rel=1e-6)


def test_the_releases_are_all_that_labels_do():
    X, y = two_classes(200, 3)
    w, first = fitted((X, y), 2.0)

    class NoLabels:
        n_units, privacy_unit = 200, labelled((X, y)).privacy_unit
        public_rows = source_of(X, np.zeros(200)).public_rows

        def __getattr__(self, name):
            raise AssertionError(name)

    again, _ = fitted((X, y), 2.0, replay=first.transcript, source=NoLabels())
    np.testing.assert_array_equal(again, w)


def test_auto_takes_it_for_two_classes_without_a_penalty():
    data, budget = two_classes(300, 3), Budget(1.0, 1e-6)
    assert isinstance(choose_solver(labelled(data), budget), TwoReleases)
    for problem in (
        labelled(data, penalty=ScaledL2(0.1)),
        labelled(data, LeastSquares()),
        labelled(three_classes(), Softmax(3)),
    ):
        assert isinstance(choose_solver(problem, budget), OneRelease)
        with pytest.raises(InvalidArgument, match="one-release"):
            TwoReleases().plan(problem)
    without = choose_solver(labelled(data), Budget(np.inf, 1e-6))
    assert isinstance(without, OneRelease)


def test_refusals():
    with pytest.raises(InvalidArgument, match="boundary_share"):
        TwoReleases(boundary_share=1.0)
    private = labelled(two_classes(50, 3), relation=Relation.REPLACE_ONE)
    with pytest.raises(UnsupportedRelation, match="features are public"):
        TwoReleases().plan(private)
