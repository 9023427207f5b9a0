"""Distributions of small mechanisms by quadrature, at the worst neighbours found by hill climbing:
none exceeds its cost.

Only the starting points of the searches are random, and they are seeded. The factor 1 + 1e-5 allows
for the error of quadrature.
"""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from _search import climb, hockey_stick
from scipy.special import log_ndtr, ndtr

from hushfit.data.rows import Persons
from hushfit.privacy import (
    RECORD_RELATIONS,
    AboveThresholdCost,
    FixedSizeGaussianCost,
    GatedCost,
    ObjectiveCost,
    Relation,
    ThresholdedGaussianCost,
    delta_of,
    rdp_curve,
)
from hushfit.release import NoiseGrid, TextColumns, Thresholded, Vocabulary
from hushfit.release.mechanisms import counts_of
from hushfit.release.mechanisms._gate import gate_multipliers
from hushfit.unit import PrivacyUnit

QUADRATURE = 1 + 1e-5
over_relations = pytest.mark.parametrize("relation", list(RECORD_RELATIONS), ids=str)


# The minimiser of a noisy objective in a box: a density inside, atoms at the ends


def minimiser_in_a_box(record, box, smoothness, sigma, w, cells):
    """Distribution of the minimiser of loss + w^2/2 + linear w + noise w; slopes clipped to 1."""
    x, target, linear = record

    def gradient(v):
        return x * np.clip(smoothness * (x * v - target), -1, 1) + v + linear

    curved = np.abs(smoothness * (x * w - target)) <= 1
    density = (
        np.exp(-0.5 * (gradient(w) / sigma) ** 2)
        / (sigma * math.sqrt(2 * math.pi))
        * (1 + x * x * smoothness * curved)
    )
    low, high = box
    return np.concatenate(
        [density * cells, [ndtr(gradient(low) / sigma), ndtr(-gradient(high) / sigma)]]
    )


def laws_in_a_box(at, smoothness, sigma, relation, points):
    target, other, linear, low, width, sign = at
    box = low, low + abs(width)
    second = (0.0 if relation is Relation.ADD_REMOVE else math.copysign(1.0, sign), other, linear)
    kinks = [
        x * (t + side / smoothness) for x, t in ((1.0, target), second[:2]) for side in (1, -1)
    ]
    edges = np.unique(np.clip(np.concatenate([np.linspace(*box, points), kinks]), *box))
    w, cells = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    return [
        minimiser_in_a_box(record, box, smoothness, sigma, w, cells)
        for record in ((1.0, target, linear), second)
    ]


def nearby(at, rng):
    return at + 10 ** rng.uniform(-2, 0.7) * rng.normal(size=len(at)) * (rng.random(len(at)) < 0.6)


@over_relations
@pytest.mark.parametrize(
    ("multiplier", "kappa"), [(0.4, 0.25), (0.4, 6.0), (1.0, 1.0), (4.0, 0.05)]
)
def test_a_minimiser_in_a_box_never_tells_more_than_its_price(multiplier, kappa, relation):
    sigma = multiplier * (2.0 if relation is Relation.REPLACE_ONE else 1.0)
    rng, cost, worst = np.random.default_rng(0), ObjectiveCost(multiplier, kappa), 0.0
    for epsilon in (0.1, 1.0):
        claimed = delta_of(cost, epsilon, relation)

        def divergence(at, points=1001, epsilon=epsilon):
            return hockey_stick(*laws_in_a_box(at, kappa, sigma, relation, points), epsilon)

        for width in (0.2, 20.0):
            start = np.append(rng.normal(size=4) * [2 / kappa, 2 / kappa, 1, width], [width, -1.0])
            _, at = climb(divergence, start, nearby, 60, rng)
            worst = max(worst, divergence(at, 20_001) / claimed)
    assert 0.05 < worst <= QUADRATURE


def test_the_renyi_curve_of_a_minimiser_covers_a_box_too():
    """The cost of stages, each of which may depend on the one before, is a sum of these curves."""
    rng, orders = np.random.default_rng(1), np.array([1.5, 2.0, 4.0])
    for _ in range(20):
        kappa, multiplier = 10 ** rng.uniform(-2, -0.7), 10 ** rng.uniform(-0.3, 0.7)
        at = np.append(rng.normal(size=3) * [2 / kappa, 2 / kappa, 1], [rng.normal(), 3.0, -1.0])
        p, q = laws_in_a_box(at, kappa, 2 * multiplier, Relation.REPLACE_ONE, 4001)
        inside = (p > 0) & (q > 0)
        logs = np.log(p[inside]), np.log(q[inside])
        moments = [np.log(np.exp(a * logs[0] + (1 - a) * logs[1]).sum()) / (a - 1) for a in orders]
        assert np.all(
            moments
            <= QUADRATURE
            * rdp_curve(ObjectiveCost(multiplier, kappa), orders, Relation.REPLACE_ONE)
            + 1e-6
        )


# Batches without replacement, more than one step


def batch_laws(first, second, others, size, sigma):
    """Densities of a noisy sum over a uniformly chosen batch, on two tables, times their cells."""
    edges = np.linspace(-size - 9 * sigma, size + 9 * sigma, 6001)
    t, cell = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]

    def density(values):
        centres = np.array([sum(chosen) for chosen in combinations(values, size)])
        return (
            np.mean(np.exp(-0.5 * ((t[:, None] - centres) / sigma) ** 2), axis=1)
            * cell
            / (sigma * math.sqrt(2 * math.pi))
        )

    return density([first, *others]), density([second, *others])


def two_steps(p, q, epsilon):
    """Divergence of two independent answers, by tail sums of the second one's losses."""
    order = np.argsort(np.log(p) - np.log(q))
    p, q = p[order], q[order]
    losses = np.log(p) - np.log(q)
    above_p, above_q = (np.append(np.cumsum(v[::-1])[::-1], 0.0) for v in (p, q))
    partner = np.searchsorted(losses, epsilon - losses)
    return float((p * above_p[partner] - math.exp(epsilon) * q * above_q[partner]).sum())


@pytest.mark.parametrize(("n", "size"), [(2, 1), (5, 1), (6, 3)])
@pytest.mark.parametrize("multiplier", [0.5, 2.0])
def test_two_batches_without_replacement_never_tell_more_than_their_price(n, size, multiplier):
    rng, cost, worst = np.random.default_rng(0), FixedSizeGaussianCost(multiplier, size / n, 2), 0.0
    claimed = {
        epsilon: delta_of(cost, epsilon, Relation.REPLACE_ONE) for epsilon in (0.1, 0.5, 1.0, 2.0)
    }
    for others in (-np.ones(n - 1), np.ones(n - 1), np.zeros(n - 1), rng.uniform(-1, 1, n - 1)):
        for first, second in ((1.0, -1.0), (-1.0, 1.0), (1.0, 0.0)):
            p, q = batch_laws(first, second, others.tolist(), size, 2 * multiplier)
            worst = max(
                worst, *(two_steps(p, q, epsilon) / claimed[epsilon] for epsilon in claimed)
            )
    assert 0.9 < worst <= QUADRATURE


# Gaussian gates with ten queries

QUERIES = 10
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(121)
WEIGHTS = WEIGHTS / math.sqrt(2 * math.pi)


def gate_law(scores, threshold, query):
    """Probabilities of stopping at each query and at none, the noisy threshold integrated out."""
    x = (threshold * NODES[:, None] - scores) / query
    reached = np.exp(np.column_stack([np.zeros(len(NODES)), np.cumsum(log_ndtr(x), axis=1)]))
    return WEIGHTS @ (reached * np.column_stack([ndtr(-x), np.ones(len(NODES))]))


def moved_scores(at, rng):
    """Any scores; changes between neighbours within the sensitivity, often at its ends."""
    levels, *moves = (
        part + 10 ** rng.uniform(-2, 0.7) * rng.normal(size=QUERIES) * (rng.random(QUERIES) < 0.5)
        for part in at
    )
    moves = [
        np.where(move < 0, -1.0, 1.0) if rng.random() < 0.3 else np.clip(move, -1, 1)
        for move in moves
    ]
    return [levels, *moves]


STARTS = {"together": np.ones(QUERIES), "in turn": np.resize([1.0, -1.0], QUERIES)}


@pytest.mark.parametrize("strength", [0.5, 2.0, 4.0])
def test_a_gaussian_gate_with_ten_queries_never_tells_more_than_its_price(strength):
    threshold, query = gate_multipliers("gaussian", strength)
    rng, cost, worst = (
        np.random.default_rng(0),
        AboveThresholdCost("gaussian", threshold, query, QUERIES),
        0.0,
    )
    for epsilon in (0.05, 0.5):

        def divergence(at, epsilon=epsilon):
            return hockey_stick(
                *(gate_law(at[0] + side * at[1] / 2, threshold, query) for side in (1, -1)), epsilon
            )

        for moves in STARTS.values():
            found, _ = climb(divergence, [np.full(QUERIES, -query), moves], moved_scores, 150, rng)
            worst = max(worst, found / delta_of(cost, epsilon, Relation.REPLACE_ONE))
    assert 0.3 < worst <= QUADRATURE


@over_relations
def test_a_gradient_and_a_gaussian_gate_on_one_batch_never_tell_more_than_their_price(relation):
    threshold, query = gate_multipliers("gaussian", 4.0)
    rate, multiplier, epsilon = 0.5, 1.5, 0.1
    grid = np.linspace(-9, 9, 181)
    # Under replace-one, half of the sensitivity lies between either record and none.
    sides = (0.5, -0.5) if relation is Relation.REPLACE_ONE else (1.0, 0.0)

    def divergence(at):
        def joint(side, move):
            density = (
                np.exp(-0.5 * (grid - side / multiplier) ** 2)
                / math.sqrt(2 * math.pi)
                * (grid[1] - grid[0])
            )
            return np.outer(density, gate_law(at[0] + side * move, threshold, query))

        absent = joint(0.0, 0.0)
        return hockey_stick(
            *(
                (1 - rate) * absent + rate * joint(*moved)
                for moved in zip(sides, at[1:], strict=True)
            ),
            epsilon,
        )

    rng = np.random.default_rng(0)
    found, _ = climb(
        divergence,
        [np.full(QUERIES, -query), np.ones(QUERIES), np.ones(QUERIES)],
        moved_scores,
        60,
        rng,
    )
    claimed = delta_of(
        GatedCost(multiplier, rate, "gaussian", threshold, query, QUERIES), epsilon, relation
    )
    assert 0.3 * claimed < found <= QUADRATURE * claimed


# Names of common texts


def named_law(counts, least, scale):
    """Joint distribution of which texts are named; one with a count of zero is never named."""
    law = np.ones(1)
    for count in counts:
        probability = ndtr((count - least) / scale) if count > 0 else 0.0
        law = np.multiply.outer(law, [probability, 1 - probability]).ravel()
    return law


@over_relations
@pytest.mark.parametrize(
    ("columns", "failure", "multiplier"), [(1, 0.1, 4.0), (2, 1e-3, 1.0), (4, 1e-6, 0.3)]
)
def test_names_of_texts_never_tell_more_than_their_price(columns, failure, multiplier, relation):
    grid = NoiseGrid.of(Vocabulary(columns), multiplier, relation, 1000)
    least, rng, worst = (
        Thresholded(failure, columns).threshold(grid.scale) + grid.step,
        np.random.default_rng(0),
        0.0,
    )

    def divergence(at, epsilon):
        losing, gaining = np.maximum(np.rint(at[:columns]), 1), np.maximum(np.rint(at[columns:]), 0)
        if relation is Relation.ADD_REMOVE:
            pair = losing, losing - 1
        else:
            pair = np.concatenate([losing, gaining]), np.concatenate([losing - 1, gaining + 1])
        return hockey_stick(*(named_law(counts, least, grid.scale) for counts in pair), epsilon)

    for epsilon in (0.0, 1.0, 3.0):
        claimed = delta_of(ThresholdedGaussianCost(multiplier, failure), epsilon, relation)
        for level in (1.0, least):
            start = np.append(np.full(columns, level), np.zeros(columns))
            found, _ = climb(
                lambda at, epsilon=epsilon: divergence(at, epsilon),
                start,
                lambda at, rng: (
                    at + grid.scale * rng.normal(size=2 * columns) * (rng.random(2 * columns) < 0.5)
                ),
                60,
                rng,
            )
            worst = max(worst, found / claimed)
    assert 0.1 < worst <= 1 + 1e-9


def texts_of_persons(at, rows, relation):
    """Counts of texts on two tables that differ in one person: of two texts that others have too,
    of those that only this person has at first, and of those only afterwards.
    """
    common = np.maximum(np.rint(at[:2]), 1)
    had, own = [], []
    for side in (0, 1):
        shared = (at[4 + 2 * side : 6 + 2 * side] > 0).astype(float)
        alone = int(np.clip(np.rint(at[2 + side]), 0, rows - shared.sum()))
        weight = 1 / np.sqrt(max(alone + shared.sum(), 1))
        if side == 1 and relation is Relation.ADD_REMOVE:
            shared, alone = np.zeros(2), 0
        had.append(common + weight * shared)
        own.append(np.full(alone, weight))
    nobody = [np.zeros(len(texts)) for texts in own]
    return np.concatenate([had[0], own[0], nobody[1]]), np.concatenate([had[1], nobody[0], own[1]])


@over_relations
@pytest.mark.parametrize(("rows", "failure", "multiplier"), [(2, 0.1, 0.7), (5, 1e-3, 2.0)])
def test_names_of_texts_of_persons_never_tell_more_than_their_price(
    rows, failure, multiplier, relation
):
    """A person with several texts that nobody else has; a threshold for one text names them too
    often.
    """
    grid = NoiseGrid.of(Vocabulary(1, rows), multiplier, relation, 1000)
    mechanism, rng = Thresholded(failure, 1), np.random.default_rng(0)
    least = mechanism.threshold(grid.scale, rows) + grid.step
    assert least >= mechanism.threshold(grid.scale) + grid.step

    def divergence(at, epsilon, least):
        laws = (
            named_law(counts, least, grid.scale) for counts in texts_of_persons(at, rows, relation)
        )
        return hockey_stick(*laws, epsilon)

    worst = 0.0
    for epsilon in (0.0, 1.0, 4.0, 30.0):
        claimed = delta_of(ThresholdedGaussianCost(multiplier, failure), epsilon, relation)
        start = np.array([least, 1.0, rows, rows, 1.0, -1.0, -1.0, 1.0])
        found, _ = climb(
            lambda at, epsilon=epsilon: divergence(at, epsilon, least),
            start,
            lambda at, rng: at + rng.normal(size=8) * [grid.scale, grid.scale, 2, 2, 1, 1, 1, 1],
            40,
            rng,
        )
        worst = max(worst, found / claimed)
    assert 0.3 < worst <= 1 + 1e-9
    alone = np.array([1.0, 1.0, rows, 0.0, -1.0, -1.0, -1.0, -1.0])
    too_low = mechanism.threshold(grid.scale) + grid.step
    assert divergence(alone, 30.0, least) <= failure
    if multiplier > 1:  # where many small counts are named more often than one large one
        assert divergence(alone, 30.0, too_low) > 1.2 * failure


def test_counts_of_texts_of_persons_have_a_norm_of_one_at_most():
    """Every person, by whole numbers; a repeated text counts once."""
    rng = np.random.default_rng(0)
    for k in (1, 2, 3, 7, 40):
        texts = tuple(f"t{number}" for number in rng.integers(0, 25, size=k))
        unit = PrivacyUnit.person("mean", 30)
        source = TextColumns((texts,), Persons(np.zeros(k, np.int64), 1, unit))
        (counts,) = counts_of(source)
        different = len(set(texts[:30]))
        assert len(counts) == different
        assert sum(Fraction(count) ** 2 for count in counts.values()) <= 1
        assert max(abs(count - different**-0.5) for count in counts.values()) < 1e-14
