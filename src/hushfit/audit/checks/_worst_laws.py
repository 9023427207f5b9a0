"""Distributions of the answers of every mechanism on its worst pairs of tables."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.special import ndtr

from hushfit._typing import Vector
from hushfit.audit.checks._exact_laws import choice_law, gate_law
from hushfit.privacy import GaussianCost, Relation, by_relation, exchanges, replaces_one
from hushfit.release import (
    AdaptiveRun,
    AnchoredBatch,
    ClassicInside,
    FixedSizeBatch,
    FreshGate,
    FullBatch,
    GatedBatch,
    GaussianInside,
    LaplaceInside,
    NoisyChoice,
    NoisyCorner,
    PoissonBatch,
    RestartedGate,
    SecretOrder,
    Thresholded,
)
from hushfit.release.mechanisms import gate_multipliers

# Width of a cell and half-width of the range of a Gaussian answer, in standard deviations.
_CELL, _HALF_WIDTH = 0.02, 9.0


@dataclass(frozen=True, eq=False)
class Laws:
    """Probabilities of the cells of one answer on two tables, for ``count`` independent answers."""

    first: Vector
    second: Vector
    count: int = 1

    @property
    def swapped(self) -> "Laws":
        return Laws(self.second, self.first, self.count)

    def times(self, count: int) -> "Laws":
        return Laws(self.first, self.second, self.count * count)


@singledispatch
def worst_laws(
    mechanism: Any, noise_multiplier: float, count: int, relation: Relation, n_units: int
) -> list[Laws]:
    """Distributions of ``count`` answers on worst-case pairs of tables; empty if unknown.

    A new mechanism registers its own: ``@worst_laws.register``.
    """
    return []


# Distributions


def cell_edges(mu: float = 0.0) -> Vector:
    """Edges of the cells of a Gaussian answer, for shifts up to mu."""
    return np.arange(-_HALF_WIDTH - abs(mu), _HALF_WIDTH + abs(mu), _CELL)


def normal_cells(edges: Vector, centre: float) -> Vector:
    below = ndtr(edges - centre)
    # From the nearer tail, so that small probabilities are accurate.
    above = ndtr(centre - edges)
    inner = np.where(edges[:-1] > centre, above[:-1] - above[1:], below[1:] - below[:-1])
    return np.concatenate([[below[0]], inner, [above[-1]]])


def _mixed(edges: Vector, shares: Iterable[tuple[float, float]]) -> Vector:
    return np.asarray(sum(share * normal_cells(edges, centre) for share, centre in shares))


def _gaussian(noise_multiplier: float, count: int) -> Laws:
    mu = math.sqrt(count) / noise_multiplier
    edges = cell_edges(mu)
    return Laws(normal_cells(edges, mu), normal_cells(edges, 0.0))


@worst_laws.register
def _(
    mechanism: FullBatch, noise_multiplier: float, count: int, relation: Relation, n_units: int
) -> list[Laws]:
    return [_gaussian(noise_multiplier, count)]


@worst_laws.register
def _(
    mechanism: PoissonBatch, noise_multiplier: float, count: int, relation: Relation, n_units: int
) -> list[Laws]:
    mu, rate = 1 / noise_multiplier, mechanism.rate
    edges = cell_edges(mu)
    if not exchanges(relation):
        return [Laws(_mixed(edges, [(1 - rate, 0.0), (rate, mu)]), normal_cells(edges, 0.0), count)]
    first, second = (_mixed(edges, [(1 - rate, 0.0), (rate, sign * mu / 2)]) for sign in (1, -1))
    return [Laws(first, second, count)]


@worst_laws.register
def _(
    mechanism: FixedSizeBatch, noise_multiplier: float, count: int, relation: Relation, n_units: int
) -> list[Laws]:
    # All other rows equal the second record.
    mu, rate = 1 / noise_multiplier, mechanism.size / n_units
    edges = cell_edges(mu)
    return [Laws(_mixed(edges, [(1 - rate, 0.0), (rate, mu)]), normal_cells(edges, 0.0), count)]


@worst_laws.register
def _(
    mechanism: AnchoredBatch, noise_multiplier: float, count: int, relation: Relation, n_units: int
) -> list[Laws]:
    mu, rate = 1 / noise_multiplier, mechanism.rate
    edges = cell_edges(mu)
    return [
        Laws(
            _mixed(edges, [(1 - rate, mechanism.ratio * mu), (rate, mu)]),
            normal_cells(edges, 0.0),
            count,
        )
    ]


@worst_laws.register
def _(
    mechanism: SecretOrder, noise_multiplier: float, count: int, relation: Relation, n_units: int
) -> list[Laws]:
    mu = 1 / noise_multiplier
    edges, parts = cell_edges(mu), list(zip(mechanism.shares, mechanism.ratios, strict=True))
    apart = [
        _mixed(edges, [(share, sign * ratio * mu / 2) for share, ratio in parts])
        for sign in (1, -1)
    ]
    one_sided = _mixed(edges, [(share, ratio * mu) for share, ratio in parts])
    return [Laws(apart[0], apart[1], count), Laws(one_sided, normal_cells(edges, 0.0), count)]


@worst_laws.register(GaussianInside)
@worst_laws.register(ClassicInside)
def _(
    mechanism: Any, noise_multiplier: float, count: int, relation: Relation, n_units: int
) -> list[Laws]:
    laws = _objective_laws(mechanism.kappa, noise_multiplier, relation, ndtr)
    return [one.times(count) for one in [*laws, *_person_laws(mechanism, noise_multiplier, ndtr)]]


@worst_laws.register
def _(
    mechanism: LaplaceInside, noise_multiplier: float, count: int, relation: Relation, n_units: int
) -> list[Laws]:
    laws = _objective_laws(mechanism.kappa, noise_multiplier, relation, _laplace_cdf)
    # Two weights and a diagonal shift, whose L1 norm is sqrt(2) times its Euclidean norm.
    each = _objective_laws(
        mechanism.kappa,
        math.sqrt(2) * mechanism.stretch(2) * noise_multiplier,
        relation,
        _laplace_cdf,
    )
    person = _person_laws(mechanism, noise_multiplier, _laplace_cdf)
    return [*(one.times(count) for one in [*laws, *person]), each[0].times(2 * count)]


def _person_laws(
    mechanism: Any, noise_multiplier: float, cdf: Callable[[Vector], Vector]
) -> list[Laws]:
    """A person with as many orthogonal rows as the rank allows, of equal weights, against nobody:
    each weight is a problem of its own, with its share of slope and curvature. Nobody is a
    neighbour under both relations, and noise for replacing is twice as large.
    """
    person = mechanism.person
    if person is None:
        return []
    slope = 1 / person.rank
    scale = noise_multiplier * mechanism.stretch(person.rank)
    kappa = person.trace / person.rank
    # Where the loss is quadratic, and beyond.
    near, far = np.linspace(-1, 1, 801) * slope / kappa, np.linspace(1, 12, 400) * 2 * scale
    w = np.unique(np.concatenate([near, -far, far]))

    def minimiser(curvature: float) -> Vector:
        gradient = np.clip(curvature * w, -slope, slope)
        return np.asarray(np.diff(cdf((w + gradient) / scale), prepend=0.0, append=1.0))

    return [Laws(minimiser(kappa), minimiser(0.0), person.rank)]


def _objective_laws(
    kappa: float, noise_multiplier: float, relation: Relation, cdf: Callable[[Vector], Vector]
) -> list[Laws]:
    """One weight, one record: minimisers of mu w^2/2 + loss + noise w, with a quadratic or linear
    loss; mu is 1 and the curvature kappa.
    """
    longest = by_relation(relation, replace_one=2.0, add_remove=1.0)
    found = []
    for slope in (0.25, 1.0, 4.0):
        scale = noise_multiplier * longest * slope
        w = np.linspace(-12 * scale - 2 * slope, 12 * scale + 2 * slope, 3000)

        def minimiser(
            label: float | None, w: Vector = w, slope: float = slope, scale: float = scale
        ) -> Vector:
            # The noise that makes w the minimiser decreases in w, so cells of w are cells of
            # noise.
            gradient: Vector = (
                np.zeros_like(w) if label is None else np.clip(kappa * (w - label), -slope, slope)
            )
            return np.asarray(np.diff(cdf((w + gradient) / scale), prepend=0.0, append=1.0))

        far = 1e9 * slope
        curved = minimiser(0.0)
        found.append(Laws(minimiser(far), minimiser(-far if replaces_one(relation) else None)))
        found.append(Laws(curved, minimiser(far if replaces_one(relation) else None)))
        found.append(
            Laws(minimiser(3 * slope), minimiser(-3 * slope if replaces_one(relation) else None))
        )
    return found


def _laplace_cdf(x: Vector) -> Vector:
    return np.where(x < 0, 0.5 * np.exp(np.minimum(x, 0.0)), 1 - 0.5 * np.exp(-np.maximum(x, 0.0)))


def _gate_scores(queries: int, scale: float) -> Iterable[tuple[Vector, Vector]]:
    """Scores of a gate and their changes by a record: all alike, or the last one against all
    before it, which reveals most.
    """
    last = np.where(np.arange(queries) == queries - 1, 1.0, -1.0)
    for level in (-3.0, -1.0, 0.0, 1.0):
        yield np.full(queries, level * scale), np.ones(queries)
    for level in (-2.0, -1.0, 0.0):
        yield np.full(queries, level * scale), last


@worst_laws.register
def _(
    mechanism: FreshGate, noise_multiplier: float, count: int, relation: Relation, n_units: int
) -> list[Laws]:
    query = noise_multiplier * (2 if mechanism.noise == "laplace" else math.sqrt(2))
    return [
        one.times(count)
        for one in _sampled_gates(mechanism, math.inf, noise_multiplier, query, relation)
    ]


@worst_laws.register
def _(
    mechanism: GatedBatch, noise_multiplier: float, count: int, relation: Relation, n_units: int
) -> list[Laws]:
    threshold, query = gate_multipliers(mechanism.noise, mechanism.gate / noise_multiplier)
    return [
        one.times(count)
        for one in _sampled_gates(mechanism, noise_multiplier, threshold, query, relation)
    ]


def _sampled_gates(
    mechanism: Any, noise_multiplier: float, threshold: float, query: float, relation: Relation
) -> list[Laws]:
    """Gradient and gate over one batch, which has the record with some probability."""
    rate, mu = mechanism.rate, 1 / noise_multiplier
    edges = cell_edges(mu)[::2] if mu > 0 else np.array([-1.0, 1.0])
    apart = (0.5, -0.5) if replaces_one(relation) else (1.0, 0.0)
    found = []
    for scores, moves in _gate_scores(mechanism.queries, query):
        gates = [
            np.exp(gate_law(mechanism.noise, threshold, query, scores + move * moves))
            for move in (*apart, 0.0)
        ]
        answers = [
            np.outer(normal_cells(edges, mu * move), gate)
            for move, gate in zip((*apart, 0.0), gates, strict=True)
        ]
        first, second = ((1 - rate) * answers[2] + rate * answers[k] for k in (0, 1))
        found.append(Laws(first.ravel(), second.ravel()))
    return found


@worst_laws.register
def _(
    mechanism: RestartedGate, noise_multiplier: float, count: int, relation: Relation, n_units: int
) -> list[Laws]:
    found = []
    for scores, moves in _gate_scores(20, 2 * noise_multiplier):
        first, second = (
            np.exp(
                gate_law("laplace", noise_multiplier, 2 * noise_multiplier, scores + move * moves)
            )
            for move in (1.0, 0.0)
        )
        found.append(Laws(first, second, mechanism.segments))
    return found


@worst_laws.register
def _(
    mechanism: NoisyChoice, noise_multiplier: float, count: int, relation: Relation, n_units: int
) -> list[Laws]:
    bases = [np.array([level, *np.zeros(others)]) for level in (-3.0, 0.0) for others in (1, 3)]
    laws = [
        [
            np.exp(choice_law(noise_multiplier, base + move * (np.arange(len(base)) == 0)))
            for move in (0.5, -0.5)
        ]
        for base in bases
    ]
    # All others change in the opposite direction.
    laws += [
        [
            np.exp(
                choice_law(
                    noise_multiplier, base + move * np.where(np.arange(len(base)) == 0, 1, -1)
                )
            )
            for move in (0.5, -0.5)
        ]
        for base in bases
    ]
    return [Laws(first, second, count) for first, second in laws]


@worst_laws.register
def _(
    mechanism: NoisyCorner, noise_multiplier: float, count: int, relation: Relation, n_units: int
) -> list[Laws]:
    found = []
    for base in (0.0, 2.0):
        both = [
            np.exp(np.array([base + move, -base - move]) / noise_multiplier) for move in (0.5, -0.5)
        ]
        found.append(Laws(both[0] / both[0].sum(), both[1] / both[1].sum(), count))
    return found


@worst_laws.register
def _(
    mechanism: Thresholded, noise_multiplier: float, count: int, relation: Relation, n_units: int
) -> list[Laws]:
    """In every column, a text on both tables, or a text that only one record has."""
    columns = mechanism.n_columns
    scale = noise_multiplier * math.sqrt(
        columns * by_relation(relation, replace_one=2, add_remove=1)
    )
    named = float(ndtr((1 - mechanism.threshold(scale)) / scale))
    some = -math.expm1(columns * math.log1p(-named))
    common = _gaussian(noise_multiplier, 1)
    # Under replace-one, half of the change goes to a rare text.
    return [common.times(count), Laws(np.array([some, 1 - some]), np.array([0.0, 1.0]), count)]


@worst_laws.register
def _(
    mechanism: AdaptiveRun, noise_multiplier: float, count: int, relation: Relation, n_units: int
) -> list[Laws]:
    """As many Gaussian releases as the run's own privacy filter accepts."""
    privacy_filter, one, made = (
        mechanism.filter(noise_multiplier, relation),
        GaussianCost(3 * noise_multiplier),
        0,
    )
    while made < 200 and privacy_filter.affords(one):
        privacy_filter.charge(one)
        made += 1
    return [_gaussian(one.noise_multiplier, made)] if made else []
