"""Checks without an attack: each fails on the error it is made for. That they pass on the
library as it is: test_fast_checks.py.
"""

import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

from hushfit import PrivateLogisticRegression
from hushfit.audit import (
    attack_on,
    check_replay,
    check_sampler,
    check_sensitivity,
    check_side_channels,
    example_queries,
)
from hushfit.audit.checks._noise import gaussian_law, law_p_value, noise_findings
from hushfit.data import as_source
from hushfit.privacy import RECORD_RELATIONS, Relation, SecureSampler, SeededSampler
from hushfit.release import ClippedGradient, NoiseGrid, SecondMoment
from hushfit.solvers import Iterate

RELATIONS = list(RECORD_RELATIONS)
EXAMPLES = {
    (name, relation): example
    for relation in RELATIONS
    for name, example in example_queries(relation).items()
}


def fuzzed(example, relation, **search):
    return check_sensitivity(
        "query",
        example.query,
        relation,
        example.rows,
        example.labels,
        draw_label=example.draw_label,
        **search,
    )


@pytest.mark.parametrize(
    "name",
    [
        "gradient, logistic",
        "gradient, softmax",
        "second moment",
        "gate",
        "steepest corner",
        "run in batches",
    ],
)
def test_a_sensitivity_that_is_too_small_is_found(name, monkeypatch):
    example = EXAMPLES[name, Relation.REPLACE_ONE]
    kind = type(example.query)
    original = kind.sensitivity
    monkeypatch.setattr(kind, "sensitivity", lambda self, relation: 0.7 * original(self, relation))
    assert not fuzzed(example, Relation.REPLACE_ONE, climbs=40).passed


def test_rows_that_reach_beyond_their_clip_are_found(monkeypatch):
    """The error: clipping the sum instead of the records."""
    example = EXAMPLES["gradient, squared", Relation.ADD_REMOVE]
    monkeypatch.setattr(ClippedGradient, "_caps", lambda self, source: np.array([np.inf]))
    assert not fuzzed(example, Relation.ADD_REMOVE, climbs=20).passed


class _Peeking:
    """A solver that reads the rows bypassing the curator."""

    takes_constraint = False

    def __init__(self, solver):
        self.solver = solver

    def plan(self, problem):
        return self.solver.plan(problem)

    def iterates(self, problem, curator):
        source = curator._Curator__source
        for iterate in self.solver.iterates(problem, curator):
            yield Iterate(iterate.w + source.y[0], iterate.weight)


class _Remembering(_Peeking):
    """A solver that keeps state between runs."""

    runs = 0

    def iterates(self, problem, curator):
        self.runs += 1
        for iterate in self.solver.iterates(problem, curator):
            yield Iterate(iterate.w * self.runs, iterate.weight)


@pytest.mark.parametrize("kind", [_Peeking, _Remembering])
def test_a_solver_that_knows_more_than_its_releases_is_caught(kind):
    attack = attack_on("proximal-gd")
    findings = check_replay(
        kind(attack.solver), attack.problem, attack.neighbours.first, attack.budget
    )
    assert not all(finding.passed for finding in findings)


# Side channels


def leaking(leak):
    class Leaking(PrivateLogisticRegression):
        def fit(self, X, y):
            super().fit(X, y)
            leak(self, X)
            return self

    return lambda: Leaking(
        epsilon=1.0, delta=1e-6, classes=[0, 1], solver="proximal-gd", random_state=0
    )


def _count(X):
    return int(np.isfinite(X).all(axis=1).sum())


LEAKS = {
    "prints": lambda self, X: print(_count(X), file=sys.stderr),
    "warns": lambda self, X: warnings.warn(f"{_count(X)} rows used", UserWarning, stacklevel=2),
    "steps": lambda self, X: setattr(self, "n_iter_", _count(X)),
    "attribute": lambda self, X: setattr(self, "seen_", np.zeros(_count(X))),
    "error": lambda self, X: 1 / (len(X) - _count(X) - 1),
}


@pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS)
def test_a_leak_beside_the_numbers_is_found(leak):
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.tile([0, 1], 10)
    other = X.copy()
    other[3] = np.nan
    findings = check_side_channels(leaking(leak), [(X, y), (other, y)])
    assert not all(finding.passed for finding in findings)


def test_fits_that_all_fail_prove_nothing():
    X, y = np.zeros((20, 2)), np.tile([0, 1], 10)
    findings = check_side_channels(
        lambda: PrivateLogisticRegression(epsilon=-1.0, classes=[0, 1]), [(X, y), (X + 1, y)]
    )
    assert [finding.passed for finding in findings] == [False] + [True] * 8


# Noise


class _Broken:
    """A sampler that claims to be secure, with one error."""

    secure = True

    def __init__(self, gaussian=None, laplace=None):
        self.gaussian = gaussian or SecureSampler().gaussian
        self.laplace = laplace or SecureSampler().laplace


def _rounded(log2_variance, size):
    return np.rint(
        np.random.default_rng().normal(scale=2 ** (log2_variance / 2), size=size)
    ).astype(np.int64)


BROKEN = {
    "rounded normals": _Broken(gaussian=_rounded),
    "a tenth too little": _Broken(
        gaussian=lambda k, size: (0.9 * SecureSampler().gaussian(k, size)).astype(np.int64)
    ),
    "drawn once": _Broken(gaussian=lambda k, size: SeededSampler(1).gaussian(k, size)),
    "pairs": _Broken(
        gaussian=lambda k, size: np.repeat(SecureSampler().gaussian(k, size // 2 + 1), 2)[:size]
    ),
    "even numbers": _Broken(gaussian=lambda k, size: 2 * (SecureSampler().gaussian(k, size) // 2)),
    "one-sided": _Broken(laplace=lambda k, size: np.abs(SecureSampler().laplace(k, size))),
}


@pytest.mark.parametrize("sampler", BROKEN.values(), ids=BROKEN)
def test_broken_samplers_are_found(sampler):
    assert not all(finding.passed for finding in check_sampler(sampler, 50_000))


def test_the_law_test_keeps_its_level():
    rng, law = np.random.default_rng(0), gaussian_law(4)
    p_values = [law_p_value(rng.choice(law[0], size=2000, p=law[1]), *law) for _ in range(100)]
    assert min(p_values) > 1e-4
    assert 0.2 < np.mean(np.array(p_values) < 0.5) < 0.8


def mistaken_answers(mistake, query, grid, source, releases=200):
    rng = np.random.default_rng(2)
    weights = np.where(query.doubled, np.sqrt(0.5), 1.0)
    noise = grid.scale * weights * rng.normal(size=(releases, query.size))
    noise = mistake(noise, grid)
    return (
        query(source, None) + noise
        if mistake is MISTAKES["off the grid"]
        else np.rint((query(source, None) + noise) / grid.step) * grid.step
    )


MISTAKES = {
    "off the grid": lambda noise, grid: noise,
    "too little": lambda noise, grid: 0.8 * noise,
    "reused": lambda noise, grid: np.tile(noise[:20], (10, 1)),
    "diagonal as off-diagonal": lambda noise, grid: (
        noise * np.where(np.arange(noise.shape[1]) == 0, np.sqrt(0.5), 1.0)
    ),
    "shared between coordinates": lambda noise, grid: np.column_stack(
        [noise[:, :1], noise[:, :1], noise[:, 2:]]
    ),
    "shared between releases": lambda noise, grid: np.repeat(noise[::2], 2, axis=0) + 1e-6 * noise,
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_noise_that_is_not_what_was_paid_for_is_found(mistake):
    example = EXAMPLES["second moment", Relation.ADD_REMOVE]
    source = as_source(example.rows, example.labels)
    query = example.query
    assert isinstance(query, SecondMoment)
    grid = NoiseGrid.of(query, 1.3, Relation.ADD_REMOVE, source.n_units)
    coarse = replace(grid, log2_deviation=8)
    answers = mistaken_answers(mistake, query, coarse, source)
    findings = noise_findings(
        "second moment", answers, query(source, None), query, coarse, 1.3, Relation.ADD_REMOVE
    )
    assert not all(finding.passed for finding in findings)
