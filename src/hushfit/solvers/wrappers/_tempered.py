"""Calibration of the probabilities of several classes: one private number, the temperature.

Clipping, noise and early stopping leave weights that are too long or too short for their
probabilities. The right length is where the derivative of the log-loss along a line vanishes. The
line leads from the weights of the solver to the (privately counted) frequencies of the classes, so
that a model that knows nothing says no more than those.

The mean derivative at a point of the line is ``alignment - expectation``: how well margins agree
with the labels, one unknown number for the whole line, minus what probabilities expect of them,
which no label enters. Earlier releases show how large margins are, so the second is known well
enough, and every release tells something about the first. The log-loss is linear in it, so the best
point is that of its posterior mean.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from hushfit._typing import AnyArray, Matrix, Vector
from hushfit.errors import InvalidArgument
from hushfit.losses import Loss
from hushfit.privacy import Budget, gaussian_mu
from hushfit.problem import Problem
from hushfit.release import ClassCounts, Door, LineDerivative, Plan, Planned
from hushfit.solvers._whitening import MarginMoments, margin_moments, relation_factor
from hushfit.solvers.base import Iterate, Solver, finished
from hushfit.solvers.wrappers._counted import COUNTS, shrunk_counts
from hushfit.solvers.wrappers._inner_plan import inner_parts

_NAME = "temperature"
_ROUNDS = 3
_COUNTS_SHARE = 2 / 3  # of the wrapper's share
_LEAST_SHARE, _MOST_SHARE = 0.03, 0.12
_WELL_KNOWN = 40.0  # units per standard deviation of the noise of a derivative
_LOGS = np.linspace(-5.0, 1.5, 66)  # logarithms of the factor on the weights
_PAIRS = 128  # of margins to compute expectations with
# Size of margins that is most plausible beforehand: less if little can be known; the spread of its
# logarithm, and the probability that it is nothing like that.
_PLAUSIBLE_SIZE, _SIZE_PER_KNOWN, _SIZE_STD, _SURPRISE = 3.0, 0.04, 1.2, 0.5
# Bound of a record's derivative in units of a margin's size: from the first, growing with what is
# known, to the last.
_LEAST_BOUND, _KNOWN_PER_BOUND, _MOST_BOUND = 0.6, 45.0, 4.0
# Error of expectations elsewhere on the line, as a share of how much they change up to there; for
# releases before the last it counts several times.
_MODEL_ERROR, _EARLIER = 0.3, 8.0
# Standard deviations by which the alignment is taken to be smaller at the end: growing with what is
# known, as margins are supposed to be small where nothing is; and falling where nearly all is.
_CAUTION_PER_KNOWN, _MOST_CAUTION, _WITHOUT_CAUTION = 0.1, 0.75, 15.0


@dataclass(frozen=True)
class Tempered:
    """A solver for several classes, followed by a private choice of the length of its weights.

    Parameters
    ----------
    solver : Solver
    share : float, default=0.03
        Share of the budget (of mu squared) for the counts of the classes and the derivatives; the
        solver's releases have the rest.
    """

    solver: Solver
    share: float = 0.03

    takes_constraint = False

    @classmethod
    def for_budget_of(cls, solver: Solver, budget: Budget, problem: Problem) -> "Tempered":
        """With a share that makes derivatives known well, but within 3 and 12 per cent."""
        signal = gaussian_mu(budget.epsilon, budget.delta) * problem.n_units
        per_unit = _WELL_KNOWN * relation_factor(problem) / signal
        wanted = per_unit**2 * _ROUNDS / (1 - _COUNTS_SHARE)
        return cls(solver, min(max(wanted, _LEAST_SHARE), _MOST_SHARE))

    def plan(self, problem: Problem) -> Plan:
        if problem.outputs == 1 or not LineDerivative.takes(problem.loss):
            raise InvalidArgument(
                f"Tempered needs a logistic loss with more than two classes, not {problem.loss!r}. "
                "Use Recalibrated for two classes, or the solver alone."
            )
        counts = _COUNTS_SHARE * self.share
        return Plan(
            (
                *inner_parts(self.solver, problem, self.share),
                Planned(COUNTS, ClassCounts, 1, counts),
                Planned(_NAME, LineDerivative, _ROUNDS, self.share - counts),
            )
        )

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        return self.solver.iterates(problem, door)

    def finish(self, problem: Problem, door: Door, average: Vector) -> Vector:
        w = _without_common_part(finished(self.solver, problem, door, average), problem.loss)
        margins = margin_moments(w, problem, door)
        line = _Line.of(w, _log_odds(problem, door), margins)
        n = problem.n_units
        noise = door.noise_multiplier(_NAME) * relation_factor(problem) / n
        beliefs = _Beliefs(_Expectations(line, margins, problem.loss), 1 / max(noise, 1e-12))
        for _ in range(_ROUNDS):
            s = beliefs.best
            bound = beliefs.bound(s)
            query = LineDerivative(problem, line.at(s), line.derivative(s), bound)
            released = float(door.release(_NAME, query)[0]) / n
            beliefs = beliefs.after(s, bound * released, bound * noise)
        return line.at(beliefs.cautious)


@dataclass(frozen=True, eq=False)
class _Line:
    """Weights as a function of s: the solver's times e^s; as far as their own mean margins then
    fall short of the frequencies of the classes, the rest comes from those.

    ``log_odds`` are the margins of the frequencies, ``prior`` weights that have about these for
    every record, and ``reached`` how often the solver's mean margins contain them.
    """

    weights: Matrix
    log_odds: Vector
    prior: Matrix
    reached: float

    @classmethod
    def of(cls, weights: Matrix, log_odds: Vector, margins: MarginMoments) -> "_Line":
        prior, size = np.outer(log_odds, margins.level), float(log_odds @ log_odds)
        if not prior.any():
            return cls(weights, np.zeros(len(weights)), prior, 1.0)
        return cls(weights, log_odds, prior, max(float(margins.mean @ log_odds) / size, 1.0))

    def factors(self, s: Vector | float) -> tuple[Vector, Vector]:
        """Of the weights and of the prior."""
        factor = np.exp(np.asarray(s))
        return factor, np.maximum(1 - self.reached * factor, 0.0)

    def slopes(self, s: Vector | float) -> tuple[Vector, Vector]:
        """Derivatives of the factors in s."""
        factor = np.exp(np.asarray(s))
        return factor, np.where(self.reached * factor < 1, -self.reached * factor, 0.0)

    def at(self, s: float) -> Matrix:
        return self._mixed(*self.factors(s))

    def derivative(self, s: float) -> Matrix:
        return self._mixed(*self.slopes(s))

    def _mixed(self, of_weights: Vector, of_prior: Vector) -> Matrix:
        return np.asarray(of_weights * self.weights + of_prior * self.prior)


@dataclass(frozen=True, eq=False)
class _Expectations:
    """What probabilities expect of the margins along a line, if margins are normal.

    ``alignments`` has, for every s of the grid, the alignment of labels and margins with which s is
    the best point of the line: expectation and derivative agree there.
    """

    line: _Line
    margins: MarginMoments
    loss: Loss

    @cached_property
    def _draws(self) -> Matrix:
        points = _normal_points(_PAIRS, len(self.margins.mean))
        return np.asarray(self.margins.mean + points @ self.margins.root.T)

    @cached_property
    def alignments(self) -> Vector:
        factors, slopes = self.line.factors(_LOGS), self.line.slopes(_LOGS)
        change = self._along(*slopes)
        expected = np.sum(self._probabilities(self._along(*factors)) * change, axis=2).mean(axis=1)
        by_counts = self._probabilities(self.line.log_odds[None, None]) @ self.line.log_odds
        return np.maximum.accumulate((expected - slopes[1] * by_counts[0, 0]) / factors[0])

    def _along(self, of_weights: Vector, of_prior: Vector) -> AnyArray:
        """Draws of the margins, for each pair of factors of the weights and of the prior."""
        by_weights = of_weights[:, None, None] * self._draws
        return np.asarray(by_weights + of_prior[:, None, None] * self.line.log_odds)

    def _probabilities(self, t: AnyArray) -> AnyArray:
        rows = t.reshape(-1, t.shape[-1])
        slopes = self.loss.slope(rows, np.zeros(len(rows)))
        slopes[:, 0] += 1.0
        return slopes.reshape(t.shape)


@dataclass(frozen=True)
class _Seen:
    """What a release says of the alignment; its noise, and the alignment supposed at its point."""

    alignment: float
    noise: float
    supposed: float


@dataclass(frozen=True, eq=False)
class _Beliefs:
    """Which points of the line may be best: before any release, and after some of them.

    ``known`` is the number of units per standard deviation of the noise of a derivative.
    """

    expectations: _Expectations
    known: float
    seen: tuple[_Seen, ...] = field(default=())

    @property
    def best(self) -> float:
        """The point whose alignment is the posterior mean."""
        return self._point(0.0)

    @property
    def cautious(self) -> float:
        """The point for a somewhat smaller alignment. Wherever the true one is larger than that,
        its log-loss is no larger than that of the frequencies.
        """
        rising, falling = _CAUTION_PER_KNOWN * self.known, _WITHOUT_CAUTION / self.known
        return self._point(min(rising, _MOST_CAUTION, falling))

    def _point(self, caution: float) -> float:
        """The point for the posterior mean less so many standard deviations."""
        logs, alignments = self._log_posterior, self.expectations.alignments
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        mean = float(weights @ alignments)
        deviation = math.sqrt(max(float(weights @ (alignments - mean) ** 2), 0.0))
        rising = alignments + 1e-9 * np.arange(len(alignments))
        return float(np.interp(mean - caution * deviation, rising, _LOGS))

    def bound(self, s: float) -> float:
        """Bound of a record's derivative at a point: the less is known, the smaller."""
        margins = self.expectations.margins
        typical = margins.spread * math.sqrt(2 / max(len(margins.mean) - 1, 1))
        wanted = min(_LEAST_BOUND + self.known / _KNOWN_PER_BOUND, _MOST_BOUND)
        return max(wanted * math.exp(s) * typical, 1e-12)

    def after(self, s: float, derivative: float, noise: float) -> "_Beliefs":
        """Beliefs after a released mean derivative at ``s``."""
        supposed = float(np.interp(s, _LOGS, self.expectations.alignments))
        factor = math.exp(s)
        found = _Seen(supposed + derivative / factor, noise / factor, supposed)
        return replace(self, seen=(*self.seen, found))

    @property
    def _log_posterior(self) -> Vector:
        logs, alignments = self._log_prior, self.expectations.alignments
        for k, seen in enumerate(self.seen, start=1):
            share = _MODEL_ERROR * (1.0 if k == len(self.seen) else _EARLIER)
            variance = seen.noise**2 + (share * (alignments - seen.supposed)) ** 2 + 1e-12
            logs = logs - (alignments - seen.alignment) ** 2 / (2 * variance)
            logs = logs - np.log(variance) / 2
        return logs

    @property
    def _log_prior(self) -> Vector:
        """Of the size of the margins: near what is plausible, or any."""
        sizes = _LOGS + math.log(self.expectations.margins.spread)
        plausible = math.log(min(_PLAUSIBLE_SIZE, _SIZE_PER_KNOWN * self.known))
        logs = -(((sizes - plausible) / _SIZE_STD) ** 2) / 2
        near = np.exp(logs - logs.max())
        return np.asarray(np.log((1 - _SURPRISE) * near / near.sum() + _SURPRISE / len(near)))


def _normal_points(pairs: int, dimension: int) -> Matrix:
    """Points that are spread like independent standard normals, each with its opposite: an additive
    recurrence, whose steps are powers of the root of x^(dimension + 1) = x + 1 (Roberts 2018).
    """
    root = 1.5
    for _ in range(60):
        root = (1 + root) ** (1 / (dimension + 1))
    steps = root ** -np.arange(1.0, dimension + 1)
    points = ndtri((0.5 + np.outer(np.arange(1.0, pairs + 1), steps)) % 1.0)
    return np.concatenate([points, -points])


def _without_common_part(w: Matrix, loss: Loss) -> Matrix:
    """Weights without what all classes have in common, where the loss does not depend on it."""
    shared = loss.hessian_rank < loss.outputs
    return w - w.mean(axis=0) if shared else w


def _log_odds(problem: Problem, door: Door) -> Vector:
    """Margins whose probabilities are the (privately counted) frequencies of the classes."""
    query = ClassCounts(problem)
    noise = door.noise_multiplier(COUNTS) * query.sensitivity(problem.relation)
    counts = shrunk_counts(door.release(COUNTS, query), noise)
    if problem.loss.hessian_rank < problem.loss.outputs:
        return np.asarray(np.log(counts) - np.log(counts).mean())
    return np.asarray(np.log(counts) - np.log(counts.sum() - counts))
