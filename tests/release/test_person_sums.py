"""Sums over rows of persons: weights, rounding, positions, batches, and the number of rows, which
stays private.
"""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from _support import curator_over, problem_for
from hushfit.data import (
    FEWEST_BLOCK_ROWS,
    PERSON_BLOCK_ROWS,
    SeededCoins,
    as_source,
    poisson_units,
)
from hushfit.data.rows import Persons, places, whole_shares
from hushfit.errors import InvalidArgument
from hushfit.kernels.gradient import HEADROOM
from hushfit.losses import Logistic, Squared
from hushfit.privacy import Relation
from hushfit.release import (
    ClippedGradient,
    ExactSum,
    FullBatch,
    MarginHistogram,
    Metric,
    NoiseGrid,
    Passes,
    PermutedRun,
    Plan,
    Planned,
    SecondMoment,
)
from hushfit.release.queries._column_histogram import ColumnHistogram
from hushfit.solvers import PermutedSGD
from hushfit.unit import PrivacyUnit

LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "CSR": sparse.csr_array,
}
over_layouts = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
MEAN = PrivacyUnit.person("mean", 100)


def person_problem(n_persons, columns, unit=MEAN, loss=None, **settings):
    problem = problem_for(np.empty((n_persons, columns)), loss or Logistic(), **settings)
    return replace(problem, privacy_unit=unit)


def rows_for(counts, columns=4, seed=0):
    """Rows, labels and codes of persons with so many rows each, in random order."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    X = rng.normal(size=(len(codes), columns)).astype(np.float32).astype(np.float64)
    return X, rng.choice([-1.0, 1.0], size=len(codes)), codes


# Weights


@pytest.mark.parametrize(
    ("unit", "weights"),
    [
        (PrivacyUnit.person("mean", 100), [1.0, 1 / 2, 1 / 7, 1 / 40]),
        (PrivacyUnit.person("mean", 5), [1.0, 1 / 2, 1 / 5, 1 / 5]),
        (PrivacyUnit("person", None, "cap", 20, 3), [1 / 3, 1 / 3, 1 / 7, 1 / 20]),
    ],
    ids=["mean", "mean of the first five", "cap"],
)
def test_weights_of_a_person_add_up_to_at_most_one(unit, weights):
    counts = [1, 2, 7, 40]
    _, _, codes = rows_for(counts)
    shares = Persons(codes, 4, unit).shares
    for person, (count, weight) in enumerate(zip(counts, weights, strict=True)):
        used = min(count, unit.rows_per_person)
        expected = np.where(np.arange(count) < used, weight, 0.0)
        np.testing.assert_array_equal(shares[codes == person], expected)
        assert shares[codes == person].sum() <= 1 + 1e-12
    assert unit.total_weight_is_public == math.isclose(shares.sum(), 4)


@over_layouts
def test_rows_beyond_the_bound_leave_no_trace_in_any_sum(layout):
    """Neither in the sums nor in the pieces in which rows are read."""
    unit = PrivacyUnit.person("mean", 3)
    X, y, codes = rows_for([2, 1, 3, 3])
    long = np.concatenate([codes, np.full(9000, 2)])  # after the three that are used
    more = np.random.default_rng(1).normal(size=(9000, 4)), np.ones(9000)
    problem = person_problem(4, 4, unit)
    w = np.array([1.0, -2.0, 0.5, 0.1, 0.2])
    queries = [
        ClippedGradient(problem, w, 0.5),
        ClippedGradient(problem, w, 0.5, Metric(np.diag([3.0, 1, 1, 0.2, 1]))),
        SecondMoment(problem),
        MarginHistogram(problem, w, np.array([0.0, 0.4])),
    ]
    short = as_source(layout(X), y, persons=Persons(codes, 4, unit))
    extended = as_source(
        layout(np.concatenate([X, more[0]])),
        np.concatenate([y, more[1]]),
        persons=Persons(long, 4, unit),
    )
    for query in queries:
        np.testing.assert_array_equal(query(short, None), query(extended, None))
    assert len(list(extended.blocks())) == 1


def test_pieces_hold_as_many_used_rows_as_they_may():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 50, size=2000)
    persons = Persons(codes, 50, PrivacyUnit.person("mean", 7))
    pieces = persons.places(64)
    used = [int((persons.shares[piece] > 0).sum()) for piece in pieces]
    assert used == [64] * (350 // 64) + [350 % 64]
    assert all(a.stop <= b.start for a, b in pairwise(pieces))
    everyone = Persons(codes, 50, PrivacyUnit.person("mean", 1000))
    assert everyone.places(64) == places(2000, 64)


@over_layouts
def test_persons_of_one_row_answer_as_rows_do(layout):
    """Every id different: the same answer as where rows are units."""
    X, y, _ = rows_for([1] * 60)
    problem = problem_for(np.empty((60, 4)))
    w = np.array([1.0, -2.0, 0.5, 0.1, 0.2])
    order = np.random.default_rng(0).permutation(60)
    alone = as_source(layout(X), y, persons=Persons(order, 60, MEAN))
    rows = as_source(layout(X), y)
    for make in (
        lambda p: ClippedGradient(p, w, 0.5),
        SecondMoment,
        lambda p: MarginHistogram(p, w, np.array([0.0])),
    ):
        own = make(replace(problem, privacy_unit=MEAN))(alone, None)
        np.testing.assert_allclose(own, make(problem)(rows, None), rtol=0, atol=1e-9)


def test_a_person_counts_as_the_mean_of_their_rows():
    X, y, codes = rows_for([3, 1, 5])
    source = as_source(X, y, persons=Persons(codes, 3, MEAN))
    problem, w = person_problem(3, 4), np.array([1.0, -2.0, 0.5, 0.1, 0.2])
    own = sum(
        ClippedGradient(problem_for(np.empty((k, 4))), w, 0.5)(
            as_source(X[codes == person], y[codes == person]), None
        )
        / k
        for person, k in enumerate([3, 1, 5])
    )
    answer = ClippedGradient(problem, w, 0.5)(source, None)
    np.testing.assert_allclose(answer, own, atol=1e-8)


# Counts


@pytest.mark.parametrize("n_units", [1, 3, 1000, 10**9])
def test_whole_shares_are_rounded_down_and_add_up_to_one_at_most(n_units):
    counts = np.array([*range(1, 2000), 10**5, 10**6 - 1, 10**6])
    shares, one = whole_shares(1 / counts, n_units)
    assert one * n_units < 2.0**53
    assert all(int(share) == int(one) // int(k) for share, k in zip(shares, counts, strict=True))


def test_counts_of_persons_are_exact():
    """Thirds do not add up to one in floating point; whole numbers add up as they should."""
    _, y, codes = rows_for([3, 3, 3, 1], columns=1)
    X = np.ones((len(codes), 1))
    source = as_source(X, y, persons=Persons(codes, 4, MEAN))
    (count, rest) = ColumnHistogram((np.array([2.0]),))(source, None)
    whole, one = whole_shares(source.shares, 4)
    assert Fraction(count) == Fraction(int(whole.sum()), int(one))
    assert rest == 0
    assert count <= 4


# Rounding


def test_rounding_of_all_rows_of_a_person_is_within_the_bound_and_beyond_that_of_one_row():
    """Every contribution lies half a grid step above a multiple, and the shares are powers of
    two.
    """
    unit = PrivacyUnit.person("mean", 1024)
    n = 4
    codes = np.concatenate([np.zeros(1024, np.int64), [1, 2, 3]])
    problem = person_problem(n, 1, unit, Squared(1.0), fit_intercept=False)
    query = ClippedGradient(problem, np.zeros(1), 1.0)
    grid = query.grid
    # Shares are 1/1024: labels of 1024 * (j + 1/2) grid steps.
    steps = 2.0 * np.random.default_rng(0).integers(0, 500, size=1024) + 0.500001
    y = np.concatenate([-1024 * steps * grid, np.zeros(3)])
    source = as_source(
        np.ones((len(codes), 1)), y, fit_intercept=False, persons=Persons(codes, n, unit)
    )
    answer = float(query(source, None)[0])
    exact = float((steps * grid).sum())
    error = abs(answer - exact) / grid
    assert 500 < error <= 512
    assert error * grid <= query._sum.rounding
    assert error > 2 * 1 + 2  # the steps of one row, and one block


@over_layouts
def test_ties_behind_rows_that_shift_cost_no_more_steps_than_proved(layout):
    """All other rows are ties, and a person's rows are exchanged for fewer at another place."""
    rng, unit = np.random.default_rng(0), PrivacyUnit.person("mean", 8)
    n = 2 * FEWEST_BLOCK_ROWS + 5
    problem = person_problem(n, 1, unit, Squared(1.0), fit_intercept=False)
    query = ClippedGradient(problem, np.zeros(1), 1.0)
    grid = query.grid
    others = -0.5 * grid * (2 * rng.integers(0, 16, size=n - 1) + 1)
    for _ in range(4):
        answers, own = [], []
        for k in (8, int(rng.choice([1, 2, 4]))):
            labels = -grid * k * (rng.integers(0, 16, size=k) + 0.5)
            where = np.sort(rng.integers(0, n, size=k))
            codes = np.insert(np.arange(1, n), where, 0)
            y = np.insert(others, where, labels)
            X = layout(np.ones((len(y), 1)))
            source = as_source(X, y, fit_intercept=False, persons=Persons(codes, n, unit))
            answers.append(float(query(source, None)[0]))
            own.append(float(-labels.sum() / k))
        steps = abs((answers[0] - answers[1]) - (own[0] - own[1])) / grid
        blocks = math.ceil(n * 8 / FEWEST_BLOCK_ROWS)
        assert steps <= 2 * blocks + 1.5 * 16
        assert steps * grid <= 2 * query._sum.rounding


def test_sums_stay_exact_when_every_row_is_rounded_up():
    """Batches of a power of two persons, whose sum alone fills the headroom of the accumulators."""
    for n, k in ((4, 3), (64, 7), (1, 1000)):
        exact = ExactSum(1.0, n, 1, rows_per_unit=k, least_units=1)
        step = exact.grid
        each = math.floor(1 / k / step + 0.5)
        assert n * k * each <= HEADROOM
        unit = PrivacyUnit.person("mean", k)
        problem = person_problem(n, 1, unit, Squared(1.0), fit_intercept=False)
        run = PermutedRun(problem, Passes((n,), (0.5,)), 1.0)
        assert run._sum.grid == step
        source = as_source(
            np.ones((n * k, 1)),
            np.full(n * k, -5.0),
            fit_intercept=False,
            persons=Persons(np.repeat(np.arange(n), k), n, unit),
        )
        mean = float(run._gradient(np.zeros(1), source, None)[0])
        assert mean == n * k * each * step / n


def test_a_grid_without_room_for_rounding_would_overflow_its_accumulators():
    """Three thirds of a power of two, each rounded up."""
    exact = ExactSum(4 / 3, 3, 1, least_units=1)
    too_fine = 2.0 ** math.ceil(math.log2(4 / 3 * 3 / HEADROOM))
    assert 3 * round(4 / 3 / too_fine) > HEADROOM
    assert exact.grid == 2 * too_fine
    assert ExactSum(1.0, 2**15, 1).grid == 2.0**-36  # single rows whose bound is on the grid


@pytest.mark.parametrize("units", [1, 100, 8192, 10**6, 10**8, 10**10])
def test_sums_over_all_persons_fit_into_integers_and_blocks_into_floats(units):
    exact = ExactSum(1.0, units, 1, rows_per_unit=1000)
    rounded_up = units * 1000 / 2
    assert units / exact.grid + rounded_up < 2.0**63
    in_block = min(units, PERSON_BLOCK_ROWS)
    assert in_block / exact.grid + PERSON_BLOCK_ROWS / 2 <= HEADROOM
    assert exact.grid <= ExactSum(1.0, units, 1).grid


@over_layouts
def test_blocks_of_persons_are_as_large_as_the_grid_allows(layout):
    n = 3 * PERSON_BLOCK_ROWS
    source = as_source(layout(np.ones((n, 1))), np.ones(n), persons=Persons(np.arange(n), n, MEAN))
    sizes = [block.place.stop - block.place.start for block in source.blocks()]
    assert max(sizes) <= PERSON_BLOCK_ROWS
    assert min(sizes) >= FEWEST_BLOCK_ROWS


# Positions


@over_layouts
@pytest.mark.parametrize("columns", [3, 17, 64])
def test_margins_and_lengths_of_a_row_do_not_depend_on_its_place(layout, columns):
    rng = np.random.default_rng(columns)
    X = rng.normal(size=(300, columns)).astype(np.float32).astype(np.float64)
    w, A = rng.normal(size=columns + 1), rng.normal(size=(columns + 1, columns + 1))
    (whole,) = as_source(layout(X), np.ones(300)).blocks()
    for start in (1, 2, 3, 5, 8, 13):
        (shifted,) = as_source(layout(X[start:]), np.ones(300 - start)).blocks()
        np.testing.assert_array_equal(whole.margins(w)[start:], shifted.margins(w))
        np.testing.assert_array_equal(whole.lengths(A + A.T)[start:], shifted.lengths(A + A.T))


@over_layouts
def test_a_shift_moves_nobody_else_to_another_cell(layout):
    """Rows whose margins lie on the edges of the histogram, which other last bits would move."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(400, 16)), rng.normal(size=17)
    X = X.astype(np.float32).astype(np.float64)
    problem = person_problem(401, 16)
    codes = np.arange(1, 401)
    (block,) = as_source(layout(X), np.ones(400)).blocks()
    edges = np.unique(block.margins(w))[::2]
    query = MarginHistogram(problem, w, edges)
    own = X[:1]
    answers = []
    for k in (1, 2, 3, 7):
        source = as_source(
            layout(np.concatenate([np.repeat(own, k, axis=0), X])),
            np.ones(400 + k),
            persons=Persons(np.concatenate([np.zeros(k, np.int64), codes]), 401, MEAN),
        )
        answers.append(query(source, None))
    for answer in answers[1:]:
        np.testing.assert_allclose(answer, answers[0], atol=1e-9)


# What the number of rows could show in


def test_the_number_of_rows_does_not_show_in_the_grid_of_the_noise():
    problem = person_problem(6, 3)
    query = ClippedGradient(problem, np.ones(4), 0.5)
    plan = Plan((Planned("g", ClippedGradient, 1, sampling=FullBatch()),))
    grid = NoiseGrid.of(query, 2.0, Relation.REPLACE_ONE, 6)
    for counts in ([1] * 6, [1, 1, 1, 1, 1, 37], [90] * 6):
        X, y, codes = rows_for(counts, columns=3)
        source = as_source(X, y, persons=Persons(codes, 6, MEAN))
        assert source.n_units == 6
        answer = curator_over(source, plan, 2.0).release("g", query)
        assert np.array_equal(np.rint(answer / grid.step) * grid.step, answer)


def test_bounds_and_grids_are_functions_of_public_numbers():
    problem = person_problem(6, 3)
    query = ClippedGradient(problem, np.ones(4), 0.5)
    assert query._sum == ExactSum(1.0, 6, 4, rows_per_unit=100)
    assert SecondMoment(problem).steps == SecondMoment(problem_for(np.empty((6, 3)))).steps


def test_a_bound_on_rows_that_sums_cannot_hold_is_refused_before_anything_is_paid():
    small = person_problem(10, 3, PrivacyUnit.person("mean", 10**6))
    assert SecondMoment.coordinates(small) == 10
    huge = replace(small, n_units=10**9, n_features=3000)
    with pytest.raises(InvalidArgument, match="rows_per_person=1000000"):
        SecondMoment.coordinates(huge)


# Batches


@over_layouts
def test_a_batch_has_all_rows_of_a_person_or_none(layout):
    X, y, codes = rows_for([4, 1, 6, 2, 9, 3, 1])
    persons = Persons(codes, 7, PrivacyUnit.person("mean", 5))
    source = as_source(layout(X), y, persons=persons)
    query = ClippedGradient(
        person_problem(7, 4, persons.unit), np.array([1.0, -2.0, 0.5, 0.1, 0.2]), 0.5
    )
    for seed in range(5):
        units = poisson_units(source.n_units, 0.5, SeededCoins(seed))
        rows = persons.rows_of(units)
        expected = np.flatnonzero(np.isin(codes, units) & (persons.shares > 0))
        np.testing.assert_array_equal(rows, expected)
        keep = np.isin(codes, units)
        alone = as_source(layout(X[keep]), y[keep], persons=Persons(codes[keep], 7, persons.unit))
        np.testing.assert_array_equal(query(source, units), query(alone, None))


def test_batches_of_persons_in_a_known_order_are_refused_before_anything_is_paid():
    problem = person_problem(12, 3)
    with pytest.raises(InvalidArgument, match="known order"):
        PermutedSGD(batches=3, order="as-given").plan(problem)
    run = PermutedRun(problem, Passes.even(12, 3, (0.5,)), 0.5)
    X, y, codes = rows_for([2] * 12, columns=3)
    source = as_source(X, y, persons=Persons(codes, 12, MEAN))
    with pytest.raises(InvalidArgument, match="known order"):
        run(source, None)
    assert np.isfinite(run(source, np.arange(12)[::-1].copy())).all()


def test_names_of_persons_do_not_matter():
    """Codes in another order, and the same rows of the batch: the same answer."""
    X, y, codes = rows_for([4, 1, 6, 2])
    renamed = np.array([2, 0, 3, 1])
    query = ClippedGradient(person_problem(4, 4), np.ones(5), 0.5)
    one = as_source(X, y, persons=Persons(codes, 4, MEAN))
    other = as_source(X, y, persons=Persons(renamed[codes], 4, MEAN))
    np.testing.assert_array_equal(query(one, None), query(other, None))
    np.testing.assert_array_equal(
        query(one, np.array([0, 2])), query(other, np.sort(renamed[[0, 2]]))
    )
