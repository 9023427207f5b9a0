"""Standard errors of the weights due to the privacy noise, from replays of the run with fresh noise
on its released answers.

A replay gives the solver its released answers again, plus the change of the gradient with the
weights that the released second moment predicts, plus noise with the noise multiplier of the
release. The standard deviation of the weights over replays is the standard error. No row is read,
so this is post-processing. Sampling error (other people might have been in the table) is not
included.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from scipy.special import expit

from hushfit._typing import Matrix, Vector
from hushfit.errors import InvalidArgument
from hushfit.estimators import Fit
from hushfit.kernels.threads import one_blas_thread
from hushfit.losses import LeastSquares, SaturatingSquares
from hushfit.privacy import Relation
from hushfit.problem import Problem
from hushfit.release import (
    ClassCounts,
    ClippedGradient,
    GradientWithMoment,
    LabelStatistic,
    LineDerivative,
    MarginHistogram,
    MeanAndSquare,
    Metric,
    Prediction,
    Priced,
    PublicRows,
    Query,
    RecordScaling,
    RecordSum,
    Released,
    ResidualGradient,
    ResidualMoments,
    SecondMoment,
    ShortenedMoment,
)
from hushfit.solvers import run
from hushfit.solvers.regression import WhitenedLeastSquares

REPLAYS: Final = 24
_MOMENT: Final = "second moment"
_NOISE_LEVEL: Final = (
    0.5  # of the largest eigenvalue of the noise: eigenvalues below count as noise
)
# Queries whose answer is a statistic plus noise; a perturbed minimiser, for one, is not.
_ADDITIVE: Final = (
    ClassCounts,
    ClippedGradient,
    LabelStatistic,
    LineDerivative,
    MarginHistogram,
    MeanAndSquare,
    RecordSum,
    ResidualGradient,
    ResidualMoments,
    SecondMoment,
    ShortenedMoment,
)
# Share of clipped records up to which gradients are taken to follow the weights.
_MOST_CLIPPED: Final = 0.9
# Eigenvalues of the second moment of a regression are clear from so many times the edge of their
# noise on.
_CLEAR: Final = 3.0
# How an answer changes because the replay is at other weights.
Change: TypeAlias = Callable[[Released, Query], Vector | float]


def _is_additive(query: Query | None) -> bool:
    joint = isinstance(query, GradientWithMoment) and isinstance(query.moment, SecondMoment)
    return joint or isinstance(query, _ADDITIVE)


@dataclass(frozen=True, eq=False)
class Replay:
    """A `Door` that replays the answers of a finished run with fresh noise."""

    problem: Problem
    log: Sequence[Released]
    multipliers: dict[str, float]
    shares: dict[str, float]
    change: Change
    generator: np.random.Generator
    transcript: list[Released] = field(default_factory=list)

    @property
    def relation(self) -> Relation:
        return self.problem.relation

    @property
    def public_rows(self) -> PublicRows | None:
        queries = (released.query for released in self.log)
        return next((query.rows for query in queries if isinstance(query, LabelStatistic)), None)

    def noise_multiplier(self, name: str) -> float:
        return self.multipliers[name]

    def affords(self, name: str, query: Priced) -> bool:
        raise InvalidArgument("An adaptive run cannot be replayed with fresh noise.")

    def release(self, name: str, query: Query) -> Vector:
        before = self.log[len(self.transcript)]
        change = self.shares[name] * self.change(before, query)
        answer = before.answer + change + self._noise(name, query)
        self.transcript.append(Released(name, answer, query))
        return answer

    def _noise(self, name: str, query: Query) -> Vector | float:
        if _stays(query):
            return 0.0
        scale = self.multipliers[name] * query.sensitivity(self.problem.relation)
        noise: Vector = scale * self.generator.standard_normal(query.size)
        if isinstance(query, GradientWithMoment):
            noise[query.gradient.size :] = 0.0  # as for a second moment by itself
        return noise


def _stays(query: Query) -> bool:
    """Whether the answer is taken as released: its noise is in all later ones already. So it is
    with second moments, and with what is learnt of targets and lengths before the gradients.
    """
    if isinstance(query, MeanAndSquare):
        return not isinstance(query.value, Prediction)
    return isinstance(query, SecondMoment | ShortenedMoment)


def _change_of_gradients(curvature: Matrix | float) -> Change:
    """For clipped gradients; other answers do not change."""

    def change(before: Released, now: Query) -> Vector | float:
        was = before.query
        if not isinstance(was, ClippedGradient) or not isinstance(now, ClippedGradient):
            return 0.0
        apart = now.w - was.w
        moved = curvature * apart if isinstance(curvature, float) else apart @ curvature
        return (moved if now.metric is None else now.metric.image(moved)).ravel()

    return change


def _change_of_residuals(problem: Problem, moment: Matrix) -> Change:
    """For gradients and moments of residuals of least squares, whose curvature is the second
    moment.
    """

    def change(before: Released, now: Query) -> Vector | float:
        was = before.query
        if isinstance(was, ResidualGradient) and isinstance(now, ResidualGradient):
            clipped = min(max(was.split(before.answer)[1], 0.0), _MOST_CLIPPED)
            moved = now.whitening.image((1 - clipped) * (moment @ (now.w - was.w)))
            return np.append(moved, before.answer[-1] * (now.clip / was.clip - 1))
        if isinstance(was, ResidualMoments) and isinstance(now, ResidualMoments):
            if not problem.fit_intercept:
                return 0.0
            apart = moment @ (now.w - was.w)
            level = float(apart[-1]) / problem.constant
            slope = (float(now.w @ apart) - now.mean * level) / (2 * now.spread)
            return -np.array([level, slope])
        return 0.0

    return change


def replayed_weights(fit: Fit, problem: Problem) -> list[Vector] | None:
    """Weights of replays of a fit with fresh noise; None without noise, or if it is not additive.

    Parameters
    ----------
    fit : Fit
        Solver, weights, noise multipliers and transcript.
    problem : Problem

    Returns
    -------
    list of arrays, or None
    """
    multipliers = {release.name: release.noise_multiplier for release in fit.guarantee.releases}
    log = fit.transcript
    additive = all(_is_additive(released.query) for released in log)
    if not any(multipliers.values()) or not additive:
        return None
    n, parts = problem.n_units, fit.solver.plan(problem).parts
    shares = {part.name: part.sampling.expected_units(n) / n for part in parts}
    with one_blas_thread():  # matrices this small are slower with several threads
        change = _change(problem, log, multipliers, fit.result.w)
        if change is None:
            return None
        replays = [
            Replay(problem, log, multipliers, shares, change, np.random.default_rng(k))
            for k in range(REPLAYS)
        ]
        return [run(fit.solver, problem, replay).w for replay in replays]


def _change(
    problem: Problem, log: Sequence[Released], multipliers: dict[str, float], w: Vector
) -> Change | None:
    """How answers follow the weights; None where that is not known."""
    if not any(isinstance(released.query, ResidualGradient) for released in log):
        shown = any(released.name == _MOMENT for released in log)
        if problem.scaling is RecordScaling.PUBLIC_LENGTH and not shown:
            return None  # how long records are is not known
        return _change_of_gradients(_curvature(problem, log, multipliers, w))
    if not isinstance(problem.loss, LeastSquares | SaturatingSquares):
        return None
    for released in log:
        query = released.query
        if isinstance(query, ShortenedMoment):
            moment = query.matrix(released.answer)
            deviation = multipliers[released.name] * query.sensitivity(problem.relation)
            if _is_blurred(moment, deviation):
                return None
            return _change_of_residuals(problem, _above(moment, 0.0))
    return None


def _is_blurred(moment: Matrix, deviation: float) -> bool:
    """Whether noise of that standard deviation neither hides nor leaves some eigenvalue.

    Columns that follow from others have eigenvalues of zero, and replays take those below the noise
    to be zero. One that is somewhat above it is off by as much as itself, and errors computed with
    it were up to five times too large.
    """
    edge = deviation * math.sqrt(2 * len(moment))
    values = np.linalg.eigvalsh(moment)
    return bool(((values > edge) & (values < _CLEAR * edge)).any())


def _above(M: Matrix, level: float) -> Matrix:
    """A matrix without its eigenvalues up to a level. Where noise hides the second moment there
    may be no curvature at all: zero is the conservative guess.
    """
    values, vectors = np.linalg.eigh(M)
    return np.asarray((vectors * np.where(values > level, values, 0.0)) @ vectors.T)


def noise_standard_errors(
    fit: Fit, problem: Problem, in_units: Callable[[Vector], Vector] | None = None
) -> Matrix | None:
    """Standard error of each weight due to the noise; None without noise, if it is not additive, if
    replays would be several times off, or for a penalty of several weights together, whose fits
    take too long to be repeated.

    Parameters
    ----------
    fit : Fit
        Solver, weights, noise multipliers and transcript.
    problem : Problem
    in_units : callable, optional
        From weights to coefficients, the intercept last. Weights as they are when not given.

    Returns
    -------
    array of shape (n_outputs, n_features + 1) or None
        The intercept comes last; it is zero for a model without one.
    """
    # What clipping on purpose does to a gradient at other weights is not known well enough.
    robust = isinstance(fit.solver, WhitenedLeastSquares) and fit.solver.clipped is not None
    known = problem.penalty.separable and not robust
    weights = replayed_weights(fit, problem) if known else None
    if weights is None:
        return None
    if in_units is not None:
        return np.atleast_2d(np.std([in_units(w) for w in weights], axis=0, ddof=1))
    errors = np.atleast_2d(np.std(weights, axis=0, ddof=1)) / problem.length
    return errors if problem.fit_intercept else np.column_stack([errors, np.zeros(len(errors))])


def _largest_noise_eigenvalue(problem: Problem, multiplier: float) -> float:
    """Edge of the semicircle distribution of the eigenvalues of the noise."""
    return (
        multiplier
        * SecondMoment(problem).sensitivity(problem.relation)
        * math.sqrt(2 * problem.dimension)
    )


def _curvature(
    problem: Problem, log: Sequence[Released], multipliers: dict[str, float], w: Vector
) -> Matrix | float:
    """Derivative of a sum of gradients with respect to the weights: second moment times the mean
    second derivative of the loss. A number stands for a multiple of the identity.
    """
    moment = next((released for released in log if released.name == _MOMENT), None)
    if moment is None:
        # Records are unit vectors, so without a release the best guess is isotropic with trace one.
        mean = 1 / problem.dimension
        largest = math.sqrt(mean * float((np.atleast_2d(w) ** 2).sum(axis=1).max()))
        return float(problem.n_units * mean * _mean_second_derivative(log, largest, 1.0))
    noise_level = _NOISE_LEVEL * _largest_noise_eigenvalue(problem, multipliers[_MOMENT])
    M = _above(SecondMoment(problem).matrix(moment.answer), noise_level)
    if not M.any():
        return M  # noise hides all of it
    mean_moment, rows = M / problem.n_units, np.atleast_2d(w)
    squares = np.einsum("kj,ji,ki->k", rows, mean_moment, rows)
    largest = math.sqrt(max(float(squares.max()), 0.0))  # rounding may leave it below zero
    metric = next((query.metric for query in _gradients(log)), None)
    length = 1.0
    if isinstance(metric, Metric):
        length = float(np.sqrt(np.trace(metric.A @ mean_moment @ metric.A)))
    return np.asarray(_mean_second_derivative(log, largest, length) * M)


def _gradients(log: Sequence[Released]) -> Iterator[ClippedGradient]:
    return (released.query for released in log if isinstance(released.query, ClippedGradient))


def _mean_second_derivative(log: Sequence[Released], largest: float, length: float) -> float:
    """Mean second derivative of the logistic loss over margins of the estimated size; zero for a
    clipped record. ``length`` is that of a record in the metric of the gradients.
    """
    slopes = expit(largest * np.random.default_rng(0).standard_normal(2_000))
    cap = next((query.clip / length for query in _gradients(log)), np.inf)
    return float((slopes * (1 - slopes) * (slopes < cap)).mean())
