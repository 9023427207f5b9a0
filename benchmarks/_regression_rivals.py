"""Private linear regression as published elsewhere: own implementations, to be compared with.

Each takes records in [-1, 1] with a last column of ones, targets in [-1, 1], a budget and a
generator, and returns weights. Noise is floating-point, which is enough for a comparison. Their
settings are chosen on the *test* folds by the benchmark, which a user could not do.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushfit.privacy import gaussian_mu

Weights = np.ndarray


@dataclass(frozen=True)
class Rival:
    """A method with the settings to choose from."""

    name: str
    fit: Callable[..., Weights]
    settings: tuple[dict[str, Any], ...]


def shortened(X: np.ndarray, length: float) -> np.ndarray:
    norms = np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    return X * np.minimum(1.0, length / norms)


def symmetric_noise(d: int, scale: float, rng: np.random.Generator) -> np.ndarray:
    """Standard deviation ``scale`` on the diagonal, and as much in Frobenius norm off it."""
    upper = np.triu(rng.normal(0, scale / np.sqrt(2), (d, d)), 1)
    return upper + upper.T + np.diag(rng.normal(0, scale, d))


def ada_ssp(
    X: np.ndarray,
    t: np.ndarray,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    length: float = 1.0,
) -> Weights:
    """AdaSSP (Wang, 2018): noisy X'X and X't, and a ridge as the noisy smallest eigenvalue demands.
    A third of mu squared each.
    """
    mu, d = gaussian_mu(epsilon, delta) / np.sqrt(3), X.shape[1]
    R = length * np.sqrt(d)
    Z = shortened(X, R)
    M = Z.T @ Z
    smallest = np.linalg.eigvalsh(M)[0] + rng.normal(0, R**2 / mu)
    smallest = max(smallest - R**2 / mu * np.sqrt(2 * np.log(6 / delta)), 0.0)
    M = M + symmetric_noise(d, np.sqrt(2) * R**2 / mu, rng)
    v = Z.T @ t + rng.normal(0, 2 * R / mu, d)
    ridge = max(0.0, np.sqrt(d * np.log(2 * d**2 / 0.05)) * np.sqrt(2) * R**2 / mu - smallest)
    return np.linalg.lstsq(M + ridge * np.eye(d), v, rcond=None)[0]


def boosted_ada_ssp(
    X: np.ndarray,
    t: np.ndarray,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    length: float = 1.0,
    rounds: int = 50,
    clip: float = 1.0,
    ridge_factor: float = 1.0,
) -> Weights:
    """Boosted AdaSSP (Tang et al., 2023): one noisy X'X, and ridge regressions of the clipped
    residuals, one after the other.
    """
    mu, d = gaussian_mu(epsilon, delta), X.shape[1]
    R = length * np.sqrt(d)
    Z = shortened(X, R)
    moment, smallest, gradient = mu * np.sqrt(0.3), mu * np.sqrt(0.1), mu * np.sqrt(0.6 / rounds)
    least = np.linalg.eigvalsh(Z.T @ Z)[0] + rng.normal(0, R**2 / smallest)
    scale = np.sqrt(2) * R**2 / moment
    M = Z.T @ Z + symmetric_noise(d, scale, rng)
    ridge = ridge_factor * max(0.0, np.sqrt(d * np.log(2 * d**2 / 0.05)) * scale - max(least, 0))
    inverse = np.linalg.pinv(M + ridge * np.eye(d))
    w = np.zeros(d)
    for _ in range(rounds):
        residual = np.clip(t - X @ w, -clip, clip)
        w = w + inverse @ (Z.T @ residual + rng.normal(0, 2 * R * clip / gradient, d))
        if not np.isfinite(w).all() or np.abs(w).max() > 1e6:
            return np.zeros(d)
    return w


def noisy_descent(
    X: np.ndarray,
    t: np.ndarray,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    rounds: int = 50,
    clip: float = 1.0,
    rate: float = 0.1,
) -> Weights:
    """Gradient descent with clipped gradients, momentum and an average of the last half."""
    mu, (n, d) = gaussian_mu(epsilon, delta), X.shape
    w, velocity, average = np.zeros(d), np.zeros(d), np.zeros(d)
    lengths = np.linalg.norm(X, axis=1)
    for k in range(rounds):
        residual = t - X @ w
        factor = np.minimum(1.0, clip / np.maximum(lengths * np.abs(residual), 1e-12))
        g = (X.T @ (factor * residual) + rng.normal(0, 2 * clip * np.sqrt(rounds) / mu, d)) / n
        velocity = 0.7 * velocity + rate * g
        w = w + velocity
        if not np.isfinite(w).all():
            return np.zeros(d)
        if k >= rounds // 2:
            average += w / (rounds - rounds // 2)
    return average


def tukey_em(
    X: np.ndarray,
    t: np.ndarray,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    models: int = 500,
) -> Weights:
    """TukeyEM (Amin et al., 2022): least squares on disjoint parts, then a point of large
    approximate Tukey depth by the exponential mechanism, after a test that there is one. Zero
    weights where the test fails.
    """
    n, d = X.shape
    order = rng.permutation(n)
    parts = [order[k::models] for k in range(models)]
    fitted = np.array([np.linalg.lstsq(X[p], t[p], rcond=None)[0] for p in parts])
    levels = np.sort(fitted, axis=0)
    half = models // 2
    widths = np.array([levels[models - i] - levels[i - 1] for i in range(1, half + 1)])
    with np.errstate(divide="ignore"):
        volumes = np.log(np.maximum(widths, 0.0)).sum(axis=1)  # of depth at least 1, 2, ...
    start = models // 4
    if not _is_safe(volumes, start, epsilon / 2, delta, rng):
        return np.zeros(d)
    depths = np.arange(start, half)
    inner = np.append(volumes[start + 1 : half], -np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        shells = volumes[depths] + np.log1p(-np.exp(np.minimum(inner - volumes[depths], 0.0)))
    score = np.where(np.isfinite(shells), shells + epsilon / 4 * depths, -np.inf)
    chance = np.exp(score - score.max())
    depth = rng.choice(depths, p=chance / chance.sum())
    low, high = levels[depth], levels[models - 1 - depth]
    return rng.uniform(np.minimum(low, high), np.maximum(low, high))


def _is_safe(
    volumes: np.ndarray, start: int, epsilon: float, delta: float, rng: np.random.Generator
) -> bool:
    """The propose-test-release check: how many models must change before the mechanism leaks."""
    half, distance = len(volumes), -1
    for k in range(start - 1):
        gaps = np.arange(1, half - start - k - 1)
        if not len(gaps):
            break
        outer, inner = volumes[start - k - 1], volumes[start + k + gaps]
        with np.errstate(invalid="ignore"):
            fine = outer - inner - epsilon * gaps / 2 <= np.log(delta / 4) - epsilon
        if not np.any(fine & np.isfinite(inner)):
            break
        distance = k
    return bool(distance + rng.laplace(0, 1 / epsilon) > np.log(1 / (2 * delta)) / epsilon)


RIVALS = (
    Rival("AdaSSP", ada_ssp, tuple({"length": r} for r in (1.0, 0.7, 0.5, 0.35, 0.2))),
    Rival(
        "boosted AdaSSP",
        boosted_ada_ssp,
        tuple(
            {"length": r, "rounds": k, "clip": c, "ridge_factor": f}
            for r in (0.6, 0.3)
            for k in (10, 50)
            for c in (1.0, 0.5)
            for f in (1.0, 0.3)
        ),
    ),
    Rival(
        "noisy gradient descent",
        noisy_descent,
        tuple(
            {"rounds": k, "clip": c, "rate": r}
            for k in (20, 100)
            for c in (2.0, 0.7)
            for r in (0.03, 0.1, 0.3)
        ),
    ),
    Rival("TukeyEM", tukey_em, tuple({"models": m} for m in (200, 1000))),
)
