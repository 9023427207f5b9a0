"""Calibration of the probabilities of several classes: one private number, the temperature.

Clipping, noise and early stopping leave weights that are too long or too short for their
probabilities. A few private derivatives of the log-loss along a line find the right length; where
noise hides it, a prior decides. The line leads from the weights of the solver to the (privately
counted) frequencies of the classes, so that a model that knows nothing says no more than those.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget, by_relation, gaussian_mu
from hushfit.problem import Problem
from hushfit.release import ClassCounts, Door, LineDerivatives, Plan, Planned
from hushfit.solvers._whitening import several_spread, typical_constant
from hushfit.solvers.base import Iterate, Solver, finished

_NAME, _COUNTS = "temperature", "class counts"
_ROUNDS = 3
_COUNTS_SHARE = 1 / 3  # of the wrapper's share
_LEAST_CURVATURE = 0.02  # of the mean loss along the line
_USUAL_CURVATURE, _LEAST_OF_USUAL = 0.3, 0.5  # the same for margins of size one; share of it
_LEAST_SHARE, _MOST_SHARE = 0.03, 0.1
_WELL_KNOWN = 50.0  # units per standard deviation of the noise of a derivative
_LONGEST_STEP = 2.0  # of Newton's method, in units of the factor
# Error of a step of Newton's method as a share of it, downwards and upwards: long weights are
# shortened too much, short ones lengthened too little.
_ERROR_DOWN, _ERROR_UP = 0.5, 0.2
_EARLIER = 3.0  # times the error, if a later step was made
_LEAST_LOG, _MOST_LOG = -5.0, 1.5
# Below this s the frequencies of the classes take the place of the weights.
_PRIOR_FROM = -1.5
# Units per standard deviation of the noise of a derivative at which both ends of the rule below
# count alike.
_HALF_KNOWN = 30.0
# Where derivatives are known well: prior mean of s, its standard deviation, and the bound of a
# record's derivative.
_KNOWN_LOG, _KNOWN_STD, _KNOWN_BOUND = -0.4, 0.4, 8.0
# Where they are not: size of the margins to start from (less if hardly anything is known), and the
# same two.
_UNKNOWN_SPREAD, _UNKNOWN_STD, _UNKNOWN_BOUND = 1.5, 1.0, 3.0
_SPREAD_PER_KNOWN = 0.1


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
        """With a share that makes derivatives known well, but within 3 and 10 per cent."""
        signal = gaussian_mu(budget.epsilon, budget.delta) * problem.n_units
        sensitivity = by_relation(problem.relation, replace_one=math.sqrt(5), add_remove=2**0.5)
        wanted = (_WELL_KNOWN * sensitivity / signal) ** 2 * _ROUNDS / (1 - _COUNTS_SHARE)
        return cls(solver, min(max(wanted, _LEAST_SHARE), _MOST_SHARE))

    def plan(self, problem: Problem) -> Plan:
        if problem.outputs == 1 or not LineDerivatives.takes(problem.loss):
            raise InvalidArgument(
                f"Tempered needs a logistic loss with more than two classes, not {problem.loss!r}. "
                "Use Recalibrated for two classes, or the solver alone."
            )
        inner = self.solver.plan(problem)
        shares = inner.shares()
        inner_parts = [
            replace(part, share=(1 - self.share) * shares[part.name]) for part in inner.parts
        ]
        counts = _COUNTS_SHARE * self.share
        return Plan(
            (
                *inner_parts,
                Planned(_COUNTS, ClassCounts, 1, counts),
                Planned(_NAME, LineDerivatives, _ROUNDS, self.share - counts),
            )
        )

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        return self.solver.iterates(problem, door)

    def finish(self, problem: Problem, door: Door, average: Vector) -> Vector:
        w = finished(self.solver, problem, door, average)
        line = _Line(w, _prior_weights(problem, door))
        noise = door.noise_multiplier(_NAME) * LineDerivatives(problem, w, w, 1.0).sensitivity(
            problem.relation
        )
        spread = several_spread(w, problem, door)
        prior = _Prior.of(problem.n_units / max(noise, 1e-12), spread)
        s, found = prior.mean, []
        for _ in range(_ROUNDS):
            query = LineDerivatives(problem, line.at(s), line.derivative(s), prior.bound)
            answer = door.release(_NAME, query)
            size = math.exp(s) * spread
            found.append(_estimate(s, answer, prior.bound, size, problem.n_units, noise))
            s = _posterior(prior, found)
        return line.at(s)


@dataclass(frozen=True)
class _Prior:
    """What is supposed of s before any derivative, and the bound of a record's derivative.

    Weights of a noisy fit are long because of the noise in them, so their length says nothing:
    where derivatives cannot tell either, margins should be small.
    """

    mean: float
    std: float
    bound: float

    @classmethod
    def of(cls, known: float, spread: float) -> "_Prior":
        """From the number of units per standard deviation of noise, and the size of margins."""
        share = known / (known + _HALF_KNOWN)
        wanted = min(_UNKNOWN_SPREAD, _SPREAD_PER_KNOWN * (1 + known))
        unknown = min(math.log(wanted / max(spread, 1e-12)), _KNOWN_LOG)

        def between(at_known: float, at_unknown: float) -> float:
            return share * at_known + (1 - share) * at_unknown

        return cls(
            max(between(_KNOWN_LOG, unknown), _LEAST_LOG),
            between(_KNOWN_STD, _UNKNOWN_STD),
            between(_KNOWN_BOUND, _UNKNOWN_BOUND),
        )


@dataclass(frozen=True, eq=False)
class _Line:
    """Weights as a function of s: the solver's times e^s; where that is little, the rest comes from
    the prior.
    """

    weights: Vector
    prior: Vector

    def at(self, s: float) -> Vector:
        return np.asarray(math.exp(s) * self.weights + max(1 - _excess(s), 0.0) * self.prior)

    def derivative(self, s: float) -> Vector:
        lost = _excess(s) if _excess(s) < 1 else 0.0
        return np.asarray(math.exp(s) * self.weights - lost * self.prior)


def _excess(s: float) -> float:
    """The factor on the weights over that from which on the prior has no part in them."""
    return math.exp(s - _PRIOR_FROM)


@dataclass(frozen=True)
class _Estimate:
    """An estimate of the factor e^s on the weights; the standard deviation of its noise, and the
    error of Newton's method, which only later steps reduce.
    """

    factor: float
    deviation: float
    error: float

    def precision(self, latest: bool) -> float:
        error = self.error if latest else _EARLIER * self.error
        return 1 / max(self.deviation**2 + error**2, 1e-24)


def _estimate(
    s: float, answer: Vector, bound: float, size: float, n_units: int, noise: float
) -> _Estimate:
    """One step of Newton's method in the factor, and its precision; ``size`` is that of margins."""
    descent = bound * float(answer[0])
    curvature = _curvature(bound**2 * float(answer[1]), bound**2 * noise, size, n_units)
    growth, deviation = descent / curvature, bound * max(noise, 1e-12) / curvature
    growth = min(max(growth, -_LONGEST_STEP), _LONGEST_STEP)
    # The longer the step, the less a quadratic function describes the loss.
    error = (_ERROR_DOWN if growth < 0 else _ERROR_UP) * abs(growth)
    factor = math.exp(s)
    return _Estimate(factor * (1 + growth), factor * deviation, factor * error)


def _curvature(released: float, noise: float, size: float, n_units: int) -> float:
    """Curvature of the loss along the line: released, or as is usual for margins of that size where
    noise hides it.
    """
    usual = _USUAL_CURVATURE * min(size**2, 1.0) * n_units
    trust = usual**2 / (usual**2 + noise**2)
    least = max(_LEAST_CURVATURE * n_units, _LEAST_OF_USUAL * (1 - trust) * usual)
    return max(trust * released + (1 - trust) * usual, least)


def _posterior(prior: _Prior, estimates: list[_Estimate]) -> float:
    """The s of the mean of the estimated factors and the prior, weighted by their precisions."""
    factor = math.exp(prior.mean)
    own = 1 / (factor * prior.std) ** 2
    weighted, total = own * factor, own
    for estimate in estimates:
        precision = estimate.precision(latest=estimate is estimates[-1])
        weighted, total = weighted + precision * estimate.factor, total + precision
    return math.log(min(max(weighted / total, math.exp(_LEAST_LOG)), math.exp(_MOST_LOG)))


def _prior_weights(problem: Problem, door: Door) -> Vector:
    """Weights of the intercept whose probabilities are the frequencies of the classes."""
    query = ClassCounts(problem)
    noise = door.noise_multiplier(_COUNTS) * query.sensitivity(problem.relation)
    weights, constant = np.zeros(problem.shape), typical_constant(problem, door)
    counts = _shrunk(door.release(_COUNTS, query), noise)
    if constant:
        logs = np.log(counts)
        weights[:, -1] = (logs - logs.mean()) / constant
    return weights


def _shrunk(counts: Vector, noise: float) -> Vector:
    """Noisy counts, closer to their mean the less they differ beyond the noise; above zero."""
    mean = max(float(counts.mean()), 1.0)
    deviation = counts - counts.mean()
    excess = 1 - (len(counts) - 1) * noise**2 / max(float(deviation @ deviation), 1e-12)
    least = min(max(noise, 1.0), mean)
    return np.asarray(np.maximum(mean + max(excess, 0.0) * deviation, least))
