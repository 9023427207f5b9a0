"""Rounds of clipped residual gradients with empirical Bayes in between: step D of
docs/algorithms/least-squares.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from hushfit._typing import Matrix, Vector
from hushfit.problem import Problem
from hushfit.release import COUNT_WEIGHT, Door, ResidualGradient, Whitening
from hushfit.solvers._whitening import relation_factor
from hushfit.solvers.regression._metrics import Coordinates

# Priors of the weights: variances tau lambda^a, with tau up to one, at which all of the variance of
# the targets is explained.
_POWERS = (0.0, 0.5, 1.0)
_SCALES = np.geomspace(1e-3, 1.0, 14)
# Beforehand the share of the variance that the weights explain is uniform. Scales are even in their
# logarithm, so each weighs in by itself. Logarithms of these weights, for every prior.
_BEFOREHAND = np.repeat(np.log(_SCALES), len(_POWERS))
# Of the level the *deviation* is uniform, up to the largest one: a third of its variance.
_LEVEL_VARIANCE = 1 / 3
_LEAST_SIGNAL = 1e-4
# Share of clipped records: this many times the noise over the length of a record, within limits.
_CLIPPED_PER_NOISE, _FEWEST_CLIPPED, _MOST_CLIPPED = 2.0, 0.005, 0.4
_LEAST_SHARE = 0.005
# Share of the error of the metric that reaches the average of the rounds; measured.
_METRIC_ERROR_SHARE = 0.1
# Where full steps could diverge, the first rounds count as so many; doubled whenever the gradient
# grows by this factor.
_PSEUDO_ROUNDS, _GROWTH = 4.0, 1.2
# There a round errs by this share of the way that the weights have moved since, beyond what noise
# moves them: its variance so many times.
_CURVATURE_CHANGE, _NOISE_MOVES = 0.5, 2.0
_MOST_DIRECTIONS = 20
# Weights stay within so many times the spread of the targets, in whitened coordinates.
_MOST_SPREAD = 2.0
_LEAST_VARIANCE = 1e-200


@dataclass(frozen=True, eq=False)
class Estimate:
    """The weights are ``start + free`` in whitened coordinates, with normal errors of variances
    ``noise``; ``kept`` is the share of each coordinate of ``free`` that empirical Bayes keeps.
    ``residual`` is the standard deviation of the residuals that the clipping norm followed.
    """

    start: Vector
    free: Vector
    noise: Vector
    kept: Vector
    residual: float

    @property
    def shrunk(self) -> Vector:
        return np.asarray(self.start + self.kept * self.free)


@dataclass(frozen=True, eq=False)
class Rounds:
    """What the rounds start from; all of it is public.

    Parameters
    ----------
    problem : Problem
    coordinates : Coordinates
    start : array
        Coordinates of the first weights.
    residual : float
        Standard deviation of the slopes of the loss at the start.
    signal : float
        Largest variance of the margins around their level.
    level : float
        Variance of the level of the margins around that of the start.
    count : int
        Number of rounds.
    clipped : float or None
        Least share of records to clip, even without noise; None for hardly any. Noise clips more.
    damped : bool
        Whether full steps could diverge.
    curvature : float
        Second derivative of the loss in a margin, at the start.
    """

    problem: Problem
    coordinates: Coordinates
    start: Vector
    residual: float
    signal: float
    level: float
    count: int
    clipped: float | None = None
    damped: bool = False
    curvature: float = 1.0

    def __call__(self, door: Door, name: str) -> Iterator[Estimate]:
        """Release one gradient in each round and yield the estimate after it."""
        problem, whitening = self.problem, self.coordinates.whitening
        multiplier, h = door.noise_multiplier(name), self.coordinates.information
        wanted = self._clipped_share(multiplier)
        clip = self._first_clip(wanted, whitening, multiplier)
        # The gradient of a clipped record does not change with the weights.
        curvature = self.curvature * (1 - wanted)
        average: _Average | _Correlated = (
            _Correlated(len(h), multiplier == 0)
            if self.coordinates.correlated
            else _Average(h, _PSEUDO_ROUNDS if self.damped else 0.0, self.count / 3)
        )
        u, uncertainty = self.start, None
        for _ in range(self.count):
            query = ResidualGradient(problem, whitening.weights(u), clip, whitening)
            slopes, share = query.split(door.release(name, query))
            raw = multiplier * query.sensitivity(problem.relation) / problem.n_units
            step, s = -slopes / curvature, raw / curvature
            if uncertainty is None:
                first = float(step @ step) / len(h) - s**2
                uncertainty = np.full(len(h), max(first, 0.02 * s**2))
            lost = self.coordinates.metric_error(uncertainty)
            variance = s**2 + _METRIC_ERROR_SHARE * lost + _LEAST_VARIANCE
            if multiplier == 0 and not self.damped and not self.coordinates.correlated:
                average = _Average(h, 0.0, 0.0)  # the last step is the best one
            average.add(h * (u - self.start), step, variance, s)
            estimate = self._estimate(*average.current(), self._residual(clip, wanted, multiplier))
            yield estimate
            u, uncertainty = self._held(estimate.shrunk, multiplier), estimate.kept * estimate.noise
            if multiplier > 0:
                clip = self._next_clip(clip, share, wanted, raw)

    @property
    def _effective_dimension(self) -> float:
        return max(float(self.coordinates.information.sum()), 1.0)

    def _clipped_share(self, multiplier: float) -> float:
        if multiplier == 0:
            return self.clipped or 0.0
        fewest = self.clipped or _FEWEST_CLIPPED
        per_round = multiplier * relation_factor(self.problem) / self.problem.n_units
        noise = self._effective_dimension * per_round / math.sqrt(self.count)
        return max(min(_CLIPPED_PER_NOISE * noise, _MOST_CLIPPED), fewest)

    def _first_clip(self, wanted: float, whitening: Whitening, multiplier: float) -> float:
        if wanted == 0:
            return 4 * self.problem.dimension * whitening.norm
        quantile = -float(ndtri(wanted / 2))
        return quantile * math.sqrt(self._effective_dimension) * self.residual

    def _residual(self, clip: float, wanted: float, multiplier: float) -> float:
        if multiplier == 0:
            return self.residual
        found = clip / (-float(ndtri(wanted / 2)) * math.sqrt(self._effective_dimension))
        return min(found, self.residual)

    def _next_clip(self, clip: float, share: float, wanted: float, s: float) -> float:
        """A clipping norm that brings the share of clipped records nearer to the wanted one."""
        error = s / (COUNT_WEIGHT * clip)
        step = 0.5 / (1 + (error / 0.15) ** 2)
        unseen = _LEAST_SHARE + 2 * error  # shares below it are told apart from none by chance
        ratio = (max(share, 0.0) + unseen) / (wanted + unseen)
        move = float(np.clip(math.log(ratio), -1.0, 1.0))
        largest = 8 * math.sqrt(self.problem.dimension) * max(self.residual, 1.0)
        return float(np.clip(clip * math.exp(step * move), 1e-3 * self.residual, largest))

    def _held(self, u: Vector, multiplier: float) -> Vector:
        """Weights that do not vary by far more than the targets."""
        moved = u - self.start
        most = _MOST_SPREAD * math.sqrt(max(self.signal, _LEAST_SIGNAL) + self.level)
        length = float(np.linalg.norm(moved))
        return u if length <= most or multiplier == 0 else self.start + moved * (most / length)

    def _estimate(self, free: Vector, noise: Vector, residual: float) -> Estimate:
        priors = self._priors
        spread = priors + noise
        fit = _BEFOREHAND - 0.5 * np.sum(np.log(spread) + free**2 / spread, axis=1)
        weights = np.exp(fit - fit.max())
        kept = (weights / weights.sum()) @ (priors / spread)
        return Estimate(self.start, free, noise, kept, residual)

    @cached_property
    def _priors(self) -> Matrix:
        h, values = self.coordinates.information, self.coordinates.eigenvalues
        shapes = np.array([values**power for power in _POWERS])
        shapes *= max(self.signal, _LEAST_SIGNAL) / (shapes @ h)[:, None]
        priors: Matrix = (_SCALES[:, None, None] * shapes).reshape(-1, len(h))
        return priors + _LEVEL_VARIANCE * self.level * self.coordinates.constant(1.0) ** 2


class _Average:
    """Average of the rounds by their precision: in each, weights plus gradient estimate the best
    weights. Where full steps could diverge, earlier rounds count less the further the weights have
    moved since: there curvature changes on the way.
    """

    def __init__(self, information: Vector, pseudo: float, most: float) -> None:
        self._h, self._pseudo, self._most, self._size = information, pseudo, most, math.inf
        self._weighted, self._precision, self._last = np.zeros((3, len(information)))
        self._place, self._rounds = np.zeros(len(information)), 0

    def add(self, at: Vector, step: Vector, variance: Vector, s: float) -> None:
        self._last = self._h**2 / variance
        if self._pseudo and self._rounds:
            self._discount(at)
        self._weighted = self._weighted + self._h * (at + step) / variance
        self._precision = self._precision + self._last
        self._rounds += 1
        self._place = self._place + (at - self._place) * (self._last / self._precision)
        d = len(step)
        size = math.sqrt(max(float(step @ step) - d * s**2, 0.0))
        if size > _GROWTH * self._size + 3 * s * (2 * d) ** 0.25:
            self._pseudo = min(2 * self._pseudo, self._most)
        self._size = size

    def _discount(self, at: Vector) -> None:
        """Earlier rounds err by a share of the way from their mean place; noise alone moves the
        weights too, by about its own size.
        """
        noise = self._h**2 / self._precision
        moved = max(float(np.mean((at - self._place) ** 2 - _NOISE_MOVES * noise)), 0.0)
        kept = 1 / (1 / self._precision + _CURVATURE_CHANGE**2 * moved / self._h**2)
        # No step is longer than twice the first one.
        kept = np.maximum(kept, np.minimum(self._precision, (self._pseudo / 2 - 1) * self._last))
        self._weighted = self._weighted * (kept / self._precision)
        self._precision = kept

    def current(self) -> tuple[Vector, Vector]:
        # Fewer rounds than these count as so many: first steps are shorter, and nothing remains
        # of it later on.
        held = self._precision + max(self._pseudo - self._rounds, 0.0) * self._last
        return self._weighted / held, 1 / held


class _Correlated:
    """The same where coordinates are correlated: steps are multiplied by the inverse of a curvature
    that is learnt from how gradients change with the weights (symmetric rank-one updates).

    With the average of all weights and of all gradients, each update holds for all rounds at once.
    """

    def __init__(self, d: int, exact: bool) -> None:
        self._exact = exact
        self._at, self._step, self._weight = np.zeros(d), np.zeros(d), 0.0
        self._last: tuple[Vector, Vector, float] | None = None
        self._directions: list[Vector] = []
        self._curvatures: list[float] = []

    def add(self, at: Vector, step: Vector, variance: Vector, s: float) -> None:
        if self._last is not None and len(self._directions) < _MOST_DIRECTIONS:
            self._learn(at - self._last[0], self._last[1] - step, math.hypot(s, self._last[2]))
        self._last = at, step, s
        weight = 1 / float(variance[0])
        if self._exact:
            self._at, self._step, self._weight = np.zeros_like(at), np.zeros_like(step), 0.0
        self._at = self._at + weight * at
        self._step = self._step + weight * step
        self._weight += weight

    def _learn(self, moved: Vector, changed: Vector, s: float) -> None:
        rest = changed - moved
        for q, c in zip(self._directions, self._curvatures, strict=True):
            rest = rest - c * q * float(q @ moved)
        along, noise = float(rest @ moved), 2 * s**2 * len(rest)
        if along > 2 * s * float(np.linalg.norm(moved)) and float(rest @ rest) > 2 * noise:
            self._directions.append(rest)
            self._curvatures.append(1 / along)
            # The rounds before overshot, and their gradients were clipped.
            self._at, self._step, self._weight = 0 * moved, 0 * moved, 0.0

    def _unbent(self, v: Vector) -> Vector:
        """The inverse of the curvature times a vector."""
        if not self._directions:
            return v
        Q = np.array(self._directions).T
        small = np.diag(1 / np.array(self._curvatures)) + Q.T @ Q
        return np.asarray(v - Q @ np.linalg.solve(small, Q.T @ v))

    def current(self) -> tuple[Vector, Vector]:
        assert self._last is not None
        least = 0.0 if self._exact else _PSEUDO_ROUNDS / self._last[2] ** 2
        held = max(self._weight, least)
        free = (self._at + self._unbent(self._step)) / held
        return free, np.full(len(free), 1 / held)
