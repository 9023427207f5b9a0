"""Queries over records that keep their lengths: what they answer, their worst pairs, and who may
ask what of which records.
"""

import math

import numpy as np
import pytest
from scipy import sparse

from _support import RELATIONS, curator_over
from hushfit.audit import source_for
from hushfit.data import RecordScaling, SignedBounds, as_source
from hushfit.errors import InvalidArgument, UndeclaredRelease
from hushfit.losses import LeastSquares, Logistic, Poisson, SaturatingSquares, Squared
from hushfit.penalties import Zero
from hushfit.privacy import Budget, Relation
from hushfit.problem import Problem
from hushfit.release import (
    COUNT_WEIGHT,
    ClippedGradient,
    ColumnMoments,
    ColumnWhitening,
    LogLength,
    MatrixWhitening,
    MeanAndSquare,
    Plan,
    Planned,
    Prediction,
    ResidualGradient,
    ResidualMoments,
    SecondMoment,
    ShortenedMoment,
    Target,
)
from hushfit.release.queries import _shortened_moment

N, D = 300, 4
CONSTANT = math.sqrt(0.5)
LAYOUTS = {"dense": np.ascontiguousarray, "CSR": sparse.csr_array}
over_layouts = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


def problem_of(n=N, d=D, relation=Relation.REPLACE_ONE, fit_intercept=True, loss=None):
    return Problem(
        loss or LeastSquares(),
        Zero(),
        n,
        d,
        relation,
        fit_intercept,
        scaling=RecordScaling.BOUNDED,
    )


def rows(n=N, d=D, seed=0):
    """Rows with entries in [-1, 1], one of them missing a value, and targets."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d)) * (rng.random((n, d)) < 0.7)
    X[3, 1] = np.nan
    return X, rng.uniform(-1, 1, n)


def known(X, y):
    """Records and targets of the rows that count, in plain numpy."""
    good = np.isfinite(X).all(axis=1)
    return np.column_stack([X[good], np.full(good.sum(), CONSTANT)]), y[good]


@over_layouts
def test_sums_of_numbers_are_those_of_plain_arrays(layout):
    X, y = rows()
    Z, t = known(X, y)
    problem, source = problem_of(), source_for(problem_of(), layout(X), y)
    w = np.array([0.4, -1.2, 0.3, 0.9, 0.5])
    squares = np.sum(Z[:, :-1] ** 2, axis=1)
    lengths = 1 + 2 * np.clip(np.log(np.maximum(squares, 1e-30) / D) / 3.0, -1, 0)
    p = np.clip(Z @ w, -1, 1)
    for value, v in ((Target(), t), (LogLength(float(D), 3.0), lengths), (Prediction(w), p)):
        found = MeanAndSquare(problem, value)(source, None)
        assert found == pytest.approx([v.sum(), math.sqrt(2) * (v**2).sum()], abs=1e-8)
    r, phi = np.clip(t - p, -0.4, 0.4), np.clip((p - 0.1) / 0.6, -1, 1)
    found = ResidualMoments(problem, w, 0.1, 0.3, 0.4)(source, None)
    assert found == pytest.approx([r.sum(), (r * phi).sum()], abs=1e-8)


@over_layouts
def test_moments_are_those_of_shortened_records(layout):
    X, y = rows()
    Z, _ = known(X, y)
    problem, source = problem_of(), source_for(problem_of(), layout(X), y)
    query = ShortenedMoment(problem, 1.3)
    short = Z * np.minimum(1, math.sqrt(1.3) / np.linalg.norm(Z, axis=1))[:, None]
    assert query.matrix(query(source, None)) == pytest.approx(short.T @ short, abs=1e-3)
    columns = ColumnMoments(problem, 0.9)
    x = Z[:, :-1]
    x = x * np.minimum(1, math.sqrt(0.9) / np.maximum(np.linalg.norm(x, axis=1), 1e-9))[:, None]
    squares, means = columns.moments(columns(source, None))
    assert squares * N == pytest.approx((x**2).sum(axis=0), abs=1e-8)
    assert means * N == pytest.approx(x.sum(axis=0), abs=1e-8)


@over_layouts
@pytest.mark.parametrize("kind", ["matrix", "columns"])
@pytest.mark.parametrize("loss", [LeastSquares(), SaturatingSquares(0.4), Poisson(0.7)], ids=repr)
def test_gradients_are_clipped_in_the_metric_and_counted(layout, kind, loss):
    X, y = rows()
    Z, t = known(X, y)
    problem = problem_of(loss=loss)
    rng = np.random.default_rng(1)
    w, A = rng.normal(size=(D + 1)), rng.normal(size=(D + 1, D + 1))
    by_columns = ColumnWhitening(np.array([1.0, 3.0, 2.0, 0.5]), np.array([0.1, -0.3, 0, 0.6]))
    whitening = MatrixWhitening(A) if kind == "matrix" else by_columns
    centred = (Z[:, :-1] - by_columns.centre) * by_columns.inverse
    U = Z @ A if kind == "matrix" else np.column_stack([centred, np.ones(len(Z))])
    query = ResidualGradient(problem, whitening.weights(w), 0.5, whitening)
    slopes = loss.slope(U @ w, t)
    factor = np.minimum(1, 0.5 / np.maximum(np.abs(slopes) * np.linalg.norm(U, axis=1), 1e-300))
    mean, share = query.split(query(source_for(problem, layout(X), y), None))
    assert mean * N == pytest.approx((slopes * factor) @ U, abs=1e-6)
    assert share * N == pytest.approx((factor < 1).sum(), abs=1e-6)
    assert 0 < (factor < 1).sum() < len(Z)


def apart(query, one, other, background=3):
    """Distance of the answers over two tables that differ in one record."""
    d = query.problem.n_features
    X, y = np.full((background + 1, d), 0.1), np.zeros(background + 1)
    answers = []
    for x, t in (one, other):
        X[0], y[0] = x, t
        answers.append(query(source_for(query.problem, X, y), None))
    weight = 1.0 if query.doubled is None else np.where(query.doubled, 2.0, 1.0)
    return math.sqrt(float(np.sum(weight * (answers[0] - answers[1]) ** 2)))


NOBODY = np.full(2, np.nan), 0.0
# Pairs of records of two columns that attain the bound: replace-one, then add-remove.
WORST = {
    "mean and square": (
        lambda p: MeanAndSquare(p, Target()),
        (([0, 0], 1.0), ([0, 0], -1.0)),
        (([0, 0], 1.0), NOBODY),
    ),
    "residual moments": (
        lambda p: ResidualMoments(p, np.array([1.0, 0.0, 0.0]), 0.0, 0.1, 0.5),
        (([0.3, 0], 1.0), ([0.3, 0], -1.0)),
        (([0.3, 0], 1.0), NOBODY),
    ),
    "shortened moment": (
        lambda p: ShortenedMoment(p, 1.0),
        (([CONSTANT, 0], 0.0), ([-CONSTANT, 0], 0.0)),
        (([CONSTANT, 0], 0.0), NOBODY),
    ),
    "column moments": (
        lambda p: ColumnMoments(p, 1.0064),
        (([1.0, -0.08], 0.0), ([-0.08, 1.0], 0.0)),
        (([1.0, 0.0], 0.0), NOBODY),
    ),
}


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize("name", WORST)
def test_the_worst_pair_attains_the_bound(name, relation):
    """Within one per cent, so that no smaller bound would do."""
    build, replaced, removed = WORST[name]
    query = build(problem_of(4, 2, relation))
    pair = replaced if relation is Relation.REPLACE_ONE else removed
    bound = query.sensitivity(relation)
    assert 0.99 * bound <= apart(query, *pair) <= bound


def test_a_clipped_record_against_an_opposite_one_that_is_not_clipped_attains_the_bound():
    whitening = MatrixWhitening(np.diag([2.0, 1.0, 1.0]))
    query = ResidualGradient(problem_of(4, 2), np.zeros(3), 0.5, whitening)
    x = np.array([0.5, 0.1])
    length = np.linalg.norm(np.append(x, CONSTANT) * [2, 1, 1])
    just = 0.5 / length
    found = apart(query, (x, just * (1 + 1e-6)), (x, -just * (1 - 1e-6)))
    assert found == pytest.approx(0.5 * math.hypot(2, COUNT_WEIGHT), rel=1e-3)
    assert found <= query.sensitivity(Relation.REPLACE_ONE)


def test_the_ratio_of_column_moments_is_the_largest_one():
    """The constant of the proof, by a fine grid over all pairs of entries."""
    a = np.linspace(-1, 1, 1201)
    b = a[:, None]
    squares = a**2 + b**2
    distance = (a**2 - b**2) ** 2 + (a - b) ** 2 / 4
    largest = np.max(np.divide(distance, squares, out=np.zeros_like(distance), where=squares > 0))
    assert 0.995 * _shortened_moment._PAIR_RATIO <= largest <= _shortened_moment._PAIR_RATIO


def test_mean_and_square_move_by_two_at_most():
    """The inequality of the proof, by a fine grid over all pairs of numbers."""
    a = np.linspace(-1, 1, 1001)
    b = a[:, None]
    assert np.max((a - b) ** 2 + 2 * (a**2 - b**2) ** 2) <= 4 + 1e-12


# Whose records


def test_a_record_with_an_entry_outside_the_range_counts_as_zero():
    X = np.array([[0.5, 0.2], [1.5, 0.0], [np.inf, 0.0], [-1.0, 1.0]])
    source = as_source(X, np.ones(4), scaled_labels=True, scaling=RecordScaling.BOUNDED)
    assert source.scale.tolist() == [1.0, 0.0, 0.0, 1.0]
    found = MeanAndSquare(problem_of(4, 2), Target())(source, None)
    assert found == pytest.approx([2.0, 2 * math.sqrt(2)])


def test_ranges_are_mapped_into_one_and_indicators_stay():
    bounds = SignedBounds.parse(([0, -2, 10], [1, 6, 20]), 3)
    X = np.array([[0.0, -2.0, 15.0], [1.0, 6.0, 99.0], [0.25, 2.0, np.nan]])
    mapped = bounds.apply(X)
    assert mapped[:2] == pytest.approx(np.array([[0, -1, 0], [1, 1, 1]]))
    assert mapped[2, :2] == pytest.approx([0.25, 0.0])
    assert np.isnan(mapped[2, 2])
    sparse_bounds = SignedBounds.parse(([0, -2, 0], [1, 6, 20]), 3, sparse=True)
    mapped = sparse_bounds.apply(sparse.csr_array(np.array([[0.0, -2.0, 30.0]]))).toarray()
    assert mapped == pytest.approx(np.array([[0, -1 / 3, 1]]))
    with pytest.raises(InvalidArgument, match="range with 0 in it"):
        SignedBounds.parse(([1.0], [2.0]), 1, sparse=True)


def test_a_query_for_unit_records_is_never_answered_over_longer_ones():
    """Its bound would be too small by the length of the records."""
    X, y = rows(40)
    unit = Problem(Squared(), Zero(), 40, D, Relation.REPLACE_ONE)
    plan = Plan((Planned("moment", SecondMoment, 1),))
    curator = curator_over(source_for(problem_of(40), X, y), plan, 1.0)
    with pytest.raises(UndeclaredRelease, match="no proof"):
        curator.release("moment", SecondMoment(unit))
    plan = Plan((Planned("moment", ShortenedMoment, 1),))
    curator = curator_over(as_source(X, y), plan, 1.0)
    with pytest.raises(UndeclaredRelease, match="no proof"):
        curator.release("moment", ShortenedMoment(problem_of(40), 1.0))


def test_a_plan_with_queries_for_other_records_is_refused_before_any_charge():
    plan = Plan((Planned("gradient", ClippedGradient, 1),))
    with pytest.raises(InvalidArgument, match="records of length one"):
        plan.quote(problem_of(), Budget(1.0, 1e-6))
    plan = Plan((Planned("moment", ShortenedMoment, 1),))
    unit = Problem(Logistic(), Zero(), N, D, Relation.REPLACE_ONE)
    with pytest.raises(InvalidArgument, match=r"entries in \[-1, 1\]"):
        plan.quote(unit, Budget(1.0, 1e-6))


def test_labels_without_a_bound_need_clipped_gradients():
    with pytest.raises(InvalidArgument, match="no bound on its slope"):
        Problem(LeastSquares(), Zero(), N, D, Relation.REPLACE_ONE)
