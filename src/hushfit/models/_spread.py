"""How far the privacy noise may have moved each weight: the run replayed with fresh noise on its released answers.

A replay hands the solver the answers it was given, moved by what the released second moment says a gradient changes when the
weights do, plus noise of the size that was paid for. The spread of the weights over replays is the standard error. No row is
read, so this is post-processing. Sampling error (that other people might have been asked) is not in it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from hushfit._typing import Matrix, Vector
from hushfit.problem import Problem
from hushfit.release import ClippedGradient, Curator, GradientWithMoment, MarginHistogram, Plan, Query, Released, SecondMoment
from hushfit.solvers import Iterate, Solver, run

REPLAYS: Final = 24
_MOMENT: Final = "second moment"
_HIDDEN: Final = 0.5  # of the largest eigenvalue of the noise: eigenvalues below are taken for noise
# Queries whose answer is a statistic plus noise; a perturbed minimiser, for one, is not.
_ADDITIVE: Final = (ClippedGradient, MarginHistogram, SecondMoment)


def _is_additive(query: Query) -> bool:
    together = isinstance(query, GradientWithMoment) and isinstance(query.moment, SecondMoment)
    return together or isinstance(query, _ADDITIVE)


@dataclass(frozen=True, eq=False)
class Asked:
    """One question of a solver and the noisy answer it got."""

    name: str
    query: Query
    answer: Vector


@dataclass(frozen=True, eq=False)
class Witness:
    """A curator that remembers what was asked."""

    curator: Any
    log: list[Asked]

    def release(self, name: str, query: Query) -> Vector:
        answer: Vector = self.curator.release(name, query)
        self.log.append(Asked(name, query, answer))
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.curator, name)


@dataclass(frozen=True, eq=False)
class Recorded:
    """A solver that keeps what it asked and was told: public, all of it."""

    solver: Solver
    log: list[Asked] = field(default_factory=list)

    def plan(self, problem: Problem) -> Plan:
        return self.solver.plan(problem)

    def iterates(self, problem: Problem, curator: Curator) -> Iterator[Iterate]:
        return self.solver.iterates(problem, Witness(curator, self.log))  # type: ignore[arg-type]

    def finish(self, problem: Problem, curator: Curator, average: Vector) -> Vector:
        return self.solver.finish(problem, Witness(curator, self.log), average)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Replay:
    """Stands in for the curator of a finished run: its answers again, with fresh noise."""

    problem: Problem
    log: list[Asked]
    multipliers: dict[str, float]
    shares: dict[str, float]
    curvature: Matrix
    generator: np.random.Generator
    transcript: list[Released] = field(default_factory=list)

    @property
    def relation(self) -> Any:
        return self.problem.relation

    def noise_multiplier(self, name: str) -> float:
        return self.multipliers[name]

    def release(self, name: str, query: Query) -> Vector:
        asked = self.log[len(self.transcript)]
        answer = asked.answer + self.shares[name] * self._moved(asked.query, query) + self._noise(name, query)
        self.transcript.append(Released(name, answer))
        return answer

    def _moved(self, before: Query, now: Query) -> Vector | float:
        """What the answer changes because the replay asks at other weights; the second moment is not asked again."""
        if not isinstance(before, ClippedGradient) or not isinstance(now, ClippedGradient):
            return 0.0
        change = (now.w - before.w) @ self.curvature
        return (change if now.metric is None else change @ now.metric.A).ravel()

    def _noise(self, name: str, query: Query) -> Vector | float:
        if isinstance(query, SecondMoment):  # its noise is in the answer already, and in everything that followed
            return 0.0
        scale = self.multipliers[name] * query.sensitivity(self.problem.relation)
        noise: Vector = scale * self.generator.standard_normal(query.size)
        if isinstance(query, GradientWithMoment):
            noise[query.gradient.size :] = 0.0  # as for a second moment by itself
        return noise


def noise_spread(recorded: Recorded, problem: Problem, multipliers: dict[str, float], w: Vector) -> Matrix | None:
    """Standard error of each weight that the noise implies; None without noise, or where it is not simply added.

    Parameters
    ----------
    recorded : Recorded
        The solver, after the fit.
    problem : Problem
    multipliers : dict of str to float
        Noise multiplier of each release.
    w : array
        The released weights.

    Returns
    -------
    array of shape (n_outputs, n_features + 1) or None
        The intercept comes last; it is zero for a model without one.
    """
    if not any(multipliers.values()) or not all(_is_additive(asked.query) for asked in recorded.log):
        return None
    n = problem.n_rows
    shares = {part.name: part.sampling.expected_rows(n) / n for part in recorded.plan(problem).parts}
    curvature = _curvature(problem, recorded.log, multipliers, w)
    replays = [Replay(problem, recorded.log, multipliers, shares, curvature, np.random.default_rng(k)) for k in range(REPLAYS)]
    with threadpool_limits(1):  # matrices this small only lose by being shared between threads
        weights = [run(recorded.solver, problem, replay).w for replay in replays]  # type: ignore[arg-type]
    spread = np.atleast_2d(np.std(weights, axis=0, ddof=1))
    return spread if problem.fit_intercept else np.column_stack([spread, np.zeros(len(spread))])


def _largest_noise_eigenvalue(problem: Problem, multiplier: float) -> float:
    """Edge of the semicircle that the eigenvalues of the noise fill."""
    return multiplier * SecondMoment(problem).sensitivity(problem.relation) * math.sqrt(2 * problem.dimension)


def _curvature(problem: Problem, log: list[Asked], multipliers: dict[str, float], w: Vector) -> Matrix:
    """What a sum of gradients changes per change of the weights: second moment times the mean curvature of the loss."""
    moment = next((asked for asked in log if asked.name == _MOMENT), None)
    d = problem.dimension
    # Records are unit vectors, so without a release the best guess is round with trace one.
    M = np.eye(d) * problem.n_rows / d if moment is None else SecondMoment(problem).matrix(moment.answer)
    values, vectors = np.linalg.eigh(M)
    # Where noise hides the second moment there may be no row at all to pull a weight back: no curvature is the safe guess.
    hidden = 0.0 if moment is None else _HIDDEN * _largest_noise_eigenvalue(problem, multipliers[_MOMENT])
    M = (vectors * np.where(values > hidden, values, 0.0)) @ vectors.T
    bend = _mean_slope_of_slope(problem, log, M / problem.n_rows, np.atleast_2d(w))
    return np.asarray(bend * M)


def _mean_slope_of_slope(problem: Problem, log: list[Asked], M: Matrix, w: Matrix) -> float:
    """Mean second derivative of the logistic loss over margins of the released size; a clipped record has none."""
    largest = float(np.sqrt(np.einsum("kj,ji,ki->k", w, M, w).max()))
    slopes = expit(largest * np.random.default_rng(0).standard_normal(2_000))
    gradient = next((asked.query for asked in log if isinstance(asked.query, ClippedGradient)), None)
    A = None if gradient is None or gradient.metric is None else gradient.metric.A
    length = 1.0 if A is None else np.sqrt(np.trace(A @ M @ A))
    cap = np.inf if gradient is None else gradient.clip / length
    return float((slopes * (1 - slopes) * (slopes < cap)).mean())
