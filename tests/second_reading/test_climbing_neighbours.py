"""Hill climbing to the worst neighbours of the releases behind regression and calibration.

Everything that a query takes as public (weights, metric, clipping norm, direction) is drawn at
random, badly conditioned or extreme; the exchanged record, and its label, are then searched for.
"""

import numpy as np
import pytest
from _search import climb

from hushfit.data import RecordScaling, as_source
from hushfit.losses import Logistic, OneVsRest, SaturatingSquares, Softmax
from hushfit.penalties import Zero
from hushfit.privacy import Relation
from hushfit.problem import Problem
from hushfit.release import ClassCounts, LineDerivative, MatrixWhitening, ResidualGradient

N, D = 30, 4
ODD = [0.0, 1.0, -1.0, 1 - 2.0**-53, 5e-324, np.nan, np.inf, 2.0]


def moved_record(record, rng):
    """One entry of a record changed: a little, or to an odd value."""
    changed = record.copy()
    j = rng.integers(len(record))
    changed[j] = rng.choice(ODD) if rng.random() < 0.3 else changed[j] + rng.normal() / 3
    return changed


def moved(pair, rng):
    one, other = pair
    return (
        (moved_record(one, rng), other) if rng.random() < 0.5 else (one, moved_record(other, rng))
    )


def answer(query, X, y, record, scaling):
    rows, labels = X.copy(), y.copy()
    rows[0], labels[0] = record[:-1], record[-1]
    return query(as_source(rows, labels, scaling=scaling), None)


def largest_move(query, relation, X, y, label, scaling, rng, steps):
    """The largest change found, over the sensitivity; the other record is absent if it is to be."""

    def named(record):
        return np.append(record[:-1], label(record[-1]))

    def value(pair):
        one, other = map(named, pair)
        if relation is Relation.ADD_REMOVE:
            other[:-1] = np.nan
        apart = answer(query, X, y, one, scaling) - answer(query, X, y, other, scaling)
        return float(np.linalg.norm(apart)) / query.sensitivity(relation)

    start = rng.uniform(-1, 1, (2, X.shape[1] + 1))
    return climb(value, tuple(start), moved, steps, rng)[0]


@pytest.mark.parametrize("relation", [Relation.REPLACE_ONE, Relation.ADD_REMOVE], ids=str)
@pytest.mark.parametrize(("spread", "least"), [(0, 0.9), (3, 0.9), (9, 0.1)])
def test_no_record_moves_a_residual_gradient_further(relation, spread, least):
    """Clipped predictions, and lengths by a triangle, with metrics of condition 10^spread; with the
    largest, most of the bound is rounding.
    """
    found = []
    for seed in range(4):
        rng = np.random.default_rng(100 * spread + seed)
        X, y = rng.uniform(-1, 1, (N, D)), rng.uniform(-1, 1, N)
        problem = Problem(
            SaturatingSquares(), Zero(), N, D, relation, scaling=RecordScaling.BOUNDED
        )
        A = np.linalg.qr(rng.normal(size=(D + 1, D + 1)))[0] * 10.0 ** rng.uniform(0, spread, D + 1)
        w = rng.normal(size=D + 1) * 10.0 ** rng.uniform(-2, 2)
        query = ResidualGradient(problem, w, 10.0 ** rng.uniform(-3, 0), MatrixWhitening(A))
        found.append(
            largest_move(query, relation, X, y, float, RecordScaling.BOUNDED, rng, steps=150)
        )
    assert least < max(found) <= 1


@pytest.mark.parametrize("relation", [Relation.REPLACE_ONE, Relation.ADD_REMOVE], ids=str)
@pytest.mark.parametrize("loss", [Softmax(3), OneVsRest(Logistic(), 3)], ids=repr)
def test_no_record_moves_a_derivative_or_the_counts_further(relation, loss):
    """Labels are class numbers: anything else is refused before rows reach a query."""
    derivatives, counts = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(N, D)), rng.integers(3, size=N).astype(float)
        problem = Problem(loss, Zero(), N, D, relation, outputs=3)
        w, direction = rng.normal(size=(2, 3, D + 1)) * 10.0 ** rng.uniform(-2, 3)
        bound = 10.0 ** rng.uniform(-4, 1)
        query = LineDerivative(problem, w, direction, bound)
        given = X, y, lambda v: float(int(abs(np.nan_to_num(v, posinf=1.0)) * 3) % 3)
        scaling = RecordScaling.UNIT_LENGTH
        derivatives.append(largest_move(query, relation, *given, scaling, rng, steps=100))
        counts.append(largest_move(ClassCounts(problem), relation, *given, scaling, rng, steps=20))
    assert 0.9 < max(derivatives) <= 1
    assert 0.9 < max(counts) <= 1
