"""Tables that end near the boundary of a block: no answer exceeds its proved sensitivity."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from _support import problem_for, source_of
from hushfit.audit.checks import _examples
from hushfit.audit.checks._deterministic import measured_distance
from hushfit.data import FEWEST_BLOCK_ROWS, SeededCoins, as_source
from hushfit.data.rows import Persons
from hushfit.data.schema._schema_file import parse_schema
from hushfit.data.tables import CodedRows, find_tables
from hushfit.losses import Squared
from hushfit.privacy import RECORD_RELATIONS, Relation, SeededSampler
from hushfit.release import (
    ClippedGradient,
    Entropy,
    FullBatch,
    GradientDifference,
    HessianSum,
    LossDrop,
    MarginHistogram,
    Metric,
    PoissonBatch,
    SecondMoment,
)
from hushfit.unit import PrivacyUnit

LAYOUTS = {"C": np.ascontiguousarray, "F": np.asfortranarray, "CSR": sparse.csr_array}
over_layouts = pytest.mark.parametrize(
    "layout",
    [
        pytest.param(layout, id=name, marks=[pytest.mark.slow] if name == "F" else [])
        for name, layout in LAYOUTS.items()
    ],
)
over_relations = pytest.mark.parametrize("relation", list(RECORD_RELATIONS), ids=str)
# First and last rows of blocks of 4,096 and of 8,192 rows.
EDGES = (
    0,
    FEWEST_BLOCK_ROWS - 1,
    FEWEST_BLOCK_ROWS,
    2 * FEWEST_BLOCK_ROWS - 1,
    2 * FEWEST_BLOCK_ROWS,
)
ODD = [
    [np.inf, 0, 0],
    [1e200, 0, 0],
    [1e-200, 0, 0],
    [0, 0, 0],
    [1e30, -1e30, 1],
    [5e-324, 5e-324, 0],
]
# They scan the rows many times, through the same gradients that are tested here.
SLOW = ("minimiser", "run in", "steps of ADMM", "newton")


def sparse_rows(n, columns=3, seed=0):
    """Rows that are exact in float32, a third of the entries zero."""
    rng = np.random.default_rng(seed)
    return (
        (rng.normal(size=(n, columns)) * (rng.random((n, columns)) < 0.7))
        .astype(np.float32)
        .astype(np.float64)
    )


def worst_ratio(example, relation, layout, rng, pairs, edges=EDGES):
    query, n = example.query, len(example.rows)
    answer, apart, bound = measured_distance(query, relation)
    rows, worst = sparse_rows(n), 0.0
    for row in {edge for edge in edges if edge < n} | {n - 1}:
        for _ in range(pairs):
            one = 10 ** rng.uniform(-2, 2) * rng.normal(size=3)
            other = (
                -one if rng.random() < 0.5 else np.array(ODD[rng.integers(len(ODD))], dtype=float)
            )
            answers = []
            for x in (one, np.full(3, np.nan) if relation is Relation.ADD_REMOVE else other):
                X, y = rows.copy(), example.labels.copy()
                X[row], y[row] = x, example.draw_label(rng)
                answers.append(answer(_examples.source_for(query.problem, layout(X), y)))
            worst = max(worst, apart(*answers) / bound)
    return worst


def examples_of(n, relation, monkeypatch):
    monkeypatch.setattr(_examples, "ROWS", n)
    return _examples.example_queries(relation, seed=n)


@over_layouts
@over_relations
def test_no_query_moves_further_at_the_edge_of_a_block(layout, relation, monkeypatch):
    rng = np.random.default_rng(0)
    for name, example in examples_of(2 * FEWEST_BLOCK_ROWS + 1, relation, monkeypatch).items():
        if not name.startswith(SLOW) and name != "perturbed minimiser":
            assert worst_ratio(example, relation, layout, rng, 1, EDGES[2:3]) <= 1 + 1e-9, name


@pytest.mark.slow
@pytest.mark.parametrize("n", [4095, 4096, 4097, 8191, 8193, 12_289])
@over_layouts
@over_relations
def test_no_query_moves_further_at_any_edge(n, layout, relation, monkeypatch):
    rng = np.random.default_rng(n)
    for name, example in examples_of(n, relation, monkeypatch).items():
        assert worst_ratio(example, relation, layout, rng, 3) <= 1 + 1e-9, name


TIES = {
    # Query of a problem with one column of ones, the step of its grid, and the label that makes a
    # contribution v, up to a constant.
    "gradient": (lambda p: ClippedGradient(p, np.zeros(1), 1.0), lambda q: q.grid, lambda v: -v),
    "difference": (
        lambda p: GradientDifference(p, np.zeros(1), np.full(1, 2.0), 1.0, 2.0),
        lambda q: q._sum.grid,
        lambda v: 1 + v,
    ),
    "drop": (
        lambda p: LossDrop(p, np.array([[0.0], [1.0]]), np.eye(2), np.ones(1)),
        lambda q: float(q.grids[0]),
        lambda v: 0.5 + v,
    ),
}


@over_layouts
@pytest.mark.parametrize(("build", "grid_of", "label"), TIES.values(), ids=TIES)
def test_ties_in_every_block_cost_no_more_steps_than_proved(build, grid_of, label, layout):
    """A record leaves a batch, or is replaced: later ones change blocks, and all are ties."""
    rng = np.random.default_rng(0)
    for n in (4096, 4097, 16_389):
        X = layout(np.ones((n, 1)))
        query = build(problem_for(X, Squared(1.0), fit_intercept=False))
        grid, all_rows = grid_of(query), np.arange(n)
        proved = 2 * np.ceil(n / FEWEST_BLOCK_ROWS) + 2
        for _ in range(6):
            v = 0.5 * grid * (2 * rng.integers(0, 16, size=n) + 1)
            source = source_of(X, label(v), fit_intercept=False)
            i = int(rng.integers(8))
            own = float(query(source, np.array([i]))[0])
            left = query(source, all_rows)[0] - query(source, np.delete(all_rows, i))[0]
            assert abs(left - own) <= proved * grid
            half = np.sort(rng.permutation(n)[: n // 2])
            newcomer = int(np.setdiff1d(all_rows, half)[rng.integers(8)])
            exchanged = np.sort(np.append(half[1:], newcomer))
            moved = query(source, half)[0] - query(source, exchanged)[0]
            assert abs(abs(moved) - abs(v[half[0]] - v[newcomer])) <= 2 * proved * grid


SCHEMA = """
unit = "row"
[target]
name = "t"
kind = "categorical"
categories = ["a", "b"]
[columns.x]
kind = "numeric"
low = 0
high = 1
fill = 0
[columns.z]
kind = "numeric"
low = 0
high = 1
fill = 0
"""


def test_packed_rows_answer_as_rows_in_memory_on_both_sides_of_a_boundary(tmp_path):
    n = 2 * FEWEST_BLOCK_ROWS + 1
    rng = np.random.default_rng(0)
    X, labels = rng.integers(0, 256, size=(n, 2)) / 256, rng.integers(0, 2, size=n)
    lines = [f"{x},{z},{'ab'[t]}" for (x, z), t in zip(X.tolist(), labels.tolist(), strict=True)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x,z,t", *lines]) + "\n", encoding="utf-8")
    schema = parse_schema(SCHEMA).schema
    y = 2.0 * labels - 1
    batch = np.unique(np.append(rng.integers(0, n, size=500), [edge for edge in EDGES if edge < n]))
    with CodedRows.from_tables(find_tables([path]), schema) as packed:
        codes = np.vstack([block._fetched().numbers for block in packed.blocks()]).astype(float)
        problem = problem_for(codes)
        w = rng.normal(size=problem.shape)
        queries = [
            ClippedGradient(problem, w, 0.4),
            GradientDifference(problem, w, -w, 0.4, 0.5),
            LossDrop(
                problem,
                np.stack([w, w[::-1].copy()]),
                np.array([[1.0, 0.0], [1.0, -0.5]]),
                np.array([0.5]),
            ),
        ]
        for layout in LAYOUTS.values():
            source = as_source(layout(codes), y)
            for query in queries:
                for rows in (None, batch, np.empty(0, dtype=np.int64)):
                    np.testing.assert_allclose(
                        query(packed, rows), query(source, rows), rtol=1e-12, atol=1e-12
                    )


def test_packed_rows_of_persons_answer_as_rows_in_memory(tmp_path):
    """Some persons have more rows than are used, across several blocks."""
    n, n_persons = 2 * FEWEST_BLOCK_ROWS + 1, 900
    rng, unit = np.random.default_rng(0), PrivacyUnit.person("mean", 7)
    X, labels = rng.integers(0, 256, size=(n, 2)) / 256, rng.integers(0, 2, size=n)
    lines = [f"{x},{z},{'ab'[t]}" for (x, z), t in zip(X.tolist(), labels.tolist(), strict=True)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x,z,t", *lines]) + "\n", encoding="utf-8")
    own = np.append(np.arange(n_persons), rng.integers(0, n_persons, size=n - n_persons))
    persons = Persons(rng.permutation(own), n_persons, unit)
    with CodedRows.from_tables(find_tables([path]), parse_schema(SCHEMA).schema) as packed:
        codes = np.vstack([block._fetched().numbers for block in packed.blocks()]).astype(float)
        packed.persons = persons
        source = as_source(codes, 2.0 * labels - 1, persons=persons)
        problem = replace(problem_for(codes[:n_persons]), privacy_unit=unit)
        w = rng.normal(size=problem.shape)
        used = [int((block.shares > 0).sum()) for block in packed.blocks()]
        assert sum(used) == int((persons.shares > 0).sum()) < n
        assert used[:-1] == [FEWEST_BLOCK_ROWS] * (len(used) - 1)
        for query in (
            ClippedGradient(problem, w, 0.4),
            ClippedGradient(problem, w, 0.4, Metric(np.diag([3.0, 1.0, 0.2]))),
            SecondMoment(problem),
            HessianSum(problem, w),
            MarginHistogram(problem, w, np.array([-0.2, 0.1])),
        ):
            batches = (None, np.arange(0, n_persons, 3)) if query.sampled else (None,)
            for units in batches:
                np.testing.assert_allclose(
                    query(packed, units), query(source, units), rtol=1e-9, atol=1e-7
                )


class CountingSampler:
    """Reproducible noise that records the size of every draw."""

    secure = False

    def __init__(self):
        self._own, self.sizes = SeededSampler(0), []

    def gaussian(self, log2_variance, size):
        self.sizes.append(size)
        return self._own.gaussian(log2_variance, size)


@pytest.mark.parametrize("mechanism", [FullBatch(), PoissonBatch(0.5)], ids=str)
def test_noise_is_drawn_once_for_a_release_and_not_for_each_block(mechanism):
    X = np.asfortranarray(sparse_rows(3 * FEWEST_BLOCK_ROWS + 1))
    problem, sampler = problem_for(X), CountingSampler()
    query = ClippedGradient(problem, np.zeros(problem.shape), 0.5)
    mechanism.answer(
        query,
        source_of(X, np.ones(len(X))),
        1.0,
        Entropy(problem.relation, sampler, SeededCoins(0)),
    )
    assert sampler.sizes == [query.size]
