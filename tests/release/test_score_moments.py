"""Scores, curvature and covariance of scores in one release: bounds, answers and refusals."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from scipy.stats import poisson

from hushfit.data import RecordScaling, as_source
from hushfit.data.rows import Persons
from hushfit.errors import InvalidArgument
from hushfit.losses import HuberHinge, LeastSquares, Logistic, Poisson
from hushfit.penalties import Zero
from hushfit.privacy import Relation
from hushfit.problem import Problem
from hushfit.release import ScoreMoments, score_family
from hushfit.release.queries._score_families import (
    CountScores,
    LinearScores,
    LogisticScores,
    _count_curvature,
)
from hushfit.unit import ROW, PrivacyUnit

FAMILIES = {
    "linear": LinearScores(),
    "logistic": LogisticScores(),
    **{f"counts up to {most}": CountScores(most) for most in (1, 5, 20)},
}
LOSSES = {"linear": LeastSquares(), "logistic": Logistic(), "counts": Poisson(5.0)}
over_families = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
over_losses = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def problem_of(loss, n, d, unit=ROW, relation=Relation.REPLACE_ONE):
    return Problem(loss, Zero(), n, d, relation, privacy_unit=unit, scaling=RecordScaling.BOUNDED)


def some_residuals(family, rng, n):
    """Residuals and curvatures of records of a family."""
    if isinstance(family, LinearScores):
        return np.clip(rng.normal(size=n), -1, 1), np.ones(n)
    if isinstance(family, LogisticScores):
        probability = expit(rng.normal(size=n) * 10 ** rng.uniform(-1, 1.5, n))
        r = probability - rng.integers(2, size=n)
        return r, np.abs(r) * (1 - np.abs(r))
    rate = np.exp(np.minimum(rng.normal(size=n) * 3, math.log(family.most) + 1))
    below = [poisson.cdf(k, rate) for k in range(family.most)]
    mean, curvature = sum(1 - one for one in below), rate * below[-1]
    y = np.where(rng.random(n) < 0.7, rng.choice([0, family.most], n), rng.poisson(rate))
    return (mean - np.minimum(y, family.most)) / family.most, curvature / family.most


def contributions(family, images, residuals, curvatures):
    b, e = family.factors
    a = 1 / np.maximum(1.0, np.sum(images**2, axis=1))
    v = (a * residuals)[:, None] * images
    outer = np.einsum("ni,nj->nij", images, images).reshape(len(images), -1)
    own = np.einsum("ni,nj->nij", v, v).reshape(len(images), -1)
    return np.hstack([v, b * (a * curvatures)[:, None] * outer, e * own])


@over_families
def test_random_pairs_stay_within_the_certified_diameter(family):
    """Images near each other, opposite or apart, of lengths about one."""
    rng, n = np.random.default_rng(0), 20_000
    first = rng.normal(size=(n, 2))
    first *= (10 ** rng.normal(0, 0.15, n) / np.linalg.norm(first, axis=1))[:, None]
    turned = rng.choice([1.0, -1.0], n)[:, None] * first + 0.3 * rng.normal(size=(n, 2))
    one, other = (
        contributions(family, images, *some_residuals(family, rng, n)) for images in (first, turned)
    )
    apart = np.linalg.norm(one - other, axis=1)
    assert apart.max() <= family.diameter
    assert apart.max() > 0.85 * family.diameter
    lengths = np.linalg.norm(one, axis=1)
    assert 0.9 * family.radius < lengths.max() <= family.radius


def test_certificates_have_the_stated_values():
    assert LogisticScores().diameter == pytest.approx(2.0, abs=2e-7)
    assert LogisticScores().radius == pytest.approx(1.26239, abs=1e-4)
    assert LinearScores().radius == pytest.approx(1.22348, abs=1e-5)
    assert CountScores(1).diameter == pytest.approx(2.0181, abs=1e-4)
    assert CountScores(8).diameter == pytest.approx(2.0, abs=1e-6)
    assert CountScores(20).diameter == pytest.approx(2.0, abs=1e-6)
    assert CountScores(20).radius == pytest.approx(1.2207, abs=1e-4)


@over_families
def test_factors_keep_the_conditions_of_the_proof(family):
    b, e = family.factors
    assert 2 * e**2 < 1
    assert isinstance(family, LinearScores) == (b**2 + e**2 <= 0.5)


@pytest.mark.parametrize("most", [1, 3, 40])
def test_curvatures_of_counts_are_bounded_at_every_rate(most):
    """Rates between the points of the table, and every count."""
    largest = _count_curvature(most)
    rate = np.exp(np.random.default_rng(0).uniform(-21, math.log(most) + 1, 4000))
    below = [poisson.cdf(k, rate) for k in range(most)]
    mean, curvature = sum(1 - one for one in below) / most, rate * below[-1] / most
    for y in {0, 1, most}:
        size = np.abs(mean - y / most)
        assert np.all(curvature <= largest(size, size) + 1e-12)


@over_losses
def test_sums_are_those_of_plain_arrays(loss):
    rng, n, d = np.random.default_rng(1), 300, 3
    X, w, A = rng.uniform(-1, 1, (n, d)), rng.normal(size=d + 1), rng.normal(size=(d + 1, d + 1))
    y = {
        "LeastSquares": rng.uniform(-1, 1, n),
        "Logistic": rng.choice([-1.0, 1.0], n),
        "Poisson": rng.poisson(2.0, n).astype(float),
    }[type(loss).__name__]
    X[5], y[7] = np.nan, np.nan
    query = ScoreMoments(problem_of(loss, n, d), w, A, score_family(loss, 0.7))
    source = as_source(X, y, scaled_labels=True, scaling=RecordScaling.BOUNDED)
    moments = query.moments(query(source, None), multiplier=0.0)
    kept = np.isfinite(X).all(axis=1) & np.isfinite(y)
    Z = np.column_stack([X, np.full(n, math.sqrt(0.5))])[kept]
    T, margins = Z @ A, Z @ w
    if isinstance(loss, Poisson):
        rate = np.exp(np.minimum(margins, math.log(5) + 1))
        below = [poisson.cdf(k, rate) for k in range(5)]
        r = (sum(1 - one for one in below) - np.minimum(y[kept], 5)) / 5
        c = rate * below[-1] / 5
    elif isinstance(loss, Logistic):
        r = expit(margins) - (y[kept] > 0)
        c = expit(margins) * expit(-margins)
    else:
        r, c = np.clip((margins - y[kept]) / 0.7, -1, 1), np.ones(len(margins))
    a = 1 / np.maximum(1, np.sum(T**2, axis=1))
    np.testing.assert_allclose(moments.score, T.T @ (a * r), atol=1e-9)
    np.testing.assert_allclose(moments.curvature, T.T @ (T * (a * c)[:, None]), atol=1e-9)
    np.testing.assert_allclose(moments.spread, T.T @ (T * ((a * r) ** 2)[:, None]), atol=1e-9)


def test_persons_contribute_the_outer_product_of_their_own_score():
    rng, n, d, persons = np.random.default_rng(2), 400, 2, 90
    X, y = rng.uniform(-1, 1, (n, d)), rng.choice([-1.0, 1.0], n)
    codes = np.concatenate([np.arange(persons), rng.integers(persons, size=n - persons)])
    unit = PrivacyUnit.person("mean", 50)
    w, A = rng.normal(size=d + 1), rng.normal(size=(d + 1, d + 1))
    query = ScoreMoments(problem_of(Logistic(), persons, d, unit), w, A, score_family(Logistic()))
    source = as_source(
        X,
        y,
        scaled_labels=True,
        scaling=RecordScaling.BOUNDED,
        persons=Persons(codes, persons, unit),
    )
    moments = query.moments(query(source, None), multiplier=0.0)
    Z = np.column_stack([X, np.full(n, math.sqrt(0.5))])
    T, r = Z @ A, expit(Z @ w) - (y > 0)
    rows = T * (r / np.maximum(1, np.sum(T**2, axis=1)) / np.bincount(codes)[codes])[:, None]
    scores = np.zeros((persons, d + 1))
    np.add.at(scores, codes, rows)
    np.testing.assert_allclose(moments.score, scores.sum(axis=0), atol=1e-9)
    np.testing.assert_allclose(moments.spread, scores.T @ scores, atol=1e-9)


@pytest.mark.parametrize("relation", [Relation.REPLACE_ONE, Relation.ADD_REMOVE])
def test_rounding_of_entries_that_count_twice_is_counted_twice(relation):
    """Lemma 1 bounds the rounding of each entry; the norm counts off-diagonal entries twice."""
    problem, family = (
        problem_of(Logistic(), 100_000, 5, relation=relation),
        score_family(Logistic()),
    )
    query = ScoreMoments(problem, np.zeros(6), np.eye(6), family)
    of_entry = query._sum.rounding / math.sqrt(query.size)
    moved = {Relation.REPLACE_ONE: family.diameter, Relation.ADD_REMOVE: family.radius}[relation]
    room = query.sensitivity(relation) - moved * (1 + 1e-9)
    assert room >= 0.999 * of_entry * math.sqrt(query.size + query.doubled.sum())


def test_what_the_proof_does_not_cover_is_refused():
    problem = problem_of(Logistic(), 50, 2)
    family, eye = score_family(Logistic()), np.eye(3)
    with pytest.raises(InvalidArgument, match="shape"):
        ScoreMoments(problem, np.zeros(2), eye, family)
    with pytest.raises(InvalidArgument, match="not finite"):
        ScoreMoments(problem, np.zeros(3), eye * np.nan, family)
    with pytest.raises(InvalidArgument, match="norm of the metric"):
        ScoreMoments(problem, np.zeros(3), eye * 1e-150, family)
    with pytest.raises(InvalidArgument, match="is not the family"):
        ScoreMoments(problem, np.zeros(3), eye, LinearScores())
    with pytest.raises(InvalidArgument, match="no inference"):
        score_family(HuberHinge())
    with pytest.raises(InvalidArgument, match="whole number from 1 to 250"):
        score_family(Poisson(2.5))
    query = ScoreMoments(problem, np.zeros(3), eye, family)
    source = as_source(np.zeros((50, 2)), np.ones(50), scaling=RecordScaling.BOUNDED)
    with pytest.raises(InvalidArgument, match="over all rows"):
        query(source, np.arange(3))


def test_labels_of_any_size_are_classes_and_rows_of_another_width_are_refused():
    problem, family = problem_of(Logistic(), 3, 1), score_family(Logistic())
    query = ScoreMoments(problem, np.zeros(2), np.eye(2), family)
    X = np.array([[0.5], [-0.2], [0.0]])

    def answer(labels):
        return query(as_source(X, labels, scaling=RecordScaling.BOUNDED), None)

    np.testing.assert_array_equal(
        answer(np.array([1e6, -3.0, 0.0])), answer(np.array([1.0, -1.0, -1.0]))
    )
    wide = as_source(np.zeros((3, 2)), np.ones(3), scaling=RecordScaling.BOUNDED)
    with pytest.raises(InvalidArgument, match="2 columns, the problem 1"):
        query(wide, None)


@pytest.mark.parametrize("width", [5, 33, 64])
def test_margins_that_cancel_give_one_residual_in_every_loop_and_layout(width):
    """A second loop for persons, and rows in other layouts, must not see another residual."""
    rng, n = np.random.default_rng(width), 200
    X = rng.uniform(-1, 1, (n, width))
    w = np.append(1e30 * rng.normal(size=width), 0.0)
    w[-2] = -(X[:, :-1] @ w[:-2]).mean() / X[:, -1].mean()
    unit = PrivacyUnit.person("mean", 2)
    problem = problem_of(Logistic(), n, width, unit)
    query = ScoreMoments(problem, w, np.eye(width + 1), score_family(Logistic()))
    y, persons = rng.choice([-1.0, 1.0], n), Persons(np.arange(n), n, unit)
    answers = []
    for rows in (X, sparse.csr_array(X)):
        source = as_source(
            rows, y, scaled_labels=True, scaling=RecordScaling.BOUNDED, persons=persons
        )
        moments = query.moments(query(source, None), multiplier=0.0)
        # Every person has one row, so the trace of the covariances is that of squared scores.
        answers.append(moments)
    first, second = answers
    for one, other in zip(first[:3], second[:3], strict=True):
        np.testing.assert_array_equal(one, other)
