"""Fused passes equal plain numpy for every memory layout; sums are exact on their grid; nothing is
read out of bounds.
"""

import os
import subprocess
import sys
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

from _support import (
    BINARY,
    COUNTS,
    LOSSES,
    REAL,
    SOURCES,
    clipped_gradient_sum,
    labels_for,
    problem_for,
    records_of,
    source_of,
    table,
)
from hushfit import PrivateLogisticRegression
from hushfit.data import (
    FEWEST_BLOCK_ROWS,
    MOST_BLOCK_ROWS,
    FeatureBounds,
    as_source,
    record_margins,
)
from hushfit.errors import InvalidArgument
from hushfit.kernels import rows as row_kernels
from hushfit.kernels.codes import CODES, ONE, SOFTMAX
from hushfit.kernels.gradient import _slope, _weigh_outputs, _weight
from hushfit.kernels.grid import add_on_grid
from hushfit.kernels.line_search import _value
from hushfit.kernels.threads import parallel_map, parallel_sum, thread_count
from hushfit.losses import KernelLoss, Logistic, Softmax, Squared
from hushfit.release import ClippedGradient, Metric
from hushfit.solvers import ProximalGradient, ProxNewton, WhitenedGradientDescent

over_losses = pytest.mark.parametrize(("loss", "outputs"), LOSSES, ids=lambda value: repr(value))
over_layouts = pytest.mark.parametrize("layout", SOURCES.values(), ids=SOURCES)
over_intercepts = pytest.mark.parametrize(
    "fit_intercept", [True, False], ids=["intercept", "no intercept"]
)

BATCHES = {
    "all": None,
    "some": np.array([3, 4, 11, 58]),
    "one": np.array([7]),
    "none": np.arange(0),
}


def weights(problem, seed=5, size=3.0):
    return size * np.random.default_rng(seed).normal(size=problem.shape)


UNKNOWN_CODE = 1 + max(*CODES, ONE)
PASSES = {
    "gradient": lambda block, w, code: block.gradient_sum(w, np.ones(1), code, 1.0, 2.0**-30),
    "difference": lambda block, w, code: block.difference_sum(
        w, 0.5 * w, 1.0, 1.0, code, 1.0, 2.0**-30
    ),
    "drops": lambda block, w, code: block.drop_sum(
        np.stack([w, 0.5 * w]), np.eye(2), np.ones(1), code, 1.0, np.array([2.0**-30])
    ),
}


@pytest.mark.parametrize("layout", ["C float64", "CSR int32"])
@pytest.mark.parametrize("one_pass", PASSES.values(), ids=PASSES)
@pytest.mark.parametrize(
    ("code", "outputs"), [(UNKNOWN_CODE, 1), (-1, 1), (SOFTMAX, 1), (UNKNOWN_CODE, 3)]
)
def test_no_loop_takes_an_unknown_loss_for_another(one_pass, layout, code, outputs):
    """A loss without a branch in a loop must not be computed as another loss."""
    X = table()
    (block,) = source_of(SOURCES[layout](X), np.ones(len(X))).blocks()
    w = np.ones(X.shape[1] + 1) if outputs == 1 else np.ones((outputs, X.shape[1] + 1))
    with pytest.raises(NotImplementedError, match="no branch for the code"):
        one_pass(block, w, code)


def test_a_problem_refuses_a_loss_that_no_loop_knows():
    @dataclass(frozen=True)
    class Newcomer(Logistic):
        kernel = KernelLoss(UNKNOWN_CODE, 0.0)

    with pytest.raises(InvalidArgument, match=rf"Newcomer\(\) has the code {UNKNOWN_CODE}"):
        problem_for(table(), Newcomer())


@over_losses
@over_layouts
@over_intercepts
@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_fused_sum_equals_plain_numpy(loss, outputs, layout, fit_intercept, batch):
    X = table()
    y = labels_for(loss, outputs, len(X))
    problem = problem_for(X, loss, outputs, fit_intercept=fit_intercept)
    w = weights(problem)
    rows = np.arange(len(X)) if batch is None else batch
    expected = clipped_gradient_sum(loss, records_of(X, fit_intercept)[rows], y[rows], w, clip=0.4)
    source = source_of(layout(X), y, fit_intercept)
    answer = ClippedGradient(problem, w, 0.4)(source, batch)
    np.testing.assert_allclose(answer.reshape(problem.shape), expected, atol=1e-9)


@over_losses
@over_layouts
@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_fused_sum_in_a_metric_clips_by_the_length_there(loss, outputs, layout, batch):
    X = table()
    y = labels_for(loss, outputs, len(X))
    problem = problem_for(X, loss, outputs)
    B = np.random.default_rng(2).normal(size=(problem.dimension, problem.dimension))
    metric = Metric(B @ B.T)
    w = weights(problem)
    rows = np.arange(len(X)) if batch is None else batch
    expected = clipped_gradient_sum(loss, records_of(X)[rows], y[rows], w, 0.8, metric.A)
    answer = ClippedGradient(problem, w, 0.8, metric)(source_of(layout(X), y), batch)
    np.testing.assert_allclose(answer.reshape(problem.shape), expected, atol=1e-8)


@pytest.mark.parametrize("loss", BINARY + REAL + COUNTS, ids=repr)
def test_compiled_slope_and_value_are_those_of_the_loss(loss):
    t = np.concatenate([np.linspace(-5, 5, 201), [-800.0, -40.0, 40.0, 800.0]])
    for y in (-1.0, 1.0) if loss in BINARY else (-1.0, 0.0, 1.0, 4.0, 1e6):
        labels = np.full(len(t), y)
        slopes = [_slope(*loss.kernel, margin, y) for margin in t]
        np.testing.assert_allclose(slopes, loss.slope(t, labels), rtol=1e-14, atol=1e-14)
        values = [_value(*loss.kernel, margin, y) for margin in t]
        np.testing.assert_allclose(values, loss.value(t, labels), rtol=1e-14, atol=1e-13)


@pytest.mark.parametrize("margin", [np.nan, np.inf, -np.inf, 1e308])
def test_no_margin_lets_a_record_past_its_cap(margin):
    """A public weight may be so large that margins overflow; the contribution of a record must stay
    bounded.
    """
    for code in set(CODES) - {SOFTMAX}:
        assert abs(_weight(code, 0.5, margin, 1.0, 1.0, 0.25)) <= 0.25
    t = np.array([margin, -margin, 0.0])
    _weigh_outputs(Softmax(3).kernel.code, 0.0, t, 1, 1.0, 0.25)
    assert np.linalg.norm(t) <= 0.25 * (1 + 1e-12)


@over_losses
@pytest.mark.parametrize("layout", [np.ascontiguousarray, sparse.csr_array], ids=["dense", "CSR"])
def test_overflowing_margins_never_spoil_the_sum_of_the_others(loss, outputs, layout):
    X = np.array([[1e10, 1e10], [1.0, 0.0], [0.0, 1.0]])
    problem = problem_for(X, loss, outputs)
    w = np.tile([1e300, -1e300, 0.0], (outputs, 1)).reshape(problem.shape)
    with np.errstate(all="ignore"):
        answer = ClippedGradient(problem, w, 0.5)(source_of(layout(X), np.ones(3)), None)
    assert np.isfinite(answer).all()
    assert np.linalg.norm(answer) <= 3 * 0.5 * (1 + 1e-9)


@over_layouts
def test_sum_does_not_depend_on_the_order_of_the_rows(layout):
    """Contributions are rounded one by one, so only ties can be rounded differently: two grid
    steps allow for them.
    """
    X = table(n=500, d=7)
    y = labels_for(Logistic(), 1, 500)
    problem = problem_for(X)
    query = ClippedGradient(problem, weights(problem), 0.4)
    order = np.random.default_rng(3).permutation(500)
    there, back = (query(source_of(layout(X[o]), y[o]), None) for o in (np.arange(500), order))
    assert np.abs(there - back).max() <= 2 * query.grid


def test_sum_does_not_depend_on_the_blocks():
    """Rows in place, rows packed into smaller blocks, and rows by index differ by the proved grid
    steps only.
    """
    n = 5 * FEWEST_BLOCK_ROWS + 17
    X = table(n, d=3)
    y = labels_for(Logistic(), 1, n)
    problem = problem_for(X)
    query = ClippedGradient(problem, weights(problem), 0.4)
    in_place = query(source_of(X, y), None)
    steps = 2 * np.ceil(n / FEWEST_BLOCK_ROWS) + 2
    for other in (
        query(source_of(np.asfortranarray(X), y), None),
        query(source_of(X, y), np.arange(n)),
        query(source_of(np.asfortranarray(X), y), np.arange(n)),
    ):
        assert np.abs(other - in_place).max() <= steps * query.grid


def test_every_answer_is_a_multiple_of_the_grid():
    X = table(n=300)
    y = labels_for(Logistic(), 1, 300)
    problem = problem_for(X)
    query = ClippedGradient(problem, weights(problem), 0.4)
    steps = query(source_of(X, y), None) / query.grid
    np.testing.assert_array_equal(steps, np.rint(steps))


SCRIPT_OF_DIGEST = """
import hashlib, numpy as np
from _support import labels_for, problem_for, source_of, table
from hushfit.losses import Logistic, Softmax
from hushfit.release import ClippedGradient, SecondMoment
X = table(50_000, 4)
digest = hashlib.sha256()
for loss, outputs in ((Logistic(), 1), (Softmax(3), 3)):
    problem = problem_for(X, loss, outputs)
    w = np.random.default_rng(0).normal(size=problem.shape)
    for Z in (X, np.asfortranarray(X)):
        source = source_of(Z, labels_for(loss, outputs, len(X)))
        digest.update(ClippedGradient(problem, w, 0.4)(source, None).tobytes())
        digest.update(ClippedGradient(problem, w, 0.4)(source, np.arange(1, len(X), 2)).tobytes())
        digest.update(SecondMoment(problem)(source, None).tobytes())
print(digest.hexdigest())
"""


def in_subprocess(script, **environment):
    """Standard output of a fresh interpreter that sees the library and these tests."""
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_sum_is_bitwise_the_same_on_any_number_of_threads():
    one, two = (in_subprocess(SCRIPT_OF_DIGEST, HUSHFIT_THREADS=count) for count in "12")
    assert one == two


SCRIPT_OF_GUARDED_PAGE = """
import ctypes, mmap
import numpy as np
from _support import labels_for, problem_for, source_of
from hushfit.losses import Logistic, Softmax
from hushfit.release import ClippedGradient, SecondMoment

page = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def before_a_wall(values):
    '''A copy that ends where memory that cannot be read begins.'''
    pages = -(-values.nbytes // page)
    buffer = mmap.mmap(-1, (pages + 1) * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    assert libc.mprotect(start + pages * page, page, 0) == 0
    copy = np.frombuffer(buffer, values.dtype, values.size, pages * page - values.nbytes).reshape(values.shape)
    copy[...] = values
    return copy


for shape in [(1, 1), (1, 7), (2, 9), (17, 1), (16, 8), (33, 3), (40, 17)]:
    for dtype in (np.float64, np.float32):
        X = np.random.default_rng(0).normal(size=shape).astype(dtype)
        guarded = before_a_wall(X)
        for loss, outputs in ((Logistic(), 1), (Softmax(3), 3)):
            problem = problem_for(X, loss, outputs)
            y = labels_for(loss, outputs, shape[0])
            w = np.ones(problem.shape)
            for rows in (None, np.arange(0, shape[0], 2)):
                query = ClippedGradient(problem, w, 0.4)
                assert np.array_equal(query(source_of(guarded, y), rows), query(source_of(X, y), rows))
        assert np.array_equal(SecondMoment(problem)(source_of(guarded, y), None), SecondMoment(problem)(source_of(X, y), None))
print("read nothing past the end")
"""  # noqa: E501


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity"), reason="memory protection is asked of Linux here"
)
def test_nothing_is_read_past_the_end_of_the_rows():
    """The rows end at a page that cannot be read: reading one byte too many kills the process."""
    assert in_subprocess(SCRIPT_OF_GUARDED_PAGE) == "read nothing past the end\n"


POISONS = {
    "nan": [np.nan, 1.0, 0.0, 0.0, 0.0],
    "inf": [1.0, np.inf, 0.0, 0.0, 0.0],
    "both infinities": [-np.inf, np.inf, 1.0, 0.0, 0.0],
    "empty": [0.0, 0.0, 0.0, 0.0, 0.0],
    "too small to square": [1e-200, 0.0, 0.0, 0.0, -1e-200],
}


@pytest.mark.parametrize(
    ("loss", "outputs"), [(Logistic(), 1), (Softmax(3), 3)], ids=["one output", "three outputs"]
)
@over_layouts
@pytest.mark.parametrize("poison", POISONS.values(), ids=POISONS)
def test_records_that_count_as_zero_touch_nothing(loss, outputs, layout, poison):
    """The answer is bitwise that of the other records alone."""
    X = table(n=40)
    y = labels_for(loss, outputs, 40)
    problem = problem_for(X, loss, outputs, fit_intercept=False)
    query = ClippedGradient(problem, weights(problem), 0.4)
    bad = [0, 7, 8, 39]
    spoiled = X.copy()
    spoiled[bad] = poison
    answer = query(source_of(layout(spoiled), y, fit_intercept=False), None)
    alone = query(source_of(layout(X), y, fit_intercept=False), np.setdiff1d(np.arange(40), bad))
    np.testing.assert_array_equal(answer, alone)


@over_layouts
def test_records_are_never_longer_than_one(layout):
    """Regression test: entries whose squares underflow one by one made a record of norm 6.75,
    without intercept.
    """
    X = np.zeros((6, 100))
    X[0], X[0, 0] = 1.5e-162, 1.6e-162
    X[1], X[2], X[3] = 1e-300, 1e-150, 1e-30
    X[4], X[5] = 1e30, 3.0
    for fit_intercept in (False, True):
        problem = problem_for(X, Squared(10.0), fit_intercept=fit_intercept)
        source = source_of(layout(X), np.full(6, 5.0), fit_intercept)
        for row in range(6):
            answer = ClippedGradient(problem, np.zeros(problem.shape), 1.0)(source, np.array([row]))
            assert np.linalg.norm(answer) <= 1 + 1e-9


@pytest.mark.parametrize("n_blocks", [1, 3], ids=["one block", "three blocks"])
def test_ties_move_neighbours_apart_by_two_grid_steps_at_most(n_blocks):
    """The worst case of lemma 1: every contribution is an odd multiple of half a grid step, the
    differing record included.

    With half-even rounding the sums after a tie are both even, so later ties round alike: the
    difference of the answers stays within two steps of the difference of the contributions, one for
    rounding the record and one for a tie.
    """
    n = 8 if n_blocks == 1 else 2 * FEWEST_BLOCK_ROWS + 5
    X = np.asfortranarray(np.ones((n, 1)))
    problem = problem_for(X, Squared(1.0), fit_intercept=False)
    query = ClippedGradient(problem, np.zeros(1), 1.0)
    rng = np.random.default_rng(0)
    worst = 0.0
    for trial in range(400 if n_blocks == 1 else 40):
        halves = 2 * rng.integers(-8, 8, size=n) + 1  # odd multiples of half a step
        i = rng.integers(min(n, 8))
        other = halves.copy()
        other[i] = [0, -halves[i], halves[i] + 2, halves[i] + 1][trial % 4]
        sources = [
            source_of(X, -0.5 * query.grid * h, fit_intercept=False) for h in (halves, other)
        ]
        answers = [query(source, None)[0] / query.grid for source in sources]
        worst = max(worst, abs((answers[0] - answers[1]) - 0.5 * (halves[i] - other[i])))
    assert 1 <= worst <= 2
    assert (query.radius() - query.clip) / query.grid >= 2  # included in the sensitivity


@pytest.mark.parametrize(
    "layout", [np.ascontiguousarray, np.asfortranarray, sparse.csr_array], ids=["C", "F", "CSR"]
)
def test_a_record_that_leaves_a_batch_shifts_the_blocks_within_the_proved_steps(layout):
    """Poisson sampling: with and without one record, all later records change position, and every
    one of them is a tie.
    """
    n = 2 * MOST_BLOCK_ROWS + 5
    X = layout(np.ones((n, 1)))
    problem = problem_for(X, Squared(1.0), fit_intercept=False)
    query = ClippedGradient(problem, np.zeros(1), 1.0)
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(25):
        halves = 2 * rng.integers(-8, 8, size=n) + 1
        source = source_of(X, -0.5 * query.grid * halves, fit_intercept=False)
        i = rng.integers(8)
        with_it, without = (
            query(source, rows)[0] / query.grid
            for rows in (np.arange(n), np.delete(np.arange(n), i))
        )
        worst = max(worst, abs(with_it - without - 0.5 * halves[i]))
    allowed = (query.radius() - query.clip) / query.grid
    assert 0.5 <= worst <= 2 * np.ceil(n / FEWEST_BLOCK_ROWS) + 2 <= allowed


def test_parallel_map_keeps_the_order_and_takes_a_few_items_at_a_time(monkeypatch):
    """Items may be copies of rows, so they must not all be consumed before the first result."""
    monkeypatch.setenv("HUSHFIT_THREADS", "2")
    taken = []

    def items():
        for item in range(100):
            taken.append(item)
            yield item

    results = parallel_map(lambda item: item**2, items())
    assert next(results) == 0
    assert len(taken) <= 10
    assert list(results) == [item**2 for item in range(1, 100)]


def test_parallel_map_hands_errors_on():
    with pytest.raises(ZeroDivisionError):
        list(parallel_map(lambda item: 1 / item, [3, 2, 1, 0]))


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_parallel_sum_adds_what_parallel_map_gives(monkeypatch, count, threads):
    monkeypatch.setenv("HUSHFIT_THREADS", threads)
    parts = np.random.default_rng(0).normal(size=(count, 3, 2))
    kept = parts.copy()
    np.testing.assert_array_equal(
        parallel_sum(lambda k: parts[k], range(count), (3, 2)), sum(parts, start=np.zeros((3, 2)))
    )
    np.testing.assert_array_equal(parts, kept)


@pytest.mark.parametrize("step", [2.0**-40, 0.3, 1e-7 / 3])
def test_noise_is_added_in_whole_steps_and_rounded_as_numpy_does(step):
    rng = np.random.default_rng(0)
    answer = np.concatenate([rng.normal(size=500), step * (np.arange(-4, 4) + 0.5), [0.0, -0.0]])
    noise = rng.integers(-(2**55), 2**55, size=len(answer))
    steps = np.rint(answer / step).astype(np.int64)
    np.testing.assert_array_equal(add_on_grid(answer, noise, step), (steps + noise) * step)
    np.testing.assert_array_equal(add_on_grid(answer, 0 * noise, step), steps * step)


@pytest.mark.parametrize(("asked", "threads"), [("3", 3), ("0", None), ("many", None), ("", None)])
def test_the_number_of_threads_is_what_was_asked_or_that_of_the_cores(monkeypatch, asked, threads):
    monkeypatch.setenv("HUSHFIT_THREADS", asked)
    assert thread_count() == (threads or len(os.sched_getaffinity(0)))


def test_systems_that_cannot_tie_a_process_to_cores_use_all_of_them(monkeypatch):
    monkeypatch.delenv("HUSHFIT_THREADS", raising=False)
    monkeypatch.delattr(os, "sched_getaffinity")
    assert thread_count() == os.cpu_count()


def peak_over(action):
    """Peak memory of Python and numpy during an action, minus the memory before it."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        action()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


DENSE_FITS = [
    (WhitenedGradientDescent(steps=3), "C", None),
    (WhitenedGradientDescent(steps=3), "F", None),
    (ProxNewton(steps=3), "F", (-3, 3)),
    (ProximalGradient(steps=3), "C", (-3, 3)),
]


@pytest.mark.usefixtures("quiet_fits")
@pytest.mark.parametrize(
    ("solver", "order", "bounds"), DENSE_FITS, ids=lambda value: str(value)[:24]
)
def test_a_dense_fit_allocates_a_fraction_of_its_rows(solver, order, bounds):
    """Two blocks of records, a few vectors over the rows, and no copy of the table, but for one in
    the order of rows where columns lie together; packed blocks are made one by one.
    """
    n, d = 200_000, 60
    copies = order == "F" and bounds is None
    rng = np.random.default_rng(0)
    X = np.asarray(rng.random((n, d)), order=order)
    y = rng.integers(2, size=n)
    model = PrivateLogisticRegression(
        solver=solver, classes=[0, 1], random_state=0, feature_bounds=bounds
    )
    model.fit(X[:50], y[:50])  # compiles what is not in the cache
    assert peak_over(lambda: model.fit(X, y)) < (copies + 0.35) * X.nbytes


@pytest.mark.usefixtures("quiet_fits")
def test_a_sparse_fit_never_becomes_dense():
    n, d = 20_000, 3_000
    X = sparse.random(n, d, density=0.05, format="csr", random_state=np.random.default_rng(0))
    y = np.random.default_rng(1).integers(2, size=n)
    model = PrivateLogisticRegression(solver="proximal-gd", classes=[0, 1], random_state=0)
    model.fit(X[:50], y[:50])
    stored = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    assert peak_over(lambda: model.fit(X, y)) < 0.35 * stored < 0.1 * 8 * n * d


def test_bounded_rows_are_packed_block_by_block():
    X = np.linspace(-2, 3, 24).reshape(8, 3)
    bounds = FeatureBounds.parse((-1, 2), 3)
    blocks = list(as_source(X, np.ones(8), bounds=bounds).blocks())
    np.testing.assert_allclose(
        np.vstack([block.X for block in blocks]), (np.clip(X, -1, 2) + 1) / 3
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("triangle", [False, True])
def test_two_loops_over_lengths_agree_to_the_last_bit_at_every_place(monkeypatch, triangle, dtype):
    """Of wide rows, which loop is taken depends on how many zeros the first ones have."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (150, 9)).astype(dtype)
    X[rng.random(X.shape) < 0.3] = 0.0
    scale = np.where(rng.random(150) < 0.1, 0.0, 1.0)
    A = rng.normal(size=(10, 10))
    A = np.tril(A) if triangle else A
    one_by_one, side_by_side = np.empty(150), np.empty(150)
    monkeypatch.setattr(row_kernels, "_NARROW", 0)
    monkeypatch.setattr(row_kernels, "_mostly_zeros", lambda X: True)
    row_kernels.lengths_dense(X, scale, 0.7, A, one_by_one)
    monkeypatch.setattr(row_kernels, "_mostly_zeros", lambda X: False)
    row_kernels.lengths_dense(X, scale, 0.7, A, side_by_side)
    np.testing.assert_array_equal(side_by_side, one_by_one)
    for place in (slice(3, 70), slice(149, 150)):
        moved = np.empty(place.stop - place.start)
        row_kernels.lengths_dense(X[place], scale[place], 0.7, A, moved)
        np.testing.assert_array_equal(moved, one_by_one[place])
    records = np.column_stack([X * scale[:, None], 0.7 * scale])
    np.testing.assert_allclose(one_by_one, np.linalg.norm(records @ A, axis=1), rtol=1e-12)


@pytest.mark.parametrize("outputs", [1, 2, 3, 10])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_a_prediction_does_not_depend_on_the_place_of_its_row(layout, outputs):
    """A person's rows are many or few: scores of other persons' rows must not show how many."""
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(2999, 20)), rng.normal(size=(outputs, 21))
    margins = record_margins(layout(X), weights, True)
    for first, last in ((1, 2999), (3, 2990), (2000, 2099)):
        again = record_margins(layout(X[first:last]), weights, True)
        assert again.tolist() == margins[first:last].tolist()
    records = records_of(X)
    np.testing.assert_allclose(margins, records @ weights.T, atol=1e-13)
