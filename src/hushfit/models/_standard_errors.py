"""Standard errors of the weights due to the privacy noise, from replays of the run with fresh noise
on its released answers.

A replay gives the solver its released answers again, plus the change of the gradient with the
weights that the released second moment predicts, plus noise with the noise multiplier of the
release. The standard deviation of the weights over replays is the standard error. No row is read,
so this is post-processing. Sampling error (other people might have been in the table) is not
included.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from hushfit._typing import Matrix, Vector
from hushfit.errors import InvalidArgument
from hushfit.estimators import Fit
from hushfit.privacy import Relation
from hushfit.problem import Problem
from hushfit.release import (
    ClassCounts,
    ClippedGradient,
    GradientWithMoment,
    LabelStatistic,
    LineDerivative,
    MarginHistogram,
    Metric,
    Priced,
    PublicRows,
    Query,
    RecordSum,
    Released,
    SecondMoment,
)
from hushfit.solvers import run

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
    RecordSum,
    SecondMoment,
)


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
    curvature: Matrix | float
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
        change = self.shares[name] * self._change(before.query, query)
        answer = before.answer + change + self._noise(name, query)
        self.transcript.append(Released(name, answer, query))
        return answer

    def _change(self, before: Query | None, now: Query) -> Vector | float:
        """Change of the answer because the replay is at other weights; the second moment is not
        released again.
        """
        if not isinstance(before, ClippedGradient) or not isinstance(now, ClippedGradient):
            return 0.0
        apart = now.w - before.w
        curvature = self.curvature
        change = curvature * apart if isinstance(curvature, float) else apart @ curvature
        return (change if now.metric is None else now.metric.image(change)).ravel()

    def _noise(self, name: str, query: Query) -> Vector | float:
        if isinstance(
            query, SecondMoment
        ):  # its noise is in the answer already, and in all later ones
            return 0.0
        scale = self.multipliers[name] * query.sensitivity(self.problem.relation)
        noise: Vector = scale * self.generator.standard_normal(query.size)
        if isinstance(query, GradientWithMoment):
            noise[query.gradient.size :] = 0.0  # as for a second moment by itself
        return noise


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
    curvature = _curvature(problem, log, multipliers, fit.result.w)
    replays = [
        Replay(problem, log, multipliers, shares, curvature, np.random.default_rng(k))
        for k in range(REPLAYS)
    ]
    with threadpool_limits(1):  # matrices this small are slower with several threads
        return [run(fit.solver, problem, replay).w for replay in replays]


def noise_standard_errors(fit: Fit, problem: Problem) -> Matrix | None:
    """Standard error of each weight due to the noise; None without noise, if it is not additive,
    or for a penalty of several weights together, whose fits take too long to be repeated.

    Parameters
    ----------
    fit : Fit
        Solver, weights, noise multipliers and transcript.
    problem : Problem

    Returns
    -------
    array of shape (n_outputs, n_features + 1) or None
        The intercept comes last; it is zero for a model without one.
    """
    weights = replayed_weights(fit, problem) if problem.penalty.separable else None
    if weights is None:
        return None
    errors = np.atleast_2d(np.std(weights, axis=0, ddof=1))
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
    M = SecondMoment(problem).matrix(moment.answer)
    values, vectors = np.linalg.eigh(M)
    # Where noise hides the second moment there may be no curvature at all: zero is the conservative
    # guess.
    noise_level = _NOISE_LEVEL * _largest_noise_eigenvalue(problem, multipliers[_MOMENT])
    M = (vectors * np.where(values > noise_level, values, 0.0)) @ vectors.T
    mean_moment, rows = M / problem.n_units, np.atleast_2d(w)
    largest = float(np.sqrt(np.einsum("kj,ji,ki->k", rows, mean_moment, rows).max()))
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
