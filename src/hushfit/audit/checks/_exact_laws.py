"""Exact small cases: the distribution of one or two answers on a worst pair of tables, by
quadrature, compared with the accounted cost.

Attacks test a claim with a few thousand trials. These checks are not statistical: the hockey-stick
divergence of two distributions is computed at several epsilons and must never exceed the cost, and
epsilon at a small delta must come as close to the cost as each case states.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtri

from hushfit._root import root
from hushfit._typing import Vector
from hushfit.audit._bounds import Curve
from hushfit.audit.checks._noise import Finding
from hushfit.privacy import (
    AboveThresholdCost,
    BoundedRangeCost,
    Cost,
    FixedSizeGaussianCost,
    GatedCost,
    GaussianCost,
    ObjectiveCost,
    PermutedGaussianCost,
    PoissonGaussianCost,
    PureCost,
    Relation,
    ThresholdedGaussianCost,
    delta_of,
    discretisation_loss,
    epsilon_of,
    gaussian_delta,
    replaces_one,
)
from hushfit.privacy.accounting import StoppingRule, best_of_many, stopping_rule
from hushfit.privacy.costs import MixtureGaussianCost

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
# Relative error of quadrature; a cost too small by less than this is not noticed.
_ROUNDING = 1e-5
_LEAST_DELTA = 1e-12
_EPSILONS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
_AT_DELTA = 1e-5
_CURVE_AT: Vector = np.linspace(0.0, 12.0, 241)
# Points and half-width, in standard deviations, of the integral over a normal variable.
_POINTS, _HALF_WIDTH = 12_001, 9.0
_THRESHOLDS = 4001


@dataclass(frozen=True, eq=False)
class ExactLaws:
    """Log-probabilities of all outcomes on two tables; for a continuous answer, of its density
    times the width of the cell.
    """

    first: Vector
    second: Vector

    @property
    def swapped(self) -> "ExactLaws":
        return ExactLaws(self.second, self.first)

    def beside(self, other: "ExactLaws") -> "ExactLaws":
        """The joint distributions of two independent answers."""
        return ExactLaws(
            np.add.outer(self.first, other.first).ravel(),
            np.add.outer(self.second, other.second).ravel(),
        )

    def delta(self, epsilon: float) -> float:
        """Hockey-stick divergence of the first distribution from the second."""
        with np.errstate(invalid="ignore"):
            gap = epsilon + self.second - self.first
        return float(
            (
                np.exp(self.first)
                * -np.expm1(np.minimum(np.nan_to_num(gap, nan=0.0, neginf=-math.inf), 0.0))
            ).sum()
        )

    def epsilon(self, delta: float) -> float:
        """The epsilon at which the divergence is ``delta``; 0 if it is never larger."""
        if self.delta(0.0) <= delta:
            return 0.0
        high = 1.0
        while self.delta(high) > delta:
            high *= 2
            if high > 1e3:
                return math.inf
        return root(lambda epsilon: delta - self.delta(epsilon), 0.0, high)


def worst_delta(pairs: Iterable[ExactLaws], epsilon: float) -> float:
    """Largest divergence at an epsilon over pairs of distributions, in either order."""
    return max(max(pair.delta(epsilon), pair.swapped.delta(epsilon)) for pair in pairs)


def worst_epsilon(pairs: Iterable[ExactLaws], delta: float) -> float:
    """Largest epsilon at a delta over pairs of distributions, in either order."""
    return max(max(pair.epsilon(delta), pair.swapped.epsilon(delta)) for pair in pairs)


def curve_of(laws: ExactLaws) -> Curve:
    """The trade-off curve of two distributions, in either order, for an audit that knows them up
    to the size of their noise.
    """
    return Curve(
        _CURVE_AT, np.array([worst_delta([laws], float(epsilon)) for epsilon in _CURVE_AT])
    )


# Gaussian noise on one of several answers


def normals(*mixtures: Sequence[tuple[float, float]], points: int = _POINTS) -> list[Vector]:
    """Mixtures of unit normals on one grid, each given as shares and centres."""
    centres = [centre for mixture in mixtures for _, centre in mixture]
    x, step = np.linspace(
        min(centres) - _HALF_WIDTH, max(centres) + _HALF_WIDTH, points, retstep=True
    )
    cell = math.log(step / math.sqrt(2 * math.pi))
    return [
        cell
        + logsumexp(
            [math.log(share) - 0.5 * (x - centre) ** 2 for share, centre in mixture if share > 0],
            axis=0,
        )
        for mixture in mixtures
    ]


def gaussian_laws(mu: float) -> ExactLaws:
    """Gaussian noise on answers that are ``mu`` standard deviations apart."""
    return ExactLaws(*normals([(1.0, mu)], [(1.0, 0.0)]))


def poisson_laws(mu: float, rate: float, relation: Relation, points: int = _POINTS) -> ExactLaws:
    """Gaussian noise on the answer over a batch that has the record with probability ``rate``."""
    if not replaces_one(relation):
        return ExactLaws(*normals([(1 - rate, 0.0), (rate, mu)], [(1.0, 0.0)], points=points))
    return ExactLaws(
        *normals(
            [(1 - rate, 0.0), (rate, mu / 2)], [(1 - rate, 0.0), (rate, -mu / 2)], points=points
        )
    )


def fixed_size_laws(mu: float, rate: float) -> ExactLaws:
    """The same for a batch of fixed size when all other records equal the second one, so that every
    batch holds copies of it.
    """
    return ExactLaws(*normals([(1 - rate, 0.0), (rate, mu)], [(1.0, 0.0)]))


def mixture_laws(mu: float, rate: float, ratio: float) -> ExactLaws:
    """A record that always changes the answer a little, and more if it is in the batch."""
    return ExactLaws(*normals([(1 - rate, ratio * mu), (rate, mu)], [(1.0, 0.0)]))


def permuted_laws(mu: float, shares: Sequence[float], ratios: Sequence[float]) -> list[ExactLaws]:
    """The last iterate of a run with secret batches: opposite records, one record against none, and
    batches that other rows reveal.
    """
    parts = list(zip(shares, (mu * ratio for ratio in ratios), strict=True))
    either = normals(
        [(share, shift / 2) for share, shift in parts],
        [(share, -shift / 2) for share, shift in parts],
    )
    alone = normals(parts, [(1.0, 0.0)])
    # Other rows may separate the batches so far that the output reveals which one it was.
    far = [(2 * _HALF_WIDTH + mu) * j for j in range(len(parts))]
    shown = [
        [(share, place + moved * shift) for (share, shift), place in zip(parts, far, strict=True)]
        for moved in (1.0, 0.0)
    ]
    return [ExactLaws(*either), ExactLaws(*alone), ExactLaws(*normals(*shown, points=2 * _POINTS))]


def best_of_gaussians(
    mu: float, rule: StoppingRule, unseen: float = 0.0, without: float = 0.0
) -> ExactLaws:
    """The best of a random number of Gaussian trials, scored by the answer.

    With probability ``unseen`` no trial has the record, and answers are centred at ``without``.
    """
    x, step = np.linspace(-_HALF_WIDTH - 1, mu + _HALF_WIDTH + 1, _POINTS, retstep=True)

    def best(centre: float) -> Vector:
        slope = rule.log_slope(np.exp(log_ndtr(x - centre)))
        return np.asarray(math.log(step / math.sqrt(2 * math.pi)) - 0.5 * (x - centre) ** 2 + slope)

    if unseen == 0:
        return ExactLaws(best(mu), best(0.0))
    seen, absent = math.log1p(-unseen), math.log(unseen) + best(without)
    return ExactLaws(*(np.logaddexp(seen + best(centre), absent) for centre in (mu, 0.0)))


# Thresholds and choices


def log_tail(noise: str, x: Vector) -> Vector:
    """Log-probability that noise of scale one is at least x."""
    if noise == "gaussian":
        return np.asarray(log_ndtr(-x))
    return np.where(
        x >= 0, math.log(0.5) - np.maximum(x, 0.0), np.log1p(-0.5 * np.exp(np.minimum(x, 0.0)))
    )


def gate_law(
    noise: str, threshold: float, query: float, scores: Vector, points: int = _THRESHOLDS
) -> Vector:
    """Log-probabilities of stopping at each score, and of never stopping, for given noise scales of
    threshold and scores.
    """
    reach = 10 if noise == "gaussian" else 40
    z = np.linspace(-reach * threshold, reach * threshold, points)
    log_density = -0.5 * (z / threshold) ** 2 if noise == "gaussian" else -np.abs(z) / threshold
    log_density = log_density - logsumexp(log_density)
    x = (z[:, None] - np.asarray(scores)) / query
    go_on = np.cumsum(log_tail(noise, -x), axis=1)
    reached = np.column_stack([np.zeros(len(z)), go_on])
    stop = np.column_stack([log_tail(noise, x), np.zeros(len(z))])
    return np.asarray(logsumexp(log_density[:, None] + reached + stop, axis=0))


def gate_laws(
    noise: str, threshold: float, query: float, queries: int, moved: float = 1.0
) -> Iterator[ExactLaws]:
    """A gate with equal scores that change together, alternately, or all against the last."""
    together = np.ones(queries)
    in_turn = np.resize([1.0, -1.0], queries)
    last = np.where(np.arange(queries) == queries - 1, -1.0, 1.0)
    for level in (-8.0, -5.0, -3.0, -2.0, -1.0, 0.0, 1.0, 3.0):
        scores = np.full(queries, level * query)
        for moves in (together, in_turn, last):
            yield ExactLaws(
                *(
                    gate_law(noise, threshold, query, scores + side * moved * moves / 2)
                    for side in (1, -1)
                )
            )


def gated_laws(
    mu: float, rate: float, epsilon: float, queries: int, relation: Relation
) -> Iterator[ExactLaws]:
    """A Gaussian answer and a Laplace gate on one batch, which has the record with probability
    ``rate``.
    """
    threshold, query = 2 / epsilon, 4 / epsilon
    # Under replace-one, half of the sensitivity lies between either record and none.
    sides = (0.5, -0.5) if replaces_one(relation) else (1.0, 0.0)
    for level in (-5.0, -3.0, -2.0, -1.0, 0.0, 2.0):
        absent = np.full(queries, level * query)
        for moves in (np.ones(queries), np.resize([1.0, -1.0], queries)):
            gates = [
                gate_law("laplace", threshold, query, absent + side * moves)
                for side in (*sides, 0.0)
            ]
            grids = normals(*([(1.0, side * mu)] for side in (*sides, 0.0)), points=1201)
            with_record = [
                np.add.outer(grid, gate).ravel() for grid, gate in zip(grids, gates, strict=True)
            ]
            log_in, log_out = math.log(rate), math.log1p(-rate) if rate < 1 else -math.inf
            yield ExactLaws(
                *(np.logaddexp(log_in + one, log_out + with_record[2]) for one in with_record[:2])
            )


def choice_law(scale: float, scores: Vector) -> Vector:
    """Log-probabilities that each score is the largest after Laplace noise."""
    t = np.unique(
        np.concatenate(
            [np.linspace(min(scores) - 40 * scale, max(scores) + 40 * scale, 20_001), scores]
        )
    )
    gaps = np.diff(t)
    cells = np.log((np.append(gaps, 0.0) + np.insert(gaps, 0, 0.0)) / (4 * scale))
    below = np.array([log_tail("laplace", (score - t) / scale) for score in scores])
    won = [
        float(logsumexp(cells - np.abs(t - score) / scale + below.sum(axis=0) - below[k]))
        for k, score in enumerate(scores)
    ]
    return np.asarray(np.array(won) - logsumexp(won))


def choice_laws(multiplier: float, candidates: int) -> Iterator[ExactLaws]:
    """The first candidate has the smaller score, and changes against all others."""
    moves = np.where(np.arange(candidates) == 0, 0.5, -0.5)
    for behind in (0.0, 2.0, 6.0, 12.0):
        scores = np.where(np.arange(candidates) == 0, -behind * multiplier, 0.0)
        yield ExactLaws(*(choice_law(multiplier, scores + side * moves) for side in (1, -1)))


def corner_laws(multiplier: float) -> Iterator[ExactLaws]:
    """The exponential mechanism between two vertices, one with a larger utility."""
    for ahead in np.linspace(-8.0, 8.0, 65):
        logs = [np.array([0.0, ahead + side / multiplier]) for side in (1.0, -1.0)]
        yield ExactLaws(*(log - logsumexp(log) for log in logs))


def repeated_corner(multiplier: float, steps: int, ahead: float) -> ExactLaws:
    """Several choices between two vertices; ``ahead`` is the lead of one of them, in units of what
    a record changes.
    """
    odds = [(ahead + side) / multiplier for side in (1.0, -1.0)]
    chosen = np.arange(steps + 1)
    ways = np.array([math.log(math.comb(steps, int(k))) for k in chosen])
    return ExactLaws(*(ways + chosen * odd - steps * np.logaddexp(0.0, odd) for odd in odds))


# Texts, and noise on a grid


def text_laws(multiplier: float, rare: float) -> Iterator[ExactLaws]:
    """One column under replace-one: a text loses the record, and another one, which is new or as
    common, gains it.
    """
    scale = math.sqrt(2) * multiplier
    least = 1 - scale * float(ndtri(rare))

    def named(count: float) -> Vector:
        away = (count - least) / scale
        return np.array([log_ndtr(away), log_ndtr(-away)])

    never = np.array([-math.inf, 0.0])
    for common in (2.0, least - 2 * scale, least, least + 2 * scale):
        for first, second in ((1.0, None), (common, common - 1)):
            gained = named(first)
            missed = never if second is None else named(second)
            yield ExactLaws(
                np.add.outer(named(common), missed).ravel(),
                np.add.outer(named(common - 1), gained).ravel(),
            )


def discrete_gaussian_laws(log2_variance: int, shift: int) -> ExactLaws:
    """Discrete Gaussian noise on two whole numbers."""
    std = 2 ** (log2_variance / 2)
    x = np.arange(-math.ceil(40 * std), math.ceil(40 * std) + shift + 1, dtype=np.float64)
    logs = [-((x - centre) ** 2) / (2 * std**2) for centre in (shift, 0)]
    return ExactLaws(*(log - logsumexp(log) for log in logs))


def discrete_laplace_laws(log2_scale: int, shift: int) -> ExactLaws:
    """Discrete Laplace noise on two whole numbers."""
    scale = 2.0**log2_scale
    x = np.arange(-math.ceil(60 * scale), math.ceil(60 * scale) + shift + 1, dtype=np.float64)
    logs = [-np.abs(x - centre) / scale for centre in (shift, 0)]
    return ExactLaws(*(log - logsumexp(log) for log in logs))


# The cases


@dataclass(frozen=True, eq=False)
class ExactCase:
    """A cost, and pairs of distributions that it must cover.

    Parameters
    ----------
    name : str
    cost : Cost
    pairs : callable
        Returns the distributions on worst pairs of tables.
    relation : Relation
    close : float
        Least share of the claimed epsilon, at delta 1e-5, that the worst pair attains.
    """

    name: str
    cost: Cost
    pairs: Callable[[], Iterable[ExactLaws]]
    relation: Relation
    close: float


def exact_cases() -> list[ExactCase]:
    """Every mechanism whose answers have a distribution in closed form.

    Returns
    -------
    list of ExactCase
    """
    return [
        *(case for relation in (REPLACE, ADD) for case in _cases_of_both(relation)),
        *_cases_of_batches(),
        *_cases_of_choices(),
        *(_best_case(stopping_rule(name, 3.0)) for name in ("geometric", "logarithmic", "poisson")),
    ]


def _cases_of_both(relation: Relation) -> list[ExactCase]:
    """Mechanisms that have their laws under both relations."""
    two = partial(poisson_laws, 1.25, 0.2, relation, 601)
    return [
        ExactCase("Gaussian", GaussianCost(0.8), _only(gaussian_laws, 1.25), relation, 0.999),
        *(
            ExactCase(
                f"Poisson batch, rate {q}",
                PoissonGaussianCost(0.7, q),
                _only(poisson_laws, 1 / 0.7, q, relation),
                relation,
                0.99,
            )
            for q in (0.05, 0.5)
        ),
        ExactCase(
            "two Poisson batches",
            PoissonGaussianCost(0.8, 0.2, 2),
            _only(_twice, two),
            relation,
            0.99,
        ),
        ExactCase(
            "gradient and gate on one batch",
            GatedCost(0.8, 0.2, "laplace", 2 / 1.0, 4 / 1.0, 4),
            partial(gated_laws, 1.25, 0.2, 1.0, 4, relation),
            relation,
            0.8,
        ),
    ]


def _cases_of_batches() -> list[ExactCase]:
    """Gaussian noise on batches and inside objectives, under one relation."""
    batches = (0.5, 0.5), (1.0, 0.6)
    return [
        *(
            ExactCase(
                f"fixed size, rate {q}",
                FixedSizeGaussianCost(0.7, q),
                _only(fixed_size_laws, 1 / 0.7, q),
                REPLACE,
                0.99,
            )
            for q in (0.05, 0.5)
        ),
        ExactCase(
            "end of a permuted run",
            PermutedGaussianCost(0.6, *batches),
            partial(permuted_laws, 1 / 0.6, *batches),
            REPLACE,
            0.99,
        ),
        ExactCase(
            "full gradient and batch",
            MixtureGaussianCost(0.7, 0.2, 0.1),
            _only(mixture_laws, 1 / 0.7, 0.2, 0.1),
            ADD,
            0.99,
        ),
        ExactCase(
            "noise inside an objective",
            ObjectiveCost(0.8, 0.005, 1),
            _only(gaussian_laws, 1.25),
            REPLACE,
            0.96,
        ),
    ]


def _cases_of_choices() -> list[ExactCase]:
    """Gates, choices, corners, texts and whole numbers, under one relation."""
    return [
        ExactCase(
            "Laplace gate",
            _gate_cost("laplace", 1.0, 8),
            partial(_gate_laws, "laplace", 1.0, 8),
            ADD,
            0.98,
        ),
        ExactCase(
            "Gaussian gate",
            _gate_cost("gaussian", 0.5, 8),
            partial(_gate_laws, "gaussian", 0.5, 8),
            ADD,
            0.6,
        ),
        ExactCase(
            "noisy choice of three", PureCost(2 / 1.5), partial(choice_laws, 1.5, 3), ADD, 0.99
        ),
        ExactCase("corner", BoundedRangeCost(1.5), partial(corner_laws, 1.5), ADD, 0.98),
        ExactCase(
            "common texts",
            ThresholdedGaussianCost(0.8, 1e-6),
            partial(text_laws, 0.8, 1e-6),
            REPLACE,
            0.5,
        ),
        ExactCase(
            "discrete Laplace", PureCost(0.75), _only(discrete_laplace_laws, 4, 12), ADD, 0.99
        ),
    ]


def _only(make: Callable[..., ExactLaws], *given: Any) -> Callable[[], list[ExactLaws]]:
    return lambda: [make(*given)]


def _twice(make: Callable[[], ExactLaws]) -> ExactLaws:
    one = make()
    return one.beside(one)


def _best_case(rule: StoppingRule) -> ExactCase:
    cost = best_of_many(GaussianCost(1.0), rule, REPLACE)
    return ExactCase(
        f"best of {type(rule).__name__} trials",
        cost,
        _only(best_of_gaussians, 1.0, rule),
        REPLACE,
        0.75,
    )


def _gate_cost(noise: str, strength: float, queries: int) -> AboveThresholdCost:
    return AboveThresholdCost(noise, *_gate_scales(noise, strength), queries)


def _gate_scales(noise: str, strength: float) -> tuple[float, float]:
    """Noise scales of threshold and scores, by the thesis' split of an epsilon, or of a rho."""
    return (
        (2 / strength, 4 / strength)
        if noise == "laplace"
        else (math.sqrt(1.5 / strength), math.sqrt(3 / strength))
    )


def _gate_laws(noise: str, strength: float, queries: int) -> Iterator[ExactLaws]:
    return gate_laws(noise, *_gate_scales(noise, strength), queries)


def check_exact(case: ExactCase) -> list[Finding]:
    """Check that a cost covers its worst pairs at every epsilon, and how close they come.

    Parameters
    ----------
    case : ExactCase

    Returns
    -------
    list of Finding
    """
    pairs = list(case.pairs())
    worst, where = 0.0, 0.0
    for epsilon in _EPSILONS:
        true, claimed = worst_delta(pairs, epsilon), delta_of(case.cost, epsilon, case.relation)
        share = true / claimed if claimed > 0 else (math.inf if true > _LEAST_DELTA else 0.0)
        if true > _LEAST_DELTA and share > worst:
            worst, where = share, epsilon
    true, claimed = worst_epsilon(pairs, _AT_DELTA), epsilon_of(case.cost, _AT_DELTA, case.relation)
    name = f"{case.name} ({case.relation})"
    return [
        Finding(
            f"{name}: exact delta",
            worst <= 1 + _ROUNDING,
            f"{worst:.6f} of the price, at epsilon {where:g}",
        ),
        Finding(
            f"{name}: exact epsilon",
            case.close * claimed <= true <= (1 + _ROUNDING) * claimed,
            f"{true:.4f} of {claimed:.4f} at delta {_AT_DELTA:g}; {case.close:g} of it or more is "
            "expected",
        ),
    ]


def check_discrete_gaussian(log2_variance: int, shift: int) -> Finding:
    """Check that discrete noise costs at most continuous noise plus its reserved privacy loss."""
    pair, mu = discrete_gaussian_laws(log2_variance, shift), shift / 2 ** (log2_variance / 2)
    loss = discretisation_loss(1, log2_variance)
    worst = 0.0
    for epsilon in _EPSILONS:
        allowed = math.exp(loss / 4) * gaussian_delta(epsilon, mu)
        worst = max(worst, worst_delta([pair], epsilon + loss) / allowed)
    return Finding(
        f"discrete Gaussian, variance 2^{log2_variance}: exact delta",
        worst <= 1 + _ROUNDING,
        f"{worst:.6f} of what is reserved",
    )


def exact_findings(cases: Iterable[ExactCase] | None = None) -> list[Finding]:
    """All exact small cases.

    Parameters
    ----------
    cases : iterable of ExactCase, optional
        Instead of `exact_cases`; discrete Gaussian noise is then left out.

    Returns
    -------
    list of Finding
    """
    if cases is not None:
        return [finding for case in cases for finding in check_exact(case)]
    on_grid = [
        check_discrete_gaussian(log2_variance, 2 ** (log2_variance // 2))
        for log2_variance in (8, 12, 16, 20)
    ]
    return [*on_grid, *(finding for case in exact_cases() for finding in check_exact(case))]
