"""Audits of the noise itself: distribution, scale, grid, covariance, and that no draw is used
twice.

Every check has a p-value or is exact; `Finding.passed` is a test at the given level. Distributions
are compared with the exact ones.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr
from scipy.stats import chi2, norm

from hushfit._typing import IntVector, Vector
from hushfit.data import Coins, DataSource, SeededCoins
from hushfit.errors import InvalidArgument
from hushfit.privacy import Relation, Sampler
from hushfit.release import Entropy, NoiseGrid, gaussian_answer

LEVEL = 1e-6
# Exponents at which the exact distribution is summed, and the one that fits use. Gaussians of
# larger variances have cells of several integers: 2 and 8 of them at the last two.
_EXPONENTS = (0, 4, 8)
_GAUSSIAN_EXPONENTS = (*_EXPONENTS, 14, 18)
_RELEASE_EXPONENT = 62
_LEAST_EXPECTED = 30


@dataclass(frozen=True)
class Finding:
    """Result of one check.

    Parameters
    ----------
    check : str
    passed : bool
    evidence : str
        The measured numbers.
    """

    check: str
    passed: bool
    evidence: str = ""


def law_p_value(draws: IntVector, values: IntVector, probabilities: Vector) -> float:
    """Chi-squared test of integer draws against an exact distribution; values with few expected
    draws are pooled.
    """
    order = np.argsort(values)
    ends, masses, mass = [], [], 0.0
    for value, p in zip(values[order], probabilities[order], strict=True):
        mass += p
        if mass * len(draws) >= _LEAST_EXPECTED:
            ends.append(value)
            masses.append(mass)
            mass = 0.0
    masses[-1] += mass
    ends[-1] = values.max()
    counts = np.bincount(
        np.searchsorted(ends, np.clip(draws, values.min(), values.max())), minlength=len(ends)
    )
    expected = np.array(masses) * len(draws)
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), len(ends) - 1))


def gaussian_law(log2_variance: int) -> tuple[IntVector, Vector]:
    """Values and probabilities of the discrete Gaussian."""
    reach = math.ceil(12 * 2 ** (log2_variance / 2))
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-0.5 * x.astype(np.float64) ** 2 / 2.0**log2_variance)
    return x, weights / weights.sum()


def laplace_law(log2_scale: int) -> tuple[IntVector, Vector]:
    """Values and probabilities of the discrete Laplace distribution."""
    reach = 60 * 2**log2_scale
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-np.abs(x) / 2.0**log2_scale)
    return x, weights / weights.sum()


def check_sampler(sampler: Sampler, size: int = 100_000, level: float = LEVEL) -> list[Finding]:
    """Check distribution, independence and freshness of a sampler.

    Parameters
    ----------
    sampler : Sampler
    size : int, default=100_000
        Draws for each test.
    level : float, default=1e-6
        False-alarm rate of each test.

    Returns
    -------
    list of Finding
    """
    return list(_sampler_findings(sampler, size, level))


def _sampler_findings(sampler: Sampler, size: int, level: float) -> Iterator[Finding]:
    kind = type(sampler).__name__
    # Seeded noise is a rounded normal, which is not discrete Gaussian at small variances.
    for name, draw, law, exponents in (
        ("gaussian", sampler.gaussian, gaussian_law, _GAUSSIAN_EXPONENTS),
        ("laplace", sampler.laplace, laplace_law, _EXPONENTS),
    ):
        for exponent in exponents if sampler.secure else ():
            p = law_p_value(draw(exponent, size), *law(exponent))
            yield Finding(
                f"{kind}: distribution of {name}(2**{exponent})", p > level, f"p = {p:.3g}"
            )
    draws = sampler.gaussian(_RELEASE_EXPONENT, size).astype(np.float64) / 2.0 ** (
        _RELEASE_EXPONENT / 2
    )
    yield from _normal_findings(kind, draws, level)
    parity = sampler.gaussian(_RELEASE_EXPONENT, size) % 256
    counts = np.bincount(parity.astype(np.int64), minlength=256)
    p = float(chi2.sf(((counts - size / 256) ** 2 / (size / 256)).sum(), 255))
    yield Finding(f"{kind}: last eight bits are uniform", p > level, f"p = {p:.3g}")
    again = sampler.gaussian(_RELEASE_EXPONENT, 64)
    fresh = len(np.unique(np.concatenate([sampler.gaussian(_RELEASE_EXPONENT, 64), again]))) == 128
    yield Finding(f"{kind}: two calls share no draw", fresh)


def _normal_findings(kind: str, draws: Vector, level: float) -> Iterator[Finding]:
    cells = 200
    counts = np.bincount(
        np.minimum((ndtr(draws) * cells).astype(np.int64), cells - 1), minlength=cells
    )
    expected = len(draws) / cells
    p = float(chi2.sf(((counts - expected) ** 2 / expected).sum(), cells - 1))
    yield Finding(f"{kind}: distribution on the grid of releases", p > level, f"p = {p:.3g}")
    p = _scale_p_value(draws)
    yield Finding(f"{kind}: variance", p > level, f"ratio {draws.var():.5f}, p = {p:.3g}")
    for lag in (1, 2, 3):
        for name, values in (
            ("draws", draws),
            ("their absolute values", np.abs(draws) - np.abs(draws).mean()),
        ):
            p = _correlation_p_value(values[:-lag], values[lag:])
            yield Finding(f"{kind}: {name} are independent at lag {lag}", p > level, f"p = {p:.3g}")


def check_release_noise(
    query: Any,
    source: DataSource,
    noise_multiplier: float,
    relation: Relation,
    sampler: Sampler,
    releases: int = 400,
    level: float = LEVEL,
    coins: Coins | None = None,
) -> list[Finding]:
    """Check the noise that a curator adds to an answer: of the paid scale, on a grid, independent
    between coordinates and releases.

    Parameters
    ----------
    query : Query
        One that is answered with Gaussian noise over all rows.
    source : DataSource
    noise_multiplier : float
    relation : Relation
    sampler : Sampler
    releases : int, default=400
    level : float, default=1e-6
    coins : Coins, optional

    Returns
    -------
    list of Finding
    """
    grid = NoiseGrid.of(query, noise_multiplier, relation, source.n_units)
    entropy = Entropy(relation, sampler, coins or SeededCoins(0))
    answers = np.array(
        [gaussian_answer(query, source, None, noise_multiplier, entropy) for _ in range(releases)]
    )
    return noise_findings(
        type(query).__name__,
        answers,
        query(source, None),
        query,
        grid,
        noise_multiplier,
        relation,
        level,
    )


def noise_findings(
    kind: str,
    answers: Vector,
    exact: Vector,
    query: Any,
    grid: NoiseGrid,
    noise_multiplier: float,
    relation: Relation,
    level: float = LEVEL,
) -> list[Finding]:
    """`check_release_noise` for answers collected elsewhere, such as by a curator under test."""
    paid = noise_multiplier * query.sensitivity(relation)
    weights = (
        np.ones(query.size) if query.doubled is None else np.where(query.doubled, math.sqrt(2), 1.0)
    )
    noise = (answers - exact) / paid * weights
    steps = answers / grid.step
    found = [
        Finding(
            f"{kind}: answers lie on the grid", bool(np.abs(steps - np.rint(steps)).max() < 1e-2)
        ),
        Finding(f"{kind}: noise is fresh", len(np.unique(noise.round(9), axis=0)) == len(noise)),
    ]
    p = _scale_p_value(noise.ravel())
    found.append(
        Finding(
            f"{kind}: noise scale",
            p > level,
            f"variance ratio {np.mean(noise**2):.4f}, p = {p:.3g}",
        )
    )
    worst = min(_scale_p_value(column) for column in noise.T) * noise.shape[1]
    found.append(Finding(f"{kind}: scale of each coordinate", worst > level, f"p = {worst:.3g}"))
    p = _least_correlation_p_value(noise)
    found.append(
        Finding(f"{kind}: coordinates and releases are independent", p > level, f"p = {p:.3g}")
    )
    return found


@dataclass(frozen=True)
class SteadySampler:
    """A fixed number of standard deviations in every coordinate instead of noise."""

    deviations: int
    secure: ClassVar[bool] = False

    def gaussian(self, log2_variance: int, size: int) -> IntVector:
        return np.full(size, self.deviations * 2 ** (log2_variance // 2), dtype=np.int64)

    def laplace(self, log2_scale: int, size: int) -> IntVector:
        return np.full(size, self.deviations * 2**log2_scale, dtype=np.int64)


def steady_answers(
    mechanism: Any,
    query: Any,
    source: DataSource,
    noise_multiplier: float,
    relation: Relation,
    seed: int = 0,
) -> tuple[Vector, Vector]:
    """A mechanism's answer with zero noise, and one standard deviation of its noise."""

    def answer(deviations: int) -> Vector:
        entropy = Entropy(relation, SteadySampler(deviations), SeededCoins(seed))
        answered: Vector = mechanism.answer(query, source, noise_multiplier, entropy)
        return answered

    centre = answer(0)
    return centre, answer(1) - centre


def check_moves_on_grid(
    mechanism: Any,
    query: Any,
    tables: Sequence[tuple[DataSource, DataSource]],
    noise_multiplier: float,
    relation: Relation,
    counted: float,
    seed: int = 0,
) -> Finding:
    """Check that neighbours, rounded as released, are within the accounted distance.

    Parameters
    ----------
    mechanism : Mechanism
        With Gaussian noise of one scale.
    query : Query
    tables : sequence of pairs of DataSource
    noise_multiplier : float
    relation : Relation
    counted : float
        The accounted distance of these tables, divided by the sensitivity.
    seed : int, default=0
        Seed of the batches, which are the same on both tables.

    Returns
    -------
    Finding
    """
    worst = 0.0
    for first, second in tables:
        one, scale = steady_answers(mechanism, query, first, noise_multiplier, relation, seed)
        other, _ = steady_answers(mechanism, query, second, noise_multiplier, relation, seed)
        moved = float(np.linalg.norm((one - other) / scale)) * noise_multiplier
        worst = max(worst, moved / counted)
    name = f"{type(query).__name__}: distance on the grid of the noise"
    return Finding(name, worst <= 1 + 1e-9, f"{worst:.6f} of the accounted distance")


def check_small_noise(
    mechanism: Any,
    query: Any,
    source: DataSource,
    noise_multiplier: float,
    relation: Relation,
) -> Finding:
    """Check that noise of a tiny sensitivity has the paid scale, or is refused."""
    name = f"{type(query).__name__}: noise of a tiny sensitivity"
    paid = noise_multiplier * query.sensitivity(relation)
    try:
        with np.errstate(all="ignore"):
            _, scale = steady_answers(mechanism, query, source, noise_multiplier, relation)
    except InvalidArgument as refusal:
        return Finding(name, True, str(refusal))
    least = float(np.abs(scale).min()) / paid
    return Finding(name, least >= 1 - 1e-6, f"{least:.6f} of the paid scale")


def _scale_p_value(noise: Vector) -> float:
    """Two-sided test that standardised noise has mean square one."""
    total = float((noise**2).sum())
    return 2 * min(float(chi2.cdf(total, noise.size)), float(chi2.sf(total, noise.size)))


def _correlation_p_value(a: Vector, b: Vector) -> float:
    z = float(np.corrcoef(a, b)[0, 1]) * math.sqrt(len(a))
    return 2 * float(norm.sf(abs(z)))


def _least_correlation_p_value(noise: Vector) -> float:
    """Smallest p-value over all pairs of coordinates, in one release and in consecutive ones,
    corrected for their number.
    """
    d = noise.shape[1]
    pairs = [(noise[:, i], noise[:, j]) for i in range(d) for j in range(i)]
    pairs += [(noise[:-1, i], noise[1:, j]) for i in range(d) for j in range(d)]
    return min(1.0, len(pairs) * min(_correlation_p_value(*pair) for pair in pairs))
