"""Calibration of probabilities: rescale the weights of another solver by one private factor.

Clipping, shrinkage and early stopping leave weights that rank well but are too long or too short
for their probabilities. The right factor ``a`` makes the derivative of the log-loss along the
weights vanish. A noisy histogram of the signed margins gives that derivative for every ``a`` at
once; where noise dominates it, a prior decides, which then allows for margins that mean nothing.
The factor is positive, so no predicted class changes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from hushfit._typing import BoolVector, Vector
from hushfit.errors import InvalidArgument
from hushfit.problem import Problem
from hushfit.release import Door, MarginHistogram, Plan, Planned
from hushfit.solvers._whitening import margin_spread
from hushfit.solvers.base import Iterate, Solver, finished
from hushfit.solvers.wrappers._inner_plan import inner_parts

_NAME = "calibration"
_MOMENT = "second moment"
# Bins of the signed margin, in units of its root mean square, on either side of zero: more of them
# where noise is below this share of the rows.
_EDGES = np.array([0.3, 0.8, 1.6])
_FINE_EDGES = np.array([0.15, 0.4, 0.8, 1.2, 1.6, 2.2])
_FINE_NOISE = 0.002
# Bins without a second moment, which would show how large margins are.
_GEOMETRIC_EDGES = 2.0 ** np.arange(-3.0, 5.3, 0.75)
_VISIBLE = 3.0  # standard deviations of the noise: bins beyond the last visible ones are left out
_OUTER_BIN = 1.1  # position assumed for an unbounded bin, in units of its edge
# Prior of log a: midway between "nearly calibrated already" and "margins of about 3.6".
_PRIOR_FACTOR, _PRIOR_MARGIN, _PRIOR_STD = 0.85, 3.6, 0.4
_WIDE_PRIOR_MEAN = -0.2  # without a second moment
_LOG_FACTORS = np.linspace(-3, 3, 601)
# Noise of a bin, as a share of the rows, from which on margins may mean nothing, and where that is
# as likely beforehand as that they are as usual. The factor may then be anything up to so many
# standard deviations above the usual one.
_HIDING_NOISE, _HIDDEN_NOISE = 0.015, 0.03
_SURPRISE, _MOST_DEVIATIONS = 0.5, 2.0


@dataclass(frozen=True)
class Recalibrated:
    """A solver for two classes, followed by a private rescaling of its weights.

    Parameters
    ----------
    solver : Solver
        If its plan has a ``"second moment"``, the size of the margins is estimated from it, and the
        bins of the histogram are made for that; otherwise they cover all sizes.
    share : float, default=0.03
        Share of the budget (of mu squared) for the histogram; the solver's releases have the rest.
    """

    solver: Solver
    share: float = 0.03

    takes_constraint = False

    def plan(self, problem: Problem) -> Plan:
        if problem.outputs > 1:
            raise InvalidArgument(
                f"Recalibrated needs two classes, not {problem.outputs} outputs. Use Tempered, or "
                "the solver alone."
            )
        histogram = Planned(_NAME, MarginHistogram, 1, self.share)
        return Plan((*inner_parts(self.solver, problem, self.share), histogram))

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        return self.solver.iterates(problem, door)

    def finish(self, problem: Problem, door: Door, average: Vector) -> Vector:
        w = finished(self.solver, problem, door, average)
        if _MOMENT in self.solver.plan(problem).shares():
            return self._with_moment(w, problem, door)
        edges = np.concatenate([-_GEOMETRIC_EDGES[::-1], [0.0], _GEOMETRIC_EDGES])
        counts, noise = self._histogram(w, edges, problem, door)
        seen = _visible_bins(counts, noise)
        return w * _factor(counts, edges, noise, _WIDE_PRIOR_MEAN, seen)

    def _with_moment(self, w: Vector, problem: Problem, door: Door) -> Vector:
        spread, mean_weight = margin_spread(w, problem, door, _MOMENT)
        spread = max(spread, 1e-12)
        inner = (
            _FINE_EDGES if self._noise(problem, door) < _FINE_NOISE * problem.n_units else _EDGES
        )
        edges = spread * np.concatenate([-inner[::-1], [0.0], inner])
        counts, noise = self._histogram(w, edges, problem, door)
        prior_mean = 0.5 * np.log(_PRIOR_FACTOR) + 0.5 * np.log(_PRIOR_MARGIN / spread)
        # Counts as if every unit had the weight one, which the prior is measured against.
        counts, noise = counts / mean_weight, noise / mean_weight
        hidden = _hidden_share(noise / problem.n_units)
        return w * _factor(counts, edges, noise, prior_mean, hidden=hidden)

    def _histogram(
        self, w: Vector, edges: Vector, problem: Problem, door: Door
    ) -> tuple[Vector, float]:
        """Released counts, and the standard deviation of their noise."""
        answer = door.release(_NAME, MarginHistogram(problem, w, edges))
        return answer, self._noise(problem, door)

    def _noise(self, problem: Problem, door: Door) -> float:
        none = MarginHistogram(problem, np.zeros(problem.shape), np.zeros(1))
        return door.noise_multiplier(_NAME) * none.sensitivity(problem.relation)


def _visible_bins(counts: Vector, noise: float) -> BoolVector:
    """Bins up to the outermost pair, one on either side of zero, that is not noise alone."""
    pairs = (counts + counts[::-1])[: len(counts) // 2]  # from the outermost pair inwards
    visible = np.flatnonzero(pairs > _VISIBLE * math.sqrt(2) * noise)
    hidden = int(visible[0]) if len(visible) else len(pairs)
    places = np.arange(len(counts))
    return np.asarray((places >= hidden) & (places < len(counts) - hidden))


def _factor(
    counts: Vector,
    edges: Vector,
    noise: float,
    prior_mean: float,
    seen: BoolVector | None = None,
    hidden: float = 0.0,
) -> float:
    """Most probable factor on the weights, given noisy counts of the bins (of those seen).

    As far as noise has ``hidden`` what margins mean, the posterior mean with a prior that allows
    for any smaller factor.
    """
    middles = (edges[1:] + edges[:-1]) / 2
    margins = np.concatenate([[_OUTER_BIN * edges[0]], middles, [_OUTER_BIN * edges[-1]]])
    slopes = margins * expit(-np.exp(_LOG_FACTORS)[:, None] * margins)
    if seen is not None:
        slopes = slopes * seen
    derivative = slopes @ counts
    std = np.maximum(max(noise, 1.0) * np.linalg.norm(slopes, axis=1), 1e-12)
    evidence = -((derivative / std) ** 2) / 2
    usual = -(((_LOG_FACTORS - prior_mean) / _PRIOR_STD) ** 2) / 2
    most_probable = float(_LOG_FACTORS[(evidence + usual).argmax()])
    mean = _posterior_mean(evidence, usual, prior_mean) if hidden else most_probable
    return math.exp((1 - hidden) * most_probable + hidden * mean)


def _hidden_share(noise: float) -> float:
    """From 0 to 1, by the noise of a bin as a share of the rows."""
    return min(max((noise - _HIDING_NOISE) / (_HIDDEN_NOISE - _HIDING_NOISE), 0.0), 1.0)


def _posterior_mean(evidence: Vector, usual: Vector, prior_mean: float) -> float:
    """Mean logarithm of the factor, which is as usual or anything smaller."""
    near = np.exp(usual)
    any_smaller = np.where(prior_mean + _MOST_DEVIATIONS * _PRIOR_STD >= _LOG_FACTORS, 1.0, 0.0)
    any_smaller[0] = 1.0
    prior = (1 - _SURPRISE) * near / near.sum() + _SURPRISE * any_smaller / any_smaller.sum()
    logs = evidence + np.log(np.maximum(prior, 1e-300))
    weights = np.exp(logs - logs.max())
    return float(weights @ _LOG_FACTORS / weights.sum())
