"""Queries of private regression with public numbers at the edge of floats, maps that do not fit
their records, and settings that would fail after payment.

Every test but the last failed before the bound, check or loop that it is about was corrected.
"""

import math

import numpy as np
import pytest
from scipy import sparse

from _support import RELATIONS, curator_over
from hushfit import PrivateLinearRegression, PrivatePoissonRegressor
from hushfit.data import RecordScaling, SignedBounds, as_source
from hushfit.errors import InvalidArgument
from hushfit.losses import LeastSquares, Logistic, Poisson
from hushfit.penalties import Zero
from hushfit.privacy import Relation
from hushfit.problem import Problem
from hushfit.release import (
    ClippedGradient,
    ColumnMoments,
    ColumnWhitening,
    MatrixWhitening,
    Metric,
    Plan,
    Planned,
    RankOneMetric,
    ResidualGradient,
    ResidualMoments,
    ShortenedMoment,
)
from hushfit.release.mechanism import NoiseGrid

CONSTANT = math.sqrt(0.5)
TINY, HUGE = 1e-170, 1e170


def bounded(n, d, loss=None, fit_intercept=True, relation=Relation.REPLACE_ONE):
    loss = LeastSquares() if loss is None else loss
    scaling = RecordScaling.BOUNDED
    return Problem(loss, Zero(), n, d, relation, fit_intercept, scaling=scaling)


def over(problem, X, y):
    return as_source(
        np.ascontiguousarray(X, dtype=np.float64),
        np.asarray(y, dtype=np.float64),
        fit_intercept=problem.fit_intercept,
        scaled_labels=problem.scaling is RecordScaling.BOUNDED,
        scaling=problem.scaling,
    )


# Numbers that floats square to zero or infinity


def test_a_direction_whose_squares_underflow_is_scaled_to_length_one():
    """It was 1.2 long, and a record in its direction 44 times the bound."""
    metric = RankOneMetric(np.array([2.68e-162, 0.0]), 0.01)
    assert np.linalg.norm(metric.direction) == pytest.approx(1.0, abs=1e-15)
    problem = Problem(Logistic(), Zero(), 2, 2, Relation.ADD_REMOVE, fit_intercept=False)
    query = ClippedGradient(problem, np.zeros(2), 1e-3, metric)
    with_it, without = (
        query(over(problem, [[x, 0.0], [0.0, 1.0]], [1, 1]), None) for x in (1.0, np.nan)
    )
    assert np.linalg.norm(with_it - without) <= query.sensitivity(Relation.ADD_REMOVE)


@pytest.mark.parametrize("scale", [TINY, HUGE], ids=["tiny", "huge"])
def test_metrics_whose_norm_is_no_float_are_refused(scale):
    """The norm of the tiny one was zero, lengths in it were too, and nothing was clipped: a record
    moved the answer by 5e9 sensitivities.
    """
    with pytest.raises(InvalidArgument, match="norm of the metric"):
        Metric(scale * np.eye(3))
    with pytest.raises(InvalidArgument, match="scale"):
        RankOneMetric(np.ones(3), 0.5, 1 / scale)
    assert Metric(np.zeros((3, 3))).norm == 0.0
    for whitening in (
        MatrixWhitening(scale * np.eye(3)),
        ColumnWhitening(np.full(3, scale), np.zeros(3), fit_intercept=False),
    ):
        problem = bounded(4, 3 - whitening.fit_intercept, fit_intercept=whitening.fit_intercept)
        with pytest.raises(InvalidArgument, match="norm of the whitening"):
            ResidualGradient(problem, np.zeros(3), 1.0, whitening)


@pytest.mark.parametrize("number", [0.0, 1e-299, TINY, HUGE, 1e308, math.inf, math.nan])
def test_bounds_whose_squares_are_no_floats_are_refused(number):
    """A bound of 1e-299 made the grid subnormal and every answer nan; a clipping norm of 1e308 made
    the weighted count infinite as soon as eight records were clipped.
    """
    problem, whitening = bounded(10, 2), MatrixWhitening(np.eye(3))
    with pytest.raises(InvalidArgument, match=r"outside \[1e-100"):
        ResidualGradient(problem, np.zeros(3), number, whitening)
    with pytest.raises(InvalidArgument, match=r"outside \[1e-100"):
        ResidualMoments(problem, np.zeros(3), 0.0, 1.0, number)
    for kind in (ShortenedMoment, ColumnMoments):
        with pytest.raises(InvalidArgument, match=r"outside \[1e-100"):
            kind(problem, number)


def test_weights_whose_residuals_overflow_are_refused():
    """The sum of the gradients was nan."""
    whitening = MatrixWhitening(np.eye(3))
    with pytest.raises(InvalidArgument, match=r"sum of \|w\|"):
        ResidualGradient(bounded(10, 2), np.array([1.7e308, 0.0, 0.0]), 1.0, whitening)


@pytest.mark.parametrize("scale", [math.inf, math.nan])
def test_noise_that_is_not_finite_is_never_drawn(scale):
    """Any noise times infinity is infinite, and an answer that is not finite shows through it."""
    with pytest.raises(InvalidArgument, match="not finite"):
        NoiseGrid(scale, 31)


def test_an_empty_record_is_not_told_by_a_warning():
    """Its length is zero, and a quotient by it overflowed."""
    problem = bounded(2, 1, fit_intercept=False)
    query = ShortenedMoment(problem, 1e9)
    with np.errstate(all="raise"):
        assert query(over(problem, [[0.0], [1.0]], [0, 0]), None) == pytest.approx([1.0])


# Maps for other records


@pytest.mark.parametrize(
    ("fit_intercept", "whitening"),
    [
        (True, ColumnWhitening(np.array([1.0, 1.0, 100.0]), np.zeros(3), fit_intercept=False)),
        (True, MatrixWhitening(np.diag([1.0, 1.0, 100.0]), fit_intercept=False)),
        (True, ColumnWhitening(np.ones(1), np.zeros(1))),
        (False, ColumnWhitening(np.ones(1), np.full(1, 0.5))),
        (False, MatrixWhitening(np.eye(2), fit_intercept=True)),
    ],
    ids=["no last column", "no last row", "one for all", "a column as constant", "one too many"],
)
def test_a_map_for_other_records_is_refused(fit_intercept, whitening):
    """Lengths were those of records without the intercept's entry: a record moved the answer by 80
    sensitivities; others were read beyond the end of an array.
    """
    problem = bounded(4, 2, fit_intercept=fit_intercept)
    with pytest.raises(InvalidArgument, match="The whitening is for records of"):
        ResidualGradient(problem, np.zeros(problem.dimension), 0.5, whitening)


# Bounds that are too large


def test_slopes_of_counts_are_bounded_by_the_largest_count_and_not_by_the_weights():
    """Residuals of counts beyond 2 + |w| were clipped, whatever the clipping norm: at a rate of 50
    and counts of 60 the mean gradient was -5.6 instead of -10.3.
    """
    problem = bounded(1000, 1, Poisson(100.0))
    w = np.array([0.0, math.log(50) / CONSTANT])
    y = np.random.default_rng(0).poisson(60, 1000)
    query = ResidualGradient(problem, w, 1e6, MatrixWhitening(np.eye(2)))
    mean, clipped = query.split(query(over(problem, np.zeros((1000, 1)), y), None))
    assert mean[1] == pytest.approx(CONSTANT * np.mean(50 - y), abs=1e-6)
    assert clipped == 0.0


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_rounding_hardly_adds_to_the_noise_of_wide_tables(fit_intercept, relation):
    """The error of a length counted for the map of the sum too: without an intercept, noise for
    100,000 rows of 1,000 columns was 89 times too large.
    """
    n, d = 100_000, 1_000
    problem = bounded(n, d, fit_intercept=fit_intercept, relation=relation)
    whitening = ColumnWhitening(np.full(d, 3.0), np.zeros(d), fit_intercept)
    query = ResidualGradient(problem, np.full(problem.dimension, 0.01), 3.0, whitening)
    moved = 2.0 if relation is Relation.REPLACE_ONE else 1.0
    assert query.sensitivity(relation) < 1.001 * 3.0 * math.hypot(moved, 0.25)


@pytest.mark.parametrize("kind", ["matrix", "columns"])
def test_mapping_two_sums_stays_within_the_error_claimed(kind):
    """The map of the exact sum is rounded on both tables: both errors are in one bound."""
    rng = np.random.default_rng(0)
    d, longest = 30, math.sqrt(31)
    if kind == "matrix":
        whitening = MatrixWhitening(rng.normal(size=(d, d)))
    else:
        whitening = ColumnWhitening(rng.uniform(0.1, 9, d - 1), rng.uniform(-1, 1, d - 1))
    found = 0.0
    for _ in range(200):
        pair = rng.normal(size=(2, d))
        pair *= longest / np.linalg.norm(pair, axis=1)[:, None]
        exact = [_exact_image(whitening, one) for one in pair]
        errors = [
            math.sqrt(
                sum(float(a - b) ** 2 for a, b in zip(map(_fraction, image), own, strict=True))
            )
            for image, own in zip(map(whitening.image, pair), exact, strict=True)
        ]
        found = max(found, sum(errors))
    assert 0 < found <= whitening.image_error


def _fraction(x):
    from fractions import Fraction

    return Fraction(float(x))


def _exact_image(whitening, total):
    """The image in rational numbers."""
    t = list(map(_fraction, total))
    if isinstance(whitening, MatrixWhitening):
        columns = (list(map(_fraction, column)) for column in whitening.A.T)
        return [sum(a * b for a, b in zip(t, column, strict=True)) for column in columns]
    weight = t[-1] / _fraction(whitening.constant)
    pairs = zip(t, whitening.centre, whitening.inverse, strict=False)
    return [(x - _fraction(m) * weight) * _fraction(s) for x, m, s in pairs] + [weight]


# Settings that failed after payment, and values in parts


@pytest.mark.parametrize("most", [1e-200, 1e155, 1e300])
def test_counts_beyond_the_squares_of_floats_are_refused_before_payment(most):
    """The fit stopped with a ZeroDivisionError or OverflowError after its first release."""
    model = PrivatePoissonRegressor(max_count=most, feature_bounds=(0, 1))
    with pytest.raises(InvalidArgument, match="largest count"):
        model.quote(100_000, 2)


def test_targets_in_a_range_without_a_width_are_refused():
    """Half of it was zero, and targets were divided by it: a warning told that one was above."""
    X, y = np.zeros((40, 1)), np.zeros(40)
    model = PrivateLinearRegression(target_bounds=(0, 5e-324), feature_bounds=(0, 1))
    with pytest.raises(InvalidArgument, match="not a range"):
        model.fit(X, y)


@pytest.mark.parametrize("sparse_rows", [True, False])
def test_columns_in_a_range_without_a_width_are_refused(sparse_rows):
    """Coefficients were nan, and paid for."""
    with pytest.raises(InvalidArgument, match=r"column 1 are 4\.94066e-324 apart"):
        SignedBounds.parse(([0.0, 0.0], [1.0, 5e-324]), 2, sparse_rows)


def test_the_middle_of_a_range_of_large_targets_is_finite():
    """It was infinite, and so were all targets."""
    X, y = np.zeros((4_000, 1)), np.full(4_000, 1.4e308)
    model = PrivateLinearRegression(
        epsilon=8.0, target_bounds=(1e308, 1.5e308), feature_bounds=(0, 1)
    )
    assert model.fit(X, y).predict(X[:1]) == pytest.approx([1.4e308], rel=0.05)


def test_a_sparse_value_that_is_stored_in_parts_is_clipped_as_a_whole():
    """Parts were clipped one by one, and their sum, beyond one, made the record count as zero."""
    X = sparse.csr_array((np.array([2.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    mapped = SignedBounds.parse((-3.0, 3.0), 1, sparse=True).apply(X)
    assert mapped.toarray().tolist() == [[1.0]]
    broken = sparse.csr_array((1, 1))
    broken.data, broken.indices = np.array([2.0]), np.array([7])
    broken.indptr = np.array([0, 1])
    with pytest.raises(InvalidArgument, match="not a valid CSR matrix"):
        SignedBounds.parse((-3.0, 3.0), 1, sparse=True).apply(broken)


# What no noise would hide


def test_no_row_makes_a_noisy_answer_infinite():
    """A curator's answer over rows at the edge is finite for every query of private regression."""
    X = np.array([[1.0, -1.0], [5e-324, 1e-200], [0.0, 0.0], [np.inf, 0.0], [1 + 1e-15, 0.0]])
    y = np.array([1.0, -1.0, 1e300, 0.0, -1e300])
    problem = bounded(5, 2)
    query = ResidualGradient(
        problem, np.array([1e90, -1e90, 1.0]), 1e90, MatrixWhitening(np.eye(3))
    )
    plan = Plan((Planned("gradient", ResidualGradient, 1),))
    answer = curator_over(over(problem, X, y), plan, 1.0).release("gradient", query)
    assert np.isfinite(answer).all()


@pytest.mark.parametrize("spread", [0, 6, 14], ids=lambda power: f"condition 1e{power}")
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_lengths_by_a_triangle_stay_within_the_error_claimed(spread, fit_intercept):
    """No length is too small by more than ``error``, however badly conditioned the metric is."""
    rng = np.random.default_rng(spread)
    d = 12
    width = d + fit_intercept
    V = np.linalg.qr(rng.normal(size=(width, width)))[0]
    A = V * 10.0 ** np.linspace(0, spread, width)
    whitening = MatrixWhitening(A, fit_intercept)
    X = rng.uniform(-1, 1, (200, d))
    X[:width] = V[:width, :d] / np.abs(V[:width, :d]).max()  # some along single directions
    source = as_source(X, np.zeros(200), fit_intercept=fit_intercept, scaling=RecordScaling.BOUNDED)
    (block,) = source.blocks()
    found = whitening.lengths(block)
    Z = np.hstack([X, np.full((200, 1), source.unit)])[:, :width]
    squares = (Z.astype(np.longdouble) @ A.astype(np.longdouble)) ** 2
    exact = np.sqrt(squares.sum(axis=1))
    assert np.all(found + whitening.error >= exact)
    assert np.all(found - exact <= whitening.error)
    assert whitening.error <= 1e-10 * whitening.norm
    assert np.count_nonzero(np.triu(whitening._full, 1)) == 0
