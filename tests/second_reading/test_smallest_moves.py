"""Where a cost assumes a short distance, or settings are tiny, the bound includes rounding."""

import math

import numpy as np
import pytest

from _support import LOSSES, labels_for, problem_for, source_of
from hushfit.audit.checks._noise import steady_answers
from hushfit.data import as_source
from hushfit.errors import InvalidArgument
from hushfit.losses import Logistic, Squared
from hushfit.privacy import Relation
from hushfit.release import (
    ClippedGradient,
    FullBatch,
    GradientDifference,
    NoiseGrid,
    Snapshot,
    TotalScore,
    VarianceReducedGradient,
    anchored_batch,
)

COLUMNS = 3
ODD = [
    [np.inf, 0, 0],
    [1e200, 0, 0],
    [1e-200, 0, 0],
    [1e-160, 1e-162, 0],
    [0, 0, 0],
    [1e30, -1e30, 1],
    [5e-324, 5e-324, 0],
]


def published(problem, w, at, clip, rate):
    return VarianceReducedGradient(problem, w, Snapshot(at, clip), rate)


def without_the_first(X):
    rest = X.copy()
    rest[0] = np.nan  # the null record
    return rest


def steps_moved(query, grid, X, y, batch):
    """Distance, in grid steps, by which removing a record changes the rounded answer."""
    one, other = (
        np.rint(query(source_of(rows, y), batch) / grid.step) for rows in (X, without_the_first(X))
    )
    return float(np.linalg.norm(one - other))


@pytest.mark.parametrize("loss", [Logistic(), Squared(1.0)], ids=repr)
@pytest.mark.parametrize(
    ("columns", "rate", "multiplier"), [(5, 0.1, 1.0), (30, 1e-3, 4.0), (100, 1e-5, 10.0)]
)
def test_a_record_outside_the_batch_moves_the_grid_by_no_more_than_is_priced(
    loss, columns, rate, multiplier
):
    """With a grid for sampled records only, the ratios were 1.000000004, 1.000003 and 1.0006."""
    worst = 0.0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(200, columns)), rng.choice([-1.0, 1.0], 200)
        problem = problem_for(X, loss, relation=Relation.ADD_REMOVE)
        w = 30 * rng.normal(size=problem.shape)
        y[0] = -np.sign(X[0] @ w[:-1] + w[-1])  # its slope is clipped
        query, ratio = published(problem, w, w, 0.5, rate), anchored_batch(problem, rate).ratio
        grid = NoiseGrid.of(query, multiplier, Relation.ADD_REMOVE, 200, least_move=ratio)
        accounted = ratio * 2**grid.log2_deviation / multiplier
        worst = max(
            worst, steps_moved(query, grid, X, y, np.arange(1, 3 + int(3 * rate * 200))) / accounted
        )
    assert 0.9 < worst <= 1


def record(loss, outputs, rng):
    x = (
        ODD[rng.integers(len(ODD))]
        if rng.random() < 0.25
        else 10 ** rng.uniform(-2, 2) * rng.normal(size=COLUMNS)
    )
    return np.array(x, dtype=float), labels_for(loss, outputs, 1, int(rng.integers(1 << 30)))[0]


@pytest.mark.parametrize(("loss", "outputs"), LOSSES, ids=repr)
def test_no_setting_lets_a_record_past_what_the_mixture_counts(loss, outputs):
    """Inside or outside the batch, which may be empty; tiny and huge clipping norms and weights."""
    rng, worst = np.random.default_rng(0), 0.0
    for clip in (1e-300, 1e-9, 0.4, 1e9):
        for rate in (1e-6, 0.5, 1.0):
            for size in (1e-8, 1.0, 1e160):
                problem = problem_for(np.empty((3, COLUMNS)), loss, outputs, Relation.ADD_REMOVE)
                w, at = size * rng.normal(size=(2, *problem.shape))
                query, ratio = (
                    published(problem, w, at, clip, rate),
                    anchored_batch(problem, rate).ratio,
                )
                X, y = rng.normal(size=(3, COLUMNS)), labels_for(loss, outputs, 3)
                for batch in ([], [1], [0], [0, 1, 2]):
                    X[0], y[0] = record(loss, outputs, rng)
                    rows = np.array(batch, dtype=np.int64)
                    one, other = (
                        query(source_of(table, y), rows) for table in (X, without_the_first(X))
                    )
                    counted = query.radius() if 0 in batch else ratio * query.radius()
                    worst = max(worst, float(np.linalg.norm(one - other)) / counted)
    assert 0.9 < worst <= 1


def test_adding_up_a_large_batch_is_inside_what_an_outside_record_does():
    """The batch is rounded when q times the full gradient is added; the ratio was 1.0000006."""
    rng, rate = np.random.default_rng(0), 1e-6
    worst = 0.0
    for _ in range(10):
        X = np.abs(rng.normal(size=(4097, COLUMNS)))
        problem = problem_for(X, Squared(1.0), relation=Relation.ADD_REMOVE)
        w = np.full(problem.shape, 1e3)  # all slopes are clipped, at w and at -w on opposite sides
        query = published(problem, w, -w, 0.4, rate)
        y, batch = np.zeros(4097), np.arange(1, 4097)
        one, other = (query(source_of(table, y), batch) for table in (X, without_the_first(X)))
        worst = max(
            worst,
            float(np.linalg.norm(one - other))
            / (anchored_batch(problem, rate).ratio * query.radius()),
        )
    assert 0.9 < worst <= 1


@pytest.mark.parametrize(
    ("clip", "bound"), [(1e-290, 0.0), (1e-295, 0.0), (1e-300, 1e-310), (1e-320, 1e-320)]
)
def test_noise_of_a_tiny_difference_has_the_scale_that_is_paid_for(clip, bound):
    """With clipping norm 1e-295 the grid step was 0, and so was all noise."""
    X = np.random.default_rng(0).normal(size=(20, COLUMNS))
    problem = problem_for(X)
    query = GradientDifference(
        problem, np.ones(problem.shape), np.zeros(problem.shape), clip, bound
    )
    _, scale = steady_answers(FullBatch(), query, source_of(X, np.ones(20)), 2.0, problem.relation)
    np.testing.assert_allclose(scale, 2 * query.sensitivity(problem.relation), rtol=1e-6)
    assert scale.min() > 0


def test_noise_that_floating_point_cannot_hold_is_refused():
    X = np.ones((4, COLUMNS))
    problem = problem_for(X, Squared(1e-300))
    query = ClippedGradient(problem, np.zeros(problem.shape), 1e-300)
    with pytest.raises(InvalidArgument, match="too small for floating point"):
        NoiseGrid.of(query, 1.0, problem.relation, 4)
    assert math.ldexp(NoiseGrid(1e-290, 31).step, 31) == 1e-290


def test_no_score_moves_a_total_by_more_than_one():
    rng, worst = np.random.default_rng(0), 0.0
    odd = np.array(
        [
            0,
            1,
            0.5,
            -3,
            7,
            np.nan,
            np.inf,
            -np.inf,
            5e-324,
            1 - 2.0**-53,
            2.0**-21,
            3 * 2.0**-21,
            1e308,
        ]
    )
    for n in (1, 5, 4097):
        for _ in range(100):
            scores = rng.choice(odd, n)
            others = scores.copy()
            others[rng.integers(n)] = rng.choice(odd)
            one, other = (
                TotalScore()(as_source(np.zeros((n, 1)), values), None)[0]
                for values in (scores, others)
            )
            worst = max(worst, abs(one - other))
    assert worst == 1
