"""The label statistic: its bound holds for all labels, is attained, and follows the proof."""

import numpy as np
import pytest

from _support import SOURCES, records_of, table
from hushfit.data import as_source, persons_of
from hushfit.errors import InvalidArgument, UnsupportedRelation
from hushfit.losses import HuberHinge, LeastSquares, Logistic, Poisson, Softmax, Squared
from hushfit.penalties import Zero
from hushfit.privacy import RECORD_RELATIONS, Relation
from hushfit.problem import Problem
from hushfit.release import LabelStatistic, Metric
from hushfit.unit import ROW, PrivacyUnit

N, D = 15, 4
# Loss, and the two admissible labels whose statistics are farthest apart.
KINDS = {
    "two classes": (Logistic(), (-1.0, 1.0)),
    "a range": (LeastSquares(5.0, 6.0), (-100.0, 100.0)),
    "counts": (Poisson(7.0), (0.0, 50.0)),
    "classes": (Softmax(4), (0.0, 3.0)),
}
over_kinds = pytest.mark.parametrize(("loss", "ends"), KINDS.values(), ids=KINDS)
PERSON = PrivacyUnit.person(rows_per_person=3)
METRIC = Metric(np.diag([0.3, 1.0, 2.0, 0.5, 1.5]))


def labels_of(loss, ends, rng, n=N):
    """Admissible labels, labels beyond, and labels that are not numbers."""
    if loss.outputs > 1:
        y = rng.integers(loss.outputs, size=n).astype(float)
    else:
        y = rng.uniform(ends[0] - 5, ends[1] + 5, size=n)
    y[rng.random(n) < 0.1] = rng.choice([np.nan, np.inf, -np.inf])
    return y


def statistic(loss, X, intercept=True, weights=None, metric=None, groups=None, scaled=False):
    """The query, and a function from labels to its answer."""
    persons = None if groups is None else persons_of(groups, X.shape[0], PERSON)

    def source(y):
        return as_source(X, y, fit_intercept=intercept, persons=persons, scaled_labels=scaled)

    relation = Relation.LABEL if groups is None else Relation.PERSON_LABEL
    public = source(np.zeros(X.shape[0])).public_rows()
    unit = ROW if groups is None else PERSON
    problem = Problem(
        loss, Zero(), public.n_units, D, relation, intercept, loss.outputs, privacy_unit=unit
    )
    query = LabelStatistic(problem, public, weights, metric)
    return query, lambda y: query(source(y), None)


def moved(answer, y, other):
    return float(np.linalg.norm(answer(y) - answer(other)))


@over_kinds
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("metric", [None, METRIC], ids=["plain", "metric"])
def test_no_label_moves_it_further_than_the_bound_and_one_reaches_it(loss, ends, intercept, metric):
    rng = np.random.default_rng(3)
    X, weights = rng.normal(size=(N, D)), rng.uniform(0.2, 1.0, N)
    if metric is not None and not intercept:
        metric = Metric(METRIC.A[:D, :D])
    query, answer = statistic(loss, X, intercept, weights, metric)
    bound, y = query.sensitivity("label"), labels_of(loss, ends, rng)
    largest = 0.0
    for row in range(N):
        for label in (*ends, *labels_of(loss, ends, rng, 3)):
            for other in ends:
                one, two = y.copy(), y.copy()
                one[row], two[row] = label, other
                largest = max(largest, moved(answer, one, two))
    assert 0.999 * bound < largest <= bound


def test_bound_is_attained_at_the_row_that_is_longest_in_the_metric():
    X = np.random.default_rng(0).normal(size=(N, D))
    query, _ = statistic(Softmax(3), X, metric=METRIC)
    longest = np.linalg.norm(records_of(X) @ METRIC.A, axis=1).max()
    np.testing.assert_allclose(query.sensitivity("label"), np.sqrt(2) * longest, rtol=1e-6)


@over_kinds
def test_hill_climbing_over_the_labels_of_one_person_stays_below_the_bound(loss, ends):
    """Three rows of one person with signs that add up."""
    rng = np.random.default_rng(1)
    X, groups = rng.normal(size=(N, D)), np.arange(N) // 3
    X[:3] = X[0]  # worst case: a person's records are equal
    query, answer = statistic(loss, X, groups=groups)
    bound = query.sensitivity(Relation.PERSON_LABEL)
    y = labels_of(loss, ends, rng)
    best = 0.0
    for _ in range(30):
        pair = [y.copy(), y.copy()]
        for one in pair:
            one[:3] = rng.choice(ends, 3)
        best = max(best, moved(answer, *pair))
    opposite = [y.copy(), y.copy()]
    opposite[0][:3], opposite[1][:3] = ends
    assert best <= bound
    assert 0.99 * bound < moved(answer, *opposite) <= bound
    # Persons weigh as much as a row: what they can move does not grow with their rows.
    alone, _ = statistic(loss, X)
    assert bound <= alone.sensitivity("label") * (1 + 1e-6)


def test_rows_beyond_the_bound_on_rows_do_not_count():
    X, y = np.random.default_rng(0).normal(size=(N, D)), np.ones(N)
    _, answer = statistic(Logistic(), X, groups=np.arange(N) // 5)
    other = y.copy()
    other[3:5] = -1.0  # the fourth and the fifth row of the first person
    np.testing.assert_array_equal(answer(y), answer(other))


@over_kinds
def test_statistic_and_its_centre_are_the_sum_of_statistics_times_records(loss, ends):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(N, D)), labels_of(loss, ends, rng)
    query, answer = statistic(loss, X)
    y = np.where(np.isfinite(y), y, ends[0])
    slopes = np.eye(4)[y.astype(int)] if loss.outputs > 1 else np.clip(y, *_range(loss))
    if isinstance(loss, Logistic):
        slopes = (slopes + 1) / 2
    whole = answer(y).reshape(query.problem.shape) + query.centre()
    np.testing.assert_allclose(whole, slopes.T @ records_of(X), atol=1e-9)


def _range(loss):
    if isinstance(loss, Logistic):
        return -1.0, 1.0
    centre, half = loss.label_centre, loss.label_diameter / 2
    return centre - half, centre + half


def test_labels_that_shrink_with_their_records_are_clipped_before_they_shrink():
    X = 10 * np.random.default_rng(4).normal(size=(N, D))
    query, answer = statistic(LeastSquares(-1.0, 1.0), X, scaled=True)
    scale = 1 / np.linalg.norm(np.column_stack([X, np.ones(N)]), axis=1)
    bound = query.sensitivity("label")
    np.testing.assert_allclose(bound, 2 * scale.max(), rtol=1e-6)
    y, far = np.zeros(N), np.zeros(N)
    row = int(scale.argmax())
    y[row], far[row] = -1e9, 1e9
    assert 0.999 * bound < moved(answer, y, far) <= bound


@pytest.mark.parametrize("layout", SOURCES.values(), ids=SOURCES)
def test_every_layout_gives_the_same_statistic(layout):
    X, y = table(N, D), np.random.default_rng(0).choice([-1.0, 1.0], N)
    _, plain = statistic(Logistic(), X)
    query, other = statistic(Logistic(), layout(X))
    np.testing.assert_allclose(other(y), plain(y), atol=1e-12)
    np.testing.assert_allclose(query.sensitivity("label"), 1.0, rtol=1e-6)


def test_order_of_rows_does_not_show_in_a_bit():
    rng = np.random.default_rng(5)
    X, y, order = rng.normal(size=(N, D)), rng.choice([-1.0, 1.0], N), rng.permutation(N)
    _, answer = statistic(Logistic(), X)
    _, shuffled = statistic(Logistic(), X[order])
    np.testing.assert_array_equal(answer(y), shuffled(y[order]))


def test_public_rows_hold_no_label():
    """Not in any attribute, nor in what their functions have captured."""
    y = np.linspace(7.125, 8.125, N)
    for X in (table(N, D), SOURCES["CSR int64"](table(N, D))):
        public = as_source(X, y).public_rows()
        list(public.blocks())
        seen, todo = set(), [public]
        while todo:
            one = todo.pop()
            if id(one) in seen:
                continue
            seen.add(id(one))
            if isinstance(one, np.ndarray):
                assert not np.intersect1d(one, y).size
            cells = getattr(one, "__closure__", None) or ()
            todo += [cell.cell_contents for cell in cells]
            todo += list(vars(one).values()) if hasattr(one, "__dict__") else []
            todo += list(one) if isinstance(one, list | tuple) else []


@pytest.mark.parametrize("loss", [HuberHinge(), Squared()], ids=repr)
def test_losses_in_which_labels_enter_otherwise_are_refused(loss):
    X = table(N, D)
    problem = Problem(loss, Zero(), N, D, Relation.LABEL)
    with pytest.raises(InvalidArgument, match="labels enter it in another way"):
        LabelStatistic(problem, as_source(X, np.zeros(N)).public_rows())


@pytest.mark.parametrize("relation", RECORD_RELATIONS)
def test_relations_between_records_are_refused(relation):
    X = table(N, D)
    query, _ = statistic(Logistic(), X)
    with pytest.raises(UnsupportedRelation, match="features are public"):
        query.sensitivity(relation)
    with pytest.raises(UnsupportedRelation, match="features are public"):
        query.sensitivity(str(relation))
    with pytest.raises(UnsupportedRelation):
        LabelStatistic(Problem(Logistic(), Zero(), N, D, relation), query.rows)


def test_other_rows_than_the_problem_has_are_refused():
    query, _ = statistic(Logistic(), table(N, D))
    with pytest.raises(InvalidArgument, match="public rows are of 15 units"):
        LabelStatistic(Problem(Logistic(), Zero(), N + 1, D, Relation.LABEL), query.rows)
    with pytest.raises(InvalidArgument, match="labels of 7 rows"):
        query(as_source(table(7, D), np.zeros(7)), None)
    with pytest.raises(InvalidArgument, match="Give one weight for each"):
        LabelStatistic(query.problem, query.rows, np.full(N, -1.0))


def test_empty_features_have_a_bound_above_zero():
    query, answer = statistic(Logistic(), np.zeros((N, D)), intercept=False)
    assert 0 < query.sensitivity("label") < 1e-6
    assert not answer(np.ones(N)).any()
