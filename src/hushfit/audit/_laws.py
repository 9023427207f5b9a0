"""Distribution of each released answer given a table, for an attacker who sees every release.

`log_density` covers every mechanism of the library. The distributions are exact for tables in which
all rows but one contribute nothing or are all the same, as in `hushfit.audit`. For other tables
they are approximate scores, and an audit stays valid with any score. A new mechanism registers its
own: ``@log_density.register``.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import Any

import numpy as np
from scipy.special import log_ndtr, logsumexp

from hushfit._typing import BoolVector, IntVector, Vector
from hushfit.data import DataSource
from hushfit.errors import InvalidArgument
from hushfit.privacy import Relation
from hushfit.release import (
    AdaptiveRun,
    AnchoredBatch,
    Choice,
    ClassicInside,
    ClippedGradient,
    FixedSizeBatch,
    FreshGate,
    FullBatch,
    Gate,
    GatedBatch,
    GatedStep,
    GaussianInside,
    HessianSum,
    LaplaceInside,
    NoisyChoice,
    NoisyCorner,
    PermutedRun,
    PerturbedMinimiser,
    Planned,
    PoissonBatch,
    Priced,
    Query,
    Released,
    SecretOrder,
    SteepestCorner,
    Thresholded,
    vocabulary_of,
)
from hushfit.release.mechanisms import counts_of

NO_ROWS: IntVector = np.empty(0, dtype=np.int64)
# Points and half-width, in noise scales, of the integrals over a threshold or a winning score.
_POINTS, _HALF_WIDTH = 401, 25.0
_UTILITY_STEPS = 2.0**30
# Log-probability of an impossible answer; finite, so that scores stay finite.
_IMPOSSIBLE = -1e4


@dataclass(frozen=True, eq=False)
class Release:
    """One answered query, with everything about it that is public; the attacker guesses the table.

    Parameters
    ----------
    query : Query
    answer : array
    noise_multiplier : float
    relation : Relation
    row : int
        The row in which the two tables differ.
    """

    query: Any
    answer: Vector
    noise_multiplier: float
    relation: Relation
    row: int

    @cached_property
    def scale(self) -> float:
        """Standard deviation of additive noise, as accounted; its rounding does not matter here."""
        return float(self.noise_multiplier * self.query.sensitivity(self.relation))


@singledispatch
def log_density(mechanism: Any, release: Release, source: DataSource) -> float:
    """Log-density of an answer given the table ``source``, up to a constant that no row changes.

    Parameters
    ----------
    mechanism : Mechanism
    release : Release
    source : DataSource

    Returns
    -------
    float
    """
    raise InvalidArgument(
        f"{type(mechanism).__name__} has no output distribution in hushfit.audit. Register one "
        "with log_density.register, or audit the model alone."
    )


def log_ratio(
    transcript: Sequence[Released],
    parts: Sequence[Planned],
    multipliers: dict[str, float],
    relation: Relation,
    tables: tuple[DataSource, DataSource],
    row: int,
) -> float:
    """Log-likelihood ratio of all answers of a run, first table against second."""
    mechanisms = {part.name: part.sampling for part in parts}
    total = 0.0
    for one in transcript:
        release = Release(one.query, one.answer, multipliers[one.name], relation, row)
        first, second = (log_density(mechanisms[one.name], release, source) for source in tables)
        total += first - second
    return total


# Additive Gaussian noise


def _normal(
    answer: Vector, centre: Vector, scale: float, doubled: BoolVector | None = None
) -> float:
    miss = (answer - centre) / scale
    squares = miss * miss if doubled is None else miss * miss * np.where(doubled, 2.0, 1.0)
    return -0.5 * float(squares.sum())


def _mixture(
    release: Release, source: DataSource, batches: Sequence[tuple[float, IntVector | None]]
) -> float:
    """Gaussian noise on the answer over one of several batches, each with its probability."""
    return _log_sum(
        math.log(share)
        + _normal(release.answer, release.query(source, rows), release.scale, release.query.doubled)
        for share, rows in batches
        if share > 0
    )


@log_density.register
def _(mechanism: FullBatch, release: Release, source: DataSource) -> float:
    return _mixture(release, source, [(1.0, None)])


@log_density.register
def _(mechanism: PoissonBatch, release: Release, source: DataSource) -> float:
    return _mixture(release, source, _with_and_without(mechanism.rate, release.row))


@log_density.register
def _(mechanism: AnchoredBatch, release: Release, source: DataSource) -> float:
    return _mixture(release, source, _with_and_without(mechanism.rate, release.row))


@log_density.register
def _(mechanism: FixedSizeBatch, release: Release, source: DataSource) -> float:
    rate = mechanism.size / source.n_units
    others = np.delete(np.arange(source.n_units), release.row)
    with_row = np.sort(np.append(others[: mechanism.size - 1], release.row))
    return _mixture(release, source, [(1 - rate, others[: mechanism.size]), (rate, with_row)])


@log_density.register
def _(mechanism: SecretOrder, release: Release, source: DataSource) -> float:
    run = release.query
    assert isinstance(run, PermutedRun)
    starts = np.concatenate([[0], np.cumsum(run.passes.sizes)[:-1]])
    others = np.delete(np.arange(source.n_units), release.row)
    orders = [np.insert(others, start, release.row) for start in starts]
    return _mixture(release, source, list(zip(mechanism.shares, orders, strict=True)))


def _log_sum(logs: Iterable[float]) -> float:
    """Logarithm of a sum of a few exponentials."""
    values = list(logs)
    largest = max(values)
    return largest + math.log(sum(math.exp(value - largest) for value in values))


def _with_and_without(rate: float, row: int) -> list[tuple[float, IntVector | None]]:
    return [(1 - rate, NO_ROWS), (rate, np.array([row]))]


# Noise inside an objective: the optimality condition determines it


def inside_of(query: PerturbedMinimiser, w: Vector, source: DataSource) -> tuple[Vector, float]:
    """The noise that makes ``w`` the minimiser, and the log-determinant of its Jacobian."""
    problem, w = query.problem, w.reshape(query.problem.shape)
    if problem.penalty.ridge is None:
        raise InvalidArgument(
            f"With {problem.penalty!r} a minimiser does not determine its noise. Audit it without "
            "the penalty."
        )
    whole = (
        ClippedGradient(problem, w, 2 * problem.loss.slope_bound)(source, None).reshape(w.shape)
        / problem.n_units
    )
    linear = 0.0 if query.linear is None else query.linear
    ridge = np.full(problem.shape, query.mu)
    ridge[..., : problem.n_features] += problem.penalty.ridge
    noise = -(whole + ridge * w + linear).ravel()
    if problem.outputs > 1:
        return noise, 0.0
    hessian = HessianSum(problem, w, "hessian")
    H = hessian.matrix(hessian(source, None)) / problem.n_units + np.diag(ridge)
    return noise, float(np.linalg.slogdet(H)[1])


@log_density.register(GaussianInside)
@log_density.register(ClassicInside)
def _(mechanism: Any, release: Release, source: DataSource) -> float:
    noise, volume = inside_of(release.query, release.answer, source)
    return _normal(noise, np.zeros_like(noise), _inside_scale(release)) + volume


@log_density.register
def _(mechanism: LaplaceInside, release: Release, source: DataSource) -> float:
    noise, volume = inside_of(release.query, release.answer, source)
    return volume - float(np.abs(noise).sum()) / (
        mechanism.stretch(noise.size) * _inside_scale(release)
    )


def _inside_scale(release: Release) -> float:
    return float(release.noise_multiplier * release.query.gradient_shift(release.relation))


# Texts


@log_density.register
def _(mechanism: Thresholded, release: Release, source: DataSource) -> float:
    least = mechanism.threshold(release.scale, source.privacy_unit.rows_per_person)
    total = 0.0
    for counts, named in zip(counts_of(source), vocabulary_of(release.answer), strict=True):
        above = (np.fromiter(counts.values(), dtype=np.float64) - least) / release.scale
        is_named = np.fromiter((text in named for text in counts), dtype=bool)
        total += float(log_ndtr(np.where(is_named, above, -above)).sum()) + _IMPOSSIBLE * len(
            set(named) - set(counts)
        )
    return total


# Choices


@log_density.register
def _(mechanism: NoisyCorner, release: Release, source: DataSource) -> float:
    query = release.query
    assert isinstance(query, SteepestCorner)
    scale = release.scale * _UTILITY_STEPS
    total = 0.0
    for chosen, utilities in zip(
        release.answer, query.utilities(query.sums(source), _UTILITY_STEPS), strict=True
    ):
        place = 2 * (int(abs(chosen)) - 1) + (chosen < 0)
        total += float(utilities[place]) / scale - float(logsumexp(utilities / scale))
    return total


@log_density.register
def _(mechanism: NoisyChoice, release: Release, source: DataSource) -> float:
    query = release.query
    assert isinstance(query, Choice)
    scores = query.scores(source, None) / release.scale
    won = int(release.answer[0])
    t = _around(scores[won], scores)
    lost = [_log_laplace_cdf(t - score) for k, score in enumerate(scores) if k != won]
    return _log_integral(t, math.log(0.5) - np.abs(t - scores[won]) + np.sum(lost, axis=0))


def _gate(
    gate: Gate,
    index: float,
    noise: str,
    multiplier: float,
    release: Release,
    source: DataSource,
    rows: IntVector | None,
) -> float:
    """Log-probability that a gate stops at ``index``."""
    scores = gate.scores(source, rows) / (multiplier * gate.sensitivity(release.relation))
    t = _around(0.0, scores)
    if noise == "laplace":
        threshold, tail, wider = math.log(0.5) - np.abs(t), _log_laplace_cdf, 2.0
    else:
        threshold, tail, wider = -0.5 * t * t, _log_normal_cdf, math.sqrt(2)
    stop = int(index)
    passed_by = [tail((t - score) / wider) for score in scores[:stop]]
    stopped = [tail((score - t) / wider) for score in scores[stop : stop + 1]]
    return _log_integral(t, threshold + np.sum([*passed_by, *stopped], axis=0))


@log_density.register
def _(mechanism: FreshGate, release: Release, source: DataSource) -> float:
    def of(rows: IntVector | None) -> float:
        return _gate(
            release.query,
            release.answer[0],
            mechanism.noise,
            release.noise_multiplier,
            release,
            source,
            rows,
        )

    return _over_batches(mechanism.rate, release.row, of)


@log_density.register
def _(mechanism: GatedBatch, release: Release, source: DataSource) -> float:
    step = release.query
    assert isinstance(step, GatedStep)
    g, index = release.answer[:-1], release.answer[-1]
    threshold, _ = mechanism.gate_multipliers(release.noise_multiplier)
    gate = step.gate(g)

    def of(rows: IntVector | None) -> float:
        near = _normal(g, step.gradient(source, rows), release.scale)
        return near + _gate(gate, index, mechanism.noise, threshold, release, source, rows)

    return _over_batches(mechanism.rate, release.row, of)


def _over_batches(rate: float, row: int, of: Callable[[IntVector | None], float]) -> float:
    if rate == 1:
        return of(None)
    return _log_sum(math.log(share) + of(rows) for share, rows in _with_and_without(rate, row))


@log_density.register
def _(mechanism: AdaptiveRun, release: Release, source: DataSource) -> float:
    priced = release.query
    assert isinstance(priced, Priced)
    inner: Query = priced.query
    return log_density(
        priced.sampling,
        Release(inner, release.answer, priced.noise_multiplier, release.relation, release.row),
        source,
    )


def _around(centre: float, scores: Vector) -> Vector:
    """Points of integration, with one at each kink of the Laplace density."""
    reach = _HALF_WIDTH + float(np.abs(scores - centre).max(initial=0.0))
    return np.unique(
        np.concatenate([np.linspace(centre - reach, centre + reach, _POINTS), scores, [centre]])
    )


def _log_integral(t: Vector, log_values: Vector) -> float:
    widths = np.empty_like(t)
    widths[1:-1] = (t[2:] - t[:-2]) / 2
    widths[0], widths[-1] = (t[1] - t[0]) / 2, (t[-1] - t[-2]) / 2
    largest = float(log_values.max())
    return largest + math.log(float(np.exp(log_values - largest) @ widths))


def _log_laplace_cdf(x: Vector) -> Vector:
    return np.where(
        x < 0, math.log(0.5) + np.minimum(x, 0.0), np.log1p(-0.5 * np.exp(-np.maximum(x, 0.0)))
    )


def _log_normal_cdf(x: Vector) -> Vector:
    return np.asarray(log_ndtr(x))
